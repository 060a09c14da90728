//! Volumes: several members as one device, as md or a RAID controller makes them.
//!
//! [`map`] says which requests of members a request becomes, [`Volume`] runs them over devices. The
//! rules are those of md in Linux (drivers/md/raid{0,1,5,10}.c), with the number of columns in work
//! bounded by the stripe cache (`turns`) and, where it is asked for, one thread for parity. Left
//! out: plugging across requests, the other turns of the raid5d thread.
//!
//! However many requests wait, each is looked at a bounded number of times: who waits for columns
//! is woken once, and a member that chooses among what it holds is given no more than it has tags.
//!
//! Where a request takes one round and no member looks at its queue, a volume answers at once;
//! otherwise it is [`model::Queued`], and [`Device::submit`] serves one request at a time.
//!
//! Invariants, asserted in release: requests in = completions out; every byte asked for is read
//! once and written to every copy; what members were handed they have done.

pub mod cache;
mod device;
mod gate;
mod lru;
pub mod map;
mod member;
mod memory;
pub mod parity;
pub mod plan;
mod protection;
mod rebuild;
mod runner;
mod settings;
mod spec;
pub mod stripes;
mod turns;

use std::collections::{BTreeMap, VecDeque};

use model::Device;
use model::observe::Path;
use model::queued::Ahead;
use trace::{Op, Request};

pub use member::Traffic;
pub use settings::{
    COLUMN_BYTES, Controller, Copies, Level, MOST_MEMBERS, Protection, ReadBalance, Rebuild,
    Settings, Unfit, Update,
};
pub(crate) use spec::VolumeSpec;

use gate::Gate;
use map::{Map, Place, Wanted};
use memory::Memory;
use plan::{Plan, Stage};
use protection::Guard;
use rebuild::Progress;
use runner::{Asker, Happened, Order, Purpose, Runner, Timer};
use stripes::Stripes;
use turns::Turns;

/// The journal's stripes are written when it is that long since the first of them came
/// (`R5C_RECLAIM_WAKEUP_INTERVAL`, raid5-cache.c).
const RECLAIM_NS: u64 = 30_000_000_000;

/// What waits for columns.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A request.
    Request(Asker, Wanted),
    /// What memory holds.
    Destage(Wanted),
    /// A step of a rebuild.
    Rebuild,
}

/// A volume over devices.
pub struct Volume {
    settings: Settings,
    map: Map,
    stripes: Stripes,
    runner: Runner,
    guard: Guard,
    memory: Option<Memory>,
    rebuild: Option<Progress>,
    /// When the step of the rebuild in work began.
    rebuild_began: u64,
    /// Every request is one round of members that do not look at their queue.
    is_direct: bool,
    /// Columns in work, and what is to be done in those that somebody else works on.
    turns: Turns<Work>,
    /// What memory is writing, by job.
    destages: BTreeMap<u32, Wanted>,
    /// A look at the bitmap, or at the journal, is to come.
    is_waking: bool,
    completed: VecDeque<(u64, u64, Path)>,
    ahead: Ahead,
    asked: Traffic,
    taken: u64,
    answered: u64,
}

impl Volume {
    /// A volume of `members` as `settings` say; a journal is one member more, the last.
    ///
    /// # Errors
    /// Where the members make no such volume.
    pub fn new(members: Vec<Box<dyn Device>>, settings: &Settings) -> Result<Self, Unfit> {
        let mut capacities: Vec<_> =
            members.iter().map(|member| member.capacity().map(|bytes| bytes.0)).collect();
        let memory = match settings.protection {
            Protection::Journal { write_back, bytes } => {
                if capacities.pop().flatten().is_some_and(|capacity| capacity < bytes) {
                    let cause = "the journal is longer than its member";
                    return Err(Unfit { field: "volume.write_hole", cause });
                }
                // Columns: writing starts when a quarter is taken.
                let room = settings.stripe_cache.max(4) as u64;
                write_back.then(|| Memory::new(room, room / 4, room as usize))
            }
            _ => settings.controller.as_ref().and_then(|controller| {
                let Controller { cache_bytes, destages, .. } = *controller;
                (cache_bytes > 0).then(|| Memory::new(cache_bytes, 0, destages))
            }),
        };
        let map = Map::new(settings, &capacities)?;
        let gate = settings.controller.as_ref().map(Gate::new);
        let mut runner = Runner::new(members, settings.depth, gate);
        runner.compute(settings.parity_ns_per_column);
        let is_plain = map.parity().is_none()
            && settings.protection == Protection::None
            && settings.controller.is_none()
            && settings.rebuild.is_none()
            && settings.depth.is_none_or(|depth| depth == usize::MAX);
        let mut made = Self {
            is_direct: is_plain && !runner.any_queued(),
            guard: Guard::new(settings.protection, settings.members),
            rebuild: settings.rebuild.map(|rebuild| {
                Progress::new(rebuild, map.member_bytes().expect("the map asked for it"))
            }),
            settings: settings.clone(),
            map,
            stripes: Stripes::new(settings.stripe_cache),
            runner,
            memory,
            rebuild_began: 0,
            turns: Turns::new(most_columns(settings)),
            destages: BTreeMap::new(),
            is_waking: false,
            completed: VecDeque::new(),
            ahead: Ahead::default(),
            asked: Traffic::default(),
            taken: 0,
            answered: 0,
        };
        if made.rebuild.is_some() {
            made.runner.wake(0, Timer::Rebuild);
        }
        Ok(made)
    }

    /// What each member was handed; a journal is the last.
    pub fn members(&self) -> impl Iterator<Item = Traffic> + '_ {
        self.runner.members.iter().map(|member| member.handed)
    }

    /// What it has done so far, in looks at columns, at waiting requests, and in events: a measure
    /// of its work that does not depend on the machine.
    pub fn steps(&self) -> u64 {
        self.turns.steps + self.runner.steps()
    }

    /// Plans `wanted` at `now`.
    fn plan(&mut self, now: u64, wanted: &Wanted) -> Plan {
        let mut plan = self.runner.plan();
        let Self { map, stripes, runner, settings, .. } = self;
        let reserved = settings.protection.reserved_bytes();
        let mut choose =
            |places: &[Place], _| choose(runner, settings.read_balance, reserved, now, places);
        map.plan(wanted, &mut choose, stripes, &mut plan);
        if self.map.parity().is_none() {
            match wanted.op {
                Op::Read => assert_eq!(plan.bytes(Op::Read), wanted.bytes, "each byte once"),
                Op::Write => {
                    assert!(plan.bytes(Op::Write) >= wanted.bytes, "each byte at least once");
                }
                Op::Trim | Op::Flush => {}
            }
        }
        if wanted.op == Op::Write {
            let wakes = self.guard.before(&self.map, wanted, &mut plan);
            if let (true, false, Protection::Bitmap { delay_ns, .. }) =
                (wakes, self.is_waking, self.settings.protection)
            {
                self.is_waking = true;
                self.runner.wake(now + delay_ns, Timer::Unmark);
            }
        }
        if reserved > 0 {
            plan.shift(reserved, &[Stage::Fetch, Stage::Store]);
        }
        plan
    }

    /// Takes in a request at the current time.
    fn take_in(&mut self, ticket: u64, wanted: Wanted) {
        let asker = Asker { ticket, arrived: self.runner.now() };
        if self.memory.is_some() && self.by_memory(asker, wanted) {
            self.pump();
        } else if self.is_journalled() && wanted.op == Op::Flush {
            // What was answered is in the log, and the log was flushed.
            self.runner.answer(self.runner.now(), asker);
        } else {
            self.work(Work::Request(asker, wanted));
        }
    }

    fn is_journalled(&self) -> bool {
        matches!(self.settings.protection, Protection::Journal { .. })
    }

    /// What a write takes of the room in memory: bytes, or columns of the journal.
    fn cost(&self, wanted: &Wanted) -> u64 {
        match self.map.parity().filter(|_| self.is_journalled()) {
            Some(parity) => parity
                .columns(wanted.offset, wanted.bytes)
                .map(|columns| columns.end - columns.start)
                .sum(),
            None => wanted.bytes,
        }
    }

    /// Whether memory deals with a request.
    fn by_memory(&mut self, asker: Asker, wanted: Wanted) -> bool {
        let cost = self.cost(&wanted);
        let memory = self.memory.as_mut().expect("there is one");
        match wanted.op {
            Op::Write => {
                if memory.take(asker, wanted, cost) {
                    self.answer_from_memory(asker, &wanted);
                }
                true
            }
            Op::Read if memory.holds(&wanted) => {
                self.answer_from_memory(asker, &wanted);
                true
            }
            Op::Flush => {
                self.answer_from_memory(asker, &wanted);
                true
            }
            Op::Read | Op::Trim => false,
        }
    }

    /// Answers what memory has taken in, holds, or need not hand down.
    fn answer_from_memory(&mut self, asker: Asker, wanted: &Wanted) {
        let now = self.runner.now();
        match &self.settings.controller {
            Some(controller) => {
                let through = self.runner.cross(wanted.bytes);
                self.runner.answer(through + controller.cache_ns, asker);
            }
            None if wanted.op == Op::Read => self.runner.answer(now, asker),
            None => {
                let mut plan = self.runner.plan();
                self.guard.log_data(wanted.bytes, wanted.op == Op::Flush, &mut plan);
                self.runner.start(plan, Order::of(asker, Stage::Secure, Purpose::Upkeep));
                if !self.is_waking {
                    self.is_waking = true;
                    self.runner.wake(now + RECLAIM_NS, Timer::WriteBack);
                }
            }
        }
    }

    /// Lets memory write as much as it may.
    fn pump(&mut self) {
        while let Some(wanted) = self.memory.as_mut().and_then(Memory::destage) {
            self.work(Work::Destage(wanted));
        }
    }

    /// Does `work`, or lets it wait for its columns.
    fn work(&mut self, work: Work) {
        let Self { map, turns, rebuild, .. } = self;
        match (work, map.parity()) {
            (Work::Rebuild, Some(_)) => {
                let next = rebuild.as_ref().and_then(Progress::next);
                let columns = next.map(|(place, bytes)| {
                    let end = (place.offset + bytes).div_ceil(COLUMN_BYTES);
                    place.offset / COLUMN_BYTES..end
                });
                // md makes them one by one: they never wait for this much room at once.
                turns.ask(columns.into_iter(), false, work);
            }
            (Work::Request(_, wanted) | Work::Destage(wanted), Some(parity))
                if parity.holds(&map.health, &wanted) =>
            {
                turns.ask(parity.columns(wanted.offset, wanted.bytes), true, work);
            }
            _ => {
                self.start(work, None);
            }
        }
        self.start_what_may();
    }

    /// Starts everything whose turn it is.
    fn start_what_may(&mut self) {
        while let Some((turn, work)) = self.turns.start() {
            self.start(work, Some(turn));
        }
    }

    fn start(&mut self, work: Work, turn: Option<u32>) {
        let now = self.runner.now();
        let (plan, order) = match work {
            Work::Request(asker, wanted) => {
                let order = Order::of(asker, Stage::Store, Purpose::Request);
                (self.plan(now, &wanted), Order { computes: self.computes(&wanted), ..order })
            }
            Work::Destage(wanted) => {
                let order = Order::own(Purpose::Destage);
                (self.plan(now, &wanted), Order { computes: self.computes(&wanted), ..order })
            }
            Work::Rebuild => {
                let mut plan = self.runner.plan();
                let (place, bytes) =
                    self.rebuild.as_ref().and_then(Progress::next).expect("it is not at its end");
                self.map.rebuild(place, bytes, &mut plan);
                let reserved = self.settings.protection.reserved_bytes();
                plan.shift(reserved, &[Stage::Fetch, Stage::Store]);
                self.rebuild_began = now;
                let computes = self.map.parity().map_or(0, |_| bytes / COLUMN_BYTES);
                (plan, Order { computes, ..Order::own(Purpose::Rebuild) })
            }
        };
        let job = self.runner.start(plan, Order { turn, ..order });
        if let Work::Destage(wanted) = work {
            self.destages.insert(job, wanted);
        }
    }

    /// The columns whose parity a request works out.
    fn computes(&self, wanted: &Wanted) -> u64 {
        match self.map.parity() {
            Some(parity) if self.settings.parity_ns_per_column > 0 => {
                if !parity.holds(&self.map.health, wanted) {
                    return 0;
                }
                let columns = parity.columns(wanted.offset, wanted.bytes);
                columns.map(|columns| columns.end - columns.start).sum()
            }
            _ => 0,
        }
    }

    /// Goes on until the next completion, at most to `until`.
    fn advance(&mut self, until: u64) -> Option<(u64, u64, Path)> {
        while let Some((at, happened)) = self.runner.step(until) {
            match happened {
                Happened::Acknowledged(ticket, path) => {
                    self.answered += 1;
                    assert!(self.answered <= self.taken, "more is answered than was asked");
                    return Some((at, ticket, path));
                }
                Happened::Finished(job, order) => self.finished(at, job, order),
                Happened::Woke(Timer::Rebuild) => self.work(Work::Rebuild),
                Happened::Woke(Timer::WriteBack) => {
                    self.is_waking = false;
                    if let Some(memory) = self.memory.as_mut() {
                        memory.all_due();
                    }
                    self.pump();
                }
                Happened::Woke(Timer::Unmark) => self.unmark(at),
            }
        }
        None
    }

    fn finished(&mut self, at: u64, job: u32, order: Order) {
        if let Some(turn) = order.turn {
            self.turns.release(turn);
        }
        match order.purpose {
            Purpose::Destage => {
                let wanted = self.destages.remove(&job).expect("memory writes it");
                let cost = self.cost(&wanted);
                let memory = self.memory.as_mut().expect("there is one");
                memory.destaged(&wanted, cost);
                while let Some((asker, wanted)) = self.memory.as_mut().and_then(Memory::admit) {
                    self.answer_from_memory(asker, &wanted);
                }
                self.pump();
            }
            Purpose::Rebuild => {
                let is_idle = self.taken == self.answered;
                let progress = self.rebuild.as_mut().expect("it made a step");
                let next = progress.done(at, self.rebuild_began, self.taken, is_idle);
                self.map.health = progress.health(self.map.health.lost);
                if progress.next().is_some() {
                    self.runner.wake(next, Timer::Rebuild);
                }
            }
            Purpose::Request | Purpose::Upkeep => {}
        }
        self.start_what_may();
        if self.runner.is_idle() {
            assert!(self.turns.is_idle(), "what waits for columns is woken");
        }
    }

    /// A look at the bitmap.
    fn unmark(&mut self, at: u64) {
        let Protection::Bitmap { delay_ns, .. } = self.settings.protection else { return };
        let mut plan = self.runner.plan();
        self.is_waking = self.guard.look(&self.map, &mut plan);
        if self.is_waking {
            self.runner.wake(at + delay_ns, Timer::Unmark);
        }
        self.runner.start(plan, Order::own(Purpose::Upkeep));
    }

    fn count(&mut self, request: &Request) -> Wanted {
        self.taken += 1;
        let bytes = if request.op == Op::Flush { 0 } else { u64::from(request.len) };
        self.asked.add(request.op, bytes);
        Wanted { op: request.op, offset: request.offset.0, bytes }
    }
}

/// Columns that may be in work at a time.
fn most_columns(settings: &Settings) -> u64 {
    match settings.stripe_cache {
        0 => u64::MAX >> 2,
        columns => columns as u64,
    }
}

/// Which of the copies at `places` is read at `now`; data start `reserved` bytes into members.
fn choose(
    runner: &mut Runner,
    balance: ReadBalance,
    reserved: u64,
    now: u64,
    places: &[Place],
) -> usize {
    let away = |place: &Place| runner.members[place.member].head.abs_diff(place.offset + reserved);
    if let Some(stays) = places.iter().position(|place| away(place) == 0) {
        return stays;
    }
    match balance {
        ReadBalance::LeastPending => runner.least_pending(now, places),
        ReadBalance::NearestHead => {
            let nearest = (0..places.len()).min_by_key(|index| away(&places[*index]));
            nearest.expect("a copy is left")
        }
    }
}
