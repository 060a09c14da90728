//! From a path to the figures that it holds.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use fit::measurement::Measurements;
use formats::{ReadOptions, Stop};
use oltp::OltpResult;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::figures::{
    Simulations, exact, of_predictions, of_probe, of_result, of_simulations, of_sweep, of_trace,
    share_capture,
};
use crate::Error;
use crate::artifacts::{LOAD, MEASUREMENTS};
use crate::predictions::Predictions;
use crate::result::StudyResult;
use crate::run_dir::{CONFIG, RESULT};
use crate::runs::compare::side;
use crate::runs::{Run, RunSet};
use crate::sweep::{self, SweepResult};
use crate::verdict::Side;

/// What such a file is called where it cannot be read.
const WHAT: &str = "result to compare";

/// One result, read.
enum Found {
    Side(Side),
    Predictions(Box<Predictions>),
}

/// Reads the two sides of a comparison.
///
/// # Errors
/// A path that cannot be read, is no result, or holds results of several kinds; sides of different
/// kinds; where `stop` ends the reading of a trace.
pub fn read(old: &Path, new: &Path, stop: Stop) -> Result<(Side, Side), Error> {
    let (before, after) = (find(old, stop)?, find(new, stop)?);
    let same = match (&before, &after) {
        (Found::Predictions(one), Found::Predictions(other)) => share_capture(one, other),
        _ => false,
    };
    let side = |found| match found {
        Found::Side(side) => side,
        Found::Predictions(all) if same => exact(of_predictions(&all)),
        Found::Predictions(all) => of_predictions(&all),
    };
    let (before, after) = (side(before), side(after));
    same_kind(&before, &after)?;
    Ok((before, after))
}

/// Refuses sides of different kinds: runs of another workload, or through another access, are no
/// comparison.
///
/// # Errors
/// Where they are.
pub fn same_kind(old: &Side, new: &Side) -> Result<(), Error> {
    // Runs of several workloads in one file are told by a list.
    if old.kind == new.kind && !old.kind.contains(", ") {
        return Ok(());
    }
    Err(Error::Unlike { old: old.kind.clone(), new: new.kind.clone() })
}

/// Reads one result.
pub(super) fn one(path: &Path, stop: Stop) -> Result<Side, Error> {
    Ok(match find(path, stop)? {
        Found::Side(side) => side,
        Found::Predictions(all) => of_predictions(&all),
    })
}

fn find(path: &Path, stop: Stop) -> Result<Found, Error> {
    if !path.is_dir() {
        return file(path, stop);
    }
    if path.join(CONFIG).exists() {
        return run_directory(path).map(Found::Side);
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path)
        .map_err(Error::io(path, "list"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "json")
                || path.join(CONFIG).exists()
        })
        .collect();
    inside.sort();
    let mut all: Option<Side> = None;
    for path in inside {
        let more = one(&path, stop)?;
        match &mut all {
            Some(side) if side.kind != more.kind => {
                return Err(Error::Unlike { old: side.kind.clone(), new: more.kind });
            }
            Some(side) => side.extend(more),
            None => all = Some(more),
        }
    }
    all.map(Found::Side).ok_or_else(|| {
        bad(path, "the directory holds no run directory and no file that ends in .json")
    })
}

fn bad(path: &Path, cause: impl Into<String>) -> Error {
    Error::Artifact { path: path.to_owned(), what: WHAT, cause: cause.into() }
}

/// Of a run directory: its load and its probe, whole; where they are gone, the result in short.
fn run_directory(path: &Path) -> Result<Side, Error> {
    let mut all = Side { kind: "run directories".to_owned(), figures: Vec::new() };
    let load = path.join(LOAD.name);
    if load.exists() {
        let result: OltpResult = crate::run_dir::read_json(&load)?;
        let run = Run { at: String::new(), result, accounts: None, server: None };
        let set = RunSet { runs: vec![run], ..RunSet::new(None, path) };
        all.extend(side(&set));
    }
    let measured = path.join(MEASUREMENTS.name);
    if measured.exists() {
        let mut probe = of_probe(&crate::run_dir::read_json::<Measurements>(&measured)?);
        if !all.figures.is_empty() {
            // The load is what the study is about.
            probe.figures.iter_mut().for_each(|figure| figure.decides = false);
        }
        all.extend(probe);
    }
    if let Some((_, found)) = sweep::read(path)? {
        return Ok(of_sweep(&found));
    }
    if all.figures.is_empty() && path.join(RESULT).exists() {
        all.extend(of_result(&StudyResult::read_from(path)?));
    }
    if all.figures.is_empty() {
        return Err(bad(path, "the run has no oltp.json, measurements.json or result.json yet"));
    }
    Ok(all)
}

/// A file of some kind, recognised by its fields.
fn file(path: &Path, stop: Stop) -> Result<Found, Error> {
    if !begins_as_json(path)? {
        return trace(path, stop).map(Found::Side);
    }
    let text = fs::read(path).map_err(Error::io(path, "read"))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| bad(path, error.to_string()))?;
    let has = |name: &str| value.get(name).is_some();
    if has("runs") {
        return Ok(Found::Side(side(&RunSet::parse(&text, path)?)));
    }
    if has("sweep") {
        return Ok(Found::Side(of_sweep(&parsed::<SweepResult>(path, &text)?)));
    }
    if has("cells") {
        return Ok(Found::Side(of_probe(&parsed::<Measurements>(path, &text)?)));
    }
    if has("captured") && has("devices") {
        return Ok(Found::Predictions(parsed(path, &text)?));
    }
    if has("devices") {
        return Ok(Found::Side(of_simulations(&parsed::<Simulations>(path, &text)?)));
    }
    if has("result_class") {
        return Ok(Found::Side(of_result(&parsed::<StudyResult>(path, &text)?)));
    }
    Err(bad(
        path,
        "it is none of what 'oltp run --save', 'probe', 'sim --json', 'predict --json' and studies \
         leave",
    ))
}

/// Results are JSON, traces are not.
fn begins_as_json(path: &Path) -> Result<bool, Error> {
    let mut head = [0; 64];
    let mut file = fs::File::open(path).map_err(Error::io(path, "open"))?;
    let count = file.read(&mut head).map_err(Error::io(path, "read"))?;
    let first = head[..count].iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(matches!(first, None | Some(b'{' | b'[')))
}

/// A trace of any format, by the times that it holds.
fn trace(path: &Path, stop: Stop) -> Result<Side, Error> {
    let options = ReadOptions { stop, ..ReadOptions::default() };
    let read = formats::read(path, &options).map_err(Error::Trace)?;
    of_trace(&read.trace).ok_or_else(|| {
        bad(path, "the trace holds no response times, and nothing else of it can get worse")
    })
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, Error> {
    crate::run_dir::parse_json(text, path, WHAT)
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Trace};
    use units::{Bytes, Nanos};

    use super::super::fixtures::probe;
    use super::*;
    use crate::verdict::{Verdict, Whole, compare, whole};

    #[test]
    fn a_probe_that_collapsed_regressed_and_an_equal_one_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, iops) in [("a.json", 1000.0), ("b.json", 400.0)] {
            fs::write(path(name), probe(iops, 20)).unwrap();
        }
        let found = |new: &str| {
            let (old, new) = read(&path("a.json"), &path(new), Stop::default()).unwrap();
            compare(&old, &new, 0.05)
        };
        let worse = found("b.json");
        assert_eq!(worse[0].figure, "random read 4KiB, depth 1");
        assert_eq!(worse[0].verdict, Verdict::Regressed, "{worse:?}");
        assert_eq!(worse[1].verdict, Verdict::Unproven, "{worse:?}");
        assert_eq!(whole(&worse), Whole::Regression);
        assert_eq!(whole(&found("a.json")), Whole::NoVerdict);
    }

    #[test]
    fn files_of_a_directory_are_runs_and_three_of_them_prove_sameness() {
        let dir = tempfile::tempdir().unwrap();
        for (name, iops) in [("1.json", 1000.0), ("2.json", 1001.0), ("3.json", 999.0)] {
            fs::write(dir.path().join(name), probe(iops, 20)).unwrap();
        }
        let (old, new) = read(dir.path(), dir.path(), Stop::default()).unwrap();
        assert_eq!(old.figures[0].values, [1000.0, 1001.0, 999.0]);
        assert_eq!(whole(&compare(&old, &new, 0.05)), Whole::NoRegression);
    }

    /// Reads of `us` microseconds, each a little longer or shorter than the one before.
    fn requests(path: &Path, us: u64) {
        let stream = trace::Stream { name: "data".to_owned() };
        let mut trace = Trace { streams: vec![stream], ..Trace::default() };
        for at in 0..5000u64 {
            let due = Nanos(at * 1_000_000);
            let (offset, len) = (Bytes(0), 4096);
            trace.push(Request { due, offset, len, op: Op::Read, stream: 0 });
            // Of every fourth one the recording does not say.
            let ns = if at % 4 == 0 { 0 } else { us * 1000 + at * 7919 % 997 };
            trace.service.get_or_insert_default().push(ns);
        }
        formats::own::write(&trace, path).unwrap();
    }

    #[test]
    fn a_trace_whose_requests_took_longer_regressed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        requests(&path("a.parquet"), 100);
        requests(&path("b.parquet"), 120);
        let found = |new: &str| {
            let (old, new) = read(&path("a.parquet"), &path(new), Stop::default()).unwrap();
            compare(&old, &new, 0.05)
        };
        let worse = found("b.parquet");
        let names: Vec<&str> = worse.iter().map(|figure| figure.figure.as_str()).collect();
        assert_eq!(names, ["mean of read", "p50 of read", "p99 of read"]);
        assert_eq!(worse[0].verdict, Verdict::Regressed, "{worse:?}");
        assert!((worse[0].old / 100.5 - 1.0).abs() < 0.005, "{worse:?}");
        assert!((worse[0].ratio.unwrap().ratio - 1.2).abs() < 0.005, "{worse:?}");
        assert_eq!(whole(&found("a.parquet")), Whole::NoVerdict);
    }

    #[test]
    fn what_is_no_result_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let told = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path, &path, Stop::default()).unwrap_err().to_string()
        };
        assert!(told("{}").contains("x.json: not a valid result to compare: it is none of"));
        assert!(told("[").contains("x.json: not a valid result to compare: EOF"));
        fs::remove_file(&path).unwrap();
        let empty = read(dir.path(), dir.path(), Stop::default()).unwrap_err().to_string();
        assert!(empty.contains("holds no run directory and no file"), "{empty}");
    }
}
