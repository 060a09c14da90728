//! Runs a plan on a target: preconditioning, rounds of cells, resume, progress, what is suspect.

use std::collections::BTreeMap;
use std::time::Duration;

use events::{Ending, Event, Sink, Warning};
use fit::measurement::{
    Arrival, Burst, Cell, CellResult, CommitLoad, Durability, Measurements, WARM_UP_SHARE,
};
use io::engine::Device;
use io::target::{self, Need, TargetInfo, TargetSpec};

use crate::cell::{self, CellOptions};
use crate::clock;
use crate::commit_load;
use crate::disturbance::Watch;
use crate::error::Error;
use crate::plan::{self, Plan, PlanSummary, PlannedBurst, PlannedCell};
use crate::precondition::{self, Fill};

pub(crate) const STAGE: &str = "probe";
/// Shape of `measurements.json`.
pub const SCHEMA: u32 = 1;
/// Fewer requests than this say little about a distribution.
const FEW_REQUESTS: u64 = 50;
/// Repeats of a cell whose rates differ by more than this share of their mean have drifted.
const DRIFT_LIMIT: f64 = 0.25;
/// Pace of looking whether a pause should end early.
const PAUSE_STEP: Duration = Duration::from_millis(50);
/// Windows of a burst: its end is to be seen.
const BURST_WINDOW_S: f64 = 0.01;
/// A cell shorter than this is not judged steady or not.
const SHORTEST_JUDGED_S: f64 = 2.0;

/// Which plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanKind {
    /// What `fit` needs, in under a minute.
    Quick,
    /// SNIA PTS rounds until steady; takes hours with cells of a minute.
    Full,
    /// These cells once, in this order.
    Cells(Vec<Cell>),
}

/// How a device is probed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What is measured.
    pub target: TargetSpec,
    /// Bytes addressed, from the start of the target.
    pub range_bytes: u64,
    /// Which cells.
    pub plan: PlanKind,
    /// Seed of offsets, arrivals and data.
    pub seed: u64,
    /// Cells of an interrupted run, which are not measured again.
    pub done: Vec<CellResult>,
    /// Whether a file that was created stays.
    pub keep_file: bool,
    /// Measured seconds per cell; by default what fits in `budget_s` for the quick plan, 0.4 s for
    /// single cells, 60 s for the full plan.
    pub cell_seconds: Option<f64>,
    /// Seconds that the quick plan should take.
    pub budget_s: f64,
    /// Whether the issuing threads ask for real-time priority, so that they time the device and not
    /// the run queue. Replays do the same; without the right to it they run as they are.
    pub realtime: bool,
    /// Whether the range is written before the first cell. Only for a target whose caller has just
    /// written it.
    pub precondition: bool,
}

impl Options {
    /// The quick plan on 1 GiB in 45 seconds.
    pub fn new(target: TargetSpec) -> Self {
        Self {
            target,
            range_bytes: 1 << 30,
            plan: PlanKind::Quick,
            seed: 1,
            done: Vec::new(),
            keep_file: false,
            cell_seconds: None,
            budget_s: 45.0,
            realtime: true,
            precondition: true,
        }
    }

    fn need(&self) -> Need {
        let must_write = match &self.plan {
            PlanKind::Cells(cells) => cells.iter().any(plan::writes),
            PlanKind::Quick | PlanKind::Full => false,
        };
        Need { range_bytes: self.range_bytes, keep_file: self.keep_file, must_write }
    }

    fn plan(&self, info: &TargetInfo) -> Plan {
        let mut plan = match &self.plan {
            PlanKind::Quick => Plan::quick(info, self.budget_s),
            PlanKind::Full => Plan::full(info, 60.0),
            PlanKind::Cells(cells) => Plan::of_cells(info, cells, 0.4),
        };
        if !self.precondition {
            (plan.fill_passes, plan.fill_random) = (0, false);
        }
        if let Some(seconds) = self.cell_seconds {
            plan.cells.iter_mut().for_each(|planned| planned.seconds = seconds);
        }
        plan
    }
}

/// What a run would do, without touching the target.
pub fn dry_run(options: &Options) -> Result<PlanSummary, Error> {
    let info = target::inspect(&options.target, &options.need())?;
    Ok(options.plan(&info).summary(&info, options.done.len()))
}

/// Measures a target.
///
/// `on_cell` gets every cell as soon as it is measured, so that the caller can save it; cells in
/// [`Options::done`] are neither measured nor handed over again, but are part of the result. A run
/// that was cancelled through `sink` returns what it has.
pub fn run(
    options: &Options,
    sink: &dyn Sink,
    on_cell: &mut dyn FnMut(&CellResult),
) -> Result<Measurements, Error> {
    let mut prepared = target::prepare(&options.target, &options.need())?;
    let warnings = std::mem::take(&mut prepared.warnings);
    run_on(&prepared.device, &prepared.info, options, warnings, sink, on_cell)
}

/// Measures any device; what `run` does once the target is open.
pub fn run_on<D: Device>(
    device: &D,
    info: &TargetInfo,
    options: &Options,
    mut warnings: Vec<Warning>,
    sink: &dyn Sink,
    on_cell: &mut dyn FnMut(&CellResult),
) -> Result<Measurements, Error> {
    let plan = options.plan(info);
    for planned in &plan.cells {
        cell::check(&planned.cell, info.range_bytes, info.logical_block_bytes)?;
    }
    if cfg!(debug_assertions) {
        let message = "this is a debug build: its CPU per request is not that of a release build";
        warnings.push(Warning::new(STAGE, "debug_build", message));
    }
    let summary = plan.summary(info, options.done.len());
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: summary.steps });
    let mut session = Session {
        device,
        plan: &plan,
        options,
        info,
        sink,
        on_cell,
        cells: options.done.clone(),
        burst: None,
        commit_load: None,
        started_ns: clock::now_ns(),
        spent_before_s: options.done.last().map_or(0.0, |cell| cell.started_s + cell.elapsed_s),
        planned_s: summary.expected_s,
        done_s: 0.0,
        shown: 0.0,
        interrupted: false,
        written: false,
        warnings,
    };
    let outcome = session.run();
    let ending = match (&outcome, session.interrupted) {
        (Err(_), _) => Ending::Failed,
        (_, true) => Ending::Interrupted,
        _ => Ending::Complete,
    };
    let elapsed_s = session.elapsed_s();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    outcome?;
    let (cells, warnings) = (session.cells, session.warnings);
    let (burst, commit_load) = (session.burst, session.commit_load);
    let target = plan::measured_target(info);
    Ok(Measurements { schema: SCHEMA, target, cells, commit_load, burst, warnings })
}

/// A run under way.
struct Session<'a, D> {
    device: &'a D,
    plan: &'a Plan,
    options: &'a Options,
    info: &'a TargetInfo,
    sink: &'a dyn Sink,
    on_cell: &'a mut dyn FnMut(&CellResult),
    cells: Vec<CellResult>,
    burst: Option<Burst>,
    commit_load: Option<CommitLoad>,
    started_ns: u64,
    /// Seconds of the runs before that this one resumes.
    spent_before_s: f64,
    /// Expected seconds of the whole run, and of the part that is done.
    planned_s: f64,
    done_s: f64,
    /// Largest progress shown: it never falls.
    shown: f64,
    interrupted: bool,
    /// Whether the device was written to last.
    written: bool,
    warnings: Vec<Warning>,
}

impl<D: Device> Session<'_, D> {
    fn elapsed_s(&self) -> f64 {
        (clock::now_ns() - self.started_ns) as f64 / 1e9
    }

    fn run(&mut self) -> Result<(), Error> {
        for warning in &self.warnings {
            self.sink.emit(Event::Warning(warning.clone()));
        }
        // Cells measured before, by plan cell: that many of its repeats are skipped.
        let mut done: BTreeMap<usize, usize> = BTreeMap::new();
        for result in &self.options.done {
            let planned = self.plan.cells.iter().position(|p| plan::same(&p.cell, &result.cell));
            if let Some(index) = planned {
                *done.entry(index).or_default() += 1;
            }
        }
        let planned = self.plan.cells.len() * self.plan.most_rounds as usize;
        if self.options.done.len() < planned {
            self.precondition()?;
        }
        let mut round = 0;
        while !self.interrupted && round < self.plan.most_rounds {
            if round >= self.plan.rounds && self.is_steady() {
                break;
            }
            for index in self.plan.round(round) {
                if let Some(left) = done.get_mut(&index).filter(|left| **left > 0) {
                    *left -= 1;
                    continue;
                }
                if self.sink.cancelled() {
                    self.interrupted = true;
                }
                if self.interrupted {
                    return Ok(());
                }
                self.measure(&self.plan.cells[index])?;
            }
            round += 1;
        }
        self.judge();
        self.burst()?;
        self.commit()
    }

    /// Writes after a pause, and again after a longer one where a cache did not become empty.
    fn burst(&mut self) -> Result<(), Error> {
        let mut next = self.plan.burst.filter(|_| !self.interrupted);
        while let Some(planned) = next.take() {
            let Some(burst) = self.after_pause(&planned)? else { return Ok(()) };
            if self.burst.is_none() {
                next = planned.after(&burst);
                self.planned_s += next.as_ref().map_or(0.0, PlannedBurst::expected_s);
            }
            self.burst = Some(burst);
        }
        Ok(())
    }

    /// Leaves the device alone; false where the user stopped it.
    fn rest(&mut self, rest_s: f64, step_s: f64, doing: &str) -> bool {
        let began_ns = clock::now_ns();
        loop {
            let passed_s = (clock::now_ns() - began_ns) as f64 / 1e9;
            if !self.watch(step_s, passed_s.min(rest_s) / step_s, doing) {
                return false;
            }
            if passed_s >= rest_s {
                return true;
            }
            let left = Duration::from_secs_f64(rest_s - passed_s);
            std::thread::sleep(PAUSE_STEP.min(left));
        }
    }

    /// Leaves the device alone, then writes; none where the user stopped it.
    fn after_pause(&mut self, planned: &PlannedBurst) -> Result<Option<Burst>, Error> {
        let name = format!("{} after a pause", plan::name(&planned.cell));
        let step_s = planned.expected_s();
        self.settle(&planned.cell)?;
        if !self.rest(planned.pause_s, step_s, &name) {
            return Ok(None);
        }
        let options = CellOptions {
            range_bytes: self.info.range_bytes,
            seconds: planned.seconds,
            warm_up_s: 0.0,
            windows: (planned.seconds / BURST_WINDOW_S) as u32,
            seed: self.options.seed.wrapping_mul(1_000_003).wrapping_add(self.cells.len() as u64),
            realtime: self.options.realtime,
        };
        let started_s = self.spent_before_s + self.elapsed_s();
        let device = self.device;
        let run = cell::run(device, &planned.cell, &options, &mut |share| {
            self.watch(step_s, (planned.pause_s + share * planned.seconds) / step_s, &name)
        })?;
        self.done_s += step_s;
        if self.interrupted {
            return Ok(None);
        }
        self.settle(&planned.cell)?;
        let result = CellResult { started_s, ..run.result };
        Ok(Some(Burst { pause_s: planned.pause_s, result }))
    }

    /// The load that commits, last: nearest to whatever the profile is compared with.
    fn commit(&mut self) -> Result<(), Error> {
        let seconds = self.plan.commit_load_s;
        if seconds < commit_load::SHORTEST_S || !self.info.writable || self.interrupted {
            return Ok(());
        }
        let (sink, done, planned_s) = (self.sink, self.shown, self.planned_s);
        let from_ns = clock::now_ns();
        let show = || {
            let passed_s = (clock::now_ns() - from_ns) as f64 / 1e9;
            sink.emit(Event::Progress {
                stage: STAGE.to_owned(),
                done: (done + passed_s / planned_s).clamp(done, 1.0),
                doing: "a load that commits".to_owned(),
                eta_s: Some((seconds - passed_s).max(0.0)),
            });
        };
        let what = (self.options.seed, seconds);
        let measured = commit_load::measure(self.device, self.info, what, self.sink, &show)?;
        self.interrupted = self.sink.cancelled();
        self.commit_load = Some(measured).filter(|_| !self.interrupted);
        Ok(())
    }

    /// Shows progress; false once the user wants to stop.
    fn watch(&mut self, step_s: f64, share: f64, doing: &str) -> bool {
        let done_s = self.done_s + step_s * share;
        self.shown = self.shown.max((done_s / self.planned_s.max(1e-9)).min(1.0));
        self.sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: self.shown,
            doing: doing.to_owned(),
            eta_s: Some((self.planned_s - done_s).max(0.0)),
        });
        if self.sink.cancelled() {
            self.interrupted = true;
        }
        !self.interrupted
    }

    fn precondition(&mut self) -> Result<(), Error> {
        if self.plan.fill_passes == 0 {
            return Ok(());
        }
        let range_bytes = self.info.range_bytes;
        let fill = Fill {
            range_bytes,
            passes: self.plan.fill_passes,
            random: self.plan.fill_random,
            seed: self.options.seed,
        };
        self.written = true;
        let (fill_s, _) = self.plan.expected_s(range_bytes);
        let doing = format!("writing {} before measuring", units::Bytes(range_bytes));
        let mut last_ns = 0;
        let device = self.device;
        precondition::fill(device, fill, &mut |share| {
            let now_ns = clock::now_ns();
            if now_ns < last_ns + 50_000_000 {
                return true;
            }
            last_ns = now_ns;
            self.watch(fill_s, share, &doing)
        })?;
        self.done_s += fill_s;
        Ok(())
    }

    /// The cell with its rate filled in.
    fn resolve(&self, planned: &PlannedCell) -> Cell {
        let Some(share) = planned.rate_share else { return planned.cell };
        let closed =
            plan::closed(planned.cell.order, planned.cell.read_share, planned.cell.size_bytes, 8);
        let reached: Vec<f64> = self
            .cells
            .iter()
            .filter(|result| plan::same(&result.cell, &closed) && result.elapsed_s > 0.0)
            .map(|result| result.requests as f64 / result.elapsed_s)
            .collect();
        match reached.iter().copied().reduce(f64::min) {
            // Whole requests per second read better and lose nothing.
            Some(rate) if rate > 0.0 => {
                let rate_per_s = (rate * share).round().max(1.0);
                Cell { arrival: Arrival::Poisson { rate_per_s }, ..planned.cell }
            }
            _ => planned.cell,
        }
    }

    fn measure(&mut self, planned: &PlannedCell) -> Result<(), Error> {
        let cell = self.resolve(planned);
        let name = plan::name(&cell);
        let rest_s = self.plan.rest_before(&cell, self.written);
        if rest_s > 0.0 {
            if !self.rest(rest_s, rest_s, "letting the device come to rest") {
                return Ok(());
            }
            self.done_s += rest_s;
        }
        self.written = plan::writes(&cell);
        let cell_options = CellOptions {
            range_bytes: self.info.range_bytes,
            seconds: planned.seconds,
            warm_up_s: planned.seconds * WARM_UP_SHARE,
            windows: windows_of(planned.seconds),
            // Repeats of a cell visit different places.
            seed: self.options.seed.wrapping_mul(1_000_003).wrapping_add(self.cells.len() as u64),
            realtime: self.options.realtime,
        };
        let started_s = self.spent_before_s + self.elapsed_s();
        let step_s = planned.expected_s();
        self.watch(step_s, 0.0, &name);
        let watch = Watch::start();
        let device = self.device;
        let run =
            cell::run(device, &cell, &cell_options, &mut |share| self.watch(step_s, share, &name))?;
        let disturbance = watch.finish(run.run_queue_delay_ns, run.threads);
        self.done_s += step_s;
        if self.interrupted {
            // A cell that was cut short is measured again when the run is resumed.
            return Ok(());
        }
        self.check_size(&cell)?;
        let mut result = CellResult { started_s, ..run.result };
        result.warnings = disturbance.warnings(STAGE, &name);
        result.warnings.extend(suspicions(&result, &name, run.driven.slots_exhausted));
        result.steady = steady_within(&result);
        for warning in &result.warnings {
            self.sink.emit(Event::Warning(warning.clone()));
        }
        self.sample(&result);
        (self.on_cell)(&result);
        self.cells.push(result);
        self.settle(&cell)
    }

    /// Writing with O_DIRECT beyond the end makes a file grow back, so its size is looked at.
    fn check_size(&self, cell: &Cell) -> Result<(), Error> {
        let needed = self.info.range_bytes;
        let path = self.device.path();
        let size = self
            .device
            .size_bytes()
            .map_err(|source| io::Error::target("look at", path, source))?;
        if size < needed {
            let offset = needed - u64::from(cell.size_bytes);
            let (path, size) = (path.to_owned(), units::Bytes(size));
            return Err(io::Error::Shrank { path, offset, size }.into());
        }
        Ok(())
    }

    /// What a cell has left in the device's cache must not be written during the next one.
    fn settle(&self, cell: &Cell) -> Result<(), Error> {
        if cell.read_share >= 1.0 || cell.durability != Durability::None {
            return Ok(());
        }
        let path = self.device.path();
        Ok(self.device.flush().map_err(|source| io::Error::target("flush", path, source))?)
    }

    fn sample(&self, result: &CellResult) {
        let at_s = self.elapsed_s();
        let iops = result.requests as f64 / result.elapsed_s.max(1e-9);
        let p99_ns = result.classes.first().map_or(0, |c| cell::quantile_ns(&c.response, 0.99));
        for (series, value) in [("iops", iops), ("latency_us_p99", p99_ns as f64 / 1e3)] {
            let (stage, series) = (STAGE.to_owned(), series.to_owned());
            self.sink.emit(Event::Sample { stage, series, at_s, value });
        }
    }

    /// Whether the tracked cell is steady over the last rounds by both PTS rules, in its rate and
    /// in its 99th percentile. Plans without a tracked cell run their rounds and stop.
    fn is_steady(&self) -> bool {
        let Some(index) = self.plan.steady_on else { return true };
        let tracked = &self.plan.cells[index].cell;
        let rounds: Vec<&CellResult> =
            self.cells.iter().filter(|result| plan::same(&result.cell, tracked)).collect();
        let rates: Vec<f64> =
            rounds.iter().map(|r| r.requests as f64 / r.elapsed_s.max(1e-9)).collect();
        let tail = |r: &&CellResult| {
            r.classes.iter().map(|c| cell::quantile_ns(&c.service, 0.99)).max().unwrap_or(0) as f64
        };
        let tails: Vec<f64> = rounds.iter().map(tail).collect();
        stats::steady::assess(&rates).steady && stats::steady::assess(&tails).steady
    }

    /// What the run as a whole shows: drift between repeats, never steady.
    fn judge(&mut self) {
        if self.interrupted {
            return;
        }
        let mut found = Vec::new();
        if self.plan.steady_on.is_some() && !self.is_steady() {
            let message = format!(
                "never steady: rate or p99 of the tracked cell still moved after {} rounds",
                self.plan.most_rounds
            );
            found.push(Warning::new(STAGE, "never_steady", message).with_hint(
                "measure for longer, or on a quieter machine; figures hold for this state only",
            ));
        }
        let drifted = self.drifted();
        if !drifted.is_empty() {
            let message = format!(
                "{} of {} cells differ by more than {:.0} % between their repeats: {}",
                drifted.len(),
                self.plan.cells.len(),
                DRIFT_LIMIT * 100.0,
                drifted.join(", ")
            );
            found.push(
                Warning::new(STAGE, "repeats_differ", message)
                    .with_hint("run again on a quieter machine, or with longer cells"),
            );
        }
        for warning in found {
            self.sink.emit(Event::Warning(warning.clone()));
            self.warnings.push(warning);
        }
    }

    fn drifted(&self) -> Vec<String> {
        let moved = |planned: &&PlannedCell| {
            let rates = self
                .cells
                .iter()
                .filter(|r| plan::same(&r.cell, &planned.cell) && planned.rate_share.is_none())
                .map(|r| r.requests as f64 / r.elapsed_s.max(1e-9));
            let (least, most) = rates.fold((f64::MAX, 0.0f64), |(l, m), r| (l.min(r), m.max(r)));
            most > 0.0 && (most - least) / f64::midpoint(most, least) > DRIFT_LIMIT
        };
        self.plan.cells.iter().filter(moved).map(|planned| plan::name(&planned.cell)).collect()
    }
}

/// Windows of about 50 ms in short cells, ten seconds at most in long ones.
fn windows_of(seconds: f64) -> u32 {
    if seconds > 200.0 { (seconds / 10.0) as u32 } else { (seconds / 0.05).clamp(5.0, 20.0) as u32 }
}

/// Both PTS rules on the rate within a cell, over its last fifths.
fn steady_within(result: &CellResult) -> Option<bool> {
    if result.elapsed_s < SHORTEST_JUDGED_S {
        return None;
    }
    let each = (result.windows.len() / stats::steady::WINDOW).max(1);
    let rates: Vec<f64> = result
        .windows
        .chunks_exact(each)
        .map(|windows| windows.iter().map(|w| w.iops).sum::<f64>() / each as f64)
        .collect();
    Some(stats::steady::assess(&rates).steady)
}

fn suspicions(result: &CellResult, name: &str, slots_exhausted: u64) -> Vec<Warning> {
    let mut found = Vec::new();
    if result.requests < FEW_REQUESTS {
        let message = format!("{name}: only {} requests completed", result.requests);
        found.push(
            Warning::new(STAGE, "too_few_requests", message).with_hint("give cells more seconds"),
        );
    }
    if result.cell.arrival != Arrival::Closed && slots_exhausted > 0 {
        let message = format!(
            "{name}: the device fell behind the arrivals, up to {} requests were outstanding",
            result.cell.depth
        );
        found.push(
            Warning::new(STAGE, "overloaded", message)
                .with_hint("response times of an overloaded device grow without bound"),
        );
    }
    found
}
