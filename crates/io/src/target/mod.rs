//! What may be measured, and what may be written: the safety rules of a target.
//!
//! | given | read | written |
//! |---|---|---|
//! | a directory | a private file in it | yes; removed at the end unless kept |
//! | a path that does not exist | a new file | yes; removed at the end unless kept |
//! | a file that wearmark created (it carries the mark) | yes | yes; never removed |
//! | any other regular file | yes | only if named twice |
//! | a block device | yes, unless in use | if named twice; no mounted, partitioned or held one |
//!
//! Files are opened with O_DIRECT; where a file system refuses that, the run goes on through the
//! page cache and says so. The mark is the extended attribute `user.wearmark`; a file with the mark
//! that nobody has locked is left over from a killed run and is taken over. Tested on real files,
//! on pretended sysfs trees and mount tables, and on a loop device where the machine has one.

mod block;
mod device;
mod facts;
mod inspect;
mod own;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub use device::{FileDevice, FileEngine, direct_block_bytes};
use events::Warning;
pub use inspect::inspect;
use own::CreatedFile;

use crate::error::Error;

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

/// What a target is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file, there already or to be created.
    #[default]
    File,
    /// A block device.
    BlockDevice,
}

impl TargetKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::BlockDevice => "block_device",
        }
    }
}

/// What is known about a target before anything is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetInfo {
    /// The path that the user gave.
    pub named: PathBuf,
    /// The file or device itself; differs from `named` where a directory was named.
    pub path: PathBuf,
    /// What it is.
    pub kind: TargetKind,
    /// Bytes that are addressed.
    pub range_bytes: u64,
    /// Logical block: smallest O_DIRECT transfer and alignment.
    pub logical_block_bytes: u32,
    /// File system type, block device name, model, scheduler, rotational flag, write cache,
    /// mount options: whatever sysfs tells, by its sysfs name.
    pub facts: BTreeMap<String, String>,
    /// Whether it may be written.
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

/// Opens a target, creating its file where that is what was asked for.
pub fn prepare(spec: &TargetSpec, need: &Need) -> Result<Prepared, Error> {
    let mut info = inspect(spec, need)?;
    let mut created = None;
    if info.fresh {
        let directory = spec.path.is_dir();
        let (path, file) = own::create(&info.path, directory)?;
        let allocated = own::allocate(&path, &file, info.range_bytes);
        created = Some(CreatedFile { path: path.clone(), keep: need.keep_file, _locked: file });
        allocated?;
        info.path = path;
    } else if info.writable && info.kind == TargetKind::File {
        let error = |source| Error::target("open", &info.path, source);
        let file = OpenOptions::new().write(true).open(&info.path).map_err(error)?;
        if file.metadata().map_err(error)?.len() < info.range_bytes {
            own::allocate(&info.path, &file, info.range_bytes)?;
            info.fresh = true;
        }
    }
    let mut warnings = Vec::new();
    let device = FileDevice::open(&info, &mut warnings)?;
    info.logical_block_bytes = device.block_bytes();
    if !info.writable {
        let message =
            format!("'{}' is only read: cells that write are left out", info.path.display());
        warnings.push(
            Warning::new("probe", "target_read_only", message)
                .with_hint("give a directory, or name the target twice with --i-will-lose-data"),
        );
        if let Ok(found) = fs::metadata(&info.path)
            && info.kind == TargetKind::File
            && found.blocks() * 512 < info.range_bytes
        {
            let message =
                format!("'{}' has holes, which read faster than any device", info.path.display());
            warnings.push(Warning::new("probe", "sparse_file", message));
        }
    }
    Ok(Prepared { info, device, warnings, _file: created })
}
