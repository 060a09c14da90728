//! Reading a trace for any command that takes one: options, what was understood, warnings.

use events::{Sink, Warning};
use formats::{Detected, Error, InParts, Notes, ReadOptions, Reading, Stop};
use trace::{Outline, Parts};

use crate::cli::{self, NumericOp, TraceInput};
use crate::commands::Context;
use crate::failure::Advice;

/// Reads the trace that `arguments` name and says on standard error what it was taken for, what was
/// left out and what is suspect.
pub fn read(arguments: &TraceInput, context: &Context) -> anyhow::Result<Reading> {
    let reading = formats::read(&arguments.trace, &options(&arguments.reading)?)?;
    let Reading { trace, detected, notes } = &reading;
    tell(arguments, &Parts::<Error>::outline(trace), detected, notes, context);
    Ok(reading)
}

/// [`read`] that takes a long trace into memory a part at a time.
pub fn in_parts(arguments: &TraceInput, context: &Context) -> anyhow::Result<InParts> {
    let read = formats::read_in_parts(&arguments.trace, &options(&arguments.reading)?)?;
    tell(arguments, &read.requests.outline(), &read.detected, &read.notes, context);
    Ok(read)
}

fn tell(
    arguments: &TraceInput,
    outline: &Outline,
    detected: &Detected,
    notes: &Notes,
    context: &Context,
) {
    let place = arguments.trace.display().to_string();
    if !context.quiet {
        for line in lines(&place, outline, detected, notes) {
            eprintln!("{line}");
        }
    }
    bad_records(&place, notes, context);
    for warning in &notes.warnings {
        context.view.emit(events::Event::Warning(warning.clone()));
    }
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
fn lines(place: &str, outline: &Outline, detected: &Detected, notes: &Notes) -> Vec<String> {
    let known = trace::known::recognise_outline(outline).map(|known| {
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
            notes.out_of_order, outline.requests
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
