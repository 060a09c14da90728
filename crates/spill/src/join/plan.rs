//! The arithmetic of a join: how many parts, how many bytes.
//!
//! With memory for B clusters, w of them for writes under way and d for reading ahead, an input is
//! split into at most B - w - d parts, each with one cluster that is being filled. There are as
//! many parts as it takes that the build side of each fits in memory, four standard deviations of a
//! random split included.

use serde::{Deserialize, Serialize};
use stats::rng;

use crate::error::Error;
use crate::options::Resources;
use crate::rows::Rows;
use crate::space::Space;

/// What a join will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinPlan {
    /// Rows of a cluster, of the build and of the probe side.
    pub rows_per_cluster: [u64; 2],
    /// Build rows that fit in memory.
    pub table_rows: u64,
    /// Parts of the first split; 1 where the build side fits in memory and nothing is written.
    pub parts: u64,
    /// Parts of a split at most.
    pub most_parts: u64,
    /// Clusters for writes under way.
    pub write_clusters: u64,
    /// Clusters for reading ahead.
    pub read_ahead: u64,
    /// Bytes written by the first split, where keys spread evenly; as many are read back.
    pub written_bytes: u64,
    /// Bytes read, where no part has to be split again.
    pub read_bytes: u64,
    /// Parts that were split again.
    pub split_again: u64,
    /// Parts that were joined in blocks, because no split makes them smaller.
    pub in_blocks: u64,
    /// Bytes that the temporary file may need, where no part has to be split again.
    pub most_bytes: u64,
}

/// Bytes of the hash table per row beside the row.
pub(super) const ENTRY_BYTES: u64 = 16;

impl JoinPlan {
    /// For such inputs with such memory and clusters.
    pub fn new(build: &Rows, probe: &Rows, resources: &Resources) -> Result<Self, Error> {
        build.check()?;
        probe.check()?;
        let fit = |rows: &Rows| resources.rows_per_cluster(rows.width_bytes);
        let rows_per_cluster = [fit(build)?, fit(probe)?];
        let write_clusters = resources.write_clusters();
        // Parts are read from one end to the other: less ahead does than in a merge.
        let read_ahead = resources.read_ahead().min(resources.clusters() / 8).max(1);
        let most_parts = resources.clusters() - write_clusters - read_ahead;
        // Both sides are read ahead while a part is joined.
        let left = resources.memory.0 - 2 * read_ahead * resources.cluster.0;
        let table_rows = left / (u64::from(build.width_bytes) + ENTRY_BYTES);
        let too_small = table_rows == 0 || most_parts < 2;
        if too_small {
            let (memory, cluster) = (resources.memory, resources.cluster);
            return Err(Error::Memory { memory, cluster, held: resources.clusters(), needed: 6 });
        }
        let mut plan = Self {
            rows_per_cluster,
            table_rows,
            parts: 1,
            most_parts,
            write_clusters,
            read_ahead,
            written_bytes: 0,
            read_bytes: 0,
            split_again: 0,
            in_blocks: 0,
            most_bytes: 0,
        };
        plan.parts = plan.parts_for(build.count);
        if plan.parts > 1 {
            let clusters =
                |rows: &Rows, fit: u64| plan.parts * rows.count.div_ceil(plan.parts).div_ceil(fit);
            let each = [clusters(build, rows_per_cluster[0]), clusters(probe, rows_per_cluster[1])];
            let space = Space::new(resources.cluster.0);
            plan.written_bytes = (each[0] + each[1]) * resources.cluster.0;
            plan.read_bytes = plan.written_bytes;
            let extents = space.extents(each[0]) + space.extents(each[1]) + 2 * plan.parts;
            plan.most_bytes = extents * space.extent_bytes();
        }
        Ok(plan)
    }

    /// Parts that this many build rows are split into; 1 where they fit.
    pub(super) fn parts_for(&self, build_rows: u64) -> u64 {
        if build_rows <= self.table_rows {
            return 1;
        }
        let fits = |parts: u64| {
            let mean = build_rows as f64 / parts as f64;
            mean + 4.0 * mean.sqrt() <= self.table_rows as f64
        };
        let least = build_rows.div_ceil(self.table_rows).max(2);
        (least..=self.most_parts).find(|parts| fits(*parts)).unwrap_or(self.most_parts)
    }
}

/// The part that a key belongs to in a split of the given level; the levels are independent.
#[inline]
pub(super) fn part_of(key: u64, level: u32, parts: u64) -> usize {
    let hash = rng::mix(key ^ rng::mix(0x7370_6c69_7400 + u64::from(level)));
    ((u128::from(hash) * u128::from(parts)) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;
    use crate::rows::Keys;

    fn plan(count: u64, memory: u64, cluster: u64) -> JoinPlan {
        let rows = Rows { count, width_bytes: 112, keys: Keys::Random, seed: 1 };
        let resources = Resources { memory: Bytes(memory), cluster: Bytes(cluster), depth: 32 };
        JoinPlan::new(&rows, &rows, &resources).expect("possible")
    }

    #[test]
    fn the_worked_example_holds() {
        // 2 MiB in clusters of 8 KiB: 256, 32 to write, 32 ahead on each side. 1.5 MiB over 128
        // bytes a row: 12,288 rows in memory. 100,000 rows in 9 parts are 11,112 each, and 422 for
        // chance.
        let plan = plan(100_000, 2 << 20, 8192);
        assert_eq!((plan.table_rows, plan.most_parts, plan.parts), (12_288, 192, 9));
        // In clusters of 73: 153, on both sides.
        assert_eq!(plan.written_bytes, 2 * 9 * 153 * 8192);
    }

    #[test]
    fn what_fits_is_not_written() {
        let plan = plan(12_288, 2 << 20, 8192);
        assert_eq!((plan.parts, plan.written_bytes, plan.most_bytes), (1, 0, 0));
    }

    #[test]
    fn parts_are_as_many_as_there_are_clusters_at_most() {
        let plan = plan(10_000_000, 2 << 20, 65536);
        // 32 clusters, of them 4 to write and 4 ahead.
        assert_eq!((plan.most_parts, plan.parts), (24, 24));
    }

    #[test]
    fn levels_split_independently() {
        let parts = 10u64;
        let inside: Vec<u64> = (0..100_000).filter(|key| part_of(*key, 0, parts) == 3).collect();
        let again = inside.iter().filter(|key| part_of(**key, 1, parts) == 3).count() as f64;
        // A tenth of 10,000, give or take five standard deviations of 30.
        assert!((again - 1000.0).abs() < 150.0, "{again} of {}", inside.len());
    }
}
