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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, poisson};
    use events::Hint;
    use std::path::PathBuf;
    use units::Rate;

    /// A file of that content, and the directory that keeps it alive.
    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        std::fs::write(&path, content).expect("written");
        (directory, path)
    }

    #[test]
    fn formats_are_told_apart_by_content() {
        let (_directory, path) = file(b"");
        let trace = poisson(1, 100, Rate(1000.0), &Pattern::default());
        own::write(&trace, &path).expect("written");
        let (read_back, detected) = read(&path).expect("reads");
        assert_eq!((read_back, detected.format), (trace.clone(), Format::Own));
        spc::write(&trace, &path).expect("written");
        let (read_back, detected) = read(&path).expect("reads");
        assert_eq!((read_back.due, detected.format), (trace.due, Format::Spc));
        assert!(detected.evidence.contains("0,"), "{}", detected.evidence);
    }

    #[track_caller]
    fn check_foreign(content: &[u8], expected: &str) {
        let (_directory, path) = file(content);
        let error = read(&path).expect_err("foreign");
        assert!(matches!(error, Error::Foreign { .. }) && error.hint().is_some());
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn anything_else_is_refused_with_what_it_looks_like() {
        check_foreign(b"", "it is empty");
        check_foreign(b"\n \n", "it is empty");
        check_foreign(b"\x7fELF\x02", "'\\u{7f}ELF\\u{2}', which is not SPC text: ASU is not");
        check_foreign(b"Timestamp,Response,IOType\n", "it starts with 'Timestamp,Response,IOType'");
        check_foreign(b"PAR2 and so on", "ASU is not a whole number");
    }

    #[test]
    fn a_wrong_line_behind_a_right_one_is_an_error_of_that_line() {
        let (_directory, path) = file(b"0,1,512,r,0.0\nnonsense\n");
        let error = read(&path).expect_err("a wrong line");
        assert!(error.to_string().contains("trace:2: ASU is not"), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_missing_file_or_a_directory_is_an_error() {
        let (directory, _path) = file(b"");
        assert!(matches!(read(directory.path()), Err(Error::Io { .. })));
        let error = read(&directory.path().join("none")).expect_err("missing");
        assert_eq!(error.hint().as_deref(), Some("check the path"));
    }
}
