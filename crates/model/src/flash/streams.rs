//! Streams: what a host says about which data die together (multi-stream, FDP placement handles).
//!
//! The stream of a request, a file class of a DBMS, chooses a placement handle: every handle has an
//! open block of its own in each plane, its *reclaim unit* (NVMe 2.1, "Flexible Data Placement";
//! Kang et al., "The Multi-streamed Solid-State Drive", HotStorage 2014). FDP knows two kinds of
//! handles, which differ in what cleaning does with what it moves:
//!
//! - **initially isolated**: moved pages of all streams go to blocks that they share;
//! - **persistently isolated**: they stay among pages of their stream.
//!
//! Invariants: the host pages of all streams sum to [`super::Counts::host_pages`], their moved
//! pages to `moved_pages`. Tested in `tests/it/flash/streams.rs` against the closed forms of logs
//! that mix hot and cold data and of logs that do not.

use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// What happened to one stream since the device was made, preconditioned or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Pages programmed for its requests.
    pub host_pages: u64,
    /// Pages that cleaning moved out of its blocks; pages that it had moved to shared blocks before
    /// count as those of no stream.
    pub moved_pages: u64,
    /// Reclaim units opened for it.
    pub opened_blocks: u64,
    /// Of its reclaim units those that were erased.
    pub erased_blocks: u64,
}

impl StreamCounts {
    /// Pages programmed per page that requests wrote; 1 where none were.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 1.0;
        }
        (self.host_pages + self.moved_pages) as f64 / self.host_pages as f64
    }
}

/// What is counted of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    /// Pages of the blocks opened for it, those included that are still to be written.
    opened_pages: u64,
    opened_blocks: u64,
    /// Pages that cleaning moved into these blocks.
    moved_in: u64,
    moved_pages: u64,
    erased_blocks: u64,
}

/// Counts by stream, the last one of what is in no stream. Nothing is counted page by page where
/// blocks will do: the loop over requests pays nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally(Vec<Entry>);

impl Tally {
    /// Of `streams`, none of which has an open block.
    pub(crate) fn new(streams: u32) -> Self {
        Self::after(vec![0; streams as usize])
    }

    /// From now on, where open blocks have this many pages left, by stream.
    pub(crate) fn after(unwritten: Vec<u64>) -> Self {
        let entry = |opened_pages| Entry { opened_pages, ..Entry::default() };
        Self(unwritten.into_iter().chain([0]).map(entry).collect())
    }

    /// A block of `pages` was opened for new pages of `stream`.
    pub(crate) fn opened(&mut self, stream: u32, pages: u32) {
        let entry = &mut self.0[stream as usize];
        entry.opened_blocks += 1;
        entry.opened_pages += u64::from(pages);
    }

    /// `count` pages moved out of a block of stream `from`, among the new pages of a stream.
    pub(crate) fn moved(&mut self, from: u8, among: Option<usize>, count: u64) {
        self.0[usize::from(from)].moved_pages += count;
        if let Some(stream) = among {
            self.0[stream].moved_in += count;
        }
    }

    /// A block of `stream` was erased.
    pub(crate) fn erased(&mut self, stream: u8) {
        self.0[usize::from(stream)].erased_blocks += 1;
    }

    /// The counts, where open blocks have this many pages left, by stream.
    pub(crate) fn counts(&self, unwritten: &[u64]) -> Vec<StreamCounts> {
        let unwritten = unwritten.iter().chain([&0]);
        let of = |(entry, unwritten): (&Entry, &u64)| StreamCounts {
            host_pages: entry.opened_pages - entry.moved_in - unwritten,
            moved_pages: entry.moved_pages,
            opened_blocks: entry.opened_blocks,
            erased_blocks: entry.erased_blocks,
        };
        self.0.iter().zip(unwritten).map(of).collect()
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        for entry in &self.0 {
            let Entry { opened_pages, opened_blocks, moved_in, moved_pages, erased_blocks } =
                *entry;
            to.u64s(&[opened_pages, opened_blocks, moved_in, moved_pages, erased_blocks]);
        }
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        for entry in &mut self.0 {
            let mut numbers = [0; 5];
            from.u64s(&mut numbers)?;
            let [opened_pages, opened_blocks, moved_in, moved_pages, erased_blocks] = numbers;
            *entry = Entry { opened_pages, opened_blocks, moved_in, moved_pages, erased_blocks };
        }
        Ok(())
    }
}
