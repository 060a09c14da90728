//! Lines on several threads: each takes the next piece of the input, parses it into rows of its own
//! and appends them when it is the piece's turn.
//!
//! The trace, the notes and the errors are those of one thread: pieces are appended in the order of
//! the input, streams are put in the order of their names at the end, and the first bad line in the
//! input is the one reported. In flight are at most one piece and its rows per thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::batch::Batch;
use super::decode::LineFormat;
use super::engine::{BadLines, Engine, endless, make_room, parse};
use super::input::Input;
use super::pieces::{Filled, Pieces};
use crate::{Error, Result};

/// Where pieces come from.
struct Source<'a> {
    input: &'a mut Input,
    pieces: Pieces,
    /// Number of the next piece.
    next: u64,
}

/// Where rows go.
struct Target<'a, 'b> {
    out: &'a mut Batch,
    engine: &'a mut Engine<'b>,
    /// Number of the piece whose turn it is.
    turn: u64,
    failed: Option<Error>,
}

/// A thread's own memory.
struct Worker {
    buffer: Vec<u8>,
    rows: Batch,
    /// For each stream of `rows` its index in the trace.
    streams: Vec<u16>,
}

/// What a piece was.
struct Parsed {
    bad: BadLines,
    bytes: usize,
    /// Bytes of the input behind it, where known.
    rest: Option<u64>,
}

/// Reads all lines on `threads` threads.
pub(super) fn lines(
    engine: &mut Engine<'_>,
    input: &mut Input,
    format: &dyn LineFormat,
    out: &mut Batch,
    threads: usize,
) -> Result<()> {
    let path = input.path().to_owned();
    let lenient = engine.lenient;
    let empty = out.same_kind();
    let source = Mutex::new(Source { input, pieces: Pieces::default(), next: 0 });
    let target = Mutex::new(Target { out, engine, turn: 0, failed: None });
    let turned = Condvar::new();
    let work = || {
        let _wakes = Wakes { target: &target, turned: &turned };
        let rows = empty.same_kind();
        let mut worker = Worker { buffer: Vec::new(), rows, streams: Vec::new() };
        loop {
            let (number, filled, rest) = {
                let mut source = lock(&source);
                let Source { input, pieces, next } = &mut *source;
                let number = *next;
                *next += 1;
                (number, pieces.next(input, &mut worker.buffer), input.rest())
            };
            let parsed = filled.map(|filled| worker.parse(format, &filled, lenient, rest));
            let waits =
                |target: &mut Target<'_, '_>| target.turn < number && target.failed.is_none();
            let turn = turned.wait_while(lock(&target), waits);
            let mut target = turn.unwrap_or_else(PoisonError::into_inner);
            if target.failed.is_some() {
                return;
            }
            let done = parsed.and_then(|parsed| worker.append(&mut target, parsed, &path));
            target.turn += 1;
            let goes_on = matches!(done, Ok(true));
            target.failed = done.err();
            turned.notify_all();
            if !goes_on {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let target = target.into_inner().unwrap_or_else(PoisonError::into_inner);
    target.failed.map_or(Ok(()), Err)
}

/// Wakes the others when its thread panics, which no input should bring about: they would wait for
/// its piece for ever. The panic itself reaches the caller when the scope ends.
struct Wakes<'m, 'a, 'b> {
    target: &'m Mutex<Target<'a, 'b>>,
    turned: &'m Condvar,
}

impl Drop for Wakes<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let source = std::io::Error::other("a thread that parsed it panicked");
            let path = std::path::PathBuf::new();
            lock(self.target).failed.get_or_insert(Error::Io { path, source });
            self.turned.notify_all();
        }
    }
}

/// What a thread that panicked left behind is whole: rows are appended in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// `None` at the end of the input.
    fn parse(
        &mut self,
        format: &dyn LineFormat,
        filled: &Filled,
        lenient: bool,
        rest: Option<u64>,
    ) -> Option<Parsed> {
        self.rows.clear();
        let (bad, bytes) = match filled {
            Filled::Lines(end) => {
                (parse(format, &self.buffer[..*end], &mut self.rows, lenient), *end)
            }
            Filled::Endless => (endless(&mut self.rows), 0),
            Filled::Skipped => (BadLines::default(), 0),
            Filled::End => return None,
        };
        Some(Parsed { bad, bytes, rest })
    }

    /// Whether there may be more.
    fn append(
        &mut self,
        target: &mut Target<'_, '_>,
        parsed: Option<Parsed>,
        path: &std::path::Path,
    ) -> Result<bool> {
        let Some(parsed) = parsed else { return Ok(false) };
        let base = target.out.lines();
        if self.streams.len() < self.rows.streams.count() {
            let absorbed = target.out.streams.absorb(&self.rows.streams);
            let too_many = |cause: super::cause::Cause| {
                let first = vec![(1, cause.to_string())];
                BadLines { count: 1, first }
            };
            match absorbed {
                Ok(streams) => self.streams = streams,
                Err(cause) => {
                    target.engine.lenient = false;
                    return target.engine.bad_lines(path, base, too_many(cause)).map(|()| false);
                }
            }
        }
        target.out.append(&self.rows, &self.streams);
        target.engine.bad_lines(path, base, parsed.bad)?;
        target.out.relieve()?;
        make_room(target.out, self.rows.count(), parsed.bytes, parsed.rest);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cause::Place;
    use super::super::{Format, Notes, ReadOptions, read_from};
    use super::*;
    use std::path::Path;
    use trace::Trace;

    /// Some 2 MB of lines on many streams, those of `bad` wrong.
    fn text(bad: &[usize]) -> Vec<u8> {
        let mut text = String::new();
        for n in 0..90_000usize {
            let asu = n * 7919 % 3001 / (1 + n / 30_000);
            match n {
                n if bad.contains(&n) => text.push_str("nonsense\n"),
                n if n % 997 == 0 => text.push('\n'),
                n => text.push_str(&format!("{asu},{},4096,r,{}.5\n", n * 8, n / 10)),
            }
        }
        text.into_bytes()
    }

    fn read(text: &[u8], threads: usize, lenient: bool) -> Result<(Trace, Notes)> {
        let options = ReadOptions { lenient, threads, ..ReadOptions::default() };
        let input = std::io::Cursor::new(text.to_vec());
        read_from(input, Path::new("some.spc"), Format::Spc, &options)
    }

    #[test]
    fn the_answer_does_not_depend_on_threads() {
        let text = text(&[]);
        let one = read(&text, 1, false).expect("reads");
        assert_eq!((one.0.count(), one.0.streams.len()), (90_000 - 91, 3001));
        for threads in [2, 3, 8] {
            assert_eq!(read(&text, threads, false).expect("reads"), one, "{threads}");
        }
    }

    #[test]
    fn bad_lines_have_their_numbers_on_every_thread() {
        let bad: Vec<usize> = (0..40).map(|n| n * 2203 + 11).collect();
        let text = text(&bad);
        let one = read(&text, 1, true).expect("reads");
        let places: Vec<_> = one.1.bad_first.iter().map(|bad| bad.place).collect();
        let expected: Vec<_> = bad[..10].iter().map(|n| Place::Line(*n as u64 + 1)).collect();
        assert_eq!((one.1.bad, places), (40, expected));
        for threads in [2, 5] {
            assert_eq!(read(&text, threads, true).expect("reads"), one, "{threads}");
        }
        for threads in [1, 2, 5] {
            let error = read(&text, threads, false).expect_err("a bad line").to_string();
            assert_eq!(error, "some.spc:12: ASU is not a whole number: 'nonsense'");
        }
    }

    #[test]
    fn a_bad_line_far_behind_is_found() {
        let text = text(&[77_777, 88_888]);
        for threads in [1, 2, 4] {
            let error = read(&text, threads, false).expect_err("a bad line").to_string();
            assert!(error.starts_with("some.spc:77778: "), "{error}");
        }
    }

    #[test]
    fn more_streams_than_a_trace_holds_is_an_error_on_every_thread() {
        let text = (0..70_000).map(|n| format!("{n},1,512,r,0.0\n")).collect::<Vec<_>>().concat();
        for threads in [1, 3] {
            let error = read(text.as_bytes(), threads, false).expect_err("too many").to_string();
            assert!(error.contains("more than 65,535 streams"), "{error}");
        }
    }
}
