//! Runs terminals on a driver: threads, clock, sampling. Knows no DBMS.
//!
//! One thread per worker, which opens its own session; the clock starts when all are open. The
//! calling thread paces the run, reports progress and notices the user's stop.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::{Event, Sink};
use virtual_time::World;

use super::recorder::{INTERVAL_NS, Ledger, Live, Times, Window, WorkerCpu};
use super::users::{Clock, Lane, QueueCounts, Time, Users};
use super::{Phase, STAGE, context, cpu};
use crate::driver::{Driver, Failure, Lanes, Meter, Outcome, Reply, Session, Worker};
use crate::options::Load;
use crate::workload::Source;
use crate::{Error, Kind};

/// Attempts of one transaction before it is given up.
const ATTEMPTS_MAX: u32 = 5;

/// Ledgers of a run: enough that a lock is nearly always free, few enough to stay small.
const LEDGERS: usize = 2;

/// Pace of progress reports and of looking at the stop flag.
const TICK: Duration = Duration::from_millis(100);

/// When a run in virtual time takes place, so that it writes the same rows each time: 2026-01-01.
const FIRST_DAY_MS: i64 = 1_767_225_600_000;

/// What to run.
pub(crate) struct Plan {
    pub source: Source,
    pub users: u32,
    pub load: Load,
    pub warmup_ns: u64,
    pub measure_ns: u64,
    pub log_deliveries: bool,
    /// Whether to note when each transaction ran and which task of the server ran it.
    pub note_spans: bool,
    /// The world to run in; without one time is the machine's.
    pub world: Option<Arc<World>>,
}

/// What came of it.
pub(crate) struct Gathered {
    pub ledger: Ledger,
    pub cpu: WorkerCpu,
    /// In the order of workers, then of time; empty unless the plan asks for them.
    pub spans: Vec<Span>,
    pub queues: QueueCounts,
    pub measured_ns: u64,
    /// When the run ended, ns since its start.
    pub ended_ns: u64,
    pub interrupted: bool,
    /// The clock's start, for dates in the delivery log.
    pub started_ms: i64,
}

/// One transaction, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The server's task that served it; see [`Session::server_task`].
    pub task: u32,
    /// Which transaction.
    pub kind: Kind,
    /// When it was sent, ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When its last answer was there.
    pub end_ns: u64,
    /// Whether all of it lies within the measurement.
    pub measured: bool,
}

/// What the caller hears of while a run goes on: phases, and a tick ten times a second.
pub(crate) struct Watch<'a> {
    pub sink: &'a dyn Sink,
    pub phase: &'a mut dyn FnMut(Phase),
    pub tick: &'a mut dyn FnMut(),
}

/// What all threads of a run share.
struct Shared<'a> {
    plan: &'a Plan,
    driver: &'a dyn Driver,
    window: Window,
    live: Live,
    /// Worker k writes into ledger k modulo their number.
    ledgers: Vec<Mutex<Ledger>>,
    spans: Mutex<Vec<Span>>,
    gate: Barrier,
    users: OnceLock<Users>,
    paced: Latch,
}

/// Opened once, when the pacing thread is done: sessions stay open until then, because who hears
/// of [`Phase::End`] may want to look at the files while they exist.
#[derive(Default)]
struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    fn wait(&self) {
        let open = self.open.lock().expect("no panic while holding the lock");
        drop(self.opened.wait_while(open, |open| !*open).expect("no panic while holding the lock"));
    }
}

/// Opens the latch however the pacing thread leaves: a panic there must not hang the workers.
struct OpenWhenDone<'a>(&'a Latch);

impl Drop for OpenWhenDone<'_> {
    fn drop(&mut self) {
        *self.0.open.lock().expect("no panic while holding the lock") = true;
        self.0.opened.notify_all();
    }
}

/// Runs a plan on a driver.
pub(crate) fn execute(
    driver: &dyn Driver,
    plan: &Plan,
    mut watch: Watch<'_>,
) -> Result<Gathered, Error> {
    let mut lanes = driver.lanes();
    if let Load::Closed { .. } = plan.load {
        // Terminals wait for their answers: workers beyond them would hold connections for nothing.
        lanes.writers = lanes.writers.min(plan.users.max(1) as usize);
    }
    let workers = lanes.writers + lanes.readers;
    let intervals = ((plan.warmup_ns + plan.measure_ns) / INTERVAL_NS) as usize + 1;
    let ledger =
        || Mutex::new(Ledger::new(&plan.source, plan.load, intervals, plan.log_deliveries));
    let shared = Shared {
        plan,
        driver,
        window: Window {
            from_ns: plan.warmup_ns,
            to_ns: AtomicU64::new(plan.warmup_ns + plan.measure_ns),
        },
        live: Live::new(&plan.source),
        ledgers: (0..workers.min(LEDGERS)).map(|_| ledger()).collect(),
        spans: Mutex::default(),
        gate: Barrier::new(workers + 1),
        users: OnceLock::new(),
        paced: Latch::default(),
    };
    let shared = &shared;
    if let Some(world) = &plan.world {
        world.expect(workers);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let worker = Worker { index, writes: index < lanes.writers };
                scope.spawn(move || shared.work(worker))
            })
            .collect();
        shared.gate.wait();
        // Before the clock starts: whoever begins to watch takes a while, and counts from there.
        (watch.phase)(Phase::WarmUp);
        let users = shared.start(lanes);
        let started_ms = now_ms();
        shared.gate.wait();
        let interrupted = shared.pace(users, &mut watch);
        users.stop();
        let joined: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        shared.tell_completions(&watch, users, users.now_ns());
        let ended_ns = shared.window.to_ns.load(Ordering::Relaxed);
        let measured_ns = ended_ns.saturating_sub(plan.warmup_ns);
        let cpu = merge(joined)?;
        let mut ledger = shared.ledger();
        if let Load::Open { rate } = plan.load {
            ledger.unanswered(&users.unanswered(rate.0, plan.warmup_ns..ended_ns));
        }
        let queues = users.counts();
        let spans =
            std::mem::take(&mut *shared.spans.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Gathered { ledger, cpu, spans, queues, measured_ns, ended_ns, interrupted, started_ms })
    })
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// All workers' CPU time, or the first error.
fn merge(
    joined: Vec<Result<Result<WorkerCpu, Error>, Box<dyn Any + Send>>>,
) -> Result<WorkerCpu, Error> {
    let mut merged = WorkerCpu::default();
    for (worker, result) in joined.into_iter().enumerate() {
        let cpu = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let reason = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let reason = reason.unwrap_or_else(|| "no reason given".to_owned());
            Err(Error::WorkerDied { worker, reason })
        })?;
        merged.merge(&cpu);
    }
    Ok(merged)
}

/// The spans of one worker's transactions.
struct Notes {
    task: Option<u32>,
    spans: Vec<Span>,
}

impl Notes {
    fn note(&mut self, kind: Kind, (start_ns, end_ns): (u64, u64), measured: bool) {
        if let Some(task) = self.task {
            self.spans.push(Span { task, kind, start_ns, end_ns, measured });
        }
    }
}

/// Stops the others when a worker ends, however it does.
struct StopOthers<'a>(&'a Users);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Shared<'_> {
    fn start(&self, lanes: Lanes) -> &Users {
        self.users.get_or_init(|| {
            let time = match &self.plan.world {
                Some(world) => Time::Virtual(Arc::clone(world)),
                None => Time::Wall(Instant::now()),
            };
            let clock = Clock {
                time,
                measure_from_ns: self.plan.warmup_ns,
                end_ns: self.plan.warmup_ns + self.plan.measure_ns,
            };
            Users::new(self.plan.source.clone(), self.plan.users, self.plan.load, lanes, clock)
        })
    }

    /// A worker's thread.
    fn work(&self, worker: Worker) -> Result<WorkerCpu, Error> {
        let meter = &Meter::default();
        let mut cpu = WorkerCpu::default();
        cpu::wake_on_time();
        let mut started = false;
        context::leave(worker.index);
        let result = self.driver.with_session(worker, meter, &mut |session| {
            let task = if self.plan.note_spans { session.server_task() } else { None };
            started = true;
            self.gate.wait();
            self.gate.wait();
            let Some(users) = self.users.get() else { return Ok(()) };
            let member = self.plan.world.as_ref().map(|world| world.join(worker.index));
            let stop = StopOthers(users);
            let mut notes = Notes { task, spans: Vec::new() };
            let served = self.serve(users, worker, (session, meter), (&mut cpu, &mut notes));
            self.spans.lock().unwrap_or_else(PoisonError::into_inner).append(&mut notes.spans);
            drop(stop);
            drop(member);
            self.paced.wait();
            served
        });
        if !started {
            // The others wait for this worker before they start; it lets them, and stops them.
            self.gate.wait();
            self.gate.wait();
            if let Some(users) = self.users.get() {
                users.stop();
            }
            if let Some(world) = &self.plan.world {
                world.absent();
            }
        }
        result.map(|()| cpu)
    }

    /// Executes requests of a lane until the run is over.
    fn serve(
        &self,
        users: &Users,
        worker: Worker,
        (session, meter): (&mut dyn Session, &Meter),
        (cpu, notes): (&mut WorkerCpu, &mut Notes),
    ) -> Result<(), Error> {
        // The run's clock is CLOCK_MONOTONIC from another zero.
        let zero_ns = context::clock_ns().saturating_sub(users.now_ns());
        let ledger = &self.ledgers[worker.index % self.ledgers.len()];
        // A worker that panicked ends the run with an error: nobody reads what it left here.
        let ledger = || ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = if worker.writes { Lane::Write } else { Lane::Read };
        let mut reply = Reply::default();
        loop {
            meter.begin();
            let Some(job) = users.next(lane, meter) else { break };
            let input = self.plan.source.draw(job.terminal, job.sequence, job.kind);
            let number = self.live.started.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            context::enter(worker.index, number, &job);
            let begin_ns = users.now_ns();
            cpu.account(&self.window, begin_ns, false);
            let now_ms = if self.plan.world.is_some() {
                FIRST_DAY_MS + (begin_ns / 1_000_000) as i64
            } else {
                now_ms()
            };
            let (outcome, attempts) = attempts(session, &input, now_ms, &mut reply)?;
            let end_ns = users.now_ns();
            {
                let mut ledger = ledger();
                ledger.tally.observe(&input);
                ledger.attempts += u64::from(attempts);
                ledger.retries += u64::from(attempts - 1);
                match outcome {
                    Some(outcome) => {
                        let times = Times { begin_ns, end_ns };
                        ledger.done((&job, &input), times, (outcome, &reply), &self.window);
                    }
                    None => ledger.gave_up(&input),
                }
            }
            let measured = self.window.holds(begin_ns, end_ns);
            notes.note(job.kind, (zero_ns + begin_ns, zero_ns + end_ns), measured);
            if outcome.is_some() {
                cpu.executed();
                self.live.completed(job.kind, end_ns.saturating_sub(job.due_ns));
            }
            users.finish(lane, &job);
            meter.end(measured);
        }
        cpu.client = meter.totals();
        cpu.account(&self.window, users.now_ns(), true);
        context::leave(worker.index);
        Ok(())
    }

    /// All ledgers as one.
    fn ledger(&self) -> Ledger {
        let of =
            |ledger: &Mutex<Ledger>| ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut merged = of(&self.ledgers[0]);
        self.ledgers[1..].iter().for_each(|ledger| merged.merge(&of(ledger)));
        merged
    }

    /// Paces the run to its end; tells whether the user stopped it.
    fn pace(&self, users: &Users, watch: &mut Watch<'_>) -> bool {
        let (from, to) = (self.window.from_ns, self.plan.warmup_ns + self.plan.measure_ns);
        let _done = OpenWhenDone(&self.paced);
        let mut measuring = false;
        let mut interrupted = false;
        let mut ticks = 0u64;
        loop {
            let now = users.now_ns();
            if !measuring && now >= from {
                measuring = true;
                (watch.phase)(Phase::Measurement);
            }
            if now >= to || users.stopped() {
                break;
            }
            if watch.sink.cancelled() {
                interrupted = true;
                break;
            }
            self.report(watch, ticks, now);
            if ticks % 10 == 9 {
                self.tell_completions(watch, users, now);
            }
            ticks += 1;
            let next = if measuring { to } else { from };
            std::thread::sleep(Duration::from_nanos(next - now).min(TICK));
        }
        // A worker that failed ends the measurement too.
        self.window.to_ns.fetch_min(users.now_ns(), Ordering::Relaxed);
        (watch.phase)(Phase::End);
        interrupted
    }

    fn report(&self, watch: &mut Watch<'_>, ticks: u64, now_ns: u64) {
        (watch.tick)();
        let all = (self.plan.warmup_ns + self.plan.measure_ns) as f64;
        let done = (now_ns as f64 / all).min(1.0);
        let doing = if now_ns < self.window.from_ns { "warming up" } else { "measuring" };
        watch.sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done,
            doing: doing.to_owned(),
            eta_s: Some((all - now_ns as f64).max(0.0) / 1e9),
        });
        if ticks % 10 != 9 {
            return;
        }
        let at_s = now_ns as f64 / 1e9;
        let per_tick_s = TICK.as_secs_f64() * 10.0;
        let transactions = self.live.transactions.swap(0, Ordering::Relaxed) as f64;
        let new_orders = self.live.new_orders.swap(0, Ordering::Relaxed) as f64;
        for (series, value) in [
            ("transactions_per_s", transactions / per_tick_s),
            ("new_orders_per_min", new_orders / per_tick_s * 60.0),
        ] {
            let (stage, series) = (STAGE.to_owned(), series.to_owned());
            watch.sink.emit(Event::Sample { stage, series, at_s, value });
        }
    }
}

impl Shared<'_> {
    /// Tells what completed since the last time.
    fn tell_completions(&self, watch: &Watch<'_>, users: &Users, now_ns: u64) {
        let told_ns = self.live.told_ns.swap(now_ns, Ordering::Relaxed);
        watch.sink.emit(Event::Completions {
            stage: STAGE.to_owned(),
            device: None,
            at_s: now_ns as f64 / 1e9,
            span_s: now_ns.saturating_sub(told_ns) as f64 / 1e9,
            in_flight: users.in_flight(),
            classes: self.live.take(),
        });
    }
}

/// Executes a transaction, again where the DBMS asks for it; no outcome where it was given up. Also
/// tells how many attempts it took.
fn attempts(
    session: &mut dyn Session,
    input: &crate::workload::input::Input,
    now_ms: i64,
    reply: &mut Reply,
) -> Result<(Option<Outcome>, u32), Error> {
    for attempt in 1..=ATTEMPTS_MAX {
        match session.execute(input, now_ms, reply) {
            Ok(outcome) => return Ok((Some(outcome), attempt)),
            Err(Failure::Fatal(error)) => return Err(error),
            Err(Failure::Retry) => {}
        }
    }
    Ok((None, ATTEMPTS_MAX))
}
