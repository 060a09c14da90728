//! The track buffer: segments of consecutive sectors that are in memory.
//!
//! A segment holds one run of logical sectors, read or written, up to its size; the oldest sectors
//! make room for the newest. The least recently used segment makes room for a new run. Dirty
//! sectors are the business of the write path: here all data count as present.
//!
//! Invariants: a segment is never longer than its size; a written sector is found in no segment
//! with its old content.

use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

/// A run of sectors in memory, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub start: u64,
    pub end: u64,
    used: u64,
}

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    all: Vec<Segment>,
    size_sectors: u64,
    clock: u64,
}

impl Segments {
    /// `count` empty segments of `size_sectors`.
    pub fn new(count: usize, size_sectors: u32) -> Self {
        Self {
            all: vec![Segment::default(); count],
            size_sectors: u64::from(size_sectors),
            clock: 0,
        }
    }

    /// Into a snapshot.
    pub fn save(&self, to: &mut SnapshotWriter) {
        let Self { all, size_sectors: _, clock } = self;
        to.u64(*clock);
        for Segment { start, end, used } in all {
            to.u64s(&[*start, *end, *used]);
        }
    }

    /// Out of one.
    pub fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        self.clock = from.u64()?;
        for segment in &mut self.all {
            let [start, end, used] = from.array()?;
            if start > end || end - start > self.size_sectors {
                return Err(from.damaged("a segment has an impossible size"));
            }
            *segment = Segment { start, end, used };
        }
        Ok(())
    }

    /// Sectors that a segment holds.
    pub fn size_sectors(&self) -> u64 {
        self.size_sectors
    }

    /// What segment `index` holds.
    pub fn get(&self, index: usize) -> Segment {
        self.all[index]
    }

    /// The segment that holds `lbn` and most after it.
    pub fn find(&self, lbn: u64) -> Option<usize> {
        let holds = |segment: &&(usize, &Segment)| segment.1.start <= lbn && lbn < segment.1.end;
        let items: std::iter::Enumerate<std::slice::Iter<Segment>> = self.all.iter().enumerate();
        items.filter(|item| holds(&item)).max_by_key(|(_, segment)| segment.end).map(|(i, _)| i)
    }

    /// Notes that segment `index` was used.
    pub fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.all[index].used = self.clock;
    }

    /// A segment for the new run `start..end`, cut at the front to its size; none where the buffer
    /// has no segments.
    pub fn open(&mut self, start: u64, end: u64) -> Option<usize> {
        let oldest = self.all.iter().enumerate().min_by_key(|(_, segment)| segment.used);
        let index = oldest.map(|(index, _)| index)?;
        self.all[index] = Segment { start: start.max(self.front(end)), end, used: 0 };
        self.touch(index);
        Some(index)
    }

    /// Segment `index` now reaches to `end`.
    pub fn extend(&mut self, index: usize, end: u64) {
        let front = self.front(end);
        let segment = &mut self.all[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(front);
    }

    fn front(&self, end: u64) -> u64 {
        end.saturating_sub(self.size_sectors)
    }

    /// The segment that ends where `lbn` starts.
    pub fn ending_at(&self, lbn: u64) -> Option<usize> {
        self.all.iter().position(|segment| segment.end == lbn && segment.start < lbn)
    }

    /// Forgets `start..end`: new content was written.
    pub fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.all {
            if segment.start >= end || start >= segment.end {
                continue;
            }
            // The longer of the two parts that remain.
            if start.saturating_sub(segment.start) >= segment.end.saturating_sub(end) {
                segment.end = start.max(segment.start);
            } else {
                segment.start = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_kept_to_their_size_and_the_oldest_goes() {
        let mut segments = Segments::new(2, 10);
        assert_eq!(segments.find(0), None);
        let a = segments.open(100, 105).expect("there are segments");
        let b = segments.open(200, 230).expect("there are segments");
        assert_eq!((segments.get(b).start, segments.get(b).end), (220, 230));
        segments.extend(a, 112);
        assert_eq!((segments.find(101), segments.find(102)), (None, Some(a)));
        assert_eq!(segments.ending_at(112), Some(a));
        segments.touch(a);
        assert_eq!(segments.open(300, 301), Some(b));
        assert_eq!(segments.find(225), None);
        segments.forget(104, 106);
        assert_eq!(
            (segments.find(103), segments.find(105), segments.find(106)),
            (None, None, Some(a))
        );
        segments.forget(110, 400);
        assert_eq!(
            (segments.find(109), segments.find(110), segments.find(300)),
            (Some(a), None, None)
        );
        assert_eq!(Segments::new(0, 10).open(1, 2), None);
    }
}
