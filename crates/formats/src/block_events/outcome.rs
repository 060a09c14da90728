//! What a trace of events tells beside its requests: counts, facts, warnings.

use std::mem;

use events::Warning;

use super::super::batch::Batch;
use super::super::notes::{Notes, STAGE};
use super::pairing::Paired;
use super::{Clock, Events};

/// Events without a partner are suspect beyond this share: some are cut off at either end of any
/// trace, but one in a hundred is a capture that loses events.
const UNPAIRED_SHARE: f64 = 0.01;

/// Origin fact: which event is the due time.
pub(crate) const DUE_FACT: &str = "due";

impl Events {
    /// Gives the rows to the batch, and says what was seen. Call when every event has been pushed.
    pub(crate) fn finish(&mut self, out: &mut Batch, notes: &mut Notes) {
        self.window.flush(&mut self.pairing);
        let empty = Events::new(Clock::SinceStart, false);
        let Events { window, pairing } = mem::replace(self, empty);
        let queued_times = pairing.queued_times();
        let paired: Paired = pairing.finish();
        notes.count("events out of order in the file, sorted", window.out_of_order);
        for (what, count) in paired.tally.counts() {
            notes.count(what, count);
        }
        warnings(&paired, queued_times, notes);
        facts(&paired, queued_times, out);
        out.take_rows(paired);
    }
}

fn facts(paired: &Paired, queued_times: bool, out: &mut Batch) {
    let tally = &paired.tally;
    let due = if paired.queue_only || queued_times {
        "when it was queued (Q)"
    } else {
        "when it was issued to the device (D)"
    };
    out.facts.insert(DUE_FACT.to_owned(), due.to_owned());
    if let Some(first_ns) = tally.first_ns {
        out.facts.insert("first_event_ns".to_owned(), first_ns.to_string());
    }
    if queued_times && tally.completed > 0 {
        let mean_ns = tally.wait_ns / tally.completed;
        out.facts.insert("queue_wait_ns_mean".to_owned(), mean_ns.to_string());
    }
}

fn warnings(paired: &Paired, queued_times: bool, notes: &mut Notes) {
    let tally = &paired.tally;
    if paired.queue_only {
        let message = "the trace has queue events (Q) but no issues (D): requests are due when \
                       they were queued, and how long the device took is not known";
        let hint = "capture with the issue and complete actions to simulate the device";
        notes.warn(Warning::new(STAGE, "queue_times_only", message).with_hint(hint));
    }
    if queued_times && tally.issued_only > 0 {
        let count = tally.issued_only;
        let message = format!("{count} requests have no queue event; they are due when issued");
        notes.warn(Warning::new(STAGE, "queue_events_missing", message));
    }
    if tally.actions.iter().sum::<u64>() > 0 && paired.rows.due.is_empty() {
        let message = "the trace has events but no request that was queued or issued";
        notes.warn(Warning::new(STAGE, "no_requests", message));
    }
    let ends = paired.rows.due.len() as u64;
    let unpaired = tally.completed_only + tally.never_completed;
    if paired.has_service && ends > 0 && unpaired as f64 > UNPAIRED_SHARE * ends as f64 {
        let message = format!(
            "{} completions have no issue and {} requests have no completion in the trace",
            tally.completed_only, tally.never_completed
        );
        let hint =
            "some are cut off at either end of a trace; more mean that the capture lost events";
        notes.warn(Warning::new(STAGE, "events_unpaired", message).with_hint(hint));
    }
}

impl Batch {
    /// Replaces the rows by paired ones.
    fn take_rows(&mut self, paired: Paired) {
        let names: Vec<String> = paired.devices.iter().map(|device| name(*device)).collect();
        for name in &names {
            let index = self.streams.name(name.as_bytes());
            debug_assert!(index.is_ok(), "there are fewer devices than streams");
        }
        self.layer = "device";
        let rows = paired.rows;
        self.due = rows.due;
        self.offset = rows.offset;
        self.len = rows.len;
        self.op = rows.op;
        self.stream = rows.stream;
        self.set_service(paired.has_service.then_some(rows.service));
    }
}

/// `major:minor` of a device number.
fn name(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}
