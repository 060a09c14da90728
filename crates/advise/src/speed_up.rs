//! What if: a part that is faster (Amdahl 1967), a commit that is not waited for.

use serde::{Deserialize, Serialize};

use crate::error::{not_negative, positive, share};
use crate::{Answer, Error, Interval};

/// Speed-up of a whole whose part, `part_share` of its time, gets `factor` times as fast.
///
/// `S = 1 / ((1 - f) + f / k)`.
///
/// # Errors
/// Where the share is not one, or the factor not above 0.
pub fn amdahl(part_share: f64, factor: f64) -> Result<f64, Error> {
    let (part, factor) = (share("the share of time", part_share)?, positive("the factor", factor)?);
    Ok(1.0 / (1.0 - part + part / factor))
}

/// Speed-up where a part of the time becomes `factor` times as fast, and what bounds it.
///
/// # Errors
/// As [`amdahl`].
pub fn faster(part: &str, part_share: Interval, factor: f64) -> Result<Answer, Error> {
    for end in [part_share.low, part_share.high] {
        amdahl(end, factor)?;
    }
    let of = |share: f64| amdahl(share, factor).unwrap_or(f64::NAN);
    // A factor below 1 slows down: more of it is worse.
    let figure = if factor >= 1.0 { part_share.rising(of) } else { part_share.falling(of) };
    let most = |share: f64| match share {
        share if share >= 1.0 => "without bound".to_owned(),
        share => format!("at most {:.2} times", 1.0 / (1.0 - share)),
    };
    Ok(Answer::told(format!("speed-up with {part} {factor} times as fast"), figure, "times")
        .holding(format!(
            "transactions of which {:.0} % of the time is {part}, before or after the rest",
            part_share.value * 100.0
        ))
        .holding("nothing else becomes the limit: where parts overlap, simulate it instead")
        .changed(format!(
            "however fast {part} gets, the whole gets faster {}",
            most(part_share.value)
        )))
}

/// A commit that is answered before it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relaxed {
    /// Commits per second as it is.
    pub commits_per_s: f64,
    /// Share of a transaction's time that it waits for the log.
    pub log_share: Interval,
    /// Longest time until what was committed is durable, s.
    pub window_s: f64,
}

impl Relaxed {
    /// How much faster transactions get, and how many a crash may lose.
    ///
    /// # Errors
    /// Where a figure cannot be.
    pub fn answers(&self) -> Result<[Answer; 2], Error> {
        let rate = positive("commits per second", self.commits_per_s)?;
        let window = not_negative("the window", self.window_s)?;
        for end in [self.log_share.low, self.log_share.high] {
            share("the share of the log", end)?;
        }
        let question = "speed-up where commits do not wait for the log";
        let speed_up = if self.log_share.high >= 1.0 {
            Answer::untold(question, "times", "all of the time is the log: the rest is not known")
        } else {
            Answer::told(question, self.log_share.rising(|f| 1.0 / (1.0 - f)), "times")
        };
        let speed_up = speed_up
            .holding("as many terminals as now, each with one transaction at a time")
            .holding("the log is still written: it must keep up with the higher rate")
            .changed("processors, locks or reads that become the limit make it less");
        let most = speed_up.figure.map_or(1.0, |figure| figure.value);
        let lost = Interval::new(rate * most * window, 0.0, rate * most * window);
        let lost = Answer::told("acknowledged transactions that a crash may lose", lost, "")
            .holding(format!("what was committed is durable after at most {window} s"))
            .holding("a crash of the machine; one of the server alone loses less")
            .changed("a shorter window loses less in proportion");
        Ok([speed_up, lost])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Petrov et al. 2010: an OLTP database does I/O for 60 % of its time. Printed 2.2 and 1.5,
    /// exactly 2.174 and 1.5625.
    #[test]
    fn the_slides_of_2010_exactly() {
        assert_eq!(amdahl(0.4, 10.0), Ok(1.5625));
        let storage = amdahl(0.6, 10.0).unwrap();
        assert!((storage - 1.0 / 0.46).abs() < 1e-12, "{storage}");
        assert_eq!((storage * 10.0).round() / 10.0, 2.2);
    }

    #[test]
    fn the_bound_and_the_ends() {
        let half = Interval::new(0.5, 0.25, 0.75);
        let up = faster("storage", half, 2.0).unwrap();
        let figure = up.figure.unwrap();
        for (found, expected) in
            [(figure.low, 8.0 / 7.0), (figure.value, 4.0 / 3.0), (figure.high, 1.6)]
        {
            assert!((found - expected).abs() < 1e-12, "{figure:?}");
        }
        assert!(up.changed_by[0].contains("at most 2.00 times"), "{up:?}");
        let down = faster("storage", half, 0.5).unwrap().figure.unwrap();
        assert!(down.low < down.value && down.value < down.high && down.high < 1.0, "{down:?}");
        assert_eq!(amdahl(1.0, 7.0), Ok(7.0));
        assert_eq!(amdahl(0.0, 7.0), Ok(1.0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let name = |error: Error| error.to_string();
        assert!(name(amdahl(1.5, 2.0).unwrap_err()).contains("from 0 to 1"));
        assert!(name(amdahl(0.5, 0.0).unwrap_err()).contains("above 0"));
        assert!(faster("x", Interval::new(0.9, 0.8, 1.2), 2.0).is_err());
    }

    #[test]
    fn commits_that_do_not_wait_are_faster_and_lose_a_window() {
        let relaxed =
            Relaxed { commits_per_s: 100.0, log_share: Interval::exact(0.75), window_s: 0.6 };
        let [faster, lost] = relaxed.answers().unwrap();
        assert_eq!(faster.figure, Some(Interval::exact(4.0)));
        let lost = lost.figure.unwrap();
        assert!((lost.high - 240.0).abs() < 1e-9 && lost.low == 0.0, "{lost:?}");
        let all = Relaxed { log_share: Interval::exact(1.0), ..relaxed }.answers().unwrap();
        assert!(all[0].figure.is_none(), "{all:?}");
    }
}
