//! Several traces as one load.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use units::{Bytes, Nanos};

use super::{Error, Result, note_step};
use crate::{Chains, Op, Origin, Stream, Trace};

/// A trace to merge.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The trace.
    pub trace: Trace,
    /// Added to its due times.
    pub start: Nanos,
    /// Added to its addresses on top of what [`Placement`] adds; flushes stay at 0.
    pub base: Bytes,
}

/// Where the traces lie in the merged address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// One behind the other in the order given, each from a multiple of 1 MiB on.
    #[default]
    Stacked,
    /// All from 0 on: they share what they have in common.
    Shared,
}

const REGION_BYTES: u64 = 1 << 20;

/// Merges traces by due time; at a tie the trace named first goes first, and each keeps its order.
///
/// Streams whose name occurs in several traces get the number of their trace in front (`2.log`).
/// Actors and transactions are renumbered, so that none is shared. Service times are kept where
/// every trace has them, actors and transactions likewise. The origins stay as `part.N.*`.
///
/// # Errors
/// Where a trace is malformed, times or addresses exceed 64 bits, or streams, actors or
/// transactions are more than can be numbered.
pub fn merge(parts: &[Part], placement: Placement) -> Result<Trace> {
    if parts.is_empty() {
        return Err(Error::NoTraces);
    }
    for part in parts {
        part.trace.validate()?;
    }
    let shifts = shifts(parts, placement)?;
    let numbering = Numbering::of(parts)?;
    let all = |has: fn(&Trace) -> bool| parts.iter().all(|part| has(&part.trace));
    let mut out = Trace {
        streams: numbering.streams.clone(),
        service: all(|trace| trace.service.is_some()).then(Vec::new),
        chains: all(|trace| trace.chains.is_some()).then(Chains::default),
        origin: origin(parts),
        ..Trace::default()
    };
    let due = |part: usize, index: usize| -> Result<u64> {
        let Part { trace, start, .. } = &parts[part];
        trace.due[index].checked_add(start.0).ok_or(Error::Overflow { what: "due time", index })
    };
    let mut heads = BinaryHeap::new();
    for (part, Part { trace, .. }) in parts.iter().enumerate() {
        if !trace.is_empty() {
            heads.push(Reverse((due(part, 0)?, part, 0)));
        }
    }
    while let Some(Reverse((at, part, index))) = heads.pop() {
        numbering.append(&mut out, (part, &parts[part].trace, index), at, shifts[part]);
        if index + 1 < parts[part].trace.count() {
            heads.push(Reverse((due(part, index + 1)?, part, index + 1)));
        }
    }
    let step = format!("merge: {} traces, addresses {}", parts.len(), describe(placement));
    note_step(&mut out.origin, step);
    Ok(out)
}

fn describe(placement: Placement) -> &'static str {
    match placement {
        Placement::Stacked => "stacked",
        Placement::Shared => "shared",
    }
}

/// What is added to the addresses of each trace.
fn shifts(parts: &[Part], placement: Placement) -> Result<Vec<u64>> {
    let overflow = Error::Overflow { what: "address", index: 0 };
    let mut start = 0u64;
    let mut shifts = Vec::new();
    for part in parts {
        let shift = start.checked_add(part.base.0).ok_or(overflow.clone())?;
        let end = shift.checked_add(part.trace.extent().0).ok_or(overflow.clone())?;
        shifts.push(shift);
        if placement == Placement::Stacked {
            start = end.checked_next_multiple_of(REGION_BYTES).ok_or(overflow.clone())?;
        }
    }
    Ok(shifts)
}

/// New numbers for what the traces number each on their own.
struct Numbering {
    streams: Vec<Stream>,
    /// For each trace: first stream, first actor, added to transactions.
    first: Vec<(u32, u32, u64)>,
}

impl Numbering {
    fn of(parts: &[Part]) -> Result<Self> {
        let mut occurrences: BTreeMap<&str, usize> = BTreeMap::new();
        for part in parts {
            let names: BTreeSet<_> = part.trace.streams.iter().map(|s| s.name.as_str()).collect();
            for name in names {
                *occurrences.entry(name).or_default() += 1;
            }
        }
        let mut numbering = Self { streams: Vec::new(), first: Vec::new() };
        let (mut actors, mut transactions) = (0u32, 0u64);
        for (number, Part { trace, .. }) in (1..).zip(parts) {
            numbering.first.push((numbering.streams.len() as u32, actors, transactions));
            for Stream { name } in &trace.streams {
                let shared = occurrences[name.as_str()] > 1;
                let name = if shared { format!("{number}.{name}") } else { name.clone() };
                numbering.streams.push(Stream { name });
            }
            if let Some(chains) = &trace.chains {
                actors += chains.actor.iter().max().map_or(0, |most| u32::from(*most) + 1);
                transactions += u64::from(chains.transaction.iter().max().copied().unwrap_or(0));
            }
        }
        let most = 1 + u32::from(u16::MAX);
        for (what, fits) in [
            ("streams", numbering.streams.len() <= most as usize),
            ("actors", actors <= most),
            ("transactions", u32::try_from(transactions).is_ok()),
        ] {
            if !fits {
                return Err(Error::TooMany { what });
            }
        }
        Ok(numbering)
    }

    /// Appends request `index` of trace number `part`.
    fn append(
        &self,
        out: &mut Trace,
        (part, trace, index): (usize, &Trace, usize),
        due: u64,
        shift: u64,
    ) {
        let (first_stream, first_actor, transactions) = self.first[part];
        let mut request = trace.request(index);
        request.due = Nanos(due);
        request.stream += first_stream as u16;
        if request.op != Op::Flush {
            request.offset.0 += shift;
        }
        out.push(request);
        if let (Some(to), Some(from)) = (&mut out.service, &trace.service) {
            to.push(from[index]);
        }
        if let (Some(to), Some(from)) = (&mut out.chains, &trace.chains) {
            to.actor.push((u32::from(from.actor[index]) + first_actor) as u16);
            let transaction = from.transaction[index];
            let added = if transaction == 0 { 0 } else { transactions as u32 };
            to.transaction.push(transaction + added);
        }
    }
}

fn origin(parts: &[Part]) -> Origin {
    let first = &parts[0].trace.origin.layer;
    let same = parts.iter().all(|part| part.trace.origin.layer == *first);
    let mut facts = BTreeMap::new();
    for (number, part) in (1..).zip(parts) {
        let Origin { layer, source, facts: of_part } = &part.trace.origin;
        facts.insert(format!("part.{number}.layer"), layer.clone());
        facts.insert(format!("part.{number}.source"), source.clone());
        facts.insert(format!("part.{number}.start_ns"), part.start.0.to_string());
        facts.insert(format!("part.{number}.base_bytes"), part.base.0.to_string());
        for (key, value) in of_part {
            facts.insert(format!("part.{number}.{key}"), value.clone());
        }
    }
    let layer = if same { first.clone() } else { String::new() };
    Origin { layer, source: format!("merged from {} traces", parts.len()), facts }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_trace, bytes, sequential};
    use super::super::{Slice, slice};
    use super::*;

    fn part(trace: &Trace) -> Part {
        Part { trace: trace.clone(), start: Nanos(0), base: Bytes(0) }
    }

    fn one(due: u64, offset: u64, actor: u16, transaction: u32) -> Trace {
        let mut trace = Trace::default();
        let (due, offset) = (Nanos(due), Bytes(offset));
        let request = crate::Request { due, offset, len: 512, op: Op::Read, stream: 0 };
        trace.push_captured(request, Nanos(7), actor, transaction);
        trace.streams = vec![Stream { name: "data".to_owned() }];
        trace
    }

    #[test]
    fn two_traces_by_hand() {
        let (a, b) = (one(10, 4096, 2, 5), one(0, 0, 0, 3));
        let later = Part { start: Nanos(10), base: Bytes(1024), ..part(&b) };
        let out = merge(&[part(&a), later.clone()], Placement::Stacked).expect("merged");
        assert_eq!(
            (out.due.as_slice(), out.offset.as_slice()),
            ([10, 10].as_slice(), [4096, (1 << 20) + 1024].as_slice())
        );
        let names: Vec<_> = out.streams.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!((names, out.stream.as_slice()), (vec!["1.data", "2.data"], [0, 1].as_slice()));
        let chains = out.chains.expect("both have them");
        assert_eq!((chains.actor, chains.transaction), (vec![2, 3], vec![5, 8]));
        assert_eq!(out.origin.facts["part.2.start_ns"], "10");
        assert_eq!(out.origin.facts["step.01"], "merge: 2 traces, addresses stacked");
        let out = merge(&[part(&a), later], Placement::Shared).expect("merged");
        assert_eq!(out.offset, [4096, 1024]);
        let plain = Trace { chains: None, ..b };
        let out = merge(&[part(&plain), part(&a)], Placement::Shared).expect("merged");
        assert_eq!((out.chains, out.service), (None, Some(vec![7, 7])));
    }

    #[test]
    fn what_cannot_be_numbered_is_refused() {
        assert_eq!(merge(&[], Placement::Shared), Err(Error::NoTraces));
        let far = Part { base: Bytes(u64::MAX - 100), ..part(&one(0, 0, 0, 0)) };
        let overflow = |what| Err(Error::Overflow { what, index: 0 });
        assert_eq!(merge(&[far], Placement::Shared), overflow("address"));
        let late = Part { start: Nanos(u64::MAX), ..part(&one(1, 0, 0, 0)) };
        assert_eq!(merge(&[late], Placement::Shared), overflow("due time"));
        let many = part(&one(0, 0, u16::MAX, 0));
        let parts = [many, part(&one(0, 0, 0, 0))];
        assert_eq!(merge(&parts, Placement::Shared), Err(Error::TooMany { what: "actors" }));
        let many = part(&one(0, 0, 0, u32::MAX));
        let parts = [many.clone(), many];
        assert_eq!(merge(&parts, Placement::Shared), Err(Error::TooMany { what: "transactions" }));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_every_trace_keeps_its_order(
            traces in prop::collection::vec(any_trace(), 1..4),
            starts in prop::collection::vec(0u64..1000, 4),
            stacked: bool,
        ) {
            let parts: Vec<Part> = traces.iter().zip(&starts)
                .map(|(trace, start)| Part { start: Nanos(*start), ..part(trace) }).collect();
            let placement = if stacked { Placement::Stacked } else { Placement::Shared };
            let out = merge(&parts, placement).expect("merged");
            prop_assert_eq!(out.validate(), Ok(()));
            prop_assert_eq!(out.count(), traces.iter().map(Trace::count).sum::<usize>());
            prop_assert_eq!(bytes(&out), traces.iter().map(bytes).sum::<u64>());
            // Each part's streams, sliced out again, are the part but for where it lies.
            for (number, Part { trace, start, .. }) in (1..).zip(&parts) {
                let name = |stream: &Stream| match traces.len() {
                    1 => stream.name.clone(),
                    _ => format!("{number}.{}", stream.name),
                };
                let streams = trace.streams.iter().map(name).collect();
                let how = Slice { streams, ..Slice::default() };
                let again = slice(&out, &how).expect("sliced");
                prop_assert_eq!(&again.len, &trace.len);
                prop_assert_eq!((&again.op, &again.stream), (&trace.op, &trace.stream));
                let mut times = again.due.iter().zip(&trace.due);
                prop_assert!(times.all(|(new, old)| *new == old + start.0));
                prop_assert_eq!(sequential(&again), sequential(trace));
            }
        }
    }
}
