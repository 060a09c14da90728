//! Budget fair queueing: each process has the device for a budget of sectors.
//!
//! P. Valente and F. Checconi, "High throughput disk scheduling with fair bandwidth distribution"
//! (IEEE Transactions on Computers 59(9), 2010), as in block/bfq-iosched.c and bfq-wf2q.c of
//! kernel 5.x. B-WF2Q+: a queue that gets the device at virtual time V with budget B and weight w
//! has start S and finish F = S + B / w; among those with S <= V the smallest F is next. V advances
//! by the service of all over their weight, and a queue is charged what it got when it gives the
//! device up: its budget is used, it is empty, or `timeout` is over. Its next budget follows why.
//!
//! Not modelled: `low_latency` (weights that are raised for interactive and for soft real-time
//! processes), queues that are merged, requests of others injected while a queue idles, limits on
//! tags, and the estimate of the peak rate: `max_budget` is that of the kernel before its first
//! estimate.

use serde::Deserialize;
use units::{Bytes, Nanos};

use super::elevator::{Backward, Sorted, nearer};
use super::habit::Habit;
use super::policy::Policy;
use super::pool::{Entry, Id, Pool};
use super::time::ms;

/// `[scheduler.bfq]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Largest budget, in sectors of 512 bytes.
    pub max_budget: u64,
    /// How long a queue has the device at most.
    pub timeout: Nanos,
    /// How long the device waits for the next request of a process; 0 for never.
    pub slice_idle: Nanos,
    /// How long a synchronous request waits before it goes first in its queue.
    pub fifo_expire_sync: Nanos,
    /// How long another waits.
    pub fifo_expire_async: Nanos,
    /// Largest step back.
    pub back_seek_max: Bytes,
    /// A step back counts as this many steps forward.
    pub back_seek_penalty: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_budget: 16 * 1024,
            timeout: ms(125),
            slice_idle: ms(8),
            fifo_expire_sync: ms(125),
            fifo_expire_async: ms(250),
            back_seek_max: Bytes(16 << 20),
            back_seek_penalty: 2,
        }
    }
}

/// Best-effort priorities; a weight is ten for each of them below.
const PRIORITIES: u32 = 8;
const WEIGHT: u64 = 10;
/// A budget is at least this part of the largest.
const MIN_BUDGET: u64 = 32;
/// Requests that nobody waits for are charged so often (`bfq_async_charge_factor`).
const ASYNC_CHARGE: u64 = 3;
/// Idle time for a process that seeks (`BFQ_MIN_TT`), ns.
const SEEKY_IDLE_NS: u64 = 2_000_000;
/// Mean seek of such a process (`BFQQ_SEEK_THR`: 100 sectors, here as a mean).
const SEEKY_BYTES: u64 = 100 << 9;
/// Weight of a mean that is trusted.
const VALID_WEIGHT: u64 = 80;
/// A device that holds more has a queue (`BFQ_HW_QUEUE_THRESHOLD`).
const QUEUE_MIN: u32 = 3;
/// Virtual time of one sector at weight one.
const SECTOR_TIME: u128 = 1 << 22;

/// Why a queue gives the device up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    TooIdle,
    Timeout,
    Exhausted,
    NoMoreRequests,
}

#[derive(Debug, Default)]
struct Queue {
    sorted: Sorted,
    next: Option<Id>,
    sync: bool,
    weight: u64,
    start: u128,
    finish: u128,
    /// It has requests, or the device.
    is_busy: bool,
    budget: u64,
    next_budget: u64,
    served: u64,
    at_device: u32,
    looked: bool,
    /// When it has had the device for long enough.
    until: Option<u64>,
    habit: Habit,
}

/// The state of BFQ.
#[derive(Debug)]
pub(super) struct Bfq {
    settings: Settings,
    rotational: bool,
    has_queue: bool,
    priorities: Vec<u32>,
    /// The first [`PRIORITIES`] are those of requests that nobody waits for.
    queues: Vec<Queue>,
    active: Option<usize>,
    idle_until: Option<u64>,
    virtual_time: u128,
    /// Of the busy queues.
    weights: u64,
    head: u64,
}

fn sectors(entry: &Entry) -> u64 {
    entry.bytes().div_ceil(512)
}

impl Queue {
    fn time_of(&self, sectors: u64) -> u128 {
        u128::from(sectors) * SECTOR_TIME / u128::from(self.weight)
    }

    fn charge(&self, sectors: u64) -> u64 {
        if self.sync { sectors } else { sectors * ASYNC_CHARGE }
    }

    fn is_seeky(&self) -> bool {
        self.habit.seek.value > SEEKY_BYTES
    }
}

impl Bfq {
    pub fn new(settings: &Settings, priorities: &[u32], rotational: bool, depth: u32) -> Self {
        let mut bfq = Self {
            settings: settings.clone(),
            rotational,
            has_queue: depth > QUEUE_MIN,
            priorities: priorities.to_vec(),
            queues: Vec::new(),
            active: None,
            idle_until: None,
            virtual_time: 0,
            weights: 0,
            head: 0,
        };
        (0..PRIORITIES).for_each(|priority| bfq.add_queue(priority, false));
        bfq
    }

    fn add_queue(&mut self, priority: u32, sync: bool) {
        let most = self.settings.max_budget;
        let next_budget = if sync { most * 2 / 3 } else { most };
        let weight = u64::from(PRIORITIES - priority) * WEIGHT;
        self.queues.push(Queue { sync, weight, next_budget, ..Queue::default() });
    }

    /// The queue of a request.
    fn place(&mut self, entry: &Entry) -> usize {
        let stream = usize::from(entry.stream);
        if !entry.sync {
            return self.priorities.get(stream).copied().unwrap_or(4) as usize;
        }
        let place = PRIORITIES as usize + stream;
        while self.queues.len() <= place {
            let stream = self.queues.len() - PRIORITIES as usize;
            self.add_queue(self.priorities.get(stream).copied().unwrap_or(4), true);
        }
        place
    }

    fn backward(&self) -> Backward {
        let Settings { back_seek_max, back_seek_penalty: penalty, .. } = self.settings;
        Backward { most_bytes: back_seek_max.0, penalty }
    }

    /// Gives a queue its next budget and the times that follow from it.
    fn line_up(&mut self, at: usize, start: u128, pool: &Pool) {
        let own = &mut self.queues[at];
        let first = own.next.map_or(0, |id| own.charge(sectors(&pool[id])));
        own.budget = own.next_budget.max(first);
        own.served = 0;
        own.start = start;
        own.finish = start + own.time_of(own.budget);
    }

    /// The active queue gives the device up.
    fn expire(&mut self, reason: Reason, pool: &Pool) {
        let Some(at) = self.active.take() else { return };
        self.idle_until = None;
        let most = self.settings.max_budget;
        let least = (most / MIN_BUDGET).max(1);
        let own = &mut self.queues[at];
        if own.sync {
            let last = own.next_budget;
            own.next_budget = match reason {
                Reason::TooIdle if own.at_device > 0 => (last * 2).min(most),
                Reason::TooIdle if last > 5 * least => last - 4 * least,
                Reason::TooIdle => least,
                Reason::Timeout => (last * 2).min(most),
                Reason::Exhausted => (last * 4).min(most),
                Reason::NoMoreRequests => own.served.max(least),
            };
        }
        own.until = None;
        own.finish = own.start + own.time_of(own.served);
        let start = own.finish;
        if own.sorted.is_empty() {
            own.is_busy = false;
            self.weights -= own.weight;
        } else {
            self.line_up(at, start, pool);
        }
    }

    /// The queue that B-WF2Q+ serves next.
    fn choose(&mut self) -> Option<usize> {
        let busy = || self.queues.iter().enumerate().filter(|(_, own)| own.is_busy);
        let first = busy().map(|(_, own)| own.start).min()?;
        self.virtual_time = self.virtual_time.max(first);
        let now = self.virtual_time;
        let eligible = busy().filter(|(_, own)| own.start <= now);
        eligible.min_by_key(|(at, own)| (own.finish, *at)).map(|(at, _)| at)
    }

    /// Whose turn it is; `None` where nobody may dispatch.
    fn select(&mut self, now: u64, pool: &Pool) -> Option<usize> {
        if let Some(at) = self.active {
            let own = &self.queues[at];
            let next = own.next.map(|id| own.charge(sectors(&pool[id])));
            let reason = match next {
                _ if own.until.is_some_and(|until| now >= until) => Reason::Timeout,
                Some(charge) if own.served + charge > own.budget => Reason::Exhausted,
                Some(_) => return Some(at),
                None if self.idle_until.is_some() => return None,
                None if own.at_device > 0 && self.idles(at) => return None,
                None => Reason::NoMoreRequests,
            };
            self.expire(reason, pool);
        }
        let at = self.choose()?;
        self.active = Some(at);
        self.queues[at].looked = false;
        Some(at)
    }

    /// Whether the device waits for the next request of a queue rather than serve another one.
    fn idles(&self, at: usize) -> bool {
        let own = &self.queues[at];
        let idle_ns = self.settings.slice_idle.0;
        let think = own.habit.think;
        let comes_back = think.weight() <= VALID_WEIGHT || think.value <= idle_ns;
        let mut busy = self.queues.iter().filter(|other| other.is_busy);
        // One with a larger weight loses it where others fill the device meanwhile.
        let keeps_weight = busy.any(|other| other.weight != own.weight);
        let saves_seeks = self.rotational && (!self.has_queue || !own.is_seeky());
        idle_ns > 0 && own.sync && comes_back && (saves_seeks || keeps_weight)
    }

    fn take(&mut self, at: usize, now: u64, pool: &mut Pool) -> Id {
        let backward = self.backward();
        let own = &mut self.queues[at];
        let oldest = own.sorted.oldest().filter(|id| pool[*id].expires <= now && !own.looked);
        own.looked = true;
        let charge_of = |own: &Queue, id: Id| own.charge(sectors(&pool[id]));
        // One that has expired goes first only within the budget.
        let oldest = oldest.filter(|id| own.served + charge_of(own, *id) <= own.budget);
        let id = oldest.or(own.next).expect("it has requests");
        let charge = charge_of(own, id);
        own.served += charge;
        own.until = own.until.or(Some(now + self.settings.timeout.0));
        self.head = pool[id].end;
        own.next = own.sorted.beside(id, self.head, backward, pool);
        own.sorted.remove(id, pool);
        own.at_device += 1;
        self.virtual_time += u128::from(charge) * SECTOR_TIME / u128::from(self.weights);
        id
    }

    fn learn(&mut self, at: usize, now: u64, start: u64, end: u64) {
        let most = 2 * self.settings.slice_idle.0;
        let own = &mut self.queues[at];
        let since = own.habit.ended.map_or(0, |ended| now - ended);
        own.habit.think.add(since.min(most));
        if own.habit.position == 0 {
            own.habit.position = start;
        }
        own.habit.add_seek(start);
        own.habit.position = end;
    }
}

impl Policy for Bfq {
    fn enqueue(&mut self, now: u64, id: Id, pool: &mut Pool) {
        let at = self.place(&pool[id]);
        let (backward, head) = (self.backward(), self.head);
        let own = &mut self.queues[at];
        let expire =
            if own.sync { self.settings.fifo_expire_sync } else { self.settings.fifo_expire_async };
        pool[id].expires = now + expire.0;
        own.sorted.insert(id, pool);
        own.next = nearer(Some(id), own.next, head, backward, pool);
        if !own.is_busy {
            own.is_busy = true;
            self.weights += own.weight;
            let start = own.finish.max(self.virtual_time);
            self.line_up(at, start, pool);
        }
        if self.queues[at].sync {
            self.learn(at, now, pool[id].start, pool[id].end);
        }
        if self.active == Some(at) {
            self.idle_until = None;
        }
    }

    fn moved(&mut self, id: Id, old_start: u64, pool: &Pool) {
        let at = self.place(&pool[id]);
        let (backward, head) = (self.backward(), self.head);
        let own = &mut self.queues[at];
        own.sorted.moved(id, old_start, pool);
        own.next = nearer(Some(id), own.next, head, backward, pool);
    }

    fn dispatch(&mut self, now: u64, pool: &mut Pool) -> Option<Id> {
        let at = self.select(now, pool)?;
        Some(self.take(at, now, pool))
    }

    fn completed(&mut self, now: u64, id: Id, pool: &Pool) {
        let at = self.place(&pool[id]);
        let own = &mut self.queues[at];
        own.at_device -= 1;
        if own.sync {
            own.habit.ended = Some(now);
        }
        let is_empty = own.sorted.is_empty();
        let at_device = own.at_device;
        if self.active != Some(at) {
            return;
        }
        if !is_empty || at_device > 0 {
            return;
        }
        if self.idles(at) {
            let own = &self.queues[at];
            let seeky = own.habit.seek.weight() > VALID_WEIGHT && own.is_seeky();
            let weights = self.queues.iter().filter(|other| other.is_busy);
            let symmetric = weights.map(|other| other.weight).all(|weight| weight == own.weight);
            let idle_ns = self.settings.slice_idle.0;
            let idle_ns = if seeky && symmetric { idle_ns.min(SEEKY_IDLE_NS) } else { idle_ns };
            self.idle_until = Some(now + idle_ns);
        } else {
            self.expire(Reason::NoMoreRequests, pool);
        }
    }

    fn next_timer(&self) -> Option<u64> {
        self.idle_until
    }

    fn timer(&mut self, _now: u64, pool: &Pool) {
        self.expire(Reason::TooIdle, pool);
    }
}
