//! A device model served in real time, so that programs run on a device that is not there.
//!
//! [`Emulation`] serves any [`model::Device`] under directories of the user: every read that misses
//! the kernel's cache, every write, sync and trim of the files in them takes the time that the
//! model says. One thread per device runs an event loop ([`serve`]); the model is asked in real
//! time ([`line`]); a directory comes in through FUSE ([`fuse`]), a block device through a socket
//! ([`nbd`]). [`Lossy`] serves a directory without a device, for power cuts alone.
//!
//! It is an honest device: what was synced survives a crash of the emulator, and of the power
//! ([`Emulation::cut_power`]); what was not may be lost, by sectors, never more. It does not
//! survive a crash of the machine that it runs on: the directory below is written, not synced.
//!
//! Tested in virtual time (`line.rs`), against oracles (`fuse/layout.rs`, `fuse/images.rs`), and on
//! real mounts in `tests/it`.

#[cfg(not(target_os = "linux"))]
compile_error!("emulate needs Linux: it uses FUSE and loop devices");

mod awake;
mod block;
mod clock;
pub mod control;
mod counters;
mod emulation;
mod error;
mod faults;
pub mod file_system;
mod fuse;
mod line;
mod nbd;
#[doc(hidden)]
pub mod offline;
mod outcome;
mod path;
mod port;
mod serve;
mod syncs;

pub use awake::Awake;
pub use emulation::{Emulation, Export, Options, Served, Status};
pub use error::Error;
pub use faults::Faults;
pub use fuse::lossy::{Lossy, mount_all};
pub use fuse::place::Counts;
pub use fuse::power_cut::{Fate, Lost};
pub use outcome::{OpOutcome, Outcome};
pub use syncs::SyncComputing;

/// What keeps this machine from offering loop devices, and what to do about it.
pub fn blocks_missing() -> Option<(String, &'static str)> {
    block::missing()
}

/// What keeps this machine from serving directories, and what to do about it; `None` where nothing
/// does.
pub fn directories_missing() -> Option<(String, &'static str)> {
    fuse::mount::missing()
}
