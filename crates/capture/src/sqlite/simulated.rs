//! Files in virtual time: what is written stays in memory, what a request takes says a model.
//!
//! A database is read from its file as it is and never changed: changed blocks lie over it. Every
//! file has a region of the device's address space, in the order of opening, and keeps it for as
//! long as the place lives, so that a journal deleted and made again is in the same place.
//!
//! Invariant: bytes read are those written last, or the file's own where nothing was written since
//! it was last cut. Tested with the same sequences as files of the kernel (`direct`).

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use trace::Op;
use virtual_time::World;

use super::files;

/// Smallest unit of a transfer, bytes.
pub(super) const BLOCK: usize = 4096;

/// A file may grow by this much before its region meets the next one's, bytes.
const ROOM: u64 = 1 << 30;

/// A device in virtual time, and where files lie on it.
#[derive(Clone)]
pub(super) struct Place {
    world: Arc<World>,
    space: Arc<Mutex<Space>>,
}

#[derive(Default)]
struct Space {
    next: u64,
    /// First byte of each file, by its index in the process's file table.
    starts: HashMap<u16, u64>,
}

impl Place {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, space: Arc::default() }
    }

    /// Where a file of this many bytes begins.
    fn start(&self, file: u16, bytes: u64) -> u64 {
        let mut space = self.space.lock().expect("space lock");
        if let Some(start) = space.starts.get(&file) {
            return *start;
        }
        let start = space.next;
        space.next += (bytes + ROOM).next_multiple_of(1 << 20);
        space.starts.insert(file, start);
        start
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Place").finish_non_exhaustive()
    }
}

/// One file, shared by its handles.
pub(super) struct SimulatedFile {
    place: Place,
    /// First byte in the device's address space.
    start: u64,
    stream: u16,
    under: Option<OwnedFd>,
    identity: (u64, u64),
    content: Mutex<Content>,
}

struct Content {
    size: u64,
    /// Bytes of the file below that still count.
    under: u64,
    /// What was written, by number of block.
    blocks: HashMap<u64, Box<[u8; BLOCK]>>,
}

impl SimulatedFile {
    /// Over an existing file.
    pub(super) fn over(under: OwnedFd, file: u16, place: Place) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&under)?;
        let size = stat.st_size as u64;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Self { under: Some(under), identity, ..Self::of_size(size, file, place) })
    }

    /// A file that nothing was written to.
    pub(super) fn empty(file: u16, place: Place) -> Self {
        Self::of_size(0, file, place)
    }

    fn of_size(size: u64, file: u16, place: Place) -> Self {
        let stream = files::table().class(file) as u16;
        let start = place.start(file, size);
        let content = Mutex::new(Content { size, under: size, blocks: HashMap::new() });
        Self { place, start, stream, under: None, identity: (0, 0), content }
    }

    pub(super) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    pub(super) fn size(&self) -> u64 {
        self.content().size
    }

    /// Fills `into`, whole blocks, as far as the file goes; says how many bytes that were.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let got = {
            let content = self.content();
            let got = content.size.saturating_sub(offset).min(into.len() as u64) as usize;
            for (block, part) in (offset / BLOCK as u64..).zip(into[..got].chunks_mut(BLOCK)) {
                match content.blocks.get(&block) {
                    Some(bytes) => part.copy_from_slice(&bytes[..part.len()]),
                    None => self.read_under(&content, block, part)?,
                }
            }
            got
        };
        if got > 0 {
            let len = got.next_multiple_of(BLOCK) as u32;
            self.place.world.io(Op::Read, self.start + offset, len, self.stream);
        }
        Ok(got)
    }

    /// A block, or the beginning of one, as the file below has it.
    fn read_under(&self, content: &Content, block: u64, into: &mut [u8]) -> io::Result<()> {
        let offset = block * BLOCK as u64;
        let there = content.under.saturating_sub(offset).min(into.len() as u64) as usize;
        let mut got = 0;
        while let Some(fd) = self.under.as_ref().filter(|_| got < there) {
            match rustix::io::pread(fd, &mut into[got..there], offset + got as u64) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        into[got..].fill(0);
        Ok(())
    }

    /// Writes whole blocks.
    pub(super) fn write(&self, offset: u64, data: &[u8]) {
        {
            let mut content = self.content();
            for (block, part) in (offset / BLOCK as u64..).zip(data.chunks(BLOCK)) {
                let mut bytes = Box::new([0; BLOCK]);
                bytes[..part.len()].copy_from_slice(part);
                content.blocks.insert(block, bytes);
            }
            content.size = content.size.max(offset + data.len() as u64);
        }
        self.place.world.io(Op::Write, self.start + offset, data.len() as u32, self.stream);
    }

    pub(super) fn sync(&self) {
        self.place.world.io(Op::Flush, 0, 0, self.stream);
    }

    pub(super) fn truncate(&self, size: u64) {
        let mut content = self.content();
        content.under = content.under.min(size);
        content.size = size;
        content.blocks.retain(|block, _| block * (BLOCK as u64) < size);
        // The rest of the last block reads as zeros should the file grow again.
        let (last, rest) = (size / BLOCK as u64, (size % BLOCK as u64) as usize);
        if let Some(bytes) = content.blocks.get_mut(&last) {
            bytes[rest..].fill(0);
        }
    }

    /// Never held while a request is in work: who waits for it would not give its turn away.
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("content lock")
    }
}
