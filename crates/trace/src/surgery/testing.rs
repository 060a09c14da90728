//! What the tests of all operations share.

use proptest::prelude::*;
use units::{Bytes, Nanos};

use crate::{Op, Request, Stream, Trace};

/// Up to 80 requests on three streams over a few megabytes, many of them sequential or repeated,
/// with or without what a capture knows.
pub(super) fn any_trace() -> impl Strategy<Value = Trace> {
    let row = (0u64..50, 0u64..2000, 0u32..40, 0usize..4, 0u16..3, 0u8..4);
    let rows = prop::collection::vec((row, 0u64..100, 0u16..4), 0..80);
    (rows, any::<(bool, bool)>()).prop_map(|(rows, (service, chains))| {
        let mut trace = Trace::default();
        let (mut due, mut end) = (0, 0);
        for ((gap, place, sectors, op, stream, follow), took, actor) in rows {
            due += gap;
            let op = Op::ALL[op];
            let (offset, len) = match op {
                Op::Flush => (0, 0),
                _ if follow == 0 => (end, sectors * 512),
                _ => (place * 4096, sectors * 4096),
            };
            if op != Op::Flush {
                end = offset + u64::from(len);
            }
            let request = Request { due: Nanos(due), offset: Bytes(offset), len, op, stream };
            trace.push_captured(request, Nanos(took), actor, u32::from(actor) * 3);
        }
        trace.service = trace.service.filter(|_| service);
        trace.chains = trace.chains.filter(|_| chains);
        trace.streams = ["data", "log", "temp"].map(|name| Stream { name: name.into() }).to_vec();
        trace.origin.facts.insert("workload".to_owned(), "made up".to_owned());
        trace
    })
}

/// Bytes of all requests.
pub(super) fn bytes(trace: &Trace) -> u64 {
    trace.len.iter().map(|len| u64::from(*len)).sum()
}

/// Which requests begin where the one before of the same operation and stream ended.
pub(super) fn sequential(trace: &Trace) -> Vec<bool> {
    let mut ends = std::collections::BTreeMap::new();
    trace
        .requests()
        .filter(|request| request.op != Op::Flush)
        .map(|request| {
            let end = request.offset.0 + u64::from(request.len);
            ends.insert((request.op, request.stream), end) == Some(request.offset.0)
        })
        .collect()
}
