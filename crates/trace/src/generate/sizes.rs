//! How large requests are: a table of sizes and shares, drawn by Walker's alias method (Vose, "A
//! linear algorithm for generating random numbers with a given distribution", IEEE TSE 17(9),
//! 1991).
//!
//! Tested for the shares, and that a single size costs no random number.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::invalid::{Invalid, positive};

/// One row of a size table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// Bytes.
    pub size_bytes: u32,
    /// Its weight among the rows; they need not add up to 1.
    pub share: f64,
}

/// Refuses a table that gives no size.
pub(super) fn check(table: &[SizeShare]) -> Result<(), Invalid> {
    for row in table {
        positive("size_bytes", f64::from(row.size_bytes))?;
        positive("a size's share", row.share)?;
    }
    positive("the number of sizes", table.len() as f64)
}

/// Draws an index with given weights.
pub(super) struct Alias {
    /// Below this a draw keeps its column; in units of 2^-53.
    keep: Vec<f64>,
    other: Vec<u32>,
}

impl Alias {
    pub fn new(weights: impl ExactSizeIterator<Item = f64>) -> Self {
        let count = weights.len();
        let mut scaled: Vec<f64> = weights.collect();
        let total: f64 = scaled.iter().sum();
        for weight in &mut scaled {
            *weight *= count as f64 / total;
        }
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&index| scaled[index] < 1.0);
        let mut other: Vec<u32> = (0..count as u32).collect();
        let mut keep = vec![1.0; count];
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            keep[poor] = scaled[poor];
            other[poor] = rich as u32;
            scaled[rich] -= 1.0 - scaled[poor];
            if scaled[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { keep, other }
    }

    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> usize {
        if self.keep.len() == 1 {
            return 0;
        }
        let draw = rng.unit() * self.keep.len() as f64;
        let column = draw as usize;
        if draw - column as f64 <= self.keep[column] { column } else { self.other[column] as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        let weights = [5.0, 1.0, 0.1, 3.9, 10.0];
        let alias = Alias::new(weights.iter().copied());
        let (mut rng, mut counts) = (Rng::new(3), [0u32; 5]);
        (0..200_000).for_each(|_| counts[alias.sample(&mut rng)] += 1);
        // Chi-square with 4 degrees of freedom: 18.5 is exceeded once in a thousand seeds.
        let expected = weights.map(|weight| weight / 20.0 * 2e5);
        let chi: f64 =
            counts.iter().zip(expected).map(|(&c, e)| (f64::from(c) - e).powi(2) / e).sum();
        assert!(chi < 18.5, "chi-square {chi}");
    }

    #[test]
    fn one_size_takes_no_randomness() {
        let (mut rng, fresh) = (Rng::new(3), Rng::new(3));
        assert_eq!(Alias::new([2.0].into_iter()).sample(&mut rng), 0);
        assert_eq!(rng, fresh);
    }

    #[test]
    fn empty_and_negative_tables_are_refused() {
        assert!(check(&[]).is_err());
        assert!(check(&[SizeShare { size_bytes: 0, share: 1.0 }]).is_err());
        assert!(check(&[SizeShare { size_bytes: 512, share: -1.0 }]).is_err());
        assert!(check(&[SizeShare { size_bytes: 512, share: 1.0 }]).is_ok());
    }
}
