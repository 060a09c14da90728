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

#[cfg(test)]
mod tests {
    use trace::Stream;
    use units::Nanos;

    use super::*;
    use crate::sqlite::FileClass;

    fn check(requests: &[(Op, u64, u32, FileClass)], expected: &[(Op, u64, u32)]) {
        let file = |class, base_offset, size| FileInfo {
            class,
            path: class.name().into(),
            base_offset,
            size,
        };
        let (data, log) = (file(Data, 0, 10 * PAGE), file(Log, 1 << 20, 5 * PAGE));
        let stream = |class: &FileClass| Stream { name: class.name().to_owned() };
        let mut logical =
            Trace { streams: FileClass::ALL.iter().map(stream).collect(), ..Trace::default() };
        let mut device = logical.clone();
        for (index, &(op, offset, len, class)) in requests.iter().enumerate() {
            let (due, offset) = (Nanos(index as u64), Bytes(offset));
            logical.push(Request { due, offset, len, op, stream: class as u16 });
        }
        PageCache::default().derive(&logical, &[&data, &log], &mut device);
        let seen: Vec<_> =
            device.requests().map(|request| (request.op, request.offset.0, request.len)).collect();
        assert_eq!(seen, expected);
        assert_eq!(device.validate(), Ok(()));
    }

    use FileClass::{Data, Log};
    use Op::{Flush, Read, Trim, Write};
    const LOG: u64 = 1 << 20;

    #[test]
    fn a_page_is_read_once() {
        check(
            &[(Read, 24, 16, Data), (Read, 0, 4096, Data), (Read, 4096, 16384, Data)],
            &[(Read, 0, 4096), (Read, 4096, 16384)],
        );
    }

    #[test]
    fn only_the_missing_pages_of_a_read_are_read() {
        check(
            &[(Read, 4096, 4096, Data), (Read, 0, 16384, Data)],
            &[(Read, 4096, 4096), (Read, 0, 4096), (Read, 8192, 8192)],
        );
    }

    #[test]
    fn a_sync_writes_the_dirty_pages_of_its_own_file_in_order() {
        check(
            &[
                (Write, 12288, 4096, Data),
                (Write, 0, 4096, Data),
                (Write, 4096, 4096, Data),
                (Write, 0, 4096, Data),
                (Write, LOG, 4096, Log),
                (Flush, 0, 0, Data),
                (Flush, 0, 0, Data),
                (Flush, 0, 0, Log),
            ],
            &[
                (Write, 0, 8192),
                (Write, 12288, 4096),
                (Flush, 0, 0),
                (Flush, 0, 0),
                (Write, LOG, 4096),
                (Flush, 0, 0),
            ],
        );
    }

    #[test]
    fn a_write_of_part_of_a_page_reads_it_once() {
        check(
            &[(Write, 4100, 24, Data), (Write, 4124, 4096, Data), (Flush, 0, 0, Data)],
            &[(Read, 4096, 4096), (Read, 8192, 4096), (Write, 4096, 8192), (Flush, 0, 0)],
        );
    }

    #[test]
    fn dropped_pages_are_neither_written_nor_remembered() {
        check(
            &[
                (Write, 0, 8192, Data),
                (Trim, 4096, 4096, Data),
                (Flush, 0, 0, Data),
                (Read, 4096, 4096, Data),
            ],
            &[(Trim, 4096, 4096), (Write, 0, 4096), (Flush, 0, 0), (Read, 4096, 4096)],
        );
    }

    #[test]
    fn a_long_run_is_cut_at_a_mebibyte() {
        let mut pages: Vec<u64> = (0..600).collect();
        pages.push(700);
        let mut device = Trace { streams: vec![Stream::default()], ..Trace::default() };
        let like = Request { due: Nanos(0), offset: Bytes(0), len: 0, op: Write, stream: 0 };
        push_runs(&pages, like, &mut device);
        assert_eq!(device.len, [1 << 20, 1 << 20, 88 * 4096, 4096]);
        assert_eq!(device.offset, [0, 1 << 20, 2 << 20, 700 * 4096]);
    }
}
