//! Writes version 3, for `fio --read_iolog`.
//!
//! Two habits of fio's code shape the output. A delay is counted from the line before, but a time
//! of zero counts as none, so every time is one us later than the trace's. And each line needs as
//! many fields as its kind has, a flush too.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::Path;

use trace::{Op, Trace};

use super::super::notes::{Counted, Losses};
use super::super::whole_file;
use crate::{Error, Result};

/// fio reads names of up to 256 bytes; file systems take 255.
const LONGEST_NAME_BYTES: usize = 255;

/// Writes a file, whole or not at all, and says what the format could not hold. Every stream
/// becomes a file of that name, in the directory that fio runs in.
pub fn write(trace: &Trace, path: &Path) -> Result<Vec<Counted>> {
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    let mut losses = Losses::default();
    whole_file::write(path, |file| {
        let mut out = BufWriter::new(file);
        write_to(trace, &mut out, &mut losses).map_err(Error::io(path))?;
        out.flush().map_err(Error::io(path))
    })?;
    Ok(losses.into_counted())
}

/// Writes to anything.
pub(super) fn write_to(
    trace: &Trace,
    out: &mut impl Write,
    losses: &mut Losses,
) -> std::io::Result<()> {
    let names = names(trace, losses);
    writeln!(out, "fio version 3 iolog")?;
    for action in ["add", "open"] {
        for name in &names {
            writeln!(out, "1 {name} {action}")?;
        }
    }
    let mut last_us = 1;
    for row in 0..trace.count() {
        let (due, len, op) = (trace.due[row], trace.len[row], trace.op[row]);
        if !due.is_multiple_of(1000) {
            losses.add("times cut to whole microseconds");
        }
        let action = match op {
            _ if len == 0 && op != Op::Flush => {
                losses.add("empty requests, left out");
                continue;
            }
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "datasync",
        };
        last_us = due / 1000 + 1;
        let name = &names[usize::from(trace.stream[row])];
        let offset = if op == Op::Flush { 0 } else { trace.offset[row] };
        writeln!(out, "{last_us} {name} {action} {offset} {len}")?;
    }
    for _ in trace.service.iter().flatten() {
        losses.add("service times");
    }
    for _ in trace.chains.iter().flat_map(|chains| &chains.actor) {
        losses.add("actors and transactions");
    }
    for name in &names {
        writeln!(out, "{last_us} {name} close")?;
    }
    Ok(())
}

/// File names that fio takes: no white space, no separators, none twice.
fn names(trace: &Trace, losses: &mut Losses) -> Vec<String> {
    let mut used = HashSet::new();
    let name = |(index, stream): (usize, &trace::Stream)| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let plain = |c: char| if allowed(c) { c } else { '_' };
        let mut name: String = stream.name.chars().map(plain).collect();
        name.truncate(LONGEST_NAME_BYTES);
        if name.is_empty() || name.starts_with('.') || used.contains(&name) {
            name = format!("stream{index}");
            while used.contains(&name) {
                name.push('_');
            }
        }
        if name != stream.name {
            losses.add("names of streams that are no file names");
        }
        used.insert(name.clone());
        name
    };
    trace.streams.iter().enumerate().map(name).collect()
}
