//! How a format of lines judges the start of an input.

use super::batch::Batch;
use super::decode::LineFormat;
use super::entry::{Guess, Start};
use super::streams::Streams;

/// The share of the first lines that a format reads, and the first of them to show.
pub(super) struct Fit<'a> {
    /// Rows of the lines that read.
    pub rows: Batch,
    /// Lines that do not.
    pub bad: usize,
    /// Lines looked at.
    pub lines: usize,
    /// The first line that reads.
    pub first: &'a [u8],
}

/// Tries a format of lines on the start of an input; `None` where less than half of the lines
/// read.
pub(super) fn fit<'a>(
    start: &Start<'a>,
    format: &dyn LineFormat,
    has_service: bool,
) -> Option<Fit<'a>> {
    let mut rows = Batch::new(Streams::new(""), has_service);
    let (mut bad, mut first) = (0, None);
    for line in &start.lines {
        let before = rows.count();
        match format.line(line, &mut rows) {
            Ok(()) if rows.count() > before => _ = first.get_or_insert(*line),
            Ok(()) => {}
            Err(_) => bad += 1,
        }
    }
    let lines = start.lines.len();
    (bad * 2 <= lines && !rows.is_empty()).then_some(Fit { rows, bad, lines, first: first? })
}

/// A line to show as evidence.
pub(super) fn shown(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
    shown.escape_debug().to_string()
}

/// Requests per second, where their times say.
pub(super) fn rate_per_s(rows: &Batch) -> Option<f64> {
    let first = rows.due.iter().min()?;
    let last = rows.due.iter().max()?;
    (last > first).then(|| rows.count() as f64 / ((last - first) as f64 * 1e-9))
}

/// The guess of a format whose lines nothing else reads like: 90, or 60 where one line in ten is
/// bad, or 30.
pub(super) fn guess_by_lines(
    start: &Start<'_>,
    format: &dyn LineFormat,
    fields: &str,
) -> Option<Guess> {
    let fit = fit(start, format, true)?;
    let evidence = match fit.bad {
        0 => format!("lines read as {fields}: {}", shown(fit.first)),
        bad => {
            format!("all but {bad} of {} lines read as {fields}: {}", fit.lines, shown(fit.first))
        }
    };
    let score = match fit.bad {
        0 => 90,
        bad if bad * 10 <= fit.lines => 60,
        _ => 30,
    };
    Some(Guess { score, evidence })
}
