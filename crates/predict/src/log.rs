//! What the capture says of the log: bytes, syncs, what the host adds to each.

use trace::{Op, Trace};

use crate::captured::{Captured, mean, quantile};

/// PostgreSQL fills new segments in pieces of this size and writes no others of it.
const FILL_BYTES: u32 = 256 << 10;
/// Part of the samples that tells the cost of a call on an idle processor: the low quartile has
/// hardly waited for one.
const UNDISTURBED: f64 = 0.25;

/// What the log cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LogFacts {
    /// Flushes of the log.
    pub(crate) flushes: u64,
    /// Bytes inserted.
    pub(crate) bytes: u64,
    /// Bytes written to fill new segments.
    pub(crate) filled: u64,
    /// Time of the calls of one sync (write and flush), undisturbed, ns.
    pub(crate) call_ns: f64,
    /// Time of the device in one sync, undisturbed, ns; `None` where no request of the disk was
    /// captured.
    pub(crate) device: Option<DeviceTimes>,
    /// The same of the mean sync: the call, waiting for a processor included, and the disk's part.
    pub(crate) mean_call_ns: f64,
    pub(crate) mean_device: Option<DeviceTimes>,
}

/// Time of a disk for one write of the log and one flush, undisturbed, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DeviceTimes {
    pub(crate) write_ns: f64,
    pub(crate) flush_ns: f64,
}

pub(crate) fn facts(captured: &Captured) -> LogFacts {
    let logical = &captured.logical;
    let service = logical.service.as_deref().unwrap_or(&[]);
    let of = |op| Captured::of(logical, "log", op).filter(|&at| logical.len[at] < FILL_BYTES);
    let call = |op| quantile(of(op).map(|at| service[at]), UNDISTURBED);
    let mean_call = |op| mean(of(op).map(|at| service[at]));
    LogFacts {
        flushes: of(Op::Flush).count() as u64,
        bytes: captured.log_bytes.unwrap_or_else(|| advance(logical)),
        filled: filled(logical),
        call_ns: call(Op::Write) + call(Op::Flush),
        device: captured.physical.as_ref().and_then(|physical| {
            device_times(physical, |times| quantile(times.iter().copied(), UNDISTURBED))
        }),
        mean_call_ns: mean_call(Op::Write) + mean_call(Op::Flush),
        mean_device: captured
            .physical
            .as_ref()
            .and_then(|physical| device_times(physical, |times| mean(times.iter().copied()))),
    }
}

/// Bytes of the writes that fill new segments. A segment is filled under another name, of which the
/// capture may not know what it is.
fn filled(calls: &Trace) -> u64 {
    let writes = ["log", "other"].into_iter().flat_map(|of| Captured::of(calls, of, Op::Write));
    writes.map(|at| calls.len[at]).filter(|len| *len >= FILL_BYTES).map(u64::from).sum()
}

/// How far the log's writes reached beyond one another: rewritten pages count once.
fn advance(logical: &Trace) -> u64 {
    let (mut high, mut bytes) = (0, 0);
    for at in Captured::of(logical, "log", Op::Write) {
        let (offset, len) = (logical.offset[at], u64::from(logical.len[at]));
        if logical.len[at] >= FILL_BYTES {
            continue;
        }
        let end = offset + len;
        let goes_on = offset <= high && high - offset <= u64::from(FILL_BYTES);
        bytes += if goes_on { end.saturating_sub(high) } else { len };
        high = if goes_on { high.max(end) } else { end };
    }
    bytes
}

fn device_times(physical: &Trace, of: impl Fn(&[u64]) -> f64) -> Option<DeviceTimes> {
    let service = physical.service.as_deref()?;
    let time = |stream, op| {
        let times = Captured::of(physical, stream, op).map(|at| service[at]);
        of(&times.collect::<Vec<u64>>())
    };
    let write_ns = time("log", Op::Write);
    // Flushes belong to the disk as a whole; a disk without a volatile cache gets none.
    let flush_ns = time("filesystem", Op::Flush);
    (write_ns > 0.0).then_some(DeviceTimes { write_ns, flush_ns })
}
