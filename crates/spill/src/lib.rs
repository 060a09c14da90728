//! An engine that spills: external merge sort and Grace hash join through a temporary file.
//!
//! A DBMS fixes the size in which it reads and writes its temporary files (PostgreSQL: 8 KiB), so
//! the effect of the cluster size on a device cannot be measured on one. Lee, Moon, Park, Kim and
//! Kim (SIGMOD 2008, section 5) varied it on a commercial DBMS: sort and join on flash and on disk.
//! Here the memory, the cluster size and the number of requests in flight are what the user says.
//!
//! - [`sort`](sort()): runs of a memory each, made by sorting (load, sort, store), then merged with
//!   as few bytes as the fan-in allows (Knuth, TAOCP 3, 5.4.9); blocks are read ahead in the order
//!   in which runs will run dry (forecasting, 5.4.6).
//! - [`join`](join()): both inputs are split by a hash of the key until a part of the build side
//!   fits in memory (Kitsuregawa, Tanaka, Moto-oka, 1983), then joined part by part.
//!
//! Both run on a [`Medium`]: a temporary file on a real disk ([`TempFile`]), or a device model in
//! virtual time ([`Simulated`]), where the same engine waits for the model instead. Rows come from
//! a seed ([`Rows`]); what comes out is checked against what went in: order, count and checksum of
//! a sort, count and checksum of a join. Every request is counted, and kept as a trace where
//! wanted.
//!
//! Invariants, tested: bytes read and written are what [`SortPlan`] and the rows of each part say;
//! no more memory is used for rows and clusters than was given; at most `depth` requests are in
//! flight; nothing is left in the directory, whatever happens.

#![forbid(unsafe_code)]

mod account;
mod error;
mod join;
mod medium;
mod options;
mod progress;
mod queue;
mod rows;
mod simulated;
mod sort;
mod space;
mod temp_file;
mod writer;

pub use account::{Phase, Spilled};
pub use error::Error;
pub use join::{JoinPlan, join};
pub use medium::Medium;
pub use options::Resources;
pub use rows::{Keys, Rows};
pub use simulated::Simulated;
pub use sort::{Merge, SortPlan, sort};
pub use temp_file::TempFile;
