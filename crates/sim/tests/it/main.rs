//! Simulations from outside the crate.

mod closed_loop;
mod profiles;
mod replay;
