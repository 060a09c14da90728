//! Caches that were empty when the captured load began: what transactions read because of that.
//!
//! Pages that a buffer or the page cache does not hold yet are read once, by whichever transaction
//! comes first. How many that are depends on how many transactions there were before, and not on
//! how long they took; so the reads per transaction of the captured run, by the number of
//! transactions since its start, hold for a device of any speed.

use sim::transactions::{Templates, Warming};

use crate::captured::Captured;

/// A stretch of the curve holds at least so many transactions: the reads of fewer are an accident.
const STRETCH: u64 = 32;
/// And lasts until the number of transactions has grown by this factor.
const GROWTH: f64 = 1.1;

/// The start of a load, as it was captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Time before the measurement, ns.
    pub warmup_ns: u64,
    /// Time of the measurement, ns.
    pub measure_ns: u64,
    /// Transactions that had ended and reads of the disk that had been made since the start, at
    /// some moments in their order.
    pub reads: Vec<(u64, u64)>,
    /// Mean size of these reads, bytes.
    pub read_bytes: u32,
}

/// What is read beyond the reads of the templates.
pub(crate) fn learn(captured: &Captured, templates: &Templates, class: u16) -> Option<Warming> {
    let start = captured.start.as_ref()?;
    let usual = templates.reads() as f64 / templates.count().max(1) as f64;
    let mut extra_reads = Vec::new();
    let (mut from, mut before) = (0u64, 0u64);
    for &(transactions, reads) in &start.reads {
        let least = (from + STRETCH).max((from as f64 * GROWTH) as u64);
        if transactions < least {
            continue;
        }
        let each = (reads - before) as f64 / (transactions - from) as f64;
        extra_reads.push((transactions, (each - usual).max(0.0)));
        (from, before) = (transactions, reads);
    }
    // What is left at the end is the spread of the templates, not a cache that fills.
    while extra_reads.last().is_some_and(|(_, extra)| *extra < 0.1 * usual + 0.01) {
        extra_reads.pop();
    }
    let bytes = start.read_bytes.max(512);
    (!extra_reads.is_empty()).then(|| Warming {
        extra_reads,
        class,
        bytes,
        span: captured.span_of_reads().max(u64::from(bytes)),
    })
}
