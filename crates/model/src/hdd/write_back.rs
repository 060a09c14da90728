//! Writes that were reported from the buffer and are not on the platter yet.
//!
//! They are written out when the arm has nothing else to do, the one it can reach first first, and
//! a read goes before them. A write that continues one of them joins it. Where there is no room the
//! host waits until one is out.
//!
//! Invariants: sectors held are the sum of the entries; what is held is bounded by both limits.

use trace::Op;

use super::Hdd;
use super::layout::Place;
use crate::observe::{Purpose, Watch, Way};

/// A run of sectors that waits for the platter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    /// When its data are in the buffer.
    pub ready_at: u64,
    pub lbn: u64,
    pub count: u32,
    pub place: Place,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBack {
    pub dirty: Vec<Dirty>,
    pub sectors: u32,
}

impl WriteBack {
    /// Whether all of `lbn..end` waits here in one piece.
    pub fn holds(&self, lbn: u64, end: u64) -> bool {
        let within = |dirty: &Dirty| dirty.lbn <= lbn && end <= dirty.lbn + u64::from(dirty.count);
        self.dirty.iter().any(within)
    }

    /// The earliest time at which something here can be written out.
    pub fn ready_at(&self) -> Option<u64> {
        self.dirty.iter().map(|dirty| dirty.ready_at).min()
    }

    /// The entry that ends where `lbn` starts.
    fn ending_at(&self, lbn: u64) -> Option<usize> {
        self.dirty.iter().position(|dirty| dirty.lbn + u64::from(dirty.count) == lbn)
    }
}

impl Hdd {
    /// Whether the buffer takes a write of `count` sectors from `lbn` now.
    pub(super) fn has_room(&self, lbn: u64, count: u32) -> bool {
        let held = &self.write_back;
        let slot =
            held.dirty.len() < self.buffer.write_back as usize || held.ending_at(lbn).is_some();
        slot && self.buffer.write_back > 0 && held.sectors + count <= self.buffer.write_back_sectors
    }

    /// Takes a write into the buffer; its data are there at `ready_at`.
    pub(super) fn buffer_write(&mut self, lbn: u64, count: u32, ready_at: u64) {
        self.counts.buffered_writes += 1;
        self.segments.forget(lbn, lbn + u64::from(count));
        self.write_back.sectors += count;
        if let Some(index) = self.write_back.ending_at(lbn) {
            let dirty = &mut self.write_back.dirty[index];
            dirty.count += count;
            return;
        }
        let place = self.mechanism.layout.locate(lbn);
        self.write_back.dirty.push(Dirty { ready_at, lbn, count, place });
    }

    /// The entry that the arm reaches soonest from `now`, and when.
    pub(super) fn nearest_dirty(&self, now: u64) -> Option<(u64, usize)> {
        let reach = |dirty: &Dirty| {
            let from = now.max(dirty.ready_at);
            self.mechanism.reach_ns(self.arm, from, 0, &dirty.place, true)
        };
        let all = self.write_back.dirty.iter().enumerate();
        all.map(|(index, dirty)| (reach(dirty), index)).min()
    }

    /// Brings entry `index` to the platter, from `now` on; says when it is there.
    pub(super) fn write_out<W: Watch>(&mut self, index: usize, now: u64, way: &mut Way<W>) -> u64 {
        let item = self.write_back.dirty.swap_remove(index);
        self.write_back.sectors -= item.count;
        self.ahead = None;
        let from = now.max(item.ready_at);
        let transfer = self.write_media(from, 0, item.lbn, item.count);
        self.tell_arm(&transfer, Op::Write, Purpose::Destage, way);
        if self.buffer.read_written {
            self.keep_written(item.lbn, item.lbn + u64::from(item.count));
        }
        transfer.end_ns
    }

    /// Writes out what the idle arm can begin with before `until`.
    pub(super) fn write_out_until<W: Watch>(&mut self, until: u64, way: &mut Way<W>) {
        while let Some(ready_at) = self.write_back.ready_at() {
            let now = self.arm_free_at.max(ready_at);
            if now >= until {
                return;
            }
            let (_, index) = self.nearest_dirty(now).expect("something is ready");
            self.write_out(index, now, way);
        }
    }

    /// Writes out everything, from `start` on; says when it is all on the platter.
    pub(super) fn write_out_all<W: Watch>(&mut self, start: u64, way: &mut Way<W>) -> u64 {
        let mut end = start.max(self.arm_writing_until);
        loop {
            let now = self.arm_free_at.max(start);
            let Some((_, index)) = self.nearest_dirty(now) else { return end };
            end = end.max(self.write_out(index, now, way));
        }
    }
}
