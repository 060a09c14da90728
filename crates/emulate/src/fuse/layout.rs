//! Where the bytes of files are on the device: one linear address space, extents per file.
//!
//! The way of an extent file system: a file that grows gets an extent behind its last one while
//! that space is free, otherwise the first hole that is large enough; extents grow with the file,
//! from 64 KiB to 8 MiB, so that many small files cost little and large ones lie in one piece.
//! Files that exist when the device is made are laid out whole, one after the other, as after a
//! copy. What was removed or cut off is free for the next file; the device is not told (as file
//! systems do it without `discard`).
//!
//! Pure. Invariants, tested: extents never overlap, lie below the capacity, and cover every byte
//! that was written; what is freed is given out again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Extents begin and end at multiples of it, bytes.
const BLOCK: u64 = 4096;
/// Least and most that a file is given ahead of its end.
const AHEAD_MIN: u64 = 64 << 10;
const AHEAD_MAX: u64 = 8 << 20;

/// A file: the device that holds it and its inode number there.
pub(crate) use crate::line::FileId;

/// A piece of a file: its length and its place on the device, by its place in the file.
type Extents = BTreeMap<u64, (u64, u64)>;

/// The device has no space left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The address space of a device.
#[derive(Debug)]
pub(crate) struct Layout {
    capacity: u64,
    free_bytes: u64,
    /// Holes: length by their start.
    free: BTreeMap<u64, u64>,
    files: HashMap<FileId, Extents>,
}

impl Layout {
    /// An empty device of this many bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        let capacity = capacity / BLOCK * BLOCK;
        let free = BTreeMap::from([(0, capacity)]);
        Self { capacity, free_bytes: capacity, free, files: HashMap::new() }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Gives the whole file a place.
    pub(crate) fn place(&mut self, file: FileId, size: u64) -> Result<(), Full> {
        self.cover(file, 0..size.next_multiple_of(BLOCK), false)
    }

    /// Gives every byte of `range` a place, and a file that grows at its end some space ahead.
    pub(crate) fn write(&mut self, file: FileId, range: Range<u64>) -> Result<(), Full> {
        self.cover(file, whole_blocks(&range), true)
    }

    fn cover(&mut self, file: FileId, range: Range<u64>, ahead: bool) -> Result<(), Full> {
        let mut at = range.start;
        while at < range.end {
            let extents = self.files.entry(file).or_default();
            let before = extents.range(..=at).next_back().map(|(&start, &(len, to))| {
                let end = start + len;
                (end, to + len)
            });
            if let Some((end, _)) = before
                && end > at
            {
                at = end;
                continue;
            }
            let next = extents.range(at..).next().map_or(u64::MAX, |(&start, _)| start);
            let needed = range.end.min(next) - at;
            let is_append = next == u64::MAX && ahead;
            let behind = before.filter(|(end, _)| *end == at).map(|(_, to)| to);
            let wanted =
                if is_append { needed.max(at.clamp(AHEAD_MIN, AHEAD_MAX)) } else { needed };
            let wanted = wanted.next_multiple_of(BLOCK).min(next - at);
            let (to, len) = self.take(wanted, behind).ok_or(Full)?;
            let extents = self.files.get_mut(&file).expect("the entry was made above");
            match extents.range_mut(..at).next_back() {
                Some((&start, (own, from))) if start + *own == at && *from + *own == to => {
                    *own += len;
                }
                _ => _ = extents.insert(at, (len, to)),
            }
            at += len;
        }
        Ok(())
    }

    /// A hole of at most `wanted` bytes, at `behind` if that is free, else the first that is large
    /// enough, else the largest.
    fn take(&mut self, wanted: u64, behind: Option<u64>) -> Option<(u64, u64)> {
        let here = behind.and_then(|to| self.free.get(&to).map(|&len| (to, len)));
        let fits = || self.free.iter().find(|(_, len)| **len >= wanted);
        let largest = || self.free.iter().max_by_key(|(_, len)| **len);
        let found = here.or_else(|| fits().or_else(largest).map(|(&to, &len)| (to, len)));
        let (to, hole) = found?;
        let len = hole.min(wanted);
        self.free.remove(&to);
        if hole > len {
            self.free.insert(to + len, hole - len);
        }
        self.free_bytes -= len;
        Some((to, len))
    }

    fn give_back(&mut self, mut to: u64, mut len: u64) {
        self.free_bytes += len;
        if let Some((&before, &own)) = self.free.range(..to).next_back()
            && before + own == to
        {
            self.free.remove(&before);
            (to, len) = (before, own + len);
        }
        if let Some(behind) = self.free.remove(&(to + len)) {
            len += behind;
        }
        self.free.insert(to, len);
    }

    /// The places of `range` of a file, cut to whole blocks where it is not aligned to sectors;
    /// what has no place (a hole) is left out.
    pub(crate) fn pieces(&self, file: FileId, range: &Range<u64>) -> Vec<(u64, u64)> {
        let is_aligned = range.start.is_multiple_of(512) && range.end.is_multiple_of(512);
        let range = if is_aligned { range.clone() } else { whole_blocks(range) };
        let Some(extents) = self.files.get(&file) else { return Vec::new() };
        let first = extents.range(..=range.start).next_back().map_or(0, |(&start, _)| start);
        let mut found = Vec::new();
        for (&start, &(len, to)) in extents.range(first..range.end.max(first)) {
            let from = start.max(range.start);
            let end = (start + len).min(range.end);
            if from < end {
                found.push((to + (from - start), end - from));
            }
        }
        found
    }

    /// The file ends at `size` now; space behind it is free.
    pub(crate) fn truncate(&mut self, file: FileId, size: u64) {
        self.remove_range(file, size.next_multiple_of(BLOCK)..u64::MAX);
    }

    /// The file is gone.
    pub(crate) fn remove(&mut self, file: FileId) {
        self.remove_range(file, 0..u64::MAX);
        self.files.remove(&file);
    }

    fn remove_range(&mut self, file: FileId, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let Some(extents) = self.files.get_mut(&file) else { return };
        let first = extents.range(..=range.start).next_back().map_or(0, |(&start, _)| start);
        let touched: Vec<(u64, (u64, u64))> = extents
            .range(first..range.end)
            .map(|(&start, &extent)| (start, extent))
            .filter(|(start, (len, _))| start + len > range.start)
            .collect();
        let mut given = Vec::new();
        for (start, (len, to)) in touched {
            extents.remove(&start);
            let (from, end) = (start.max(range.start), (start + len).min(range.end));
            if start < from {
                extents.insert(start, (from - start, to));
            }
            if end < start + len {
                extents.insert(end, (start + len - end, to + (end - start)));
            }
            given.push((to + (from - start), end - from));
        }
        for (to, len) in given {
            self.give_back(to, len);
        }
    }
}

fn whole_blocks(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK * BLOCK..range.end.next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_file_that_grows_lies_in_one_piece_and_the_next_one_behind_it() {
        let mut layout = Layout::new(64 * MIB);
        layout.place((1, 1), 3 * MIB).unwrap();
        for block in 0..256 {
            layout.write((1, 2), block * 8192..(block + 1) * 8192).unwrap();
        }
        assert_eq!(layout.pieces((1, 1), &(MIB..2 * MIB)), [(MIB, MIB)]);
        assert_eq!(layout.pieces((1, 2), &(0..2 * MIB)), [(3 * MIB, 2 * MIB)]);
        // Not aligned: whole blocks move. A hole: nothing does.
        assert_eq!(layout.pieces((1, 1), &(100..200)), [(0, 4096)]);
        assert!(layout.pieces((1, 3), &(0..4096)).is_empty());
    }

    #[test]
    fn a_full_device_says_so_and_what_is_freed_is_used_again() {
        let mut layout = Layout::new(MIB);
        layout.place((1, 1), MIB).unwrap();
        assert_eq!(layout.write((1, 2), 0..4096), Err(Full));
        layout.truncate((1, 1), MIB / 2);
        assert_eq!(layout.free_bytes(), MIB / 2);
        layout.write((1, 2), 0..4096).unwrap();
        assert_eq!(layout.pieces((1, 2), &(0..4096)), [(MIB / 2, 4096)]);
        layout.remove((1, 1));
        layout.remove((1, 2));
        assert_eq!((layout.free_bytes(), layout.free.len()), (MIB, 1));
    }

    #[derive(Clone, Debug)]
    enum Change {
        Write(u64, u64, u64),
        Truncate(u64, u64),
        Remove(u64),
    }

    fn change() -> impl Strategy<Value = Change> {
        let file = || 0..4u64;
        prop_oneof![
            6 => (file(), 0..400u64, 1..60u64)
                .prop_map(|(file, at, len)| Change::Write(file, at * 1000, len * 1000)),
            1 => (file(), 0..400_000u64).prop_map(|(file, size)| Change::Truncate(file, size)),
            1 => file().prop_map(Change::Remove),
        ]
    }

    proptest! {
        #[test]
        fn extents_never_overlap_and_space_is_conserved(
            changes in prop::collection::vec(change(), 1..80),
        ) {
            let mut layout = Layout::new(4 * MIB);
            for change in changes {
                match change {
                    Change::Write(file, at, len) => {
                        if layout.write((0, file), at..at + len).is_ok() {
                            let blocks = whole_blocks(&(at..at + len));
                            let covered: u64 =
                                layout.pieces((0, file), &blocks).iter().map(|piece| piece.1).sum();
                            prop_assert_eq!(covered, blocks.end - blocks.start);
                        }
                    }
                    Change::Truncate(file, size) => layout.truncate((0, file), size),
                    Change::Remove(file) => layout.remove((0, file)),
                }
                let free = layout.free.iter().map(|(&to, &len)| (to, len));
                let mut all: Vec<(u64, u64)> = free.collect();
                prop_assert_eq!(all.iter().map(|piece| piece.1).sum::<u64>(), layout.free_bytes);
                for extents in layout.files.values() {
                    all.extend(extents.values().map(|&(len, to)| (to, len)));
                }
                all.sort_unstable();
                let mut end = 0;
                for (to, len) in all {
                    prop_assert_eq!(to, end);
                    end = to + len;
                }
                prop_assert_eq!(end, layout.capacity);
            }
        }
    }
}
