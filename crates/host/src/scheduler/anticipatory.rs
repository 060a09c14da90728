//! Anticipatory scheduling: after a read, the disk waits a moment for the next one near it.
//!
//! S. Iyer and P. Druschel, "Anticipatory scheduling: a disk scheduling framework to overcome
//! deceptive idleness in synchronous I/O" (SOSP 2001), as in kernel 2.6.32, block/as-iosched.c.
//! Batches of synchronous and of other requests take turns, each in a one-way elevator, and a batch
//! ends before the other begins at the device. Behind a synchronous request the scheduler holds
//! back all but requests of the same process or near it, until the request completes and for
//! `antic_expire` more, if the process is known to come back that soon.
//!
//! Not modelled: processes that end (a trace does not say), and so the chance that they do.

use serde::Deserialize;
use units::Nanos;

use super::elevator::{Backward, Sorted, nearer};
use super::habit::Habit;
use super::policy::Policy;
use super::pool::{Id, Pool};
use super::time::ms;

/// `[scheduler.anticipatory]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long a synchronous request waits before it goes first.
    pub read_expire: Nanos,
    /// How long another waits before it goes first.
    pub write_expire: Nanos,
    /// Length of a batch of synchronous requests while others wait.
    pub read_batch_expire: Nanos,
    /// Length of a batch of others.
    pub write_batch_expire: Nanos,
    /// How long it waits for the next request of a process; 0 for never.
    pub antic_expire: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            read_expire: ms(125),
            write_expire: ms(250),
            read_batch_expire: ms(500),
            write_batch_expire: ms(125),
            antic_expire: ms(6),
        }
    }
}

/// Largest step back (`MAXBACK`: 1,048,576 sectors), and its cost.
const BACKWARD: Backward = Backward { most_bytes: 1_048_576 << 9, penalty: 2 };
/// Think time that counts at most (`MAX_THINKTIME`), ns.
const MOST_THINK_NS: u64 = 20_000_000;
/// How near a request of another process is, right behind the last one (8192 sectors).
const CLOSE_BYTES: u64 = 8192 << 9;
/// The kernel's clock in this rule: the distance that is near doubles each millisecond.
const TICK_NS: u64 = 1_000_000;

const ASYNC: usize = 0;
const SYNC: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    No,
    /// For the completion of the last request.
    ForCompletion,
    /// For the next request of the process.
    ForRequest,
    /// No more: the next request goes, whosever it is.
    Over,
}

#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    /// What the elevator takes next.
    next: Option<Id>,
    /// Behind the last request.
    head: u64,
    expire_ns: u64,
    batch_ns: u64,
    /// When it was last looked whether the oldest has expired.
    looked_at: u64,
}

/// One process.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    habit: Habit,
    queued: u32,
    has_started: bool,
}

/// The state of anticipatory scheduling.
#[derive(Debug)]
pub(super) struct Anticipatory {
    antic_ns: u64,
    directions: [Direction; 2],
    processes: Vec<Process>,
    direction: usize,
    batch_until: u64,
    /// The direction has changed and the device is not drained yet.
    has_changed: bool,
    /// No request of the new synchronous batch has completed.
    is_new: bool,
    at_device: u32,
    writes_of_batch: u64,
    writes_left: u64,
    write_batch_idled: bool,
    waiting: Waiting,
    /// Whose request went last, if synchronous.
    last: Option<u16>,
    last_completed: bool,
    /// When it completed.
    since: u64,
    /// Think times and seeks of processes when they begin.
    beginners: (u64, u64),
}

impl Anticipatory {
    pub fn new(settings: &Settings) -> Self {
        let expire = [settings.write_expire.0, settings.read_expire.0];
        let batch = [settings.write_batch_expire.0, settings.read_batch_expire.0];
        let direction = |at: usize| Direction {
            expire_ns: expire[at],
            batch_ns: batch[at],
            ..Direction::default()
        };
        Self {
            antic_ns: settings.antic_expire.0,
            directions: [direction(ASYNC), direction(SYNC)],
            processes: Vec::new(),
            direction: SYNC,
            batch_until: batch[SYNC],
            has_changed: false,
            is_new: false,
            at_device: 0,
            // One in ten milliseconds to begin with.
            writes_of_batch: (batch[ASYNC] / 10_000_000).max(2),
            writes_left: 0,
            write_batch_idled: false,
            waiting: Waiting::No,
            last: None,
            last_completed: false,
            since: 0,
            beginners: (0, 0),
        }
    }

    fn process(&mut self, stream: u16) -> &mut Process {
        let place = usize::from(stream);
        if self.processes.len() <= place {
            self.processes.resize(place + 1, Process::default());
        }
        &mut self.processes[place]
    }

    /// Learns from a synchronous request of `stream`.
    fn learn(&mut self, now: u64, stream: u16, start: u64, end: u64) {
        let mut beginners = self.beginners;
        let process = self.process(stream);
        if process.has_started {
            let think_ns = match process.habit.ended {
                Some(ended) if process.queued == 0 => (now - ended).min(MOST_THINK_NS - TICK_NS),
                _ => 0,
            };
            if !process.habit.think.is_known() {
                beginners.0 = (7 * beginners.0 + think_ns) / 8;
                beginners.1 = (7 * beginners.1 + start.abs_diff(process.habit.position)) / 8;
            }
            process.habit.think.add(think_ns);
            process.habit.add_seek(start);
        }
        process.habit.position = end;
        process.has_started = true;
        self.beginners = beginners;
    }

    /// Whether a request from `start` is as near as one of the process would be.
    fn is_close(&self, now: u64, start: u64, habit: &Habit) -> bool {
        let waited = self.waiting != Waiting::No && self.last_completed;
        let delay = if waited { (now - self.since) / TICK_NS } else { 0 };
        if delay * TICK_NS > self.antic_ns || delay > 20 {
            return true;
        }
        let near = CLOSE_BYTES << delay;
        let head = self.directions[self.direction].head;
        if head <= start.saturating_add(near / 2) && start <= head.saturating_add(near) {
            return true;
        }
        let usual = if habit.seek.is_known() { habit.seek.value } else { self.beginners.1 };
        usual > head.abs_diff(start)
    }

    /// Whether to go on with `next` rather than wait for the process of the last request.
    fn may_go_on(&mut self, now: u64, next: Option<Id>, pool: &Pool) -> bool {
        let Some(last) = self.last else { return true };
        if next.is_some_and(|id| pool[id].stream == last && pool[id].sync) {
            return true;
        }
        if self.last_completed && now >= self.since + self.antic_ns {
            return true;
        }
        let Process { habit, queued, .. } = *self.process(last);
        if queued > 0 {
            return true;
        }
        if let Some(id) = next
            && pool[id].sync
            && self.is_close(now, pool[id].start, &habit)
        {
            // Their requests are near each other: that is now what the process does.
            self.learn(now, last, pool[id].start, pool[id].end);
            return true;
        }
        let think_ns = if habit.think.is_known() { habit.think.value } else { self.beginners.0 };
        think_ns > self.antic_ns
    }

    /// Whether it waits for the process of the last request instead of going on with `next`.
    fn waits(&mut self, now: u64, next: Option<Id>, pool: &Pool) -> bool {
        let over = self.last.is_none() || self.waiting == Waiting::Over;
        if over || self.may_go_on(now, next, pool) {
            return false;
        }
        self.waiting =
            if self.last_completed { Waiting::ForRequest } else { Waiting::ForCompletion };
        true
    }

    fn batch_is_over(&self, now: u64) -> bool {
        if self.has_changed || self.is_new {
            return false;
        }
        now > self.batch_until || (self.direction == ASYNC && self.writes_left == 0)
    }

    /// The oldest of the direction, if it has expired; looked at now and then only.
    fn expired(&mut self, now: u64, pool: &Pool) -> Option<Id> {
        let own = &mut self.directions[self.direction];
        if now - own.looked_at < own.expire_ns {
            return None;
        }
        own.looked_at = now;
        own.sorted.oldest().filter(|id| now > pool[*id].expires)
    }

    /// Begins a batch of the other direction, or starts this one at its oldest request.
    fn turn(&mut self, now: u64) -> Option<Id> {
        let [writes, reads] = [ASYNC, SYNC].map(|at| !self.directions[at].sorted.is_empty());
        let was = self.direction;
        if reads && !(writes && was == SYNC) {
            self.has_changed |= was == ASYNC;
            self.direction = SYNC;
        } else if writes {
            if was == SYNC {
                self.has_changed = true;
                self.is_new = false;
            }
            self.direction = ASYNC;
            self.writes_left = self.writes_of_batch;
            self.write_batch_idled = false;
        } else {
            return None;
        }
        let own = &mut self.directions[self.direction];
        own.looked_at = now;
        own.sorted.oldest()
    }

    fn take(&mut self, id: Id, pool: &mut Pool) {
        let (end, stream, sync) = (pool[id].end, pool[id].stream, pool[id].sync);
        self.waiting = Waiting::No;
        if sync {
            self.last = Some(stream);
            self.process(stream).queued -= 1;
        } else {
            self.last = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.last_completed = false;
        let own = &mut self.directions[usize::from(sync)];
        own.head = end;
        own.next = own.sorted.beside(id, end, BACKWARD, pool);
        own.sorted.remove(id, pool);
        self.at_device += 1;
    }

    /// The device is drained of the other direction.
    fn begin_batch(&mut self) {
        self.is_new = self.direction == SYNC;
        self.has_changed = false;
    }

    /// Makes write batches as long as `write_batch_expire` allows.
    fn tune(&mut self, now: u64) {
        let batch_ns = self.directions[ASYNC].batch_ns;
        let took_ns = (now + batch_ns).saturating_sub(self.batch_until);
        if took_ns > batch_ns && !self.write_batch_idled {
            if took_ns > batch_ns * 3 {
                self.writes_of_batch /= 2;
            } else {
                self.writes_of_batch -= 1;
            }
        } else if took_ns < batch_ns && self.writes_left == 0 {
            if batch_ns > took_ns * 3 {
                self.writes_of_batch *= 2;
            } else {
                self.writes_of_batch += 1;
            }
        }
        self.writes_of_batch = self.writes_of_batch.clamp(1, 1 << 20);
    }

    /// What the running batch goes on with; `Err` where all wait.
    fn go_on(&mut self, now: u64, pool: &Pool) -> Result<Option<Id>, Held> {
        let [writes, reads] = [ASYNC, SYNC].map(|at| !self.directions[at].sorted.is_empty());
        if reads && writes && self.batch_is_over(now) {
            return Ok(None);
        }
        let next = self.directions[self.direction].next;
        if self.direction == SYNC && self.antic_ns > 0 {
            if let Some(id) = self.expired(now, pool) {
                return Ok(Some(id));
            }
            if self.waits(now, next, pool) {
                return Err(Held);
            }
        }
        if next.is_some() && reads && !writes {
            self.batch_until = now + self.directions[SYNC].batch_ns;
        }
        Ok(next)
    }
}

/// Everything waits.
struct Held;

impl Policy for Anticipatory {
    fn enqueue(&mut self, now: u64, id: Id, pool: &mut Pool) {
        let (start, end, stream, sync) =
            (pool[id].start, pool[id].end, pool[id].stream, pool[id].sync);
        if sync {
            self.learn(now, stream, start, end);
            self.process(stream).queued += 1;
        }
        let own = &mut self.directions[usize::from(sync)];
        pool[id].expires = now + own.expire_ns;
        own.sorted.insert(id, pool);
        own.next = nearer(Some(id), own.next, own.head, BACKWARD, pool);
        if matches!(self.waiting, Waiting::ForCompletion | Waiting::ForRequest)
            && self.may_go_on(now, Some(id), pool)
        {
            self.waiting = Waiting::Over;
        }
    }

    fn moved(&mut self, id: Id, old_start: u64, pool: &Pool) {
        let own = &mut self.directions[usize::from(pool[id].sync)];
        own.sorted.moved(id, old_start, pool);
        own.next = nearer(Some(id), own.next, own.head, BACKWARD, pool);
    }

    fn dispatch(&mut self, now: u64, pool: &mut Pool) -> Option<Id> {
        let [writes, reads] = [ASYNC, SYNC].map(|at| !self.directions[at].sorted.is_empty());
        if self.direction == ASYNC && !reads && (self.writes_left == 0 || !writes) {
            self.write_batch_idled = true;
        }
        let waits = matches!(self.waiting, Waiting::ForCompletion | Waiting::ForRequest);
        if !(reads || writes) || waits || self.has_changed {
            return None;
        }
        let mut id = match self.go_on(now, pool) {
            Err(Held) => return None,
            Ok(Some(id)) => id,
            Ok(None) => self.turn(now)?,
        };
        if let Some(expired) = self.expired(now, pool) {
            id = expired;
        }
        if self.has_changed {
            if self.at_device > 0 {
                return None;
            }
            // The clock of a synchronous batch starts with its first completion.
            if self.direction == ASYNC {
                self.batch_until = now + self.directions[ASYNC].batch_ns;
            }
            self.begin_batch();
        }
        self.take(id, pool);
        Some(id)
    }

    fn completed(&mut self, now: u64, id: Id, pool: &Pool) {
        let entry = &pool[id];
        if self.has_changed && self.at_device == 1 {
            self.batch_until = now + self.directions[self.direction].batch_ns;
            self.begin_batch();
        }
        self.at_device -= 1;
        if self.is_new && entry.sync && self.direction == SYNC {
            // Measured from here, so that what a cache of the device held is paid by who wrote it.
            self.tune(now);
            self.batch_until = now + self.directions[SYNC].batch_ns;
            self.is_new = false;
        }
        if entry.sync && self.last == Some(entry.stream) {
            self.since = now;
            self.last_completed = true;
            if self.waiting == Waiting::ForCompletion {
                self.waiting = Waiting::ForRequest;
            }
        }
        if entry.sync {
            self.process(entry.stream).habit.ended = Some(now);
        }
    }

    fn next_timer(&self) -> Option<u64> {
        (self.waiting == Waiting::ForRequest).then_some(self.since + self.antic_ns)
    }

    fn timer(&mut self, _now: u64, _pool: &Pool) {
        self.waiting = Waiting::Over;
    }
}
