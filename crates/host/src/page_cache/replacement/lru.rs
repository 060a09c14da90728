//! Least recently used: the entry used longest ago leaves.

use super::nodes::Nodes;
use super::{Rules, Victim, drop_oldest};

pub(super) struct Lru;

impl Rules for Lru {
    fn hit(&mut self, nodes: &mut Nodes, at: u32) {
        nodes.renew(at, 0);
    }

    fn evict(&mut self, nodes: &mut Nodes, _: u64) -> Victim {
        drop_oldest(nodes, 0)
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(0, key, weight);
    }
}
