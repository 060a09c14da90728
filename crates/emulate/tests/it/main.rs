//! Devices served on real mounts.

mod directory;
mod faults;
mod nbd;
mod support;
