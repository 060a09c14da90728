//! What others published of a device beside what its profile gives under the same load.
//!
//! Each figure of a profile ([`profile::Published`]) is simulated on a device of its own: the state
//! that the profile starts with, a warm-up, then a closed loop at the figure's depth. The error of
//! a regression figure says how far the profile may be trusted where nobody measured; that of an
//! input only whether the profile was made from it correctly.

use profile::{Error, Figure, LoadOp, Profile, Published};
use serde::Serialize;
use sim::{DepthOutcome, Synthetic, closed_loop_depth};

/// A published figure and the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedCheck {
    /// The figure and the load that it belongs to.
    pub published: Published,
    /// The model's value, in the unit of the figure.
    pub model: f64,
    /// Model over published, less 1.
    pub error: f64,
}

/// A profile's figures in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedSummary {
    /// The profile.
    pub profile: String,
    /// Figures that it was made from.
    pub inputs: usize,
    /// Largest error of them, without sign; none where there are none.
    pub input_error_most: Option<f64>,
    /// Figures that it was not made from.
    pub regressions: usize,
    /// Median of their errors, without sign.
    pub regression_error_median: Option<f64>,
    /// Largest of them.
    pub regression_error_most: Option<f64>,
}

/// Requests counted where a figure does not say.
const REQUESTS: u64 = 20_000;
/// Requests of each place in the queue that are not counted where a figure does not say: enough for
/// the queue to be full and each server to have been used several times.
const WARM_UP_PER_DEPTH: u64 = 16;
/// Bytes addressed on a device whose capacity is not known.
const RANGE_BYTES: u64 = 64 << 30;

/// Every published figure of `profile` beside the model's. `seed` decides every random draw.
///
/// # Errors
/// Where a figure changes a field that the profile has not; [`Profile::check`] finds that first.
pub fn check(profile: &Profile, seed: u64) -> Result<Vec<PublishedCheck>, Error> {
    profile
        .published
        .iter()
        .map(|published| {
            let model = simulate(&profile.as_published(published)?, published, seed);
            let error = model / published.value - 1.0;
            Ok(PublishedCheck { published: published.clone(), model, error })
        })
        .collect()
}

/// The figure as the model of `profile` has it, in its unit.
fn simulate(profile: &Profile, published: &Published, seed: u64) -> f64 {
    let size = published.size.0;
    let capacity = profile.capacity().map(|bytes| bytes.0);
    let wanted = published.range.map(|bytes| bytes.0).or(capacity).unwrap_or(RANGE_BYTES);
    let depth = u64::from(published.depth);
    let load = Synthetic {
        range_bytes: wanted.min(capacity.unwrap_or(u64::MAX)),
        flush_each_write: published.flushed,
        warm_up_requests: published.after.map_or(WARM_UP_PER_DEPTH * depth, |b| b.0 / size),
        seed,
        ..Synthetic::new(published.pattern, published.share_of_reads(), size as u32)
    };
    let count = published.counted.map_or(REQUESTS.max(10 * depth), |bytes| bytes.0 / size);
    let mut device = model::device(profile, seed);
    let outcome = closed_loop_depth(device.as_mut(), load, published.depth as usize, count);
    figure(&outcome, published) / published.unit.scale()
}

/// Requests or bytes per second, or ns.
fn figure(outcome: &DepthOutcome, published: &Published) -> f64 {
    let times = match published.timed_op() {
        LoadOp::Write => &outcome.writes,
        LoadOp::Read | LoadOp::Mixed => &outcome.reads,
    };
    match published.figure {
        Figure::Iops => outcome.iops,
        Figure::Throughput => outcome.bytes_per_s,
        // That of a commit contains its flush.
        Figure::Mean => times.mean() + outcome.flushes.mean(),
        Figure::P50 => times.quantile(0.5) as f64,
        Figure::P99 => times.quantile(0.99) as f64,
        Figure::P999 => times.quantile(0.999) as f64,
    }
}

/// The `checks` of a profile in short.
pub fn summary(profile: &str, checks: &[PublishedCheck]) -> PublishedSummary {
    let errors = |input: bool| {
        let own = checks.iter().filter(|check| check.published.input == input);
        let mut errors: Vec<f64> = own.map(|check| check.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors
    };
    let (inputs, regressions) = (errors(true), errors(false));
    let median = |sorted: &[f64]| {
        let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
        Some(f64::midpoint(sorted[low], sorted[high]))
    };
    PublishedSummary {
        profile: profile.to_owned(),
        inputs: inputs.len(),
        input_error_most: inputs.last().copied(),
        regressions: regressions.len(),
        regression_error_median: median(&regressions),
        regression_error_most: regressions.last().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gp3(figure: &str) -> Profile {
        let text = profile::find_shipped("intel-p3700").expect("it ships");
        let own = text.find("\n[[published]]").unwrap_or(text.len());
        let text = format!("{}\n[[published]]\nsize = \"4KiB\"\n{figure}", &text[..own]);
        Profile::from_toml(&text, "my.toml").expect("it is sound")
    }

    /// The line of the profile by hand, where nothing scatters: 18 us and 0.539 us per KiB, one
    /// request at a time.
    #[test]
    fn figures_are_those_of_the_line_by_hand() {
        let time_us = 18.0 + 4.0 * 0.539;
        for (figure, unit, value) in [
            ("mean", "us", time_us),
            ("p50", "us", time_us),
            ("p99", "ms", time_us / 1e3),
            ("p99.9", "us", time_us),
            ("iops", "iops", 1e6 / time_us),
            ("throughput", "MB/s", 4096.0 / time_us),
            ("throughput", "MiB/s", 4096.0 / time_us / 1.048_576),
        ] {
            let profile = gp3(&format!(
                "op = \"write\"\npattern = \"random\"\ndepth = 1\nfigure = \"{figure}\"\n\
                 unit = \"{unit}\"\nvalue = {}\nsource = \"by hand\"\n",
                value / 2.0
            ));
            let found = &check(&profile, 1).expect("the load exists")[0];
            // A histogram keeps three digits.
            assert!((found.model / value - 1.0).abs() < 1e-3, "{figure}: {}", found.model);
            assert!((found.error - 1.0).abs() < 2e-3, "twice what was published: {}", found.error);
        }
    }

    #[test]
    fn a_commit_takes_its_write_and_its_flush() {
        let profile = gp3("op = \"write\"\npattern = \"random\"\ndepth = 1\nflushed = true\n\
             with = [\"device.flush.base_us=100\"]\nfigure = \"mean\"\nunit = \"us\"\n\
             value = 1\nsource = \"by hand\"\n");
        let found = check(&profile, 1).expect("the load exists")[0].model;
        assert!((found - 120.156).abs() < 0.1, "{found}");
    }

    #[test]
    fn a_summary_keeps_inputs_and_regressions_apart() {
        let profile = gp3("op = \"read\"\npattern = \"random\"\ndepth = 1\nfigure = \"iops\"\n\
             unit = \"iops\"\nvalue = 1\nsource = \"by hand\"\n");
        let one = |error, input| PublishedCheck {
            published: Published { input, ..profile.published[0].clone() },
            model: 1.0 + error,
            error,
        };
        let checks = [one(0.1, true), one(-0.4, false), one(0.2, false), one(0.3, false)];
        let summary = summary("x", &checks);
        assert_eq!((summary.inputs, summary.input_error_most), (1, Some(0.1)));
        let regressions = (summary.regression_error_median, summary.regression_error_most);
        assert_eq!((summary.regressions, regressions), (3, (Some(0.3), Some(0.4))));
        assert_eq!(super::summary("x", &[]).regression_error_median, None);
    }

    /// A profile reproduces what it was made from: inputs are not judged, they are kept.
    #[test]
    fn shipped_profiles_give_back_their_inputs() {
        for (name, text) in profile::shipped() {
            let profile = Profile::from_toml(text, name).expect("it is sound");
            let inputs: Vec<_> = profile.published.iter().filter(|p| p.input).cloned().collect();
            for found in check(&Profile { published: inputs, ..profile }, 1).expect("loads") {
                let error = 100.0 * found.error;
                assert!(error.abs() <= 5.0, "{name} {}: {error:.1} %", found.published.load());
            }
        }
    }
}
