//! Where captured events wait until the end of the session.
//!
//! Each thread appends to a chunk that only it writes; the finishing thread reads whatever each
//! chunk's counter says is complete. So the hot path takes no lock and no shared cache line; a lock
//! is taken once per chunk. Memory is bounded by the chunk limit, and every event beyond it is
//! counted.
//!
//! Invariants: a slot below `count` is initialised and never written again; events of one thread
//! keep their order. Tested below with threads that outlive the recorder.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use trace::Op;

/// Events in a chunk: 160 KiB, so that a thread takes the lock once in 4096 events.
const CHUNK_EVENTS: usize = 4096;

/// Which layer an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// What SQLite asked of the VFS.
    Logical,
    /// What the VFS asked of the kernel, with the page cache bypassed.
    Device,
}

/// One captured I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// CLOCK_MONOTONIC, ns.
    pub start: u64,
    /// Completion - start, ns.
    pub duration: u64,
    /// Within the file, bytes.
    pub offset: u64,
    /// Bytes; up to the whole file for a truncation.
    pub len: u64,
    /// Transaction number.
    pub transaction: u32,
    /// Index into the process's file table.
    pub file: u16,
    /// Worker.
    pub actor: u16,
    /// What it does.
    pub op: Op,
    /// Transaction type.
    pub kind: u8,
    /// Which layer saw it.
    pub layer: Layer,
}

/// Who works in this thread: stamped on every event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Worker (simulated user, connection).
    pub actor: u16,
    /// Transaction number, from 1; 0 is none.
    pub transaction: u32,
    /// Transaction type, as the workload numbers them.
    pub kind: u8,
}

struct Chunk {
    count: AtomicUsize,
    slots: Box<[UnsafeCell<MaybeUninit<Event>>]>,
}

// SAFETY: `slots` is written only by the thread that owns the chunk, at indices >= `count`, and
// read by others only at indices below a `count` loaded with Acquire, which the owner stored with
// Release after the write.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new() -> Self {
        let slots = (0..CHUNK_EVENTS).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Self { count: AtomicUsize::new(0), slots }
    }

    /// Appends, or gives the event back when full. Only the owning thread may call this.
    fn push(&self, event: Event) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let Some(slot) = self.slots.get(count) else { return false };
        // SAFETY: this thread owns the chunk and no reader looks at index `count` before the store
        // below.
        unsafe { (*slot.get()).write(event) };
        self.count.store(count + 1, Ordering::Release);
        true
    }

    fn read(&self, into: &mut Vec<Event>) {
        let count = self.count.load(Ordering::Acquire);
        // SAFETY: slots below an acquired `count` are initialised and not written again.
        into.extend(self.slots[..count].iter().map(|slot| unsafe { (*slot.get()).assume_init() }));
    }
}

/// The events of one capture interval.
pub(crate) struct Recorder {
    generation: u64,
    chunk_limit: usize,
    chunks: Mutex<Vec<Arc<Chunk>>>,
    lost: AtomicU64,
}

/// Generation that is recorded now; 0 while capture is off.
static ACTIVE: AtomicU64 = AtomicU64::new(0);
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);
static CURRENT: Mutex<Option<Arc<Recorder>>> = Mutex::new(None);

struct Writer {
    generation: u64,
    chunk: Option<Arc<Chunk>>,
    recorder: Option<Arc<Recorder>>,
}

thread_local! {
    static CONTEXT: Cell<Context> =
        const { Cell::new(Context { actor: 0, transaction: 0, kind: 0 }) };
    static WRITER: RefCell<Writer> =
        const { RefCell::new(Writer { generation: 0, chunk: None, recorder: None }) };
}

/// Sets who works in this thread from now on.
pub fn set_context(context: Context) {
    CONTEXT.set(context);
}

/// Whether events are being kept: when not, the caller need not read the clock.
pub(crate) fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// What happened, as the VFS knows it; the thread's context is added here.
pub(crate) struct Happened {
    pub layer: Layer,
    pub op: Op,
    pub file: u16,
    pub offset: u64,
    pub len: u64,
    pub start: u64,
    pub end: u64,
}

/// Keeps one event, if capture is on.
pub(crate) fn record(happened: &Happened) {
    let generation = ACTIVE.load(Ordering::Acquire);
    if generation == 0 {
        return;
    }
    let context = CONTEXT.get();
    let event = Event {
        start: happened.start,
        duration: happened.end.saturating_sub(happened.start),
        offset: happened.offset,
        len: happened.len,
        transaction: context.transaction,
        file: happened.file,
        actor: context.actor,
        op: happened.op,
        kind: context.kind,
        layer: happened.layer,
    };
    // A thread that is being torn down has no writer any more; its event is counted as lost.
    let stored = WRITER.try_with(|writer| writer.borrow_mut().store(generation, event));
    if stored.is_err()
        && let Some(recorder) = CURRENT.lock().expect("recorder lock").as_ref()
    {
        recorder.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Writer {
    fn store(&mut self, generation: u64, event: Event) {
        if self.generation == generation
            && let Some(chunk) = &self.chunk
            && chunk.push(event)
        {
            return;
        }
        self.store_in_new_chunk(generation, event);
    }

    #[cold]
    fn store_in_new_chunk(&mut self, generation: u64, event: Event) {
        if self.generation != generation {
            let current = CURRENT.lock().expect("recorder lock").clone();
            let Some(current) = current.filter(|recorder| recorder.generation == generation) else {
                return; // The interval ended between the check and here.
            };
            *self = Self { generation, chunk: None, recorder: Some(current) };
        }
        let Some(recorder) = &self.recorder else { return };
        self.chunk = recorder.new_chunk();
        match &self.chunk {
            Some(chunk) => assert!(chunk.push(event), "a new chunk has room"),
            None => _ = recorder.lost.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Recorder {
    /// A recorder for at most about `event_limit` events, made the current one; capture starts off.
    pub(crate) fn install(event_limit: usize) -> Arc<Self> {
        let recorder = Arc::new(Self {
            generation: NEXT_GENERATION.fetch_add(1, Ordering::Relaxed),
            chunk_limit: event_limit.div_ceil(CHUNK_EVENTS),
            chunks: Mutex::new(Vec::new()),
            lost: AtomicU64::new(0),
        });
        ACTIVE.store(0, Ordering::Release);
        *CURRENT.lock().expect("recorder lock") = Some(Arc::clone(&recorder));
        recorder
    }

    /// Turns recording into this recorder on or off.
    pub(crate) fn set_active(&self, on: bool) {
        ACTIVE.store(if on { self.generation } else { 0 }, Ordering::Release);
    }

    /// Ends recording and returns the events in no particular order, and how many were lost.
    pub(crate) fn finish(&self) -> (Vec<Event>, u64) {
        self.set_active(false);
        CURRENT.lock().expect("recorder lock").take_if(|held| held.generation == self.generation);
        let chunks = std::mem::take(&mut *self.chunks.lock().expect("chunk lock"));
        let mut events = Vec::with_capacity(chunks.len() * CHUNK_EVENTS);
        for chunk in chunks {
            chunk.read(&mut events);
        }
        (events, self.lost.load(Ordering::Relaxed))
    }

    fn new_chunk(&self) -> Option<Arc<Chunk>> {
        let mut chunks = self.chunks.lock().expect("chunk lock");
        if chunks.len() >= self.chunk_limit {
            return None;
        }
        let chunk = Arc::new(Chunk::new());
        chunks.push(Arc::clone(&chunk));
        Some(chunk)
    }
}

/// The recorder is the process's: unit tests that record take turns.
#[cfg(test)]
pub(super) static TURN: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    fn note(offset: u64) {
        let (layer, op, file, len) = (Layer::Logical, Op::Read, 1, 10);
        record(&Happened { layer, op, file, offset, len, start: offset, end: offset + 3 });
    }

    #[test]
    fn every_event_of_every_thread_with_its_context_in_order() {
        let _turn = TURN.lock().unwrap();
        let recorder = Recorder::install(1_000_000);
        note(0);
        recorder.set_active(true);
        std::thread::scope(|scope| {
            for actor in 1..=4 {
                scope.spawn(move || {
                    for count in 0..10_000 {
                        set_context(Context { actor, transaction: count + 1, kind: 7 });
                        note(u64::from(count));
                    }
                });
            }
        });
        recorder.set_active(false);
        note(0);
        let (events, lost) = recorder.finish();
        assert_eq!((events.len(), lost), (40_000, 0));
        for actor in 1..=4 {
            let own: Vec<_> = events.iter().filter(|event| event.actor == actor).collect();
            assert_eq!(own.len(), 10_000);
            assert!(own.is_sorted_by_key(|event| event.offset));
            assert!(own.iter().all(|e| e.transaction == e.offset as u32 + 1 && e.kind == 7));
            assert!(own.iter().all(|event| event.duration == 3 && event.len == 10));
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let _turn = TURN.lock().unwrap();
        let recorder = Recorder::install(CHUNK_EVENTS);
        recorder.set_active(true);
        (0..CHUNK_EVENTS as u64 + 123).for_each(note);
        let (events, lost) = recorder.finish();
        assert_eq!((events.len(), lost), (CHUNK_EVENTS, 123));
    }

    #[test]
    fn a_thread_that_outlives_its_recorder_writes_into_the_next_one() {
        let _turn = TURN.lock().unwrap();
        let first = Recorder::install(1_000_000);
        first.set_active(true);
        note(1);
        assert_eq!(first.finish().0.len(), 1);
        note(2);
        let second = Recorder::install(1_000_000);
        note(3);
        second.set_active(true);
        note(4);
        let (events, lost) = second.finish();
        assert_eq!((events.iter().map(|e| e.offset).collect::<Vec<_>>(), lost), (vec![4], 0));
        assert_eq!(first.finish().0.len(), 0);
    }
}
