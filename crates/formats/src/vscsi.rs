//! CloudPhysics' traces of virtual disks, binary ("vscsi"), versions 1 and 2, as published with
//! libCacheSim (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015, used
//! them).
//!
//! All little endian. Version 1, 32 bytes: `u32 serial, u32 length, u32 scatter-gather entries, u16
//! SCSI command, u16 version (0x01xx), u64 block, u64 time`. Version 2, 40 bytes: `u16 command, u16
//! version (0x02xx), u32 serial, u32 length, u32 entries, u64 block, u64 time, u64 response`.
//! Lengths are bytes, blocks 512 bytes, times us of a clock that started before the trace. The
//! commands that move data or flush are requests (SCSI SBC-3: READ and WRITE of 6, 10, 12 and 16
//! bytes, SYNCHRONIZE CACHE); the others are counted.
//!
//! Tested with records of both versions, every command, and damaged ones.

use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::Times;
use super::decode::{Decoder, Fault, Piece};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;
use super::records::{FixedRecords, RecordSink, le16, le32, le64};

const BYTES_V1: usize = 32;
const BYTES_V2: usize = 40;
/// Records that are looked at to tell the version.
const JUDGED_RECORDS: usize = 100;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Vscsi,
    guess,
    reader: Reader::Stream(|options| Box::new(Vscsi::new(options))),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "disk",
    grammar: "a vscsi record has 32 bytes (version 1) or 40 (version 2), little endian",
    parts: None,
};

/// Which version the records at the front have; `None` where they have none in common.
fn version(bytes: &[u8]) -> Option<u8> {
    let all = |size: usize, at: usize, version: u16| {
        let mut records = bytes.chunks_exact(size).take(JUDGED_RECORDS);
        bytes.len() >= size && records.all(|record| le16(record, at) >> 8 == version)
    };
    if all(BYTES_V1, 14, 1) {
        Some(1)
    } else if all(BYTES_V2, 2, 2) {
        Some(2)
    } else {
        None
    }
}

fn guess(start: &Start<'_>) -> Option<Guess> {
    let version = version(start.bytes)?;
    let command = le16(start.bytes, if version == 1 { 12 } else { 0 });
    // Text never has such bytes; a command that SCSI does not have speaks against it.
    let score = if matches!(operation(command), Command::Other) { 40 } else { 90 };
    let evidence = format!("records carry the version {version} of vscsi");
    Some(Guess { score, evidence })
}

/// What a SCSI command is here.
enum Command {
    Request(Op),
    Other,
}

#[inline]
fn operation(command: u16) -> Command {
    match command {
        0x28 | 0x88 | 0x08 | 0xa8 => Command::Request(Op::Read),
        0x2a | 0x8a | 0x0a | 0xaa => Command::Request(Op::Write),
        0x35 | 0x91 => Command::Request(Op::Flush),
        _ => Command::Other,
    }
}

/// What a record says, in either version.
struct Record {
    command: u16,
    version: u16,
    length: u32,
    block: u64,
    time: u64,
    response: u64,
}

/// Records of one version.
struct Records {
    expected: u16,
    sector_bytes: u64,
    unit_ns: u64,
    others: u64,
}

impl Records {
    #[inline]
    fn take(&mut self, record: &Record, out: &mut Batch) -> Result<(), Cause> {
        if record.version >> 8 != self.expected {
            return Err(wrong_version(record.version));
        }
        let Command::Request(op) = operation(record.command) else {
            self.others += 1;
            return Ok(());
        };
        let flush = op == Op::Flush;
        let offset_bytes =
            if flush { Some(0) } else { record.block.checked_mul(self.sector_bytes) };
        let len_bytes = if flush { 0 } else { record.length };
        let offset_bytes = offset_bytes
            .filter(|offset| offset.checked_add(u64::from(len_bytes)).is_some())
            .ok_or(Cause::TooLarge("the block"))?;
        let due_ns = record.time.checked_mul(self.unit_ns).ok_or(Cause::TooLarge("the time"))?;
        let service_ns = record
            .response
            .checked_mul(self.unit_ns)
            .ok_or(Cause::TooLarge("the response time"))?;
        let stream = out.streams.number(0)?;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn note(&self, notes: &mut Notes) {
        notes.count("SCSI commands that are no request", self.others);
        let version = self.expected;
        notes
            .understood
            .push(format!("vscsi version {version}, {}-byte blocks", self.sector_bytes));
    }
}

#[cold]
fn wrong_version(found: u16) -> Cause {
    Cause::Told(format!("the version field of the record is {found:#06x}"))
}

struct V1(Records);

impl RecordSink<BYTES_V1> for V1 {
    #[inline]
    fn record(&mut self, bytes: &[u8; BYTES_V1], out: &mut Batch) -> Result<(), Cause> {
        let record = Record {
            command: le16(bytes, 12),
            version: le16(bytes, 14),
            length: le32(bytes, 4),
            block: le64(bytes, 16),
            time: le64(bytes, 24),
            response: SERVICE_UNKNOWN_NS,
        };
        self.0.take(&record, out)
    }

    fn finish(&mut self, _out: &mut Batch, notes: &mut Notes) {
        self.0.note(notes);
    }
}

struct V2(Records);

impl RecordSink<BYTES_V2> for V2 {
    #[inline]
    fn record(&mut self, bytes: &[u8; BYTES_V2], out: &mut Batch) -> Result<(), Cause> {
        let record = Record {
            command: le16(bytes, 0),
            version: le16(bytes, 2),
            length: le32(bytes, 8),
            block: le64(bytes, 16),
            time: le64(bytes, 24),
            response: le64(bytes, 32),
        };
        self.0.take(&record, out)
    }

    fn finish(&mut self, _out: &mut Batch, notes: &mut Notes) {
        self.0.note(notes);
    }
}

/// Decodes a file of either version; its first records say which.
struct Vscsi {
    options: (u64, u64),
    records: Option<Box<dyn Decoder>>,
}

impl Vscsi {
    fn new(options: &ReadOptions) -> Self {
        let sector_bytes = u64::from(options.sector_bytes.unwrap_or(512));
        let unit_ns = options.time_unit.map_or(1000, super::TimeUnit::nanos);
        Self { options: (sector_bytes, unit_ns), records: None }
    }
}

impl Decoder for Vscsi {
    fn decode(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault> {
        if self.records.is_none() {
            if piece.bytes.len() < JUDGED_RECORDS * BYTES_V2 && !piece.at_end {
                return Ok(0);
            }
            let (sector_bytes, unit_ns) = self.options;
            let expected = version(piece.bytes).map_or(1, u16::from);
            let records = Records { expected, sector_bytes, unit_ns, others: 0 };
            self.records = Some(match expected {
                2 => Box::new(FixedRecords::new(V2(records))),
                _ => Box::new(FixedRecords::new(V1(records))),
            });
        }
        let records = self.records.as_mut().expect("made above");
        records.decode(piece, out)
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        self.records.as_mut().map_or(Ok(()), |records| records.finish(out, notes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{detect, read_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use std::path::Path;
    use trace::Trace;

    fn v1(command: u16, length: u32, block: u64, time: u64) -> Vec<u8> {
        let mut record = [7u32, length, 1].map(u32::to_le_bytes).concat();
        record.extend([command, 0x0100].map(u16::to_le_bytes).concat());
        record.extend([block, time].map(u64::to_le_bytes).concat());
        record
    }

    fn v2(command: u16, length: u32, block: u64, time: u64, response: u64) -> Vec<u8> {
        let mut record = [command, 0x0206].map(u16::to_le_bytes).concat();
        record.extend([7u32, length, 1].map(u32::to_le_bytes).concat());
        record.extend([block, time, response].map(u64::to_le_bytes).concat());
        record
    }

    fn parse(bytes: &[u8], lenient: bool) -> crate::Result<(Trace, Notes)> {
        let options = ReadOptions { lenient, ..ReadOptions::default() };
        read_from(Cursor::new(bytes.to_vec()), Path::new("x.vscsi"), Format::Vscsi, &options)
    }

    #[test]
    fn both_versions_are_read() {
        let commands = [0x28, 0x8a, 0x35, 0x12];
        let one: Vec<u8> =
            (0u64..4).flat_map(|n| v1(commands[n as usize], 4096, 10 + n, 5_000_000 + n)).collect();
        let two: Vec<u8> = (0u64..4)
            .flat_map(|n| v2(commands[n as usize], 4096, 10 + n, 5_000_000 + n, 30 + n))
            .collect();
        for (bytes, service) in [(one, None), (two, Some(vec![30_000, 31_000, 32_000]))] {
            let (trace, notes) = parse(&bytes, false).expect("reads");
            assert_eq!((trace.due, trace.offset), (vec![0, 1000, 2000], vec![5120, 5632, 0]));
            assert_eq!(
                (trace.len, trace.op),
                (vec![4096, 4096, 0], vec![Op::Read, Op::Write, Op::Flush])
            );
            assert_eq!((trace.service, notes.counted[0].count), (service, 1));
            assert_eq!(trace.origin.facts["start_ns"], "5000000000");
        }
    }

    #[test]
    fn it_is_recognised_by_its_versions() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        for bytes in [v1(0x28, 1, 2, 3).repeat(3), v2(0x28, 1, 2, 3, 4).repeat(3)] {
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(detect(&path).expect("known").format, Format::Vscsi);
        }
    }

    #[test]
    fn a_wrong_record_is_named() {
        let mut bytes = v1(0x28, 512, 1, 1).repeat(3);
        bytes[BYTES_V1 + 15] = 9;
        let error = parse(&bytes, false).expect_err("wrong").to_string();
        assert_eq!(error, "x.vscsi: byte 32: the version field of the record is 0x0900");
        let (trace, notes) = parse(&bytes, true).expect("leniently");
        assert_eq!((trace.count(), notes.bad), (2, 1));
        bytes = v1(0x28, 512, u64::MAX / 512, 1);
        let error = parse(&bytes, false).expect_err("far").to_string();
        assert!(error.ends_with("the block is too large"), "{error}");
        bytes = v1(0x28, 512, 1, 1).repeat(2);
        bytes.pop();
        let error = parse(&bytes, false).expect_err("cut").to_string();
        assert_eq!(error, "x.vscsi: byte 32: the last record has 31 bytes of 32");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(head in 0usize..3, tail: Vec<u8>, lenient: bool) {
            let heads = [Vec::new(), v1(0x28, 512, 1, 1), v2(0x28, 512, 1, 1, 1)];
            if let Ok((trace, _)) = parse(&[heads[head].clone(), tail].concat(), lenient) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
