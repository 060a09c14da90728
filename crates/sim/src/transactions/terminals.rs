//! Transactions and rounds of background tasks: how they begin and end.

use super::desk::Asked;
use super::engine::{Engine, Then};
use super::events::What;
use super::outcome::{Wait, Waits};
use super::setup::{Load, Pace};

/// Transactions for whose answer nobody waits: at most this many, or four per terminal.
const MOST_DEFERRED: u64 = 64;

impl Engine<'_> {
    /// Whether an actor is a background task.
    pub(super) fn is_task(&self, id: u32) -> bool {
        id >= self.setup.terminals
    }

    /// An actor has no step left; tells whether it goes on with another transaction.
    pub(super) fn ended(&mut self, id: u32) -> bool {
        self.unlock(id);
        self.actors[id as usize].then = Then::Rest;
        if self.is_task(id) {
            self.rest(id - self.setup.terminals);
            return false;
        }
        let actor = &mut self.actors[id as usize];
        actor.busy = false;
        self.tally.end(actor.kind, self.now - actor.asked, &actor.waits, self.now);
        if actor.waited_for {
            let terminal = actor.terminal;
            self.think(terminal);
        } else {
            self.desk.deferred -= 1;
        }
        let next = self.desk.next();
        match next {
            Some(asked) => self.give(id, asked),
            None => self.desk.idles(id),
        }
        self.serve();
        self.owe(|pace| if let Pace::Transactions { each, .. } = pace { 1.0 / each } else { 0.0 });
        next.is_some()
    }

    /// Background tasks owe so much of a round more, by their pace.
    pub(super) fn owe(&mut self, more: impl Fn(Pace) -> f64) {
        for (task, of) in (0u32..).zip(&mut self.tasks) {
            of.owed += more(of.pace);
            if of.owed >= 1.0 && !of.active {
                of.active = true;
                self.events.push(self.now, What::Round(task));
            }
        }
    }

    /// A terminal thinks, then asks for its next transaction.
    pub(super) fn think(&mut self, terminal: u32) {
        let Load::Closed(think) = self.setup.load else { return };
        let mean_ns = think.mean_ns;
        let ns = if think.exponential { self.rng.exponential(mean_ns) } else { mean_ns } as u64;
        if ns == 0 {
            self.ask(terminal);
        } else {
            self.events.push(self.now + ns, What::Ask(terminal));
        }
    }

    /// A terminal asks for a transaction.
    pub(super) fn ask(&mut self, terminal: u32) {
        if !self.desk.has_room() {
            return;
        }
        let number = self.started;
        self.started += 1;
        let template = self.setup.templates.draw(number, &mut self.rng);
        let most = MOST_DEFERRED.max(4 * u64::from(self.setup.terminals));
        let waited_for = self.setup.deferred != Some(template.kind) || self.desk.deferred >= most;
        self.desk.queue(Asked { terminal, at: self.now, number, template, waited_for });
        if !waited_for {
            self.desk.deferred += 1;
            self.think(terminal);
        }
    }

    /// Sessions that have nothing to do begin with what waits.
    pub(super) fn serve(&mut self) {
        while let Some((session, asked)) = self.desk.pair() {
            self.give(session, asked);
            self.events.push(self.now, What::Start(session));
        }
    }

    /// A session gets a transaction that was asked for some time ago.
    fn give(&mut self, session: u32, asked: Asked) {
        let actor = &mut self.actors[session as usize];
        let Asked { terminal, at, number, template, waited_for } = asked;
        (actor.terminal, actor.asked, actor.waited_for) = (terminal, at, waited_for);
        (actor.at, actor.end, actor.kind) = (template.first, template.end, template.kind);
        (actor.then, actor.since, actor.busy) = (Then::Step, self.now, true);
        actor.position = 0;
        actor.waits = Waits::default();
        actor.waits[Wait::Terminal] = self.now - at;
        if let Some(warming) = &self.setup.warming {
            let (waited, ahead) = warming.extra(number, template.kind);
            actor.extra_reads = (self.rng.poisson(waited), self.rng.poisson(ahead));
            actor.log = warming.log(number);
        }
    }

    pub(super) fn next_arrival(&mut self) {
        if let Load::Open { per_s } = self.setup.load {
            let gap = self.rng.exponential(1e9 / per_s);
            self.events.push(self.now + gap as u64, What::Arrival);
        }
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
            Pace::Transactions { .. } | Pace::Requests if task.owed >= 1.0 => {
                self.events.push(self.now, What::Round(index));
            }
            Pace::Transactions { .. } | Pace::Requests => task.active = false,
        }
    }
}
