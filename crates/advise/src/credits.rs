//! When the burst credits of a volume run out, and what then.
//!
//! Credits come back at a base rate and are spent at the rate of use, up to the burst rate; at most
//! this many are saved (AWS gp2: I/Os; st1, sc1: bytes). Between two changes of the load all is
//! linear, so the day is walked from corner to corner, exactly.

use serde::{Deserialize, Serialize};

use crate::error::{not_negative, positive, share};
use crate::{Answer, Error, Interval};

/// Credits of a volume, in I/Os or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// What comes back per second, and what passes once all are spent.
    pub base_per_s: f64,
    /// What passes per second while there are any.
    pub burst_per_s: f64,
    /// Most that are saved.
    pub most: f64,
    /// Share of them at the start.
    pub start_share: f64,
}

/// A load that is constant for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hours {
    /// How long, s.
    pub seconds: f64,
    /// What is asked for per second.
    pub demand_per_s: f64,
}

/// What a curve of loads does to the credits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Day {
    /// When there are none left for the first time, s; none where it does not happen.
    pub run_out_s: Option<f64>,
    /// How long the load is held back, s, for lack of credits or by the burst rate.
    pub held_back_s: f64,
    /// Share of what was asked for that did not pass.
    pub unmet_share: f64,
    /// Credits at the end, as a share of the most.
    pub end_share: f64,
}

impl Bucket {
    fn check(&self) -> Result<(), Error> {
        positive("the base rate", self.base_per_s)?;
        not_negative("the credits", self.most)?;
        share("the share of credits at the start", self.start_share)?;
        if self.burst_per_s < self.base_per_s {
            let must = "at least the base rate";
            let name = "the burst rate".to_owned();
            return Err(Error::Figure { name, value: self.burst_per_s, must });
        }
        Ok(())
    }

    /// Walks a curve of loads, once.
    ///
    /// # Errors
    /// Where a figure cannot be.
    pub fn day(&self, curve: &[Hours]) -> Result<Day, Error> {
        self.check()?;
        let (mut at_s, mut credits) = (0.0, self.most * self.start_share);
        let (mut run_out_s, mut held_back_s, mut asked, mut passed) = (None, 0.0, 0.0, 0.0);
        for hours in curve {
            let demand = not_negative("the load", hours.demand_per_s)?;
            let mut left = not_negative("the time", hours.seconds)?;
            asked += demand * left;
            while left > 0.0 {
                let served =
                    demand.min(if credits > 0.0 { self.burst_per_s } else { self.base_per_s });
                let change = self.base_per_s - served;
                // Until credits are gone, or full, or the load changes.
                let until = match change {
                    change if change < 0.0 => (credits / -change).min(left),
                    _ => left,
                };
                passed += served * until;
                held_back_s += if served < demand { until } else { 0.0 };
                let spent = change < 0.0 && until < left;
                credits =
                    if spent { 0.0 } else { (credits + change * until).clamp(0.0, self.most) };
                at_s += until;
                left -= until;
                if change < 0.0 && credits <= 0.0 && run_out_s.is_none() {
                    run_out_s = Some(at_s);
                }
            }
        }
        Ok(Day {
            run_out_s,
            held_back_s,
            unmet_share: if asked > 0.0 { 1.0 - passed / asked } else { 0.0 },
            end_share: if self.most > 0.0 { credits / self.most } else { 0.0 },
        })
    }

    /// How long a constant load runs until it is held back.
    ///
    /// # Errors
    /// Where a figure cannot be.
    pub fn run_out(&self, demand: Interval, unit: &str) -> Result<Answer, Error> {
        self.check()?;
        not_negative("the load", demand.low)?;
        let question = "time until the credits are spent";
        let after = format!("then {} {unit} pass, and no more", number(self.base_per_s));
        let until = |demand: f64| {
            self.most * self.start_share / (demand.min(self.burst_per_s) - self.base_per_s)
        };
        let answer = if demand.value <= self.base_per_s {
            let why = format!(
                "never: {} {unit} are no more than the {} that come back",
                number(demand.value),
                number(self.base_per_s)
            );
            Answer::untold(question, "s", why)
        } else {
            // A lower end that never runs out has no upper time.
            let high =
                if demand.low > self.base_per_s { until(demand.low) } else { Interval::UNBOUNDED };
            Answer::told(
                question,
                Interval::new(until(demand.value), until(demand.high), high),
                "s",
            )
            .holding(after)
        };
        Ok(answer
            .holding(format!(
                "{} credits at the start, {} {unit} in a burst",
                number(self.most * self.start_share),
                number(self.burst_per_s)
            ))
            .changed("hours of less load give credits back; a larger volume has a higher base"))
    }
}

/// Without decimals where it is large.
fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5.4 million I/O credits, 3,000 per second in a burst, 300 come back: half an hour at least,
    /// as the provider's documentation of gp2 says for 100 GiB (33 minutes).
    const GP2: Bucket =
        Bucket { base_per_s: 300.0, burst_per_s: 3000.0, most: 5.4e6, start_share: 1.0 };

    #[test]
    fn a_constant_load_runs_out_by_closed_form() {
        let found = GP2.run_out(Interval::exact(3000.0), "I/Os per second").unwrap();
        assert!((found.figure.unwrap().value - 2000.0).abs() < 1e-9, "{found:?}");
        let more = GP2.run_out(Interval::exact(9000.0), "I/Os per second").unwrap();
        assert_eq!(more.figure, found.figure, "a burst is no faster than it is");
        let never = GP2.run_out(Interval::exact(300.0), "I/Os per second").unwrap();
        assert!(never.figure.is_none() && never.cannot_be_told.starts_with("never"), "{never:?}");
    }

    #[test]
    fn a_day_is_walked_from_corner_to_corner() {
        let hours = |hours: f64, demand_per_s| Hours { seconds: hours * 3600.0, demand_per_s };
        let quiet = GP2.day(&[hours(24.0, 300.0)]).unwrap();
        assert_eq!((quiet.run_out_s, quiet.unmet_share, quiet.end_share), (None, 0.0, 1.0));
        // Spent after 2,000 s of 3,600; the rest of the hour passes at 300.
        let busy = GP2.day(&[hours(1.0, 3000.0)]).unwrap();
        assert_eq!((busy.run_out_s, busy.end_share), (Some(2000.0), 0.0));
        assert!((busy.held_back_s - 1600.0).abs() < 1e-6, "{busy:?}");
        assert!((busy.unmet_share - 1600.0 * 2700.0 / 10.8e6).abs() < 1e-9, "{busy:?}");
        // Five hours without load give all of it back.
        let rested = GP2.day(&[hours(1.0, 3000.0), hours(5.0, 0.0)]).unwrap();
        assert_eq!(rested.end_share, 1.0);
        let half = GP2.day(&[hours(1.0, 3000.0), hours(2.5, 0.0)]).unwrap();
        assert!((half.end_share - 0.5).abs() < 1e-9, "{half:?}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let bad = Bucket { burst_per_s: 200.0, ..GP2 };
        assert!(bad.day(&[]).unwrap_err().to_string().contains("at least the base rate"));
        assert!(GP2.day(&[Hours { seconds: -1.0, demand_per_s: 1.0 }]).is_err());
    }
}
