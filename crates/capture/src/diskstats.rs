//! The kernel's own counters of a block device, to close the account of a capture.
//!
//! Format: Documentation/admin-guide/iostats.rst and Documentation/block/stat.rst of the kernel:
//! one line of at least 11 numbers; discards follow since 4.18, flushes since 5.5. Sectors are 512
//! bytes there whatever the device's block is. The counters are of the whole device, so other
//! programs' I/O is in them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::device::{self, Device};

/// Counters of a block device at one moment, or their growth over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStats {
    /// Reads completed.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Milliseconds that reads took, each counted on its own.
    #[serde(default)]
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Discards completed; 0 on kernels that do not count them.
    pub discards: u64,
    /// Sectors of 512 bytes discarded.
    pub discard_sectors: u64,
    /// Flushes completed; 0 on kernels that do not count them.
    pub flushes: u64,
    /// Milliseconds during which at least one request was in flight.
    pub busy_ms: u64,
}

impl DiskStats {
    /// Reads one line of `/sys/block/NAME/stat`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|error| format!("not a line of counters: {error}"))?;
        if numbers.len() < 11 {
            return Err(format!("{} counters where at least 11 are documented", numbers.len()));
        }
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Ok(Self {
            reads: at(0),
            read_sectors: at(2),
            read_ms: at(3),
            writes: at(4),
            write_sectors: at(6),
            busy_ms: at(9),
            discards: at(11),
            discard_sectors: at(13),
            flushes: at(15),
        })
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_sectors: self.read_sectors.saturating_sub(earlier.read_sectors),
            read_ms: self.read_ms.saturating_sub(earlier.read_ms),
            writes: self.writes.saturating_sub(earlier.writes),
            write_sectors: self.write_sectors.saturating_sub(earlier.write_sectors),
            discards: self.discards.saturating_sub(earlier.discards),
            discard_sectors: self.discard_sectors.saturating_sub(earlier.discard_sectors),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
        }
    }
}

/// The counters of the device under a directory, readable without privilege.
#[derive(Clone, Debug)]
pub struct DiskCounter {
    device: Device,
    stat: PathBuf,
    start: DiskStats,
}

impl DiskCounter {
    /// Starts counting on the device that holds `directory`. An error where the file system lies
    /// on no block device that is visible here (tmpfs, a network, some containers).
    pub fn start(directory: &Path) -> Result<Self, Error> {
        Self::of(device::of(directory)?)
    }

    /// Starts counting on a device.
    pub(crate) fn of(device: Device) -> Result<Self, Error> {
        let stat = device.sysfs.join("stat");
        let start = read(&stat)?;
        Ok(Self { device, stat, start })
    }

    /// Name of the device, such as `vda`.
    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// What the device did since the start; may be asked again and again.
    pub fn so_far(&self) -> Result<DiskStats, Error> {
        Ok(read(&self.stat)?.since(self.start))
    }
}

fn read(path: &Path) -> Result<DiskStats, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::path(path, "cannot be read", source))?;
    DiskStats::parse(&text).map_err(|cause| Error::Kernel { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_and_without_the_newer_counters() {
        let new = "   31879     6214  3123458    31380    26861    22425  3393656    12131        \
                   0     6848    44388     8905        5   759984      792     3721       84\n";
        let stats = DiskStats::parse(new).unwrap();
        let expected = DiskStats {
            reads: 31879,
            read_sectors: 3_123_458,
            read_ms: 31380,
            writes: 26861,
            write_sectors: 3_393_656,
            busy_ms: 6848,
            discards: 8905,
            discard_sectors: 759_984,
            flushes: 3721,
        };
        assert_eq!(stats, expected);
        let old = DiskStats::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.writes, old.flushes, old.discards), (5, 0, 0));
    }

    #[test]
    fn what_is_no_line_of_counters() {
        assert!(DiskStats::parse("1 2 3").unwrap_err().contains("3 counters"));
        assert!(DiskStats::parse("").is_err());
        assert!(DiskStats::parse("1 2 3 4 5 6 7 8 9 10 x").unwrap_err().contains("not a line"));
    }

    #[test]
    fn growth_never_turns_negative() {
        let earlier = DiskStats { reads: 5, writes: 1, ..DiskStats::default() };
        let later = DiskStats { reads: 7, writes: 0, ..DiskStats::default() };
        let growth = later.since(earlier);
        assert_eq!((growth.reads, growth.writes), (2, 0));
    }

    #[test]
    fn the_device_under_the_target_folder_counts_our_writes() {
        let counter = match DiskCounter::start(&crate::test_home()) {
            Ok(counter) => counter,
            Err(error) => return println!("skipped: {error}"),
        };
        let directory = tempfile::tempdir_in(crate::test_home()).unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let growth = counter.so_far().unwrap();
        assert!(growth.write_sectors >= (1 << 20) / 512, "{growth:?}");
    }
}
