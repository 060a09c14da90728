//! A Markov chain held to quotas.
//!
//! The chain says what tends to follow what; the quotas say how often each class occurs in each
//! segment of the trace. A step takes a successor with a probability proportional to how often it
//! followed, times the share of its class's quota that is left: so every segment ends with exactly
//! its quotas, and the order inside it is that of the chain. Rare successors are not kept one by
//! one; they are drawn from the quotas alone.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

/// The chain and the quotas of each segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// How often each symbol occurs.
    pub(super) counts: Vec<u32>,
    /// The class of each symbol.
    pub(super) classes: Vec<u16>,
    /// Context, how often a rare symbol followed it, then symbols and how often each followed.
    pub(super) rows: Vec<Vec<u32>>,
    /// Classes and how often each occurs, by segment.
    pub(super) segments: Vec<Vec<u32>>,
}

/// What happened: a context, and the symbol that followed it.
pub(super) type Step = (u32, u16);

impl Chain {
    /// Learns from the steps of a trace: `rows_max` successors are kept, and `segments` segments of
    /// equal numbers of steps.
    pub fn learn(steps: &[Step], classes: Vec<u16>, rows_max: usize, segments: usize) -> Self {
        let mut counts = vec![0; classes.len()];
        let mut pairs: HashMap<Step, u32> = HashMap::new();
        for step in steps {
            counts[usize::from(step.1)] += 1;
            *pairs.entry(*step).or_default() += 1;
        }
        let mut pairs: Vec<(Step, u32)> = pairs.into_iter().collect();
        // The frequent ones first, and an order that does not depend on the hash map.
        pairs.sort_unstable_by_key(|(step, count)| (u32::MAX - count, *step));
        let mut rows: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
        for (index, ((context, symbol), count)) in pairs.into_iter().enumerate() {
            let row = rows.entry(context).or_insert_with(|| vec![context, 0]);
            if index < rows_max {
                row.extend([u32::from(symbol), count]);
            } else {
                row[1] += count;
            }
        }
        let bounds =
            (0..segments).map(|s| (steps.len() * s / segments, steps.len() * (s + 1) / segments));
        let quota = |(from, to): (usize, usize)| {
            let mut quota: std::collections::BTreeMap<u16, u32> = std::collections::BTreeMap::new();
            for (_, symbol) in &steps[from..to] {
                *quota.entry(classes[usize::from(*symbol)]).or_default() += 1;
            }
            quota.into_iter().flat_map(|(class, count)| [u32::from(class), count]).collect()
        };
        let segments = bounds.map(quota).collect();
        // A row of rare successors alone says nothing.
        let rows = rows.into_values().filter(|row| row.len() > 2).collect();
        Self { counts, classes, rows, segments }
    }

    /// Whether a walk can follow it: indices in range, and something in every segment.
    pub fn is_sound(&self) -> bool {
        let symbols = self.counts.len();
        let classes = self.class_count();
        let pairs = |pairs: &[u32], bound: usize| {
            pairs.len().is_multiple_of(2)
                && pairs.chunks_exact(2).all(|pair| (pair[0] as usize) < bound)
        };
        self.classes.len() == symbols
            && symbols > 0
            && self.rows.iter().all(|row| row.len() >= 2 && pairs(&row[2..], symbols))
            && !self.segments.is_empty()
            && self.segments.iter().all(|segment| {
                pairs(segment, classes) && segment.chunks_exact(2).any(|pair| pair[1] > 0)
            })
    }

    fn class_count(&self) -> usize {
        self.classes.iter().map(|class| usize::from(*class) + 1).max().unwrap_or(0)
    }
}

/// One walk along a chain.
pub(super) struct Walk<'a> {
    rows: HashMap<u32, &'a [u32]>,
    chain: &'a Chain,
    members: Vec<Vec<u16>>,
    class_totals: Vec<f64>,
    /// What is left of the segment's quotas.
    quota: Vec<u32>,
    quota_left: u32,
    segment: usize,
    /// What is left of each symbol until all have occurred as often as they were counted.
    left: Vec<i64>,
    weights: Vec<f64>,
}

impl<'a> Walk<'a> {
    pub fn new(chain: &'a Chain) -> Self {
        let mut members = vec![Vec::new(); chain.class_count()];
        let mut class_totals = vec![0.0; members.len()];
        for (symbol, class) in chain.classes.iter().enumerate() {
            members[usize::from(*class)].push(symbol as u16);
            class_totals[usize::from(*class)] += f64::from(chain.counts[symbol]);
        }
        Self {
            rows: chain.rows.iter().map(|row| (row[0], &row[1..])).collect(),
            chain,
            quota: vec![0; members.len()],
            members,
            class_totals,
            quota_left: 0,
            segment: 0,
            left: vec![0; chain.counts.len()],
            weights: Vec::new(),
        }
    }

    /// The next symbol.
    pub fn step(&mut self, context: u32, rng: &mut Rng) -> u16 {
        if self.quota_left == 0 {
            self.next_segment();
        }
        let symbol = self.follow(context, rng).unwrap_or_else(|| self.by_quota(rng));
        self.left[usize::from(symbol)] -= 1;
        self.quota[usize::from(self.chain.classes[usize::from(symbol)])] -= 1;
        self.quota_left -= 1;
        symbol
    }

    fn next_segment(&mut self) {
        let segments = &self.chain.segments;
        if self.segment.is_multiple_of(segments.len()) {
            for (left, count) in self.left.iter_mut().zip(&self.chain.counts) {
                *left += i64::from(*count);
            }
        }
        for pair in segments[self.segment % segments.len()].chunks_exact(2) {
            self.quota[pair[0] as usize] += pair[1];
            self.quota_left += pair[1];
        }
        self.segment += 1;
    }

    /// A successor by the chain, or `None` where it is a rare one or has no quota.
    fn follow(&mut self, context: u32, rng: &mut Rng) -> Option<u16> {
        let row = self.rows.get(&context)?;
        self.weights.clear();
        let (mut sum, mut all, mut kept) = (0.0, f64::from(row[0]), 0.0);
        for pair in row[1..].chunks_exact(2) {
            let symbol = pair[0] as usize;
            let class = usize::from(self.chain.classes[symbol]);
            let tilt = f64::from(self.quota[class]) / self.class_totals[class].max(1.0);
            let deck =
                self.left[symbol].max(0) as f64 / f64::from(self.chain.counts[symbol].max(1));
            let weight = f64::from(pair[1]) * tilt * deck;
            sum += weight;
            all += f64::from(pair[1]);
            kept += f64::from(pair[1]);
            self.weights.push(weight);
        }
        if sum <= 0.0 || rng.unit() * all >= kept {
            return None;
        }
        let mut at = rng.unit() * sum;
        for (pair, weight) in row[1..].chunks_exact(2).zip(&self.weights) {
            if at < *weight {
                return Some(pair[0] as u16);
            }
            at -= weight;
        }
        None
    }

    /// A symbol by the quotas alone.
    fn by_quota(&self, rng: &mut Rng) -> u16 {
        let mut at = rng.below(u64::from(self.quota_left)) as u32;
        let mut class = 0;
        while at >= self.quota[class] {
            at -= self.quota[class];
            class += 1;
        }
        let members = &self.members[class];
        let weight = |symbol: &u16| self.left[usize::from(*symbol)].max(0) as u64;
        let total: u64 = members.iter().map(weight).sum();
        if total == 0 {
            return members[rng.below(members.len() as u64) as usize];
        }
        let mut at = rng.below(total);
        for symbol in members {
            if at < weight(symbol) {
                return *symbol;
            }
            at -= weight(symbol);
        }
        members[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three symbols; 0 is always followed by 1, the rest at random; the second half has no 2.
    fn steps() -> Vec<Step> {
        let (mut rng, mut last) = (Rng::new(1), 0u16);
        (0..4000)
            .map(|index| {
                let context = u32::from(last);
                let many = if index < 2000 { 3 } else { 2 };
                last = if last == 0 { 1 } else { rng.below(many) as u16 };
                (context, last)
            })
            .collect()
    }

    fn walked(chain: &Chain, count: usize) -> Vec<u16> {
        let (mut walk, mut rng, mut last) = (Walk::new(chain), Rng::new(2), 0);
        (0..count)
            .map(|_| {
                last = walk.step(u32::from(last), &mut rng);
                last
            })
            .collect()
    }

    #[test]
    fn quotas_are_met_exactly_and_order_is_kept() {
        let steps = steps();
        let chain = Chain::learn(&steps, vec![0, 1, 2], 100, 4);
        assert!(chain.is_sound());
        let made = walked(&chain, 4000);
        let count =
            |symbols: &mut dyn Iterator<Item = u16>, which| symbols.filter(|s| *s == which).count();
        for (from, to) in [(0, 1000), (1000, 2000), (2000, 3000), (3000, 4000)] {
            for symbol in 0..3 {
                assert_eq!(
                    count(&mut made[from..to].iter().copied(), symbol),
                    count(&mut steps[from..to].iter().map(|step| step.1), symbol),
                );
            }
        }
        let pairs = made.windows(2).filter(|pair| pair[0] == 0).count() as f64;
        let kept = made.windows(2).filter(|pair| pair[0] == 0 && pair[1] == 1).count() as f64;
        assert!(kept / pairs > 0.98, "{kept} of {pairs}");
    }

    #[test]
    fn longer_walks_begin_anew_and_rare_successors_come_from_the_quotas() {
        let chain = Chain::learn(&steps(), vec![0, 1, 2], 1, 4);
        assert!(chain.is_sound() && chain.rows.len() == 1);
        let made = walked(&chain, 8000);
        let twos = |part: &[u16]| part.iter().filter(|symbol| **symbol == 2).count();
        assert_eq!(twos(&made[..4000]), twos(&made[4000..]));
    }

    #[test]
    fn nonsense_is_not_sound() {
        let good = Chain::learn(&steps(), vec![0, 1, 2], 100, 4);
        let spoilt: [fn(&mut Chain); 5] = [
            |chain| chain.classes.clear(),
            |chain| chain.rows[0].push(1),
            |chain| chain.rows[0][2] = 99,
            |chain| chain.segments[0] = vec![0, 0],
            |chain| chain.segments.clear(),
        ];
        for spoil in spoilt {
            let mut chain = good.clone();
            spoil(&mut chain);
            assert!(!chain.is_sound());
        }
    }
}
