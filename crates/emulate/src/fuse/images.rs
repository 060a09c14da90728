//! What a file held when it was last synced, as far as it has been written over since.
//!
//! Pure: the caller reads the bytes. Invariant: below `durable_size`, a byte is either unchanged
//! since the last sync or its old value is in an image; above it, everything is new. Tested against
//! a slow oracle that copies the whole file at each sync.

use std::collections::BTreeMap;
use std::ops::Range;

/// Longest piece of zeros that is remembered. A sparse file may have holes that no memory has room
/// for; what is written into a longer one before the next sync counts as durable.
const ZEROS_MAX: u64 = 64 << 20;

/// Old bytes of one file.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// Size at the last sync; `None` while nothing has changed since.
    durable_size: Option<u64>,
    /// Old bytes by their offset; they do not overlap.
    old: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl Images {
    /// Whether nothing has changed since the last sync.
    pub(crate) fn is_clean(&self) -> bool {
        self.durable_size.is_none()
    }

    /// Bytes of memory that the images take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Says that the file, now of `size` bytes, is about to change.
    pub(crate) fn begin(&mut self, size: u64) {
        self.durable_size.get_or_insert(size);
    }

    /// The parts of `range` whose old bytes must be kept before they are written over.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let end = range.end.min(self.durable_size.unwrap_or(0));
        let mut at = range.start;
        let mut found = Vec::new();
        let before = self.old.range(..at).next_back();
        if let Some((start, bytes)) = before {
            at = at.max(start + bytes.len() as u64);
        }
        for (&start, bytes) in self.old.range(range.start..end.max(range.start)) {
            if start > at {
                found.push(at..start);
            }
            at = at.max(start + bytes.len() as u64);
        }
        if at < end {
            found.push(at..end);
        }
        found
    }

    /// Keeps old bytes of a part that [`Images::missing`] named.
    pub(crate) fn keep(&mut self, offset: u64, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.bytes += bytes.len() as u64;
            let replaced = self.old.insert(offset, bytes);
            assert!(replaced.is_none(), "old bytes are kept once");
        }
    }

    /// The file was synced: what it holds now is durable.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The bytes of `range`, which were written, are durable as they are; what lies around them is
    /// not. A file that ended before them is as long as they reach, with zeros in between.
    pub(crate) fn make_durable(&mut self, range: &Range<u64>) {
        let Some(size) = self.durable_size else { return };
        let before = self.old.range(..range.start).next_back();
        let reaching = before.filter(|(start, bytes)| *start + bytes.len() as u64 > range.start);
        let mut touched: Vec<u64> = reaching.map(|(start, _)| *start).into_iter().collect();
        touched.extend(self.old.range(range.clone()).map(|(start, _)| *start));
        for start in touched {
            let mut bytes = self.old.remove(&start).expect("it was found above");
            self.bytes -= bytes.len() as u64;
            if start + bytes.len() as u64 > range.end {
                self.keep(range.end, bytes.split_off((range.end - start) as usize));
            }
            bytes.truncate(range.start.saturating_sub(start) as usize);
            self.keep(start, bytes);
        }
        if range.end > size {
            let hole = range.start.saturating_sub(size);
            self.keep(size, vec![0; hole.min(ZEROS_MAX) as usize]);
            self.durable_size = Some(range.end);
        }
    }

    /// The size to go back to, and the old bytes with their offsets.
    pub(crate) fn take(&mut self) -> Option<(u64, BTreeMap<u64, Vec<u8>>)> {
        let images = std::mem::take(self);
        images.durable_size.map(|size| (size, images.old))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Change {
        Write(u64, Vec<u8>),
        Truncate(u64),
        WriteThrough(u64, Vec<u8>),
        Sync,
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            8 => (0..60u64, prop::collection::vec(any::<u8>(), 1..20))
                .prop_map(|(at, bytes)| Change::Write(at, bytes)),
            2 => (0..80u64).prop_map(Change::Truncate),
            2 => (0..60u64, prop::collection::vec(any::<u8>(), 1..20))
                .prop_map(|(at, bytes)| Change::WriteThrough(at, bytes)),
            1 => Just(Change::Sync),
        ]
    }

    /// A sparse file can be longer than any memory.
    #[test]
    fn a_long_hole_takes_no_memory() {
        let mut images = Images::default();
        images.begin(10);
        images.make_durable(&(1 << 50..(1 << 50) + 4));
        assert!(images.bytes() <= ZEROS_MAX);
        assert_eq!(images.take().unwrap().0, (1 << 50) + 4);
    }

    fn about_to(images: &mut Images, file: &[u8], range: Range<u64>) {
        images.begin(file.len() as u64);
        for part in images.missing(range) {
            let old = file[part.start as usize..(part.end as usize).min(file.len())].to_vec();
            images.keep(part.start, old);
        }
    }

    proptest! {
        #[test]
        fn going_back_gives_the_last_synced_file(
            changes in prop::collection::vec(change(), 0..40),
        ) {
            let mut file = vec![1, 2, 3, 4, 5, 6, 7, 8, 9];
            let mut synced = file.clone();
            let mut images = Images::default();
            for change in changes {
                match change {
                    Change::Write(at, bytes) => {
                        about_to(&mut images, &file, at..at + bytes.len() as u64);
                        file.resize(file.len().max(at as usize + bytes.len()), 0);
                        file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                    }
                    Change::WriteThrough(at, bytes) => {
                        let range = at as usize..at as usize + bytes.len();
                        about_to(&mut images, &file, at..range.end as u64);
                        for file in [&mut file, &mut synced] {
                            file.resize(file.len().max(range.end), 0);
                            file[range.clone()].copy_from_slice(&bytes);
                        }
                        images.make_durable(&(at..range.end as u64));
                    }
                    Change::Truncate(size) => {
                        about_to(&mut images, &file, size..u64::MAX);
                        file.resize(size as usize, 0);
                    }
                    Change::Sync => {
                        images.clear();
                        synced = file.clone();
                    }
                }
            }
            if let Some((size, old)) = images.take() {
                file.resize(size as usize, 0);
                for (offset, bytes) in old {
                    file[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
            }
            prop_assert_eq!(file, synced);
        }
    }
}
