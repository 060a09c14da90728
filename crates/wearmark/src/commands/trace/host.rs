//! `wearmark trace host`

use study::host_stack;

use super::{convert, input};
use crate::cli::Host;
use crate::commands::{Context, Outcome, output};

/// Writes what the device gets, and prints the account by layer and cause.
pub fn run(arguments: &Host, context: &Context) -> anyhow::Result<Outcome> {
    let spec = host_stack::read_spec(&arguments.stack)?;
    let calls = input::read(&arguments.input, context)?.trace;
    let Some((trace, account)) = host_stack::below(&spec, &calls, &context.view)? else {
        return Ok(Outcome::Interrupted);
    };
    let said = convert::save(&trace, &arguments.output, None)?;
    if context.json {
        output::json(&account)?;
    } else {
        output::print(&format!("{}{said}", output::table(&host_stack::text(&account))))?;
    }
    Ok(Outcome::Fine)
}
