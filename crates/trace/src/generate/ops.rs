//! What requests do: reads with a given share, in runs of a given mean length.
//!
//! A run goes on with the same operation; with a mean of 1 / share of the other operation the
//! operations are independent. Written as a two-state Markov chain whose stationary share is the
//! one asked for. Tested for share and run length.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::invalid::{Invalid, positive, share};
use crate::Op;

/// Reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ops {
    /// Share of reads; the rest are writes.
    pub read_share: f64,
    /// How many times longer runs of one operation are than independent draws would make them.
    #[serde(default = "one")]
    pub burst_factor: f64,
}

fn one() -> f64 {
    1.0
}

impl Ops {
    /// Independent draws.
    pub fn independent(read_share: f64) -> Self {
        Self { read_share, burst_factor: 1.0 }
    }

    pub(super) fn check(self) -> Result<(), Invalid> {
        share("read_share", self.read_share)?;
        positive("burst_factor", self.burst_factor)
    }
}

/// Draws operations.
pub(super) struct Chain {
    read_share: f64,
    stay_over: f64,
    last: Option<Op>,
}

impl Chain {
    pub fn new(ops: Ops) -> Self {
        Self { read_share: ops.read_share, stay_over: 1.0 / ops.burst_factor.max(1.0), last: None }
    }

    #[inline]
    pub fn next(&mut self, rng: &mut Rng) -> Op {
        if self.read_share >= 1.0 {
            return Op::Read;
        }
        // With probability 1 - 1 / factor the last operation is repeated, else one is drawn: that
        // leaves the share as it is and stretches the runs by the factor.
        if let Some(last) = self.last
            && self.stay_over < 1.0
            && rng.unit() >= self.stay_over
        {
            return last;
        }
        let op = if rng.unit() < self.read_share { Op::Read } else { Op::Write };
        self.last = Some(op);
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read_share: f64, burst_factor: f64) {
        let mut chain = Chain::new(Ops { read_share, burst_factor });
        let mut rng = Rng::new(4);
        let ops: Vec<Op> = (0..200_000).map(|_| chain.next(&mut rng)).collect();
        let reads = ops.iter().filter(|op| **op == Op::Read).count() as f64;
        let runs = 1 + ops.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((reads / 2e5 - read_share).abs() < 0.02, "{reads} reads");
        // Independent runs of both operations have a mean of 1 / (2 r w) together.
        let expected = burst_factor / (2.0 * read_share * (1.0 - read_share));
        let found = 2e5 / runs as f64;
        assert!((found / expected - 1.0).abs() < 0.05, "runs of {found}, not {expected}");
    }

    #[test]
    fn shares_and_runs() {
        check(0.5, 1.0);
        check(0.3, 1.0);
        check(0.3, 10.0);
        check(0.9, 4.0);
    }

    #[test]
    fn reads_alone() {
        let mut chain = Chain::new(Ops::independent(1.0));
        let mut rng = Rng::new(4);
        assert!((0..1000).all(|_| chain.next(&mut rng) == Op::Read));
        assert!(Ops { read_share: 1.1, burst_factor: 1.0 }.check().is_err());
        assert!(Ops { read_share: 0.1, burst_factor: 0.0 }.check().is_err());
    }
}
