//! Logs: a summary and blocks in one segment, as requests.

use trace::Op;

use super::{NONE, Nilfs2};
use crate::file_system::layout::NoSpace;
use crate::file_system::{BLOCK_BYTES, Cause, Physical, request};

/// Least room for a log; with less left the segment is closed (`NILFS_SEG_MIN_BLOCKS`).
const LEAST_ROOM: u32 = 16;

/// Bytes in a summary: its header, a file, a block of data or a node.
const HEADER_BYTES: u64 = 56;
const FILE_BYTES: u64 = 24;
const DATA_BYTES: u64 = 16;
const NODE_BYTES: u64 = 8;

/// A block of a log that is being built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Its name in the store; the super root has none.
    pub block: u32,
    /// The file it belongs to, for the summary.
    pub owner: u64,
    pub part: Part,
    pub written_ns: u64,
}

impl Item {
    pub fn metadata(block: u32, owner: u64, written_ns: u64) -> Self {
        Self { block, owner, part: Part::Metadata, written_ns }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Data, with the bytes that callers wrote.
    Data(u64),
    /// Moved by the cleaner.
    Moved,
    Metadata,
    Node,
}

impl Nilfs2 {
    /// Writes the items as logs, each in one segment behind a summary of its own. Without `out`
    /// nothing is written: the blocks were there before.
    pub(super) fn write_items(
        &mut self,
        at_ns: u64,
        mut out: Option<&mut Vec<Physical>>,
    ) -> Result<(), NoSpace> {
        let items = std::mem::take(&mut self.items);
        let mut left = &items[..];
        while !left.is_empty() {
            let mut room = self.store.room(0);
            if room < LEAST_ROOM {
                self.store.close(0, at_ns);
                room = self.store.shape().segment_blocks;
            }
            let (count, summary) = fitting(left, u64::from(room));
            let first = self.store.append_dead(0, at_ns)?;
            for _ in 1..summary {
                self.store.append_dead(0, at_ns)?;
            }
            let (log, behind) = left.split_at(count);
            for item in log {
                if item.block == NONE {
                    self.store.append_dead(0, at_ns)?;
                } else {
                    self.store.append(0, item.block, at_ns, item.written_ns)?;
                }
            }
            self.written_blocks[2] += summary;
            if let Some(out) = out.as_deref_mut() {
                self.issue(at_ns, first, summary, log, out);
            }
            left = behind;
        }
        for item in &items {
            self.written_blocks[match item.part {
                Part::Data(_) => 0,
                Part::Moved => 1,
                Part::Metadata | Part::Node => 2,
            }] += 1;
        }
        let written: u64 = self.written_blocks.iter().sum();
        assert_eq!(self.store.appended_blocks(), written, "blocks of the log by cause");
        self.items = items;
        self.items.clear();
        Ok(())
    }

    /// The requests of a log that begins at place `first`.
    fn issue(&self, at_ns: u64, first: u32, summary: u64, log: &[Item], out: &mut Vec<Physical>) {
        let most = self.settings.request_bytes / BLOCK_BYTES;
        let total = summary + log.len() as u64;
        let mut start = 0;
        while start < total {
            let end = total.min(start + most);
            let items =
                &log[start.saturating_sub(summary) as usize..(end.max(summary) - summary) as usize];
            let (mut data, mut data_bytes, mut moved) = (0, 0, 0);
            for item in items {
                match item.part {
                    Part::Data(bytes) => (data, data_bytes) = (data + 1, data_bytes + bytes),
                    Part::Moved => moved += 1,
                    Part::Metadata | Part::Node => {}
                }
            }
            let (cause, own) = match (data, moved) {
                (0, 0) => (Cause::Metadata, 0),
                (0, _) => (Cause::Clean, moved),
                _ => (Cause::Data, data),
            };
            assert!(data == 0 || moved == 0, "data and moved blocks are in logs of their own");
            let metadata = if own == 0 { 0 } else { end - start - own };
            out.push(Physical {
                offset: self.offset(first) + start * BLOCK_BYTES,
                bytes: (end - start) * BLOCK_BYTES,
                metadata_bytes: metadata * BLOCK_BYTES,
                padding_bytes: data * BLOCK_BYTES - data_bytes,
                ..request(at_ns, Op::Write, cause)
            });
            start = end;
        }
    }
}

/// How many items fit into a log of `room` blocks, and the blocks of the summary before them.
fn fitting(items: &[Item], room: u64) -> (usize, u64) {
    let (mut bytes, mut owner, mut count) = (HEADER_BYTES, None, 0);
    for item in items {
        let file = if owner == Some(item.owner) { 0 } else { FILE_BYTES };
        let own = if item.part == Part::Node { NODE_BYTES } else { DATA_BYTES };
        let more = bytes + file + own;
        if count + 1 + more.div_ceil(BLOCK_BYTES) > room {
            break;
        }
        (bytes, owner, count) = (more, Some(item.owner), count + 1);
    }
    assert!(count > 0, "a log has room for a block");
    (count as usize, bytes.div_ceil(BLOCK_BYTES))
}
