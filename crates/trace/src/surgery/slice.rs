//! A part of a trace.

use std::ops::Range;

use units::{Bytes, Nanos};

use super::{Error, Result, note_step};
use crate::{Chains, Op, Trace};

/// Which requests a slice keeps: those that meet every condition given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Due at or behind the start and in front of the end. Times then count from the start.
    pub time: Option<Range<Nanos>>,
    /// Of one of these streams, by name; the others leave the table too. Empty: of any.
    pub streams: Vec<String>,
    /// With a byte in this region; what reaches beyond is cut off. Requests without bytes are kept
    /// if they start in it, flushes always: they make durable what was written anywhere. Addresses
    /// stay.
    pub region: Option<Range<Bytes>>,
}

/// Keeps a part of a trace.
///
/// # Errors
/// Where the trace is malformed, a stream unknown or a range empty.
pub fn slice(trace: &Trace, how: &Slice) -> Result<Trace> {
    trace.validate()?;
    if how.time.as_ref().is_some_and(|time| time.start >= time.end) {
        return Err(Error::EmptyRange { what: "time span" });
    }
    if how.region.as_ref().is_some_and(|region| region.start >= region.end) {
        return Err(Error::EmptyRange { what: "region" });
    }
    let table = kept_streams(trace, how)?;
    let start = how.time.as_ref().map_or(0, |time| time.start.0);
    let rows = how.time.as_ref().map_or(0..trace.count(), |time| {
        let at = |due: Nanos| trace.due.partition_point(|other| *other < due.0);
        at(time.start)..at(time.end)
    });
    let mut out = Trace {
        service: trace.service.as_ref().map(|_| Vec::new()),
        chains: trace.chains.as_ref().map(|_| Chains::default()),
        origin: trace.origin.clone(),
        ..Trace::default()
    };
    let named = trace.streams.iter().zip(&table).filter(|(_, new)| new.is_some());
    out.streams = named.map(|(stream, _)| stream.clone()).collect();
    let mut clipped = 0;
    for index in rows {
        let mut request = trace.request(index);
        let Some(stream) = table[usize::from(request.stream)] else { continue };
        if let Some(region) = how.region.as_ref().filter(|_| request.op != Op::Flush) {
            let Some((offset, len)) = clip(region, request.offset.0, request.len) else { continue };
            clipped += u64::from(len != request.len);
            (request.offset, request.len) = (Bytes(offset), len);
        }
        request.due.0 -= start;
        request.stream = stream;
        out.push(request);
        if let (Some(to), Some(from)) = (&mut out.service, &trace.service) {
            to.push(from[index]);
        }
        if let (Some(to), Some(from)) = (&mut out.chains, &trace.chains) {
            to.actor.push(from.actor[index]);
            to.transaction.push(from.transaction[index]);
        }
    }
    let (kept, all) = (out.count(), trace.count());
    let step = format!("slice: {}; {kept} of {all} requests, {clipped} clipped", describe(how));
    note_step(&mut out.origin, step);
    Ok(out)
}

/// The new index of every stream that is kept.
fn kept_streams(trace: &Trace, how: &Slice) -> Result<Vec<Option<u16>>> {
    let names = || trace.streams.iter().map(|stream| stream.name.as_str());
    if let Some(name) = how.streams.iter().find(|name| names().all(|known| known != *name)) {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownStream { name: name.clone(), known });
    }
    let mut next = 0u32;
    let number = |name: &str| {
        let kept = how.streams.is_empty() || how.streams.iter().any(|wanted| wanted == name);
        next += u32::from(kept);
        kept.then(|| (next - 1) as u16)
    };
    Ok(names().map(number).collect())
}

/// What of a request lies in the region.
fn clip(region: &Range<Bytes>, offset: u64, len: u32) -> Option<(u64, u32)> {
    if len == 0 {
        return (region.start.0..region.end.0).contains(&offset).then_some((offset, 0));
    }
    let start = offset.max(region.start.0);
    let end = (offset + u64::from(len)).min(region.end.0);
    (start < end).then(|| (start, (end - start) as u32))
}

fn describe(how: &Slice) -> String {
    let mut parts = Vec::new();
    if let Some(time) = &how.time {
        parts.push(format!("due {} to {} ns", time.start.0, time.end.0));
    }
    if !how.streams.is_empty() {
        parts.push(format!("streams {}", how.streams.join(", ")));
    }
    if let Some(region) = &how.region {
        parts.push(format!("bytes {} to {}", region.start.0, region.end.0));
    }
    if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_trace, bytes};
    use super::*;
    use crate::{Request, Stream};

    /// Four requests; each shown as (due, offset, len, stream name).
    #[track_caller]
    fn check(how: &Slice, expected: &[(u64, u64, u32, &str)]) {
        let mut trace = Trace::default();
        for (due, offset, len, op, stream) in [
            (10, 0, 4096, Op::Read, 0),
            (20, 4096, 8192, Op::Write, 1),
            (20, 0, 0, Op::Flush, 1),
            (30, 16384, 4096, Op::Read, 0),
        ] {
            let (due, offset) = (Nanos(due), Bytes(offset));
            trace.push(Request { due, offset, len, op, stream });
        }
        trace.streams = ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec();
        let out = slice(&trace, how).expect("sliced");
        assert_eq!(out.validate(), Ok(()));
        let shown: Vec<_> = out
            .requests()
            .map(|r| (r.due.0, r.offset.0, r.len, out.streams[r.stream as usize].name.as_str()))
            .collect();
        assert_eq!(shown, expected);
        assert!(out.origin.facts["step.01"].starts_with("slice: "), "{:?}", out.origin);
    }

    #[test]
    fn each_condition_by_hand() {
        let time = |from, to| Slice { time: Some(Nanos(from)..Nanos(to)), ..Slice::default() };
        check(&time(20, 30), &[(0, 4096, 8192, "log"), (0, 0, 0, "log")]);
        check(&time(11, 20), &[]);
        let log = Slice { streams: vec!["log".to_owned()], ..Slice::default() };
        check(&log, &[(20, 4096, 8192, "log"), (20, 0, 0, "log")]);
        let region = Some(Bytes(2048)..Bytes(8192));
        let expected = [(10, 2048, 2048, "data"), (20, 4096, 4096, "log"), (20, 0, 0, "log")];
        check(&Slice { region, ..Slice::default() }, &expected);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let trace = Trace { streams: vec![Stream { name: "a".into() }], ..Trace::default() };
        let how = Slice { streams: vec!["b".to_owned()], ..Slice::default() };
        let error = slice(&trace, &how).expect_err("unknown").to_string();
        assert_eq!(error, "no stream is called 'b'; the trace has a");
        let how = Slice { time: Some(Nanos(5)..Nanos(5)), ..Slice::default() };
        assert_eq!(slice(&trace, &how), Err(Error::EmptyRange { what: "time span" }));
        let how = Slice { region: Some(Bytes(5)..Bytes(4)), ..Slice::default() };
        assert_eq!(slice(&trace, &how), Err(Error::EmptyRange { what: "region" }));
        let malformed = Trace { due: vec![1], ..trace };
        assert!(matches!(slice(&malformed, &Slice::default()), Err(Error::Malformed(_))));
    }

    proptest! {
        /// The parts on both sides of a cut have together what the whole has.
        #[test]
        fn parts_add_up(trace in any_trace(), cut in 1u64..4000) {
            let at = |range| slice(&trace, &Slice { time: Some(range), ..Slice::default() });
            let parts = [at(Nanos(0)..Nanos(cut)), at(Nanos(cut)..Nanos(u64::MAX))];
            let [a, b] = parts.map(|part| part.expect("sliced"));
            prop_assert_eq!(a.count() + b.count(), trace.count());
            let mut joined = a.clone();
            let mut later = b.clone();
            later.due.iter_mut().for_each(|due| *due += cut);
            joined.extend_rows(&later, 0..later.count());
            (joined.origin, joined.service, joined.chains) =
                (trace.origin.clone(), trace.service.clone(), trace.chains.clone());
            prop_assert_eq!(&joined, &trace);
            let cut = cut * 2048;
            let at = |range| slice(&trace, &Slice { region: Some(range), ..Slice::default() });
            let parts = [at(Bytes(0)..Bytes(cut)), at(Bytes(cut)..Bytes(u64::MAX))];
            let [a, b] = parts.map(|part| part.expect("sliced"));
            prop_assert_eq!(bytes(&a) + bytes(&b), bytes(&trace));
            prop_assert_eq!((a.validate(), b.validate()), (Ok(()), Ok(())));
            let names = trace.streams.iter().map(|stream| stream.name.clone());
            let each = names.map(|name| Slice { streams: vec![name], ..Slice::default() });
            let counts: usize = each.map(|how| slice(&trace, &how).expect("sliced").count()).sum();
            prop_assert_eq!(counts, trace.count());
        }

        #[test]
        fn without_conditions_only_the_step_is_new(trace in any_trace()) {
            let mut out = slice(&trace, &Slice::default()).expect("sliced");
            prop_assert!(out.origin.facts.remove("step.01").is_some());
            prop_assert_eq!(out, trace);
        }
    }
}
