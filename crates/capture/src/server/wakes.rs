//! What it costs on this machine to wake a task on another processor.
//!
//! One that idles has to be woken itself, unless it polls for work: a few microseconds, and tens of
//! them where a hypervisor has put it to sleep. One that computes for somebody of less importance
//! is sent an interrupt. In a virtual machine both ends of that leave the guest: some 8 us each, as
//! much as a server computes for a short statement.
//!
//! Measured with three threads of our own: one sleeps on one processor, one on another processor
//! wakes it again and again, and after a while one computes beside the sleeper at the lowest
//! priority.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Wakes that are timed of each kind.
const WAKES: usize = 200;
/// Time between two: the task that was woken sleeps again.
const APART: Duration = Duration::from_micros(100);
/// The lowest priority.
const LOWEST: i32 = 19;

/// What it costs to wake a task on another processor: medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WakeCosts {
    /// From the call to the task, where the processor idles, ns.
    pub idle_ns: f64,
    /// What the call itself takes, where the processor computes and is interrupted, ns.
    pub interrupt_ns: f64,
}

impl WakeCosts {
    /// Measures them on processors that idle, in a twentieth of a second; `None` where this process
    /// has only one.
    pub fn measure() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut own = (0..CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at));
        let (here, there) = (own.next()?, own.next()?);
        let shared = &Shared::default();
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| sleep(there, shared)).thread().clone();
            let waker = scope.spawn(move || {
                pin(here);
                let (_, idle_ns) = wake(&sleeper, shared);
                let busy = scope.spawn(move || compute(there, shared));
                let (interrupt_ns, _) = wake(&sleeper, shared);
                shared.over.store(true, Ordering::Relaxed);
                sleeper.unpark();
                _ = busy.join();
                Self { idle_ns, interrupt_ns }
            });
            waker.join().ok()
        })
    }
}

/// What the threads share.
struct Shared {
    origin: Instant,
    over: AtomicBool,
    /// When the sleeper ran last, ns since the origin.
    ran_ns: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self { origin: Instant::now(), over: AtomicBool::new(false), ran_ns: AtomicU64::new(0) }
    }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }
}

/// Threads that could not be moved measure something else; they are left where they are, since a
/// processor may be taken from a process at any time.
fn pin(at: usize) {
    let mut only = CpuSet::new();
    only.set(at);
    _ = sched_setaffinity(None, &only);
}

fn compute(at: usize, shared: &Shared) {
    pin(at);
    // The priority is that of a thread on Linux (setpriority(2), "C library/kernel differences").
    _ = setpriority_process(Pid::from_raw(gettid().as_raw_nonzero().get()), LOWEST);
    while shared.goes_on() {
        std::hint::spin_loop();
    }
}

fn sleep(at: usize, shared: &Shared) {
    pin(at);
    while shared.goes_on() {
        thread::park();
        shared.ran_ns.store(shared.now_ns(), Ordering::Release);
    }
}

/// Medians of what the call takes and of when the sleeper runs after it began, ns.
fn wake(sleeper: &Thread, shared: &Shared) -> (f64, f64) {
    let wait = || {
        let begun = Instant::now();
        while begun.elapsed() < APART {
            std::hint::spin_loop();
        }
    };
    let each = || {
        let begun = shared.now_ns();
        sleeper.unpark();
        let called = shared.now_ns();
        wait();
        let ran = shared.ran_ns.load(Ordering::Acquire);
        (called - begun, ran.saturating_sub(begun))
    };
    wait();
    let (calls, runs): (Vec<u64>, Vec<u64>) = (0..WAKES).map(|_| each()).unzip();
    let median = |mut times: Vec<u64>| {
        times.sort_unstable();
        times[times.len() / 2] as f64
    };
    (median(calls), median(runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_a_task_costs_more_than_a_system_call() {
        let processors = thread::available_parallelism().unwrap().get();
        match WakeCosts::measure() {
            // A wake is a system call, 60 ns at the very least; none takes a millisecond.
            Some(WakeCosts { idle_ns, interrupt_ns }) => {
                assert!((60.0..1e6).contains(&idle_ns), "{idle_ns} ns");
                assert!((60.0..1e6).contains(&interrupt_ns), "{interrupt_ns} ns");
                println!("{idle_ns} ns to an idle processor, {interrupt_ns} ns to interrupt one");
            }
            None => assert_eq!(processors, 1),
        }
    }
}
