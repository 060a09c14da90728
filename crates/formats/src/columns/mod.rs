//! Text traces whose columns are described, not built in: by `--columns`, by a header line
//! that names them, or by an entry of [`presets`] for what common tools print.
//!
//! A line is split at its separator (tab, semicolon, bar, comma or blanks, whichever makes the most
//! lines read) and each used field is read by what it means and the unit that was stated
//! ([`super::column_list`]). A unit that nobody stated is taken from the header, or from the size
//! of the numbers where only one fits a calendar; otherwise the file is refused and the refusal
//! shows its columns, numbered, and a `--columns` to start from ([`refusal`]): a wrong unit would
//! read without an error.
//!
//! Times that are completions (`end`) are reckoned back by the service time, so that `due` is the
//! issue as in every other format. `actor` is split off but not kept: a process that has several
//! requests outstanding is no chain of requests that wait for each other.
//!
//! Tests: a table per part; properties that a trace printed with any separator, order and unit
//! comes back; seeds and mutations in `tests/it`.

mod etw;
mod header;
mod line;
#[cfg(test)]
mod preset_tests;
mod presets;
mod refusal;
mod split;
mod suggest;
#[cfg(test)]
mod tests;
mod values;

use crate::column_list::Columns;
pub(crate) use etw::ENTRY as ETW;
pub(crate) use presets::{BIOSNOOP, BLKREPLAY, DISKMON, IODEDUP, VSCSI_STATS};
pub(crate) use refusal::refusal;

use crate::batch::Batch;
use crate::decode::{LineFormat, Times};
use crate::entry::{Described, Entry, Guess, Reader, Start};
use crate::format::Format;
use crate::guess::shown;
use crate::streams::Streams;
use line::{BEFORE_ZERO_NS, ColumnLines, Layout};
use split::Separator;

/// The entry of the table: columns that the user or a header line names.
pub(crate) static ENTRY: Entry = Entry {
    format: Format::Columns,
    guess,
    reader: Reader::Described(describe),
    times: Times::Absolute,
    has_service: true,
    stream_prefix: "disk",
    grammar: "a line has the columns that --columns or its header line names",
    parts: None,
};

/// Fewer than any format of lines with a fixed order of columns.
const HEADER_SCORE: u8 = 65;

fn guess(start: &Start<'_>) -> Option<Guess> {
    if let Some(columns) = &start.options.columns {
        return Some(Guess { score: 100, evidence: format!("columns {columns}, as stated") });
    }
    let (line, columns) = header::find(start)?;
    let lines = lay_out(&columns, start, None)?;
    let fit = fit(&lines, start);
    let evidence = format!("the header line '{}' names the columns {columns}", shown(line));
    let score = if fit.bad == 0 { HEADER_SCORE } else { HEADER_SCORE / 2 };
    (fit.rows > 0 && fit.bad <= fit.rows).then_some(Guess { score, evidence })
}

fn describe(start: &Start<'_>) -> Result<Described, String> {
    let stated = start.options.columns.clone();
    let columns = stated
        .or_else(|| Some(header::find(start)?.1))
        .ok_or_else(|| "no header line names its columns; state them with --columns".to_owned())?;
    let lines = lay_out(&columns, start, None).ok_or_else(|| "it has no lines".to_owned())?;
    Ok(described(lines, &columns))
}

/// What reads these lines.
fn described(lines: ColumnLines, columns: &Columns) -> Described {
    Described {
        understood: format!("columns {columns}, separated by {}", lines.layout.separator.name()),
        before_zero_ns: if lines.layout.counts_back() { BEFORE_ZERO_NS } else { 0 },
        lines: Box::new(lines),
    }
}

/// Lines among the first that are requests, and that are nothing known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fit {
    rows: usize,
    bad: usize,
}

fn fit(lines: &dyn LineFormat, start: &Start<'_>) -> Fit {
    let mut rows = Batch::new(Streams::new(""), true);
    let bad = start.lines.iter().filter(|line| lines.line(line, &mut rows).is_err()).count();
    Fit { rows: rows.count(), bad }
}

/// The layout whose separator makes the most lines read, and the lines in front of the first of
/// them, which are headings unless they hold as many numbers as a request. `None` where there is no
/// line.
fn lay_out(
    columns: &Columns,
    start: &Start<'_>,
    separator: Option<Separator>,
) -> Option<ColumnLines> {
    start.lines.first()?;
    let candidates = Separator::ALL.into_iter().filter(|one| separator.is_none_or(|s| s == *one));
    let mut best: Option<((usize, usize), ColumnLines)> = None;
    for candidate in candidates {
        let mut layout = Layout::new(columns, candidate)?;
        if let Some(read_is_one) = start.options.read_is_one {
            layout.set_read_is_one(read_is_one);
        }
        let lines = ColumnLines { layout, headings: Vec::new() };
        let whole = start.lines.iter().filter(|line| lines.layout.has_all(line)).count();
        let rows = (fit(&lines, start).rows, whole);
        // The first of equals: blanks stand in most lines, whatever separates them.
        if best.as_ref().is_none_or(|(most, _)| rows > *most) {
            best = Some((rows, lines));
        }
    }
    let ((rows, _), mut lines) = best?;
    if rows > 0 {
        lines.headings = headings(&lines, start);
    }
    Some(lines)
}

/// The lines in front of the first request whose time is not a number.
fn headings(lines: &ColumnLines, start: &Start<'_>) -> Vec<Box<[u8]>> {
    let is_row = |line: &[u8]| {
        let mut rows = Batch::new(Streams::new(""), true);
        lines.line(line, &mut rows).is_ok() && !rows.is_empty()
    };
    let front = start.lines.iter().take_while(|line| !is_row(line));
    front.filter(|line| !lines.layout.has_time(line)).map(|line| (*line).into()).collect()
}
