//! Tencent Cloud Block Storage traces (Y. Zhang et al., "OSCA: An Online-Model Based Cache
//! Allocation Scheme in Cloud Block Storage Systems", USENIX ATC 2020; SNIA IOTTA).
//!
//! `time,offset,size,op,volume`: whole seconds since 1970, 512-byte sectors, sectors, op **0 =
//! read, 1 = write** (the opposite of SSDsim's), number of the volume. Not sorted by time. A stream
//! is `volumeN`. Times are of one second, so that arrivals within a second are not known.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader};
use super::fields::{Line, range, scaled};
use super::format::Format;
use super::guess::{fit, shown};
use super::machine;
use super::scan::{FastLine, Fields, Machine};
use super::streams::Streams;
use super::{ReadOptions, SECTOR_BYTES, TimeUnit};

const FIELDS: &str = "five fields, separated by commas";
/// Seconds since 1970 of the years 2000 to 2100.
const CALENDAR_S: std::ops::Range<u64> = 946_684_800..4_102_444_800;

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Tencent,
    guess: |start| {
        let fit = fit(start, &Tencent::new(start.options), false)?;
        let first_ns = fit.rows.due.first()?;
        let calendar = CALENDAR_S.contains(&(first_ns / TimeUnit::Seconds.nanos()));
        let (score, times) = match (calendar, fit.bad) {
            (true, 0) => (90, "whole seconds of a calendar"),
            (true, _) => (60, "whole seconds of a calendar, though some lines are bad"),
            (false, _) => (30, "though the times are not those of a calendar"),
        };
        let evidence =
            format!("lines read as time,offset,size,op,volume: {}; {times}", shown(fit.first));
        Some(Guess { score, evidence })
    },
    reader: Reader::Lines(|options| Box::new(Tencent::new(options))),
    times: Times::Absolute,
    has_service: false,
    stream_prefix: "volume",
    grammar: "a Tencent line is time_s,offset_sectors,size_sectors,op,volume with op 0 read, 1 \
              write",
    parts: None,
};

struct Tencent {
    unit_ns: u64,
    sector_bytes: u32,
    read_is_one: bool,
}

impl Tencent {
    fn new(options: &ReadOptions) -> Self {
        Self {
            unit_ns: options.time_unit.unwrap_or(TimeUnit::Seconds).nanos(),
            sector_bytes: options.sector_bytes.unwrap_or(SECTOR_BYTES),
            read_is_one: options.read_is_one.unwrap_or(false),
        }
    }

    #[inline(always)]
    fn op(&self, is_one: bool) -> Op {
        if is_one == self.read_is_one { Op::Read } else { Op::Write }
    }
}

impl LineFormat for Tencent {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let mut fields = Line::commas(line, FIELDS);
        let due_ns = scaled(fields.number("time")?, self.unit_ns, "time")?;
        let (offset, size) = (fields.number("offset")?, fields.number("size")?);
        let (offset_bytes, len_bytes) = range(offset, size, self.sector_bytes, ["offset", "size"])?;
        let op = match fields.text()? {
            b"0" => self.op(false),
            b"1" => self.op(true),
            _ => return Err(Cause::Said("the op is neither 0 nor 1")),
        };
        let volume = fields.number("volume")?;
        fields.end()?;
        let stream = out.streams.number(volume)?;
        let service_ns = SERVICE_UNKNOWN_NS;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        machine::lines(self, text, out)
    }
}

impl FastLine for Tencent {
    const HAS_SERVICE: bool = false;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        let [time_high, time_low] = line.digits16(b',');
        let [offset_high, offset_low] = line.digits16(b',');
        let size = line.digits8(b',');
        let op = self.op(line.bit(b','));
        let volume = line.digits8(b'\n');
        let [time_high, time_low, size, volume] = line.values([time_high, time_low, size, volume]);
        let [offset_high, offset_low, _, _] =
            line.values([offset_high, offset_low, offset_low, offset_low]);
        let sector = u64::from(self.sector_bytes);
        let offset_bytes = (offset_high * 100_000_000 + offset_low).checked_mul(sector)?;
        let len_bytes = u32::try_from(size * sector).ok()?;
        offset_bytes.checked_add(u64::from(len_bytes))?;
        Some(Row {
            due_ns: (time_high * 100_000_000 + time_low).checked_mul(self.unit_ns)?,
            offset_bytes,
            len_bytes,
            op,
            stream: streams.known(volume)?,
            service_ns: SERVICE_UNKNOWN_NS,
        })
    }
}
