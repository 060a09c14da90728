//! How similar a trace is to those whose statistics are published.
//!
//! `published.toml` holds the statistics with their sources. The distance of one statistic is 0
//! within the published range; outside, for a share the difference to the nearer end, for a size or
//! a rate d / (1 + d) with d = |log2 of the ratio|, so that a factor of two is 0.5. The distance of
//! a trace is the mean over the statistics that are published: 0 is alike in all of them, 1 in
//! none. Few statistics are published of some traces, so that the list is a hint, not a proof; the
//! number of requests and the addresses are not compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StreamInfo;

const PUBLISHED: &str = include_str!("published.toml");

/// A published trace, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Similarity {
    /// Short name.
    pub id: String,
    /// What was traced.
    pub what: String,
    /// Who published the figures.
    pub source: String,
    /// Distance, 0 to 1; the module's header has its definition.
    pub distance: f64,
    /// Each statistic.
    pub statistics: Vec<StatisticDistance>,
}

/// One statistic of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatisticDistance {
    /// Its name; units last.
    pub name: String,
    /// Of this trace.
    pub here: f64,
    /// As published: lowest and highest.
    pub published: (f64, f64),
    /// Distance, 0 to 1.
    pub distance: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    trace: Vec<PublishedTrace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedTrace {
    id: String,
    what: String,
    source: String,
    statistics: BTreeMap<String, (f64, f64)>,
    #[serde(default)]
    size_shares: BTreeMap<String, (f64, f64)>,
}

/// All published traces, nearest first; none for a trace without reads and writes.
pub(super) fn similarities(all: &StreamInfo) -> Vec<Similarity> {
    if all.counts.reads + all.counts.writes == 0 {
        return Vec::new();
    }
    let published: Published = toml::from_str(PUBLISHED).expect("the shipped file is well formed");
    let mut found: Vec<Similarity> =
        published.trace.into_iter().map(|trace| compare(trace, all)).collect();
    found.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    found
}

fn compare(trace: PublishedTrace, all: &StreamInfo) -> Similarity {
    let counts = &all.counts;
    let data = (counts.reads + counts.writes) as f64;
    let mut statistics: Vec<StatisticDistance> = Vec::new();
    for (name, published) in trace.statistics {
        let here = match name.as_str() {
            "write_share" => counts.writes as f64 / data,
            "mean_size_bytes" => counts.mean_size_bytes,
            "sequential_share" => all.sequentiality.sequential_share,
            "requests_per_s" => all.requests_per_s,
            _ => unreachable!("a test names every statistic of the shipped file"),
        };
        let distance = if name.ends_with("share") {
            beyond(here, published)
        } else {
            octaves(here, published)
        };
        statistics.push(StatisticDistance { name, here, published, distance });
    }
    for (size, published) in trace.size_shares {
        // A size that is not among the most frequent ones counts as absent.
        let of_size = counts.sizes.iter().find(|count| count.size_bytes.to_string() == size);
        let here = of_size.map_or(0.0, |size| (size.reads + size.writes) as f64 / data);
        let (name, distance) = (format!("share_of_{size}_bytes"), beyond(here, published));
        statistics.push(StatisticDistance { name, here, published, distance });
    }
    let distance = statistics.iter().map(|one| one.distance).sum::<f64>() / statistics.len() as f64;
    let PublishedTrace { id, what, source, .. } = trace;
    Similarity { id, what, source, distance, statistics }
}

fn beyond(here: f64, (low, high): (f64, f64)) -> f64 {
    (low - here).max(here - high).max(0.0)
}

fn octaves(here: f64, (low, high): (f64, f64)) -> f64 {
    if here <= 0.0 {
        return 1.0;
    }
    let octaves = beyond(here.log2(), (low.log2(), high.log2()));
    octaves / (1.0 + octaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Counts;
    use crate::info::counts::SizeCount;

    #[test]
    fn distances_by_hand() {
        assert_eq!([beyond(0.5, (0.6, 0.7)), beyond(0.9, (0.6, 0.7))], [0.6 - 0.5, 0.9 - 0.7]);
        assert_eq!(beyond(0.65, (0.6, 0.7)), 0.0);
        assert_eq!(octaves(8192.0, (4096.0, 4096.0)), 0.5);
        assert_eq!(octaves(1024.0, (4096.0, 8192.0)), 2.0 / 3.0);
        assert_eq!(octaves(0.0, (1.0, 2.0)), 1.0);
    }

    #[test]
    fn a_trace_is_most_similar_to_itself() {
        let sizes = [(8192, 964), (16_384, 15), (4096, 21)];
        let size = |(size_bytes, reads)| SizeCount { size_bytes, reads, writes: 0 };
        let counts = Counts {
            requests: 1000,
            reads: 626,
            writes: 374,
            mean_size_bytes: 8532.0,
            sizes: sizes.map(size).to_vec(),
            ..Counts::default()
        };
        let mut all = StreamInfo { counts, requests_per_s: 51_000.0, ..StreamInfo::default() };
        all.sequentiality.sequential_share = 0.001;
        let found = similarities(&all);
        assert_eq!((found.len(), found[0].id.as_str()), (5, "tpcc-small"));
        assert!(found[0].distance < 0.002, "{:?}", found[0]);
        assert!(found.iter().skip(1).all(|other| other.distance > 0.1));
        assert!(found.iter().all(|one| (0.0..=1.0).contains(&one.distance)));
        assert_eq!(similarities(&StreamInfo::default()), []);
    }
}
