//! Runs plans on devices in virtual time: stage after stage, parts of a stage in parallel.
//!
//! A part that belongs to a later stage is submitted when the stage before is done, in the order
//! of time among all jobs; so members see time that never runs back, whether they look at their
//! queue or not. Asserted in release: nothing is handed to a member twice, and whenever no job is
//! left every member has done what it was handed, by requests and by bytes.
//!
//! The path of a request goes along the last part of each of its stages. What it waits for in the
//! volume (columns, room in memory, a place in the controller or in a member) is
//! [`Cause::SharedWait`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::Device;
use model::observe::{Cause, Path, Probe};
use model::queued::NO_REQUEST;
use trace::Op;

use super::gate::{Gate, Passage};
use super::map::Place;
use super::member::{Member, Numbering, Told};
use super::plan::{Part, Plan, Stage};

/// Whoever waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asker {
    pub ticket: u64,
    /// Since when, ns.
    pub arrived: u64,
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Whoever asked for it, told when `acknowledged` is done.
    pub asker: Option<Asker>,
    /// The last stage that they wait for.
    pub acknowledged: Stage,
    /// What it is to the one who ordered it.
    pub purpose: Purpose,
    /// Its columns, where it holds some.
    pub turn: Option<u32>,
    /// Columns whose parity is worked out for it.
    pub computes: u64,
}

impl Order {
    /// A job that nobody waits for and that holds no columns.
    pub fn own(purpose: Purpose) -> Self {
        Self { asker: None, acknowledged: Stage::Store, purpose, turn: None, computes: 0 }
    }

    /// The same for somebody who waits until `acknowledged` is done.
    pub fn of(asker: Asker, acknowledged: Stage, purpose: Purpose) -> Self {
        Self { asker: Some(asker), acknowledged, ..Self::own(purpose) }
    }
}

/// Why a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For a request.
    Request,
    /// To write what is in memory.
    Destage,
    /// To make a lost member anew.
    Rebuild,
    /// Upkeep of notes, logs and copies.
    Upkeep,
}

/// What a step brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// A request is done, as far as the one who asked for it knows; its path, if somebody watches.
    Acknowledged(u64, Path),
    /// A job is done; its number is free again.
    Finished(u32, Order),
    /// A timer went off.
    Woke(Timer),
}

/// What a policy wants to be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The next step of a rebuild.
    Rebuild,
    /// Marks of regions that are not written any more.
    Unmark,
    /// Write-back of what is dirty.
    WriteBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A flight is through the controller.
    Submit(u32),
    /// A member is done with a flight.
    Done(u32),
    /// The parity of a job is worked out.
    Computed(u32),
    /// Somebody is answered from memory, which took the time since then.
    Answer(Asker, u64),
    Wake(Timer),
}

struct Job {
    plan: Plan,
    order: Order,
    stage: usize,
    pending: usize,
    told: bool,
    /// Where the time of the one who waits went, up to the stage in work.
    path: Path,
}

/// A part on its way to a member and there.
#[derive(Clone, Copy, Debug)]
struct Flight {
    job: u32,
    part: Part,
    /// Its path is told so far.
    told_until: u64,
}

/// Parity is worked out by one thread, column after column.
struct Thread {
    ns_per_column: u64,
    free_at: u64,
}

/// Devices with their jobs.
pub(super) struct Runner {
    pub members: Vec<Member>,
    gate: Option<Gate>,
    thread: Option<Thread>,
    now: u64,
    jobs: Vec<Option<Job>>,
    free: Vec<u32>,
    plans: Vec<Plan>,
    running: usize,
    flights: Vec<Flight>,
    landed: Vec<u32>,
    /// Of flights, while somebody watches.
    paths: Vec<Path>,
    /// What members told since somebody watches, until it is asked for.
    told: Option<Told>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    happened: VecDeque<Happened>,
}

impl Runner {
    /// Over `devices` that hold `depth` requests each; see [`Member::new`].
    pub fn new(devices: Vec<Box<dyn Device>>, depth: Option<usize>, gate: Option<Gate>) -> Self {
        Self {
            members: devices.into_iter().map(|device| Member::new(device, depth)).collect(),
            gate,
            thread: None,
            now: 0,
            jobs: Vec::new(),
            free: Vec::new(),
            plans: Vec::new(),
            running: 0,
            flights: Vec::new(),
            landed: Vec::new(),
            paths: Vec::new(),
            told: None,
            events: BinaryHeap::new(),
            sequence: 0,
            happened: VecDeque::new(),
        }
    }

    /// From now on parity takes its time.
    pub fn compute(&mut self, ns_per_column: u64) {
        self.thread = (ns_per_column > 0).then_some(Thread { ns_per_column, free_at: 0 });
    }

    /// Whether any member looks at its queue.
    pub fn any_queued(&self) -> bool {
        self.members.iter().any(|member| member.is_queued)
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Whether no job runs.
    pub fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// Things that happened so far: events, and requests handed to members.
    pub fn steps(&self) -> u64 {
        self.sequence
    }

    /// Starts or ends to keep paths, and what members tell.
    pub fn watch(&mut self, is_watched: bool) {
        if is_watched == self.told.is_some() {
            return;
        }
        self.told = is_watched.then(Vec::new);
        self.paths.clear();
        self.paths.resize(if is_watched { self.flights.len() } else { 0 }, Path::EMPTY);
    }

    /// Hands over what members told.
    pub fn tell(&mut self, probe: &mut dyn Probe) {
        for (ticket, span) in self.told.iter_mut().flat_map(|told| told.drain(..)) {
            match ticket {
                Some(NO_REQUEST) => probe.span(&span),
                Some(ticket) => {
                    probe.request(ticket as usize);
                    probe.span(&span);
                }
                None => probe.span(&span.on_behalf_of(model::observe::Purpose::Destage)),
            }
        }
    }

    /// An empty plan, to be filled and started.
    pub fn plan(&mut self) -> Plan {
        self.plans.pop().unwrap_or_default()
    }

    /// Takes back a plan that was not started.
    pub fn put_back(&mut self, plan: Plan) {
        self.plans.push(plan);
    }

    /// Submits the one stage of `plan` at `now` to members that do not look at their queue, and
    /// says when the last part is done.
    pub fn submit(&mut self, now: u64, plan: &Plan) -> u64 {
        plan.parts().fold(now, |last, part| {
            let member = &mut self.members[part.member];
            let at = member.submit(now, part);
            assert!(at >= now, "a member is done before it is asked");
            member.passed(part, at);
            last.max(at)
        })
    }

    /// The same, with the path of the last part, and what members told for `probe`.
    pub fn submit_observed(&mut self, now: u64, plan: &Plan, probe: &mut dyn Probe) -> (u64, Path) {
        let members = self.members.len();
        let mut told = Vec::new();
        let mut last = (now, Path::EMPTY);
        for part in plan.parts() {
            let numbering = Numbering { member: part.member, members };
            let member = &mut self.members[part.member];
            let found = member.submit_observed(now, part, (&mut told, numbering), None);
            assert!(found.0 >= now, "a member is done before it is asked");
            member.passed(part, found.0);
            if found.0 > last.0 {
                last = found;
            }
        }
        for (_, span) in &told {
            probe.span(span);
        }
        last
    }

    /// Which of `places` is read with the fewest requests outstanding at `now`, where none of them
    /// continues what was read before.
    pub fn least_pending(&mut self, now: u64, places: &[Place]) -> usize {
        let mut pending = |place: &Place| self.members[place.member].outstanding(now);
        let least = (0..places.len()).min_by_key(|index| pending(&places[*index]));
        least.expect("a copy is left")
    }

    /// Starts a job at the current time.
    pub fn start(&mut self, plan: Plan, order: Order) -> u32 {
        let mut path = Path::EMPTY;
        if let Some(asker) = order.asker {
            path.spend(Cause::SharedWait, self.now - asker.arrived);
        }
        let told = order.asker.is_none();
        let job = Job { plan, order, stage: 0, pending: 0, told, path };
        let number = if let Some(number) = self.free.pop() {
            self.jobs[number as usize] = Some(job);
            number
        } else {
            self.jobs.push(Some(job));
            self.jobs.len() as u32 - 1
        };
        self.running += 1;
        self.advance(number);
        number
    }

    /// When this many bytes have crossed from the host to memory of the controller, or back.
    pub fn cross(&mut self, bytes: u64) -> u64 {
        let now = self.now;
        self.gate.as_mut().map_or(now, |gate| gate.cross(now, bytes))
    }

    /// Answers `asker` out of memory at `at`.
    pub fn answer(&mut self, at: u64, asker: Asker) {
        self.event(at, Event::Answer(asker, self.now));
    }

    /// Wakes the policy at `at`.
    pub fn wake(&mut self, at: u64, timer: Timer) {
        self.event(at, Event::Wake(timer));
    }

    /// The next thing that happens at or before `until`; none, and the clock is there.
    pub fn step(&mut self, until: u64) -> Option<(u64, Happened)> {
        loop {
            if let Some(happened) = self.happened.pop_front() {
                return Some((self.now, happened));
            }
            let own = self.own_event();
            let (at, member) = self.member_event();
            if own.min(at) > until || own.min(at) == u64::MAX {
                self.now = self.now.max(until);
                return None;
            }
            if own <= at {
                let Reverse((at, _, event)) = self.events.pop().expect("there is one");
                self.now = at;
                self.handle(event);
            } else {
                self.ask(member, at);
            }
        }
    }

    /// When something happens next, if nothing is started before.
    pub fn next_event(&mut self) -> Option<u64> {
        if !self.happened.is_empty() {
            return Some(self.now);
        }
        let at = self.own_event().min(self.member_event().0);
        (at != u64::MAX).then_some(at)
    }

    fn own_event(&self) -> u64 {
        self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at)
    }

    fn member_event(&mut self) -> (u64, usize) {
        let members = self.members.iter_mut().zip(0..);
        let found = members.map(|(member, index)| (member.next_event(), index)).min();
        found.unwrap_or((u64::MAX, 0))
    }

    /// Lets a queued member go on up to `at`.
    fn ask(&mut self, index: usize, at: u64) {
        let Self { members, told, flights, jobs, .. } = self;
        let numbering = Numbering { member: index, members: members.len() };
        let told = told.as_mut().map(|told| (told, numbering));
        let ticket = |flight: u32| ticket_of(jobs, &flights[flight as usize]);
        if let Some((at, flight, path)) = members[index].completion(at, told, ticket) {
            self.now = self.now.max(at);
            if let Some(own) = self.paths.get_mut(flight as usize) {
                own.add(&path);
                self.flights[flight as usize].told_until += path.total();
            }
            self.until(flight, Cause::Unknown, at);
            self.done(flight);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Submit(flight) => self.hand(flight),
            Event::Done(flight) => self.done(flight),
            Event::Computed(job) => self.advance(job),
            Event::Answer(asker, since) => {
                let mut path = Path::EMPTY;
                if self.told.is_some() {
                    path.spend(Cause::SharedWait, since - asker.arrived);
                    path.spend(Cause::Cache, self.now - since);
                }
                self.happened.push_back(Happened::Acknowledged(asker.ticket, path));
            }
            Event::Wake(timer) => self.happened.push_back(Happened::Woke(timer)),
        }
    }

    fn event(&mut self, at: u64, event: Event) {
        assert!(at >= self.now, "time runs back");
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// Goes on to the next stage of `number` that has parts.
    fn advance(&mut self, number: u32) {
        let at = number as usize;
        loop {
            if self.computes(number) {
                return;
            }
            let job = self.jobs[at].as_mut().expect("a job that runs");
            let over = job.stage > job.order.acknowledged as usize || job.stage == Stage::ALL.len();
            if over && !job.told {
                job.told = true;
                let Asker { ticket, arrived } = job.order.asker.expect("somebody waits");
                let mut path = job.path;
                if self.told.is_some() {
                    // What was not watched.
                    path.spend(Cause::Unknown, self.now - arrived - path.total());
                }
                self.happened.push_back(Happened::Acknowledged(ticket, path));
            }
            if job.stage == Stage::ALL.len() {
                let Job { mut plan, order, .. } = self.jobs[at].take().expect("it runs");
                plan.clear();
                self.plans.push(plan);
                self.free.push(number);
                self.running -= 1;
                self.happened.push_back(Happened::Finished(number, order));
                if self.running == 0 {
                    self.members.iter().for_each(Member::assert_conserved);
                }
                return;
            }
            let stage = Stage::ALL[job.stage];
            job.stage += 1;
            job.pending = job.plan.stage(stage).len();
            if job.pending > 0 {
                for index in 0..job.plan.stage(stage).len() {
                    let job = self.jobs[at].as_ref().expect("its parts are not done yet");
                    let part = job.plan.stage(stage)[index];
                    self.issue(number, part);
                }
                return;
            }
        }
    }

    /// Lets the thread work out the parity of a job, once what it needs is read and before anything
    /// of it is written: whether the job waits for that.
    fn computes(&mut self, number: u32) -> bool {
        let Some(thread) = &mut self.thread else { return false };
        let job = self.jobs[number as usize].as_mut().expect("a job that runs");
        let reads = job.plan.stage(Stage::Fetch).iter().any(|part| part.op == Op::Read);
        let first = Stage::Fetch as usize + usize::from(reads);
        if job.order.computes == 0 || job.stage < first {
            return false;
        }
        let columns = std::mem::take(&mut job.order.computes);
        let begins = thread.free_at.max(self.now);
        thread.free_at = begins + thread.ns_per_column * columns;
        job.path.spend(Cause::SharedWait, begins - self.now);
        job.path.spend(Cause::Controller, thread.free_at - begins);
        let ends = thread.free_at;
        self.event(ends, Event::Computed(number));
        true
    }

    /// Hands `part` down, through the controller where there is one.
    fn issue(&mut self, job: u32, part: Part) {
        let flight = Flight { job, part, told_until: self.now };
        let number = if let Some(number) = self.landed.pop() {
            self.flights[number as usize] = flight;
            number
        } else {
            self.flights.push(flight);
            self.flights.len() as u32 - 1
        };
        if self.told.is_some() {
            self.paths.resize(self.flights.len(), Path::EMPTY);
            self.paths[number as usize] = Path::EMPTY;
        }
        match &mut self.gate {
            None => self.hand(number),
            Some(gate) => {
                if let Some(passage) = gate.enter(self.now, number, &part) {
                    self.pass(number, passage);
                }
            }
        }
    }

    fn pass(&mut self, flight: u32, passage: Passage) {
        self.until(flight, Cause::SharedWait, passage.begins);
        self.until(flight, Cause::Controller, passage.through);
        self.until(flight, Cause::SharedWait, passage.on_bus);
        self.until(flight, Cause::Transfer, passage.ends);
        self.event(passage.ends, Event::Submit(flight));
    }

    /// A flight is through what lies before the members.
    fn hand(&mut self, flight: u32) {
        let part = self.flights[flight as usize].part;
        let member = &mut self.members[part.member];
        member.take(&part);
        if member.admit(flight) {
            self.send(flight);
        }
    }

    /// A flight gets to its device.
    fn send(&mut self, number: u32) {
        let now = self.now;
        self.until(number, Cause::SharedWait, now);
        let members = self.members.len();
        let flight = &mut self.flights[number as usize];
        let part = flight.part;
        let member = &mut self.members[part.member];
        if member.is_queued {
            self.sequence += 1;
            member.arrive(now, number, &part);
            return;
        }
        let at = if let Some(told) = &mut self.told {
            let numbering = Numbering { member: part.member, members };
            let ticket = ticket_of(&self.jobs, flight);
            let (at, path) = member.submit_observed(now, &part, (told, numbering), ticket);
            self.paths[number as usize].add(&path);
            flight.told_until = at;
            at
        } else {
            member.submit(now, &part)
        };
        self.event(at, Event::Done(number));
    }

    fn done(&mut self, number: u32) {
        let Flight { job, part, .. } = self.flights[number as usize];
        if let Some(next) = self.members[part.member].leave(&part) {
            self.send(next);
        }
        if let Some((flight, passage)) = self.gate.as_mut().and_then(|gate| gate.leave(self.now)) {
            self.pass(flight, passage);
        }
        self.landed.push(number);
        let waiting = self.jobs[job as usize].as_mut().expect("its parts are not done yet");
        waiting.pending -= 1;
        if waiting.pending == 0 {
            if let Some(path) = self.paths.get(number as usize) {
                waiting.path.add(path);
            }
            self.advance(job);
        }
    }

    /// A flight spends its time on `cause` until `moment`.
    fn until(&mut self, flight: u32, cause: Cause, moment: u64) {
        let told_until = &mut self.flights[flight as usize].told_until;
        if let Some(path) = self.paths.get_mut(flight as usize) {
            path.spend(cause, moment.saturating_sub(*told_until));
        }
        *told_until = moment.max(*told_until);
    }
}

/// The ticket of the request that a flight is for; none where it is for the volume's own work.
fn ticket_of(jobs: &[Option<Job>], flight: &Flight) -> Option<u64> {
    let job = jobs[flight.job as usize].as_ref().expect("its parts are not done yet");
    job.order.asker.map(|asker| asker.ticket)
}
