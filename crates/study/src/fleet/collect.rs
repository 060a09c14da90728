//! The rows of a fleet together, and what they say.

use std::collections::BTreeMap;
use std::path::Path;

use report::format;
use serde::Serialize;

use super::plan::Plan;
use super::run::{ALL, Row, result_path};
use crate::Error;

/// What a file of rows is called where it cannot be read.
const WHAT: &str = "result of a job";

/// The rows of all jobs that are done, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// The rows.
    pub rows: Vec<Row>,
    /// Jobs without a result.
    pub missing: usize,
}

/// How a device stands over the loads of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// The profile.
    pub profile: String,
    /// Jobs that are done.
    pub jobs: u64,
    /// Jobs whose device fell behind the arrivals.
    pub overloaded: u64,
    /// Over the jobs: quantiles of their mean response time, ns: median, 90 % and largest.
    pub mean_ns: [f64; 3],
    /// Of their 99th percentile.
    pub p99_ns: [u64; 3],
    /// The least life of a job's flash, years, where the model knows.
    pub least_life_years: Option<f64>,
}

/// Gathers what is done.
///
/// # Errors
/// A result that cannot be read.
pub fn collect(plan: &Plan, results: &Path) -> Result<Collected, Error> {
    let mut all = Collected::default();
    for job in &plan.jobs {
        let path = result_path(results, &job.id);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                all.missing += 1;
                continue;
            }
            Err(source) => return Err(Error::Io { path, action: "read", source }),
        };
        for line in text.lines() {
            all.rows.push(crate::run_dir::parse_json(line.as_bytes(), &path, WHAT)?);
        }
    }
    Ok(all)
}

impl Collected {
    /// The rows of all requests of each job.
    fn jobs(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.op == ALL)
    }

    /// All rows as JSON lines.
    pub fn to_text(&self) -> String {
        let line = |row| serde_json::to_string(row).expect("plain data") + "\n";
        self.rows.iter().map(line).collect()
    }

    /// By profile.
    pub fn devices(&self) -> Vec<DeviceSummary> {
        let mut by_profile: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in self.jobs() {
            by_profile.entry(&row.profile).or_default().push(row);
        }
        let summaries = by_profile.into_iter().map(|(profile, rows)| {
            let mut means: Vec<f64> = rows.iter().map(|row| row.mean_ns).collect();
            means.sort_unstable_by(f64::total_cmp);
            let mut tails: Vec<u64> = rows.iter().map(|row| row.p99_ns).collect();
            tails.sort_unstable();
            DeviceSummary {
                profile: profile.to_owned(),
                jobs: rows.len() as u64,
                overloaded: rows.iter().filter(|row| row.overloaded).count() as u64,
                mean_ns: [0.5, 0.9, 1.0].map(|q| stats::quantile_sorted_f64(&means, q)),
                p99_ns: [0.5, 0.9, 1.0].map(|q| stats::quantile_sorted(&tails, q)),
                least_life_years: rows
                    .iter()
                    .filter_map(|row| row.life_years)
                    .min_by(f64::total_cmp),
            }
        });
        summaries.collect()
    }
}

/// Rows for the terminal: a device each; the first is the header.
pub fn summary(all: &Collected) -> Vec<Vec<String>> {
    let header = [
        "PROFILE",
        "JOBS",
        "OVERLOADED",
        "MEAN P50",
        "MEAN P90",
        "P99 P50",
        "P99 P90",
        "P99 MAX",
        "LEAST LIFE",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for device in all.devices() {
        let life = device.least_life_years;
        rows.push(vec![
            device.profile.clone(),
            device.jobs.to_string(),
            device.overloaded.to_string(),
            format::duration_ns(device.mean_ns[0]),
            format::duration_ns(device.mean_ns[1]),
            format::duration_ns(device.p99_ns[0] as f64),
            format::duration_ns(device.p99_ns[1] as f64),
            format::duration_ns(device.p99_ns[2] as f64),
            life.map_or_else(|| "-".to_owned(), |years| format!("{years:.1} years")),
        ]);
    }
    rows
}

/// Rows for the terminal: the jobs with the longest 99th percentiles; the first is the header.
pub fn worst(all: &Collected, count: usize) -> Vec<Vec<String>> {
    let mut jobs: Vec<&Row> = all.jobs().collect();
    jobs.sort_by(|a, b| b.p99_ns.cmp(&a.p99_ns).then_with(|| a.job.cmp(&b.job)));
    let header = ["WORST", "STREAM", "PROFILE", "REQUESTS", "MEAN", "P99"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for row in jobs.into_iter().take(count) {
        let stream = if row.stream.is_empty() { "-" } else { &row.stream };
        rows.push(vec![
            row.trace.clone(),
            stream.to_owned(),
            row.profile.clone(),
            row.requests.to_string(),
            format::duration_ns(row.mean_ns),
            format::duration_ns(row.p99_ns as f64),
        ]);
    }
    rows
}
