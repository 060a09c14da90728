//! Processors: who runs, who waits to run.
//!
//! Fair: as many tasks run as there are processors, the others queue; the next is the one that has
//! run least, and one that has used its slice queues again. This is what Linux does since 2.6.23
//! (CFS) and 6.6 (EEVDF; Stoica and Abdel-Wahab 1995), for tasks of equal weight and without queues
//! of single processors: a task that computes much waits for those that compute little. Who sleeps
//! collects no claim: it wakes with no less than what the last chosen one had run. A client and the
//! task that serves it are two. Processor sharing (Kleinrock, Queueing Systems 2,
//! section 4.4): each of n actors advances at the rate `min(1, c / n)`; the attained service is one
//! number for all, so that the next to finish is the smallest of their targets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::events::{Events, What};
use super::setup::{self, Discipline};

/// State of the processors.
#[derive(Debug)]
pub(super) struct Processors {
    count: u32,
    slowness: f64,
    wake_ns: u64,
    slice_ns: u64,
    /// Fair: processors that run somebody.
    busy: u32,
    /// Who waits: what its task had run, the order of coming, the actor.
    queue: BinaryHeap<Reverse<(u64, u64, u32)>>,
    came: u64,
    /// What each actor's task has run, and its client's, ns.
    had: Vec<[u64; 2]>,
    /// What the last one chosen had.
    floor: u64,
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
    /// Whether the actor's client wants it.
    pub(super) of_client: bool,
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
    pub(super) fn new(setup: &setup::Processors, actors: usize) -> Self {
        let (slice_ns, sharing) = match setup.discipline {
            Discipline::Fair { slice_ns } => (slice_ns, None),
            Discipline::Sharing => (u64::MAX, Some(Sharing::default())),
        };
        Self {
            count: setup.count,
            slowness: 1.0 / setup.speed,
            wake_ns: setup.wake_ns,
            slice_ns,
            busy: 0,
            queue: BinaryHeap::new(),
            came: 0,
            had: vec![[0; 2]; actors],
            floor: 0,
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
            self.wait(actor, *burst);
        }
    }

    /// An actor queues.
    fn wait(&mut self, actor: u32, burst: Burst) {
        let had = &mut self.had[actor as usize][usize::from(burst.of_client)];
        *had = (*had).max(self.floor);
        self.queue.push(Reverse((*had, self.came, actor)));
        self.came += 1;
    }

    /// An actor has run for so long.
    pub(super) fn ran(&mut self, actor: u32, burst: Burst, ns: u64) {
        let had = &mut self.had[actor as usize][usize::from(burst.of_client)];
        *had = (*had).max(self.floor) + ns;
        self.used_ns += ns;
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

    /// Who runs next on a processor that is left, perhaps by one that wants to go on.
    pub(super) fn next(&mut self, left: Option<(u32, Burst)>) -> Option<u32> {
        if self.sharing.is_some() {
            return None;
        }
        if let Some((actor, burst)) = left {
            self.wait(actor, burst);
        }
        let Some(Reverse((had, _, next))) = self.queue.pop() else {
            self.busy -= 1;
            return None;
        };
        self.floor = self.floor.max(had);
        Some(next)
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One processor, taken by actor 0.
    fn taken() -> (Processors, Events) {
        let discipline = Discipline::Fair { slice_ns: MS };
        let setup = setup::Processors { count: 1, speed: 1.0, discipline, wake_ns: 0 };
        let (mut processors, mut events) = (Processors::new(&setup, 4), Events::default());
        processors.ready(0, 5 * MS, &mut Burst::default(), 0, &mut events);
        (processors, events)
    }

    #[test]
    fn who_ran_least_is_next_whoever_came_first() {
        let (mut processors, mut events) = taken();
        let client = Burst { of_client: true, ..Burst::default() };
        processors.ran(1, Burst::default(), 9 * MS);
        processors.ran(2, Burst::default(), 2 * MS);
        processors.ready(1, MS, &mut Burst::default(), 0, &mut events);
        processors.ready(2, MS, &mut Burst::default(), 0, &mut events);
        // The client of the one that ran most has run nothing.
        processors.ready(1, MS, &mut { client }, 0, &mut events);
        let order = [processors.next(None), processors.next(None), processors.next(None)];
        assert_eq!(order, [Some(1), Some(2), Some(1)]);
        assert_eq!(processors.next(None), None);
    }

    #[test]
    fn sleeping_collects_no_claim() {
        let (mut processors, mut events) = taken();
        processors.ran(1, Burst::default(), 7 * MS);
        processors.ran(3, Burst::default(), 6 * MS);
        processors.ready(1, MS, &mut Burst::default(), 0, &mut events);
        assert_eq!(processors.next(None), Some(1));
        // Actor 3 ran 6 ms and actor 2 nothing; both wake with the 7 ms of the last one chosen.
        processors.ready(3, MS, &mut Burst::default(), 0, &mut events);
        processors.ready(2, MS, &mut Burst::default(), 0, &mut events);
        assert_eq!([processors.next(None), processors.next(None)], [Some(3), Some(2)]);
    }
}
