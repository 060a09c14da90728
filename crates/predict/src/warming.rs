//! Caches that were empty when the captured load began: what transactions read because of that.
//!
//! Pages that a buffer or the page cache does not hold yet are read once, by whichever transaction
//! comes first. How many that are depends on how many transactions there were before, and not on
//! how long they took; so the reads per transaction of the captured run, by the number of
//! transactions since its start, hold for a device of any speed.

use sim::transactions::{Step, Templates, Warming};

use crate::captured::{Captured, Start};

/// A stretch of the curve has at least this many transactions: reads of fewer are an accident.
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
    let by_kind = by_kind(start, templates, captured.kinds.len());
    let log = log(start);
    (!extra_reads.is_empty() || !log.is_empty()).then(|| Warming {
        extra_reads,
        by_kind,
        class,
        bytes,
        span: captured.span_of_reads().max(u64::from(bytes)),
        log,
    })
}

/// Bytes of log per transaction over those of the measurement, which the templates have. A page
/// that changes for the first time after a checkpoint is logged whole (`full_page_writes`): the
/// fewer transactions came before, the more such pages there are.
fn log(start: &Start) -> Vec<(u64, f64)> {
    let Some(&last) = start.log_bytes.last() else { return Vec::new() };
    // The looks are a tenth of a second apart, over warm-up and measurement.
    let looks = start.log_bytes.len() as u64;
    let whole_ns = (start.warmup_ns + start.measure_ns).max(1);
    let first = (looks * start.warmup_ns / whole_ns) as usize;
    let begin = first.checked_sub(1).map_or((0, 0), |at| start.log_bytes[at]);
    let per =
        |from: (u64, u64), to: (u64, u64)| (to.1 - from.1) as f64 / (to.0 - from.0).max(1) as f64;
    let usual = per(begin, last);
    let mut found = Vec::new();
    let mut from = (0, 0);
    for &to in &start.log_bytes {
        if usual > 0.0 && to.0 >= (from.0 + STRETCH).max((from.0 as f64 * GROWTH) as u64) {
            found.push((to.0, per(from, to) / usual));
            from = to;
        }
    }
    found
}

/// Reads of each kind over those of a mean transaction: as seen during the warm-up, and after it
/// as the templates have it. Kinds that look at other rows than the ones before them find them in
/// a cache less often, and for longer.
///
/// The mean is that of the templates' mix: in a short stretch a rare kind came once or never, and
/// what it reads is another share of all reads then.
fn by_kind(start: &Start, templates: &Templates, kinds: usize) -> Vec<(u64, Vec<f64>)> {
    let mut later = vec![(0, 0); kinds];
    for (kind, steps) in templates.iter() {
        let (count, reads) = &mut later[usize::from(kind)];
        *count += 1;
        *reads += steps.iter().filter(|step| matches!(step, Step::Read { .. })).count() as u64;
    }
    let stretches = start.by_kind.iter().map(|stretch| (stretch.upto, &stretch.kinds));
    let all = stretches.chain([(u64::MAX, &later)]);
    all.filter_map(|(upto, seen)| Some((upto, shares(seen, &later)?))).collect()
}

/// Reads of each kind, of which so many came and read so much, over the mean of a mix.
fn shares(seen: &[(u64, u64)], mix: &[(u64, u64)]) -> Option<Vec<f64>> {
    let sum = |of: fn(&(u64, u64)) -> u64| seen.iter().map(of).sum::<u64>() as f64;
    let overall = sum(|one| one.1) / sum(|one| one.0).max(1.0);
    // What a kind reads of which none came is not known.
    let each = |&(count, own): &(u64, u64)| match count {
        0 => overall,
        count => own as f64 / count as f64,
    };
    let each: Vec<f64> = seen.iter().map(each).collect();
    let count = mix.iter().map(|one| one.0).sum::<u64>() as f64;
    let mean = each.iter().zip(mix).map(|(each, of)| each * of.0 as f64).sum::<f64>() / count;
    (mean > 0.0).then(|| each.iter().map(|each| each / mean).collect())
}
