//! Studies that were started from the page.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use study::file::{SHIPPED, StudyFile};
use study::sweep::{MODERN, SweepFile};

/// A study that may be started: a shipped one, or a file beside the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Offer {
    /// What `wearmark study run` takes.
    pub name: String,
    pub title: String,
}

/// A process that was started here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Job {
    pub id: u32,
    pub study: String,
    /// Its exit code, once it has ended; -1 where a signal ended it.
    pub ended: Option<i32>,
    /// The end of what it printed, once it has ended.
    pub said: String,
}

/// A process and what it prints.
#[derive(Debug)]
struct Working {
    child: Child,
    printed: File,
}

/// What was started, and how.
#[derive(Debug)]
pub(super) struct Jobs {
    program: PathBuf,
    /// Where study files are looked for, and where commands run.
    place: PathBuf,
    runs: PathBuf,
    all: Mutex<BTreeMap<u32, (Job, Option<Working>)>>,
}

/// How much of the end of what a study printed is kept, bytes.
const SAID_BYTES: usize = 2000;

impl Jobs {
    pub fn new(program: PathBuf, place: PathBuf, runs: PathBuf) -> Self {
        Self { program, place, runs, all: Mutex::default() }
    }

    /// What may be started.
    pub fn offers(&self) -> Vec<Offer> {
        let shipped = SHIPPED.iter().chain(&MODERN).filter_map(|(name, text)| offer(name, text));
        let files = std::fs::read_dir(&self.place).into_iter().flatten().flatten();
        let mut own: Vec<Offer> = files
            .filter_map(|file| {
                let name = file.file_name().into_string().ok()?;
                let is_toml = Path::new(&name).extension().is_some_and(|end| end == "toml");
                let text = is_toml.then(|| std::fs::read_to_string(file.path()).ok())??;
                offer(&name, &text)
            })
            .collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        shipped.chain(own).collect()
    }

    /// Starts a study that is offered.
    pub fn start(&self, study: &str) -> Result<Job, String> {
        if !self.offers().iter().any(|offer| offer.name == study) {
            return Err(format!("'{study}' is no study of this directory"));
        }
        let printed = tempfile::tempfile().map_err(|error| error.to_string())?;
        let stderr = printed.try_clone().map_err(|error| error.to_string())?;
        let child = Command::new(&self.program)
            .args(["study", "run", study, "--runs"])
            .arg(&self.runs)
            .current_dir(&self.place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let job = Job { id: child.id(), study: study.to_owned(), ended: None, said: String::new() };
        let working = Some(Working { child, printed });
        self.all.lock().expect("no panic under the lock").insert(job.id, (job.clone(), working));
        Ok(job)
    }

    /// Asks a study that was started here to keep what it has and stop.
    pub fn stop(&self, id: u32) -> Result<(), String> {
        let all = self.all.lock().expect("no panic under the lock");
        let working = all.get(&id).and_then(|(_, working)| working.as_ref());
        let working = working.ok_or_else(|| format!("no study runs here as process {id}"))?;
        // Not waited for yet, so the number is still its own.
        kill_process(Pid::from_child(&working.child), Signal::INT)
            .map_err(|error| error.to_string())
    }

    /// All of them, the newest last.
    pub fn list(&self) -> Vec<Job> {
        let mut all = self.all.lock().expect("no panic under the lock");
        for (job, slot) in all.values_mut() {
            let Some(working) = slot else { continue };
            if let Ok(Some(status)) = working.child.try_wait() {
                job.ended = Some(status.code().unwrap_or(-1));
                job.said = end_of(&mut working.printed);
                *slot = None;
            }
        }
        all.values().map(|(job, _)| job.clone()).collect()
    }
}

fn offer(name: &str, text: &str) -> Option<Offer> {
    let path = Path::new(name);
    let title = match StudyFile::parse(text, path) {
        Ok(study) => study.study.title,
        Err(_) => SweepFile::parse(text, path).ok()?.study.title,
    };
    Some(Offer { name: name.to_owned(), title })
}

/// The last lines of a file.
fn end_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    let from = bytes.len().saturating_sub(SAID_BYTES);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}
