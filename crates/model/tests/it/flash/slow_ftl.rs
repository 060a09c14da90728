//! A slow, obvious translation layer: a dictionary, lists and loops.
//!
//! Every physical page holds what was written to it, a logical page number and the number of the
//! write, so that a lost or stale page shows. Whatever the model keeps in clever tables is counted
//! anew here each time.

use std::collections::{BTreeMap, VecDeque};

use profile::flash::{
    AllocationScheme, FlashParameters, GcMode, GcPolicy, Geometry, Isolation, Order,
};
use stats::rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
    Cleaning,
    Retired,
}

#[derive(Clone, Debug)]
struct Block {
    state: State,
    /// What was written, page by page: logical page and number of the write.
    pages: Vec<(u32, u64)>,
    /// What it was opened for, a host stream or [`MOVED`].
    stream: u32,
    erases: u32,
    closed_at: u64,
    changed_at: u64,
}

/// The stream of moved pages where all streams share it; where each has its own, it is counted from
/// there.
const MOVED: u32 = 1000;

/// The slow layer.
#[derive(Debug)]
pub struct SlowFtl {
    parameters: FlashParameters,
    map: BTreeMap<u32, (u32, u32)>,
    blocks: Vec<Block>,
    free: Vec<VecDeque<u32>>,
    /// Open blocks by plane and stream; moved pages are in streams from [`MOVED`] on where they
    /// are separate.
    open: BTreeMap<(u32, u32), u32>,
    /// Victim and next page, and whether wear levelling chose it, by plane.
    cleaning: BTreeMap<u32, (u32, u32, bool)>,
    /// d-choices: closed blocks in the order in which the draws see them.
    lists: Vec<Vec<u32>>,
    drawn: u64,
    seed: u64,
    turn: u32,
    /// Changes of closed blocks, by plane.
    clock: Vec<u64>,
    wear_countdown: Vec<u32>,
    spare: Vec<u32>,
    /// The number of the last write of every logical page that has data.
    pub written: BTreeMap<u32, u64>,
    writes: u64,
    pub moved: u64,
    pub erased: u64,
}

impl SlowFtl {
    pub fn new(parameters: &FlashParameters, seed: u64) -> Self {
        let geometry = parameters.geometry;
        let planes = geometry.plane_count() as usize;
        let block = Block {
            state: State::Free,
            pages: Vec::new(),
            stream: 0,
            erases: 0,
            closed_at: 0,
            changed_at: 0,
        };
        let per_plane = geometry.blocks_per_plane;
        let room = per_plane - parameters.reserved_blocks_per_plane();
        let most = parameters.logical_pages.div_ceil(planes as u32);
        let spare = room.saturating_sub(most / geometry.pages_per_block + 1);
        Self {
            parameters: parameters.clone(),
            map: BTreeMap::new(),
            blocks: vec![block; geometry.block_count() as usize],
            free: (0..planes as u32)
                .map(|p| (p * per_plane..(p + 1) * per_plane).collect())
                .collect(),
            open: BTreeMap::new(),
            cleaning: BTreeMap::new(),
            lists: vec![Vec::new(); planes],
            drawn: 0,
            seed: rng::mix(seed ^ 0xd_c401),
            turn: 0,
            clock: vec![0; planes],
            wear_countdown: vec![0; planes],
            spare: vec![spare; planes],
            written: BTreeMap::new(),
            writes: 0,
            moved: 0,
            erased: 0,
        }
    }

    fn geometry(&self) -> Geometry {
        self.parameters.geometry
    }

    fn blocks_of(&self, plane: u32) -> std::ops::Range<u32> {
        let per_plane = self.geometry().blocks_per_plane;
        plane * per_plane..(plane + 1) * per_plane
    }

    fn is_live(&self, block: u32, page: u32) -> bool {
        let (lpn, _) = self.blocks[block as usize].pages[page as usize];
        self.map.get(&lpn) == Some(&(block, page))
    }

    fn live_pages(&self, block: u32) -> u32 {
        let written = self.blocks[block as usize].pages.len() as u32;
        (0..written).filter(|page| self.is_live(block, *page)).count() as u32
    }

    /// The physical page number of `lpn`, and which write its data are of.
    pub fn locate(&self, lpn: u32) -> Option<(u32, u64)> {
        let (block, page) = *self.map.get(&lpn)?;
        let (held, write) = self.blocks[block as usize].pages[page as usize];
        assert_eq!(held, lpn, "the map points at another page's data");
        Some((block * self.geometry().pages_per_block + page, write))
    }

    pub fn write(&mut self, lpn: u32, stream: u32) {
        let plane = self.choose_plane(lpn);
        self.writes += 1;
        self.written.insert(lpn, self.writes);
        self.append(plane, stream % self.parameters.host_streams, (lpn, self.writes));
        let low = self.parameters.gc.low_blocks;
        let incremental = matches!(self.parameters.gc.mode, GcMode::Incremental { .. });
        let few = (self.free[plane as usize].len() as u32) < low;
        if few || (incremental && self.cleaning.contains_key(&plane)) {
            self.clean(plane);
        }
    }

    pub fn trim(&mut self, lpn: u32) {
        self.written.remove(&lpn);
        if let Some((block, _)) = self.map.remove(&lpn) {
            self.page_died(block);
        }
    }

    fn choose_plane(&mut self, lpn: u32) -> u32 {
        let geometry = self.geometry();
        let count = geometry.plane_count();
        let cwdp = |slot: u32| {
            let channel = slot % geometry.channels;
            let rest = slot / geometry.channels;
            let chip = rest % geometry.chips_per_channel;
            let rest = rest / geometry.chips_per_channel;
            let (die, plane) = (rest % geometry.dies_per_chip, rest / geometry.dies_per_chip);
            geometry.plane_at([channel, chip, die, plane])
        };
        if let AllocationScheme::Static(order) = self.parameters.allocation {
            assert_eq!(order, Order::CWDP);
            return cwdp(lpn % count);
        }
        let fits = |plane: &u32| self.live_in(*plane) < self.live_most(*plane);
        let mut turns = (0..count).map(|k| cwdp((self.turn + k) % count));
        let plane = turns.find(fits).expect("room");
        self.turn = (self.turn + 1) % count;
        plane
    }

    fn live_in(&self, plane: u32) -> u32 {
        self.blocks_of(plane).map(|block| self.live_pages(block)).sum()
    }

    fn live_most(&self, plane: u32) -> u32 {
        let retired = |block: &u32| self.blocks[*block as usize].state == State::Retired;
        let blocks = self.blocks_of(plane).filter(|block| !retired(block)).count() as u32;
        (blocks - self.parameters.reserved_blocks_per_plane()) * self.geometry().pages_per_block
    }

    /// Writes to the open block of `stream`, opening another where it is full.
    fn append(&mut self, plane: u32, stream: u32, data: (u32, u64)) {
        let pages = self.geometry().pages_per_block as usize;
        let full = |block: &u32| self.blocks[*block as usize].pages.len() == pages;
        let open = self.open.get(&(plane, stream)).copied();
        if let Some(block) = open.filter(full) {
            let clock = self.tick(plane);
            let own = &mut self.blocks[block as usize];
            (own.state, own.closed_at, own.changed_at) = (State::Closed, clock, clock);
            self.lists[plane as usize].push(block);
            self.open.remove(&(plane, stream));
        }
        let block = match self.open.get(&(plane, stream)) {
            Some(block) => *block,
            None => self.open_block(plane, stream),
        };
        let own = &mut self.blocks[block as usize];
        own.pages.push(data);
        let page = own.pages.len() as u32 - 1;
        if let Some((old, _)) = self.map.insert(data.0, (block, page)) {
            self.page_died(old);
        }
    }

    fn open_block(&mut self, plane: u32, stream: u32) -> u32 {
        let look = self.parameters.wear.dynamic_look_blocks.max(1) as usize;
        let queue = &mut self.free[plane as usize];
        let candidates = queue.iter().take(look).enumerate();
        let worn = |(_, block): &(usize, &u32)| self.blocks[**block as usize].erases;
        let best = candidates.min_by_key(worn).expect("a free block").0;
        queue.swap(0, best);
        let block = queue.pop_front().expect("a free block");
        self.blocks[block as usize].state = State::Open;
        self.blocks[block as usize].stream = stream;
        self.open.insert((plane, stream), block);
        block
    }

    fn page_died(&mut self, block: u32) {
        if self.blocks[block as usize].state == State::Closed {
            let clock = self.tick(block / self.geometry().blocks_per_plane);
            self.blocks[block as usize].changed_at = clock;
        }
    }

    fn tick(&mut self, plane: u32) -> u64 {
        self.clock[plane as usize] += 1;
        self.clock[plane as usize]
    }

    fn clean(&mut self, plane: u32) {
        let mut enough = self.parameters.gc.low_blocks;
        if let GcMode::Incremental { pages_per_write } = self.parameters.gc.mode {
            self.clean_some(plane, pages_per_write);
            enough = enough.min(2);
        }
        while (self.free[plane as usize].len() as u32) < enough {
            if !self.clean_some(plane, u32::MAX) {
                break;
            }
        }
    }

    fn clean_some(&mut self, plane: u32, budget: u32) -> bool {
        if !self.cleaning.contains_key(&plane) {
            let coldest = self.coldest(plane);
            let Some(victim) = coldest.or_else(|| self.victim(plane)) else { return false };
            self.lists_remove(plane, victim);
            self.blocks[victim as usize].state = State::Cleaning;
            self.cleaning.insert(plane, (victim, 0, coldest.is_some()));
        }
        let (victim, mut page, levelling) = self.cleaning[&plane];
        let mut left = budget;
        while left > 0 && self.live_pages(victim) > 0 {
            if self.is_live(victim, page) {
                let data = self.blocks[victim as usize].pages[page as usize];
                self.append(plane, self.stream_for_moves(victim), data);
                self.moved += 1;
                left -= 1;
            }
            page += 1;
        }
        self.cleaning.insert(plane, (victim, page, levelling));
        if self.live_pages(victim) == 0 {
            self.erase(plane, victim);
        }
        true
    }

    fn stream_for_moves(&self, victim: u32) -> u32 {
        let own = self.blocks[victim as usize].stream;
        let persistent = self.parameters.streams.isolation == Isolation::Persistent;
        match (persistent, self.parameters.gc.separate) {
            (true, true) if own < MOVED => MOVED + own,
            (true, _) => own,
            (false, true) => MOVED,
            (false, false) => self.parameters.host_streams - 1,
        }
    }

    fn erase(&mut self, plane: u32, victim: u32) {
        self.cleaning.remove(&plane);
        self.erased += 1;
        let own = &mut self.blocks[victim as usize];
        own.pages.clear();
        own.erases += 1;
        let worn = self.parameters.wear.cycles_most.is_some_and(|most| own.erases >= most);
        let pages = self.geometry().pages_per_block;
        let bound = matches!(self.parameters.allocation, AllocationScheme::Static(_));
        let fits = bound || self.live_in(plane) + pages <= self.live_most(plane);
        let reserve = !self.free[plane as usize].is_empty();
        let own = &mut self.blocks[victim as usize];
        let spare = &mut self.spare[plane as usize];
        if worn && *spare > 0 && fits && reserve {
            *spare -= 1;
            own.state = State::Retired;
        } else {
            own.state = State::Free;
            self.free[plane as usize].push_back(victim);
        }
    }

    fn closed(&self, plane: u32) -> Vec<u32> {
        let all = self.blocks_of(plane);
        all.filter(|block| self.blocks[*block as usize].state == State::Closed).collect()
    }

    fn coldest(&mut self, plane: u32) -> Option<u32> {
        let spread = self.parameters.wear.static_spread?;
        let interval = (self.geometry().blocks_per_plane / 16).max(1);
        let countdown = &mut self.wear_countdown[plane as usize];
        if *countdown > 0 {
            *countdown -= 1;
            return None;
        }
        *countdown = interval;
        let erases = |block: &u32| self.blocks[*block as usize].erases;
        let retired = |block: &u32| self.blocks[*block as usize].state == State::Retired;
        let most = self.blocks_of(plane).filter(|b| !retired(b)).map(|b| erases(&b)).max()?;
        let coldest = self.closed(plane).into_iter().min_by_key(erases)?;
        if most - erases(&coldest) <= spread {
            return None;
        }
        Some(coldest)
    }

    fn victim(&mut self, plane: u32) -> Option<u32> {
        let shares = self.parameters.streams.block_shares.clone();
        if !shares.is_empty() {
            return self.victim_by_share(plane, &shares);
        }
        let mut closed = self.closed(plane);
        let block = |number: &u32| &self.blocks[*number as usize];
        match self.parameters.gc.policy {
            GcPolicy::Greedy => closed.into_iter().min_by_key(|number| {
                (self.live_pages(*number), u64::MAX - block(number).changed_at)
            }),
            GcPolicy::Fifo => closed.into_iter().min_by_key(|number| block(number).closed_at),
            GcPolicy::Windowed(window) => {
                closed.sort_by_key(|number| block(number).closed_at);
                closed.truncate(window as usize);
                closed.into_iter().min_by_key(|number| self.live_pages(*number))
            }
            GcPolicy::DChoices(choices) => {
                let list = self.lists[plane as usize].clone();
                let draws = (0..choices).map(|k| {
                    let word = rng::at(self.seed, self.drawn + u64::from(k));
                    list[((u128::from(word) * list.len() as u128) >> 64) as usize]
                });
                let best = draws.min_by_key(|number| self.live_pages(*number));
                self.drawn += u64::from(choices);
                best
            }
            GcPolicy::CostBenefit => {
                let merit = |number: &u32| {
                    let live = f64::from(self.live_pages(*number));
                    let age = self.clock[plane as usize] - block(number).changed_at + 1;
                    let dead = f64::from(self.geometry().pages_per_block) - live;
                    age as f64 * dead / (2.0 * live)
                };
                closed.into_iter().rev().max_by(|a, b| merit(a).total_cmp(&merit(b)))
            }
        }
    }

    /// The stream that exceeds its share most, unless it has nothing to gain.
    fn victim_by_share(&mut self, plane: u32, shares: &[f64]) -> Option<u32> {
        let stream = |block: u32| (self.blocks[block as usize].stream % MOVED) as usize;
        let mut used = vec![0.0; shares.len()];
        for block in self.blocks_of(plane) {
            let idle = matches!(
                self.blocks[block as usize].state,
                State::Free | State::Retired | State::Cleaning
            );
            used[stream(block)] += f64::from(u8::from(!idle));
        }
        let sum: f64 = shares.iter().sum();
        let mut order: Vec<usize> = (0..shares.len()).collect();
        let excess = |at: &usize| used[*at] / (shares[*at] / sum);
        order.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
        let mut whole = None;
        for own in order {
            let closed: Vec<u32> = self
                .closed(plane)
                .into_iter()
                .filter(|b| (self.blocks[*b as usize].stream % MOVED) as usize == own)
                .collect();
            let Some(victim) = self.first_by_policy(&closed) else { continue };
            if self.live_pages(victim) < self.geometry().pages_per_block {
                return Some(victim);
            }
            // Closed anew.
            let clock = self.tick(plane);
            let block = &mut self.blocks[victim as usize];
            (block.closed_at, block.changed_at) = (clock, clock);
            whole = whole.or(Some(closed));
        }
        self.first_by_policy(&whole?)
    }

    fn first_by_policy(&self, closed: &[u32]) -> Option<u32> {
        let block = |number: &u32| &self.blocks[*number as usize];
        let closed = closed.iter().copied();
        if self.parameters.gc.policy == GcPolicy::Fifo {
            return closed.min_by_key(|number| block(number).closed_at);
        }
        closed.min_by_key(|number| (self.live_pages(*number), u64::MAX - block(number).changed_at))
    }

    fn lists_remove(&mut self, plane: u32, block: u32) {
        let list = &mut self.lists[plane as usize];
        let place = list.iter().position(|own| *own == block).expect("closed");
        list.swap_remove(place);
    }
}
