//! What a kind of transaction consists of, once it is read: values to make, steps to take.

use std::ops::Range;
use std::time::Duration;

use stats::rng::Rng;

use super::expression::{Expression, Given, Trouble};
use super::sql::Piece;
use super::value::{Holds, Value};
use super::{Dialect, OwnRequest};

/// Rows that a statement must return or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Any number.
    Any,
    /// One or more.
    Some,
    /// So many.
    Exactly(u64),
}

impl Rows {
    /// Whether so many are as expected.
    pub fn hold(self, found: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Some => found > 0,
            Self::Exactly(wanted) => found == wanted,
        }
    }
}

impl std::fmt::Display for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("any number"),
            Self::Some => f.write_str("at least 1"),
            Self::Exactly(count) => write!(f, "{count}"),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its text, with the placeholders of its DBMS.
    pub sql: String,
    /// The values of its placeholders, in order.
    pub parameters: Vec<usize>,
    /// What is expected of it.
    pub rows: Rows,
    /// Where the columns of its first row go.
    pub into: Vec<usize>,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Begins a transaction.
    Begin,
    /// Commits it.
    Commit,
    /// Rolls it back.
    Rollback,
    /// A statement.
    Statement(Statement),
    /// Makes a value that depends on what a statement returned.
    Set(usize, Expression),
    /// Waits, seconds times the factor.
    Sleep(Expression, f64),
}

/// The steps in one DBMS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Name of the file.
    pub file: String,
    /// The steps, each with its line.
    pub steps: Vec<(usize, Step)>,
    /// Steps that can travel together: one statement each, and as many as do not need each other's
    /// answers.
    groups: [Vec<Range<usize>>; 2],
}

impl Script {
    /// A script of these steps.
    pub fn new(file: &str, steps: Vec<(usize, Step)>, dialect: Dialect) -> Self {
        let single = groups(&steps, &|_, _| true);
        let together = groups(&steps, &|group, step| {
            let needs = |slot: &usize| {
                group.iter().any(|(_, earlier)| match earlier {
                    Step::Statement(earlier) => earlier.into.contains(slot),
                    _ => false,
                })
            };
            match step {
                Step::Statement(statement) => statement.parameters.iter().any(needs),
                // What follows a refusal in MariaDB runs all the same: it must not be a COMMIT.
                Step::Commit => dialect == Dialect::Mariadb,
                _ => false,
            }
        });
        Self { file: file.to_owned(), steps, groups: [single, together] }
    }

    /// Its groups of steps.
    pub fn groups(&self, pipelined: bool) -> &[Range<usize>] {
        &self.groups[usize::from(pipelined)]
    }
}

/// Cuts steps into groups: a group begins with what is done here, and with BEGIN, which travels with
/// the statement behind it; it ends before a step that is `apart` from the group so far.
fn groups(
    steps: &[(usize, Step)],
    apart: &dyn Fn(&[(usize, Step)], &Step) -> bool,
) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    for (at, (_, step)) in steps.iter().enumerate() {
        let group = &steps[start..at];
        let sends = group
            .iter()
            .any(|(_, step)| matches!(step, Step::Statement(_) | Step::Commit | Step::Rollback));
        let here = matches!(step, Step::Set(..) | Step::Sleep(..));
        let begins = group.iter().any(|(_, step)| matches!(step, Step::Begin));
        if (sends && (here || apart(group, step))) || (here && begins && !sends) {
            groups.push(start..at);
            start = at;
        }
    }
    if start < steps.len() {
        groups.push(start..steps.len());
    }
    groups
}

/// A number of a sequence that a transaction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which sequence.
    pub sequence: usize,
    /// The next one, which nobody else gets, or the newest so far.
    pub takes: bool,
}

/// Numbers of sequences that a transaction may ask for.
pub const NUMBERS_MAX: usize = 4;

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The values by their names; several may have one name, of which the last counts.
    pub slots: Vec<(String, Holds)>,
    /// What is made before the first step, in order.
    pub draws: Vec<(usize, Expression)>,
    /// Numbers of sequences.
    pub numbers: Vec<Wanted>,
    /// The steps by DBMS; none where its SQL is missing.
    pub scripts: [Option<Script>; Dialect::ALL.len()],
}

impl Program {
    /// The steps in a DBMS.
    ///
    /// # Errors
    /// In words, where the workload has none for it.
    pub fn script(&self, dialect: Dialect) -> Result<&Script, Trouble> {
        self.scripts[dialect as usize]
            .as_ref()
            .ok_or_else(|| format!("it has no SQL for {}", dialect.name()))
    }
}

/// The values of one transaction at a time; reused.
#[derive(Debug)]
pub struct Scratch {
    /// The values.
    pub values: Vec<Value>,
    /// For text that is made of numbers.
    pub text: String,
    rng: Rng,
    request: Option<OwnRequest>,
    now_ms: i64,
}

impl Default for Scratch {
    fn default() -> Self {
        let (values, text, rng) = (Vec::new(), String::new(), Rng::new(0));
        Self { values, text, rng, request: None, now_ms: 0 }
    }
}

impl Scratch {
    /// Makes the values of a request.
    ///
    /// # Errors
    /// In words, what has no value.
    pub fn draw(&mut self, program: &Program, request: &OwnRequest, now_ms: i64) -> Drawn {
        self.rng = Rng::new(request.seed);
        (self.request, self.now_ms) = (Some(*request), now_ms);
        self.values.clear();
        self.values.resize(program.slots.len(), Value::Null);
        program.draws.iter().try_for_each(|(slot, expression)| self.set(*slot, expression))
    }

    /// Makes one value.
    ///
    /// # Errors
    /// In words, why it has none.
    pub fn set(&mut self, slot: usize, expression: &Expression) -> Drawn {
        self.values[slot] = self.value(expression)?;
        Ok(())
    }

    /// How long a step waits.
    ///
    /// # Errors
    /// No number, or none that is a time.
    pub fn sleep(&mut self, expression: &Expression, unit_s: f64) -> Result<Duration, Trouble> {
        let value = self.value(expression)?;
        let seconds = value.number().map(|number| number * unit_s);
        let known = seconds.filter(|seconds| (0.0..=86_400.0).contains(seconds));
        known.map(Duration::from_secs_f64).ok_or_else(|| format!("a sleep of {value}"))
    }

    fn value(&mut self, expression: &Expression) -> Result<Value, Trouble> {
        let (numbers, terminal) =
            self.request.map_or(([0; NUMBERS_MAX], 0), |own| (own.numbers, own.terminal));
        expression.value(&mut Given {
            rng: &mut self.rng,
            slots: &self.values,
            numbers: &numbers,
            row: 0,
            terminal,
            now_ms: self.now_ms,
        })
    }

    /// The parameters of a statement, for messages.
    pub fn shown(&self, program: &Program, statement: &Statement) -> String {
        let shown = |slot: &usize| format!("{} = {}", program.slots[*slot].0, self.values[*slot]);
        let all: Vec<String> = statement.parameters.iter().map(shown).collect();
        all.join(", ")
    }

    /// What to say of a statement that did not find what it should.
    pub fn unexpected(
        &self,
        program: &Program,
        (file, line): (&str, usize),
        statement: &Statement,
        found: u64,
    ) -> String {
        let with = self.shown(program, statement);
        let with = if with.is_empty() { with } else { format!(" with {with}") };
        format!("{file}:{line}: {found} rows where {} is expected{with}", statement.rows)
    }
}

/// Whether values could be made.
pub type Drawn = Result<(), Trouble>;

/// Makes a statement of a piece of SQL.
///
/// # Errors
/// An unknown parameter, or a comment that is not understood.
pub fn statement(
    piece: &Piece,
    dialect: Dialect,
    slot: &mut dyn FnMut(&str, bool) -> Result<usize, Trouble>,
) -> Result<Statement, Trouble> {
    let parameters: Vec<usize> =
        piece.names().map(|name| slot(name, false)).collect::<Result<_, _>>()?;
    let mut number = 0;
    let sql = piece.text(|_| {
        number += 1;
        if dialect == Dialect::Postgresql { format!("${number}") } else { "?".to_owned() }
    });
    let rows = match piece.rows.as_deref() {
        None | Some("any") => Rows::Any,
        Some("some") => Rows::Some,
        Some(text) => Rows::Exactly(
            text.parse().map_err(|_| format!("'rows: {text}' is none of any, some, a number"))?,
        ),
    };
    let into = piece.into.as_deref().map(|names| {
        names.split(',').map(|name| slot(name.trim(), true)).collect::<Result<Vec<_>, _>>()
    });
    Ok(Statement { sql, parameters, rows, into: into.transpose()?.unwrap_or_default() })
}
