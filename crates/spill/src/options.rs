//! What a sort or a join may use, and what follows from it.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::error::Error;

/// Memory, cluster size and depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Memory for rows and clusters. A cluster of less than 4 KiB is counted with its size and
    /// takes 4 KiB of it, because direct I/O wants its memory aligned.
    pub memory: Bytes,
    /// Bytes per request to the temporary file.
    pub cluster: Bytes,
    /// Requests in flight at most; 1 waits for each.
    pub depth: u32,
}

impl Resources {
    /// Smallest cluster.
    pub const LEAST_CLUSTER: Bytes = Bytes(512);
    /// Largest cluster.
    pub const MOST_CLUSTER: Bytes = Bytes(4 << 20);
    /// Most requests in flight.
    pub const MOST_DEPTH: u32 = 4096;
    /// Clusters held at once at most, so that a ring has an entry for each.
    pub(crate) const MOST_CLUSTERS: u64 = 16384;
    /// Clusters needed: two to merge, one ahead, two to write.
    pub(crate) const LEAST_CLUSTERS: u64 = 5;

    /// Checks all that can be told without a device; `sector_bytes` is the device's.
    pub fn check(&self, sector_bytes: u32) -> Result<(), Error> {
        let cluster = self.cluster;
        let refuse = |why: String, hint: String| Err(Error::Cluster { cluster, why, hint });
        let (least, most) = (Self::LEAST_CLUSTER, Self::MOST_CLUSTER);
        if cluster < least || cluster > most {
            let range = format!("{least} to {most}");
            return refuse(format!("clusters are {range}"), format!("choose one of {range}"));
        }
        let sector = Bytes(u64::from(sector_bytes.max(1)));
        if !cluster.0.is_multiple_of(sector.0) {
            return refuse(
                format!("the device transfers multiples of {sector}"),
                format!(
                    "take a multiple of {sector}, or --buffered, which goes through the page cache"
                ),
            );
        }
        if self.depth == 0 || self.depth > Self::MOST_DEPTH {
            let what = format!("a depth of {} is not in 1 to {}", self.depth, Self::MOST_DEPTH);
            return Err(Error::Setting { what });
        }
        let (memory, held) = (self.memory, self.memory.0 / cluster.0);
        if held < Self::LEAST_CLUSTERS {
            return Err(Error::Memory { memory, cluster, held, needed: Self::LEAST_CLUSTERS });
        }
        Ok(())
    }

    /// Clusters that the memory holds, all uses together.
    pub(crate) fn clusters(&self) -> u64 {
        (self.memory.0 / self.cluster.0).min(Self::MOST_CLUSTERS)
    }

    /// Clusters for writes under way: an eighth of the memory at most, two at least.
    pub(crate) fn write_clusters(&self) -> u64 {
        (self.clusters() / 8).min(u64::from(self.depth)).max(2)
    }

    /// Clusters for reading ahead: a quarter of the memory at most, one at least.
    pub(crate) fn read_ahead(&self) -> u64 {
        (self.clusters() / 4).min(u64::from(self.depth)).max(1)
    }

    /// Bytes of rows and clusters per cluster that fit: rows do not span clusters.
    pub(crate) fn rows_per_cluster(&self, width_bytes: u32) -> Result<u64, Error> {
        let fit = self.cluster.0 / u64::from(width_bytes.max(1));
        if fit == 0 {
            let why = format!("a cluster of {} holds none", self.cluster);
            return Err(Error::Width { width_bytes, why });
        }
        Ok(fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(memory: u64, cluster: u64, depth: u32) -> Resources {
        Resources { memory: Bytes(memory), cluster: Bytes(cluster), depth }
    }

    #[track_caller]
    fn check(resources: Resources, sector: u32, expected: &str) {
        let error = resources.check(sector).expect_err("impossible").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn impossible_settings_are_refused_with_the_rule() {
        assert!(of(2 << 20, 8192, 32).check(512).is_ok());
        assert!(of(2 << 20, 2048, 1).check(512).is_ok());
        check(of(2 << 20, 2048, 1), 4096, "multiples of 4KiB");
        check(of(2 << 20, 100, 1), 1, "clusters are 512B to 4MiB");
        check(of(64 << 20, 8 << 20, 1), 512, "clusters are");
        check(of(2 << 20, 8192, 0), 512, "a depth of 0");
        check(of(2 << 20, 1 << 20, 4), 512, "holds 2 clusters of 1MiB; at least 5");
        assert!(of(2 << 20, 2048, 1).rows_per_cluster(4000).is_err());
        assert_eq!(of(2 << 20, 2048, 1).rows_per_cluster(100).ok(), Some(20));
    }

    #[test]
    fn the_memory_is_shared_out_and_never_exceeded() {
        for (memory, cluster, depth) in
            [(2u64 << 20, 2048u64, 32u32), (5 << 12, 4096, 64), (1 << 30, 512, 7)]
        {
            let resources = of(memory, cluster, depth);
            let fixed = resources.write_clusters() + resources.read_ahead();
            assert!(fixed + 2 <= resources.clusters(), "{resources:?}");
            assert!(resources.clusters() * cluster <= memory);
        }
    }
}
