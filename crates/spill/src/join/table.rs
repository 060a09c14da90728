//! The hash table of a part: rows one after another, chained by a hash of their key.

use stats::rng;

use super::Pairs;
use crate::rows::{digest, rank};

const NONE: u32 = u32::MAX;

/// Build rows by key.
pub(super) struct Table {
    width: usize,
    rows: Vec<u8>,
    /// First row of each chain.
    heads: Vec<u32>,
    /// By row: the next of its chain.
    next: Vec<u32>,
    shift: u32,
}

impl Table {
    /// For `rows` rows at most.
    pub(super) fn new(rows: u64, width_bytes: u32) -> Self {
        let heads = rows.max(2).next_power_of_two();
        Self {
            width: width_bytes as usize,
            rows: Vec::with_capacity(rows as usize * width_bytes as usize),
            heads: vec![NONE; heads as usize],
            next: Vec::with_capacity(rows as usize),
            shift: 64 - heads.trailing_zeros(),
        }
    }

    #[inline]
    fn chain(&self, key: u64) -> usize {
        (rng::mix(key) >> self.shift) as usize
    }

    /// Rows in it.
    pub(super) fn count(&self) -> u64 {
        self.next.len() as u64
    }

    #[inline]
    pub(super) fn insert(&mut self, row: &[u8]) {
        let chain = self.chain(rank(row).0);
        let number = self.next.len() as u32;
        self.rows.extend_from_slice(row);
        self.next.push(self.heads[chain]);
        self.heads[chain] = number;
    }

    /// Adds the pairs of a probe row.
    #[inline]
    pub(super) fn probe(&self, row: &[u8], pairs: &mut Pairs) {
        let key = rank(row).0;
        let mut at = self.heads[self.chain(key)];
        if at == NONE {
            return;
        }
        let own = digest(row);
        while at != NONE {
            let start = at as usize * self.width;
            let found = &self.rows[start..start + self.width];
            if rank(found).0 == key {
                pairs.count += 1;
                pairs.sum = pairs.sum.wrapping_add(digest(found).wrapping_mul(own));
            }
            at = self.next[at as usize];
        }
    }

    /// Forgets its rows and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.next.clear();
        self.heads.fill(NONE);
    }
}
