//! Write combining for files that grow by small appends: the write-ahead log and the journal.
//!
//! SQLite writes a log frame as 24 bytes and a page, one call each; past the page cache that would
//! be a read-modify-write of the same blocks over and over. The window holds the bytes since the
//! last drain, and the block that the last drain left incomplete, so that one commit becomes one
//! aligned sequential write.
//!
//! Ordering is SQLite's own: [`LogWindow::drain`] is called before a sync returns, before a commit
//! becomes visible to other connections, and before the database file is written (see `vfs`), so
//! the file looks to other processes and after a kill as it would behind the page cache.
//!
//! Invariants: `base` is block aligned; bytes `[base, end)` of the window are the file's; the
//! buffer is zero from `end` to the end of that block; dirty bytes lie in the window. The last
//! block written is padded with zeros: an exact file (a journal, whose end SQLite reads) is cut to
//! size at once, a log keeps the padding, which recovery ignores as it does any frame without a
//! valid checksum. Tested by random operations against a byte vector.

use std::io;
use std::ops::Range;

use super::direct::{AlignedBuffer, DirectFile};

/// Bytes that one window holds at most before it drains by itself.
const CAPACITY: usize = 1 << 20;

/// What the window writes to: a direct file, or bytes in memory under test.
pub(super) trait Blocks {
    /// Smallest unit of the window, bytes.
    fn block(&self) -> u64;
    /// Reads from an aligned offset until the buffer is full or the file ends.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes whole blocks.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Sets the size of the file.
    fn truncate(&self, size: u64) -> io::Result<()>;
}

impl Blocks for DirectFile {
    fn block(&self) -> u64 {
        // Whole pages, as the page cache would write them: smaller direct writes serialise in ext4
        // and make a 4 KiB-sector device read first.
        DirectFile::block(self).max(super::direct::PAGE as u64)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.read_blocks(offset, into)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_blocks(offset, data)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        DirectFile::truncate(self, size)
    }
}

/// The window over the end of one log.
pub(super) struct LogWindow {
    buffer: AlignedBuffer,
    block: u64,
    /// Whether the file must never be longer than what was written to it.
    exact: bool,
    base: u64,
    end: u64,
    dirty: Range<u64>,
    /// Bytes in the file as SQLite sees it.
    size: u64,
    /// Bytes beyond this need not survive a write in front of them.
    live_end: u64,
}

impl LogWindow {
    /// A window over a file that has `size` bytes.
    pub(super) fn new(block: u64, size: u64, exact: bool) -> Self {
        let buffer = AlignedBuffer::new(CAPACITY.max(block as usize));
        Self { buffer, block, exact, base: 0, end: 0, dirty: 0..0, size, live_end: size }
    }

    /// Bytes in the file as SQLite sees it.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes beyond this need not survive a write in front of them.
    pub(super) fn live_end(&self) -> u64 {
        self.live_end
    }

    /// First byte that is not on the file yet; `u64::MAX` when all are.
    pub(super) fn pending_from(&self) -> u64 {
        if self.dirty.is_empty() { u64::MAX } else { self.dirty.start }
    }

    /// Forgets what it knows of the file, because another process wrote it. Nothing is pending.
    pub(super) fn forget(&mut self, size: u64) {
        assert!(self.dirty.is_empty(), "only a drained window may be forgotten");
        self.empty_at(0);
        (self.size, self.live_end) = (size, size);
    }

    /// Says that nothing written so far is of use any more: a log starts over from its beginning.
    pub(super) fn restart(&mut self) {
        self.live_end = 0;
    }

    /// Writes `data` at `offset`.
    pub(super) fn write(&mut self, file: &impl Blocks, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut offset, mut data) = (offset, data);
        while !data.is_empty() {
            if !(self.base..=self.end).contains(&offset) {
                self.move_to(file, offset)?;
            }
            let at = (offset - self.base) as usize;
            let room = self.buffer.bytes().len() - at;
            if room == 0 {
                self.drain(file)?;
                self.move_to(file, offset)?;
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            self.buffer.bytes_mut()[at..at + now.len()].copy_from_slice(now);
            let end = offset + now.len() as u64;
            self.extend_dirty(offset..end);
            self.end = self.end.max(end);
            self.size = self.size.max(end);
            self.live_end = self.live_end.max(end);
            (offset, data) = (end, later);
        }
        Ok(())
    }

    /// Fills `into` from `offset`; returns how many bytes the file has there.
    pub(super) fn read(
        &self,
        file: &impl Blocks,
        offset: u64,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let found = self.size.saturating_sub(offset).min(into.len() as u64) as usize;
        let into = &mut into[..found];
        let wanted = offset..offset + found as u64;
        if !(self.base <= wanted.start && wanted.end <= self.end) {
            into.fill(0);
            self.read_file(file, wanted.start, into)?;
        }
        let shared = wanted.start.max(self.base)..wanted.end.min(self.end);
        if shared.start < shared.end {
            let from = (shared.start - self.base) as usize;
            let to = (shared.start - wanted.start) as usize;
            let count = (shared.end - shared.start) as usize;
            into[to..to + count].copy_from_slice(&self.buffer.bytes()[from..from + count]);
        }
        Ok(found)
    }

    /// Writes everything pending to the file, as one request of whole blocks.
    pub(super) fn drain(&mut self, file: &impl Blocks) -> io::Result<()> {
        if self.dirty.is_empty() {
            return Ok(());
        }
        let from = self.dirty.start - self.dirty.start % self.block;
        let to = self.dirty.end.next_multiple_of(self.block);
        if to > self.end && self.end < self.live_end {
            self.complete_last_block(file)?;
        }
        let bytes = &self.buffer.bytes()[(from - self.base) as usize..(to - self.base) as usize];
        file.write(from, bytes)?;
        self.dirty = 0..0;
        if self.exact && to > self.size {
            file.truncate(self.size)?;
        }
        self.keep_last_block();
        Ok(())
    }

    /// Sets the size of the file.
    pub(super) fn truncate(&mut self, file: &impl Blocks, size: u64) -> io::Result<()> {
        if size > self.size {
            self.drain(file)?;
        }
        self.dirty.end = self.dirty.end.min(size);
        self.dirty.start = self.dirty.start.min(self.dirty.end);
        if size < self.end {
            let cut = size.max(self.base);
            let (from, to) = ((cut - self.base) as usize, (self.end - self.base) as usize);
            self.buffer.bytes_mut()[from..to].fill(0);
            self.end = cut;
        }
        if size < self.base {
            self.empty_at(0);
        }
        file.truncate(size)?;
        self.size = size;
        self.live_end = self.live_end.min(size);
        Ok(())
    }

    /// Starts the window afresh at the block that holds `offset`.
    fn move_to(&mut self, file: &impl Blocks, offset: u64) -> io::Result<()> {
        self.drain(file)?;
        let base = offset - offset % self.block;
        self.empty_at(base);
        let known = self.live_end.min(offset.next_multiple_of(self.block)).saturating_sub(base);
        if offset > base {
            let count = self.block.min(self.buffer.bytes().len() as u64) as usize;
            let mut got = 0;
            if known > 0 {
                got = file.read(base, &mut self.buffer.bytes_mut()[..count])?;
            }
            // What lies behind the live bytes is not carried over.
            let keep = got.min(known as usize);
            self.buffer.bytes_mut()[keep..count].fill(0);
            self.end = offset.max(base + known);
        }
        Ok(())
    }

    /// Lets go of everything; the window starts at a block of the file.
    fn empty_at(&mut self, base: u64) {
        let used = (self.end - self.base).next_multiple_of(self.block) as usize;
        self.buffer.bytes_mut()[..used].fill(0);
        (self.base, self.end) = (base, base);
    }

    /// Reads what the file has behind the window's end within its last block.
    fn complete_last_block(&mut self, file: &impl Blocks) -> io::Result<()> {
        let start = self.end - self.end % self.block;
        let mut block = AlignedBuffer::new(self.block as usize);
        let bytes = &mut block.bytes_mut()[..self.block as usize];
        let got = file.read(start, bytes)?;
        let end = self.live_end.min(start + self.block);
        let (from, to) = ((self.end - start) as usize, (end - start) as usize);
        bytes[got.min(to)..to].fill(0);
        let at = (self.end - self.base) as usize;
        self.buffer.bytes_mut()[at..at + (to - from)].copy_from_slice(&bytes[from..to]);
        self.end = end;
        Ok(())
    }

    /// Lets go of all blocks but the incomplete last one.
    fn keep_last_block(&mut self) {
        let start = self.end - self.end % self.block;
        let from = (start - self.base) as usize;
        let used = (self.end.next_multiple_of(self.block) - self.base) as usize;
        let bytes = self.buffer.bytes_mut();
        bytes.copy_within(from..used, 0);
        bytes[used - from..used].fill(0);
        self.base = start;
    }

    fn extend_dirty(&mut self, range: Range<u64>) {
        self.dirty = if self.dirty.is_empty() {
            range
        } else {
            self.dirty.start.min(range.start)..self.dirty.end.max(range.end)
        };
    }

    fn read_file(&self, file: &impl Blocks, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = offset - offset % self.block;
        let to = (offset + into.len() as u64).next_multiple_of(self.block);
        let mut bounce = AlignedBuffer::new((to - from) as usize);
        let bytes = &mut bounce.bytes_mut()[..(to - from) as usize];
        let got = file.read(from, bytes)?;
        bytes[got..].fill(0);
        let skip = (offset - from) as usize;
        into.copy_from_slice(&bytes[skip..skip + into.len()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;

    use super::*;

    const BLOCK: u64 = 4096;

    /// A file in memory that counts its writes and insists on whole blocks.
    #[derive(Default)]
    struct Memory {
        bytes: RefCell<Vec<u8>>,
        writes: RefCell<Vec<(u64, usize)>>,
        reads: Cell<usize>,
        broken: Cell<bool>,
    }

    impl Blocks for Memory {
        fn block(&self) -> u64 {
            BLOCK
        }

        fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            assert!(offset.is_multiple_of(BLOCK) && (into.len() as u64).is_multiple_of(BLOCK));
            self.reads.set(self.reads.get() + 1);
            let bytes = self.bytes.borrow();
            let from = (offset as usize).min(bytes.len());
            let to = (from + into.len()).min(bytes.len());
            into[..to - from].copy_from_slice(&bytes[from..to]);
            Ok(to - from)
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            assert!(offset.is_multiple_of(BLOCK) && (data.len() as u64).is_multiple_of(BLOCK));
            if self.broken.get() {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            let mut bytes = self.bytes.borrow_mut();
            let end = offset as usize + data.len();
            let longer = bytes.len().max(end);
            bytes.resize(longer, 0);
            bytes[offset as usize..end].copy_from_slice(data);
            self.writes.borrow_mut().push((offset, data.len()));
            Ok(())
        }

        fn truncate(&self, size: u64) -> io::Result<()> {
            self.bytes.borrow_mut().resize(size as usize, 0);
            Ok(())
        }
    }

    fn frame(window: &mut LogWindow, file: &Memory, at: u64, byte: u8) -> u64 {
        window.write(file, at, &[byte; 24]).unwrap();
        window.write(file, at + 24, &[byte; 4096]).unwrap();
        at + 24 + 4096
    }

    #[test]
    fn a_commit_is_one_write_and_no_read() {
        let (file, mut window) = (Memory::default(), LogWindow::new(BLOCK, 0, false));
        window.write(&file, 0, &[9; 32]).unwrap();
        let mut at = 32;
        for commit in 0..20 {
            for frames in 0..3 {
                at = frame(&mut window, &file, at, commit * 3 + frames);
            }
            window.drain(&file).unwrap();
            assert_eq!(window.pending_from(), u64::MAX);
        }
        assert_eq!(file.writes.borrow().len(), 20);
        assert_eq!(file.reads.get(), 0);
        assert_eq!(file.writes.borrow()[1], (3 * 4096, 4 * 4096), "starts at the kept block");
    }

    #[test]
    fn a_log_that_starts_over_needs_no_reads() {
        let (file, mut window) = (Memory::default(), LogWindow::new(BLOCK, 0, false));
        for round in 0..2 {
            window.restart();
            window.write(&file, 0, &[round; 32]).unwrap();
            let mut at = 32;
            for commit in 0..10 {
                at = frame(&mut window, &file, at, commit);
                window.drain(&file).unwrap();
            }
        }
        assert_eq!(file.reads.get(), 0);
        assert_eq!(window.size(), 32 + 10 * 4120);
    }

    #[test]
    fn a_failed_write_stays_pending_and_is_readable() {
        let (file, mut window) = (Memory::default(), LogWindow::new(BLOCK, 0, false));
        window.write(&file, 0, &[1; 5000]).unwrap();
        file.broken.set(true);
        assert!(window.drain(&file).is_err());
        assert_eq!(window.pending_from(), 0);
        let mut into = [0; 5000];
        assert_eq!(window.read(&file, 0, &mut into).unwrap(), 5000);
        assert_eq!(into, [1; 5000]);
        file.broken.set(false);
        window.drain(&file).unwrap();
        assert_eq!(file.bytes.borrow()[..5000], [1; 5000]);
    }

    #[test]
    fn a_forgotten_window_leaves_no_bytes_behind() {
        // Found by the property below.
        let steps = [Step::Write(29, 1), Step::Reopen, Step::Truncate(0), Step::Append(1)];
        check(&steps, false);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// At the end of the file.
        Append(usize),
        Write(u64, usize),
        Read(u64, usize),
        Truncate(u64),
        Drain,
        Reopen,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let place = prop_oneof![0..60_000u64, (0..15u64).prop_map(|block| block * BLOCK)];
        let size = prop_oneof![1..30usize, Just(4096), 1..20_000usize];
        let step = prop_oneof![
            6 => size.clone().prop_map(Step::Append),
            3 => (place.clone(), size.clone()).prop_map(|(at, size)| Step::Write(at, size)),
            3 => (place.clone(), size).prop_map(|(at, size)| Step::Read(at, size)),
            1 => place.prop_map(Step::Truncate),
            2 => Just(Step::Drain),
            1 => Just(Step::Reopen),
        ];
        prop::collection::vec(step, 1..60)
    }

    fn check(steps: &[Step], exact: bool) {
        let (file, mut window) = (Memory::default(), LogWindow::new(BLOCK, 0, exact));
        let mut model: Vec<u8> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Append(size) => {
                    let at = model.len();
                    model.resize(at + size, number as u8 + 1);
                    window.write(&file, at as u64, &model[at..]).unwrap();
                }
                Step::Write(at, size) => {
                    let data = vec![number as u8 + 1; size];
                    let end = at as usize + size;
                    model.resize(model.len().max(end), 0);
                    model[at as usize..end].copy_from_slice(&data);
                    window.write(&file, at, &data).unwrap();
                }
                Step::Read(at, size) => {
                    let mut into = vec![0xee; size];
                    let found = window.read(&file, at, &mut into).unwrap();
                    let from = (at as usize).min(model.len());
                    let to = (from + size).min(model.len());
                    assert_eq!(&into[..found], &model[from..to], "step {number}");
                }
                Step::Truncate(size) => {
                    window.truncate(&file, size).unwrap();
                    model.resize(size as usize, 0);
                }
                Step::Drain => window.drain(&file).unwrap(),
                Step::Reopen => {
                    window.drain(&file).unwrap();
                    window.forget(model.len() as u64);
                }
            }
            assert_eq!(window.size(), model.len() as u64, "step {number}");
            assert_eq!(window.pending_from() == u64::MAX, window.dirty.is_empty());
        }
        window.drain(&file).unwrap();
        let bytes = file.bytes.borrow();
        assert_eq!(&bytes[..model.len()], &model[..]);
        let longest =
            if exact { model.len() } else { model.len().next_multiple_of(BLOCK as usize) };
        assert!(bytes.len() <= longest);
        assert!(bytes[model.len()..].iter().all(|byte| *byte == 0), "padding is zero");
    }

    proptest! {
        #[test]
        fn behaves_like_bytes_in_memory(steps in steps(), exact in any::<bool>()) {
            check(&steps, exact);
        }
    }

    #[test]
    fn more_than_the_window_holds() {
        let sizes = [CAPACITY - 5, 3 * CAPACITY + 17, 1, CAPACITY];
        let appends: Vec<Step> = sizes.into_iter().map(Step::Append).collect();
        check(&appends, true);
        check(&appends, false);
    }
}
