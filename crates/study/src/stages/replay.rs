//! Replays slices of the captured device trace on the real disk, with their dependencies: the run
//! was a closed loop (see `docs/journal/2026-11-21-dependent-replay.md`).
//!
//! A round replays one slice twice, A and B, every other round B first, so that a disk that drifts
//! does not favour either; before each stands a reference measurement. Rounds go on until the
//! interval of E lies on one side of its aim or the study's bound is reached. A stopped stage keeps
//! its whole rounds.

use events::{Event, Sink};
use io::target::{self, Need, Prepared, TargetSpec};
use probe::reference;
use probe::replay::{Mode, ReplayOptions, replay_on};
use trace::Trace;
use units::Nanos;

use crate::Error;
use crate::artifacts::{DEVICE_TRACE, PROFILE, REPLAY};
use crate::context::Context;
use crate::drift::References;
use crate::file::StudyFile;
use crate::partial::Partial;
use crate::profiles::read_profile;
use crate::validation::{FEWEST_ROUNDS, Judge, Replayed, Round, Verdict};

/// Rounds so far, one JSON document per line.
const PARTIAL: &str = "replay.partial.jsonl";

/// Slices that the replayed part of a trace is cut into.
pub const SLICES: usize = 6;
/// E is looked at after this many rounds: half of them ran A first.
const ROUNDS_AT_ONCE: usize = 2;

/// Seconds that the stage takes at most.
pub(crate) fn expected_s(study: &StudyFile) -> f64 {
    let slice_s = study.validate.duration.as_secs_f64() / SLICES as f64;
    f64::from(study.validate.rounds) * 2.0 * (slice_s + reference::SECONDS) + 5.0
}

/// Bytes that the stage writes at most: the database as a file, and what the captured I/O writes.
pub(crate) fn writes_bytes(study: &StudyFile) -> u64 {
    let replayed_s = 2.0 * f64::from(study.validate.rounds) * study.validate.duration.as_secs_f64()
        / SLICES as f64;
    study.oltp.bytes() + (replayed_s * 16e6) as u64
}

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = replayed_part(context)?;
    let slices = slices(&trace);
    let (mut partial, mut rounds) = Partial::<Round>::open(context.run, PARTIAL)?;
    let judge = judge(context, &slices)?;
    let mut disk = None;
    while !is_enough(context, &judge, &rounds)? {
        let disk = match &mut disk {
            Some(disk) => disk,
            None => disk.insert(Disk::open(context, &trace)?),
        };
        let Some(round) = disk.round(context, &slices, rounds.len())? else { return Ok(()) };
        partial.push(&round)?;
        rounds.push(round);
    }
    if context.cancelled() {
        return Ok(());
    }
    context.finish(&REPLAY, &rounds)?;
    context.run.remove(PARTIAL)
}

/// Compares rounds with the profile that the study fitted.
pub(crate) fn judge<'a>(context: &Context<'_>, slices: &'a [Trace]) -> Result<Judge<'a>, Error> {
    let profile = read_profile(&context.run.join(PROFILE).to_string_lossy())?;
    Ok(Judge::new(profile, slices, context.study.study.seed))
}

/// Whether no further round is needed, or allowed.
fn is_enough(context: &Context<'_>, judge: &Judge<'_>, rounds: &[Round]) -> Result<bool, Error> {
    let most = context.study.validate.rounds as usize;
    if rounds.len() >= most {
        return Ok(true);
    }
    let valid = rounds.iter().filter(|round| round.is_valid()).count();
    if valid < FEWEST_ROUNDS || !rounds.len().is_multiple_of(ROUNDS_AT_ONCE) {
        return Ok(false);
    }
    Ok(judge.verdict(rounds)? != Verdict::Undecided)
}

/// The real disk: the file that is replayed on, written once, and the one of the references.
struct Disk<'a> {
    prepared: Prepared,
    is_written: bool,
    references: References<'a>,
}

impl<'a> Disk<'a> {
    fn open(context: &Context<'a>, trace: &Trace) -> Result<Self, Error> {
        let range_bytes = trace.extent().0.next_multiple_of(1 << 20).max(1 << 20);
        let need = Need { range_bytes, keep_file: false, must_write: true };
        let prepared = target::prepare(&TargetSpec::new(context.run.path()), &need)
            .map_err(probe::Error::from)?;
        for warning in &prepared.warnings {
            context.warn(warning.clone());
        }
        let references = References::new(context.run, context.study.study.seed);
        Ok(Self { prepared, is_written: false, references })
    }

    /// Replays a slice twice; `None` where the user stopped it.
    fn round(
        &mut self,
        context: &Context<'_>,
        slices: &[Trace],
        number: usize,
    ) -> Result<Option<Round>, Error> {
        let slice = order(slices.len())[number % slices.len()];
        let most = context.study.validate.rounds as usize;
        let doing = format!("round {} of at most {most}", number + 1);
        let mut references = Vec::new();
        let mut replayed = Vec::new();
        for half in 0..2 {
            let done = |halves: usize| halves as f64 / (2 * most) as f64;
            let (from, to) = (done(2 * number + half), done(2 * number + half + 1));
            context.progress(context.stage, from, &doing, None);
            references.extend(self.references.measure(1, context.log)?);
            let share = Share { context, from, to, doing: &doing };
            replayed.push(self.replay(context, &slices[slice], &share)?);
            if context.cancelled() {
                return Ok(None);
            }
        }
        if !number.is_multiple_of(2) {
            replayed.reverse();
        }
        let [a, b] = <[Replayed; 2]>::try_from(replayed).expect("both halves ran");
        Ok(Some(Round { slice, a, b, references }))
    }

    fn replay(
        &mut self,
        context: &Context<'_>,
        slice: &Trace,
        sink: &dyn Sink,
    ) -> Result<Replayed, Error> {
        let options = ReplayOptions {
            mode: mode(slice),
            seed: context.study.study.seed,
            precondition: !self.is_written,
            ..ReplayOptions::new(TargetSpec::new(context.run.path()))
        };
        let Prepared { device, info, .. } = &self.prepared;
        let replayed = replay_on(device, info, slice, &options, Vec::new(), sink)?;
        self.is_written = !context.cancelled();
        Ok(Replayed {
            response_ns: replayed.response_ns,
            service_ns: replayed.service_ns,
            certificate: replayed.certificate,
        })
    }
}

/// The events of a replay as a part of the stage's.
struct Share<'a> {
    context: &'a Context<'a>,
    from: f64,
    to: f64,
    doing: &'a str,
}

impl Sink for Share<'_> {
    fn emit(&self, event: Event) {
        match event {
            Event::Progress { done, .. } => {
                let done = self.from + (self.to - self.from) * done;
                let left_s = (1.0 - done) * self.context.expected_s;
                self.context.progress(self.context.stage, done, self.doing, Some(left_s));
            }
            other => self.context.log.emit(other),
        }
    }

    fn cancelled(&self) -> bool {
        self.context.cancelled()
    }
}

/// How a trace is replayed for a validation: a capture that says who waited for what reacts to the
/// device; any other keeps its times.
pub fn mode(trace: &Trace) -> Mode {
    if trace.captured().is_some() { Mode::Dependent } else { Mode::Timed }
}

/// The captured device trace, cut to the length that the study validates on.
pub(crate) fn replayed_part(context: &Context<'_>) -> Result<Trace, Error> {
    let trace = formats::own::read(&context.run.join(DEVICE_TRACE))?;
    Ok(first(trace, context.study.validate.duration))
}

/// The requests of a trace that are due within `duration` of its start.
pub fn first(mut trace: Trace, duration: Nanos) -> Trace {
    let count = trace.due.partition_point(|due| *due <= duration.0);
    trace.truncate(count);
    trace
}

/// Slices of equal time; those without requests are left out. Times count from each one's start.
pub(crate) fn slices(trace: &Trace) -> Vec<Trace> {
    let slice_ns = (trace.span().0 + 1).div_ceil(SLICES as u64);
    let at = |due: u64| trace.due.partition_point(|other| *other < due);
    let cut = |index: u64| {
        let start_ns = index * slice_ns;
        let mut slice = Trace { streams: trace.streams.clone(), ..Trace::default() };
        slice.extend_rows(trace, at(start_ns)..at(start_ns + slice_ns));
        slice.due.iter_mut().for_each(|due| *due -= start_ns);
        slice
    };
    (0..SLICES as u64).map(cut).filter(|slice| !slice.is_empty()).collect()
}

/// The order in which slices are replayed: neighbours far apart, so that a few of them stand for
/// the whole trace.
fn order(count: usize) -> Vec<usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = |index: usize| index.reverse_bits() >> (usize::BITS - bits.max(1));
    (0..count.next_power_of_two()).map(reversed).filter(|slice| *slice < count).collect()
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Stream};
    use units::Bytes;

    use super::*;

    fn captured(dues: impl IntoIterator<Item = u64>) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for due in dues {
            let (due, offset) = (Nanos(due), Bytes(0));
            let request = Request { due, offset, len: 4096, op: Op::Read, stream: 0 };
            trace.push_captured(request, Nanos(10), 0, 1);
        }
        trace
    }

    #[test]
    fn slices_hold_every_request_once() {
        let trace = captured((0..1000).map(|index| index * 7));
        let found = slices(&trace);
        assert_eq!(found.len(), SLICES);
        assert_eq!(found.iter().map(Trace::count).sum::<usize>(), 1000);
        for slice in &found {
            assert_eq!(slice.validate(), Ok(()));
            assert!(slice.captured().is_some() && slice.span().0 < 7 * 167);
        }
        let bursts = slices(&captured([0, 1, 2, 600]));
        assert_eq!(bursts.iter().map(Trace::count).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(slices(&captured([5])).len(), 1);
    }

    #[test]
    fn a_few_slices_stand_for_the_whole_trace() {
        assert_eq!(order(6), [0, 4, 2, 1, 5, 3]);
        assert_eq!(order(1), [0]);
        for count in 1..20 {
            let mut all = order(count);
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
