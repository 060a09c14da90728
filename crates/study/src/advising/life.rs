//! How long a device lasts at a load, when its credits run out, when it is full.

use advise::credits::Bucket;
use advise::endurance::{ClassRate, Lifetime, Limit, lifetime};
use advise::{Answer, Interval, space};
use profile::limits::Allowance;
use profile::{DeviceSpec, Profile};
use serde::Serialize;
use units::Bytes;

use crate::Error;
use crate::result::StudyResult;

/// The load, as stated or measured; what is absent is not answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadOf {
    /// Bytes written per second, by file class.
    pub written: Vec<ClassRate>,
    /// Bytes programmed per byte written.
    pub amplification: Option<Interval>,
    /// I/Os per second.
    pub iops: Option<Interval>,
    /// Bytes per second, reads and writes.
    pub bytes_per_s: Option<Interval>,
    /// Bytes that are free.
    pub free: Option<Bytes>,
    /// Bytes more every day.
    pub grows_per_day: Option<Interval>,
    /// The day that the free bytes are of, `YYYY-MM-DD`.
    pub from: Option<String>,
}

/// The answers for one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LifeOf {
    /// Name of its profile.
    pub device: String,
    /// The state that the profile holds for.
    pub state: String,
    /// By the bytes that its maker rates it for.
    pub by_rating: Option<Lifetime>,
    /// By the erases that its blocks stand.
    pub by_cycles: Option<Lifetime>,
    /// Credits of I/Os, then of bytes.
    pub credits: Vec<Answer>,
    /// Until it is full.
    pub full: Option<Answer>,
    /// The day of that, and of the ends of its interval.
    pub full_on: Vec<String>,
    /// What cannot be told, and why.
    pub cannot_be_told: Vec<String>,
}

/// Answers what can be answered for `profile` at `load`.
///
/// # Errors
/// Where a figure cannot be.
pub fn life(profile: &Profile, load: &LoadOf) -> Result<LifeOf, Error> {
    let mut cannot = Vec::new();
    let (mut by_rating, mut by_cycles) = (None, None);
    if load.written.is_empty() {
        cannot.push("years: the bytes written per second are not stated".to_owned());
    } else {
        match &profile.endurance {
            Some(rating) => {
                let limit = Limit::Rated { bytes: rating.written_bytes() };
                by_rating = Some(lifetime(&limit, &load.written)?);
            }
            None => cannot.push("years by a rating: its maker published none".to_owned()),
        }
        match cycles(profile, load.amplification) {
            Ok(limit) => by_cycles = Some(lifetime(&limit, &load.written)?),
            Err(why) => cannot.push(format!("years by erases: {why}")),
        }
    }
    let mut credits = Vec::new();
    for (allowance, demand, unit) in buckets(profile, load) {
        match demand {
            Some(demand) => credits.push(bucket(&allowance).run_out(demand, unit)?),
            None => cannot.push(format!("credits: the rate of {unit} is not stated")),
        }
    }
    let full = match (load.free, load.grows_per_day) {
        (Some(free), Some(growth)) => Some(space::full(free.0 as f64, growth)?),
        _ => None,
    };
    let full_on = match (full.as_ref().and_then(|full| full.figure), &load.from) {
        (Some(days), Some(from)) => [days.low, days.value, days.high]
            .iter()
            .map(|days| space::date_after(from, *days).unwrap_or_else(|| "never".to_owned()))
            .collect(),
        _ => Vec::new(),
    };
    Ok(LifeOf {
        device: profile.name().to_owned(),
        state: profile.state.condition.clone(),
        by_rating,
        by_cycles,
        credits,
        full,
        full_on,
        cannot_be_told: cannot,
    })
}

/// The limit by erases, or why there is none.
fn cycles(profile: &Profile, amplification: Option<Interval>) -> Result<Limit, String> {
    let DeviceSpec::Flash(spec) = &profile.device else {
        return Err("its profile does not model the flash".to_owned());
    };
    let cycles = spec.wear.pe_cycles.as_ref().ok_or("its erase cycles are not published")?.value;
    let amplification = amplification.ok_or(
        "the write amplification is not stated; simulate a trace on it (wearmark sim) or state it",
    )?;
    let flash_bytes = spec.parameters().geometry.raw_bytes() as f64;
    Ok(Limit::Cycles { cycles, flash_bytes, amplification })
}

/// Allowances with credits, with what the load asks of each.
fn buckets<'a>(profile: &Profile, load: &LoadOf) -> Vec<(Allowance, Option<Interval>, &'a str)> {
    let Some(limits) = &profile.limits else { return Vec::new() };
    let parameters = limits.parameters();
    let found = [
        (parameters.ios, load.iops, "I/Os per second"),
        (parameters.bytes, load.bytes_per_s, "bytes per second"),
    ];
    let with_credits = |allowance: &Allowance| allowance.credits > 0.0;
    let found = found.into_iter();
    found.filter_map(|(own, load, unit)| Some((own.filter(with_credits)?, load, unit))).collect()
}

fn bucket(allowance: &Allowance) -> Bucket {
    Bucket {
        base_per_s: allowance.per_s,
        burst_per_s: allowance.burst_per_s,
        most: allowance.credits,
        start_share: allowance.start_share,
    }
}

/// Bytes written per second by file class, of the load of a study: those that reached the disk
/// where that was captured, those that the database issued otherwise.
pub fn written(result: &StudyResult) -> Vec<ClassRate> {
    let per_s = result.oltp.transactions_per_min / 60.0;
    let of = |layer: &str| -> Vec<ClassRate> {
        let own = result.oltp.io.iter().filter(|io| io.layer == layer);
        let rates = own.map(|io| ClassRate {
            class: io.class.clone(),
            bytes_per_s: Interval::exact(io.written_bytes_per_transaction * per_s),
        });
        rates.filter(|rate| rate.bytes_per_s.value > 0.0).collect()
    };
    ["physical", "device", "logical"]
        .map(of)
        .into_iter()
        .find(|c| !c.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use advise::endurance::{DAY_S, YEAR_S};

    use super::*;
    use crate::profiles::read_profile;

    fn rate(per_s: f64) -> Vec<ClassRate> {
        vec![ClassRate { class: "data".to_owned(), bytes_per_s: Interval::exact(per_s) }]
    }

    /// Wang et al. 2011, Table 6 again, now with the rating that the profile holds.
    #[test]
    fn the_shipped_x25_e_lasts_as_the_paper_says() {
        let profile = read_profile("intel-x25-e").unwrap();
        let load = LoadOf { written: rate(11.59e6), ..LoadOf::default() };
        let found = life(&profile, &load).unwrap();
        let years = found.by_rating.as_ref().unwrap().years.figure.unwrap().value;
        assert!((years / 5.47 - 1.0).abs() < 0.01, "{years}");
        assert!(found.by_cycles.is_none());
        assert!(found.cannot_be_told[0].contains("does not model the flash"), "{found:?}");
    }

    #[test]
    fn erases_need_an_amplification_and_are_cycles_of_all_the_flash() {
        let profile = read_profile("mtron-pro-7500-ftl").unwrap();
        let load = LoadOf { written: rate(50e9 / DAY_S), ..LoadOf::default() };
        let found = life(&profile, &load).unwrap();
        assert!(found.cannot_be_told.iter().any(|why| why.contains("write amplification")));
        let load = LoadOf { amplification: Some(Interval::exact(1.0)), ..load };
        let years = life(&profile, &load).unwrap().by_cycles.unwrap().years.figure.unwrap().value;
        // 32 GiB and its reserve, 100,000 cycles.
        let expected = 1e5 * 4.0 * 4.0 * 8.0 * 1024.0 * 64.0 * 4096.0 / 50e9 * DAY_S / YEAR_S;
        assert!((years / expected - 1.0).abs() < 1e-9 && years > 140.0, "{years}");
    }

    #[test]
    fn credits_and_space_are_those_of_the_closed_forms() {
        let profile = read_profile("aws-gp2").unwrap();
        let load = LoadOf {
            iops: Some(Interval::exact(3000.0)),
            free: Some(Bytes(100_000_000_000)),
            grows_per_day: Some(Interval::exact(2e9)),
            from: Some("2026-11-24".to_owned()),
            ..LoadOf::default()
        };
        let found = life(&profile, &load).unwrap();
        assert!((found.credits[0].figure.unwrap().value - 2000.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.full_on[1], "2027-01-13");
        assert!(found.cannot_be_told[0].contains("written per second"));
        let silent = LoadOf { iops: None, ..load };
        let silent = life(&profile, &silent).unwrap();
        assert!(silent.credits.is_empty());
        assert!(silent.cannot_be_told.iter().any(|why| why.starts_with("credits:")), "{silent:?}");
    }
}
