//! The line between workload and DBMS: what a driver must offer, and a driver that does nothing.
//!
//! The workload asks for *lanes*: how many workers run read-write transactions, how many read-only
//! ones, and whether the two may overlap. A driver opens one [`Session`] per worker, on that
//! worker's thread, and executes one [`Input`] at a time. It reports where its thread's time goes
//! through a [`Meter`], so that the client's share can be told from the DBMS's.

use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use crate::Error;
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
    /// Executes one transaction to its end. `now_ms` is the date it writes, milliseconds since 1970.
    fn execute(
        &mut self,
        input: &Input,
        now_ms: i64,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure>;
}

/// What a worker does with its session.
pub type Work<'a> = dyn FnMut(&mut dyn Session) -> Result<(), Error> + 'a;

/// A DBMS.
pub trait Driver: Sync {
    /// How it wants its workers.
    fn lanes(&self) -> Lanes;

    /// Opens a session on this thread, calls `work` with it, closes it.
    fn with_session(&self, worker: Worker, meter: &Meter, work: &mut Work<'_>)
    -> Result<(), Error>;
}

/// Where a worker's thread is, for the sampler that estimates the client's share of its time.
#[derive(Debug, Default)]
pub struct Meter {
    place: AtomicU8,
    thread: AtomicI32,
}

/// A place that a worker's thread can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// Waits for something to do.
    Idle = 0,
    /// In our code.
    Client = 1,
    /// In the DBMS: its library, or waiting for its server.
    Dbms = 2,
}

impl Meter {
    /// Marks the thread as being at a place.
    #[inline]
    pub fn enter(&self, place: Place) {
        self.place.store(place as u8, Ordering::Relaxed);
    }

    /// Runs `call` as part of the DBMS.
    #[inline]
    pub fn dbms<T>(&self, call: impl FnOnce() -> T) -> T {
        self.enter(Place::Dbms);
        let value = call();
        self.enter(Place::Client);
        value
    }

    /// Notes that the calling thread is the one to look at.
    pub(crate) fn adopt_thread(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    }

    /// The thread to look at, by the kernel's number; 0 before there is one.
    pub(crate) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Relaxed)
    }

    /// Where the thread is.
    pub fn place(&self) -> Place {
        match self.place.load(Ordering::Relaxed) {
            0 => Place::Idle,
            1 => Place::Client,
            _ => Place::Dbms,
        }
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
