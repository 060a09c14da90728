//! A logical trace through the host: what the device gets for it.
//!
//! Streams of the trace are files; a file begins at the lowest offset of its stream. Requests are
//! handed down when they are due: the requests of one commit are due together, and it is the
//! device that takes them in order. Trims are dropped, as without the mount option `discard`.

use std::collections::BTreeMap;

use serde::Serialize;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::Error;
use crate::file_system::{Cause, FileSystem, Kind, Physical, Wanted};
use crate::page_cache::{Action, PAGE_BYTES, PageCache, Settings, Span, Want};
use crate::spec::{FileLayer, Files};

/// Requests of one kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }
}

/// What one layer was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Reads.
    pub read: Traffic,
    /// Writes.
    pub write: Traffic,
    /// Flushes (above: syncs). Below, those too that belong to a write.
    pub flushes: u64,
}

/// Where bytes went that callers asked for or wrote. All in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Read from memory.
    pub hit_bytes: u64,
    /// Read where nothing was written: zeros.
    pub hole_bytes: u64,
    /// Overwritten in memory before they were written back.
    pub absorbed_bytes: u64,
    /// Still dirty in memory at the end.
    pub dirty_bytes: u64,
}

/// Requests and bytes by layer and cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What the trace asked for.
    pub logical: Asked,
    /// Trims of the trace, which go no further.
    pub trims_dropped: u64,
    /// What the page cache and the file system kept.
    pub kept: Kept,
    /// What the device got.
    pub physical: Asked,
    /// The same by cause, by name; a request of several causes is one of the first.
    pub causes: BTreeMap<&'static str, Asked>,
    /// Bytes of the data read that nobody asked for: ends of blocks.
    pub read_padding_bytes: u64,
    /// Bytes read ahead in requests that have asked bytes too; the others are a cause.
    pub read_ahead_beside_bytes: u64,
    /// Bytes of the data written that nobody wrote: ends of blocks.
    pub write_padding_bytes: u64,
}

impl Account {
    fn logical(&mut self, request: &Request) {
        match request.op {
            Op::Read => self.logical.read.add(u64::from(request.len)),
            Op::Write => self.logical.write.add(u64::from(request.len)),
            Op::Flush => self.logical.flushes += 1,
            Op::Trim => self.trims_dropped += 1,
        }
    }

    /// Counts a request to the device here and in `causes`, by their codes.
    fn physical(&mut self, request: &Physical, causes: &mut ByCause) {
        let place = request.cause as usize;
        for asked in [&mut self.physical, &mut causes[place]] {
            match request.op {
                Op::Read => asked.read.add(request.bytes),
                Op::Write => asked.write.add(request.bytes),
                Op::Flush => asked.flushes += 1,
                Op::Trim => unreachable!("no trim is handed down"),
            }
        }
        // A log has metadata beside what it is written for, in the same requests.
        if request.metadata_bytes > 0 {
            let own = &mut causes[place].write.bytes;
            *own = own.checked_sub(request.metadata_bytes).expect("bytes beside others");
            causes[Cause::Metadata as usize].write.bytes += request.metadata_bytes;
        }
        match (request.op, request.cause) {
            (Op::Read, Cause::Data) => {
                self.read_padding_bytes += request.padding_bytes;
                self.read_ahead_beside_bytes += request.ahead_bytes;
            }
            (Op::Write, Cause::Data) => self.write_padding_bytes += request.padding_bytes,
            _ => {}
        }
    }

    /// Bytes above = bytes below without what was added + bytes that never got there.
    fn assert_conserved(&self) {
        let data = self.causes.get(Cause::Data.name()).copied().unwrap_or_default();
        let kept = self.kept;
        let read = data.read.bytes - self.read_padding_bytes - self.read_ahead_beside_bytes;
        assert_eq!(
            self.logical.read.bytes,
            read + kept.hit_bytes + kept.hole_bytes,
            "bytes read above and below"
        );
        let written = data.write.bytes - self.write_padding_bytes;
        assert_eq!(
            self.logical.write.bytes,
            written + kept.absorbed_bytes + kept.dirty_bytes,
            "bytes written above and below"
        );
        let causes = || self.causes.values();
        assert_eq!(self.physical.read.bytes, causes().map(|asked| asked.read.bytes).sum::<u64>());
        assert_eq!(self.physical.write.bytes, causes().map(|asked| asked.write.bytes).sum::<u64>());
    }
}

/// What the device was asked for, by the code of its cause.
type ByCause = [Asked; Cause::ALL.len()];

/// Where a file lies in the address space of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Its first byte: that of a page.
    pub start: u64,
    /// Bytes up to the end of its last request; 0 where none has any.
    pub bytes: u64,
}

/// The files of a trace: one for each stream.
pub fn regions(trace: &Trace) -> Vec<Region> {
    let mut bounds = vec![(u64::MAX, 0); trace.streams.len()];
    for request in trace.requests().filter(|request| request.len > 0) {
        let (start, end) = &mut bounds[usize::from(request.stream)];
        *start = (*start).min(request.offset.0 / PAGE_BYTES * PAGE_BYTES);
        *end = (*end).max(request.offset.0 + u64::from(request.len));
    }
    bounds
        .into_iter()
        .map(|(start, end)| Region { start, bytes: end.saturating_sub(start) })
        .collect()
}

/// A host stack in virtual time.
pub struct Stack {
    spec: FileLayer,
    cache: Option<PageCache>,
    /// Reads pass the cache.
    reads_direct: bool,
    files: FileSystem,
    /// First byte of each file in the address space of the trace.
    starts: Vec<u64>,
    account: Account,
    causes: ByCause,
    physical: Trace,
    now_ns: u64,
    actions: Vec<Action>,
    out: Vec<Physical>,
}

impl Stack {
    /// A stack for the streams of `trace`, whose files are there as the spec says.
    pub fn new(spec: &FileLayer, trace: &Trace) -> Self {
        let regions = regions(trace);
        let mut files = FileSystem::new(spec.file_system.clone());
        for (file, region) in regions.iter().enumerate().filter(|(_, region)| region.bytes > 0) {
            if spec.files != Files::Absent {
                files.add(file as u32, region.bytes, spec.files == Files::Written);
            }
        }
        let mut physical = Trace::default();
        let causes = Cause::ALL.iter().filter(|cause| spec.file_system.has_cause(**cause));
        physical.streams = causes.map(|cause| Stream { name: cause.name().to_owned() }).collect();
        physical.origin = trace.origin.clone();
        "device".clone_into(&mut physical.origin.layer);
        // Direct writes that the file system turns into buffered ones need a cache all the same.
        let is_buffered = spec.file_system.kind == Kind::Nilfs2;
        let cache = spec.page_cache.clone().or_else(|| is_buffered.then(Settings::default));
        Self {
            cache: cache.map(PageCache::new),
            reads_direct: spec.page_cache.is_none(),
            files,
            starts: regions.iter().map(|region| region.start).collect(),
            spec: spec.clone(),
            account: Account::default(),
            causes: ByCause::default(),
            physical,
            now_ns: 0,
            actions: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes the next request of the trace.
    ///
    /// # Errors
    /// Where the file system is full: then this stack is of no further use.
    pub fn submit(&mut self, request: &Request) -> Result<(), Error> {
        self.account.logical(request);
        let now_ns = request.due.0.max(self.now_ns);
        self.wake(now_ns);
        self.now_ns = now_ns;
        match (request.op, self.span(request)) {
            (Op::Flush, _) => self.sync(u32::from(request.stream)),
            (Op::Read, Some(span)) => self.read(span),
            (Op::Write, Some(span)) => self.write(span),
            _ => {}
        }
        self.issue();
        match self.files.failure() {
            Some(cause) => Err(Error::Full { at: Nanos(self.now_ns), cause }),
            None => Ok(()),
        }
    }

    /// Loads what a request will need into the caches of the processor: a use of memory only,
    /// worth while for some requests at once, which are submitted next.
    pub fn look_ahead(&self, request: &Request) {
        if let (Some(cache), Some(span)) = (&self.cache, self.span(request)) {
            cache.look_ahead(span);
        }
    }

    /// The bytes of its file that a request is for.
    fn span(&self, request: &Request) -> Option<Span> {
        let offset = request.offset.0.checked_sub(self.starts[usize::from(request.stream)])?;
        let (file, bytes) = (u32::from(request.stream), u64::from(request.len));
        (bytes > 0).then_some(Span { file, offset, bytes })
    }

    /// What the device got, and the account. Bytes still dirty stay in memory.
    ///
    /// # Panics
    /// Where the file system was full: [`Stack::submit`] said so.
    pub fn finish(mut self) -> (Trace, Account) {
        if let Some(cause) = self.files.failure() {
            panic!("a stack goes on after an error: {cause}");
        }
        let counts = self.cache.as_ref().map(PageCache::counts).unwrap_or_default();
        self.account.kept = Kept {
            hit_bytes: counts.hit_bytes,
            hole_bytes: self.files.hole_bytes(),
            absorbed_bytes: counts.absorbed_bytes,
            dirty_bytes: self.cache.as_ref().map_or(0, PageCache::dirty_bytes),
        };
        let causes = Cause::ALL.iter().zip(self.causes);
        self.account.causes = causes
            .filter(|(_, asked)| *asked != Asked::default())
            .map(|(cause, asked)| (cause.name(), asked))
            .collect();
        self.account.assert_conserved();
        (self.physical, self.account)
    }

    fn read(&mut self, span: Span) {
        if let Some(cache) = &mut self.cache {
            if self.reads_direct {
                cache.pass(self.now_ns, span, false, &mut self.actions);
                self.hand_down(true);
                self.files.read_direct(self.now_ns, span, &mut self.out);
                return;
            }
            let file_bytes = self.files.file_bytes(span.file);
            cache.read(self.now_ns, span, file_bytes, &mut self.actions);
            self.hand_down(true);
        } else {
            self.files.read_direct(self.now_ns, span, &mut self.out);
        }
    }

    fn write(&mut self, span: Span) {
        if let Some(cache) = &mut self.cache {
            let file_bytes = self.files.file_bytes(span.file);
            cache.write(self.now_ns, span, file_bytes, &mut self.actions);
            self.files.touch(self.now_ns, span);
            self.hand_down(true);
            self.write_above_limit();
        } else {
            self.files.touch(self.now_ns, span);
            self.files.write_direct(self.now_ns, span, &mut self.out);
            self.files.settle(self.now_ns, &mut self.out);
        }
    }

    /// Writes all dirty pages where the file system has a limit of its own for them.
    fn write_above_limit(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        if self.files.wants_all(cache.dirty_pages()) {
            cache.sync_all(self.now_ns, &mut self.actions);
            self.hand_down(false);
            self.files.settle(self.now_ns, &mut self.out);
        }
    }

    fn sync(&mut self, file: u32) {
        if let Some(cache) = &mut self.cache {
            if self.files.sync_takes_all(file, self.spec.sync) {
                cache.sync_all(self.now_ns, &mut self.actions);
            } else {
                cache.sync(self.now_ns, file, &mut self.actions);
            }
            self.hand_down(false);
        }
        self.files.sync(self.now_ns, file, self.spec.sync, &mut self.out);
    }

    fn wake(&mut self, now_ns: u64) {
        // What the file system takes by itself it takes with every dirty page there is.
        while let Some(at_ns) = self.files.takes_all_ns().filter(|at_ns| *at_ns <= now_ns) {
            self.wake_cache(at_ns);
            if let Some(cache) = &mut self.cache {
                cache.sync_all(at_ns, &mut self.actions);
            }
            self.hand_down(false);
            self.files.wake(at_ns, &mut self.out);
            if self.files.failure().is_some() {
                return;
            }
        }
        self.wake_cache(now_ns);
        self.files.wake(now_ns, &mut self.out);
        self.issue();
    }

    fn wake_cache(&mut self, now_ns: u64) {
        if let Some(cache) = &mut self.cache {
            cache.wake(now_ns, &mut self.actions);
            self.hand_down(true);
        }
    }

    /// Hands what the cache asked for to the file system, whose timers run meanwhile. Pages are
    /// `written_back` for themselves unless a sync follows.
    fn hand_down(&mut self, written_back: bool) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Write { at_ns, file, pages } => {
                    if written_back {
                        self.files.wake(at_ns, &mut self.out);
                    }
                    self.files.write(at_ns, file, &pages, &mut self.out);
                    if written_back {
                        self.files.settle(at_ns, &mut self.out);
                    }
                }
                Action::Read { file, first, pages, ahead, want } => {
                    let (asked_bytes, cause) = match want {
                        Want::Asked(bytes) => (bytes, Cause::Data),
                        Want::Fill => (0, Cause::Fill),
                    };
                    let wanted = Wanted { asked_bytes, ahead_pages: ahead, cause };
                    let pages = first..first + pages;
                    self.files.read(self.now_ns, file, pages, wanted, &mut self.out);
                }
            }
        }
        self.actions = actions;
    }

    fn issue(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for request in out.drain(..) {
            self.account.physical(&request, &mut self.causes);
            // The flusher and the commit timer wake independently of each other.
            let due = request.at_ns.max(self.physical.due.last().copied().unwrap_or(0));
            self.physical.push(Request {
                due: Nanos(due),
                offset: Bytes(request.offset),
                len: u32::try_from(request.bytes).expect("a request is at most 1 GiB"),
                op: request.op,
                stream: request.cause as u16,
            });
        }
        self.out = out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    /// A minute of reads, writes and syncs of three files, of any size and alignment.
    fn mixed() -> Trace {
        let name = |name: &str| Stream { name: name.to_owned() };
        let streams = vec![name("data"), name("log"), name("temp")];
        let mut trace = Trace { streams, ..Trace::default() };
        let mut state = 7_u64;
        for at in 0..6000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = state >> 33;
            let stream = (draw % 3) as u16;
            let op = [Op::Read, Op::Write, Op::Write, Op::Read, Op::Flush][(draw / 3 % 5) as usize];
            let len = if op == Op::Flush { 0 } else { 1 + draw as u32 / 7 % 40_000 };
            let offset = if op == Op::Flush { 0 } else { draw * 512 % (8 << 20) };
            let due = Nanos(at * 10_000_000);
            let offset = Bytes(offset + u64::from(stream) * (1 << 30));
            let offset = if op == Op::Flush { Bytes(0) } else { offset };
            trace.push(Request { due, offset, len, op, stream });
        }
        trace
    }

    #[test]
    fn bytes_add_up_in_every_stack_and_twice_the_same() {
        let trace = mixed();
        let kinds = [
            "ext2",
            "ext3",
            "ext4",
            "xfs",
            "nilfs2\"\ncapacity = \"2GB",
            "f2fs\"\ncapacity = \"1GB",
            "btrfs",
            "btrfs\"\nnodatacow = true\ncapacity = \"1GiB",
        ];
        let caches = ["", "[page_cache]\nmemory = \"1MiB\"\n", "[page_cache]\nmemory = \"1GiB\"\n"];
        for (kind, cache) in kinds.iter().flat_map(|kind| caches.map(|cache| (kind, cache))) {
            for files in ["written", "allocated", "absent"] {
                let text =
                    format!("[file_system]\nkind = \"{kind}\"\nfiles = \"{files}\"\n{cache}");
                let spec = Spec::from_toml(&text, "stack.toml").unwrap().file_layer.unwrap();
                let run = || {
                    let mut stack = Stack::new(&spec, &trace);
                    trace.requests().for_each(|request| stack.submit(&request).expect(&text));
                    stack.finish()
                };
                // `finish` asserts conservation.
                let (physical, account) = run();
                physical.validate().expect(&text);
                assert_eq!(physical.count() as u64, requests(&account.physical), "{text}");
                assert!(account.logical.flushes <= account.physical.flushes, "{text}");
                assert_eq!((physical, account), run(), "{text}");
            }
        }
    }

    fn requests(asked: &Asked) -> u64 {
        asked.read.requests + asked.write.requests + asked.flushes
    }
}
