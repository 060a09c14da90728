//! Completely fair queueing: each process has the disk for a slice of time.
//!
//! Kernel 2.6.32, block/cfq-iosched.c. A queue per process for synchronous requests, one for each
//! priority for the others. The queue whose turn it is dispatches for its slice, which starts with
//! its first completion, in a one-way elevator; when it runs empty the disk idles for `slice_idle`,
//! if the process comes back soon enough. A queue that had its slice goes behind those that wait;
//! what it left of a slice, or took too much, counts next time. Synchronous requests do not wait
//! for a slice of others, and at most one of these is at the device beside them.
//!
//! Not modelled: queues of processes that work close together and are merged, the classes real-time
//! and idle, control groups.

use std::collections::BTreeSet;

use serde::Deserialize;
use units::{Bytes, Nanos};

use super::elevator::{Backward, Sorted, nearer};
use super::habit::Habit;
use super::policy::Policy;
use super::pool::{Entry, Id, Pool};
use super::time::ms;

/// `[scheduler.cfq]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Requests of one queue at the device.
    pub quantum: u32,
    /// How long a synchronous request waits before it goes first in its queue.
    pub fifo_expire_sync: Nanos,
    /// How long another waits.
    pub fifo_expire_async: Nanos,
    /// Slice of a process of priority 4.
    pub slice_sync: Nanos,
    /// Slice of requests that nobody waits for.
    pub slice_async: Nanos,
    /// Requests of that slice at priority 7, half of them.
    pub slice_async_rq: u32,
    /// How long the disk waits for the next request of a process; 0 for never.
    pub slice_idle: Nanos,
    /// Largest step back.
    pub back_seek_max: Bytes,
    /// A step back counts as this many steps forward.
    pub back_seek_penalty: u64,
    /// Whether requests that nobody waits for are let in slowly behind synchronous ones.
    pub low_latency: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quantum: 4,
            fifo_expire_sync: ms(125),
            fifo_expire_async: ms(250),
            slice_sync: ms(100),
            slice_async: ms(40),
            slice_async_rq: 2,
            slice_idle: ms(8),
            back_seek_max: Bytes(16 << 20),
            back_seek_penalty: 2,
            low_latency: true,
        }
    }
}

/// Best-effort priorities.
const PRIORITIES: u32 = 8;
/// Idle time for a process that seeks (`CFQ_MIN_TT`), ns.
const SEEKY_IDLE_NS: u64 = 2_000_000;
/// Mean seek of such a process (`CIC_SEEK_THR`: 8192 sectors).
const SEEKY_BYTES: u64 = 8192 << 9;
/// Weight of a mean that is trusted (`sample_valid`).
const VALID_WEIGHT: u64 = 80;
/// Requests at once from which on a device has a queue (`CFQ_HW_QUEUE_MIN`), and how often it is
/// looked.
const QUEUE_MIN: u32 = 5;
const QUEUE_SAMPLES: u32 = 50;
/// Shortest slice that is left to a queue that exceeded it, ns: one tick of the kernel.
const TICK_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Queue {
    sorted: Sorted,
    sync: bool,
    priority: u32,
    next: Option<Id>,
    /// Its place among those that wait, while it has requests.
    key: Option<i64>,
    at_device: u32,
    /// When its slice ends; `None` before its first completion.
    slice_end: Option<u64>,
    dispatched: u32,
    /// The oldest of this slice was looked at.
    looked: bool,
    must_dispatch: bool,
    left_ns: i64,
    idles: bool,
    habit: Habit,
}

/// The state of CFQ.
#[derive(Debug)]
pub(super) struct Cfq {
    settings: Settings,
    rotational: bool,
    priorities: Vec<u32>,
    /// The first [`PRIORITIES`] are those of requests that nobody waits for.
    queues: Vec<Queue>,
    tree: BTreeSet<(i64, usize)>,
    active: Option<usize>,
    idle_until: Option<u64>,
    /// Behind the last dispatched request.
    head: u64,
    /// Others and synchronous requests at the device.
    at_device: [u32; 2],
    waiting: u32,
    last_sync_end: u64,
    has_queue: bool,
    peak: u32,
    samples: u32,
}

impl Cfq {
    pub fn new(settings: &Settings, priorities: &[u32], rotational: bool) -> Self {
        let queue = |priority| Queue { priority, ..Queue::default() };
        Self {
            settings: settings.clone(),
            rotational,
            priorities: priorities.to_vec(),
            queues: (0..PRIORITIES).map(queue).collect(),
            tree: BTreeSet::new(),
            active: None,
            idle_until: None,
            head: 0,
            at_device: [0; 2],
            waiting: 0,
            last_sync_end: 0,
            has_queue: true,
            peak: 0,
            samples: 0,
        }
    }

    /// The queue of a request.
    fn place(&mut self, entry: &Entry) -> usize {
        let priority_of = |stream: usize| self.priorities.get(stream).copied().unwrap_or(4);
        if !entry.sync {
            return priority_of(usize::from(entry.stream)) as usize;
        }
        let place = PRIORITIES as usize + usize::from(entry.stream);
        for stream in self.queues.len() - PRIORITIES as usize..=usize::from(entry.stream) {
            let priority = priority_of(stream);
            self.queues.push(Queue { sync: true, idles: true, priority, ..Queue::default() });
        }
        place
    }

    fn backward(&self) -> Backward {
        let Settings { back_seek_max, back_seek_penalty: penalty, .. } = self.settings;
        Backward { most_bytes: back_seek_max.0, penalty }
    }

    fn slice_ns(&self, sync: bool, priority: u32) -> i64 {
        let base = if sync { self.settings.slice_sync.0 } else { self.settings.slice_async.0 };
        base as i64 + base as i64 / 5 * (4 - i64::from(priority))
    }

    fn slice_is_used(&self, at: usize, now: u64) -> bool {
        self.queues[at].slice_end.is_some_and(|end| now >= end)
    }

    /// Puts a queue behind those that had less, or in front of all.
    fn line_up(&mut self, at: usize, now: u64, in_front: bool) {
        let own = &self.queues[at];
        let key = if in_front {
            self.tree.first().map_or(0, |(key, _)| *key) - 1_000_000_000
        } else {
            let others = self.tree.len() - usize::from(own.key.is_some());
            let most = self.slice_ns(true, 0);
            let offset = others as i64 * (most - self.slice_ns(own.sync, own.priority));
            now as i64 + offset - own.left_ns
        };
        let own = &mut self.queues[at];
        if let Some(old) = own.key.replace(key) {
            self.tree.remove(&(old, at));
        }
        if !in_front {
            own.left_ns = 0;
        }
        self.tree.insert((key, at));
    }

    /// The active queue has no turn any more; `timed_out`: it used its slice, or gave it up.
    fn expire(&mut self, now: u64, timed_out: bool) {
        let Some(at) = self.active.take() else { return };
        self.idle_until = None;
        let own = &mut self.queues[at];
        if timed_out && let Some(end) = own.slice_end {
            own.left_ns = end as i64 - now as i64;
        }
        if own.key.is_some() {
            self.line_up(at, now, false);
        }
    }

    fn activate(&mut self, at: usize) {
        let own = &mut self.queues[at];
        (own.slice_end, own.dispatched) = (None, 0);
        (own.looked, own.must_dispatch) = (false, false);
        self.active = Some(at);
        self.idle_until = None;
    }

    /// Whose turn it is; `None` where nobody may dispatch.
    fn select(&mut self, now: u64) -> Option<usize> {
        if let Some(at) = self.active {
            let own = &self.queues[at];
            let is_over = self.slice_is_used(at, now) && !own.must_dispatch;
            if !is_over {
                if !own.sorted.is_empty() {
                    return Some(at);
                }
                if self.idle_until.is_some() || (own.at_device > 0 && own.idles) {
                    return None;
                }
            }
            self.expire(now, false);
        }
        let (_, at) = *self.tree.first()?;
        self.activate(at);
        Some(at)
    }

    /// Requests of queue `at` that may be at the device.
    fn most_at_device(&self, at: usize, now: u64) -> u32 {
        let own = &self.queues[at];
        let mut most = self.settings.quantum;
        if own.at_device >= most {
            if self.tree.len() > 1 {
                return 0;
            }
            most *= 4;
        }
        if !own.sync && self.settings.low_latency {
            let slices = (now - self.last_sync_end) / self.settings.slice_sync.0.max(1);
            let ramp = u32::try_from(slices).unwrap_or(u32::MAX);
            most = most.min(if ramp == 0 && own.at_device == 0 { 1 } else { ramp });
        }
        most
    }

    fn take(&mut self, at: usize, now: u64, pool: &mut Pool) -> Id {
        let backward = self.backward();
        let own = &mut self.queues[at];
        let oldest = own.sorted.oldest().filter(|id| pool[*id].expires <= now && !own.looked);
        own.looked = true;
        let id = oldest.or(own.next).expect("it has requests");
        self.head = pool[id].end;
        own.next = own.sorted.beside(id, self.head, backward, pool);
        own.sorted.remove(id, pool);
        own.at_device += 1;
        own.dispatched += 1;
        own.must_dispatch = false;
        self.at_device[usize::from(own.sync)] += 1;
        self.waiting -= 1;
        if own.sorted.is_empty()
            && let Some(key) = own.key.take()
        {
            self.tree.remove(&(key, at));
        }
        id
    }

    /// What a process does, and whether the disk shall wait for it.
    fn learn(&mut self, at: usize, now: u64, start: u64, end: u64) {
        let idle_ns = self.settings.slice_idle.0;
        let is_shallow = self.settings.low_latency || !self.has_queue;
        let own = &mut self.queues[at];
        let since = own.habit.ended.map_or(0, |ended| now - ended);
        own.habit.think.add(since.min(2 * idle_ns));
        if own.habit.position == 0 {
            own.habit.position = start;
        }
        own.habit.add_seek(start);
        own.habit.position = end;
        if idle_ns == 0 || (!is_shallow && own.is_seeky()) {
            own.idles = false;
        } else if own.habit.think.weight() > VALID_WEIGHT {
            own.idles = own.habit.think.value <= idle_ns;
        }
    }

    /// Whether a request of queue `at` ends the turn of the active one.
    fn preempts(&self, at: usize, now: u64) -> bool {
        let Some(active) = self.active else { return false };
        self.slice_is_used(active, now) || (self.queues[at].sync && !self.queues[active].sync)
    }

    /// Starts to wait for the next request of the active queue, where that pays.
    fn idle(&mut self, at: usize, now: u64) {
        let own = &self.queues[at];
        let in_driver = self.at_device[0] + self.at_device[1];
        if (!self.rotational && self.has_queue) || !own.idles || in_driver > 0 {
            return;
        }
        let think = own.habit.think;
        let left = own.slice_end.map_or(0, |end| end.saturating_sub(now));
        if think.weight() > VALID_WEIGHT && left < think.value {
            return;
        }
        let seeky = own.habit.seek.weight() > VALID_WEIGHT && own.is_seeky();
        let idle_ns = self.settings.slice_idle.0;
        self.idle_until = Some(now + if seeky { idle_ns.min(SEEKY_IDLE_NS) } else { idle_ns });
    }

    /// Whether the device takes several requests at once, as seen.
    fn look_at_depth(&mut self) {
        let in_driver = self.at_device[0] + self.at_device[1];
        self.peak = self.peak.max(in_driver);
        if self.waiting <= QUEUE_MIN && in_driver <= QUEUE_MIN {
            return;
        }
        self.samples += 1;
        if self.samples > QUEUE_SAMPLES {
            self.has_queue = self.peak >= QUEUE_MIN;
            (self.samples, self.peak) = (0, 0);
        }
    }
}

impl Queue {
    fn is_seeky(&self) -> bool {
        self.habit.seek.value > SEEKY_BYTES
    }
}

impl Policy for Cfq {
    fn enqueue(&mut self, now: u64, id: Id, pool: &mut Pool) {
        let at = self.place(&pool[id]);
        let (backward, head) = (self.backward(), self.head);
        let own = &mut self.queues[at];
        let expire =
            if own.sync { self.settings.fifo_expire_sync } else { self.settings.fifo_expire_async };
        pool[id].expires = now + expire.0;
        own.sorted.insert(id, pool);
        own.next = nearer(Some(id), own.next, head, backward, pool);
        self.waiting += 1;
        if self.queues[at].key.is_none() {
            self.line_up(at, now, false);
        }
        if self.queues[at].sync {
            self.learn(at, now, pool[id].start, pool[id].end);
        }
        if self.active == Some(at) {
            // What is due together was merged before; there is no more to wait for.
            if self.idle_until.take().is_some() {
                self.queues[at].must_dispatch = true;
            }
        } else if self.preempts(at, now) {
            self.expire(now, true);
            self.line_up(at, now, true);
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
        let at = self.select(now)?;
        let own = &self.queues[at];
        // The device is drained of what nobody waits for before a process has it, and the reverse.
        if (own.idles && self.at_device[0] > 0) || (!own.sync && self.at_device[1] > 0) {
            return None;
        }
        if own.at_device >= self.most_at_device(at, now) {
            return None;
        }
        let id = self.take(at, now, pool);
        let own = &self.queues[at];
        let base = self.settings.slice_async_rq;
        let most = 2 * (base + base * (PRIORITIES - 1 - own.priority));
        if self.tree.len() > 1 && !own.sync && own.dispatched >= most {
            self.queues[at].slice_end = Some(now + TICK_NS);
            self.expire(now, false);
        }
        Some(id)
    }

    fn completed(&mut self, now: u64, id: Id, pool: &Pool) {
        self.look_at_depth();
        let at = self.place(&pool[id]);
        let sync = self.queues[at].sync;
        self.at_device[usize::from(sync)] -= 1;
        self.queues[at].at_device -= 1;
        if sync {
            self.queues[at].habit.ended = Some(now);
            self.last_sync_end = now;
        }
        if self.active != Some(at) {
            return;
        }
        if self.queues[at].slice_end.is_none() {
            let slice = self.slice_ns(sync, self.queues[at].priority);
            self.queues[at].slice_end = Some(now + slice as u64);
        }
        if self.slice_is_used(at, now) {
            self.expire(now, true);
        } else if self.queues[at].sorted.is_empty() && sync {
            self.idle(at, now);
        }
    }

    fn next_timer(&self) -> Option<u64> {
        self.idle_until
    }

    fn timer(&mut self, now: u64, _pool: &Pool) {
        self.idle_until = None;
        let Some(at) = self.active else { return };
        let own = &self.queues[at];
        if own.must_dispatch {
            return;
        }
        // It keeps the disk where nobody else wants it.
        let is_over = self.slice_is_used(at, now);
        if is_over || (!self.tree.is_empty() && own.sorted.is_empty()) {
            self.expire(now, false);
        }
    }
}
