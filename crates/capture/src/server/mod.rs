//! What a database server asks of storage and what the device does for it, by file class.
//!
//! A server is a tree of processes (PostgreSQL) or one process with many threads (MariaDB), so
//! nothing can be put inside it as [`crate::sqlite`] does. Observers stand around it:
//!
//! - [`ServerCapture`]: every system call on its files, through tracepoints of the kernel,
//!   restricted to its tasks; file descriptors are led back to files, files to classes. As root.
//! - [`attribute`]: which of the I/Os belong to which transaction of which connection, by what the
//!   client knows.
//! - [`ServerClock`]: processor time of the server, its client, kernel threads and others; no root
//!   needed.
//!
//! `/proc/PID/io` is used nowhere: on file systems with large folios its `write_bytes` charges a
//! whole folio for each page that becomes dirty, up to 256 times what was written.

mod calls;
mod class;
mod clock;
mod files;
mod logical;
mod tasks;
mod tracker;
mod transactions;

pub use class::{Class, Server, System};
pub use clock::{ServerClock, ServerCpu, parts_of};
pub use logical::{Actor, Logical, Options, ServerCapture, ServerFile, Unresolved};
pub use transactions::{Span, TransactionIo, attribute};
