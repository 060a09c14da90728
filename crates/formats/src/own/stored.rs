//! A file of our own format that is read a row group at a time, as often as asked: one row group
//! and its bytes are in memory, however long the trace is.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use trace::{Outline, Parts, Trace};

use super::reader::{self, GroupReader, Walked};
use crate::{Error, Result};

/// An open file whose records are whole. Its row groups are checked when they are read.
pub struct Stored {
    file: File,
    path: PathBuf,
    walked: Walked,
}

impl Stored {
    /// Opens a file and follows its records.
    ///
    /// # Errors
    /// As [`super::read`], but for damage within row groups.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        super::check_start(&file, path)?;
        let walked = reader::walk_whole(&file, path)?;
        Ok(Self { file, path: path.to_owned(), walked })
    }

    /// Requests in the file.
    pub fn requests(&self) -> u64 {
        self.walked.requests()
    }
}

impl Parts<Error> for Stored {
    fn outline(&self) -> Outline {
        self.walked.outline()
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<()> {
        let mut groups = GroupReader::new(&self.file, &self.path, &self.walked)?;
        while let Some(part) = groups.next()? {
            if take(part).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Stored");
        shown.field("path", &self.path).field("requests", &self.requests()).finish_non_exhaustive()
    }
}
