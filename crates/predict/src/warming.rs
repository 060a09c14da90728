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
    let of_templates = |reads: usize| reads as f64 / templates.count().max(1) as f64;
    let (waited, ahead) = templates.reads();
    let (usual, usual_ahead) = (of_templates(waited), of_templates(ahead));
    let (mut extra_reads, mut extra_ahead) = (Vec::new(), Vec::new());
    let (mut from, mut before) = (0u64, 0u64);
    for &(transactions, reads) in &start.reads {
        let least = (from + STRETCH).max((from as f64 * GROWTH) as u64);
        if transactions < least {
            continue;
        }
        let each = (reads - before) as f64 / (transactions - from) as f64;
        let waited = waited_for(start, from).unwrap_or(match usual + usual_ahead {
            0.0 => 1.0,
            all => usual / all,
        });
        extra_reads.push((transactions, (each * waited - usual).max(0.0)));
        extra_ahead.push((transactions, (each * (1.0 - waited) - usual_ahead).max(0.0)));
        (from, before) = (transactions, reads);
    }
    // What is left at the end is the spread of the templates, not a cache that fills.
    for (curve, usual) in [(&mut extra_reads, usual), (&mut extra_ahead, usual_ahead)] {
        while curve.last().is_some_and(|(_, extra)| *extra < 0.1 * usual + 0.01) {
            curve.pop();
        }
    }
    let bytes = start.read_bytes.max(512);
    let by_kind = by_kind(start, templates, captured.kinds.len());
    let log = log(start);
    let is_empty = extra_reads.is_empty() && extra_ahead.is_empty() && log.is_empty();
    (!is_empty).then(|| Warming {
        extra_reads,
        extra_ahead,
        by_kind,
        class,
        bytes,
        span: captured.span_of_reads().max(u64::from(bytes)),
        log,
    })
}

/// The part of the disk's reads that transactions waited for where number `number` began; `None`
/// after the warm-up, of which the calls were seen.
fn waited_for(start: &Start, number: u64) -> Option<f64> {
    let at = start.by_kind.partition_point(|stretch| stretch.upto <= number);
    let stretch = start.by_kind.get(at)?;
    let from = at.checked_sub(1).map_or(0, |before| start.by_kind[before].upto);
    let sum = |of: fn(&(u64, u64)) -> u64| stretch.kinds.iter().map(of).sum::<u64>() as f64;
    let waited = sum(|one| one.1) / sum(|one| one.0).max(1.0);
    let so_far = |number: u64| {
        let at = start.reads.partition_point(|(transactions, _)| *transactions < number);
        let (later, reads) = *start.reads.get(at).or(start.reads.last())?;
        let (first, before) = at.checked_sub(1).map_or((0, 0), |at| start.reads[at]);
        let part = (number - first.min(number)) as f64 / (later - first).max(1) as f64;
        Some(before as f64 + (reads - before) as f64 * part.min(1.0))
    };
    let reads = (so_far(stretch.upto)? - so_far(from)?) / (stretch.upto - from).max(1) as f64;
    (reads > 0.0).then(|| (waited / reads).min(1.0))
}

/// The same where transactions touch this share of the data that they touched, above 1 more of it,
/// evenly: `R(n)` reads of `n` transactions become `share R(n / share)`, since each part of the
/// data fills its caches on its own.
pub(crate) fn of_share(warming: &Warming, share: f64) -> Warming {
    Warming {
        extra_reads: stretched(&warming.extra_reads, share),
        extra_ahead: stretched(&warming.extra_ahead, share),
        by_kind: stretched(&warming.by_kind, share),
        log: stretched(&warming.log, share),
        ..warming.clone()
    }
}

/// A curve over the number of transactions, stretched along it. Of steps that fall together the
/// last is left.
fn stretched<T: Clone>(curve: &[(u64, T)], factor: f64) -> Vec<(u64, T)> {
    let mut found: Vec<(u64, T)> = Vec::new();
    for (upto, value) in curve {
        let upto = (*upto as f64 * factor).ceil() as u64;
        if found.last().is_some_and(|(last, _)| *last >= upto) {
            found.pop();
        }
        found.push((upto, value.clone()));
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the data: half of the reads, by half of the transactions.
    #[test]
    fn less_data_are_in_caches_sooner() {
        let whole = Warming {
            extra_reads: vec![(100, 3.0), (101, 2.0), (200, 1.0)],
            extra_ahead: vec![(100, 0.5)],
            by_kind: vec![(80, vec![1.0]), (u64::MAX, vec![2.0])],
            class: 0,
            bytes: 8192,
            span: 1 << 20,
            log: vec![(10, 4.0), (30, 1.5)],
        };
        let half = of_share(&whole, 0.5);
        assert_eq!(half.extra_reads, [(50, 3.0), (51, 2.0), (100, 1.0)]);
        assert_eq!(half.extra_ahead, [(50, 0.5)]);
        assert_eq!(half.log, [(5, 4.0), (15, 1.5)]);
        assert_eq!(half.by_kind[0], (40, vec![1.0]));
        let tenth = of_share(&whole, 0.1);
        assert_eq!(tenth.extra_reads, [(10, 3.0), (11, 2.0), (20, 1.0)]);
        assert_eq!(of_share(&whole, 0.01).extra_reads, [(1, 3.0), (2, 1.0)]);
        let twice = of_share(&whole, 2.0);
        assert_eq!(twice.extra_reads, [(200, 3.0), (202, 2.0), (400, 1.0)]);
        assert_eq!(twice.by_kind[1].0, u64::MAX, "whatever comes later");
        assert_eq!(of_share(&whole, 1.0), whole);
    }

    #[test]
    fn terminals_beyond_the_warehouses_touch_no_more_data() {
        let mut learned = crate::tests::learned();
        assert_eq!(learned.touched_by(20), 1.0, "no order entry");
        learned.warehouses = Some(4);
        assert_eq!([1, 2, 4, 20].map(|terminals| learned.touched_by(terminals)), [1., 2., 4., 4.]);
        learned.setup.terminals = 20;
        assert_eq!([1, 8].map(|terminals| learned.touched_by(terminals)), [0.25, 1.0]);
    }
}
