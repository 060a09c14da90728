//! hfplayer's CSV (Haghdoost et al., "On the Accuracy and Scalability of Intensive I/O Workload
//! Replay", FAST 2017): requests seen at a storage array, with measured latencies.
//!
//! The first line names the columns, each with a type behind a dot, in any order; used are
//! `ELAPSED_USECS` (arrival), `CMD` (starts with RD or WR), `LBA` and `NBLKS` (512-byte blocks),
//! `LATENCY_USECS`, and `HOST_LUN` where it is there (the stream). Times count from the start of a
//! longer capture, so the first becomes zero.
//!
//! Tested with files made here and with published ones.

use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;
use super::words::Words;

const BLOCK_BYTES: u64 = 512;
/// The columns that are used, in the order of [`Columns`].
const NAMES: [&[u8]; 6] =
    [b"ELAPSED_USECS", b"CMD", b"LBA", b"NBLKS", b"LATENCY_USECS", b"HOST_LUN"];
/// The first so many of them are needed.
const NEEDED: usize = 4;
/// More columns than any version has.
const MOST_COLUMNS: usize = 64;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Hfplayer,
    guess: |start: &Start<'_>| {
        let first = start.lines.first()?;
        let evidence = "the first line names the columns ELAPSED_USECS, CMD, LBA, NBLKS".to_owned();
        columns(first).map(|_| Guess { score: 100, evidence })
    },
    reader: Reader::Stream(|options| Box::new(StatefulLines::new(Hfplayer::new(options)))),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "lun",
    grammar: "the first line names the columns; ELAPSED_USECS, CMD, LBA and NBLKS are needed",
    parts: None,
};

/// For each of [`NAMES`] the place of its column.
type Columns = [Option<usize>; NAMES.len()];

/// What the first line says; `None` where a column is missing.
fn columns(line: &[u8]) -> Option<Columns> {
    let mut columns = Columns::default();
    let mut words = Words::new(line.strip_prefix(b"#").unwrap_or(line));
    for place in 0..MOST_COLUMNS {
        let Some(field) = words.field() else { break };
        let name = field.split(|byte| *byte == b'.').next().unwrap_or_default();
        if let Some(index) = NAMES.iter().position(|known| *known == name) {
            columns[index].get_or_insert(place);
        }
    }
    columns[..NEEDED].iter().all(Option::is_some).then_some(columns)
}

struct Hfplayer {
    columns: Option<Columns>,
    block_bytes: u64,
    others: u64,
}

impl Hfplayer {
    fn new(options: &ReadOptions) -> Self {
        let block_bytes = options.sector_bytes.map_or(BLOCK_BYTES, u64::from);
        Self { columns: None, block_bytes, others: 0 }
    }

    fn row(&mut self, line: &[u8], columns: &Columns, out: &mut Batch) -> Result<(), Cause> {
        let mut fields = [&b""[..]; NAMES.len()];
        let mut words = Words::new(line);
        for place in 0..MOST_COLUMNS {
            let Some(field) = words.field() else { break };
            if let Some(index) = columns.iter().position(|column| *column == Some(place)) {
                fields[index] = field;
            }
        }
        let [elapsed, command, lba, blocks, latency, lun] = fields;
        let op = match command {
            [b'R', b'D', ..] => Op::Read,
            [b'W', b'R', ..] => Op::Write,
            [] => return Err(Cause::MissingField("the columns that the first line names")),
            _ => {
                self.others += 1;
                return Ok(());
            }
        };
        let due_ns = whole(elapsed, |words| words.decimal("ELAPSED_USECS", 3))?;
        let block = whole(lba, |words| words.number("LBA"))?;
        let count = whole(blocks, |words| words.number("NBLKS"))?;
        let service_ns = match latency {
            [] => 0,
            text => whole(text, |words| words.decimal("LATENCY_USECS", 3))?,
        };
        let lun = if lun.is_empty() { 0 } else { whole(lun, |words| words.number("HOST_LUN"))? };
        let len = count.checked_mul(self.block_bytes).and_then(|len| u32::try_from(len).ok());
        let len_bytes = len.ok_or(Cause::TooLarge("NBLKS"))?;
        let offset_bytes = block
            .checked_mul(self.block_bytes)
            .filter(|offset| offset.checked_add(u64::from(len_bytes)).is_some())
            .ok_or(Cause::TooLarge("LBA"))?;
        let stream = out.streams.number(lun)?;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }
}

/// A field that is one number and nothing else.
fn whole<'a>(
    field: &'a [u8],
    number: impl FnOnce(&mut Words<'a>) -> Result<u64, Cause>,
) -> Result<u64, Cause> {
    let mut words = Words::new(field);
    let value = number(&mut words)?;
    if words.rest().is_empty() {
        Ok(value)
    } else {
        Err(Cause::Said("a number has something behind it"))
    }
}

impl LineSink for Hfplayer {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let Some(known) = self.columns else {
            self.columns = columns(line);
            let missing =
                Cause::Said("the first line does not name ELAPSED_USECS, CMD, LBA and NBLKS");
            return self.columns.map(|_| ()).ok_or(missing);
        };
        self.row(line, &known, out)
    }

    fn finish(&mut self, _out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        notes.count("commands that are neither reads nor writes", self.others);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{detect, read_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use std::path::Path;
    use trace::Trace;

    const EXAMPLE: &str = "#X.I,ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I,HOST_LUN.I,LATENCY_USECS.D\n\
        4,1000.5,WR_IN,8,16,3,56.910\n4,1001,RD_IN,0,1,1,\n4,1002,TUR,0,0,1,1\n";

    fn parse(text: &str) -> crate::Result<(Trace, Notes)> {
        let input = Cursor::new(text.as_bytes().to_vec());
        read_from(input, Path::new("x.csv"), Format::Hfplayer, &ReadOptions::default())
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let (trace, notes) = parse(EXAMPLE).expect("reads");
        assert_eq!((trace.due, trace.offset), (vec![0, 500], vec![4096, 0]));
        assert_eq!((trace.len, trace.op), (vec![8192, 512], vec![Op::Write, Op::Read]));
        assert_eq!((trace.service, trace.stream), (Some(vec![56_910, 0]), vec![1, 0]));
        assert_eq!(trace.streams[1].name, "lun3");
        assert_eq!(notes.counted[0].count, 1);
    }

    #[test]
    fn it_is_recognised_by_its_first_line() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, EXAMPLE).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::Hfplayer);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_cause() {
        for (line, cause) in [
            ("4", "fewer than the columns that the first line names"),
            ("4,x,WR,1,1,1,1", "ELAPSED_USECS is not a whole number"),
            ("4,1,WR,1 2,1,1,1", "a number has something behind it"),
            ("4,1,WR,36028797018963968,1,1,1", "LBA is too large"),
            ("4,1,WR,1,8388608,1,1", "NBLKS is too large"),
        ] {
            let error = parse(&format!("{EXAMPLE}{line}")).expect_err(line).to_string();
            assert_eq!(error, format!("x.csv:5: {cause}: '{line}'"));
        }
        let error = parse("#CMD.S,LBA.I\n").expect_err("columns").to_string();
        assert!(error.starts_with("x.csv:1: the first line does not name"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "1", ",", "WR", "RD", "18446744073709551615", "\n", "x", "1.5", "1e9",
            ]), 0..60),
        ) {
            if let Ok((trace, _)) = parse(&format!("{EXAMPLE}{}", pieces.concat())) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
