//! From the directory of a workload to its definition.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use stats::rng::mix;
use toml::Spanned;
use units::Nanos;

use super::expression::{Expression, Given, Trouble};
use super::kinds::{Maker, RawKind, order};
use super::rows::{Content, OwnTable, TableSpec};
use super::value::Value;
use super::{
    Body, Choice, Definition, Dialect, Invariant, OwnKind, Phase, Sequence, identifier, parser,
    shipped, sql,
};
use crate::Error;
use crate::workload::Kind;
use crate::workload::schema::{self, Column, Table, Type};

/// The file that makes a directory a workload.
const FILE: &str = "workload.toml";

/// Kinds of a workload at most: their codes are bytes, and each has histograms.
const KINDS_MAX: usize = 64;

/// `workload.toml`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Option<String>,
    about: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, i64>,
    #[serde(default)]
    sequences: BTreeMap<String, Spanned<RawSequence>>,
    #[serde(default)]
    tables: BTreeMap<String, Spanned<RawTable>>,
    #[serde(default)]
    kinds: BTreeMap<String, Spanned<RawKind>>,
    #[serde(default)]
    mixes: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
    #[serde(default)]
    phases: Vec<Spanned<RawPhase>>,
    #[serde(default)]
    invariants: BTreeMap<String, Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSequence {
    start: String,
    /// A query for the first number of a run.
    from: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    rows: Option<String>,
    #[serde(default)]
    columns: BTreeMap<String, Spanned<String>>,
    csv: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPhase {
    #[serde(rename = "for")]
    length: Nanos,
    mix: Option<String>,
    rate: Option<Factor>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Factor {
    Steady(f64),
    Ramp([f64; 2]),
}

/// What is wrong with a workload, and where.
#[derive(Debug)]
pub(super) struct Wrong {
    file: String,
    line: Option<usize>,
    what: String,
}

impl Wrong {
    /// At a line of a file.
    pub fn at(file: &str, line: usize, what: String) -> Self {
        Self { file: file.to_owned(), line: Some(line), what }
    }

    /// With a whole file.
    pub fn file(file: &str, what: String) -> Self {
        Self { file: file.to_owned(), line: None, what }
    }

    /// At a line of `workload.toml`.
    pub fn toml(line: usize, what: String) -> Self {
        Self::at(FILE, line, what)
    }

    fn into_error(self, files: &Files) -> Error {
        let place = files.place(&self.file);
        let place = self.line.map_or_else(|| place.clone(), |line| format!("{place}:{line}"));
        let hint = "docs/guide/own-transactions.md shows every key and function";
        Error::Workload { place, what: self.what, hint: hint.to_owned() }
    }
}

/// The line, from 1, of a byte of a text.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    text[..byte.min(text.len())].matches('\n').count() + 1
}

/// The files of a workload: of a directory, or shipped.
pub(super) struct Files {
    directory: Option<PathBuf>,
    shipped: shipped::Texts,
    /// What was read, by name.
    read: RefCell<BTreeMap<String, String>>,
}

impl Files {
    /// A file's place, for messages.
    fn place(&self, file: &str) -> String {
        match &self.directory {
            Some(directory) => directory.join(file).display().to_string(),
            None => file.to_owned(),
        }
    }

    /// The text of a file, where there is one.
    fn get(&self, file: &str) -> Result<Option<String>, Wrong> {
        if let Some((_, text)) = self.shipped.iter().find(|(name, _)| *name == file) {
            return Ok(Some((*text).to_owned()));
        }
        // A script that is named on the command line need not be in the directory of the workload.
        let path = match &self.directory {
            Some(directory) => directory.join(file),
            None => PathBuf::from(file),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Wrong::file(file, error.to_string())),
        }
    }

    fn keep(&self, file: &str, text: &str) {
        self.read.borrow_mut().insert(file.to_owned(), text.to_owned());
    }

    /// The text of a file that must be there.
    pub fn needed(&self, file: &str) -> Result<String, Wrong> {
        let text = self.get(file)?;
        let text = text.ok_or_else(|| Wrong::file(file, "the file is missing".to_owned()))?;
        self.keep(file, &text);
        Ok(text)
    }

    /// The SQL for a DBMS: `NAME.DBMS.sql`, else `NAME.sql`; with the name of the file.
    pub fn of_dialect(
        &self,
        file: &str,
        dialect: Dialect,
    ) -> Result<Option<(String, String)>, Wrong> {
        let stem = file.strip_suffix(".sql").unwrap_or(file);
        for name in [format!("{stem}.{}.sql", dialect.name()), file.to_owned()] {
            if let Some(text) = self.get(&name)? {
                self.keep(&name, &text);
                return Ok(Some((name, text)));
            }
        }
        Ok(None)
    }

    /// The lines of a file of values.
    pub fn lines(&self, file: &str) -> Result<Arc<Vec<Value>>, Trouble> {
        let text = self.get(file).map_err(|wrong| wrong.what)?;
        let text = text.ok_or_else(|| format!("'{}' is missing", self.place(file)))?;
        let lines = text.lines().filter(|line| !line.is_empty()).map(Value::of_text);
        let lines: Vec<Value> = lines.collect();
        if lines.is_empty() {
            return Err(format!("'{}' has no lines", self.place(file)));
        }
        Ok(Arc::new(lines))
    }

    fn csv(&self, file: &str) -> Result<(Vec<String>, Vec<Vec<Value>>), Wrong> {
        let text = self.get(file)?;
        let text = text.ok_or_else(|| Wrong::file(file, "the file is missing".to_owned()))?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let wrong = |error: &csv::Error| {
            let line = error.position().map_or(1, csv::Position::line) as usize;
            Wrong::at(file, line, events::one_line(&error.to_string()))
        };
        let header = reader.headers().map_err(|error| wrong(&error))?;
        let names = header.iter().map(str::to_owned).collect();
        let cell = |cell: &str| {
            if cell.is_empty() { Value::Null } else { Value::Text(cell.to_owned()) }
        };
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| wrong(&error))?;
            rows.push(record.iter().map(cell).collect());
        }
        Ok((names, rows))
    }
}

/// Reads a workload; none where the place is neither a shipped one nor a directory that holds one.
pub(super) fn read(place: &str, choice: &Choice) -> Result<Option<Definition>, Error> {
    let shipped = shipped::ALL.iter().find(|(name, _)| *name == place);
    let directory = shipped.is_none().then(|| PathBuf::from(place));
    if directory.as_ref().is_some_and(|directory| !directory.join(FILE).is_file()) {
        let directory = Path::new(place);
        if !directory.is_dir() && !place.contains(std::path::MAIN_SEPARATOR) {
            return Ok(None);
        }
        return Err(Error::Workload {
            place: directory.join(FILE).display().to_string(),
            what: "the file is missing".to_owned(),
            hint: "name a directory that has it, or one of the workloads that ship: see \
                   docs/guide/own-transactions.md"
                .to_owned(),
        });
    }
    let files = Files {
        directory,
        shipped: shipped.map_or(&[], |(_, texts)| texts),
        read: RefCell::default(),
    };
    Reading::new(&files, place, choice)
        .and_then(|mut reading| reading.all())
        .map(Some)
        .map_err(|wrong| wrong.into_error(&files))
}

struct Reading<'a> {
    files: &'a Files,
    place: &'a str,
    choice: &'a Choice,
    text: String,
    raw: Raw,
}

/// The settings, and nothing else, as names.
struct Settings<'a> {
    values: &'a BTreeMap<String, i64>,
    /// Columns of a table.
    columns: &'a [&'a str],
    files: &'a Files,
}

impl parser::Names for Settings<'_> {
    fn value(&self, name: &str) -> Option<Expression> {
        let column = self.columns.iter().position(|known| *known == name).map(Expression::Slot);
        let setting = || self.values.get(name).map(|value| Value::Int(*value));
        column.or_else(|| setting().map(Expression::Constant))
    }
    fn number(&self, _: &str, _: bool) -> Result<usize, Trouble> {
        Err("numbers of sequences are for transactions".to_owned())
    }
    fn lines(&self, file: &str) -> Result<Arc<Vec<Value>>, Trouble> {
        self.files.lines(file)
    }
}

impl<'a> Reading<'a> {
    fn new(files: &'a Files, place: &'a str, choice: &'a Choice) -> Result<Self, Wrong> {
        let text = files.needed(FILE)?;
        let mut raw: Raw = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(&text, span.start));
            Wrong::toml(line, events::one_line(error.message()))
        })?;
        for (name, value) in &choice.sizes {
            let Some(setting) = raw.settings.get_mut(name) else {
                let known: Vec<&str> = raw.settings.keys().map(String::as_str).collect();
                let what = format!("there is no setting '{name}' among: {}", known.join(", "));
                return Err(Wrong::file(FILE, what));
            };
            *setting = *value;
        }
        Ok(Self { files, place, choice, text, raw })
    }

    fn line<T>(&self, of: &Spanned<T>) -> usize {
        line_of(&self.text, of.span().start)
    }

    fn all(&mut self) -> Result<Definition, Wrong> {
        let sequences = self.sequences()?;
        let (names, facts, programs, own) = self.kinds(&sequences)?;
        let weights = match &self.choice.mix {
            None => own,
            Some(mix) => self.mix(mix, &names, None)?,
        };
        if !weights.iter().any(|weight| *weight > 0.0) {
            return Err(Wrong::file(FILE, "no kind has a weight above 0".to_owned()));
        }
        let phases = self.phases(&names, &weights)?;
        let (schema, after) = (self.ddl("schema.sql")?, self.ddl("after-load.sql")?);
        let tables = self.tables(&schema)?;
        let invariants = self.invariants()?;
        let fingerprint = fingerprint(&schema, &after, &tables);
        let leak = |table: TableSpec| Table::Own(OwnTable(Box::leak(Box::new(table))));
        let directory = Path::new(self.place).file_name();
        let last = || directory.map_or("own".to_owned(), |name| name.to_string_lossy().into());
        let name = self.raw.name.clone().unwrap_or_else(last);
        let about = self.raw.about.clone();
        Ok(Definition {
            identifier: identifier(&name),
            about: about.unwrap_or_else(|| format!("the workload '{name}' of its user")),
            name,
            mix: self.choice.mix.clone(),
            sizes: self.choice.sizes.clone(),
            files: self.files.read.take(),
            kinds: facts.into_iter().map(|facts| Kind::Own(OwnKind(facts))).collect(),
            body: Some(Body {
                programs,
                weights,
                phases,
                sequences,
                tables: tables.into_iter().map(leak).collect(),
                schema,
                after,
                invariants,
                fingerprint,
            }),
        })
    }

    /// An integer that an expression of settings says.
    fn integer(&self, text: &str, line: usize) -> Result<i64, Wrong> {
        let names = Settings { values: &self.raw.settings, columns: &[], files: self.files };
        let value = parser::parse(text, &names).and_then(|expression| match expression {
            Expression::Constant(value) => {
                value.integer().ok_or_else(|| format!("{value} is no integer"))
            }
            _ => Err("it must be a constant".to_owned()),
        });
        value.map_err(|why| Wrong::toml(line, format!("'{text}': {why}")))
    }

    fn sequences(&self) -> Result<Vec<Sequence>, Wrong> {
        let each = |(name, raw): (&String, &Spanned<RawSequence>)| {
            let start = self.integer(&raw.get_ref().start, self.line(raw))?;
            Ok(Sequence { name: name.clone(), start, from: raw.get_ref().from.clone() })
        };
        self.raw.sequences.iter().map(each).collect()
    }

    /// Names, facts, programs and weights of the kinds, as they follow each other in the file.
    fn kinds(&self, sequences: &[Sequence]) -> Result<Kinds, Wrong> {
        let mut raw: Vec<(String, usize, RawKind)> = self
            .raw
            .kinds
            .iter()
            .map(|(name, kind)| (name.clone(), kind.span().start, kind.get_ref().clone()))
            .collect();
        raw.sort_by_key(|(_, start, _)| *start);
        if !self.choice.scripts.is_empty() {
            raw.clear();
        }
        for (path, weight) in &self.choice.scripts {
            let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into());
            let same = raw.iter().filter(|(name, ..)| *name == stem).count();
            let name = if same == 0 { stem } else { format!("{stem}-{}", same + 1) };
            raw.push((name, 0, RawKind::of_script(&path.to_string_lossy(), *weight)));
        }
        if raw.is_empty() || raw.len() > KINDS_MAX {
            let what = format!("{} kinds of transactions: it must be 1 to {KINDS_MAX}", raw.len());
            return Err(Wrong::file(FILE, what));
        }
        let settings = &self.raw.settings;
        let maker = Maker { files: self.files, settings, sequences, text: &self.text };
        let (mut names, mut facts, mut programs) = (Vec::new(), Vec::new(), Vec::new());
        let mut weights = Vec::new();
        for (code, (name, start, kind)) in (0..).zip(&raw) {
            if !(kind.weight >= 0.0 && kind.weight.is_finite()) {
                let what = format!("a weight of {}: it must not be below 0", kind.weight);
                return Err(Wrong::toml(line_of(&self.text, *start), what));
            }
            let (fact, program) = maker.make(name, code, kind)?;
            names.push(name.clone());
            weights.push(kind.weight);
            facts.push(&*Box::leak(Box::new(fact)));
            programs.push(program);
        }
        Ok((names, facts, programs, weights))
    }

    /// The weights of a mix.
    fn mix(&self, mix: &str, names: &[String], line: Option<usize>) -> Result<Vec<f64>, Wrong> {
        let Some(raw) = self.raw.mixes.get(mix) else {
            let known: Vec<&str> = self.raw.mixes.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what = format!("there is no mix '{mix}' among: {known}");
            return Err(Wrong { file: FILE.to_owned(), line, what });
        };
        let mut weights = vec![0.0; names.len()];
        for (name, weight) in raw.get_ref() {
            let line = self.line(raw);
            let at = names.iter().position(|known| known == name);
            let at = at.ok_or_else(|| {
                Wrong::toml(line, format!("the mix '{mix}' names '{name}', which is no kind"))
            })?;
            if !(*weight >= 0.0 && weight.is_finite()) {
                return Err(Wrong::toml(line, format!("a weight of {weight} in the mix '{mix}'")));
            }
            weights[at] = *weight;
        }
        if weights.iter().sum::<f64>() > 0.0 {
            return Ok(weights);
        }
        Err(Wrong::toml(self.line(raw), format!("all weights of the mix '{mix}' are 0")))
    }

    fn phases(&self, names: &[String], weights: &[f64]) -> Result<Vec<Phase>, Wrong> {
        let mut phases = Vec::new();
        for raw in &self.raw.phases {
            let (line, phase) = (self.line(raw), raw.get_ref());
            let weights = match &phase.mix {
                Some(mix) => self.mix(mix, names, Some(line))?,
                None => weights.to_vec(),
            };
            let rate = match phase.rate {
                None => (1.0, 1.0),
                Some(Factor::Steady(factor)) => (factor, factor),
                Some(Factor::Ramp([from, to])) => (from, to),
            };
            let known = |factor: f64| (0.0..=1e6).contains(&factor);
            if !known(rate.0) || !known(rate.1) {
                return Err(Wrong::toml(line, "a rate must be a factor from 0 to 10^6".to_owned()));
            }
            if phase.length == Nanos::ZERO {
                return Err(Wrong::toml(line, "a phase must last".to_owned()));
            }
            phases.push(Phase { length_ns: phase.length.0, weights, rate });
        }
        if !phases.is_empty() && phases.iter().all(|phase| phase.rate == (0.0, 0.0)) {
            return Err(Wrong::file(FILE, "nothing arrives in any phase".to_owned()));
        }
        Ok(phases)
    }

    /// The text of a file of SQL with the settings in it, by DBMS.
    fn ddl(&self, file: &str) -> Result<[String; 3], Wrong> {
        let mut texts = [const { String::new() }; 3];
        for dialect in Dialect::ALL {
            if let Some((name, text)) = self.files.of_dialect(file, dialect)? {
                texts[dialect as usize] = self.with_settings(&text, &name, 1)?;
            }
        }
        Ok(texts)
    }

    /// SQL with the settings in the places of their names.
    fn with_settings(&self, text: &str, file: &str, line: usize) -> Result<String, Wrong> {
        let wrong = |(line, why)| Wrong::at(file, line, why);
        let mut all = Vec::new();
        for piece in sql::statements(text, line).map_err(wrong)? {
            let settings = &self.raw.settings;
            if let Some(name) = piece.names().find(|name| !settings.contains_key(*name)) {
                return Err(Wrong::at(file, piece.line, format!("there is no setting :{name}")));
            }
            all.push(piece.text(|name| settings[name].to_string()));
        }
        Ok(all.join("; "))
    }

    fn invariants(&self) -> Result<Vec<Invariant>, Wrong> {
        let mut all: Vec<(usize, Invariant)> = Vec::new();
        for (states, raw) in &self.raw.invariants {
            let (line, text) = (self.line(raw), raw.get_ref());
            let mut sql = [const { String::new() }; 3];
            for dialect in Dialect::ALL {
                // A file, where it is named like one.
                let found = match text.strip_suffix(".sql") {
                    Some(_) => self.files.of_dialect(text, dialect)?,
                    None => Some((FILE.to_owned(), text.clone())),
                };
                let Some((file, text)) = found else {
                    return Err(Wrong::toml(line, format!("'{text}' is missing")));
                };
                let first = if file == FILE { line } else { 1 };
                sql[dialect as usize] = self.with_settings(&text, &file, first)?;
            }
            all.push((line, Invariant { states: states.clone(), sql }));
        }
        all.sort_by_key(|(line, _)| *line);
        Ok(all.into_iter().map(|(_, invariant)| invariant).collect())
    }

    /// Every table that the schema makes, with the rows that `workload.toml` gives it.
    fn tables(&self, schema: &[String; 3]) -> Result<Vec<TableSpec>, Wrong> {
        let mut names: Vec<String> = Vec::new();
        for text in schema {
            for piece in sql::statements(text, 1).unwrap_or_default() {
                let new: Vec<String> =
                    created(&piece).filter(|name| !names.contains(name)).collect();
                names.extend(new);
            }
        }
        if let Some((name, raw)) = self.raw.tables.iter().find(|(name, _)| !names.contains(name)) {
            let what = format!("schema.sql makes no table '{name}'");
            return Err(Wrong::toml(self.line(raw), what));
        }
        let of = |name: &String| match self.raw.tables.get(name) {
            Some(raw) => self.table(name, raw),
            None => Ok(table(name, &[], 0, Content::Made(Vec::new(), Vec::new()))),
        };
        names.iter().map(of).collect()
    }

    fn table(&self, name: &str, raw: &Spanned<RawTable>) -> Result<TableSpec, Wrong> {
        let (line, own) = (self.line(raw), raw.get_ref());
        if let Some(file) = &own.csv {
            if own.rows.is_some() || !own.columns.is_empty() {
                return Err(Wrong::toml(line, "a table has csv, or rows and columns".to_owned()));
            }
            let (columns, rows) = self.files.csv(file)?;
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            return Ok(table(name, &columns, rows.len() as u32, Content::Read(Arc::new(rows))));
        }
        let Some(rows) = &own.rows else {
            return Err(Wrong::toml(line, format!("the table '{name}' lacks rows, or csv")));
        };
        let rows = self.integer(rows, line)?;
        let Ok(rows) = u32::try_from(rows) else {
            return Err(Wrong::toml(line, format!("{rows} rows: it must be 0 to 2^32 - 1")));
        };
        let columns: Vec<&str> = own.columns.keys().map(String::as_str).collect();
        if columns.is_empty() {
            return Err(Wrong::toml(line, format!("the table '{name}' lacks columns")));
        }
        let values = &self.raw.settings;
        let names = Settings { values, columns: &columns, files: self.files };
        let mut expressions = Vec::new();
        for text in own.columns.values() {
            let made = parser::parse(text.get_ref(), &names);
            expressions.push(made.map_err(|why| Wrong::toml(self.line(text), why))?);
        }
        let order = order(&expressions).map_err(|at| {
            Wrong::toml(line, format!("the column '{}' needs itself", columns[at]))
        })?;
        let made = table(name, &columns, rows, Content::Made(expressions, order));
        if rows > 0 {
            tried(&made).map_err(|why| Wrong::toml(line, format!("row 1 of {name}: {why}")))?;
        }
        Ok(made)
    }
}

/// Makes the first row, to see mistakes before anything is created.
fn tried(table: &TableSpec) -> Result<(), Trouble> {
    let Content::Made(columns, order) = &table.content else { return Ok(()) };
    let mut slots = vec![Value::Null; columns.len()];
    for &column in order {
        slots[column] = columns[column].value(&mut Given {
            rng: &mut stats::rng::Rng::new(1),
            slots: &slots,
            numbers: &[],
            row: 1,
            terminal: 0,
            now_ms: 0,
        })?;
    }
    Ok(())
}

/// Names, facts, programs and weights.
type Kinds = (Vec<String>, Vec<&'static super::Facts>, Vec<super::Program>, Vec<f64>);

fn table(name: &str, columns: &[&str], rows: u32, content: Content) -> TableSpec {
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let column = |name: &&str| Column { name: leak(name), holds: Type::Text(0), nullable: true };
    let columns: Vec<Column> = columns.iter().map(column).collect();
    let definition = schema::Definition {
        name: leak(name),
        columns: Box::leak(columns.into_boxed_slice()),
        key: "",
        index: None,
        row_bytes: 100,
    };
    TableSpec { definition, rows, content, key: hash(name, 1) }
}

/// The name of the table that a statement makes, where it makes one.
fn created(piece: &sql::Piece) -> impl Iterator<Item = String> + use<> {
    let text = piece.text(|name| format!(":{name}"));
    let makes = piece.words.first().is_some_and(|word| word == "CREATE")
        && piece.words.iter().take(3).any(|word| word == "TABLE");
    let place = text.to_uppercase().find("TABLE").filter(|_| makes);
    let name = place.and_then(|at| {
        let rest = text[at + 5..].trim_start();
        let skips = rest.to_uppercase().starts_with("IF NOT EXISTS");
        let rest = if skips { rest[13..].trim_start() } else { rest };
        let end = rest.find(|c: char| c == '(' || c.is_whitespace())?;
        Some(rest[..end].trim_matches(['"', '`']).to_owned())
    });
    name.into_iter()
}

fn hash(text: &str, seed: u64) -> u64 {
    text.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)))
}

/// Names what is loaded: tables, rows and columns, and the SQL around them.
fn fingerprint(schema: &[String; 3], after: &[String; 3], tables: &[TableSpec]) -> i64 {
    let mut all = hash("own workload 1", 7);
    for text in schema.iter().chain(after) {
        all = hash(text, mix(all));
    }
    for table in tables {
        all = hash(table.definition.name, mix(all ^ u64::from(table.rows)));
        let names: Vec<&str> = table.definition.columns.iter().map(|column| column.name).collect();
        all = hash(&names.join(","), mix(all));
        all = match &table.content {
            Content::Made(columns, _) => hash(&format!("{columns:?}"), mix(all)),
            Content::Read(rows) => hash(&format!("{rows:?}"), mix(all)),
        };
    }
    all as i64
}
