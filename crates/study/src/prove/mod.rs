//! The same load, really run on this disk and on emulated devices, beside what was predicted.
//!
//! The database is loaded once and copied back before every run, so that all runs start from the
//! same bytes. Rounds go through the places forwards and backwards in turns (A B B A), so that a
//! machine that gets slower or warmer spoils no comparison; how much the runs of one place differ
//! among themselves (A/A) stands beside every figure, since no error below it means anything.
//!
//! Load and emulator run in processes of their own: a program that maps files which its own process
//! serves would wait for itself. `step.rs` starts and ends them, `predict.rs` asks the models;
//! `stages/places.rs` walks the steps as stages of a study, and `page/places.rs` shows what came of
//! it.

mod predict;
mod step;

use ::predict::Limit;
use events::Warning;
use oltp::OltpResult;
use profile::Profile;
use serde::{Deserialize, Serialize};
use units::Bytes;

pub use step::PARENT;
use step::Served;
pub(crate) use step::{Running, program};
pub(crate) use step::{Watch, Workshop};

use crate::Error;
use crate::assumed::Count;
use crate::cost::{Asked, Cost};
use crate::file::{Scenario, StudyFile, devices_above};
use crate::profiles::read_device;

/// The place that is no emulated device.
pub const HERE: &str = "here";

/// Figures of one kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// Its name.
    pub kind: String,
    /// Half of them took no longer, ms.
    pub p50_ms: f64,
    /// 99 % of them took no longer, ms.
    pub p99_ms: f64,
}

/// What a user sees of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Transactions of all kinds.
    pub transactions_per_min: f64,
    /// By kind.
    pub kinds: Vec<KindFigures>,
    /// Processor time of the whole machine per transaction, ns; none of an engine in virtual time.
    #[serde(default)]
    pub busy_ns: Option<f64>,
}

/// What a device was asked, per transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceIo {
    /// `read`, `write`, `trim`, `flush`.
    pub op: String,
    /// Requests per transaction, those of the warm-up and of the server's start and end included.
    pub requests: f64,
    /// Bytes per transaction.
    pub bytes: f64,
}

impl DeviceIo {
    /// Sums of each operation, in the order in which they come.
    fn by_op(all: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            match sums.iter_mut().find(|sum| sum.op == one.op) {
                Some(sum) => {
                    sum.requests += one.requests;
                    sum.bytes += one.bytes;
                }
                None => sums.push(one),
            }
        }
        sums
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which round, from 1.
    pub round: u32,
    /// What came of it.
    pub figures: Figures,
    /// I/O of the emulated device.
    pub io: Vec<DeviceIo>,
    /// How late 99 % of the emulator's answers were at most, us.
    pub lateness_us_p99: Option<f64>,
    /// The same, the mean.
    #[serde(default)]
    pub lateness_us_mean: Option<f64>,
    /// Share of the machine's processors that the emulator used, which a real device leaves to the
    /// load.
    pub emulator_share: Option<f64>,
    /// The same for each request, ns.
    #[serde(default)]
    pub emulator_ns: Option<f64>,
    /// What makes the run suspect.
    pub warnings: Vec<Warning>,
}

/// A place: the runs there and what was predicted of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// [`HERE`], or what the scenario is called.
    pub name: String,
    /// Profile of the device; empty for [`HERE`].
    pub profile: String,
    /// Profile of the log's device, where it has its own.
    pub log: Option<String>,
    /// What is above the devices, as TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What is above the log's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_host: Option<String>,
    /// One line about the device.
    pub description: String,
    /// What it costs, where its profiles name a price.
    pub cost: Option<Cost>,
    /// Values of its profiles that nobody published or measured.
    pub assumed_values: u32,
    /// All values of its profiles.
    pub values: u32,
    /// The runs, in the order of their rounds; none where the place is only predicted.
    pub runs: Vec<Run>,
    /// What the predictor said, from the capture at [`HERE`].
    pub predicted: Option<Predicted>,
    /// The same as it was run: what the runs of the place are compared with.
    pub as_run: Option<AsRun>,
    /// Why it said nothing.
    pub not_predicted: Option<String>,
}

/// What answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Transactions drawn from the capture, in virtual time.
    #[default]
    Capture,
    /// The database engine itself, in virtual time.
    Engine,
}

/// A prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// What a user would see.
    pub figures: Figures,
    /// Lower and upper end of the transactions per minute, where they are known.
    pub transactions_per_min_interval: Option<(f64, f64)>,
    /// What the time of a transaction goes to, largest first; empty where it is not known.
    pub limits: Vec<Limit>,
    /// What the devices would be asked; empty where it is not known.
    #[serde(default)]
    pub io: Vec<DeviceIo>,
    /// What answered.
    #[serde(default)]
    pub by: By,
}

/// A prediction for a run as it was: processors that were as fast as then, beside emulators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AsRun {
    /// What a user would have seen.
    pub figures: Figures,
    /// Speed of the processors in the runs at [`HERE`] over that in the capture: they compute the
    /// same transactions. Neighbours on the same host take caches and memory from a virtual machine
    /// by the minute.
    pub speed: f64,
    /// What emulators computed for each request, ns.
    pub emulator_ns: f64,
    /// How much later than a device's their answers came, ns: as late as they left, and as long for
    /// a request to be taken up, which nobody sees.
    #[serde(default)]
    pub late_ns: f64,
    /// What the load's programs computed less for a write of the log and its sync than on this
    /// disk, ns: the emulator's thread does the rest.
    #[serde(default)]
    pub sync_less_ns: f64,
}

/// One figure of a place: what was measured, what was predicted, and how far to trust either.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The figure, unit last.
    pub name: String,
    /// Median of the runs.
    pub measured: f64,
    /// The prediction.
    pub predicted: Option<f64>,
    /// Largest less smallest run over the median; none for a single run.
    pub spread: Option<f64>,
}

impl Compared {
    /// The prediction's error, as a share of what was measured.
    pub fn error(&self) -> Option<f64> {
        self.predicted
            .filter(|_| self.measured > 0.0)
            .map(|predicted| predicted / self.measured - 1.0)
    }
}

impl Place {
    /// The places of a study: here first, then its scenarios.
    pub(crate) fn all(study: &StudyFile) -> Result<Vec<Self>, Error> {
        let mut places = vec![Self { name: HERE.to_owned(), ..Self::default() }];
        for scenario in &study.scenario {
            places.push(Self::of(scenario, &study.cost)?);
        }
        Ok(places)
    }

    fn of(scenario: &Scenario, asked: &Asked) -> Result<Self, Error> {
        let data = read_device(&scenario.profile)?;
        let log = scenario.log.as_deref().map(read_device).transpose()?;
        let cost_of = |profile: &Profile, size, host: Option<&toml::Table>| {
            let one = |size| Cost::of(profile.cost.as_ref(), size, asked.years);
            let Some(spec) = devices_above(host).ok().flatten() else { return one(size) };
            // The fast device of a cache is of another kind.
            if spec.cache_device.is_some() {
                return None;
            }
            let usable = spec.capacity(Some(size)).ok().flatten()?.0 as f64 / size.0.max(1) as f64;
            Some(one(Bytes((size.0 as f64 / usable) as u64))?.times(spec.devices()))
        };
        let text = |host: Option<&toml::Table>| {
            host.map(|table| toml::to_string(table).expect("it was read as TOML"))
        };
        let mut place = Self {
            name: scenario.title(),
            profile: scenario.profile.clone(),
            log: scenario.log.clone(),
            host: text(scenario.host.as_ref()),
            log_host: text(scenario.log_host.as_ref()),
            description: data.profile.description.clone(),
            cost: cost_of(&data, asked.size, scenario.host.as_ref()),
            ..Self::default()
        };
        if let Some(log) = &log {
            place.description.push_str(&format!(" Log: {}", log.profile.description));
            let both = place.cost.zip(cost_of(log, asked.log_size, scenario.log_host.as_ref()));
            place.cost = both.map(|(data, log)| data.and(&log));
        }
        for profile in std::iter::once(&data).chain(&log) {
            let count = Count::of(&profile.to_toml());
            place.values += count.all;
            place.assumed_values += count.assumed;
        }
        Ok(place)
    }

    /// What the runs are compared with.
    pub fn expected(&self) -> Option<&Figures> {
        let predicted = self.predicted.as_ref().map(|found| &found.figures);
        self.as_run.as_ref().map(|found| &found.figures).or(predicted)
    }

    /// Share of the processors that emulators used, the mean over the runs.
    pub(crate) fn emulator_share(&self) -> Option<f64> {
        mean(self.runs.iter().filter_map(|run| run.emulator_share))
    }

    /// What emulators computed for each request, ns, the mean over the runs.
    pub(crate) fn emulator_ns(&self) -> Option<f64> {
        mean(self.runs.iter().filter_map(|run| run.emulator_ns))
    }

    /// How much later than a device's answers of emulators came, ns, the mean over the runs.
    pub(crate) fn late_ns(&self) -> f64 {
        let left_us = mean(self.runs.iter().filter_map(|run| run.lateness_us_mean));
        // Before an answer leaves, and before a request is taken up, the emulator waits alike for a
        // processor.
        2.0 * left_us.unwrap_or(0.0) * 1e3
    }

    /// Processor time of the whole machine per transaction, ns, the mean over the runs.
    fn busy_ns(&self) -> Option<f64> {
        mean(self.runs.iter().filter_map(|run| run.figures.busy_ns))
    }

    /// Speed of the processors in the runs over that in a capture of the same load at the same
    /// place, whose transactions took this much of them; 1 where either is not known.
    pub(crate) fn speed_since(&self, captured_ns: Option<f64>) -> f64 {
        captured_ns.zip(self.busy_ns()).map_or(1.0, |(then, now)| then / now.max(1.0))
    }

    /// Every figure of the place.
    pub fn compared(&self) -> Vec<Compared> {
        let mut found = Vec::new();
        let mut add = |name: String, of: &dyn Fn(&Figures) -> Option<f64>| {
            let mut values: Vec<f64> =
                self.runs.iter().filter_map(|run| of(&run.figures)).collect();
            values.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (values.first(), values.last()) else { return };
            let middle = values.len() / 2;
            let measured = match values.len() % 2 {
                0 => f64::midpoint(values[middle - 1], values[middle]),
                _ => values[middle],
            };
            let spread = (values.len() > 1 && measured > 0.0).then(|| (most - least) / measured);
            let predicted = self.expected().and_then(of);
            found.push(Compared { name, measured, predicted, spread });
        };
        add("transactions/min".to_owned(), &|figures| Some(figures.transactions_per_min));
        let kinds: Vec<String> = self
            .runs
            .first()
            .map(|run| run.figures.kinds.iter().map(|kind| kind.kind.clone()).collect())
            .unwrap_or_default();
        for kind in kinds {
            let own =
                |figures: &Figures| figures.kinds.iter().find(|found| found.kind == kind).cloned();
            add(format!("{kind} p50 ms"), &|figures| own(figures).map(|found| found.p50_ms));
            add(format!("{kind} p99 ms"), &|figures| own(figures).map(|found| found.p99_ms));
        }
        add("processor time ms".to_owned(), &|figures| Some(figures.busy_ns? / 1e6));
        found
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

impl Figures {
    /// Of a measured run.
    pub fn of(result: &OltpResult) -> Self {
        let kinds = result.transactions.iter().filter(|kind| kind.count + kind.waiting > 0);
        let ms = |ns: u64| ns as f64 / 1e6;
        Self {
            transactions_per_min: result.transactions_per_s * 60.0,
            kinds: kinds
                .map(|kind| KindFigures {
                    kind: kind.kind.name().to_owned(),
                    p50_ms: ms(kind.response_quantile(0.5).0),
                    p99_ms: ms(kind.response_quantile(0.99).0),
                })
                .collect(),
            busy_ns: result
                .cpu
                .machine_busy_s
                .map(|busy_s| busy_s * 1e9 / result.cpu.transactions.max(1) as f64),
        }
    }
}

/// What is kept of a run; `emulated` are its devices.
pub(crate) fn run_of(round: u32, result: &OltpResult, emulated: &[Served]) -> Run {
    // Devices count from the beginning of the warm-up, in which there are fewer transactions.
    let all: u64 = result.series.transactions.iter().map(|count| u64::from(*count)).sum();
    let transactions = all.max(1) as f64;
    let io = emulated.iter().flat_map(|served| &served.ops).map(|op| DeviceIo {
        op: op.op.clone(),
        requests: op.requests as f64 / transactions,
        bytes: op.bytes as f64 / transactions,
    });
    let io = DeviceIo::by_op(io);
    let mut warnings = result.warnings.clone();
    warnings.extend(emulated.iter().flat_map(|served| served.warnings.clone()));
    Run {
        round,
        figures: Figures::of(result),
        io,
        lateness_us_p99: emulated.iter().map(|served| served.lateness_us_p99).reduce(f64::max),
        lateness_us_mean: emulated.iter().map(|served| served.lateness_us_mean).reduce(f64::max),
        emulator_share: emulated.iter().map(|served| served.cpu_share).reduce(f64::max),
        emulator_ns: emulated.iter().map(|served| served.cpu_ns_per_request).reduce(f64::max),
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_take_longer_for_the_same_are_slower() {
        let run =
            |busy_ns| Run { figures: Figures { busy_ns, ..Figures::default() }, ..Run::default() };
        let here = Place { runs: [2e6, 1e6].map(|ns| run(Some(ns))).into(), ..Place::default() };
        assert_eq!(here.speed_since(Some(1.2e6)), 0.8);
        assert_eq!(here.speed_since(None), 1.0);
        let unknown = Place { runs: vec![run(None)], ..Place::default() };
        assert_eq!(unknown.speed_since(Some(1.2e6)), 1.0);
    }
}
