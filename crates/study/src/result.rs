//! `result.json`: a run in short, for machines. Its schema is `docs/reference/result.schema.json`.

use std::collections::BTreeMap;
use std::path::Path;

use events::Warning;
use oltp::OltpResult;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::advice::{Advice, Judged, LimitingError};
use crate::artifacts::{ACCOUNTS, LOAD, MACHINE, PLACES, SCENARIOS, VALIDATION};
use crate::drift::Drift;
use crate::file::StudyFile;
use crate::observe::Accounts;
use crate::predictions::read_run;
use crate::prove::Place;
use crate::run_dir::{self, RunDir};
use crate::runs::Run;
use crate::scenarios::ScenarioResult;
use crate::validation::{Validation, Verdict};

/// Version of the shape of `result.json`.
pub const SCHEMA: u32 = 1;

/// A run in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// Version of this shape.
    pub schema: u32,
    /// The program's version.
    pub wearmark: String,
    /// `engineering`: derived workloads, not comparable to published benchmark results.
    pub result_class: String,
    /// The resolved study file.
    pub study: StudyFile,
    /// The machine.
    pub machine: BTreeMap<String, String>,
    /// The load.
    pub oltp: OltpSummary,
    /// How wrong the simulation is; null where the load really ran on other devices.
    pub validation: Option<ValidationSummary>,
    /// The captured I/O on other devices, simulated.
    pub scenarios: Vec<ScenarioResult>,
    /// What follows from the simulation, and where nothing does; null where there is none.
    pub advice: Option<Advice>,
    /// Where the load really ran, beside its predictions: here, then the scenarios.
    #[serde(default)]
    pub places: Vec<Place>,
    /// What makes figures suspect.
    pub warnings: Vec<Warning>,
}

/// The load in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OltpSummary {
    /// New orders per minute.
    pub new_orders_per_min: f64,
    /// Transactions of all kinds per minute.
    pub transactions_per_min: f64,
    /// Per kind of transaction.
    pub transactions: Vec<KindSummary>,
    /// Whether the input audit passed.
    pub audit_passed: bool,
    /// Our code's share of the CPU of a transaction.
    pub client_share: f64,
    /// Bytes per transaction by layer and file class.
    pub io: Vec<LayerSummary>,
    /// What took the time of the transactions: `device`, `cpu` or `mixed`; of a server, what takes
    /// most of the response time, such as `log flush`.
    pub limited_by: String,
    /// Share of the writer's time spent waiting for the device.
    pub device_share: f64,
}

/// One kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    /// Its name.
    pub kind: String,
    /// Transactions measured.
    pub count: u64,
    /// Response time from the intended start, ms.
    pub response_ms_p50: f64,
    /// 90th percentile.
    pub response_ms_p90: f64,
    /// 99th percentile.
    pub response_ms_p99: f64,
}

/// One file class in one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerSummary {
    /// `logical`, `device` or `physical`.
    pub layer: String,
    /// File class.
    pub class: String,
    /// Bytes read per transaction.
    pub read_bytes_per_transaction: f64,
    /// Bytes written per transaction.
    pub written_bytes_per_transaction: f64,
    /// Mean size of a read, bytes.
    pub mean_read_bytes: f64,
    /// Mean size of a write, bytes.
    pub mean_write_bytes: f64,
}

/// The validation in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationSummary {
    /// Requests compared.
    pub requests: u64,
    /// E of the simulation.
    pub error_ratio: f64,
    /// Its 95 % interval.
    pub error_ratio_interval: Option<(f64, f64)>,
    /// E of the disk against itself.
    pub noise_floor: f64,
    /// Its 95 % interval.
    pub noise_floor_interval: Option<(f64, f64)>,
    /// I/O-weighted sum of E over the classes.
    pub weighted_error_ratio: f64,
    /// The same of the disk against itself.
    pub weighted_noise_floor: f64,
    /// max(0.05, 1.5 x noise floor).
    pub aim: f64,
    /// Whether the whole interval of E lies on one side of the aim, and on which.
    #[serde(default)]
    pub verdict: Verdict,
    /// The verdict in words.
    #[serde(default)]
    pub verdict_words: String,
    /// What would help where E does not meet its aim; empty where it does.
    #[serde(default)]
    pub help: String,
    /// Rounds compared, each a slice of the trace replayed twice.
    #[serde(default)]
    pub rounds: u64,
    /// By what the disk changed since it was probed, per kind of request.
    #[serde(default)]
    pub drift: Vec<Drift>,
    /// E with that drift taken out; null where it was not measured.
    #[serde(default)]
    pub error_ratio_without_drift: Option<f64>,
    /// Its 95 % interval.
    #[serde(default)]
    pub error_ratio_without_drift_interval: Option<(f64, f64)>,
    /// The error where the load waits.
    pub limiting: LimitingError,
    /// Whether all replays kept their schedule.
    pub timing_valid: bool,
    /// Per operation.
    pub operations: Vec<OperationSummary>,
}

/// One operation of the validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationSummary {
    /// `read`, `write`, `flush`.
    pub op: String,
    /// Requests.
    pub requests: u64,
    /// E of the simulation.
    pub error_ratio: f64,
    /// E of the disk against itself.
    pub noise_floor: f64,
    /// (simulated mean - real mean) / real mean.
    pub signed_mean_error: f64,
}

impl StudyResult {
    /// Collects the artifacts of a run, and the warnings of its stages.
    pub fn gather(run: &RunDir, study: &StudyFile, warnings: Vec<Warning>) -> Result<Self, Error> {
        let oltp = run.read(&LOAD)?;
        let mut result = Self {
            schema: SCHEMA,
            wearmark: env!("CARGO_PKG_VERSION").to_owned(),
            result_class: oltp.result_class.clone(),
            study: study.clone(),
            machine: run.read(&MACHINE)?,
            oltp: OltpSummary::default(),
            validation: None,
            scenarios: Vec::new(),
            advice: None,
            places: Vec::new(),
            warnings,
        };
        if study.is_run_on_devices() {
            result.places = run.read(&PLACES)?;
            let captured = captured(run)?;
            let accounts = captured.accounts_of_io();
            result.oltp = summary(&oltp, accounts.as_ref());
            if let Some(first) = captured.server.as_ref().and_then(|run| run.limits.first()) {
                result.oltp.limited_by.clone_from(&first.what);
            }
            return Ok(result);
        }
        let accounts = run.read(&ACCOUNTS)?;
        let validation = run.read(&VALIDATION)?;
        let checked = ValidationSummary::of(&validation);
        result.oltp = summary(&oltp, Some(&accounts));
        result.scenarios = run.read(&SCENARIOS)?;
        result.advice = Some(Advice::of(
            &result.scenarios,
            oltp.transactions_per_s * 60.0,
            &Judged {
                verdict: checked.verdict,
                words: &checked.verdict_words,
                limiting: &checked.limiting,
                timing_valid: checked.timing_valid,
            },
        ));
        result.validation = Some(checked);
        Ok(result)
    }

    /// Reads the result of a complete run.
    pub fn read(run: &RunDir) -> Result<Self, Error> {
        run.read_json(run_dir::RESULT)
    }

    /// Reads the result in a run directory.
    ///
    /// # Errors
    /// A run that is not complete.
    pub fn read_from(path: &Path) -> Result<Self, Error> {
        run_dir::read_json(&path.join(run_dir::RESULT))
    }

    /// As the file.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a result holds only plain values")
    }
}

/// The captured run of a study that really ran on devices.
pub(crate) fn captured(run: &RunDir) -> Result<Run, Error> {
    read_run(&run.join("captured"))
}

fn summary(oltp: &OltpResult, accounts: Option<&Accounts>) -> OltpSummary {
    let device_share = accounts.map_or(0.0, |accounts| accounts.device_share);
    let kinds = oltp.transactions.iter().map(|kind| KindSummary {
        kind: kind.kind.name().to_owned(),
        count: kind.count,
        response_ms_p50: kind.response_ms_p50,
        response_ms_p90: kind.response_ms_p90,
        response_ms_p99: kind.response_ms_p99,
    });
    OltpSummary {
        new_orders_per_min: oltp.new_orders_per_min,
        transactions_per_min: oltp.transactions_per_s * 60.0,
        transactions: kinds.collect(),
        audit_passed: oltp.audit.passed,
        client_share: oltp.client_overhead.share,
        io: accounts.map_or_else(Vec::new, |accounts| layers(oltp, accounts)),
        limited_by: limiter(device_share).to_owned(),
        device_share,
    }
}

/// What to call a writer that waits for the device during `device_share` of its time.
fn limiter(device_share: f64) -> &'static str {
    match device_share {
        share if share >= 0.6 => "device",
        share if share <= 0.4 => "cpu",
        _ => "mixed",
    }
}

fn layers(oltp: &OltpResult, accounts: &Accounts) -> Vec<LayerSummary> {
    let transactions = (oltp.transactions_per_s * oltp.measured_s).max(1.0);
    let mut layers = Vec::new();
    for account in &accounts.layers {
        for class in &account.classes {
            layers.push(LayerSummary {
                layer: account.layer.clone(),
                class: class.class.clone(),
                read_bytes_per_transaction: class.read.bytes as f64 / transactions,
                written_bytes_per_transaction: class.write.bytes as f64 / transactions,
                mean_read_bytes: class.read.average_bytes,
                mean_write_bytes: class.write.average_bytes,
            });
        }
    }
    layers
}

impl ValidationSummary {
    fn of(validation: &Validation) -> Self {
        let (simulated, floor) = (&validation.simulated, &validation.noise_floor);
        let without_drift = validation.without_drift.as_ref().map(|without| &without.pooled);
        let operations = validation.operations.iter().map(|operation| OperationSummary {
            op: operation.op.name().to_owned(),
            requests: operation.simulated.count_real,
            error_ratio: operation.simulated.error_ratio,
            noise_floor: operation.noise_floor.error_ratio,
            signed_mean_error: operation.simulated.signed_mean_error,
        });
        Self {
            requests: validation.requests,
            error_ratio: simulated.pooled.error_ratio,
            error_ratio_interval: simulated.pooled.error_ratio_interval,
            noise_floor: floor.pooled.error_ratio,
            noise_floor_interval: floor.pooled.error_ratio_interval,
            weighted_error_ratio: simulated.weighted_error_ratio,
            weighted_noise_floor: floor.weighted_error_ratio,
            aim: validation.aim,
            verdict: validation.verdict(),
            verdict_words: validation.verdict_words(),
            help: validation.help(),
            rounds: validation.certificates.len() as u64 / 2,
            drift: validation.drift.clone(),
            error_ratio_without_drift: without_drift.map(|pooled| pooled.error_ratio),
            error_ratio_without_drift_interval: without_drift
                .and_then(|pooled| pooled.error_ratio_interval),
            limiting: LimitingError::of(validation),
            timing_valid: validation.certificates.iter().all(|certificate| certificate.valid),
            operations: operations.collect(),
        }
    }
}
