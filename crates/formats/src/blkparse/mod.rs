//! The default text of `blkparse(1)`, also with other programs' headings around it.
//!
//! A line is `major,minor cpu sequence seconds.nanoseconds pid action rwbs`, then by action:
//! `sector + count [process]` (Q, M, F, G, I, D, R, B, and `[error]` for C), `sector / new
//! [process]` (X), `sector + count <- (major,minor) sector` (A), `[process]` where there is no
//! sector, anything for messages and plugs. Sectors count 512 bytes; pass-through commands show
//! their bytes in parentheses. The per-processor summary at the end is not part of the trace; its
//! lines are counted and its lost events ("Skips") taken.
//!
//! See [`super::block_events`] for what becomes of the events.
//!
//! Tested with lines of every kind, wrong ones, and text written by [`write()`] and read back.

mod write;

use super::batch::Batch;
use super::block_events::{Action, BlockEvent, Clock, Events, Flags, SECTOR_BYTES};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::{Notes, STAGE};
use super::words::Words;
pub use write::write;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Blkparse,
    guess,
    reader: Reader::Stream(|options| {
        Box::new(StatefulLines::new(Blkparse::new(options.queued_times)))
    }),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "",
    grammar: "a line is maj,min cpu seq seconds.ns pid action rwbs sector + count [process]",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let first = start.lines.first()?;
    let mut events = start.lines.iter().take_while(|line| !starts_summary(line));
    let shown = String::from_utf8_lossy(&first[..first.len().min(80)]);
    (!starts_summary(first) && events.all(|line| event(line).is_ok())).then(|| Guess {
        score: 95,
        evidence: format!("lines read as events of blkparse: {}", shown.trim_end()),
    })
}

/// Decodes the lines of one file.
pub(super) struct Blkparse {
    events: Events,
    in_summary: bool,
    summary_lines: u64,
    lost: u64,
    failed: u64,
}

impl Blkparse {
    pub(super) fn new(queued_times: bool) -> Self {
        Self {
            events: Events::new(Clock::SinceStart, queued_times),
            in_summary: false,
            summary_lines: 0,
            lost: 0,
            failed: 0,
        }
    }

    fn summary(&mut self, line: &[u8]) {
        self.summary_lines += 1;
        if let Some(rest) = line.trim_ascii_start().strip_prefix(b"Skips:") {
            let forward = Words::new(rest).number("Skips");
            if let Some((_, events)) = split_once(rest, b'(')
                && forward.is_ok_and(|skips| skips > 0)
            {
                // Thousands are grouped where the locale says so.
                let digits: Vec<u8> = events.iter().copied().filter(|byte| *byte != b',').collect();
                self.lost += Words::new(&digits).number("Skips").unwrap_or(0);
            }
        }
    }
}

fn split_once(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|found| *found == byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Whether a line belongs to the summary at the end: `CPU0 (8,0):`, `Total (8,0):`.
fn starts_summary(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let cpu = line.strip_prefix(b"CPU").and_then(|rest| rest.first());
    cpu.is_some_and(u8::is_ascii_digit) || line.starts_with(b"Total (")
}

/// An event, and whether it is a completion with an error.
#[inline]
fn event(line: &[u8]) -> Result<(BlockEvent, bool), Cause> {
    let mut words = Words::new(line);
    let major = words.number("the major number")?;
    if !words.take(b',') {
        return Err(Cause::Said("a comma is missing behind the major number"));
    }
    let minor = words.number("the minor number")?;
    if major >= 1 << 12 || minor >= 1 << 20 {
        return Err(Cause::TooLarge("the device number"));
    }
    words.number("the processor")?;
    words.number("the sequence number")?;
    let time_ns = words.decimal("the time", 9)?;
    words.number("the process id")?;
    let action = words.word();
    let rwbs = words.word();
    if action.is_empty() || rwbs.is_empty() {
        return Err(Cause::MissingField("seven fields in front of the sector"));
    }
    let mut event = BlockEvent {
        time_ns,
        device: (major << 20 | minor) as u32,
        action: Action::from_letters(action),
        flags: Flags::from_rwbs(rwbs),
        ..BlockEvent::default()
    };
    if event.action == Action::Other {
        return Err(Cause::Said("this action is none of blkparse's"));
    }
    let failed = if event.action.pairs() { range(&mut words, &mut event)? } else { false };
    Ok((event, failed))
}

/// Reads `sector + count [...]`. Whether what stands in brackets is an error number.
#[inline]
fn range(words: &mut Words<'_>, event: &mut BlockEvent) -> Result<bool, Cause> {
    let digit = words.peek().is_some_and(|byte| byte.is_ascii_digit());
    if digit {
        event.sector = words.number("the sector")?;
        if words.take(b'+') {
            let count = words.number("the count of sectors")?;
            let bytes = count.checked_mul(SECTOR_BYTES).and_then(|bytes| u32::try_from(bytes).ok());
            event.bytes = bytes.ok_or(Cause::TooLarge("the count of sectors"))?;
        }
        if event.bytes == 0 && words.peek() == Some(b'(') {
            event.flags.0 |= Flags::FOREIGN;
        }
        if event.is_beyond_addresses() {
            return Err(Cause::TooLarge("the sector"));
        }
    }
    let rest = words.rest().trim_ascii_start();
    if !digit && !rest.starts_with(b"[") && !rest.starts_with(b"(") {
        return Err(Cause::Said("neither a sector nor a name in brackets follows the action"));
    }
    let error = rest.strip_prefix(b"[").filter(|_| event.action == Action::Complete);
    Ok(error.is_some_and(|error| !error.starts_with(b"0]")))
}

impl LineSink for Blkparse {
    fn line(&mut self, line: &[u8], _out: &mut Batch) -> Result<(), Cause> {
        if self.in_summary || starts_summary(line) {
            self.in_summary = true;
            self.summary(line);
            return Ok(());
        }
        let (event, failed) = event(line)?;
        self.failed += u64::from(failed);
        self.events.take(event);
        Ok(())
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        notes.count("lines of the summary", self.summary_lines);
        notes.count("completions with an error", self.failed);
        notes.count("events lost by the capture", self.lost);
        if self.lost > 0 {
            let message = format!("the capture lost {} events", self.lost);
            let warning = events::Warning::new(STAGE, "events_lost", message);
            notes.warn(warning.with_hint("capture again with larger buffers (blktrace -b)"));
        }
        self.events.finish(out, notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
