//! From the parameter files of DiskSim to a profile.
//!
//! DiskSim (Bucy, Schindler, Schlosser and Ganger, reference manual, CMU-PDL-08-101) ships files of
//! measured drives: `NAME.parv` or `NAME.diskspecs` with controller and buffer, the layout and
//! mechanics in the `.model` file that it names, the seek times in the `.seek` file that that one
//! names. [`import`] takes one of the first two and asks for the others by name. Every drive goes
//! the same way; nothing is tuned, nothing comes from measured requests.
//!
//! What the files state and the model has no counterpart for is listed by [`Imported::ignored`]
//! where it is switched on, so that a reader knows.
//!
//! Tested on quoted fragments, and on eight real drives where their files are at hand.

mod convert;
mod syntax;
#[cfg(test)]
mod tests;

use events::Hint;
use thiserror::Error;

use self::syntax::{Block, File, Value};
use crate::imported::Imported;

/// Why a drive could not be taken over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that another one names could not be read.
    #[error("{file}: {cause}")]
    Read {
        /// The file, as it was named.
        file: String,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// A file is not in the syntax.
    #[error("{file}:{line}: {cause}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        cause: String,
    },
    /// A parameter is missing or has a value that makes no sense.
    #[error("{file}:{line}: '{key}': {cause}")]
    Parameter {
        /// The file.
        file: String,
        /// Line of the block that it belongs to, from 1.
        line: usize,
        /// Its name.
        key: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The drive as a whole is impossible.
    #[error(transparent)]
    Impossible(#[from] crate::Error),
}

impl Hint for ImportError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { .. } => "the .diskspecs, .model and .seek files of a drive belong into \
                                  one directory"
                .to_owned(),
            Self::Syntax { .. } | Self::Parameter { .. } => {
                "the DiskSim 4.0 manual, CMU-PDL-08-101, describes the form of these files"
                    .to_owned()
            }
            Self::Impossible(cause) => return cause.hint(),
        })
    }
}

/// The files of a drive, read so far.
struct Files<'a> {
    read: &'a mut dyn FnMut(&str) -> std::io::Result<String>,
}

/// A block and the file that it stands in.
#[derive(Clone, Debug)]
struct Found {
    file: String,
    block: Block,
}

/// Takes over the drive whose `NAME.parv` or `NAME.diskspecs` is `first`; `name` is that of the
/// profile. `read` gives the text of a file by its name, `first` included.
///
/// # Errors
/// Where a file is missing or makes no sense: which, where and why.
pub fn import(
    name: &str,
    first: &str,
    read: &mut dyn FnMut(&str) -> std::io::Result<String>,
) -> Result<Imported, ImportError> {
    let mut files = Files { read };
    let mut blocks = Vec::new();
    files.collect(first, &mut blocks, 0)?;
    let disk = only(&blocks, "disksim_disk", first)?;
    let model = match disk.block.entries.get("Model") {
        Some(Value::Source(file)) => {
            let mut inner = Vec::new();
            files.collect(file, &mut inner, 0)?;
            only(&inner, "dm_disk", file)?
        }
        Some(Value::Block(block)) => Found { file: disk.file.clone(), block: block.clone() },
        _ => return Err(disk.missing("Model")),
    };
    let seek = match model.inner("Mechanical Model")?.word("Full seek curve") {
        Ok(file) => Some((file.clone(), files.text(&file)?)),
        Err(_) => None,
    };
    let buses = blocks.iter().filter(|found| found.block.kind == "disksim_bus");
    convert::profile(name, &disk, &model, &buses.cloned().collect::<Vec<_>>(), seek)
}

fn only(blocks: &[Found], kind: &str, file: &str) -> Result<Found, ImportError> {
    let mut found = blocks.iter().filter(|found| found.block.kind == kind);
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found.clone()),
        (first, _) => Err(ImportError::Syntax {
            file: file.to_owned(),
            line: first.map_or(1, |found| found.block.line),
            cause: if first.is_none() {
                format!("there is no {kind} block")
            } else {
                format!("there is more than one {kind} block")
            },
        }),
    }
}

impl Files<'_> {
    fn text(&mut self, file: &str) -> Result<String, ImportError> {
        (self.read)(file).map_err(|cause| ImportError::Read { file: file.to_owned(), cause })
    }

    /// The blocks of `file` and of those that it names.
    fn collect(
        &mut self,
        file: &str,
        blocks: &mut Vec<Found>,
        depth: usize,
    ) -> Result<(), ImportError> {
        let syntax = |(line, cause)| ImportError::Syntax { file: file.to_owned(), line, cause };
        if depth > 8 {
            return Err(syntax((1, "files name each other in a circle".to_owned())));
        }
        let File { blocks: own, sources } = syntax::parse(&self.text(file)?).map_err(syntax)?;
        blocks.extend(own.into_iter().map(|block| Found { file: file.to_owned(), block }));
        sources.iter().try_for_each(|source| self.collect(source, blocks, depth + 1))
    }
}

impl Found {
    fn wrong(&self, key: &str, cause: &str) -> ImportError {
        ImportError::Parameter {
            file: self.file.clone(),
            line: self.block.line,
            key: key.to_owned(),
            cause: cause.to_owned(),
        }
    }

    fn missing(&self, key: &str) -> ImportError {
        self.wrong(key, "it is missing")
    }

    fn number(&self, key: &str) -> Result<f64, ImportError> {
        match self.block.entries.get(key) {
            Some(Value::Number(value)) if value.is_finite() => Ok(*value),
            Some(_) => Err(self.wrong(key, "it is not a number")),
            None => Err(self.missing(key)),
        }
    }

    /// A number that may be missing.
    fn number_or(&self, key: &str, default: f64) -> Result<f64, ImportError> {
        if self.block.entries.contains_key(key) { self.number(key) } else { Ok(default) }
    }

    fn whole(&self, key: &str) -> Result<u32, ImportError> {
        let value = self.number(key)?;
        if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.wrong(key, "it is not a whole number"))
    }

    fn word(&self, key: &str) -> Result<String, ImportError> {
        match self.block.entries.get(key) {
            Some(Value::Word(word)) => Ok(word.clone()),
            Some(_) => Err(self.wrong(key, "it is not a word")),
            None => Err(self.missing(key)),
        }
    }

    fn list(&self, key: &str) -> Result<&[Value], ImportError> {
        match self.block.entries.get(key) {
            Some(Value::List(items)) => Ok(items),
            Some(_) => Err(self.wrong(key, "it is not a list")),
            None => Err(self.missing(key)),
        }
    }

    fn numbers(&self, key: &str) -> Result<Vec<f64>, ImportError> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let numbers: Option<Vec<f64>> = self.list(key)?.iter().map(number).collect();
        numbers.ok_or_else(|| self.wrong(key, "it is not a list of numbers"))
    }

    fn inner(&self, key: &str) -> Result<Self, ImportError> {
        match self.block.entries.get(key) {
            Some(Value::Block(block)) => Ok(Self { file: self.file.clone(), block: block.clone() }),
            Some(_) => Err(self.wrong(key, "it is not a block")),
            None => Err(self.missing(key)),
        }
    }
}
