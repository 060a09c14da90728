//! Files that wearmark creates: their mark, their lock, their room, their removal.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Name of the private file in a directory; further ones get a number.
pub(super) const PRIVATE_NAME: &str = "wearmark-probe";
const MARK: &str = "user.wearmark";

/// A file that this run created, removed when dropped unless it is to be kept.
#[derive(Debug)]
pub(super) struct CreatedFile {
    pub(super) path: PathBuf,
    pub(super) keep: bool,
    /// Tells other runs that the file is in use.
    pub(super) _locked: File,
}

impl Drop for CreatedFile {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing can be done about a failure here; the next run takes the file over.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a marked and locked file. In a directory, a left-over file with the mark that nobody
/// holds is taken over, and a name that is taken is passed over.
pub(super) fn create(path: &Path, in_directory: bool) -> Result<(PathBuf, File), Error> {
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
pub(super) fn allocate(path: &Path, file: &File, size_bytes: u64) -> Result<(), Error> {
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

/// Whether wearmark created a file.
pub(super) fn has_mark(path: &Path) -> bool {
    let mut value = [0u8; 16];
    rustix::fs::getxattr(path, MARK, &mut value)
        .is_ok_and(|len| value.starts_with(b"probe") && len >= 5)
}

/// File systems without extended attributes leave no mark; then nothing is ever taken over.
fn set_mark(path: &Path) {
    let flags = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(path, MARK, b"probe", flags);
}
