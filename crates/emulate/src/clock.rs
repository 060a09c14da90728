//! The clock of the emulator, and the rights that its threads ask for.

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Asks for exact timers and for a place before ordinary threads; what is refused is done without.
///
/// Not a real-time class: on a machine of two processors such a thread, woken across processors,
/// starves the kernel's own workers behind loop devices (a random read then takes 30 us instead of
/// 6).
pub(crate) fn punctual() {
    // SAFETY: both calls take numbers, concern the calling thread and touch no memory.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::setpriority(libc::PRIO_PROCESS, 0, -15);
    }
}
