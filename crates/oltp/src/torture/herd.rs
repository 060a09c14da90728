//! The terminals of one cycle: they work until the server dies, and tell what it acknowledged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::Sink;

use super::ledger::Fact;
use crate::Error;
use crate::driver::{Driver, Failure, Meter, Reply, Session, Worker};
use crate::workload::Source;
use crate::workload::input::Input;

/// Pace of looking whether terminals are ready, or the user wants to stop.
const TICK: Duration = Duration::from_millis(5);

/// What one cycle's terminals did.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Acknowledged effects, of each terminal in order.
    pub(super) facts: Vec<Fact>,
    /// Transactions that were acknowledged, those without a lasting effect included.
    pub(super) acknowledged: u64,
    /// Requests that had no answer when the server died.
    pub(super) in_flight: Vec<Input>,
    /// Attempts that the server refused with a request to try again.
    pub(super) retries: u64,
    /// How long they worked.
    pub(super) worked: Duration,
    /// The user wants to stop.
    pub(super) interrupted: bool,
}

/// One cycle under load.
pub(super) struct Herd<'a> {
    pub(super) driver: &'a dyn Driver,
    pub(super) source: &'a Source,
    pub(super) users: u32,
    /// Of each terminal's first request, so that no input is used twice.
    pub(super) sequence: u64,
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    ready: AtomicU32,
    go: AtomicBool,
    /// The server is about to be killed: failures from now on are no errors.
    dying: AtomicBool,
    failed: Mutex<Option<Error>>,
}

impl Shared {
    fn fail(&self, error: Error) {
        self.failed.lock().expect("no panic while holding the lock").get_or_insert(error);
        self.dying.store(true, Ordering::SeqCst);
    }

    fn has_failed(&self) -> bool {
        self.failed.lock().expect("no panic while holding the lock").is_some()
    }
}

impl Herd<'_> {
    /// Lets the terminals work for `how_long`, then calls `kill`, which must end all connections.
    pub(super) fn run<T>(
        &self,
        how_long: Duration,
        sink: &dyn Sink,
        kill: impl FnOnce() -> T,
    ) -> Result<(Done, T), Error> {
        let shared = Shared::default();
        let (mut done, killed) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.users)
                .map(|user| {
                    let shared = &shared;
                    scope.spawn(move || self.terminal(user, shared))
                })
                .collect();
            while shared.ready.load(Ordering::SeqCst) < self.users && !shared.has_failed() {
                std::thread::sleep(TICK);
            }
            shared.go.store(true, Ordering::SeqCst);
            let start = Instant::now();
            let mut interrupted = false;
            while start.elapsed() < how_long && !shared.has_failed() && !interrupted {
                std::thread::sleep(TICK.min(how_long.saturating_sub(start.elapsed())));
                interrupted = sink.cancelled();
            }
            let worked = start.elapsed();
            shared.dying.store(true, Ordering::SeqCst);
            let killed = kill();
            let mut sum = Done { worked, interrupted, ..Done::default() };
            for thread in threads {
                let Ok(one) = thread.join() else {
                    let reason = "it panicked".to_owned();
                    shared.fail(Error::WorkerDied { worker: 0, reason });
                    continue;
                };
                sum.facts.extend(one.facts);
                sum.in_flight.extend(one.in_flight);
                sum.acknowledged += one.acknowledged;
                sum.retries += one.retries;
            }
            (sum, killed)
        });
        done.interrupted |= sink.cancelled();
        match shared.failed.into_inner().expect("no panic while holding the lock") {
            Some(error) => Err(error),
            None => Ok((done, killed)),
        }
    }

    fn terminal(&self, user: u32, shared: &Shared) -> Done {
        let mut done = Done::default();
        let worker = Worker { index: user as usize, writes: true };
        let mut ready = false;
        let worked = self.driver.with_session(worker, &Meter::default(), &mut |session| {
            if !std::mem::replace(&mut ready, true) {
                shared.ready.fetch_add(1, Ordering::SeqCst);
            }
            while !shared.go.load(Ordering::SeqCst) {
                std::thread::sleep(TICK);
            }
            self.work(session, user, shared, &mut done)
        });
        if let Err(error) = worked
            && !shared.dying.load(Ordering::SeqCst)
        {
            shared.fail(error);
        }
        done
    }

    /// Works until the connection breaks.
    fn work(
        &self,
        session: &mut dyn Session,
        user: u32,
        shared: &Shared,
        done: &mut Done,
    ) -> Result<(), Error> {
        let mut sequence = self.sequence;
        let mut reply = Reply::default();
        while !shared.has_failed() {
            let (kind, _) = self.source.kind(user, sequence);
            let input = self.source.draw(user, sequence, kind);
            let dying = shared.dying.load(Ordering::SeqCst);
            match session.execute(&input, now_ms(), &mut reply) {
                Ok(outcome) => {
                    done.acknowledged += 1;
                    done.facts.extend(Fact::of(&input, outcome, &reply));
                    sequence += 1;
                }
                // The server has rolled it back and says so; the same again.
                Err(Failure::Retry) => {
                    done.retries += 1;
                    if dying {
                        return Ok(());
                    }
                }
                Err(Failure::Fatal(error)) => {
                    done.in_flight.push(input);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
