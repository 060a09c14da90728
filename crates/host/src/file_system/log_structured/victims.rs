//! Which segment is cleaned next.
//!
//! Closed segments hang in two families of linked lists: one list for each number of live blocks,
//! and one in the order in which they were closed. Both are changed in constant time when a block
//! dies, so that a greedy and an oldest-first victim are found without a search.

use serde::{Deserialize, Serialize};

/// Segments that one cost-benefit search looks at (`DEF_MAX_VICTIM_SEARCH`, fs/f2fs/gc.h).
const SEARCH: u32 = 4096;

/// How a cleaner chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The fewest live blocks.
    Greedy,
    /// The largest (1 - u) age / (1 + u), u the live share and age that of the youngest block
    /// (Rosenblum and Ousterhout 1992).
    CostBenefit,
    /// The one that was written first, whatever lives in it ("timestamp" in nilfs-utils).
    OldestFirst,
}

const NONE: u32 = u32::MAX;

/// Doubly linked lists of small numbers, each in one list at most.
#[derive(Clone, Debug)]
struct Lists {
    /// By list: its first and last member.
    ends: Vec<[u32; 2]>,
    /// By member: the one before and the one behind.
    links: Vec<[u32; 2]>,
}

impl Lists {
    fn new(lists: usize, members: usize) -> Self {
        Self { ends: vec![[NONE; 2]; lists], links: vec![[NONE; 2]; members] }
    }

    fn push_back(&mut self, list: u32, member: u32) {
        let [first, last] = &mut self.ends[list as usize];
        self.links[member as usize] = [*last, NONE];
        match *last {
            NONE => *first = member,
            before => self.links[before as usize][1] = member,
        }
        *last = member;
    }

    fn remove(&mut self, list: u32, member: u32) {
        let [before, behind] = std::mem::replace(&mut self.links[member as usize], [NONE; 2]);
        let [first, last] = &mut self.ends[list as usize];
        match before {
            NONE => *first = behind,
            other => self.links[other as usize][1] = behind,
        }
        match behind {
            NONE => *last = before,
            other => self.links[other as usize][0] = before,
        }
    }

    fn behind(&self, member: u32) -> Option<u32> {
        Some(self.links[member as usize][1]).filter(|member| *member != NONE)
    }

    fn first(&self, list: u32) -> Option<u32> {
        Some(self.ends[list as usize][0]).filter(|member| *member != NONE)
    }
}

/// What is known of a closed segment.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    live: u32,
    youngest_ns: u64,
    is_closed: bool,
}

/// The closed segments.
#[derive(Clone, Debug)]
pub(super) struct Victims {
    segment_blocks: u32,
    by_live: Lists,
    by_age: Lists,
    known: Vec<Known>,
    /// No closed segment has fewer live blocks.
    fewest: u32,
    /// Where the next cost-benefit search begins.
    cursor: u32,
}

impl Victims {
    pub fn new(segments: u32, segment_blocks: u32) -> Self {
        Self {
            segment_blocks,
            by_live: Lists::new(segment_blocks as usize + 1, segments as usize),
            by_age: Lists::new(1, segments as usize),
            known: vec![Known::default(); segments as usize],
            fewest: 0,
            cursor: 0,
        }
    }

    /// A segment was closed; `youngest_ns` is when its youngest block was written.
    pub fn insert(&mut self, segment: u32, live: u32, youngest_ns: u64) {
        self.known[segment as usize] = Known { live, youngest_ns, is_closed: true };
        self.by_live.push_back(live, segment);
        self.by_age.push_back(0, segment);
        self.fewest = self.fewest.min(live);
    }

    /// A segment is no longer a candidate: it was cleaned or opened.
    pub fn remove(&mut self, segment: u32) {
        let known = &mut self.known[segment as usize];
        assert!(known.is_closed, "segment {segment} is no candidate");
        known.is_closed = false;
        self.by_live.remove(known.live, segment);
        self.by_age.remove(0, segment);
    }

    /// A block of a segment died.
    pub fn block_died(&mut self, segment: u32) {
        let known = &mut self.known[segment as usize];
        if known.is_closed {
            self.by_live.remove(known.live, segment);
            known.live -= 1;
            self.by_live.push_back(known.live, segment);
            self.fewest = self.fewest.min(known.live);
        }
    }

    /// The segment that `policy` takes, which may have nothing dead in it.
    pub fn choose(&mut self, policy: Policy, now_ns: u64) -> Option<u32> {
        match policy {
            Policy::Greedy => self.with_fewest(),
            Policy::OldestFirst => self.by_age.first(0),
            Policy::CostBenefit => self.with_best_score(now_ns),
        }
    }

    /// The acceptable segment with the fewest live blocks, none of them full of live ones; looks at
    /// a limited number.
    pub fn with_fewest_that(&self, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        let mut looked = 0;
        for live in self.fewest..self.segment_blocks {
            let mut next = self.by_live.first(live);
            while let Some(segment) = next {
                if accepts(segment) {
                    return Some(segment);
                }
                looked += 1;
                if looked == SEARCH {
                    return None;
                }
                next = self.by_live.behind(segment);
            }
        }
        None
    }

    fn with_fewest(&mut self) -> Option<u32> {
        while self.fewest <= self.segment_blocks {
            if let Some(segment) = self.by_live.first(self.fewest) {
                return Some(segment);
            }
            self.fewest += 1;
        }
        self.fewest = self.segment_blocks;
        None
    }

    fn with_best_score(&mut self, now_ns: u64) -> Option<u32> {
        let count = self.known.len() as u32;
        let (mut best, mut looked) = (None, 0);
        for step in 0..count {
            let segment = (self.cursor + step) % count;
            let known = self.known[segment as usize];
            if !known.is_closed {
                continue;
            }
            let u = f64::from(known.live) / f64::from(self.segment_blocks);
            let age = now_ns.saturating_sub(known.youngest_ns) as f64 + 1.0;
            let score = (1.0 - u) * age / (1.0 + u);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, segment));
            }
            looked += 1;
            if looked == SEARCH {
                self.cursor = (segment + 1) % count;
                break;
            }
        }
        best.map(|(_, segment)| segment)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a search through all segments.
        #[test]
        fn a_victim_is_the_best_of_all(
            steps in prop::collection::vec((0_u32..12, 0_u32..4, 0_u64..50), 1..200),
        ) {
            let (mut victims, mut all) = (Victims::new(12, 8), Vec::<(u32, u32, u64)>::new());
            for (segment, what, time) in steps {
                let known = all.iter().position(|(other, ..)| *other == segment);
                match (known, what) {
                    (None, _) => {
                        victims.insert(segment, 8, time);
                        all.push((segment, 8, time));
                    }
                    (Some(at), 0) => {
                        victims.remove(segment);
                        all.remove(at);
                    }
                    (Some(at), _) if all[at].1 > 0 => {
                        victims.block_died(segment);
                        all[at].1 -= 1;
                    }
                    _ => {}
                }
                let oldest = all.first().map(|(segment, ..)| *segment);
                prop_assert_eq!(victims.choose(Policy::OldestFirst, 50), oldest);
                let live = |of| all.iter().find(|(other, ..)| *other == of).map(|of| of.1);
                let fewest = all.iter().map(|(_, live, _)| *live).min();
                prop_assert_eq!(victims.choose(Policy::Greedy, 50).and_then(live), fewest);
                let score = |(_, live, time): &(u32, u32, u64)| {
                    let u = f64::from(*live) / 8.0;
                    (1.0 - u) * (51.0 - *time as f64) / (1.0 + u)
                };
                let best = all.iter().map(score).reduce(f64::max);
                let chosen = victims.choose(Policy::CostBenefit, 50);
                let chosen = chosen.and_then(|of| all.iter().find(|(other, ..)| *other == of));
                prop_assert_eq!(chosen.map(score), best);
            }
        }
    }
}
