//! Runs plans on devices in virtual time: stage after stage, parts of a stage in parallel.
//!
//! A part that belongs to a later stage is submitted when the stage before is done, in the order
//! of time among all jobs; so members see time that never runs back, whether they look at their
//! queue or not. Asserted in release: nothing is handed to a member twice, and whenever no job is
//! left every member has done what it was handed, by requests and by bytes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::gate::Gate;
use super::map::Place;
use super::plan::{Part, Plan, Stage};

/// Requests and bytes of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
}

impl Traffic {
    /// Adds one request.
    pub fn add(&mut self, op: Op, bytes: u64) {
        match op {
            Op::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + bytes),
            Op::Write => {
                (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + bytes);
            }
            Op::Flush => self.flushes += 1,
            Op::Trim => self.trim_bytes += bytes,
        }
    }
}

/// A device and what it was asked for.
pub(super) struct Member {
    pub device: Box<dyn Device>,
    is_queued: bool,
    /// Earliest event of a queued device, if known since it was told of something.
    next_event: Option<u64>,
    /// Requests that it has not done.
    pub pending: u64,
    /// Behind the last request.
    pub head: u64,
    pub handed: Traffic,
    done: Traffic,
    /// When requests that were submitted directly will be done.
    leaving: BinaryHeap<Reverse<u64>>,
    /// Its requests so far.
    sequence: u64,
}

impl Member {
    fn new(mut device: Box<dyn Device>) -> Self {
        let is_queued = device.queued().is_some();
        let (handed, done) = Default::default();
        let (next_event, leaving) = (None, BinaryHeap::new());
        Self {
            device,
            is_queued,
            next_event,
            pending: 0,
            head: 0,
            handed,
            done,
            leaving,
            sequence: 0,
        }
    }

    fn next_event(&mut self) -> u64 {
        if !self.is_queued {
            return u64::MAX;
        }
        if let Some(at) = self.next_event {
            return at;
        }
        let device = self.device.queued().expect("it did when it was taken in");
        let at = device.next_event().map_or(u64::MAX, |at| at.0);
        self.next_event = Some(at);
        at
    }
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Whoever asked for it, told when `acknowledged` is done.
    pub ticket: Option<u64>,
    /// The last stage that they wait for.
    pub acknowledged: Stage,
    /// What it is to the one who ordered it.
    pub purpose: Purpose,
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
    /// A request is done, as far as the one who asked for it knows.
    Acknowledged(u64),
    /// A job is done; its number is free again.
    Finished(u32, Purpose),
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
    /// A part is through the controller.
    Submit {
        job: u32,
        part: Part,
    },
    /// A member is done with a part.
    Done {
        job: u32,
        part: Part,
    },
    /// Somebody is answered from memory.
    Answer(u64),
    Wake(Timer),
}

struct Job {
    plan: Plan,
    order: Order,
    stage: usize,
    pending: usize,
    told: bool,
}

/// Devices with their jobs.
pub(super) struct Runner {
    pub members: Vec<Member>,
    pub gate: Option<Gate>,
    now: u64,
    jobs: Vec<Option<Job>>,
    free: Vec<u32>,
    plans: Vec<Plan>,
    running: usize,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    happened: VecDeque<Happened>,
    /// Parts of queued members by ticket: ticket, job and part.
    out: Vec<Vec<(u64, u32, Part)>>,
}

impl Runner {
    pub fn new(devices: Vec<Box<dyn Device>>, gate: Option<Gate>) -> Self {
        let members: Vec<_> = devices.into_iter().map(Member::new).collect();
        Self {
            out: vec![Vec::new(); members.len()],
            members,
            gate,
            now: 0,
            jobs: Vec::new(),
            free: Vec::new(),
            plans: Vec::new(),
            running: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            happened: VecDeque::new(),
        }
    }

    /// Whether any member looks at its queue.
    pub fn any_queued(&self) -> bool {
        self.members.iter().any(|member| member.is_queued)
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> u64 {
        self.now
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
            member.handed.add(part.op, part.bytes);
            member.head = part.offset + part.bytes;
            let at = member.device.submit(Nanos(now), &request(now, part)).0;
            assert!(at >= now, "a member is done before it is asked");
            member.done.add(part.op, part.bytes);
            member.leaving.push(Reverse(at));
            last.max(at)
        })
    }

    /// Which of `places` is read with the fewest requests outstanding at `now`, where none of them
    /// continues what was read before.
    pub fn least_pending(&mut self, now: u64, places: &[Place]) -> usize {
        for place in places {
            let member = &mut self.members[place.member];
            while member.leaving.peek().is_some_and(|at| at.0 <= now) {
                member.leaving.pop();
            }
        }
        let pending = |place: &Place| {
            let member = &self.members[place.member];
            member.pending + member.leaving.len() as u64
        };
        let least = (0..places.len()).min_by_key(|index| pending(&places[*index]));
        least.expect("a copy is left")
    }

    /// Starts a job at the current time.
    pub fn start(&mut self, plan: Plan, order: Order) -> u32 {
        let job = Job { plan, order, stage: 0, pending: 0, told: order.ticket.is_none() };
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

    /// Answers `ticket` at `at`.
    pub fn answer(&mut self, at: u64, ticket: u64) {
        self.event(at, Event::Answer(ticket));
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
        let member = &mut self.members[index];
        member.next_event = None;
        let device = member.device.queued().expect("it has events");
        if let Some((at, ticket)) = device.next_completion(Nanos(at)) {
            self.now = self.now.max(at.0);
            let out = &mut self.out[index];
            let place = out.iter().position(|(own, ..)| *own == ticket);
            let (_, job, part) = out.swap_remove(place.expect("it completes what it was handed"));
            self.done(job, part);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Submit { job, part } => self.hand(job, part),
            Event::Done { job, part } => self.done(job, part),
            Event::Answer(ticket) => self.happened.push_back(Happened::Acknowledged(ticket)),
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
            let job = self.jobs[at].as_mut().expect("a job that runs");
            let over = job.stage > job.order.acknowledged as usize || job.stage == Stage::ALL.len();
            if over && !job.told {
                job.told = true;
                let ticket = job.order.ticket.expect("somebody waits");
                self.happened.push_back(Happened::Acknowledged(ticket));
            }
            if job.stage == Stage::ALL.len() {
                let Job { mut plan, order, .. } = self.jobs[at].take().expect("it runs");
                plan.clear();
                self.plans.push(plan);
                self.free.push(number);
                self.running -= 1;
                self.happened.push_back(Happened::Finished(number, order.purpose));
                if self.running == 0 {
                    self.assert_conserved();
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

    /// Hands `part` down, through the controller where there is one.
    fn issue(&mut self, job: u32, part: Part) {
        let now = self.now;
        match &mut self.gate {
            None => self.hand(job, part),
            Some(gate) => {
                if let Some(at) = gate.enter(now, job, part) {
                    self.event(at, Event::Submit { job, part });
                }
            }
        }
    }

    fn hand(&mut self, job: u32, part: Part) {
        let now = self.now;
        let member = &mut self.members[part.member];
        member.pending += 1;
        member.handed.add(part.op, part.bytes);
        member.head = part.offset + part.bytes;
        let request = request(now, &part);
        if member.is_queued {
            member.next_event = None;
            member.sequence += 1;
            let ticket = member.sequence;
            let device = member.device.queued().expect("it did when it was taken in");
            device.arrive(Nanos(now), ticket, &request);
            self.out[part.member].push((ticket, job, part));
        } else {
            let at = member.device.submit(Nanos(now), &request).0;
            self.event(at, Event::Done { job, part });
        }
    }

    fn done(&mut self, job: u32, part: Part) {
        let member = &mut self.members[part.member];
        member.pending -= 1;
        member.done.add(part.op, part.bytes);
        let now = self.now;
        if let Some((at, job, part)) = self.gate.as_mut().and_then(|gate| gate.leave(now)) {
            self.event(at, Event::Submit { job, part });
        }
        let waiting = self.jobs[job as usize].as_mut().expect("its parts are not done yet");
        waiting.pending -= 1;
        if waiting.pending == 0 {
            self.advance(job);
        }
    }

    fn assert_conserved(&self) {
        for member in &self.members {
            assert_eq!(member.pending, 0, "no job is left, but a member works");
            assert_eq!(member.handed, member.done, "a member did not do what it was handed");
        }
    }
}

fn request(now: u64, part: &Part) -> Request {
    Request {
        due: Nanos(now),
        offset: Bytes(part.offset),
        len: u32::try_from(part.bytes).expect("a member request is below 4 GiB"),
        op: part.op,
        stream: 0,
    }
}
