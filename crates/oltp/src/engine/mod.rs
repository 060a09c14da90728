//! What runs a load: terminals and their queues, workers, what they record, where their CPU time
//! goes.
//!
//! Knows a DBMS only as [`crate::driver::Dbms`]. [`executor`] starts the workers, [`users`] hands
//! them requests, [`recorder`] keeps what they did, [`context`] tells the capture whose I/O it
//! sees.

mod context;
mod cpu;
mod executor;
mod recorder;
pub(crate) mod users;

pub use executor::Span;
pub(crate) use executor::{Gathered, Plan, Watch, execute};
pub(crate) use recorder::INTERVAL_NS;

/// The stage's name in events and warnings.
pub(crate) const STAGE: &str = "oltp";

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Sessions are open; the first requests go out when whoever is told has returned.
    WarmUp,
    /// The measurement begins.
    Measurement,
    /// The measurement has ended; requests in work still finish.
    End,
}
