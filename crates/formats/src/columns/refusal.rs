//! What is said of a text that no format reads: its columns, and how to describe them.

use super::split::Fields;
use super::suggest;
use crate::entry::Start;

/// Columns that are shown.
const MOST_SHOWN: usize = 16;
/// Characters of a column that are shown.
const MOST_CHARACTERS: usize = 24;
/// Where the values do not even suggest which column is which.
const EXAMPLE: &str = "time:us,op,offset:sectors,size:bytes";

/// The columns of the first line of data, numbered, and what to do; `None` for what is no text in
/// columns.
pub(crate) fn refusal(start: &Start<'_>) -> Option<(String, String)> {
    if let Some(refusal) = without_addresses(start) {
        return Some(refusal);
    }
    let text = start.lines.iter().all(|line| {
        line.iter().all(|byte| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\x0c'))
    });
    let lines: Vec<&[u8]> =
        start.lines.iter().copied().filter(|line| !line.starts_with(b"#")).collect();
    let separator = suggest::separator(&lines).filter(|_| text)?;
    let line = lines.last().filter(|_| lines.len() < 4).or_else(|| lines.get(3))?;
    let fields = Fields::split(line, separator);
    if !fields.all().iter().any(|field| suggest::is_number(field)) {
        return None;
    }
    let numbered: Vec<String> = fields
        .all()
        .iter()
        .take(MOST_SHOWN)
        .enumerate()
        .map(|(place, field)| {
            let shown = String::from_utf8_lossy(&field[..field.len().min(MOST_CHARACTERS)]);
            format!("{}: {}", place + 1, shown.escape_debug())
        })
        .collect();
    let cause = format!(
        "its lines fit none of the formats; a line has {} columns, separated by {} [{}]",
        fields.all().len(),
        separator.name(),
        numbered.join(" | ")
    );
    let columns = suggest::columns(&lines, separator);
    let hint = match columns {
        Some(columns) => format!(
            "say what the columns are, such as --columns {columns} (guessed: check the units \
             s, ms, us, ns, bytes, sectors, KiB, blocks4k)"
        ),
        None => format!(
            "say what the columns are with --columns, such as {EXAMPLE}; time=3 is column 3, - \
             one that is not used"
        ),
    };
    Some((cause, hint))
}

/// What bpftrace's `biosnoop.bt` prints: `TIME(ms) DISK COMM PID LAT(ms)`, so that nothing can be
/// replayed.
fn without_addresses(start: &Start<'_>) -> Option<(String, String)> {
    start.lines.iter().take(3).find(|line| {
        let has = |name: &[u8]| line.split(u8::is_ascii_whitespace).any(|word| word == name);
        has(b"TIME(ms)") && has(b"COMM") && has(b"LAT(ms)") && !has(b"SECTOR")
    })?;
    let cause = "the output of bpftrace's biosnoop.bt, which has neither offsets nor sizes";
    let hint = "capture with bcc's biosnoop, or with perf record -e 'block:block_rq_*'";
    Some((cause.to_owned(), hint.to_owned()))
}
