//! The state of a flash device as bytes: [`crate::snapshot`] with a seal.
//!
//! A flash device has millions of numbers that point at each other, so a changed byte is found by a
//! checksum at the end instead of by checking every relation; every number that is used as an
//! index is checked too. Tested by round trips in the middle of random runs, and by truncation and
//! corruption.

use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

const KIND: &str = "flash";
const SEAL_BYTES: usize = 8;

/// Collects the state of the rooms, each in turn.
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

    /// The snapshot, sealed.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut bytes = self.0.finish();
        let seal = checksum(&bytes);
        bytes.extend_from_slice(&seal.to_le_bytes());
        bytes
    }
}

/// Reads the state of the rooms back, in the same order.
#[derive(Clone, Debug)]
pub struct Reader<'a>(SnapshotReader<'a>);

impl<'a> Reader<'a> {
    /// Opens a snapshot for a device whose parameters have `fingerprint`.
    pub(super) fn new(bytes: &'a [u8], fingerprint: u64) -> Result<Self, SnapshotError> {
        let damaged = |cause| SnapshotError::Damaged { offset: bytes.len(), cause };
        let body = bytes.len().checked_sub(SEAL_BYTES).ok_or_else(|| damaged("it ends early"))?;
        let (body, seal) = bytes.split_at(body);
        let reader = SnapshotReader::new(body, KIND, fingerprint)?;
        if seal != checksum(body).to_le_bytes() {
            return Err(damaged("the checksum does not match"));
        }
        Ok(Self(reader))
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

    /// The next number, which is [`super::NONE`] or below `end`.
    pub fn index(&mut self, end: u32) -> Result<u32, SnapshotError> {
        match self.u32()? {
            value if value < end || value == super::NONE => Ok(value),
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

    /// The next numbers into `values`, each [`super::NONE`] or below `end`.
    pub fn indices(&mut self, values: &mut [u32], end: usize) -> Result<(), SnapshotError> {
        self.u32s(values)?;
        let fits = |value: &u32| (*value as usize) < end || *value == super::NONE;
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

/// A hash that any change of a byte changes; no defence against malice.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]);
    all.fold(bytes.len() as u64, |sum, word| {
        (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
