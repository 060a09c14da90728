//! Text formats that other tools consume, written: SPC, MSR Cambridge, DiskSim, SSDsim and MQSim.
//!
//! A file is there whole or not at all. What a format cannot hold is left out or rounded, counted
//! and returned; nothing is lost that the format could have said. Read back, a trace of reads and
//! writes of whole sectors whose streams are named as the format numbers them is the same (property
//! tests).

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use trace::{Op, Origin, Outline, Parts, Request, Stream, Trace};

use super::finish::START_FACT;
use super::notes::{Counted, Losses};
use super::{Format, SECTOR_BYTES, blkparse, fio_iolog, own, whole_file};
use crate::{Error, Result};

/// 100 ns between 1601 and the 22nd of February 2007, when the MSR traces begin: the start of
/// traces that do not know theirs.
const MSR_START: u64 = 128_166_372_000_000_000;

impl Format {
    /// Whether [`fn@write`] writes it.
    pub fn can_be_written(self) -> bool {
        Self::WRITTEN.contains(&self)
    }

    /// The formats that [`fn@write`] writes.
    pub const WRITTEN: &[Self] = &[
        Self::Own,
        Self::Spc,
        Self::Msr,
        Self::Disksim,
        Self::Ssdsim,
        Self::Mqsim,
        Self::FioIolog,
        Self::Blkparse,
    ];
}

/// Writes a trace, whole or not at all, and says what the format could not hold.
pub fn write(trace: &Trace, path: &Path, format: Format) -> Result<Vec<Counted>> {
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    write_parts(trace, path, format)
}

/// [`fn@write`] of a well-formed trace in parts; the same bytes. One part is in memory at a time,
/// but for fio's iolog and blkparse, which take the whole trace.
///
/// # Errors
/// As [`fn@write`], and where a part cannot be read.
pub fn write_parts(parts: &dyn Parts<Error>, path: &Path, format: Format) -> Result<Vec<Counted>> {
    let line: Line = match format {
        Format::Own => return own::write_parts(parts, path).map(|()| Vec::new()),
        Format::FioIolog => return fio_iolog::write(whole(parts)?.as_ref(), path),
        Format::Blkparse => return blkparse::write(whole(parts)?.as_ref(), path),
        Format::Spc => spc,
        Format::Msr => msr,
        Format::Disksim => disksim,
        Format::Ssdsim | Format::Mqsim => ssdsim,
        other => {
            return Err(Error::Format {
                path: path.to_owned(),
                cause: format!("{} is read, but not written", other.title()),
                hint: format!(
                    "choose one of {}",
                    Format::WRITTEN
                        .iter()
                        .map(|format| format.name())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            });
        }
    };
    let mut losses = Losses::default();
    whole_file::write(path, |file| {
        let mut lines = Lines::new(&parts.outline(), format, line, &mut losses);
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut written = Ok(());
        parts.each(&mut |part| {
            written = lines.write(part, &mut out, &mut losses);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        written.and_then(|()| out.flush()).map_err(Error::io(path))?;
        for _ in 0..lines.actors {
            losses.add("actors and transactions, left out");
        }
        Ok(())
    })?;
    Ok(losses.into_counted())
}

/// The trace in memory, read where it is not.
fn whole(parts: &dyn Parts<Error>) -> Result<Cow<'_, Trace>> {
    if let Some(trace) = parts.whole() {
        return Ok(Cow::Borrowed(trace));
    }
    collect(parts, u64::MAX).map(Cow::Owned)
}

/// The requests of a trace in parts that are due until `until_ns`, in memory.
///
/// # Errors
/// Where a part cannot be read.
pub fn collect(parts: &dyn Parts<Error>, until_ns: u64) -> Result<Trace> {
    let Outline { streams, origin, .. } = parts.outline();
    let mut all = Trace { streams, origin, ..Trace::default() };
    parts.each(&mut |part| {
        let count = part.due.partition_point(|due| *due <= until_ns);
        all.extend_rows(part, 0..count);
        if count == part.count() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(all)
}

/// Writes one request.
type Line = fn(&Request, &Context<'_>, &mut dyn Write) -> io::Result<()>;

/// What a line needs beside its request.
struct Context<'a> {
    /// Number of the request's stream.
    number: u64,
    /// Name of its stream without what a field cannot hold.
    name: &'a str,
    /// When the trace began, in units of the format.
    start: u64,
    service_ns: u64,
}

fn spc(request: &Request, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let op = if request.op == Op::Read { 'r' } else { 'w' };
    let lba = request.offset.0 / u64::from(SECTOR_BYTES);
    let (seconds, nanos) = (request.due.0 / 1_000_000_000, request.due.0 % 1_000_000_000);
    writeln!(out, "{},{lba},{},{op},{seconds}.{nanos:09}", context.number, request.len)
}

fn msr(request: &Request, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let op = if request.op == Op::Read { "Read" } else { "Write" };
    let time = context.start + request.due.0 / 100;
    let (name, offset, len) = (context.name, request.offset.0, request.len);
    writeln!(out, "{time},{name},{op},{offset},{len},{}", context.service_ns / 100)
}

fn disksim(request: &Request, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (ms, rest) = (request.due.0 / 1_000_000, request.due.0 % 1_000_000);
    let (sector, sectors) = sectors(request);
    let read = u8::from(request.op == Op::Read);
    writeln!(out, "{ms}.{rest:06} {} {sector} {sectors} {read}", context.number)
}

fn ssdsim(request: &Request, context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (sector, sectors) = sectors(request);
    let read = u8::from(request.op == Op::Read);
    writeln!(out, "{} {} {sector} {sectors} {read}", request.due.0, context.number)
}

/// The whole sectors that a request touches.
fn sectors(request: &Request) -> (u64, u64) {
    let sector = u64::from(SECTOR_BYTES);
    let first = request.offset.0 / sector;
    let end = (request.offset.0 + u64::from(request.len)).div_ceil(sector);
    (first, if request.len == 0 { 0 } else { end - first })
}

/// Writes the lines of a text format.
struct Lines {
    format: Format,
    line: Line,
    numbers: Vec<u64>,
    names: Vec<String>,
    start: u64,
    /// Requests whose actor is known.
    actors: usize,
}

impl Lines {
    fn new(outline: &Outline, format: Format, line: Line, losses: &mut Losses) -> Self {
        let numbers = numbers(&outline.streams, format, losses);
        let names = names(&outline.streams, format, losses);
        Self { format, line, numbers, names, start: start(&outline.origin), actors: 0 }
    }

    fn write(&mut self, part: &Trace, out: &mut dyn Write, losses: &mut Losses) -> io::Result<()> {
        self.actors += part.chains.as_ref().map_or(0, |chains| chains.actor.len());
        for (index, request) in part.requests().enumerate() {
            match request.op {
                Op::Read | Op::Write => {}
                Op::Trim => {
                    losses.add("trims, left out");
                    continue;
                }
                Op::Flush => {
                    losses.add("flushes, left out");
                    continue;
                }
            }
            count(&request, self.format, losses);
            let stream = usize::from(request.stream);
            let service_ns = part.service.as_ref().map_or(0, |service| service[index]);
            match self.format {
                Format::Msr if !service_ns.is_multiple_of(100) => {
                    losses.add("service times cut to 100 ns");
                }
                Format::Msr => {}
                _ if part.service.is_some() => losses.add("service times, left out"),
                _ => {}
            }
            let (number, name) = (self.numbers[stream], self.names[stream].as_str());
            (self.line)(&request, &Context { number, name, start: self.start, service_ns }, out)?;
        }
        Ok(())
    }
}

/// Counts what a format cannot say of a request.
fn count(request: &Request, format: Format, losses: &mut Losses) {
    let sector = u64::from(SECTOR_BYTES);
    let start_inside = !request.offset.0.is_multiple_of(sector);
    let end_inside = !(request.offset.0 + u64::from(request.len)).is_multiple_of(sector);
    match format {
        Format::Spc if start_inside => losses.add("offsets moved down to a sector of 512 bytes"),
        Format::Disksim | Format::Ssdsim | Format::Mqsim if start_inside || end_inside => {
            losses.add("requests widened to whole sectors of 512 bytes");
        }
        Format::Msr if !request.due.0.is_multiple_of(100) => losses.add("times cut to 100 ns"),
        _ => {}
    }
}

/// The numbers of streams: those in their names where all have one, else their indices.
fn numbers(streams: &[Stream], format: Format, losses: &mut Losses) -> Vec<u64> {
    let prefix = if format == Format::Spc { "asu" } else { "dev" };
    let number = |name: &str| {
        let digits = name.strip_prefix(prefix)?;
        let number: u64 = digits.parse().ok()?;
        (digits == number.to_string()).then_some(number)
    };
    let named: Option<Vec<u64>> = streams.iter().map(|stream| number(&stream.name)).collect();
    named.unwrap_or_else(|| {
        if format != Format::Msr {
            for _ in streams {
                losses.add("names of streams, numbered instead");
            }
        }
        (0..streams.len() as u64).collect()
    })
}

/// Host and disk of streams, for MSR: `hm_0` is disk 0 of the host `hm`.
fn names(streams: &[Stream], format: Format, losses: &mut Losses) -> Vec<String> {
    let split = |(index, name): (usize, &str)| match name.rsplit_once('_') {
        Some((host, disk)) if !host.is_empty() && disk.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{host},{disk}")
        }
        _ => {
            if format == Format::Msr {
                losses.add("names of streams, with a number of a disk added");
            }
            let allowed = |c: char| if c.is_ascii_graphic() && c != ',' { c } else { '-' };
            format!("{},{index}", name.chars().map(allowed).collect::<String>())
        }
    };
    let names = streams.iter().map(|stream| stream.name.as_str());
    names.enumerate().map(split).collect()
}

/// When the trace began, as a FILETIME: known of those that were read from MSR files.
fn start(origin: &Origin) -> u64 {
    let known = origin.facts.get(START_FACT).and_then(|ns| ns.parse::<u64>().ok());
    let is_msr = origin.source.starts_with(Format::Msr.title());
    known.filter(|_| is_msr).map_or(MSR_START, |ns| ns / 100)
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, read};
    use super::*;
    use proptest::prelude::*;
    use trace::Chains;
    use units::{Bytes, Nanos};

    fn written(trace: &Trace, format: Format) -> (Trace, Vec<String>) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        let losses = write(trace, &path, format).expect("written");
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let shown = losses.iter().map(|loss| format!("{} {}", loss.count, loss.what)).collect();
        (read(&path, &options).expect("reads").trace, shown)
    }

    /// A row of a property: gap, sector, sectors, read, stream, service in 100 ns.
    type Row = (u64, u64, u32, bool, u16, u64);

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let row = (0u64..1 << 34, 0u64..1 << 40, 1u32..4096, any::<bool>(), 0u16..3, 1u64..1 << 40);
        prop::collection::vec(row, 1..40)
    }

    /// A trace that a format can hold: times in units of `unit_ns`, streams called `PREFIX4`...
    fn trace(rows: &[Row], unit_ns: u64, prefix: &str, service: bool) -> Trace {
        let mut trace = Trace::default();
        let (mut due, mut services) = (0, Vec::new());
        // All three streams at time zero, so that each has a line and the trace begins there.
        let first = (0..3).map(|stream| (0, 8, 8, true, stream, 1));
        for (gap, sector, sectors, read, stream, service) in first.chain(rows.iter().copied()) {
            due += gap * unit_ns;
            let op = if read { Op::Read } else { Op::Write };
            let (offset, len) = (Bytes(sector * 512), sectors * 512);
            trace.push(Request { due: Nanos(due), offset, len, op, stream });
            services.push(service * 100);
        }
        trace.service = service.then_some(services);
        trace.streams = (0..3).map(|n| Stream { name: format!("{prefix}{}", n * 4) }).collect();
        trace
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn what_was_written_comes_back(rows in rows()) {
            for (format, unit_ns, prefix, service) in [
                (Format::Spc, 1, "asu", false),
                (Format::Disksim, 1, "dev", false),
                (Format::Ssdsim, 1, "dev", false),
                (Format::Mqsim, 1, "dev", false),
                (Format::Msr, 100, "host_", true),
            ] {
                let trace = trace(&rows, unit_ns, prefix, service);
                let (back, losses) = written(&trace, format);
                prop_assert_eq!(losses, Vec::<String>::new());
                prop_assert_eq!(Trace { origin: trace.origin.clone(), ..back }, trace);
            }
        }
    }

    /// A trace with everything that these formats cannot hold.
    fn rich() -> Trace {
        let mut trace = Trace::default();
        for (due, offset, len, op, stream) in [
            (0, 100, 512, Op::Read, 0),
            (1_234, 512, 100, Op::Write, 1),
            (2_000, 0, 0, Op::Flush, 1),
            (3_000, 4096, 4096, Op::Trim, 0),
        ] {
            let (due, offset) = (Nanos(due), Bytes(offset));
            trace.push(Request { due, offset, len, op, stream });
        }
        trace.streams = ["data", "log, 2"].map(|name| Stream { name: name.to_owned() }).to_vec();
        trace.service = Some(vec![1_000, 2_050, 0, 0]);
        trace.chains = Some(Chains { actor: vec![0; 4], transaction: vec![0; 4] });
        trace
    }

    #[track_caller]
    fn check(format: Format, expected: &[&str]) -> Trace {
        let (trace, losses) = written(&rich(), format);
        assert_eq!(losses, expected, "{format:?}");
        trace
    }

    #[test]
    fn what_a_format_cannot_hold_is_counted() {
        let always =
            ["1 flushes, left out", "1 trims, left out", "4 actors and transactions, left out"];
        let [flushes, trims, actors] = always;
        let numbered = "2 names of streams, numbered instead";
        let service = "2 service times, left out";
        let moved = "1 offsets moved down to a sector of 512 bytes";
        let trace = check(Format::Spc, &[numbered, moved, service, flushes, trims, actors]);
        assert_eq!(
            (trace.offset, trace.len, trace.due),
            (vec![0, 512], vec![512, 100], vec![0, 1234])
        );
        let widened = "2 requests widened to whole sectors of 512 bytes";
        for format in [Format::Disksim, Format::Mqsim] {
            let trace = check(format, &[numbered, widened, service, flushes, trims, actors]);
            assert_eq!((trace.offset, trace.len), (vec![0, 512], vec![1024, 512]));
        }
        let named = "2 names of streams, with a number of a disk added";
        let cut = ["1 times cut to 100 ns", "1 service times cut to 100 ns"];
        let trace = check(Format::Msr, &[named, cut[0], cut[1], flushes, trims, actors]);
        assert_eq!((trace.due, trace.service), (vec![0, 1200], Some(vec![1_000, 2_000])));
        let names: Vec<_> = trace.streams.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!(names, ["data_0", "log--2_1"]);
    }

    #[test]
    fn lines_are_as_the_formats_document_them() {
        let trace = trace(&[(1_500_000, 7, 2, false, 1, 3)], 1, "dev", false);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        for (format, expected) in [
            (Format::Disksim, "1.500000 4 7 2 0"),
            (Format::Mqsim, "1500000 4 7 2 0"),
            (Format::Spc, "1,7,1024,w,0.001500000"),
            (Format::Msr, "128166372000015000,dev4,1,Write,3584,1024,0"),
        ] {
            write(&trace, &path, format).expect("written");
            let text = std::fs::read_to_string(&path).expect("read");
            assert_eq!(text.lines().last(), Some(expected), "{format:?}");
        }
    }

    #[test]
    fn formats_that_are_only_read_are_refused() {
        let path = Path::new("never");
        let error = write(&Trace::default(), path, Format::Vscsi).expect_err("refused");
        assert_eq!(error.to_string(), "never: CloudPhysics vscsi binary is read, but not written");
        for format in Format::ALL {
            assert_eq!(format.can_be_written(), Format::WRITTEN.contains(format));
        }
    }
}
