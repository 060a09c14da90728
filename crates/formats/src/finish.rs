//! From decoded rows to a trace: times from the start, rows in the order of time, streams in
//! theirs.

use std::path::Path;

use trace::{Origin, Trace};
use units::Nanos;

use super::batch::{Batch, SERVICE_UNKNOWN_NS};
use super::decode::Times;
use super::entry::Entry;
use super::notes::Notes;
use super::order;

/// Origin fact: what the first request's time was before it became zero, ns.
pub const START_FACT: &str = "start_ns";

/// Builds the trace.
pub(super) fn finish(mut batch: Batch, entry: &Entry, path: &Path, notes: &mut Notes) -> Trace {
    notes.out_of_order = order::sort(&mut batch);
    let mut facts = std::mem::take(&mut batch.facts);
    if let Some(&start) = batch.due.first() {
        for due in &mut batch.due {
            *due -= start;
        }
        let start = i128::from(start) - i128::from(batch.before_zero_ns);
        facts.insert(START_FACT.to_owned(), start.to_string());
        // A slice of a trace keeps the times of the whole: hours of nothing, if they were kept.
        if entry.times == Times::Relative && start > 0 {
            let lead = Nanos(u64::try_from(start).unwrap_or(u64::MAX));
            notes.understood.push(format!("times from the first request, {lead} into the file's"));
        }
    }
    let (streams, place) = std::mem::replace(&mut batch.streams, super::Streams::new("")).finish();
    if !place.is_sorted() {
        for stream in &mut batch.stream {
            *stream = place[usize::from(*stream)];
        }
    }
    let unknown = batch.service.iter().filter(|ns| **ns == SERVICE_UNKNOWN_NS).count();
    let service = (batch.has_service() && unknown < batch.count()).then_some(batch.service);
    if service.is_some() {
        notes.count("requests whose service time is not known (0 in the column)", unknown as u64);
    }
    let source = format!("{} {}", entry.format.title(), path.display());
    let trace = Trace {
        due: batch.due,
        offset: batch.offset,
        len: batch.len,
        op: batch.op,
        stream: batch.stream,
        service,
        streams,
        origin: Origin { layer: batch.layer.to_owned(), source, facts },
        ..Trace::default()
    };
    debug_assert_eq!(trace.validate(), Ok(()));
    trace
}
