//! The line between workload and DBMS: what a driver must offer, and a driver that does nothing.
//!
//! The workload asks for *lanes*: how many workers run read-write transactions, how many read-only
//! ones, and whether the two may overlap. A driver opens one [`Session`] per worker, on that
//! worker's thread, and executes one [`Input`] at a time. It calls the
//! DBMS through a [`Meter`], so that the client's share of the time can be told from the DBMS's.

use std::cell::Cell;
use std::time::Instant;

use events::Sink;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::consistency::ConditionResult;
use crate::meta::Meta;
use crate::workload::Dataset;
use crate::workload::input::Input;

/// How a driver wants its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Workers for read-write transactions.
    pub writers: usize,
    /// Workers for read-only transactions; with none the writers run them too.
    pub readers: usize,
    /// Whether readers may run while a writer does.
    pub overlap: bool,
}

/// Which worker a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Number among all workers, writers first.
    pub index: usize,
    /// Whether it runs read-write transactions.
    pub writes: bool,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It committed.
    Committed,
    /// New-Order met its unused item and rolled back, as it should.
    RolledBack,
}

/// Why an attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// Another attempt may succeed: busy, deadlock, serialization failure.
    Retry,
    /// The run cannot go on.
    Fatal(Error),
}

/// What a transaction answered, as far as tests, the audit and the result log need it. Texts are
/// read as a terminal would, and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Order number of New-Order and Order-Status.
    pub order: u32,
    /// Customer that was found.
    pub customer: u32,
    /// New-Order: total in cents after discount and tax, rounded half up.
    pub total: i64,
    /// Order-Status: C_BALANCE in cents.
    pub balance: i64,
    /// Order-Status: lines of the order.
    pub lines: u32,
    /// Stock-Level: distinct items below the threshold.
    pub low_stock: u32,
    /// Delivery: order delivered per district; 0 where the district was skipped.
    pub delivered: [u32; 10],
    /// Bytes of text that the answer carried.
    pub text_bytes: usize,
}

/// One connection of one worker.
pub trait Session {
    /// Executes one transaction to its end. `now_ms` is the date it writes, milliseconds since
    /// 1970.
    fn execute(
        &mut self,
        input: &Input,
        now_ms: i64,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure>;

    /// The server's process (PostgreSQL) or thread (MariaDB) that works for this session: whose I/O
    /// is its transactions'. `None` where the DBMS is embedded or does not tell.
    fn server_task(&mut self) -> Option<u32> {
        None
    }
}

/// What a worker does with its session.
pub type Work<'a> = dyn FnMut(&mut dyn Session) -> Result<(), Error> + 'a;

/// What a load did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The database: a file, or a server's address and database.
    pub place: String,
    /// What was loaded.
    pub dataset: Dataset,
    /// Rows of all tables.
    pub rows: u64,
    /// Size of the data with indexes, bytes.
    pub database_bytes: u64,
    /// Wall-clock time, seconds.
    pub elapsed_s: f64,
    /// CPU time of the loading threads, seconds.
    pub cpu_s: f64,
}

/// Sizes that a run watches, bytes; 0 where they cannot be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// Tables and indexes.
    pub data: u64,
    /// Log or journal.
    pub log: u64,
}

/// A DBMS with a database of one workload: loads it, checks it, makes drivers for runs.
pub trait Dbms: Sync {
    /// Name and version, as the DBMS itself says.
    fn version(&self) -> Result<String, Error>;

    /// The database: a file, or a server's address and database.
    fn place(&self) -> String;

    /// Loads, in place of an earlier load of ours; leaves nothing behind where it fails.
    fn load(&self, dataset: Dataset, seed: u64, sink: &dyn Sink) -> Result<LoadReport, Error>;

    /// What is loaded; an error where that is nothing of ours, or not all of it.
    fn meta(&self) -> Result<Meta, Error>;

    /// Notes in the database that a run changes it, which voids what holds before runs only.
    fn count_run(&self) -> Result<(), Error>;

    /// The driver of a run on this much data.
    fn driver(&self, dataset: Dataset) -> Result<Box<dyn Driver + '_>, Error>;

    /// The integer that a query returns first, where it returns one.
    fn integer(&self, sql: &str) -> Result<Option<i64>, Error>;

    /// Checks the workload's consistency conditions.
    fn check(&self) -> Result<Vec<ConditionResult>, Error>;

    /// Sizes as of now, cheaply: asked for ten times a second.
    fn stored(&self) -> StoredBytes;
}

/// Opens sessions of a run.
pub trait Driver: Sync {
    /// How it wants its workers.
    fn lanes(&self) -> Lanes;

    /// Opens a session on this thread, calls `work` with it, closes it.
    fn with_session(&self, worker: Worker, meter: &Meter, work: &mut Work<'_>)
    -> Result<(), Error>;
}

/// Measures how much time our own code takes between calls of the DBMS.
///
/// Of one transaction in sixteen, drawn at random, every stretch outside the DBMS is timed, from
/// taking the request to being done with it. Our code neither blocks nor waits there, so that time
/// is CPU time, unless another thread took the processor away: a stretch longer than
/// [`PREEMPTED_NS`] is taken for that and left out. The cost of reading the clock is measured first
/// and taken off.
#[derive(Debug)]
pub struct Meter {
    timing: Cell<bool>,
    mark: Cell<Instant>,
    clock_ns: u64,
    /// Time of the transaction in work.
    client_ns: Cell<u64>,
    seen: Cell<u64>,
    totals: Cell<MeterTotals>,
}

/// A stretch of our code that took longer was interrupted: the longest legitimate ones take a few
/// microseconds.
const PREEMPTED_NS: u64 = 30_000;

/// One transaction in this many is timed.
const TIMED_OF: u64 = 16;

/// Sums over the transactions that a [`Meter`] timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeterTotals {
    /// Transactions timed.
    pub transactions: u64,
    /// Time in our code, ns.
    pub client_ns: f64,
    /// Sum of the squares of the transactions' times, ns^2.
    pub client_ns_squares: f64,
}

impl Default for Meter {
    fn default() -> Self {
        let mut clock_ns = u64::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            clock_ns = clock_ns.min(start.elapsed().as_nanos() as u64);
        }
        Self {
            timing: Cell::new(false),
            mark: Cell::new(Instant::now()),
            clock_ns,
            client_ns: Cell::new(0),
            seen: Cell::new(0),
            totals: Cell::new(MeterTotals::default()),
        }
    }
}

impl Meter {
    /// A transaction begins; decides whether it is timed.
    #[inline]
    pub(crate) fn begin(&self) {
        let seen = self.seen.get() + 1;
        self.seen.set(seen);
        self.timing.set(stats::rng::at(0x6d65_7465_7200_0000, seen).is_multiple_of(TIMED_OF));
        if self.timing.get() {
            self.client_ns.set(0);
            self.mark.set(Instant::now());
        }
    }

    /// The transaction has ended; with `keep` its time counts.
    #[inline]
    pub(crate) fn end(&self, keep: bool) {
        if !self.timing.replace(false) {
            return;
        }
        self.stretch();
        if keep {
            let ns = self.client_ns.get() as f64;
            let mut totals = self.totals.get();
            totals.transactions += 1;
            totals.client_ns += ns;
            totals.client_ns_squares += ns * ns;
            self.totals.set(totals);
        }
    }

    /// Adds the stretch that ends now.
    fn stretch(&self) {
        let ns = self.mark.get().elapsed().as_nanos() as u64;
        if ns < PREEMPTED_NS {
            self.client_ns.set(self.client_ns.get() + ns.saturating_sub(self.clock_ns));
        }
    }

    /// Runs a call of the DBMS (or a wait): its time is not ours.
    #[inline]
    pub fn dbms<T>(&self, call: impl FnOnce() -> T) -> T {
        if !self.timing.get() {
            return call();
        }
        self.stretch();
        let value = call();
        self.mark.set(Instant::now());
        value
    }

    /// The sums so far.
    pub fn totals(&self) -> MeterTotals {
        self.totals.get()
    }
}

/// A driver that answers at once: what is left of a run is the workload framework's own cost.
#[derive(Clone, Copy, Debug)]
pub struct Null(pub Lanes);

impl Driver for Null {
    fn lanes(&self) -> Lanes {
        self.0
    }

    fn with_session(
        &self,
        _worker: Worker,
        _meter: &Meter,
        work: &mut Work<'_>,
    ) -> Result<(), Error> {
        struct Nothing;
        impl Session for Nothing {
            fn execute(
                &mut self,
                input: &Input,
                _: i64,
                _: &mut Reply,
            ) -> Result<Outcome, Failure> {
                use crate::workload::input::Request;
                Ok(match std::hint::black_box(input).request {
                    Request::NewOrder(order) if order.rolls_back => Outcome::RolledBack,
                    _ => Outcome::Committed,
                })
            }
        }
        work(&mut Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(nanos: u64) {
        let start = Instant::now();
        while (start.elapsed().as_nanos() as u64) < nanos {}
    }

    /// Only the time outside the DBMS counts, of one transaction in sixteen, and none of those that
    /// are not kept.
    #[test]
    fn the_meter_tells_our_time_from_the_dbmss() {
        let meter = Meter::default();
        for k in 0..4000 {
            meter.begin();
            spin(2_000);
            meter.dbms(|| spin(20_000));
            meter.end(k % 2 == 0);
        }
        let totals = meter.totals();
        // 1 in 32 of 4000: 125 with a standard deviation of 11.
        assert!((70..180).contains(&totals.transactions), "{totals:?}");
        // A stretch lasts 2 us, up to PREEMPTED_NS on a busy machine; the DBMS's 20 us would show.
        let mean = totals.client_ns / totals.transactions as f64;
        assert!(mean > 500.0 && mean < 12_000.0, "{mean}");
    }
}
