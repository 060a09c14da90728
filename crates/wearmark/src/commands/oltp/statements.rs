//! `wearmark oltp temp` and `wearmark oltp versions`

use ::oltp::statements::Target;
use ::oltp::temp::{Operation, TempOptions};
use ::oltp::versions::{Order, VersionsOptions};
use ::oltp::{temp as temp_workload, versions as versions_workload};
use dbms::{Places, Settings, System};
use report::Page;
use study::statements::{temp_page, temp_text, versions_page, versions_text};
use units::Bytes;

use super::{Context, Outcome, output};
use crate::cli::{DbmsName, OltpTemp, OltpVersions, StatementPlace, TempOperation};

/// `wearmark oltp temp`
pub fn temp(arguments: &OltpTemp, context: &Context) -> anyhow::Result<Outcome> {
    let options = TempOptions {
        target: target(&arguments.place, 8),
        operation: match arguments.operation {
            TempOperation::Sort => Operation::Sort,
            TempOperation::HashJoin => Operation::HashJoin,
            TempOperation::MergeJoin => Operation::MergeJoin,
        },
        rows: arguments.rows,
        width: arguments.width,
        memories: arguments.memory.clone(),
        repeats: arguments.repeats,
        seed: arguments.seed,
    };
    let result = temp_workload::run(&options, &context.view)?;
    write_page(&arguments.place, || temp_page(&result))?;
    if context.json {
        output::json(&result)?;
    } else {
        let notes = result.notes.join("\n");
        output::print(&format!("{}\n{notes}\n", output::table(&temp_text(&result))))?;
    }
    Ok(if result.interrupted { Outcome::Interrupted } else { Outcome::Fine })
}

/// `wearmark oltp versions`
pub fn versions(arguments: &OltpVersions, context: &Context) -> anyhow::Result<Outcome> {
    let options = VersionsOptions {
        target: target(&arguments.place, arguments.updaters + arguments.readers + 4),
        rows: arguments.rows,
        width: arguments.width,
        wide: !arguments.narrow,
        rounds: arguments.rounds,
        updaters: arguments.updaters,
        readers: arguments.readers,
        order: if arguments.by_index { Order::Index } else { Order::Table },
        seed: arguments.seed,
        journal: super::target::named("journal", &arguments.journal)?,
    };
    let result = versions_workload::run(&options, &context.view)?;
    write_page(&arguments.place, || versions_page(&result))?;
    if context.json {
        output::json(&result)?;
    } else {
        let mut end = String::new();
        if let Some(cleanup) = &result.cleanup {
            let took = report::format::duration_ns(cleanup.elapsed_ms * 1e6);
            end.push_str(&format!("\n{} when the readers had ended: {took}\n", cleanup.by));
        }
        if let Some(why) = &result.blocked {
            end.push_str(&format!("\n{why}\n"));
        }
        for violation in &result.violations {
            end.push_str(&format!("VIOLATED: {violation}\n"));
        }
        output::print(&(output::table(&versions_text(&result)) + &end))?;
    }
    Ok(match (result.interrupted, result.violations.is_empty()) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Fine,
        (false, false) => Outcome::Finding,
    })
}

fn write_page(place: &StatementPlace, page: impl FnOnce() -> Page) -> anyhow::Result<()> {
    if let Some(path) = &place.html {
        let html = report::html(&page());
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    Ok(())
}

/// SQLite in the directory, or a private server in a subdirectory of it.
fn target(place: &StatementPlace, connections: u32) -> Target {
    let system = match place.dbms {
        DbmsName::Sqlite => {
            return Target::Sqlite {
                directory: place.directory.clone(),
                cache: place.buffer,
                page: place.page.unwrap_or(Bytes(4096)),
            };
        }
        DbmsName::Postgresql => System::Postgresql,
        DbmsName::Mariadb => System::Mariadb,
    };
    let places = Places {
        data: place.directory.join(format!("wearmark-{}-{}", system.name(), std::process::id())),
        log: place.log_dir.clone(),
        temp: place.temp_dir.clone(),
        undo: place.undo_dir.clone(),
    };
    let settings =
        Settings { buffer: place.buffer, page: place.page, connections, ..Settings::default() };
    Target::Server { system, places, settings: Box::new(settings) }
}
