//! fio's iolog, versions 2 and 3: what `--write_iolog` writes and `--read_iolog` replays
//! (`fio(1)`, "TRACE FILE FORMAT"; fio's `iolog.c`).
//!
//! The first line is `fio version 2 iolog` or `fio version 3 iolog`. Version 2: `file action
//! [offset length]`; version 3 puts a time in us in front, which the manual gives no unit for.
//! Actions are `add`, `open`, `close` of files, and `read`, `write`, `trim`, `sync`, `datasync`;
//! both kinds of sync are flushes. Every file is a stream with an address space of its own. Times
//! of version 3 count from the first line.
//!
//! Version 2 knows time only by `file wait N 0`. The manual has N as us since the wait before; the
//! code, from 2009 to fio 3.33 and later, takes it as **ms since the start of the job**, and a wait
//! without the second number is refused. This reader does as the code does (and takes waits without
//! the second number too), notes it, and warns where waits run backwards, as intervals would, or
//! where the trace has no wait at all: then every request is due at once. A `--time-unit` applies
//! to both versions.
//!
//! Tested with lines of every kind, wrong ones, traces written and read back, and by fio itself.

mod write;

use events::Warning;
use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineSink, StatefulLines, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::{Notes, STAGE};
use super::words::Words;
pub use write::write;

const VERSION_2: &[u8] = b"fio version 2 iolog";
const VERSION_3: &[u8] = b"fio version 3 iolog";

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::FioIolog,
    guess: |start: &Start<'_>| {
        let first = start.lines.first()?.trim_ascii();
        let known = first == VERSION_2 || first == VERSION_3;
        let evidence = format!("the first line is '{}'", String::from_utf8_lossy(first));
        known.then_some(Guess { score: 100, evidence })
    },
    reader: Reader::Stream(|options| Box::new(StatefulLines::new(FioIolog::new(options)))),
    times: Times::Relative,
    has_service: false,
    stream_prefix: "file",
    grammar: "a line is [us] file read|write|trim|sync|datasync offset length, or file \
              add|open|close",
    parts: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// Decodes the lines of one file.
struct FioIolog {
    version: Option<Version>,
    unit_ns: Option<u64>,
    /// Time of the first line of version 3, in units.
    first: Option<u64>,
    /// Version 2: the latest wait, in units.
    now: u64,
    waits: u64,
    /// Waits that lie before an earlier one.
    waits_back: u64,
    file_actions: u64,
}

impl FioIolog {
    fn new(options: &ReadOptions) -> Self {
        Self {
            version: None,
            unit_ns: options.time_unit.map(super::TimeUnit::nanos),
            first: None,
            now: 0,
            waits: 0,
            waits_back: 0,
            file_actions: 0,
        }
    }

    fn unit_ns(&self) -> u64 {
        let default = if self.version == Some(Version::Three) { 1_000 } else { 1_000_000 };
        self.unit_ns.unwrap_or(default)
    }

    fn wait(&mut self, until: u64) {
        self.waits += 1;
        self.waits_back += u64::from(until < self.now);
        self.now = self.now.max(until);
    }

    fn event(&mut self, line: &[u8], version: Version, out: &mut Batch) -> Result<(), Cause> {
        let mut words = Words::new(line);
        let mut now = self.now;
        if version == Version::Three {
            let time = words.number("the time")?;
            now = time.saturating_sub(*self.first.get_or_insert(time));
        }
        let file = words.word();
        let action = words.word();
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            b"add" | b"open" | b"close" | b"unlink" => {
                self.file_actions += 1;
                return Ok(());
            }
            b"wait" if version == Version::Two => {
                self.wait(words.number("the time to wait for")?);
                return Ok(());
            }
            b"" => return Err(Cause::MissingField("two fields")),
            _ => return Err(Cause::Said("this action is none of fio's")),
        };
        let (mut offset_bytes, mut len_bytes) = (0, 0);
        if op != Op::Flush {
            offset_bytes = words.number("the offset")?;
            let len = words.number("the length")?;
            len_bytes = u32::try_from(len).map_err(|_| Cause::TooLarge("the length"))?;
            offset_bytes.checked_add(len).ok_or(Cause::TooLarge("the offset"))?;
        }
        let due_ns = now.checked_mul(self.unit_ns()).ok_or(Cause::TooLarge("the time"))?;
        let stream = out.streams.name(file)?;
        let service_ns = SERVICE_UNKNOWN_NS;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn warn_of_waits(&self, count: u64, notes: &mut Notes) {
        notes
            .understood
            .push("wait: ms since the start of the job, as fio's code has it".to_owned());
        if self.waits == 0 && count > 1 {
            let message =
                "an iolog of version 2 without waits has no times: all requests are due at once";
            let hint = "write the log with a fio that writes version 3, or scale the trace";
            notes.warn(Warning::new(STAGE, "no_times", message).with_hint(hint));
        }
        if self.waits_back > 0 {
            let message = format!(
                "{} of {} waits lie before an earlier one; they look like intervals, as fio's \
                 manual has it",
                self.waits_back, self.waits
            );
            notes.warn(Warning::new(STAGE, "waits_run_back", message));
        }
    }
}

impl LineSink for FioIolog {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let Some(version) = self.version else {
            self.version = Some(match line.trim_ascii() {
                VERSION_2 => Version::Two,
                VERSION_3 => Version::Three,
                _ => return Err(Cause::Said("the first line is not 'fio version 2 iolog' or 3")),
            });
            return Ok(());
        };
        self.event(line, version, out)
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        notes.count("files added, opened or closed", self.file_actions);
        notes.count("waits", self.waits);
        match self.version {
            Some(Version::Two) => self.warn_of_waits(out.rows(), notes),
            Some(Version::Three) => {
                notes.understood.push("times: us from the first line".to_owned());
            }
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
