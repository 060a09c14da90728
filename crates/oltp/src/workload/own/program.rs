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

/// Whether a step must wait for the answers of the steps before it in a group.
type Apart<'a> = dyn Fn(&[(usize, Step)], &Step) -> bool + 'a;

/// Cuts steps into groups: a group begins with what is done here, and with BEGIN, which travels
/// with the statement behind it; it ends before a step that is `apart` from the group so far.
fn groups(steps: &[(usize, Step)], apart: &Apart<'_>) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    for (at, (_, step)) in steps.iter().enumerate() {
        let group = &steps[start..at];
        let sends = group
            .iter()
            .any(|(_, step)| matches!(step, Step::Statement(_) | Step::Commit | Step::Rollback));
        let here = matches!(step, Step::Set(..) | Step::Sleep(..));
        let begins = group.iter().any(|(_, step)| matches!(step, Step::Begin));
        let ends = if sends { here || apart(group, step) } else { here && begins };
        if ends {
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
    /// A query that returns a row for as long as the database keeps the transaction.
    pub kept: Option<Piece>,
    /// The steps by DBMS; none where its SQL is missing.
    pub scripts: [Option<Script>; Dialect::ALL.len()],
}

impl Program {
    /// Whether a transaction waits on purpose.
    pub fn sleeps(&self) -> bool {
        let sleeps = |(_, step): &(usize, Step)| matches!(step, Step::Sleep(..));
        self.scripts.iter().flatten().any(|script| script.steps.iter().any(sleeps))
    }

    /// The query that tells whether the database still holds a transaction, and its values for
    /// messages; none where the kind has no such query.
    pub(crate) fn kept_query(&self, request: &OwnRequest) -> Option<(String, String)> {
        let kept = self.kept.as_ref()?;
        let mut scratch = Scratch::default();
        scratch.draw(self, request, 0).ok()?;
        let value = |name: &str| {
            let at = self.slots.iter().position(|(known, _)| known == name);
            at.map_or(Value::Null, |at| scratch.values[at].clone())
        };
        let sql = kept.text(|name| match value(name) {
            Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
            other => other.to_string(),
        });
        let shown: Vec<String> =
            kept.names().map(|name| format!("{name} = {}", value(name))).collect();
        Some((format!("SELECT 1 FROM ({sql}) AS kept LIMIT 1"), shown.join(", ")))
    }

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

#[cfg(test)]
mod tests {
    use super::super::sql::statements;
    use super::*;

    /// Steps of SQL whose parameters and answers are numbered by their letters.
    fn script(text: &str, dialect: Dialect) -> Script {
        let slot = |name: &str| Ok(usize::from(name.as_bytes()[0] - b'a'));
        let pieces = statements(text, 1).unwrap();
        let steps = pieces.iter().map(|piece| {
            let step = match piece.words[0].as_str() {
                "BEGIN" => Step::Begin,
                "COMMIT" => Step::Commit,
                "SLEEP" => Step::Sleep(Expression::Row, 1.0),
                _ => Step::Statement(statement(piece, dialect, &mut |name, _| slot(name)).unwrap()),
            };
            (piece.line, step)
        });
        Script::new("x.sql", steps.collect(), dialect)
    }

    #[test]
    fn only_what_needs_an_answer_waits_for_it() {
        let text = "BEGIN;\n-- into: a\nSELECT x FROM t WHERE i = :b;\nSELECT :b;\n\
                    UPDATE t SET x = :a;\nSELECT :a;\nCOMMIT";
        let made = script(text, Dialect::Postgresql);
        assert_eq!(made.groups(false), [0..2, 2..3, 3..4, 4..5, 5..6]);
        assert_eq!(made.groups(true), [0..3, 3..6]);
        // A COMMIT behind a refusal would be carried out.
        assert_eq!(script(text, Dialect::Mariadb).groups(true), [0..3, 3..5, 5..6]);
        let waits = script("BEGIN; SLEEP; SELECT 1; SLEEP; COMMIT", Dialect::Postgresql);
        assert_eq!(waits.groups(true), [0..1, 1..3, 3..5]);
    }

    #[test]
    fn what_is_expected_of_a_statement_is_read() {
        let of = |text: &str| {
            let piece = &statements(text, 1).unwrap()[0];
            statement(piece, Dialect::Sqlite, &mut |_, _| Ok(0)).map(|made| made.rows)
        };
        assert_eq!(of("-- rows: 2\nSELECT 1"), Ok(Rows::Exactly(2)));
        assert_eq!(of("-- rows: some\nSELECT 1"), Ok(Rows::Some));
        assert_eq!(of("SELECT 1"), Ok(Rows::Any));
        assert!(of("-- rows: few\nSELECT 1").unwrap_err().contains("none of any, some, a number"));
        assert!(Rows::Some.hold(3) && !Rows::Some.hold(0) && !Rows::Exactly(2).hold(1));
    }
}
