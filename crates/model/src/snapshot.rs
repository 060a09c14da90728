//! Device states as bytes: a sweep preconditions once and goes on from there many times.
//!
//! A snapshot is a model's own little-endian sequence of numbers behind a header of a magic word,
//! the kind of the model and a fingerprint of its parameters, so that a state never lands on
//! another device, and it is sealed with a checksum. It is not a file format: nothing reads it but
//! the version that wrote it.
//!
//! Invariants, property-tested for every model that has snapshots: replaying the first half of a
//! trace, a snapshot, a restore into a new device and the second half give the completions and
//! counters of one replay; a snapshot cut short or of another device is refused and never panics.

use thiserror::Error;

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The model has no snapshots.
    #[error("this device model cannot restore a snapshot")]
    Unsupported,
    /// It is of another model, of other parameters or of another version.
    #[error("the snapshot is of another device: {what} differs")]
    OtherDevice {
        /// What differs.
        what: &'static str,
    },
    /// It ends early, goes on too long or holds what no device can hold.
    #[error("the snapshot is damaged at byte {offset}: {cause}")]
    Damaged {
        /// Where.
        offset: usize,
        /// Why.
        cause: &'static str,
    },
}

impl events::Hint for SnapshotError {
    fn hint(&self) -> Option<String> {
        Some("precondition the device again with the profile that is to be simulated".to_owned())
    }
}

/// First bytes of every snapshot; the last one is the version.
const MAGIC: u64 = u64::from_le_bytes(*b"wearsna\x01");

/// Writes a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotWriter {
    bytes: Vec<u8>,
}

impl SnapshotWriter {
    /// Of a device of `kind` (at most 8 letters) whose parameters have `fingerprint`.
    pub fn new(kind: &str, fingerprint: u64) -> Self {
        let mut this = Self { bytes: Vec::new() };
        this.u64(MAGIC);
        this.u64(kind_number(kind));
        this.u64(fingerprint);
        this
    }

    /// One number.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// One number, bit for bit.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// A number that may be missing.
    pub fn option(&mut self, value: Option<u64>) {
        self.u64(u64::from(value.is_some()));
        self.u64(value.unwrap_or(0));
    }

    /// As many numbers as `values` has.
    pub fn u64s(&mut self, values: &[u64]) {
        self.u64(values.len() as u64);
        for value in values {
            self.u64(*value);
        }
    }

    /// As many numbers as `values` has.
    pub fn u32s(&mut self, values: &[u32]) {
        self.u64(values.len() as u64);
        for value in values {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Bytes, such as the snapshot of a device behind.
    pub fn block(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// The snapshot, sealed with a checksum.
    pub fn finish(mut self) -> Vec<u8> {
        let checksum = checksum(&self.bytes);
        self.u64(checksum);
        self.bytes
    }
}

/// Reads what a [`SnapshotWriter`] wrote, in the same order.
#[derive(Clone, Debug)]
pub struct SnapshotReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> SnapshotReader<'a> {
    /// Of a device of `kind` whose parameters have `fingerprint`.
    pub fn new(bytes: &'a [u8], kind: &str, fingerprint: u64) -> Result<Self, SnapshotError> {
        let Some((bytes, sealed)) = bytes.split_last_chunk::<8>() else {
            return Err(Self { bytes, at: 0 }.damaged("it ends early"));
        };
        let mut this = Self { bytes, at: 0 };
        let other = |what| SnapshotError::OtherDevice { what };
        if this.u64()? != MAGIC {
            return Err(other("the form"));
        }
        if this.u64()? != kind_number(kind) {
            return Err(other("the model"));
        }
        if this.u64()? != fingerprint {
            return Err(other("a parameter"));
        }
        if u64::from_le_bytes(*sealed) != checksum(bytes) {
            return Err(this.damaged("its checksum does not match"));
        }
        Ok(this)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else { return Err(self.damaged("it ends early")) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// An error at the current place.
    pub fn damaged(&self, cause: &'static str) -> SnapshotError {
        SnapshotError::Damaged { offset: self.at, cause }
    }

    /// One number.
    pub fn u64(&mut self) -> Result<u64, SnapshotError> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// One number, bit for bit.
    pub fn f64(&mut self) -> Result<f64, SnapshotError> {
        self.u64().map(f64::from_bits)
    }

    /// A number below `end`, such as an index.
    pub fn below(&mut self, end: usize) -> Result<usize, SnapshotError> {
        match self.u64()? {
            value if value < end as u64 => Ok(value as usize),
            _ => Err(self.damaged("a number is out of range")),
        }
    }

    /// A number that may be missing.
    pub fn option(&mut self) -> Result<Option<u64>, SnapshotError> {
        let there = self.below(2)? == 1;
        let value = self.u64()?;
        Ok(there.then_some(value))
    }

    /// Exactly as many numbers as `into` has.
    pub fn u64s(&mut self, into: &mut [u64]) -> Result<(), SnapshotError> {
        self.count(into.len())?;
        for value in into {
            *value = self.u64()?;
        }
        Ok(())
    }

    /// Exactly `N` numbers.
    pub fn array<const N: usize>(&mut self) -> Result<[u64; N], SnapshotError> {
        let mut array = [0; N];
        self.u64s(&mut array)?;
        Ok(array)
    }

    /// Exactly as many numbers as `into` has.
    pub fn u32s(&mut self, into: &mut [u32]) -> Result<(), SnapshotError> {
        self.count(into.len())?;
        let bytes = self.take(into.len() * 4)?;
        for (value, four) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *value = u32::from_le_bytes(*four);
        }
        Ok(())
    }

    /// At most `most` numbers.
    pub fn u64_list(&mut self, most: usize) -> Result<Vec<u64>, SnapshotError> {
        let count = self.below(most + 1)?;
        (0..count).map(|_| self.u64()).collect()
    }

    /// However many numbers there are, each below `end`.
    pub fn u32s_below(&mut self, end: usize) -> Result<Vec<u32>, SnapshotError> {
        let count = self.counted(4)?;
        let bytes = self.take(count * 4)?;
        let values: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four)).collect();
        if values.iter().all(|value| (*value as usize) < end) {
            return Ok(values);
        }
        Err(self.damaged("a number is out of range"))
    }

    /// Bytes, such as the snapshot of a device behind.
    pub fn block(&mut self) -> Result<&'a [u8], SnapshotError> {
        let count = self.counted(1)?;
        self.take(count)
    }

    /// How many things follow that take at least `bytes_each`: no more than can be there.
    pub fn counted(&mut self, bytes_each: usize) -> Result<usize, SnapshotError> {
        let count = self.u64()?;
        let most = (self.bytes.len() - self.at) / bytes_each;
        if count <= most as u64 { Ok(count as usize) } else { Err(self.damaged("it ends early")) }
    }

    fn count(&mut self, expected: usize) -> Result<(), SnapshotError> {
        if self.u64()? == expected as u64 {
            return Ok(());
        }
        Err(self.damaged("a table has another size"))
    }

    /// Nothing is left over.
    pub fn finish(self) -> Result<(), SnapshotError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(self.damaged("it goes on too long"))
    }
}

fn kind_number(kind: &str) -> u64 {
    let mut bytes = [0; 8];
    assert!(kind.len() <= bytes.len(), "kinds have at most eight letters");
    bytes[..kind.len()].copy_from_slice(kind.as_bytes());
    u64::from_le_bytes(bytes)
}

/// Eight bytes at a time, since states of large devices are gigabytes.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash =
        words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, &byte| mix(hash, u64::from(byte)))
}

/// A fingerprint of parameters from how they print, which shows every bit of every number.
pub fn fingerprint(parameters: &impl std::fmt::Debug) -> u64 {
    // FNV-1a: it only has to tell apart what was mixed up by mistake.
    let text = format!("{parameters:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
