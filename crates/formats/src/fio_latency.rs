//! fio's latency log (`--write_lat_log`, with `--log_offset=1`): one line per completed request.
//!
//! `time, latency, direction, block size[, offset[, priority...]]`: time in ms when it completed,
//! latency in ns, direction 0 read, 1 write, 2 trim, offset in bytes. A request is due when it was
//! issued, time - latency, which is as exact as the log: 1 ms. Without offsets a log is no trace
//! and is refused. The name of the file says which latency it is (`_lat` from submission on,
//! `_clat` from the kernel's acceptance on); its lines do not.
//!
//! Tested with lines made here and with the log of a captured run.

use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::guess::guess_by_lines;
use super::words::Words;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::FioLatency,
    guess,
    reader: Reader::Lines(|options| Box::new(FioLatency::new(options))),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "job",
    grammar: "a line is ms, latency_ns, direction, size, offset (run fio with --log_offset=1)",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    // Other lists of numbers have no space behind their commas.
    let spaced = |line: &&[u8]| line.windows(2).filter(|pair| pair == b", ").count() >= 4;
    if !start.lines.iter().all(spaced) {
        return None;
    }
    guess_by_lines(start, &FioLatency::new(start.options), "ms, ns, direction, size, offset")
}

struct FioLatency {
    unit_ns: u64,
}

impl FioLatency {
    fn new(options: &ReadOptions) -> Self {
        Self { unit_ns: options.time_unit.map_or(1_000_000, super::TimeUnit::nanos) }
    }
}

impl LineFormat for FioLatency {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let mut words = Words::new(line);
        let time = words.number("the time")?;
        comma(&mut words)?;
        let latency_ns = words.number("the latency")?;
        comma(&mut words)?;
        let op = match words.number("the direction")? {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Trim,
            _ => return Err(Cause::Said("the direction is none of 0, 1 and 2")),
        };
        comma(&mut words)?;
        let size = words.number("the size")?;
        comma(&mut words)?;
        let offset_bytes = words.number("the offset")?;
        if !matches!(words.peek(), None | Some(b',')) {
            return Err(Cause::Said("something other than a comma follows the offset"));
        }
        let len_bytes = u32::try_from(size).map_err(|_| Cause::TooLarge("the size"))?;
        offset_bytes.checked_add(size).ok_or(Cause::TooLarge("the offset"))?;
        let end_ns = time.checked_mul(self.unit_ns).ok_or(Cause::TooLarge("the time"))?;
        let (due_ns, service_ns) = (end_ns.saturating_sub(latency_ns), latency_ns);
        let stream = out.streams.number(0)?;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }
}

fn comma(words: &mut Words<'_>) -> Result<(), Cause> {
    if words.take(b',') {
        Ok(())
    } else {
        Err(Cause::MissingField("five fields, separated by commas"))
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

    const EXAMPLE: &str = "1, 201803, 0, 4096, 259043328, 0\n2, 147123, 1, 12288, 512\n\
        2, 1900000, 2, 512, 0, 0, 7\n";

    fn parse(text: &str) -> crate::Result<Trace> {
        let input = Cursor::new(text.as_bytes().to_vec());
        let options = ReadOptions::default();
        read_from(input, Path::new("x_lat.log"), Format::FioLatency, &options).map(|read| read.0)
    }

    #[test]
    fn requests_are_due_when_they_were_issued() {
        let trace = parse(EXAMPLE).expect("reads");
        assert_eq!(trace.due, [0, 698_197, 1_752_877]);
        assert_eq!(trace.origin.facts["start_ns"], "100000");
        assert_eq!(trace.service, Some(vec![1_900_000, 201_803, 147_123]));
        assert_eq!(trace.op, [Op::Trim, Op::Read, Op::Write]);
        assert_eq!((trace.offset, trace.len), (vec![0, 259_043_328, 512], vec![512, 4096, 12288]));
    }

    #[test]
    fn it_is_recognised_by_its_lines() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, EXAMPLE).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::FioLatency);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_cause() {
        for (line, cause) in [
            ("1, 2, 0, 4096", "fewer than five fields, separated by commas"),
            ("x, 2, 0, 4096, 0", "the time is not a whole number"),
            ("1, 2, 3, 4096, 0", "the direction is none of 0, 1 and 2"),
            ("1, 2, 0, 4294967296, 0", "the size is too large"),
            ("1, 2, 0, 1, 0 x", "something other than a comma follows the offset"),
            ("9999999999999999999, 2, 0, 1, 0", "the time is too large"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert_eq!(error, format!("x_lat.log:1: {cause}: '{line}'"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "1", ", ", "0", "18446744073709551615", "\n", "x", " ",
            ]), 0..60),
        ) {
            if let Ok(trace) = parse(&pieces.concat()) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
