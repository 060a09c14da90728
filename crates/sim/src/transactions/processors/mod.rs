//! Processors: who runs, who waits to run.

mod fair;
mod queue;
mod sharing;

use fair::Fair;
use sharing::Sharing;

use super::events::Events;
use super::setup::{self, Discipline};

/// State of the processors.
#[derive(Debug)]
pub(super) struct Processors {
    slowness: f64,
    shared: Shared,
    /// Processor time that steps have used so far, ns.
    pub(super) used_ns: u64,
}

#[derive(Debug)]
enum Shared {
    Fair(Fair),
    Sharing(Sharing),
}

impl Processors {
    pub(super) fn new(setup: &setup::Processors, terminals: u32, actors: usize) -> Self {
        let shared = match setup.discipline {
            Discipline::Fair { slice_ns, scheduling } => Shared::Fair(Fair::new(
                setup.count,
                slice_ns,
                (setup.wake_ns, setup.switching),
                scheduling,
                terminals,
                actors,
            )),
            Discipline::Sharing => Shared::Sharing(Sharing::new(setup.count, setup.wake_ns)),
        };
        Self { slowness: 1.0 / setup.speed, shared, used_ns: 0 }
    }

    /// Processor time used so far, that of switching included, ns.
    pub(super) fn all_used_ns(&self) -> u64 {
        self.used_ns + self.switching_ns()
    }

    /// Processor time spent on switching so far, ns.
    pub(super) fn switching_ns(&self) -> u64 {
        if let Shared::Fair(fair) = &self.shared { fair.switching_ns } else { 0 }
    }

    /// Time that `ns` of computing take here.
    #[inline]
    pub(super) fn scaled(&self, ns: u64) -> u64 {
        if self.slowness == 1.0 { ns } else { (ns as f64 * self.slowness).round() as u64 }
    }

    /// An actor that slept, or its client, wants to run for `ns`.
    pub(super) fn ready(&mut self, who: (u32, bool), ns: u64, now: u64, events: &mut Events) {
        match &mut self.shared {
            Shared::Fair(fair) => fair.ready(who, ns, now, events),
            Shared::Sharing(sharing) => sharing.add(who.0, ns, true, now, events),
        }
    }

    /// Whose computing is done, if the event tells of one; it is in hand then, until it goes on or
    /// leaves.
    pub(super) fn over(&mut self, event: (u16, u32), now: u64, events: &mut Events) -> Option<u32> {
        match &mut self.shared {
            Shared::Fair(fair) => fair.over(event, now, events),
            Shared::Sharing(sharing) => sharing.done(event.1, now, events),
        }
    }

    /// The actor in hand, or its client, wants to run for `ns`.
    pub(super) fn go_on(&mut self, who: (u32, bool), ns: u64, now: u64, events: &mut Events) {
        match &mut self.shared {
            Shared::Fair(fair) => fair.go_on(who, ns, now, events),
            Shared::Sharing(sharing) => sharing.add(who.0, ns, false, now, events),
        }
    }

    /// An actor without a processor computes for `ns`, and nobody waits for that.
    pub(super) fn behind(&mut self, actor: u32, ns: u64, now: u64, events: &mut Events) {
        self.used_ns += ns;
        if let Shared::Fair(fair) = &mut self.shared {
            fair.behind(actor, ns, now, events);
        }
    }

    /// The actor in hand computes for `ns`, and nobody waits for that. Where it is its client that
    /// is in hand, it leaves.
    pub(super) fn go_on_behind(&mut self, actor: u32, ns: u64, now: u64, events: &mut Events) {
        self.used_ns += ns;
        if let Shared::Fair(fair) = &mut self.shared {
            fair.go_on_behind(actor, ns, now, events);
        }
    }

    /// The actor in hand waits for something.
    pub(super) fn leave(&mut self, now: u64, events: &mut Events) {
        if let Shared::Fair(fair) = &mut self.shared {
            fair.leave(now, events);
        }
    }

    /// A processor that may idle looks for work.
    pub(super) fn balance(&mut self, at: u16, now: u64, events: &mut Events) {
        if let Shared::Fair(fair) = &mut self.shared {
            fair.balance(at, now, events);
        }
    }
}
