//! Where requests go.
//!
//! The range of a stream is a row of slots, each a request long unless a coarser or finer alignment
//! is asked for. Zipf ranks are spread over the range by a keyed permutation, so that popular slots
//! are not neighbours.
//!
//! Invariants: a request lies inside its range wherever the range holds it. Tested against the
//! closed forms of the distributions.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;
use stats::zipf::{Permutation, Zipf};

use super::invalid::{Invalid, positive, share};

/// Where the requests of a stream go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Addresses {
    /// One behind the other, starting anew at the end of the range.
    Sequential,
    /// Uniform over the slots.
    Random,
    /// Every request this many slots after the one before: 1 follows, 0 stays, -1 walks back.
    Strided {
        /// Slots.
        stride: i64,
    },
    /// Slot of rank r with a probability proportional to r^-exponent.
    Zipf {
        /// Exponent, above 0; 1 is the classic.
        exponent: f64,
        /// Ranks are spread over the range; otherwise the first slot is the most popular.
        permuted: bool,
    },
    /// A share of the accesses goes to the first share of the range, the others to the rest.
    HotCold {
        /// Share of the accesses, such as 0.8.
        access_share: f64,
        /// Share of the range, such as 0.2.
        range_share: f64,
    },
    /// Parts of the range with shares of the accesses; what is left is uniform over the range.
    Hotspots {
        /// The parts.
        spots: Vec<Hotspot>,
    },
    /// Equal parts in turn, sequential in each: merging runs.
    Partitioned {
        /// Parts.
        partitions: u32,
    },
}

/// A part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hotspot {
    /// Where it begins, as a share of the range.
    pub start_share: f64,
    /// Its width, as a share of the range.
    pub width_share: f64,
    /// Its share of the accesses.
    pub access_share: f64,
}

impl Addresses {
    /// Refuses figures that name no place.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Sequential | Self::Random | Self::Strided { .. } => Ok(()),
            Self::Zipf { exponent, .. } => positive("exponent", *exponent),
            Self::HotCold { access_share, range_share } => {
                share("access_share", *access_share)?;
                share("range_share", *range_share)
            }
            Self::Hotspots { spots } => {
                for spot in spots {
                    share("start_share", spot.start_share)?;
                    share("width_share", spot.width_share)?;
                    share("start_share + width_share", spot.start_share + spot.width_share)?;
                }
                share("the access_shares together", spots.iter().map(|s| s.access_share).sum())
            }
            Self::Partitioned { partitions } => positive("partitions", f64::from(*partitions)),
        }
    }
}

/// The range that addresses fall into, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes from one slot to the next.
    pub slot: u64,
    /// Bytes of the longest request.
    pub longest: u64,
}

/// Draws addresses of one stream.
pub(super) enum Sampler {
    Sequential { position: u64 },
    Random,
    Strided { stride: i64, slot: u64 },
    Zipf { zipf: Zipf, permutation: Option<Permutation> },
    HotCold { access_share: f64, hot_slots: u64 },
    Hotspots { spots: Vec<(f64, u64, u64)> },
    Partitioned { turn: usize, positions: Vec<u64> },
}

impl Range {
    /// Slots from which even the longest request stays inside.
    fn slots(&self) -> u64 {
        (self.size.saturating_sub(self.longest) / self.slot.max(1)) + 1
    }

    /// The place of a slot.
    fn at(&self, slot: u64) -> u64 {
        self.start + slot * self.slot.max(1)
    }
}

impl Sampler {
    pub fn new(addresses: &Addresses, range: &Range, seed: u64) -> Self {
        let slots = range.slots();
        let part = |part: f64| ((slots as f64 * part) as u64).min(slots - 1);
        match addresses {
            Addresses::Sequential => Self::Sequential { position: 0 },
            Addresses::Random => Self::Random,
            Addresses::Strided { stride } => Self::Strided { stride: *stride, slot: 0 },
            Addresses::Zipf { exponent, permuted } => Self::Zipf {
                zipf: Zipf::new(slots, *exponent),
                permutation: permuted.then(|| Permutation::new(slots, seed)),
            },
            Addresses::HotCold { access_share, range_share } => {
                let hot_slots = ((slots as f64 * range_share).round() as u64).clamp(1, slots);
                Self::HotCold { access_share: *access_share, hot_slots }
            }
            Addresses::Hotspots { spots } => {
                let mut below = 0.0;
                let spots = spots.iter().map(|spot| {
                    below += spot.access_share;
                    let first = part(spot.start_share);
                    (below, first, part(spot.width_share).clamp(1, slots - first))
                });
                Self::Hotspots { spots: spots.collect() }
            }
            Addresses::Partitioned { partitions } => {
                let parts = u64::from(*partitions).clamp(1, slots) as usize;
                Self::Partitioned { turn: 0, positions: vec![0; parts] }
            }
        }
    }

    /// Where the next request of `len` bytes goes.
    #[inline]
    pub fn next(&mut self, range: &Range, len: u64, rng: &mut Rng) -> u64 {
        let slots = range.slots();
        match self {
            Self::Sequential { position } => range.start + append(position, range.size, len),
            Self::Random => range.at(rng.below(slots)),
            Self::Strided { stride, slot } => {
                let here = *slot;
                *slot =
                    (i128::from(here) + i128::from(*stride)).rem_euclid(i128::from(slots)) as u64;
                range.at(here)
            }
            Self::Zipf { zipf, permutation } => {
                let rank = zipf.sample(rng);
                range.at(permutation.as_ref().map_or(rank, |permutation| permutation.at(rank)))
            }
            Self::HotCold { access_share, hot_slots } => {
                if rng.unit() < *access_share || *hot_slots == slots {
                    range.at(rng.below(*hot_slots))
                } else {
                    range.at(*hot_slots + rng.below(slots - *hot_slots))
                }
            }
            Self::Hotspots { spots } => {
                let pick = rng.unit();
                let spot = spots.iter().find(|(below, ..)| pick < *below);
                let (first, width) = spot.map_or((0, slots), |(_, first, width)| (*first, *width));
                range.at(first + rng.below(width))
            }
            Self::Partitioned { turn, positions } => {
                let size = range.size / positions.len() as u64;
                let start = range.start + *turn as u64 * size;
                let at = start + append(&mut positions[*turn], size, len);
                *turn = (*turn + 1) % positions.len();
                at
            }
        }
    }
}

/// The position of an append of `len` bytes in a region that starts anew when it is full.
fn append(position: &mut u64, size: u64, len: u64) -> u64 {
    if *position + len > size {
        *position = 0;
    }
    let here = *position;
    *position += len;
    here
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const RANGE: Range = Range { start: 1 << 20, size: 100 * 4096, slot: 4096, longest: 4096 };

    /// How often each slot of `RANGE` is hit.
    fn hits(addresses: &Addresses, count: u32) -> Vec<u32> {
        addresses.check().expect("sound");
        let (mut sampler, mut rng) = (Sampler::new(addresses, &RANGE, 1), Rng::new(2));
        let mut hits = vec![0; 100];
        for _ in 0..count {
            hits[((sampler.next(&RANGE, 4096, &mut rng) - RANGE.start) / 4096) as usize] += 1;
        }
        hits
    }

    fn first(addresses: &Addresses, count: usize) -> Vec<u64> {
        let (mut sampler, mut rng) = (Sampler::new(addresses, &RANGE, 1), Rng::new(2));
        (0..count).map(|_| (sampler.next(&RANGE, 4096, &mut rng) - RANGE.start) / 4096).collect()
    }

    #[test]
    fn orders() {
        assert_eq!(first(&Addresses::Sequential, 102)[98..], [98, 99, 0, 1]);
        assert_eq!(first(&Addresses::Strided { stride: -1 }, 3), [0, 99, 98]);
        assert_eq!(first(&Addresses::Strided { stride: 0 }, 3), [0, 0, 0]);
        assert_eq!(first(&Addresses::Strided { stride: 40 }, 4), [0, 40, 80, 20]);
        assert_eq!(first(&Addresses::Partitioned { partitions: 4 }, 6), [0, 25, 50, 75, 1, 26]);
    }

    #[test]
    fn shares() {
        let uniform = hits(&Addresses::Random, 100_000);
        // Chi-square with 99 degrees of freedom: 148.2 is exceeded once in a thousand seeds.
        let chi: f64 = uniform.iter().map(|&c| (f64::from(c) - 1e3).powi(2) / 1e3).sum();
        assert!(chi < 148.2, "chi-square {chi}");
        let hot = hits(&Addresses::HotCold { access_share: 0.8, range_share: 0.2 }, 100_000);
        let share = f64::from(hot[..20].iter().sum::<u32>()) / 1e5;
        assert!((share - 0.8).abs() < 0.01, "{share}");
        let spot = Hotspot { start_share: 0.5, width_share: 0.1, access_share: 0.5 };
        let spots = hits(&Addresses::Hotspots { spots: vec![spot] }, 100_000);
        // Half goes there on purpose and a tenth of the other half by chance.
        let share = f64::from(spots[50..60].iter().sum::<u32>()) / 1e5;
        assert!((share - 0.55).abs() < 0.01, "{share}");
    }

    #[test]
    fn zipf_has_its_probabilities() {
        for exponent in [0.5, 0.99, 1.0, 1.3] {
            let found = hits(&Addresses::Zipf { exponent, permuted: false }, 200_000);
            let weights: Vec<f64> = (1..=100).map(|k| f64::from(k).powf(-exponent)).collect();
            let total: f64 = weights.iter().sum();
            let expected = weights.iter().map(|weight| weight / total * 2e5);
            let chi: f64 =
                found.iter().zip(expected).map(|(&c, e)| (f64::from(c) - e).powi(2) / e).sum();
            assert!(chi < 148.2, "chi-square {chi} for {exponent}");
            let mut spread = hits(&Addresses::Zipf { exponent, permuted: true }, 200_000);
            assert_ne!(spread[..5], found[..5]);
            spread.sort_unstable_by_key(|hits| Reverse(*hits));
            assert!(spread[0].abs_diff(found[0]) < 2000 && spread[0] > 3 * spread[60]);
        }
    }
    use std::cmp::Reverse;

    #[test]
    fn nonsense_is_refused() {
        let zipf = Addresses::Zipf { exponent: -1.0, permuted: true };
        assert!(zipf.check().expect_err("refused").to_string().contains("exponent"));
        let hot = Addresses::HotCold { access_share: 1.2, range_share: 0.2 };
        assert!(hot.check().is_err() && Addresses::Partitioned { partitions: 0 }.check().is_err());
        let spot = Hotspot { start_share: 0.8, width_share: 0.3, access_share: 0.5 };
        assert!(Addresses::Hotspots { spots: vec![spot] }.check().is_err());
    }

    proptest! {
        #[test]
        fn requests_stay_inside(
            size in 1u64..1_000_000, slot in 1u64..20_000, longest in 1u64..20_000,
            kind in 0usize..7, seed in any::<u64>(),
        ) {
            let range = Range { start: 0, size: size.max(longest), slot, longest };
            let spots = vec![Hotspot { start_share: 0.9, width_share: 0.1, access_share: 0.9 }];
            let addresses = [
                Addresses::Sequential,
                Addresses::Random,
                Addresses::Strided { stride: -7 },
                Addresses::Zipf { exponent: 0.9, permuted: true },
                Addresses::HotCold { access_share: 0.9, range_share: 1.0 },
                Addresses::Hotspots { spots },
                Addresses::Partitioned { partitions: 3 },
            ];
            let mut sampler = Sampler::new(&addresses[kind], &range, seed);
            let mut rng = Rng::new(seed);
            // A partition may be shorter than the longest request; then requests overlap the next
            // one.
            let slack = if kind == 6 { longest } else { 0 };
            for _ in 0..200 {
                let len = rng.between(1, longest);
                prop_assert!(sampler.next(&range, len, &mut rng) + len <= range.size + slack);
            }
        }
    }
}
