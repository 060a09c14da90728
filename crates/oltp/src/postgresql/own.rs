//! Transactions of own workloads in PostgreSQL.
//!
//! Values travel as text: the server knows the types of its parameters, and reads them. Pipelined,
//! all statements that do not need each other's answers are one round trip; where that is the whole
//! transaction, its frame is left out, as the pipeline is a transaction itself.

use dbms::Error as ServerError;
use dbms::postgresql::{Row, Statement as Prepared};

use super::session::{Link, Stop};
use crate::driver::Outcome;
use crate::options::Access;
use crate::workload::own::program::{Scratch, Script, Statement, Step};
use crate::workload::own::value::Value;
use crate::workload::own::{Dialect, Own, OwnRequest, Program};

/// The statements of a workload, by kind and step.
pub(super) struct Transactions {
    kinds: Vec<Vec<Option<Prepared>>>,
    frame: [Prepared; 3],
    pipelined: bool,
    scratch: Scratch,
}

impl Transactions {
    pub fn prepare(link: &mut Link<'_>, own: Own, access: Access) -> Result<Self, ServerError> {
        let frame = [link.prepare("BEGIN")?, link.prepare("COMMIT")?, link.prepare("ROLLBACK")?];
        let mut kinds = Vec::new();
        for program in &own.whole().programs {
            let steps = program.script(Dialect::Postgresql).map_or(&[][..], |script| &script.steps);
            let mut prepared = Vec::new();
            for (_, step) in steps {
                prepared.push(match step {
                    Step::Statement(statement) => Some(link.prepare(&statement.sql)?.with_text()),
                    _ => None,
                });
            }
            kinds.push(prepared);
        }
        let pipelined = access.pipelines();
        Ok(Self { kinds, frame, pipelined, scratch: Scratch::default() })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        request: &OwnRequest,
        now_ms: i64,
    ) -> Result<Outcome, Stop> {
        let program = request.program();
        let script = program.script(Dialect::Postgresql).map_err(Stop::Own)?;
        let prepared = &self.kinds[usize::from(request.kind)];
        self.scratch.draw(program, request, now_ms).map_err(Stop::Own)?;
        let groups = script.groups(self.pipelined);
        let mut outcome = Outcome::Committed;
        for group in groups {
            let whole = self.pipelined && groups.len() == 1;
            let steps = &script.steps[group.clone()];
            let all = Group { program, script, steps, prepared: &prepared[group.clone()] };
            let rolls_back = steps.iter().any(|(_, step)| matches!(step, Step::Rollback));
            let frameless = whole && all.is_framed() && !rolls_back;
            all.run(link, &self.frame, &mut self.scratch, frameless)?;
            if rolls_back {
                outcome = Outcome::RolledBack;
            }
        }
        Ok(outcome)
    }
}

/// Steps of one round trip.
struct Group<'a> {
    program: &'a Program,
    script: &'a Script,
    steps: &'a [(usize, Step)],
    prepared: &'a [Option<Prepared>],
}

impl Group<'_> {
    /// Whether BEGIN and COMMIT stand around all of it, and nowhere else.
    fn is_framed(&self) -> bool {
        let frames = self
            .steps
            .iter()
            .filter(|(_, step)| matches!(step, Step::Begin | Step::Commit | Step::Rollback));
        let ends = (self.steps.first().map(|s| &s.1), self.steps.last().map(|s| &s.1));
        matches!(ends, (Some(Step::Begin), Some(Step::Commit))) && frames.count() == 2
    }

    fn run(
        &self,
        link: &mut Link<'_>,
        frame: &[Prepared; 3],
        scratch: &mut Scratch,
        frameless: bool,
    ) -> Result<(), Stop> {
        let mut sent = false;
        for ((_, step), prepared) in self.steps.iter().zip(self.prepared) {
            match step {
                Step::Begin | Step::Commit | Step::Rollback if frameless => {}
                Step::Begin => link.connection.bind(&frame[0]).run(),
                Step::Commit => link.connection.bind(&frame[1]).run(),
                Step::Rollback => link.connection.bind(&frame[2]).run(),
                Step::Set(slot, expression) => {
                    scratch.set(*slot, expression).map_err(Stop::Own)?;
                    continue;
                }
                Step::Sleep(expression, unit_s) => {
                    let how_long = scratch.sleep(expression, *unit_s).map_err(Stop::Own)?;
                    link.meter.dbms(|| std::thread::sleep(how_long));
                    continue;
                }
                Step::Statement(statement) => {
                    let prepared = prepared.as_ref().expect("statements are prepared");
                    bind(link, prepared, statement, scratch);
                }
            }
            sent = true;
        }
        if !sent {
            return Ok(());
        }
        link.round_trip()?;
        for (line, step) in self.steps {
            match step {
                Step::Begin | Step::Commit | Step::Rollback if frameless => {}
                Step::Begin | Step::Commit | Step::Rollback => drop(link.connection.done()?),
                Step::Set(..) | Step::Sleep(..) => {}
                Step::Statement(statement) => {
                    let found = receive(link, statement, scratch)?;
                    if !statement.rows.hold(found) {
                        let place = (self.script.file.as_str(), *line);
                        let what = scratch.unexpected(self.program, place, statement, found);
                        return Err(Stop::Own(what));
                    }
                }
            }
        }
        link.connection.settle()?;
        Ok(())
    }
}

fn bind(link: &mut Link<'_>, prepared: &Prepared, statement: &Statement, scratch: &mut Scratch) {
    let mut bind = link.connection.bind(prepared);
    let Scratch { values, text, .. } = scratch;
    for slot in &statement.parameters {
        bind = match values[*slot].text(text) {
            Some(text) => bind.text(text),
            None => bind.null(),
        };
    }
    bind.run();
}

/// Reads an answer; returns how many rows the statement returned or changed.
fn receive(
    link: &mut Link<'_>,
    statement: &Statement,
    scratch: &mut Scratch,
) -> Result<u64, ServerError> {
    let mut first = true;
    link.connection.each(|mut row: Row<'_>| {
        if std::mem::take(&mut first) {
            for slot in &statement.into {
                scratch.values[*slot] = if row.is_empty() {
                    Value::Null
                } else {
                    match row.nullable()? {
                        Some(bytes) => Value::of_text(&String::from_utf8_lossy(bytes)),
                        None => Value::Null,
                    }
                };
            }
        }
        while !row.is_empty() {
            std::hint::black_box(row.nullable()?);
        }
        Ok(())
    })
}
