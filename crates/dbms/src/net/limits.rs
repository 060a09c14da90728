//! How long a wait on a server may last, and what ends it early.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bounds on every wait for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first name lookup to the end of the login.
    pub login: Duration,
    /// Longest silence of the server while it executes a statement.
    pub answer: Duration,
    /// What the user stops waits with.
    pub stop: Stop,
}

impl Default for Limits {
    /// 15 s for a login; an hour for an answer, since building an index of a large table is one.
    fn default() -> Self {
        Self {
            login: Duration::from_secs(15),
            answer: Duration::from_hours(1),
            stop: Stop::default(),
        }
    }
}

/// The flag that the user's Ctrl-C sets; nothing stops a wait without one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop(Option<&'static AtomicBool>);

impl Stop {
    /// Waits end soon after `flag` is set.
    pub fn by(flag: &'static AtomicBool) -> Self {
        Self(Some(flag))
    }

    /// Whether the user asked to stop.
    pub fn asked(self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(std::ptr::from_ref) == other.0.map(std::ptr::from_ref)
    }
}

impl Eq for Stop {}
