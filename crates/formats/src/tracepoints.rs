//! Tracepoints of the block layer as text: `perf script` of events recorded with `perf record -e
//! 'block:*'`, and ftrace's `trace` and `trace_pipe` (`Documentation/trace/events.rst` and
//! `include/trace/events/block.h` of Linux).
//!
//! A line is `process pid [cpu] flags seconds: event: arguments`, the event with `block:` in front
//! or not. The arguments of requests are `major,minor RWBS [bytes] (command) sector + count
//! [priority] [process or error]`; those of bios lack the bytes and the command. Sectors count 512
//! bytes. Lines of other events and of comments are counted. What becomes of the events is told in
//! [`super::block_events`]: issue and completion are joined by device and sector.
//!
//! Tested with lines of both tools, and seeds and mutations in `tests/it`.

use super::batch::Batch;
use super::block_events::{Action, BlockEvent, Clock, Events, Flags, SECTOR_BYTES};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::guess::shown;
use super::notes::Notes;
use super::words::Words;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Tracepoints,
    guess,
    reader: Reader::Stream(|options| {
        Box::new(StatefulLines::new(Tracepoints {
            events: Events::new(Clock::SinceBoot, options.queued_times),
            failed: 0,
            others: 0,
        }))
    }),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "",
    grammar: "a line is process pid [cpu] seconds: block_rq_issue: maj,min rwbs bytes () sector + \
              count [process]",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let line = start.lines.iter().find(|line| matches!(event(line), Ok(Some(_))))?;
    let evidence = format!("lines of tracepoints of the block layer: {}", shown(line.trim_ascii()));
    Some(Guess { score: 96, evidence })
}

struct Tracepoints {
    events: Events,
    failed: u64,
    others: u64,
}

/// Splits a line at the name of its event: the time, ns, then the name and the arguments. `None`
/// where it holds no event of the block layer.
fn parts(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    const PREFIX: &[u8] = b"block_";
    let mut from = 0;
    // The name of a process may hold the prefix too: then no time stands in front of it.
    while let Some(at) = line[from..].windows(PREFIX.len()).position(|part| part == PREFIX) {
        let at = from + at;
        from = at + PREFIX.len();
        let front = line[..at].strip_suffix(b"block:").unwrap_or(&line[..at]);
        let Some(front) = front.trim_ascii_end().strip_suffix(b":") else { continue };
        let word = front.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        let mut words = Words::new(word);
        let Some(end) = line[at..].iter().position(|byte| *byte == b':') else { continue };
        if let Ok(time_ns) = words.decimal("the time", 9)
            && words.rest().is_empty()
        {
            return Some((time_ns, &line[at..at + end], &line[at + end + 1..]));
        }
    }
    None
}

/// What an event of that name is; those that the block layer only reports beside another are none.
fn action(name: &[u8]) -> Option<Action> {
    match name {
        b"block_bio_queue" => Some(Action::Queue),
        b"block_bio_backmerge" => Some(Action::BackMerge),
        b"block_bio_frontmerge" => Some(Action::FrontMerge),
        b"block_bio_bounce" => Some(Action::Bounce),
        b"block_bio_remap" | b"block_rq_remap" => Some(Action::Remap),
        b"block_getrq" => Some(Action::GetRequest),
        b"block_sleeprq" => Some(Action::SleepRequest),
        b"block_rq_insert" => Some(Action::Insert),
        b"block_rq_issue" => Some(Action::Issue),
        b"block_rq_requeue" => Some(Action::Requeue),
        b"block_rq_complete" => Some(Action::Complete),
        b"block_split" => Some(Action::Split),
        b"block_plug" => Some(Action::Plug),
        b"block_unplug" => Some(Action::Unplug),
        _ => None,
    }
}

/// The event of a line and whether it is a completion with an error; `None` for other lines.
fn event(line: &[u8]) -> Result<Option<(BlockEvent, bool)>, Cause> {
    let Some((time_ns, name, arguments)) = parts(line) else { return Ok(None) };
    let Some(action) = action(name) else { return Ok(None) };
    let mut event = BlockEvent { time_ns, action, ..BlockEvent::default() };
    if !action.pairs() {
        return Ok(Some((event, false)));
    }
    let mut words = Words::new(arguments);
    let major = words.number("the major number")?;
    if !words.take(b',') {
        return Err(Cause::Said("a comma is missing behind the major number"));
    }
    let minor = words.number("the minor number")?;
    if major >= 1 << 12 || minor >= 1 << 20 {
        return Err(Cause::TooLarge("the device number"));
    }
    event.device = (major << 20 | minor) as u32;
    event.flags = Flags::from_rwbs(words.word());
    let failed = range(words.rest(), &mut event)?;
    Ok(Some((event, failed)))
}

/// Reads `[bytes] [(command)] sector + count ... [process or error]`. Whether what stands in the
/// last brackets is an error number.
fn range(text: &[u8], event: &mut BlockEvent) -> Result<bool, Cause> {
    let plus = text.windows(3).position(|part| part == b" + ");
    let plus = plus.ok_or(Cause::Said("no 'sector + count' follows the flags"))?;
    let (front, behind) = (&text[..plus], &text[plus + 3..]);
    // Bytes of a pass-through command stand in parentheses.
    let command = front.iter().position(|byte| *byte == b'(').map(|at| &front[at + 1..]);
    if command.is_some_and(|command| !command.starts_with(b")")) {
        event.flags.0 |= Flags::FOREIGN;
    }
    let sector = front.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    let mut words = Words::new(behind);
    let count = words.number("the count of sectors")?;
    let bytes = count.checked_mul(SECTOR_BYTES).and_then(|bytes| u32::try_from(bytes).ok());
    event.bytes = bytes.ok_or(Cause::TooLarge("the count of sectors"))?;
    // A flush has no place; kernels print zero or -1 as one of 64 bits.
    event.sector = match event.bytes {
        0 => 0,
        _ => Words::new(sector).number("the sector")?,
    };
    if event.is_beyond_addresses() {
        return Err(Cause::TooLarge("the sector"));
    }
    let error = words.rest().rsplit(|byte| *byte == b'[').next().unwrap_or_default();
    Ok(event.action == Action::Complete && !error.starts_with(b"0]"))
}

impl LineSink for Tracepoints {
    fn line(&mut self, line: &[u8], _out: &mut Batch) -> Result<(), Cause> {
        match event(line)? {
            Some((event, failed)) => {
                self.failed += u64::from(failed);
                self.events.take(event);
            }
            None => self.others += 1,
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        notes.count("lines of other events and comments", self.others);
        notes.count("completions with an error", self.failed);
        self.events.finish(out, notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{ReadOptions, read_from};
    use trace::Op;

    fn read(text: &str, queued_times: bool) -> (trace::Trace, Notes) {
        let options = ReadOptions { queued_times, ..ReadOptions::default() };
        let input = std::io::Cursor::new(text.as_bytes().to_vec());
        read_from(input, Path::new("trace"), Format::Tracepoints, &options).expect("reads")
    }

    const PERF: &str = "\
        fio  411 [001]  95.000100: block:block_bio_queue: 259,0 R 800 + 8 [fio]\n\
        fio  411 [001]  95.000110: block:block_rq_issue: 259,0 R 4096 () 800 + 8 be,0,4 [fio]\n\
        jbd2/sda1-8  9 [000]  95.000200: block:block_rq_issue: 8,16 WS 512 () 64 + 1 [jbd2]\n\
        swapper  0 [001]  95.000300: block:block_rq_complete: 259,0 R () 800 + 8 be,0,4 [0]\n\
        swapper  0 [000]  95.000450: block:block_rq_complete: 8,16 WS () 64 + 1 [0]\n\
        fio  411 [001]  95.000500: sched:sched_switch: prev_comm=fio\n\
        fio  411 [001]  95.000600: block:block_rq_issue: 8,16 FF 0 () \
        18446744073709551615 + 0 [fio]\n\
        fio  411 [001]  95.000900: block:block_rq_complete: 8,16 FF () \
        18446744073709551615 + 0 [-5]\n";

    #[test]
    fn issue_and_completion_are_joined_by_device_and_sector() {
        let (trace, notes) = read(PERF, false);
        assert_eq!(trace.due, [10_000, 100_000, 500_000].map(|ns| ns - 10_000));
        assert_eq!(trace.service, Some(vec![190_000, 250_000, 300_000]));
        assert_eq!(trace.op, [Op::Read, Op::Write, Op::Flush]);
        assert_eq!(
            (&trace.offset[..2], &trace.len[..]),
            (&[409_600, 32_768][..], &[4096, 512, 0][..])
        );
        let names: Vec<_> = trace.streams.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!(names, ["259:0", "8:16"]);
        let counted = |what: &str| notes.counted.iter().find(|c| c.what == what).map(|c| c.count);
        assert_eq!(counted("lines of other events and comments"), Some(1));
        assert_eq!(counted("completions with an error"), Some(1));
    }

    #[test]
    fn trace_pipe_has_the_same_events_with_its_own_front() {
        let text = "# tracer: nop\n#\n  block_rq_x: y-77 [000] d..1.  7.000001: block_rq_issue: \
                    8,0 W 4096 () 16 + 8 [x]\n  <idle>-0 [000] d.h2.  7.000021: \
                    block_rq_complete: 8,0 W () 16 + 8 [0]\n";
        let (trace, _) = read(text, false);
        assert_eq!((trace.count(), trace.service), (1, Some(vec![20_000])));
        assert_eq!(trace.offset, [8192]);
    }

    #[test]
    fn queued_times_are_those_of_the_bio() {
        let (trace, _) = read(PERF, true);
        assert_eq!(trace.due[0], 0);
        assert_eq!(trace.due[1], 100_000);
    }

    #[test]
    fn a_request_without_a_range_is_refused() {
        for (line, cause) in [
            ("a 1 [0] 1.0: block_rq_issue: 8,0 W 4096 () [x]", "no 'sector + count' follows"),
            ("a 1 [0] 1.0: block_rq_issue: 8 W 4096 () 1 + 8 [x]", "a comma is missing"),
            ("a 1 [0] 1.0: block_rq_issue: 8,0 W 4096 () x + 8 [x]", "the sector is not a whole"),
        ] {
            let found = event(line.as_bytes()).expect_err(line).to_string();
            assert!(found.contains(cause), "{line}: {found}");
        }
    }
}
