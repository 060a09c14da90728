//! Pages of requests and of the map on their way from the map to a die.

use profile::flash::{AllocationScheme, NONE};
use trace::Op;

use super::{Engine, Kind, PageOp};
use crate::flash::event::array::Work;
use crate::flash::event::map_cache::Lookup;
use crate::flash::gc::Victim;
use crate::observe::Cause;

impl<V: Victim> Engine<V> {
    pub(super) fn op(&mut self, op: PageOp) -> u32 {
        let number = self.unused_ops.pop().unwrap_or(self.ops.len() as u32);
        if number as usize == self.ops.len() {
            self.ops.push(op);
        } else {
            self.ops[number as usize] = op;
        }
        self.note_operation(number);
        number
    }

    pub(super) fn page(&mut self, slot: u32, op: Op, (lpn, bytes): (u32, u32), stream: u16) {
        let kind = if op == Op::Read { Kind::Read } else { Kind::Write };
        let number = self.op(PageOp { kind, lpn, plane: NONE, bytes, stream, slot, version: 0 });
        if let Some(cache) = &mut self.map_cache {
            let page = cache.page_of(lpn);
            match cache.look_up(page, number, op == Op::Write) {
                Lookup::Hit => {}
                Lookup::Miss => return self.fetch_map(page),
                Lookup::Fetching => return,
            }
        }
        self.mapped(number);
    }

    pub(super) fn fetch_map(&mut self, page: u32) {
        let lpn = self.logical_pages + page;
        match self.store.find(lpn) {
            None => self.map_fetched(page),
            Some(ppn) => {
                let plane = self.store.plane_of(ppn);
                self.queue_map_op(Kind::MapRead, lpn, plane);
            }
        }
    }

    pub(super) fn map_fetched(&mut self, page: u32) {
        let cache = self.map_cache.as_mut().expect("a map cache");
        let (waiting, out) = cache.fetched(page);
        for number in &waiting {
            if self.ops[*number as usize].kind == Kind::Write {
                cache.change(page);
            }
        }
        if let Some(out) = out {
            self.write_map(self.logical_pages + out);
        }
        for number in waiting {
            self.mapped(number);
        }
    }

    pub(super) fn write_map(&mut self, lpn: u32) {
        let number = self.map_op(Kind::MapWrite, lpn, NONE);
        self.place(number);
    }

    pub(super) fn queue_map_op(&mut self, kind: Kind, lpn: u32, plane: u32) {
        let number = self.map_op(kind, lpn, plane);
        self.queue(number);
    }

    fn map_op(&mut self, kind: Kind, lpn: u32, plane: u32) -> u32 {
        let bytes = self.store.geometry.page_bytes;
        self.op(PageOp { kind, lpn, plane, bytes, stream: 0, slot: NONE, version: 0 })
    }

    /// The place of the page of `number` is known.
    pub(super) fn mapped(&mut self, number: u32) {
        self.note(number, Cause::Mapping, self.clock);
        let PageOp { kind, lpn, bytes, slot, .. } = self.ops[number as usize];
        let place = self.store.find(lpn);
        let on_its_way = self.pending[lpn as usize] > 0;
        if kind == Kind::Read {
            match place {
                Some(ppn) if !on_its_way => {
                    self.store.counts.read_pages += 1;
                    self.ops[number as usize].plane = self.store.plane_of(ppn);
                    self.queue(number);
                }
                _ => {
                    self.buffered_pages += u64::from(on_its_way);
                    self.store.counts.unwritten_pages += u64::from(!on_its_way);
                    self.note_part(number);
                    self.unused_ops.push(number);
                    self.part_done(slot);
                }
            }
            return;
        }
        self.writes = self.writes.wrapping_add(1);
        self.ops[number as usize].version = self.writes;
        self.pending[lpn as usize] += 1;
        self.store.counts.host_pages += 1;
        if let Some(ppn) = place.filter(|_| bytes < self.store.geometry.page_bytes && !on_its_way) {
            self.store.counts.merged_pages += 1;
            self.ops[number as usize].kind = Kind::Merge;
            self.ops[number as usize].plane = self.store.plane_of(ppn);
            return self.queue(number);
        }
        self.queue_write(number);
    }

    pub(super) fn queue_write(&mut self, number: u32) {
        self.ops[number as usize].kind = Kind::Write;
        self.place(number);
    }

    /// Finds a plane for what `number` writes; where none can hold one more page, since too many
    /// are on their way, it waits until an old one has died.
    fn place(&mut self, number: u32) {
        let Some(plane) = self.plane_for(self.ops[number as usize].lpn) else {
            return self.held.push_back(number);
        };
        self.store.expect(plane);
        self.ops[number as usize].plane = plane;
        self.queue(number);
    }

    /// Pages have died: what waits for that may find a plane, the oldest first.
    pub(super) fn place_held(&mut self) {
        for _ in 0..self.held.len() {
            let number = self.held.pop_front().expect("counted");
            self.place(number);
        }
    }

    /// The plane that takes `lpn`; none where all that may are full of pages, there or on their
    /// way.
    pub(super) fn plane_for(&mut self, lpn: u32) -> Option<u32> {
        let count = self.planes.len() as u32;
        let place = match self.allocation {
            AllocationScheme::Static(_) => lpn % count,
            scheme => {
                let in_turn = (0..count).map(|k| (self.next_plane + k) % count);
                let die = match scheme {
                    AllocationScheme::ByDie(_) => Some(lpn % self.dies.len() as u32),
                    _ => None,
                };
                let die = die.map(|die| self.dies_in_order[die as usize]);
                let allowed = |plane: u32| {
                    die.is_none_or(|die| die == self.die_of(plane)) && self.store.can_hold(plane)
                };
                let room = in_turn.filter(|k| allowed(self.planes[*k as usize]));
                let mut room = room.peekable();
                let first = *room.peek()?;
                let chosen = if scheme == AllocationScheme::Dynamic {
                    let load = |k: &u32| {
                        let die = self.die_of(self.planes[*k as usize]) as usize;
                        let busy = self.dies[die].work != Work::Idle;
                        self.dies[die].waiting() + usize::from(busy)
                    };
                    room.min_by_key(load).unwrap_or(first)
                } else {
                    first
                };
                self.next_plane = (chosen + 1) % count;
                chosen
            }
        };
        Some(self.planes[place as usize])
    }

    pub(super) fn die_of(&self, plane: u32) -> u32 {
        self.store.geometry.die_of_plane(plane)
    }

    pub(super) fn queue(&mut self, number: u32) {
        let PageOp { kind, plane, .. } = self.ops[number as usize];
        let at = self.die_of(plane);
        self.note_wait(at, number);
        let die = &mut self.dies[at as usize];
        let senses = matches!(kind, Kind::Read | Kind::Merge | Kind::MapRead | Kind::MapMerge);
        if senses && self.events_of.reads_first {
            die.reads.push_back(number);
        } else {
            die.others.push_back(number);
        }
        if die.work == Work::Idle {
            match &mut self.gathering {
                Some(dies) => dies.push(at),
                None => self.dispatch(at),
            }
        } else if senses {
            self.suspend(at);
        }
    }
}
