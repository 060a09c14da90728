//! Closed loops on shipped profiles.

use profile::Profile;
use profile::linear::Pattern;
use sim::{DepthOutcome, Synthetic, closed_loop_depth};

use crate::Effort;

pub(crate) const KIB: u32 = 1 << 10;

/// A load of this many outstanding requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub pattern: Pattern,
    pub read_share: f64,
    pub bytes: u32,
    pub depth: usize,
    /// Counted, after as many that are not.
    pub requests: u64,
}

impl Load {
    pub(crate) const fn reads(pattern: Pattern, bytes: u32) -> Self {
        Self { pattern, read_share: 1.0, bytes, depth: 1, requests: 4000 }
    }

    pub(crate) const fn writes(pattern: Pattern, bytes: u32) -> Self {
        Self { read_share: 0.0, ..Self::reads(pattern, bytes) }
    }

    pub(crate) const fn deep(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    pub(crate) const fn long(self, requests: u64) -> Self {
        Self { requests, ..self }
    }
}

/// A shipped profile.
pub(crate) fn shipped(name: &str) -> Profile {
    let text = profile::find_shipped(name).unwrap_or_else(|| panic!("{name} ships"));
    Profile::from_toml(text, name).unwrap_or_else(|error| panic!("{error}"))
}

/// The profile, or one that costs nothing to make where figures do not matter.
pub(crate) fn for_effort(profile: Profile, effort: Effort) -> Profile {
    if effort == Effort::Names { shipped("intel-p3700") } else { profile }
}

/// Runs a load on a new device of the profile, over the share `fill` of it.
pub(crate) fn run(profile: &Profile, fill: f64, load: Load, effort: Effort) -> DepthOutcome {
    let mut device = model::device(&for_effort(profile.clone(), effort), 1);
    let capacity = device.capacity().map_or(32_000_000_000.0, |bytes| bytes.0 as f64);
    let count = effort.count(load.requests);
    let synthetic = Synthetic {
        range_bytes: (capacity * fill) as u64 / (1 << 20) * (1 << 20),
        warm_up_requests: count,
        ..Synthetic::new(load.pattern, load.read_share, load.bytes)
    };
    closed_loop_depth(device.as_mut(), synthetic, load.depth, count)
}

/// Mean response in ms of what the load does.
pub(crate) fn mean_ms(outcome: &DepthOutcome) -> f64 {
    let times = if outcome.reads.is_empty() { &outcome.writes } else { &outcome.reads };
    times.mean() / 1e6
}
