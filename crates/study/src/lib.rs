//! Study files, run directories and the pipeline that ties the stages together.
//!
//! A *study* is a TOML file ([`file::StudyFile`]): a workload, the scenarios to ask about, and how
//! the device under test is measured. [`pipeline::run`] walks its stages in order and leaves a *run
//! directory* ([`run_dir::RunDir`]) behind. A stage is done exactly when its artifact exists under
//! its final name; artifacts are written to a temporary name, synced and renamed. That is the whole
//! resume protocol: a run killed at any moment goes on at the first stage without an artifact.
//!
//! Invariants: nothing under a final name is ever half-written; two processes never work in one run
//! directory; a resumed run has the configuration it started with.

pub mod advice;
pub mod advising;
pub mod artifacts;
pub mod assumed;
pub mod captures;
pub mod checks;
pub mod compare;
mod context;
pub mod cost;
mod curves;
pub mod doctor;
pub mod drift;
pub mod error;
pub mod file;
pub mod fleet;
pub mod here;
pub mod host_stack;
pub mod machine;
pub mod modelled_probe;
pub mod observe;
pub mod page;
mod partial;
pub mod pipeline;
pub mod predictions;
pub mod probed;
pub mod profiles;
pub mod prove;
pub mod published;
pub mod recorded;
pub mod result;
pub mod run_dir;
pub mod runs;
pub mod scenarios;
pub mod stages;
pub mod statements;
pub mod sweep;
pub mod temp;
pub mod validation;
pub mod verdict;
pub mod what_if;

pub use error::Error;
