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
    /// Behind the last request of its stream and operation.
    Next = 1,
    /// A block touched before.
    Back = 2,
    /// A block never touched.
    Fresh = 3,
}

/// Streams whose places follow one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// The streams and how many requests each has, one behind the other.
    pub streams: Vec<u32>,
    /// Stack distances of returns by reads, in blocks.
    pub read_depths: Table,
    /// And by everything else.
    pub write_depths: Table,
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
    /// Blocks of the runs that begin at fresh places.
    pub run_blocks: Table,
}

/// Addresses end here, so that no sum overflows.
const ADDRESS_MAX: u64 = 1 << 62;
const SECTOR_BYTES: u64 = 512;

impl Group {
    /// Whether a placer can use it.
    pub fn is_sound(&self, streams: usize, count_max: u64) -> bool {
        let tables = [&self.read_depths, &self.write_depths, &self.fresh, &self.run_blocks];
        !self.streams.is_empty()
            && self.streams.len().is_multiple_of(2)
            && self.streams.chunks_exact(2).all(|pair| (pair[0] as usize) < streams)
            && self.streams.chunks_exact(2).map(|pair| u64::from(pair[1])).sum::<u64>() <= count_max
            && tables.iter().all(|table| table.is_sound(count_max))
            && self.fresh.max() <= ADDRESS_MAX
            && self.grid_bytes > 0
            && self.grid_bytes <= ADDRESS_MAX
            && self.grid_shift < self.grid_bytes
    }
}

/// Places tried before a fresh one is taken that has less room than wanted.
const TRIES: u32 = 24;
/// Blocks of a run that are looked at for room.
const LOOKS: u64 = 8;
/// Blocks around a depth among which a start is looked for.
const NEAR: u32 = 16;

struct Running<'a> {
    about: &'a Group,
    recency: Recency,
    depths: [BoundedDeck; 2],
    streams: Deck,
}

/// Finds the places.
pub(super) struct Placer<'a> {
    groups: Vec<Running<'a>>,
    /// Where the last request of each stream and operation ended.
    ends: HashMap<(u16, Op), u64>,
    rng: Rng,
}

impl<'a> Placer<'a> {
    pub fn new(groups: &'a [Group], _streams: usize, rng: Rng) -> Self {
        let start = |about: &'a Group| Running {
            about,
            recency: Recency::new(),
            depths: [BoundedDeck::new(&about.read_depths), BoundedDeck::new(&about.write_depths)],
            streams: Deck::new(&Table::of_pairs(&about.streams)),
        };
        Self { groups: groups.iter().map(start).collect(), ends: HashMap::new(), rng }
    }

    /// Stream and first byte of the next request.
    pub fn place(&mut self, group: usize, op: Op, kind: Kind, len: u32) -> (u16, u64) {
        let rng = &mut self.rng;
        let running = &mut self.groups[group];
        let found = match kind {
            Kind::Nowhere => return (running.streams.deal(rng) as u16, 0),
            Kind::Next => {
                let stream = running.streams.deal(rng) as u16;
                self.ends.get(&(stream, op)).map(|end| (stream, *end))
            }
            Kind::Back => running.back(op, rng),
            Kind::Fresh => None,
        };
        let (stream, offset) = found.unwrap_or_else(|| {
            let stream = running.streams.deal(rng) as u16;
            (stream, running.fresh(stream, rng))
        });
        let end = (offset + u64::from(len)).min(ADDRESS_MAX);
        self.ends.insert((stream, op), end);
        if matches!(op, Op::Read | Op::Write) && len > 0 {
            touch(&mut running.recency, stream, offset, len);
        }
        (stream, offset)
    }
}

/// Touches the blocks of a request in order.
pub(super) fn touch(recency: &mut Recency, stream: u16, offset: u64, len: u32) {
    let (first, last) = (offset / BLOCK_BYTES, (offset + u64::from(len) - 1) / BLOCK_BYTES);
    for block in first..=last {
        let start = (block == first).then_some((offset % BLOCK_BYTES) as u16);
        recency.touch((stream, block), start);
    }
}

impl Running<'_> {
    /// A place at a depth of the deck; `None` where nothing is that deep yet.
    fn back(&mut self, op: Op, rng: &mut Rng) -> Option<(u16, u64)> {
        let deck = &mut self.depths[usize::from(op != Op::Read)];
        let depth = deck.deal_below(self.recency.count() as u64, rng)? as u32;
        let (mut key, mut start) = self.recency.at(depth)?;
        if start.is_none() && rng.below(1000) < u64::from(self.about.same_start) {
            let near = (1..=NEAR).flat_map(|away| [depth.checked_sub(away), Some(depth + away)]);
            let found = near.flatten().filter_map(|depth| self.recency.at(depth));
            if let Some(better) = found.into_iter().find(|(_, start)| start.is_some()) {
                (key, start) = better;
            }
        }
        let within = start.map_or_else(
            || {
                rng.below(BLOCK_BYTES / SECTOR_BYTES)
                    * SECTOR_BYTES
                    * u64::from(self.about.grid_bytes < BLOCK_BYTES)
            },
            u64::from,
        );
        Some((key.0, key.1 * BLOCK_BYTES + within))
    }

    /// An address whose block is untouched, with room for a run if there is any.
    fn fresh(&self, stream: u16, rng: &mut Rng) -> u64 {
        let about = self.about;
        let room = about.run_blocks.draw(rng).max(1);
        let untouched =
            |address: u64| self.recency.known((stream, address / BLOCK_BYTES)).is_none();
        let mut best = None;
        let mut address = 0;
        for _ in 0..TRIES {
            address = about.fresh.draw(rng);
            address = if rng.below(1000) < u64::from(about.on_grid) {
                address / about.grid_bytes * about.grid_bytes + about.grid_shift
            } else {
                address / SECTOR_BYTES * SECTOR_BYTES
            };
            if !untouched(address) {
                continue;
            }
            best = best.or(Some(address));
            let look = |index: u64| address + room * index / LOOKS * BLOCK_BYTES;
            if (1..=LOOKS.min(room)).all(|index| untouched(look(index))) {
                return address;
            }
        }
        best.unwrap_or_else(|| {
            // The neighbourhood is full: the next block that is not, if there is one nearby.
            let steps = (0..4096).map(|step| address + step * about.grid_bytes.max(BLOCK_BYTES));
            steps.into_iter().find(|address| untouched(*address)).unwrap_or(address)
        })
    }
}
