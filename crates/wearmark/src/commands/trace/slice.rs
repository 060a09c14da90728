//! `wearmark trace slice`

use trace::surgery::{self, Slice};

use super::{convert, input};
use crate::cli;
use crate::commands::Context;

/// Writes a part of a trace.
pub fn run(arguments: cli::Slice, context: &Context) -> anyhow::Result<()> {
    let trace = input::read(&arguments.input, context)?.trace;
    let cli::Slice { time, stream: streams, region, output, .. } = arguments;
    let part = surgery::slice(&trace, &Slice { time, streams, region })?;
    convert::write(&part, &output, None)
}
