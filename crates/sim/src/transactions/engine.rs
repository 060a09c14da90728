//! The loop over events, and what each does to the system.

use model::Device;
use stats::rng::Rng;
use trace::Op;

use super::desk::{Desk, Tally};
use super::events::{Events, What};
use super::locks::Locks;
use super::log::{LogState, Stage};
use super::outcome::{TransactionOutcome, Wait, Waits};
use super::processors::Processors;
use super::setup::{Load, Pace, Setup};
use super::storage::{Ask, Storage};
use super::template::Step;
use crate::Error;

/// Simulates the system on devices, one per number that its file classes name.
///
/// # Errors
/// Where the setup cannot be simulated; see [`Setup::check`].
pub fn transactions(
    devices: &mut [Box<dyn Device>],
    setup: &Setup,
) -> Result<TransactionOutcome, Error> {
    setup.check(devices.len())?;
    let mut engine = Engine::new(devices, setup);
    engine.begin();
    engine.run();
    Ok(engine.finish())
}

/// What an actor does when it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Then {
    /// Its next step.
    #[default]
    Step,
    /// Looks whether its log position is durable.
    Check,
    /// Holds the log and goes on with it.
    Lead(Stage),
    /// Nothing: it waits for a transaction or a round.
    Rest,
}

/// A terminal or a background task.
#[derive(Clone, Debug, Default)]
pub(super) struct Actor {
    /// Next step and one past the last.
    pub(super) at: u32,
    pub(super) end: u32,
    pub(super) kind: u16,
    /// Who asked for its transaction.
    pub(super) terminal: u32,
    /// Whether that waits for the answer.
    pub(super) waited_for: bool,
    pub(super) then: Then,
    /// What it waits for since when.
    pub(super) wait: usize,
    pub(super) since: u64,
    /// When its transaction was asked for.
    pub(super) asked: u64,
    /// Whether it has one.
    pub(super) busy: bool,
    /// Its last position in the log.
    pub(super) position: u64,
    /// How long it computes, ns, and whether it is its client that does.
    pub(super) computes_ns: u64,
    pub(super) as_client: bool,
    /// How long its server goes on behind the next answer, ns.
    pub(super) behind_ns: u64,
    pub(super) waits: Waits,
    pub(super) keys: Vec<u32>,
    /// Reads that it makes because caches are empty still: waited for, and ahead.
    pub(super) extra_reads: (u32, u32),
    /// Factor on what it writes to the log, for the same reason.
    pub(super) log: f64,
}

impl Actor {
    /// How long its server goes on behind the answer that its client gets now, ns.
    fn behind(&mut self) -> u64 {
        if self.as_client { std::mem::take(&mut self.behind_ns) } else { 0 }
    }
}

/// A background task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) pace: Pace,
    /// First step and one past the last of each round.
    pub(super) rounds: Vec<(u32, u32)>,
    pub(super) done: u64,
    pub(super) active: bool,
    /// Rounds owed for transactions that ended.
    pub(super) owed: f64,
}

pub(super) struct Engine<'a> {
    pub(super) setup: &'a Setup,
    pub(super) now: u64,
    pub(super) events: Events,
    pub(super) steps: Vec<Step>,
    /// Terminals, then background tasks.
    pub(super) actors: Vec<Actor>,
    pub(super) tasks: Vec<Task>,
    pub(super) processors: Processors,
    pub(super) locks: Locks,
    pub(super) log: LogState<'a>,
    pub(super) storage: Storage<'a>,
    pub(super) desk: Desk,
    pub(super) tally: Tally,
    pub(super) rng: Rng,
    /// Transactions that began.
    pub(super) started: u64,
    /// Those whom a release of the log wakes.
    pub(super) woken: Vec<u32>,
}

impl<'a> Engine<'a> {
    fn new(devices: &'a mut [Box<dyn Device>], setup: &'a Setup) -> Self {
        let count = setup.terminals as usize + setup.background.len();
        let mut steps = setup.templates.steps.clone();
        let tasks = setup.background.iter().map(|task| {
            let rounds = task.rounds.iter().map(|round| {
                let first = steps.len() as u32;
                steps.extend_from_slice(round);
                (first, steps.len() as u32)
            });
            let rounds = rounds.collect();
            let owed = match task.pace {
                Pace::Transactions { each, after } => -(after as f64) / each,
                Pace::Every(_) | Pace::Requests => 0.0,
            };
            Task { pace: task.pace, rounds, done: 0, active: false, owed }
        });
        let tasks = tasks.collect();
        Self {
            setup,
            now: 0,
            events: Events::default(),
            actors: vec![Actor { then: Then::Rest, log: 1.0, ..Actor::default() }; count],
            tasks,
            processors: Processors::new(&setup.processors, setup.terminals, count),
            locks: Locks::new(&setup.locks),
            log: LogState::new(&setup.log),
            storage: Storage::new(devices, &setup.classes, count),
            desk: Desk::default(),
            tally: Tally::new(setup),
            rng: Rng::new(setup.seed),
            started: 0,
            woken: Vec::new(),
            steps,
        }
    }

    fn begin(&mut self) {
        (0..self.setup.terminals).rev().for_each(|session| self.desk.idles(session));
        if matches!(self.setup.load, Load::Closed(_)) {
            (0..self.setup.terminals).for_each(|terminal| self.think(terminal));
            self.serve();
        }
        if matches!(self.setup.load, Load::Open { .. }) {
            self.next_arrival();
        }
        for (task, of) in (0u32..).zip(&self.tasks) {
            if let Pace::Every(ns) = of.pace {
                self.events.push(ns, What::Round(task));
            }
        }
    }

    fn run(&mut self) {
        loop {
            if self.storage.look(self.events.next_time(), &mut self.events) {
                continue;
            }
            let Some((at, what)) = self.events.pop() else { return };
            if self.tally.over(at) {
                self.now = self.now.max(at.min(self.end()));
                return;
            }
            assert!(at >= self.now, "time never runs back");
            self.now = at;
            self.happen(what);
        }
    }

    fn end(&self) -> u64 {
        self.setup.length.warmup_ns + self.setup.length.measure_ns
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Burst { processor, generation } => {
                let event = (processor, generation);
                if let Some(actor) = self.processors.over(event, self.now, &mut self.events) {
                    self.computed(actor);
                    self.go_on(actor);
                }
            }
            What::Balance(processor) => {
                self.processors.balance(processor, self.now, &mut self.events);
            }
            What::Go(actor) => {
                self.charge(actor);
                self.go(actor);
            }
            What::IoDone(ticket) if ticket as usize >= self.actors.len() => {
                self.storage.sent(ticket, self.now);
            }
            What::IoDone(actor) => {
                self.charge(actor);
                self.storage.completed(actor, self.now);
                self.go(actor);
            }
            What::Ask(terminal) => {
                self.ask(terminal);
                self.serve();
            }
            What::Start(session) => self.go(session),
            What::Arrival => {
                self.next_arrival();
                let terminal = (self.desk.asked % u64::from(self.setup.terminals)) as u32;
                self.ask(terminal);
                self.serve();
            }
            What::Round(task) => self.round(task),
        }
    }

    /// Charges what an actor has run and what it has waited to run.
    fn computed(&mut self, id: u32) {
        let actor = &mut self.actors[id as usize];
        let passed = self.now - actor.since;
        let ran = actor.computes_ns.min(passed);
        actor.waits[Wait::Cpu] += ran;
        actor.waits[Wait::RunQueue] += passed - ran;
        actor.since = self.now;
        self.processors.used_ns += ran;
    }

    /// Charges the wait that is over.
    pub(super) fn charge(&mut self, id: u32) {
        let actor = &mut self.actors[id as usize];
        actor.waits[Wait::ALL[actor.wait]] += self.now - actor.since;
        (actor.since, actor.wait) = (self.now, Wait::Cpu as usize);
    }

    /// Lets an actor go on that has no processor.
    pub(super) fn go(&mut self, id: u32) {
        if let Some(ns) = self.advance(id) {
            self.ready(id, ns);
        }
    }

    /// An actor that has no processor wants to compute.
    pub(super) fn ready(&mut self, id: u32, ns: u64) {
        let actor = &mut self.actors[id as usize];
        actor.computes_ns = ns;
        let behind_ns = actor.behind();
        self.processors.ready((id, actor.as_client), ns, self.now, &mut self.events);
        if behind_ns > 0 {
            self.processors.behind(id, behind_ns, self.now, &mut self.events);
        }
    }

    /// Lets an actor go on that has one.
    fn go_on(&mut self, id: u32) {
        let Some(ns) = self.advance(id) else {
            return self.processors.leave(self.now, &mut self.events);
        };
        let actor = &mut self.actors[id as usize];
        actor.computes_ns = ns;
        let behind_ns = actor.behind();
        if behind_ns > 0 {
            self.processors.ready((id, true), ns, self.now, &mut self.events);
            return self.processors.go_on_behind(id, behind_ns, self.now, &mut self.events);
        }
        self.processors.go_on((id, actor.as_client), ns, self.now, &mut self.events);
    }

    /// Takes steps until the actor must compute (gives how long, ns) or wait.
    fn advance(&mut self, id: u32) -> Option<u64> {
        loop {
            match self.actors[id as usize].then {
                Then::Rest => return None,
                Then::Check => {
                    if !self.committed(id) {
                        return None;
                    }
                    self.actors[id as usize].then = Then::Step;
                    self.unlock(id);
                }
                Then::Lead(Stage::Release) => self.release_log(id),
                Then::Lead(stage) => match self.lead(id, stage) {
                    Some(0) => {}
                    other => return other,
                },
                Then::Step => match self.step(id) {
                    Next::On | Next::Compute(0) => {}
                    Next::Compute(ns) => return Some(ns),
                    Next::Wait => return None,
                },
            }
        }
    }

    fn step(&mut self, id: u32) -> Next {
        let actor = &mut self.actors[id as usize];
        let step = (actor.at < actor.end).then(|| self.steps[actor.at as usize]);
        // Rows are locked before most pages are read; what is read is read before the commit.
        if step.is_none_or(Step::ends_work) {
            let (waited, ahead) = std::mem::take(&mut actor.extra_reads);
            for _ in 0..ahead {
                let (of, at) = self.extra_read();
                self.send(of, at);
            }
            if waited > 0 {
                self.actors[id as usize].extra_reads.0 = waited - 1;
                let (of, at) = self.extra_read();
                self.issue(id, Wait::Read, of, at);
                return Next::Wait;
            }
        }
        let Some(step) = step else {
            return if self.ended(id) { Next::On } else { Next::Wait };
        };
        let actor = &mut self.actors[id as usize];
        actor.at += 1;
        match step {
            Step::Cpu(ns) | Step::Ask(ns) => {
                actor.as_client = matches!(step, Step::Ask(_));
                return Next::Compute(self.processors.scaled(ns));
            }
            Step::Behind(ns) => actor.behind_ns = self.processors.scaled(ns),
            Step::Client(ns) => {
                actor.wait = Wait::Client as usize;
                self.events.push(self.now + ns, What::Go(id));
                return Next::Wait;
            }
            Step::Lock(class) => {
                let key = self.locks.key(class, actor.terminal, &mut self.rng);
                actor.keys.push(key);
                if !self.locks.take(key, id) {
                    actor.wait = Wait::Lock as usize;
                    return Next::Wait;
                }
            }
            Step::Read { class, bytes, offset } => {
                self.issue(id, Wait::Read, (class, Op::Read), (bytes, offset));
                return Next::Wait;
            }
            Step::Write { class, bytes, offset } => {
                self.issue(id, Wait::Write, (class, Op::Write), (bytes, offset));
                return Next::Wait;
            }
            Step::ReadAhead { class, bytes, offset } => {
                self.send((class, Op::Read), (bytes, offset));
            }
            Step::Send { class, bytes, offset } => {
                self.send((class, Op::Write), (bytes, offset));
            }
            Step::Flush { class } => {
                self.issue(id, Wait::Write, (class, Op::Flush), (0, 0));
                return Next::Wait;
            }
            Step::Insert(bytes) => {
                let bytes = (f64::from(bytes) * actor.log).max(1.0) as u32;
                actor.position = self.log.insert(bytes, &mut self.rng);
            }
            Step::Checkpoint => self.log.checkpoint(),
            Step::Commit => self.commit(id),
        }
        Next::On
    }

    /// A read of something that a full cache would hold.
    fn extra_read(&mut self) -> ((u16, Op), (u32, u64)) {
        let warming = self.setup.warming.as_ref().expect("only then there are extra reads");
        let bytes = warming.bytes;
        let places = (warming.span / u64::from(bytes)).max(1);
        let offset = self.rng.below(places) * u64::from(bytes);
        ((warming.class, Op::Read), (bytes, offset))
    }

    /// Issues a request that the actor waits for.
    pub(super) fn issue(&mut self, id: u32, wait: Wait, of: (u16, Op), at: (u32, u64)) {
        self.actors[id as usize].wait = wait as usize;
        let ask = self.request(of, at);
        let class = &self.setup.classes[usize::from(ask.class)];
        self.storage.issue((id, ask), class, self.now, &mut self.events);
    }

    /// Issues a request that nobody waits for.
    pub(super) fn send(&mut self, of: (u16, Op), at: (u32, u64)) {
        let ask = self.request(of, at);
        let class = &self.setup.classes[usize::from(ask.class)];
        self.storage.send(ask, class, self.now, &mut self.events);
    }

    fn request(&mut self, (class, op): (u16, Op), (bytes, offset): (u32, u64)) -> Ask {
        let path = &self.setup.classes[usize::from(class)].path;
        let path = match op {
            Op::Read => &path.read,
            Op::Flush => &path.flush,
            Op::Write | Op::Trim => &path.write,
        };
        let path_ns = path.draw(&mut self.rng);
        self.owe(|pace| f64::from(u8::from(matches!(pace, Pace::Requests))));
        Ask { class, op, bytes, offset, path_ns }
    }

    fn finish(self) -> TransactionOutcome {
        let busy = self.actors.iter().filter(|actor| actor.busy).count() as u64;
        let in_work = busy + self.desk.waiting();
        let (asked, ended) = (self.desk.asked, self.tally.ended);
        assert_eq!(asked, ended + in_work, "each transaction ends once");
        let measured_ns = self.now.saturating_sub(self.setup.length.warmup_ns);
        let per_s = self.tally.measured as f64 * 1e9 / measured_ns.max(1) as f64;
        let capacity = f64::from(self.setup.processors.count) * self.now.max(1) as f64;
        let names = self.setup.background.iter().map(|task| task.name.clone());
        let mut storage = self.storage;
        let io = std::mem::take(&mut storage.done);
        TransactionOutcome {
            measured_ns,
            transactions: self.tally.measured,
            transactions_per_s: per_s,
            kinds: self.tally.kinds,
            asked,
            ended,
            in_work,
            dropped: self.desk.dropped,
            log: self.log.outcome,
            processor_share: self.processors.all_used_ns() as f64 / capacity,
            switching_share: self.processors.switching_ns() as f64 / capacity,
            io: io.into_iter().filter(|row| row.requests > 0).collect(),
            rounds: names.zip(self.tasks.iter().map(|task| task.done)).collect(),
            wrapped: storage.wrapped,
            counters: storage.counters(),
        }
    }
}

/// What follows a step.
enum Next {
    /// The next step.
    On,
    /// Computing for this many ns, then the next step.
    Compute(u64),
    /// Waiting.
    Wait,
}
