//! What common tools print, as entries of a table: names of header columns, or the columns of a
//! line that has a shape of its own.
//!
//! - bcc's biosnoop (`man/man8/biosnoop.8` of iovisor/bcc, and its libbpf twin): a header, then
//!   blanks; the time is that of the **completion**, the sector counts 512 bytes, `LAT(ms)` is
//!   completion - issue. Columns come and go with options (`-Q`, `-P`) and are taken by name; the
//!   command may hold blanks.
//! - vscsiStats of VMware ESX (`vscsiStats -t`, printed by `-e`; "Trace Format Version 1"): two
//!   lines of `#`, the second names the columns; microseconds, bytes, 512-byte blocks.
//! - FIU's I/O deduplication traces (R. Koller and R. Rangaswami, "I/O Deduplication", FAST 2010;
//!   SNIA IOTTA): `ns pid process lba size_sectors R|W major minor md5`.
//! - DiskMon (Sysinternals, "Save as"): `# time_s duration_s disk Read|Write sector sectors`,
//!   separated by tabs.
//! - blkreplay's loads (T. Schoebel-Theuer, blkreplay.org): `start_s ; sector ; sectors ; R|W`,
//!   more behind that tells of a replay.

use super::line::ColumnLines;
use super::split::{Fields, Separator};
use super::{described, fit, lay_out};
use crate::column_list::Columns;
use crate::decode::Times;
use crate::entry::{Described, Entry, Guess, Reader, Start};
use crate::format::Format;
use crate::guess::shown;

/// Lines in front of the header that a tool may print.
const MOST_PREAMBLE: usize = 20;

/// Whether a line looks like one of a tool.
type Shape = fn(&Fields<'_>) -> bool;

/// How the lines of a tool look.
struct Preset {
    /// Columns of its header by name, and the items of [`Columns`]; other names are not used.
    names: &'static [(&'static str, &'static str)],
    separator: Separator,
    /// The columns of a line where there is no header, and whether a line has their shape.
    bare: Option<(&'static str, Shape)>,
}

impl Preset {
    /// The header line, where there is one, and the columns.
    fn columns<'a>(&self, start: &Start<'a>) -> Option<(Option<&'a [u8]>, Columns)> {
        for line in start.lines.iter().take(MOST_PREAMBLE) {
            let names = Fields::split(line.strip_prefix(b"#").unwrap_or(line), self.separator);
            let items = names.all().iter().map(|name| {
                let known = self.names.iter().find(|(known, _)| known.as_bytes() == *name);
                known.map_or("-", |(_, item)| *item)
            });
            if let Ok(columns) = items.collect::<Vec<_>>().join(",").parse() {
                return Some((Some(line), columns));
            }
        }
        let (columns, fits) = self.bare?;
        let has_shape = |line: &[u8]| fits(&Fields::split(line, self.separator));
        let heading = start.lines.iter().take(MOST_PREAMBLE).position(|line| has_shape(line))?;
        let data = start.lines[heading..].iter().filter(|line| !line.starts_with(b"#"));
        let (whole, all) = (data.clone().filter(|line| has_shape(line)).count(), data.count());
        let enough = whole * 10 >= all * 9;
        Some((None, columns.parse().ok().filter(|_| enough)?))
    }

    fn guess(&self, start: &Start<'_>) -> Option<Guess> {
        let (header, columns) = self.columns(start)?;
        let lines = lay_out(&columns, start, Some(self.separator))?;
        let fit = fit(&lines, start);
        let (score, evidence) = match header {
            Some(header) => (100, format!("header line {}", shown(header))),
            None => (95, format!("lines read as {columns}")),
        };
        let score = if fit.bad > 0 { score - 5 } else { score };
        (header.is_some() || fit.bad <= fit.rows).then_some(Guess { score, evidence })
    }

    fn describe(&self, start: &Start<'_>) -> Result<Described, String> {
        let columns = match (self.columns(start), self.bare) {
            (Some((_, columns)), _) => Some(columns),
            (None, bare) => bare.and_then(|(columns, _)| columns.parse().ok()),
        };
        let columns = columns.ok_or_else(|| "its header line is missing".to_owned())?;
        let lines: Option<ColumnLines> = lay_out(&columns, start, Some(self.separator));
        Ok(described(lines.ok_or_else(|| "it has no lines".to_owned())?, &columns))
    }
}

/// An entry of the table from a preset.
macro_rules! entry {
    ($name:ident, $format:ident, $preset:ident, $stream:literal, $grammar:literal) => {
        pub(crate) static $name: Entry = Entry {
            format: Format::$format,
            guess: |start| $preset.guess(start),
            reader: Reader::Described(|start| $preset.describe(start)),
            times: Times::Absolute,
            has_service: true,
            stream_prefix: $stream,
            grammar: $grammar,
            parts: None,
        };
    };
}

static BCC: Preset = Preset {
    names: &[
        ("TIME(s)", "end:s"),
        ("COMM", "*"),
        ("PID", "actor"),
        ("DISK", "stream"),
        ("T", "op"),
        ("SECTOR", "offset:sectors"),
        ("BYTES", "size:bytes"),
        ("LAT(ms)", "latency:ms"),
    ],
    separator: Separator::Blanks,
    bare: None,
};
entry!(
    BIOSNOOP,
    Biosnoop,
    BCC,
    "disk",
    "a biosnoop line is TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms), as its header says; the time \
     is the completion's"
);

static VSCSI: Preset = Preset {
    names: &[
        ("IO Data Length", "size:bytes"),
        ("Command Type", "op"),
        ("LBN", "offset:sectors"),
        ("Time Stamp (microseconds)", "time:us"),
    ],
    separator: Separator::Byte(b','),
    bare: None,
};
entry!(
    VSCSI_STATS,
    VscsiStats,
    VSCSI,
    "disk",
    "a vscsiStats line is serial,bytes,segments,read|write,block,time_us"
);

static FIU: Preset = Preset {
    names: &[],
    separator: Separator::Blanks,
    bare: Some(("time:ns,actor,*,offset:sectors,size:sectors,op,-,-,-", |line| {
        let is_op = matches!(line.back(4), Some(b"R" | b"W"));
        let digest = line.back(1).unwrap_or_default();
        is_op && digest.len() == 32 && digest.iter().all(u8::is_ascii_hexdigit)
    })),
};
entry!(
    IODEDUP,
    Iodedup,
    FIU,
    "disk",
    "an FIU line is time_ns pid process lba_sectors size_sectors R|W major minor md5"
);

static SYSINTERNALS: Preset = Preset {
    names: &[],
    separator: Separator::Byte(b'\t'),
    bare: Some(("-,time:s,latency:s,stream,op,offset:sectors,size:sectors", |line| {
        line.all().len() == 7 && matches!(line.front(4), Some(b"Read" | b"Write"))
    })),
};
entry!(
    DISKMON,
    Diskmon,
    SYSINTERNALS,
    "disk",
    "a DiskMon line is number, time_s, duration_s, disk, Read|Write, sector, sectors, with tabs"
);

static LOAD: Preset = Preset {
    names: &[],
    separator: Separator::Byte(b';'),
    bare: Some(("time:s,offset:sectors,size:sectors,op", |line| {
        line.all().len() >= 4
            && line.front(0).is_some_and(|time| time.contains(&b'.'))
            && matches!(line.front(3), Some(b"R" | b"W" | b"r" | b"w"))
    })),
};
entry!(BLKREPLAY, Blkreplay, LOAD, "disk", "a blkreplay line is start_s ; sector ; sectors ; R|W");
