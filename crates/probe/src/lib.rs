//! Measures real devices, fits profiles to them, and replays traces on them.
//!
//! The edge crate that talks to the kernel: io_uring, O_DIRECT, one ring per thread.

pub mod measurement;
