//! I/O schedulers against slow oracles of their published rules.

mod anticipatory;
mod bfq;
mod cfq;
mod deadline;
mod disk;
mod front;
mod harness;
mod kyber;
mod published;
mod throttle;
