//! `wearmark trace host`

use serde::Serialize;
use study::host_stack::{self, Beside};

use super::{convert, input};
use crate::cli::Host;
use crate::commands::{Context, Outcome, output};
use crate::failure::Advice;

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    host: &'a host::Account,
    /// The model beside a real host, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    real: Option<&'a Beside>,
}

/// Writes what the device gets, prints the account by layer and cause, and what a real one got.
pub fn run(arguments: &Host, context: &Context) -> anyhow::Result<Outcome> {
    let spec = host_stack::read_spec(&arguments.stack)?;
    let Some(spec) = &spec.file_layer else {
        let stack = arguments.stack.display();
        return Err(Advice::error(
            format!("{stack}: no [file_system], which turns calls into requests"),
            "add one, or use 'wearmark sim --host' for a scheduler or a volume alone",
        ));
    };
    let calls = input::read(&arguments.input, context)?.trace;
    let Some((trace, account)) = host_stack::below(spec, &calls, &context.view)? else {
        return Ok(Outcome::Interrupted);
    };
    let mut said = convert::save(&trace, &arguments.output, None)?;
    let mut beside = None;
    if let Some(directory) = &arguments.run_in {
        let Some(real) = host_stack::really(spec, &calls, directory, &context.view)? else {
            return Ok(Outcome::Interrupted);
        };
        beside = Some(Beside::new(&trace, &real));
        if let Some(path) = &arguments.real_output {
            said.push_str(&convert::save(&real.trace, path, None)?);
        }
    }
    if context.json {
        output::json(&Found { host: &account, real: beside.as_ref() })?;
        return Ok(Outcome::Fine);
    }
    output::print(&format!("{}{said}", output::table(&host_stack::text(&account))))?;
    if let Some(beside) = &beside {
        output::print(&format!("\n{}", output::table(&beside.rows())))?;
    }
    Ok(Outcome::Fine)
}
