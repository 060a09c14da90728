//! Every outcome is accounted for, the split between calibration and prediction holds, and the same
//! comes out for any number of threads.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use events::Quiet;

use crate::data::{Role, papers};
use crate::judge::{Comparison, LARGE, Verdict, compare};
use crate::{Effort, Experiment, Found, Ours, Paper, experiments, run};

type Results = (Vec<Paper>, Vec<(Experiment, Vec<Found>)>);

/// What experiments give, on a device that costs nothing.
fn names() -> &'static Results {
    static FOUND: OnceLock<Results> = OnceLock::new();
    FOUND.get_or_init(|| {
        let papers = papers(None).expect("they are part of the program");
        let (found, stopped) = run::all(&papers, &experiments(), Effort::Names, 2, &Quiet);
        assert!(!stopped);
        (papers, found)
    })
}

#[test]
fn no_outcome_is_missing_and_none_has_two_answers() {
    let (papers, found) = names();
    let mut counts = Vec::new();
    for paper in papers {
        let mut given: BTreeMap<&str, usize> = BTreeMap::new();
        let own = found.iter().filter(|(experiment, _)| experiment.paper == paper.name);
        for found in own.flat_map(|(_, found)| found) {
            *given.entry(found.id.as_str()).or_default() += 1;
        }
        for (id, times) in &given {
            let entry = paper.entry.iter().find(|entry| entry.id == *id);
            let entry = entry.unwrap_or_else(|| panic!("{} prints no {id}", paper.name));
            assert_eq!(entry.role, Role::Outcome, "{id} is compared, and no outcome");
            assert_eq!(*times, 1, "{id} is given by two experiments");
            assert!(entry.not_compared.is_empty(), "{id} is compared after all");
        }
        for entry in paper.entry.iter().filter(|entry| entry.role == Role::Outcome) {
            let is_given = given.contains_key(entry.id.as_str());
            let is_explained = entry.not_compared.len() > 20;
            assert!(is_given || is_explained, "{} {} is missing", paper.name, entry.id);
        }
        let ids: std::collections::BTreeSet<_> = paper.entry.iter().map(|own| &own.id).collect();
        assert_eq!(ids.len(), paper.entry.len(), "{}: an entry stands twice", paper.name);
        let outcomes = paper.entry.iter().filter(|entry| entry.role == Role::Outcome).count();
        counts.push((paper.name.as_str(), paper.entry.len(), outcomes));
    }
    // As many as were transcribed: a lost entry would be no outcome that is missing.
    assert_eq!(counts, ENTRIES);
}

/// Entries and outcomes of each file.
const ENTRIES: [(&str, usize, usize); 5] = [
    ("wang2011", 143, 46),
    ("wang2010", 13, 8),
    ("petrov2010", 221, 138),
    ("lee2008", 104, 66),
    ("oi2007", 40, 24),
];

/// Where profiles cite a figure of a paper, the entries of that figure that they were made from say
/// so, and are given back and not predicted.
#[test]
fn profiles_cite_no_figure_that_is_then_predicted() {
    let (papers, found) = names();
    let keys = [("Wang 2011", "wang2011"), ("Wang 2010", "wang2010")];
    let mut cited = 0;
    for (name, text) in profile::shipped() {
        // A source may be broken over lines, whose ends are escaped.
        for line in text.replace("\\\n  ", "").lines() {
            for (key, paper) in keys {
                let Some(at) = line.find(key) else { continue };
                let paper = papers.iter().find(|own| own.name == paper).expect("it is there");
                for figure in figures(&line[at..]) {
                    cited += 1;
                    let says_so = paper.entry.iter().any(|entry| {
                        entry.calibrates.iter().any(|own| own == name) && is_of(entry, figure)
                    });
                    assert!(says_so, "{name} cites {key}, figure {figure}, which no entry says");
                }
            }
        }
    }
    assert!(cited >= 10, "{cited} citations of figures");
    for paper in papers {
        for row in compare(paper, found).rows {
            let is_given_back = row.verdict == Verdict::GivenBack;
            assert_eq!(is_given_back, !row.entry.calibrates.is_empty() && row.ours.is_some());
            for name in &row.entry.calibrates {
                assert!(profile::find_shipped(name).is_some(), "{name} does not ship");
            }
        }
    }
}

/// Numbers behind the word figure.
fn figures(text: &str) -> Vec<u32> {
    let parts = text.split("figure ").skip(1);
    let digits =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    parts.filter_map(digits).collect()
}

fn is_of(entry: &crate::Entry, figure: u32) -> bool {
    entry.place.contains(&format!("Fig. {figure}")) || entry.id.starts_with(&format!("fig{figure}"))
}

/// Experiments that are cheap in full.
fn cheap() -> Vec<Experiment> {
    let cheap =
        ["two drives", "one drive as a line", "commits", "TPC-B", "arithmetic", "endurance"];
    experiments().into_iter().filter(|own| cheap.contains(&own.name)).collect()
}

#[test]
fn the_same_comes_out_for_any_number_of_threads() {
    let papers = &names().0;
    let of = |threads| run::all(papers, &cheap(), Effort::Quick, threads, &Quiet).0;
    let (one, two) = (of(1), of(2));
    assert!(one.len() >= 8);
    for ((own, first), (_, second)) in one.iter().zip(&two) {
        assert_eq!(first, second, "{} {}", own.paper, own.name);
    }
}

#[test]
fn arithmetic_is_exact() {
    let (papers, found) = names();
    let of = |paper: &str, id: &str| {
        let paper = papers.iter().find(|own| own.name == paper).expect("it is there");
        let rows = compare(paper, found).rows;
        rows.into_iter().find(|row| row.entry.id == id).unwrap_or_else(|| panic!("no {id}"))
    };
    for case in ["commercial_ext2fs", "mysql_ext2fs", "commercial_nilfs2", "mysql_nilfs2"] {
        let row = of("wang2011", &format!("table6.intel.years.{case}"));
        assert!(row.difference.unwrap().abs() < 0.01, "{row:?}");
    }
    assert_eq!(of("petrov2010", "amdahl.speedup.cpu").ours, Some(Ours::Value(1.5625)));
    for (id, expected) in [("balance.ssd_per_cpu", 3.0), ("derived.balance.hdd", 77.5)] {
        let Some(Ours::Value(ours)) = of("petrov2010", id).ours else { panic!("a figure") };
        assert_eq!((ours * 10.0).round() / 10.0, expected, "{id}");
    }
}

fn full(threads: usize) -> Option<Vec<Comparison>> {
    if std::env::var_os("SLOW").is_none() {
        println!("skipped: SLOW=1 runs all experiments in full");
        return None;
    }
    let (papers, _) = names();
    let (found, _) = run::all(papers, &experiments(), Effort::Full, threads, &Quiet);
    Some(papers.iter().map(|paper| compare(paper, &found)).collect())
}

/// In full: what differs by more than 30 % or does not hold names what is missing.
#[test]
fn large_differences_are_explained() {
    let Some(all) = full(2) else { return };
    for own in &all {
        println!("{}: {:?}", own.paper, own.summary);
        let failing = own.rows.iter().filter(|row| row.verdict == Verdict::Fails);
        failing.for_each(|row| println!("  {}: {:?}, {}", row.entry.id, row.ours, row.how));
    }
    for row in all.iter().flat_map(|own| &own.rows) {
        let is_far = row.difference.is_some_and(|own| own.abs() > LARGE);
        if row.verdict == Verdict::Fails || (is_far && row.verdict == Verdict::Compared) {
            assert!(row.why.len() > 20, "{}: {:?}, {}", row.entry.id, row.ours, row.how);
        }
    }
}
