//! Measures the load that commits ([`fit::commit_load`]) through the dependent replay.

use std::collections::BTreeMap;

use events::{Event, Sink};
use fit::commit_load;
use fit::measurement::{CommitClass, CommitLoad, Distribution, Order};
use io::engine::Device;
use io::target::{TargetInfo, TargetSpec};
use stats::Histogram;
use trace::Op;

use crate::clock;
use crate::error::Error;
use crate::replay::{Mode, ReplayOptions, replay_on};

/// Transactions of the load, more than a fast device does in the time given.
const TRANSACTIONS: u32 = 40_000;
/// Shortest time worth measuring.
pub(crate) const SHORTEST_S: f64 = 1.0;

/// Stops the replay when its time is over, and keeps its events to itself.
struct Deadline<'a> {
    outer: &'a dyn Sink,
    at_ns: u64,
    show: &'a (dyn Fn() + Sync),
}

impl Sink for Deadline<'_> {
    fn emit(&self, event: Event) {
        if matches!(event, Event::Progress { .. }) {
            (self.show)();
        }
    }

    fn cancelled(&self) -> bool {
        self.outer.cancelled() || clock::now_ns() >= self.at_ns
    }
}

/// Runs the load for `seconds` on a target whose range has been written, and sorts its times.
pub(crate) fn measure<D: Device>(
    device: &D,
    info: &TargetInfo,
    (seed, seconds): (u64, f64),
    sink: &dyn Sink,
    show: &(dyn Fn() + Sync),
) -> Result<CommitLoad, Error> {
    let range_bytes = info.range_bytes;
    let trace = commit_load::trace(range_bytes, TRANSACTIONS, seed);
    let options = ReplayOptions {
        mode: Mode::Dependent,
        precondition: false,
        keep_file: true,
        seed,
        ..ReplayOptions::new(TargetSpec::new(&info.path))
    };
    let at_ns = clock::now_ns() + (seconds * 1e9) as u64;
    let deadline = Deadline { outer: sink, at_ns, show };
    let replayed = replay_on(device, info, &trace, &options, Vec::new(), &deadline)?;
    let mut times: BTreeMap<(u8, Order, u32), (Op, Histogram)> = BTreeMap::new();
    let mut requests = 0;
    for ((op, order, size_bytes), response) in
        commit_load::classes(&trace).into_iter().zip(&replayed.response_ns)
    {
        // A request that was still to be issued when the time was over has none.
        if *response > 0 {
            requests += 1;
            let class = times.entry((op as u8, order, size_bytes));
            class.or_insert_with(|| (op, Histogram::new())).1.record(*response);
        }
    }
    let classes = times.into_iter().map(|((_, order, size_bytes), (op, histogram))| CommitClass {
        op,
        order,
        size_bytes,
        response: Distribution {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            buckets: histogram.buckets(),
        },
    });
    Ok(CommitLoad { seed, range_bytes, requests, classes: classes.collect() })
}
