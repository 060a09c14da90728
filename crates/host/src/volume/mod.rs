//! Volumes: several members as one device, as md or a RAID controller makes them.
//!
//! [`map`] says which requests of members a request becomes, [`Volume`] runs them over devices. The
//! rules are those of md in Linux (drivers/md/raid{0,1,5,10}.c); what is left out: plugging across
//! requests, the raid5d thread's turns, md's limit of columns in work.
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
mod memory;
pub mod parity;
pub mod plan;
mod protection;
mod rebuild;
mod runner;
mod settings;
mod spec;
pub mod stripes;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use model::Device;
use model::queued::Ahead;
use trace::{Op, Request};

pub use runner::Traffic;
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
use runner::{Happened, Order, Purpose, Runner, Timer};
use stripes::Stripes;

/// The journal's stripes are written when it is that long since the first of them came
/// (`R5C_RECLAIM_WAKEUP_INTERVAL`, raid5-cache.c).
const RECLAIM_NS: u64 = 30_000_000_000;

/// What waits for columns.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A request.
    Request(u64, Wanted),
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
    /// What is to be done in columns that somebody else works on.
    waiting: VecDeque<Work>,
    /// What memory is writing, by job.
    destages: BTreeMap<u32, Wanted>,
    /// A look at the bitmap, or at the journal, is to come.
    is_waking: bool,
    completed: VecDeque<(u64, u64)>,
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
        let runner = Runner::new(members, settings.controller.as_ref().map(Gate::new));
        let is_plain = map.parity().is_none()
            && settings.protection == Protection::None
            && settings.controller.is_none()
            && settings.rebuild.is_none();
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
            waiting: VecDeque::new(),
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
        if self.memory.is_some() && self.by_memory(ticket, wanted) {
            self.pump();
        } else if self.is_journalled() && wanted.op == Op::Flush {
            // What was answered is in the log, and the log was flushed.
            self.runner.answer(self.runner.now(), ticket);
        } else {
            self.work(Work::Request(ticket, wanted));
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
    fn by_memory(&mut self, ticket: u64, wanted: Wanted) -> bool {
        let cost = self.cost(&wanted);
        let memory = self.memory.as_mut().expect("there is one");
        match wanted.op {
            Op::Write => {
                if memory.take(ticket, wanted, cost) {
                    self.answer_from_memory(ticket, &wanted);
                }
                true
            }
            Op::Read if memory.holds(&wanted) => {
                self.answer_from_memory(ticket, &wanted);
                true
            }
            Op::Flush => {
                self.answer_from_memory(ticket, &wanted);
                true
            }
            Op::Read | Op::Trim => false,
        }
    }

    /// Answers what memory has taken in, holds, or need not hand down.
    fn answer_from_memory(&mut self, ticket: u64, wanted: &Wanted) {
        let now = self.runner.now();
        match &self.settings.controller {
            Some(controller) => self.runner.answer(now + controller.cache_ns, ticket),
            None if wanted.op == Op::Read => self.runner.answer(now, ticket),
            None => {
                let mut plan = self.runner.plan();
                self.guard.log_data(wanted.bytes, wanted.op == Op::Flush, &mut plan);
                let (ticket, acknowledged) = (Some(ticket), Stage::Secure);
                let order = Order { ticket, acknowledged, purpose: Purpose::Upkeep };
                self.runner.start(plan, order);
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
        if !self.try_start(work) {
            self.waiting.push_back(work);
        }
    }

    /// The columns that `work` needs for itself.
    fn columns(&self, work: &Work) -> Columns {
        let Some(parity) = self.map.parity() else { return Columns::None };
        match *work {
            Work::Request(_, wanted) | Work::Destage(wanted) => {
                let Wanted { op, offset, bytes } = wanted;
                let holds = match op {
                    Op::Write => true,
                    Op::Read => parity.needs_lost(&self.map.health, offset, bytes),
                    Op::Trim | Op::Flush => false,
                };
                if holds { Columns::Of(offset, bytes) } else { Columns::None }
            }
            Work::Rebuild => {
                let next = self.rebuild.as_ref().and_then(Progress::next);
                next.map_or(Columns::None, |(place, bytes)| {
                    let end = (place.offset + bytes).div_ceil(COLUMN_BYTES);
                    Columns::Range(place.offset / COLUMN_BYTES..end)
                })
            }
        }
    }

    /// Starts `work` unless somebody works on its columns.
    fn try_start(&mut self, work: Work) -> bool {
        let columns = self.columns(&work);
        let is_held = |columns: Range<u64>| self.stripes.is_held(&columns);
        let is_taken = match (&columns, self.map.parity()) {
            (Columns::Of(offset, bytes), Some(parity)) => {
                parity.columns(*offset, *bytes).any(is_held)
            }
            (Columns::Range(range), _) => is_held(range.clone()),
            _ => false,
        };
        if is_taken {
            return false;
        }
        let job = self.start(work);
        match columns {
            Columns::None => {}
            Columns::Range(range) => self.stripes.hold(range, job),
            Columns::Of(offset, bytes) => {
                let Self { map, stripes, .. } = self;
                let parity = map.parity().expect("it has columns");
                parity.columns(offset, bytes).for_each(|columns| stripes.hold(columns, job));
            }
        }
        true
    }

    fn start(&mut self, work: Work) -> u32 {
        let now = self.runner.now();
        let acknowledged = Stage::Store;
        match work {
            Work::Request(ticket, wanted) => {
                let plan = self.plan(now, &wanted);
                let (ticket, purpose) = (Some(ticket), Purpose::Request);
                self.runner.start(plan, Order { ticket, acknowledged, purpose })
            }
            Work::Destage(wanted) => {
                let plan = self.plan(now, &wanted);
                let (ticket, purpose) = (None, Purpose::Destage);
                let job = self.runner.start(plan, Order { ticket, acknowledged, purpose });
                self.destages.insert(job, wanted);
                job
            }
            Work::Rebuild => {
                let mut plan = self.runner.plan();
                let (place, bytes) =
                    self.rebuild.as_ref().and_then(Progress::next).expect("it is not at its end");
                self.map.rebuild(place, bytes, &mut plan);
                let reserved = self.settings.protection.reserved_bytes();
                plan.shift(reserved, &[Stage::Fetch, Stage::Store]);
                self.rebuild_began = now;
                let (ticket, purpose) = (None, Purpose::Rebuild);
                self.runner.start(plan, Order { ticket, acknowledged, purpose })
            }
        }
    }

    /// Goes on until the next completion, at most to `until`.
    fn advance(&mut self, until: u64) -> Option<(u64, u64)> {
        while let Some((at, happened)) = self.runner.step(until) {
            match happened {
                Happened::Acknowledged(ticket) => {
                    self.answered += 1;
                    assert!(self.answered <= self.taken, "more is answered than was asked");
                    return Some((at, ticket));
                }
                Happened::Finished(job, purpose) => self.finished(at, job, purpose),
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

    fn finished(&mut self, at: u64, job: u32, purpose: Purpose) {
        self.stripes.release(job);
        match purpose {
            Purpose::Destage => {
                let wanted = self.destages.remove(&job).expect("memory writes it");
                let cost = self.cost(&wanted);
                let memory = self.memory.as_mut().expect("there is one");
                memory.destaged(&wanted, cost);
                while let Some((ticket, wanted)) = self.memory.as_mut().and_then(Memory::admit) {
                    self.answer_from_memory(ticket, &wanted);
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
        // What waited for columns goes first come, first served.
        for _ in 0..self.waiting.len() {
            let work = self.waiting.pop_front().expect("it was counted");
            self.work(work);
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
        let (ticket, acknowledged) = (None, Stage::Store);
        self.runner.start(plan, Order { ticket, acknowledged, purpose: Purpose::Upkeep });
    }

    fn count(&mut self, request: &Request) -> Wanted {
        self.taken += 1;
        let bytes = if request.op == Op::Flush { 0 } else { u64::from(request.len) };
        self.asked.add(request.op, bytes);
        Wanted { op: request.op, offset: request.offset.0, bytes }
    }
}

/// Columns that nobody else may work on.
enum Columns {
    None,
    /// Those of a range of the volume: offset and length.
    Of(u64, u64),
    /// These.
    Range(Range<u64>),
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
