//! I/O schedulers against slow oracles of their published rules.

mod deadline;
mod front;
mod harness;
mod kyber;
mod throttle;
