//! The run directories of a directory, as rows.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use study::artifacts::{LOAD, MEASUREMENTS};
use study::file::StudyFile;
use study::result::StudyResult;
use study::run_dir::{CONFIG, EVENTS, RESULT};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// A process holds its lock.
    Running,
    /// It has a result.
    Complete,
    /// It was stopped or killed; the same command goes on with it.
    Stopped,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub name: String,
    pub state: State,
    /// What its study is called.
    pub title: String,
    /// System and workload.
    pub load: String,
    pub terminals: u32,
    /// Seconds since 1970.
    pub began_s: f64,
    /// On the disk that it ran on, where that was measured.
    pub per_min: Option<f64>,
    /// p99 of the kind of transaction that is named first, ms.
    pub p99_ms: Option<f64>,
    /// Devices asked about.
    pub devices: usize,
    pub warnings: usize,
    /// Whether it has a report.
    pub page: bool,
}

/// The runs in a directory, the newest first. What is none is left out.
pub(super) fn list(runs: &Path) -> std::io::Result<Vec<Row>> {
    let mut rows: Vec<Row> =
        fs::read_dir(runs)?.flatten().filter_map(|at| row(&at.path())).collect();
    rows.sort_by(|a, b| b.began_s.total_cmp(&a.began_s).then_with(|| b.name.cmp(&a.name)));
    Ok(rows)
}

/// A run by its name, with a slash nowhere in it: nothing outside the directory is reached.
pub(super) fn find(runs: &Path, name: &str) -> Option<PathBuf> {
    let path = runs.join(name);
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    // A link may lead anywhere.
    let inside = || Some(path.canonicalize().ok()?.parent()? == runs.canonicalize().ok()?);
    (plain && inside() == Some(true)).then_some(path)
}

fn row(path: &Path) -> Option<Row> {
    let text = fs::read_to_string(path.join(CONFIG)).ok()?;
    let study = StudyFile::parse(&text, &path.join(CONFIG)).ok()?;
    let began = fs::metadata(path.join(CONFIG)).and_then(|found| found.modified()).ok()?;
    let mut row = Row {
        name: path.file_name()?.to_str()?.to_owned(),
        state: state(path),
        title: study.study.title,
        load: format!("{} {}", study.oltp.dbms.title(), study.oltp.workload),
        terminals: study.oltp.users,
        began_s: began.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
        per_min: None,
        p99_ms: None,
        devices: study.scenario.len(),
        warnings: 0,
        page: path.join("report.html").is_file(),
    };
    if let Ok(result) = StudyResult::read_from(path) {
        row.per_min = Some(result.oltp.transactions_per_min);
        row.p99_ms = result.oltp.transactions.first().map(|kind| kind.response_ms_p99);
        row.warnings = result.warnings.len();
    }
    Some(row)
}

fn state(path: &Path) -> State {
    // The lock of a run that nobody works on is free; taken for a moment, it is given back at once.
    let lock = File::open(path.join("lock"));
    let held = lock.is_ok_and(|lock| {
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    });
    match () {
        () if held => State::Running,
        () if path.join(RESULT).is_file() => State::Complete,
        () => State::Stopped,
    }
}

/// Whether two runs can be compared: it has figures of its own.
pub(super) fn has_figures(path: &Path) -> bool {
    [RESULT, LOAD.name, MEASUREMENTS.name].iter().any(|name| path.join(name).is_file())
}

/// What a run said since `from` bytes of its event stream, whole lines only, and where it goes on.
pub(super) fn events(path: &Path, from: u64) -> std::io::Result<(String, u64)> {
    use std::io::{Read, Seek, SeekFrom};
    /// Bytes at most in one answer.
    const MOST: u64 = 4 << 20;
    let mut file = match File::open(path.join(EVENTS)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((String::new(), 0));
        }
        file => file?,
    };
    // A stream that has become shorter began anew.
    let from = if from > file.metadata()?.len() { 0 } else { from };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    // The last line may be half written.
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    let next = from + bytes.len() as u64;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(runs: &Path, name: &str) -> PathBuf {
        let path = runs.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(CONFIG), "[study]\nname = \"s\"\ntitle = \"A title\"\n").unwrap();
        fs::write(path.join("lock"), "").unwrap();
        path
    }

    #[test]
    fn runs_are_listed_with_their_state() {
        let runs = tempfile::tempdir().unwrap();
        begun(runs.path(), "s-001");
        let path = begun(runs.path(), "s-002");
        fs::create_dir(runs.path().join("something else")).unwrap();
        let lock = File::open(path.join("lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let mut rows = list(runs.path()).unwrap();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let found: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.state)).collect();
        assert_eq!(found, [("s-001", State::Stopped), ("s-002", State::Running)]);
        assert_eq!(
            (rows[0].title.as_str(), rows[0].load.as_str()),
            ("A title", "SQLite order-entry")
        );
        drop(lock);
        fs::write(path.join(RESULT), "{}").unwrap();
        assert_eq!(state(&path), State::Complete);
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        fs::create_dir(&runs).unwrap();
        begun(&runs, "s-001");
        begun(place.path(), "outside");
        std::os::unix::fs::symlink(place.path().join("outside"), runs.join("link")).unwrap();
        assert!(find(&runs, "s-001").is_some());
        for name in ["", ".", "..", "../outside", "/etc", "link", "s-001/..", "no such"] {
            assert_eq!(find(&runs, name), None, "{name}");
        }
    }

    #[test]
    fn events_are_handed_over_line_by_line() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(events(run.path(), 0).unwrap(), (String::new(), 0));
        let path = run.path().join(EVENTS);
        fs::write(&path, "{\"a\":1}\n{\"b\"").unwrap();
        assert_eq!(events(run.path(), 0).unwrap(), ("{\"a\":1}\n".to_owned(), 8));
        fs::write(&path, "{\"a\":1}\n{\"b\":2}\n").unwrap();
        assert_eq!(events(run.path(), 8).unwrap(), ("{\"b\":2}\n".to_owned(), 16));
        fs::write(&path, "{}\n").unwrap();
        assert_eq!(events(run.path(), 16).unwrap(), ("{}\n".to_owned(), 3), "it began anew");
    }
}
