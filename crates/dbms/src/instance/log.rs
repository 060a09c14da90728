//! What a server prints, and what of it an error shows.
//!
//! One file takes everything over the life of an instance; errors look at what came since the
//! process in question started.

use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// How either server or the C library tells of a full disk.
const DISK_FULL: &[&str] =
    &["No space left on device", "Errcode: 28", "errno: 28", "failed with error 28", "Disk full"];

/// What a line that tells a cause has.
const CAUSES: &[&str] = &["ERROR", "FATAL", "PANIC", "initdb: error", "parameter \""];

/// How either server tells of damaged data: "corruption", "corrupted".
const DAMAGE: &str = "corrupt";

/// Lines that an error shows.
const LINES: usize = 6;

/// Bytes that are looked at.
const BYTES: u64 = 8192;

/// The part of a log that one process wrote.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    path: PathBuf,
    from: u64,
}

impl Log {
    /// What will be written from now on.
    pub(crate) fn from_now(path: &Path) -> Self {
        let from = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Self { path: path.to_owned(), from }
    }

    /// Its end as text; empty where there is none.
    fn tail(&self) -> String {
        let read = || -> Result<String> {
            let mut file = File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.from.max(length.saturating_sub(BYTES))))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    /// Whether it tells of a full disk.
    pub(crate) fn tells_of_full_disk(&self) -> bool {
        let text = self.tail();
        DISK_FULL.iter().any(|words| text.contains(words))
    }

    /// Its last lines, on one line; only those that tell a cause, where some do.
    pub(crate) fn end(&self) -> String {
        let text = self.tail();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let telling = |line: &&&str| CAUSES.iter().any(|cause| line.contains(cause));
        let causes: Vec<&str> = lines.iter().filter(telling).copied().collect();
        let chosen = if causes.is_empty() { &lines } else { &causes };
        let (before, last) = chosen.split_at(chosen.len().saturating_sub(LINES));
        // What a server says of damaged data stands before all that it then cannot do.
        let damage = before.iter().find(|line| line.contains(DAMAGE));
        let shown: Vec<&str> = damage.into_iter().chain(last).copied().collect();
        if shown.is_empty() { "(nothing)".to_owned() } else { shown.join(" / ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, since: &str, end: &str, full: bool) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), before).unwrap();
        let log = Log::from_now(file.path());
        std::fs::write(file.path(), format!("{before}{since}")).unwrap();
        assert_eq!((log.end().as_str(), log.tells_of_full_disk()), (end, full));
    }

    #[test]
    fn only_what_came_since_counts_and_causes_come_first() {
        check("No space left on device\n", "", "(nothing)", false);
        check("ERROR old\n", "a\n\n b \n", "a / b", false);
        check(
            "",
            "LOG: a\nFATAL: No space left on device\nLOG: b\n",
            "FATAL: No space left on device",
            true,
        );
        check("", "1\n2\n3\n4\n5\n6\n7\n", "2 / 3 / 4 / 5 / 6 / 7", false);
        check(
            "",
            "ERROR 0\nERROR corrupted\nERROR 1\nERROR 2\nERROR 3\nERROR 4\nERROR 5\nERROR 6\n",
            "ERROR corrupted / ERROR 1 / ERROR 2 / ERROR 3 / ERROR 4 / ERROR 5 / ERROR 6",
            false,
        );
    }
}
