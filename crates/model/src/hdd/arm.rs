//! The mechanism: an arm over turning platters.
//!
//! An access moves the arm (seek curve, or head switch, or both at once), waits for the first
//! sector to come around, and transfers; where the sectors cross to another track it switches and
//! waits for the skewed next sector. Writes settle longer after a move. With `immediate` access a
//! request that lies on one track starts with whatever sector of it comes first and ends within a
//! turn.
//!
//! Every transfer says when the data were in the buffer, as the bus needs to know: see [`Bus`].
//!
//! Invariants: an access ends no earlier than it starts plus its transfer; a sector is transferred
//! exactly when its angle is under the head.

use super::angle::{Spindle, TURN};
use super::layout::{Layout, Place};

/// Constants of the mechanism.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub layout: Layout,
    pub spindle: Spindle,
    /// By distance in cylinders, ns.
    pub seek_ns: Vec<u32>,
    pub head_switch_ns: u64,
    /// Least time to aim anew at a track that the arm is over already.
    pub settle_ns: u64,
    /// Added to a move before a write; may be negative where the table is for writes.
    pub write_settle_ns: i64,
}

/// Where the arm is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arm {
    pub cylinder: u32,
    pub head: u32,
}

/// The times of a transfer between platter and buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The arm began to move.
    pub from_ns: u64,
    /// It was over the first track and had settled.
    pub moved_ns: u64,
    /// The first sector may pass from then on: the arm is there, and what is to be written too.
    pub on_track_ns: u64,
    /// The first sector (in logical order) began to pass.
    pub start_ns: u64,
    /// The last sector has passed.
    pub end_ns: u64,
    /// The bus has moved the last sector of a read to the host.
    pub bus_end_ns: u64,
    /// Logical sectors right before the first that passed under the head while waiting.
    pub passed_before: u32,
}

impl Mechanism {
    /// Time to bring `arm` over the track of `place`.
    #[inline]
    pub fn move_ns(&self, arm: Arm, place: &Place, write: bool) -> u64 {
        let distance = arm.cylinder.abs_diff(place.cylinder);
        let switch = if arm.head == place.head { 0 } else { self.head_switch_ns };
        let moved = u64::from(self.seek_ns[distance as usize]).max(switch);
        if write && moved > 0 { moved.saturating_add_signed(self.write_settle_ns) } else { moved }
    }

    /// When the first sector of `place` starts to pass, if `arm` may move from `now_ns`, and is
    /// not to transfer before `earliest_ns`.
    #[inline]
    pub fn reach_ns(
        &self,
        arm: Arm,
        now_ns: u64,
        earliest_ns: u64,
        place: &Place,
        write: bool,
    ) -> u64 {
        let ready = (now_ns + self.move_ns(arm, place, write)).max(earliest_ns);
        ready + self.spindle.time_ns(self.spindle.ticks_until(ready, place.angle))
    }

    /// Transfers `count` sectors from `lbn`, the arm moving from `now_ns`, no sector before
    /// `earliest_ns`. `bus_ns` is the time of a sector on the bus, for reads.
    pub fn access(
        &self,
        arm: &mut Arm,
        now_ns: u64,
        earliest_ns: u64,
        access: &Access,
    ) -> Transfer {
        let Access { lbn, count, write, immediate, fresh, bus_ns } = *access;
        let first = self.layout.locate(lbn);
        let least = if fresh { self.settle_ns } else { 0 };
        let moved = self.move_ns(*arm, &first, write).max(least);
        let moved_ns = now_ns + moved;
        let on_track_ns = moved_ns.max(earliest_ns);
        let wait = self.spindle.ticks_until(on_track_ns, first.angle);
        let start_ns = on_track_ns + self.spindle.time_ns(wait);
        let passed = wait.div_euclid(first.sector_ticks).min(u64::from(first.run_before)) as u32;
        *arm = Arm { cylinder: first.cylinder, head: first.head };
        let mut transfer = Transfer {
            from_ns: now_ns,
            moved_ns,
            on_track_ns,
            start_ns,
            end_ns: start_ns,
            bus_end_ns: 0,
            passed_before: passed,
        };
        if immediate && count <= first.run && TURN - wait < u64::from(count) * first.sector_ticks {
            // The head came down inside the request: read to its end, then wait for its front.
            let front = self.spindle.time_ns(u64::from(count) * first.sector_ticks - (TURN - wait));
            transfer.end_ns = start_ns + front;
            let rest = self
                .spindle
                .time_ns(TURN - wait)
                .div_ceil(self.spindle.time_ns(first.sector_ticks));
            transfer.bus_end_ns =
                (start_ns + self.spindle.time_ns(first.sector_ticks) + u64::from(count) * bus_ns)
                    .max(transfer.end_ns + (rest + 1) * bus_ns);
            return transfer;
        }
        let mut bus = Bus { free_ns: 0, sector_ns: bus_ns };
        let (mut place, mut left, mut lbn) = (first, u64::from(count), lbn);
        let mut at = start_ns;
        loop {
            let run = left.min(u64::from(place.run));
            let end = at + self.spindle.time_ns(run * place.sector_ticks);
            bus.run(at + self.spindle.time_ns(place.sector_ticks), end, run);
            (left, lbn) = (left - run, lbn + run);
            if left == 0 {
                transfer.end_ns = end;
                transfer.bus_end_ns = bus.free_ns;
                return transfer;
            }
            place = self.layout.locate(lbn);
            at = self.reach_ns(*arm, end, 0, &place, write);
            *arm = Arm { cylinder: place.cylinder, head: place.head };
        }
    }

    /// Sectors from `lbn` that a read-ahead which may start at `now_ns` has in the buffer at
    /// `until_ns`, at most `count`, and when it got the last of them. The arm follows.
    pub fn read_ahead(&self, arm: &mut Arm, span: (u64, u64), lbn: u64, count: u64) -> (u64, u64) {
        let (mut at, until_ns) = span;
        let mut done = 0;
        while done < count && at < until_ns {
            let place = self.layout.locate(lbn + done);
            let start = self.reach_ns(*arm, at, 0, &place, false);
            let run = (count - done).min(u64::from(place.run));
            let end = start + self.spindle.time_ns(run * place.sector_ticks);
            if end > until_ns {
                if start >= until_ns {
                    break;
                }
                *arm = Arm { cylinder: place.cylinder, head: place.head };
                let ticks = self.spindle.ticks(until_ns.saturating_sub(start).min(TURN));
                let got = (ticks / place.sector_ticks).min(run);
                let end = start + self.spindle.time_ns(got * place.sector_ticks);
                return (done + got, if got > 0 { end } else { at });
            }
            *arm = Arm { cylinder: place.cylinder, head: place.head };
            (done, at) = (done + run, end);
        }
        (done, at)
    }
}

/// What [`Mechanism::access`] is to transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub lbn: u64,
    pub count: u32,
    pub write: bool,
    pub immediate: bool,
    pub fresh: bool,
    pub bus_ns: u64,
}

/// The bus behind a read that it overlaps with: each sector once it is in the buffer, in order.
#[derive(Clone, Copy, Debug)]
struct Bus {
    free_ns: u64,
    sector_ns: u64,
}

impl Bus {
    /// Moves `count` sectors, of which the first is there at `first_ns` and the last at `last_ns`,
    /// with equal steps between: whichever is slower, platter or bus, decides.
    fn run(&mut self, first_ns: u64, last_ns: u64, count: u64) {
        let whole = count * self.sector_ns;
        self.free_ns = (self.free_ns.max(first_ns) + whole).max(last_ns + self.sector_ns);
    }
}
