//! Terminals and their queues: who asks when, and which worker answers.
//!
//! A terminal is a few words of state, not a thread: its next request waits in a timer heap until
//! it is due (keying and think times), then in the first-in-first-out queue of its lane until a
//! worker takes it. Nobody polls: a worker without work sleeps on its lane's condition variable, at
//! most until the next request is due.
//!
//! Where readers and the writer must not overlap (rollback journals) the two queues are served in
//! the order of arrival, readers sharing and the writer alone: a fair gate, so that SQLite's own
//! locks are never met busy.
//!
//! Delivery is deferred (TPC-C 5.11 clause 2.7.2): the terminal goes on as soon as its request is
//! queued. The queue is bounded; past the bound the terminal waits for its delivery.
//!
//! Invariants: a terminal has one request at a time besides deferred deliveries; requests of one
//! lane start in the order in which they became due; the sequence of a terminal's requests does not
//! depend on timing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stats::Histogram;
use stats::rng::{Rng, at};
use virtual_time::World;

use crate::driver::{Lanes, Meter};
use crate::options::Load;
use crate::workload::{Kind, Source};

/// Requests that may wait in an open loop before arrivals are dropped.
const OPEN_QUEUE_MAX: usize = 1_000_000;

/// Longest sleep of a worker, so that it notices the end of the run.
const NAP: Duration = Duration::from_millis(50);

/// One request on its way to a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Who asked.
    pub terminal: u32,
    /// Sequence number of the request.
    pub sequence: u64,
    /// For what.
    pub kind: Kind,
    /// Intended start, ns since the start of the run.
    pub due_ns: u64,
    /// Whether the terminal waits for the answer.
    terminal_waits: bool,
    /// Order of arrival over both lanes.
    ticket: u64,
}

/// Which queue a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Write,
    Read,
}

/// What passes during a run.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The machine's, from this moment.
    Wall(Instant),
    /// That of a world whose workers the run's are.
    Virtual(Arc<World>),
}

impl Time {
    /// Nanoseconds since the start of the run.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Wall(start) => start.elapsed().as_nanos() as u64,
            Self::Virtual(world) => world.now_ns(),
        }
    }

    /// Lets others do first what they do earlier.
    fn settle(&self) {
        if let Self::Virtual(world) = self {
            world.settle();
        }
    }
}

/// The time of a run; points count nanoseconds from its start.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub time: Time,
    /// Submissions of deliveries due before are not timed.
    pub measure_from_ns: u64,
    /// No request starts after it.
    pub end_ns: u64,
}

/// What the queues have seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueCounts {
    pub deliveries_queued: u64,
    pub backpressured: u64,
    pub dropped: u64,
    pub submit_ns: Histogram,
    /// How late arrivals of an open loop were queued although a worker was free: the clock's own
    /// error, not the waiting for a worker.
    pub schedule_error_ns: Histogram,
}

/// The terminals and both queues.
pub(crate) struct Users {
    source: Source,
    load: Load,
    lanes: Lanes,
    arrivals_seed: u64,
    clock: Clock,
    deferred_max: usize,
    state: Mutex<State>,
    write_wanted: Condvar,
    read_wanted: Condvar,
}

struct State {
    /// Next request number and kind of each terminal.
    terminals: Vec<(u64, Kind)>,
    /// When terminals ask next; in an open loop the one entry is the next arrival.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    write: VecDeque<Job>,
    read: VecDeque<Job>,
    tickets: u64,
    deferred: usize,
    readers_active: usize,
    writers_active: usize,
    write_sleepers: usize,
    read_sleepers: usize,
    /// Whether a sleeper wakes when the next request is due.
    timekeeper: bool,
    arrivals: u64,
    /// Since when at least one worker has waited for something to do; see [`Users::admit`].
    idle_from_ns: Option<u64>,
    /// Arrivals of an open loop that were dropped, by kind: how long before the planned end they
    /// were due.
    dropped_before_end: Vec<Histogram>,
    stopped: bool,
    counts: QueueCounts,
}

impl Users {
    /// `users` terminals, of which none asks for work after the clock's end.
    pub fn new(source: Source, users: u32, load: Load, lanes: Lanes, clock: Clock) -> Self {
        let arrivals_seed = at(0x6172_7269_7661_6c73, source.kind(0, 0).1.next_u64());
        let terminals = (0..users).map(|terminal| (0, source.kind(terminal, 0).0)).collect();
        let state = State {
            terminals,
            timers: BinaryHeap::with_capacity(users as usize),
            write: VecDeque::with_capacity(users as usize),
            read: VecDeque::with_capacity(users as usize),
            tickets: 0,
            deferred: 0,
            readers_active: 0,
            writers_active: 0,
            write_sleepers: 0,
            read_sleepers: 0,
            timekeeper: false,
            arrivals: 0,
            idle_from_ns: None,
            dropped_before_end: vec![Histogram::new(); source.dataset().workload().codes()],
            stopped: false,
            counts: QueueCounts::default(),
        };
        let users_ = Self {
            deferred_max: (4 * users as usize).max(64),
            source,
            load,
            lanes,
            arrivals_seed,
            clock,
            state: Mutex::new(state),
            write_wanted: Condvar::new(),
            read_wanted: Condvar::new(),
        };
        users_.first_requests(users);
        users_
    }

    /// Without think time everybody asks at once; with it the first requests are spread evenly over
    /// a mean cycle, or all terminals would move in step for minutes.
    fn first_requests(&self, users: u32) {
        let mut state = self.lock();
        match self.load {
            Load::Closed { think } => {
                for terminal in 0..users {
                    let kind = state.terminals[terminal as usize].1;
                    let cycle_s = think * (kind.keying_s() + kind.think_mean_s());
                    let unit = self.source.kind(terminal, u64::MAX / 4).1.unit();
                    let due = (unit * cycle_s * 1e9) as u64;
                    state.timers.push(Reverse((due, terminal)));
                }
            }
            Load::Open { rate } => {
                let first = self.next_arrival(0, 0, rate.0);
                state.timers.push(Reverse((first, 0)));
            }
        }
    }

    /// When the arrival after one at `due_ns` is due.
    fn next_arrival(&self, due_ns: u64, arrival: u64, rate: f64) -> u64 {
        let gap = Rng::new(at(self.arrivals_seed, arrival)).exponential(1.0);
        self.source.next_arrival(due_ns, gap, rate)
    }

    /// Nanoseconds since the start of the run.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.time.now_ns()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked is reported by its own join; the queues stay usable to stop the
        // others.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request for a worker of a lane; `None` once the run is over. The meter
    /// does not count the worker's sleep.
    pub fn next(&self, lane: Lane, meter: &Meter) -> Option<Job> {
        self.clock.time.settle();
        let mut state = self.lock();
        loop {
            let now = self.now_ns();
            if state.stopped || now >= self.clock.end_ns {
                return None;
            }
            self.admit(&mut state, now, false);
            if let Some(job) = self.take(&mut state, lane) {
                if state.write_sleepers + state.read_sleepers == 0 {
                    state.idle_from_ns = None;
                }
                self.appoint(&state);
                return Some(job);
            }
            state.idle_from_ns.get_or_insert(now);
            if let Time::Virtual(world) = &self.clock.time {
                let due = state.timers.peek().map_or(u64::MAX, |Reverse((due, _))| *due);
                drop(state);
                world.idle(due.min(now + NAP.as_nanos() as u64));
                state = self.lock();
                continue;
            }
            let keeps_time = !state.timekeeper;
            state.timekeeper = true;
            let until_due = state.timers.peek().filter(|_| keeps_time);
            let until_due = until_due.map_or(NAP, |Reverse((due, _))| {
                Duration::from_nanos(due.saturating_sub(now)).min(NAP)
            });
            let wanted = match lane {
                Lane::Write => &self.write_wanted,
                Lane::Read => &self.read_wanted,
            };
            *sleepers(&mut state, lane) += 1;
            state = meter.dbms(|| {
                wanted.wait_timeout(state, until_due).unwrap_or_else(PoisonError::into_inner).0
            });
            *sleepers(&mut state, lane) -= 1;
            if keeps_time {
                state.timekeeper = false;
            }
        }
    }

    /// Wakes a sleeper to keep the time where nobody does.
    fn appoint(&self, state: &State) {
        if state.timekeeper || state.timers.is_empty() {
            return;
        }
        if state.write_sleepers > 0 {
            self.write_wanted.notify_one();
        } else if state.read_sleepers > 0 {
            self.read_wanted.notify_one();
        }
    }

    /// Takes the head of a lane's queue, where the gate lets it start now.
    fn take(&self, state: &mut State, lane: Lane) -> Option<Job> {
        let ticket = |queue: &VecDeque<Job>| queue.front().map_or(u64::MAX, |job| job.ticket);
        let (write, read) = (ticket(&state.write), ticket(&state.read));
        let open = self.lanes.overlap
            || match lane {
                Lane::Write => write < read && state.readers_active + state.writers_active == 0,
                Lane::Read => read < write && state.writers_active == 0,
            };
        if !open {
            return None;
        }
        let (queue, active) = match lane {
            Lane::Write => (&mut state.write, &mut state.writers_active),
            Lane::Read => (&mut state.read, &mut state.readers_active),
        };
        let job = queue.pop_front()?;
        *active += 1;
        Some(job)
    }

    /// Moves everything that is due into the queues; `freed` says that a worker has just ended a
    /// request, which may let others start.
    fn admit(&self, state: &mut State, now: u64, freed: bool) {
        let mut news = freed;
        while let Some(&Reverse((due, terminal))) = state.timers.peek() {
            if due > now {
                break;
            }
            state.timers.pop();
            news = true;
            match self.load {
                Load::Closed { .. } => self.ask(state, terminal, due, now),
                Load::Open { rate } => self.arrive(state, due, now, rate.0),
            }
        }
        self.wake(state, news);
    }

    /// A terminal's request is due.
    fn ask(&self, state: &mut State, terminal: u32, due_ns: u64, now: u64) {
        let (sequence, kind) = state.terminals[terminal as usize];
        let waits = self.submit(state, (terminal, sequence, kind), due_ns, now);
        if !waits {
            self.think(state, terminal, now);
        }
    }

    /// A request arrives from outside: it goes to a terminal in turn, which does not wait for it.
    ///
    /// While all workers are busy nobody looks at the clock, and nobody is kept waiting by that: an
    /// arrival is late from the moment on at which it was due and a worker was free.
    fn arrive(&self, state: &mut State, due_ns: u64, now: u64, rate: f64) {
        state.arrivals += 1;
        if due_ns >= self.clock.measure_from_ns {
            let free_ns = state.idle_from_ns.unwrap_or(now);
            state.counts.schedule_error_ns.record(now.saturating_sub(free_ns.max(due_ns)));
        }
        state.timers.push(Reverse((self.next_arrival(due_ns, state.arrivals, rate), 0)));
        let terminal = (state.arrivals % state.terminals.len() as u64) as u32;
        if state.write.len() + state.read.len() >= OPEN_QUEUE_MAX {
            state.counts.dropped += 1;
            if due_ns >= self.clock.measure_from_ns {
                let code = state.terminals[terminal as usize].1.code();
                state.dropped_before_end[code].record(self.clock.end_ns.saturating_sub(due_ns));
            }
            return;
        }
        let (sequence, kind) = state.terminals[terminal as usize];
        self.submit(state, (terminal, sequence, kind), due_ns, now);
        let next = sequence + 1;
        state.terminals[terminal as usize] = (next, self.source.kind_at(terminal, next, now).0);
    }

    /// Queues a request; tells whether its terminal waits for the answer.
    fn submit(
        &self,
        state: &mut State,
        (terminal, sequence, kind): (u32, u64, Kind),
        due_ns: u64,
        now: u64,
    ) -> bool {
        let open_loop = matches!(self.load, Load::Open { .. });
        let mut terminal_waits = !open_loop;
        if kind == Kind::Delivery {
            state.counts.deliveries_queued += 1;
            state.deferred += 1;
            let room = state.deferred <= self.deferred_max;
            terminal_waits &= !room;
            state.counts.backpressured += u64::from(terminal_waits);
            if !terminal_waits && due_ns >= self.clock.measure_from_ns {
                state.counts.submit_ns.record(now - due_ns);
            }
        }
        state.tickets += 1;
        let ticket = state.tickets;
        let job = Job { terminal, sequence, kind, due_ns, terminal_waits, ticket };
        if kind.writes() || self.lanes.readers == 0 {
            state.write.push_back(job);
        } else {
            state.read.push_back(job);
        }
        terminal_waits
    }

    /// A terminal got its answer at `now`: it thinks, keys, and asks again.
    fn think(&self, state: &mut State, terminal: u32, now: u64) {
        let Load::Closed { think } = self.load else { return };
        let (sequence, kind) = state.terminals[terminal as usize];
        let (next_kind, mut rng) = self.source.kind_at(terminal, sequence + 1, now);
        state.terminals[terminal as usize] = (sequence + 1, next_kind);
        let due = if think > 0.0 {
            // Clause 5.2.5.4: exponential, cut at ten times the mean.
            let mean = kind.think_mean_s();
            let think_s = rng.exponential(mean).min(10.0 * mean);
            now + ((think_s + next_kind.keying_s()) * think * 1e9) as u64
        } else {
            now
        };
        state.timers.push(Reverse((due, terminal)));
    }

    /// A worker is done with a request.
    pub fn finish(&self, lane: Lane, job: &Job) {
        self.clock.time.settle();
        let mut state = self.lock();
        match lane {
            Lane::Write => state.writers_active -= 1,
            Lane::Read => state.readers_active -= 1,
        }
        if job.kind == Kind::Delivery {
            state.deferred -= 1;
        }
        let now = self.now_ns();
        if job.terminal_waits {
            self.think(&mut state, job.terminal, now);
        }
        self.admit(&mut state, now, true);
    }

    /// Wakes sleeping workers whose lane has something to do. In virtual time only where there is
    /// `news`: two workers without work would wake each other for ever, and time stood still.
    fn wake(&self, state: &State, news: bool) {
        if let (Time::Virtual(world), true) = (&self.clock.time, news) {
            world.wake();
        }
        if state.write_sleepers > 0 && !state.write.is_empty() {
            self.write_wanted.notify_one();
        }
        if state.read_sleepers > 0 && !state.read.is_empty() {
            self.read_wanted.notify_all();
        }
    }

    /// Requests that wait for a worker or are with one.
    pub fn in_flight(&self) -> u64 {
        let state = self.lock();
        let waiting = state.write.len() + state.read.len();
        (waiting + state.writers_active + state.readers_active) as u64
    }

    /// Ends the run: workers get nothing more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.write_wanted.notify_all();
        self.read_wanted.notify_all();
    }

    /// Whether the run was ended.
    pub fn stopped(&self) -> bool {
        self.lock().stopped
    }

    /// After the end of an open loop: what the requests that no worker took had waited by then, by
    /// the codes of their kinds. Dropped ones are among them, and those that were due while all
    /// workers were busy and nobody looked at the clock.
    pub fn unanswered(&self, rate: f64, measured_ns: Range<u64>) -> Vec<Histogram> {
        let mut state = self.lock();
        let state = &mut *state;
        let mut waited = vec![Histogram::new(); state.dropped_before_end.len()];
        let mut count = |kind: Kind, due_ns: u64| {
            if measured_ns.contains(&due_ns) {
                waited[kind.code()].record(measured_ns.end - due_ns);
            }
        };
        for job in state.write.iter().chain(&state.read) {
            count(job.kind, job.due_ns);
        }
        while let Some(&Reverse((due_ns, _))) = state.timers.peek()
            && due_ns < measured_ns.end
        {
            state.timers.pop();
            state.arrivals += 1;
            state.timers.push(Reverse((self.next_arrival(due_ns, state.arrivals, rate), 0)));
            let terminal = (state.arrivals % state.terminals.len() as u64) as u32;
            let (sequence, kind) = state.terminals[terminal as usize];
            count(kind, due_ns);
            let next = self.source.kind_at(terminal, sequence + 1, due_ns).0;
            state.terminals[terminal as usize] = (sequence + 1, next);
        }
        // Of a run that its user ended early: they were due that much less before its end.
        let early_ns = self.clock.end_ns.saturating_sub(measured_ns.end);
        for (waited, dropped) in waited.iter_mut().zip(&state.dropped_before_end) {
            for (ns, times) in dropped.buckets() {
                waited.record_n(ns.saturating_sub(early_ns), times);
            }
        }
        waited
    }

    /// What the queues have seen so far.
    pub fn counts(&self) -> QueueCounts {
        self.lock().counts.clone()
    }
}

fn sleepers(state: &mut State, lane: Lane) -> &mut usize {
    match lane {
        Lane::Write => &mut state.write_sleepers,
        Lane::Read => &mut state.read_sleepers,
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;
    use crate::workload::Dataset;
    use crate::workload::nurand::Constants;
    use crate::{Mix, Scale};

    fn users(mix: Mix, count: u32, load: Load, overlap: bool) -> Users {
        let source = Dataset::OrderEntry(Scale::new(2)).source(mix, 1, Constants::for_run(1, 0));
        let lanes = Lanes { writers: 1, readers: 1, overlap };
        let clock =
            Clock { time: Time::Wall(Instant::now()), measure_from_ns: 0, end_ns: u64::MAX };
        Users::new(source, count, load, lanes, clock)
    }

    fn queued(users: &Users) -> usize {
        let state = users.lock();
        state.write.len() + state.read.len()
    }

    #[test]
    fn a_terminal_without_think_time_always_has_one_request() {
        let users = users(Mix::new([1.0, 1.0, 1.0, 0.0, 1.0]).unwrap(), 7, Load::default(), true);
        users.admit(&mut users.lock(), u64::MAX / 2, false);
        for round in 0..1000 {
            let lane = if users.lock().write.is_empty() { Lane::Read } else { Lane::Write };
            let job = users.next(lane, &Meter::default()).unwrap();
            assert_eq!(queued(&users), 6, "round {round}");
            users.finish(lane, &job);
            assert_eq!(queued(&users), 7, "round {round}");
        }
    }

    #[test]
    fn deferred_deliveries_free_their_terminal_until_the_queue_is_full() {
        let users = users(Mix::new([0.0, 0.0, 0.0, 1.0, 0.0]).unwrap(), 2, Load::default(), true);
        users.admit(&mut users.lock(), u64::MAX / 2, false);
        // 64 deferred, then each of the two terminals waits with one more.
        assert_eq!(queued(&users), 66);
        let counts = users.counts();
        assert_eq!((counts.deliveries_queued, counts.backpressured), (66, 2));
        let job = users.next(Lane::Write, &Meter::default()).unwrap();
        assert!(!job.terminal_waits);
        users.finish(Lane::Write, &job);
        assert_eq!(queued(&users), 65);
    }

    #[test]
    fn without_overlap_the_gate_keeps_the_order_of_arrival() {
        let users = users(Mix::new([1.0, 0.0, 1.0, 0.0, 0.0]).unwrap(), 40, Load::default(), false);
        users.admit(&mut users.lock(), u64::MAX / 2, false);
        let mut last = 0;
        for _ in 0..500 {
            let (write, read) = {
                let mut state = users.lock();
                let state = &mut *state;
                (users.take(state, Lane::Write), users.take(state, Lane::Read))
            };
            assert!(write.is_some() != read.is_some(), "exactly one lane may start");
            let (lane, job) = match (write, read) {
                (Some(job), _) => (Lane::Write, job),
                (_, Some(job)) => (Lane::Read, job),
                _ => unreachable!(),
            };
            assert!(job.ticket > last);
            last = job.ticket;
            users.finish(lane, &job);
        }
    }

    #[test]
    fn think_times_have_the_specifications_means() {
        let load = Load::Closed { think: 1.0 };
        let users = users(Mix::new([1.0, 0.0, 0.0, 0.0, 0.0]).unwrap(), 1, load, true);
        let mut state = users.lock();
        let mut sum = 0.0;
        for _ in 0..20_000 {
            state.timers.clear();
            users.think(&mut state, 0, 0);
            let due = state.timers.peek().unwrap().0.0 as f64 / 1e9;
            assert!((18.0..=18.0 + 120.0).contains(&due));
            sum += due;
        }
        // 18 s of keying and a mean of 12 s, standard error 0.085.
        assert!((sum / 20_000.0 - 30.0).abs() < 0.5, "{}", sum / 20_000.0);
    }

    #[test]
    fn open_loop_arrivals_keep_their_rate_whatever_is_answered() {
        let load = Load::Open { rate: Rate(1000.0) };
        let users = users(Mix::NORMAL, 10, load, true);
        users.admit(&mut users.lock(), 20_000_000_000, false);
        // 20,000 expected, standard deviation 141.
        assert!((19_300..20_700).contains(&queued(&users)), "{}", queued(&users));
    }

    /// Nobody is late for a worker that does not exist: only while one is free does the clock run.
    #[test]
    fn arrivals_are_late_only_while_a_worker_is_free() {
        let late_ns = |idle_from_ns: Option<u64>| {
            let users = users(Mix::NORMAL, 10, Load::Open { rate: Rate(1000.0) }, true);
            users.lock().idle_from_ns = idle_from_ns;
            users.admit(&mut users.lock(), 1_000_000_000, false);
            users.counts().schedule_error_ns
        };
        let (busy, free, freed) = (late_ns(None), late_ns(Some(0)), late_ns(Some(900_000_000)));
        assert!(busy.count() > 800 && busy.count() == free.count(), "{}", busy.count());
        assert_eq!((busy.max(), freed.max()), (0, 100_000_000));
        // Due all through the second, and found at its end.
        assert!(free.max() > 900_000_000 && free.quantile(0.5) > 400_000_000);
    }

    #[test]
    fn what_nobody_took_is_unanswered_seen_or_not() {
        let users = users(Mix::NORMAL, 10, Load::Open { rate: Rate(1000.0) }, true);
        // Half of the time is looked at, three requests are taken, then all workers are busy.
        users.admit(&mut users.lock(), 10_000_000_000, false);
        let lane = Lane::Write;
        let taken = (0..3).map(|_| users.next(lane, &Meter::default()).unwrap());
        assert!(taken.last().unwrap().due_ns < 1_000_000_000);
        let waited = users.unanswered(1000.0, 1_000_000_000..20_000_000_000);
        let mut all = Histogram::new();
        for waited in &waited {
            all.merge(waited);
        }
        // 19,000 expected, standard deviation 138; the last is due when the run ends.
        assert!((18_300..19_700).contains(&all.count()), "{}", all.count());
        assert!(all.max() > 18_900_000_000 && all.min() < 100_000_000, "{all:?}");
        let share = waited[Kind::NewOrder.code()].count() as f64 / all.count() as f64;
        assert!((0.43..0.47).contains(&share), "{share}");
    }

    #[test]
    fn dropped_arrivals_are_unanswered_too() {
        let users = users(Mix::NORMAL, 10, Load::Open { rate: Rate(200_000.0) }, true);
        users.admit(&mut users.lock(), 6_000_000_000, false);
        let dropped = users.counts().dropped;
        assert!(dropped > 100_000, "{dropped}");
        let waited = users.unanswered(200_000.0, 0..6_000_000_000);
        let all: u64 = waited.iter().map(Histogram::count).sum();
        assert_eq!(all, users.lock().arrivals);
    }
}
