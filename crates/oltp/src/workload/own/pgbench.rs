//! Scripts of pgbench, as they are.
//!
//! Understood are SQL statements over one or several lines, `BEGIN`, `COMMIT`, `END`, `ROLLBACK`,
//! `\set`, `\sleep` and `\gset`; every other backslash command is refused by name and line. `\set`
//! knows the operators and functions of [`super::expression`]. Source: PostgreSQL 15 manual, page
//! of pgbench, "custom scripts".

use super::expression::{Expression, Trouble};
use super::program::{Step, statement};
use super::sql::{Piece, statements};
use super::value::{Holds, Value};
use super::{Dialect, parser};

/// A line that is not understood, and why.
pub type Refused = (usize, Trouble);

/// What a script comes to.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The values, each assignment in a place of its own.
    pub slots: Vec<(String, Holds)>,
    /// What is made before the first step.
    pub draws: Vec<(usize, Expression)>,
    /// Steps with their lines.
    pub steps: Vec<(usize, Step)>,
    /// Whether anything is changed.
    pub writes: bool,
}

/// A part of a script.
enum Part<'a> {
    /// A backslash command: line, name, argument.
    Command(usize, &'a str, &'a str),
    /// SQL up to the next command, its first line and whether `\gset` ended it.
    Sql(usize, String, bool),
}

/// Reads a script. `constants` are the variables that are there without `\set`.
///
/// # Errors
/// The first line that is not understood.
pub fn parse(
    text: &str,
    constants: &dyn Fn(&str) -> Option<Expression>,
    dialect: Dialect,
) -> Result<Parsed, Refused> {
    let mut reader = Reader { parsed: Parsed::default(), constants, dialect, late: Vec::new() };
    for part in parts(text) {
        match part {
            Part::Command(line, name, argument) => {
                reader.command(name, argument).map_err(|why| (line, why))?;
            }
            Part::Sql(first, sql, gset) => reader.sql(first, &sql, gset)?,
        }
    }
    reader.finish()
}

/// Lines as they belong together.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut sql, mut first) = (String::new(), 1);
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        if let Some(command) = trimmed.strip_prefix('\\') {
            let (name, argument) =
                command.split_once(|c: char| c.is_whitespace()).unwrap_or((command, ""));
            if name == "gset" || !sql.trim().is_empty() {
                parts.push(Part::Sql(first, std::mem::take(&mut sql), name == "gset"));
            }
            if name != "gset" || !argument.trim().is_empty() {
                parts.push(Part::Command(number, name, argument.trim()));
            }
            (sql, first) = (String::new(), number + 1);
            continue;
        }
        // As psql and pgbench have it: the command may stand behind its statement.
        if let Some(before) = line.trim_end().strip_suffix("\\gset") {
            sql.push_str(before);
            parts.push(Part::Sql(first, std::mem::take(&mut sql), true));
            first = number + 1;
            continue;
        }
        sql.push_str(line);
        sql.push('\n');
    }
    parts.push(Part::Sql(first, sql, false));
    parts
}

struct Reader<'a> {
    parsed: Parsed,
    constants: &'a dyn Fn(&str) -> Option<Expression>,
    dialect: Dialect,
    /// Values that are known only when a statement has returned.
    late: Vec<usize>,
}

/// The value of a name so far.
struct Known<'a>(&'a [(String, Holds)], &'a dyn Fn(&str) -> Option<Expression>);

impl parser::Names for Known<'_> {
    fn value(&self, name: &str) -> Option<Expression> {
        let known = self.0.iter().rposition(|(known, _)| known == name);
        known.map(Expression::Slot).or_else(|| (self.1)(name))
    }
    fn number(&self, _: &str, _: bool) -> Result<usize, Trouble> {
        Err("pgbench has no sequences".to_owned())
    }
    fn lines(&self, _: &str) -> Result<std::sync::Arc<Vec<Value>>, Trouble> {
        Err("pgbench reads no files".to_owned())
    }
}

impl Reader<'_> {
    fn command(&mut self, name: &str, argument: &str) -> Result<(), Trouble> {
        match name {
            "set" => self.set(argument),
            "sleep" => self.sleep(argument),
            "gset" => Err(format!("\\gset with the prefix '{argument}' is not understood")),
            _ => Err(format!("\\{name} is not understood")),
        }
    }

    fn expression(&self, text: &str) -> Result<Expression, Trouble> {
        parser::parse(text, &Known(&self.parsed.slots, self.constants))
    }

    /// A new place for a name.
    fn slot(&mut self, name: &str, holds: Holds) -> usize {
        self.parsed.slots.push((name.to_owned(), holds));
        self.parsed.slots.len() - 1
    }

    fn set(&mut self, argument: &str) -> Result<(), Trouble> {
        let (name, text) = argument
            .split_once(char::is_whitespace)
            .ok_or("\\set takes a name and an expression")?;
        let expression = self.expression(text)?;
        let mut late = false;
        expression.walk(&mut |part| {
            late |= matches!(part, Expression::Slot(slot) if self.late.contains(slot));
        });
        let holds: Vec<Holds> = self.parsed.slots.iter().map(|(_, holds)| *holds).collect();
        let slot = self.slot(name, expression.holds(&holds));
        if late {
            self.late.push(slot);
            self.parsed.steps.push((0, Step::Set(slot, expression)));
        } else {
            self.parsed.draws.push((slot, expression));
        }
        Ok(())
    }

    fn sleep(&mut self, argument: &str) -> Result<(), Trouble> {
        let (text, unit_s) = match argument.split_once(char::is_whitespace) {
            None => (argument, 1.0),
            Some((text, unit)) => match unit.trim() {
                "s" => (text, 1.0),
                "ms" => (text, 1e-3),
                "us" => (text, 1e-6),
                other => return Err(format!("\\sleep in '{other}' is none of s, ms, us")),
            },
        };
        let step = Step::Sleep(self.expression(text)?, unit_s);
        self.parsed.steps.push((0, step));
        Ok(())
    }

    fn sql(&mut self, first: usize, sql: &str, gset: bool) -> Result<(), Refused> {
        let pieces = statements(sql, first)?;
        let last = pieces.len().checked_sub(1);
        if gset && last.is_none() {
            return Err((first, "\\gset follows no statement".to_owned()));
        }
        for (at, piece) in pieces.iter().enumerate() {
            let step = self.step(piece, gset && Some(at) == last);
            self.parsed.steps.push((piece.line, step.map_err(|why| (piece.line, why))?));
        }
        Ok(())
    }

    fn step(&mut self, piece: &Piece, gset: bool) -> Result<Step, Trouble> {
        let words: Vec<&str> = piece.words.iter().map(String::as_str).collect();
        if let Some(frame) = frame(&words) {
            return Ok(frame);
        }
        self.parsed.writes |= piece.writes();
        let (slots, constants) = (&mut self.parsed.slots, self.constants);
        let draws = &mut self.parsed.draws;
        let mut made = statement(piece, self.dialect, &mut |name, _| {
            if let Some(slot) = slots.iter().rposition(|(known, _)| known == name) {
                return Ok(slot);
            }
            let constant = constants(name).ok_or_else(|| format!("nothing is called :{name}"))?;
            let holds = constant.holds(&[]);
            slots.push((name.to_owned(), holds));
            draws.push((slots.len() - 1, constant));
            Ok(slots.len() - 1)
        })?;
        if gset {
            made.rows = super::program::Rows::Exactly(1);
            for name in columns(piece)? {
                let slot = self.slot(&name, Holds::Text);
                self.late.push(slot);
                made.into.push(slot);
            }
        }
        Ok(Step::Statement(made))
    }

    fn finish(self) -> Result<Parsed, Refused> {
        let mut open = None;
        for (line, step) in &self.parsed.steps {
            match (step, open) {
                (Step::Begin, None) => open = Some(*line),
                (Step::Begin, Some(_)) => {
                    return Err((*line, "BEGIN inside a transaction".to_owned()));
                }
                (Step::Commit | Step::Rollback, Some(_)) => open = None,
                (Step::Commit | Step::Rollback, None) => {
                    return Err((*line, "no transaction is open here".to_owned()));
                }
                _ => {}
            }
        }
        if let Some(line) = open {
            return Err((line, "a transaction without its end".to_owned()));
        }
        if !self.parsed.steps.iter().any(|(_, step)| matches!(step, Step::Statement(_))) {
            return Err((1, "no statement".to_owned()));
        }
        Ok(self.parsed)
    }
}

/// What begins or ends a transaction.
pub fn frame(words: &[&str]) -> Option<Step> {
    match words {
        ["BEGIN"] | ["BEGIN", "WORK" | "TRANSACTION"] | ["START", "TRANSACTION"] => {
            Some(Step::Begin)
        }
        ["COMMIT" | "END"] | ["COMMIT" | "END", "WORK" | "TRANSACTION"] => Some(Step::Commit),
        ["ROLLBACK" | "ABORT"] | ["ROLLBACK" | "ABORT", "WORK" | "TRANSACTION"] => {
            Some(Step::Rollback)
        }
        _ => None,
    }
}

/// The names that `\gset` gives: those of the columns, told by `AS`, or the whole list of a plain
/// `SELECT a, b FROM`.
fn columns(piece: &Piece) -> Result<Vec<String>, Trouble> {
    let text = piece.text(|name| format!(":{name}"));
    let list = text.get(6..).unwrap_or("");
    let end = list.to_uppercase().find(" FROM ").unwrap_or(list.len());
    let named = |column: &str| {
        let name = column.split_whitespace().last()?.to_lowercase();
        let number = name.starts_with(|first: char| first.is_ascii_digit());
        (!number && name.chars().all(parser::is_of_a_name)).then_some(name)
    };
    let mut depth = 0;
    let cut = list[..end].split(|letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    cut.map(|column| {
        named(column).ok_or_else(|| format!("\\gset needs a name for '{}': AS name", column.trim()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Parsed, Refused> {
        let constants =
            |name: &str| (name == "scale").then_some(Expression::Constant(Value::Int(5)));
        parse(text, &constants, Dialect::Postgresql)
    }

    fn statements_of(parsed: &Parsed) -> Vec<(usize, String)> {
        let of = |(line, step): &(usize, Step)| match step {
            Step::Statement(statement) => Some((*line, statement.sql.clone())),
            _ => None,
        };
        parsed.steps.iter().filter_map(of).collect()
    }

    #[test]
    fn the_built_in_script_is_read_as_it_is() {
        let text = "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
                    UPDATE pgbench_accounts SET abalance = abalance + :delta\n  WHERE aid = :aid;\n\
                    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nEND;\n";
        let parsed = read(text).unwrap();
        let sql = statements_of(&parsed);
        assert_eq!(sql.len(), 2);
        assert_eq!(sql[0].0, 4);
        assert!(sql[0].1.contains("abalance + $1\n  WHERE aid = $2"), "{sql:?}");
        assert_eq!(parsed.steps.first().map(|step| &step.1), Some(&Step::Begin));
        assert_eq!(parsed.steps.last().map(|step| &step.1), Some(&Step::Commit));
        assert!(parsed.writes);
        assert_eq!(parsed.draws.len(), 2);
    }

    #[test]
    fn a_variable_set_twice_has_both_values() {
        let text = "\\set a 1\nSELECT :a;\n\\set a :a + 1\nSELECT :a, :scale;\n";
        let parsed = read(text).unwrap();
        let parameters: Vec<_> = parsed
            .steps
            .iter()
            .filter_map(|(_, step)| match step {
                Step::Statement(statement) => Some(statement.parameters.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(parameters, [vec![0], vec![1, 2]]);
        assert!(!parsed.writes);
    }

    #[test]
    fn answers_become_variables() {
        let text =
            "SELECT abs(a, 2) AS x, b FROM t WHERE c = 1 \\gset\n\\set y :x * 2\nSELECT :y;\n";
        let parsed = read(text).unwrap();
        let names: Vec<&str> = parsed.slots.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x", "b", "y"]);
        assert!(parsed.draws.is_empty() && matches!(parsed.steps[1].1, Step::Set(2, _)));
    }

    #[test]
    fn the_rest_is_refused_by_line() {
        for (text, line, why) in [
            ("SELECT 1;\n\\shell date\n", 2, "\\shell is not understood"),
            ("\\if 1\n", 1, "\\if is not understood"),
            ("\\set a permute(1, 2)\nSELECT :a;", 1, "no function 'permute'"),
            ("\n\nSELECT :b;", 3, "nothing is called :b"),
            ("BEGIN;\nSELECT 1;\n", 1, "without its end"),
            ("SELECT 1;\nEND;", 2, "no transaction is open"),
            ("\\sleep 1 h\n", 1, "none of s, ms, us"),
            ("\\set a\n", 1, "a name and an expression"),
            ("-- nothing\n", 1, "no statement"),
            ("SELECT a + 1 FROM t \\gset\n", 1, "AS name"),
        ] {
            let (found, what) = read(text).unwrap_err();
            assert!(found == line && what.contains(why), "{text}: {found} {what}");
        }
    }
}
