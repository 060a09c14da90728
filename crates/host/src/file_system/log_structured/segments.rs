//! A store of segments: blocks that are only ever appended to a log, and a place for each of them.
//!
//! The device is a row of segments of equal length. A log has one open segment, takes the next
//! free one when that is full, and never overwrites: the former place of a block dies. A block has
//! a name, a small number that its owner gives it. [`Store`] knows places, live blocks and closed
//! segments; what is cleaned when, and what a file system writes besides, is decided above it.
//! [`Log`] is the plainest such thing: a store that cleans itself when it has to, the subject of
//! the theory of log-structured file systems.
//!
//! Invariants: a live block is in exactly one place; the live count of a segment is the number of
//! its places that hold one; blocks appended = blocks by cause. Tested against a table of all
//! places and against the closed forms (`tests/it/log_structured.rs`).

use thiserror::Error;

use super::victims::Victims;

pub use super::victims::Policy;

/// No block, or no place.
const NONE: u32 = u32::MAX;

/// A place whose block died since the last checkpoint, which may still need it.
const HELD: u32 = u32::MAX - 1;

/// No segment is free, and cleaning frees none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no space left: {live_blocks} blocks live in a log of {blocks}, and no segment is free")]
pub struct Full {
    /// Blocks that live.
    pub live_blocks: u64,
    /// Blocks of all segments.
    pub blocks: u64,
}

/// How a store is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Segments.
    pub segments: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Logs, each with an open segment of its own.
    pub logs: usize,
    /// Whether places of dead blocks are free only after [`Store::release`], and segments without
    /// live blocks then become free by themselves.
    pub holds_dead: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Open,
    Closed,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    state: State,
    live: u32,
    /// The log that wrote it last.
    log: u8,
    youngest_ns: u64,
    closed_ns: u64,
    /// By place: its block, and when that was written first. Empty until the first use.
    blocks: Box<[u32]>,
    written_ns: Box<[u64]>,
}

/// The open segment of a log.
#[derive(Clone, Copy, Debug)]
struct Head {
    segment: u32,
    /// First place that may be free.
    next: u32,
}

/// A block that lives in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Its name.
    pub block: u32,
    /// Where it is.
    pub place: u32,
    /// When it was written first; moving it keeps that.
    pub written_ns: u64,
}

/// Segments, and the places of blocks in them.
#[derive(Clone, Debug)]
pub struct Store {
    shape: Shape,
    segments: Vec<Segment>,
    /// By block: its place.
    places: Vec<u32>,
    heads: Vec<Option<Head>>,
    free: std::collections::VecDeque<u32>,
    victims: Victims,
    /// Places that wait for [`Store::release`].
    held: Vec<u32>,
    live_blocks: u64,
    appended_blocks: u64,
}

impl Store {
    /// An empty store.
    ///
    /// # Panics
    /// Where it has no segments or logs, or more blocks than a place has numbers for.
    pub fn new(shape: Shape) -> Self {
        assert!(shape.segments > 0 && shape.segment_blocks > 0, "a store has blocks");
        assert!((1..=255).contains(&shape.logs), "a store has 1 to 255 logs");
        let blocks = u64::from(shape.segments) * u64::from(shape.segment_blocks);
        assert!(blocks < u64::from(HELD), "a store has less than 2^32 - 2 blocks");
        Self {
            segments: vec![Segment::default(); shape.segments as usize],
            places: Vec::new(),
            heads: vec![None; shape.logs],
            free: (0..shape.segments).collect(),
            victims: Victims::new(shape.segments, shape.segment_blocks),
            held: Vec::new(),
            live_blocks: 0,
            appended_blocks: 0,
            shape,
        }
    }

    /// How it is cut.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Segments that hold nothing and are not open.
    pub fn free_segments(&self) -> u32 {
        self.free.len() as u32
    }

    /// Blocks that live.
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// Blocks appended so far.
    pub fn appended_blocks(&self) -> u64 {
        self.appended_blocks
    }

    /// Where a block is.
    pub fn find(&self, block: u32) -> Option<u32> {
        self.places.get(block as usize).copied().filter(|place| *place != NONE)
    }

    /// Free places of a log before it takes another segment.
    pub fn room(&self, log: usize) -> u32 {
        let Some(head) = self.heads[log] else { return 0 };
        let blocks = &self.segments[head.segment as usize].blocks;
        blocks[head.next as usize..].iter().filter(|block| **block == NONE).count() as u32
    }

    /// Whether a log can go on in its open segment.
    pub fn has_room(&self, log: usize) -> bool {
        self.heads[log].is_some_and(|head| {
            let blocks = &self.segments[head.segment as usize].blocks;
            blocks[head.next as usize..].contains(&NONE)
        })
    }

    /// The segment that a log writes to.
    pub fn open_segment(&self, log: usize) -> Option<u32> {
        self.heads[log].map(|head| head.segment)
    }

    /// Appends a block, whose former place dies, to a log; returns its place. `written_ns` is when
    /// its content was written: now, or long ago where it is only moved.
    pub fn append(
        &mut self,
        log: usize,
        block: u32,
        now_ns: u64,
        written_ns: u64,
    ) -> Result<u32, Full> {
        let head = self.head(log, now_ns)?;
        self.remove(block);
        let segment = &mut self.segments[head.segment as usize];
        segment.blocks[head.next as usize] = block;
        segment.written_ns[head.next as usize] = written_ns;
        segment.youngest_ns = segment.youngest_ns.max(written_ns);
        segment.live += 1;
        let place = head.segment * self.shape.segment_blocks + head.next;
        if self.places.len() <= block as usize {
            self.places.resize(block as usize + 1, NONE);
        }
        self.places[block as usize] = place;
        self.heads[log] = Some(Head { next: head.next + 1, ..head });
        self.live_blocks += 1;
        self.appended_blocks += 1;
        Ok(place)
    }

    /// Appends a block that is of no use once it was written, as a summary or a super root.
    pub fn append_dead(&mut self, log: usize, now_ns: u64) -> Result<u32, Full> {
        let head = self.head(log, now_ns)?;
        self.heads[log] = Some(Head { next: head.next + 1, ..head });
        self.appended_blocks += 1;
        Ok(head.segment * self.shape.segment_blocks + head.next)
    }

    /// The next free place of a log.
    fn head(&mut self, log: usize, now_ns: u64) -> Result<Head, Full> {
        loop {
            if let Some(mut head) = self.heads[log] {
                let blocks = &self.segments[head.segment as usize].blocks;
                while blocks.get(head.next as usize).is_some_and(|block| *block != NONE) {
                    head.next += 1;
                }
                if head.next < self.shape.segment_blocks {
                    return Ok(head);
                }
                self.close(log, now_ns);
            }
            let Some(segment) = self.free.pop_front() else { return Err(self.full()) };
            self.open(log, segment);
        }
    }

    /// What to say where there is no room.
    pub fn full(&self) -> Full {
        let blocks = u64::from(self.shape.segments) * u64::from(self.shape.segment_blocks);
        Full { live_blocks: self.live_blocks, blocks }
    }

    fn open(&mut self, log: usize, segment: u32) {
        let count = self.shape.segment_blocks as usize;
        let own = &mut self.segments[segment as usize];
        if own.blocks.is_empty() {
            own.blocks = vec![NONE; count].into_boxed_slice();
            own.written_ns = vec![0; count].into_boxed_slice();
        }
        (own.state, own.log) = (State::Open, log as u8);
        self.heads[log] = Some(Head { segment, next: 0 });
    }

    /// Goes on writing into the free places of a closed segment; the open one is closed.
    pub fn open_holes(&mut self, log: usize, segment: u32, now_ns: u64) {
        self.victims.remove(segment);
        self.close(log, now_ns);
        self.open(log, segment);
    }

    /// Closes the open segment of a log; what is left of it stays empty.
    pub fn close(&mut self, log: usize, now_ns: u64) {
        let Some(head) = self.heads[log].take() else { return };
        let segment = &mut self.segments[head.segment as usize];
        (segment.state, segment.closed_ns) = (State::Closed, now_ns);
        self.victims.insert(head.segment, segment.live, segment.youngest_ns);
        if self.shape.holds_dead && segment.live == 0 {
            // The next release finds it, though no block dies in it any more.
            self.held.push(head.segment * self.shape.segment_blocks);
        }
    }

    /// A block is of no use any more.
    pub fn remove(&mut self, block: u32) {
        let Some(place) = self.find(block) else { return };
        self.places[block as usize] = NONE;
        let number = place / self.shape.segment_blocks;
        let segment = &mut self.segments[number as usize];
        let slot = &mut segment.blocks[(place % self.shape.segment_blocks) as usize];
        assert_eq!(*slot, block, "place {place} holds another block");
        *slot = NONE;
        if self.shape.holds_dead {
            *slot = HELD;
            self.held.push(place);
        }
        segment.live -= 1;
        self.live_blocks -= 1;
        self.victims.block_died(number);
    }

    /// A checkpoint is on the device: what died before it is free now, and so are closed segments
    /// where nothing lives.
    pub fn release(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        for place in held.drain(..) {
            let number = place / self.shape.segment_blocks;
            let segment = &mut self.segments[number as usize];
            let slot = &mut segment.blocks[(place % self.shape.segment_blocks) as usize];
            if *slot == HELD {
                *slot = NONE;
            }
            if segment.live == 0 && segment.state == State::Closed {
                self.free(number);
            }
        }
        self.held = held;
    }

    /// The closed segment that `policy` would clean.
    pub fn victim(&mut self, policy: Policy, now_ns: u64) -> Option<u32> {
        self.victims.choose(policy, now_ns)
    }

    /// The segment with the fewest live blocks, at least one of them dead, that `accepts` takes.
    pub fn victim_that(&self, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        self.victims.with_fewest_that(accepts)
    }

    /// Places of a segment that can be written: they hold nothing, nor did at the checkpoint.
    pub fn holes_in(&self, segment: u32) -> u32 {
        let blocks = &self.segments[segment as usize].blocks;
        blocks.iter().filter(|block| **block == NONE).count() as u32
    }

    /// A closed segment is no victim for now.
    pub fn set_aside(&mut self, segment: u32) {
        self.victims.remove(segment);
    }

    /// A segment that was set aside can be a victim again, as if it had been closed at
    /// `closed_ns`.
    pub fn put_back(&mut self, segment: u32, closed_ns: u64) {
        let own = &mut self.segments[segment as usize];
        own.closed_ns = closed_ns;
        self.victims.insert(segment, own.live, own.youngest_ns);
    }

    /// Blocks that live in a segment.
    pub fn live_in(&self, segment: u32) -> u32 {
        self.segments[segment as usize].live
    }

    /// When a closed segment was closed.
    pub fn closed_ns(&self, segment: u32) -> u64 {
        self.segments[segment as usize].closed_ns
    }

    /// The log that wrote a segment.
    pub fn log_of(&self, segment: u32) -> usize {
        usize::from(self.segments[segment as usize].log)
    }

    /// Adds the live blocks of a segment to `out`, by place.
    pub fn collect(&self, segment: u32, out: &mut Vec<Live>) {
        let own = &self.segments[segment as usize];
        let first = segment * self.shape.segment_blocks;
        let slots = own.blocks.iter().zip(&own.written_ns).zip(first..);
        let live = slots.filter(|((block, _), _)| **block < HELD);
        out.extend(live.map(|((&block, &written_ns), place)| Live { block, place, written_ns }));
    }

    /// A closed segment in which nothing lives can be written again.
    pub fn free(&mut self, segment: u32) {
        self.victims.remove(segment);
        let own = &mut self.segments[segment as usize];
        assert_eq!(own.live, 0, "segment {segment} still holds live blocks");
        own.blocks.fill(NONE);
        (own.state, own.youngest_ns) = (State::Free, 0);
        self.free.push_back(segment);
    }

    /// Checks every invariant; for tests.
    pub fn audit(&self) {
        let mut live_blocks = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            let first = number as u32 * self.shape.segment_blocks;
            let held = segment.blocks.iter().zip(first..).filter(|(block, _)| **block < HELD);
            let mut live = 0;
            for (block, place) in held {
                assert_eq!(self.places[*block as usize], place, "block {block} is elsewhere");
                live += 1;
            }
            assert_eq!(segment.live, live, "live blocks of segment {number}");
            assert!(segment.state != State::Free || live == 0, "a free segment has live blocks");
            live_blocks += u64::from(live);
        }
        assert_eq!(self.live_blocks, live_blocks, "live blocks");
        let placed = self.places.iter().filter(|place| **place != NONE).count() as u64;
        assert_eq!(placed, live_blocks, "blocks with a place");
        let free = self.segments.iter().filter(|segment| segment.state == State::Free);
        assert_eq!(free.count(), self.free.len(), "free segments");
    }
}

/// Blocks that a [`Log`] wrote and read, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written for its user.
    pub user_blocks: u64,
    /// Moved by the cleaner.
    pub moved_blocks: u64,
    /// Segments cleaned.
    pub cleaned_segments: u64,
}

/// How a [`Log`] cleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Which segments.
    pub policy: Policy,
    /// Segments that are always free; at least one for each log and one more.
    pub reserved_segments: u32,
    /// Segments cleaned together, whose live blocks are sorted by age.
    pub batch: u32,
}

/// A log that cleans itself, in the foreground, when no more than its reserve is free.
///
/// Blocks are written to log 0. A block that survives a cleaning in log k moves to log k + 1, the
/// last log keeps its own: with one log everything is mixed, with more the logs sort by age.
#[derive(Clone, Debug)]
pub struct Log {
    store: Store,
    cleaning: Cleaning,
    counts: Counts,
    live: Vec<Live>,
}

impl Log {
    /// An empty log.
    ///
    /// # Panics
    /// Where the reserve is too small to move a batch.
    pub fn new(shape: Shape, cleaning: Cleaning) -> Self {
        let least = shape.logs as u32 + cleaning.batch;
        assert!(cleaning.batch > 0 && cleaning.reserved_segments >= least, "reserve below {least}");
        let store = Store::new(shape);
        Self { store, cleaning, counts: Counts::default(), live: Vec::new() }
    }

    /// Where its blocks are.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes a block and returns its place. `moved` hears of every block that cleaning moves on
    /// the way: where from, where to.
    pub fn write(
        &mut self,
        block: u32,
        now_ns: u64,
        mut moved: impl FnMut(u32, u32),
    ) -> Result<u32, Full> {
        // Each round frees what is dead in its victims. Where a round for every segment frees
        // nothing, nothing is dead.
        let mut rounds = 0;
        while self.store.free_segments() < self.cleaning.reserved_segments {
            if rounds == self.store.shape().segments {
                return Err(self.store.full());
            }
            rounds += 1;
            self.clean(now_ns, &mut moved)?;
        }
        self.counts.user_blocks += 1;
        let place = self.store.append(0, block, now_ns, now_ns)?;
        let written = self.counts.user_blocks + self.counts.moved_blocks;
        assert_eq!(self.store.appended_blocks(), written, "blocks by cause");
        Ok(place)
    }

    /// Removes a block.
    pub fn remove(&mut self, block: u32) {
        self.store.remove(block);
    }

    fn clean(&mut self, now_ns: u64, moved: &mut impl FnMut(u32, u32)) -> Result<(), Full> {
        let logs = self.store.shape().logs;
        for _ in 0..self.cleaning.batch {
            let Some(victim) = self.store.victim(self.cleaning.policy, now_ns) else {
                return Err(self.store.full());
            };
            self.live.clear();
            self.store.collect(victim, &mut self.live);
            if self.cleaning.policy == Policy::CostBenefit {
                self.live.sort_by_key(|live| live.written_ns);
            }
            let log = (self.store.log_of(victim) + 1).min(logs - 1);
            for live in &self.live {
                let place = self.store.append(log, live.block, now_ns, live.written_ns)?;
                moved(live.place, place);
            }
            self.counts.moved_blocks += self.live.len() as u64;
            self.counts.cleaned_segments += 1;
            self.store.free(victim);
        }
        Ok(())
    }
}
