//! How unevenly touches fall on blocks.
//!
//! Only touched blocks count. The *hottest x %* are those with the most touches; where the border
//! falls among blocks of equal count, in part. *Gini* is 0 where all blocks are touched equally
//! often and towards 1 where few take all. The *Zipf exponent* is the slope of a straight line
//! through logarithm of count over logarithm of rank, at eight ranks per doubling, over the ranks
//! whose blocks are touched at least five times (below, counts are noise); its error is that of the
//! slope, and the share of variance that the line explains says whether there is a Zipf law at all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ratio;

/// Shares of the blocks that are asked for.
const SHARES: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.5];
/// Touches below which a block's rank is noise.
const TOUCHES_MIN: u32 = 5;
/// Ranks per doubling that the line goes through, and how many there must be.
const RANKS_PER_OCTAVE: f64 = 8.0;
const RANKS_MIN: usize = 16;

/// How unevenly touches fall on blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HotCold {
    /// Share of touches that the hottest 1, 5, 10, 20 and 50 % of the touched blocks take.
    pub shares: Vec<HotShare>,
    /// Share of the touched blocks that are touched once.
    pub once_share: f64,
    /// Gini coefficient.
    pub gini: f64,
    /// Zipf exponent, where enough blocks are touched often.
    pub zipf: Option<Zipf>,
}

/// The hottest blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotShare {
    /// Share of the touched blocks.
    pub block_share: f64,
    /// Share of the touches that they take.
    pub touch_share: f64,
}

/// A Zipf law: the count of rank r is proportional to r to the power -exponent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zipf {
    /// The exponent.
    pub exponent: f64,
    /// Standard error of the slope.
    pub error: f64,
    /// Share of the variance that the law explains.
    pub r_squared: f64,
    /// Ranks that it was fitted over.
    pub ranks: u64,
}

/// Describes the counts of the touched blocks.
pub(super) fn hot_cold(counts: impl Iterator<Item = u32>) -> HotCold {
    let mut blocks_by_count: BTreeMap<u32, u64> = BTreeMap::new();
    let mut small = [0u64; 256];
    for count in counts {
        match small.get_mut(count as usize) {
            Some(blocks) => *blocks += 1,
            None => *blocks_by_count.entry(count).or_default() += 1,
        }
    }
    blocks_by_count.extend((0..).zip(small).filter(|(count, blocks)| *count > 0 && *blocks > 0));
    let blocks: u64 = blocks_by_count.values().sum();
    if blocks == 0 {
        return HotCold::default();
    }
    let touches: u64 = blocks_by_count.iter().map(|(count, n)| u64::from(*count) * n).sum();
    let share = |block_share: f64| {
        let mut left = block_share * blocks as f64;
        let mut taken = 0.0;
        for (&count, &n) in blocks_by_count.iter().rev() {
            let here = left.min(n as f64);
            taken += here * f64::from(count);
            left -= here;
        }
        HotShare { block_share, touch_share: taken / touches as f64 }
    };
    let once = blocks_by_count.get(&1).copied().unwrap_or(0);
    HotCold {
        shares: SHARES.map(share).to_vec(),
        once_share: ratio(once as f64, blocks as f64),
        gini: gini(&blocks_by_count, blocks as f64, touches as f64),
        zipf: zipf(&blocks_by_count),
    }
}

/// Twice the area between the diagonal and the Lorenz curve, which is a polygon with one edge per
/// count.
fn gini(blocks_by_count: &BTreeMap<u32, u64>, blocks: f64, touches: f64) -> f64 {
    let mut below = 0.0;
    let mut area = 0.0;
    for (&count, &n) in blocks_by_count {
        let taken = f64::from(count) * n as f64 / touches;
        area += n as f64 / blocks * (below + taken / 2.0);
        below += taken;
    }
    (1.0 - 2.0 * area).max(0.0)
}

fn zipf(blocks_by_count: &BTreeMap<u32, u64>) -> Option<Zipf> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut rank = 0u64;
    let mut next = 1.0f64;
    for (&count, &n) in blocks_by_count.iter().rev().filter(|(count, _)| **count >= TOUCHES_MIN) {
        while next <= (rank + n) as f64 {
            x.push(next.ln());
            y.push(f64::from(count).ln());
            next = (next * 2f64.powf(1.0 / RANKS_PER_OCTAVE)).max(next + 1.0).floor();
        }
        rank += n;
    }
    if x.len() < RANKS_MIN {
        return None;
    }
    let line = stats::regression::line(&x, &y, None)?;
    let (exponent, error) = (-line.slope, line.slope_error);
    Some(Zipf { exponent, error, r_squared: line.r_squared, ranks: rank })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_by_hand() {
        // 100 blocks: one takes 100 touches, nine take 10 each, ninety take 1 each: 280 touches.
        let counts = std::iter::once(100).chain([10; 9]).chain([1; 90]);
        let found = hot_cold(counts);
        let shares: Vec<f64> = found.shares.iter().map(|share| share.touch_share * 280.0).collect();
        let expected = [100.0, 140.0, 190.0, 200.0, 230.0];
        for (found, expected) in shares.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{shares:?}");
        }
        assert_eq!((found.once_share, found.zipf), (0.9, None));
    }

    #[test]
    fn equal_blocks_are_neither_hot_nor_cold() {
        let found = hot_cold([7; 1000].into_iter());
        assert!(found.gini.abs() < 1e-12);
        assert!(found.shares.iter().all(|s| (s.touch_share - s.block_share).abs() < 1e-12));
        assert_eq!(hot_cold(std::iter::empty()), HotCold::default());
    }

    #[test]
    fn a_zipf_law_is_found_again() {
        for exponent in [0.6, 0.9, 1.2] {
            let counts =
                (1..=50_000u32).map(|rank| (1e6 * f64::from(rank).powf(-exponent)).round() as u32);
            let zipf = hot_cold(counts).zipf.expect("enough ranks");
            assert!((zipf.exponent - exponent).abs() < 0.01, "{zipf:?} for {exponent}");
            assert!(zipf.r_squared > 0.999 && zipf.error < 0.01);
        }
        // Uniform counts have a line of another kind.
        let mut rng = stats::rng::Rng::new(1);
        let found = hot_cold((0..50_000).map(|_| rng.between(5, 50) as u32)).zipf.expect("ranks");
        assert!(found.r_squared < 0.8, "{found:?}");
    }

    proptest! {
        #[test]
        fn gini_is_the_mean_difference(counts in prop::collection::vec(1u32..500, 1..60)) {
            let n = counts.len() as f64;
            let sum: f64 = counts.iter().map(|c| f64::from(*c)).sum();
            let pairs = counts.iter().flat_map(|a| counts.iter().map(move |b| a.abs_diff(*b)));
            let expected = pairs.map(f64::from).sum::<f64>() / (2.0 * n * sum);
            let found = hot_cold(counts.into_iter()).gini;
            prop_assert!((found - expected).abs() < 1e-9, "{} {}", found, expected);
        }
    }
}
