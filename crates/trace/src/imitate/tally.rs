//! A set of small numbers with ranks: a Fenwick tree (Fenwick, "A new data structure for cumulative
//! frequency tables", 1994) of which numbers are in. Tested against a vector of flags.

/// The set.
pub(super) struct Tally {
    /// Node `i` covers the numbers from `i - lowest bit of i` to `i - 1`; the length is a power of
    /// two plus one.
    tree: Vec<u32>,
    total: u32,
}

impl Tally {
    /// Nothing, of `capacity` numbers (a power of two).
    pub fn empty(capacity: usize) -> Self {
        Self::full(0, capacity)
    }

    /// The numbers below `count`, of `capacity`.
    pub fn full(count: usize, capacity: usize) -> Self {
        assert!(capacity.is_power_of_two() && count <= capacity);
        let node = |index: usize| {
            let first = index - (index & index.wrapping_neg());
            count.clamp(first, index) - first
        };
        let tree = (0..=capacity).map(|index| if index == 0 { 0 } else { node(index) as u32 });
        Self { tree: tree.collect(), total: count as u32 }
    }

    pub fn capacity(&self) -> usize {
        self.tree.len() - 1
    }

    /// Numbers in the set.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Numbers in the set that are less than `bound`.
    pub fn below(&self, bound: usize) -> u32 {
        let (mut sum, mut node) = (0, bound);
        while node > 0 {
            sum += self.tree[node];
            node &= node - 1;
        }
        sum
    }

    /// Puts in a number that is not in.
    pub fn add(&mut self, number: usize) {
        self.total += 1;
        let mut node = number + 1;
        while let Some(count) = self.tree.get_mut(node) {
            *count += 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Takes out a number that is in.
    pub fn remove(&mut self, number: usize) {
        self.total -= 1;
        let mut node = number + 1;
        while let Some(count) = self.tree.get_mut(node) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
    }

    /// The number in the set that `rank` others are less than; `rank` is below the total.
    pub fn find(&self, rank: u32) -> usize {
        debug_assert!(rank < self.total);
        let (mut left, mut node, mut step) = (rank, 0, self.capacity());
        while step > 0 {
            if let Some(count) = self.tree.get(node + step)
                && *count <= left
            {
                left -= count;
                node += step;
            }
            step /= 2;
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn agrees_with_flags(
            full in 0usize..=64, changes in prop::collection::vec(0usize..64, 0..200),
        ) {
            let mut tally = Tally::full(full, 64);
            let mut flags: Vec<bool> = (0..64).map(|number| number < full).collect();
            for number in changes {
                if flags[number] { tally.remove(number) } else { tally.add(number) }
                flags[number] = !flags[number];
                let members: Vec<usize> = (0..64).filter(|number| flags[*number]).collect();
                prop_assert_eq!(tally.total() as usize, members.len());
                let below = members.iter().filter(|m| **m < number).count();
                prop_assert_eq!(tally.below(number) as usize, below);
                for (rank, member) in members.iter().enumerate() {
                    prop_assert_eq!(tally.find(rank as u32), *member);
                }
            }
        }
    }
}
