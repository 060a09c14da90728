//! The state of a flash device as bytes: [`crate::snapshot`], with checks of indices.
//!
//! A flash device has millions of numbers that point at each other, so a changed byte is found by
//! the checksum of the snapshot instead of by checking every relation; every number that is used as
//! an index is checked too. Tested by round trips in the middle of random runs, and by truncation
//! and corruption.

use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

const KIND: &str = "flash";

/// Collects the state of the components, each in turn.
#[derive(Clone, Debug)]
pub struct Writer(SnapshotWriter);

impl Writer {
    /// Begins the snapshot of a device whose parameters have `fingerprint`.
    pub(super) fn new(fingerprint: u64) -> Self {
        Self(SnapshotWriter::new(KIND, fingerprint))
    }

    /// Appends a number.
    pub fn u32(&mut self, value: u32) {
        self.0.u64(u64::from(value));
    }

    /// Appends a number.
    pub fn u64(&mut self, value: u64) {
        self.0.u64(value);
    }

    /// Appends numbers, with their count in front.
    pub fn u32s(&mut self, values: &[u32]) {
        self.0.u32s(values);
    }

    /// Appends numbers, with their count in front.
    pub fn u64s(&mut self, values: &[u64]) {
        self.0.u64s(values);
    }

    /// Appends as many numbers as there are, with their count in front.
    pub fn list(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        self.u64(values.len() as u64);
        values.for_each(|value| self.u32(value));
    }

    /// The snapshot, sealed.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Reads the state of the components back, in the same order.
#[derive(Clone, Debug)]
pub struct Reader<'a>(SnapshotReader<'a>);

impl<'a> Reader<'a> {
    /// Opens a snapshot for a device whose parameters have `fingerprint`.
    pub(super) fn new(bytes: &'a [u8], fingerprint: u64) -> Result<Self, SnapshotError> {
        SnapshotReader::new(bytes, KIND, fingerprint).map(Self)
    }

    /// The error of a number that no device can hold.
    pub fn damaged(&self) -> SnapshotError {
        self.0.damaged("a number is out of range")
    }

    /// The next number.
    ///
    /// # Errors
    /// At the end of the snapshot, and where it does not fit; so do the others.
    pub fn u32(&mut self) -> Result<u32, SnapshotError> {
        u32::try_from(self.0.u64()?).map_err(|_| self.damaged())
    }

    /// The next number, which is below `end`.
    pub fn below(&mut self, end: usize) -> Result<u32, SnapshotError> {
        self.0.below(end).map(|value| value as u32)
    }

    /// How many of something follow, of which each takes at least a number.
    pub fn count(&mut self) -> Result<usize, SnapshotError> {
        self.0.counted(8)
    }

    /// What [`Writer::list`] wrote, each below `end`.
    pub fn list<C: FromIterator<u32>>(&mut self, end: usize) -> Result<C, SnapshotError> {
        let count = self.count()?;
        (0..count).map(|_| self.below(end)).collect()
    }

    /// The next number, which is [`profile::flash::NONE`] or below `end`.
    pub fn index(&mut self, end: u32) -> Result<u32, SnapshotError> {
        match self.u32()? {
            value if value < end || value == profile::flash::NONE => Ok(value),
            _ => Err(self.damaged()),
        }
    }

    /// The next number.
    pub fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.0.u64()
    }

    /// The next numbers into `values`, which has their count.
    pub fn u32s(&mut self, values: &mut [u32]) -> Result<(), SnapshotError> {
        self.0.u32s(values)
    }

    /// The next numbers into `values`, each [`profile::flash::NONE`] or below `end`.
    pub fn indices(&mut self, values: &mut [u32], end: usize) -> Result<(), SnapshotError> {
        self.u32s(values)?;
        let fits = |value: &u32| (*value as usize) < end || *value == profile::flash::NONE;
        if values.iter().all(fits) { Ok(()) } else { Err(self.damaged()) }
    }

    /// The next numbers into `values`, which has their count.
    pub fn u64s(&mut self, values: &mut [u64]) -> Result<(), SnapshotError> {
        self.0.u64s(values)
    }

    /// Nothing is left over.
    pub(super) fn finish(self) -> Result<(), SnapshotError> {
        self.0.finish()
    }
}
