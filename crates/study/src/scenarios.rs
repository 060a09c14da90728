//! The same transactions on other devices: a captured run simulated in a closed loop.
//!
//! Each actor of the capture (a database connection) keeps its CPU time between requests and waits
//! for the simulated device instead of the real one; `sim::closed_loop` says what that keeps fixed.

use profile::Profile;
use serde::{Deserialize, Serialize};
use trace::Trace;

use crate::Error;
use crate::assumed::{self, Count};
use crate::host_stack::Devices;

/// What the load would do on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Transactions of all kinds per minute.
    pub transactions_per_min: f64,
    /// New orders per minute.
    pub new_orders_per_min: f64,
    /// Lower end of the transactions per minute.
    pub transactions_per_min_low: f64,
    /// Upper end.
    pub transactions_per_min_high: f64,
}

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
    /// Values of the profile that nobody published or measured.
    #[serde(default)]
    pub assumed_values: u32,
    /// All values of the profile.
    #[serde(default)]
    pub values: u32,
    /// Least and most transactions per minute with each assumed value halved and doubled; null
    /// where none is assumed.
    #[serde(default)]
    pub swept_transactions_per_min: Option<(f64, f64)>,
    /// What the load would do there; null for this disk.
    #[serde(default)]
    pub prediction: Option<Prediction>,
}

impl ScenarioResult {
    /// Whether most of what the profile says is assumed.
    pub fn mostly_assumed(&self) -> bool {
        Count { all: self.values, assumed: self.assumed_values }.mostly()
    }

    /// `6 of 16 values assumed`; `none of 16` where nothing is.
    pub fn assumptions(&self) -> String {
        match self.assumed_values {
            0 => format!("none of {} values assumed", self.values),
            assumed => format!("{assumed} of {} values assumed", self.values),
        }
    }
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
    devices: &Devices,
    fitted: bool,
    trace: &Trace,
    new_order_share: f64,
    seed: u64,
) -> Result<ScenarioResult, sim::Error> {
    let outcome = sim::closed_loop(devices.device(seed).as_mut(), trace)?;
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
        profile: devices.name(),
        description: devices.profile().profile.description.clone(),
        fitted,
        transactions_per_min: outcome.transactions_per_min(),
        new_orders_per_min: outcome.transactions_per_min() * new_order_share,
        transaction_ns_p50: response.quantile(0.5),
        transaction_ns_p90: response.quantile(0.9),
        transaction_ns_p99: response.quantile(0.99),
        waiting_share: waited / (outcome.span_ns as f64 * outcome.actors as f64).max(1.0),
        classes: classes.collect(),
        assumed_values: 0,
        values: 0,
        swept_transactions_per_min: None,
        prediction: None,
    })
}

/// As [`simulate`], from a profile's text and what is above it: counts what it assumes, and
/// sweeps that. Variants that are no profile are left out.
pub fn simulate_swept(
    (name, text, host): (&str, &str, Option<&host::Spec>),
    fitted: bool,
    trace: &Trace,
    new_order_share: f64,
    seed: u64,
    cancelled: &dyn Fn() -> bool,
) -> Result<ScenarioResult, Error> {
    let profile = Profile::from_toml(text, name).map_err(Error::Model)?;
    let devices = Devices::new(profile.clone(), host)?;
    let mut result = simulate(&devices, fitted, trace, new_order_share, seed)?;
    let count = Count::of(&profile.to_toml());
    (result.values, result.assumed_values) = (count.all, count.assumed);
    let (mut low, mut high) = (result.transactions_per_min, result.transactions_per_min);
    let variants = assumed::variants(text);
    for variant in &variants {
        if cancelled() {
            break;
        }
        let Ok(profile) = Profile::from_toml(variant, name) else { continue };
        // A variant may be too small for the trace: that is no figure.
        let Ok(devices) = Devices::new(profile, host) else { continue };
        let Ok(outcome) = sim::closed_loop(devices.device(seed).as_mut(), trace) else {
            continue;
        };
        let rate = outcome.transactions_per_min();
        (low, high) = (low.min(rate), high.max(rate));
    }
    result.swept_transactions_per_min = (!variants.is_empty()).then_some((low, high));
    Ok(result)
}
