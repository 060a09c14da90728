//! A device behind a scheduler.

use std::collections::VecDeque;

use model::observe::{Cause, Path, Probe};
use model::queued::{Ahead, Queued};
use model::{Counter, Device};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::anticipatory::Anticipatory;
use super::below::Below;
use super::bfq::Bfq;
use super::cfq::Cfq;
use super::deadline::Deadline;
use super::front::{Bound, Neighbours};
use super::kyber::Kyber;
use super::policy::{Fifo, Policy};
use super::pool::{Id, Pool};
use super::settings::{Kind, Plugging, Settings};
use super::throttle::Throttle;

/// Requests that wait in a legacy plug before it opens (kernel 2.6.32, block/blk-settings.c).
const UNPLUG_REQUESTS: usize = 4;
/// How long they wait at most, ns (the same).
const UNPLUG_NS: u64 = 3_000_000;
/// Requests that a plug of blk-mq holds (`BLK_MAX_REQUEST_COUNT`, kernel 5.x).
const PLUG_REQUESTS: usize = 32;

/// A device behind the block layer of a kernel: see [`crate::scheduler`].
pub struct Scheduled {
    below: Below,
    policy: Box<dyn Policy>,
    pool: Pool,
    neighbours: Neighbours,
    bound: Bound,
    throttle: Option<Throttle>,
    plugging: Plugging,
    rotational: bool,
    sync_writes: bool,
    depth: u32,
    clock: u64,
    /// What arrived at `clock` and was not merged into what waits.
    plugged: Vec<Id>,
    /// When the legacy plug opens; `None` while it is open.
    unplug_at: Option<u64>,
    /// Entries that the scheduler holds.
    queued: usize,
    in_flight: u32,
    /// Entries that were made and are not complete; no flushes.
    open: u64,
    flush: Option<Id>,
    /// What arrived behind the flush.
    held: VecDeque<(u64, u64, Request)>,
    /// Completed, and not yet asked for.
    ready: VecDeque<(u64, u64, Path)>,
    watched: bool,
    counts: Counts,
    /// Of [`model::queued::submit_due`].
    ahead: Ahead,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    completed: u64,
    bytes: u64,
    completed_bytes: u64,
    merged: u64,
    issued: u64,
    waited: u64,
    throttled: u64,
    taken_in: u64,
}

fn policy(settings: &Settings) -> Box<dyn Policy> {
    let (priorities, rotational) = (&settings.priorities[..], settings.rotational);
    match settings.kind {
        Kind::None => Box::new(Fifo::default()),
        Kind::Deadline => Box::new(Deadline::new(&settings.deadline, false)),
        Kind::MqDeadline => Box::new(Deadline::new(&settings.deadline, true)),
        Kind::Kyber => Box::new(Kyber::new(&settings.kyber)),
        Kind::Anticipatory => Box::new(Anticipatory::new(&settings.anticipatory)),
        Kind::Cfq => Box::new(Cfq::new(&settings.cfq, priorities, rotational)),
        Kind::Bfq => Box::new(Bfq::new(&settings.bfq, priorities, rotational, settings.depth)),
    }
}

impl Scheduled {
    /// `device` behind a scheduler.
    ///
    /// # Panics
    /// Where the settings are impossible, which the check of a `stack.toml` finds first.
    pub fn new(device: Box<dyn Device>, settings: &Settings) -> Self {
        settings.check().expect("settings that were checked");
        let policy = policy(settings);
        Self {
            below: Below::new(device),
            policy,
            pool: Pool::default(),
            neighbours: Neighbours::new(settings),
            bound: Bound::new(settings),
            throttle: settings
                .write_back_throttling
                .then(|| Throttle::new(&settings.throttle, settings.rotational, settings.depth)),
            plugging: settings.plugging(),
            rotational: settings.rotational,
            sync_writes: settings.sync_writes,
            depth: settings.depth,
            clock: 0,
            plugged: Vec::new(),
            unplug_at: None,
            queued: 0,
            in_flight: 0,
            open: 0,
            flush: None,
            held: VecDeque::new(),
            ready: VecDeque::new(),
            watched: false,
            counts: Counts::default(),
            ahead: Ahead::default(),
        }
    }

    /// Looks at requests that arrived or were held back: a measure of the work for each that does
    /// not depend on the machine.
    pub fn looks(&self) -> u64 {
        self.counts.taken_in
    }

    /// Takes what arrived at `arrived` in at the clock.
    fn take_in(&mut self, arrived: u64, ticket: u64, request: &Request) {
        self.counts.taken_in += 1;
        if self.flush.is_some() {
            self.held.push_back((arrived, ticket, *request));
            return;
        }
        let sync = match request.op {
            Op::Read | Op::Flush => true,
            Op::Write => self.sync_writes,
            Op::Trim => false,
        };
        if request.op == Op::Flush {
            // It covers no range, whatever a trace says.
            let request = Request { offset: Bytes(0), len: 0, ..*request };
            self.flush = Some(self.pool.add(arrived, ticket, &request, sync));
            self.unplug();
            self.flush_when_drained();
            return;
        }
        if let Some(id) = self.neighbours.find(request, sync, &self.pool) {
            self.merge(id, arrived, ticket, request);
            return;
        }
        let id = self.pool.add(arrived, ticket, request, sync);
        self.open += 1;
        let throttle = self.throttle.as_mut();
        if throttle.is_some_and(|throttle| !throttle.admit(self.clock, id, &mut self.pool)) {
            self.counts.throttled += 1;
            self.unplug();
        } else if self.bound.admit(id, &mut self.pool) {
            self.plug(id);
        } else {
            self.counts.waited += 1;
            // Who waits for a request of his own lets the others go.
            self.unplug();
        }
    }

    fn merge(&mut self, id: Id, arrived: u64, ticket: u64, request: &Request) {
        self.counts.merged += 1;
        let old_start = self.pool[id].start;
        self.neighbours.remove(id, &self.pool[id]);
        self.pool.merge(id, arrived, ticket, request);
        self.neighbours.insert(id, &self.pool[id]);
        if self.pool[id].start != old_start && !self.plugged.contains(&id) {
            self.policy.moved(id, old_start, &self.pool);
        }
    }

    fn plug(&mut self, id: Id) {
        self.neighbours.insert(id, &self.pool[id]);
        self.plugged.push(id);
        if self.plugged.len() == PLUG_REQUESTS {
            self.end_of_moment();
        }
    }

    /// What arrived at the clock goes to the scheduler.
    fn end_of_moment(&mut self) {
        if self.plugging == Plugging::Legacy && self.queued == 0 && self.rotational {
            self.unplug_at = self.unplug_at.or(Some(self.clock + UNPLUG_NS));
        }
        let mut awaited = self.flush.is_some();
        for id in self.plugged.drain(..) {
            awaited |= self.pool[id].sync;
            self.policy.enqueue(self.clock, id, &mut self.pool);
            self.queued += 1;
        }
        if awaited || self.queued >= UNPLUG_REQUESTS {
            self.unplug_at = None;
        }
        self.run();
    }

    fn unplug(&mut self) {
        if self.unplug_at.take().is_some() {
            self.run();
        }
    }

    /// Issues what the scheduler chooses while the device takes it.
    fn run(&mut self) {
        while self.in_flight < self.depth && self.unplug_at.is_none() {
            let Some(id) = self.policy.dispatch(self.clock, &mut self.pool) else { return };
            self.queued -= 1;
            self.neighbours.remove(id, &self.pool[id]);
            self.issue(id);
        }
    }

    fn issue(&mut self, id: Id) {
        self.pool[id].issued = self.clock;
        self.in_flight += 1;
        self.counts.issued += 1;
        if let Some(throttle) = &mut self.throttle {
            throttle.issued(self.clock, id, &self.pool);
        }
        self.below.issue(self.clock, id, &self.pool);
    }

    fn flush_when_drained(&mut self) {
        if let Some(id) = self.flush
            && self.open == 0
        {
            self.issue(id);
        }
    }

    /// The device has completed entry `id` at the clock.
    fn complete(&mut self, id: Id, path: &Path) {
        self.in_flight -= 1;
        let entry = self.pool[id];
        let is_flush = entry.op == Op::Flush;
        let mut wake = false;
        if !is_flush {
            self.open -= 1;
            self.bound.release(id, &self.pool);
            self.policy.completed(self.clock, id, &self.pool);
            if let Some(throttle) = &mut self.throttle {
                wake = throttle.completed(self.clock, id, &self.pool);
            }
        }
        let (at, watched) = (self.clock, self.watched);
        self.pool.remove(id, |member| {
            assert!(member.arrived <= at, "nothing completes before it arrived");
            let mut whole = Path::EMPTY;
            if watched {
                whole = *path;
                // A member that came after the first one waited less.
                whole.spend(Cause::Queue, entry.issued - member.arrived);
            }
            self.counts.completed += 1;
            self.counts.completed_bytes += member.bytes;
            self.ready.push_back((at, member.ticket, whole));
        });
        self.unplug_at = None;
        if is_flush {
            self.flush = None;
            while self.flush.is_none()
                && let Some((arrived, ticket, request)) = self.held.pop_front()
            {
                self.take_in(arrived, ticket, &request);
            }
            return;
        }
        self.run();
        while let Some(id) = self.bound.next(&mut self.pool) {
            self.enqueue(id);
        }
        if wake {
            self.wake_throttled();
        }
        self.flush_when_drained();
    }

    /// One that had to wait goes to the scheduler.
    fn enqueue(&mut self, id: Id) {
        self.neighbours.insert(id, &self.pool[id]);
        self.policy.enqueue(self.clock, id, &mut self.pool);
        self.queued += 1;
        self.run();
    }

    fn wake_throttled(&mut self) {
        while let Some(throttle) = &mut self.throttle
            && let Some(id) = throttle.next(self.clock, &mut self.pool)
        {
            if self.bound.admit(id, &mut self.pool) {
                self.enqueue(id);
            } else {
                self.counts.waited += 1;
            }
        }
    }

    /// When a timer of the block layer or the scheduler goes off.
    fn next_timer(&self) -> Option<u64> {
        let throttle = self.throttle.as_ref().and_then(Throttle::next_timer);
        [self.unplug_at, self.policy.next_timer(), throttle].into_iter().flatten().min()
    }

    fn timers(&mut self) {
        if self.unplug_at.is_some_and(|at| at <= self.clock) {
            self.unplug_at = None;
        }
        if self.policy.next_timer().is_some_and(|at| at <= self.clock) {
            self.policy.timer(self.clock, &self.pool);
        }
        self.run();
        if let Some(throttle) = &mut self.throttle
            && throttle.next_timer().is_some_and(|at| at <= self.clock)
            && throttle.timer(self.clock)
        {
            self.wake_throttled();
        }
    }

    /// The next completion at or before `until`.
    fn next(&mut self, until: u64) -> Option<(u64, u64, Path)> {
        while self.ready.is_empty() && self.step(until) {}
        self.ready.pop_front_if(|(at, ..)| *at <= until)
    }

    /// Does what happens next, at or before `until`; `false` where that is nothing.
    ///
    /// At one time the order is: completions of the device, timers, what arrived. The last waits
    /// until time goes on, so the answers do not depend on how often they are asked for.
    fn step(&mut self, until: u64) -> bool {
        if until == u64::MAX && self.open == 0 && self.flush.is_none() {
            self.assert_idle();
            return false;
        }
        let timer = self.next_timer().unwrap_or(u64::MAX).max(self.clock);
        let moment = if self.plugged.is_empty() { u64::MAX } else { self.clock };
        let limit = until.min(timer).min(moment);
        if let Some((at, id, path)) = self.below.next_completion(limit, &self.pool) {
            assert!(at >= self.clock, "time runs back");
            self.clock = at;
            self.complete(id, &path);
            return true;
        }
        assert!(limit < u64::MAX, "what is open completes");
        self.clock = self.clock.max(limit);
        if timer <= limit {
            self.timers();
        } else if moment <= limit && until > limit {
            self.end_of_moment();
        } else {
            return false;
        }
        true
    }

    /// Nothing happens any more: what arrived is complete.
    fn assert_idle(&self) {
        assert_eq!(self.counts.requests, self.counts.completed, "requests in = completions out");
        assert!(self.held.is_empty(), "nothing waits behind a flush that is complete");
        assert_eq!(self.counts.bytes, self.counts.completed_bytes, "bytes in = bytes out");
    }
}

impl Queued for Scheduled {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        // What completes until then is kept for whoever asks.
        while self.step(now.0) {}
        assert!(now.0 >= self.clock, "time runs back");
        self.clock = now.0;
        self.counts.requests += 1;
        if request.op != Op::Flush {
            self.counts.bytes += u64::from(request.len);
        }
        self.take_in(now.0, ticket, request);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        self.watched = false;
        self.below.watch(false);
        self.next(until.0).map(|(at, ticket, _)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        if let Some((at, ..)) = self.ready.front() {
            return Some(Nanos(*at));
        }
        if self.open == 0 && self.flush.is_none() {
            return None;
        }
        // What arrives at the same moment is taken together: it goes on once that is over.
        let moment = (!self.plugged.is_empty()).then_some(self.clock + 1);
        let events = [moment, self.next_timer(), self.below.next_event()];
        events.into_iter().flatten().min().map(Nanos)
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        self.watched = true;
        self.below.watch(true);
        let found = self.next(until.0);
        self.below.tell(probe);
        found.map(|(at, ticket, path)| (Nanos(at), ticket, path))
    }
}

impl Device for Scheduled {
    model::submit_by_queue!();

    fn capacity(&self) -> Option<Bytes> {
        self.below.device.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let mut all = vec![
            Counter { name: "scheduler_requests", value: self.counts.requests },
            Counter { name: "scheduler_merged_requests", value: self.counts.merged },
            Counter { name: "scheduler_issued_requests", value: self.counts.issued },
            Counter { name: "scheduler_waited_requests", value: self.counts.waited },
            Counter { name: "scheduler_throttled_requests", value: self.counts.throttled },
        ];
        all.extend(self.below.device.counters());
        all
    }
}
