//! A file's blocks by number: which block of the store each one is.

use std::collections::BTreeMap;

const CHUNK: u64 = 1024;
const NONE: u32 = u32::MAX;

/// A table with holes, in chunks.
#[derive(Clone, Debug, Default)]
pub(in crate::file_system) struct Table {
    chunks: BTreeMap<u64, Box<[u32]>>,
}

impl Table {
    /// The block at `index`.
    pub fn get(&self, index: u64) -> Option<u32> {
        let chunk = self.chunks.get(&(index / CHUNK))?;
        Some(chunk[(index % CHUNK) as usize]).filter(|block| *block != NONE)
    }

    /// Puts a block at `index`, and returns the one that was there.
    pub fn set(&mut self, index: u64, block: u32) -> Option<u32> {
        let empty = || vec![NONE; CHUNK as usize].into_boxed_slice();
        let chunk = self.chunks.entry(index / CHUNK).or_insert_with(empty);
        let slot = &mut chunk[(index % CHUNK) as usize];
        Some(std::mem::replace(slot, block)).filter(|block| *block != NONE)
    }

    /// All blocks, by index.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.chunks.values().flatten().copied().filter(|block| *block != NONE)
    }

    /// First index behind `index` that has a block.
    pub fn next(&self, index: u64) -> Option<u64> {
        let from = index + 1;
        for (number, chunk) in self.chunks.range(from / CHUNK..) {
            let skip = from.saturating_sub(number * CHUNK);
            let found = chunk.iter().skip(skip as usize).position(|block| *block != NONE);
            if let Some(at) = found {
                return Some(number * CHUNK + skip + at as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec((0_u64..5000, 0_u32..99), 1..40)) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (index, block) in steps {
                prop_assert_eq!(table.set(index, block), map.insert(index, block));
                for index in (0..5100).step_by(7).chain(map.keys().copied()) {
                    prop_assert_eq!(table.get(index), map.get(&index).copied());
                    let next = map.range(index + 1..).next().map(|(index, _)| *index);
                    prop_assert_eq!(table.next(index), next);
                }
            }
        }
    }
}
