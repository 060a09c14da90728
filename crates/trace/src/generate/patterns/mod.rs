//! Named patterns: functions from a few options to a [`Workload`].
//!
//! A pattern is one entry of a table; its options, their defaults and their meaning stand beside
//! it, so that the list on the screen cannot drift. Tested: every pattern makes a sound trace with
//! its defaults, refuses options that it does not have, and does what its name says.

mod basic;
mod pts;
mod uflip;

use std::collections::BTreeMap;

use units::{Bytes, Rate};

use super::Invalid;
use super::{Arrivals, Workload};

/// A pattern that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct NamedPattern {
    /// Its name.
    pub name: &'static str,
    /// What it is, a sentence without a full stop.
    pub what: &'static str,
    /// Its options.
    pub options: &'static [PatternOption],
    build: fn(&Options) -> Result<Workload, Invalid>,
}

/// An option of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternOption {
    /// Its name.
    pub name: &'static str,
    /// Its value where none is given.
    pub default: &'static str,
    /// What it sets.
    pub what: &'static str,
}

const fn option(name: &'static str, default: &'static str, what: &'static str) -> PatternOption {
    PatternOption { name, default, what }
}

const RATE: PatternOption = option("rate", "1000/s", "mean rate");
const SIZE: PatternOption = option("size", "4KiB", "bytes per request");
const RANGE: PatternOption = option("range", "1GiB", "bytes that the offsets cover");
const READS: PatternOption = option("reads", "1", "share of reads, 0 to 1");
const ARRIVALS: PatternOption =
    option("arrivals", "poisson", "fixed, poisson, on-off, pareto or cascade");

/// All patterns.
pub fn all() -> impl Iterator<Item = &'static NamedPattern> {
    basic::PATTERNS.iter().chain(uflip::PATTERNS).chain(pts::PATTERNS)
}

/// The pattern of that name.
pub fn find(name: &str) -> Option<&'static NamedPattern> {
    all().find(|pattern| pattern.name == name)
}

impl NamedPattern {
    /// The workload that the given options make of it.
    pub fn workload(&self, given: &[(String, String)]) -> Result<Workload, Invalid> {
        let mut values: BTreeMap<&str, &str> =
            self.options.iter().map(|option| (option.name, option.default)).collect();
        for (name, value) in given {
            let Some(place) = values.get_mut(name.as_str()) else {
                let names: Vec<&str> = self.options.iter().map(|option| option.name).collect();
                let cause = format!("is no option of {}: {}", self.name, names.join(", "));
                return Err(Invalid::new(name, &cause));
            };
            *place = value;
        }
        let mut workload = (self.build)(&Options { values })?;
        self.name.clone_into(&mut workload.name);
        self.what.clone_into(&mut workload.description);
        workload.check()?;
        Ok(workload)
    }
}

/// Options with their values.
struct Options<'a> {
    values: BTreeMap<&'a str, &'a str>,
}

impl Options<'_> {
    fn text(&self, name: &'static str) -> &str {
        self.values.get(name).copied().unwrap_or_default()
    }

    fn parse<T: std::str::FromStr>(&self, name: &'static str, what: &str) -> Result<T, Invalid> {
        let text = self.text(name);
        text.parse().map_err(|_| Invalid::new(name, &format!("is '{text}', not {what}")))
    }

    fn number(&self, name: &'static str) -> Result<f64, Invalid> {
        self.parse(name, "a number")
    }

    fn count(&self, name: &'static str) -> Result<u32, Invalid> {
        self.parse(name, "a whole number")
    }

    fn bytes(&self, name: &'static str) -> Result<u64, Invalid> {
        Ok(self.parse::<Bytes>(name, "a size such as 64KiB")?.0)
    }

    fn size(&self, name: &'static str) -> Result<u32, Invalid> {
        u32::try_from(self.bytes(name)?).map_err(|_| Invalid::new(name, "must be below 4 GiB"))
    }

    fn rate(&self) -> Result<f64, Invalid> {
        Ok(self.parse::<Rate>("rate", "a rate such as 1000/s")?.0)
    }

    /// The arrival process of that mean rate; those with states have a duty of a quarter.
    fn arrivals(&self) -> Result<Arrivals, Invalid> {
        let rate_per_s = self.rate()?;
        Ok(match self.text("arrivals") {
            "fixed" => Arrivals::Fixed { rate_per_s },
            "poisson" => Arrivals::Poisson { rate_per_s },
            "on-off" => Arrivals::OnOff {
                rate_on_per_s: rate_per_s * 3.7,
                rate_off_per_s: rate_per_s * 0.1,
                mean_on_s: 0.25,
                mean_off_s: 0.75,
            },
            "pareto" => Arrivals::ParetoOnOff {
                sources: 64,
                rate_on_per_s: rate_per_s / 16.0,
                mean_on_s: 0.25,
                mean_off_s: 0.75,
                alpha: 1.4,
            },
            "cascade" => Arrivals::Cascade { rate_per_s, bias: 0.7 },
            other => {
                let cause = format!("is '{other}', not {}", ARRIVALS.what);
                return Err(Invalid::new("arrivals", &cause));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::rng::mix;

    #[test]
    fn every_pattern_makes_a_sound_trace_and_recipe() {
        let mut names = std::collections::BTreeSet::new();
        for pattern in all() {
            let workload =
                pattern.workload(&[]).unwrap_or_else(|e| panic!("{}: {e}", pattern.name));
            let trace = workload.generate(1, 2000).expect("sound");
            assert_eq!((trace.validate(), trace.count()), (Ok(()), 2000), "{}", pattern.name);
            assert!(names.insert(pattern.name), "{} twice", pattern.name);
            let recipe = crate::recipe::Recipe::Workload(workload);
            let text = recipe.to_toml();
            assert_eq!(crate::recipe::Recipe::from_toml(&text), Ok(recipe), "{text}");
        }
        assert!(names.len() >= 18 && find("zipf").is_some() && find("absent").is_none());
    }

    /// Same seed, same bytes, for ever: digests of 1000 requests, computed once.
    #[test]
    fn the_traces_of_a_seed_never_change() {
        let digest = |pattern: &NamedPattern| {
            let trace = pattern.workload(&[]).expect("sound").generate(7, 1000).expect("sound");
            let mut digest = 0;
            for index in 0..trace.count() {
                let request = trace.request(index);
                let rest = u64::from(request.len) << 20 | (request.op as u64) << 17;
                for word in [request.due.0, request.offset.0, rest | u64::from(request.stream)] {
                    digest = mix(digest ^ word);
                }
            }
            digest
        };
        let found: Vec<(&str, u64)> =
            all().map(|pattern| (pattern.name, digest(pattern))).collect();
        assert_eq!(found, PINNED);
    }
    const PINNED: &[(&str, u64)] = &[
        ("random", 5462546091418475907),
        ("sequential", 14200913569207909877),
        ("strided", 14177070861064874835),
        ("zipf", 17616284612961829077),
        ("hot-cold", 7431304944563561786),
        ("hotspots", 4766106338036428066),
        ("uflip-granularity", 8693591516983872663),
        ("uflip-alignment", 18253806271517995993),
        ("uflip-locality", 8182944782762704846),
        ("uflip-partitioning", 16686382767927811302),
        ("uflip-order", 8856989772704978684),
        ("uflip-parallelism", 6370834752826134201),
        ("uflip-mix", 8158137631571999902),
        ("uflip-pause", 2258005116321138500),
        ("uflip-bursts", 10002196836015371585),
        ("pts-iops", 17825024587495826365),
        ("pts-throughput", 738769011049361255),
        ("pts-latency", 10061304696916701990),
        ("pts-write-saturation", 9562359506958731399),
    ];

    #[track_caller]
    fn refused(pattern: &str, name: &str, value: &str) -> String {
        let pattern = find(pattern).expect("known");
        pattern.workload(&[(name.to_owned(), value.to_owned())]).expect_err("refused").to_string()
    }

    #[test]
    fn wrong_options_are_refused_by_name() {
        assert!(refused("random", "sise", "4KiB").starts_with("sise is no option of random: rate"));
        assert_eq!(refused("random", "size", "big"), "size is 'big', not a size such as 64KiB");
        assert!(refused("random", "size", "8GiB").contains("below 4 GiB"));
        assert!(refused("random", "arrivals", "now").contains("not fixed, poisson"));
        assert!(refused("zipf", "exponent", "-1").contains("exponent must be above 0"));
        assert!(refused("uflip-order", "base", "XX").contains("SR, RR, SW or RW"));
    }

    /// A rate is a mean rate, whatever the process.
    #[test]
    fn every_process_has_the_rate_asked_for() {
        for arrivals in ["fixed", "poisson", "on-off", "pareto", "cascade"] {
            let given = [("arrivals".to_owned(), arrivals.to_owned())];
            let workload = find("random").expect("known").workload(&given).expect("sound");
            let trace = workload.generate(1, 400_000).expect("sound");
            let rate = trace.count() as f64 / trace.span().as_secs_f64();
            assert!((rate / 1000.0 - 1.0).abs() < 0.15, "{arrivals}: {rate}");
        }
    }
}
