//! What an emulated device has served so far, and how punctually.

use serde::Serialize;
use stats::Histogram;
use trace::Op;

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpCounters {
    /// Requests answered.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the model gave them, ns: completion less arrival.
    pub service: Histogram,
}

/// What a device has served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// By kind, in the order of [`Op::ALL`].
    ops: [OpCounters; 4],
    /// How much later than the model said an answer left, ns: the emulator's own error.
    pub lateness: Histogram,
    /// Most requests that were under way at once.
    pub depth_max: usize,
}

impl Counters {
    /// Requests of one kind.
    pub fn of(&self, op: Op) -> &OpCounters {
        &self.ops[op as usize]
    }

    /// Requests answered.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|op| op.requests).sum()
    }

    /// What the model gave the typical request, ns; 0 before the first.
    pub fn service_ns_p50(&self) -> u64 {
        let mut all = Histogram::new();
        self.ops.iter().for_each(|op| all.merge(&op.service));
        if all.is_empty() { 0 } else { all.quantile(0.5) }
    }

    /// 99 % of the answers left no later than this after they should have, ns.
    pub fn late_ns_p99(&self) -> u64 {
        if self.lateness.is_empty() { 0 } else { self.lateness.quantile(0.99) }
    }

    pub(crate) fn arrived(&mut self, depth: usize) {
        self.depth_max = self.depth_max.max(depth);
    }

    pub(crate) fn answered(&mut self, op: Op, bytes: u64, service_ns: u64, late_ns: u64) {
        let counts = &mut self.ops[op as usize];
        counts.requests += 1;
        counts.bytes += bytes;
        counts.service.record(service_ns);
        self.lateness.record(late_ns);
    }
}
