//! Transactions of own workloads in MariaDB.
//!
//! With statement access the session commits by itself, and BEGIN travels with the statement behind
//! it. Pipelined it does not: what follows a refusal inside a group must run in a transaction that
//! can be rolled back. A single statement then has its COMMIT in the same packet.

use dbms::Error as ServerError;
use dbms::mariadb::{Cell, Row, Statement as Prepared, Type};

use super::link::{Link, Stop};
use crate::driver::Outcome;
use crate::workload::own::program::{Scratch, Script, Statement, Step};
use crate::workload::own::value::{Holds, Value};
use crate::workload::own::{Dialect, Own, OwnRequest, Program};

/// The statements of a workload, by kind and step.
pub(super) struct Transactions {
    kinds: Vec<Vec<Option<Prepared>>>,
    scratch: Scratch,
}

impl Transactions {
    pub fn prepare(link: &mut Link<'_>, own: Own) -> Result<Self, ServerError> {
        // The tables are the user's, and so are their character sets.
        link.connection.execute("SET NAMES utf8mb4")?;
        if !link.pipelined {
            link.connection.execute("SET SESSION autocommit = 1")?;
        }
        let mut kinds = Vec::new();
        for program in &own.whole().programs {
            let steps = program.script(Dialect::Mariadb).map_or(&[][..], |script| &script.steps);
            let mut prepared = Vec::new();
            for (_, step) in steps {
                prepared.push(match step {
                    Step::Statement(statement) => {
                        Some(link.prepare(&statement.sql, &types(program, statement))?)
                    }
                    _ => None,
                });
            }
            kinds.push(prepared);
        }
        Ok(Self { kinds, scratch: Scratch::default() })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        request: &OwnRequest,
        now_ms: i64,
    ) -> Result<Outcome, Stop> {
        let program = request.program();
        let script = program.script(Dialect::Mariadb).map_err(Stop::Own)?;
        let prepared = &mut self.kinds[usize::from(request.kind)];
        self.scratch.draw(program, request, now_ms).map_err(Stop::Own)?;
        let mut outcome = Outcome::Committed;
        let framed = script.steps.iter().any(|(_, step)| matches!(step, Step::Begin));
        for range in script.groups(link.pipelined) {
            let steps = &script.steps[range.clone()];
            let commits = link.pipelined && !framed;
            let group = Group { program, script, steps, commits };
            group.run(link, &mut prepared[range.clone()], &mut self.scratch)?;
            if steps.iter().any(|(_, step)| matches!(step, Step::Rollback)) {
                outcome = Outcome::RolledBack;
            }
        }
        Ok(outcome)
    }
}

/// The types of a statement's parameters.
fn types(program: &Program, statement: &Statement) -> Vec<Type> {
    let of = |slot: &usize| match program.slots[*slot].1 {
        Holds::Int => Type::BigInt,
        Holds::Real => Type::Double,
        Holds::Text => Type::Text,
    };
    statement.parameters.iter().map(of).collect()
}

/// Steps of one exchange.
struct Group<'a> {
    program: &'a Program,
    script: &'a Script,
    steps: &'a [(usize, Step)],
    /// A COMMIT follows the last statement.
    commits: bool,
}

/// The text of what begins or ends a transaction.
fn frame(step: &Step) -> Option<&'static str> {
    match step {
        Step::Begin => Some("BEGIN"),
        Step::Commit => Some("COMMIT"),
        Step::Rollback => Some("ROLLBACK"),
        _ => None,
    }
}

impl Group<'_> {
    fn run(
        &self,
        link: &mut Link<'_>,
        prepared: &mut [Option<Prepared>],
        scratch: &mut Scratch,
    ) -> Result<(), Stop> {
        let mut sent = false;
        for ((_, step), prepared) in self.steps.iter().zip(&mut *prepared) {
            match step {
                Step::Set(slot, expression) => {
                    scratch.set(*slot, expression).map_err(Stop::Own)?;
                    continue;
                }
                Step::Sleep(expression, unit_s) => {
                    let how_long = scratch.sleep(expression, *unit_s).map_err(Stop::Own)?;
                    std::thread::sleep(how_long);
                    continue;
                }
                Step::Statement(statement) => {
                    let prepared = prepared.as_mut().expect("statements are prepared");
                    queue(link, self.program, (prepared, statement), scratch);
                }
                other => link.connection.queue_text(frame(other).unwrap_or("COMMIT")),
            }
            sent = true;
        }
        if !sent {
            return Ok(());
        }
        if self.commits {
            link.connection.queue_text("COMMIT");
        }
        link.exchange()?;
        for ((line, step), prepared) in self.steps.iter().zip(prepared) {
            match step {
                Step::Set(..) | Step::Sleep(..) => {}
                Step::Statement(statement) => {
                    let prepared = prepared.as_mut().expect("statements are prepared");
                    let found = receive(link, (prepared, statement), scratch)?;
                    if !statement.rows.hold(found) {
                        let place = (self.script.file.as_str(), *line);
                        let what = scratch.unexpected(self.program, place, statement, found);
                        return Err(Stop::Own(what));
                    }
                }
                _ => drop(link.connection.receive_text(&mut |_| Ok(()))?),
            }
        }
        if self.commits {
            link.connection.receive_text(&mut |_| Ok(()))?;
        }
        Ok(())
    }
}

fn queue(
    link: &mut Link<'_>,
    program: &Program,
    (prepared, statement): (&mut Prepared, &Statement),
    scratch: &mut Scratch,
) {
    let mut values = link.connection.queue(prepared);
    for slot in &statement.parameters {
        let value = &scratch.values[*slot];
        values = match (program.slots[*slot].1, value) {
            (_, Value::Null) => values.null(),
            (Holds::Int, value) => values.integer(value.integer().unwrap_or_default()),
            (Holds::Real, value) => values.real(value.number().unwrap_or_default()),
            (Holds::Text, value) => match value.text(&mut scratch.text) {
                Some(text) => values.text(text),
                None => values.null(),
            },
        };
    }
    values.finish();
}

/// Reads an answer; returns how many rows the statement returned or changed.
fn receive(
    link: &mut Link<'_>,
    (prepared, statement): (&mut Prepared, &Statement),
    scratch: &mut Scratch,
) -> Result<u64, ServerError> {
    let mut returned = 0;
    let done = link.connection.receive(prepared, &mut |row: &mut Row<'_>| {
        let columns = row.columns();
        for column in 0..columns {
            let cell = row.cell()?;
            if returned == 0
                && let Some(slot) = statement.into.get(column)
            {
                scratch.values[*slot] = value(cell);
            } else {
                std::hint::black_box(cell);
            }
        }
        returned += 1;
        Ok(())
    })?;
    Ok(if done.results > 0 { returned } else { done.affected })
}

fn value(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(value) => Value::Int(value),
        Cell::Real(value) => Value::Real(value),
        Cell::Bytes(bytes) => Value::of_text(&String::from_utf8_lossy(&bytes)),
    }
}
