//! Reading a trace for any command that takes one: options, what was understood, warnings.

use events::{Sink, Warning};
use formats::own::Stored;
use formats::{Notes, ReadOptions, Reading, Stop};

use crate::cli::{self, NumericOp, TraceInput};
use crate::commands::Context;
use crate::failure::Advice;

/// Reads the trace that `arguments` name and says on standard error what it was taken for, what was
/// left out and what is suspect.
pub fn read(arguments: &TraceInput, context: &Context) -> anyhow::Result<Reading> {
    let reading = formats::read(&arguments.trace, &options(&arguments.reading)?)?;
    let place = arguments.trace.display().to_string();
    let lines = lines(&place, &reading);
    if !context.quiet {
        for line in lines {
            eprintln!("{line}");
        }
    }
    bad_records(&place, &reading.notes, context);
    for warning in &reading.notes.warnings {
        context.view.emit(events::Event::Warning(warning.clone()));
    }
    Ok(reading)
}

/// From how many requests on a trace of our own format is read in parts: below, the whole takes no
/// more memory than is always there.
const IN_PARTS: u64 = 4 << 20;

/// A trace of our own format that is too long to be taken into memory, open to be read in parts.
/// `None` for every other trace, and where bad records are to be left out: those are [`read`].
pub fn in_parts(arguments: &TraceInput) -> Option<Stored> {
    let cli::Reading { format, lenient, .. } = arguments.reading;
    let is_own = format.is_none_or(|format| format == formats::Format::Own);
    if !is_own || lenient || !arguments.trace.is_file() {
        return None;
    }
    // What is wrong with a file is said when it is read.
    Stored::open(&arguments.trace).ok().filter(|stored| stored.requests() >= IN_PARTS)
}

fn options(given: &cli::Reading) -> anyhow::Result<ReadOptions> {
    let sector_bytes = given.sector.map(|sector| u32::try_from(sector.0)).transpose();
    let too_large = |_| Advice::error("--sector is larger than 4 GiB", "512 and 4KiB are usual");
    Ok(ReadOptions {
        format: given.format,
        columns: given.columns.clone(),
        lenient: given.lenient,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        time_unit: given.time_unit,
        sector_bytes: sector_bytes.map_err(too_large)?,
        read_is_one: given.op_1.map(|op| op == NumericOp::Read),
        capacity: given.capacity,
        queued_times: given.queued_times,
        stop: Stop::on(&crate::view::CANCELLED),
    })
}

/// What is worth a line: nothing for our own format, which leaves no questions.
fn lines(place: &str, reading: &Reading) -> Vec<String> {
    let Reading { trace, detected, notes } = reading;
    let known = trace::known::recognise(trace).map(|known| {
        format!(
            "{place}: {} requests, as {} of the {} has",
            known.requests, known.name, known.archive
        )
    });
    if detected.format == formats::Format::Own {
        return known.into_iter().collect();
    }
    let mut lines: Vec<String> = known.into_iter().collect();
    lines.push(format!("{place}: {} ({})", detected.format.title(), detected.evidence));
    for other in &detected.others {
        lines.push(format!(
            "  could also be {} ({}); --format {} takes it so",
            other.format.title(),
            other.evidence,
            other.format.name()
        ));
    }
    if !notes.understood.is_empty() {
        lines.push(format!("  taken: {}", notes.understood.join(", ")));
    }
    if notes.out_of_order > 0 {
        lines.push(format!(
            "  sorted by time: {} of {} requests stood behind a later one",
            notes.out_of_order,
            trace.count()
        ));
    }
    lines.extend(notes.counted.iter().map(|c| format!("  {}: {}", c.what, c.count)));
    lines
}

/// Bad records are always shown: they are missing from every figure that follows.
fn bad_records(place: &str, notes: &Notes, context: &Context) {
    if notes.bad == 0 {
        return;
    }
    let shown: Vec<String> =
        notes.bad_first.iter().map(|bad| format!("{}: {}", bad.place, bad.cause)).collect();
    let more = notes.bad - notes.bad_first.len() as u64;
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message =
        format!("{place}: {} bad records left out: {}{more}", notes.bad, shown.join("; "));
    let warning = Warning::new("trace", "bad_records", message);
    context.view.emit(events::Event::Warning(warning));
}
