//! Files of studies and of runs that may hold anything: what a user writes, and what commands read
//! back.

use std::path::Path;

use study::captures::{self, Capture};
use study::file::StudyFile;
use study::result::StudyResult;
use study::runs::{self, RunSet};
use study::sweep::SweepFile;
use study::{Error, run_dir};

/// Reads the text as a study file. One that is read says the same when it is written and read
/// again.
pub fn check_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match StudyFile::parse(text, Path::new("fuzz")) {
        Ok(study) => {
            let written = study.to_toml();
            let again = StudyFile::parse(&written, Path::new("again"));
            assert_eq!(again.expect("what is written is read"), study);
            let _ = (study.space_needed(), study.oltp.bytes(), study::pipeline::plan(&study));
        }
        Err(error) => check_error(&error),
    }
    if let Err(error) = SweepFile::parse(text, Path::new("fuzz")) {
        check_error(&error);
    }
}

/// Reads the bytes as what their first byte says, then does with them what commands do.
pub fn check_kept(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let path = Path::new("fuzz");
    let read = match choice % 4 {
        0 => RunSet::parse(bytes, path).map(|set| {
            let compared = runs::compare::compare(&set, &set, 0.05);
            let page = runs::page::comparison(&compared, 0.05, ("old", "new"));
            report::html(&page).len() + report::html(&runs::page::page(&set, "title")).len()
        }),
        1 => run_dir::parse_json::<StudyResult>(bytes, path, "result")
            .map(|result| result.to_json().len()),
        2 => Capture::parse(bytes, path).map(|capture| {
            captures::text(&capture).len() + report::html(&captures::page(&capture)).len()
        }),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            captures::read_table(path, &text, &["update", "payment"]).map(|rows| rows.len())
        }
    };
    if let Err(error) = read {
        check_error(&error);
    }
}

fn check_error(error: &Error) {
    let hint = events::Hint::hint(error).unwrap_or_default();
    for text in [error.to_string(), hint] {
        assert!(!text.contains(char::is_control), "one line: {text:?}");
    }
    assert!(error.to_string().starts_with("fuzz"), "an error names its file: {error}");
}
