//! Transactions of own workloads in SQLite.
//!
//! A single statement is its own transaction; several have BEGIN and COMMIT around them, with BEGIN
//! IMMEDIATE where the kind writes.

use rusqlite::types::{Null, ValueRef};
use rusqlite::{Connection, Row};

use super::session::{Prepared, Stop};
use crate::driver::{Meter, Outcome};
use crate::workload::own::program::{Scratch, Script, Statement, Step};
use crate::workload::own::value::Value;
use crate::workload::own::{Dialect, Own, OwnRequest, Program};

/// The statements of a workload, by kind and step.
pub(super) struct Transactions<'c> {
    kinds: Vec<Vec<Option<Prepared<'c>>>>,
    scratch: Scratch,
}

/// What begins and ends a transaction.
pub(super) struct Frame<'a, 'c> {
    pub begin: &'a mut Prepared<'c>,
    pub commit: &'a mut Prepared<'c>,
    pub rollback: &'a mut Prepared<'c>,
}

impl<'c> Transactions<'c> {
    /// Prepares every statement; one that SQLite refuses is prepared again, and refused again,
    /// when it is needed.
    pub fn prepare(connection: &'c Connection, own: Own) -> rusqlite::Result<Self> {
        let mut kinds = Vec::new();
        for program in &own.whole().programs {
            let steps = program.script(Dialect::Sqlite).map_or(&[][..], |script| &script.steps);
            let each = steps.iter().map(|(_, step)| match step {
                Step::Statement(statement) => Prepared::new(connection, &statement.sql).map(Some),
                _ => Ok(None),
            });
            kinds.push(each.collect::<rusqlite::Result<_>>()?);
        }
        Ok(Self { kinds, scratch: Scratch::default() })
    }

    pub fn execute(
        &mut self,
        meter: &Meter,
        request: &OwnRequest,
        now_ms: i64,
        frame: &mut Frame<'_, 'c>,
    ) -> Result<Outcome, Stop> {
        let program = request.program();
        let script = program.script(Dialect::Sqlite).map_err(Stop::Own)?;
        let prepared = &mut self.kinds[usize::from(request.kind)];
        let scratch = &mut self.scratch;
        scratch.draw(program, request, now_ms).map_err(Stop::Own)?;
        let mut outcome = Outcome::Committed;
        for (at, (line, step)) in script.steps.iter().enumerate() {
            match step {
                Step::Begin => drop(frame.begin.run(meter)?),
                Step::Commit => drop(frame.commit.run(meter)?),
                Step::Rollback => {
                    frame.rollback.run(meter)?;
                    outcome = Outcome::RolledBack;
                }
                Step::Set(slot, expression) => {
                    scratch.set(*slot, expression).map_err(Stop::Own)?;
                }
                Step::Sleep(expression, unit_s) => {
                    let how_long = scratch.sleep(expression, *unit_s).map_err(Stop::Own)?;
                    meter.dbms(|| std::thread::sleep(how_long));
                }
                Step::Statement(statement) => {
                    let prepared = prepared[at].as_mut().expect("statements are prepared");
                    let found = run(prepared, meter, statement, scratch)?;
                    check(program, script, (*line, statement), scratch, found)?;
                }
            }
        }
        Ok(outcome)
    }
}

fn check(
    program: &Program,
    script: &Script,
    (line, statement): (usize, &Statement),
    scratch: &Scratch,
    found: u64,
) -> Result<(), Stop> {
    if statement.rows.hold(found) {
        return Ok(());
    }
    Err(Stop::Own(scratch.unexpected(program, (&script.file, line), statement, found)))
}

/// Runs a statement; returns how many rows it returned or changed.
fn run(
    prepared: &mut Prepared<'_>,
    meter: &Meter,
    statement: &Statement,
    scratch: &mut Scratch,
) -> rusqlite::Result<u64> {
    for (index, slot) in (1..).zip(&statement.parameters) {
        match &scratch.values[*slot] {
            Value::Null => prepared.0.raw_bind_parameter(index, Null)?,
            Value::Int(value) => prepared.0.raw_bind_parameter(index, value)?,
            Value::Real(value) => prepared.0.raw_bind_parameter(index, value)?,
            Value::Text(text) => prepared.0.raw_bind_parameter(index, text)?,
        }
    }
    let columns = prepared.0.column_count();
    if columns == 0 {
        return prepared.run(meter).map(|changed| changed as u64);
    }
    let mut found = 0;
    prepared.each(meter, |row| {
        if found == 0 {
            for (column, slot) in statement.into.iter().enumerate() {
                scratch.values[*slot] =
                    if column < columns { value(row, column)? } else { Value::Null };
            }
        }
        // Read as a client would.
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        found += 1;
        Ok(())
    })?;
    Ok(found)
}

fn value(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    })
}
