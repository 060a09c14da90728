//! What a device costs per month, and what its transactions cost.
//!
//! A volume is rented by its size, and by the performance that was provisioned; a drive is bought
//! and used for some years. Only the storage is counted: no machine, power, redundancy or staff,
//! and no interest. Prices are those that the profile's `[cost]` names, with their day.

use profile::CostSpec;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Of a provider's billing month: 730 hours.
const MINUTES_PER_MONTH: f64 = 730.0 * 60.0;

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
    /// Of so many.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        let usd_per_month = self.usd_per_month * count as f64;
        Self { usd_per_month, terms: format!("{count} times {}", self.terms), ..self }
    }

    /// Of a volume or drive of `size`; none where the price is not known or the drive is too small.
    pub fn of(spec: Option<&CostSpec>, size: Bytes, years: f64) -> Option<Self> {
        let spec = spec?;
        let region = match spec.region.as_str() {
            "" => String::new(),
            region => format!("{region}, "),
        };
        let parts = [&spec.usd, &spec.usd_per_gib_month, &spec.usd_per_month];
        let assumed = parts.into_iter().flatten().any(|part| part.assumed);
        if let Some(usd) = &spec.usd {
            let sold = spec.size.filter(|sold| *sold >= size)?;
            return Some(Self {
                usd_per_month: usd.value / (12.0 * years),
                assumed,
                terms: format!(
                    "{sold} bought for {} USD ({}), {years} years",
                    usd.value, spec.date
                ),
            });
        }
        let gib = size.0 as f64 / Bytes::GIB.0 as f64;
        let by_size = spec.usd_per_gib_month.as_ref().map_or(0.0, |price| price.value * gib);
        let fixed = spec.usd_per_month.as_ref().map_or(0.0, |price| price.value);
        Some(Self {
            usd_per_month: by_size + fixed,
            assumed,
            terms: format!("{size} rented ({region}{})", spec.date),
        })
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
        self.usd_per_month / (transactions_per_min * MINUTES_PER_MONTH) * 1e6
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
