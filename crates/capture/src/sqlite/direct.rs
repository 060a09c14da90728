//! Reads and writes that bypass the page cache: alignment, bounce buffers, one file descriptor.
//!
//! O_DIRECT wants offset, length and memory address on a boundary that the kernel tells through
//! `statx` (STATX_DIOALIGN, Linux 6.1). SQLite reads 16 bytes here and writes 24 bytes there, so
//! every transfer goes through an aligned buffer of the thread: a read is widened, a write that
//! does not cover whole blocks reads them first.
//!
//! Invariant: a file is never left longer than what was written to it, except by the log's padding
//! (see `log`). Tested against the same operations on a plain byte vector.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use trace::Op;

use super::recorder::{self, Happened, Layer};
use super::simulated::{BLOCK as SIMULATED_BLOCK, Place, SimulatedFile};
use crate::now_ns;

/// What the log's blocks and the bounce buffers are aligned to at least: the page cache's unit.
pub(super) const PAGE: usize = 4096;

/// File system types by statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Memory at a page boundary, which satisfies every device.
pub(super) struct AlignedBuffer {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the buffer owns its memory; access goes through `&self` and `&mut self` only.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `size` zeroed bytes, rounded up to whole pages.
    pub(super) fn new(size: usize) -> Self {
        let size = size.max(1).next_multiple_of(PAGE);
        let layout = Layout::from_size_align(size, PAGE).expect("a buffer of sane size");
        // SAFETY: the layout has a non-zero size.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, size }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to `size` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.size, PAGE).expect("as in new");
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), layout) }
    }
}

/// Runs `work` with at least `size` bytes of this thread's bounce buffer.
fn with_bounce<T>(size: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static BOUNCE: RefCell<Option<AlignedBuffer>> = const { RefCell::new(None) };
    }
    let mut work = Some(work);
    let pooled = BOUNCE.try_with(|held| {
        let mut held = held.borrow_mut();
        if held.as_ref().is_none_or(|buffer| buffer.size < size) {
            *held = Some(AlignedBuffer::new(size.next_power_of_two().max(64 << 10)));
        }
        let work = work.take().expect("called once");
        work(&mut held.as_mut().expect("just filled").bytes_mut()[..size])
    });
    // A thread being torn down has no pool any more.
    pooled.unwrap_or_else(|_| {
        let work = work.take().expect("not run: the pool was gone");
        work(&mut AlignedBuffer::new(size).bytes_mut()[..size])
    })
}

/// A file open with O_DIRECT, or simulated, whose requests are captured.
pub(super) struct DirectFile {
    storage: Storage,
    /// Offsets and lengths must be multiples of it, bytes.
    block: u64,
    /// Index into the process's file table, for the capture.
    file: u16,
    /// Whether the descriptor can write.
    pub(super) writable: bool,
}

/// Where its bytes are, and what its requests cost.
enum Storage {
    Kernel(OwnedFd),
    Simulated(SimulatedFile),
}

impl DirectFile {
    /// Opens an existing file, for writing where that is allowed; in a world its bytes are read
    /// only, and what is written stays in memory.
    pub(super) fn open(path: &Path, file: u16, world: Option<&Place>) -> io::Result<Self> {
        if let Some(place) = world {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let fd = rustix::fs::open(path, flags, Mode::empty())?;
            return Ok(Self::simulated(SimulatedFile::over(fd, file, place.clone())?, file));
        }
        let flags = OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let (fd, writable) = match rustix::fs::open(path, flags | OFlags::RDWR, Mode::empty()) {
            Ok(fd) => (fd, true),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS) => {
                (rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty())?, false)
            }
            Err(error) => return Err(error.into()),
        };
        Self::over(fd, file, writable)
    }

    /// A file without a name in `directory`, gone when closed.
    pub(super) fn temporary(
        directory: &Path,
        file: u16,
        world: Option<&Place>,
    ) -> io::Result<Self> {
        if let Some(place) = world {
            return Ok(Self::simulated(SimulatedFile::empty(file, place.clone()), file));
        }
        let flags = OFlags::DIRECT | OFlags::CLOEXEC | OFlags::RDWR;
        let mode = Mode::RUSR | Mode::WUSR;
        if let Ok(fd) = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
            return Self::over(fd, file, true);
        }
        let name = format!(".wearmark-temp-{}-{}", std::process::id(), now_ns());
        let path = directory.join(name);
        let fd = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
        rustix::fs::unlink(&path)?;
        Self::over(fd, file, true)
    }

    fn over(fd: OwnedFd, file: u16, writable: bool) -> io::Result<Self> {
        // Newer kernels take O_DIRECT there, but it bypasses nothing.
        let kind = rustix::fs::fstatfs(&fd)?.f_type;
        if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(kind as u64)) {
            let cause = "the file system is in memory: there is no device to reach";
            return Err(io::Error::new(io::ErrorKind::Unsupported, cause));
        }
        let block = u64::from(block_bytes(fd.as_fd())?);
        Ok(Self { storage: Storage::Kernel(fd), block, file, writable })
    }

    fn simulated(storage: SimulatedFile, file: u16) -> Self {
        let block = SIMULATED_BLOCK as u64;
        Self { storage: Storage::Simulated(storage), block, file, writable: true }
    }

    /// Smallest unit of a transfer, bytes.
    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// Device and inode number.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        match &self.storage {
            Storage::Kernel(fd) => {
                let stat = rustix::fs::fstat(fd)?;
                Ok((stat.st_dev, stat.st_ino))
            }
            Storage::Simulated(file) => Ok(file.identity()),
        }
    }

    /// Bytes in the file now.
    pub(super) fn size(&self) -> io::Result<u64> {
        match &self.storage {
            Storage::Kernel(fd) => Ok(rustix::fs::fstat(fd)?.st_size as u64),
            Storage::Simulated(file) => Ok(file.size()),
        }
    }

    /// Fills `into` from `offset`, any alignment; returns how many bytes the file had there.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = offset - offset % self.block;
        let to = (offset + into.len() as u64).next_multiple_of(self.block);
        let skip = (offset - from) as usize;
        with_bounce((to - from) as usize, |bounce| {
            let got = self.read_blocks(from, bounce)?;
            let found = got.saturating_sub(skip).min(into.len());
            into[..found].copy_from_slice(&bounce[skip..skip + found]);
            Ok(found)
        })
    }

    /// Writes `data` at `offset`, any alignment. The caller holds a lock when blocks are shared
    /// with another writer.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset + data.len() as u64;
        let from = offset - offset % self.block;
        let to = end.next_multiple_of(self.block);
        let skip = (offset - from) as usize;
        with_bounce((to - from) as usize, |bounce| {
            if from == offset && to == end {
                bounce.copy_from_slice(data);
                return self.write_blocks(from, bounce);
            }
            let had = self.read_blocks(from, bounce)?;
            bounce[had..].fill(0);
            bounce[skip..skip + data.len()].copy_from_slice(data);
            let size = self.size()?;
            self.write_blocks(from, bounce)?;
            if to > size.max(end) {
                self.truncate(size.max(end))?;
            }
            Ok(())
        })
    }

    /// Reads whole blocks until the buffer is full or the file ends.
    pub(super) fn read_blocks(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let start = clock();
        let got = match &self.storage {
            Storage::Kernel(fd) => self.read_from(fd, offset, into)?,
            Storage::Simulated(file) => file.read(offset, into)?,
        };
        // A read behind the end of the file reaches no device.
        if got > 0 {
            self.note(Op::Read, offset, (got as u64).next_multiple_of(self.block), start);
        }
        Ok(got)
    }

    fn read_from(&self, fd: &OwnedFd, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < into.len() {
            match rustix::io::pread(fd, &mut into[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !(got as u64).is_multiple_of(self.block) {
                break; // A piece of a block is the end of the file.
            }
        }
        Ok(got)
    }

    /// Writes whole blocks.
    pub(super) fn write_blocks(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = clock();
        match &self.storage {
            Storage::Kernel(fd) => write_to(fd, offset, data)?,
            Storage::Simulated(file) => file.write(offset, data),
        }
        self.note(Op::Write, offset, data.len() as u64, start);
        Ok(())
    }

    /// Makes everything written durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        let start = clock();
        match &self.storage {
            Storage::Kernel(fd) => rustix::fs::fdatasync(fd)?,
            Storage::Simulated(file) => file.sync(),
        }
        self.note(Op::Flush, 0, 0, start);
        Ok(())
    }

    /// Sets the size of the file.
    pub(super) fn truncate(&self, size: u64) -> io::Result<()> {
        match &self.storage {
            Storage::Kernel(fd) => rustix::fs::ftruncate(fd, size)?,
            Storage::Simulated(file) => file.truncate(size),
        }
        Ok(())
    }

    /// Reserves space without changing the file's size. Failure is harmless: the write allocates.
    pub(super) fn reserve(&self, offset: u64, len: u64) {
        if let Storage::Kernel(fd) = &self.storage {
            let _ = rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, offset, len);
        }
    }

    fn note(&self, op: Op, offset: u64, len: u64, start: u64) {
        if start != 0 {
            let layer = Layer::Device;
            let end = now_ns();
            recorder::record(&Happened { layer, op, file: self.file, offset, len, start, end });
        }
    }
}

fn write_to(fd: &OwnedFd, offset: u64, data: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match rustix::io::pwrite(fd, &data[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The time, or 0 while nothing is captured.
pub(super) fn clock() -> u64 {
    if recorder::active() { now_ns() } else { 0 }
}

/// Smallest O_DIRECT transfer of an open file: what the kernel says, else the device's logical
/// block, else a page. An error where the file system refuses O_DIRECT.
fn block_bytes(fd: BorrowedFd<'_>) -> io::Result<u32> {
    // The bit is newer than the crate's names for it.
    let dio_align = StatxFlags::from_bits_retain(0x2000);
    let Ok(stat) = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, dio_align) else {
        return Ok(PAGE as u32);
    };
    if stat.stx_mask & dio_align.bits() == 0 {
        return Ok(logical_block(stat.stx_dev_major, stat.stx_dev_minor).unwrap_or(PAGE as u32));
    }
    let (memory, block) = (stat.stx_dio_mem_align, stat.stx_dio_offset_align);
    if block == 0 || memory as usize > PAGE || !block.is_power_of_two() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "direct I/O is not supported here"));
    }
    Ok(block)
}

/// Logical block size of a block device by sysfs, bytes.
fn logical_block(major: u32, minor: u32) -> Option<u32> {
    let base = format!("/sys/dev/block/{major}:{minor}");
    ["queue", "../queue"].iter().find_map(|queue| {
        let text = std::fs::read_to_string(format!("{base}/{queue}/logical_block_size")).ok()?;
        text.trim().parse().ok().filter(|block: &u32| block.is_power_of_two())
    })
}

/// Whether files in `directory` can be written past the page cache, tried on a file of our own.
pub(super) fn probe(directory: &Path) -> io::Result<()> {
    let file = DirectFile::temporary(directory, u16::MAX, None)?;
    let block = file.block as usize;
    let mut buffer = AlignedBuffer::new(block);
    file.write_blocks(0, &buffer.bytes()[..block])?;
    file.read_blocks(0, &mut buffer.bytes_mut()[..block])?;
    Ok(())
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path, file: u16) -> io::Result<()> {
    let start = clock();
    File::open(directory)?.sync_all()?;
    if start != 0 {
        let (layer, op, end) = (Layer::Device, Op::Flush, now_ns());
        recorder::record(&Happened { layer, op, file, offset: 0, len: 0, start, end });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Read(u64, usize),
        Truncate(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let place = prop_oneof![0..40_000u64, (0..10u64).prop_map(|block| block * 4096)];
        let size = prop_oneof![1..30usize, Just(512), Just(4096), 1..20_000usize];
        let write = (place.clone(), size.clone(), any::<u8>())
            .prop_map(|(at, size, byte)| Step::Write(at, vec![byte; size]));
        let read = (place.clone(), size).prop_map(|(at, size)| Step::Read(at, size));
        let truncate = place.prop_map(Step::Truncate);
        prop::collection::vec(prop_oneof![4 => write, 2 => read, 1 => truncate], 1..30)
    }

    /// Takes the steps on a file and on the bytes that it holds at first.
    fn check(file: &DirectFile, mut model: Vec<u8>, steps: Vec<Step>) -> Result<(), TestCaseError> {
        for step in steps {
            match step {
                Step::Write(at, data) => {
                    file.write(at, &data).unwrap();
                    let end = at as usize + data.len();
                    model.resize(model.len().max(end), 0);
                    model[at as usize..end].copy_from_slice(&data);
                }
                Step::Read(at, size) => {
                    let mut into = vec![0; size];
                    let found = file.read(at, &mut into).unwrap();
                    let from = (at as usize).min(model.len());
                    let to = (from + size).min(model.len());
                    prop_assert_eq!(&into[..found], &model[from..to]);
                }
                Step::Truncate(size) => {
                    file.truncate(size).unwrap();
                    model.resize(size as usize, 0);
                }
            }
            prop_assert_eq!(file.size().unwrap(), model.len() as u64);
        }
        Ok(())
    }

    struct AtOnce;

    impl model::Device for AtOnce {
        fn submit(&mut self, now: units::Nanos, _: &trace::Request) -> units::Nanos {
            now
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn behaves_like_bytes_in_memory(steps in steps()) {
            let _turn = recorder::TURN.lock().unwrap();
            let home = crate::test_home();
            match DirectFile::temporary(&home, 0, None) {
                Ok(file) => check(&file, Vec::new(), steps)?,
                Err(error) => println!("skipped: O_DIRECT: {error}"),
            }
        }

        #[test]
        fn a_simulated_file_does_too_and_leaves_the_one_below(steps in steps()) {
            let _turn = recorder::TURN.lock().unwrap();
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("db");
            let bytes: Vec<u8> = (0..17_000_u32).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let settings = virtual_time::Settings {
                processors: 1,
                computing: virtual_time::Computing::Nothing,
            };
            let world = virtual_time::World::new(Box::new(AtOnce), &settings);
            let file = DirectFile::open(&path, 0, Some(&Place::new(world))).unwrap();
            check(&file, bytes.clone(), steps)?;
            prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
