//! What may be measured, and what may be written: the safety rules of a target.
//!
//! | given | read | written |
//! |---|---|---|
//! | a directory | a private file in it | yes; removed at the end unless kept |
//! | a path that does not exist | a new file | yes; removed at the end unless kept |
//! | a file that wearmark created (it carries the mark) | yes | yes; never removed |
//! | any other regular file | yes | only if named twice |
//! | a block device | yes, unless in use | only if named twice, never if mounted, partitioned or held |
//!
//! Files are opened with O_DIRECT; where a file system refuses that, the run goes on through the
//! page cache and says so. The mark is the extended attribute `user.wearmark`; a file with the mark
//! that nobody has locked is left over from a killed run and is taken over. Tested on real files,
//! on pretended sysfs trees and mount tables, and on a loop device where the machine has one.

mod block;
mod device;
mod facts;

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use device::{FileDevice, FileEngine, direct_block_bytes};
use events::Warning;
use units::Bytes;

use crate::error::Error;
use crate::measurement::Target;

/// What the user named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetSpec {
    /// A directory, a file, a path that does not exist yet, or a block device.
    pub path: PathBuf,
    /// The same path again, if its contents may be lost.
    pub i_will_lose_data: Option<PathBuf>,
}

impl TargetSpec {
    /// A target whose contents must survive, or a place for a new file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), i_will_lose_data: None }
    }
}

/// What is known about a target before it is measured; input of [`crate::plan::Plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct TargetInfo {
    /// What goes into the result.
    pub target: Target,
    /// The file or device itself; differs from `target.path` where a directory was named.
    pub path: PathBuf,
    /// Whether cells may write.
    pub writable: bool,
    /// Whether the range must be written before it can be measured: what was never written has no
    /// place on the medium.
    pub fresh: bool,
}

/// What a run needs of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Bytes that will be addressed.
    pub range_bytes: u64,
    /// Whether a file that was created stays.
    pub keep_file: bool,
    /// Whether the run cannot do without writing. Otherwise a target that must not be written is
    /// opened for reading.
    pub must_write: bool,
}

/// An open target.
#[derive(Debug)]
pub struct Prepared {
    /// What it is.
    pub info: TargetInfo,
    /// The open file or device.
    pub device: FileDevice,
    /// What is not as it should be.
    pub warnings: Vec<Warning>,
    _file: Option<CreatedFile>,
}

/// Kind of thing at a path, decided before anything is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    Missing,
    Regular,
    Block,
}

/// Name of the private file in a directory; further ones get a number.
const PRIVATE_NAME: &str = "wearmark-probe";
const MARK: &str = "user.wearmark";

/// A file that this run created, removed when dropped unless it is to be kept.
#[derive(Debug)]
struct CreatedFile {
    path: PathBuf,
    keep: bool,
    /// Tells other runs that the file is in use.
    _locked: File,
}

impl Drop for CreatedFile {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing can be done about a failure here; the next run takes the file over.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Says what a target is and checks that it may be used, without creating or changing anything.
pub fn inspect(spec: &TargetSpec, need: &Need) -> Result<TargetInfo, Error> {
    let path = &spec.path;
    if let Some(named) = &spec.i_will_lose_data
        && named != path
    {
        return Err(Error::NamedDifferently { path: path.clone(), named: named.clone() });
    }
    let given_up = spec.i_will_lose_data.is_some();
    let kind = kind_of(path)?;
    let (file, writable, fresh) = match kind {
        Kind::Directory => (path.join(format!("{PRIVATE_NAME}.tmp")), true, true),
        Kind::Missing => (path.clone(), true, true),
        Kind::Regular => (path.clone(), given_up || has_mark(path), false),
        Kind::Block => (path.clone(), given_up, false),
    };
    if need.must_write && !writable {
        return Err(Error::WouldDestroy { path: path.clone() });
    }
    let range_bytes = match kind {
        Kind::Directory | Kind::Missing => {
            check_free(&file, need.range_bytes)?;
            need.range_bytes
        }
        Kind::Regular => existing_range(path, fs::metadata(path), need, writable)?,
        Kind::Block => {
            block::refuse_used(path, Path::new("/sys"), Path::new("/proc/self/mountinfo"))?;
            fit(path, block::size_bytes(path)?, need, false)?
        }
    };
    let facts_of = if kind == Kind::Missing { parent_of(path) } else { path.as_path() };
    let (facts, logical_block_bytes) = facts::gather(facts_of, kind == Kind::Block);
    let target = Target {
        path: path.display().to_string(),
        kind: if kind == Kind::Block { "block_device" } else { "file" }.to_owned(),
        range_bytes,
        logical_block_bytes,
        facts,
    };
    Ok(TargetInfo { target, path: file, writable, fresh })
}

/// Opens a target, creating its file where that is what was asked for.
pub fn prepare(spec: &TargetSpec, need: &Need) -> Result<Prepared, Error> {
    let mut info = inspect(spec, need)?;
    let mut created = None;
    if info.fresh {
        let directory = spec.path.is_dir();
        let (path, file) = create(&info.path, directory)?;
        let allocated = allocate(&path, &file, info.target.range_bytes);
        created = Some(CreatedFile { path: path.clone(), keep: need.keep_file, _locked: file });
        allocated?;
        info.path = path;
    } else if info.writable && info.target.kind == "file" {
        let error = |source| Error::target("open", &info.path, source);
        let file = OpenOptions::new().write(true).open(&info.path).map_err(error)?;
        if file.metadata().map_err(error)?.len() < info.target.range_bytes {
            allocate(&info.path, &file, info.target.range_bytes)?;
            info.fresh = true;
        }
    }
    let mut warnings = Vec::new();
    let device = FileDevice::open(&info, &mut warnings)?;
    info.target.logical_block_bytes = device.block_bytes();
    if !info.writable {
        let message =
            format!("'{}' is only read: cells that write are left out", info.path.display());
        warnings.push(
            Warning::new("probe", "target_read_only", message)
                .with_hint("give a directory, or name the target twice with --i-will-lose-data"),
        );
        if let Ok(found) = fs::metadata(&info.path)
            && info.target.kind == "file"
            && found.blocks() * 512 < info.target.range_bytes
        {
            let message =
                format!("'{}' has holes, which read faster than any device", info.path.display());
            warnings.push(Warning::new("probe", "sparse_file", message));
        }
    }
    Ok(Prepared { info, device, warnings, _file: created })
}

fn kind_of(path: &Path) -> Result<Kind, Error> {
    let found = match fs::metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if parent_of(path).is_dir() {
                return Ok(Kind::Missing);
            }
            return Err(Error::NoParent { path: path.to_owned() });
        }
        Err(error) => return Err(Error::target("look at", path, error)),
    };
    let wrong = |kind| Err(Error::WrongKind { path: path.to_owned(), kind });
    match found {
        kind if kind.is_dir() => Ok(Kind::Directory),
        kind if kind.is_file() => Ok(Kind::Regular),
        kind if kind.is_block_device() => Ok(Kind::Block),
        kind if kind.is_char_device() => wrong("character device"),
        kind if kind.is_fifo() => wrong("pipe"),
        _ => wrong("socket or something else"),
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// The part of an existing target that is measured: all that was asked for, or all there is.
fn fit(path: &Path, size: u64, need: &Need, grows: bool) -> Result<u64, Error> {
    if grows {
        return Ok(need.range_bytes);
    }
    let range = need.range_bytes.min(size) / 4096 * 4096;
    if range < (1 << 20).min(need.range_bytes) {
        let (size, needed) = (Bytes(size), Bytes((1 << 20).min(need.range_bytes)));
        return Err(Error::TooSmall { path: path.to_owned(), size, needed });
    }
    Ok(range)
}

fn existing_range(
    path: &Path,
    found: io::Result<fs::Metadata>,
    need: &Need,
    writable: bool,
) -> Result<u64, Error> {
    let size = found.map_err(|source| Error::target("look at", path, source))?.len();
    // Only a file of our own grows; one that was given up for loss keeps its size.
    let grows = writable && has_mark(path);
    if grows && size < need.range_bytes {
        check_free(path, need.range_bytes - size)?;
    }
    fit(path, size, need, grows)
}

fn check_free(file: &Path, needed: u64) -> Result<(), Error> {
    let directory = parent_of(file);
    let found = rustix::fs::statvfs(directory)
        .map_err(|source| Error::target("look at", directory, source.into()))?;
    let free = found.f_bavail * found.f_frsize;
    // Leave some room for everybody else: a full file system breaks more than this run.
    let wanted = needed + needed / 64;
    if wanted > free {
        let (needed, free) = (Bytes(wanted), Bytes(free));
        return Err(Error::TooFewFree { path: file.to_owned(), needed, free });
    }
    Ok(())
}

/// Creates a marked and locked file. In a directory, a left-over file with the mark that nobody
/// holds is taken over, and a name that is taken is passed over.
fn create(path: &Path, in_directory: bool) -> Result<(PathBuf, File), Error> {
    let mut attempt = path.to_owned();
    for number in 1..=100 {
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_CLOEXEC)
            .open(&attempt);
        match made {
            Ok(file) => {
                set_mark(&attempt);
                lock(&file);
                return Ok((attempt, file));
            }
            Err(error) if in_directory && error.kind() == io::ErrorKind::AlreadyExists => {
                if has_mark(&attempt)
                    && let Ok(file) = OpenOptions::new().read(true).write(true).open(&attempt)
                    && lock(&file)
                {
                    return Ok((attempt, file));
                }
                attempt = path.with_file_name(format!("{PRIVATE_NAME}-{number}.tmp"));
            }
            Err(error) => return Err(Error::target("create", &attempt, error)),
        }
    }
    let error = io::Error::from(io::ErrorKind::AlreadyExists);
    Err(Error::target("create", &attempt, error))
}

/// Gives the file its blocks, so that a full file system shows before the run and not within it.
fn allocate(path: &Path, file: &File, size_bytes: u64) -> Result<(), Error> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, size_bytes) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {
            file.set_len(size_bytes).map_err(|source| Error::target("grow", path, source))
        }
        Err(error) => Err(Error::target("allocate", path, error.into())),
    }
}

/// Held until the process ends or the file is closed.
fn lock(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

fn has_mark(path: &Path) -> bool {
    let mut value = [0u8; 16];
    rustix::fs::getxattr(path, MARK, &mut value)
        .is_ok_and(|len| value.starts_with(b"probe") && len >= 5)
}

/// File systems without extended attributes leave no mark; then nothing is ever taken over.
fn set_mark(path: &Path) {
    let flags = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(path, MARK, b"probe", flags);
}

/// Opens with flags that `OpenOptions` has no name for.
fn open_with(path: &Path, flags: libc::c_int) -> io::Result<File> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid C string; the descriptor returned is owned by nobody else.
    let fd = unsafe { libc::open(text.as_ptr(), flags | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened.
    Ok(unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(fd) })
}

/// An ioctl that fills a number.
fn ioctl_u64(file: &File, request: libc::c_ulong) -> io::Result<u64> {
    let mut value = 0u64;
    // SAFETY: every request used here writes at most eight bytes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, &raw mut value) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
