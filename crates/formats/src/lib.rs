//! Traces on disk: one file per format, and [`read`], which tells them apart.
//!
//! [`own`] keeps everything a [`Trace`] holds; the others are what public archives and other tools
//! use. A format is recognised by what the file contains, never by its name, and [`read`] says what
//! it saw and what is suspect. Adding a format is one file and one entry in `table.rs`; what a
//! format implements is in [`decode`], what it decodes into in [`batch`].
//!
//! An edge crate: it opens files, starts threads and maps memory. `unsafe` stands in two files
//! only, `machine.rs` (vector instructions) and `huge.rs` (large pages), each property-tested
//! against safe code.

#![deny(unsafe_code)]

mod alibaba;
mod archive;
pub mod batch;
pub mod blkparse;
mod blktrace;
mod block_events;
pub mod cause;
mod column_list;
mod columns;
pub mod decode;
mod detect;
mod disksim;
mod disksim_validate;
mod engine;
mod entry;
mod error;
mod fields;
mod finish;
pub mod fio_iolog;
mod fio_latency;
mod format;
mod guess;
mod hfplayer;
mod hp_srt;
mod huge;
mod input;
mod layers;
mod machine;
mod msr;
pub mod notes;
mod options;
mod oracle_general;
mod order;
pub mod own;
mod parallel;
mod pieces;
mod records;
mod requests;
mod sanity;
mod scan;
mod spc;
mod spill;
mod ssdsim;
mod streams;
mod systor17;
mod table;
mod tencent;
#[cfg(test)]
mod text_tests;
mod tracepoints;
mod vscsi;
mod vscsi_csv;
mod whole_file;
mod wiscsee;
mod words;
mod write;

use std::path::{Path, PathBuf};

use trace::Trace;

pub use column_list::Columns;
pub use detect::{Alternative, Detected, detect};
pub use disksim_validate::{LOOP_FACT, ONE_OUTSTANDING};
pub use error::{Error, Result};
pub use finish::START_FACT;
pub use format::Format;
pub use input::STANDARD_INPUT;
pub use notes::Notes;
pub use options::{ReadOptions, Stop, TimeUnit};
pub use requests::{InParts, Requests, read_in_parts};
pub use streams::{MOST_STREAMS, Streams};
pub use write::{collect, write, write_parts};

use batch::Batch;
use engine::Engine;
use entry::{Entry, Reader, Start};
use input::Input;
#[cfg(test)]
use requests::read_in_parts_from;
use spill::Spill;

/// A sector, where formats count in sectors.
pub const SECTOR_BYTES: u32 = 512;

/// What [`read`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The trace.
    pub trace: Trace,
    /// What the file was taken for.
    pub detected: Detected,
    /// What else there is to say.
    pub notes: Notes,
}

/// Reads a trace of any known format; the path `-` is standard input. Files may be compressed.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Reading> {
    let mut input = Input::open(path, options.stop)?;
    let detected = detect::choose(&mut input, options)?;
    let entry = detect::entry_of(&detected, input.path())?;
    let mut notes = Notes::default();
    let trace = match entry.reader {
        Reader::File(read) if input.can_be_read_again() => read(path, options, &mut notes)?,
        Reader::File(_) => {
            return Err(Error::Format {
                path: input.path().to_owned(),
                cause: format!("{} cannot be read from a stream", entry.format.title()),
                hint: "give the name of the uncompressed file".to_owned(),
            });
        }
        Reader::Lines(_) | Reader::Described(_) | Reader::Stream(_) => {
            let inputs = parts(path, input, entry, options.stop)?;
            in_memory(inputs, entry, options, &mut notes)?
        }
    };
    Ok(Reading { trace, detected, notes })
}

/// Reads a trace of a known format from anything; `path` is what errors and the origin call it.
pub fn read_from(
    reader: impl std::io::Read + Send + 'static,
    path: &Path,
    format: Format,
    options: &ReadOptions,
) -> Result<(Trace, Notes)> {
    let mut notes = Notes::default();
    let entry = detect::entry_named(format, path)?;
    let input = Input::new(reader, path, None, options.stop)?;
    let trace = in_memory(vec![input], entry, options, &mut notes)?;
    Ok((trace, notes))
}

/// Every file of the trace that `path` is one of; `input` is that one, open.
fn parts(path: &Path, input: Input, entry: &Entry, stop: Stop) -> Result<Vec<Input>> {
    let Some(parts) = entry.parts.filter(|_| path != Path::new(STANDARD_INPUT)) else {
        return Ok(vec![input]);
    };
    let paths = parts(path).map_err(Error::io(path))?;
    if paths.len() < 2 {
        return Ok(vec![input]);
    }
    paths.iter().map(|path| Input::open(path, stop)).collect()
}

fn in_memory(
    inputs: Vec<Input>,
    entry: &Entry,
    options: &ReadOptions,
    notes: &mut Notes,
) -> Result<Trace> {
    let (path, batch) = decode_all(inputs, entry, options, None, notes)?;
    let trace = finish::finish(batch, entry, &path, notes);
    sanity::check(&trace, entry, options, notes);
    Ok(trace)
}

/// Decodes everything, and says what errors call the input. Rows beyond `most_rows` are put aside.
fn decode_all(
    mut inputs: Vec<Input>,
    entry: &Entry,
    options: &ReadOptions,
    most_rows: Option<usize>,
    notes: &mut Notes,
) -> Result<(PathBuf, Batch)> {
    let mut batch = Batch::new(Streams::new(entry.stream_prefix), entry.has_service);
    batch.spill = most_rows.map(|rows| Spill::new(rows, sanity::Facts::new(options)));
    let path = inputs[0].path().to_owned();
    let mut engine = Engine { lenient: options.lenient, grammar: entry.grammar, notes };
    match entry.reader {
        Reader::Lines(format) => {
            read_lines(&mut engine, &mut inputs[0], &*format(options), &mut batch, options)?;
        }
        Reader::Described(describe) => {
            let bytes = detect::start_of(&mut inputs[0])?;
            let described = describe(&Start::of(&bytes, options)).map_err(|cause| {
                let hint = entry.grammar.to_owned();
                Error::Format { path: path.clone(), cause, hint }
            })?;
            batch.before_zero_ns = described.before_zero_ns;
            read_lines(&mut engine, &mut inputs[0], &*described.lines, &mut batch, options)?;
            notes.understood.push(described.understood);
            let others = batch.lines_without_row.saturating_sub(notes.bad);
            notes.count("lines that hold no request", others);
        }
        Reader::Stream(decoder) => {
            engine.stream(&mut inputs, &mut *decoder(options), &mut batch)?;
        }
        Reader::File(_) => {
            let cause = format!("{} is read from a file of its own", entry.format.title());
            return Err(Error::Format { path, cause, hint: "give its name".to_owned() });
        }
    }
    Ok((path, batch))
}

fn read_lines(
    engine: &mut Engine<'_>,
    input: &mut Input,
    format: &dyn decode::LineFormat,
    batch: &mut Batch,
    options: &ReadOptions,
) -> Result<()> {
    match options.threads {
        0 | 1 => engine.lines(input, format, batch),
        threads => parallel::lines(engine, input, format, batch, threads),
    }
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;
    use events::Hint;
    use trace::generate::{Pattern, poisson};
    use units::Rate;

    /// A file of that content, and the directory that keeps it alive.
    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        std::fs::write(&path, content).expect("written");
        (directory, path)
    }

    fn read_plain(path: &Path) -> Result<Reading> {
        read(path, &ReadOptions::default())
    }

    #[test]
    fn formats_are_told_apart_by_content() {
        let (_directory, path) = file(b"");
        let trace = poisson(1, 100, Rate(1000.0), &Pattern::default());
        own::write(&trace, &path).expect("written");
        let Reading { trace: read_back, detected, .. } = read_plain(&path).expect("reads");
        assert_eq!((read_back, detected.format), (trace.clone(), Format::Own));
        write(&trace, &path, Format::Spc).expect("written");
        let Reading { trace: read_back, detected, .. } = read_plain(&path).expect("reads");
        assert_eq!((read_back.due, detected.format), (trace.due, Format::Spc));
        assert!(detected.evidence.contains("0,"), "{}", detected.evidence);
    }

    #[track_caller]
    fn check_foreign(content: &[u8], expected: &str) {
        let (_directory, path) = file(content);
        let error = read_plain(&path).expect_err("foreign");
        assert!(matches!(error, Error::Foreign { .. }) && error.hint().is_some());
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn anything_else_is_refused_with_what_it_looks_like() {
        check_foreign(b"", "it is empty");
        check_foreign(b"\n \n", "it is empty");
        check_foreign(b"\x7fELF\x02", "'\\u{7f}ELF\\u{2}', which fits none of the formats");
        check_foreign(b"Timestamp,Response,IOType\n", "it starts with 'Timestamp,Response,IOType'");
        check_foreign(b"PAR2 and so on", "'PAR2 and so on'");
    }

    #[test]
    fn a_wrong_line_behind_a_right_one_is_an_error_of_that_line() {
        let (_directory, path) = file(b"0,1,512,r,0.0\nnonsense\n");
        let error = read_plain(&path).expect_err("a wrong line");
        assert!(error.to_string().contains("trace:2: ASU is not"), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_slice_of_a_trace_begins_with_its_first_request() {
        // SSDsim's times count from the start of the whole trace: here, 8 hours before.
        let line = |n: u64| format!("{} 0 {} 8 1\n", 29_317_000_000_000 + n * 1_000_000, n * 8);
        let (_directory, path) = file(&(0..5).map(line).collect::<String>().into_bytes());
        let Reading { trace, notes, .. } = read_plain(&path).expect("reads");
        assert_eq!(trace.due, [0, 1, 2, 3, 4].map(|ms| ms * 1_000_000));
        assert_eq!(trace.origin.facts[START_FACT], "29317000000000");
        let told = "times from the first request, 29317s into the file's";
        assert!(notes.understood.iter().any(|line| line == told), "{:?}", notes.understood);
    }

    #[test]
    fn a_line_without_end_is_an_error_on_any_thread() {
        let path = Path::new("/dev/zero");
        if !path.exists() {
            println!("skipped: there is no /dev/zero");
            return;
        }
        for (format, threads, lenient) in [
            (Some(Format::Spc), 1, false),
            (Some(Format::Spc), 4, false),
            (Some(Format::Spc), 4, true),
            (Some(Format::Blkparse), 1, true),
            (None, 2, true),
        ] {
            let options = ReadOptions { format, lenient, threads, ..ReadOptions::default() };
            let started = std::time::Instant::now();
            let error = read(path, &options).expect_err("zeros").to_string();
            let expected = match (format, lenient) {
                (None, _) => "fits none of the formats",
                (Some(Format::Spc), true) => "a line has more than 64 MiB",
                _ => "has more than 1 MiB",
            };
            assert!(error.contains(expected), "{error}");
            assert!(started.elapsed().as_secs() < 10, "{format:?} took {:?}", started.elapsed());
        }
    }

    #[test]
    fn a_packed_trace_says_how_it_was_packed() {
        let text = b"\xef\xbb\xbf0,1,512,r,0.0\n0,1,512,r,0.1\n";
        let (_directory, path) = file(text);
        let Reading { trace, detected, .. } = read_plain(&path).expect("reads");
        assert_eq!((trace.count(), detected.compression), (2, None));
        let mut bzip2 = bzip2::read::BzEncoder::new(&text[..], bzip2::Compression::fast());
        let mut packed = Vec::new();
        std::io::Read::read_to_end(&mut bzip2, &mut packed).expect("compressed");
        let (_directory, path) = file(&zstd::encode_all(&packed[..], 1).expect("compressed"));
        let Reading { trace, detected, .. } = read_plain(&path).expect("reads");
        assert_eq!((trace.count(), detected.compression.as_deref()), (2, Some("zstd, bzip2")));
    }

    #[test]
    fn msr_is_read_with_the_header_that_some_copies_have() {
        let line = "128166372003061629,hm,1,Read,383496192,32768,113736\n";
        let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
        let (_directory, path) = file([header, line, line].concat().as_bytes());
        let Reading { trace, detected, .. } = read_plain(&path).expect("reads");
        assert_eq!((trace.count(), detected.format), (2, Format::Msr));
    }

    #[test]
    fn a_missing_file_or_a_directory_is_an_error() {
        let (directory, _path) = file(b"");
        assert!(matches!(read_plain(directory.path()), Err(Error::Io { .. })));
        let error = read_plain(&directory.path().join("none")).expect_err("missing");
        assert_eq!(error.hint().as_deref(), Some("check the path"));
    }
}
