//! What a directory holds that wearmark can work with, and the commands that ask about it: the
//! answer to `wearmark` without arguments.
//!
//! Looks at names, at the first section of TOML files, and at the beginnings of files that may be
//! traces; opens no database and reads no file whole. Large directories are looked at in part.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::artifacts::{MEASUREMENTS, PROFILE};

/// Entries of a directory that are looked at.
const MOST_ENTRIES: usize = 2_000;
/// Files whose beginning is read to find out whether they are traces.
const MOST_TRIED: usize = 64;
/// Bytes of a TOML file beyond which it is none of ours.
const MOST_TOML_BYTES: u64 = 1 << 20;

/// What a file or a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Data directory of PostgreSQL, MariaDB or MySQL.
    Server,
    /// PREFIX of a captured run.
    Capture,
    /// A trace of I/O requests.
    Trace,
    /// Run directory of a study.
    Run,
    /// Study file.
    Study,
    /// Device profile.
    Profile,
    /// `measurements.json` of a probe.
    Measurements,
    /// Directory with a `workload.toml`.
    Workload,
    /// Host stack: page cache, file system, scheduler, volume.
    Host,
}

impl Kind {
    /// The kind for people, of `count` of them.
    pub fn name(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Server, 1) => "database server's directory",
            (Self::Server, _) => "database servers' directories",
            (Self::Capture, 1) => "captured run",
            (Self::Capture, _) => "captured runs",
            (Self::Trace, 1) => "trace",
            (Self::Trace, _) => "traces",
            (Self::Run, 1) => "run directory",
            (Self::Run, _) => "run directories",
            (Self::Study, 1) => "study file",
            (Self::Study, _) => "study files",
            (Self::Profile, 1) => "device profile",
            (Self::Profile, _) => "device profiles",
            (Self::Measurements, _) => "measurements of a disk",
            (Self::Workload, 1) => "workload",
            (Self::Workload, _) => "workloads",
            (Self::Host, 1) => "host stack",
            (Self::Host, _) => "host stacks",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Found {
    /// What it is.
    pub kind: Kind,
    /// How a command names it, from the directory.
    pub name: String,
}

/// A question and the command that answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// The question, a few words.
    pub question: String,
    /// The command, as a shell takes it.
    pub command: String,
}

/// What `place` and its `runs` hold, by kind and name.
///
/// # Errors
/// Where `place` cannot be read.
pub fn look(place: &Path) -> std::io::Result<Vec<Found>> {
    let mut look = Look { found: Vec::new(), tried: 0 };
    look.directory(place, "")?;
    if place.join("runs").is_dir() {
        look.directory(&place.join("runs"), "runs/")?;
    }
    look.found.sort();
    Ok(look.found)
}

struct Look {
    found: Vec<Found>,
    tried: usize,
}

impl Look {
    fn directory(&mut self, place: &Path, prefix: &str) -> std::io::Result<()> {
        if let Some(kind) = of_directory(place).filter(|kind| *kind == Kind::Server) {
            self.push(kind, if prefix.is_empty() { "." } else { prefix });
        }
        let mut paths: Vec<PathBuf> =
            fs::read_dir(place)?.flatten().map(|entry| entry.path()).take(MOST_ENTRIES).collect();
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.starts_with('.') {
                continue;
            }
            let shown = format!("{prefix}{name}");
            if path.is_dir() {
                if let Some(kind) = of_directory(&path) {
                    self.push(kind, &shown);
                }
            } else if let Some(prefix) = shown.strip_suffix("-transactions.csv") {
                self.push(Kind::Capture, prefix);
            } else if name == MEASUREMENTS.name {
                self.push(Kind::Measurements, &shown);
            } else if let Some(kind) = self.of_file(&path, name) {
                self.push(kind, &shown);
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, name: &str) {
        self.found.push(Found { kind, name: name.to_owned() });
    }

    fn of_file(&mut self, path: &Path, name: &str) -> Option<Kind> {
        let length = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "toml" if length <= MOST_TOML_BYTES => of_toml(&fs::read_to_string(path).ok()?),
            "parquet" | "csv" | "txt" | "log" | "trace" | "spc" | "tr" | "bin" | "gz" | "zst"
            | "bz2" | "xz" | "zip" | "tar"
                if length > 0 && self.tried < MOST_TRIED =>
            {
                self.tried += 1;
                formats::detect(path).ok().map(|_| Kind::Trace)
            }
            _ => None,
        }
    }
}

fn of_directory(path: &Path) -> Option<Kind> {
    let has = |name: &str| path.join(name).is_file();
    if has("PG_VERSION") || has("ibdata1") {
        return Some(Kind::Server);
    }
    if has("workload.toml") {
        return Some(Kind::Workload);
    }
    (has("study.toml") && has("events.jsonl")).then_some(Kind::Run)
}

/// By the first section that only one kind of file has.
fn of_toml(text: &str) -> Option<Kind> {
    text.lines().find_map(|line| match line.trim_end() {
        "[study]" => Some(Kind::Study),
        "[profile]" => Some(Kind::Profile),
        "[page_cache]" | "[file_system]" | "[scheduler]" | "[volume]" | "[cache_device]" => {
            Some(Kind::Host)
        }
        _ => None,
    })
}

/// What can be asked about what was found; about the machine alone where nothing was.
pub fn questions(found: &[Found]) -> Vec<Ask> {
    let of = |kind: Kind| found.iter().filter(move |one| one.kind == kind).map(|one| &*one.name);
    let mut asks = Vec::new();
    let mut ask = |question: &str, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        asks.push(Ask { question: question.to_owned(), command: words.join(" ") });
    };
    if let Some(server) = of(Kind::Server).next() {
        let words = ["wearmark", "capture", "--data-dir", server, "--for", "60s", "-o", "mine"];
        ask("what does this server ask of its disk?", &words);
    }
    if let Some(capture) = of(Kind::Capture).next() {
        ask(
            "what would it do on a cloud volume?",
            &["wearmark", "predict", capture, "--on", "aws-gp3"],
        );
    }
    if let Some(trace) = of(Kind::Trace).next() {
        ask("what is in this trace?", &["wearmark", "trace", "info", trace]);
        let own = of(Kind::Profile).next().unwrap_or("samsung-pm9a3");
        ask("how fast would a device serve it?", &["wearmark", "sim", trace, "--profile", own]);
    }
    let runs: Vec<&str> = of(Kind::Run).collect();
    if let Some(run) = runs.last() {
        ask("what came out of the last run?", &["wearmark", "report", run]);
    }
    if let [.., before, last] = runs[..] {
        ask("did it get worse than the previous one?", &["wearmark", "compare", before, last]);
    }
    if let Some(study) = of(Kind::Study).next() {
        ask("what would this study do?", &["wearmark", "study", "run", study, "--dry-run"]);
    }
    if let Some(profile) = of(Kind::Profile).next() {
        ask("is this profile sound?", &["wearmark", "profile", "check", profile]);
    }
    if let Some(measured) = of(Kind::Measurements).next() {
        ask("which model fits this disk?", &["wearmark", "fit", measured, "-o", PROFILE]);
    }
    if let Some(workload) = of(Kind::Workload).next() {
        let workload = format!("./{workload}");
        ask(
            "how fast are these transactions?",
            &["wearmark", "oltp", "run", "database", "--workload", &workload],
        );
    }
    if let (Some(host), Some(trace)) = (of(Kind::Host).next(), of(Kind::Trace).next()) {
        ask(
            "what does the device get from these calls?",
            &["wearmark", "trace", "host", trace, "--host", host, "-o", "below.parquet"],
        );
    }
    ask("what can this machine do?", &["wearmark", "doctor"]);
    ask("how fast is this disk?", &["wearmark", "probe"]);
    ask(
        "how do transactions run on it, and elsewhere?",
        &["wearmark", "study", "run", "quickstart", "--dry-run"],
    );
    asks
}

/// A word for a shell: in quotation marks where it has more than letters, digits and `._/+:=-`.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/+:=-,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::{Found, Kind, look, questions, quoted};

    #[test]
    fn every_kind_is_found_by_what_it_holds() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a.csv", "0,20941264,8192,W,0.551706\n0,20939840,8192,W,0.554041\n");
        write("notes.txt", "nothing that is a trace\n");
        write(".hidden.csv", "0,20941264,8192,W,0.551706\n");
        write("mine-transactions.csv", "x\n");
        write("mine.toml", "# a study\n[study]\nname = \"mine\"\n");
        write("drive.toml", "[profile]\nname = \"drive\"\n");
        write("stack.toml", "[page_cache]\nmemory = \"1GiB\"\n");
        write("other.toml", "[package]\n");
        write("measurements.json", "{}");
        write("shop/workload.toml", "");
        write("pg/PG_VERSION", "15\n");
        write("runs/quickstart-001/study.toml", "[study]\n");
        write("runs/quickstart-001/events.jsonl", "");
        write("runs/unfinished/other", "");
        let found = look(place.path()).unwrap();
        let found: Vec<(Kind, &str)> =
            found.iter().map(|found| (found.kind, &*found.name)).collect();
        assert_eq!(
            found,
            [
                (Kind::Server, "pg"),
                (Kind::Capture, "mine"),
                (Kind::Trace, "a.csv"),
                (Kind::Run, "runs/quickstart-001"),
                (Kind::Study, "mine.toml"),
                (Kind::Profile, "drive.toml"),
                (Kind::Measurements, "measurements.json"),
                (Kind::Workload, "shop"),
                (Kind::Host, "stack.toml"),
            ]
        );
    }

    #[test]
    fn where_nothing_is_found_the_machine_is_asked_about() {
        let asks = questions(&[]);
        let commands: Vec<&str> = asks.iter().map(|ask| &*ask.command).collect();
        assert_eq!(commands[..2], ["wearmark doctor", "wearmark probe"]);
        let run = |name: &str| Found { kind: Kind::Run, name: name.to_owned() };
        let asks = questions(&[run("runs/a-001"), run("runs/a-002"), run("runs/a-003")]);
        assert_eq!(asks[0].command, "wearmark report runs/a-003");
        assert_eq!(asks[1].command, "wearmark compare runs/a-002 runs/a-003");
    }

    #[test]
    fn names_reach_a_shell_whole() {
        assert_eq!(quoted("runs/a-001"), "runs/a-001");
        assert_eq!(quoted("my trace.csv"), "'my trace.csv'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }
}
