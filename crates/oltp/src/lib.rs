//! OLTP workloads and the databases that they run on.
//!
//! The main workload is `order-entry`: derived from TPC-C 5.11, not comparable to published TPC
//! results. (TPC and TPC-C are trademarks of the Transaction Processing Performance Council.) It
//! follows the specification's schema, cardinalities, transactions, input distributions,
//! response-time bounds and consistency conditions; it leaves out what makes a publishable result:
//! pricing, full disclosure, the 120 minutes, and the separate terminal emulator. Beside it stand
//! `bank`, derived from TPC-B 2.0, and `commit`, one-row updates; [`workload::own`] reads workloads
//! of the user.
//!
//! Two more, of few and long statements, are [`temp`] (sorts and joins that outgrow memory) and
//! [`versions`] (old snapshots against updaters).
//!
//! - [`load`] makes a database, [`run`] runs terminals on it, [`driver::Dbms::check`] checks it.
//! - [`workload`] is the part that no DBMS changes: inputs, mix, rows. [`audit`] checks the inputs
//!   of every run. [`driver`] is the line to a DBMS, [`sqlite`] the embedded one; [`Database`]
//!   lists them all.
//!
//! Invariants: everything random is a function of a seed and a position; only transactions that
//! start, as intended, and end within the measurement count; response times include queueing.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod audit;
mod censored;
pub mod consistency;
pub mod driver;
mod engine;
mod error;
pub mod mariadb;
pub mod meta;
mod options;
pub mod postgresql;
mod result;
mod run;
mod scale;
mod server_load;
pub mod sqlite;
pub mod statements;
mod systems;
pub mod temp;
pub mod torture;
pub mod versions;
pub mod workload;

pub use censored::Bounds;
pub use driver::LoadReport;
pub use engine::{Phase, Span};
pub use error::Error;
pub use options::{
    Access, Database, JournalMode, Load, LoadOptions, Options, ServerSettings, SqliteSettings,
    Synchronous,
};
pub use result::{
    AtLeast, ClientOverhead, Cpu, DeliveryResult, KindResult, OltpResult, Series, Sizes, Verdict,
};
pub use run::{framework_cost_ns, load, run, run_in, run_noted, run_observed};
pub use scale::{DISTRICTS_MAX, Scale};
pub use workload::{Dataset, Kind, Mix, Own, Workload};

/// What to show beside every figure of this workload.
pub const DISCLAIMER: &str = "derived from TPC-C 5.11, not comparable to published TPC results";
