//! Measures real devices, and replays traces on them.
//!
//! [`run`] walks a [`plan::Plan`] over a target ([`io::target`]) and returns
//! [`fit::measurement::Measurements`]; [`replay`] issues the requests of a trace at their captured
//! times and certifies how well it kept them.
//!
//! Every request goes through one loop (`driver`) over one small trait ([`io::engine::Engine`]), so
//! that the null device of the benches and the failing device of the tests exercise what runs on
//! real ones.

pub mod cell;
pub mod clock;
mod commit_load;
mod disturbance;
mod driver;
mod error;
pub mod plan;
mod precondition;
mod realtime;
pub mod reference;
pub mod replay;
mod run;

pub use error::Error;
pub use plan::PlanSummary;
pub use run::{Options, PlanKind, SCHEMA, dry_run, run, run_on};
