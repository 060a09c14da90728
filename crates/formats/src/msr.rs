//! MSR Cambridge CSV (D. Narayanan, A. Donnelly and A. Rowstron, "Write Off-Loading", FAST 2008;
//! SNIA IOTTA).
//!
//! `filetime,host,disk,Read|Write,offset,size,response`; copies of the archive put a header line,
//! `Timestamp,Hostname,...`, in front. Times are Windows FILETIME: 100
//! ns since 1601; the response is in the same unit and becomes the service time; offset and size
//! are in bytes. A stream is
//! `host_disk`. The order of the archive's files is that of completion, so rows may
//! stand behind later ones.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row};
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

const HEADER: &[u8] = b"Timestamp,Hostname,";
const FIELDS: &str = "seven fields, separated by commas";

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Msr,
    guess: |start| {
        guess_by_lines(
            start,
            &Msr::new(start.options),
            "filetime,host,disk,type,offset,size,response",
        )
    },
    reader: Reader::Lines(|options| Box::new(Msr::new(options))),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "",
    grammar: "an MSR line is filetime,host,disk,Read|Write,offset,size,response",
    parts: None,
};

struct Msr {
    unit_ns: u64,
}

impl Msr {
    fn new(options: &ReadOptions) -> Self {
        Self { unit_ns: options.time_unit.unwrap_or(TimeUnit::HundredNanoseconds).nanos() }
    }
}

impl LineFormat for Msr {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        if line.starts_with(HEADER) {
            out.skip_line();
            return Ok(());
        }
        let mut fields = Line::commas(line, FIELDS);
        let due_ns = scaled(fields.number("filetime")?, self.unit_ns, "filetime")?;
        let host_and_disk = fields.two()?;
        let op = match fields.text()? {
            op if op.eq_ignore_ascii_case(b"read") => Op::Read,
            op if op.eq_ignore_ascii_case(b"write") => Op::Write,
            _ => return Err(Cause::Said("the type is neither Read nor Write")),
        };
        let (offset, size) = (fields.number("offset")?, fields.number("size")?);
        let (offset_bytes, len_bytes) = range(offset, size, 1, ["offset", "size"])?;
        let service_ns = scaled(fields.number("response")?, self.unit_ns, "response")?;
        fields.end()?;
        let stream = out.streams.name(host_and_disk)?;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        machine::lines(self, text, out)
    }
}

impl FastLine for Msr {
    const HAS_SERVICE: bool = true;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        let [top, middle, low] = line.digits19(b',');
        let host = line.position();
        line.bytes(b',');
        line.bytes(b',');
        let name = line.since(host);
        let op = line.word_read_or_write(b',');
        let [offset_high, offset_low] = line.digits16(b',');
        let size = line.digits8(b',');
        let response = line.digits8(b'\n');
        let [top, middle, low, size] = line.values([top, middle, low, size]);
        let [offset_high, offset_low, response, _] =
            line.values([offset_high, offset_low, response, response]);
        // Of at most 19 digits by the length of the field, so that this fits. Where a byte is no
        // digit the values are anything, and the line is read again.
        let time = top.wrapping_mul(10_000_000_000_000_000);
        let time = time.wrapping_add(middle * 100_000_000 + low);
        Some(Row {
            due_ns: time.checked_mul(self.unit_ns)?,
            offset_bytes: offset_high * 100_000_000 + offset_low,
            len_bytes: size as u32,
            op,
            stream: streams.known_name(name)?,
            service_ns: response * self.unit_ns,
        })
    }
}
