//! The timeline of one bus, with its gaps.
//!
//! Transfers are asked for in the order of the requests, but not in the order in which they happen:
//! a read reserves the bus for when its die will have read the page, and a write that arrives
//! meanwhile for another die moves its data before that. A single "busy until" would make the write
//! wait, and one die with a backlog would block all others of its channel. So the reservations that
//! are still to come are kept, in order, and a transfer takes the first gap that it fits in. No
//! later transfer moves an earlier one.
//!
//! Reservations that touch are one, so the list stays short exactly where the bus is the
//! bottleneck. Where it is not, at most [`MOST`] are remembered; a transfer beyond them takes its
//! place as the others leave it but is not seen by later ones.
//!
//! Invariants, property-tested against a list of all reservations: no two remembered reservations
//! overlap, none starts before it may, and each takes the earliest gap.

use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// Reservations that a channel remembers.
pub(crate) const MOST: usize = 32;

/// A transfer on the bus, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether later transfers keep clear of it.
    pub(crate) remembered: bool,
}

/// The bus of some chips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    count: usize,
    start: [u64; MOST],
    end: [u64; MOST],
    /// What earlier transfers lost to whole nanoseconds.
    carry_ps: u64,
}

impl Channel {
    pub(crate) fn new() -> Self {
        Self { count: 0, start: [0; MOST], end: [0; MOST], carry_ps: 0 }
    }

    /// Reserves `ps` of the bus at `earliest` or later. Nothing is asked for before `now` any more.
    #[inline]
    pub(crate) fn reserve(&mut self, now: u64, earliest: u64, ps: u64) -> Reservation {
        let exact = self.carry_ps + ps;
        let length = exact / 1000;
        self.carry_ps = exact % 1000;
        let last = self.count.wrapping_sub(1);
        if self.count == 0 || self.end[last] <= now {
            // Everything is over: the common case of a bus that is not the bottleneck.
            (self.start[0], self.end[0], self.count) = (earliest, earliest + length, 1);
            return Reservation { start: earliest, end: earliest + length, remembered: true };
        }
        self.reserve_among(now, earliest, length)
    }

    fn reserve_among(&mut self, now: u64, earliest: u64, length: u64) -> Reservation {
        let over = self.end[..self.count].iter().take_while(|end| **end <= now).count();
        if over > 0 {
            self.start.copy_within(over..self.count, 0);
            self.end.copy_within(over..self.count, 0);
            self.count -= over;
        }
        let (mut at, mut index) = (earliest, 0);
        while index < self.count && at + length > self.start[index] {
            at = at.max(self.end[index]);
            index += 1;
        }
        let remembered = self.insert(index, at, at + length);
        Reservation { start: at, end: at + length, remembered }
    }

    /// Inserts a reservation before `index`, or lengthens a neighbour that it touches; `false`
    /// where there is no place for it.
    fn insert(&mut self, index: usize, start: u64, end: u64) -> bool {
        let joins_before = index > 0 && self.end[index - 1] == start;
        let joins_after = index < self.count && self.start[index] == end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.end[index - 1] = self.end[index];
                self.start.copy_within(index + 1..self.count, index);
                self.end.copy_within(index + 1..self.count, index);
                self.count -= 1;
            }
            (true, false) => self.end[index - 1] = end,
            (false, true) => self.start[index] = start,
            (false, false) if self.count < MOST => {
                self.start.copy_within(index..self.count, index + 1);
                self.end.copy_within(index..self.count, index + 1);
                (self.start[index], self.end[index]) = (start, end);
                self.count += 1;
            }
            // Full: drop the latest of them, the one that is least likely to be met.
            (false, false) if index < self.count => {
                self.start.copy_within(index..self.count - 1, index + 1);
                self.end.copy_within(index..self.count - 1, index + 1);
                (self.start[index], self.end[index]) = (start, end);
            }
            (false, false) => return false,
        }
        true
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        to.u64(self.carry_ps);
        to.u64(self.count as u64);
        for (start, end) in self.start.iter().zip(&self.end).take(self.count) {
            to.u64(*start);
            to.u64(*end);
        }
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        *self = Self::new();
        self.carry_ps = from.u64()?;
        let count = from.u64()?;
        if count > MOST as u64 {
            return Err(from.damaged());
        }
        self.count = count as usize;
        for (start, end) in self.start.iter_mut().zip(&mut self.end).take(self.count) {
            (*start, *end) = (from.u64()?, from.u64()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Channel;

    proptest! {
        /// The oracle keeps every reservation and tries every start that could be the earliest.
        #[test]
        fn transfers_take_the_first_gap(
            asked in prop::collection::vec((0u64..30, 0u64..200, 1u64..20), 1..120),
        ) {
            let mut channel = Channel::new();
            let mut taken: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (gap, ahead, length) in asked {
                now += gap;
                let earliest = now + ahead;
                let free = |at: u64| {
                    taken.iter().all(|(start, end)| at + length <= *start || *end <= at)
                };
                let ends = taken.iter().map(|(_, end)| *end).filter(|end| *end >= earliest);
                let expected = ends.chain([earliest]).filter(|at| free(*at)).min().expect("one");
                // Fewer than the channel remembers are outstanding: 230 ns ahead at most.
                let outstanding = taken.iter().filter(|(_, end)| *end > now).count();
                if outstanding >= super::MOST {
                    break;
                }
                let found = channel.reserve(now, earliest, length * 1000);
                prop_assert_eq!((found.start, found.end), (expected, expected + length));
                taken.push((expected, expected + length));
            }
        }

        #[test]
        fn a_saturated_bus_moves_exactly_its_rate(ps in 1u64..5_000_000, count in 1u64..2000) {
            let mut channel = Channel::new();
            let mut last = 0;
            for _ in 0..count {
                // One that is shorter than a nanosecond fits in front of the others.
                last = channel.reserve(0, 0, ps).end.max(last);
            }
            prop_assert_eq!(last, ps * count / 1000);
        }
    }

    #[test]
    fn a_backlog_beyond_memory_leaves_the_near_gaps_open() {
        let mut channel = Channel::new();
        for k in 0..100 {
            assert_eq!(channel.reserve(0, 1000 * (k + 1), 10_000).end, 1000 * (k + 1) + 10);
        }
        assert_eq!(channel.reserve(0, 0, 10_000).end, 10, "in front of the backlog");
        assert_eq!(channel.reserve(0, 995, 10_000).end, 1020, "behind the first of it");
    }
}
