//! An open file or block device as a [`Device`] that engines can be opened on.
//!
//! With a single request outstanding, pread and pwrite cost less CPU than a ring and finish sooner
//! (7.8 us of CPU per 4 KiB read against 13.6 us, p50 20 us against 29 us, on a virtio disk), and
//! they are what a database thread does; a ring would also hand every flush to a worker thread.
//! So depth 1 runs on [`Psync`] and everything else on [`Uring`].

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use events::Warning;

use super::TargetInfo;
use super::system::{BLKGETSIZE64, ioctl_u64, open_with};
use crate::buffer::AlignedBuf;
use crate::engine::{Completion, Device, Engine, EngineOptions, Psync, Submission, Uring, Wait};
use crate::error::Error;

const BLKSSZGET: libc::c_ulong = 0x1268;
/// Threads at most where requests block; a greater depth is not reached then.
const MOST_THREADS: u32 = 64;

/// An open target.
#[derive(Debug)]
pub struct FileDevice {
    path: PathBuf,
    file: File,
    /// The same, opened with O_DSYNC; only where it may be written.
    dsync: Option<File>,
    block_bytes: u32,
    is_block_device: bool,
    uring: AtomicBool,
}

impl FileDevice {
    /// Opens a target; what is not as it should be goes into `warnings`.
    pub(super) fn open(info: &TargetInfo, warnings: &mut Vec<Warning>) -> Result<Self, Error> {
        let path = &info.path;
        let is_block_device =
            fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
        let exclusive = if is_block_device && info.writable { libc::O_EXCL } else { 0 };
        let access = if info.writable { libc::O_RDWR } else { libc::O_RDONLY } | exclusive;
        let mut direct = libc::O_DIRECT;
        let mut file = open_with(path, access | direct);
        if file.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) {
            direct = 0;
            file = open_with(path, access);
            warnings.push(page_cache_warning(path));
        }
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => {
                Error::InUse { path: path.clone(), how: "the kernel says it is busy".to_owned() }
            }
            _ => Error::target("open", path, error),
        })?;
        // O_EXCL of a block device is held once: the second descriptor goes without.
        let synced = || {
            open_with(path, libc::O_RDWR | direct | libc::O_DSYNC)
                .map_err(|error| Error::target("open", path, error))
        };
        let dsync = info.writable.then(synced).transpose()?;
        let block_bytes = block_bytes(&file, is_block_device, direct != 0);
        let mut this = Self {
            path: path.clone(),
            file,
            dsync,
            block_bytes,
            is_block_device,
            uring: true.into(),
        };
        this.choose_engine(warnings);
        Ok(this)
    }

    /// Smallest request and alignment.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Name of the engine in use: `io_uring` or `psync`.
    pub fn engine_name(&self) -> &'static str {
        if self.uring.load(Ordering::Relaxed) { "io_uring" } else { "psync" }
    }

    /// Uses blocking system calls from now on, as where the kernel refuses io_uring.
    pub fn use_psync(&self) {
        self.uring.store(false, Ordering::Relaxed);
    }

    fn choose_engine(&mut self, warnings: &mut Vec<Warning>) {
        let options = EngineOptions { slots: 1, slot_bytes: 4096, dsync: false };
        if let Err(error) = Uring::new(self.file.as_raw_fd(), options) {
            self.use_psync();
            let message = format!("io_uring is not available ({error}); pread and pwrite are used");
            warnings.push(Warning::new("probe", "io_uring_refused", message).with_hint(
                "check 'sysctl kernel.io_uring_disabled' and the container's seccomp profile",
            ));
        }
    }
}

fn page_cache_warning(path: &Path) -> Warning {
    let message = format!(
        "the file system of '{}' refuses O_DIRECT: the page cache is in the way",
        path.display()
    );
    Warning::new("probe", "page_cache_in_the_way", message)
        .with_hint("measure on a file system with O_DIRECT, such as ext4, xfs or btrfs")
}

/// The alignment that O_DIRECT needs here.
///
/// Asked of the kernel (statx, BLKSSZGET) and then tried; 4096 where nobody knows.
fn block_bytes(file: &File, is_block_device: bool, direct: bool) -> u32 {
    if !direct {
        return 512;
    }
    let told = if is_block_device {
        ioctl_u64(file, BLKSSZGET).ok().map(|size| size as u32)
    } else {
        dio_alignment(file)
    };
    match told {
        Some(bytes) if bytes.is_power_of_two() && (512..=65536).contains(&bytes) => bytes,
        _ if reads(file, 512) => 512,
        _ => 4096,
    }
}

/// The alignment that O_DIRECT needs on a regular file opened with it, bytes.
pub fn direct_block_bytes(file: &File) -> u32 {
    block_bytes(file, false, true)
}

/// `stx_dio_offset_align` of statx(2), since Linux 6.1.
fn dio_alignment(file: &File) -> Option<u32> {
    // SAFETY: an empty path with AT_EMPTY_PATH asks about the descriptor; statx fills the local.
    let found = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        let flags = libc::AT_EMPTY_PATH;
        let mask = libc::STATX_DIOALIGN;
        let done = libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, mask, &raw mut found);
        (done == 0 && found.stx_mask & mask != 0).then_some(found)
    }?;
    let bytes = found.stx_dio_offset_align.max(found.stx_dio_mem_align.min(4096));
    (found.stx_dio_offset_align > 0).then_some(bytes)
}

fn reads(file: &File, bytes: usize) -> bool {
    let buffer = AlignedBuf::new(bytes, 4096);
    // SAFETY: the buffer holds `bytes` bytes.
    let got = unsafe { libc::pread(file.as_raw_fd(), buffer.as_ptr().cast(), bytes, 0) };
    got >= 0
}

/// The engine of a [`FileDevice`].
pub enum FileEngine {
    /// io_uring.
    Uring(Box<Uring>),
    /// pread, pwrite, fdatasync.
    Psync(Psync),
}

impl Engine for FileEngine {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        match self {
            Self::Uring(engine) => engine.buffer(slot),
            Self::Psync(engine) => engine.buffer(slot),
        }
    }

    #[inline]
    fn queue(&mut self, submission: Submission) {
        match self {
            Self::Uring(engine) => engine.queue(submission),
            Self::Psync(engine) => engine.queue(submission),
        }
    }

    #[inline]
    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        match self {
            Self::Uring(engine) => engine.exchange(wait, completions),
            Self::Psync(engine) => engine.exchange(wait, completions),
        }
    }

    #[inline]
    fn ready(&mut self) -> bool {
        match self {
            Self::Uring(engine) => engine.ready(),
            Self::Psync(engine) => engine.ready(),
        }
    }
}

impl Device for FileDevice {
    type Engine = FileEngine;

    fn path(&self) -> &Path {
        &self.path
    }

    fn engine(&self, options: EngineOptions) -> Result<FileEngine, Error> {
        let file = match (&self.dsync, options.dsync) {
            (Some(file), true) => file,
            _ => &self.file,
        };
        let fd = file.as_raw_fd();
        if options.slots == 1 || self.engine_name() == "psync" {
            return Ok(FileEngine::Psync(Psync::new(fd, options)));
        }
        let ring = Uring::new(fd, options);
        let ring = ring.map_err(|source| Error::Engine { engine: "io_uring", source })?;
        Ok(FileEngine::Uring(Box::new(ring)))
    }

    fn size_bytes(&self) -> io::Result<u64> {
        if self.is_block_device {
            return ioctl_u64(&self.file, BLKGETSIZE64);
        }
        Ok(self.file.metadata()?.len())
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn layout(&self, depth: u32) -> (u32, u32) {
        match self.engine_name() {
            "psync" if depth > 1 => (depth.min(MOST_THREADS), 1),
            _ => (1, depth),
        }
    }
}
