//! Processors, and what a stretch of computing costs on them.

use std::cell::Cell;

use rustix::time::{ClockId, clock_gettime};

/// What computing costs in virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Computing {
    /// The processor time that the thread took, divided by `speed`.
    Measured {
        /// How many times faster the simulated processors are than this machine's.
        speed: f64,
    },
    /// The same for every stretch between two requests, ns: repeatable to the byte.
    Stretch(u64),
    /// Nothing: only storage takes time.
    Nothing,
}

/// The processor time of the calling thread since it was last looked at.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    mark_ns: Cell<u64>,
    /// What reading the clock takes: it is not the program's.
    reading_ns: u64,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        let reads = || {
            let start = thread_cpu_ns();
            thread_cpu_ns() - start
        };
        let reading_ns = (0..100).map(|_| reads()).min().unwrap_or(0);
        Self { mark_ns: Cell::new(thread_cpu_ns()), reading_ns }
    }

    /// What follows counts.
    pub(crate) fn start(&self) {
        self.mark_ns.set(thread_cpu_ns());
    }

    /// What was computed since [`Stopwatch::start`], ns of virtual time.
    pub(crate) fn stop(&self, computing: Computing) -> u64 {
        match computing {
            Computing::Measured { speed } => {
                let took_ns = thread_cpu_ns().saturating_sub(self.mark_ns.get());
                (took_ns.saturating_sub(self.reading_ns) as f64 / speed) as u64
            }
            Computing::Stretch(ns) => ns,
            Computing::Nothing => 0,
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processors that serve stretches of computing in the order of their beginning.
#[derive(Debug)]
pub(crate) struct Processors {
    /// When each is free, ns.
    free_ns: Vec<u64>,
}

impl Processors {
    pub(crate) fn new(count: u32) -> Self {
        Self { free_ns: vec![0; count.max(1) as usize] }
    }

    /// When a stretch of `cost_ns` that may begin at `ready_ns` ends.
    pub(crate) fn end_ns(&mut self, ready_ns: u64, cost_ns: u64) -> u64 {
        if cost_ns == 0 {
            return ready_ns;
        }
        let first = self.free_ns.iter_mut().min().expect("one processor at least");
        *first = ready_ns.max(*first) + cost_ns;
        *first
    }
}
