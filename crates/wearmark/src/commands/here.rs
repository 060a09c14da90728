//! `wearmark` without arguments: what can be asked here.

use std::path::Path;

use serde::Serialize;
use study::here::{Ask, Found, look, questions};

use super::{Context, Outcome, output};

/// Names of one kind that are printed; the rest is a number.
const NAMES: usize = 3;

#[derive(Serialize)]
struct Here {
    found: Vec<Found>,
    questions: Vec<Ask>,
}

/// Prints what was found in the current directory, and a command for each question.
pub fn run(context: &Context) -> anyhow::Result<Outcome> {
    let found = look(Path::new("."))?;
    let questions = questions(&found);
    if context.json {
        output::json(&Here { found, questions })?;
    } else {
        output::print(&text(&found, &questions))?;
    }
    Ok(Outcome::Fine)
}

fn text(found: &[Found], questions: &[Ask]) -> String {
    let mut text = "wearmark: how transactions run on storage, here and elsewhere.\n\n".to_owned();
    for of_kind in found.chunk_by(|a, b| a.kind == b.kind) {
        let names: Vec<String> =
            of_kind.iter().take(NAMES).map(|found| events::one_line(&found.name)).collect();
        let more = match of_kind.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = of_kind.len();
        let kind = of_kind[0].kind.name(count);
        text.push_str(&format!("{count} {kind}: {}{more}\n", names.join(", ")));
    }
    if found.is_empty() {
        text.push_str("This directory holds no trace, study, profile or run.\n");
    }
    let width = questions.iter().map(|ask| ask.question.chars().count()).max().unwrap_or(0);
    text.push_str("\nWhat can be asked here:\n");
    for ask in questions {
        let command = events::one_line(&ask.command);
        text.push_str(&format!("  {:width$}  {command}\n", ask.question));
    }
    text.push_str("\nAll commands: wearmark --help\n");
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use study::here::{Found, Kind, questions};

    use crate::cli::Cli;

    /// Every command that is proposed is one that the parser takes.
    #[test]
    fn proposed_commands_are_commands() {
        let kinds = [
            Kind::Server,
            Kind::Capture,
            Kind::Trace,
            Kind::Run,
            Kind::Study,
            Kind::Profile,
            Kind::Measurements,
            Kind::Workload,
            Kind::Host,
        ];
        let found: Vec<Found> = kinds
            .iter()
            .flat_map(|kind| ["a", "b"].map(|name| Found { kind: *kind, name: name.to_owned() }))
            .collect();
        let asks = questions(&found);
        assert!(asks.len() > kinds.len(), "{asks:?}");
        for ask in asks {
            let words = ask.command.split(' ');
            let parsed = Cli::try_parse_from(words);
            assert!(parsed.is_ok_and(|cli| cli.command.is_some()), "{}", ask.command);
        }
    }
}
