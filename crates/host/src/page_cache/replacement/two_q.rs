//! 2Q, the full version (Johnson and Shasha, VLDB 1994): newcomers pass through a FIFO of a quarter
//! of the cache (A1in); what leaves it is remembered (A1out, half the cache); only a key asked for
//! while it is remembered enters the LRU list (Am). Hits in the FIFO change nothing.

use super::nodes::Nodes;
use super::{Rules, Victim, demote_oldest, drop_oldest};

const IN: usize = 0;
const MAIN: usize = 1;
const OUT: usize = 2;

pub(super) struct TwoQ {
    /// Bytes of A1in above which its oldest leaves first: the authors' 25 %.
    in_bytes: u64,
    /// Bytes of the pages that A1out remembers: the authors' 50 %.
    out_bytes: u64,
    /// Whether the entry missed last was remembered.
    remembered: bool,
}

impl TwoQ {
    pub fn new(capacity: u64) -> Self {
        Self { in_bytes: capacity / 4, out_bytes: capacity / 2, remembered: false }
    }
}

impl Rules for TwoQ {
    fn hit(&mut self, nodes: &mut Nodes, at: u32) {
        if nodes.list(at) == MAIN {
            nodes.renew(at, MAIN);
        }
    }

    fn miss(&mut self, nodes: &mut Nodes, key: u64) {
        let ghost = nodes.find(key);
        self.remembered = ghost.is_some();
        if let Some(at) = ghost {
            nodes.remove(at);
        }
    }

    fn evict(&mut self, nodes: &mut Nodes, _: u64) -> Victim {
        if nodes.weight(IN) <= self.in_bytes && nodes.count(MAIN) > 0 {
            return drop_oldest(nodes, MAIN);
        }
        let victim = demote_oldest(nodes, IN, OUT);
        while nodes.weight(OUT) > self.out_bytes {
            drop_oldest(nodes, OUT);
        }
        victim
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(if self.remembered { MAIN } else { IN }, key, weight);
    }
}
