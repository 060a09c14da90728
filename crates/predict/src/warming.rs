//! Caches that were empty when the captured load began: what transactions read because of that.
//!
//! Pages that a buffer or the page cache does not hold yet are read once, by whichever transaction
//! comes first. How many that are depends on how many transactions there were before, and not on
//! how long they took; so the reads per transaction of the captured run, by the number of
//! transactions since its start, hold for a device of any speed.

use sim::transactions::{Templates, Warming};
use trace::Op;

use crate::captured::Captured;

/// A stretch of the curve holds at least so many transactions: the reads of fewer are an accident.
const STRETCH: u64 = 32;
/// And lasts until the number of transactions has grown by this factor.
const GROWTH: f64 = 1.1;

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
    let by_kind = by_kind(captured);
    (!extra_reads.is_empty()).then(|| Warming {
        extra_reads,
        by_kind,
        class,
        bytes,
        span: captured.span_of_reads().max(u64::from(bytes)),
    })
}

/// Reads of each kind over those of a mean transaction. Whatever the server asks the system for is
/// read from the disk while the page cache is empty, so its calls tell the kinds apart.
fn by_kind(captured: &Captured) -> Vec<f64> {
    let kinds = captured.kinds.len();
    let Some((_, chains)) = captured.logical.captured() else { return Vec::new() };
    let (mut reads, mut transactions) = (vec![0u64; kinds], vec![0u64; kinds]);
    for one in &captured.transactions {
        transactions[usize::from(one.kind)] += 1;
    }
    for at in Captured::of(&captured.logical, "data", Op::Read) {
        let number = (chains.transaction[at] as usize).checked_sub(1);
        if let Some(one) = number.and_then(|index| captured.transactions.get(index)) {
            reads[usize::from(one.kind)] += 1;
        }
    }
    let mean = reads.iter().sum::<u64>() as f64 / captured.transactions.len().max(1) as f64;
    if mean == 0.0 {
        return Vec::new();
    }
    let of_kind = reads.iter().zip(&transactions);
    of_kind.map(|(reads, count)| *reads as f64 / (*count).max(1) as f64 / mean).collect()
}
