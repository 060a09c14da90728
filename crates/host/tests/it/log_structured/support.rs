//! A file system without a page cache above it, and what it has issued.

use std::collections::BTreeMap;

use host::Spec;
use host::file_system::{BLOCK_BYTES, FileSystem, Physical, Sync, Wanted};
use host::page_cache::{DirtyPage, Span};
use trace::Op;

pub struct Bench {
    pub files: FileSystem,
    pub out: Vec<Physical>,
    pub now_ns: u64,
    /// Data bytes written by callers.
    pub written_bytes: u64,
}

impl Bench {
    pub fn new(text: &str) -> Self {
        let spec = Spec::from_toml(&format!("[file_system]\n{text}"), "stack.toml")
            .expect(text)
            .file_layer
            .unwrap();
        let files = FileSystem::new(spec.file_system);
        Self { files, out: Vec::new(), now_ns: 0, written_bytes: 0 }
    }

    /// Writes `count` pages from `page` on, which leave memory at once.
    pub fn write(&mut self, file: u32, page: u64, count: u64) {
        let (offset, bytes) = (page * BLOCK_BYTES, count * BLOCK_BYTES);
        self.files.touch(self.now_ns, Span { file, offset, bytes });
        let dirty =
            |page| DirtyPage { page, data_bytes: BLOCK_BYTES, until: (page + 1) * BLOCK_BYTES };
        let pages: Vec<DirtyPage> = (page..page + count).map(dirty).collect();
        self.files.write(self.now_ns, file, &pages, &mut self.out);
        self.written_bytes += bytes;
    }

    pub fn sync(&mut self, file: u32, sync: Sync) {
        self.files.sync(self.now_ns, file, sync, &mut self.out);
        assert_eq!(self.files.failure(), None);
    }

    /// Lets time pass.
    pub fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.files.wake(self.now_ns, &mut self.out);
        assert_eq!(self.files.failure(), None);
    }

    /// Blocks written, requests written, flushes since the last time.
    pub fn take(&mut self) -> [u64; 3] {
        let out = std::mem::take(&mut self.out);
        let writes = || out.iter().filter(|request| request.op == Op::Write);
        [
            writes().map(|request| request.bytes).sum::<u64>() / BLOCK_BYTES,
            writes().count() as u64,
            out.iter().filter(|request| request.op == Op::Flush).count() as u64,
        ]
    }

    /// Where the pages of a file are, by page: first byte.
    pub fn places(&mut self, file: u32) -> BTreeMap<u64, u64> {
        let pages = self.files.file_bytes(file).div_ceil(BLOCK_BYTES);
        let mut found = BTreeMap::new();
        for page in 0..pages {
            let wanted = Wanted {
                asked_bytes: BLOCK_BYTES,
                ahead_pages: 0,
                cause: host::file_system::Cause::Data,
            };
            let mut out = Vec::new();
            self.files.read(self.now_ns, file, page..page + 1, wanted, &mut out);
            assert!(out.len() <= 1, "a page is read in one request");
            found.extend(out.first().map(|request| (page, request.offset)));
        }
        found
    }
}
