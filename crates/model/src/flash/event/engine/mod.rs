//! The event queue and the commands; what pages, dies and channels do is in [`pages`] and [`dies`].

mod dies;
mod ledger;
mod pages;
mod state;
mod together;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use profile::flash::{AllocationScheme, EventParameters, FlashParameters, GcMode, Order};
use stats::rng;
use trace::{Op, Request};

use self::ledger::Ledger;
use super::Reason;
use super::array::{Bus, Die, Times, Work};
use super::host::Host;
use super::map_cache::MapCache;
use super::store::Store;
use crate::Counter;
use crate::flash::gc::Victim;
use crate::flash::{Counts, Wear};
use crate::observe::Cause;

/// What an operation on a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A request reads it.
    Read,
    /// A request writes a part of it; the rest is read first.
    Merge,
    /// A request writes it.
    Write,
    /// A lookup needs this page of the map.
    MapRead,
    /// Cleaning changed this page of the map: it is read, then written.
    MapMerge,
    /// A changed page of the map is written.
    MapWrite,
}

impl Kind {
    /// Whether it programs a page; the others sense one.
    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::MapWrite)
    }
}

#[derive(Clone, Copy, Debug)]
struct PageOp {
    kind: Kind,
    /// Logical page; pages of the map follow the logical ones.
    lpn: u32,
    plane: u32,
    bytes: u32,
    stream: u16,
    /// The command that it is part of.
    slot: u32,
    /// Number of the write; later ones have higher numbers.
    version: u32,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The work of a die ends, unless it was interrupted since.
    Die(u32, u32),
    /// The transfer of a channel ends.
    Channel(u32),
    /// The data of the write of a slot have crossed the interface.
    Received(u32),
    /// The command of a slot is complete.
    Complete(u32),
    /// A die has been idle for long, unless it began something since.
    Rested(u32, u32),
}

/// The whole device.
#[derive(Clone, Debug)]
pub(super) struct Engine<V> {
    clock: u64,
    /// (time, order of scheduling, what)
    events: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    scheduled: u64,
    pub store: Store<V>,
    host: Host,
    dies: Vec<Die>,
    buses: Vec<Bus>,
    times: Times,
    ops: Vec<PageOp>,
    unused_ops: Vec<u32>,
    /// Writes that no plane can hold before a page dies.
    held: VecDeque<u32>,
    /// By logical page: writes of it that are on their way.
    pending: Vec<u16>,
    /// By logical page: the number of the newest write that is in the cells, or the number of the
    /// last write before it was trimmed.
    newest: Vec<u32>,
    writes: u32,
    completed: VecDeque<(u64, u64)>,
    map_cache: Option<MapCache>,
    /// By plane: pages of the map that moves have made wrong in flash.
    stale: Vec<BTreeSet<u32>>,
    /// Planes in the order in which pages take them.
    planes: Vec<u32>,
    dies_in_order: Vec<u32>,
    allocation: AllocationScheme,
    next_plane: u32,
    logical_pages: u32,
    events_of: EventParameters,
    /// Free blocks of a plane below which it is cleaned in the background, and before all else.
    start_below: u32,
    urgent_below: u32,
    overhead_ns: u64,
    /// Time of a byte on the interface, and when that is free.
    interface_ns_per_byte: f64,
    interface_command_ns: u64,
    behind_cache: bool,
    /// How long a die is idle before it folds.
    fold_after_ns: Option<u64>,
    /// Planes of a die work together where they can.
    multi_plane: bool,
    /// Pages of a request are still to come, so that idle dies wait: those that have work now.
    gathering: Option<Vec<u32>>,
    interface_free_at: u64,
    seed: u64,
    sensings: u64,
    suspends: u64,
    map_pages_written: u64,
    buffered_pages: u64,
    /// While somebody watches.
    ledger: Option<Box<Ledger>>,
}

impl<V: Victim> Engine<V> {
    pub fn new(
        parameters: &FlashParameters,
        events: &EventParameters,
        victims: V,
        seed: u64,
    ) -> Self {
        let geometry = parameters.geometry;
        let logical_pages = parameters.logical_pages;
        let cache = |most| MapCache::new(logical_pages, geometry.page_bytes, most);
        let low = parameters.gc.low_blocks;
        let (start_below, urgent_below) = match parameters.gc.mode {
            GcMode::Incremental { .. } => (low, 2),
            GcMode::Idle { until_blocks, .. } => (until_blocks, low),
            GcMode::Foreground | GcMode::Deferred => (low, low),
        };
        let order = match parameters.allocation {
            AllocationScheme::Static(order) | AllocationScheme::ByDie(order) => order,
            // Neighbouring pages fill the planes of a die, so that they are programmed together.
            _ if parameters.multi_plane => Order::PCWD,
            _ => Order::CWDP,
        };
        Self {
            clock: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            store: Store::new(parameters, victims, logical_pages + events.map_pages(parameters)),
            host: Host::new(events.host_queues, events.depth),
            dies: Die::all(&geometry),
            buses: vec![Bus::default(); geometry.channels as usize],
            times: Times::new(parameters),
            ops: Vec::new(),
            unused_ops: Vec::new(),
            held: VecDeque::new(),
            pending: vec![0; logical_pages as usize],
            newest: vec![0; logical_pages as usize],
            writes: 0,
            completed: VecDeque::new(),
            map_cache: events.map_cache_pages.map(cache),
            stale: vec![BTreeSet::new(); geometry.plane_count() as usize],
            dies_in_order: {
                let firsts = order.planes(&geometry).into_iter();
                let firsts = firsts.filter(|plane| plane % geometry.planes_per_die == 0);
                firsts.map(|plane| geometry.die_of_plane(plane)).collect()
            },
            planes: order.planes(&geometry),
            allocation: parameters.allocation,
            next_plane: 0,
            logical_pages,
            events_of: events.clone(),
            start_below,
            urgent_below,
            overhead_ns: parameters.overhead_ns,
            interface_ns_per_byte: parameters.interface_bytes_per_s.map_or(0.0, |rate| 1e9 / rate),
            interface_command_ns: parameters.interface_command_ns,
            behind_cache: parameters.behind_cache,
            fold_after_ns: parameters.slc.and_then(|slc| slc.fold_after_ns),
            multi_plane: parameters.multi_plane,
            gathering: None,
            interface_free_at: 0,
            seed,
            sensings: 0,
            suspends: 0,
            map_pages_written: 0,
            buffered_pages: 0,
            ledger: None,
        }
    }

    pub fn arrive(&mut self, now: u64, ticket: u64, request: &Request) {
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            self.step();
        }
        assert!(now >= self.clock, "time runs back");
        self.clock = now;
        let (slot, is_fetched) = self.host.arrive(ticket, request);
        self.note_arrival(slot, ticket);
        if is_fetched {
            self.fetch(slot);
        }
    }

    pub fn next_completion(&mut self, until: u64) -> Option<(u64, u64)> {
        loop {
            if let Some(found) = self.completed.pop_front() {
                return Some(found);
            }
            match self.events.peek() {
                Some(Reverse((at, ..))) if *at <= until => self.step(),
                _ => {
                    // After the last event there is nothing to wait for.
                    if until != u64::MAX {
                        self.clock = self.clock.max(until);
                    }
                    return None;
                }
            }
        }
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<u64> {
        let completed = self.completed.front().map(|(at, _)| *at);
        completed.or_else(|| self.events.peek().map(|Reverse((at, ..))| *at))
    }

    fn schedule(&mut self, at: u64, what: Happening) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, what)));
    }

    fn step(&mut self) {
        let Reverse((at, _, what)) = self.events.pop().expect("an event");
        debug_assert!(at >= self.clock, "time runs back");
        self.clock = at;
        match what {
            Happening::Die(die, generation) => {
                if self.dies[die as usize].generation == generation {
                    self.work_ends(die);
                }
            }
            Happening::Channel(channel) => self.transfer_ends(channel),
            Happening::Received(slot) => self.cut(slot),
            Happening::Rested(die, generation) => self.rested(die, generation),
            Happening::Complete(slot) => {
                self.note_completion(slot);
                let (ticket, next) = self.host.complete(slot);
                self.completed.push_back((at, ticket));
                if let Some(next) = next {
                    self.fetch(next);
                }
            }
        }
    }

    fn fetch(&mut self, slot: u32) {
        self.note_command(slot, Cause::Queue, self.clock);
        let request = self.host.command(slot).request;
        let page = u64::from(self.store.geometry.page_bytes);
        let end = request.offset.0 + u64::from(request.len);
        match request.op {
            Op::Flush => {
                let complete = self.host.flush(slot);
                self.complete_all(&complete);
                return;
            }
            Op::Trim => {
                let whole = request.offset.0.div_ceil(page)..end / page;
                for lpn in whole {
                    self.store.trim(lpn as u32);
                    self.newest[lpn as usize] = self.writes;
                }
                self.place_held();
            }
            Op::Write => {
                self.host.write_begins(slot);
                if self.interface_ns_per_byte > 0.0 && !self.behind_cache {
                    let received = self.cross(slot, request.len);
                    return self.schedule(received, Happening::Received(slot));
                }
                return self.cut(slot);
            }
            Op::Read => return self.cut(slot),
        }
        self.part_done(slot);
    }

    /// Cuts the request of `slot` into pages.
    fn cut(&mut self, slot: u32) {
        let Request { op, offset, len, stream, .. } = self.host.command(slot).request;
        let page = u64::from(self.store.geometry.page_bytes);
        let end = offset.0 + u64::from(len);
        self.gathering = self.multi_plane.then(Vec::new);
        for lpn in offset.0 / page..end.div_ceil(page).max(offset.0 / page) {
            let first = (lpn * page).max(offset.0);
            let bytes = (((lpn + 1) * page).min(end) - first) as u32;
            self.host.command(slot).left += 1;
            self.page(slot, op, (lpn as u32, bytes), stream);
        }
        for die in self.gathering.take().unwrap_or_default() {
            if self.dies[die as usize].work == Work::Idle {
                self.dispatch(die);
            }
        }
        self.part_done(slot);
    }

    /// Moves a command and its `len` bytes across the interface as soon as it is free; gives the
    /// end.
    fn cross(&mut self, slot: u32, len: u32) -> u64 {
        let data_ns = (f64::from(len) * self.interface_ns_per_byte).round() as u64;
        let ns = data_ns + self.interface_command_ns;
        self.interface_free_at = self.interface_free_at.max(self.clock) + ns;
        self.note_crossing(slot, ns, self.interface_free_at);
        self.interface_free_at
    }

    fn part_done(&mut self, slot: u32) {
        let command = self.host.command(slot);
        command.left -= 1;
        if command.left > 0 {
            return;
        }
        let Request { op, len, .. } = command.request;
        let at = if op == Op::Read { self.cross(slot, len) } else { self.clock };
        self.note_command(slot, Cause::Controller, at + self.overhead_ns);
        self.schedule(at + self.overhead_ns, Happening::Complete(slot));
        if op == Op::Write {
            let flushes = self.host.write_ends(slot);
            self.complete_all(&flushes);
        }
    }

    fn complete_all(&mut self, flushes: &[u32]) {
        for slot in flushes {
            self.note_command(*slot, Cause::Flush, self.clock);
            self.note_command(*slot, Cause::Controller, self.clock + self.overhead_ns);
            self.schedule(self.clock + self.overhead_ns, Happening::Complete(*slot));
        }
    }

    /// Writes the first pages, a share `fill` of all, in order, and where `random` over and over at
    /// random, all of it in no time and uncounted.
    pub fn precondition(&mut self, fill: f64, random: bool, seed: u64) {
        assert!(self.store.counts == Counts::default(), "the device was written before");
        let pages = (f64::from(self.logical_pages) * fill).round() as u64;
        let map_pages = self.map_cache.as_ref().map_or(0, |cache| cache.pages_for(pages));
        let overwrites = if random { crate::flash::mapping::ROUNDS * pages } else { 0 };
        let mut rng = rng::Rng::new(seed);
        for k in 0..pages + overwrites {
            let lpn = if k < pages { k } else { rng.below(pages) };
            self.put(lpn as u32);
        }
        (0..map_pages).for_each(|page| self.put(self.logical_pages + page));
        self.store.counts = Counts::default();
        self.store.blocks.forget_wear();
    }

    /// Writes `lpn` at once and cleans its plane as that demands.
    fn put(&mut self, lpn: u32) {
        let plane = self.plane_for(lpn).expect("nothing is on its way");
        self.store.expect(plane);
        self.store.write_dense(lpn, plane);
        while self.store.blocks.free_count(plane) < self.urgent_below
            && self.store.begin(plane, Reason::Short)
        {
            while self.store.move_next(plane).is_some() {}
            self.store.erased(plane);
        }
    }

    pub fn counters(&self) -> Vec<Counter> {
        let counts = &self.store.counts;
        let counter = |name, value| Counter { name, value };
        let page = u64::from(self.store.geometry.page_bytes);
        let programmed = counts.programmed_pages() + self.map_pages_written;
        let wear = Wear::of(&self.store.blocks, None);
        let mut all = vec![
            counter("host_programmed_pages", counts.host_pages),
            counter("nand_written_bytes", programmed * page),
            counter("gc_moved_pages", counts.moved_pages),
            counter("merged_pages", counts.merged_pages),
            counter("buffered_read_pages", self.buffered_pages),
            counter("unwritten_read_pages", counts.unwritten_pages),
            counter("trimmed_pages", counts.trimmed_pages),
            counter("erased_blocks", counts.erased_blocks),
            counter("victim_blocks", counts.victims),
            counter("suspended_operations", self.suspends),
            counter("retired_blocks", u64::from(wear.retired_blocks)),
            counter("least_worn_block_erases", u64::from(wear.erases_min)),
            counter("most_worn_block_erases", u64::from(wear.erases_max)),
        ];
        if let Some(cached) = self.store.cached_pages() {
            all.push(counter("slc_folded_pages", counts.folded_pages));
            all.push(counter("slc_cached_pages", cached));
        }
        if let Some(cache) = &self.map_cache {
            all.push(counter("map_cache_hits", cache.hits));
            all.push(counter("map_cache_misses", cache.misses));
            all.push(counter("map_written_pages", self.map_pages_written));
        }
        all
    }
}
