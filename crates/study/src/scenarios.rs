//! The same transactions on other devices: a captured run simulated in a closed loop.
//!
//! Each actor of the capture (a database connection) keeps its CPU time between requests and waits
//! for the simulated device instead of the real one; `sim::closed_loop` says what that keeps fixed.

use std::path::Path;

use model::Profile;
use serde::{Deserialize, Serialize};
use trace::Trace;

use crate::Error;

/// What one device would make of the captured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// The profile's name.
    pub profile: String,
    /// One line about the device.
    pub description: String,
    /// Whether the profile was fitted to the disk of the run.
    pub fitted: bool,
    /// Transactions of all kinds per minute.
    pub transactions_per_min: f64,
    /// New orders per minute, by their captured share of the transactions.
    pub new_orders_per_min: f64,
    /// From the first to the last I/O of a transaction, ns.
    pub transaction_ns_p50: u64,
    /// The same, 90th percentile.
    pub transaction_ns_p90: u64,
    /// The same, 99th percentile.
    pub transaction_ns_p99: u64,
    /// Share of the simulated time in which a mean actor waits for the device.
    pub waiting_share: f64,
    /// Per operation and file class.
    pub classes: Vec<ClassTimes>,
}

/// Device times of one operation on one file class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassTimes {
    /// `read`, `write`, `flush`.
    pub op: String,
    /// File class.
    pub stream: String,
    /// Requests.
    pub requests: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
}

/// Simulates the captured run on a device. `new_order_share` is that of the captured transactions.
pub fn simulate(
    profile: &Profile,
    fitted: bool,
    trace: &Trace,
    new_order_share: f64,
    seed: u64,
) -> Result<ScenarioResult, sim::Error> {
    let outcome = sim::closed_loop(profile.device(seed).as_mut(), trace)?;
    let response = &outcome.transaction_response;
    let waited: f64 =
        outcome.classes.iter().map(|c| c.service.mean() * c.service.count() as f64).sum();
    let classes = outcome.classes.iter().map(|class| ClassTimes {
        op: class.op.name().to_owned(),
        stream: class.stream.clone(),
        requests: class.service.count(),
        mean_ns: class.service.mean(),
        p99_ns: class.service.quantile(0.99),
    });
    Ok(ScenarioResult {
        profile: profile.name().to_owned(),
        description: profile.profile.description.clone(),
        fitted,
        transactions_per_min: outcome.transactions_per_min(),
        new_orders_per_min: outcome.transactions_per_min() * new_order_share,
        transaction_ns_p50: response.quantile(0.5),
        transaction_ns_p90: response.quantile(0.9),
        transaction_ns_p99: response.quantile(0.99),
        waiting_share: waited / (outcome.span_ns as f64 * outcome.actors as f64).max(1.0),
        classes: classes.collect(),
    })
}

/// Reads a profile: a shipped one by name, or a TOML file.
pub fn read_profile(name: &str) -> Result<Profile, Error> {
    let path = Path::new(name);
    let text = match model::profile::find_shipped(name) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(path).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                return Error::NoProfile { name: name.to_owned() };
            }
            Error::Io { path: path.into(), action: "read", source }
        })?,
    };
    Profile::from_toml(&text, name).map_err(Error::Model)
}
