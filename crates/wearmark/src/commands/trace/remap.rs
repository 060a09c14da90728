//! `wearmark trace remap`

use trace::surgery::{self, Rule};

use super::{convert, input};
use crate::cli::{Remap, RemapRule};
use crate::commands::Context;

/// Writes a trace as it would be on a device of another size.
pub fn run(arguments: &Remap, context: &Context) -> anyhow::Result<()> {
    let trace = input::read(&arguments.input, context)?.trace;
    let rule = match arguments.rule {
        RemapRule::Compact => Rule::Compact,
        RemapRule::Scale => Rule::Scale,
        RemapRule::Modulo => Rule::Modulo,
    };
    convert::write(&surgery::remap(trace, arguments.onto, rule)?, &arguments.output, None)
}
