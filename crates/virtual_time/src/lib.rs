//! Real threads in virtual time: execution-driven simulation.
//!
//! A program runs as it is, with its own threads, but its clock is not the machine's. What a thread
//! computes takes the processor time that it really took ([`Computing`]), on as many processors as
//! the [`World`] has; what it asks of storage takes the time of a device model. Nothing sleeps: of
//! all workers the one with the earliest time runs, alone, until it asks for something, so a run
//! takes its processor time however slow the device is, and however busy the machine.
//!
//! ```
//! use model::Device;
//! use trace::{Op, Request};
//! use units::Nanos;
//! use virtual_time::{Computing, Settings, World};
//!
//! struct Millisecond;
//! impl Device for Millisecond {
//!     fn submit(&mut self, now: Nanos, _: &Request) -> Nanos {
//!         Nanos(now.0 + 1_000_000)
//!     }
//! }
//!
//! let settings = Settings { processors: 2, computing: Computing::Nothing };
//! let world = World::new(Box::new(Millisecond), &settings);
//! world.expect(1);
//! let member = world.join(0);
//! world.io(Op::Write, 0, 4096, 0);
//! world.io(Op::Flush, 0, 0, 0);
//! assert_eq!(world.now_ns(), 2_000_000);
//! drop(member);
//! ```
//!
//! The same input gives the same order of requests, up to the jitter of the processor time; with
//! [`Computing::Nothing`] the same bytes.

#![forbid(unsafe_code)]

mod processors;
mod world;

pub use processors::Computing;
pub use world::{Member, Settings, World, give_way, sleep};
