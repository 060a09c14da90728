//! Simulations from outside the crate.

mod closed_loop;
mod golden;
mod profiles;
mod queued;
mod replay;
