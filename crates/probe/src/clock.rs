//! The clocks of the crate: monotonic time, CPU time of a thread, run-queue delay.
//!
//! `CLOCK_MONOTONIC` through the vDSO costs about 20-25 ns where the clock source is the TSC, which
//! is as cheap as a calibrated `rdtsc` plus its conversion and never needs recalibration, so it is
//! the only clock used for latencies (measured by `benches/tool_share`).

use std::fs;

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_REALTIME - CLOCK_MONOTONIC`, ns: changes when somebody steps the wall clock.
pub fn wall_offset_ns() -> i64 {
    let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    wall.tv_sec * 1_000_000_000 + wall.tv_nsec - now_ns() as i64
}

/// CPU time that a thread or process has used, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel on its behalf.
    pub system_ns: u64,
}

impl CpuTime {
    /// Of the calling thread so far.
    pub fn of_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Of all threads of this process so far.
    pub fn of_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    /// User and kernel together, ns.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    fn of(who: libc::c_int) -> Self {
        // SAFETY: all-zero bytes are a valid rusage, and getrusage only writes into it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let nanos =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self { user_ns: nanos(usage.ru_utime), system_ns: nanos(usage.ru_stime) }
    }
}

/// Nanoseconds that the calling thread has waited on a run queue while it could have run; `None`
/// where the kernel keeps no scheduler statistics.
pub fn run_queue_delay_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_forward() {
        let (time, cpu) = (now_ns(), CpuTime::of_thread());
        let mut sum = 0u64;
        while now_ns() < time + 30_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let used = CpuTime::of_thread().since(cpu).total_ns();
        assert!(used > 0, "30 ms of work used no CPU");
        assert!(CpuTime::of_process().total_ns() >= used);
    }
}
