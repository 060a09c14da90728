//! The VFS itself: SQLite's calls, timed, and passed on or done past the page cache.
//!
//! It stands on the unix VFS ("shim", SQLite documentation "The SQLite OS Interface or VFS"):
//! names, locks, shared memory and deletion stay SQLite's own. In [`IoMode::Buffered`] the unix
//! VFS does the I/O too; in [`IoMode::Direct`] it is done on a descriptor of our own with
//! O_DIRECT. Memory-mapped I/O is off (`iVersion` 2 has no xFetch), because it would bypass both.
//!
//! Layout of a file handle: [`Handle`] in front, the unix VFS's own handle behind it at
//! [`INNER_OFFSET`]; SQLite allocates `szOsFile` bytes for both.
//!
//! Invariants: every method returns SQLite's result codes and never unwinds; a short read zeroes
//! the rest of the buffer. Tested by running SQL against the stock VFS and comparing.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, Mutex, Once};

use rusqlite::ffi;
use trace::Op;

use super::direct::{self, clock};
use super::files::{self, FileClass};
use super::layout::IoMode;
use super::recorder::{self, Happened, Layer};
use super::session;
use super::shared::{Opening, SharedFile, WAL_INDEX_HEADER};
use crate::{Error, now_ns};

/// Name to open connections with: `Connection::open_with_flags_and_vfs(path, flags, VFS_NAME)`.
pub const VFS_NAME: &str = "wearmark";
const VFS_NAME_C: &CStr = c"wearmark";

/// What SQLite holds of an open file: only `methods` is its business.
#[repr(C)]
struct Handle {
    methods: *const ffi::sqlite3_io_methods,
    state: *mut State,
}

/// Where the unix VFS's handle begins within ours: both pointers, and alignment for anything.
const INNER_OFFSET: usize = 16;
const _: () = assert!(size_of::<Handle>() <= INNER_OFFSET);

/// What we know of an open file.
struct State {
    /// The unix VFS's handle; null for a temporary file of our own.
    inner: *mut ffi::sqlite3_file,
    /// The direct file; `None` where the unix VFS does the I/O.
    direct: Option<Arc<SharedFile>>,
    /// Index into the process's file table.
    file: u16,
    /// The directory must be synced together with the file, because the file is new in it.
    new_in_directory: Cell<bool>,
    /// The wal-index, once mapped by this connection.
    wal_index: Cell<*const u8>,
    /// System error of the last failed call.
    last_errno: Cell<i32>,
}

/// Registers the VFS with SQLite; does nothing the second time.
pub fn register() -> Result<(), Error> {
    static ONCE: Once = Once::new();
    static RESULT: Mutex<c_int> = Mutex::new(ffi::SQLITE_OK);
    ONCE.call_once(|| *RESULT.lock().expect("result lock") = install());
    match *RESULT.lock().expect("result lock") {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::Register { vfs: VFS_NAME, code }),
    }
}

/// The unix VFS. Called after `install` has found it.
fn unix() -> *mut ffi::sqlite3_vfs {
    // SAFETY: a lookup in SQLite's list, which initialises SQLite where needed.
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

fn install() -> c_int {
    let unix = unix();
    if unix.is_null() {
        return ffi::SQLITE_NOTFOUND;
    }
    // SAFETY: SQLite's VFS objects live as long as the process. The copy keeps `pAppData` and the
    // path limit, so that the unix functions that are taken over as they are (names, time,
    // randomness, sleeping, loading) find what they expect.
    let mut vfs = unsafe { *unix };
    vfs.pNext = ptr::null_mut();
    vfs.zName = VFS_NAME_C.as_ptr();
    vfs.szOsFile += INNER_OFFSET as c_int;
    vfs.xOpen = Some(open);
    vfs.xDelete = Some(delete);
    vfs.xSleep = Some(sleep);
    // SAFETY: the object is leaked, so SQLite may keep it for the life of the process.
    unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Calls a method of the unix VFS's handle.
macro_rules! inner {
    ($state:expr, $method:ident $(, $argument:expr)*) => {{
        let inner = $state.inner;
        match (*(*inner).pMethods).$method {
            Some(method) => method(inner $(, $argument)*),
            None => ffi::SQLITE_NOTFOUND,
        }
    }};
}

/// The state of a handle that SQLite passes in.
///
/// # Safety
/// `file` is a handle that `open` filled and `close` has not emptied, and SQLite calls the methods
/// of one handle from one thread at a time.
unsafe fn state<'a>(file: *mut ffi::sqlite3_file) -> &'a State {
    // SAFETY: by the contract above.
    unsafe { &*(*file.cast::<Handle>()).state }
}

/// Takes the time around one logical call and records it.
fn timed(state: &State, op: Op, range: (u64, u64), work: impl FnOnce() -> c_int) -> c_int {
    let start = clock();
    let code = work();
    if start != 0 {
        let (offset, len) = range;
        let (layer, file, end) = (Layer::Logical, state.file, now_ns());
        recorder::record(&Happened { layer, op, file, offset, len, start, end });
    }
    code
}

impl State {
    /// SQLite's code for a failed direct call, keeping the system's for SQLITE_FCNTL_LAST_ERRNO.
    fn fail(&self, error: &io::Error, code: c_int) -> c_int {
        let errno = error.raw_os_error().unwrap_or(0);
        self.last_errno.set(errno);
        if errno == libc::ENOSPC && code == ffi::SQLITE_IOERR_WRITE {
            ffi::SQLITE_FULL
        } else {
            code
        }
    }

    fn finish(&self, result: io::Result<()>, code: c_int) -> c_int {
        match result {
            Ok(()) => ffi::SQLITE_OK,
            Err(error) => self.fail(&error, code),
        }
    }

    /// The wal-index header as it is now, where this connection has the wal-index mapped.
    fn index_header(&self) -> Option<[u8; WAL_INDEX_HEADER]> {
        let start = self.wal_index.get();
        // SAFETY: set by `shm_map` to a mapping of at least 32 KiB that lives until `shm_unmap`,
        // which clears it. Called with the write lock held, so that no other writer exists.
        (!start.is_null()).then(|| unsafe { ptr::read_volatile(start.cast()) })
    }
}

fn class_of(flags: c_int) -> FileClass {
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        FileClass::Data
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        FileClass::Log
    } else if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL) != 0 {
        FileClass::Journal
    } else {
        FileClass::Temp
    }
}

/// The path behind a C string; `None` for null.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    // SAFETY: by the contract above.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let (class, settings) = (class_of(flags), session::settings());
    // SAFETY: SQLite passes null or a C string, and `szOsFile` bytes for the handle; a null
    // method table tells it that there is nothing to close.
    let path = unsafe { path_of(name) };
    unsafe { (*file).pMethods = ptr::null() };
    if path.is_none()
        && let Some(state) = open_temporary(&settings)
    {
        // SAFETY: as above; `out_flags` is null or writable.
        unsafe {
            hand_over(file, state);
            if !out_flags.is_null() {
                *out_flags = flags;
            }
        }
        return ffi::SQLITE_OK;
    }
    let unix = unix();
    // SAFETY: our handle leaves `szOsFile - INNER_OFFSET` bytes for the unix VFS's, which is
    // called as SQLite would call it.
    let (inner, code) = unsafe {
        let inner = file.byte_add(INNER_OFFSET);
        (*inner).pMethods = ptr::null();
        let open = (*unix).xOpen.expect("the unix VFS can open files");
        (inner, open(unix, name, inner, flags, out_flags))
    };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let index = files::table().opened(path.as_deref(), class);
    let direct = path.as_deref().filter(|_| settings.io == IoMode::Direct).and_then(|path| {
        let (preallocate, world) = (settings.preallocate, settings.world.as_ref());
        SharedFile::open(&Opening { path, class, file: index, preallocate, world })
            .map_err(|error| session::fell_back(path, &error))
            .ok()
    });
    let state = new_state(inner, direct, index);
    let journal = matches!(class, FileClass::Log | FileClass::Journal);
    state.new_in_directory.set(journal && flags & ffi::SQLITE_OPEN_CREATE != 0);
    // SAFETY: as above.
    unsafe { hand_over(file, state) };
    ffi::SQLITE_OK
}

/// A temporary file of our own, past the page cache; `None` leaves it to the unix VFS.
fn open_temporary(settings: &session::Settings) -> Option<State> {
    if settings.io != IoMode::Direct {
        return None;
    }
    let index = files::table().opened(None, FileClass::Temp);
    match SharedFile::temporary(&settings.directory, index, settings.world.as_ref()) {
        Ok(direct) => Some(new_state(ptr::null_mut(), Some(direct), index)),
        Err(error) => {
            files::table().closed(index, 0);
            session::fell_back(&settings.directory, &error);
            None
        }
    }
}

fn new_state(inner: *mut ffi::sqlite3_file, direct: Option<Arc<SharedFile>>, file: u16) -> State {
    State {
        inner,
        direct,
        file,
        new_in_directory: Cell::new(false),
        wal_index: Cell::new(ptr::null()),
        last_errno: Cell::new(0),
    }
}

/// Gives an open file to SQLite.
///
/// # Safety
/// `file` is what SQLite passed to `open`.
unsafe fn hand_over(file: *mut ffi::sqlite3_file, state: State) {
    let handle = Handle { methods: &raw const METHODS, state: Box::into_raw(Box::new(state)) };
    // SAFETY: by the contract above there is room for our handle.
    unsafe { ptr::write(file.cast::<Handle>(), handle) };
}

unsafe extern "C" fn delete(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_directory: c_int,
) -> c_int {
    let unix = unix();
    let start = clock();
    // SAFETY: SQLite passes a C string; the unix VFS is called as SQLite would call it.
    let path = unsafe { path_of(name) };
    let size = path.as_deref().filter(|_| start != 0).and_then(|path| path.metadata().ok());
    let code = match unsafe { (*unix).xDelete } {
        Some(delete) => unsafe { delete(unix, name, sync_directory) },
        None => ffi::SQLITE_IOERR_DELETE,
    };
    let file = path.and_then(|path| files::table().find(&path));
    if let (Some(file), Some(size)) = (file, size) {
        let end = now_ns();
        let (op, offset, len) = (Op::Trim, 0, size.len());
        for layer in [Layer::Logical, Layer::Device] {
            recorder::record(&Happened { layer, op, file, offset, len, start, end });
        }
        if sync_directory != 0 {
            let (layer, op, len) = (Layer::Device, Op::Flush, 0);
            recorder::record(&Happened { layer, op, file, offset, len, start, end });
        }
    }
    code
}

/// SQLite waits for a lock: in virtual time if the thread lives there.
unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    let ns = u64::from(microseconds.unsigned_abs()) * 1_000;
    if virtual_time::sleep(ns) {
        return microseconds;
    }
    let unix = unix();
    // SAFETY: the unix VFS is called as SQLite would call it.
    match unsafe { (*unix).xSleep } {
        Some(sleep) => unsafe { sleep(unix, microseconds) },
        None => 0,
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the handle is open, and this is the last call for it: the state comes back to us.
    let state = unsafe { Box::from_raw((*file.cast::<Handle>()).state) };
    let size = unsafe { size_of_file(&state) };
    files::table().closed(state.file, size);
    // SAFETY: as above.
    let code =
        if state.inner.is_null() { ffi::SQLITE_OK } else { unsafe { inner!(state, xClose) } };
    // Ours after SQLite's own: it has given its locks back by now.
    let closed = state.direct.map_or(Ok(()), SharedFile::close);
    match closed {
        Err(_) if code == ffi::SQLITE_OK => ffi::SQLITE_IOERR_CLOSE,
        _ => code,
    }
}

/// Bytes in the file; 0 where that cannot be told.
///
/// # Safety
/// The state belongs to an open handle.
unsafe fn size_of_file(state: &State) -> u64 {
    if let Some(direct) = &state.direct {
        return direct.size().unwrap_or(0);
    }
    let mut size = 0;
    // SAFETY: without a direct file there is an inner handle.
    unsafe { inner!(state, xFileSize, &raw mut size) };
    size.max(0) as u64
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite passes an open handle.
    let state = unsafe { state(file) };
    timed(state, Op::Read, (offset as u64, amount as u64), || {
        let Some(direct) = &state.direct else {
            // SAFETY: as SQLite called us.
            return unsafe { inner!(state, xRead, into, amount, offset) };
        };
        // SAFETY: SQLite passes a buffer of `amount` bytes; as far as it may be uninitialised, it
        // is plain bytes that are overwritten here before anything reads them.
        let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), amount as usize) };
        match direct.read(offset as u64, into) {
            Ok(found) if found == into.len() => ffi::SQLITE_OK,
            Ok(found) => {
                into[found..].fill(0);
                ffi::SQLITE_IOERR_SHORT_READ
            }
            Err(error) => state.fail(&error, ffi::SQLITE_IOERR_READ),
        }
    })
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite passes an open handle.
    let state = unsafe { state(file) };
    timed(state, Op::Write, (offset as u64, amount as u64), || {
        let Some(direct) = &state.direct else {
            // SAFETY: as SQLite called us.
            return unsafe { inner!(state, xWrite, from, amount, offset) };
        };
        // SAFETY: SQLite passes a buffer of `amount` bytes.
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), amount as usize) };
        state.finish(direct.write(offset as u64, from), ffi::SQLITE_IOERR_WRITE)
    })
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite passes an open handle.
    let state = unsafe { state(file) };
    let capturing = recorder::active();
    // SAFETY: as above.
    let before = if capturing { unsafe { size_of_file(state) } } else { 0 };
    let cut = (size as u64, before.saturating_sub(size as u64));
    let start = clock();
    let code = timed(state, Op::Trim, cut, || match &state.direct {
        Some(direct) => state.finish(direct.truncate(size as u64), ffi::SQLITE_IOERR_TRUNCATE),
        // SAFETY: as SQLite called us.
        None => unsafe { inner!(state, xTruncate, size) },
    });
    if start != 0 && state.direct.is_some() {
        let (layer, op, file, (offset, len)) = (Layer::Device, Op::Trim, state.file, cut);
        recorder::record(&Happened { layer, op, file, offset, len, start, end: now_ns() });
    }
    code
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open handle.
    let state = unsafe { state(file) };
    timed(state, Op::Flush, (0, 0), || {
        let Some(direct) = &state.direct else {
            // SAFETY: as SQLite called us.
            return unsafe { inner!(state, xSync, flags) };
        };
        let mut synced = direct.sync();
        if synced.is_ok() && state.new_in_directory.take() {
            // SQLite ignores a directory that cannot be opened, and so do we.
            if let Some(directory) = direct.path().parent() {
                synced = match direct::sync_directory(directory, state.file) {
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
                    _ => Ok(()),
                };
            }
        }
        state.finish(synced, ffi::SQLITE_IOERR_FSYNC)
    })
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite passes an open handle and a place for the result.
    unsafe {
        let state = state(file);
        let Some(direct) = &state.direct else { return inner!(state, xFileSize, size) };
        match direct.size() {
            Ok(bytes) => {
                *size = bytes as i64;
                ffi::SQLITE_OK
            }
            Err(error) => state.fail(&error, ffi::SQLITE_IOERR_FSTAT),
        }
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open handle. A temporary file of ours has nobody to lock out.
    unsafe {
        let state = state(file);
        if state.inner.is_null() { ffi::SQLITE_OK } else { inner!(state, xLock, level) }
    }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as in `lock`.
    unsafe {
        let state = state(file);
        if state.inner.is_null() { ffi::SQLITE_OK } else { inner!(state, xUnlock, level) }
    }
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: as in `lock`; SQLite passes a place for the result.
    unsafe {
        let state = state(file);
        if state.inner.is_null() {
            *held = 0;
            return ffi::SQLITE_OK;
        }
        inner!(state, xCheckReservedLock, held)
    }
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open handle and the argument that the operation documents.
    unsafe {
        let state = state(file);
        match operation {
            ffi::SQLITE_FCNTL_MMAP_SIZE => {
                *argument.cast::<i64>() = 0;
                return ffi::SQLITE_OK;
            }
            // Growth is reserved by `SharedFile`; the unix VFS would change the file's size.
            ffi::SQLITE_FCNTL_CHUNK_SIZE | ffi::SQLITE_FCNTL_SIZE_HINT
                if state.direct.is_some() =>
            {
                return ffi::SQLITE_OK;
            }
            ffi::SQLITE_FCNTL_LAST_ERRNO if state.direct.is_some() => {
                *argument.cast::<c_int>() = state.last_errno.get();
                return ffi::SQLITE_OK;
            }
            ffi::SQLITE_FCNTL_VFSNAME => {
                *argument.cast::<*mut c_char>() =
                    ffi::sqlite3_mprintf(c"%s/unix".as_ptr(), VFS_NAME_C.as_ptr());
                return ffi::SQLITE_OK;
            }
            _ => {}
        }
        if state.inner.is_null() {
            return ffi::SQLITE_NOTFOUND;
        }
        inner!(state, xFileControl, operation, argument)
    }
}

/// SQLite's default for both of the calls below, where the unix VFS has no handle to ask.
const DEFAULT_SECTOR_BYTES: c_int = 4096;

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as in `lock`.
    unsafe {
        let state = state(file);
        if state.inner.is_null() { DEFAULT_SECTOR_BYTES } else { inner!(state, xSectorSize) }
    }
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as in `lock`.
    unsafe {
        let state = state(file);
        if state.inner.is_null() {
            return ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE;
        }
        inner!(state, xDeviceCharacteristics)
    }
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    // SAFETY: as SQLite called us; only database files have shared memory, and those have an inner
    // handle.
    unsafe {
        let state = state(file);
        let code = inner!(state, xShmMap, region, size, extend, mapped.cast());
        if code == ffi::SQLITE_OK && region == 0 && size as usize >= WAL_INDEX_HEADER {
            state.wal_index.set((*mapped).cast());
        }
        code
    }
}

/// Index of the lock that a writer holds (SQLite file format, section "WAL Locks").
const WAL_WRITE_LOCK: c_int = 0;

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: as in `shm_map`.
    let state = unsafe { state(file) };
    let writes = first == WAL_WRITE_LOCK && flags & ffi::SQLITE_SHM_EXCLUSIVE != 0;
    let Some(direct) = state.direct.as_ref().filter(|_| writes) else {
        return unsafe { inner!(state, xShmLock, first, count, flags) };
    };
    let releases = flags & ffi::SQLITE_SHM_UNLOCK != 0;
    if releases && let Some(header) = state.index_header() {
        direct.write_lock_released(header);
    }
    // SAFETY: as above.
    let code = unsafe { inner!(state, xShmLock, first, count, flags) };
    if code == ffi::SQLITE_OK
        && !releases
        && let Some(header) = state.index_header()
    {
        direct.write_lock_taken(header);
    }
    code
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: as in `shm_map`.
    unsafe {
        let state = state(file);
        // SQLite passes here between the two copies of the wal-index header: what the header is
        // about to make visible must be on file for other processes. A failure stays pending, and
        // the next write or sync of the log reports it.
        if let Some(direct) = &state.direct {
            let _ = direct.drain_logs();
        }
        if let Some(barrier) = (*(*state.inner).pMethods).xShmBarrier {
            barrier(state.inner);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: as in `shm_map`.
    unsafe {
        let state = state(file);
        state.wal_index.set(ptr::null());
        inner!(state, xShmUnmap, delete)
    }
}
