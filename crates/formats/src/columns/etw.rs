//! Event Tracing for Windows as `xperf -a dumper` prints it, the form in which SNIA IOTTA publishes
//! the Microsoft Production Server and Exchange traces (S. Kavalanekar et al., "Characterization of
//! Storage Workload Traces from Production Windows Servers", IISWC 2008).
//!
//! Between `BeginHeader` and `EndHeader` a line per kind of event names its columns; then a line
//! per event, its kind in front. Taken are `DiskRead`, `DiskWrite` and `DiskFlush`, whose
//! `TimeStamp` is the completion and `ElapsedTime` completion - issue, both in microseconds;
//! `ByteOffset` and `IOSize` are hexadecimal bytes. Later versions have a CPU column, so that
//! columns are taken by name; where the header was cut off they are those of the published traces.
//! Other events are counted.

use super::described;
use super::line::{BEFORE_ZERO_NS, ColumnLines, Layout};
use super::split::{Fields, Separator};
use crate::batch::Batch;
use crate::cause::Cause;
use crate::column_list::Columns;
use crate::decode::{LineFormat, Times};
use crate::entry::{Described, Entry, Guess, Reader, Start};
use crate::format::Format;
use crate::guess::shown;

const COMMA: Separator = Separator::Byte(b',');

/// The kinds of event that become requests, with their columns in the published traces. A flush has
/// no place: what its offset and size name is not looked at.
const KINDS: [(&[u8], &str); 3] = [
    (b"DiskRead", "op,end:us,-,actor,-,offset,size,latency:us,stream"),
    (b"DiskWrite", "op,end:us,-,actor,-,offset,size,latency:us,stream"),
    (b"DiskFlush", "op,end:us,-,actor,-,latency:us,stream,offset=1,size=1"),
];

/// Columns by their names in the header.
const NAMES: [(&[u8], &str); 6] = [
    (b"TimeStamp", "end:us"),
    (b"ThreadID", "actor"),
    (b"ByteOffset", "offset"),
    (b"IOSize", "size"),
    (b"ElapsedTime", "latency:us"),
    (b"DiskNum", "stream"),
];

/// The entry of the table.
pub(crate) static ENTRY: Entry = Entry {
    format: Format::Etw,
    guess,
    reader: Reader::Described(describe),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "disk",
    grammar: "a line is DiskRead|DiskWrite, TimeStamp_us, process, thread, irp, ByteOffset, \
              IOSize, ElapsedTime_us, DiskNum, as its header says",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let is_request = |line: &&&[u8]| {
        let fields = Fields::<9>::split_some(line, COMMA, 9);
        kind(fields.all()[0]).is_some_and(|kind| kind < 2) && fields.all().len() == 9
    };
    let line = start.lines.iter().find(is_request)?;
    let evidence = format!("events of Windows as xperf prints them: {}", shown(line));
    Some(Guess { score: 98, evidence })
}

/// Index in [`KINDS`] of the first field of a line.
fn kind(word: &[u8]) -> Option<usize> {
    KINDS.iter().position(|(kind, _)| *kind == word)
}

fn describe(start: &Start<'_>) -> Result<Described, String> {
    let mut columns = Vec::new();
    for (_, usual) in KINDS {
        columns.push(usual.parse::<Columns>()?);
    }
    for line in &start.lines {
        let names = Fields::split(line, COMMA);
        if names.front(1) == Some(b"TimeStamp")
            && let Some(kind) = kind(names.all()[0])
        {
            columns[kind] = named(&names, KINDS[kind].1)?;
        }
    }
    let lines = columns.iter().filter_map(|columns| Layout::new(columns, COMMA));
    let lines = lines.map(|layout| ColumnLines { layout, headings: Vec::new() });
    let lines: Vec<ColumnLines> = lines.collect();
    let reads = lines.first().ok_or("no columns")?.clone();
    let described = described(reads, &columns[0]);
    let before_zero_ns = BEFORE_ZERO_NS;
    Ok(Described { lines: Box::new(Etw { lines }), before_zero_ns, ..described })
}

/// Columns from a line of the header.
fn named(names: &Fields<'_>, usual: &str) -> Result<Columns, String> {
    let item = |name: &&[u8]| {
        let known = NAMES.iter().find(|(known, _)| known == name);
        known.map_or("-", |(_, item)| *item)
    };
    let mut items: Vec<&str> = names.all().iter().map(item).collect();
    items[0] = "op";
    if usual.ends_with("size=1") {
        items.extend(["offset=1", "size=1"]);
    }
    items.join(",").parse()
}

struct Etw {
    /// For each of [`KINDS`].
    lines: Vec<ColumnLines>,
}

impl LineFormat for Etw {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let fields = Fields::<2>::split_some(line, COMMA, 2);
        let heading = fields.front(1) == Some(b"TimeStamp");
        if let Some(kind) = kind(fields.all()[0]).filter(|_| !heading) {
            return self.lines[kind].line(line, out);
        }
        out.skip_line();
        Ok(())
    }
}
