//! Measures real devices, fits profiles to them, and replays traces on them.
//!
//! The edge crate that talks to the kernel: io_uring, O_DIRECT, one ring per thread. [`run`] walks a
//! [`plan::Plan`] over a [`target`] and returns [`measurement::Measurements`]; [`replay`] issues the
//! requests of a trace at their captured times and certifies how well it kept them.
//!
//! Every request goes through one loop (`driver`) over one small trait ([`io::Engine`]), so that the
//! null device of the benches and the failing device of the tests exercise what runs on real ones.

pub mod buffer;
pub mod cell;
pub mod clock;
pub mod commit_load;
mod disturbance;
mod driver;
mod error;
pub mod fit;
pub mod io;
pub mod measurement;
pub mod plan;
mod precondition;
mod realtime;
pub mod replay;
mod run;
pub mod target;

pub use error::Error;
pub use plan::PlanSummary;
pub use run::{Options, PlanKind, SCHEMA, dry_run, run, run_on};
