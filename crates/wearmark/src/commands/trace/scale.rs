//! `wearmark trace scale`

use trace::surgery;

use super::{convert, input};
use crate::cli::Scale;
use crate::commands::Context;

/// Writes a trace played faster or slower.
pub fn run(arguments: &Scale, context: &Context) -> anyhow::Result<()> {
    let trace = input::read(&arguments.input, context)?.trace;
    let factor = match (arguments.factor, arguments.rate) {
        (_, Some(rate)) => surgery::factor_for_rate(&trace, rate)?,
        (factor, None) => factor.unwrap_or(1.0),
    };
    convert::write(&surgery::scale_time(trace, factor)?, &arguments.output, None)
}
