//! The highest rate at which a quantile of the response stays within a limit, found on the real
//! database by short runs: which rate to run next, and what the runs so far tell.
//!
//! A run tells how many of its requests were over the limit. With the quantile q a share of 1 - q
//! may be. Where the share lies more than three standard deviations below it the goal holds at that
//! rate; where it lies as far above, the goal fails; between, the rate is run again, up to three
//! times, and its runs are taken together; where one says what another denies, they do not tell.
//! The deviation is that of a binomial in which ten requests count as one, for requests are late in
//! bunches. Requests without an answer at the end of a run count as over the limit where they had
//! waited for longer, and either way where they had not: a rate holds only if it does so whatever
//! became of them.
//!
//! The search halves the bracket between a rate that holds and one that fails on a logarithmic
//! scale. Rates at which the runs cannot tell split it; the search goes on at both sides of them.
//! At its end each side of the bracket has been run twice, because one stall of the disk can fail a
//! rate that is fine. This module is arithmetic: it runs nothing, and is tested on a queue whose
//! answer is known (M/M/1).

use oltp::{KindResult, OltpResult};
use predict::Goal;
use serde::{Deserialize, Serialize};

/// Version of the shape of [`Found`].
const SCHEMA: u32 = 1;

/// The bracket is closed to this factor, where the runs can tell rates so near to each other apart.
const PRECISION: f64 = 1.05;

/// Runs at one rate at most: the deviation falls with their root, time does not.
const REPEATS_MAX: usize = 3;

/// Runs of a search at most.
const RUNS_MAX: usize = 30;

/// Standard deviations of a binomial that a share must lie off.
const DEVIATIONS: f64 = 3.0;

/// Requests that are late together: behind one stall, or in one busy period of a queue. So many are
/// taken for one.
const BUNCH: f64 = 10.0;

/// The lowest rate that is tried, as a share of what a closed loop does.
const LOWEST: f64 = 1e-3;

/// The highest.
const HIGHEST: f64 = 16.0;

/// What the runs at a rate say about the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// It holds.
    Holds,
    /// The runs do not tell.
    Unclear,
    /// It does not hold.
    Fails,
}

/// One run at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// Arrivals per second that were asked for.
    pub rate_per_s: f64,
    /// Transactions per second that were done.
    pub done_per_s: f64,
    /// Requests that the goal speaks of.
    pub requests: u64,
    /// Of these, known to have taken longer than the limit.
    pub over: u64,
    /// Of these, without an answer after less than the limit.
    pub unknown: u64,
    /// The quantile, milliseconds.
    pub quantile_ms: f64,
    /// Whether it may be longer, because requests had no answer.
    pub at_least: bool,
    /// Seed of the run's inputs.
    pub seed: u64,
}

impl Try {
    /// What a run tells about a goal.
    pub fn of(result: &OltpResult, rate_per_s: f64, goal: &Goal) -> Self {
        let limit_ns = goal.limit.0;
        let (mut answered, mut waited) = (stats::Histogram::new(), stats::Histogram::new());
        for kind in of_goal(result, goal) {
            answered.merge(&kind.response_ns);
            waited.merge(&kind.waited_ns);
        }
        let over = |all: &stats::Histogram| -> u64 {
            let longer = all.buckets().into_iter().filter(|(ns, _)| *ns > limit_ns);
            longer.map(|(_, count)| count).sum()
        };
        let quantile = oltp::Bounds::of(&answered, &waited, goal.quantile);
        Self {
            rate_per_s,
            done_per_s: result.transactions_per_s,
            requests: answered.count() + waited.count(),
            over: over(&answered) + over(&waited),
            unknown: waited.count() - over(&waited),
            quantile_ms: quantile.least_ns as f64 / 1e6,
            at_least: quantile.open_ended(),
            seed: result.options.seed,
        }
    }
}

/// The kinds that a goal speaks of.
fn of_goal<'a>(result: &'a OltpResult, goal: &'a Goal) -> impl Iterator<Item = &'a KindResult> {
    let own = |name: &str| goal.kind.as_ref().is_none_or(|kind| kind == name);
    result.transactions.iter().filter(move |kind| own(kind.kind.name()))
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Version of this shape.
    pub schema: u32,
    /// What was asked.
    pub goal: Goal,
    /// What the terminals do without thinking, transactions per second: the search starts there.
    pub closed_loop_per_s: f64,
    /// The highest rate at which the goal was seen to hold; none where it was not.
    pub holds_at_per_s: Option<f64>,
    /// The lowest rate at which it was seen to fail.
    pub fails_at_per_s: Option<f64>,
    /// Whether the two are as near to each other as the search brings them, so that the rest of the
    /// bracket is what runs of this length cannot tell.
    pub ended: bool,
    /// Whether no rate held because runs of this length have too few requests to tell.
    pub too_short: bool,
    /// Whether the user stopped it; what was done is in `tries`.
    pub interrupted: bool,
    /// The runs, in order.
    pub tries: Vec<Try>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Run at this rate.
    Run(f64),
    /// Nothing: the bracket is closed, or the runs are spent.
    Done,
}

/// The runs at one rate, taken together.
#[derive(Clone, Copy, Debug)]
struct Level {
    rate: f64,
    runs: usize,
    says: Says,
    /// Whether so few requests could not hold even if none of them were late.
    too_few: bool,
}

/// A search that goes on.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    closed_loop_per_s: f64,
    tries: Vec<Try>,
}

impl Search {
    /// A search below and above what a closed loop does.
    pub fn new(goal: Goal, closed_loop_per_s: f64) -> Self {
        Self { goal, closed_loop_per_s, tries: Vec::new() }
    }

    /// Takes the outcome of a run.
    pub fn tell(&mut self, run: Try) {
        self.tries.push(run);
    }

    /// Runs so far.
    pub fn runs(&self) -> usize {
        self.tries.len()
    }

    /// What the runs at a rate say together; nothing where one alone says what another denies.
    pub fn says(&self, rate_per_s: f64) -> Says {
        let at = |run: &&Try| run.rate_per_s.total_cmp(&rate_per_s).is_eq();
        let runs: Vec<&Try> = self.tries.iter().filter(at).collect();
        let alone = |says| runs.iter().any(|run| self.together(&[run]) == says);
        if alone(Says::Holds) && alone(Says::Fails) {
            return Says::Unclear;
        }
        self.together(&runs)
    }

    /// Requests that a rate must have for its runs to be able to hold.
    pub fn requests_needed(&self) -> u64 {
        let odds = self.goal.quantile / (1.0 - self.goal.quantile);
        (DEVIATIONS * DEVIATIONS * odds * BUNCH).floor() as u64 + 1
    }

    fn too_few(&self, rate_per_s: f64) -> bool {
        let at = self.tries.iter().filter(|run| run.rate_per_s.total_cmp(&rate_per_s).is_eq());
        at.map(|run| run.requests).sum::<u64>() < self.requests_needed()
    }

    /// What runs say as if they were one.
    fn together(&self, runs: &[&Try]) -> Says {
        let sum = |of: fn(&Try) -> u64| runs.iter().map(|run| of(run)).sum::<u64>() as f64;
        let requests = sum(|run| run.requests);
        let allowed = 1.0 - self.goal.quantile;
        let off = DEVIATIONS * (allowed * self.goal.quantile * requests * BUNCH).sqrt();
        let (over, unknown) = (sum(|run| run.over), sum(|run| run.unknown));
        if over > allowed * requests + off {
            Says::Fails
        } else if over + unknown < allowed * requests - off {
            Says::Holds
        } else {
            Says::Unclear
        }
    }

    /// The rates that were run, ascending.
    fn levels(&self) -> Vec<Level> {
        let mut rates: Vec<f64> = self.tries.iter().map(|run| run.rate_per_s).collect();
        rates.sort_by(f64::total_cmp);
        let mut levels: Vec<Level> = Vec::new();
        for rate in rates {
            let same = |level: &&mut Level| level.rate.total_cmp(&rate).is_eq();
            if let Some(level) = levels.last_mut().filter(same) {
                level.runs += 1;
                continue;
            }
            let (says, too_few) = (self.says(rate), self.too_few(rate));
            levels.push(Level { rate, runs: 1, says, too_few });
        }
        levels
    }

    /// The highest rate that holds below the lowest that fails, and that one.
    fn bracket(levels: &[Level]) -> (Option<Level>, Option<Level>) {
        let failing = levels.iter().find(|level| level.says == Says::Fails).copied();
        let below = |level: &&Level| failing.is_none_or(|failing| level.rate < failing.rate);
        let holding = |level: &&Level| level.says == Says::Holds;
        (levels.iter().filter(below).rfind(holding).copied(), failing)
    }

    /// What to run next.
    pub fn next(&self) -> Step {
        let levels = self.levels();
        let again = |level: &&Level| level.runs < REPEATS_MAX;
        let (Some(lowest), Some(highest)) = (levels.first(), levels.last()) else {
            return Step::Run(rounded(self.closed_loop_per_s));
        };
        if self.tries.len() >= RUNS_MAX {
            return Step::Done;
        }
        let unclear = |level: &&Level| level.says == Says::Unclear;
        if let Some(level) = levels.iter().filter(unclear).find(again) {
            return Step::Run(level.rate);
        }
        let (holding, failing) = Self::bracket(&levels);
        // A rate above one that fails may not hold: one of them was a stall, or luck.
        let contradicts = |level: &Level| {
            level.says == Says::Holds && failing.is_some_and(|failing| level.rate > failing.rate)
        };
        if let Some(level) = failing.as_ref().filter(again)
            && levels.iter().any(contradicts)
        {
            return Step::Run(level.rate);
        }
        match (holding, failing) {
            // Lower rates have fewer requests still.
            (None, _) if lowest.says == Says::Unclear && lowest.too_few => Step::Done,
            (None, _) if lowest.rate / 2.0 < LOWEST * self.closed_loop_per_s => Step::Done,
            (None, _) => Step::Run(rounded(lowest.rate / 2.0)),
            (_, None) if highest.rate * 1.5 > HIGHEST * self.closed_loop_per_s => Step::Done,
            (_, None) => Step::Run(rounded(highest.rate * 1.5)),
            (Some(holding), Some(failing)) => narrow(&levels, holding, failing),
        }
    }

    /// What is known so far.
    pub fn found(self, interrupted: bool) -> Found {
        let levels = self.levels();
        let (holding, failing) = Self::bracket(&levels);
        let untold = |level: &Level| level.says == Says::Unclear && level.too_few;
        let too_short = holding.is_none() && levels.first().is_some_and(untold);
        let ended = !interrupted && self.next() == Step::Done && self.tries.len() < RUNS_MAX;
        Found {
            schema: SCHEMA,
            closed_loop_per_s: self.closed_loop_per_s,
            holds_at_per_s: holding.map(|level| level.rate),
            fails_at_per_s: failing.map(|level| level.rate),
            ended,
            too_short,
            interrupted,
            goal: self.goal,
            tries: self.tries,
        }
    }
}

/// Halves the wider gap beside what is unclear, then runs both ends a second time.
fn narrow(levels: &[Level], holding: Level, failing: Level) -> Step {
    let inside = levels.iter().filter(|l| l.rate > holding.rate && l.rate < failing.rate);
    let inside: Vec<&Level> = inside.collect();
    let gaps = match (inside.first(), inside.last()) {
        (Some(first), Some(last)) => [(holding.rate, first.rate), (last.rate, failing.rate)],
        _ => [(holding.rate, failing.rate), (1.0, 1.0)],
    };
    let width = |gap: &(f64, f64)| gap.1 / gap.0;
    let widest = if width(&gaps[1]) > width(&gaps[0]) { gaps[1] } else { gaps[0] };
    let middle = rounded((widest.0 * widest.1).sqrt());
    if width(&widest) > PRECISION && middle > widest.0 && middle < widest.1 {
        return Step::Run(middle);
    }
    match [holding, failing].iter().find(|level| level.runs < 2) {
        Some(level) => Step::Run(level.rate),
        None => Step::Done,
    }
}

/// To three digits, so that a rate that is shown is the rate that ran.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powi(rate.log10().floor() as i32 - 2);
    let steps = (rate / unit).round();
    // Division by a power of ten is exact where a product with its inverse is not.
    if unit < 1.0 { steps / (1.0 / unit).round() } else { steps * unit }
}

#[cfg(test)]
mod tests {
    use stats::rng::Rng;

    use super::*;

    /// One server without a bound on its queue that serves 1000 a second (Kleinrock, Queueing
    /// Systems 1, section 5.6): runs of so many requests, each served in its turn.
    fn run(goal: &Goal, rate: f64, requests: u64, seed: u64) -> Try {
        let mut rng = Rng::new(seed);
        let mut response = stats::Histogram::new();
        let (mut due, mut free) = (0.0f64, 0.0f64);
        for _ in 0..requests {
            due += rng.exponential(1.0 / rate);
            free = free.max(due) + rng.exponential(1e-3);
            response.record(((free - due) * 1e9) as u64);
        }
        let longer = response.buckets().into_iter().filter(|(ns, _)| *ns > goal.limit.0);
        Try {
            rate_per_s: rate,
            done_per_s: requests as f64 / free,
            requests,
            over: longer.map(|(_, count)| count).sum(),
            unknown: 0,
            quantile_ms: response.quantile(goal.quantile) as f64 / 1e6,
            at_least: false,
            seed,
        }
    }

    fn search(goal: &Goal, requests: u64, seed: u64) -> Found {
        let mut search = Search::new(goal.clone(), 1000.0);
        while let Step::Run(rate) = search.next() {
            search.tell(run(goal, rate, requests, seed + 1000 * search.runs() as u64));
        }
        search.found(false)
    }

    /// p99 of the response is ln 100 / (1000 - rate).
    #[test]
    fn the_bracket_holds_what_theory_says() {
        for (limit_ms, seed) in [(10.0, 1), (10.0, 2), (20.0, 3), (8.0, 4)] {
            let goal: Goal = format!("p99<{limit_ms}ms").parse().unwrap();
            let expected = 1000.0 - 100f64.ln() / (limit_ms / 1e3);
            let found = search(&goal, 100_000, seed);
            let (low, high) = (found.holds_at_per_s.unwrap(), found.fails_at_per_s.unwrap());
            assert!(low < expected && expected < high, "{expected}: {low} to {high}");
            assert!(high / low < 1.35 && found.ended, "{low} to {high}: {:#?}", found.tries);
            assert!(found.tries.len() <= RUNS_MAX);
            for end in [low, high] {
                let same = found.tries.iter().filter(|run| run.rate_per_s.total_cmp(&end).is_eq());
                assert!(same.count() >= 2, "an end of the bracket ran once");
            }
        }
    }

    /// The bracket is what the runs can tell: longer runs, a narrower one.
    #[test]
    fn longer_runs_tell_more() {
        let goal: Goal = "p99<10ms".parse().unwrap();
        let width = |requests: u64| {
            let found = search(&goal, requests, 5);
            found.fails_at_per_s.unwrap() / found.holds_at_per_s.unwrap()
        };
        let (short, long) = (width(20_000), width(1_000_000));
        assert!(long < 1.15 && short > long, "{short} {long}");
    }

    #[test]
    fn a_goal_that_never_holds_and_one_that_always_does_end() {
        let found = search(&"p99<1ms".parse().unwrap(), 5_000, 1);
        assert_eq!((found.holds_at_per_s, found.ended), (None, true));
        assert!(found.fails_at_per_s.unwrap() < 2.0, "{found:?}");
        let mut search = Search::new("p99<10ms".parse().unwrap(), 100.0);
        while let Step::Run(rate) = search.next() {
            let at = run(&search.goal, rate / 100.0, 5_000, 1);
            search.tell(Try { rate_per_s: rate, ..at });
        }
        let found = search.found(false);
        assert_eq!(found.fails_at_per_s, None);
        assert!(found.holds_at_per_s.unwrap() > 1000.0, "{found:?}");
    }

    /// Of runs with too few requests nothing is said, and lower rates are not tried.
    #[test]
    fn runs_that_are_too_short_end_the_search() {
        let found = search(&"p99<100ms".parse().unwrap(), 900, 1);
        assert_eq!((found.holds_at_per_s, found.too_short), (None, true), "{found:?}");
        assert!(found.tries.len() <= 6, "{found:?}");
    }

    /// What waits at the end of a run neither holds nor is over the limit before its time.
    #[test]
    fn unanswered_requests_are_neither_good_nor_bad() {
        let says = |over, unknown| {
            let mut search = Search::new("p90<10ms".parse().unwrap(), 100.0);
            let run = run(&search.goal, 100.0, 1, 1);
            search.tell(Try { rate_per_s: 100.0, requests: 1000, over, unknown, ..run });
            search.says(100.0)
        };
        // A hundred of a thousand may be over; three deviations of bunches of ten are 90.
        assert_eq!(says(9, 0), Says::Holds);
        assert_eq!(says(5, 6), Says::Unclear);
        assert_eq!(says(189, 500), Says::Unclear);
        assert_eq!(says(190, 0), Says::Fails);
    }

    /// A stall fails a rate that is fine; the higher rate that holds has it run again.
    #[test]
    fn a_stall_is_run_again() {
        let mut search = Search::new("p99<10ms".parse().unwrap(), 100.0);
        let at = |rate, over| Try {
            rate_per_s: rate,
            requests: 10_000,
            over,
            ..run(&"p99<10ms".parse().unwrap(), 100.0, 1, 1)
        };
        search.tell(at(100.0, 5));
        search.tell(at(50.0, 400));
        assert_eq!(search.next(), Step::Run(50.0));
        search.tell(at(50.0, 5));
        assert_eq!(search.says(50.0), Says::Unclear, "one run of two was stalled");
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(
            [1234.5, 56.789, 0.98765, 0.012345, 123_456.0].map(rounded),
            [1230.0, 56.8, 0.988, 0.0123, 123_000.0]
        );
    }
}
