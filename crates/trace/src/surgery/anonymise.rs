//! A trace that may be given away.

use std::collections::BTreeMap;

use stats::rng::Rng;

use super::chunks::{span, touched};
use super::{Result, note_step};
use crate::{Op, Origin, Stream, Trace};

/// Chunks of 1 MiB.
const SHIFT: u32 = 20;

/// Takes out of a trace what says whose it is, and keeps what decides how a device copes with it.
///
/// Streams become `stream1`, `stream2` and so on; of the origin only the layer and the steps of
/// [`super`] stay, without file names, hosts or settings. The touched 1 MiB chunks are put in a
/// random order given by `seed`, without the gaps between them; chunks that one request spans, or
/// that a request follows another across (of the same stream and operation), stay together and in
/// order. So every reuse of a byte, every sequential run and the alignment up to 1 MiB stay
/// exactly; distances beyond do not. Times, sizes, operations, actors and transactions stay as they
/// are: they can still tell a workload from another.
///
/// # Errors
/// Where the trace is malformed.
pub fn anonymise(mut trace: Trace, seed: u64) -> Result<Trace> {
    trace.validate()?;
    let chunks = touched(&trace, SHIFT);
    let mut extents = extents(&trace, &chunks);
    let count = extents.len();
    // Fisher and Yates.
    let mut rng = Rng::new(seed);
    for last in (1..count).rev() {
        extents.swap(last, rng.below(last as u64 + 1) as usize);
    }
    // The new number of every chunk, in the order of `chunks`.
    let mut numbers = vec![0u64; chunks.len()];
    for (number, place) in (0..).zip(extents.into_iter().flatten()) {
        numbers[place] = number;
    }
    for index in 0..trace.count() {
        if trace.op[index] != Op::Flush {
            let offset = trace.offset[index];
            let place = chunks.partition_point(|chunk| *chunk < offset >> SHIFT);
            trace.offset[index] = numbers[place] << SHIFT | offset & ((1 << SHIFT) - 1);
        }
    }
    let names = (1..=trace.streams.len()).map(|number| format!("stream{number}"));
    trace.streams = names.map(|name| Stream { name }).collect();
    let steps = std::mem::take(&mut trace.origin.facts).into_iter();
    trace.origin = Origin {
        layer: std::mem::take(&mut trace.origin.layer),
        source: "anonymised".to_owned(),
        facts: steps.filter(|(key, _)| key.starts_with("step.")).map(unnamed).collect(),
    };
    note_step(&mut trace.origin, format!("anonymise: {count} extents in a random order"));
    Ok(trace)
}

/// A step without what it was done to: `slice: streams payroll` becomes `slice`.
fn unnamed((key, step): (String, String)) -> (String, String) {
    let name = step.split_once(':').map_or("step", |(name, _)| name);
    (key, name.to_owned())
}

/// The chunks that stay together, as ranges of places in `chunks`.
fn extents(trace: &Trace, chunks: &[u64]) -> Vec<std::ops::Range<usize>> {
    let place = |chunk: u64| chunks.partition_point(|other| *other < chunk);
    // Whether a chunk belongs to the one in front of it.
    let mut joined = vec![false; chunks.len()];
    let mut ends = BTreeMap::new();
    for request in trace.requests().filter(|request| request.op != Op::Flush) {
        let (first, last) = span(request.offset.0, request.len, SHIFT);
        let start = place(first);
        joined[start + 1..=start + (last - first) as usize].fill(true);
        let end = request.offset.0 + u64::from(request.len);
        let follows = ends.insert((request.op, request.stream), end) == Some(request.offset.0);
        if follows && request.offset.0.is_multiple_of(1 << SHIFT) && start > 0 {
            joined[start] |= chunks[start - 1] + 1 == first;
        }
    }
    let mut extents = Vec::new();
    for (place, joined) in joined.into_iter().enumerate() {
        match extents.last_mut() {
            Some(std::ops::Range { end, .. }) if joined => *end = place + 1,
            _ => extents.push(place..place + 1),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::{Bytes, Nanos};

    use super::super::testing::{any_trace, sequential};
    use super::*;
    use crate::Request;

    #[test]
    fn nothing_tells_whose_it_is() {
        let mut trace = crate::generate::oltp_like(&crate::generate::OltpLike::default());
        trace.origin.facts.insert("file.0".to_owned(), "/srv/payroll/salaries.db".to_owned());
        trace.origin.facts.insert("step.01".to_owned(), "slice: streams payroll".to_owned());
        trace.origin.layer = "device".to_owned();
        trace.streams[0].name = "payroll".to_owned();
        let out = anonymise(trace.clone(), 1).expect("anonymised");
        let shown = format!("{:?} {:?}", out.origin, out.streams);
        assert!(!shown.contains("payroll") && !shown.contains("srv"), "{shown}");
        assert_eq!(
            (out.origin.layer.as_str(), out.streams[1].name.as_str()),
            ("device", "stream2")
        );
        assert_eq!(out.origin.facts["step.01"], "slice");
        assert!(out.origin.facts["step.02"].starts_with("anonymise: "));
        assert_ne!(out.offset, trace.offset);
        // Compare through the compact addresses that both share in some order.
        assert_ne!(anonymise(trace.clone(), 2).expect("anonymised").offset, out.offset);
        assert_eq!(anonymise(trace, 1).expect("anonymised"), out);
    }

    #[test]
    fn a_run_across_chunks_stays_together() {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        let chunk = 1u64 << SHIFT;
        let mut read = |offset: u64, len: u32| {
            let (due, offset) = (Nanos(0), Bytes(offset));
            trace.push(Request { due, offset, len, op: Op::Read, stream: 0 });
        };
        // Chunks 0 and 1 by a run, 5 and 6 by one request; 2 by neither.
        read(chunk - 512, 512);
        read(chunk, 512);
        read(2 * chunk, 512);
        read(6 * chunk - 512, 1024);
        let chunks = touched(&trace, SHIFT);
        assert_eq!(extents(&trace, &chunks), [0..2, 2..3, 3..5]);
    }

    proptest! {
        #[test]
        fn reuse_runs_and_alignment_stay(trace in any_trace(), seed: u64) {
            let out = anonymise(trace.clone(), seed).expect("anonymised");
            prop_assert_eq!(out.validate(), Ok(()));
            // Sector by sector, the new addresses are a renaming of the old ones.
            let sectors = |trace: &Trace| -> Vec<u64> {
                let requests = trace.requests().filter(|request| request.op != Op::Flush);
                requests
                    .flat_map(|r| (0..u64::from(r.len) / 512).map(move |i| r.offset.0 + i * 512))
                    .collect()
            };
            let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
            for (old, new) in sectors(&trace).into_iter().zip(sectors(&out)) {
                prop_assert_eq!(*there.entry(old).or_insert(new), new);
                prop_assert_eq!(*back.entry(new).or_insert(old), old);
                prop_assert_eq!(old % (1 << SHIFT), new % (1 << SHIFT));
            }
            let runs = sequential(&trace).into_iter().zip(sequential(&out));
            prop_assert!(runs.into_iter().all(|(before, after)| after || !before));
            let same = Trace {
                offset: trace.offset.clone(),
                streams: trace.streams.clone(),
                origin: trace.origin.clone(),
                ..out
            };
            prop_assert_eq!(same, trace);
        }
    }
}
