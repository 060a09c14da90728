//! CloudPhysics traces as text (C. Waldspurger et al., "Efficient MRC Construction with SHARDS",
//! FAST 2015), as libCacheSim distributes them.
//!
//! A header line `version,time,op,size,lbn`, then: version of the record, **seconds** since the
//! host started (the binary form has microseconds), SCSI operation code in hexadecimal, bytes,
//! 512-byte blocks. READ(6, 10, 12, 16) are `8`, `28`, `a8`, `88`; WRITE(6, 10, 12, 16) `a`, `2a`,
//! `aa`, `8a`; UNMAP `42` is a trim; SYNCHRONIZE CACHE (10, 16) `35`, `91` a flush (SCSI Block
//! Commands 4, clause 5). Others are bad lines.

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader};
use super::fields::{Line, range, scaled};
use super::format::Format;
use super::{ReadOptions, SECTOR_BYTES, TimeUnit};

const FIELDS: &str = "five fields, separated by commas";
const HEADER: &[u8] = b"version,time,op,size,lbn";

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::VscsiCsv,
    guess: |start| {
        let evidence = format!("header line {}", String::from_utf8_lossy(HEADER));
        (start.lines.first() == Some(&HEADER)).then_some(Guess { score: 100, evidence })
    },
    reader: Reader::Lines(|options| Box::new(VscsiCsv::new(options))),
    times: Times::Absolute,
    has_service: false,
    stream_prefix: "",
    grammar: "a CloudPhysics line is version,time_s,op,size,lbn with op a SCSI code in hexadecimal",
    parts: None,
};

struct VscsiCsv {
    unit_ns: u64,
    sector_bytes: u32,
}

impl VscsiCsv {
    fn new(options: &ReadOptions) -> Self {
        Self {
            unit_ns: options.time_unit.unwrap_or(TimeUnit::Seconds).nanos(),
            sector_bytes: options.sector_bytes.unwrap_or(SECTOR_BYTES),
        }
    }
}

impl LineFormat for VscsiCsv {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        if line == HEADER {
            out.skip_line();
            return Ok(());
        }
        let mut fields = Line::commas(line, FIELDS);
        fields.number("version")?;
        let due_ns = scaled(fields.number("time")?, self.unit_ns, "time")?;
        let op = match fields.hexadecimal("op")? {
            0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
            0x0a | 0x2a | 0x8a | 0xaa => Op::Write,
            0x42 => Op::Trim,
            0x35 | 0x91 => Op::Flush,
            other => {
                return Err(Cause::Told(format!("SCSI code {other:x} is no access to blocks")));
            }
        };
        let len_bytes = fields.number32("size")?;
        let block = fields.number("lbn")?;
        fields.end()?;
        let (offset_bytes, _) = range(block, 0, self.sector_bytes, ["lbn", "size"])?;
        if offset_bytes.checked_add(u64::from(len_bytes)).is_none() {
            return Err(Cause::TooLarge("lbn"));
        }
        let (offset_bytes, len_bytes) =
            if op == Op::Flush { (0, 0) } else { (offset_bytes, len_bytes) };
        let (stream, service_ns) = (out.streams.name(b"disk")?, SERVICE_UNKNOWN_NS);
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }
}
