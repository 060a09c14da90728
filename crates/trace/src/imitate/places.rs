//! Where the requests of an imitation go.
//!
//! Every group of streams keeps its touched blocks of 4 KiB by recency. Invariant: a fresh place is
//! one whose first block was never touched, as long as the extent of the group has one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::recency::Recency;
use super::table::{BoundedDeck, Deck, Table};
use crate::Op;
use crate::info::BLOCK_BYTES;

/// How the place of a request is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// It has none: a flush.
    Nowhere = 0,
    /// Behind the last request of its stream and operation, and its last block was touched before.
    NextKnown = 1,
    /// Behind the last request of its stream and operation, and its last block never was touched.
    NextFresh = 2,
    /// A block touched before; so was its last block.
    Back = 3,
    /// Behind a recent request, and its last block never was touched: one of several sequential
    /// runs.
    Along = 4,
    /// A block never touched, somewhere else.
    Fresh = 5,
    /// A block touched before, but its last block never was.
    Grow = 6,
}

/// Kinds that there are.
pub(super) const KINDS: usize = 7;

impl Kind {
    /// Whether it goes on where the last of its stream and operation ended.
    pub fn goes_on(self) -> bool {
        matches!(self, Self::NextKnown | Self::NextFresh)
    }

    /// Whether its blocks are new.
    pub fn is_fresh(self) -> bool {
        matches!(self, Self::NextFresh | Self::Along | Self::Fresh | Self::Grow)
    }
}

/// A request whose place is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Index of the group.
    pub group: usize,
    /// Operation.
    pub op: Op,
    /// How the place is found.
    pub kind: Kind,
    /// Bytes.
    pub len: u32,
    /// Blocks that it and what goes on behind it will touch.
    pub run_blocks: u64,
}

/// Ends of recent requests of a group, the latest first; a request that goes on at one takes its
/// place.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends(Vec<(u16, u64)>);

/// Ends that are remembered.
const ENDS_MAX: usize = 32;

impl Ends {
    /// How many ends are more recent than that one.
    pub fn rank(&self, end: (u16, u64)) -> Option<usize> {
        self.0.iter().position(|other| *other == end)
    }

    /// Records the end of a request that began at `start`.
    pub fn record(&mut self, stream: u16, start: u64, end: u64) {
        match self.rank((stream, start)) {
            Some(rank) => _ = self.0.remove(rank),
            None => self.0.truncate(ENDS_MAX - 1),
        }
        self.0.insert(0, (stream, end));
    }
}

/// Streams whose places follow one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// The streams and how many requests each has, one behind the other.
    pub streams: Vec<u32>,
    /// Stack distances of returns, in blocks, by [`depth_class`].
    pub depths: Vec<Table>,
    /// Of 1000 returns, how many begin where a request began before.
    pub same_start: u32,
    /// Addresses of fresh places, bytes.
    pub fresh: Table,
    /// Distance of the places where fresh requests begin, bytes.
    pub grid_bytes: u64,
    /// Remainder of their addresses by it.
    pub grid_shift: u64,
    /// Of 1000 fresh requests, how many begin there; the others begin at any sector.
    pub on_grid: u32,
    /// Of runs that a request goes along: how many ends are more recent.
    pub along: Table,
    /// Of 10,000 touches by each kind in turn, how many are of new blocks.
    pub new_touches: Vec<u32>,
}

/// Tables of stack distances: reads and the rest, by the length of the run that begins there. Scans
/// come back late and small hot updates soon.
pub(super) const DEPTH_CLASSES: usize = 8;

/// The table of a return.
pub(super) fn depth_class(op: Op, run_blocks: u64) -> usize {
    let length = match run_blocks {
        0..=1 => 0,
        2..=8 => 1,
        9..=64 => 2,
        _ => 3,
    };
    length + 4 * usize::from(op != Op::Read)
}

/// Addresses end here, so that no sum overflows.
const ADDRESS_MAX: u64 = 1 << 62;
const SECTOR_BYTES: u64 = 512;

impl Group {
    /// Whether a placer can use it.
    pub fn is_sound(&self, streams: usize, count_max: u64) -> bool {
        let mut tables = self.depths.iter().chain([&self.fresh, &self.along]);
        !self.streams.is_empty()
            && self.streams.len().is_multiple_of(2)
            && self.streams.chunks_exact(2).all(|pair| (pair[0] as usize) < streams)
            && self.streams.chunks_exact(2).map(|pair| u64::from(pair[1])).sum::<u64>() <= count_max
            && self.depths.len() == DEPTH_CLASSES
            && self.new_touches.len() == KINDS
            && tables.all(|table| table.is_sound(count_max))
            && self.fresh.max() <= ADDRESS_MAX
            && self.grid_bytes > 0
            && self.grid_bytes <= ADDRESS_MAX
            && self.grid_shift < self.grid_bytes
    }
}

/// Places tried before a fresh one is taken that has less room than wanted.
const TRIES: u32 = 24;
/// Steps of the walk behind the last place tried.
const STEPS: u64 = 2048;
/// Blocks of a run that are looked at for room, about.
const LOOKS: u64 = 16;
/// Blocks around a depth among which a better one is looked for.
const NEAR: u32 = 24;

struct Running<'a> {
    about: &'a Group,
    recency: Recency,
    ends: Ends,
    /// Touches, and how many more of them were of new blocks than there should be.
    touches: f64,
    surplus: f64,
    depths: Vec<BoundedDeck>,
    streams: Deck,
    along: Deck,
}

/// Finds the places.
pub(super) struct Placer<'a> {
    groups: Vec<Running<'a>>,
    /// Where the last request of each stream and operation ended.
    ends: HashMap<(u16, Op), u64>,
    rng: Rng,
}

impl<'a> Placer<'a> {
    pub fn new(groups: &'a [Group], rng: Rng) -> Self {
        let start = |about: &'a Group| Running {
            about,
            recency: Recency::new(),
            ends: Ends::default(),
            touches: 0.0,
            surplus: 0.0,
            depths: about.depths.iter().map(BoundedDeck::new).collect(),
            streams: Deck::new(&Table::of_pairs(&about.streams)),
            along: Deck::new(&about.along),
        };
        Self { groups: groups.iter().map(start).collect(), ends: HashMap::new(), rng }
    }

    /// Stream and first byte of the next request.
    pub fn place(&mut self, wanted: Wanted) -> (u16, u64) {
        let (op, rng) = (wanted.op, &mut self.rng);
        let running = &mut self.groups[wanted.group];
        let kind = running.corrected(wanted.kind);
        let found = match kind {
            Kind::Nowhere => return (running.streams.deal(rng) as u16, 0),
            Kind::NextKnown | Kind::NextFresh => {
                let stream = running.streams.deal(rng) as u16;
                self.ends.get(&(stream, op)).map(|end| (stream, *end))
            }
            Kind::Back | Kind::Grow => running.back(&wanted, rng),
            Kind::Along => running.along(wanted.run_blocks, rng),
            Kind::Fresh => None,
        };
        let (stream, offset) = found.unwrap_or_else(|| {
            let stream = running.streams.deal(rng) as u16;
            (stream, running.fresh(stream, wanted.run_blocks, rng))
        });
        let end = (offset + u64::from(wanted.len)).min(ADDRESS_MAX);
        self.ends.insert((stream, op), end);
        running.ends.record(stream, offset, end);
        if matches!(op, Op::Read | Op::Write) && wanted.len > 0 {
            let before = running.recency.count();
            touch(&mut running.recency, stream, offset, wanted.len);
            let touched = (last_block(offset, wanted.len) - offset / BLOCK_BYTES + 1) as f64;
            let share = f64::from(running.about.new_touches[wanted.kind as usize]) / 1e4;
            running.touches += touched;
            running.surplus += (running.recency.count() - before) as f64 - share * touched;
        }
        (stream, offset)
    }
}

/// The last block that a request touches.
pub(super) fn last_block(offset: u64, len: u32) -> u64 {
    offset.saturating_add(u64::from(len).saturating_sub(1)) / BLOCK_BYTES
}

/// Touches the blocks of a request in order.
pub(super) fn touch(recency: &mut Recency, stream: u16, offset: u64, len: u32) {
    let first = offset / BLOCK_BYTES;
    for block in first..=last_block(offset, len) {
        let start = (block == first).then_some((offset % BLOCK_BYTES) as u16);
        recency.touch((stream, block), start);
    }
}

impl Running<'_> {
    /// The kind that keeps the share of new blocks: runs do not always find the room, known or new,
    /// that they had in the original, and what they find too much of is given back here.
    fn corrected(&self, kind: Kind) -> Kind {
        let band = 4.0 + self.touches / 500.0;
        match kind {
            Kind::Fresh | Kind::Along | Kind::Grow if self.surplus > band => Kind::Back,
            Kind::Back if self.surplus < -band => Kind::Fresh,
            kind => kind,
        }
    }

    /// A place at a depth of the deck, or near it where the rest of the run is known too and a
    /// request began before; `None` where nothing was touched yet.
    fn back(&mut self, wanted: &Wanted, rng: &mut Rng) -> Option<(u16, u64)> {
        let deck = &mut self.depths[depth_class(wanted.op, wanted.run_blocks)];
        let count = self.recency.count() as u64;
        // Where nothing is that deep yet, the deepest there is comes nearest.
        let depth = deck.deal_below(count, rng).or(count.checked_sub(1))? as u32;
        let wants_start = rng.below(1000) < u64::from(self.about.same_start);
        // A run lies in the order of its blocks, the last the least deep: a longer one is looked
        // for further away.
        let step = 1 + (wanted.run_blocks / u64::from(NEAR / 2)).min(1 << 20) as u32;
        let near =
            (1..=NEAR).flat_map(|away| [Some(depth + away * step), depth.checked_sub(away * step)]);
        let (mut best, mut best_score) = (None, -1);
        for depth in std::iter::once(depth).chain(near.flatten()) {
            let Some((key, start)) = self.recency.at(depth) else { continue };
            let known = |block: u64| self.recency.known((key.0, key.1 + block)).is_some();
            let last = wanted.run_blocks.saturating_sub(1);
            let fits = |known: bool| i32::from(known != (wanted.kind == Kind::Grow));
            let room = 4 * fits(known(last)) + 2 * fits(last > 0 && known(last.div_ceil(2)));
            let score = room + i32::from(start.is_some() || !wants_start);
            if score > best_score {
                (best, best_score) = (Some((key, start)), score);
            }
            if score == 7 {
                break;
            }
        }
        let (key, start) = best?;
        let within = match start {
            Some(start) => u64::from(start),
            None if self.about.grid_bytes >= BLOCK_BYTES => self.about.grid_shift % BLOCK_BYTES,
            None => rng.below(BLOCK_BYTES / SECTOR_BYTES) * SECTOR_BYTES,
        };
        Some((key.0, key.1 * BLOCK_BYTES + within))
    }

    /// The end of a recent request behind which there is room for the run.
    fn along(&mut self, run_blocks: u64, rng: &mut Rng) -> Option<(u16, u64)> {
        let rank = self.along.deal(rng) as usize;
        let ends = &self.ends.0;
        let behind = ends.iter().skip(rank).chain(ends.iter().take(rank).rev());
        behind.into_iter().find(|(stream, end)| self.has_room(*stream, *end, run_blocks)).copied()
    }

    /// Whether the blocks of a run that begins there are untouched, as far as a look at some tells.
    fn has_room(&self, stream: u16, address: u64, run_blocks: u64) -> bool {
        let step = run_blocks.div_ceil(LOOKS).max(1);
        let looks = (0..run_blocks).step_by(step as usize).chain([run_blocks.saturating_sub(1)]);
        // Behind a request that ended inside a block, that block is known and no obstacle.
        let first = address.div_ceil(BLOCK_BYTES);
        address < ADDRESS_MAX
            && looks.into_iter().all(|block| self.recency.known((stream, first + block)).is_none())
    }

    /// An address whose block is untouched, with room for the run if there is any.
    fn fresh(&self, stream: u16, run_blocks: u64, rng: &mut Rng) -> u64 {
        let about = self.about;
        let untouched =
            |address: u64| self.recency.known((stream, address / BLOCK_BYTES)).is_none();
        let has_room =
            |address: u64| untouched(address) && self.has_room(stream, address, run_blocks);
        let mut best = None;
        let mut address = 0;
        for _ in 0..TRIES {
            address = about.fresh.draw(rng);
            address = if rng.below(1000) < u64::from(about.on_grid) {
                address / about.grid_bytes * about.grid_bytes + about.grid_shift
            } else {
                address / SECTOR_BYTES * SECTOR_BYTES
            };
            if has_room(address) {
                return address;
            }
            best = best.or(Some(address).filter(|address| untouched(*address)));
        }
        // The neighbourhood is full: walk on until there is room.
        let step = about.grid_bytes.max(BLOCK_BYTES) * run_blocks.div_ceil(LOOKS).max(1);
        let mut places = (1..STEPS).map(|index| address.saturating_add(step * index));
        let roomy = |place: &u64| has_room(*place);
        places.find(roomy).or(best).unwrap_or(address)
    }
}
