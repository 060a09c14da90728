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
//! A later arrival can therefore change an earlier completion: the disk is told of arrivals and
//! asked for completions ([`Queued`]). Requests that come one by one through
//! [`crate::Device::submit`] are served in order of arrival.
//!
//! Invariants, tested: every request completes exactly once and no earlier than it is due; batches
//! of any size give the same completions, and so does asking at every event; nothing waits much
//! longer than the bound.

use std::collections::VecDeque;

use profile::hdd::SECTOR_BYTES;
use trace::{Op, Request};
use units::Nanos;

use super::Hdd;
use super::layout::Place;
use crate::Queued;
use crate::observe::{Cause, Off, On, Path, Probe, Watch, Way};

/// The commands that the disk holds, and the completions that it owes.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Not taken in yet, in the order of their arrival.
    pub waiting: VecDeque<Waiting>,
    pub held: Vec<Held>,
    /// Completions that were not asked for yet.
    pub known: Vec<Known>,
    /// When the buffer has answered what it was asked so far.
    pub buffer_free_at: u64,
    /// The arm works on a command until then.
    pub serves_until: u64,
}

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub at: u64,
    pub ticket: u64,
    pub request: Request,
}

/// A command that needs the platter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub ticket: u64,
    /// When it arrived.
    pub due: u64,
    /// When it came into the disk.
    pub since: u64,
    pub lbn: u64,
    pub count: u32,
    pub write: bool,
    pub place: Place,
}

/// A completion, and where the time went while somebody watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub at: u64,
    pub ticket: u64,
    pub path: Path,
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
        self.waiting.is_empty() && self.held.is_empty() && self.known.is_empty()
    }

    /// Place of the first completion that is known, and its time.
    fn first_known(&self) -> Option<(usize, u64)> {
        let all = self.known.iter().enumerate();
        let first = all.min_by_key(|(_, known)| (known.at, known.ticket));
        first.map(|(index, known)| (index, known.at))
    }
}

impl Queued for Hdd {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        self.queue.waiting.push_back(Waiting { at: now.0, ticket, request: *request });
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        let known = self.next_known(until.0, &mut Off)?;
        Some((Nanos(known.at), known.ticket))
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        let known = self.next_known(until.0, &mut On::new(probe))?;
        Some((Nanos(known.at), known.ticket, known.path))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let known = self.queue.first_known().map(|(_, at)| at);
        let arrived = self.queue.waiting.front().filter(|next| self.has_place(next.at));
        let all = [known, arrived.map(|next| next.at), self.turns_at()];
        all.into_iter().flatten().min().map(Nanos)
    }
}

impl Hdd {
    /// The first completion at or before `until`: arm and buffer work until then.
    fn next_known<W: Watch>(&mut self, until: u64, watch: &mut W) -> Option<Known> {
        loop {
            self.admit(0, watch);
            let known = self.queue.first_known();
            let turns_at = self.turns_at().filter(|at| *at <= until);
            match (known, turns_at) {
                // What the arm begins with then completes later.
                (Some((index, at)), next) if at <= until && next.is_none_or(|next| at <= next) => {
                    return Some(self.queue.known.swap_remove(index));
                }
                (_, Some(now)) => self.turn(now, watch),
                _ => return None,
            }
        }
    }

    /// When the arm turns to something new, if nothing arrives before.
    fn turns_at(&self) -> Option<u64> {
        let held = self.queue.held.iter().map(|held| held.due).min();
        held.or_else(|| self.write_back.ready_at()).map(|at| at.max(self.arm_free_at))
    }

    /// Whether another command can be taken in at `now`.
    fn has_place(&self, now: u64) -> bool {
        let in_work = usize::from(self.queue.serves_until > now);
        self.queue.held.len() + in_work < self.depth
    }

    /// Takes in what has arrived, at `now` or when it did, as much as the disk holds, and answers
    /// what needs no platter.
    fn admit<W: Watch>(&mut self, now: u64, watch: &mut W) {
        while let Some(&Waiting { at, ticket, request }) = self.queue.waiting.front() {
            if !self.has_place(now.max(at)) {
                return;
            }
            self.queue.waiting.pop_front();
            watch.request(ticket as usize);
            self.counts.note(request.op, request.len);
            if let Some(done) = self.answer((at, ticket), &request, now.max(at), watch) {
                self.queue.known.push(Known { at: done, ticket, path: watch.take_path() });
            }
        }
    }

    /// The completion of a request that needs no platter; any other is held from `now` on.
    fn answer<W: Watch>(
        &mut self,
        (due, ticket): (u64, u64),
        request: &Request,
        now: u64,
        watch: &mut W,
    ) -> Option<u64> {
        let Request { op, len, offset, .. } = *request;
        let start = now.max(self.queue.buffer_free_at);
        let mut way = Way::new(watch, due);
        if op == Op::Flush {
            let begin = start + self.overhead.write_hit_ns[usize::from(self.after_write)];
            way.until(Cause::Queue, start);
            return Some(self.flush(begin, &mut way));
        }
        if op == Op::Trim || len == 0 {
            let completion = start + self.overhead.read_hit_ns[0];
            way.until(Cause::Queue, start);
            way.until(Cause::Controller, completion);
            return Some(completion);
        }
        let lbn = offset.0 / SECTOR_BYTES;
        let last = (offset.0 + u64::from(len) - 1) / SECTOR_BYTES;
        let count = (last - lbn + 1) as u32;
        assert!(last < self.sectors, "the trace check keeps requests on the disk");
        let write = op == Op::Write;
        if let Some(completion) = self.answer_from_buffer(start, lbn, count, write, &mut way) {
            self.queue.buffer_free_at = completion;
            return Some(completion);
        }
        let place = self.mechanism.layout.locate(lbn);
        self.queue.held.push(Held { ticket, due, since: now, lbn, count, write, place });
        None
    }

    /// Lets the arm do one thing.
    fn turn<W: Watch>(&mut self, now: u64, watch: &mut W) {
        self.admit(now, watch);
        match self.nearest(now) {
            Some(Next::Held(index)) => self.serve_held(index, now, watch),
            Some(Next::Dirty(index)) => {
                self.write_out(index, now, &mut Way::new(watch, now));
            }
            None => {}
        }
    }

    /// What the arm can reach soonest from `now`: of the commands, and of the buffer where it is
    /// half full or nothing else waits.
    fn nearest(&self, now: u64) -> Option<Next> {
        let held = &self.queue.held;
        // In order of arrival: the first one has waited longest.
        if let Some(first) = held.first()
            && now.saturating_sub(first.since) > self.most_wait_ns
        {
            return Some(Next::Held(0));
        }
        let reach = |item: &Held| {
            let from = now.max(item.due + self.command_ns(item.write));
            self.mechanism.reach_ns(self.arm, from, 0, &item.place, item.write)
        };
        let held = held.iter().enumerate().map(|(index, item)| (reach(item), index)).min();
        let half_full = self.write_back.sectors * 2 > self.buffer.write_back_sectors
            || self.write_back.dirty.len() * 2 > self.buffer.write_back as usize;
        let dirty = if half_full || held.is_none() { self.nearest_dirty(now) } else { None };
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

    fn serve_held<W: Watch>(&mut self, index: usize, now: u64, watch: &mut W) {
        // Order of arrival is kept: the queue is short and the first one is looked at by age.
        let item = self.queue.held.remove(index);
        // The command was read while the arm was busy, if it came early enough.
        let start = item.due.max(now.saturating_sub(self.command_ns(item.write)));
        watch.request(item.ticket as usize);
        let mut way = Way::new(watch, item.due);
        way.until(Cause::Queue, start);
        let completion = if item.write {
            self.write_through(start, item.lbn, item.count, &mut way)
        } else {
            self.read(start, item.lbn, item.count, &mut way)
        };
        self.after_write = item.write;
        self.queue.serves_until = self.arm_free_at;
        // Not before it was decided: until then the command was one of those that wait.
        let (at, ticket) = (completion.max(now), item.ticket);
        way.until(Cause::Controller, at);
        self.queue.known.push(Known { at, ticket, path: watch.take_path() });
    }

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
