//! SYSTOR '17 traces (C. Lee et al., "Understanding Storage Traffic Characteristics on Enterprise
//! Virtual Desktop Infrastructure", SYSTOR 2017; SNIA IOTTA).
//!
//! A header line, then `Timestamp,Response,IOType,LUN,Offset,Size`: seconds since 1970 with nine
//! decimals, response in seconds (may be empty), `R` or `W`, number of the LUN, bytes, bytes. The
//! response becomes the service time. Files are not sorted by time.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader};
use super::fields::{Line, decimal, range};
use super::format::Format;
use super::guess::guess_by_lines;
use super::machine;
use super::scan::{FastLine, Fields, Machine};
use super::streams::Streams;
use super::{ReadOptions, TimeUnit};

const FIELDS: &str = "six fields, separated by commas";
const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Systor17,
    guess: |start| {
        let guess = guess_by_lines(
            start,
            &Systor17::new(start.options),
            "seconds,response,R|W,LUN,offset,size",
        )?;
        if !start.bytes.starts_with(HEADER) {
            return Some(guess);
        }
        let header = String::from_utf8_lossy(HEADER);
        Some(Guess { score: 100, evidence: format!("header line {header}") })
    },
    reader: Reader::Lines(|options| Box::new(Systor17::new(options))),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "lun",
    grammar: "a SYSTOR'17 line is Timestamp,Response,IOType,LUN,Offset,Size",
    parts: None,
};

struct Systor17 {
    unit_ns: u64,
}

impl Systor17 {
    fn new(options: &ReadOptions) -> Self {
        Self { unit_ns: options.time_unit.unwrap_or(TimeUnit::Seconds).nanos() }
    }
}

impl LineFormat for Systor17 {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        if line == HEADER {
            out.skip_line();
            return Ok(());
        }
        let mut fields = Line::commas(line, FIELDS);
        let due_ns = fields.decimal("the timestamp", self.unit_ns)?;
        let service_ns = match fields.text()? {
            b"" => SERVICE_UNKNOWN_NS,
            response => decimal(response, "the response", self.unit_ns)?,
        };
        let op = match fields.text()? {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            _ => return Err(Cause::Said("the type is neither R nor W")),
        };
        let lun = fields.number("LUN")?;
        let (offset, size) = (fields.number("offset")?, fields.number("size")?);
        let (offset_bytes, len_bytes) = range(offset, size, 1, ["offset", "size"])?;
        fields.end()?;
        let stream = out.streams.number(lun)?;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        machine::lines(self, text, out)
    }
}

impl FastLine for Systor17 {
    const HAS_SERVICE: bool = true;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        line.unusual(self.unit_ns != 1_000_000_000);
        let [seconds_high, seconds_low] = line.digits16(b'.');
        let (nanos, nanos_ninth) = line.fraction(b',');
        let response = line.digits8(b'.');
        let (response_nanos, response_ninth) = line.fraction(b',');
        let op = line.read_or_write(b',');
        let lun = line.digits8(b',');
        let [offset_high, offset_low] = line.digits16(b',');
        let size = line.digits8(b'\n');
        let [seconds_high, seconds_low, nanos, response] =
            line.values([seconds_high, seconds_low, nanos, response]);
        let [response_nanos, lun, size, _] = line.values([response_nanos, lun, size, size]);
        let [offset_high, offset_low, _, _] =
            line.values([offset_high, offset_low, offset_low, offset_low]);
        let seconds = seconds_high * 100_000_000 + seconds_low;
        Some(Row {
            due_ns: seconds.checked_mul(1_000_000_000)?.checked_add(nanos * 10 + nanos_ninth)?,
            offset_bytes: offset_high * 100_000_000 + offset_low,
            len_bytes: size as u32,
            op,
            stream: streams.known(lun)?,
            service_ns: response * 1_000_000_000 + response_nanos * 10 + response_ninth,
        })
    }
}
