//! What a database server asks of storage and what the device does for it, by file class.
//!
//! A server is a tree of processes (PostgreSQL) or one process with many threads (MariaDB), so
//! nothing can be put inside it as [`crate::sqlite`] does. Observers stand around it:
//!
//! - [`ServerCapture`]: every system call on its files, through tracepoints of the kernel,
//!   restricted to its tasks; file descriptors are led back to files, files to classes. As root.
//! - [`attribute`]: which of the I/Os belong to which transaction of which connection, by what the
//!   client knows.
//! - [`requests`]: where nobody tells of transactions, the requests of the clients, from when
//!   messages come in and answers go out.
//! - [`PhysicalCapture`]: every request of the disks under its directories, led back to the classes
//!   by where the files lay on the disk while the load ran. As root.
//! - [`ServerClock`]: processor time of the server, its client, kernel threads and others; no root
//!   needed. [`RoleClock`] has it by what the server's tasks do.
//!
//! [`Observer`] runs them all, [`ServerAccounts`] brings them together. [`by_pid`], [`by_data`] and
//! [`by_control_group`] find a server that somebody else started. `/proc/PID/io` is used nowhere:
//! on file systems with large folios its `write_bytes` charges a whole folio for each page that
//! becomes dirty, up to 256 times what was written.

mod accounts;
mod calls;
mod class;
mod clock;
mod files;
mod find;
mod groups;
mod journal;
mod logical;
mod observer;
mod physical;
mod requests;
mod roles;
mod summary;
mod tasks;
mod tracker;
mod transactions;
mod wakes;
mod watch;

pub use accounts::{CLOSE, Closure, PerTransaction, Quality, ServerAccounts, Sources};
pub use class::{Class, Server, System};
pub use clock::{DISTURBED_SHARE, ServerClock, ServerCpu, parts_of};
pub use find::{by_control_group, by_data, by_pid, is_alive};
pub use groups::TaskGroups;
pub use logical::{Actor, Logical, Options, ServerCapture, ServerFile, Unresolved};
pub use observer::{Observed, Observer};
pub use physical::{PhysicalCapture, PhysicalClass, ServerPhysical};
pub use requests::{REQUEST_KINDS, RequestKind, RequestSummary, Requests, requests};
pub use roles::{CONNECTION, RoleClock, RoleCpu, TaskTimes};
pub use summary::{Row, rows};
pub use transactions::{Span, TransactionIo, attribute};
pub use wakes::WakeCosts;
