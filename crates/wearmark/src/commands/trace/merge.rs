//! `wearmark trace merge`

use trace::surgery::{self, Part, Placement};
use units::{Bytes, Nanos};

use super::{convert, input};
use crate::cli::{Merge, TraceInput};
use crate::commands::Context;
use crate::failure::Advice;

/// Writes several traces as one load.
pub fn run(arguments: Merge, context: &Context) -> anyhow::Result<()> {
    let Merge { traces, reading, output, start, base, shared } = arguments;
    let too_many = |option: &str, given: usize| {
        let cause = format!("{given} values for {option}, but {} traces", traces.len());
        Advice::error(cause, "give one value for each trace, in their order")
    };
    if start.len() > traces.len() {
        return Err(too_many("--start", start.len()));
    }
    if base.len() > traces.len() {
        return Err(too_many("--base", base.len()));
    }
    let mut parts = Vec::new();
    for (index, path) in traces.into_iter().enumerate() {
        let input = TraceInput { trace: path, reading: reading.clone() };
        parts.push(Part {
            trace: input::read(&input, context)?.trace,
            start: start.get(index).copied().unwrap_or(Nanos(0)),
            base: base.get(index).copied().unwrap_or(Bytes(0)),
        });
    }
    let placement = if shared { Placement::Shared } else { Placement::Stacked };
    convert::write(&surgery::merge(&parts, placement)?, &output, None)
}
