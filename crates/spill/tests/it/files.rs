//! On real files: what comes out is right, requests are as planned, nothing is left.

use std::collections::HashMap;
use std::sync::Mutex;

use events::{Event, Hint, Quiet, Sink};
use spill::{Error, Keys, Phase, SortPlan, TempFile, join, sort};
use trace::Op;
use units::Bytes;

use crate::support::{listing, place, resources, rows};

#[test]
fn a_sort_writes_and_reads_what_arithmetic_says() {
    let dir = place();
    // (rows, width, memory, cluster, depth): one run, one merge, many merges, odd widths.
    let cases = [
        (0, 100, 1 << 20, 4096, 4),
        (1, 100, 1 << 20, 4096, 4),
        (5_000, 100, 1 << 20, 8192, 8),
        (40_000, 100, 256 << 10, 4096, 16),
        (40_000, 100, 256 << 10, 4096, 1),
        (30_000, 57, 128 << 10, 16384, 8),
        (20_000, 16, 40 << 10, 8192, 3),
    ];
    for (count, width, memory, cluster, depth) in cases {
        let rows = rows(count, width, Keys::Random);
        let resources = resources(memory, cluster, depth);
        let plan = SortPlan::new(&rows, &resources).unwrap();
        let medium = TempFile::new(dir.path(), false, depth).unwrap();
        let sorted = sort(&medium, rows, resources, true, &Quiet).unwrap();
        let case = format!("{count} rows of {width}, {resources:?}");
        assert!(sorted.verified && sorted.rows == count, "{case}");
        assert_eq!(sorted.written_bytes(), plan.written_bytes, "{case}");
        assert_eq!(sorted.read_bytes(), plan.read_bytes, "{case}");
        assert!(sorted.peak_bytes <= plan.most_bytes, "{case}");
        let trace = sorted.trace.as_ref().unwrap();
        trace.validate().unwrap();
        let moved: u64 = trace.len.iter().map(|len| u64::from(*len)).sum();
        assert_eq!(moved, plan.written_bytes + plan.read_bytes, "{case}");
        assert!(trace.len.iter().all(|len| u64::from(*len) == cluster));
        check_depth(trace, depth as usize);
    }
    assert_eq!(listing(dir.path()), [""; 0], "a temporary file was left");
}

/// At no issue are more than `depth` requests under way, and an actor has one at a time.
fn check_depth(trace: &trace::Trace, depth: usize) {
    let (service, chains) = trace.captured().unwrap();
    let mut ends: Vec<u64> = Vec::new();
    let mut actors: HashMap<u16, u64> = HashMap::new();
    for (index, (due, service)) in trace.due.iter().zip(service).enumerate() {
        let (due, end) = (*due, due + service);
        ends.retain(|end| *end > due);
        ends.push(end);
        assert!(ends.len() <= depth, "{} requests at {due} ns", ends.len());
        let before = actors.insert(chains.actor[index], end);
        assert!(before.is_none_or(|before| before <= due), "an actor did two things at once");
    }
}

#[test]
fn keys_of_every_distribution_are_sorted() {
    let dir = place();
    for keys in [Keys::Ascending, Keys::Descending, Keys::Uniform(10), Keys::Zipf(100)] {
        let medium = TempFile::new(dir.path(), false, 8).unwrap();
        let sorted =
            sort(&medium, rows(20_000, 40, keys), resources(64 << 10, 4096, 8), false, &Quiet);
        assert_eq!(sorted.unwrap().rows, 20_000, "{keys}");
    }
}

#[test]
fn the_same_rows_give_the_same_checksum_on_any_way() {
    let dir = place();
    let rows = rows(20_000, 100, Keys::Random);
    let mut sums = Vec::new();
    for (buffered, cluster, depth) in
        [(false, 4096, 1), (false, 65536, 8), (true, 2048, 4), (true, 512, 1)]
    {
        let medium = TempFile::new(dir.path(), buffered, depth).unwrap();
        let sorted = sort(&medium, rows, resources(512 << 10, cluster, depth), false, &Quiet);
        sums.push(sorted.unwrap().checksum);
    }
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
}

#[test]
fn a_join_writes_and_reads_each_part_once() {
    let dir = place();
    let (build, probe) =
        (rows(8_000, 100, Keys::Ascending), rows(24_000, 60, Keys::Uniform(9_000)));
    let medium = TempFile::new(dir.path(), false, 8).unwrap();
    let resources = resources(256 << 10, 4096, 8);
    let joined = join(&medium, (build, probe), resources, true, &Quiet).unwrap();
    let plan = &joined.plan;
    assert!(plan.parts > 2 && plan.split_again == 0 && plan.in_blocks == 0, "{plan:?}");
    // Eight of nine probe keys have one build row.
    let matched = (0..probe.count).filter(|n| probe.key(*n) < build.count).count() as u64;
    assert_eq!(joined.rows, matched);
    // Independently of the engine: rows by part, in whole clusters.
    let trace = joined.trace.as_ref().unwrap();
    let written = |stream: u16| {
        let is = |i: &usize| trace.op[*i] == Op::Write && trace.stream[*i] == stream;
        (0..trace.count()).filter(is).count() as u64
    };
    let fewest = |count: u64, fit: u64| count.div_ceil(fit);
    for (stream, input) in [(0u16, build), (1, probe)] {
        let fit = plan.rows_per_cluster[usize::from(stream)];
        let (least, found) = (fewest(input.count, fit), written(stream));
        // Each part ends in a cluster that is not full.
        assert!(found > least && found <= least + plan.parts, "{found} clusters, least {least}");
    }
    assert_eq!(joined.written_bytes(), joined.read_bytes());
    let names: Vec<&str> = joined.phases.iter().map(|phase: &Phase| phase.name.as_str()).collect();
    assert_eq!(names, ["build", "probe", "join"]);
    // The phases that split only write, the last one only reads.
    assert!(joined.phases[..2].iter().all(|phase| phase.reads == 0 && phase.writes > 0));
    assert!(joined.phases[2].writes == 0 && joined.phases[2].reads > 0);
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn skewed_joins_split_again_or_go_in_blocks() {
    let dir = place();
    let resources = resources(64 << 10, 4096, 4);
    // Too many parts for the clusters: every part is split again.
    let medium = TempFile::new(dir.path(), false, 4).unwrap();
    let build = rows(20_000, 64, Keys::Ascending);
    let joined =
        join(&medium, (build, rows(20_000, 64, Keys::Uniform(20_000))), resources, false, &Quiet);
    let joined = joined.unwrap();
    assert!(joined.plan.split_again > 0 && joined.plan.in_blocks == 0, "{:?}", joined.plan);
    assert_eq!(joined.rows, 20_000);
    // One key has more rows than fit: blocks.
    let medium = TempFile::new(dir.path(), false, 4).unwrap();
    let build = rows(4_000, 64, Keys::Uniform(2));
    let joined = join(&medium, (build, rows(500, 64, Keys::Uniform(4))), resources, false, &Quiet);
    let joined = joined.unwrap();
    assert!(joined.plan.in_blocks > 0, "{:?}", joined.plan);
    // Nothing matches, one side is empty.
    for (build, probe) in [(0, 5_000), (5_000, 0)] {
        let medium = TempFile::new(dir.path(), false, 4).unwrap();
        let inputs = (rows(build, 64, Keys::Random), rows(probe, 64, Keys::Random));
        assert_eq!(join(&medium, inputs, resources, false, &Quiet).unwrap().rows, 0);
    }
}

#[test]
fn a_build_side_that_fits_writes_nothing() {
    let dir = place();
    let medium = TempFile::new(dir.path(), false, 4).unwrap();
    let inputs = (rows(500, 64, Keys::Ascending), rows(5_000, 64, Keys::Uniform(500)));
    let joined = join(&medium, inputs, resources(1 << 20, 4096, 4), true, &Quiet).unwrap();
    assert_eq!((joined.rows, joined.written_bytes(), joined.plan.parts), (5_000, 0, 1));
    assert!(joined.trace.unwrap().is_empty());
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let dir = place();
    let refused = |width: u32, memory: u64, cluster: u64, expected: &str| {
        let medium = TempFile::new(dir.path(), false, 4).unwrap();
        let rows = rows(1000, width, Keys::Random);
        let error = sort(&medium, rows, resources(memory, cluster, 4), false, &Quiet).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.len() > 10), "{error}");
    };
    refused(100, 1 << 20, 100, "clusters are");
    refused(100, 1 << 20, 4000, "the device transfers multiples of");
    refused(100, 16 << 10, 4096, "at least 5 are needed");
    refused(8000, 1 << 20, 4096, "a cluster of 4KiB holds none");
    refused(10, 1 << 20, 4096, "key and number take 16");
    let error = TempFile::new(&dir.path().join("absent"), false, 1).unwrap_err();
    assert!(matches!(error, Error::Place { .. }), "{error}");
    assert!(error.hint().unwrap().contains("existing directory"));
}

#[test]
fn more_than_the_disk_has_is_refused_before_it_starts() {
    let dir = place();
    let medium = TempFile::new(dir.path(), false, 4).unwrap();
    let rows = rows(1 << 40, 4000, Keys::Random);
    let error = sort(&medium, rows, resources(1 << 40, 1 << 20, 4), false, &Quiet).unwrap_err();
    assert!(matches!(error, Error::TooFewFree { .. }), "{error}");
    assert!(matches!(error, Error::TooFewFree { needed, .. } if needed > Bytes(1 << 51)));
}

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<f64>>);

impl Sink for Notes {
    fn emit(&self, event: Event) {
        if let Event::Progress { done, .. } = event {
            self.0.lock().unwrap().push(done);
        }
    }
}

#[test]
fn progress_rises_to_the_end() {
    let dir = place();
    let medium = TempFile::new(dir.path(), false, 4).unwrap();
    let notes = Notes::default();
    sort(&medium, rows(40_000, 100, Keys::Random), resources(128 << 10, 4096, 4), false, &notes)
        .unwrap();
    let told = notes.0.into_inner().unwrap();
    assert!((50..=201).contains(&told.len()), "{} times", told.len());
    assert!(told.windows(2).all(|pair| pair[0] <= pair[1]), "{told:?}");
    assert!(*told.last().unwrap() > 0.97, "{:?}", told.last());
}
