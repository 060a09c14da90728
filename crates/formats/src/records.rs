//! Binary formats whose records all have one size: the loop around a parser of one record.

use super::batch::Batch;
use super::cause::{Cause, Place};
use super::decode::{Decoder, Fault, Piece};
use super::notes::Notes;

/// Takes records one after another.
pub(super) trait RecordSink<const BYTES: usize>: Send {
    /// Takes one record.
    fn record(&mut self, record: &[u8; BYTES], out: &mut Batch) -> Result<(), Cause>;

    /// Called once after the last record.
    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) {
        let (_, _) = (out, notes);
    }
}

/// Cuts the input into records for a [`RecordSink`].
pub(super) struct FixedRecords<S, const BYTES: usize> {
    sink: S,
    position: u64,
}

impl<S: RecordSink<BYTES>, const BYTES: usize> FixedRecords<S, BYTES> {
    /// Around a sink that has seen nothing.
    pub(super) fn new(sink: S) -> Self {
        Self { sink, position: 0 }
    }
}

impl<S: RecordSink<BYTES>, const BYTES: usize> Decoder for FixedRecords<S, BYTES> {
    fn decode(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault> {
        let (records, rest) = piece.bytes.as_chunks::<BYTES>();
        for (index, record) in records.iter().enumerate() {
            if let Err(cause) = self.sink.record(record, out) {
                let place = Place::Byte(self.position + (index * BYTES) as u64);
                let resume = (index + 1) * BYTES;
                self.position += resume as u64;
                return Err(Fault { place, cause: cause.to_string(), resume: Some(resume) });
            }
        }
        let consumed = piece.bytes.len() - rest.len();
        self.position += consumed as u64;
        if piece.at_end && consumed == 0 && !rest.is_empty() {
            let place = Place::Byte(self.position);
            let cause = format!("the last record has {} bytes of {BYTES}", rest.len());
            return Err(Fault { place, cause, resume: Some(rest.len()) });
        }
        Ok(consumed)
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        self.sink.finish(out, notes);
        Ok(())
    }
}

/// A little-endian number of a record.
#[inline]
pub(super) fn le16(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

/// A little-endian number of a record.
#[inline]
pub(super) fn le32(record: &[u8], at: usize) -> u32 {
    u32::from(le16(record, at)) | u32::from(le16(record, at + 2)) << 16
}

/// A little-endian number of a record.
#[inline]
pub(super) fn le64(record: &[u8], at: usize) -> u64 {
    u64::from(le32(record, at)) | u64::from(le32(record, at + 4)) << 32
}
