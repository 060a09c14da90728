//! Checkpoints: everything that is in memory only, then one of two packs.

use std::collections::BTreeSet;
use std::ops::Range;

use trace::Op;

use super::writes::Writes;
use super::{COLD_DATA, DIRECTORY, F2fs, HOT_DATA, Owner, WARM_DATA};
use crate::file_system::layout::NoSpace;
use crate::file_system::{BLOCK_BYTES, Cause, Physical, attached_flush, request};
use crate::page_cache::DirtyPage;

/// Entries of a block of the NAT and SIT, and of their journals in a summary.
pub(super) const NAT_ENTRIES: u64 = 455;
pub(super) const SIT_ENTRIES: u64 = 55;
const NAT_JOURNAL: usize = 38;
const SIT_JOURNAL: usize = 6;

/// Entries of the first and second block of compacted summaries (f2fs_npages_for_summary_flush).
const SUMMARY_FIRST: u64 = 439;
const SUMMARY_SECOND: u64 = 584;

/// Where things with a fixed place are, in blocks.
#[derive(Clone, Debug)]
pub(super) struct Areas {
    pub packs: Range<u64>,
    pub sit: Range<u64>,
    pub nat: Range<u64>,
    pub summaries: Range<u64>,
    pub main: u64,
}

impl F2fs {
    /// Writes everything that is in memory only, and a pack.
    pub(super) fn checkpoint(
        &mut self,
        at_ns: u64,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        let mut writes = Writes::new(at_ns, self.settings.request_bytes, out);
        if std::mem::take(&mut self.has_new_entries) {
            let page = DirtyPage { page: 0, data_bytes: 0, until: 0 };
            let directory = self.files.entry(DIRECTORY).or_default();
            let known = directory.pages.get(page.page);
            let block = known.unwrap_or_else(|| self.name(Owner::Page(DIRECTORY, page.page)));
            let place = self.append(HOT_DATA, block, [at_ns, at_ns], &mut writes)?;
            self.written_blocks[2] += 1;
            self.files.get_mut(&DIRECTORY).expect("made above").pages.set(page.page, block);
            self.mark_node(DIRECTORY, 0);
            writes.add(self.offset(place), Cause::Metadata, 0);
        }
        let changed = self
            .files
            .iter()
            .filter(|(_, file)| file.is_changed || file.is_touched || !file.dirty_nodes.is_empty());
        for name in changed.map(|(name, _)| *name).collect::<Vec<_>>() {
            self.mark_inode(name);
            self.write_nodes(at_ns, name, &mut writes)?;
        }
        self.write_tables(&mut writes);
        let in_segment = u64::from(self.store.shape().segment_blocks);
        let start = self.areas.packs.start + self.pack * in_segment;
        self.pack = 1 - self.pack;
        let head = 1 + self.summary_blocks();
        (start..start + head).for_each(|block| writes.add(block * BLOCK_BYTES, Cause::Metadata, 0));
        attached_flush(at_ns, out);
        let (offset, bytes) = ((start + head) * BLOCK_BYTES, BLOCK_BYTES);
        out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, Cause::Metadata) });
        attached_flush(at_ns, out);
        self.store.release();
        self.has_changes = false;
        self.assert_counted();
        Ok(())
    }

    /// Writes blocks of NAT and SIT for entries that the journals have no room for.
    fn write_tables(&mut self, out: &mut Writes) {
        if self.nat.len() > NAT_JOURNAL {
            let entries = std::mem::take(&mut self.nat);
            let blocks = entries.into_iter().map(|number| u64::from(number) / NAT_ENTRIES);
            write_table(&self.areas.nat, blocks, self.pack, out);
        }
        if self.sit.len() > SIT_JOURNAL {
            let entries = std::mem::take(&mut self.sit);
            let blocks = entries.into_iter().map(|segment| u64::from(segment) / SIT_ENTRIES);
            write_table(&self.areas.sit, blocks, self.pack, out);
        }
    }

    /// Blocks of the summaries of the open data logs, compacted where they fit.
    fn summary_blocks(&self) -> u64 {
        let in_segment = self.store.shape().segment_blocks;
        let written = |log| match self.store.open_segment(log) {
            Some(_) => u64::from(in_segment - self.store.room(log)),
            None => 0,
        };
        let entries: u64 = [HOT_DATA, WARM_DATA, COLD_DATA].into_iter().map(written).sum();
        if entries <= SUMMARY_FIRST {
            1
        } else if entries <= SUMMARY_FIRST + SUMMARY_SECOND {
            2
        } else {
            3
        }
    }
}

/// Writes blocks of a table of which there are two copies, ascending and each once.
fn write_table(area: &Range<u64>, blocks: impl Iterator<Item = u64>, copy: u64, out: &mut Writes) {
    let half = (area.end - area.start) / 2;
    let blocks: BTreeSet<u64> = blocks.map(|block| block % half).collect();
    for block in blocks {
        out.add((area.start + copy * half + block) * BLOCK_BYTES, Cause::Metadata, 0);
    }
}
