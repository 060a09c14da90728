//! Where a file's bytes lie on the disk: the FIEMAP ioctl (kernel Documentation/filesystems/
//! fiemap.rst), structures and numbers as in include/uapi/linux/fiemap.h.
//!
//! Invariant: extents are disjoint and sorted, so that a lookup is one binary search. Tested on a
//! file of our own where the file system answers.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
/// Write dirty pages first, so that delayed allocation has happened.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
/// Flags of extents without a place of their own on the disk: unknown, delayed, encoded, inline.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200;
/// Extents asked for at a time.
const BATCH: usize = 128;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Query {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// Which class owns which bytes of the disk.
#[derive(Default)]
pub(super) struct Extents {
    /// Start, end, class; sorted and disjoint.
    ranges: Vec<(u64, u64, u16)>,
}

impl Extents {
    /// Adds the extents of a file; `partition_start` is added to the file system's own addresses.
    pub(super) fn add(&mut self, path: &Path, class: u16, partition_start: u64) -> io::Result<()> {
        for (start, length) in extents_of(&File::open(path)?, FIEMAP_FLAG_SYNC)?.placed {
            self.insert(partition_start + start, length, class);
        }
        Ok(())
    }

    fn insert(&mut self, start: u64, length: u64, class: u16) {
        let at = self.ranges.partition_point(|range| range.0 < start);
        self.ranges.insert(at, (start, start + length, class));
    }

    /// The class that owns the byte at `offset`.
    pub(super) fn class_at(&self, offset: u64) -> Option<u16> {
        let after = self.ranges.partition_point(|range| range.0 <= offset);
        let (_, end, class) = self.ranges[..after].last()?;
        (offset < *end).then_some(*class)
    }
}

/// Where a file lies.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Start and length of each extent, bytes of the file system's device.
    pub placed: Vec<(u64, u64)>,
    /// Whether some of it has no place yet.
    pub delayed: bool,
}

/// Where a file lies now, without asking for anything to be written.
pub(crate) fn where_now(file: &File) -> io::Result<Found> {
    extents_of(file, 0)
}

/// Where a file lies.
fn extents_of(file: &File, flags: u32) -> io::Result<Found> {
    let mut found = Found::default();
    let mut start = 0;
    loop {
        let mut query = Query {
            start,
            length: u64::MAX - start,
            flags,
            mapped: 0,
            room: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: the kernel fills at most `room` extents behind the header, as laid out above.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut query) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &query.extents[..(query.mapped as usize).min(BATCH)];
        found.delayed |= mapped.iter().any(|extent| extent.flags & NO_PLACE != 0);
        let placed = mapped.iter().filter(|extent| extent.flags & NO_PLACE == 0);
        found.placed.extend(placed.map(|extent| (extent.physical, extent.length)));
        match mapped.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 => {
                start = last.logical + last.length;
            }
            _ => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_at_the_edges() {
        let mut extents = Extents::default();
        extents.insert(4096, 4096, 1);
        extents.insert(0, 1000, 0);
        extents.insert(8192, 10, 2);
        for (offset, class) in [
            (0, Some(0)),
            (999, Some(0)),
            (1000, None),
            (4095, None),
            (4096, Some(1)),
            (8191, Some(1)),
            (8192, Some(2)),
            (8202, None),
        ] {
            assert_eq!(extents.class_at(offset), class, "{offset}");
        }
    }

    #[test]
    fn a_file_of_ours_covers_its_bytes() {
        assert_eq!(size_of::<Extent>(), 56);
        let directory = tempfile::tempdir_in(crate::test_home()).unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let extents = match extents_of(&File::open(&path).unwrap(), FIEMAP_FLAG_SYNC) {
            Ok(extents) => extents.placed,
            Err(error) => return println!("skipped: FIEMAP: {error}"),
        };
        let covered: u64 = extents.iter().map(|(_, length)| length).sum();
        assert!(covered >= 300_000, "{extents:?}");
        let mut map = Extents::default();
        map.add(&path, 3, 1 << 20).unwrap();
        assert_eq!(map.class_at(extents[0].0 + (1 << 20)), Some(3));
    }
}
