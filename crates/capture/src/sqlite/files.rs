//! Which files the process has had open: the table behind the event's file index.
//!
//! A path keeps its index for the life of the process, so that a journal deleted and created
//! again stays one file. Temporary files have no name; a free slot is used again, as a file system
//! uses freed space again, so the table stays small.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

/// What a file of the database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileClass {
    /// Tables and indices: the database file.
    Data,
    /// The write-ahead log.
    Log,
    /// The rollback journal (and the super-journal of a transaction over several files).
    Journal,
    /// Sorts, temporary tables, statement journals: gone when closed.
    Temp,
}

impl FileClass {
    /// All of them, in the order of their regions and stream indices.
    pub const ALL: [Self; 4] = [Self::Data, Self::Log, Self::Journal, Self::Temp];

    /// The stream name in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Journal => "journal",
            Self::Temp => "temp",
        }
    }
}

/// One file that the process has had open.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub class: FileClass,
    pub path: PathBuf,
    /// Handles open now.
    pub open: usize,
    /// Session that opened it last.
    pub session: u64,
    /// Most bytes it was seen to have.
    pub size: u64,
}

/// All of them; the index of an entry is the event's file index.
#[derive(Default)]
pub(super) struct Table {
    pub entries: Vec<Entry>,
    by_path: HashMap<PathBuf, u16>,
    /// The session that files are opened for now; 0 is none.
    pub session: u64,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// The process's table.
pub(super) fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().expect("file table lock")
}

/// Index of files beyond the table's range: they are captured, but share one entry.
const OVERFLOW: u16 = u16::MAX;

impl Table {
    /// Takes note of an open handle and returns its file's index.
    pub(super) fn opened(&mut self, path: Option<&Path>, class: FileClass) -> u16 {
        let known = match path {
            Some(path) => self.by_path.get(path).copied(),
            None => self.free_temporary(),
        };
        let index = known.unwrap_or_else(|| self.add(path, class));
        let session = self.session;
        if let Some(entry) = self.entries.get_mut(usize::from(index)) {
            entry.open += 1;
            entry.session = session;
            entry.class = class;
        }
        index
    }

    /// Takes note of a closed handle whose file had `size` bytes.
    pub(super) fn closed(&mut self, index: u16, size: u64) {
        if let Some(entry) = self.entries.get_mut(usize::from(index)) {
            entry.open -= 1;
            entry.size = entry.size.max(size);
        }
    }

    /// What a file holds.
    pub(super) fn class(&self, index: u16) -> FileClass {
        self.entries.get(usize::from(index)).map_or(FileClass::Temp, |entry| entry.class)
    }

    /// Index of a path, where it was ever opened.
    pub(super) fn find(&self, path: &Path) -> Option<u16> {
        self.by_path.get(path).copied()
    }

    fn free_temporary(&self) -> Option<u16> {
        let free = |entry: &Entry| entry.class == FileClass::Temp && entry.open == 0;
        self.entries.iter().position(free).map(|index| index as u16)
    }

    fn add(&mut self, path: Option<&Path>, class: FileClass) -> u16 {
        if self.entries.len() >= usize::from(OVERFLOW) {
            return OVERFLOW;
        }
        let index = self.entries.len() as u16;
        let name = || PathBuf::from(format!("temp-{index}"));
        let (open, session, size) = (0, self.session, 0);
        let path = path.map_or_else(name, |path| {
            self.by_path.insert(path.to_owned(), index);
            path.to_owned()
        });
        self.entries.push(Entry { class, path, open, session, size });
        index
    }
}
