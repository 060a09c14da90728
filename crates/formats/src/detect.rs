//! Which format an input has: every format looks at its start and says how well it fits.
//!
//! Lines of five whole numbers are SSDsim's, MQSim's, DiskSim's or Tencent's; each of them judges
//! by what it could mean (see their files), and what else it could have been is kept in
//! [`Detected::others`]. A format that was named is taken at its word where its lines read at all.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::columns::refusal;
use super::entry::{Entry, Guess, Start};
use super::format::Format;
use super::input::Input;
use super::options::ReadOptions;
use super::table::{TABLE, entry};
use crate::{Error, Result};

/// Bytes looked at.
const START_BYTES: usize = 64 << 10;
/// Lines looked at.
const START_LINES: usize = 200;

/// What a file was taken for, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// What in the file says so, a few words.
    pub evidence: String,
    /// How it is wrapped, the outer layer first: `gzip`, `zip`, `xz, tar`.
    #[serde(default)]
    pub compression: Option<String>,
    /// What else it could be, the likeliest first.
    #[serde(default)]
    pub others: Vec<Alternative>,
}

/// Another format that the start of a file fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// The format.
    pub format: Format,
    /// What would speak for it.
    pub evidence: String,
}

/// Says which format a file has, from its start.
pub fn detect(path: &Path) -> Result<Detected> {
    let options = ReadOptions::default();
    choose(&mut Input::open(path, options.stop)?, &options)
}

/// The entry of what was detected.
pub(super) fn entry_of(detected: &Detected, path: &Path) -> Result<&'static Entry> {
    entry_named(detected.format, path)
}

/// The entry of a format.
pub(super) fn entry_named(format: Format, path: &Path) -> Result<&'static Entry> {
    entry(format).ok_or_else(|| Error::Format {
        path: path.to_owned(),
        cause: format!("this build does not read {}", format.title()),
        hint: "convert it to a format that it reads".to_owned(),
    })
}

/// Chooses the format of an input that nothing was read from.
pub(super) fn choose(input: &mut Input, options: &ReadOptions) -> Result<Detected> {
    let path = input.path().to_owned();
    let compression = input.compression.clone();
    let bytes = start_of(input)?;
    let start = Start::of(&bytes, options);
    let named = options.format.or(options.columns.as_ref().map(|_| Format::Columns));
    if let Some(format) = named {
        if options.columns.is_some() && format != Format::Columns {
            return Err(Error::Format {
                path,
                cause: format!("{} has columns of its own", format.title()),
                hint: "give --format or --columns, not both".to_owned(),
            });
        }
        let entry = entry_named(format, &path)?;
        let evidence = match (entry.guess)(&start) {
            Some(guess) => format!("named by the user; {}", guess.evidence),
            None => "named by the user, though nothing in it says so".to_owned(),
        };
        return Ok(Detected { format, evidence, compression, others: Vec::new() });
    }
    let mut guesses: Vec<(Format, Guess)> =
        TABLE.iter().filter_map(|entry| Some((entry.format, (entry.guess)(&start)?))).collect();
    // Stable: equals stay in the order of the table.
    guesses.sort_by_key(|(_, guess)| std::cmp::Reverse(guess.score));
    let mut guesses = guesses.into_iter();
    let Some((format, guess)) = guesses.next() else {
        let (cause, hint) = foreign(&start);
        return Err(Error::Foreign { path, cause, hint });
    };
    let others =
        guesses.map(|(format, guess)| Alternative { format, evidence: guess.evidence }).collect();
    Ok(Detected { format, evidence: guess.evidence, compression, others })
}

/// The first bytes of an input, still to be read.
pub(super) fn start_of(input: &mut Input) -> Result<Vec<u8>> {
    Ok(input.peek(START_BYTES)?.to_vec())
}

impl<'a> Start<'a> {
    /// Of the first bytes of an input.
    pub(super) fn of(bytes: &'a [u8], options: &'a ReadOptions) -> Self {
        Self { bytes, lines: lines(bytes), options }
    }
}

/// The first lines that are not blank.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let cut = bytes.len() == START_BYTES;
    let mut lines: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .map(super::decode::without_return)
        .filter(|line| !super::decode::is_blank(line))
        .take(START_LINES)
        .collect();
    if cut && lines.len() > 1 && lines.len() < START_LINES {
        // The last one may be cut off.
        lines.pop();
    }
    lines
}

/// What an input looks like that is none of the formats, and what to do.
fn foreign(start: &Start<'_>) -> (String, String) {
    let Some(first) = start.lines.first() else {
        return ("it is empty".to_owned(), "check how it was made".to_owned());
    };
    if let Some(refusal) = refusal(start) {
        return refusal;
    }
    let shown = String::from_utf8_lossy(&first[..first.len().min(60)]);
    let cause =
        format!("it starts with '{}', which fits none of the formats", shown.escape_debug());
    (cause, "text in columns can be described with --columns; --format lists formats".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(bytes: Vec<u8>) -> Result<Detected> {
        let options = ReadOptions::default();
        let path = Path::new("any");
        let mut input = Input::new(std::io::Cursor::new(bytes), path, None, options.stop)?;
        choose(&mut input, &options)
    }

    proptest! {
        #[test]
        fn any_start_has_a_format_or_a_refusal_with_a_hint(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "5", "0.5", ",", ";", "|", "\t", " ", "R", "write", "DiskRead", "0x1f", "\n",
                "time", "op", "offset", "size", "TIME(s)", "SECTOR", "LAT(ms)", "#", "\"",
                "block:block_rq_issue:", "8,0", " + ", "1577808144360767", "\0", "\u{fe}",
            ]), 0..80),
        ) {
            match chosen(pieces.concat().into_bytes()) {
                Ok(detected) => prop_assert!(!detected.evidence.is_empty()),
                Err(error) => prop_assert!(events::Hint::hint(&error).is_some(), "{error}"),
            }
        }
    }
}
