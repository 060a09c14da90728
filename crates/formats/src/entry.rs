//! What there is to know about a format: how it is recognised and how it is read.

use std::path::{Path, PathBuf};

use trace::Trace;

use super::decode::{Decoder, LineFormat, Times};
use super::format::Format;
use super::notes::Notes;
use super::options::ReadOptions;

/// How a format is read.
pub(super) enum Reader {
    /// By itself, from a file that it can seek in.
    File(fn(&Path, &ReadOptions, &mut Notes) -> crate::Result<Trace>),
    /// Line by line, in parallel where that helps.
    Lines(fn(&ReadOptions) -> Box<dyn LineFormat>),
    /// Line by line, by what the start of the input says of its columns; `Err` says why it cannot.
    Described(fn(&Start<'_>) -> Result<Described, String>),
    /// In order.
    Stream(fn(&ReadOptions) -> Box<dyn Decoder>),
}

/// How the lines of one input are read.
pub(super) struct Described {
    /// Reads them.
    pub lines: Box<dyn LineFormat>,
    /// How the columns were understood.
    pub understood: String,
    /// What was added to all times so that none is in front of zero, ns.
    pub before_zero_ns: u64,
}

/// The start of an input, for detection.
pub(super) struct Start<'a> {
    /// Its first bytes, decompressed.
    pub bytes: &'a [u8],
    /// The first lines that are not blank, without newlines; the last may be cut where `bytes` end.
    pub lines: Vec<&'a [u8]>,
    /// How the input is going to be read.
    pub options: &'a ReadOptions,
}

/// How well an input fits a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    /// 100 for a magic number or a header line that nothing else has; 50 and more for lines that
    /// all fit and are plausible; less where something speaks against it.
    pub score: u8,
    /// What says so, a few words.
    pub evidence: String,
}

/// Finds the files of a trace of which one is named.
pub(super) type Parts = fn(&Path) -> std::io::Result<Vec<PathBuf>>;

/// All there is to know about a format.
pub(super) struct Entry {
    pub format: Format,
    /// How well an input fits; `None` where it cannot be this.
    pub guess: fn(&Start<'_>) -> Option<Guess>,
    pub reader: Reader,
    pub times: Times,
    /// Whether rows have service times.
    pub has_service: bool,
    /// Put in front of a stream's number.
    pub stream_prefix: &'static str,
    /// What a line or record looks like; starts a hint.
    pub grammar: &'static str,
    /// All files of a trace of which one is named, in order: one per CPU for blktrace.
    pub parts: Option<Parts>,
}
