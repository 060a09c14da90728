//! How a trace is to be read where its file does not say.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::column_list::Columns;
use super::format::Format;

/// The unit of a format's times, where its writers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Windows FILETIME ticks of 100 ns.
    #[serde(rename = "100ns")]
    HundredNanoseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
}

impl TimeUnit {
    /// All of them, from the shortest.
    pub const ALL: [Self; 5] = [
        Self::Nanoseconds,
        Self::HundredNanoseconds,
        Self::Microseconds,
        Self::Milliseconds,
        Self::Seconds,
    ];

    /// Its length.
    pub fn nanos(self) -> u64 {
        match self {
            Self::Nanoseconds => 1,
            Self::HundredNanoseconds => 100,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }

    /// Its name: `ns`, `100ns`, `us`, `ms`, `s`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::HundredNanoseconds => "100ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }
}

impl std::str::FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|unit| unit.name() == text);
        found.ok_or_else(|| format!("'{text}' is none of the time units ns, 100ns, us, ms, s"))
    }
}

/// How a trace is to be read. The default takes a format at its documented word and stops at the
/// first bad record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; detected where it is `None`.
    pub format: Option<Format>,
    /// What the columns of a text are, where its lines are none of the formats.
    pub columns: Option<Columns>,
    /// Leaves bad records out and counts them, instead of stopping at the first.
    pub lenient: bool,
    /// Threads that parse, at least 1. The trace does not depend on them.
    pub threads: usize,
    /// Unit of the times, where it is not the one that the format documents.
    pub time_unit: Option<TimeUnit>,
    /// Bytes of a sector, where it is not the one that the format documents.
    pub sector_bytes: Option<u32>,
    /// For formats whose op is a number: whether 1 (else 0) is a read, where it is not as
    /// documented.
    pub read_is_one: Option<bool>,
    /// Size of the device that the trace was taken on; requests beyond it are suspect.
    pub capacity: Option<Bytes>,
    /// Takes the times at which requests were queued, where a format also knows when they were
    /// issued.
    pub queued_times: bool,
    /// Ends the reading with [`Error::Interrupted`](crate::Error::Interrupted).
    pub stop: Stop,
}

/// A flag, such as a signal handler sets, that ends a reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop(Option<&'static AtomicBool>);

impl Stop {
    /// Reads until `flag` is set.
    pub fn on(flag: &'static AtomicBool) -> Self {
        Self(Some(flag))
    }

    /// Whether to stop now.
    pub(crate) fn is_wanted(self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Options that read the same are equal, whoever may stop them.
impl PartialEq for Stop {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Stop {}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            columns: None,
            lenient: false,
            threads: 1,
            time_unit: None,
            sector_bytes: None,
            read_is_one: None,
            capacity: None,
            queued_times: false,
            stop: Stop::default(),
        }
    }
}
