//! What a running database asks of storage, and what reaches the device: captured, never guessed.
//!
//! - [`sqlite`]: every logical I/O of SQLite, through a VFS of our own, and the aligned requests
//!   that it issues when the page cache is bypassed; no root needed.
//! - [`server`]: the system calls of a database server, by file class and transaction, as root.
//! - [`block`]: what the block layer really issued, through tracefs, where the machine lets us.
//! - [`diskstats`]: the kernel's own counters of the device, to close the account.
//! - [`cpu`]: where processor time went, over time, for this process and for the machine.
//!
//! Every capture counts what it lost and says what it could not see. Times are CLOCK_MONOTONIC, so
//! that the layers line up.

#[cfg(not(target_os = "linux"))]
compile_error!("capture needs Linux: it uses the kernel's tracepoints and /proc");

mod account;
pub mod block;
pub mod cpu;
mod device;
pub mod diskstats;
mod error;
pub mod server;
pub mod sqlite;
mod tracefs;
mod unavailable;

pub use account::{Account, ClassAccount, OpAccount, RatePoint, account};
pub use error::Error;
pub use unavailable::Unavailable;

/// Nanoseconds of CLOCK_MONOTONIC: the clock that the kernel's tracer stamps with too.
pub fn clock_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

use clock_ns as now_ns;

/// Where unit tests put their files: the build folder, which is on a disk where /tmp may not be.
#[cfg(test)]
pub(crate) fn test_home() -> std::path::PathBuf {
    let program = std::env::current_exe().expect("a test has a program");
    program.parent().expect("in a folder").to_owned()
}
