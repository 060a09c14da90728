//! The state of the event model as bytes: see [`crate::flash::snapshot`].
//!
//! All of it, at any moment: commands that wait, operations on their way, what every die and
//! channel is in the middle of, and the events to come. Parameters are not saved; the fingerprint
//! stands for them. Observation is no part of the state: the path of a request that is in flight
//! when a device is restored is of unknown cause up to then.

use std::cmp::Reverse;

use profile::flash::NONE;

use super::{Engine, Happening, Kind, PageOp};
use crate::SnapshotError;
use crate::flash::gc::Victim;
use crate::flash::snapshot::{Reader, Writer};

const KINDS: [Kind; 6] =
    [Kind::Read, Kind::Merge, Kind::Write, Kind::MapRead, Kind::MapMerge, Kind::MapWrite];

impl<V: Victim> Engine<V> {
    pub fn save(&self, to: &mut Writer) {
        self.store.save(to);
        self.host.save(to);
        to.u64(self.ops.len() as u64);
        for PageOp { kind, lpn, plane, bytes, stream, slot, version } in &self.ops {
            let kind = KINDS.iter().position(|own| own == kind).expect("one of them") as u32;
            to.u32s(&[kind, *lpn, *plane, *bytes, u32::from(*stream), *slot, *version]);
        }
        to.list(self.unused_ops.iter().copied());
        to.list(self.held.iter().copied());
        self.dies.iter().for_each(|die| die.save(to));
        self.buses.iter().for_each(|bus| bus.save(to));
        if let Some(cache) = &self.map_cache {
            cache.save(to);
        }
        self.stale.iter().for_each(|pages| to.list(pages.iter().copied()));
        let mut events: Vec<_> = self.events.iter().map(|Reverse(event)| *event).collect();
        events.sort_unstable();
        to.u64(events.len() as u64);
        for (at, order, what) in events {
            let [kind, number, generation] = numbers(what);
            to.u64s(&[at, order]);
            to.u32s(&[kind, number, generation]);
        }
        to.u64(self.completed.len() as u64);
        self.completed.iter().for_each(|(at, ticket)| to.u64s(&[*at, *ticket]));
        let pending: Vec<u32> = self.pending.iter().map(|count| u32::from(*count)).collect();
        to.u32s(&pending);
        to.u32s(&self.newest);
        to.u32s(&[self.writes, self.next_plane]);
        to.u64s(&self.figures());
    }

    fn figures(&self) -> [u64; 7] {
        [
            self.clock,
            self.scheduled,
            self.interface_free_at,
            self.sensings,
            self.suspends,
            self.map_pages_written,
            self.buffered_pages,
        ]
    }

    pub fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.store.load(from)?;
        self.host.load(from)?;
        self.load_operations(from)?;
        let (count, planes, dies) = (self.ops.len(), self.planes.len(), self.dies.len());
        for die in &mut self.dies {
            die.load(from, count, planes as u32)?;
        }
        for bus in &mut self.buses {
            bus.load(from, dies)?;
        }
        if let Some(cache) = &mut self.map_cache {
            cache.load(from, count)?;
        }
        let map_pages = self.store.page_count() - self.logical_pages as usize;
        for pages in &mut self.stale {
            *pages = from.list(map_pages)?;
        }
        self.load_events(from)?;
        let mut pending = vec![0; self.pending.len()];
        from.u32s(&mut pending)?;
        self.pending = pending.into_iter().map(|count| count as u16).collect();
        from.u32s(&mut self.newest)?;
        let mut numbers = [0; 2];
        from.u32s(&mut numbers)?;
        self.writes = numbers[0];
        self.next_plane = numbers[1] % planes as u32;
        let mut figures = [0; 7];
        from.u64s(&mut figures)?;
        let [clock, scheduled, interface_free_at, sensings, suspends, map_written, buffered] =
            figures;
        (self.clock, self.scheduled, self.interface_free_at) =
            (clock, scheduled, interface_free_at);
        (self.sensings, self.suspends) = (sensings, suspends);
        (self.map_pages_written, self.buffered_pages) = (map_written, buffered);
        Ok(())
    }

    fn load_operations(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let (pages, planes) = (self.store.page_count(), self.planes.len() as u32);
        self.ops.clear();
        for _ in 0..from.count()? {
            let mut numbers = [0; 7];
            from.u32s(&mut numbers)?;
            let [kind, lpn, plane, bytes, stream, slot, version] = numbers;
            let kind = *KINDS.get(kind as usize).ok_or_else(|| from.damaged())?;
            let is_slot = slot == NONE || (slot as usize) < self.host.command_count();
            if lpn as usize >= pages || (plane >= planes && plane != NONE) || !is_slot {
                return Err(from.damaged());
            }
            let stream = u16::try_from(stream).map_err(|_| from.damaged())?;
            self.ops.push(PageOp { kind, lpn, plane, bytes, stream, slot, version });
        }
        self.unused_ops = from.list(self.ops.len())?;
        self.held = from.list(self.ops.len())?;
        Ok(())
    }

    fn load_events(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.events.clear();
        for _ in 0..from.count()? {
            let (mut times, mut what) = ([0; 2], [0; 3]);
            from.u64s(&mut times)?;
            from.u32s(&mut what)?;
            let what = self.happening(what).ok_or_else(|| from.damaged())?;
            self.events.push(Reverse((times[0], times[1], what)));
        }
        self.completed.clear();
        for _ in 0..from.count()? {
            let mut pair = [0; 2];
            from.u64s(&mut pair)?;
            self.completed.push_back((pair[0], pair[1]));
        }
        Ok(())
    }

    fn happening(&self, [kind, number, generation]: [u32; 3]) -> Option<Happening> {
        let below = |end: usize| Some(number).filter(|number| (*number as usize) < end);
        Some(match kind {
            0 => Happening::Die(below(self.dies.len())?, generation),
            1 => Happening::Channel(below(self.buses.len())?),
            2 => Happening::Received(below(self.host.command_count())?),
            3 => Happening::Complete(below(self.host.command_count())?),
            4 => Happening::Rested(below(self.dies.len())?, generation),
            _ => return None,
        })
    }
}

fn numbers(what: Happening) -> [u32; 3] {
    match what {
        Happening::Die(die, generation) => [0, die, generation],
        Happening::Channel(channel) => [1, channel, 0],
        Happening::Received(slot) => [2, slot, 0],
        Happening::Complete(slot) => [3, slot, 0],
        Happening::Rested(die, generation) => [4, die, generation],
    }
}
