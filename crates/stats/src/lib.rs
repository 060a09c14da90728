//! The statistics wearmark reports, and the random numbers it draws.
//!
//! Everything is exact or states its error; nothing reads a clock or draws randomness that the
//! caller did not seed. Figures that could be infinite are defined so that they stay finite,
//! because they end in JSON.

#![forbid(unsafe_code)]

pub mod autocorrelation;
pub mod bootstrap;
pub mod change;
pub mod chi_square;
pub mod demerit;
pub mod error_ratio;
pub mod histogram;
pub mod level;
pub mod quantile;
pub mod regression;
pub mod rng;
pub mod steady;
pub mod zipf;

pub use autocorrelation::autocorrelation_time;
pub use demerit::demerit;
pub use histogram::Histogram;
pub use quantile::{quantile_sorted, quantile_sorted_f64};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
