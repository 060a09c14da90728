//! The state of a device as bytes: exact, so that a run continues as if it had never stopped.
//!
//! Layout, little endian: magic, format version, a fingerprint of the parameters, then the fields
//! of the parts in a fixed order, then a checksum of everything before it. A snapshot belongs to
//! the parameters it was made with; any other device refuses it. Tested by round trips in the
//! middle of random runs and by truncation and corruption at every byte.

use super::Error;

const MAGIC: u64 = 0x6873_616c_6657_4d57; // "WMWflash"
const VERSION: u32 = 1;

/// Collects a snapshot.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Begins the snapshot of a device whose parameters have `fingerprint`.
    pub fn new(fingerprint: u64) -> Self {
        let mut writer = Self { bytes: Vec::new() };
        writer.u64(MAGIC);
        writer.u32(VERSION);
        writer.u64(fingerprint);
        writer
    }

    /// Appends a number.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends numbers, with their count in front.
    pub fn u32s(&mut self, values: &[u32]) {
        self.u64(values.len() as u64);
        self.bytes.reserve(values.len() * 4);
        for value in values {
            self.u32(*value);
        }
    }

    /// Appends numbers, with their count in front.
    pub fn u64s(&mut self, values: &[u64]) {
        self.u64(values.len() as u64);
        for value in values {
            self.u64(*value);
        }
    }

    /// The snapshot, sealed.
    pub fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.bytes);
        self.u64(sum);
        self.bytes
    }
}

/// Reads a snapshot back.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    /// Opens a snapshot for a device whose parameters have `fingerprint`.
    ///
    /// # Errors
    /// Where it is cut short or corrupt, of another version, or of another device.
    pub fn new(bytes: &'a [u8], fingerprint: u64) -> Result<Self, Error> {
        let mut reader = Self { rest: bytes, length: bytes.len() };
        let body = bytes.len().checked_sub(8).ok_or_else(|| reader.malformed())?;
        let (body, seal) = bytes.split_at(body);
        if seal != checksum(body).to_le_bytes() {
            return Err(reader.malformed());
        }
        reader.rest = body;
        if reader.u64()? != MAGIC || reader.u32()? != VERSION {
            return Err(Error::SnapshotVersion);
        }
        if reader.u64()? != fingerprint {
            return Err(Error::SnapshotOfAnother);
        }
        Ok(reader)
    }

    /// The error of bytes that cannot be: with the place.
    pub fn malformed(&self) -> Error {
        Error::SnapshotCorrupt { offset_bytes: self.length - self.rest.len() }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((head, rest)) = self.rest.split_first_chunk() else {
            return Err(self.malformed());
        };
        self.rest = rest;
        Ok(*head)
    }

    /// The next number.
    ///
    /// # Errors
    /// At the end of the snapshot; so do the others.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    /// The next number.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    /// The next numbers into `values`, which has their count.
    pub fn u32s(&mut self, values: &mut [u32]) -> Result<(), Error> {
        if self.u64()? != values.len() as u64 {
            return Err(self.malformed());
        }
        values.iter_mut().try_for_each(|value| self.u32().map(|read| *value = read))
    }

    /// The next numbers into `values`, which has their count.
    pub fn u64s(&mut self, values: &mut [u64]) -> Result<(), Error> {
        if self.u64()? != values.len() as u64 {
            return Err(self.malformed());
        }
        values.iter_mut().try_for_each(|value| self.u64().map(|read| *value = read))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Where anything is left.
    pub fn finish(self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}

/// A hash of `bytes` that any change of a word changes; no defence against malice.
fn checksum(bytes: &[u8]) -> u64 {
    let chunks = bytes.chunks(8);
    chunks.fold(bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        stats::rng::mix(sum.rotate_left(5) ^ u64::from_le_bytes(word))
    })
}
