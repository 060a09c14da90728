//! Devices served on real mounts.

mod directory;
mod faults;
mod fuzz_seeds;
mod nbd;
mod support;
