//! DiskSim's validation traces: requests to a real disk with their measured service times (Bucy et
//! al., "The DiskSim Simulation Environment Version 4.0 Reference Manual", CMU-PDL-08-101).
//!
//! A line is `R|W kind block count service gap`: kind is `Hit`, `Miss`, `Doub` or `Trip` (what the
//! disk's buffer made of it), block and count are 512-byte blocks, service and gap are us with
//! decimals. One request was outstanding at a time: the next arrives `gap` after this one has
//! completed. So arrivals are reconstructed, due = the completion before + its gap, and the first
//! is due at zero; the origin says that the trace is a closed loop.
//!
//! Tested with lines made here and with the published traces.

use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;
use super::words::Words;

/// Origin fact: how requests came to the recorded device, where that is known.
pub const LOOP_FACT: &str = "loop";

/// Value of [`LOOP_FACT`] where each request was issued some time after the completion of the one
/// before.
pub const ONE_OUTSTANDING: &str =
    "closed, one outstanding; due = the completion before + the recorded gap";

const BLOCK_BYTES: u64 = 512;
/// What the disk's buffer can make of a request.
const KINDS: [&[u8]; 4] = [b"Hit", b"Miss", b"Doub", b"Trip"];

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::DisksimValidate,
    guess,
    reader: Reader::Stream(|options| Box::new(StatefulLines::new(Validate::new(options)))),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "disk",
    grammar: "a line is R|W Hit|Miss|Doub|Trip block count service_us gap_us",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let first = start.lines.first()?;
    let fits = start.lines.iter().all(|line| parse(line, BLOCK_BYTES).is_ok());
    let evidence =
        format!("lines read as R|W kind block count us us: {}", String::from_utf8_lossy(first));
    fits.then_some(Guess { score: 95, evidence })
}

/// One line.
struct Line {
    op: Op,
    kind: usize,
    offset_bytes: u64,
    len_bytes: u32,
    service_ns: u64,
    gap_ns: u64,
}

fn parse(line: &[u8], block_bytes: u64) -> Result<Line, Cause> {
    let mut words = Words::new(line);
    let op = match words.word() {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(Cause::Said("the line starts with neither R nor W")),
    };
    let kind = words.word();
    let kind = KINDS.iter().position(|known| *known == kind);
    let kind = kind.ok_or(Cause::Said("the second field is none of Hit, Miss, Doub, Trip"))?;
    let block = words.number("the block")?;
    let count = words.number("the count")?;
    let service_ns = words.decimal("the service time", 3)?;
    let gap_ns = words.decimal("the gap", 3)?;
    if !words.word().is_empty() {
        return Err(Cause::Said("something follows the gap"));
    }
    let len = count.checked_mul(block_bytes).and_then(|len| u32::try_from(len).ok());
    let len_bytes = len.ok_or(Cause::TooLarge("the count"))?;
    let offset_bytes = block
        .checked_mul(block_bytes)
        .filter(|offset| offset.checked_add(u64::from(len_bytes)).is_some())
        .ok_or(Cause::TooLarge("the block"))?;
    Ok(Line { op, kind, offset_bytes, len_bytes, service_ns, gap_ns })
}

struct Validate {
    block_bytes: u64,
    due_ns: u64,
    kinds: [u64; KINDS.len()],
}

impl Validate {
    fn new(options: &ReadOptions) -> Self {
        let block_bytes = options.sector_bytes.map_or(BLOCK_BYTES, u64::from);
        Self { block_bytes, due_ns: 0, kinds: [0; KINDS.len()] }
    }
}

impl LineSink for Validate {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let Line { op, kind, offset_bytes, len_bytes, service_ns, gap_ns } =
            parse(line, self.block_bytes)?;
        let next = self.due_ns.checked_add(service_ns).and_then(|end| end.checked_add(gap_ns));
        let next = next.ok_or(Cause::TooLarge("the sum of times so far"))?;
        let stream = out.streams.number(0)?;
        let (due_ns, service_ns) = (self.due_ns, service_ns.max(1));
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        self.due_ns = next;
        self.kinds[kind] += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        for (kind, count) in KINDS.iter().zip(self.kinds) {
            let what =
                format!("requests that the disk's buffer made a {}", String::from_utf8_lossy(kind));
            notes.count(&what, count);
        }
        out.facts.insert(LOOP_FACT.to_owned(), ONE_OUTSTANDING.to_owned());
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

    const EXAMPLE: &str = "W Hit    4583176   4    663.00000  45422.00000\n\
        R Miss 10 1 21392.022858 17403.764668\nR Doub 7 2 1 0\n";

    fn parse(text: &str) -> crate::Result<(Trace, Notes)> {
        let options = ReadOptions::default();
        let input = Cursor::new(text.as_bytes().to_vec());
        read_from(input, Path::new("x.trace"), Format::DisksimValidate, &options)
    }

    #[test]
    fn arrivals_follow_completions() {
        let (trace, notes) = parse(EXAMPLE).expect("reads");
        let second = 663_000 + 45_422_000;
        assert_eq!(trace.due, [0, second, second + 21_392_022 + 17_403_764]);
        assert_eq!(trace.service, Some(vec![663_000, 21_392_022, 1000]));
        assert_eq!(
            (trace.offset, trace.len),
            (vec![4_583_176 * 512, 5120, 3584], vec![2048, 512, 1024])
        );
        assert_eq!(trace.op, [Op::Write, Op::Read, Op::Read]);
        assert_eq!(notes.counted.len(), 3);
        assert!(trace.origin.facts[LOOP_FACT].starts_with("closed"));
    }

    #[test]
    fn it_is_recognised_by_its_lines() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, EXAMPLE).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::DisksimValidate);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_cause() {
        for (line, cause) in [
            ("X Hit 1 1 1 1", "the line starts with neither R nor W"),
            ("R hit 1 1 1 1", "the second field is none of Hit, Miss, Doub, Trip"),
            ("R Hit x 1 1 1", "the block is not a whole number"),
            ("R Hit 1 8388608 1 1", "the count is too large"),
            ("R Hit 36028797018963968 1 1 1", "the block is too large"),
            ("R Hit 1 1 -1 1", "the service time is not a whole number"),
            ("R Hit 1 1 1", "the gap is not a whole number"),
            ("R Hit 1 1 1 1 x", "something follows the gap"),
        ] {
            let error = parse(&format!("{EXAMPLE}{line}")).expect_err(line).to_string();
            assert_eq!(error, format!("x.trace:4: {cause}: '{line}'"));
        }
        let endless = "R Hit 1 1 9000000000000000 9000000000000000\n".repeat(2);
        let error = parse(&endless).expect_err("too long").to_string();
        assert!(error.contains("x.trace:2: the sum of times so far is too large"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "R ", "W ", "Hit ", "Miss ", "5 ", "0.5 ", "\n", "1e3 ", "-",
                "99999999999999999999 ",
            ]), 0..60),
        ) {
            if let Ok((trace, _)) = parse(&pieces.concat()) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
