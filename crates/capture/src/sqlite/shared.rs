//! One direct file per inode, shared by all connections of the process.
//!
//! POSIX locks belong to the process and the inode: closing *any* descriptor of the inode drops
//! them all, also those that SQLite's unix VFS holds through a descriptor of its own. So there is
//! one descriptor of ours per inode, closed when the last handle closes, under the registry's
//! lock. Sharing also makes the pending bytes of a log visible to every connection.
//!
//! Invariants: at most one [`SharedFile`] per inode; a descriptor opened by mistake is parked, not
//! closed. A data file's `pending_logs` counts its logs that hold bytes not yet on file.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, TryLockError, Weak};

use super::direct::DirectFile;
use super::files::FileClass;
use super::log::{Blocks, LogWindow};
use super::simulated::Place;

/// Bytes of the wal-index that tell one state of the log from another: the first copy of its
/// header (SQLite file format, section "WAL-Index Format").
pub(super) const WAL_INDEX_HEADER: usize = 48;

/// A file open past the page cache.
pub(super) struct SharedFile {
    file: DirectFile,
    identity: (u64, u64),
    path: PathBuf,
    class: FileClass,
    log: Option<Mutex<Log>>,
    /// First byte of the log that is not on file yet; `u64::MAX` when all are.
    pending_from: AtomicU64,
    /// Size of the log as SQLite sees it.
    log_size: AtomicU64,
    /// Space is reserved up to here, bytes.
    reserved_end: AtomicU64,
    /// Reserve space in pieces of this many bytes; 0 leaves it to the writes.
    preallocate: u64,
    /// Guards writes that share a block with another writer.
    partial: Mutex<()>,
    /// On a data file: its log and journal.
    logs: Mutex<Vec<Weak<SharedFile>>>,
    /// On a data file and its logs alike: how many of the logs have bytes pending.
    pending_logs: Arc<AtomicU64>,
    /// Handles that are open; changes under the registry's lock only.
    handles: AtomicU64,
    /// On a data file: the wal-index header when this process last let go of the write lock.
    index_header: Mutex<Option<[u8; WAL_INDEX_HEADER]>>,
    /// Descriptors that may not be closed before this one.
    parked: Mutex<Vec<DirectFile>>,
}

struct Log {
    window: LogWindow,
    /// The frame header written last says that its page completes a commit.
    commit_ahead: bool,
}

type Registry = HashMap<(u64, u64), Arc<SharedFile>>;
static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().expect("registry lock")
}

/// What to open.
pub(super) struct Opening<'a> {
    pub path: &'a Path,
    pub class: FileClass,
    pub file: u16,
    pub preallocate: u64,
    /// The device in virtual time to be on.
    pub world: Option<&'a Place>,
}

impl SharedFile {
    /// The process's direct file for an existing path.
    pub(super) fn open(opening: &Opening<'_>) -> io::Result<Arc<Self>> {
        let mut registry = registry();
        let stat = std::fs::symlink_metadata(opening.path)?;
        if let Some(known) = registry.get(&(stat.dev(), stat.ino())) {
            return Ok(known.another_handle());
        }
        let file = DirectFile::open(opening.path, opening.file, opening.world)?;
        let identity = file.identity()?;
        if let Some(known) = registry.get(&identity) {
            // The path was renamed over between the two looks; closing would drop its locks.
            known.parked.lock().expect("parking lock").push(file);
            return Ok(known.another_handle());
        }
        let owner = database_of(opening, &registry);
        let counter = owner.map(|owner| Arc::clone(&owner.pending_logs)).unwrap_or_default();
        let shared = Arc::new(Self::over(file, identity, opening, counter)?);
        if let Some(owner) = owner {
            let mut logs = owner.logs.lock().expect("logs lock");
            logs.retain(|log| log.strong_count() > 0);
            logs.push(Arc::downgrade(&shared));
        }
        registry.insert(identity, Arc::clone(&shared));
        Ok(shared)
    }

    /// A temporary file in `directory`, known to its one handle only.
    pub(super) fn temporary(
        directory: &Path,
        file: u16,
        world: Option<&Place>,
    ) -> io::Result<Arc<Self>> {
        let direct = DirectFile::temporary(directory, file, world)?;
        let (path, class, preallocate) = (directory, FileClass::Temp, 0);
        let opening = Opening { path, class, file, preallocate, world };
        Ok(Arc::new(Self::over(direct, (0, 0), &opening, Arc::default())?))
    }

    fn over(
        file: DirectFile,
        identity: (u64, u64),
        opening: &Opening<'_>,
        pending_logs: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let size = file.size()?;
        let window = |exact| {
            let window = LogWindow::new(Blocks::block(&file), size, exact);
            Some(Mutex::new(Log { window, commit_ahead: false }))
        };
        let log = match opening.class {
            FileClass::Data => None,
            FileClass::Log | FileClass::Temp => window(false),
            FileClass::Journal => window(true),
        };
        let reserves = matches!(opening.class, FileClass::Data | FileClass::Log);
        Ok(Self {
            identity,
            path: opening.path.to_owned(),
            class: opening.class,
            log,
            pending_from: AtomicU64::new(u64::MAX),
            log_size: AtomicU64::new(size),
            reserved_end: AtomicU64::new(size),
            preallocate: if reserves { opening.preallocate } else { 0 },
            partial: Mutex::default(),
            logs: Mutex::default(),
            pending_logs,
            handles: AtomicU64::new(1),
            index_header: Mutex::default(),
            parked: Mutex::default(),
            file,
        })
    }

    fn another_handle(self: &Arc<Self>) -> Arc<Self> {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Arc::clone(self)
    }

    /// Lets go of a handle; the last one closes the descriptor, with the registry locked so that
    /// no new handle takes a lock in between.
    pub(super) fn close(self: Arc<Self>) -> io::Result<()> {
        let drained = self.drain();
        let mut registry = registry();
        if self.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            registry.remove(&self.identity);
        }
        drop(self);
        drained
    }

    /// Where it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `into` from `offset`; returns how many bytes the file has there.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let Some(log) = &self.log else { return self.file.read(offset, into) };
        let end = offset + into.len() as u64;
        let pending_from = self.pending_from.load(Ordering::Acquire);
        // A write-ahead log without pending bytes is what is on file: another process may have
        // written more of it. Other logs are ours alone, and may be padded on file.
        let shared = self.class == FileClass::Log && pending_from == u64::MAX;
        if end <= pending_from && (shared || end <= self.log_size.load(Ordering::Acquire)) {
            return self.file.read(offset, into);
        }
        in_turn(log).window.read(&self.file, offset, into)
    }

    /// Writes `data` at `offset`.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.file.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.reserve(offset + data.len() as u64);
        if self.log.is_some() {
            return self.write_log(offset, data);
        }
        self.drain_logs()?;
        let block = self.file.block();
        let whole = offset.is_multiple_of(block) && (data.len() as u64).is_multiple_of(block);
        let _guard = (!whole).then(|| in_turn(&self.partial));
        self.file.write(offset, data)
    }

    fn write_log(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut log = self.lock_log();
        let end = offset + data.len() as u64;
        let rewrites = end <= log.window.live_end();
        if self.class == FileClass::Log && offset == 0 && data.len() == WAL_HEADER {
            log.window.restart();
        }
        let written = log.window.write(&self.file, offset, data);
        let due = match (self.class, data.len()) {
            // A frame's header tells in bytes 4..8 whether the frame completes a commit.
            (FileClass::Log, FRAME_HEADER) => {
                log.commit_ahead = data[4..8] != [0; 4];
                log.commit_ahead && rewrites
            }
            (FileClass::Log, _) => std::mem::take(&mut log.commit_ahead),
            // A journal's header is rewritten to make its records valid, or to end it.
            (FileClass::Journal, _) => rewrites,
            _ => false,
        };
        let drained = if due && written.is_ok() { log.window.drain(&self.file) } else { Ok(()) };
        self.publish(&log.window);
        written.and(drained)
    }

    /// Puts a log's pending bytes on file; does nothing for other files.
    pub(super) fn drain(&self) -> io::Result<()> {
        if self.pending_from.load(Ordering::Acquire) == u64::MAX {
            return Ok(());
        }
        let mut log = self.lock_log();
        let drained = log.window.drain(&self.file);
        self.publish(&log.window);
        drained
    }

    /// Puts the pending bytes of a data file's logs on file: before anything that relies on them.
    pub(super) fn drain_logs(&self) -> io::Result<()> {
        if self.pending_logs.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let logs: Vec<_> =
            self.logs.lock().expect("logs lock").iter().filter_map(Weak::upgrade).collect();
        logs.iter().try_for_each(|log| log.drain())
    }

    /// Makes the file durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.drain()?;
        self.file.sync()
    }

    /// Sets the file's size.
    pub(super) fn truncate(&self, size: u64) -> io::Result<()> {
        if self.log.is_none() {
            self.drain_logs()?;
            self.reserved_end.fetch_min(size, Ordering::Relaxed);
            return self.file.truncate(size);
        }
        let mut log = self.lock_log();
        let cut = log.window.truncate(&self.file, size);
        self.publish(&log.window);
        self.reserved_end.fetch_min(size, Ordering::Relaxed);
        cut
    }

    /// Bytes in the file, pending ones included.
    pub(super) fn size(&self) -> io::Result<u64> {
        let on_file = self.file.size()?;
        let Some(log) = &self.log else { return Ok(on_file) };
        let known = in_turn(log).window.size();
        // More than our padding: another process has written to the log.
        let padded = known.next_multiple_of(Blocks::block(&self.file));
        Ok(if self.class == FileClass::Log && on_file > padded { on_file } else { known })
    }

    /// This process takes the log's write lock: forgets what it knew of the log where the
    /// wal-index shows that another process wrote in between.
    pub(super) fn write_lock_taken(&self, header: [u8; WAL_INDEX_HEADER]) {
        let known = self.index_header.lock().expect("header lock").replace(header);
        if known == Some(header) {
            return;
        }
        for log in self.logs.lock().expect("logs lock").iter().filter_map(Weak::upgrade) {
            if log.class == FileClass::Log
                && let Ok(size) = log.file.size()
            {
                let mut held = log.lock_log();
                if held.window.pending_from() == u64::MAX {
                    held.window.forget(size);
                    log.publish(&held.window);
                }
            }
        }
    }

    /// This process lets go of the log's write lock.
    pub(super) fn write_lock_released(&self, header: [u8; WAL_INDEX_HEADER]) {
        *self.index_header.lock().expect("header lock") = Some(header);
    }

    fn lock_log(&self) -> MutexGuard<'_, Log> {
        in_turn(self.log.as_ref().expect("called for logs only"))
    }

    /// Tells lock-free readers and the database what is pending now.
    fn publish(&self, window: &LogWindow) {
        let now = window.pending_from();
        self.log_size.store(window.size(), Ordering::Release);
        let before = self.pending_from.swap(now, Ordering::AcqRel);
        match (before == u64::MAX, now == u64::MAX) {
            (true, false) => _ = self.pending_logs.fetch_add(1, Ordering::AcqRel),
            (false, true) => _ = self.pending_logs.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }

    /// Reserves space ahead of a write that grows the file.
    fn reserve(&self, end: u64) {
        if self.preallocate == 0 {
            return;
        }
        let reserved = self.reserved_end.load(Ordering::Relaxed);
        if end > reserved {
            let until = end.next_multiple_of(self.preallocate);
            self.file.reserve(reserved, until - reserved);
            self.reserved_end.fetch_max(until, Ordering::Relaxed);
        }
    }
}

/// A lock that is held during requests. In virtual time who holds it may be waiting for its turn,
/// so that no thread may block on it.
fn in_turn<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) if virtual_time::give_way() => {}
            Err(_) => return mutex.lock().expect("no panic while holding the lock"),
        }
    }
}

/// The database that a log or journal belongs to, by SQLite's naming, where it is open.
fn database_of<'a>(opening: &Opening<'_>, registry: &'a Registry) -> Option<&'a Arc<SharedFile>> {
    let path = opening.path.as_os_str().as_encoded_bytes();
    let suffix: &[u8] = match opening.class {
        FileClass::Log => b"-wal",
        FileClass::Journal => b"-journal",
        FileClass::Data | FileClass::Temp => return None,
    };
    let database = path.strip_suffix(suffix)?;
    registry.values().find(|other| {
        other.class == FileClass::Data && other.path.as_os_str().as_encoded_bytes() == database
    })
}

/// Bytes of a write-ahead log's header (SQLite file format, section 4.1).
const WAL_HEADER: usize = 32;
/// Bytes of a frame's header in it.
const FRAME_HEADER: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::recorder;

    /// A database with one of its logs, open past the page cache; `None` where that is refused.
    fn pair(
        folder: &Path,
        class: FileClass,
        suffix: &str,
    ) -> Option<(Arc<SharedFile>, Arc<SharedFile>, PathBuf)> {
        let open = |name: &str, class| {
            let path = folder.join(name);
            std::fs::write(&path, b"").unwrap();
            let opening = Opening { path: &path, class, file: 0, preallocate: 0, world: None };
            SharedFile::open(&opening).map_err(|error| println!("skipped: {error}")).ok()
        };
        let data = open("db", FileClass::Data)?;
        let name = format!("db{suffix}");
        Some((data, open(&name, class)?, folder.join(name)))
    }

    fn on_file(path: &Path) -> usize {
        std::fs::read(path).unwrap().len()
    }

    fn home() -> tempfile::TempDir {
        tempfile::tempdir_in(crate::test_home()).unwrap()
    }

    #[test]
    fn the_journal_is_on_file_before_the_database_changes() {
        let _turn = recorder::TURN.lock().unwrap();
        let folder = home();
        let Some((data, journal, path)) = pair(folder.path(), FileClass::Journal, "-journal")
        else {
            return;
        };
        journal.write(0, &[1; 700]).unwrap();
        assert_eq!(on_file(&path), 0, "an append waits");
        data.write(0, &[2; 4096]).unwrap();
        assert_eq!(on_file(&path), 700);
        journal.write(700, &[1; 100]).unwrap();
        data.truncate(0).unwrap();
        assert_eq!(on_file(&path), 800);
        journal.write(800, &[1; 100]).unwrap();
        assert_eq!(on_file(&path), 800);
        // The header is rewritten: the journal's records become valid, or end.
        journal.write(0, &[0; 28]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[..28], [0; 28]);
        assert_eq!(on_file(&path), 900);
        data.close().unwrap();
        journal.close().unwrap();
    }

    #[test]
    fn a_commit_frame_puts_the_log_on_file() {
        let _turn = recorder::TURN.lock().unwrap();
        let folder = home();
        let Some((data, log, path)) = pair(folder.path(), FileClass::Log, "-wal") else { return };
        log.write(0, &[7; WAL_HEADER]).unwrap();
        let (middle, mut commit) = ([0; FRAME_HEADER], [0; FRAME_HEADER]);
        commit[7] = 5;
        log.write(32, &middle).unwrap();
        log.write(56, &[1; 4096]).unwrap();
        assert_eq!(on_file(&path), 0, "not committed, not full");
        log.write(4152, &commit).unwrap();
        log.write(4176, &[2; 4096]).unwrap();
        assert_eq!(on_file(&path), 12288);
        assert_eq!(log.size().unwrap(), 8272, "the padding does not show");
        // A frame rewritten in place, then whatever makes it visible.
        log.write(32, &middle).unwrap();
        let mut into = [9; FRAME_HEADER];
        assert_eq!(log.read(32, &mut into).unwrap(), FRAME_HEADER);
        data.drain_logs().unwrap();
        assert_eq!(log.pending_from.load(Ordering::Relaxed), u64::MAX);
        assert_eq!(data.pending_logs.load(Ordering::Relaxed), 0);
        log.close().unwrap();
        data.close().unwrap();
    }

    #[test]
    fn one_descriptor_per_inode_until_the_last_handle_closes() {
        let _turn = recorder::TURN.lock().unwrap();
        let folder = home();
        let Some((data, log, _)) = pair(folder.path(), FileClass::Log, "-wal") else { return };
        let path = folder.path().join("db");
        let again =
            Opening { path: &path, class: FileClass::Data, file: 0, preallocate: 0, world: None };
        let second = SharedFile::open(&again).unwrap();
        assert!(Arc::ptr_eq(&data, &second));
        let identity = data.identity;
        data.close().unwrap();
        assert!(registry().contains_key(&identity));
        second.close().unwrap();
        assert!(!registry().contains_key(&identity));
        log.close().unwrap();
    }
}
