//! Capture of SQLite's I/O through a VFS of our own.
//!
//! Open connections with [`VFS_NAME`] while a [`Session`] runs:
//!
//! ```
//! use capture::sqlite::{Context, Session, SessionOptions, VFS_NAME, register, set_context};
//! use rusqlite::{Connection, OpenFlags};
//!
//! let directory = tempfile::tempdir()?;
//! register()?;
//! let session = Session::start(SessionOptions::new(directory.path()))?;
//! let path = directory.path().join("db");
//! let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS_NAME)?;
//! set_context(Context { actor: 0, transaction: 1, kind: 0 });
//! connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(a)")?;
//! let captured = session.finish();
//! assert!(captured.logical.count() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The logical trace is what SQLite asked; the device trace is what the VFS asked of the kernel
//! past the page cache ([`IoMode::Direct`]), or what a simple page-cache model says would have
//! followed ([`IoMode::Buffered`]). Both share one linear address space (see [`FileInfo`]).
//!
//! With [`SessionOptions::world`] the same requests go to a device in virtual time instead.
//!
//! Limits: one session per process at a time; while connections through this VFS are open, the
//! same process must not open the same database through another VFS in `Direct` mode, because
//! closing our descriptor would drop the other's POSIX locks.

mod direct;
mod files;
mod layout;
mod log;
mod page_cache;
mod recorder;
mod session;
mod shared;
mod simulated;
mod vfs;

pub use crate::account::{Account, ClassAccount, OpAccount, RatePoint, account};
pub use files::FileClass;
pub use layout::{Captured, FileInfo, IoMode};
pub use recorder::{Context, set_context};
pub use session::{Session, SessionOptions};
pub use vfs::{VFS_NAME, register};
