//! What a simulation found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::{Op, Stream};

use crate::breakdown::Breakdown;
use crate::wear::WearMark;

/// Everything an open-loop replay found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Requests completed: all that the trace holds, but for those of the warm-up.
    pub requests: u64,
    /// Requests completed in the warm-up, of which only counters and marks know.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_requests: u64,
    /// When the first request after the warm-up was due, from the start of the trace, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_ns: u64,
    /// From the start of the trace to the last completion, ns.
    pub span_ns: u64,
    /// From the start of the trace to the last due time, ns.
    #[serde(default)]
    pub due_span_ns: u64,
    /// One per (operation, stream) that occurs, in that order.
    pub classes: Vec<ClassOutcome>,
    /// Counts of the device model, by name: cache hits, destaged bytes.
    pub counters: BTreeMap<String, u64>,
    /// What writing did to the device, from the end of the warm-up to the end of the trace.
    #[serde(default)]
    pub wear: Vec<WearMark>,
    /// The run in at most [`Outcome::INTERVALS`] equal intervals of due time.
    pub intervals: Vec<Interval>,
    /// Where the time went, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// Times of one operation on one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassOutcome {
    /// The operation.
    pub op: Op,
    /// Name of the stream, from the trace's table.
    pub stream: String,
    /// Bytes moved.
    pub bytes: u64,
    /// Completion - due, ns.
    pub response: Histogram,
    /// Completion - issue, ns. The same in virtual time, where every request is issued when due
    /// (open loop) or due when issued (closed loop).
    pub service: Histogram,
}

/// One interval of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds from the start of the trace to the start of the interval.
    pub at_s: f64,
    /// Its length, seconds.
    pub length_s: f64,
    /// Requests due in it.
    pub requests: u64,
    /// Bytes that they move.
    pub bytes: u64,
    /// Mean of their response times, ns.
    pub mean_response_ns: f64,
    /// Longest of their response times, ns.
    pub max_response_ns: u64,
}

impl Outcome {
    /// Most intervals of a run.
    pub const INTERVALS: usize = 256;

    /// The least backlog at the end of a trace that counts as one, ns.
    pub const BACKLOG_NS: u64 = 100_000_000;

    /// Requests due in a second: what the trace offers the device.
    pub fn offered_per_s(&self) -> f64 {
        self.requests as f64 / self.seconds_until(self.due_span_ns)
    }

    /// Requests completed in a second: what the device made of it.
    pub fn completed_per_s(&self) -> f64 {
        self.requests as f64 / self.seconds_until(self.span_ns)
    }

    /// From the end of the warm-up.
    fn seconds_until(&self, end_ns: u64) -> f64 {
        end_ns.saturating_sub(self.warm_up_ns).max(1) as f64 / 1e9
    }

    /// Whether the device fell behind the arrivals: it still worked for a tenth of the trace's
    /// time, and for [`Outcome::BACKLOG_NS`], when the last request was due. Its response times
    /// then tell how long the trace is, not how fast the device.
    pub fn is_overloaded(&self) -> bool {
        let backlog_ns = self.span_ns.saturating_sub(self.due_span_ns);
        backlog_ns >= Self::BACKLOG_NS && backlog_ns > self.due_span_ns / 10
    }

    /// The response times of one operation over all streams.
    pub fn response_of(&self, op: Op) -> Histogram {
        merged(self.classes.iter().filter(|class| class.op == op))
    }

    /// The response times of all requests.
    pub fn response(&self) -> Histogram {
        merged(self.classes.iter())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn merged<'a>(classes: impl Iterator<Item = &'a ClassOutcome>) -> Histogram {
    let mut all = Histogram::new();
    classes.for_each(|class| all.merge(&class.response));
    all
}

/// Histograms per (operation, stream) while a simulation runs.
#[derive(Debug)]
pub(crate) struct Classes {
    streams: usize,
    classes: Vec<(Histogram, u64)>,
}

impl Classes {
    /// For this many streams.
    pub(crate) fn new(streams: usize) -> Self {
        let streams = streams.max(1);
        Self { streams, classes: vec![(Histogram::new(), 0); 4 * streams] }
    }

    /// Counts one request.
    #[inline]
    pub(crate) fn record_one(&mut self, (op, stream): (Op, u16), bytes: u32, response: u64) {
        let class = &mut self.classes[op as usize * self.streams + usize::from(stream)];
        class.0.record(response);
        class.1 += u64::from(bytes);
    }

    /// Counts a batch of requests, one per entry of every slice.
    pub(crate) fn record(&mut self, ops: &[Op], streams: &[u16], len: &[u32], responses: &[u64]) {
        let requests = ops.iter().zip(streams).zip(len).zip(responses);
        for (((&op, &stream), &bytes), &response) in requests {
            self.record_one((op, stream), bytes, response);
        }
    }

    /// Bytes of one operation so far.
    pub(crate) fn bytes_of(&self, op: Op) -> u64 {
        let own = &self.classes[op as usize * self.streams..][..self.streams];
        own.iter().map(|class| class.1).sum()
    }

    /// The classes that occurred.
    pub(crate) fn finish(self, named: &[Stream]) -> Vec<ClassOutcome> {
        let Self { streams, classes } = self;
        let occurred = classes.into_iter().enumerate().filter(|(_, class)| !class.0.is_empty());
        occurred
            .map(|(index, (response, bytes))| {
                let stream = index % streams;
                ClassOutcome {
                    op: Op::ALL[index / streams],
                    stream: named
                        .get(stream)
                        .map_or_else(|| format!("stream{stream}"), |own| own.name.clone()),
                    bytes,
                    service: response.clone(),
                    response,
                }
            })
            .collect()
    }
}
