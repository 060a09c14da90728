//! I/O on real files and block devices: the engines, the buffers, and the guards of a target.
//!
//! The edge crate that talks to the kernel: io_uring, O_DIRECT, one ring per thread. [`target`]
//! says what a path is, whether it may be written, and opens it; [`engine`] is one small trait with
//! the engines behind it, so that the null device of the benches and the failing device of the
//! tests exercise what runs on real ones; [`buffer`] is memory for O_DIRECT and data that no device
//! can compress. What is measured or stored with it is the business of others.
//!
//! Invariants: nothing is written outside files that wearmark created or a target that was named
//! twice; every request queued completes exactly once. Tests: beside the code on pretended sysfs
//! trees and mount tables; the guards and injected faults through `probe` and `spill`.

#[cfg(not(target_os = "linux"))]
compile_error!("io needs Linux: it uses io_uring and direct I/O");

pub mod buffer;
pub mod engine;
mod error;
pub mod target;

pub use error::Error;
