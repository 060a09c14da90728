//! The highest rate of arrivals at which a quantile of the response stays within a limit.
//!
//! Transactions arrive at random, whatever is still active, and wait for a free session. Up to
//! the rate that a closed loop reaches the quantile grows with the rate, so the rate is found by
//! bisection on a logarithmic scale. What is simulated at each step are other arrivals and the
//! same seed, so the answer is the same for the same question.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sim::transactions::{Load, Setup, Think, TransactionOutcome};
use stats::Histogram;
use units::Nanos;

use crate::Error;

/// Transactions that are simulated for each rate that is tried: 200 of them are beyond a p99.
const TRIED: u64 = 20_000;
/// The lowest rate that is tried, as a share of what a closed loop does: nobody waits for anybody.
const LOWEST: f64 = 1e-3;
/// The rate is found to within this factor.
const PRECISION: f64 = 1.01;
/// A rate is carried where at least this share of what arrives is also answered.
const CARRIED: f64 = 0.98;

/// A limit on a quantile of the response time: `p99<10ms`, `new_order p95<50ms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Goal {
    /// The kind of transaction; all together where none is named.
    pub kind: Option<String>,
    /// The quantile, above 0 and below 1.
    pub quantile: f64,
    /// From the request to the answer.
    pub limit: Nanos,
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no limit on a quantile such as 'p99<10ms'");
        let (what, limit) = text.split_once('<').ok_or_else(bad)?;
        let (kind, quantile) = match what.trim().rsplit_once(char::is_whitespace) {
            Some((kind, quantile)) => (Some(kind.trim().to_owned()), quantile),
            None => (None, what.trim()),
        };
        let digits = quantile.strip_prefix('p').ok_or_else(bad)?;
        let percent: f64 = digits.parse().map_err(|_| bad())?;
        let limit: Nanos = limit.trim().parse().map_err(|_| bad())?;
        if !(percent > 0.0 && percent < 100.0) || limit.0 == 0 {
            return Err(bad());
        }
        Ok(Self { kind, quantile: percent / 100.0, limit })
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind} ")?;
        }
        // 99.9 is no sum of powers of two; four digits are more than anybody asks for.
        let percent = (self.quantile * 1e6).round() / 1e4;
        write!(f, "p{percent}<{}", self.limit)
    }
}

impl Goal {
    /// The quantile of what was simulated, ns; none where no such transaction ended.
    fn reached(&self, found: &TransactionOutcome) -> Option<u64> {
        let mut all = Histogram::new();
        let own = |name: &String| self.kind.as_ref().is_none_or(|kind| kind == name);
        for kind in found.kinds.iter().filter(|kind| own(&kind.name)) {
            all.merge(&kind.response);
        }
        (!all.is_empty()).then(|| all.quantile(self.quantile))
    }

    /// Whether what was simulated stays within the limit, at this rate of arrivals.
    fn holds(&self, found: &TransactionOutcome, per_s: f64) -> bool {
        let carried = found.dropped == 0 && found.transactions_per_s >= CARRIED * per_s;
        carried && self.reached(found).is_some_and(|ns| ns <= self.limit.0)
    }
}

/// The highest rate at which the goal holds, per second, and what it was simulated to be; the rate
/// is 0 where the goal does not hold even though nobody waits for anybody.
pub(crate) fn highest_rate(
    setup: &Setup,
    goal: &Goal,
    simulate: &dyn Fn(&Setup) -> Result<TransactionOutcome, Error>,
) -> Result<(f64, TransactionOutcome), Error> {
    if let Some(kind) = goal.kind.as_ref().filter(|kind| !setup.kinds.contains(kind)) {
        return Err(Error::Kind { kind: kind.clone(), kinds: setup.kinds.join(", ") });
    }
    let mut setup = setup.clone();
    setup.length.max_transactions = TRIED;
    let closed = Setup { load: Load::Closed(Think::default()), ..setup.clone() };
    let most = simulate(&closed)?.transactions_per_s;
    let mut at = |per_s: f64| {
        setup.load = Load::Open { per_s };
        simulate(&setup)
    };
    let (mut low, mut high) = (most * LOWEST, most);
    let mut best = at(low)?;
    if !goal.holds(&best, low) {
        return Ok((0.0, best));
    }
    while high / low > PRECISION {
        let middle = (low * high).sqrt();
        let found = at(middle)?;
        if goal.holds(&found, middle) {
            (low, best) = (middle, found);
        } else {
            high = middle;
        }
    }
    Ok((low, best))
}

#[cfg(test)]
mod tests {
    use sim::transactions::{LockClass, Step, Templates, transactions};

    use super::*;
    use crate::learn::constant_device;

    const MS: u64 = 1_000_000;

    /// Sessions without number at one row that each holds for 1 ms on average, first come, first
    /// served.
    fn one_row() -> Setup {
        let mut templates = Templates::default();
        for k in 0..20_000 {
            let share = (f64::from(k) + 0.5) / 20_000.0;
            let held_ns = -(1.0 - share).ln() * MS as f64;
            templates.push(0, &[Step::Lock(0), Step::Client(held_ns as u64)]);
        }
        let mut setup = crate::tests::learned().setup;
        setup.terminals = 10_000;
        setup.locks = vec![LockClass { name: "row".to_owned(), keys: 1, home: false }];
        setup.templates = templates;
        setup.background.clear();
        setup.log.rule.next_at_random = false;
        setup
    }

    fn simulate(setup: &Setup) -> Result<TransactionOutcome, Error> {
        let device = model::Linear::new(&constant_device(0.0, 0.0, 0.0), 1);
        Ok(transactions(&mut [Box::new(device)], setup)?)
    }

    /// M/M/1: the response is exponential with the rate of service less that of arrivals
    /// (Kleinrock, Queueing Systems 1, section 5.6), so p99 = ln 100 / (1/s - rate).
    #[test]
    fn the_rate_at_one_row_is_that_of_theory() {
        for limit_ms in [10.0, 20.0, 60.0] {
            let goal: Goal = format!("p99<{limit_ms}ms").parse().unwrap();
            let (rate, found) = highest_rate(&one_row(), &goal, &simulate).unwrap();
            let expected = 1000.0 - 100f64.ln() / (limit_ms / 1e3);
            let error = rate / expected - 1.0;
            assert!(error.abs() < 0.05, "{limit_ms} ms: {rate}, by theory {expected}");
            assert!(goal.reached(&found).unwrap() <= goal.limit.0);
        }
        let goal: Goal = "p99<4ms".parse().unwrap();
        let (rate, found) = highest_rate(&one_row(), &goal, &simulate).unwrap();
        assert!(rate == 0.0 && goal.reached(&found).unwrap() > 4 * MS, "p99 alone is 4.6 ms");
    }

    #[test]
    fn a_goal_of_no_kind_is_refused() {
        let goal: Goal = "delivery p99<4ms".parse().unwrap();
        let error = highest_rate(&one_row(), &goal, &simulate).unwrap_err();
        assert_eq!(error.to_string(), "the capture has no transactions of the kind 'delivery'");
    }

    #[test]
    fn goals_are_read_and_written() {
        let goal: Goal = "p99<10ms".parse().unwrap();
        assert_eq!(goal, Goal { kind: None, quantile: 0.99, limit: Nanos(10_000_000) });
        let goal: Goal = " new_order  p99.9 < 1s".parse().unwrap();
        assert_eq!((goal.kind.as_deref(), goal.limit.0), (Some("new_order"), 1_000_000_000));
        assert_eq!(goal.to_string().parse(), Ok(goal.clone()));
        assert!((goal.quantile - 0.999).abs() < 1e-12);
        for bad in ["", "p99", "p99<", "99<1s", "p0<1s", "p100<1s", "p99<0s", "p99>1s", "pp<1s"] {
            assert!(bad.parse::<Goal>().is_err(), "{bad}");
        }
    }
}
