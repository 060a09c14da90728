//! CPU time of one thread, and how punctually it wakes.

/// User and system time that the calling thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ThreadCpu {
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
}

impl ThreadCpu {
    /// As of now.
    pub fn now() -> Self {
        // SAFETY: rusage is plain integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live rusage of this frame. RUSAGE_THREAD and a valid pointer
        // cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) }
    }

    /// Both.
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, system_s: self.system_s - earlier.system_s }
    }
}

/// Asks the kernel to end this thread's sleeps when they are due: by default it may be 50 us late,
/// so that it can end several at once (prctl(2), PR_SET_TIMERSLACK).
pub(crate) fn wake_on_time() {
    // SAFETY: the call takes plain numbers and changes this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_threads_time_counts() {
        let before = ThreadCpu::now();
        std::thread::spawn(|| (0..20_000_000u64).fold(0, |a, b| std::hint::black_box(a ^ b)))
            .join()
            .unwrap();
        let asleep = ThreadCpu::now().since(before).total_s();
        let before = ThreadCpu::now();
        while ThreadCpu::now().since(before).total_s() < 0.02 {}
        assert!(asleep < 0.01, "{asleep}");
    }
}
