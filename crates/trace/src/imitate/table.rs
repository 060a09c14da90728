//! The distribution of a whole number, kept in few figures, and decks dealt from it.
//!
//! Few distinct values are kept as they are; many as quantiles at even steps, linear between them.
//! A deck holds as many values as the table counted, spread evenly over the quantiles, and deals
//! each once: a sample without the noise of drawing, so that a trace as long as the original has
//! its distribution, and one of any length comes as near as its length allows.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::tally::Tally;

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Values and how often each occurred, one behind the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    atoms: Vec<u64>,
    /// Quantiles at even steps, from the least to the largest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quantiles: Vec<u64>,
    /// How many values the quantiles stand for.
    #[serde(default, skip_serializing_if = "is_zero")]
    count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Table {
    /// Keeps values in about `room` figures.
    pub fn of(mut values: Vec<u64>, room: usize) -> Self {
        values.sort_unstable();
        let mut atoms: Vec<u64> = Vec::new();
        for run in values.chunk_by(|a, b| a == b) {
            atoms.extend([run[0], run.len() as u64]);
            if atoms.len() > room.max(2) {
                break;
            }
        }
        if values.is_empty() || atoms.len() <= room.max(2) {
            return Self { atoms, ..Self::default() };
        }
        Self::quantiles_of(&values, room)
    }

    /// Keeps quantiles, however few values there are: for what must not be listed.
    pub fn smooth(mut values: Vec<u64>, room: usize) -> Self {
        values.sort_unstable();
        if values.is_empty() { Self::default() } else { Self::quantiles_of(&values, room) }
    }

    /// Values and how often each occurs, one behind the other.
    pub fn of_pairs(pairs: &[u32]) -> Self {
        Self { atoms: pairs.iter().map(|figure| u64::from(*figure)).collect(), ..Self::default() }
    }

    fn quantiles_of(values: &[u64], room: usize) -> Self {
        let steps = room.max(2) - 1;
        let last = values.len() - 1;
        let quantiles = (0..=steps).map(|step| values[(last * step + steps / 2) / steps]).collect();
        Self { atoms: Vec::new(), quantiles, count: values.len() as u64 }
    }

    /// How many values it stands for.
    pub fn count(&self) -> u64 {
        self.count + self.atoms.chunks_exact(2).map(|pair| pair[1]).sum::<u64>()
    }

    /// Whether generation can use it: bounded counts, ascending quantiles.
    pub fn is_sound(&self, count_max: u64) -> bool {
        self.atoms.len().is_multiple_of(2)
            && self.atoms.chunks_exact(2).all(|pair| pair[1] <= count_max)
            && self.count <= count_max
            && self.count() <= count_max
            && self.quantiles.is_sorted()
            && (self.count == 0) == self.quantiles.is_empty()
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        let atoms = self.atoms.chunks_exact(2).map(|pair| pair[0]);
        atoms.chain(self.quantiles.last().copied()).max().unwrap_or(0)
    }

    /// The value at a place of 0 to 1 among the quantiles.
    fn quantile(&self, at: f64) -> u64 {
        let position = at.clamp(0.0, 1.0) * (self.quantiles.len() - 1) as f64;
        let low = self.quantiles[position as usize];
        let high = self.quantiles[(position as usize + 1).min(self.quantiles.len() - 1)];
        low.saturating_add(((high - low) as f64 * position.fract()).round() as u64).min(high)
    }

    /// A value at random.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        if !self.quantiles.is_empty() {
            return self.quantile(rng.unit());
        }
        let mut rank = rng.below(self.count().max(1));
        for pair in self.atoms.chunks_exact(2) {
            if rank < pair[1] {
                return pair[0];
            }
            rank -= pair[1];
        }
        0
    }

    /// As many values as were counted, ascending.
    fn values(&self) -> Vec<u64> {
        if self.quantiles.is_empty() {
            let pairs = self.atoms.chunks_exact(2);
            return pairs.flat_map(|pair| std::iter::repeat_n(pair[0], pair[1] as usize)).collect();
        }
        let last = (self.count - 1).max(1) as f64;
        (0..self.count).map(|index| self.quantile(index as f64 / last)).collect()
    }
}

/// Deals the values of a table in random order, again and again.
pub(super) struct Deck {
    values: Vec<u64>,
    dealt: usize,
}

impl Deck {
    pub fn new(table: &Table) -> Self {
        let values = table.values();
        Self { dealt: values.len(), values }
    }

    pub fn deal(&mut self, rng: &mut Rng) -> u64 {
        if self.values.is_empty() {
            return 0;
        }
        if self.dealt == self.values.len() {
            self.dealt = 0;
        }
        let other = self.dealt + rng.below((self.values.len() - self.dealt) as u64) as usize;
        self.values.swap(self.dealt, other);
        self.dealt += 1;
        self.values[self.dealt - 1]
    }
}

/// A deck from which only values below a bound can be dealt at a time.
pub(super) struct BoundedDeck {
    values: Vec<u64>,
    left: Tally,
}

impl BoundedDeck {
    pub fn new(table: &Table) -> Self {
        let values = table.values();
        let left = Self::fresh(&values);
        Self { values, left }
    }

    fn fresh(values: &[u64]) -> Tally {
        Tally::full(values.len(), values.len().next_power_of_two())
    }

    /// A value below `bound`, if one is left.
    pub fn deal_below(&mut self, bound: u64, rng: &mut Rng) -> Option<u64> {
        if self.left.total() == 0 {
            self.left = Self::fresh(&self.values);
        }
        let eligible = self.left.below(self.values.partition_point(|value| *value < bound));
        if eligible == 0 {
            return None;
        }
        let index = self.left.find(rng.below(u64::from(eligible)) as u32);
        self.left.remove(index);
        Some(self.values[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
    use stats::error_ratio;

    #[test]
    fn few_values_are_kept_exactly() {
        let table = Table::of(vec![5, 1, 5, 5], 8);
        assert_eq!((table.atoms.as_slice(), table.count(), table.max()), (&[1, 1, 5, 3][..], 4, 5));
        let (mut deck, mut rng) = (Deck::new(&table), Rng::new(1));
        for _ in 0..3 {
            let mut dealt: Vec<u64> = (0..4).map(|_| deck.deal(&mut rng)).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, [1, 5, 5, 5]);
        }
    }

    #[test]
    fn many_values_keep_their_distribution() {
        let mut rng = Rng::new(2);
        let values: Vec<u64> = (0..5000).map(|_| rng.exponential(1e6) as u64).collect();
        let table = Table::of(values.clone(), 64);
        let mut deck = Deck::new(&table);
        let dealt: Vec<u64> = (0..5000).map(|_| deck.deal(&mut rng)).collect();
        let error = error_ratio::compare(&dealt, &values).error_ratio;
        assert!(error < 0.05, "{error}");
    }

    #[test]
    fn a_bounded_deck_deals_what_fits_and_keeps_the_rest() {
        let table = Table::of(vec![0, 3, 9], 8);
        let (mut deck, mut rng) = (BoundedDeck::new(&table), Rng::new(1));
        assert_eq!(deck.deal_below(1, &mut rng), Some(0));
        assert_eq!(deck.deal_below(1, &mut rng), None);
        assert_eq!(deck.deal_below(4, &mut rng), Some(3));
        assert_eq!(deck.deal_below(100, &mut rng), Some(9));
        assert_eq!(deck.deal_below(1, &mut rng), Some(0), "dealt anew");
        assert_eq!(BoundedDeck::new(&Table::default()).deal_below(9, &mut rng), None);
    }

    proptest! {
        #[test]
        fn decks_are_as_large_as_their_tables(
            values in prop::collection::vec(any::<u32>(), 0..300), room in 0usize..40,
        ) {
            let values: Vec<u64> = values.into_iter().map(u64::from).collect();
            let table = Table::of(values.clone(), room);
            prop_assert_eq!(table.count(), values.len() as u64);
            prop_assert!(table.is_sound(values.len() as u64));
            let made = table.values();
            prop_assert_eq!(made.len(), values.len());
            prop_assert!(made.is_sorted());
            prop_assert_eq!(made.last(), values.iter().max());
            prop_assert_eq!(made.first(), values.iter().min());
        }
    }
}
