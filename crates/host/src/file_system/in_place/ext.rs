//! What ext2, ext3 and ext4 do beyond the common: indirect blocks, the journal (jbd2), syncs
//! without one.
//!
//! A commit (fs/jbd2/commit.c) writes descriptor blocks and copies of the changed metadata in a
//! row, then a commit block with a flush before and after it; one descriptor has tags for 254
//! blocks. Full commits follow every 5 s, and a sync that finds its file changed.

use std::collections::BTreeSet;

use trace::Op;

use super::space::Space;
use super::{BLOCK_BYTES, Cause, File, InPlace, Journal, Physical, attached_flush, request};

/// Pages that the inode itself maps.
const DIRECT: u64 = 12;

/// Pages that an indirect block maps: 4096 bytes of 4-byte numbers.
const PER_INDIRECT: u64 = 1024;

/// Blocks that a descriptor block has tags of 16 bytes for.
const PER_DESCRIPTOR: u64 = 254;

/// Blocks of one request to the journal: their pages are scattered in memory, and a request has at
/// most 128 segments (the default of the block layer).
const SEGMENTS: u64 = 128;

/// Blocks of the fast-commit area.
const FAST_BLOCKS: u64 = 256;

/// Files that a directory block names, with names of about 24 bytes.
const PER_DIRECTORY_BLOCK: u64 = 128;

/// Key of the block above the indirect ones in [`File::indirect`].
const ABOVE: u64 = u64::MAX;

/// The running transaction and the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct JournalState {
    /// Metadata blocks that changed since the last commit.
    running: BTreeSet<u64>,
    /// Blocks of the journal that are in use.
    used: u64,
    /// Where the next block goes.
    head: u64,
    fast_used: u64,
    /// A change that a fast commit cannot describe.
    needs_full: bool,
}

/// Pages from `page` to the next one that another indirect block maps.
pub(super) fn pages_to_next_indirect(page: u64) -> u64 {
    if page < DIRECT { DIRECT - page } else { PER_INDIRECT - (page - DIRECT) % PER_INDIRECT }
}

/// Adds the indirect blocks that `page` needs, of blocks that `block` gives.
pub(super) fn add_indirect(file: &mut File, page: u64, mut block: impl FnMut() -> u64) {
    let Some(behind) = page.checked_sub(DIRECT) else { return };
    let index = behind / PER_INDIRECT;
    if !file.indirect.contains_key(&index) {
        if index > 0 {
            file.indirect.entry(ABOVE).or_insert_with(&mut block);
        }
        file.indirect.insert(index, block());
    }
}

impl InPlace {
    /// A metadata block changed.
    pub(super) fn metadata(&mut self, now_ns: u64, block: u64) {
        if self.settings.is_journalled() {
            self.journal.running.insert(block);
        } else {
            self.home.entry(block).or_insert(now_ns);
        }
    }

    /// The metadata of a new file: its inode's bitmap, the directory and its inode, the group.
    pub(super) fn create_in_place(&mut self, now_ns: u64, name: u32, inode: u64) {
        if self.entries.is_multiple_of(PER_DIRECTORY_BLOCK) {
            let block = self.space.reserve(0, 1).start;
            self.directory.push(block);
            self.metadata(now_ns, self.space.bitmap_of(block));
            // The block map of the directory changes, which fast commits do not describe.
            self.journal.needs_full = self.entries > 0;
        }
        self.entries += 1;
        let directory = *self.directory.last().expect("added above");
        self.files.get_mut(&name).expect("just made").own_metadata.insert(directory);
        let root = self.space.inode_block(2);
        let group = Space::descriptor_of(0);
        for block in [self.space.inode_bitmap(inode), directory, root, group] {
            self.metadata(now_ns, block);
        }
    }

    /// Changes the indirect blocks for a page that gets a block.
    ///
    /// New ones come from the file's own row, so that they lie in front of the pages they map.
    pub(super) fn map_indirect(&mut self, now_ns: u64, name: u32, page: u64) {
        let Some(behind) = page.checked_sub(DIRECT) else { return };
        let index = behind / PER_INDIRECT;
        let is_new = !self.files[&name].indirect.contains_key(&index);
        let above = Some(ABOVE).filter(|_| is_new && index > 0);
        for key in above.into_iter().chain([index]) {
            let known = self.files[&name].indirect.get(&key).copied();
            let block = known.unwrap_or_else(|| self.allocate(name));
            let file = self.files.get_mut(&name).expect("a file that is written exists");
            file.indirect.insert(key, block);
            file.own_metadata.insert(block);
            self.metadata(now_ns, block);
        }
    }

    /// A sync without a journal: the inode, the map, the directory of a new file.
    pub(super) fn write_own_metadata(&mut self, name: u32, at_ns: u64, out: &mut Vec<Physical>) {
        let file = self.files.get_mut(&name).expect("a file that is synced exists");
        (file.is_changed, file.is_touched) = (false, false);
        let blocks = std::mem::take(&mut file.own_metadata);
        // Neighbours are merged, as in the plug of one task.
        let blocks: Vec<u64> =
            blocks.into_iter().filter(|block| self.home.remove(block).is_some()).collect();
        for run in blocks.chunk_by(|a, b| a + 1 == *b) {
            let (offset, bytes) = (run[0] * BLOCK_BYTES, run.len() as u64 * BLOCK_BYTES);
            out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, Cause::Metadata) });
        }
    }

    /// The commit that a sync of `name` asks for.
    pub(super) fn commit_for(&mut self, at_ns: u64, name: u32, out: &mut Vec<Physical>) {
        let fast = self.settings.journal == Journal::FastCommit
            && !self.journal.needs_full
            && self.journal.fast_used < FAST_BLOCKS;
        if fast {
            self.journal.fast_used += 1;
            let file = self.files.get_mut(&name).expect("a file that is synced exists");
            (file.is_changed, file.is_touched) = (false, false);
            attached_flush(at_ns, out);
            self.write_journal(at_ns, 1, out);
            attached_flush(at_ns, out);
        } else {
            self.commit(at_ns, 0, out);
            if self.settings.journal == Journal::Data {
                super::flush(at_ns, out);
            }
        }
    }

    /// A full commit of everything that changed, and of `data` blocks of content.
    pub(super) fn commit(&mut self, at_ns: u64, data: u64, out: &mut Vec<Physical>) {
        let blocks = self.journal.running.len() as u64 + data;
        if blocks == 0 {
            return;
        }
        let logged = blocks + blocks.div_ceil(PER_DESCRIPTOR);
        if self.journal.used + logged + 1 > self.settings.journal_bytes / BLOCK_BYTES {
            // No room: what was committed is written home in the foreground.
            self.write_home(at_ns, u64::MAX, out);
            self.journal.used = 0;
        }
        let mut left = logged;
        while left > 0 {
            let batch = left.min(PER_DESCRIPTOR + 1);
            self.write_journal(at_ns, batch, out);
            left -= batch;
        }
        attached_flush(at_ns, out);
        self.write_journal(at_ns, 1, out);
        attached_flush(at_ns, out);
        for block in std::mem::take(&mut self.journal.running) {
            self.home.entry(block).or_insert(at_ns);
        }
        (self.journal.fast_used, self.journal.needs_full) = (0, false);
        for file in self.files.values_mut() {
            (file.is_changed, file.is_touched) = (false, false);
            file.own_metadata.clear();
        }
    }

    /// Writes blocks at the head of the journal, which is a ring.
    fn write_journal(&mut self, at_ns: u64, blocks: u64, out: &mut Vec<Physical>) {
        let ring = self.space.journal();
        let length = ring.end - ring.start;
        let most = (self.settings.request_bytes / BLOCK_BYTES).min(SEGMENTS);
        let mut left = blocks;
        while left > 0 {
            let count = left.min(most).min(length - self.journal.head);
            let offset = (ring.start + self.journal.head) * BLOCK_BYTES;
            let bytes = count * BLOCK_BYTES;
            out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, Cause::Journal) });
            self.journal.head = (self.journal.head + count) % length;
            left -= count;
        }
        self.journal.used += blocks;
    }
}
