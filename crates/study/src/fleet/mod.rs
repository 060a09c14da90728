//! Fleets: many traces on many devices, as jobs of a file.
//!
//! A *plan* is a file of JSON lines: what all jobs share, then one line per job (a trace or one of
//! its streams, a profile, a seed). A job is named by the hash of everything that decides its
//! result, and its result is a file of that name: a job is done exactly when that file exists,
//! whoever made it, so a fleet goes on where it was stopped, and any number of machines that share
//! a directory work through one plan. [`run`] does jobs on the threads of this machine; the same
//! jobs give the same bytes on one thread or many, here or elsewhere (test). [`collect`] gathers
//! the rows and says how the devices compare over the traces.

mod collect;
mod plan;
mod run;

pub use collect::{Collected, DeviceSummary, collect, summary, worst};
pub use plan::{Asked, Job, Plan, Planned, plan};
pub use run::{Ran, Row, missing, result_path, run};
