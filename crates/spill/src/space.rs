//! Where clusters lie in the temporary file: extents, given out from the lowest address.
//!
//! A [`Stretch`] (a run, a part) grows by extents of 256 KiB, or one cluster where that is larger,
//! and gives each back as soon as its last cluster has been read. So the file holds one copy of the
//! data and an extent per open stretch, however many passes there are.

use std::collections::BTreeSet;

/// Bytes of an extent at least.
const EXTENT_BYTES: u64 = 256 << 10;

/// The extents of the temporary file.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    cluster_bytes: u64,
    /// Clusters of an extent.
    pub(crate) extent_clusters: u64,
    free: BTreeSet<u64>,
    /// Extents ever given out.
    used: u64,
}

/// Clusters one after another, wherever they lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    extents: Vec<u64>,
    /// Clusters written so far.
    pub(crate) clusters: u64,
    /// Rows in them.
    pub(crate) rows: u64,
}

impl Space {
    pub(crate) fn new(cluster_bytes: u64) -> Self {
        let extent_clusters = (EXTENT_BYTES / cluster_bytes).max(1);
        Self { cluster_bytes, extent_clusters, free: BTreeSet::new(), used: 0 }
    }

    /// Bytes from the start of the file that were ever in use.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.used * self.extent_bytes()
    }

    /// Bytes of an extent.
    pub(crate) fn extent_bytes(&self) -> u64 {
        self.extent_clusters * self.cluster_bytes
    }

    /// Extents that this many clusters take.
    pub(crate) fn extents(&self, clusters: u64) -> u64 {
        clusters.div_ceil(self.extent_clusters)
    }

    /// Where the next cluster of `stretch` goes, bytes; it then has one more.
    pub(crate) fn append(&mut self, stretch: &mut Stretch) -> u64 {
        if stretch.clusters == stretch.extents.len() as u64 * self.extent_clusters {
            let extent = self.free.pop_first().unwrap_or(self.used);
            self.used = self.used.max(extent + 1);
            stretch.extents.push(extent);
        }
        stretch.clusters += 1;
        self.offset(stretch, stretch.clusters - 1)
    }

    /// Where cluster `index` of `stretch` lies, bytes.
    pub(crate) fn offset(&self, stretch: &Stretch, index: u64) -> u64 {
        assert!(index < stretch.clusters, "cluster {index} of {} is read", stretch.clusters);
        let extent = stretch.extents[(index / self.extent_clusters) as usize];
        (extent * self.extent_clusters + index % self.extent_clusters) * self.cluster_bytes
    }

    /// Nothing of `stretch` will be read any more, and nothing of it was.
    pub(crate) fn release(&mut self, stretch: &Stretch) {
        self.free.extend(&stretch.extents);
    }

    /// Cluster `index` has been read for the last time; they are read in order.
    pub(crate) fn consumed(&mut self, stretch: &Stretch, index: u64) {
        let last = index + 1 == stretch.clusters;
        if last || (index + 1).is_multiple_of(self.extent_clusters) {
            let fresh = self.free.insert(stretch.extents[(index / self.extent_clusters) as usize]);
            assert!(fresh, "an extent is given back once");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_used_again_and_never_shared() {
        let mut space = Space::new(64 << 10);
        assert_eq!(space.extent_clusters, 4);
        let (mut a, mut b) = (Stretch::default(), Stretch::default());
        let mut places: Vec<u64> = (0..6).map(|_| space.append(&mut a)).collect();
        places.extend((0..3).map(|_| space.append(&mut b)));
        let expected: Vec<u64> = [0u64, 1, 2, 3, 4, 5, 8, 9, 10].map(|c| c << 16).to_vec();
        assert_eq!(places, expected);
        for index in 0..6 {
            space.consumed(&a, index);
        }
        let mut c = Stretch::default();
        let again: Vec<u64> = (0..9).map(|_| space.append(&mut c) >> 16).collect();
        assert_eq!(again, [0, 1, 2, 3, 4, 5, 6, 7, 12]);
        assert_eq!(space.peak_bytes(), 16 << 16);
    }

    #[test]
    fn a_large_cluster_is_an_extent() {
        let space = Space::new(1 << 20);
        assert_eq!((space.extent_clusters, space.extents(3)), (1, 3));
    }
}
