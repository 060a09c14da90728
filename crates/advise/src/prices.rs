//! Prices: what somebody asked for a device on a day.
//!
//! A price file is a list of `[[price]]`. Volumes are rented by their size and by the performance
//! that is provisioned above what is included; drives are bought in a size and used for some years.
//! Only the storage is counted: no machine, power, redundancy or staff, and no interest. A price
//! belongs to a day, a seller and a region; each entry names them and its source.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Error;
use crate::error::positive;

/// Hours of a provider's billing month.
pub const HOURS_PER_MONTH: f64 = 730.0;
/// Minutes of it.
pub const MINUTES_PER_MONTH: f64 = HOURS_PER_MONTH * 60.0;

/// A price file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Its entries.
    #[serde(default)]
    pub price: Vec<Price>,
}

/// `[[price]]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Names of the profiles that it is for.
    pub profiles: Vec<String>,
    /// When it was asked.
    pub date: String,
    /// Who published it.
    pub source: String,
    /// A provider's region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Three letters; figures in different ones are not compared.
    #[serde(default = "usd")]
    pub currency: String,
    /// Nobody published it for this device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// To buy it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase: Option<f64>,
    /// The size that is sold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// A month, whatever its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_month: Option<f64>,
    /// A month, for a GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_gib_month: Option<f64>,
    /// A month, for an I/O per second above those included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_iops_month: Option<f64>,
    /// I/Os per second that are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_iops: Option<f64>,
    /// A month, for 10^6 bytes per second above those included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_mb_per_s_month: Option<f64>,
    /// 10^6 bytes per second that are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_mb_per_s: Option<f64>,
}

fn usd() -> String {
    "USD".to_owned()
}

/// What is to be paid for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Size.
    pub size: Bytes,
    /// How long a drive that is bought is used, years.
    pub years: f64,
    /// I/Os per second that the volume is provisioned with.
    pub iops: Option<f64>,
    /// 10^6 bytes per second that it is provisioned with.
    pub mb_per_s: Option<f64>,
}

/// What a device costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Monthly {
    /// A month.
    pub per_month: f64,
    /// In what.
    pub currency: String,
    /// Whether a price in it is assumed.
    pub assumed: bool,
    /// What is paid for, with the day of the price.
    pub terms: String,
}

impl Prices {
    /// Reads a price file; `place` names it in errors.
    ///
    /// # Errors
    /// Where it is no TOML, an entry lacks something, or a profile has two prices.
    pub fn from_toml(text: &str, place: &str) -> Result<Self, Error> {
        let bad = |place: String, cause: String| Error::Prices { place, cause };
        let prices: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            bad(format!("{place}{line}"), events::one_line(error.message()))
        })?;
        let mut seen: Vec<&str> = Vec::new();
        for (index, price) in prices.price.iter().enumerate() {
            price.check().map_err(|cause| bad(format!("{place}: price[{index}]"), cause))?;
            for name in &price.profiles {
                if seen.contains(&name.as_str()) {
                    return Err(Error::Twice { place: place.to_owned(), name: name.clone() });
                }
                seen.push(name);
            }
        }
        Ok(prices)
    }

    /// The price of a profile.
    pub fn of(&self, profile: &str) -> Option<&Price> {
        self.price.iter().find(|price| price.profiles.iter().any(|name| name == profile))
    }
}

impl Price {
    fn check(&self) -> Result<(), String> {
        if self.profiles.is_empty() || self.profiles.iter().any(|name| name.trim().is_empty()) {
            return Err("profiles is empty: name what it is the price of".to_owned());
        }
        if self.date.trim().is_empty() || self.source.trim().is_empty() {
            return Err("a price needs its date and its source".to_owned());
        }
        let figures = [
            ("purchase", self.purchase),
            ("per_month", self.per_month),
            ("per_gib_month", self.per_gib_month),
            ("per_iops_month", self.per_iops_month),
            ("per_mb_per_s_month", self.per_mb_per_s_month),
            ("included_iops", self.included_iops),
            ("included_mb_per_s", self.included_mb_per_s),
        ];
        for (name, value) in figures {
            if let Some(value) = value {
                positive(name, value).map_err(|error| error.to_string())?;
            }
        }
        if self.purchase.is_some() == (self.per_month.is_some() || self.per_gib_month.is_some()) {
            return Err("give either purchase, or what it costs per month".to_owned());
        }
        if self.purchase.is_some() && self.size.is_none() {
            return Err("a drive that is sold has a size".to_owned());
        }
        Ok(())
    }

    /// What it costs a month.
    ///
    /// # Errors
    /// Why it has no price: a drive that is too small, performance that nobody named.
    pub fn monthly(&self, wanted: &Wanted) -> Result<Monthly, String> {
        let region = match self.region.as_str() {
            "" => String::new(),
            region => format!("{region}, "),
        };
        let told = |per_month: f64, terms: String| Monthly {
            per_month,
            currency: self.currency.clone(),
            assumed: self.assumed,
            terms,
        };
        if let Some(purchase) = self.purchase {
            let sold = self.size.unwrap_or_default();
            if sold < wanted.size {
                return Err(format!("it is sold with {sold}, and {} are wanted", wanted.size));
            }
            let (currency, years) = (&self.currency, wanted.years);
            let date = &self.date;
            return Ok(told(
                purchase / (12.0 * years),
                format!("{sold} bought for {purchase} {currency} ({date}), {years} years"),
            ));
        }
        let gib = wanted.size.0 as f64 / Bytes::GIB.0 as f64;
        let mut sum = self.per_month.unwrap_or(0.0) + self.per_gib_month.unwrap_or(0.0) * gib;
        let mut terms = format!("{} rented ({region}{})", wanted.size, self.date);
        for (price, included, asked, unit) in [
            (self.per_iops_month, self.included_iops, wanted.iops, "I/Os per second"),
            (self.per_mb_per_s_month, self.included_mb_per_s, wanted.mb_per_s, "MB/s"),
        ] {
            let Some(price) = price else { continue };
            let Some(asked) = asked else {
                return Err(format!("its {unit} are paid for, and their number is not stated"));
            };
            sum += (asked - included.unwrap_or(0.0)).max(0.0) * price;
            terms.push_str(&format!(", {asked} {unit}"));
        }
        Ok(told(sum, terms))
    }
}

/// Price of a million transactions, where the device is as busy around the clock.
pub fn per_million(per_month: f64, transactions_per_min: f64) -> f64 {
    per_month / (transactions_per_min * MINUTES_PER_MONTH) * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[[price]]
profiles = ["gp3"]
date = "2026"
source = "a price list"
per_gib_month = 0.08
per_iops_month = 0.005
included_iops = 3000
per_mb_per_s_month = 0.04
included_mb_per_s = 125

[[price]]
profiles = ["drive"]
date = "2026-02"
source = "a shop"
purchase = 240
size = "1TB"
"#;

    fn wanted(gb: u64, iops: Option<f64>, mb_per_s: Option<f64>) -> Wanted {
        Wanted { size: Bytes(gb * Bytes::GIB.0), years: 5.0, iops, mb_per_s }
    }

    /// The worked totals: 1,000 GB with 16,000 I/Os and 1,000 MB/s: 80 + 65 + 35.
    #[test]
    fn a_volume_costs_its_size_and_what_is_above_the_included() {
        let prices = Prices::from_toml(FILE, "mine.toml").unwrap();
        let gp3 = prices.of("gp3").unwrap();
        let month = |iops, mb_per_s| {
            gp3.monthly(&wanted(1000, Some(iops), Some(mb_per_s))).unwrap().per_month
        };
        assert!((month(16_000.0, 1000.0) - 180.0).abs() < 1e-9);
        assert!((month(3000.0, 125.0) - 80.0).abs() < 1e-9);
        assert!((month(100.0, 1.0) - 80.0).abs() < 1e-9, "less than included costs no less");
        let silent = gp3.monthly(&wanted(1000, None, Some(1.0))).unwrap_err();
        assert!(silent.contains("their number is not stated"), "{silent}");
    }

    #[test]
    fn a_drive_is_used_for_years_and_must_be_large_enough() {
        let prices = Prices::from_toml(FILE, "mine.toml").unwrap();
        let drive = prices.of("drive").unwrap();
        let month = drive.monthly(&wanted(500, None, None)).unwrap();
        assert_eq!(month.per_month, 4.0);
        assert!(month.terms.contains("2026-02"), "{month:?}");
        assert!(drive.monthly(&wanted(1000, None, None)).unwrap_err().contains("it is sold with"));
        // 4 a month over 1,000 a minute: 43.8 million transactions.
        assert!((per_million(4.0, 1000.0) - 4.0 / 43.8).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        for (line, other, expected) in [
            ("date = \"2026\"", "date = \" \"", "price[0]: a price needs"),
            ("profiles = [\"gp3\"]", "profiles = []", "price[0]: profiles is empty"),
            ("0.08", "-0.08", "price[0]: per_gib_month is -0.08"),
            ("per_gib_month = 0.08", "purchase = 9", "price[0]: a drive that is sold has a size"),
            ("per_gib_month = 0.08", "", "price[0]: give either"),
            ("profiles = [\"drive\"]", "profiles = [\"gp3\"]", "gp3 has two prices"),
            ("size = \"1TB\"", "size = \"1 furlong\"", "mine.toml:17"),
            ("size = \"1TB\"", "weight = 3", "unknown field"),
        ] {
            assert!(FILE.contains(line), "{line}");
            let error = Prices::from_toml(&FILE.replacen(line, other, 1), "mine.toml").unwrap_err();
            assert!(error.to_string().contains(expected), "{other}: {error}");
        }
    }
}
