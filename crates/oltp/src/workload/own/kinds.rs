//! The kinds of transactions of an own workload, from its text to programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;
use units::Nanos;

use super::expression::{Expression, Trouble};
use super::program::{NUMBERS_MAX, Program, Script, Step, Wanted, statement};
use super::read::{Files, Wrong, line_of};
use super::sql::{self, Piece};
use super::value::{Holds, Value};
use super::{Dialect, Facts, LIMIT_S, Sequence, parser, pgbench};

/// `[kinds.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKind {
    #[serde(default = "one")]
    pub weight: f64,
    /// SQL; without it the kind's name with `.sql`.
    file: Option<String>,
    /// A script of pgbench in its place.
    pub pgbench: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<String>>,
    think: Option<Nanos>,
    keying: Option<Nanos>,
    /// Bound on the 90th percentile.
    limit: Option<Nanos>,
    /// A query that returns a row for as long as the database keeps the transaction.
    kept: Option<Spanned<String>>,
    /// Overrides what the statements' words say.
    writes: Option<bool>,
}

fn one() -> f64 {
    1.0
}

impl RawKind {
    /// A kind that is a script of pgbench.
    pub fn of_script(file: &str, weight: f64) -> Self {
        Self { weight, pgbench: Some(file.to_owned()), ..Self::default() }
    }
}

/// What a kind is made with.
pub(super) struct Maker<'a> {
    pub files: &'a Files,
    pub settings: &'a BTreeMap<String, i64>,
    pub sequences: &'a [Sequence],
    /// The text of `workload.toml`, for the lines of errors.
    pub text: &'a str,
}

impl Maker<'_> {
    /// Makes a kind.
    pub fn make(&self, name: &str, code: u8, raw: &RawKind) -> Result<(Facts, Program), Wrong> {
        let (program, writes) = match &raw.pgbench {
            Some(file) => self.pgbench(file)?,
            None => self.sql(name, raw)?,
        };
        let seconds = |nanos: Option<Nanos>| nanos.map_or(0.0, Nanos::as_secs_f64);
        let facts = Facts {
            name: name.to_owned(),
            code,
            writes: raw.writes.unwrap_or(writes),
            keying_s: seconds(raw.keying),
            think_mean_s: seconds(raw.think),
            response_p90_limit_s: raw.limit.map_or(LIMIT_S, Nanos::as_secs_f64),
        };
        Ok((facts, program))
    }

    fn pgbench(&self, file: &str) -> Result<(Program, bool), Wrong> {
        let text = self.files.needed(file)?;
        let constant = |name: &str| match name {
            "client_id" => Some(Expression::Terminal),
            _ => self.setting(name),
        };
        let mut program = None;
        let mut writes = false;
        for dialect in Dialect::ALL {
            let parsed = pgbench::parse(&text, &constant, dialect)
                .map_err(|(line, why)| Wrong::at(file, line, why))?;
            writes = parsed.writes;
            let script = Script::new(file, parsed.steps, dialect);
            let program = program.get_or_insert_with(|| Program {
                slots: parsed.slots,
                draws: parsed.draws,
                numbers: Vec::new(),
                kept: None,
                scripts: [None, None, None],
            });
            program.scripts[dialect as usize] = Some(script);
        }
        Ok((program.expect("there are dialects"), writes))
    }

    fn setting(&self, name: &str) -> Option<Expression> {
        self.settings.get(name).map(|value| Expression::Constant(Value::Int(*value)))
    }

    fn sql(&self, name: &str, raw: &RawKind) -> Result<(Program, bool), Wrong> {
        let file = raw.file.clone().unwrap_or_else(|| format!("{name}.sql"));
        let numbers = RefCell::new(Vec::new());
        let (mut slots, mut draws) = self.parameters(raw, &numbers)?;
        let (mut scripts, mut writes) = ([None, None, None], false);
        for dialect in Dialect::ALL {
            let Some((found, text)) = self.files.of_dialect(&file, dialect)? else { continue };
            let pieces =
                sql::statements(&text, 1).map_err(|(line, why)| Wrong::at(&found, line, why))?;
            let mut steps = Vec::new();
            for piece in &pieces {
                writes |= piece.writes();
                let step = self.step(piece, dialect, &mut slots, &mut draws);
                steps.push((piece.line, step.map_err(|why| Wrong::at(&found, piece.line, why))?));
            }
            frame(&mut steps).map_err(|(line, why)| Wrong::at(&found, line, why))?;
            scripts[dialect as usize] = Some(Script::new(&found, steps, dialect));
        }
        if scripts.iter().all(Option::is_none) {
            return Err(Wrong::file(&file, "the file is missing".to_owned()));
        }
        let kept = self.kept(raw, &slots)?;
        let numbers = numbers.into_inner();
        Ok((Program { slots, draws, numbers, kept, scripts }, writes))
    }

    fn kept(&self, raw: &RawKind, slots: &[(String, Holds)]) -> Result<Option<Piece>, Wrong> {
        let Some(kept) = &raw.kept else { return Ok(None) };
        let line = line_of(self.text, kept.span().start);
        let pieces =
            sql::statements(kept.get_ref(), line).map_err(|(line, why)| Wrong::toml(line, why))?;
        let [piece] = &pieces[..] else {
            return Err(Wrong::toml(line, "kept must be one query".to_owned()));
        };
        let known = |name: &str| slots.iter().any(|(slot, _)| slot == name);
        match piece.names().find(|name| !known(name)) {
            Some(name) => Err(Wrong::toml(line, format!("no parameter is called :{name}"))),
            None => Ok(Some(piece.clone())),
        }
    }

    fn step(
        &self,
        piece: &Piece,
        dialect: Dialect,
        slots: &mut Vec<(String, Holds)>,
        draws: &mut Vec<(usize, Expression)>,
    ) -> Result<Step, Trouble> {
        let words: Vec<&str> = piece.words.iter().map(String::as_str).collect();
        if let Some(frame) = pgbench::frame(&words) {
            return Ok(frame);
        }
        let mut slot = |name: &str, returned: bool| {
            if let Some(slot) = slots.iter().position(|(known, _)| known == name) {
                return Ok(slot);
            }
            if returned {
                slots.push((name.to_owned(), Holds::Text));
            } else {
                let setting = self.setting(name);
                let setting = setting.ok_or_else(|| format!("nothing is called :{name}"))?;
                draws.push((slots.len(), setting));
                slots.push((name.to_owned(), Holds::Int));
            }
            Ok(slots.len() - 1)
        };
        statement(piece, dialect, &mut slot).map(Step::Statement)
    }

    /// The places of the parameters, and their expressions in an order in which each needs only
    /// earlier ones.
    fn parameters(&self, raw: &RawKind, numbers: &RefCell<Vec<Wanted>>) -> Result<Made, Wrong> {
        let names: Vec<&str> = raw.parameters.keys().map(String::as_str).collect();
        let known = Known { maker: self, names: &names, numbers };
        let mut parsed = Vec::new();
        for text in raw.parameters.values() {
            let line = line_of(self.text, text.span().start);
            let made = parser::parse(text.get_ref(), &known);
            parsed.push(made.map_err(|why| Wrong::toml(line, why))?);
        }
        let order = order(&parsed).map_err(|at| {
            let line = line_of(self.text, raw.parameters[names[at]].span().start);
            Wrong::toml(line, format!("'{}' needs itself", names[at]))
        })?;
        let mut holds = vec![Holds::Text; names.len()];
        let mut draws = Vec::new();
        for at in order {
            holds[at] = parsed[at].holds(&holds);
            draws.push((at, parsed[at].clone()));
        }
        let slots = names.iter().map(|name| (*name).to_owned()).zip(holds).collect();
        Ok((slots, draws))
    }
}

/// Places and expressions.
type Made = (Vec<(String, Holds)>, Vec<(usize, Expression)>);

/// An order in which each expression needs only earlier ones.
///
/// # Errors
/// One that needs itself.
pub(super) fn order(expressions: &[Expression]) -> Result<Vec<usize>, usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < expressions.len() {
        let ready = |expression: &Expression| {
            let mut ready = true;
            expression.walk(&mut |part| {
                ready &= !matches!(part, Expression::Slot(slot) if !order.contains(slot));
            });
            ready
        };
        let next =
            (0..expressions.len()).find(|at| !order.contains(at) && ready(&expressions[*at]));
        let stuck = || (0..expressions.len()).find(|at| !order.contains(at)).unwrap_or(0);
        let next = next.ok_or_else(stuck)?;
        order.push(next);
    }
    Ok(order)
}

/// Puts BEGIN and COMMIT around the steps of a transaction that has several and no frame.
fn frame(steps: &mut Vec<(usize, Step)>) -> Result<(), pgbench::Refused> {
    let Some(last) = steps.last().map(|(line, _)| *line) else {
        return Err((1, "no statement".to_owned()));
    };
    let framed = |(_, step): &(usize, Step)| !matches!(step, Step::Statement(_));
    if !steps.iter().any(framed) {
        if steps.len() > 1 {
            steps.insert(0, (steps[0].0, Step::Begin));
            steps.push((last, Step::Commit));
        }
        return Ok(());
    }
    let inner = &steps[1..steps.len() - 1];
    let begins = matches!(steps[0].1, Step::Begin);
    let ends = matches!(steps[steps.len() - 1].1, Step::Commit | Step::Rollback);
    match inner.iter().find(|step| framed(step)) {
        Some((line, _)) => Err((*line, "one transaction per file".to_owned())),
        None if begins && ends && !inner.is_empty() => Ok(()),
        None => Err((last, "BEGIN and COMMIT must be the first and the last".to_owned())),
    }
}

/// What names in the parameters of a kind stand for.
struct Known<'a> {
    maker: &'a Maker<'a>,
    names: &'a [&'a str],
    numbers: &'a RefCell<Vec<Wanted>>,
}

impl parser::Names for Known<'_> {
    fn value(&self, name: &str) -> Option<Expression> {
        let own = self.names.iter().position(|known| *known == name).map(Expression::Slot);
        own.or_else(|| self.maker.setting(name))
    }

    fn number(&self, sequence: &str, takes: bool) -> Result<usize, Trouble> {
        let found = self.maker.sequences.iter().position(|known| known.name == sequence);
        let sequence = found.ok_or_else(|| format!("there is no [sequences.{sequence}]"))?;
        let mut numbers = self.numbers.borrow_mut();
        let wanted = Wanted { sequence, takes };
        if !takes && let Some(known) = numbers.iter().position(|known| *known == wanted) {
            return Ok(known);
        }
        if numbers.len() == NUMBERS_MAX {
            return Err(format!("more than {NUMBERS_MAX} numbers of sequences"));
        }
        numbers.push(wanted);
        Ok(numbers.len() - 1)
    }

    fn lines(&self, file: &str) -> Result<Arc<Vec<Value>>, Trouble> {
        self.maker.files.lines(file)
    }
}
