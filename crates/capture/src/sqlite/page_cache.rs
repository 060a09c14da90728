//! What a page cache would have made of the logical I/O: the device trace of a buffered session.
//!
//! The model, stated in the trace's origin: 4 KiB pages, none cached at the start, none evicted. A
//! read of pages not seen yet misses, and neighbouring misses are one request; a write that covers
//! a page only partly reads it first if the file has it; writes are absorbed; a sync writes the
//! dirty pages of that file class's files in address order, neighbours joined up to 1 MiB, and
//! flushes; a truncation drops the pages.
//!
//! Tested by hand-made sequences below.

use std::collections::{BTreeSet, HashSet};

use trace::{Op, Request, Trace};
use units::Bytes;

use super::layout::FileInfo;

/// Bytes in a page.
const PAGE: u64 = 4096;
/// Most pages in one request.
const LONGEST_PAGES: u64 = 256;

/// Pages by their number in the traces' address space.
#[derive(Default)]
pub(super) struct PageCache {
    cached: HashSet<u64>,
    dirty: BTreeSet<u64>,
}

impl PageCache {
    /// Appends to `device` what `logical` would have caused.
    pub(super) fn derive(&mut self, logical: &Trace, files: &[&FileInfo], device: &mut Trace) {
        for request in logical.requests() {
            let (first, end) = (request.offset.0, request.offset.0 + u64::from(request.len));
            let pages = first / PAGE..end.div_ceil(PAGE);
            match request.op {
                Op::Read => self.read(pages, request, device),
                Op::Write => {
                    for edge in [first, end] {
                        if edge % PAGE != 0 && pages.contains(&(edge / PAGE)) {
                            let page = edge / PAGE;
                            let held = files.iter().any(|file| {
                                (file.base_offset..file.base_offset + file.size)
                                    .contains(&(page * PAGE))
                            });
                            if held {
                                self.read(page..page + 1, request, device);
                            }
                        }
                    }
                    self.cached.extend(pages.clone());
                    self.dirty.extend(pages);
                }
                Op::Trim => {
                    for page in first.div_ceil(PAGE)..end.div_ceil(PAGE) {
                        self.cached.remove(&page);
                        self.dirty.remove(&page);
                    }
                    device.push(request);
                }
                Op::Flush => self.sync(request, files, device),
            }
        }
    }

    fn read(&mut self, pages: std::ops::Range<u64>, request: Request, device: &mut Trace) {
        let missing: Vec<u64> = pages.filter(|page| self.cached.insert(*page)).collect();
        push_runs(&missing, Request { op: Op::Read, ..request }, device);
    }

    fn sync(&mut self, request: Request, files: &[&FileInfo], device: &mut Trace) {
        let of_class = files.iter().filter(|file| file.class as u16 == request.stream);
        for file in of_class {
            let first = file.base_offset / PAGE;
            let end = (file.base_offset + file.size).div_ceil(PAGE) + 1;
            let pages: Vec<u64> = self.dirty.range(first..end).copied().collect();
            for page in &pages {
                self.dirty.remove(page);
            }
            push_runs(&pages, Request { op: Op::Write, ..request }, device);
        }
        device.push(request);
    }
}

/// One request per run of neighbouring pages.
fn push_runs(pages: &[u64], like: Request, device: &mut Trace) {
    let mut rest = pages;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(page, want)| *page == want).count();
        let run = run.min(LONGEST_PAGES as usize);
        let len = (run as u64 * PAGE) as u32;
        device.push(Request { offset: Bytes(first * PAGE), len, ..like });
        rest = &rest[run..];
    }
}
