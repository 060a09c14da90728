//! SSDsim's ascii traces (Y. Hu et al., "Performance Impact and Interplay of SSD Parallelism
//! through Advanced Commands, Allocation Strategy and Data Granularity", ICS 2011), and those of
//! MQSim (A. Tavakkol et al., FAST 2018), which have the same fields.
//!
//! `time device LBA size op`, separated by blanks: time a whole number of **nanoseconds** (MQSim
//! takes the unit from its configuration: give `time_unit` where it differs), LBA and size in
//! 512-byte sectors, op **1 = read, 0 = write**. A stream is `devN`.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::fields::{Line, range, scaled};
use super::format::Format;
use super::guess::{fit, rate_per_s, shown};
use super::machine;
use super::scan::{BLANK, FastLine, Fields, Machine};
use super::streams::Streams;
use super::{ReadOptions, SECTOR_BYTES, TimeUnit};

const FIELDS: &str = "five fields, separated by blanks";
const GRAMMAR: &str =
    "a line is time_ns device LBA_sectors size_sectors op with op 1 read, 0 write";

/// The entry of the table for SSDsim.
pub(super) static ENTRY: Entry = entry(Format::Ssdsim, |start| guess(start, 75, "MQSim's"));
/// The entry of the table for MQSim.
pub(super) static MQSIM: Entry = entry(Format::Mqsim, |start| guess(start, 74, "SSDsim's"));

const fn entry(format: Format, guess: fn(&Start<'_>) -> Option<Guess>) -> Entry {
    Entry {
        format,
        guess,
        reader: Reader::Lines(|options| Box::new(Ssdsim::new(options))),
        times: Times::Relative,
        has_service: false,
        stream_prefix: "dev",
        grammar: GRAMMAR,
        parts: None,
    }
}

/// A rate beyond this means that times are not nanoseconds.
const MOST_PER_S: f64 = 1e8;

fn guess(start: &Start<'_>, score: u8, twin: &str) -> Option<Guess> {
    let fit = fit(start, &Ssdsim::new(start.options), false)?;
    let lines =
        format!("lines read as time device LBA size op, as {twin} do: {}", shown(fit.first));
    let (score, evidence) = match rate_per_s(&fit.rows) {
        Some(rate) if rate > MOST_PER_S && start.options.time_unit.is_none() => {
            (20, format!("{lines}; but in ns these would be {rate:.1e} requests per second"))
        }
        _ if fit.bad > 0 => (score / 2, lines),
        _ => (score, lines),
    };
    Some(Guess { score, evidence })
}

struct Ssdsim {
    unit_ns: u64,
    sector_bytes: u32,
    read_is_one: bool,
}

impl Ssdsim {
    fn new(options: &ReadOptions) -> Self {
        Self {
            unit_ns: options.time_unit.unwrap_or(TimeUnit::Nanoseconds).nanos(),
            sector_bytes: options.sector_bytes.unwrap_or(SECTOR_BYTES),
            read_is_one: options.read_is_one.unwrap_or(true),
        }
    }

    #[inline(always)]
    fn op(&self, is_one: bool) -> Op {
        if is_one == self.read_is_one { Op::Read } else { Op::Write }
    }
}

impl LineFormat for Ssdsim {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let mut fields = Line::blanks(line, FIELDS);
        let due_ns = scaled(fields.number("time")?, self.unit_ns, "time")?;
        let device = fields.number("device")?;
        let (lba, size) = (fields.number("LBA")?, fields.number("size")?);
        let (offset_bytes, len_bytes) = range(lba, size, self.sector_bytes, ["LBA", "size"])?;
        let op = match fields.text()? {
            b"0" => self.op(false),
            b"1" => self.op(true),
            _ => return Err(Cause::Said("the op is neither 0 nor 1")),
        };
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

impl FastLine for Ssdsim {
    const HAS_SERVICE: bool = false;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        let [time_high, time_low] = line.digits16(BLANK);
        let device = line.digits8(BLANK);
        let lba = line.digits8(BLANK);
        let size = line.digits8(BLANK);
        let op = self.op(line.bit(b'\n'));
        let time_high = line.value(time_high);
        let [time_low, device, lba, size] = line.values([time_low, device, lba, size]);
        let sector = u64::from(self.sector_bytes);
        Some(Row {
            due_ns: (time_high * 100_000_000 + time_low).checked_mul(self.unit_ns)?,
            // Both of at most 8 digits, the sector of 32 bits: the end fits.
            offset_bytes: lba * sector,
            len_bytes: u32::try_from(size * sector).ok()?,
            op,
            stream: streams.known(device)?,
            service_ns: SERVICE_UNKNOWN_NS,
        })
    }
}
