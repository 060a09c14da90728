//! The statistics wearmark reports, and the random numbers it draws.
//!
//! Everything is exact or states its error; nothing reads a clock or draws randomness that the
//! caller did not seed.

#![forbid(unsafe_code)]

pub mod rng;
