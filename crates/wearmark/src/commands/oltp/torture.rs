//! `wearmark oltp torture`: does a server keep what it has acknowledged?

use ::oltp::torture::{CycleResult, TortureOptions, TortureResult};
use dbms::{Places, System};
use report::format;

use super::target::{dataset_of, named, server_settings, workload};
use super::{Context, Outcome, output};
use crate::cli::{DbmsName, OltpTorture};
use crate::failure::Advice;

/// Cycles that the screen shows; the JSON has all.
const ROWS_MAX: usize = 20;

/// Runs the command.
pub fn torture(arguments: &OltpTorture, context: &Context) -> anyhow::Result<Outcome> {
    let result = ::oltp::torture::torture(&options(arguments)?, &context.view)?;
    if context.json {
        output::json(&result)?;
    } else {
        output::print(&text(&result))?;
    }
    Ok(match (result.passed(), result.interrupted) {
        (false, _) => Outcome::Finding,
        (true, true) => Outcome::Interrupted,
        (true, false) => Outcome::Fine,
    })
}

fn options(arguments: &OltpTorture) -> anyhow::Result<TortureOptions> {
    let system = match arguments.dbms {
        DbmsName::Postgresql => System::Postgresql,
        DbmsName::Mariadb => System::Mariadb,
        DbmsName::Sqlite => {
            return Err(Advice::error(
                "SQLite has no server to kill",
                "say --dbms postgresql or --dbms mariadb",
            ));
        }
    };
    let dataset = dataset_of(
        workload(&arguments.workload, &arguments.own, None)?,
        (arguments.warehouses, arguments.branches, arguments.rows),
    );
    Ok(TortureOptions {
        settings: server_settings(&arguments.settings, arguments.users)?,
        dataset,
        access: named("access", &arguments.access)?,
        users: arguments.users,
        cycles: arguments.cycles,
        longest: arguments.longest,
        loss: named("loss", &arguments.loss)?,
        lies: arguments.lying_disk,
        seed: arguments.seed,
        ..TortureOptions::new(system, Places::at(&arguments.directory))
    })
}

fn row(cycle: &CycleResult) -> Vec<String> {
    vec![
        cycle.number.to_string(),
        format::duration_ns(cycle.worked_ms * 1e6),
        format::count(cycle.acknowledged as f64),
        cycle.in_flight.to_string(),
        format::bytes(cycle.unsynced_bytes as f64),
        format::duration_ns(cycle.recovery_ms * 1e6),
        cycle.survived.to_string(),
        cycle.lost.to_string(),
        (cycle.unasked + cycle.inconsistent).to_string(),
    ]
}

fn text(result: &TortureResult) -> String {
    let header = [
        "CYCLE",
        "LOAD",
        "ACKNOWLEDGED",
        "IN FLIGHT",
        "UNSYNCED",
        "RECOVERY",
        "SURVIVED",
        "LOST",
        "WRONG",
    ];
    let shown = &result.cycles[result.cycles.len().saturating_sub(ROWS_MAX)..];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(shown.iter().map(row));
    let mut text = output::table(&rows);
    text.push_str(&format!(
        "{}: {} acknowledged in {} cycles, {} lost, {} of {} conditions hold\n",
        result.dbms,
        format::count(result.acknowledged as f64),
        result.cycles.len(),
        result.lost,
        result.conditions.iter().filter(|condition| condition.holds).count(),
        result.conditions.len(),
    ));
    let examples = result.cycles.iter().flat_map(|cycle| &cycle.examples);
    let violated = result.conditions.iter().filter(|condition| !condition.holds);
    let violated = violated.map(|c| format!("condition {} is violated: {}", c.number, c.states));
    let findings = examples.cloned().chain(result.damage.clone()).chain(violated);
    findings.take(ROWS_MAX).for_each(|line| text.push_str(&format!("  {line}\n")));
    if let Some(finding) = result.finding {
        text.push_str(&format!("  known: {}\n", finding.means()));
    }
    for note in &result.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(match (result.passed(), result.interrupted) {
        (true, false) => "passed: everything acknowledged was there after every recovery\n",
        (true, true) => "stopped: everything acknowledged was there so far\n",
        (false, _) => "FAILED\n",
    });
    text
}
