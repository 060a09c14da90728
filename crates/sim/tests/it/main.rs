//! Simulations from outside the crate.

#[path = "../../benches/load/mod.rs"]
mod load;

mod closed_loop;
mod golden;
mod parts;
mod profiles;
mod queued;
mod queueing;
mod replay;
mod timeline;
mod transactions;
mod trims;
mod warm_up;
