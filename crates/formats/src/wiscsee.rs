//! The event list of WiscSee (He et al., "The Unwritten Contract of Solid State Drives", EuroSys
//! 2017): block-layer events of a run as its simulator takes them.
//!
//! A line is `pid action op offset size time delta sync`: action `D` (issue) or `C` (completion),
//! op `read`, `write` or `discard`, offset and size in bytes, time in seconds, delta since the
//! event before, and whether it was synchronous. See [`super::block_events`] for what becomes of
//! the events.
//!
//! Tested with lines made here and with a published list.

use super::batch::Batch;
use super::block_events::{Action, BlockEvent, Clock, Events, Flags, SECTOR_BYTES};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;
use super::words::Words;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Wiscsee,
    guess,
    reader: Reader::Stream(|options| {
        let events = Events::new(Clock::SinceStart, options.queued_times);
        Box::new(StatefulLines::new(Wiscsee { events }))
    }),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "",
    grammar: "a line is pid D|C read|write|discard offset size seconds delta True|False",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let first = start.lines.first()?;
    let fits = start.lines.iter().all(|line| event(line).is_ok());
    let evidence = format!("lines read as events of WiscSee: {}", String::from_utf8_lossy(first));
    fits.then_some(Guess { score: 95, evidence })
}

struct Wiscsee {
    events: Events,
}

fn event(line: &[u8]) -> Result<BlockEvent, Cause> {
    let mut words = Words::new(line);
    words.number("the process id")?;
    let action = match words.word() {
        action @ (b"D" | b"C" | b"Q") => Action::from_letters(action),
        _ => return Err(Cause::Said("the action is none of Q, D and C")),
    };
    let flags = match words.word() {
        b"read" => 0,
        b"write" => Flags::WRITE,
        b"discard" => Flags::DISCARD,
        _ => return Err(Cause::Said("the operation is none of read, write and discard")),
    };
    let offset = words.number("the offset")?;
    let size = words.number("the size")?;
    let time_ns = words.decimal("the time", 9)?;
    if words.word().is_empty() || !matches!(words.word(), b"True" | b"False") {
        return Err(Cause::MissingField("eight fields, the last True or False"));
    }
    if !offset.is_multiple_of(SECTOR_BYTES) {
        return Err(Cause::Said("the offset is not a multiple of 512"));
    }
    let event = BlockEvent {
        time_ns,
        sector: offset / SECTOR_BYTES,
        bytes: u32::try_from(size).map_err(|_| Cause::TooLarge("the size"))?,
        device: 0,
        action,
        flags: Flags(flags),
    };
    if event.is_beyond_addresses() { Err(Cause::TooLarge("the offset")) } else { Ok(event) }
}

impl LineSink for Wiscsee {
    fn line(&mut self, line: &[u8], _out: &mut Batch) -> Result<(), Cause> {
        let event = event(line)?;
        self.events.take(event);
        Ok(())
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        self.events.finish(out, notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, detect, read_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use std::path::Path;
    use trace::{Op, Trace};

    const EXAMPLE: &str = "39 D read 299008 4096 0.000000000 0 False\n\
        1386 D write 536870912 4096 7.5e-05 4.7955e-05 True\n\
        0 C read 299008 4096 0.000122793 0.000122793 False\n\
        0 C write 536870912 4096 0.000130000 4.0393e-05 True\n\
        7 D discard 0 1048576 0.5 0.4 False\n0 C discard 0 1048576 0.6 0.1 False\n";

    fn parse(text: &str) -> crate::Result<(Trace, Notes)> {
        let options = ReadOptions::default();
        let input = Cursor::new(text.as_bytes().to_vec());
        read_from(input, Path::new("x.txt"), Format::Wiscsee, &options)
    }

    #[test]
    fn events_become_requests() {
        let (trace, notes) = parse(EXAMPLE).expect("reads");
        assert_eq!(trace.due, [0, 75_000, 500_000_000]);
        assert_eq!(trace.op, [Op::Read, Op::Write, Op::Trim]);
        assert_eq!(trace.service, Some(vec![122_793, 55_000, 100_000_000]));
        assert_eq!((trace.offset[1], trace.len[2]), (536_870_912, 1 << 20));
        assert!(notes.warnings.is_empty());
    }

    #[test]
    fn it_is_recognised_by_its_lines() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, EXAMPLE).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::Wiscsee);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_cause() {
        for (line, cause) in [
            ("x D read 0 512 0 0 True", "the process id is not a whole number"),
            ("1 E read 0 512 0 0 True", "the action is none of Q, D and C"),
            ("1 D erase 0 512 0 0 True", "the operation is none of read, write and discard"),
            ("1 D read 5 512 0 0 True", "the offset is not a multiple of 512"),
            ("1 D read 18446744073709551104 512 0 0 True", "the offset is too large"),
            ("1 D read 0 4294967296 0 0 True", "the size is too large"),
            ("1 D read 0 512 x 0 True", "the time is not a whole number"),
            ("1 D read 0 512 0 0", "fewer than eight fields, the last True or False"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.starts_with(&format!("x.txt:1: {cause}")), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "1 D read 0 512 0.5 0 True\n", "0 C read 0 512 1 0 True\n", "D ", "5 ", "1e-9",
                "\n", "Q ",
            ]), 0..60),
        ) {
            if let Ok((trace, _)) = parse(&pieces.concat()) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
