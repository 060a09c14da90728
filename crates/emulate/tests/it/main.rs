//! Devices served on real mounts.

mod directory;
mod faults;
mod file_system;
mod fuzz_seeds;
mod nbd;
mod support;
