//! Printed figures: `papers/NAME.toml`.

use events::Hint;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name and text of every paper, the newest first.
const SHIPPED: &[(&str, &str)] = &[
    ("wang2011", include_str!("../../../papers/wang2011.toml")),
    ("wang2010", include_str!("../../../papers/wang2010.toml")),
    ("petrov2010", include_str!("../../../papers/petrov2010.toml")),
    ("lee2008", include_str!("../../../papers/lee2008.toml")),
    ("oi2007", include_str!("../../../papers/oi2007.toml")),
];

/// What cannot be shown.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No paper of that name.
    #[error("no paper '{name}'")]
    NoPaper {
        /// What was asked for.
        name: String,
    },
    /// A data file is not what it should be.
    #[error("papers/{name}.toml: {cause}")]
    Data {
        /// The paper.
        name: String,
        /// What is wrong.
        cause: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let names = SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        Some(format!("there are {names}"))
    }
}

/// A paper and its printed figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name on the command line.
    pub name: String,
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: Vec<String>,
    /// Year.
    pub year: u32,
    /// Where it appeared.
    pub venue: String,
    /// The figures.
    pub entry: Vec<Entry>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A fact of the setup or of a device, which experiments and profiles are made from.
    Input,
    /// What came out.
    Outcome,
    /// Neither: history, other people's work.
    Context,
}

/// Which side of the printed figure is meant, where it is a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// More than this.
    AtLeast,
    /// Less than this.
    AtMost,
}

/// A printed figure or statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name within the paper.
    pub id: String,
    /// What it is.
    pub role: Role,
    /// The figure, the two ends of a range, or the statement in our words.
    pub value: toml::Value,
    /// Unit of a figure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Under which conditions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conditions: String,
    /// Section, table, figure.
    pub place: String,
    /// `printed`, `derived` (arithmetic over printed figures) or `secondary` (another source).
    pub provenance: String,
    /// Whether the figure is a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Profiles that were made from it: on these it is given back, not predicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibrates: Vec<String>,
    /// Why an outcome is not compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_compared: String,
    /// What is missing where the difference is large or the statement does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

impl Entry {
    /// The figure, where it is one.
    pub fn number(&self) -> Option<f64> {
        number(&self.value)
    }

    /// The ends, where it is a range.
    pub fn range(&self) -> Option<(f64, f64)> {
        match self.value.as_array().map(Vec::as_slice) {
            Some([low, high]) => Some((number(low)?, number(high)?)),
            _ => None,
        }
    }

    /// As a reader sees it.
    pub fn text(&self) -> String {
        // Quotients were transcribed with all their digits.
        let plain = |value: f64| format!("{}", (value * 1e5).round() / 1e5);
        match (self.number(), self.range()) {
            (Some(value), _) => plain(value),
            (_, Some((low, high))) => format!("{} to {}", plain(low), plain(high)),
            _ => self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned),
        }
    }
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

impl Paper {
    /// A printed figure.
    ///
    /// # Panics
    /// Where the paper has no such figure: the files are part of the program, and a test reads all.
    pub fn number(&self, id: &str) -> f64 {
        let entry = self.entry.iter().find(|entry| entry.id == id);
        let number = entry.and_then(Entry::number);
        number.unwrap_or_else(|| panic!("{} has no figure {id}", self.name))
    }

    /// `Wang et al. 2011`
    pub fn short(&self) -> String {
        let first = self.authors.first().map_or("", String::as_str);
        let name = first.split_whitespace().last().unwrap_or("");
        let others = if self.authors.len() > 1 { " et al." } else { "" };
        format!("{name}{others} {}", self.year)
    }

    /// `Authors, title, year`
    pub fn cite(&self) -> String {
        format!("{}, {}, {}", self.authors.join(", "), self.title, self.year)
    }
}

/// The paper of that name, or all.
///
/// # Errors
/// Where there is none of that name or its file is no such file.
pub fn papers(name: Option<&str>) -> Result<Vec<Paper>, Error> {
    let wanted = SHIPPED.iter().filter(|(own, _)| name.is_none_or(|name| name == *own));
    let found: Result<Vec<Paper>, Error> = wanted
        .map(|(own, text)| {
            toml::from_str(text).map_err(|error: toml::de::Error| Error::Data {
                name: (*own).to_owned(),
                cause: events::one_line(error.message()),
            })
        })
        .collect();
    let found = found?;
    match name {
        Some(name) if found.is_empty() => Err(Error::NoPaper { name: name.to_owned() }),
        _ => Ok(found),
    }
}
