//! Adaptive replacement (Megiddo and Modha, FAST 2003): T1 holds what was used once, T2 what was
//! used again, B1 and B2 remember what left them. A hit in B1 raises the share `p` of T1, one in B2
//! lowers it.
//!
//! Entries of unequal weight: sizes are bytes, and a ghost hit moves `p` by the ratio of the ghost
//! lists (at least one) as the paper has it, a number of bytes then. libCacheSim does so too, which
//! makes the miss counts comparable; with pages of one weight unit it is the paper's algorithm.

use super::nodes::Nodes;
use super::{Rules, Victim, demote_oldest, drop_oldest};

const ONCE: usize = 0;
const AGAIN: usize = 1;
const GHOSTS_ONCE: usize = 2;
const GHOSTS_AGAIN: usize = 3;

pub(super) struct Arc {
    capacity: u64,
    /// Target size of T1.
    p: f64,
    /// The ghost list that the entry missed last was on.
    ghost: Option<usize>,
}

impl Arc {
    pub fn new(capacity: u64) -> Self {
        Self { capacity, p: 0.0, ghost: None }
    }

    /// The paper's REPLACE.
    fn replace(&self, nodes: &mut Nodes) -> Victim {
        let once = nodes.weight(ONCE) as f64;
        let over = once > self.p || (once == self.p && self.ghost == Some(GHOSTS_AGAIN));
        if nodes.count(AGAIN) == 0 || (nodes.count(ONCE) > 0 && over) {
            demote_oldest(nodes, ONCE, GHOSTS_ONCE)
        } else {
            demote_oldest(nodes, AGAIN, GHOSTS_AGAIN)
        }
    }
}

impl Rules for Arc {
    fn hit(&mut self, nodes: &mut Nodes, at: u32) {
        nodes.renew(at, AGAIN);
    }

    fn miss(&mut self, nodes: &mut Nodes, key: u64) {
        let ghost = nodes.find(key);
        self.ghost = ghost.map(|at| nodes.list(at));
        let Some(at) = ghost else { return };
        let (once, again) = (nodes.weight(GHOSTS_ONCE) as f64, nodes.weight(GHOSTS_AGAIN) as f64);
        if self.ghost == Some(GHOSTS_ONCE) {
            self.p = (self.p + (again / once).max(1.0)).min(self.capacity as f64);
        } else {
            self.p = (self.p - (once / again).max(1.0)).max(0.0);
        }
        nodes.remove(at);
    }

    fn evict(&mut self, nodes: &mut Nodes, incoming: u64) -> Victim {
        if self.ghost.is_some() {
            return self.replace(nodes);
        }
        let once = nodes.weight(ONCE) + nodes.weight(GHOSTS_ONCE);
        if once + incoming > self.capacity {
            if nodes.count(GHOSTS_ONCE) == 0 {
                return drop_oldest(nodes, ONCE);
            }
            drop_oldest(nodes, GHOSTS_ONCE);
        } else {
            let all = once + nodes.weight(AGAIN) + nodes.weight(GHOSTS_AGAIN);
            if all >= 2 * self.capacity && nodes.count(GHOSTS_AGAIN) > 0 {
                drop_oldest(nodes, GHOSTS_AGAIN);
            }
        }
        self.replace(nodes)
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(if self.ghost.is_some() { AGAIN } else { ONCE }, key, weight);
    }
}
