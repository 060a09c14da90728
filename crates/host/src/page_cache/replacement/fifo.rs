//! First in, first out: use changes nothing.

use super::nodes::Nodes;
use super::{Rules, Victim, drop_oldest};

pub(super) struct Fifo;

impl Rules for Fifo {
    fn hit(&mut self, _: &mut Nodes, _: u32) {}

    fn evict(&mut self, nodes: &mut Nodes, _: u64) -> Victim {
        drop_oldest(nodes, 0)
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(0, key, weight);
    }
}
