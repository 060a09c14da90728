//! Traces on disk: one file per format, and [`read`], which tells them apart.
//!
//! [`own`] keeps everything a [`Trace`] holds; the others are what public archives use. A format is
//! recognised by what the file contains, never by its name, and [`read`] says what it saw.

pub mod own;
pub mod spc;
mod whole_file;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Trace};

/// A format that [`read`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// wearmark's own: Parquet.
    Own,
    /// Storage Performance Council text, as the UMass repository has it.
    Spc,
}

impl Format {
    /// The name used on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "wearmark Parquet",
            Self::Spc => "SPC text",
        }
    }
}

/// What a file was taken for, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// What in the file says so, a few words.
    pub evidence: String,
}

/// Reads a trace of any known format.
pub fn read(path: &Path) -> Result<(Trace, Detected)> {
    let detected = detect(path)?;
    let trace = match detected.format {
        Format::Own => own::read(path)?,
        Format::Spc => spc::read(path)?,
    };
    Ok((trace, detected))
}

/// Says which format a file has, from its first bytes.
pub fn detect(path: &Path) -> Result<Detected> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(Error::io(path))?;
    file.take(4096).read_to_end(&mut start).map_err(Error::io(path))?;
    if start.starts_with(own::PARQUET_MARK) {
        let evidence = "starts with the Parquet mark PAR1".to_owned();
        return Ok(Detected { format: Format::Own, evidence });
    }
    let foreign = |cause: String| Error::Foreign { path: path.to_owned(), cause };
    let first_line = start.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let Some(first_line) = first_line else {
        return Err(foreign("it is empty".to_owned()));
    };
    let shown = String::from_utf8_lossy(&first_line[..first_line.len().min(60)]);
    match spc::check_line(first_line) {
        Ok(()) => {
            let evidence = format!("first line reads as ASU,LBA,size,op,seconds: {shown}");
            Ok(Detected { format: Format::Spc, evidence })
        }
        Err(cause) => {
            let shown = shown.escape_debug();
            Err(foreign(format!("it starts with '{shown}', which is not SPC text: {cause}")))
        }
    }
}
