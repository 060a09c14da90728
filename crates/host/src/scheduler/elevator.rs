//! Requests in order of their place, and which of two neighbours is nearer to the head.

use std::collections::BTreeSet;

use super::pool::{Id, List, Pool};

/// Requests of one direction or process: by place, and by age.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    by_start: BTreeSet<(u64, Id)>,
    by_age: List,
}

/// How far back the head may go, and what that costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backward {
    pub most_bytes: u64,
    /// A step back counts as this many steps forward.
    pub penalty: u64,
}

impl Sorted {
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub fn oldest(&self) -> Option<Id> {
        self.by_age.front()
    }

    pub fn insert(&mut self, id: Id, pool: &mut Pool) {
        self.by_start.insert((pool[id].start, id));
        self.by_age.push_back(id, pool);
    }

    pub fn moved(&mut self, id: Id, old_start: u64, pool: &Pool) {
        assert!(self.by_start.remove(&(old_start, id)), "it waits");
        self.by_start.insert((pool[id].start, id));
    }

    pub fn remove(&mut self, id: Id, pool: &mut Pool) {
        self.by_start.remove(&(pool[id].start, id));
        self.by_age.remove(id, pool);
    }

    /// The nearer of the neighbours of a request that is here still, with the head at `head`: what
    /// follows it, or the first of all behind the last one, and what precedes it.
    pub fn beside(&self, id: Id, head: u64, backward: Backward, pool: &Pool) -> Option<Id> {
        let own = (pool[id].start, id);
        let first = self.by_start.first().filter(|first| **first != own);
        let after = (own.0, own.1 + 1);
        let next = self.by_start.range(after..).next().or(first).map(|(_, id)| *id);
        let previous = self.by_start.range(..own).next_back().map(|(_, id)| *id);
        nearer(next, previous, head, backward, pool)
    }
}

/// Which of two requests the head at `head` takes first: a one-way elevator that may go a short way
/// back (`as_choose_req` and `cfq_choose_req`, kernel 2.6.32). The first one where both are at the
/// same place.
pub(super) fn nearer(
    one: Option<Id>,
    other: Option<Id>,
    head: u64,
    backward: Backward,
    pool: &Pool,
) -> Option<Id> {
    let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
    let cost = |id: Id| -> Option<u64> {
        let start = pool[id].start;
        if start >= head {
            Some(start - head)
        } else if head - start <= backward.most_bytes {
            Some((head - start).saturating_mul(backward.penalty))
        } else {
            None
        }
    };
    let (start, other_start) = (pool[first].start, pool[second].start);
    let takes_first = match (cost(first), cost(second)) {
        (Some(_), None) => true,
        (None, Some(_)) => false,
        // Both are far behind: from the lowest one on.
        (None, None) => start <= other_start,
        (Some(cost), Some(other)) => cost < other || (cost == other && start >= other_start),
    };
    Some(if takes_first { first } else { second })
}
