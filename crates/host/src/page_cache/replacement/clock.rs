//! CLOCK with one bit (Corbato 1968): a FIFO whose oldest entry goes round once more where it was
//! used since the hand passed. A newcomer has its bit clear.

use super::nodes::Nodes;
use super::{Rules, Victim, drop_oldest};

pub(super) struct Clock;

impl Rules for Clock {
    fn hit(&mut self, nodes: &mut Nodes, at: u32) {
        nodes.set_referenced(at, true);
    }

    fn evict(&mut self, nodes: &mut Nodes, _: u64) -> Victim {
        // One round clears every bit, so the hand stops in the second at the latest.
        while let Some(at) = nodes.oldest(0).filter(|at| nodes.is_referenced(*at)) {
            nodes.set_referenced(at, false);
            nodes.renew(at, 0);
        }
        drop_oldest(nodes, 0)
    }

    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64) {
        nodes.insert(0, key, weight);
    }
}
