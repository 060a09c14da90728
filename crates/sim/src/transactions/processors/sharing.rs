//! Processor sharing (Kleinrock, Queueing Systems 2, section 4.4): each of n actors advances at the
//! rate `min(1, c / n)`; the attained service is one number for all, so that the next to finish is
//! the smallest of their targets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::events::{Events, What};

#[derive(Debug, Default)]
pub(super) struct Sharing {
    count: u32,
    wake_ns: u64,
    /// Attained service of everybody who was there from the start, ns.
    attained: f64,
    since: u64,
    generation: u32,
    /// Attained service at which each is done (bits of a float above 0 order as it does), and who.
    targets: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Sharing {
    pub(super) fn new(count: u32, wake_ns: u64) -> Self {
        Self { count, wake_ns, ..Self::default() }
    }

    fn advance(&mut self, now: u64) {
        let ready = self.targets.len() as f64;
        if ready > 0.0 {
            self.attained += (now - self.since) as f64 * (f64::from(self.count) / ready).min(1.0);
        }
        self.since = now;
    }

    /// An actor comes to compute for `ns`, after a sleep or at once.
    pub(super) fn add(&mut self, actor: u32, ns: u64, slept: bool, now: u64, events: &mut Events) {
        let idle = slept && self.targets.len() < self.count as usize;
        let work = ns + if idle { self.wake_ns } else { 0 };
        self.advance(now);
        if self.targets.is_empty() {
            self.attained = 0.0;
        }
        self.targets.push(Reverse(((self.attained + work as f64).to_bits(), actor)));
        self.schedule(now, events);
    }

    /// Who is done, where the event is not out of date.
    pub(super) fn done(&mut self, generation: u32, now: u64, events: &mut Events) -> Option<u32> {
        if self.generation != generation {
            return None;
        }
        self.advance(now);
        let Reverse((target, actor)) = self.targets.pop()?;
        // Times are whole nanoseconds: the clock may be a little late.
        self.attained = self.attained.max(f64::from_bits(target));
        self.schedule(now, events);
        Some(actor)
    }

    fn schedule(&mut self, now: u64, events: &mut Events) {
        self.generation = self.generation.wrapping_add(1);
        if let Some(Reverse((target, _))) = self.targets.peek() {
            let left = (f64::from_bits(*target) - self.attained).max(0.0);
            let rate = (f64::from(self.count) / self.targets.len() as f64).min(1.0);
            let at = now + (left / rate).ceil() as u64;
            events.push(at, What::Burst { processor: 0, generation: self.generation });
        }
    }
}
