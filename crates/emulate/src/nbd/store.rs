//! The bytes of an exported device: a sparse file, and what it held when it was last flushed.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use crate::fuse::images::Images;
use crate::fuse::place::OLD_BYTES_MAX;
use crate::fuse::power_cut::{Chance, put_back};
use crate::{Error, Fate, Lost};

/// The bytes of a device.
pub(crate) struct Store {
    file: File,
    size: u64,
    /// What to take back at a power cut; kept only where it may be cut.
    images: Option<Images>,
    /// Old bytes kept in memory at most; beyond it everything so far counts as durable.
    old_bytes_max: u64,
}

impl Store {
    /// In a file, made sparse if it is not there; a file that is there keeps its bytes and, where
    /// it is larger, its size.
    pub(crate) fn in_file(path: &Path, size: u64, forgetful: bool) -> Result<Self, Error> {
        let fail = |source| Error::io(path, "opening", source);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(fail)?;
        let size = size.max(file.metadata().map_err(fail)?.len());
        file.set_len(size).map_err(fail)?;
        Ok(Self::over(file, size, forgetful))
    }

    /// In memory: gone with the emulator.
    pub(crate) fn in_memory(size: u64, forgetful: bool) -> Result<Self, Error> {
        let path = Path::new("memory");
        let fail = |source| Error::io(path, "allocating", source);
        let made = memfd_create("wearmark", MemfdFlags::CLOEXEC);
        let file = File::from(made.map_err(|error| fail(error.into()))?);
        file.set_len(size).map_err(fail)?;
        Ok(Self::over(file, size, forgetful))
    }

    fn over(file: File, size: u64, forgetful: bool) -> Self {
        let images = forgetful.then(Images::default);
        Self { file, size, images, old_bytes_max: OLD_BYTES_MAX }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn read(&self, offset: u64, len: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.keep(offset..offset + bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset)
    }

    /// The range reads as zeros from now on.
    pub(super) fn clear(&mut self, range: Range<u64>) -> io::Result<()> {
        self.keep(range.clone())?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, flags, range.start, range.end - range.start)?)
    }

    fn keep(&mut self, range: Range<u64>) -> io::Result<()> {
        let Some(images) = &mut self.images else { return Ok(()) };
        images.begin(self.size);
        let missing = images.missing(range);
        let more: u64 = missing.iter().map(|part| part.end - part.start).sum();
        if images.bytes() + more > self.old_bytes_max {
            // A trim alone may be of 4 GiB. This change is durable too, and all before it.
            images.clear();
            return Ok(());
        }
        for part in missing {
            let mut old = vec![0; (part.end - part.start) as usize];
            self.file.read_exact_at(&mut old, part.start)?;
            images.keep(part.start, old);
        }
        Ok(())
    }

    /// Everything so far is durable.
    pub(super) fn flushed(&mut self) {
        if let Some(images) = &mut self.images {
            images.clear();
        }
    }

    /// The range is durable, and nothing else for it.
    pub(super) fn written_through(&mut self, range: Range<u64>) {
        if let Some(images) = &mut self.images {
            images.make_durable(&range);
        }
    }

    /// Takes back what was not flushed.
    pub(crate) fn cut_power(&mut self, fate: Fate) -> io::Result<Lost> {
        let Some((_, old)) = self.images.as_mut().and_then(Images::take) else {
            return Ok(Lost::default());
        };
        let mut chance = Chance::new(fate);
        let mut lost = Lost { files: 1, ..Lost::default() };
        for (offset, bytes) in old {
            lost.bytes += put_back(&self.file, offset, &bytes, &mut chance)?;
        }
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client trims at once may be more than the memory that we have.
    #[test]
    fn beyond_its_memory_everything_so_far_is_durable() {
        let mut store = Store::in_memory(1 << 20, true).unwrap();
        store.old_bytes_max = 8192;
        store.write(0, &[1; 4096]).unwrap();
        store.clear(4096..1 << 20).unwrap();
        assert_eq!(store.cut_power(Fate::All).unwrap(), Lost::default());
        assert_eq!(store.read(0, 2).unwrap(), [1, 1]);
        store.write(0, &[2; 4096]).unwrap();
        assert_eq!(store.cut_power(Fate::All).unwrap().bytes, 4096);
        assert_eq!(store.read(0, 2).unwrap(), [1, 1]);
    }
}
