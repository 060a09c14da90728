//! Processors: who runs, who waits to run.
//!
//! Round robin: as many actors run as there are processors, the others queue; one that has used its
//! slice goes to the end while anybody waits. Processor sharing (Kleinrock, Queueing Systems 2,
//! section 4.4): each of n actors advances at the rate `min(1, c / n)`; the attained service is one
//! number for all, so that the next to finish is the smallest of their targets.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::events::{Events, What};
use super::setup::{self, Discipline};

/// State of the processors.
#[derive(Debug)]
pub(super) struct Processors {
    count: u32,
    slowness: f64,
    wake_ns: u64,
    slice_ns: u64,
    /// Round robin: processors that run somebody.
    busy: u32,
    queue: VecDeque<u32>,
    sharing: Option<Sharing>,
    /// Processor time used so far, ns.
    pub(super) used_ns: u64,
}

/// What an actor wants of the processors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Still to run, ns.
    pub(super) left: u64,
    /// Of these, in the slice that runs.
    pub(super) slice: u64,
}

#[derive(Debug, Default)]
struct Sharing {
    /// Attained service of everybody who was there from the start, ns.
    attained: f64,
    since: u64,
    generation: u32,
    /// Attained service at which each is done (bits of a float above 0 order as it does), and who.
    targets: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Processors {
    pub(super) fn new(setup: &setup::Processors) -> Self {
        let (slice_ns, sharing) = match setup.discipline {
            Discipline::RoundRobin { slice_ns } => (slice_ns, None),
            Discipline::Sharing => (u64::MAX, Some(Sharing::default())),
        };
        Self {
            count: setup.count,
            slowness: 1.0 / setup.speed,
            wake_ns: setup.wake_ns,
            slice_ns,
            busy: 0,
            queue: VecDeque::new(),
            sharing,
            used_ns: 0,
        }
    }

    /// Time that `ns` of computing take here.
    #[inline]
    pub(super) fn scaled(&self, ns: u64) -> u64 {
        if self.slowness == 1.0 { ns } else { (ns as f64 * self.slowness).round() as u64 }
    }

    /// An actor that slept wants to run for `ns`.
    pub(super) fn ready(
        &mut self,
        actor: u32,
        ns: u64,
        burst: &mut Burst,
        now: u64,
        events: &mut Events,
    ) {
        burst.left = ns;
        if let Some(sharing) = &mut self.sharing {
            let idle = sharing.targets.len() < self.count as usize;
            burst.slice = ns;
            let work = ns + if idle { self.wake_ns } else { 0 };
            sharing.add(actor, work, self.count, now, events);
        } else if self.busy < self.count {
            self.busy += 1;
            self.run(actor, self.wake_ns, burst, now, events);
        } else {
            self.queue.push_back(actor);
        }
    }

    /// The actor that runs wants to go on for `ns`.
    pub(super) fn go_on(
        &mut self,
        actor: u32,
        ns: u64,
        burst: &mut Burst,
        now: u64,
        events: &mut Events,
    ) {
        burst.left = ns;
        if let Some(sharing) = &mut self.sharing {
            burst.slice = ns;
            sharing.add(actor, ns, self.count, now, events);
        } else {
            self.run(actor, 0, burst, now, events);
        }
    }

    /// Lets an actor run on a processor that is its own now.
    pub(super) fn run(
        &self,
        actor: u32,
        wake_ns: u64,
        burst: &mut Burst,
        now: u64,
        events: &mut Events,
    ) {
        burst.slice = burst.left.min(self.slice_ns);
        events.push(now + wake_ns + burst.slice, What::Burst(actor));
    }

    /// Who runs next on the processor that `left` leaves; with `again` it queues once more.
    pub(super) fn next(&mut self, left: u32, again: bool) -> Option<u32> {
        if self.sharing.is_some() {
            return None;
        }
        if again {
            self.queue.push_back(left);
        }
        let next = self.queue.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }

    /// Who of those that share is done, where the event is not out of date.
    pub(super) fn shared(&mut self, generation: u32, now: u64, events: &mut Events) -> Option<u32> {
        let count = self.count;
        let sharing = self.sharing.as_mut().filter(|own| own.generation == generation)?;
        sharing.advance(now, count);
        let Reverse((target, actor)) = sharing.targets.pop()?;
        // Times are whole nanoseconds: the clock may be a little late.
        sharing.attained = sharing.attained.max(f64::from_bits(target));
        sharing.schedule(count, now, events);
        Some(actor)
    }
}

impl Sharing {
    fn advance(&mut self, now: u64, count: u32) {
        let ready = self.targets.len() as f64;
        if ready > 0.0 {
            self.attained += (now - self.since) as f64 * (f64::from(count) / ready).min(1.0);
        }
        self.since = now;
    }

    fn add(&mut self, actor: u32, ns: u64, count: u32, now: u64, events: &mut Events) {
        self.advance(now, count);
        if self.targets.is_empty() {
            self.attained = 0.0;
        }
        self.targets.push(Reverse(((self.attained + ns as f64).to_bits(), actor)));
        self.schedule(count, now, events);
    }

    fn schedule(&mut self, count: u32, now: u64, events: &mut Events) {
        self.generation = self.generation.wrapping_add(1);
        if let Some(Reverse((target, _))) = self.targets.peek() {
            let left = (f64::from_bits(*target) - self.attained).max(0.0);
            let rate = (f64::from(count) / self.targets.len() as f64).min(1.0);
            events.push(now + (left / rate).ceil() as u64, What::Shared(self.generation));
        }
    }
}
