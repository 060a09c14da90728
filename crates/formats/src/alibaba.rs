//! Alibaba block traces (J. Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in
//! Large-Scale Production", IISWC 2020; github.com/alibaba/block-traces).
//!
//! `device,R|W,offset,length,timestamp`, with or without a header line that starts so. Offset and
//! length are in bytes, the time in microseconds since 1970. A stream is `volumeN`.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Reader};
use super::fields::{Line, range, scaled};
use super::format::Format;
use super::guess::guess_by_lines;
use super::machine;
use super::scan::{FastLine, Fields, Machine};
use super::streams::Streams;
use super::{ReadOptions, TimeUnit};

const FIELDS: &str = "five fields, separated by commas";

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Alibaba,
    guess: |start| {
        guess_by_lines(start, &Alibaba::new(start.options), "device,R|W,offset,length,microseconds")
    },
    reader: Reader::Lines(|options| Box::new(Alibaba::new(options))),
    times: Times::Absolute,
    has_service: false,
    stream_prefix: "volume",
    grammar: "an Alibaba line is device,R|W,offset,length,timestamp_us",
    parts: None,
};

struct Alibaba {
    unit_ns: u64,
}

impl Alibaba {
    fn new(options: &ReadOptions) -> Self {
        Self { unit_ns: options.time_unit.unwrap_or(TimeUnit::Microseconds).nanos() }
    }
}

impl LineFormat for Alibaba {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        if line.starts_with(b"device_id,") && out.is_empty() {
            out.skip_line();
            return Ok(());
        }
        let mut fields = Line::commas(line, FIELDS);
        let device = fields.number("device")?;
        let op = match fields.text()? {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            _ => return Err(Cause::Said("the opcode is neither R nor W")),
        };
        let (offset, length) = (fields.number("offset")?, fields.number("length")?);
        let (offset_bytes, len_bytes) = range(offset, length, 1, ["offset", "length"])?;
        let due_ns = scaled(fields.number("timestamp")?, self.unit_ns, "timestamp")?;
        fields.end()?;
        let stream = out.streams.number(device)?;
        let service_ns = SERVICE_UNKNOWN_NS;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        machine::lines(self, text, out)
    }
}

impl FastLine for Alibaba {
    const HAS_SERVICE: bool = false;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        let device = line.digits8(b',');
        let op = line.read_or_write(b',');
        let [offset_high, offset_low] = line.digits16(b',');
        let length = line.digits8(b',');
        let [time_high, time_low] = line.digits16(b'\n');
        let [device, length, time_high, time_low] =
            line.values([device, length, time_high, time_low]);
        let [offset_high, offset_low, _, _] =
            line.values([offset_high, offset_low, offset_low, offset_low]);
        Some(Row {
            due_ns: (time_high * 100_000_000 + time_low).checked_mul(self.unit_ns)?,
            offset_bytes: offset_high * 100_000_000 + offset_low,
            len_bytes: length as u32,
            op,
            stream: streams.known(device)?,
            service_ns: SERVICE_UNKNOWN_NS,
        })
    }
}
