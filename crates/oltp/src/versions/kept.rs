//! What a DBMS keeps for old readers, and what it does with it when they have ended.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dbms::{Instance, System};
use events::Sink;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::statements::{Ground, Session};

/// Sizes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Bytes of the table's file, in which PostgreSQL keeps old versions.
    pub table_bytes: u64,
    /// PostgreSQL: rows that only old readers can see.
    pub dead_rows: Option<u64>,
    /// InnoDB: bytes of the undo tablespaces.
    pub undo_bytes: Option<u64>,
    /// InnoDB: transactions whose undo is kept.
    pub history_length: Option<u64>,
    /// SQLite: bytes of the WAL.
    pub wal_bytes: Option<u64>,
    /// SQLite: share of the database's pages that a fresh reader finds in the WAL. An old reader,
    /// whose snapshot is before it, finds none there.
    pub wal_page_share: Option<f64>,
}

/// How the old versions went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cleanup {
    /// `vacuum`, `purge` or `checkpoint`.
    pub by: String,
    /// How long it took, ms.
    pub elapsed_ms: f64,
    /// Whether nothing old was left at the end; a purge is waited for a minute at most.
    pub complete: bool,
    /// What is kept then.
    pub kept: Kept,
}

/// How long a purge is waited for.
const PURGE_BOUND: Duration = Duration::from_mins(1);

/// What is kept now.
pub(super) fn look(ground: &Ground, session: &mut Session) -> Result<Kept, Error> {
    match session {
        Session::Postgresql(_) => {
            // The updaters' sessions have ended, and so handed in what they counted.
            let dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'v'";
            Ok(Kept {
                table_bytes: session.number("SELECT pg_relation_size('v')")? as u64,
                dead_rows: Some(session.number(dead)? as u64),
                ..Kept::default()
            })
        }
        Session::Mariadb(_) => {
            let history = history(session)?;
            Ok(Kept {
                table_bytes: file_of_table(ground.instance()),
                undo_bytes: ground.instance().map(undo_bytes),
                history_length: Some(history),
                ..Kept::default()
            })
        }
        Session::Sqlite(..) => {
            let file = ground.sqlite_file().unwrap_or_default();
            let wal = with_suffix(&file, "-wal");
            let pages = session.number("PRAGMA page_count")?;
            let in_wal = wal_pages(&fs::read(&wal).unwrap_or_default()) as f64;
            Ok(Kept {
                table_bytes: size(&file),
                wal_bytes: Some(size(&wal)),
                wal_page_share: Some((in_wal / pages.max(1.0)).min(1.0)),
                ..Kept::default()
            })
        }
    }
}

/// Lets the old versions go, and waits for it.
pub(super) fn clean(
    ground: &Ground,
    session: &mut Session,
    sink: &dyn Sink,
) -> Result<Cleanup, Error> {
    let started = Instant::now();
    let (by, complete) = match session {
        Session::Postgresql(_) => {
            session.run("VACUUM v")?;
            ("vacuum", true)
        }
        Session::Mariadb(_) => {
            let mut left = history(session)?;
            while left > 0 && started.elapsed() < PURGE_BOUND && !sink.cancelled() {
                std::thread::sleep(Duration::from_millis(50));
                left = history(session)?;
            }
            ("purge", left == 0)
        }
        Session::Sqlite(..) => {
            let rows = session.rows("PRAGMA wal_checkpoint(TRUNCATE)")?;
            let busy = rows.first().and_then(|row| row.first().cloned()).flatten();
            ("checkpoint", busy.as_deref() == Some("0"))
        }
    };
    let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
    let kept = look(ground, session)?;
    Ok(Cleanup { by: by.to_owned(), elapsed_ms, complete, kept })
}

fn history(session: &mut Session) -> Result<u64, Error> {
    let rows = session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'")?;
    let cell = rows.first().and_then(|row| row.get(1).cloned()).flatten();
    Ok(cell.and_then(|text| text.parse().ok()).unwrap_or(0))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Bytes of the files in a folder and below whose name is wanted.
fn bytes_below(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return bytes_below(&path, wanted);
        }
        if wanted(&entry.file_name().to_string_lossy()) { size(&path) } else { 0 }
    });
    bytes.sum()
}

/// The undo tablespaces; without ones of their own, undo is in the system tablespace.
fn undo_bytes(instance: &Instance) -> u64 {
    let own = bytes_below(&instance.files().undo, &|name| name.starts_with("undo"));
    if own > 0 { own } else { bytes_below(&instance.files().data, &|name| name == "ibdata1") }
}

fn file_of_table(instance: Option<&Instance>) -> u64 {
    instance.map_or(0, |instance| {
        assert!(instance.system() == System::Mariadb, "InnoDB's files");
        bytes_below(&instance.files().data, &|name| name == "v.ibd")
    })
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Distinct pages in an SQLite WAL, after its file format: a header of 32 bytes, then frames of 24
/// bytes and a page; frames of an earlier use of the file carry other salts.
fn wal_pages(wal: &[u8]) -> usize {
    let word = |at: usize| {
        wal.get(at..at + 4).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("4 bytes")))
    };
    let (Some(page_bytes), Some(salt)) = (word(8), wal.get(16..24)) else { return 0 };
    let frame_bytes = 24 + page_bytes as usize;
    let mut pages = HashSet::new();
    let mut at = 32;
    while wal.len() >= at + frame_bytes && wal.get(at + 8..at + 16) == Some(salt) {
        pages.extend(word(at));
        at += frame_bytes;
    }
    pages.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_wal_are_counted_once() {
        let mut wal = vec![0u8; 32];
        wal[8..12].copy_from_slice(&512u32.to_be_bytes());
        wal[16..24].copy_from_slice(b"saltsalt");
        let mut frame = |page: u32, salt: &[u8]| {
            let mut bytes = vec![0u8; 24 + 512];
            bytes[..4].copy_from_slice(&page.to_be_bytes());
            bytes[8..16].copy_from_slice(salt);
            wal.extend(bytes);
        };
        for page in [3, 4, 3] {
            frame(page, b"saltsalt");
        }
        frame(9, b"earlier!");
        assert_eq!(wal_pages(&wal), 2);
        assert_eq!(wal_pages(&wal[..100]), 0);
        assert_eq!(wal_pages(&[]), 0);
    }
}
