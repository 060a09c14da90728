//! `wearmark oltp check`: the consistency conditions of a database.

use std::path::Path;

use ::oltp::consistency::ConditionResult;
use ::oltp::{Database, ServerSettings, SqliteSettings, Workload};
use dbms::{Instance, Login, System};

use super::target::{login, workload};
use super::{Context, Outcome, output};
use crate::cli::OltpCheck;

/// Runs the command.
pub fn check(arguments: &OltpCheck, context: &Context) -> anyhow::Result<Outcome> {
    let workload = workload(&arguments.workload, &arguments.own, None)?;
    let conditions = match (login(&arguments.server)?, &arguments.database) {
        (Some((system, login)), _) => {
            on_server(system, &login, Some(login.database.clone()), workload)?
        }
        (None, Some(path)) if path.is_dir() => {
            let settings = SqliteSettings { directory: path.clone(), ..SqliteSettings::default() };
            match settings.database_of(workload) {
                file if file.is_file() => ::oltp::sqlite::check_of(&file, None, workload)?,
                _ => private(path, workload, context)?,
            }
        }
        (None, Some(path)) => ::oltp::sqlite::check_of(path, None, workload)?,
        (None, None) => Vec::new(),
    };
    if context.json {
        output::json(&conditions)?;
    } else {
        output::print(&text(&conditions))?;
    }
    let violated = conditions.iter().any(|condition| !condition.holds);
    Ok(if violated { Outcome::Finding } else { Outcome::Fine })
}

fn private(
    directory: &Path,
    workload: Workload,
    context: &Context,
) -> anyhow::Result<Vec<ConditionResult>> {
    let mut instance = Instance::open(directory).map_err(study::Error::from)?;
    instance.start(&context.view).map_err(study::Error::from)?;
    let conditions = on_server(instance.system(), &instance.login(), None, workload);
    instance.stop().map_err(study::Error::from)?;
    conditions
}

fn on_server(
    system: System,
    login: &Login,
    database: Option<String>,
    workload: Workload,
) -> anyhow::Result<Vec<ConditionResult>> {
    let server = ServerSettings { database, ..ServerSettings::of(login) };
    let database = match system {
        System::Postgresql => Database::Postgresql(server),
        System::Mariadb => Database::Mariadb(server),
    };
    Ok(database.dbms(workload)?.check()?)
}

fn text(conditions: &[ConditionResult]) -> String {
    let mut rows = Vec::new();
    for condition in conditions {
        let verdict = if condition.holds { "holds" } else { "VIOLATED" };
        let place = format!("{:>2}  {}", condition.number, condition.clause);
        rows.push(vec![place, verdict.to_owned(), condition.states.clone()]);
        rows.extend(
            condition.detail.iter().map(|row| vec![String::new(), String::new(), row.clone()]),
        );
    }
    output::table(&rows)
}
