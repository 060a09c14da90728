//! The file of a sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Settings;
use super::expect::Expect;
use super::select::Selection;
use crate::Error;

/// The sweeps that come with wearmark, by name.
pub const MODERN: [(&str, &str); 6] = [
    ("modern/page-size", include_str!("../../../../studies/modern/page-size.toml")),
    ("modern/memory-or-disk", include_str!("../../../../studies/modern/memory-or-disk.toml")),
    ("modern/slc-cache", include_str!("../../../../studies/modern/slc-cache.toml")),
    ("modern/burst-credits", include_str!("../../../../studies/modern/burst-credits.toml")),
    ("modern/in-place-or-log", include_str!("../../../../studies/modern/in-place-or-log.toml")),
    ("modern/group-commit", include_str!("../../../../studies/modern/group-commit.toml")),
];

/// Names that a command may use besides those of the axes.
const PLACES: [&str; 2] = ["once", "dir"];

/// A sweep.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// Name and title.
    pub study: Header,
    /// What runs.
    pub sweep: Sweep,
    /// The settings, the last one changing first.
    pub axis: Vec<Axis>,
    /// What is kept of a command's JSON.
    pub figure: Vec<Figure>,
    /// What is drawn.
    pub picture: Picture,
    /// What is expected.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

/// `[study]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Name of the run directory: letters, digits, `-` and `_`.
    pub name: String,
    /// The question, for the page's title.
    pub title: String,
}

/// `[sweep]`: commands are words without quotes; `{NAME}` is the value of that axis, `{dir}` the
/// directory of the cell and `{once}` that of what is done once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// What is asked, and of what.
    pub question: String,
    /// What one learns of it.
    pub learned: String,
    /// Commands that run once, before all cells, in `{once}`.
    #[serde(default)]
    pub once: Vec<String>,
    /// Commands that a cell runs first.
    #[serde(default)]
    pub before: Vec<String>,
    /// The command whose JSON has the figures; it runs in `{dir}`.
    pub run: String,
    /// Files that lie in `{dir}`, by name; their text may use the same names.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// `[[axis]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The name that commands use.
    pub name: String,
    /// What it is, for tables and pictures; the name where absent.
    #[serde(default)]
    pub label: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Axis {
    /// What it is called on pages.
    pub fn title(&self) -> &str {
        if self.label.is_empty() { &self.name } else { &self.label }
    }
}

/// `[[figure]]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// Its unit, after `times`.
    #[serde(default)]
    pub unit: String,
    /// Where it is in the JSON.
    pub at: Selection,
    /// This share of the histogram that is there lies below it.
    #[serde(default)]
    pub quantile: Option<f64>,
    /// It is divided by what is there.
    #[serde(default)]
    pub per: Option<Selection>,
    /// Factor on it.
    #[serde(default = "one")]
    pub times: f64,
    /// Which is better; `compare` looks at those of which that is known.
    #[serde(default)]
    pub better: Option<Better>,
}

/// Whether more of a figure is better, or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Transactions.
    More,
    /// Response times.
    Less,
}

fn one() -> f64 {
    1.0
}

/// `[picture]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The figure that is drawn.
    pub figure: String,
    /// The axis along which.
    pub over: String,
    /// The axis whose values are drawn beside each other.
    #[serde(default)]
    pub by: Option<String>,
    /// Whether decades are equal steps.
    #[serde(default)]
    pub logarithmic: bool,
}

impl SweepFile {
    /// Reads a sweep with its text: a shipped one by its name, or a path. `None` where the file is
    /// no sweep.
    ///
    /// # Errors
    /// A file that cannot be read, or a sweep with a mistake.
    pub fn read(path: &Path) -> Result<Option<(Self, String)>, Error> {
        let shipped = MODERN.iter().find(|(name, _)| path == Path::new(name));
        let text = match shipped.filter(|_| !path.exists()) {
            Some((_, text)) => (*text).to_owned(),
            None if path.is_file() => {
                std::fs::read_to_string(path).map_err(Error::io(path, "read"))?
            }
            None => return Ok(None),
        };
        let is_sweep =
            toml::from_str::<toml::Table>(&text).is_ok_and(|it| it.contains_key("sweep"));
        if !is_sweep {
            return Ok(None);
        }
        Self::parse(&text, path).map(|file| Some((file, text)))
    }

    /// Parses and checks the text of a sweep; `path` is for messages.
    ///
    /// # Errors
    /// A mistake in it.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let bad = |line, cause: &str| Error::StudyFile {
            path: path.into(),
            line,
            cause: events::one_line(cause),
        };
        let parsed: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            bad(line, error.message())
        })?;
        parsed.check().map_err(|cause| bad(None, &cause))?;
        Ok(parsed)
    }

    fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = |name: &str| !name.is_empty() && name.chars().all(plain);
        if !is_name(&self.study.name) {
            let name = &self.study.name;
            return Err(format!("name: '{name}' must be letters, digits, '-' and '_'"));
        }
        let mut known: BTreeSet<&str> = PLACES.into();
        for axis in &self.axis {
            if !is_name(&axis.name) || !known.insert(&axis.name) {
                return Err(format!("axis: '{}' is no name of its own", axis.name));
            }
            let distinct: BTreeSet<&String> = axis.values.iter().collect();
            if axis.values.is_empty() || distinct.len() < axis.values.len() {
                return Err(format!("axis '{}': its values must differ", axis.name));
            }
        }
        let Sweep { once, before, run, files, .. } = &self.sweep;
        if let Some(name) = files.keys().find(|name| name.contains('/') || name.starts_with('.')) {
            return Err(format!("files: '{name}' is no plain file name"));
        }
        let unknown = |text: &String, known: &BTreeSet<&str>| {
            let name = places(text).find(|name| !known.contains(*name))?;
            Some(format!("no axis is called '{name}', which '{text}' uses"))
        };
        let mut of_cells = [run].into_iter().chain(before).chain(files.values());
        // What is done once knows no cell.
        let of_all = once.iter().find_map(|text| unknown(text, &["once"].into()));
        if let Some(cause) = of_all.or_else(|| of_cells.find_map(|text| unknown(text, &known))) {
            return Err(cause);
        }
        self.figure(&self.picture.figure)?;
        for name in [&self.picture.over].into_iter().chain(&self.picture.by) {
            self.axis(name)?;
        }
        for expect in &self.expect {
            self.figure(&expect.figure)?;
            for (name, value) in expect.of.iter().chain(&expect.than) {
                if !self.axis(name)?.values.contains(value) {
                    return Err(format!("expect: '{value}' is no value of '{name}'"));
                }
            }
            if !expect.of.keys().eq(expect.than.keys()) {
                return Err(format!("expect: '{}' compares unlike settings", expect.what));
            }
        }
        Ok(())
    }

    /// The axis of this name.
    pub(super) fn axis(&self, name: &str) -> Result<&Axis, String> {
        let own = self.axis.iter().find(|axis| axis.name == name);
        own.ok_or_else(|| format!("no axis is called '{name}'"))
    }

    /// The figure of this name.
    pub(super) fn figure(&self, name: &str) -> Result<&Figure, String> {
        let own = self.figure.iter().find(|figure| figure.name == name);
        own.ok_or_else(|| format!("no figure is called '{name}'"))
    }

    /// All combinations of settings, the last axis changing first.
    pub fn combinations(&self) -> Vec<Settings> {
        let mut all = vec![Settings::new()];
        for axis in &self.axis {
            let with = |settings: Settings| {
                axis.values.iter().map(move |value| {
                    let mut settings = settings.clone();
                    settings.insert(axis.name.clone(), value.clone());
                    settings
                })
            };
            all = all.into_iter().flat_map(with).collect();
        }
        all
    }
}

/// The names in braces: lower case letters, digits, `-` and `_`, so that TOML's inline tables are
/// none.
fn places(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let name = rest.split_once('}')?.0;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        (!name.is_empty() && name.chars().all(plain)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        [study]
        name = "small"
        title = "Which?"
        [sweep]
        question = "Which one?"
        learned = "This one."
        run = "sim t.parquet --profile {device} --seed {seed}"
        [[axis]]
        name = "device"
        values = ["a", "b"]
        [[axis]]
        name = "seed"
        values = ["1", "2", "3"]
        [[figure]]
        name = "mean"
        at = "devices.0.mean"
        [picture]
        figure = "mean"
        over = "seed"
        by = "device"
        [[expect]]
        what = "a takes longer"
        figure = "mean"
        of = { device = "a" }
        than = { device = "b" }
        at_least = 1.5
    "#;

    #[test]
    fn all_combinations_in_order() {
        let file = SweepFile::parse(SMALL, Path::new("small.toml")).unwrap();
        let all = file.combinations();
        let shown: Vec<String> =
            all.iter().map(|it| format!("{}{}", it["device"], it["seed"])).collect();
        assert_eq!(shown, ["a1", "a2", "a3", "b1", "b2", "b3"]);
    }

    #[test]
    fn mistakes_are_told() {
        for (from, to, cause) in [
            ("{seed}", "{sead}", "no axis is called 'sead'"),
            ("name = \"seed\"", "name = \"dir\"", "'dir' is no name of its own"),
            ("\"2\", \"3\"", "\"1\", \"3\"", "must differ"),
            ("over = \"seed\"", "over = \"rate\"", "no axis is called 'rate'"),
            ("figure = \"mean\"\n        over", "figure = \"p99\"\n        over", "called 'p99'"),
            ("device = \"b\"", "device = \"c\"", "'c' is no value of 'device'"),
            ("than = { device = \"b\" }", "than = { seed = \"1\" }", "unlike settings"),
            ("name = \"small\"", "name = \"a b\"", "must be letters"),
            ("[picture]", "[pictures]", "pictures"),
            ("learned", "once = [\"sim {seed}\"]\n        learned", "no axis is called 'seed'"),
        ] {
            let text = SMALL.replacen(from, to, 1);
            assert_ne!(text, SMALL, "{from}");
            let error = SweepFile::parse(&text, Path::new("small.toml")).unwrap_err().to_string();
            assert!(error.contains(cause), "{from}: {error}");
        }
    }

    #[test]
    fn those_that_are_shipped_are_sound() {
        for (name, text) in MODERN {
            let file = SweepFile::parse(text, Path::new(name)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(name.strip_prefix("modern/"), Some(&*file.study.name));
            assert!(!file.expect.is_empty(), "{name}: what it teaches is checked");
        }
    }
}
