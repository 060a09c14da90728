//! From decoded rows to a trace: times from the start, rows in the order of time, streams in
//! theirs.

use std::path::Path;

use trace::{Origin, Outline, Trace};
use units::Nanos;

use super::batch::{Batch, SERVICE_UNKNOWN_NS};
use super::decode::Times;
use super::entry::Entry;
use super::notes::Notes;
use super::order;
use super::sanity::Facts;
use super::spill::Spooled;
use crate::Result;

/// Origin fact: what the first request's time was before it became zero, ns.
pub const START_FACT: &str = "start_ns";

/// Builds the trace.
pub(super) fn finish(mut batch: Batch, entry: &Entry, path: &Path, notes: &mut Notes) -> Trace {
    notes.out_of_order = order::sort(&mut batch, 0);
    let start = batch.due.first().copied();
    for due in &mut batch.due {
        *due -= start.unwrap_or(0);
    }
    let origin = origin(&mut batch, start, entry, path, notes);
    let (streams, place) = std::mem::replace(&mut batch.streams, super::Streams::new("")).finish();
    if !place.is_sorted() {
        for stream in &mut batch.stream {
            *stream = place[usize::from(*stream)];
        }
    }
    let unknown = batch.service.iter().filter(|ns| **ns == SERVICE_UNKNOWN_NS).count();
    let service = (batch.has_service() && unknown < batch.count()).then_some(batch.service);
    if service.is_some() {
        count_unknown(unknown as u64, notes);
    }
    let trace = Trace {
        due: batch.due,
        offset: batch.offset,
        len: batch.len,
        op: batch.op,
        stream: batch.stream,
        service,
        streams,
        origin,
        ..Trace::default()
    };
    debug_assert_eq!(trace.validate(), Ok(()));
    trace
}

/// Builds a trace most of whose rows are put aside, and what is known of it.
pub(super) fn finish_spilled(
    mut batch: Batch,
    entry: &Entry,
    path: &Path,
    notes: &mut Notes,
) -> Result<(Spooled, Facts)> {
    batch.put_aside()?;
    let spill = batch.spill.take().expect("rows were put aside");
    let facts = spill.facts.clone();
    notes.out_of_order = spill.out_of_order;
    let origin = origin(&mut batch, Some(facts.first_due()), entry, path, notes);
    let has_service = batch.has_service() && facts.unknown_service() < spill.rows();
    if has_service {
        count_unknown(facts.unknown_service(), notes);
    }
    let (streams, place) = batch.streams.finish();
    let (requests, span_ns) = (spill.rows(), facts.span_ns());
    let outline = Outline { requests, span_ns, streams, origin };
    Ok((spill.finish(outline, place, has_service), facts))
}

/// Where the trace comes from, and a note of times that do not begin at zero.
fn origin(
    batch: &mut Batch,
    start: Option<u64>,
    entry: &Entry,
    path: &Path,
    notes: &mut Notes,
) -> Origin {
    let mut facts = std::mem::take(&mut batch.facts);
    if let Some(start) = start {
        let start = i128::from(start) - i128::from(batch.before_zero_ns);
        facts.insert(START_FACT.to_owned(), start.to_string());
        // A slice of a trace keeps the times of the whole: hours of nothing, if they were kept.
        if entry.times == Times::Relative && start > 0 {
            let lead = Nanos(u64::try_from(start).unwrap_or(u64::MAX));
            notes.understood.push(format!("times from the first request, {lead} into the file's"));
        }
    }
    let source = format!("{} {}", entry.format.title(), path.display());
    Origin { layer: batch.layer.to_owned(), source, facts }
}

fn count_unknown(unknown: u64, notes: &mut Notes) {
    notes.count("requests whose service time is not known (0 in the column)", unknown);
}
