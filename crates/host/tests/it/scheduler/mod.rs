//! I/O schedulers against slow oracles of their published rules.

mod front;
mod harness;
