//! Writes the range before it is measured: a block that was never written has no place on a flash
//! device, and reading it measures nothing.
//!
//! Sequential passes with 128 KiB requests (SNIA PTS, workload-independent preconditioning), then,
//! for full plans, as many bytes at random in 4 KiB requests. Every block differs from every other.

use fit::measurement::FILL_BYTES;
use std::sync::atomic::AtomicBool;

use io::engine::{Device, EngineOptions};
use stats::rng::Rng;
use trace::Op;

use crate::driver::{self, DriveOptions, Flight, Order, Work};
use crate::error::Error;

const RANDOM_BYTES: u32 = 4096;
const SLOTS: u32 = 16;

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) range_bytes: u64,
    pub(crate) passes: u32,
    pub(crate) random: bool,
    pub(crate) seed: u64,
}

/// Writes until done or until `watch`, called with the share done, returns false.
pub(crate) fn fill<D: Device>(
    device: &D,
    fill: Fill,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<(), Error> {
    let rounds = fill.passes + u32::from(fill.random);
    let mut pass = |number: u32, size: u32, random: bool| -> Result<bool, Error> {
        let options = EngineOptions { slots: SLOTS, slot_bytes: size, dsync: false };
        let mut engine = device.engine(options)?;
        let stop = AtomicBool::new(false);
        let mut goes_on = true;
        let mut work = FillWork {
            range_bytes: fill.range_bytes,
            size,
            next: 0,
            random: random.then(|| Rng::new(fill.seed)),
            completed: 0,
            watch: &mut |share| {
                goes_on = watch((f64::from(number) + share) / f64::from(rounds));
                goes_on
            },
            stopped: false,
        };
        let seed = fill.seed.wrapping_add(u64::from(number) + 1);
        let drive = DriveOptions { slots: SLOTS, spin_ns: 0, seed };
        driver::drive(device, &mut engine, &mut work, drive, &stop)?;
        Ok(goes_on)
    };
    for number in 0..fill.passes {
        if !pass(number, FILL_BYTES, false)? {
            return Ok(());
        }
    }
    if fill.random && !pass(fill.passes, RANDOM_BYTES, true)? {
        return Ok(());
    }
    Ok(device.flush().map_err(|source| io::Error::target("flush", device.path(), source))?)
}

struct FillWork<'a> {
    range_bytes: u64,
    size: u32,
    next: u64,
    random: Option<Rng>,
    completed: u64,
    watch: &'a mut dyn FnMut(f64) -> bool,
    stopped: bool,
}

/// How many requests pass between two looks at the clock and the user.
const WATCH_EVERY: u64 = 256;

impl Work for FillWork<'_> {
    fn next_due(&mut self, _now_ns: u64) -> Option<u64> {
        (!self.stopped && self.next < self.range_bytes).then_some(0)
    }

    fn take(&mut self, now_ns: u64) -> Order {
        let left = self.range_bytes - self.next;
        let len = u64::from(self.size).min(left) as u32;
        let offset = match &mut self.random {
            Some(rng) => rng.below(self.range_bytes / u64::from(self.size)) * u64::from(self.size),
            None => self.next,
        };
        self.next += u64::from(len);
        Order { op: Op::Write, offset, len, tag: 0, due_ns: now_ns }
    }

    fn completed(&mut self, _flight: &Flight, _at_ns: u64) -> bool {
        self.completed += 1;
        if self.completed.is_multiple_of(WATCH_EVERY) {
            let share = self.completed as f64 * f64::from(self.size) / self.range_bytes as f64;
            self.stopped |= !(self.watch)(share.min(1.0));
        }
        false
    }
}
