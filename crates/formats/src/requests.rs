//! Traces of any format and length: in memory where they are short, else in parts.

use std::ops::ControlFlow;
use std::path::Path;

use trace::{Outline, Parts, Trace};

use super::entry::{Entry, Reader};
use super::input::Input;
use super::own::Stored;
use super::spill::{BLOCK_ROWS, Spooled};
use super::{Detected, Format, Notes, ReadOptions, decode_all, detect, finish, sanity};
use crate::{Error, Result};

/// From how many requests on a trace of our own format is read in parts: below, the whole takes no
/// more memory than is always there.
const LONG_REQUESTS: u64 = 4 << 20;

/// The requests of a trace.
#[derive(Debug)]
pub enum Requests {
    /// All of them in memory.
    Memory(Trace),
    /// A file of our own format.
    Stored(Stored),
    /// Those of another format, in a temporary file.
    Spooled(Spooled),
}

impl Requests {
    fn parts(&self) -> &dyn Parts<Error> {
        match self {
            Self::Memory(trace) => trace,
            Self::Stored(stored) => stored,
            Self::Spooled(spooled) => spooled,
        }
    }
}

impl Parts<Error> for Requests {
    fn outline(&self) -> Outline {
        self.parts().outline()
    }

    fn whole(&self) -> Option<&Trace> {
        self.parts().whole()
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<()> {
        self.parts().each(take)
    }
}

/// What [`read_in_parts`] gives.
#[derive(Debug)]
pub struct InParts {
    /// The trace.
    pub requests: Requests,
    /// What the file was taken for.
    pub detected: Detected,
    /// What else there is to say.
    pub notes: Notes,
}

/// Reads a trace as [`read`](super::read) does, but takes a long one into memory a part at a time.
///
/// A file of our own format is read where it is (whole for a lenient reading); the requests of the
/// others go to a temporary file of some 30 bytes each. Formats whose events must be paired
/// (blktrace, blkparse, tracepoints) are in memory until the last one is read.
///
/// # Errors
/// As [`read`](super::read), and where the temporary file cannot be written.
pub fn read_in_parts(path: &Path, options: &ReadOptions) -> Result<InParts> {
    let mut input = Input::open(path, options.stop)?;
    let detected = detect::choose(&mut input, options)?;
    let entry = detect::entry_of(&detected, input.path())?;
    if !matches!(entry.reader, Reader::File(_)) {
        let inputs = super::parts(path, input, entry, options.stop)?;
        let (requests, notes) = decode(inputs, entry, options, BLOCK_ROWS)?;
        return Ok(InParts { requests, detected, notes });
    }
    if detected.format == Format::Own && !options.lenient && input.can_be_read_again() {
        // What is wrong with a file is said when it is read.
        let stored = Stored::open(path).ok().filter(|stored| stored.requests() >= LONG_REQUESTS);
        if let Some(stored) = stored {
            let (requests, notes) = (Requests::Stored(stored), Notes::default());
            return Ok(InParts { requests, detected, notes });
        }
    }
    let super::Reading { trace, detected, notes } = super::read(path, options)?;
    Ok(InParts { requests: Requests::Memory(trace), detected, notes })
}

/// Decodes with at most some `most_rows` in memory.
fn decode(
    inputs: Vec<Input>,
    entry: &Entry,
    options: &ReadOptions,
    most_rows: usize,
) -> Result<(Requests, Notes)> {
    let mut notes = Notes::default();
    let (path, batch) = decode_all(inputs, entry, options, Some(most_rows), &mut notes)?;
    if batch.rows() == batch.count() as u64 {
        let trace = finish::finish(batch, entry, &path, &mut notes);
        sanity::check(&trace, entry, options, &mut notes);
        return Ok((Requests::Memory(trace), notes));
    }
    let (spooled, facts) = finish::finish_spilled(batch, entry, &path, &mut notes)?;
    sanity::check_facts(&facts, entry, options, &mut notes);
    Ok((Requests::Spooled(spooled), notes))
}

/// [`super::read_from`] with at most some `most_rows` in memory.
#[cfg(test)]
pub(super) fn read_in_parts_from(
    reader: impl std::io::Read + Send + 'static,
    path: &Path,
    format: Format,
    options: &ReadOptions,
    most_rows: usize,
) -> Result<(Requests, Notes)> {
    let entry = detect::entry_named(format, path)?;
    let input = Input::new(reader, path, None, options.stop)?;
    decode(vec![input], entry, options, most_rows)
}
