//! A temporary file on a real disk.
//!
//! The file has no name (O_TMPFILE; where a file system has no such thing, it is removed as soon as
//! it is open), so the kernel gives its room back whatever becomes of the process. Room is taken
//! before the first request, so that a full disk shows at once. Requests go past the page cache
//! unless the user wants them through it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use events::Warning;
use io::engine::{Device, EngineOptions, Psync, Uring};
use io::target::{FileEngine, direct_block_bytes};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use units::Bytes;

use crate::error::Error;
use crate::medium::Medium;

/// A file without a name.
#[derive(Debug)]
pub struct TempFile {
    directory: PathBuf,
    file: File,
    sector_bytes: u32,
    direct: bool,
    uring: bool,
    warnings: Vec<Warning>,
    start: Instant,
}

impl TempFile {
    /// In `directory`; `buffered` goes through the page cache. With a `depth` of 1 requests are
    /// plain system calls, which are cheaper than a ring where each is waited for.
    pub fn new(directory: &Path, buffered: bool, depth: u32) -> Result<Self, Error> {
        let mut warnings = Vec::new();
        let mut direct = !buffered;
        let mut opened = open(directory, direct);
        if direct && matches!(opened, Err(Errno::INVAL)) {
            direct = false;
            opened = open(directory, direct);
            let message = format!(
                "the file system of '{}' refuses O_DIRECT: the page cache is in the way",
                directory.display()
            );
            warnings.push(Warning::new("temp", "page_cache_in_the_way", message).with_hint(
                "take a directory on a file system with O_DIRECT, such as ext4, xfs or btrfs",
            ));
        }
        let file = opened.map_err(|errno| place("make a file in", directory, errno))?;
        let sector_bytes = if direct { direct_block_bytes(&file) } else { 1 };
        let options = EngineOptions { slots: 1, slot_bytes: 4096, dsync: false };
        let ring = Uring::new(file.as_raw_fd(), options);
        if let Err(error) = &ring {
            let message =
                format!("io_uring is not available ({error}); requests wait for each other");
            warnings.push(Warning::new("temp", "io_uring_refused", message));
        }
        Ok(Self {
            directory: directory.to_owned(),
            sector_bytes,
            direct,
            uring: ring.is_ok() && depth > 1,
            warnings,
            start: Instant::now(),
            file,
        })
    }
}

fn place(action: &'static str, directory: &Path, errno: Errno) -> Error {
    Error::Place { action, path: directory.to_owned(), source: errno.into() }
}

/// A new file without a name.
fn open(directory: &Path, direct: bool) -> Result<File, Errno> {
    let cache = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = OFlags::RDWR | OFlags::CLOEXEC | cache;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {}
        opened => return opened.map(File::from),
    }
    let name = directory.join(format!("wearmark-temp-{}", std::process::id()));
    let file = rustix::fs::open(&name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    rustix::fs::unlink(&name)?;
    Ok(file.into())
}

impl Device for TempFile {
    type Engine = FileEngine;

    fn path(&self) -> &Path {
        &self.directory
    }

    fn engine(&self, options: EngineOptions) -> Result<FileEngine, io::Error> {
        let fd = self.file.as_raw_fd();
        if !self.uring {
            return Ok(FileEngine::Psync(Psync::new(fd, options)));
        }
        let ring = Uring::new(fd, options);
        let ring = ring.map_err(|source| io::Error::Engine { engine: "io_uring", source })?;
        Ok(FileEngine::Uring(Box::new(ring)))
    }

    fn size_bytes(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn flush(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }
}

impl Medium for TempFile {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn cpu_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn worked(&self, _rows: u64) {}

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn reserve(&self, bytes: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let directory = &self.directory;
        let found =
            rustix::fs::fstatvfs(&self.file).map_err(|errno| place("look at", directory, errno))?;
        let free = found.f_bavail * found.f_frsize;
        let too_few = || Error::TooFewFree {
            path: directory.clone(),
            needed: Bytes(bytes),
            free: Bytes(free),
        };
        if bytes > free {
            return Err(too_few());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP) => rustix::fs::ftruncate(&self.file, bytes)
                .map_err(|errno| place("grow a file in", directory, errno)),
            Err(Errno::NOSPC | Errno::DQUOT) => Err(too_few()),
            Err(errno) => Err(place("allocate a file in", directory, errno)),
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    fn layer(&self) -> &'static str {
        if self.direct { "device" } else { "logical" }
    }
}
