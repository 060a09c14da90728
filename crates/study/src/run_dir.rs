//! Run directories: where artifacts, events and the lock of one run live.
//!
//! `DIR/NAME-001`, `DIR/NAME-002`, ...: a study whose newest run of the same configuration is
//! incomplete goes on in it; otherwise the next number is taken.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use events::{Event, Sink, Warning};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The artifact whose presence says that a run is complete.
pub const RESULT: &str = "result.json";
/// The resolved configuration.
pub const CONFIG: &str = "study.toml";
/// How long a lock that is held is waited for, and how often it is looked at.
const LOCK_PATIENCE: Duration = Duration::from_millis(300);
const LOCK_LOOK: Duration = Duration::from_millis(10);
/// The event stream.
pub const EVENTS: &str = "events.jsonl";

/// An open, locked run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held for its lock only.
    _lock: File,
}

impl RunDir {
    /// Opens the run to go on with, or creates the next one. Tells which with the flag.
    pub fn open_or_create(runs: &Path, name: &str, config: &str) -> Result<(Self, bool), Error> {
        fs::create_dir_all(runs).map_err(Error::io(runs, "create"))?;
        let newest = numbered(runs, name)?.into_iter().max();
        if let Some(number) = newest {
            let path = runs.join(format!("{name}-{number:03}"));
            let same = fs::read_to_string(path.join(CONFIG)).is_ok_and(|text| text == config);
            if same && !path.join(RESULT).exists() {
                return Ok((Self::lock(path)?, true));
            }
            if only_begun(&path) {
                // Killed before it knew what it was for.
                let run = Self::lock(path)?;
                run.write(CONFIG, config.as_bytes())?;
                return Ok((run, false));
            }
        }
        let path = runs.join(format!("{name}-{:03}", newest.unwrap_or(0) + 1));
        fs::create_dir(&path).map_err(Error::io(&path, "create"))?;
        let run = Self::lock(path)?;
        run.write(CONFIG, config.as_bytes())?;
        Ok((run, false))
    }

    /// Opens an existing directory for work, whatever its state.
    pub fn lock(path: PathBuf) -> Result<Self, Error> {
        let name = path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&name)
            .map_err(Error::io(&name, "create"))?;
        let began = Instant::now();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                // A process that was just started holds what its parent had open until it becomes
                // another program.
                Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_LOOK);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::Busy { path }),
                Err(errno) => {
                    return Err(Error::Io { path: name, action: "lock", source: errno.into() });
                }
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the artifact is there, whole.
    pub fn has(&self, name: &str) -> bool {
        self.join(name).exists()
    }

    /// Writes an artifact: temporary name, sync, rename.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        write_atomically(&self.join(name), content)
    }

    /// Writes an artifact as JSON.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        let text = serde_json::to_vec(value).map_err(|error| Error::Artifact {
            path: self.join(name),
            what: "JSON artifact",
            cause: error.to_string(),
        })?;
        self.write(name, &text)
    }

    /// Reads a JSON artifact.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        read_json(&self.join(name))
    }

    /// Reads an artifact.
    pub fn read<T: DeserializeOwned>(&self, artifact: &Artifact<T>) -> Result<T, Error> {
        self.read_json(artifact.name)
    }

    /// Writes an artifact.
    pub fn save<T: Serialize>(&self, artifact: &Artifact<T>, value: &T) -> Result<(), Error> {
        self.write_json(artifact.name, value)
    }

    /// Removes a file or folder of the run, if it is there.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.join(name);
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match gone {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { path, action: "remove", source: error })
            }
            _ => Ok(()),
        }
    }
}

/// A JSON file of a run: its name and what it holds.
#[derive(Debug)]
pub struct Artifact<T> {
    /// Its name in the run directory.
    pub name: &'static str,
    holds: PhantomData<fn() -> T>,
}

impl<T> Artifact<T> {
    /// The artifact of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, holds: PhantomData }
    }
}

/// Whether a directory holds nothing but the lock and what a killed write of the configuration
/// left.
fn only_begun(path: &Path) -> bool {
    let temporary = format!("{CONFIG}.tmp");
    fs::read_dir(path).is_ok_and(|entries| {
        entries.filter_map(Result::ok).all(|entry| {
            let name = entry.file_name();
            name == "lock" || name == temporary.as_str()
        })
    })
}

/// Reads a JSON file of the given shape.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse_json(&fs::read(path).map_err(Error::io(path, "read"))?, path, "JSON artifact")
}

/// Parses JSON of the given shape; `path` and `what` are for messages.
pub fn parse_json<T: DeserializeOwned>(
    text: &[u8],
    path: &Path,
    what: &'static str,
) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Artifact {
        path: path.into(),
        what,
        cause: events::one_line(&error.to_string()),
    })
}

/// Writes a file so that it is either absent, old or whole, also across a power cut.
///
/// A device or a pipe is written to as it is: a rename would replace `/dev/stdout` by a file.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(path, content).map_err(Error::io(path, "write"));
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let write = || -> std::io::Result<()> {
        fault::point()?;
        let mut file = File::create(&temporary)?;
        fault::point()?;
        // In two pieces, so that a test can end the process between them.
        let (half, rest) = content.split_at(content.len() / 2);
        file.write_all(half)?;
        fault::point()?;
        file.write_all(rest)?;
        file.sync_all()?;
        fault::point()?;
        fs::rename(&temporary, path)?;
        fault::point()?;
        path.parent().map_or(Ok(()), |parent| {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            File::open(parent)?.sync_all()
        })
    };
    write().map_err(|source| {
        if fault::point().is_ok() {
            let _ = fs::remove_file(&temporary);
        }
        Error::Io { path: path.into(), action: "write", source }
    })
}

/// Where a test can end the process, as it looks to the files: from a point on nothing is done any
/// more, no cleaning up either.
pub(crate) mod fault {
    #[cfg(test)]
    thread_local! {
        /// Points left; negative for a process that lives.
        static LEFT: std::cell::Cell<i64> = const { std::cell::Cell::new(-1) };
    }

    /// Dies at the point after `points`; lives on without one.
    #[cfg(test)]
    pub fn after(points: Option<i64>) {
        LEFT.set(points.unwrap_or(-1));
    }

    /// A moment between two system calls.
    #[cfg(test)]
    pub fn point() -> std::io::Result<()> {
        match LEFT.get() {
            0 => return Err(std::io::Error::other("killed")),
            left if left > 0 => LEFT.set(left - 1),
            _ => {}
        }
        Ok(())
    }

    /// A moment between two system calls.
    #[cfg(not(test))]
    #[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
    pub fn point() -> std::io::Result<()> {
        Ok(())
    }
}

/// The numbers of the existing runs of a study.
fn numbered(runs: &Path, name: &str) -> Result<Vec<u32>, Error> {
    let entries = fs::read_dir(runs).map_err(Error::io(runs, "list"))?;
    let number = |entry: std::io::Result<fs::DirEntry>| {
        let file_name = entry.ok()?.file_name();
        file_name.to_str()?.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
    };
    Ok(entries.filter_map(number).collect())
}

/// The sink of a run: appends every event to `events.jsonl` and passes it on to the live view.
pub struct RunLog<'a> {
    start: Instant,
    file: Mutex<File>,
    warnings: Mutex<Vec<Warning>>,
    live: &'a dyn Sink,
}

/// A line of `events.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    /// Since this process began to work on the run; the `at_s` of an event is that of its stage.
    run_s: f64,
    #[serde(flatten)]
    event: &'a Event,
}

impl<'a> RunLog<'a> {
    /// Opens the stream for appending.
    pub fn open(run: &RunDir, live: &'a dyn Sink) -> Result<Self, Error> {
        let path = run.join(EVENTS);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::io(&path, "open"))?;
        Ok(Self { start: Instant::now(), file: Mutex::new(file), warnings: Mutex::default(), live })
    }

    /// An event of the pipeline itself: the only plans and ends that a run's stream has, so that
    /// every stage has one end, whatever the crates below say of their parts.
    pub fn announce(&self, event: Event) {
        self.write(&event);
        self.live.emit(event);
    }

    fn write(&self, event: &Event) {
        let run_s = self.start.elapsed().as_secs_f64();
        if let Ok(mut line) = serde_json::to_vec(&Line { run_s, event }) {
            line.push(b'\n');
            // A full disk must not end a measurement that still runs: the artifact's own write
            // will report it.
            let _ = self.file.lock().expect("no panic while holding the lock").write_all(&line);
        }
    }

    /// Warnings of the current stage so far.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.lock().expect("no panic while holding the lock").clone()
    }

    /// Begins a stage without warnings.
    pub fn forget_warnings(&self) {
        self.warnings.lock().expect("no panic while holding the lock").clear();
    }
}

impl Sink for RunLog<'_> {
    fn emit(&self, event: Event) {
        if matches!(event, Event::Plan { .. } | Event::Done { .. }) {
            return;
        }
        self.write(&event);
        if let Event::Warning(warning) = &event {
            let mut warnings = self.warnings.lock().expect("no panic while holding the lock");
            let first = !warnings.iter().any(|earlier| earlier.code == warning.code);
            warnings.push(warning.clone());
            if !first {
                return;
            }
        }
        self.live.emit(event);
    }

    fn cancelled(&self) -> bool {
        self.live.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_run_is_gone_on_with_and_a_complete_one_is_not() {
        let runs = tempfile::tempdir().unwrap();
        let open = |config| RunDir::open_or_create(runs.path(), "s", config).unwrap();
        let (first, resumed) = open("a = 1");
        assert!(!resumed && first.path().ends_with("s-001"));
        drop(first);
        let (again, resumed) = open("a = 1");
        assert!(resumed && again.path().ends_with("s-001"));
        again.write(RESULT, b"{}").unwrap();
        drop(again);
        let (next, resumed) = open("a = 1");
        assert!(!resumed && next.path().ends_with("s-002"));
        drop(next);
        let (other, resumed) = open("a = 2");
        assert!(!resumed && other.path().ends_with("s-003"), "another configuration starts anew");
    }

    #[test]
    fn two_processes_never_work_in_one_run() {
        let runs = tempfile::tempdir().unwrap();
        let _first = RunDir::open_or_create(runs.path(), "s", "x").unwrap();
        let second = RunDir::open_or_create(runs.path(), "s", "x");
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
    }

    #[test]
    fn no_line_of_the_event_stream_has_a_key_twice() {
        let runs = tempfile::tempdir().unwrap();
        let (run, _) = RunDir::open_or_create(runs.path(), "s", "x").unwrap();
        let log = RunLog::open(&run, &events::Quiet).unwrap();
        let (stage, series) = ("probe".to_owned(), "iops".to_owned());
        log.emit(Event::Sample { stage, series, at_s: 5.0, value: 1.0 });
        let line = fs::read_to_string(run.join(EVENTS)).unwrap();
        let found: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((line.matches("\"at_s\"").count(), &found["at_s"]), (1, &5.0.into()), "{line}");
        assert!(found["run_s"].as_f64().unwrap() < 5.0, "{line}");
    }

    #[test]
    fn a_failed_write_leaves_the_old_artifact_and_no_debris() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub");
        fs::create_dir(&path).unwrap();
        // The final name is a directory: the rename fails after the content was written.
        assert!(write_atomically(&path, b"new").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "temporary file left behind");
    }
}
