//! Command queueing: the disk holds several commands and takes the one it can reach first.
//!
//! Among the commands that it holds, the one whose first sector can pass under the head soonest
//! (seek, head switch and rotation together) goes next: shortest positioning time first, by
//! Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position" (HPL-CSP-91-7,
//! 1991). A command that has waited longer than a bound goes before all others, so none starves.
//! Reads that the buffer holds are answered beside the platter; with write-back a write is reported
//! once it is in the buffer and then competes for the arm when nothing else waits, or when the
//! buffer is half full. A flush writes all of it out.
//!
//! A later arrival can therefore change an earlier completion. [`Queue::run`] looks ahead: the
//! whole trace is there, and so the disk takes in what arrives beyond the batch until all of the
//! batch is complete, and keeps the completions of what it took in early for the batches to come.
//! Requests that come one by one through [`crate::Device::submit`] are served in order of arrival.
//!
//! Invariants, tested: every request completes exactly once and no earlier than it is due; batches
//! of any size give the same completions; nothing waits much longer than the bound.

use std::collections::VecDeque;
use std::ops::Range;

use profile::hdd::SECTOR_BYTES;
use trace::{Op, Request, Trace};

use super::Hdd;
use super::layout::Place;
use crate::observe::{Cause, Path, Watch, Way};

/// A completion that is not known yet.
const PENDING: u64 = u64::MAX;

/// The commands that the disk holds, and the completions it owes.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Trace index of `done[0]`.
    pub base: usize,
    /// Completions from `base` on; [`PENDING`] where not known.
    pub done: VecDeque<u64>,
    pub held: Vec<Held>,
    /// When the buffer has answered what it was asked so far.
    pub buffer_free_at: u64,
    /// Where the time of the requests of `done` went, while somebody watches.
    pub paths: VecDeque<Path>,
    /// The same of the batch that was served last.
    pub given: Vec<Path>,
}

/// A command that needs the platter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub index: usize,
    pub due: u64,
    /// When it came into the disk.
    pub since: u64,
    pub lbn: u64,
    pub count: u32,
    pub write: bool,
    pub place: Place,
}

/// What the arm does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Held(usize),
    Dirty(usize),
}

impl Queue {
    /// Whether nothing is held and nothing is owed.
    pub fn is_idle(&self) -> bool {
        self.done.is_empty() && self.held.is_empty()
    }

    /// Serves the requests `range` of `trace`, which follow those of the call before.
    pub fn run<W: Watch>(
        &mut self,
        disk: &mut Hdd,
        trace: &Trace,
        range: Range<usize>,
        out: &mut [u64],
        watch: &mut W,
    ) {
        // What was taken in while nobody watched has no path.
        self.paths.resize(if W::ACTIVE { self.done.len() } else { 0 }, Path::default());
        if self.done.is_empty() {
            self.base = range.start;
        }
        assert_eq!(self.base, range.start, "batches of a trace follow each other");
        while self.done.len() < range.len()
            || self.done.range(..range.len()).any(|completion| *completion == PENDING)
        {
            self.step(disk, trace, watch);
        }
        for (completion, done) in out.iter_mut().zip(self.done.drain(..range.len())) {
            *completion = done;
        }
        self.base = range.end;
        self.given.clear();
        self.given.extend(self.paths.drain(..range.len().min(self.paths.len())));
    }

    /// The paths of the batch that was served last, due and completed at these times.
    pub fn take_paths(&mut self, due: &[u64], completions: &[u64], paths: &mut [Path]) {
        for (place, path) in paths.iter_mut().enumerate() {
            *path = self.given[place];
            path.spend(Cause::Unknown, completions[place] - due[place] - path.total());
        }
    }

    /// Takes in what has arrived and lets the arm do one thing.
    fn step<W: Watch>(&mut self, disk: &mut Hdd, trace: &Trace, watch: &mut W) {
        let next_due = trace.due.get(self.base + self.done.len()).copied();
        let free_at = disk.arm_free_at;
        let arrived = self.held.iter().map(|held| held.due).min().or(next_due);
        // The arm is free before anything new comes: the buffer is written out meanwhile.
        if self.held.is_empty()
            && let Some(ready_at) = disk.write_back.ready_at()
            && next_due.is_none_or(|due| due > free_at.max(ready_at))
        {
            let until = next_due.unwrap_or(u64::MAX);
            disk.write_out_until(until, &mut Way::new(watch, until));
            return;
        }
        let now = free_at.max(arrived.expect("something is pending"));
        self.admit(disk, trace, now, watch);
        match self.nearest(disk, now) {
            Some(Next::Held(index)) => self.serve(disk, index, now, watch),
            Some(Next::Dirty(index)) => {
                disk.write_out(index, now, &mut Way::new(watch, now));
            }
            None => {}
        }
    }

    /// Takes in the requests that are due at `now`, as many as the disk holds, and answers those
    /// that need no platter.
    fn admit<W: Watch>(&mut self, disk: &mut Hdd, trace: &Trace, now: u64, watch: &mut W) {
        while self.held.len() < disk.depth {
            let index = self.base + self.done.len();
            if index >= trace.count() || trace.due[index] > now {
                return;
            }
            watch.request(index);
            let request = trace.request(index);
            disk.counts.note(request.op, request.len);
            let completion = self.answer(disk, index, &request, now, watch);
            self.done.push_back(completion.unwrap_or(PENDING));
            if W::ACTIVE {
                self.paths.push_back(watch.take_path());
            }
        }
    }

    /// The completion of a request that needs no platter; any other is held from `now` on.
    fn answer<W: Watch>(
        &mut self,
        disk: &mut Hdd,
        index: usize,
        request: &Request,
        now: u64,
        watch: &mut W,
    ) -> Option<u64> {
        let Request { due, op, len, offset, .. } = *request;
        let start = due.0.max(self.buffer_free_at);
        let mut way = Way::new(watch, due.0);
        if op == Op::Flush {
            let begin = start + disk.overhead.write_hit_ns[usize::from(disk.after_write)];
            way.until(Cause::Queue, start);
            return Some(disk.flush(begin, &mut way));
        }
        if op == Op::Trim || len == 0 {
            let completion = start + disk.overhead.read_hit_ns[0];
            way.until(Cause::Queue, start);
            way.until(Cause::Controller, completion);
            return Some(completion);
        }
        let lbn = offset.0 / SECTOR_BYTES;
        let last = (offset.0 + u64::from(len) - 1) / SECTOR_BYTES;
        let count = (last - lbn + 1) as u32;
        assert!(last < disk.sectors, "the trace check keeps requests on the disk");
        let write = op == Op::Write;
        if let Some(completion) = disk.answer_from_buffer(start, lbn, count, write, &mut way) {
            self.buffer_free_at = completion;
            return Some(completion);
        }
        let place = disk.mechanism.layout.locate(lbn);
        self.held.push(Held { index, due: due.0, since: now, lbn, count, write, place });
        None
    }

    /// What the arm can reach soonest from `now`: of the commands, and of the buffer where it is
    /// half full or nothing else waits.
    fn nearest(&self, disk: &Hdd, now: u64) -> Option<Next> {
        // In order of arrival: the first one has waited longest.
        if let Some(first) = self.held.first()
            && now.saturating_sub(first.since) > disk.most_wait_ns
        {
            return Some(Next::Held(0));
        }
        let reach = |item: &Held| {
            let from = now.max(item.due + disk.command_ns(item.write));
            disk.mechanism.reach_ns(disk.arm, from, 0, &item.place, item.write)
        };
        let held = self.held.iter().enumerate().map(|(index, item)| (reach(item), index)).min();
        let half_full = disk.write_back.sectors * 2 > disk.buffer.write_back_sectors
            || disk.write_back.dirty.len() * 2 > disk.buffer.write_back as usize;
        let dirty = if half_full { disk.nearest_dirty(now) } else { None };
        match (held, dirty) {
            (Some((at, index)), None) => Some((at, Next::Held(index))),
            (Some((at, index)), Some((dirty_at, _))) if at <= dirty_at => {
                Some((at, Next::Held(index)))
            }
            (_, Some((at, index))) => Some((at, Next::Dirty(index))),
            (None, None) => None,
        }
        .map(|(_, next)| next)
    }

    fn serve<W: Watch>(&mut self, disk: &mut Hdd, index: usize, now: u64, watch: &mut W) {
        // Order of arrival is kept: the queue is short and the first one is looked at by age.
        let item = self.held.remove(index);
        // The command was read while the arm was busy, if it came early enough.
        let start = item.due.max(now.saturating_sub(disk.command_ns(item.write)));
        watch.request(item.index);
        let mut way = Way::new(watch, item.due);
        way.until(Cause::Queue, start);
        let completion = if item.write {
            disk.write_through(start, item.lbn, item.count, &mut way)
        } else {
            disk.read(start, item.lbn, item.count, &mut way)
        };
        disk.after_write = item.write;
        let place = item.index - self.base;
        self.done[place] = completion.max(item.due);
        if W::ACTIVE {
            self.paths[place] = watch.take_path();
        }
    }
}

impl Hdd {
    /// The completion of a request that the buffer answers; none where the platter must.
    fn answer_from_buffer<W: Watch>(
        &mut self,
        start: u64,
        lbn: u64,
        count: u32,
        write: bool,
        way: &mut Way<W>,
    ) -> Option<u64> {
        let end = lbn + u64::from(count);
        if write {
            if !self.has_room(lbn, count) {
                return None;
            }
            let begin = start + self.overhead.write_hit_ns[usize::from(self.after_write)];
            let ready_at = begin + u64::from(count) * self.bus.write_sector_ns;
            self.buffer_write(lbn, count, ready_at);
            let completion = ready_at + self.overhead.write_completion_ns;
            way.until(Cause::Queue, start);
            way.until(Cause::Controller, begin);
            way.until(Cause::Cache, ready_at);
            way.until(Cause::Controller, completion);
            self.tell_buffer((start, completion), way);
            return Some(completion);
        }
        self.advance_read_ahead(start, way);
        let whole = self.segments.find(lbn).is_some_and(|i| self.segments.get(i).end >= end);
        if !whole && !self.write_back.holds(lbn, end) {
            return None;
        }
        self.counts.read_hits += 1;
        way.until(Cause::Queue, start);
        Some(self.buffer_answer(start, count, way))
    }
}
