//! What every way of laying files out has in common.

use thiserror::Error;

use super::map::Extent;
use super::segments::Full;
use super::{Physical, Sync};
use crate::page_cache::{DirtyPage, Span};

/// Pages that are written, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages<'a> {
    /// When, ns.
    pub at_ns: u64,
    /// Their file.
    pub file: u32,
    /// Ascending.
    pub dirty: &'a [DirtyPage],
    /// Past the page cache (O_DIRECT).
    pub is_direct: bool,
}

/// Files on a device: where their pages lie, and which requests changes cost.
pub(super) trait Layout: Send {
    /// Adds a file that was there before; costs no I/O.
    fn add(&mut self, file: u32, bytes: u64, written: bool) -> Result<(), NoSpace>;

    /// Size of a file, 0 where it does not exist.
    fn file_bytes(&self, file: u32) -> u64;

    /// A caller wrote `span`, at `now_ns`.
    fn touch(&mut self, now_ns: u64, span: Span);

    /// Where `page` lies, and how many pages behind it lie in a row.
    fn find(&self, file: u32, page: u64) -> Option<Extent>;

    /// First page behind `page` that has a block.
    fn next_mapped(&self, file: u32, page: u64) -> Option<u64>;

    /// Whether direct I/O of a part of a block writes only its sectors.
    fn writes_sectors(&self) -> bool {
        false
    }

    /// Pages leave memory. A layout may keep them until [`Layout::settle`] or [`Layout::sync`],
    /// one of which follows.
    fn write(&mut self, pages: Pages, out: &mut Vec<Physical>) -> Result<(), NoSpace>;

    /// The pages handed down since the last time were written back without a sync.
    fn settle(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let _ = (at_ns, out);
        Ok(())
    }

    /// Makes a file durable whose pages were handed down.
    fn sync(
        &mut self,
        at_ns: u64,
        file: u32,
        sync: Sync,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace>;

    /// Does what timers ask for until `now_ns`.
    fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace>;

    /// Makes everything durable, as sync(2) and an unmount do.
    fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace>;

    /// Which dirty pages a sync of `file` writes.
    fn sync_takes_all(&self, file: u32, sync: Sync) -> bool {
        let _ = (file, sync);
        false
    }

    /// When it writes every dirty page by itself.
    fn takes_all_ns(&self) -> Option<u64> {
        None
    }

    /// Checks every invariant; for tests.
    fn audit(&self) {}

    /// Whether it writes every dirty page now, of which there are so many.
    fn wants_all(&self, dirty_pages: u64) -> bool {
        let _ = dirty_pages;
        false
    }
}

/// The device is full.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub(super) struct NoSpace(pub String);

impl From<Full> for NoSpace {
    fn from(full: Full) -> Self {
        Self(full.to_string())
    }
}
