//! What a device costs per month, and what its transactions cost.
//!
//! A volume is rented by its size, and by the performance that was provisioned; a drive is bought
//! and used for some years. Only the storage is counted: no machine, power, redundancy or staff,
//! and no interest. Prices are those that the profile's `[cost]` names, with their day.

use advise::prices::{Monthly, Price, Wanted, per_million};
use profile::CostSpec;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// `[cost]` of a study: what is to be paid for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// Size of the volume; a drive that is smaller is not priced.
    pub size: Bytes,
    /// Size of the log's volume, where it has its own.
    pub log_size: Bytes,
    /// How long a drive that is bought is used.
    pub years: f64,
}

impl Default for Asked {
    fn default() -> Self {
        Self { size: Bytes(500 * Bytes::GIB.0), log_size: Bytes(50 * Bytes::GIB.0), years: 5.0 }
    }
}

/// `[cost]` of a profile as an entry of a price file.
pub(crate) fn price(spec: &CostSpec) -> Price {
    let parts = [&spec.usd, &spec.usd_per_gib_month, &spec.usd_per_month];
    let value = |part: &Option<profile::Parameter>| part.as_ref().map(|part| part.value);
    let sources = parts.iter().filter_map(|part| Some(part.as_ref()?.source.clone()));
    Price {
        date: spec.date.clone(),
        source: sources.collect::<Vec<_>>().join("; "),
        region: spec.region.clone(),
        currency: "USD".to_owned(),
        assumed: parts.into_iter().flatten().any(|part| part.assumed),
        purchase: value(&spec.usd),
        size: spec.size,
        per_month: value(&spec.usd_per_month),
        per_gib_month: value(&spec.usd_per_gib_month),
        ..Price::default()
    }
}

/// What a place costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// US dollars a month.
    pub usd_per_month: f64,
    /// Whether a price in it is assumed.
    pub assumed: bool,
    /// What is paid for, with the day of the price.
    pub terms: String,
}

impl Cost {
    /// The cost of `count` of them.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        let usd_per_month = self.usd_per_month * count as f64;
        Self { usd_per_month, terms: format!("{count} times {}", self.terms), ..self }
    }

    /// Of a volume or drive of `size`; none where the price is not known or the drive is too small.
    pub fn of(spec: Option<&CostSpec>, size: Bytes, years: f64) -> Option<Self> {
        let wanted = Wanted { size, years, iops: None, mb_per_s: None };
        let Monthly { per_month, assumed, terms, .. } = price(spec?).monthly(&wanted).ok()?;
        Some(Self { usd_per_month: per_month, assumed, terms })
    }

    /// Both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            usd_per_month: self.usd_per_month + other.usd_per_month,
            assumed: self.assumed || other.assumed,
            terms: format!("{}; log: {}", self.terms, other.terms),
        }
    }

    /// Of a million transactions, where the device is as busy around the clock.
    pub fn usd_per_million(&self, transactions_per_min: f64) -> f64 {
        per_million(self.usd_per_month, transactions_per_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str, size: &str) -> Option<Cost> {
        let profile = crate::profiles::read_profile(name).unwrap();
        Cost::of(profile.cost.as_ref(), size.parse().unwrap(), 5.0)
    }

    /// 500 GiB at 0.08 a month; at 0.125 with 6,000 I/Os per second at 0.065; at 0.10.
    #[test]
    fn volumes_cost_what_their_price_lists_say() {
        let month = |name: &str| shipped(name, "500GiB").unwrap().usd_per_month;
        for (name, expected) in [("aws-gp3", 40.0), ("aws-io2", 452.5), ("gcp-pd-balanced", 50.0)] {
            assert!((month(name) - expected).abs() < 1e-9, "{name}: {}", month(name));
        }
    }

    #[test]
    fn a_drive_is_used_for_years_and_must_be_large_enough() {
        let drive = shipped("crucial-mx500", "500GiB").unwrap();
        assert!((drive.usd_per_month - 260.0 / 60.0).abs() < 1e-9 && !drive.assumed, "{drive:?}");
        assert_eq!(shipped("crucial-mx500", "1TiB"), None);
        assert!(shipped("hgst-hds72107", "500GiB").unwrap().assumed);
        assert_eq!(shipped("intel-p3700", "500GiB"), None, "nobody said its price");
        // 4.33 USD a month over 1,000 a minute: 43.8 million transactions.
        assert!((drive.usd_per_million(1000.0) - 4.3333 / 43.8).abs() < 1e-4);
        let both = drive.and(&shipped("aws-gp3", "50GiB").unwrap());
        assert!((both.usd_per_month - drive.usd_per_month - 4.0).abs() < 1e-9, "{both:?}");
    }
}
