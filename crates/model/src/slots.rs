//! `k` parallel servers with one queue in front: the resource timeline under every model.
//!
//! Invariants: a request starts no earlier than it arrives and no earlier than the first free
//! server; with one server the times are those of a FIFO queue (M/D/1 and M/M/1 tests in
//! `linear`).

use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

/// When each of `k` servers is free next, in ns.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    free_at: Vec<u64>,
    next: usize,
}

impl Slots {
    /// `count` idle servers, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { free_at: vec![0; count.max(1)], next: 0 }
    }

    /// The server that takes a request arriving at `now`, and when it starts.
    ///
    /// Any server that is free by `now` is as good as the one that has been free the longest, so
    /// the next one in turn is tried first; all are searched only under contention.
    #[inline]
    pub(crate) fn start(&mut self, now: u64) -> (usize, u64) {
        let index = self.next;
        let free_at = self.free_at[index];
        if free_at <= now {
            return (index, now);
        }
        if self.free_at.len() == 1 {
            return (0, free_at);
        }
        self.earliest(now)
    }

    /// Into a snapshot.
    pub(crate) fn save(&self, to: &mut SnapshotWriter) {
        to.u64s(&self.free_at);
        to.u64(self.next as u64);
    }

    /// Out of one.
    pub(crate) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        from.u64s(&mut self.free_at)?;
        self.next = from.below(self.free_at.len())?;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn earliest(&self, now: u64) -> (usize, u64) {
        let mut best = 0;
        let mut best_at = self.free_at[0];
        for (index, &at) in self.free_at.iter().enumerate().skip(1) {
            if at < best_at {
                best = index;
                best_at = at;
            }
        }
        (best, best_at.max(now))
    }

    /// Keeps server `index` busy until `until`.
    #[inline]
    pub(crate) fn occupy(&mut self, index: usize, until: u64) {
        self.free_at[index] = until;
        self.next = if index + 1 == self.free_at.len() { 0 } else { index + 1 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Slots;

    proptest! {
        /// The oracle sorts all servers at every request.
        #[test]
        fn starts_are_those_of_a_sorted_list(
            count in 1usize..9,
            jobs in prop::collection::vec((0u64..50, 0u64..200), 1..200),
        ) {
            let mut slots = Slots::new(count);
            let mut oracle = vec![0u64; count];
            let mut now = 0;
            for (gap, service) in jobs {
                now += gap;
                oracle.sort_unstable();
                let expected = oracle[0].max(now);
                oracle[0] = expected + service;
                let (index, start) = slots.start(now);
                slots.occupy(index, start + service);
                prop_assert_eq!(start, expected);
            }
        }
    }
}
