//! How wrong a profile is: the simulated against the real response times of one request sequence,
//! beside the real device's own difference between two runs.
//!
//! The definition of E is the design's (`stats::error_ratio`). Run A is the reference; run B
//! against run A is the noise floor; the simulation is against run A. Classes are operation x size,
//! sizes grouped by power of two so that a log with commits of many lengths makes a handful of
//! classes.
//!
//! Three things are told apart: E as measured; the noise floor; and E with the drift taken out,
//! where the simulated times of each kind of request are multiplied by what the disk changed by
//! since the fit ([`crate::drift`]). The verdict is on E as measured. It takes the whole interval:
//! where that lies on both sides of the aim, E cannot be told from it.

use probe::reference::{Kind, Measured};
use profile::Profile;
use serde::{Deserialize, Serialize};
use stats::error_ratio::{
    Block, ClassKey, Classified, Comparison, Requests, Resampling, compare_requests,
    compare_with_interval,
};
use trace::{Op, Trace};

use crate::Error;
use crate::drift::Drift;

/// E of the disk against itself from which on nothing can be told: an aim of half as much again
/// would let any simulation pass.
pub const NOISE_MAX: f64 = 0.2;

/// Rounds that always run, where the study allows as many.
pub const FEWEST_ROUNDS: usize = 4;

/// Times of one replay, in the order of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// completion - due of every request, ns.
    pub response_ns: Vec<u64>,
    /// completion - issue of every request, ns.
    pub service_ns: Vec<u64>,
    /// How exactly the schedule was kept.
    pub certificate: probe::replay::Certificate,
}

/// One slice, replayed twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Which slice, in the order of the trace.
    pub slice: usize,
    /// Run A.
    pub a: Replayed,
    /// Run B, which came first in every other round.
    pub b: Replayed,
    /// The reference measurements before either.
    pub references: Vec<Measured>,
}

impl Round {
    /// Whether both replays kept their schedule.
    pub fn is_valid(&self) -> bool {
        self.a.certificate.valid && self.b.certificate.valid
    }
}

/// The outcome of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Requests compared.
    pub requests: u64,
    /// Simulation against run A.
    pub simulated: Classified,
    /// Run B against run A.
    pub noise_floor: Classified,
    /// The same split by operation only, with the curves for the figures.
    pub operations: Vec<OperationError>,
    /// E that the project aims at: max(0.05, 1.5 x noise floor).
    pub aim: f64,
    /// Timing certificates of runs A and B, round by round.
    pub certificates: Vec<probe::replay::Certificate>,
    /// By what the disk changed since the fit; empty where no reference was measured.
    #[serde(default)]
    pub drift: Vec<Drift>,
    /// The simulation with the drift taken out, against run A.
    #[serde(default)]
    pub without_drift: Option<Classified>,
    /// Further rounds that are left out because a replay did not keep its schedule.
    #[serde(default)]
    pub late_rounds: u64,
}

/// Whether E meets its aim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval of E is at or below the aim.
    Met,
    /// The whole interval is above it.
    Missed,
    /// The interval holds the aim, there is none, or the disk is too noisy.
    #[default]
    Undecided,
}

impl Verdict {
    /// Of E against its aim.
    pub fn of(error: &Comparison, floor: &Comparison, aim: f64) -> Self {
        match error.error_ratio_interval {
            _ if floor.error_ratio > NOISE_MAX => Self::Undecided,
            Some((_, high)) if high <= aim => Self::Met,
            Some((low, _)) if low > aim => Self::Missed,
            _ => Self::Undecided,
        }
    }
}

/// E that the project aims at beside a noise floor.
pub fn aim(noise_floor: f64) -> f64 {
    (1.5 * noise_floor).max(0.05)
}

impl Validation {
    /// Whether E as measured meets its aim.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.simulated.pooled, &self.noise_floor.pooled, self.aim)
    }

    /// The verdict in a sentence without its end.
    pub fn verdict_words(&self) -> String {
        let (error, aim) = (&self.simulated.pooled, self.aim);
        let shown = with_interval(error);
        let floor = self.noise_floor.pooled.error_ratio;
        match self.verdict() {
            Verdict::Met => format!("E = {shown} meets its aim of {aim:.3}"),
            Verdict::Missed => format!("E = {shown} misses its aim of {aim:.3}"),
            Verdict::Undecided if floor > NOISE_MAX => format!(
                "E cannot be told here: it is {shown}, and the disk differs from itself by \
                 {floor:.3} between two replays"
            ),
            Verdict::Undecided => match error.error_ratio_interval {
                Some((low, high)) => format!(
                    "E cannot be told from its aim here: interval {low:.3} to {high:.3}, aim \
                     {aim:.3}"
                ),
                None => format!(
                    "E cannot be told from its aim here: {:.3} of too few requests for an \
                     interval, aim {aim:.3}",
                    error.error_ratio
                ),
            },
        }
    }

    /// What would help where E does not meet its aim; empty where it does.
    pub fn help(&self) -> String {
        let verdict = self.verdict();
        if verdict == Verdict::Met {
            return String::new();
        }
        let drifted = self.drift.iter().any(|drift| drift.replay.is_some_and(|c| c.is_shown()));
        let mut help = Vec::new();
        if self.noise_floor.pooled.error_ratio > NOISE_MAX {
            help.push("run on an idle machine, or on a disk that others do not use");
        } else if verdict == Verdict::Undecided {
            help.push("allow more rounds (rounds under [validate]), or run on an idle machine");
        }
        if drifted {
            help.push("the disk has changed since it was probed: run the study again");
        }
        help.join("; ")
    }

    /// What E is with the drift taken out, and what the drift is, in sentences; empty where it was
    /// not measured.
    pub fn drift_words(&self) -> String {
        let Some(without) = &self.without_drift else { return String::new() };
        let of = |drift: &Drift| {
            let change = drift.replay?;
            let percent = (change.factor - 1.0) * 100.0;
            let (low, high) = ((change.low - 1.0) * 100.0, (change.high - 1.0) * 100.0);
            Some(format!("{} {percent:+.0} % ({low:+.0} to {high:+.0})", drift.kind.name()))
        };
        let drifts: Vec<String> = self.drift.iter().filter_map(of).collect();
        format!(
            "Between the probe and the replays the times of the disk itself changed: {}. With that \
             drift taken out of the comparison, E would be {}; as measured it is {}.",
            drifts.join(", "),
            with_interval(&without.pooled),
            with_interval(&self.simulated.pooled),
        )
    }
}

/// `0.071 (0.065 to 0.078)`.
pub fn with_interval(comparison: &Comparison) -> String {
    match comparison.error_ratio_interval {
        Some(interval) => report::format::ratio_with_interval(comparison.error_ratio, interval),
        None => format!("{:.3}", comparison.error_ratio),
    }
}

/// One operation of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationError {
    /// The operation.
    pub op: Op,
    /// Simulation against run A.
    pub simulated: Comparison,
    /// Run B against run A.
    pub noise_floor: Comparison,
    /// Response-time quantile curves for drawing.
    pub curves: Vec<Curve>,
}

/// A distribution as a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `real, run A`, `real, run B`, `simulated`, `simulated without cache`.
    pub name: String,
    /// (response time ns, share of requests at or below it).
    pub points: Vec<(u64, f64)>,
}

/// What a validation compares.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The requests.
    pub trace: &'a Trace,
    /// The real device, twice.
    pub real: [&'a Replayed; 2],
    /// Simulated response times, ns.
    pub simulated: &'a [u64],
    /// The same without the profile's cache, where it has one.
    pub without_cache: Option<&'a [u64]>,
    /// What stays together when the interval of E is drawn.
    pub block_ns: u64,
    /// By what the disk changed since the profile was fitted, where that was measured.
    pub drift: &'a [Drift],
}

/// A second: many requests, and longer than what follows a flush or a checkpoint.
pub const BLOCK_NS: u64 = 1_000_000_000;

/// Simulated response times of a trace, ns, under the same load as `stages::replay::mode` gives the
/// real device.
pub fn simulate(profile: &Profile, trace: &Trace, seed: u64) -> Result<Vec<u64>, sim::Error> {
    let mut device = model::device(profile, seed);
    if trace.captured().is_some() {
        return sim::closed_loop_times(device.as_mut(), trace);
    }
    Ok(sim::responses(device.as_mut(), trace))
}

/// The simulated times with the drift of the disk in them.
fn drifted(sides: &Sides<'_>) -> Vec<u64> {
    let factor = |kind| {
        let drift = sides.drift.iter().find(|drift| drift.kind == kind);
        drift.and_then(|drift| drift.replay).map_or(1.0, |change| change.factor)
    };
    let factors = Kind::ALL.map(|kind| (kind, factor(kind)));
    let one = |index: usize| {
        let kind = Kind::of(sides.trace.op[index], sides.trace.len[index]);
        let found = factors.iter().find(|(other, _)| Some(*other) == kind);
        let factor = found.map_or(1.0, |(_, factor)| *factor);
        (sides.simulated[index] as f64 * factor).round() as u64
    };
    (0..sides.trace.count()).map(one).collect()
}

/// Compares; all sides have one time per request of the trace.
pub fn compare(sides: &Sides<'_>, seed: u64) -> Validation {
    let trace = sides.trace;
    let (keys, class) = classes(trace);
    let block = Block::Time { due_ns: &trace.due, block_ns: sides.block_ns };
    let resampling = Resampling { resamples: 200, seed, block };
    let against_a = |times: &[u64]| {
        let real = &sides.real[0].response_ns;
        let requests = Requests { keys: &keys, class: &class, simulated: times, real };
        compare_requests(&requests, Some(&resampling))
    };
    let noise_floor = against_a(&sides.real[1].response_ns);
    Validation {
        requests: trace.count() as u64,
        simulated: against_a(sides.simulated),
        operations: Op::ALL.into_iter().filter_map(|op| operation(sides, op, seed)).collect(),
        aim: aim(noise_floor.pooled.error_ratio),
        noise_floor,
        certificates: sides.real.iter().map(|run| run.certificate.clone()).collect(),
        drift: sides.drift.to_vec(),
        without_drift: sides
            .drift
            .iter()
            .any(|drift| drift.replay.is_some())
            .then(|| against_a(&drifted(sides))),
        late_rounds: 0,
    }
}

/// Rounds of replays one behind the other, with what the profile makes of them.
pub(crate) struct Together {
    pub(crate) trace: Trace,
    pub(crate) real: [Replayed; 2],
    pub(crate) simulated: Vec<u64>,
    pub(crate) without_cache: Option<Vec<u64>>,
    pub(crate) certificates: Vec<probe::replay::Certificate>,
    /// Rounds left out.
    pub(crate) late_rounds: u64,
}

/// Compares rounds with a profile.
pub(crate) struct Judge<'a> {
    profile: Profile,
    slices: &'a [Trace],
    seed: u64,
    slice_ns: u64,
}

impl<'a> Judge<'a> {
    /// With a profile and the slices of a trace.
    pub(crate) fn new(profile: Profile, slices: &'a [Trace], seed: u64) -> Self {
        let slice_ns = slices.iter().map(|slice| slice.span().0 + 1).max().unwrap_or(1);
        Self { profile, slices, seed, slice_ns }
    }

    /// What stays together when intervals are drawn: a third of a slice, so that four rounds are
    /// enough for an interval, and a round that differs from the others widens it.
    pub(crate) fn block_ns(&self) -> u64 {
        (self.slice_ns / 3).max(1)
    }

    /// Puts rounds together. Those in which a replay was late are left out, unless too few others
    /// are there.
    pub(crate) fn together(&self, rounds: &[Round]) -> Result<Together, Error> {
        let valid = rounds.iter().filter(|round| round.is_valid()).count();
        let all = valid < FEWEST_ROUNDS.min(rounds.len());
        let cache = self.profile.write_cache.is_some().then(|| self.profile.without_cache());
        let streams = self.slices.first().map_or_else(Vec::new, |slice| slice.streams.clone());
        let mut out = Together {
            trace: Trace { streams, ..Trace::default() },
            real: [Replayed::default(), Replayed::default()],
            simulated: Vec::new(),
            without_cache: cache.as_ref().map(|_| Vec::new()),
            certificates: Vec::new(),
            late_rounds: if all { 0 } else { (rounds.len() - valid) as u64 },
        };
        let used = rounds.iter().filter(|round| all || round.is_valid());
        for (number, round) in used.enumerate() {
            let slice = &self.slices[round.slice];
            let (first, count) = (out.trace.count(), slice.count());
            out.trace.extend_rows(slice, 0..count);
            let shift = number as u64 * self.slice_ns;
            out.trace.due[first..].iter_mut().for_each(|due| *due += shift);
            for (real, of_round) in out.real.iter_mut().zip([&round.a, &round.b]) {
                real.append(of_round, first + count);
                out.certificates.push(of_round.certificate.clone());
            }
            // A slice that is replayed again is simulated with other draws.
            let seed = self.seed.wrapping_add(number as u64);
            out.simulated.extend(simulate(&self.profile, slice, seed)?);
            if let (Some(times), Some(profile)) = (&mut out.without_cache, &cache) {
                times.extend(simulate(profile, slice, seed)?);
            }
        }
        Ok(out)
    }

    /// Whether E of these rounds meets its aim.
    pub(crate) fn verdict(&self, rounds: &[Round]) -> Result<Verdict, Error> {
        let Together { trace, real: [a, b], simulated, .. } = self.together(rounds)?;
        let block = Block::Time { due_ns: &trace.due, block_ns: self.block_ns() };
        let resampling = Resampling { resamples: 200, seed: self.seed, block };
        let error = compare_with_interval(&simulated, &a.response_ns, &resampling);
        let floor = compare_with_interval(&b.response_ns, &a.response_ns, &resampling);
        Ok(Verdict::of(&error, &floor, aim(floor.error_ratio)))
    }
}

impl Replayed {
    /// Appends the times of another replay, up to `count` in all: one that ended with requests that
    /// were not issued has no times for them.
    fn append(&mut self, other: &Self, count: usize) {
        self.response_ns.extend_from_slice(&other.response_ns);
        self.service_ns.extend_from_slice(&other.service_ns);
        self.response_ns.resize(count, 0);
        self.service_ns.resize(count, 0);
    }
}

/// Class of every request: its operation and its size rounded up to a power of two.
pub(crate) fn classes(trace: &Trace) -> (Vec<ClassKey>, Vec<u16>) {
    let mut keys: Vec<ClassKey> = Vec::new();
    let class = trace.op.iter().zip(&trace.len).map(|(op, len)| {
        let size_bytes = if *op == Op::Flush { 0 } else { len.next_power_of_two() };
        let known = keys.iter().position(|key| key.op == op.name() && key.size_bytes == size_bytes);
        known.unwrap_or_else(|| {
            keys.push(ClassKey { op: op.name().to_owned(), size_bytes });
            keys.len() - 1
        }) as u16
    });
    let class = class.collect();
    (keys, class)
}

fn operation(sides: &Sides<'_>, op: Op, seed: u64) -> Option<OperationError> {
    let members: Vec<usize> =
        (0..sides.trace.count()).filter(|index| sides.trace.op[*index] == op).collect();
    if members.is_empty() {
        return None;
    }
    let pick = |times: &[u64]| -> Vec<u64> { members.iter().map(|index| times[*index]).collect() };
    let due: Vec<u64> = pick(&sides.trace.due);
    let block = Block::Time { due_ns: &due, block_ns: sides.block_ns };
    let resampling = Resampling { resamples: 200, seed, block };
    let real = sides.real.map(|run| pick(&run.response_ns));
    let simulated = pick(sides.simulated);
    let mut curves = vec![
        curve("real, run A", &real[0]),
        curve("real, run B", &real[1]),
        curve("simulated", &simulated),
    ];
    if let Some(times) = sides.without_cache {
        curves.push(curve("simulated without cache", &pick(times)));
    }
    Some(OperationError {
        op,
        simulated: compare_with_interval(&simulated, &real[0], &resampling),
        noise_floor: compare_with_interval(&real[1], &real[0], &resampling),
        curves,
    })
}

/// Shares at which a curve is kept: dense in the middle, denser in the tail, where people look.
fn shares() -> impl Iterator<Item = f64> {
    let body = (0..=196).map(|k| f64::from(k) * 0.005);
    let tail = [0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999, 1.0];
    body.chain(tail)
}

/// The distribution of `times` as a curve.
pub fn curve(name: &str, times: &[u64]) -> Curve {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let points = if sorted.is_empty() {
        Vec::new()
    } else {
        shares().map(|share| (stats::quantile_sorted(&sorted, share), share)).collect()
    };
    Curve { name: name.to_owned(), points }
}

#[cfg(test)]
mod tests {
    use stats::change::Change;
    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;
    use crate::profiles::read_profile;

    /// This many reads and writes in turns, a millisecond apart.
    fn trace_of(count: u64) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for index in 0..count {
            let op = if index % 2 == 0 { Op::Read } else { Op::Write };
            let (due, offset) = (Nanos(index * 1_000_000), Bytes(index * 4096));
            let request = Request { due, offset, len: 4096, op, stream: 0 };
            trace.push_captured(request, Nanos(10), 0, 1);
        }
        trace
    }

    fn replayed(times: &[u64], valid: bool) -> Replayed {
        let certificate = probe::replay::Certificate { valid, ..Default::default() };
        Replayed { response_ns: times.to_vec(), service_ns: times.to_vec(), certificate }
    }

    fn change(factor: f64) -> Change {
        Change { factor, low: factor * 0.95, high: factor * 1.05 }
    }

    /// A validation of 20,000 requests with these times of reads and writes.
    fn validated(a: [u64; 2], b: [u64; 2], simulated: [u64; 2], drift: &[Drift]) -> Validation {
        let trace = trace_of(20_000);
        // Spread around the mean, the same on every side.
        let times = |[read, write]: [u64; 2]| -> Vec<u64> {
            let one = |index: u64| if index.is_multiple_of(2) { read } else { write };
            (0..20_000).map(|index| one(index) * (90 + index % 21) / 100).collect()
        };
        let real = [replayed(&times(a), true), replayed(&times(b), true)];
        let sides = Sides {
            trace: &trace,
            real: [&real[0], &real[1]],
            simulated: &times(simulated),
            without_cache: None,
            block_ns: BLOCK_NS,
            drift,
        };
        compare(&sides, 1)
    }

    #[test]
    fn the_verdict_is_on_the_whole_interval() {
        let real = [100_000, 200_000];
        let near = validated(real, [101_000, 202_000], [102_000, 204_000], &[]);
        assert_eq!((near.verdict(), near.help().as_str()), (Verdict::Met, ""));
        assert!(near.verdict_words().ends_with("meets its aim of 0.050"), "{near:?}");
        let far = validated(real, [101_000, 202_000], [150_000, 300_000], &[]);
        assert_eq!(far.verdict(), Verdict::Missed);
        let noisy = validated(real, [140_000, 280_000], [150_000, 300_000], &[]);
        assert_eq!(noisy.verdict(), Verdict::Undecided, "an aim of 0.6 would let it pass");
        assert!(noisy.help().contains("idle machine"), "{}", noisy.help());
        let of = |low, high| {
            let mut error = near.simulated.pooled;
            error.error_ratio_interval = Some((low, high));
            Verdict::of(&error, &near.noise_floor.pooled, 0.05)
        };
        assert_eq!(of(0.02, 0.05), Verdict::Met);
        assert_eq!(of(0.04, 0.06), Verdict::Undecided);
        assert_eq!(of(0.051, 0.06), Verdict::Missed);
        let short = Comparison { error_ratio_interval: None, ..near.simulated.pooled };
        let verdict = Verdict::of(&short, &near.noise_floor.pooled, 0.05);
        assert_eq!(verdict, Verdict::Undecided);
    }

    /// A disk that has become a quarter slower at writes, and a model of what it was before.
    #[test]
    fn drift_is_taken_out_of_the_kind_that_it_is_of() {
        let drift = [
            Drift { kind: Kind::SmallWrite, load: None, replay: Some(change(1.25)) },
            Drift { kind: Kind::LargeWrite, load: None, replay: Some(change(3.0)) },
        ];
        let real = [100_000, 250_000];
        let found = validated(real, real, [100_000, 200_000], &drift);
        assert_eq!(found.verdict(), Verdict::Missed, "the verdict is on E as measured");
        assert!(found.simulated.pooled.error_ratio > 0.1);
        let without = found.without_drift.as_ref().unwrap();
        assert!(without.pooled.error_ratio < 1e-4, "{:?}", without.pooled);
        let words = found.drift_words();
        assert!(words.contains("small writes +25 % (+19 to +31)"), "{words}");
        assert!(found.help().contains("run the study again"), "{}", found.help());
        let unknown = validated(real, real, [100_000, 200_000], &[]);
        assert_eq!((unknown.without_drift, unknown.drift.len()), (None, 0));
    }

    #[test]
    fn rounds_stand_one_behind_the_other_and_late_ones_are_left_out() {
        let profile = read_profile("intel-p3700").unwrap();
        let slices = [trace_of(10), trace_of(20)];
        let judge = Judge { profile, slices: &slices, seed: 1, slice_ns: 19_000_001 };
        let round = |slice: usize, valid| {
            let count = slices[slice].count();
            // One that ends with requests that are not issued has no times for them.
            let (a, b) = (replayed(&vec![5; count], valid), replayed(&vec![7; count - 1], true));
            Round { slice, a, b, references: Vec::new() }
        };
        let mut rounds = vec![round(0, true), round(1, false), round(1, true), round(0, true)];
        let all = judge.together(&rounds).unwrap();
        assert_eq!((all.trace.count(), all.late_rounds), (60, 0), "three others are too few");
        rounds.push(round(1, true));
        let found = judge.together(&rounds).unwrap();
        assert_eq!((found.trace.count(), found.late_rounds), (60, 1));
        assert_eq!(found.trace.validate(), Ok(()));
        assert_eq!(found.trace.due[10], 19_000_001, "the second round counts from its own start");
        assert_eq!(found.certificates.len(), 8);
        for times in [&found.real[0].response_ns, &found.real[1].response_ns, &found.simulated] {
            assert_eq!(times.len(), 60);
        }
        assert_eq!(found.real[1].response_ns[8..11], [7, 0, 7]);
        assert_ne!(found.simulated[..10], found.simulated[30..40], "other draws");
    }
}
