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

mod gate;
mod lru;
pub mod map;
pub mod parity;
pub mod plan;
mod runner;
mod settings;
pub mod stripes;

use std::collections::VecDeque;
use std::ops::Range;

use model::queued::{self, Ahead};
use model::{Counter, Device, Queued};
use trace::{Op, Request, Trace};
use units::{Bytes, Nanos};

pub use gate::Controller;
pub use map::Unfit;
pub use runner::Traffic;
pub use settings::{COLUMN_BYTES, Copies, Level, MOST_MEMBERS, ReadBalance, Settings, Update};

use map::{Map, Place, Wanted};
use plan::{Plan, Stage};
use runner::{Happened, Order, Purpose, Runner};
use stripes::Stripes;

/// A volume over devices.
pub struct Volume {
    map: Map,
    read_balance: ReadBalance,
    stripes: Stripes,
    runner: Runner,
    /// Every request is one round of members that do not look at their queue.
    is_direct: bool,
    /// Requests whose columns somebody else works on.
    waiting: VecDeque<(u64, Wanted)>,
    completed: VecDeque<(u64, u64)>,
    ahead: Ahead,
    asked: Traffic,
    taken: u64,
    answered: u64,
}

impl Volume {
    /// A volume of `members` as `settings` say.
    ///
    /// # Errors
    /// Where the members make no such volume.
    pub fn new(members: Vec<Box<dyn Device>>, settings: &Settings) -> Result<Self, Unfit> {
        let capacities: Vec<_> =
            members.iter().map(|member| member.capacity().map(|bytes| bytes.0)).collect();
        let map = Map::new(settings, &capacities)?;
        let runner = Runner::new(members, None);
        Ok(Self {
            is_direct: map.parity().is_none() && !runner.any_queued(),
            map,
            read_balance: settings.read_balance,
            stripes: Stripes::new(settings.stripe_cache),
            runner,
            waiting: VecDeque::new(),
            completed: VecDeque::new(),
            ahead: Ahead::default(),
            asked: Traffic::default(),
            taken: 0,
            answered: 0,
        })
    }

    /// What each member was handed.
    pub fn members(&self) -> impl Iterator<Item = Traffic> + '_ {
        self.runner.members.iter().map(|member| member.handed)
    }

    /// Plans `wanted` at `now`.
    fn plan(&mut self, now: u64, wanted: &Wanted) -> Plan {
        let mut plan = self.runner.plan();
        let Self { map, stripes, runner, read_balance, .. } = self;
        let mut choose = |places: &[Place], _| choose(runner, *read_balance, now, places);
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
        plan
    }

    /// Takes in a request at the current time.
    fn take_in(&mut self, ticket: u64, wanted: Wanted) {
        if !self.try_start(ticket, &wanted) {
            self.waiting.push_back((ticket, wanted));
        }
    }

    /// Starts `wanted` unless somebody works on its columns.
    fn try_start(&mut self, ticket: u64, wanted: &Wanted) -> bool {
        let &Wanted { op, offset, bytes } = wanted;
        let parity = self.map.parity().filter(|parity| match op {
            Op::Write => true,
            Op::Read => parity.needs_lost(&self.map.health, offset, bytes),
            Op::Trim | Op::Flush => false,
        });
        let is_held = |columns: Range<u64>| self.stripes.is_held(&columns);
        if parity.is_some_and(|parity| parity.columns(offset, bytes).any(is_held)) {
            return false;
        }
        let holds = parity.is_some();
        let plan = self.plan(self.runner.now(), wanted);
        let order =
            Order { ticket: Some(ticket), acknowledged: Stage::Store, purpose: Purpose::Request };
        let job = self.runner.start(plan, order);
        if holds {
            let Self { map, stripes, .. } = self;
            let parity = map.parity().expect("it holds columns");
            parity.columns(offset, bytes).for_each(|columns| stripes.hold(columns, job));
        }
        true
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
                Happened::Finished(job, _) => {
                    self.stripes.release(job);
                    self.retry();
                }
                Happened::Woke(_) => {}
            }
        }
        None
    }

    /// Starts what waited for columns, in order.
    fn retry(&mut self) {
        for _ in 0..self.waiting.len() {
            let (ticket, wanted) = self.waiting.pop_front().expect("it was counted");
            self.take_in(ticket, wanted);
        }
    }

    fn count(&mut self, request: &Request) -> Wanted {
        self.taken += 1;
        let bytes = if request.op == Op::Flush { 0 } else { u64::from(request.len) };
        self.asked.add(request.op, bytes);
        Wanted { op: request.op, offset: request.offset.0, bytes }
    }
}

/// Which of the copies at `places` is read at `now`.
fn choose(runner: &mut Runner, balance: ReadBalance, now: u64, places: &[Place]) -> usize {
    let head = |place: &Place| runner.members[place.member].head;
    if let Some(stays) = places.iter().position(|place| head(place) == place.offset) {
        return stays;
    }
    match balance {
        ReadBalance::LeastPending => runner.least_pending(now, places),
        ReadBalance::NearestHead => {
            let nearest = places
                .iter()
                .zip(0..)
                .min_by_key(|(place, index)| (head(place).abs_diff(place.offset), *index));
            nearest.expect("a copy is left").1
        }
    }
}

impl Queued for Volume {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        while let Some(found) = self.advance(now.0) {
            self.completed.push_back(found);
        }
        let wanted = self.count(request);
        self.take_in(ticket, wanted);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        let found = self.completed.pop_front().or_else(|| self.advance(until.0));
        found.map(|(at, ticket)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let kept = self.completed.front().map(|(at, _)| *at);
        kept.or_else(|| self.runner.next_event()).map(Nanos)
    }
}

impl Device for Volume {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        if !self.is_direct {
            return queued::submit(self, now, request);
        }
        let wanted = self.count(request);
        let mut plan = self.plan(now.0, &wanted);
        let at = self.runner.submit(now.0, &plan);
        plan.clear();
        self.runner.put_back(plan);
        self.answered += 1;
        Nanos(at)
    }

    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        if self.is_direct {
            assert_eq!(range.len(), completions.len(), "one completion per request");
            for (index, completion) in range.zip(completions) {
                let request = trace.request(index);
                *completion = self.submit(request.due, &request).0;
            }
            return;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        queued::submit_due(self, &mut ahead, trace, range, completions);
        self.ahead = ahead;
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        if self.is_direct { None } else { Some(self) }
    }

    fn capacity(&self) -> Option<Bytes> {
        self.map.capacity().map(Bytes)
    }

    fn counters(&self) -> Vec<Counter> {
        let sum = |of: fn(&Traffic) -> u64| self.members().map(|member| of(&member)).sum();
        let mut all = vec![
            Counter { name: "volume_reads", value: self.asked.reads },
            Counter { name: "volume_read_bytes", value: self.asked.read_bytes },
            Counter { name: "volume_writes", value: self.asked.writes },
            Counter { name: "volume_write_bytes", value: self.asked.write_bytes },
            Counter { name: "volume_flushes", value: self.asked.flushes },
            Counter { name: "member_reads", value: sum(|traffic| traffic.reads) },
            Counter { name: "member_read_bytes", value: sum(|traffic| traffic.read_bytes) },
            Counter { name: "member_writes", value: sum(|traffic| traffic.writes) },
            Counter { name: "member_write_bytes", value: sum(|traffic| traffic.write_bytes) },
            Counter { name: "member_flushes", value: sum(|traffic| traffic.flushes) },
        ];
        for counter in self.runner.members.iter().flat_map(|member| member.device.counters()) {
            match all.iter_mut().skip(10).find(|known| known.name == counter.name) {
                Some(known) => known.value += counter.value,
                None => all.push(counter),
            }
        }
        all
    }
}
