//! Writes the text that `blkparse(1)` prints by default: an issue per request, and its completion
//! where the service time is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{BufWriter, Write};
use std::path::Path;

use trace::{Op, Trace};

use super::super::batch::SERVICE_UNKNOWN_NS;
use super::super::block_events::SECTOR_BYTES;
use super::super::notes::{Counted, Losses};
use super::super::whole_file;
use crate::{Error, Result};

/// Major number of streams that are not named after a device: 259, as NVMe disks have.
const MAJOR: u32 = 259;

/// Writes a file, whole or not at all, and says what the format could not hold. Streams called
/// `major:minor` keep their device number, others get one. Reading it back gives the same times,
/// and the same requests where they are whole sectors.
pub fn write(trace: &Trace, path: &Path) -> Result<Vec<Counted>> {
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    let mut losses = Losses::default();
    whole_file::write(path, |file| {
        let mut out = BufWriter::new(file);
        write_to(trace, &mut out, &mut losses).map_err(Error::io(path))?;
        out.flush().map_err(Error::io(path))
    })?;
    Ok(losses.into_counted())
}

/// Writes to anything.
pub(super) fn write_to(
    trace: &Trace,
    out: &mut impl Write,
    losses: &mut Losses,
) -> std::io::Result<()> {
    let devices = devices(trace, losses);
    let mut text = Text { out, trace, devices, sequence: 0 };
    let mut completions: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    // When the last of the requests in flight with this command and range completes.
    let mut alike: HashMap<(u16, Op, u64, u64), u64> = HashMap::new();
    for row in 0..trace.count() {
        while let Some(Reverse((time, completed))) = completions.peek().copied()
            && time <= trace.due[row]
        {
            completions.pop();
            let key = text.key(completed);
            if alike.get(&key) == Some(&time) {
                alike.remove(&key);
            }
            text.line(completed, time, 'C')?;
        }
        if trace.len[row] == 0 && trace.op[row] != Op::Flush {
            losses.add("empty requests, left out");
            continue;
        }
        rounding(trace, row, losses);
        text.line(row, trace.due[row], 'D')?;
        let service_ns = trace.service.as_ref().map_or(SERVICE_UNKNOWN_NS, |column| column[row]);
        let Some(end) = trace.due[row].checked_add(service_ns).filter(|end| *end > trace.due[row])
        else {
            if trace.service.is_some() {
                losses.add("requests without a completion: their service time is not known");
            }
            continue;
        };
        let last = alike.entry(text.key(row)).or_insert(end);
        if *last > end {
            losses.add("requests that overtook an equal one: their service times are swapped");
        }
        *last = end.max(*last);
        completions.push(Reverse((end, row)));
    }
    while let Some(Reverse((time, row))) = completions.pop() {
        text.line(row, time, 'C')?;
    }
    Ok(())
}

fn rounding(trace: &Trace, row: usize, losses: &mut Losses) {
    let (offset, len) = (trace.offset[row], u64::from(trace.len[row]));
    if !offset.is_multiple_of(SECTOR_BYTES) || !len.is_multiple_of(SECTOR_BYTES) {
        losses.add("requests widened to whole 512-byte sectors");
    }
}

/// The device number of each stream.
fn devices(trace: &Trace, losses: &mut Losses) -> Vec<(u32, u32)> {
    let named = |name: &str| -> Option<(u32, u32)> {
        let (major, minor) = name.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        (device.0 < 1 << 12 && device.1 < 1 << 20).then_some(device)
    };
    let names: Vec<_> = trace.streams.iter().map(|stream| named(&stream.name)).collect();
    if names.iter().all(Option::is_some) {
        return names.into_iter().flatten().collect();
    }
    for stream in &trace.streams {
        if named(&stream.name).is_none() {
            losses.add("names of streams; they are device numbers in order");
        }
    }
    (0..trace.streams.len() as u32).map(|index| (MAJOR, index)).collect()
}

struct Text<'a, W> {
    out: &'a mut W,
    trace: &'a Trace,
    devices: Vec<(u32, u32)>,
    sequence: u64,
}

impl<W: Write> Text<'_, W> {
    /// What reading it back would tell requests in flight apart by.
    fn key(&self, row: usize) -> (u16, Op, u64, u64) {
        let (sector, count) = self.range(row);
        (self.trace.stream[row], self.trace.op[row], sector, count)
    }

    /// First sector and count, wide enough for every byte of the request.
    fn range(&self, row: usize) -> (u64, u64) {
        if self.trace.op[row] == Op::Flush {
            return (0, 0);
        }
        let (offset, len) = (self.trace.offset[row], u64::from(self.trace.len[row]));
        let first = offset / SECTOR_BYTES;
        (first, (offset % SECTOR_BYTES + len).div_ceil(SECTOR_BYTES))
    }

    fn line(&mut self, row: usize, time_ns: u64, action: char) -> std::io::Result<()> {
        self.sequence += 1;
        let (major, minor) = self.devices[usize::from(self.trace.stream[row])];
        let rwbs = match self.trace.op[row] {
            Op::Read => "R",
            Op::Write => "W",
            Op::Trim => "D",
            Op::Flush => "FN",
        };
        let device = format!("{major},{minor}");
        let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let sequence = self.sequence;
        write!(self.out, "{device:>7}  0 {sequence:8} {seconds:5}.{nanos:09}     0 {action:>2}")?;
        let (sector, count) = self.range(row);
        match (action, count) {
            ('C', 0) => writeln!(self.out, " {rwbs:>3} 0 [0]"),
            ('C', _) => writeln!(self.out, " {rwbs:>3} {sector} + {count} [0]"),
            (_, 0) => writeln!(self.out, " {rwbs:>3} [wearmark]"),
            (_, _) => writeln!(self.out, " {rwbs:>3} {sector} + {count} [wearmark]"),
        }
    }
}
