//! DiskSim's default ("ascii") traces (J. Bucy et al., "The DiskSim Simulation Environment Version
//! 4.0 Reference Manual", CMU-PDL-08-101, section 8.1).
//!
//! `time device block count flags`, separated by blanks: time of arrival in decimal
//! **milliseconds**, block and count in 512-byte blocks, flags in hexadecimal, bit 0 set for a
//! read. Other flags (priority, asynchronous) say nothing here. A stream is `devN`.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader};
use super::fields::{Line, range};
use super::format::Format;
use super::guess::{fit, shown};
use super::machine;
use super::scan::{BLANK, FastLine, Fields, Machine};
use super::streams::Streams;
use super::{ReadOptions, SECTOR_BYTES, TimeUnit};

const FIELDS: &str = "five fields, separated by blanks";

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Disksim,
    guess: |start| {
        let fit = fit(start, &Disksim::new(start.options), false)?;
        let lines = format!("lines read as time device block count flags: {}", shown(fit.first));
        let decimal = start.lines.iter().filter(|line| line.contains(&b'.')).count();
        let (score, evidence) = match (decimal * 2 > start.lines.len(), fit.bad) {
            (true, 0) => (90, format!("{lines}; decimal times")),
            (true, _) => (60, format!("{lines}; decimal times, though some lines are bad")),
            (false, _) => (40, format!("{lines}; but the times are whole numbers")),
        };
        Some(Guess { score, evidence })
    },
    reader: Reader::Lines(|options| Box::new(Disksim::new(options))),
    times: Times::Relative,
    has_service: false,
    stream_prefix: "dev",
    grammar: "a DiskSim line is time_ms device block count flags with bit 0 of the flags for a \
              read",
    parts: None,
};

struct Disksim {
    unit_ns: u64,
    block_bytes: u32,
    read_is_one: bool,
}

impl Disksim {
    fn new(options: &ReadOptions) -> Self {
        Self {
            unit_ns: options.time_unit.unwrap_or(TimeUnit::Milliseconds).nanos(),
            block_bytes: options.sector_bytes.unwrap_or(SECTOR_BYTES),
            read_is_one: options.read_is_one.unwrap_or(true),
        }
    }

    #[inline(always)]
    fn op(&self, is_one: bool) -> Op {
        if is_one == self.read_is_one { Op::Read } else { Op::Write }
    }
}

impl LineFormat for Disksim {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let mut fields = Line::blanks(line, FIELDS);
        let due_ns = fields.decimal("the time", self.unit_ns)?;
        let device = fields.number("device")?;
        let (block, count) = (fields.number("block")?, fields.number("count")?);
        let (offset_bytes, len_bytes) = range(block, count, self.block_bytes, ["block", "count"])?;
        let op = self.op(fields.hexadecimal("flags")? & 1 == 1);
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

impl FastLine for Disksim {
    const HAS_SERVICE: bool = false;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        line.unusual(self.unit_ns != 1_000_000);
        let whole = line.digits8(b'.');
        let (fraction, ninth) = line.fraction(BLANK);
        let device = line.digits8(BLANK);
        let block = line.digits8(BLANK);
        let count = line.digits8(BLANK);
        let op = self.op(line.bit(b'\n'));
        let [whole, device, block, count] = line.values([whole, device, block, count]);
        let billionths = line.value(fraction) * 10 + ninth;
        let block_bytes = u64::from(self.block_bytes);
        Some(Row {
            due_ns: whole * 1_000_000 + billionths / 1_000,
            // Both of at most 8 digits, the block of 32 bits: the end fits.
            offset_bytes: block * block_bytes,
            len_bytes: u32::try_from(count * block_bytes).ok()?,
            op,
            stream: streams.known(device)?,
            service_ns: SERVICE_UNKNOWN_NS,
        })
    }
}
