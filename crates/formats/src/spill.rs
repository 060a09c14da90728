//! Requests of other formats that are too many for memory: sorted runs of rows in a temporary file,
//! merged while they are read.
//!
//! Text says only at its end which streams there are and whether a late line belongs to the front.
//! So full blocks are sorted and put aside as they come, in plain columns, little-endian, and
//! [`Spooled`] merges them as often as asked: rows with the same time stay in the order of the
//! input. The file has no name and is gone with the process; it lies where `TMPDIR` says.
//!
//! Tests: against reading into memory, rows out of order within blocks and across them, streams
//! that are numbered otherwise at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use trace::{Op, Outline, Parts, Trace};

use super::batch::Batch;
use super::order;
use super::sanity::Facts;
use crate::{Error, Result};

/// Rows of a block: 31 bytes each are 62 MiB.
pub(super) const BLOCK_ROWS: usize = 2 << 20;
/// Rows of a part that is handed over.
const PART_ROWS: usize = 1 << 19;
/// Fewest rows read of a run at a time.
const LEAST_WINDOW_ROWS: usize = 4096;
/// Values that go through one buffer.
const BUFFER_VALUES: usize = 1 << 16;

/// A sorted block in the file, column behind column.
#[derive(Clone, Copy, Debug)]
struct Run {
    start_byte: u64,
    rows: usize,
    first_due: u64,
}

/// What was put aside so far.
#[derive(Debug)]
pub(super) struct Spill {
    most_rows: usize,
    /// Made with the first block.
    file: Option<File>,
    runs: Vec<Run>,
    end_byte: u64,
    rows: u64,
    latest: u64,
    /// Rows that stood behind a later one.
    pub out_of_order: u64,
    /// What is known of the rows put aside.
    pub facts: Facts,
}

impl Spill {
    /// Puts aside whenever there are `most_rows`.
    pub fn new(most_rows: usize, facts: Facts) -> Self {
        let (file, runs) = (None, Vec::new());
        Self { most_rows, file, runs, end_byte: 0, rows: 0, latest: 0, out_of_order: 0, facts }
    }

    /// Rows at which a block is full.
    pub fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// Rows put aside.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Puts the rows of a batch aside; the batch keeps them.
    pub fn add(&mut self, batch: &mut Batch) -> Result<()> {
        self.out_of_order += order::sort(batch, self.latest);
        let (Some(first), Some(last)) = (batch.due.first(), batch.due.last()) else {
            return Ok(());
        };
        self.latest = self.latest.max(*last);
        self.facts.add(&batch.due, &batch.offset, &batch.len, &batch.op, &batch.service);
        let run = Run { start_byte: self.end_byte, rows: batch.count(), first_due: *first };
        self.write(batch).map_err(Error::io(&directory()))?;
        self.rows += run.rows as u64;
        self.runs.push(run);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut at = self.end_byte;
        put(file, &mut at, &batch.due, u64::to_le_bytes)?;
        put(file, &mut at, &batch.offset, u64::to_le_bytes)?;
        put(file, &mut at, &batch.len, u32::to_le_bytes)?;
        put(file, &mut at, &batch.op, |op| [op as u8])?;
        put(file, &mut at, &batch.stream, u16::to_le_bytes)?;
        put(file, &mut at, &batch.service, u64::to_le_bytes)?;
        self.end_byte = at;
        Ok(())
    }

    /// The trace; stream `s` of the rows is its stream `place[s]`.
    pub fn finish(self, outline: Outline, place: Vec<u16>, has_service: bool) -> Spooled {
        let file = self.file.expect("rows were put aside");
        let (runs, start) = (self.runs, self.facts.first_due());
        Spooled { file, runs, start, place, has_service, outline }
    }
}

fn directory() -> PathBuf {
    std::env::temp_dir()
}

fn put<T: Copy, const N: usize>(
    file: &File,
    at: &mut u64,
    column: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_VALUES.min(column.len()) * N];
    for values in column.chunks(BUFFER_VALUES) {
        let room = &mut buffer[..values.len() * N];
        for (place, value) in room.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&bytes(*value));
        }
        file.write_all_at(room, *at)?;
        *at += room.len() as u64;
    }
    Ok(())
}

/// A trace in a temporary file, read in parts.
#[derive(Debug)]
pub struct Spooled {
    file: File,
    runs: Vec<Run>,
    start: u64,
    place: Vec<u16>,
    has_service: bool,
    outline: Outline,
}

impl Parts<Error> for Spooled {
    fn outline(&self) -> Outline {
        self.outline.clone()
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<()> {
        self.merge(PART_ROWS, take).map_err(Error::io(&directory()))
    }
}

/// A run that is being read.
struct Cursor {
    window: Trace,
    /// Rows of the window that are taken.
    taken: usize,
    /// Rows of the run that were read.
    read: usize,
}

impl Spooled {
    fn merge(
        &self,
        part_rows: usize,
        take: &mut dyn FnMut(&Trace) -> ControlFlow<()>,
    ) -> io::Result<()> {
        // The run whose next row is the earliest; of several, the one written first.
        let mut waiting: BinaryHeap<Reverse<(u64, usize)>> = (self.runs.iter().enumerate())
            .map(|(index, run)| Reverse((run.first_due - self.start, index)))
            .collect();
        let mut cursors: Vec<Option<Cursor>> = self.runs.iter().map(|_| None).collect();
        let mut part = Trace { streams: self.outline.streams.clone(), ..Trace::default() };
        let mut buffer = Vec::new();
        while let Some(Reverse((_, index))) = waiting.pop() {
            if cursors[index].is_none() {
                cursors[index] = self.load(index, 0, &mut buffer)?;
            }
            let cursor = cursors[index].as_mut().expect("a run has a row");
            let rest = &cursor.window.due[cursor.taken..];
            let before = waiting.peek().map_or(rest.len(), |Reverse((due, other))| {
                rest.partition_point(|own| (*own, index) < (*due, *other))
            });
            let rows = before.min(part_rows - part.count());
            part.extend_rows(&cursor.window, cursor.taken..cursor.taken + rows);
            cursor.taken += rows;
            if part.count() == part_rows {
                if take(&part).is_break() {
                    return Ok(());
                }
                part.truncate(0);
            }
            if cursor.taken == cursor.window.count() {
                let read = cursor.read;
                // Its window makes room before the next is read.
                cursors[index] = None;
                cursors[index] = self.load(index, read, &mut buffer)?;
            }
            if let Some(cursor) = &cursors[index] {
                waiting.push(Reverse((cursor.window.due[cursor.taken], index)));
            }
        }
        if !part.is_empty() {
            let _ = take(&part);
        }
        Ok(())
    }

    /// Reads on in a run behind its row `read`; `None` at its end.
    fn load(&self, index: usize, read: usize, buffer: &mut Vec<u8>) -> io::Result<Option<Cursor>> {
        let run = &self.runs[index];
        let most = (BLOCK_ROWS / self.runs.len()).clamp(LEAST_WINDOW_ROWS, PART_ROWS);
        let count = most.min(run.rows - read);
        if count == 0 {
            return Ok(None);
        }
        let (file, start_byte) = (&self.file, run.start_byte);
        let mut column = Column { file, run, start_byte, read, count, buffer };
        let due = column.next(|bytes| u64::from_le_bytes(bytes) - self.start)?;
        let offset = column.next(u64::from_le_bytes)?;
        let len = column.next(u32::from_le_bytes)?;
        let op = column.next(|[op]| Op::ALL[usize::from(op)])?;
        let stream = column.next(|bytes| self.place[usize::from(u16::from_le_bytes(bytes))])?;
        let service = if self.has_service { Some(column.next(u64::from_le_bytes)?) } else { None };
        let window = Trace { due, offset, len, op, stream, service, ..Trace::default() };
        Ok(Some(Cursor { window, taken: 0, read: read + count }))
    }
}

/// Reads the same rows of one column after another.
struct Column<'a> {
    file: &'a File,
    run: &'a Run,
    /// Where the next column begins.
    start_byte: u64,
    read: usize,
    count: usize,
    buffer: &'a mut Vec<u8>,
}

impl Column<'_> {
    fn next<T, const N: usize>(&mut self, value: impl Fn([u8; N]) -> T) -> io::Result<Vec<T>> {
        let start = self.start_byte + (self.read * N) as u64;
        self.start_byte += (self.run.rows * N) as u64;
        self.buffer.resize(self.count * N, 0);
        self.file.read_exact_at(self.buffer, start)?;
        let (values, _) = self.buffer.as_chunks::<N>();
        Ok(values.iter().map(|bytes| value(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, ReadOptions, Requests, collect, read_from, read_in_parts_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor as Bytes;
    use std::path::Path;

    /// A trace by way of the file, and the one that was read into memory.
    fn both(text: &str, format: Format, most_rows: usize, threads: usize) {
        let options = ReadOptions { threads, ..ReadOptions::default() };
        let (path, bytes) = (Path::new("some"), text.as_bytes().to_vec());
        let (whole, notes) =
            read_from(Bytes::new(bytes.clone()), path, format, &options).expect("reads");
        let read = read_in_parts_from(Bytes::new(bytes), path, format, &options, most_rows);
        let (requests, told) = read.expect("reads");
        assert_eq!(told, notes);
        let outline = requests.outline();
        assert_eq!((outline.requests, outline.span_ns), (whole.count() as u64, whole.span().0));
        assert_eq!(collect(&requests, u64::MAX).expect("reads"), whole);
        let Requests::Spooled(spooled) = requests else { panic!("it stayed in memory") };
        let (mut seen, mut sizes) = (0, Vec::new());
        let again = spooled.merge(7, &mut |part| {
            assert_eq!(part.validate(), Ok(()));
            assert_eq!(part.due, whole.due[seen..seen + part.count()]);
            assert_eq!(part.stream, whole.stream[seen..seen + part.count()]);
            seen += part.count();
            sizes.push(part.count());
            ControlFlow::Continue(())
        });
        again.expect("reads");
        assert_eq!(seen, whole.count());
        assert!(sizes[..sizes.len() - 1].iter().all(|size| *size == 7));
    }

    #[test]
    fn operations_are_numbered_as_they_are_listed() {
        assert!(Op::ALL.iter().enumerate().all(|(index, op)| *op as usize == index));
    }

    #[test]
    fn service_times_come_along_and_so_do_lines_of_all_threads() {
        let line = |n: u64| {
            let due = 128_166_372_003_061_629 + (n * 7919 % 40_000) * 10_000;
            format!("{due},disk{},{},Read,{},4096,{}\n", n * 31 % 7, n % 3, n * 512, 100 + n)
        };
        let text: String = (0..40_000).map(line).collect();
        for threads in [1, 3] {
            both(&text, Format::Msr, 9_000, threads);
        }
    }

    proptest! {
        #[test]
        fn it_is_the_trace_that_memory_would_hold(
            rows in prop::collection::vec((0u64..60, 0u64..9), 12..300), most in 1usize..12,
        ) {
            let line = |(n, (due, asu)): (usize, &(u64, u64))| {
                format!("{asu},{},{},{},{due}.25\n", n * 8, 512 * (1 + n % 5), ["r", "w"][n % 2])
            };
            let text: String = rows.iter().enumerate().map(line).collect();
            // A piece of the input is one block at least: several blocks need several pieces.
            let padded = text.replace('\n', &format!("{}\n", " ".repeat(20_000)));
            both(&padded, Format::Spc, most, 1);
        }
    }
}
