//! What requests do: reads and trims with given shares, in runs of a given mean length.
//!
//! A run goes on with the same operation; with a mean of 1 / share of the other operation the
//! operations are independent. Written as a Markov chain whose stationary shares are those
//! asked for. Tested for shares and run length.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::invalid::{Invalid, positive, share};
use crate::Op;

/// Reads, writes and trims.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ops {
    /// Share of reads; what neither reads nor trims is a write.
    pub read_share: f64,
    /// Share of trims.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_share: f64,
    /// How many times longer runs of one operation are than independent draws would make them.
    #[serde(default = "one")]
    pub burst_factor: f64,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Ops {
    /// Independent draws.
    pub fn independent(read_share: f64) -> Self {
        Self { read_share, trim_share: 0.0, burst_factor: 1.0 }
    }

    pub(super) fn check(self) -> Result<(), Invalid> {
        share("read_share", self.read_share)?;
        share("trim_share", self.trim_share)?;
        share("read_share and trim_share together", self.read_share + self.trim_share)?;
        positive("burst_factor", self.burst_factor)
    }
}

/// Draws operations.
pub(super) struct Chain {
    read_share: f64,
    /// Above this a draw is a trim.
    trims_from: f64,
    stay_over: f64,
    last: Option<Op>,
}

impl Chain {
    pub fn new(ops: Ops) -> Self {
        Self {
            read_share: ops.read_share,
            trims_from: 1.0 - ops.trim_share,
            stay_over: 1.0 / ops.burst_factor.max(1.0),
            last: None,
        }
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
        let op = match rng.unit() {
            drawn if drawn < self.read_share => Op::Read,
            drawn if drawn >= self.trims_from => Op::Trim,
            _ => Op::Write,
        };
        self.last = Some(op);
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read_share: f64, burst_factor: f64) {
        let ops = Ops { burst_factor, ..Ops::independent(read_share) };
        let mut chain = Chain::new(ops);
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
        assert!(Ops::independent(1.1).check().is_err());
        assert!(Ops { burst_factor: 0.0, ..Ops::independent(0.1) }.check().is_err());
    }

    #[test]
    fn trims_have_their_share() {
        let ops = Ops { trim_share: 0.2, ..Ops::independent(0.3) };
        let mut chain = Chain::new(ops);
        let mut rng = Rng::new(4);
        let drawn: Vec<Op> = (0..100_000).map(|_| chain.next(&mut rng)).collect();
        let share = |op| drawn.iter().filter(|own| **own == op).count() as f64 / 1e5;
        let found = [Op::Read, Op::Write, Op::Trim].map(share);
        let off = found.iter().zip([0.3, 0.5, 0.2]).map(|(found, asked)| (found - asked).abs());
        assert!(off.fold(0.0, f64::max) < 0.01, "{found:?}");
        assert!(Ops { trim_share: 0.8, ..ops }.check().is_err(), "more than all");
    }
}
