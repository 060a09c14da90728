//! What a capture takes of the processors while it runs.
//!
//! Recording an event costs a fifth of a microsecond in a loop, and a capture several times as much
//! in place: one tracepoint sends every system call of every task through the kernel's slow path.
//! So it is measured where it is felt. After the captured run the same load goes on for a few
//! seconds, in which the capture is off and on by turns; processor time of the whole machine per
//! transaction is compared. Nothing of these seconds is kept but the figure.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capture::clock_ns;
use capture::cpu::MachineCpu;
use events::{Event, Sink};
use oltp::{Options, Phase};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// How long the capture stays off, and on: what it samples, it samples in a part of each second.
const TURN: Duration = Duration::from_secs(1);
/// Pairs of turns: as long as the measurement takes, within these bounds.
const PAIRS: RangeInclusive<u64> = 2..=5;
/// Load before the first turn.
const WARM_UP: Nanos = Nanos(1_000_000_000);
/// Draws that are not those of the next run.
const OTHER_SEED: u64 = 1 << 40;
/// Turns with fewer transactions than this say nothing.
const LEAST_TRANSACTIONS: u64 = 50;

/// Processor time of the whole machine per transaction, with a capture and without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaptureCost {
    /// While nothing was captured, ns.
    pub off_ns: f64,
    /// While it was, ns.
    pub on_ns: f64,
    /// Turns of each kind.
    pub turns: u32,
    /// Standard error of `on_ns` over `off_ns`, by the pairs of turns.
    pub ratio_error: f64,
}

impl CaptureCost {
    /// Share of the captured processor time that the capture took, up to 1; below 0 where its turns
    /// happened to be the cheaper ones.
    pub fn share(&self) -> f64 {
        1.0 - self.off_ns / self.on_ns
    }
}

/// A turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    from_ns: u64,
    to_ns: u64,
    busy_s: f64,
}

/// Lets the load go on for a few seconds; `begin` starts a capture, which ends when it is dropped.
/// `None` where the user stopped it, or too little happened.
pub(super) fn measure<C>(
    options: &Options,
    sink: &dyn Sink,
    begin: &dyn Fn() -> C,
) -> Option<CaptureCost> {
    let turn_ns = TURN.as_nanos() as u64;
    let pairs = (options.measure.0 / (2 * turn_ns)).clamp(*PAIRS.start(), *PAIRS.end());
    let again = Options {
        warmup: WARM_UP,
        // Captures take time to begin and to end; it is cut off when the last turn is over.
        measure: Nanos(4 * pairs * turn_ns),
        seed: options.seed.wrapping_add(OTHER_SEED),
        delivery_log: None,
        ..options.clone()
    };
    let mut turns = Vec::new();
    let quiet = Silenced { sink, is_over: AtomicBool::new(false) };
    let (_, spans) = oltp::run_noted(&again, true, &quiet, &mut |phase| {
        if phase == Phase::Measurement {
            turns = by_turns(pairs, sink, begin);
            quiet.is_over.store(true, Ordering::Relaxed);
        }
    })
    .ok()?;
    let ends: Vec<u64> = spans.iter().map(|span| span.end_ns).collect();
    (!sink.cancelled()).then(|| compare(&turns, &ends)).flatten()
}

/// Off, on; on, off; and so on, so that a drift of the machine meets both.
fn by_turns<C>(pairs: u64, sink: &dyn Sink, begin: &dyn Fn() -> C) -> Vec<[Turn; 2]> {
    let mut found = Vec::new();
    for pair in 0..pairs {
        if sink.cancelled() {
            break;
        }
        let off = |turns: &mut [Turn; 2]| turns[0] = turn();
        let on = |turns: &mut [Turn; 2]| {
            let _capture = begin();
            turns[1] = turn();
        };
        let mut turns = [Turn::default(); 2];
        if pair % 2 == 0 {
            off(&mut turns);
            on(&mut turns);
        } else {
            on(&mut turns);
            off(&mut turns);
        }
        found.push(turns);
    }
    found
}

fn turn() -> Turn {
    let busy = || MachineCpu::read().map_or(0.0, MachineCpu::busy_s);
    let (from_ns, before_s) = (clock_ns(), busy());
    std::thread::sleep(TURN);
    Turn { from_ns, to_ns: clock_ns(), busy_s: busy() - before_s }
}

/// Processor time per transaction, those that ended at `ends_ns`.
fn compare(turns: &[[Turn; 2]], ends_ns: &[u64]) -> Option<CaptureCost> {
    let count = |turn: &Turn| {
        ends_ns.iter().filter(|end| (turn.from_ns..turn.to_ns).contains(*end)).count() as u64
    };
    // Busy seconds and transactions, off and on.
    let pairs: Vec<[(f64, u64); 2]> =
        turns.iter().map(|pair| pair.each_ref().map(|turn| (turn.busy_s, count(turn)))).collect();
    let each_ns = |at: usize, without: Option<usize>| {
        let kept = pairs.iter().enumerate().filter(|(index, _)| Some(*index) != without);
        let (busy_s, count) =
            kept.fold((0.0, 0), |sum, (_, pair)| (sum.0 + pair[at].0, sum.1 + pair[at].1));
        (count >= LEAST_TRANSACTIONS && busy_s > 0.0).then(|| busy_s * 1e9 / count as f64)
    };
    let ratio = |without| Some(each_ns(1, without)? / each_ns(0, without)?);
    let (whole, n) = (ratio(None)?, pairs.len() as f64);
    let parts: Option<Vec<f64>> = (0..pairs.len()).map(|pair| ratio(Some(pair))).collect();
    let squares: f64 = parts?.iter().map(|part| (part - whole).powi(2)).sum();
    Some(CaptureCost {
        off_ns: each_ns(0, None)?,
        on_ns: each_ns(1, None)?,
        turns: pairs.len() as u32,
        // By the jackknife.
        ratio_error: (squares * (n - 1.0) / n).sqrt(),
    })
}

/// This is no stage of its own: passes on the user's wish to stop alone, and ends the load.
struct Silenced<'a> {
    sink: &'a dyn Sink,
    is_over: AtomicBool,
}

impl Sink for Silenced<'_> {
    fn emit(&self, _event: Event) {}

    fn cancelled(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.sink.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of a second; a capture that makes a fifth more of each transaction, whose machine
    /// grows slower by the turn.
    #[test]
    fn a_drift_of_the_machine_is_no_cost() {
        let mut turns = Vec::new();
        let mut ends = Vec::new();
        let mut at_ns = 0;
        let mut add = |on: bool, slower: f64| {
            let each_s = 0.01 * slower * if on { 1.2 } else { 1.0 };
            let count = (2.0 / each_s) as u64;
            ends.extend((0..count).map(|index| at_ns + index * 1_000_000_000 / count));
            let turn = Turn {
                from_ns: at_ns,
                to_ns: at_ns + 1_000_000_000,
                busy_s: count as f64 * each_s,
            };
            at_ns += 2_000_000_000;
            turn
        };
        for pair in 0..6 {
            let slower = |turn: f64| 1.0 + 0.05 * turn;
            let (first, second) = (slower(f64::from(2 * pair)), slower(f64::from(2 * pair + 1)));
            turns.push(if pair % 2 == 0 {
                let off = add(false, first);
                [off, add(true, second)]
            } else {
                let on = add(true, first);
                [add(false, second), on]
            });
        }
        let found = compare(&turns, &ends).unwrap();
        assert!((found.on_ns / found.off_ns - 1.2).abs() < 0.01, "{found:?}");
        assert!((found.share() - 1.0 / 6.0).abs() < 0.01, "{found:?}");
        assert!(found.ratio_error > 0.0 && found.ratio_error < 0.05, "{found:?}");
        assert_eq!(compare(&turns, &ends[..60]), None, "too few transactions");
        assert_eq!(compare(&[], &ends), None);
    }
}
