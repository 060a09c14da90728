//! Flash with an event queue: what the timelines cannot say.
//!
//! Where a later request can change when an earlier one completes, the timelines of [`super::Nand`]
//! do not hold: reads that overtake writes and cleaning, programs and erases that are suspended for
//! them, cleaning in single copies that give way, a limited number of commands, several submission
//! queues, a map of which only a part is in memory. This model has them all, at the price of an
//! event for every phase of every operation; without them it agrees with the timelines (a test).
//!
//! - **Commands** (`host`): at most `depth` in flight, fetched from the queues in turn.
//! - **Dies** (`engine/dies`): one operation at a time; reads first where asked, else in order of
//!   arrival; cleaning in the background until a plane is short of blocks, then before writes. A
//!   read goes before what has waited longer at most [`MOST_OVERTAKES`] times in a row.
//! - **Data on their way** are in the controller's memory: a page that is written is read from
//!   there.
//! - **Cleaning** begins below `low_blocks` (idle mode: `until_blocks`) and is urgent below it; in
//!   incremental mode it is urgent at the last two blocks only.
//! - **SLC cache** (`slc`): written pages go there first; a die that has been idle for long enough
//!   folds, and goes on until there is something else to do.
//! - **Planes together** (`engine/together`): what waits and fits joins a command.
//! - **Suspend**: the interrupted operation goes on, and pays for it, when no read waits.
//! - **Map cache** (`map_cache`): a lookup that misses reads a page of the map from flash; a
//!   changed page that is driven out is written. Cleaning that moves pages whose map page is not
//!   cached reads and writes that one, once per victim.
//!
//! - **Interface**: one transfer at a time, in the order in which they are asked for. Requests that
//!   are in flight together have no order among each other, as NVMe has it.
//!
//! Invariants: every request completes once; programs = host pages + map pages + moved pages; a die
//! and a channel do one thing at a time; a completion is never before its arrival.

mod array;
mod engine;
mod host;
mod map_cache;
mod slc;
mod store;

use profile::flash::{EventParameters, FlashParameters};
use trace::Request;
use units::{Bytes, Nanos};

use super::gc::Victim;
use super::snapshot::{Reader, Writer};
use super::{Counts, FlashDevice, Wear};
use crate::device::submit_by_queue;
use crate::observe::{Path, Probe};
use crate::queued::{Ahead, Queued};
use crate::snapshot::fingerprint;
use crate::{Counter, Device, SnapshotError};
use engine::Engine;

/// Why a plane moves pages and erases a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It is short of free blocks.
    Short,
    /// A page waits for room in the SLC cache.
    Full,
    /// The die is idle, and there is something to fold.
    Idle,
}

/// Reads that may go before something that waits longer, in a row.
pub const MOST_OVERTAKES: u32 = 64;

/// A flash device with an event queue and cleaning policy `V`.
#[derive(Clone, Debug)]
pub struct EventFlash<V> {
    engine: Engine<V>,
    ahead: Ahead,
    capacity_bytes: u64,
    cycles_most: Option<u32>,
    fingerprint: u64,
}

impl<V: Victim> EventFlash<V> {
    /// An empty device of `parameters`, page-mapped, whose queue is treated as `events` say; `seed`
    /// decides every random choice.
    pub fn new(
        parameters: &FlashParameters,
        events: &EventParameters,
        victims: V,
        seed: u64,
    ) -> Self {
        let page = u64::from(parameters.geometry.page_bytes);
        Self {
            engine: Engine::new(parameters, events, victims, seed),
            ahead: Ahead::default(),
            capacity_bytes: u64::from(parameters.logical_pages) * page,
            cycles_most: parameters.wear.cycles_most,
            fingerprint: fingerprint(&(parameters, events, seed)),
        }
    }
}

impl<V: Victim> Queued for EventFlash<V> {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        let end = request.offset.0.saturating_add(u64::from(request.len));
        assert!(end <= self.capacity_bytes, "a request ends at {end}, beyond the capacity");
        self.engine.arrive(now.0, ticket, request);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        self.engine.watch(false);
        self.engine.next_completion(until.0).map(|(at, ticket)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.engine.next_event().map(Nanos)
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        self.engine.watch(true);
        let found = self.engine.next_completion(until.0);
        self.engine.tell(probe);
        found.map(|(at, ticket)| (Nanos(at), ticket, self.engine.path_of(ticket)))
    }
}

impl<V: Victim> Device for EventFlash<V> {
    submit_by_queue!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new(self.fingerprint);
        self.engine.save(&mut to);
        let (answered, arrived) = self.ahead.parts();
        to.u64s(&[answered as u64]);
        to.u64(arrived.len() as u64);
        arrived.for_each(|at| to.u64s(&[u64::from(at.is_some()), at.unwrap_or(0)]));
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = Reader::new(bytes, self.fingerprint)?;
        self.engine.load(&mut from)?;
        let (mut answered, mut known) = ([0], [0; 2]);
        from.u64s(&mut answered)?;
        let mut arrived = Vec::new();
        for _ in 0..from.count()? {
            from.u64s(&mut known)?;
            arrived.push((known[0] == 1).then_some(known[1]));
        }
        self.ahead = Ahead::from_parts(answered[0] as usize, arrived);
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.capacity_bytes))
    }

    fn counters(&self) -> Vec<Counter> {
        self.engine.counters()
    }
}

impl<V: Victim> FlashDevice for EventFlash<V> {
    fn counts(&self) -> &Counts {
        &self.engine.store.counts
    }

    fn precondition(&mut self, fill: f64, random: bool, seed: u64) -> bool {
        self.engine.precondition(fill, random, seed);
        true
    }

    fn reset_counts(&mut self) {
        self.engine.store.counts = Counts::default();
    }

    fn wear(&self) -> Wear {
        Wear::of(&self.engine.store.blocks, self.cycles_most)
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        self.engine.store.find(lpn)
    }

    fn free_blocks(&self) -> u64 {
        self.engine.store.blocks.free_total()
    }

    fn audit(&self) {
        self.engine.store.audit();
    }
}
