//! Clean-first LRU (CFLRU; Park et al., CASES 2006): among the oldest entries, the window, the
//! least recently used clean one leaves; where all of them are dirty, the oldest does. It spares
//! writes where they are dearer than reads, for some hits.
//!
//! An eviction looks at no more entries than the window has; the paper's are a few per cent.

use super::nodes::Nodes;
use super::{Rules, Victim, drop_oldest};

/// Share of the entries that is the window: one in four.
const WINDOW: usize = 4;

pub(super) struct CleanFirst;

impl Rules for CleanFirst {
    fn hit(&mut self, nodes: &mut Nodes, at: u32) {
        nodes.renew(at, 0);
    }

    fn evict(&mut self, nodes: &mut Nodes, _: u64) -> Victim {
        let window = nodes.count(0).div_ceil(WINDOW);
        let oldest = std::iter::successors(nodes.oldest(0), |at| nodes.newer(*at));
        match oldest.take(window).find(|at| !nodes.is_dirty(*at)) {
            Some(at) => nodes.remove(at),
            None => drop_oldest(nodes, 0),
        }
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(0, key, weight);
    }
}
