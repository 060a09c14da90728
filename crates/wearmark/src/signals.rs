//! Ctrl-C: the first asks every stage to keep what it has and stop, the second ends at once. A step
//! that another wearmark started stops likewise when that one is killed.

use std::sync::atomic::Ordering;

use crate::view::CANCELLED;

/// Exit code of a run that the user stopped: 128 + SIGINT, as shells expect.
pub const INTERRUPTED: u8 = 130;

extern "C" fn on_signal(_signal: libc::c_int) {
    // Only async-signal-safe calls here: an atomic swap and _exit.
    if CANCELLED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe and never returns.
        unsafe { libc::_exit(INTERRUPTED.into()) }
    }
}

/// Takes over SIGINT and SIGTERM.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler is async-signal-safe and has the signature that signal(2) wants.
        unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
    }
}

/// A step that others wait for becomes a session of its own, before all others: where sessions are
/// scheduling groups (sched(7)) the priority of a thread counts within its group alone, and an
/// emulator would wait behind every process of the server. Without the right to it, it waits.
pub fn stand_before_others() {
    if std::env::var_os(study::prove::PARENT).is_some() && rustix::process::setsid().is_ok() {
        _ = std::fs::write("/proc/self/autogroup", "-15");
    }
}

/// Asks to be stopped when the wearmark that started this process as a step of its own has ended.
pub fn end_with_parent() {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    let Ok(parent) = std::env::var(study::prove::PARENT) else { return };
    _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have ended before that.
    if Pid::as_raw(getppid()).to_string() != parent {
        CANCELLED.store(true, Ordering::Relaxed);
    }
}
