//! Transactions and rounds of background tasks: how they begin and end.

use super::engine::{Engine, Then};
use super::events::What;
use super::outcome::{Wait, Waits};
use super::setup::{Load, Pace};

impl Engine<'_> {
    /// Whether an actor is a background task.
    pub(super) fn is_task(&self, id: u32) -> bool {
        id >= self.setup.terminals
    }

    /// An actor has no step left.
    pub(super) fn ended(&mut self, id: u32) {
        self.unlock(id);
        self.actors[id as usize].then = Then::Rest;
        if self.is_task(id) {
            return self.rest(id - self.setup.terminals);
        }
        let actor = &mut self.actors[id as usize];
        actor.busy = false;
        self.tally.end(actor.kind, self.now - actor.asked, &actor.waits, self.now);
        match self.setup.load {
            Load::Closed(_) => self.think(id),
            Load::Open { .. } => {
                if let Some(arrival) = self.desk.free(id) {
                    self.actors[id as usize].asked = arrival;
                    self.actors[id as usize].busy = true;
                    self.events.push(self.now, What::Start(id));
                }
            }
        }
        for (task, of) in (0u32..).zip(&mut self.tasks) {
            if let Pace::Transactions(each) = of.pace {
                of.owed += 1.0 / each;
                if of.owed >= 1.0 && !of.active {
                    of.active = true;
                    self.events.push(self.now, What::Round(task));
                }
            }
        }
    }

    /// A terminal thinks, then asks for its next transaction.
    pub(super) fn think(&mut self, terminal: u32) {
        let Load::Closed(think) = self.setup.load else { return };
        let mean_ns = think.mean_ns;
        let ns = if think.exponential { self.rng.exponential(mean_ns) } else { mean_ns };
        let at = self.now + ns as u64;
        self.actors[terminal as usize].asked = at;
        self.events.push(at, What::Start(terminal));
    }

    pub(super) fn next_arrival(&mut self) {
        if let Load::Open { per_s } = self.setup.load {
            let gap = self.rng.exponential(1e9 / per_s);
            self.events.push(self.now + gap as u64, What::Arrival);
        }
    }

    /// A terminal begins a transaction that was asked for some time ago.
    pub(super) fn start(&mut self, terminal: u32) {
        let drawn = self.setup.templates.draw(self.started, &mut self.rng);
        if let Some(warming) = &self.setup.warming {
            let mean = warming.extra(self.started, drawn.kind);
            let actor = &mut self.actors[terminal as usize];
            actor.extra_reads = self.rng.poisson(mean);
            actor.log = warming.log(self.started);
        }
        self.started += 1;
        let actor = &mut self.actors[terminal as usize];
        (actor.at, actor.end, actor.kind) = (drawn.first, drawn.end, drawn.kind);
        (actor.then, actor.since, actor.busy) = (Then::Step, self.now, true);
        actor.position = 0;
        actor.waits = Waits::default();
        actor.waits[Wait::Terminal] = self.now - actor.asked;
        self.go(terminal);
    }

    /// A round of a background task is due.
    pub(super) fn round(&mut self, index: u32) {
        let task = &mut self.tasks[index as usize];
        let (first, end) = task.rounds[task.done as usize % task.rounds.len()];
        task.done += 1;
        task.active = true;
        task.owed -= 1.0;
        let id = self.setup.terminals + index;
        let actor = &mut self.actors[id as usize];
        (actor.at, actor.end) = (first, end);
        (actor.then, actor.since) = (Then::Step, self.now);
        self.go(id);
    }

    /// A background task has ended a round.
    fn rest(&mut self, index: u32) {
        let task = &mut self.tasks[index as usize];
        match task.pace {
            Pace::Every(ns) => {
                self.events.push((self.now / ns + 1) * ns, What::Round(index));
            }
            Pace::Transactions(_) if task.owed >= 1.0 => {
                self.events.push(self.now, What::Round(index));
            }
            Pace::Transactions(_) => task.active = false,
        }
    }
}
