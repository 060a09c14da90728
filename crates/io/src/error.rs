//! Why a target cannot be used, or a request was not done.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use trace::Op;
use units::Bytes;

/// What the guards of a target refuse, and what the kernel or the device did not do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused something on the target.
    #[error("cannot {action} '{}': {source}", path.display())]
    Target {
        /// What was tried, an infinitive.
        action: &'static str,
        /// The target.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Neither a regular file, nor a block device, nor a directory.
    #[error(
        "'{}' is a {kind}; only files, directories and block devices can be measured",
        path.display()
    )]
    WrongKind {
        /// The target.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The directory that should hold the file does not exist.
    #[error("the directory of '{}' does not exist", path.display())]
    NoParent {
        /// The file that should be created.
        path: PathBuf,
    },
    /// The second name of the target is not the first one.
    #[error(
        "'{}' is to be measured, but '{}' was named as the target that may be overwritten",
        path.display(),
        named.display()
    )]
    NamedDifferently {
        /// The target.
        path: PathBuf,
        /// The second name.
        named: PathBuf,
    },
    /// The plan writes to something that wearmark did not create and that was not named twice.
    #[error("writing would destroy what '{}' holds", path.display())]
    WouldDestroy {
        /// The target.
        path: PathBuf,
    },
    /// Somebody else uses the block device.
    #[error("'{}' is in use: {how}", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
        /// Mounted where, which partitions, which holders.
        how: String,
    },
    /// There is not enough room for the file.
    #[error("'{}' needs {needed}, but its file system has {free} free", path.display())]
    TooFewFree {
        /// The file that should be created.
        path: PathBuf,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// The target is too small to be measured.
    #[error("'{}' has {size}, which is less than the {needed} needed", path.display())]
    TooSmall {
        /// The target.
        path: PathBuf,
        /// What it has.
        size: Bytes,
        /// What is needed.
        needed: Bytes,
    },
    /// The file system filled up during the run.
    #[error("no space left while writing '{}' at offset {offset}", path.display())]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Where, bytes.
        offset: u64,
    },
    /// The device failed a request.
    #[error(
        "{} of {len} bytes at offset {offset} of '{}' failed: {source}",
        op.name(),
        path.display()
    )]
    Io {
        /// The target.
        path: PathBuf,
        /// The operation.
        op: Op,
        /// Where, bytes.
        offset: u64,
        /// How much, bytes.
        len: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The device did less than it was asked for.
    #[error(
        "{} at offset {offset} of '{}' transferred {got} of {len} bytes", op.name(), path.display()
    )]
    Short {
        /// The target.
        path: PathBuf,
        /// The operation.
        op: Op,
        /// Where, bytes.
        offset: u64,
        /// Asked for, bytes.
        len: u32,
        /// Done, bytes.
        got: u32,
    },
    /// Somebody truncated the file during the run.
    #[error(
        "'{}' shrank to {size} during the run, below offset {offset} that was addressed",
        path.display()
    )]
    Shrank {
        /// The target.
        path: PathBuf,
        /// First byte of the request that found out.
        offset: u64,
        /// Size found.
        size: Bytes,
    },
    /// An I/O engine could not be set up.
    #[error("cannot set up the {engine} engine: {source}")]
    Engine {
        /// Its name.
        engine: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

const DMESG: &str = "look at the kernel log (dmesg) for what the device reported";

impl Error {
    /// The kernel refused `action` on a target; a full file system has an error of its own.
    pub fn target(action: &'static str, path: &Path, source: io::Error) -> Self {
        if source.raw_os_error() == Some(libc::ENOSPC) {
            return Self::NoSpace { path: path.to_owned(), offset: 0 };
        }
        Self::Target { action, path: path.to_owned(), source }
    }
}

impl events::Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Target { path, source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!(
                        "run as a user who may read and write '{}', or probe a directory of yours",
                        path.display()
                    )
                }
                io::ErrorKind::NotFound => {
                    "check the path, or give an existing directory".to_owned()
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "give a directory on a file system that is mounted read-write".to_owned()
                }
                _ if source.raw_os_error() == Some(libc::EIO) => DMESG.to_owned(),
                _ => return None,
            },
            Self::WrongKind { .. } => {
                "give a directory on the disk that is to be measured".to_owned()
            }
            Self::NoParent { path } => match path.parent() {
                Some(parent) => format!("create it first: mkdir -p '{}'", parent.display()),
                None => "give an existing directory".to_owned(),
            },
            Self::NamedDifferently { path, .. } | Self::WouldDestroy { path } => format!(
                "give a directory, for a new file in it, or name the target twice: \
                 --i-will-lose-data {0}",
                path.display()
            ),
            Self::InUse { .. } => {
                "give a directory on its file system instead, or a device that nothing uses"
                    .to_owned()
            }
            Self::TooFewFree { .. } | Self::NoSpace { .. } => {
                "free some space, name a directory on another disk, or ask for less: \
                 'probe --range', 'replay --duration', 'trace remap --onto'"
                    .to_owned()
            }
            Self::TooSmall { .. } => {
                "name a larger target, or ask for less: 'probe --range', 'replay --duration', \
                 'trace remap --onto'"
                    .to_owned()
            }
            Self::Io { .. } => DMESG.to_owned(),
            Self::Short { .. } | Self::Shrank { .. } => {
                "make sure that nothing else writes or truncates the target, then run again"
                    .to_owned()
            }
            Self::Engine { .. } => "'wearmark doctor' shows what this machine allows".to_owned(),
        };
        Some(hint)
    }
}
