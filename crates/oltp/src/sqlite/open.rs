//! Opening a database with its settings, and the marks that tell ours from others.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use units::Bytes;

use super::schema::{APPLICATION_ID, LAYOUT};
use crate::Error;
use crate::meta::Meta;
use crate::options::{JournalMode, SqliteSettings};
use crate::workload::Workload;

/// How long SQLite itself waits for another process's lock.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Opens the file with flags, through the VFS that the settings name.
pub(super) fn open_file(
    path: &Path,
    vfs: Option<&str>,
    flags: OpenFlags,
) -> Result<Connection, Error> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    };
    let connection = opened.map_err(|source| Error::sqlite(path, "opening", source))?;
    connection
        .busy_timeout(BUSY_WAIT)
        .map_err(|source| Error::sqlite(path, "setting the busy timeout", source))?;
    Ok(connection)
}

/// Sets one pragma; the answer, where there is one, is dropped.
pub(super) fn pragma(
    connection: &Connection,
    path: &Path,
    name: &str,
    value: &str,
) -> Result<(), Error> {
    connection
        .execute_batch(&format!("PRAGMA {name} = {value}"))
        .map_err(|source| Error::sqlite(path, format!("setting {name} = {value}"), source))
}

/// Reads one integer.
pub(super) fn integer(connection: &Connection, path: &Path, sql: &str) -> Result<i64, Error> {
    connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(|source| Error::sqlite(path, format!("reading ({sql})"), source))
}

/// Opens a connection of a run: the writer's or a reader's.
pub(crate) fn open(
    path: &Path,
    settings: &SqliteSettings,
    writes: bool,
) -> Result<Connection, Error> {
    let vfs = settings.vfs.as_deref();
    let connection = open_file(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let (writer, reader) = settings.buffer_split();
    set_cache(&connection, path, if writes { writer } else { reader })?;
    pragma(&connection, path, "mmap_size", "0")?;
    pragma(&connection, path, "synchronous", settings.synchronous.pragma())?;
    pragma(&connection, path, "wal_autocheckpoint", &settings.wal_autocheckpoint.to_string())?;
    if writes {
        set_journal_mode(&connection, path, settings.journal_mode)?;
        if let Some(limit) = settings.size_limit {
            let page = integer(&connection, path, "PRAGMA page_size")?;
            let pages = limit.0 / page as u64;
            pragma(&connection, path, "max_page_count", &pages.to_string())?;
        }
    } else {
        pragma(&connection, path, "query_only", "1")?;
    }
    Ok(connection)
}

/// Sizes a connection's page cache.
pub(super) fn set_cache(connection: &Connection, path: &Path, size: Bytes) -> Result<(), Error> {
    // A negative value counts KiB; SQLite keeps 10 pages at the least.
    pragma(connection, path, "cache_size", &format!("-{}", (size.0 / 1024).max(1)))
}

/// Sets the journal mode and checks that it took: SQLite answers with the old mode where it cannot
/// change, for example while another process has the file open.
pub(super) fn set_journal_mode(
    connection: &Connection,
    path: &Path,
    mode: JournalMode,
) -> Result<(), Error> {
    let doing = || format!("setting journal_mode = {}", mode.pragma());
    let answer: String = connection
        .query_row(&format!("PRAGMA journal_mode = {}", mode.pragma()), [], |row| row.get(0))
        .map_err(|source| Error::sqlite(path, doing(), source))?;
    if answer.eq_ignore_ascii_case(mode.pragma()) {
        return Ok(());
    }
    Err(Error::Option {
        option: "journal_mode",
        value: mode.pragma().to_owned(),
        why: "SQLite kept another mode: is the database open elsewhere, or does the VFS lack \
              shared memory?",
    })
}

/// Opens a database for reading only, with a cache of its own.
pub(crate) fn open_read_only(path: &Path, vfs: Option<&str>) -> Result<Connection, Error> {
    let connection = open_file(path, vfs, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    set_cache(&connection, path, Bytes(64 << 20))?;
    Ok(connection)
}

/// Checks that the file is a complete database of ours and reads what the load wrote down.
pub(crate) fn read_meta(path: &Path, vfs: Option<&str>, expected: Workload) -> Result<Meta, Error> {
    if !path.is_file() {
        return Err(Error::NoDatabase { path: path.to_owned() });
    }
    let connection = open_file(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let not_ours = |error| match error {
        Error::Sqlite { source, .. }
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
        {
            Error::NotOurs { path: path.to_owned() }
        }
        other => other,
    };
    let id = integer(&connection, path, "PRAGMA application_id").map_err(not_ours)?;
    if id != APPLICATION_ID {
        return Err(Error::NotOurs { path: path.to_owned() });
    }
    match integer(&connection, path, "PRAGMA user_version")? {
        LAYOUT => {}
        0 => return Err(Error::HalfLoaded { path: path.to_owned() }),
        found => {
            return Err(Error::OtherVersion { path: path.to_owned(), found, expected: LAYOUT });
        }
    }
    let mut value = |key: &str| {
        integer(&connection, path, &format!("SELECT value FROM wearmark_meta WHERE key = '{key}'"))
    };
    Meta::read(&mut value, expected)
}

/// The integer that a query returns first, where it returns one.
pub(crate) fn first_integer(
    path: &Path,
    vfs: Option<&str>,
    sql: &str,
) -> Result<Option<i64>, Error> {
    let connection = open_file(path, vfs, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let failed = |source| Error::sqlite(path, format!("asking ({sql})"), source);
    let found = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0)).optional();
    found.map(Option::flatten).map_err(failed)
}

/// Notes in the database that a run changes it, which voids the condition that holds before runs
/// only (clause 3.3.2.11), and folds a log of an earlier run into the file.
pub(crate) fn count_run(path: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    let connection = open(path, settings, true)?;
    let sqlite = |doing: &'static str| move |source| Error::sqlite(path, doing, source);
    connection
        .execute("UPDATE wearmark_meta SET value = value + 1 WHERE key = 'runs'", [])
        .map_err(sqlite("noting the run"))?;
    if settings.journal_mode == JournalMode::Wal {
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(sqlite("checkpointing the log"))?;
    }
    Ok(())
}
