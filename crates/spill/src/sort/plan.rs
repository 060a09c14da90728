//! The arithmetic of a sort: runs, merges, bytes.
//!
//! With memory for B clusters, w of them for writes and d for reading ahead, B - w - d runs are
//! merged at once (fan-in F). The first merge takes just as many runs as make all later ones full:
//! ((R - 2) mod (F - 1)) + 2 of R runs; each merge takes the shortest runs there are. That is the
//! merge pattern with the fewest bytes (Knuth, TAOCP 3, 5.4.9, exercise on Huffman trees). Merges
//! are executed as listed, so that bytes are exact and not an estimate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::error::Error;
use crate::options::Resources;
use crate::rows::Rows;
use crate::space::Space;

/// What a sort will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortPlan {
    /// Rows of a cluster.
    pub rows_per_cluster: u64,
    /// Rows of a run; the last one may have fewer.
    pub rows_per_run: u64,
    /// Runs.
    pub runs: u64,
    /// Runs merged at once at most.
    pub fan_in: u64,
    /// Clusters for writes under way.
    pub write_clusters: u64,
    /// Clusters for reading ahead.
    pub read_ahead: u64,
    /// Merges in order; the last one is the output.
    #[serde(skip_serializing)]
    #[serde(default)]
    pub merges: Vec<Merge>,
    /// How many merges.
    pub merge_count: u64,
    /// How often a row is read back, on average: 1 where one merge does.
    pub passes: f64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes that the temporary file may need at once.
    pub most_bytes: u64,
}

/// One merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The runs that it takes; those made by merges are numbered after the others, in order.
    pub inputs: Vec<u32>,
    /// Rows that it gives.
    pub rows: u64,
}

/// Bytes of bookkeeping per row while a run is sorted: key and place.
const ENTRY_BYTES: u64 = 16;

impl SortPlan {
    /// For this many rows with such memory and clusters.
    pub fn new(rows: &Rows, resources: &Resources) -> Result<Self, Error> {
        rows.check()?;
        let rows_per_cluster = resources.rows_per_cluster(rows.width_bytes)?;
        let (write_clusters, read_ahead) = (resources.write_clusters(), resources.read_ahead());
        let fan_in = resources.clusters() - write_clusters - read_ahead;
        let left = resources.memory.0 - write_clusters * resources.cluster.0;
        let rows_per_run = left / (u64::from(rows.width_bytes) + ENTRY_BYTES);
        if rows_per_run == 0 || fan_in < 2 {
            let (memory, cluster) = (resources.memory, resources.cluster);
            return Err(Error::Memory { memory, cluster, held: resources.clusters(), needed: 6 });
        }
        let runs = rows.count.div_ceil(rows_per_run);
        if runs > 1 << 20 {
            return Err(Error::Setting {
                what: format!("{runs} runs are too many; give more memory"),
            });
        }
        let mut lengths: Vec<u64> =
            (0..runs).map(|run| (rows.count - run * rows_per_run).min(rows_per_run)).collect();
        let merges = merges(&mut lengths, fan_in);
        let clusters = |rows: u64| rows.div_ceil(rows_per_cluster);
        // Every run is written once and read once, those that merges make too.
        let moved: u64 = lengths.iter().map(|rows| clusters(*rows)).sum();
        let initial = &lengths[..runs as usize];
        let space = Space::new(resources.cluster.0);
        let extents: u64 = initial.iter().map(|rows| space.extents(clusters(*rows))).sum();
        let read_rows: u64 = merges.iter().map(|merge| merge.rows).sum();
        Ok(Self {
            rows_per_cluster,
            rows_per_run,
            runs,
            fan_in,
            write_clusters,
            read_ahead,
            merge_count: merges.len() as u64,
            passes: if rows.count == 0 { 0.0 } else { read_rows as f64 / rows.count as f64 },
            written_bytes: moved * resources.cluster.0,
            read_bytes: moved * resources.cluster.0,
            // Beside the data: an extent partly read of each input, one partly written.
            most_bytes: (extents + fan_in + 2) * space.extent_bytes(),
            merges,
        })
    }

    /// The largest cluster with which one merge does, of those that are a power of two.
    pub fn largest_single_merge(rows: &Rows, resources: &Resources) -> Option<Bytes> {
        let sizes = (9..=22).rev().map(|power| Bytes(1 << power));
        sizes.into_iter().find(|cluster| {
            let resources = Resources { cluster: *cluster, ..*resources };
            resources.check(1).is_ok()
                && Self::new(rows, &resources).is_ok_and(|plan| plan.merge_count <= 1)
        })
    }
}

/// The merges of runs of the given lengths; appends the lengths of those that they make, but for
/// the last.
fn merges(lengths: &mut Vec<u64>, fan_in: u64) -> Vec<Merge> {
    let mut open: BinaryHeap<Reverse<(u64, u32)>> =
        lengths.iter().enumerate().map(|(run, rows)| Reverse((*rows, run as u32))).collect();
    let mut merges = Vec::new();
    let count = open.len() as u64;
    if count == 0 {
        return merges;
    }
    let mut take = match count {
        1 => 1,
        _ if count <= fan_in => count,
        _ => (count - 2) % (fan_in - 1) + 2,
    };
    loop {
        let mut merge = Merge::default();
        for _ in 0..take {
            let Reverse((rows, run)) = open.pop().expect("as many runs as the pattern says");
            merge.inputs.push(run);
            merge.rows += rows;
        }
        let rows = merge.rows;
        merges.push(merge);
        if open.is_empty() {
            return merges;
        }
        open.push(Reverse((rows, lengths.len() as u32)));
        lengths.push(rows);
        take = fan_in.min(open.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::Keys;

    fn plan(count: u64, memory: u64, cluster: u64, depth: u32) -> SortPlan {
        let rows = Rows { count, width_bytes: 112, keys: Keys::Random, seed: 1 };
        SortPlan::new(&rows, &Resources { memory: Bytes(memory), cluster: Bytes(cluster), depth })
            .expect("possible")
    }

    #[test]
    fn the_worked_example_holds() {
        // 2 MiB in clusters of 8 KiB: 256, of them 32 to write and 32 to read ahead, 192 to merge.
        // A run: 224 x 8 KiB over 128 bytes a row = 14,336 rows; 2,000,000 rows are 140 runs.
        let one = plan(2_000_000, 2 << 20, 8192, 32);
        assert_eq!((one.fan_in, one.rows_per_run, one.runs), (192, 14_336, 140));
        assert_eq!((one.merge_count, one.passes), (1, 1.0));
        // 73 rows a cluster: 197 per run of 14,336, and 101 for the 7,296 rows of the last.
        assert_eq!(one.written_bytes, (139 * 197 + 100) * 8192);
        assert_eq!(one.read_bytes, one.written_bytes);
        // Clusters of 64 KiB: 32, of them 4 to write, 8 to read ahead, 20 to merge.
        let more = plan(2_000_000, 2 << 20, 65536, 32);
        assert_eq!((more.fan_in, more.runs), (20, 140));
        // (140 - 2) mod 19 + 2 = 7 first; then 133 + 1 runs in full merges: 7 more.
        assert_eq!(more.merges[0].inputs.len(), 7);
        assert!(more.merges[1..].iter().all(|merge| merge.inputs.len() == 20));
        assert_eq!(more.merge_count, 8);
        assert!(more.passes > 1.8 && more.passes < 2.0, "{}", more.passes);
    }

    #[test]
    fn equal_runs_of_a_power_of_the_fan_in_take_whole_passes() {
        let mut lengths = vec![10; 64];
        let merges = merges(&mut lengths, 4);
        assert_eq!(merges.len(), 21);
        assert_eq!(merges.iter().map(|merge| merge.rows).sum::<u64>(), 3 * 640);
    }

    #[test]
    fn nothing_to_sort_is_nothing_to_do() {
        let none = plan(0, 2 << 20, 8192, 1);
        assert_eq!((none.runs, none.merge_count, none.written_bytes, none.passes), (0, 0, 0, 0.0));
        let one = plan(1, 2 << 20, 8192, 1);
        assert_eq!((one.runs, one.merge_count, one.written_bytes), (1, 1, 8192));
    }

    #[test]
    fn the_largest_cluster_for_one_merge() {
        let rows = Rows { count: 2_000_000, width_bytes: 112, keys: Keys::Random, seed: 1 };
        let resources = Resources { memory: Bytes(2 << 20), cluster: Bytes(512), depth: 32 };
        assert_eq!(SortPlan::largest_single_merge(&rows, &resources), Some(Bytes(8192)));
    }

    /// The fewest rows that merges of at most `fan_in` runs can move, by trying every choice.
    fn fewest(lengths: &[u64], fan_in: usize) -> u64 {
        if lengths.len() == 1 {
            return 0;
        }
        let mut best = u64::MAX;
        for chosen in 1u32..1 << lengths.len() {
            let taken = chosen.count_ones() as usize;
            if taken < 2 || taken > fan_in {
                continue;
            }
            let (mut rows, mut rest) = (0, Vec::new());
            for (index, length) in lengths.iter().enumerate() {
                if chosen >> index & 1 == 1 { rows += length } else { rest.push(*length) }
            }
            rest.push(rows);
            best = best.min(rows + fewest(&rest, fan_in));
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn no_other_pattern_moves_fewer_rows(
            lengths in prop::collection::vec(1u64..9, 2..6),
            fan_in in 2usize..5,
        ) {
            let mut own = lengths.clone();
            let moved: u64 = merges(&mut own, fan_in as u64).iter().map(|merge| merge.rows).sum();
            prop_assert_eq!(moved, fewest(&lengths, fan_in));
        }

        #[test]
        fn every_run_is_merged_once(count in 1u64..400, fan_in in 2u64..20) {
            let mut lengths = vec![3; count as usize];
            let merges = merges(&mut lengths, fan_in);
            let mut inputs: Vec<u32> = merges.iter().flat_map(|m| m.inputs.clone()).collect();
            inputs.sort_unstable();
            prop_assert_eq!(inputs, (0..lengths.len() as u32).collect::<Vec<_>>());
            prop_assert!(merges.iter().all(|merge| merge.inputs.len() as u64 <= fan_in));
            prop_assert_eq!(merges.last().map(|merge| merge.rows), Some(3 * count));
        }
    }
}
