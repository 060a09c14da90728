//! Multi-plane commands: planes of a die that read, program, copy or erase together.
//!
//! The rule is that of the timelines ([`crate::flash::nand`]; ONFI 5.1, section 5.7): one command
//! serves pages with the same number in different planes of a die. Their data cross the channel one
//! after another, the cells work once. What the timelines cannot do is join what waits: here a
//! command takes along whatever is in the queue of its die when it begins, and a program also what
//! came while its data were loaded.
//!
//! - **Dies wait for the whole request** before they begin, so that its pages can join.
//! - **Planes that fell behind** are programmed first, so that all are in step again; a firmware
//!   that writes superblocks never lets them fall out of it.
//! - **Cleaning** takes along the planes of the die that are short of blocks too. All pages are
//!   moved before the victims are erased together.
//!
//! Invariants: an operation joins once; a command has at most one page of each plane, all with the
//! same number. Tested by the arithmetic of saturated geometries and against an independent count.

use profile::flash::NONE;

use super::{Engine, PageOp};
use crate::flash::event::Reason;
use crate::flash::gc::Victim;

/// Operations of a queue that are looked at for one to join.
const LOOK_MOST: usize = 256;

impl<V: Victim> Engine<V> {
    /// What die `at` transfers after operation `number`, as part of the same command.
    pub(super) fn transferred_next(&mut self, at: u32, number: u32) -> Option<u32> {
        if self.ops[number as usize].kind.writes() {
            let next = self.write_beside(at, number)?;
            self.dies[at as usize].joined.push(number);
            self.note_turn(at, next);
            return Some(next);
        }
        let joined = &mut self.dies[at as usize].joined;
        (!joined.is_empty()).then(|| joined.remove(0))
    }

    /// A write that waits for die `at` and can be programmed with `number`, whose data were just
    /// loaded, and those loaded before; it no longer waits.
    fn write_beside(&mut self, at: u32, number: u32) -> Option<u32> {
        let die = &self.dies[at as usize];
        if !self.multi_plane || die.joined.len() as u32 + 1 == self.store.geometry.planes_per_die {
            return None;
        }
        let PageOp { plane, stream, .. } = self.ops[number as usize];
        let page = self.store.next_number(plane, stream)?;
        let takes_part = |plane: u32| {
            let mut own = die.joined.iter().chain([&number]);
            own.any(|own| self.ops[*own as usize].plane == plane)
        };
        let place = die.others.iter().take(LOOK_MOST).position(|other| {
            let PageOp { kind, plane, stream, .. } = self.ops[*other as usize];
            kind.writes()
                && !takes_part(plane)
                && self.store.next_number(plane, stream) == Some(page)
        })?;
        self.dies[at as usize].others.remove(place)
    }

    /// The place among what waits for die `at` of the write that goes first: the one in front, or
    /// one whose plane is behind: by less than half a block, since numbers begin again with each.
    pub(super) fn furthest_behind(&self, at: u32) -> usize {
        let others = &self.dies[at as usize].others;
        if !self.multi_plane || others.len() == 1 {
            return 0;
        }
        let pages = self.store.geometry.pages_per_block;
        let number_of = |op: &u32| {
            let PageOp { kind, plane, stream, .. } = self.ops[*op as usize];
            let page = kind.writes().then(|| self.store.next_number(plane, stream)).flatten();
            page.filter(|page| *page < pages)
        };
        let Some(front) = number_of(&others[0]) else { return 0 };
        let behind = |(place, op): (usize, &u32)| {
            let by = (front + pages - number_of(op)?) % pages;
            (by < pages / 2).then_some((by, std::cmp::Reverse(place)))
        };
        let furthest = others.iter().take(LOOK_MOST).enumerate().filter_map(behind).max();
        furthest.map_or(0, |(_, std::cmp::Reverse(place))| place)
    }

    /// Reads that wait for die `at` and can be sensed with `number`; they no longer wait.
    pub(super) fn reads_beside(&mut self, at: u32, number: u32) -> Vec<u32> {
        if !self.multi_plane {
            return Vec::new();
        }
        // A page that was overwritten elsewhere while its read waited has no number any more.
        let number_of = |op: u32| {
            let PageOp { lpn, plane, .. } = self.ops[op as usize];
            let ppn = self.store.find(lpn).filter(|ppn| self.store.plane_of(*ppn) == plane)?;
            Some(self.store.timed_page(ppn))
        };
        let Some(page) = number_of(number) else { return Vec::new() };
        let mut planes = vec![self.ops[number as usize].plane];
        let mut joined = Vec::new();
        let die = &self.dies[at as usize];
        for &other in die.reads.iter().take(LOOK_MOST).chain(die.others.iter().take(LOOK_MOST)) {
            let PageOp { kind, plane, .. } = self.ops[other as usize];
            let fits = !kind.writes() && plane != NONE && !planes.contains(&plane);
            if fits && number_of(other) == Some(page) {
                planes.push(plane);
                joined.push(other);
            }
        }
        if !joined.is_empty() {
            let die = &mut self.dies[at as usize];
            die.reads.retain(|other| !joined.contains(other));
            die.others.retain(|other| !joined.contains(other));
        }
        joined
    }

    /// Adds to the plane that is cleaned those of die `at` for which there is the same reason.
    pub(super) fn cleaned_beside(&mut self, at: u32, planes: &mut Vec<u32>, reason: Reason) {
        if !self.multi_plane {
            return;
        }
        let first = at * self.store.geometry.planes_per_die;
        for plane in first..first + self.store.geometry.planes_per_die {
            let wants = match reason {
                Reason::Short => self.store.blocks.free_count(plane) < self.start_below,
                Reason::Full => self.store.must_fold(plane),
                Reason::Idle => self.store.can_fold(plane),
            };
            if plane != planes[0] && wants && self.cleans(plane, reason) {
                planes.push(plane);
            }
        }
    }

    /// Keeps those of `planes` that move a page next, together, and gives the number that it gets;
    /// none where all victims can be erased.
    pub(super) fn move_first(&self, planes: &mut Vec<u32>) -> Option<u32> {
        let mut movers = planes.clone();
        movers.retain(|plane| self.store.has_live(*plane));
        let number_of = |plane: u32| self.store.next_moved_number(plane);
        let reference = number_of(*movers.first()?);
        // Behind is what comes less than half a block before.
        let pages = self.store.geometry.pages_per_block;
        let behind =
            |page: u32| Some((reference + pages - page) % pages).filter(|by| *by < pages / 2);
        let numbers = movers.iter().map(|plane| number_of(*plane));
        let to = numbers.max_by_key(|page| behind(*page)).expect("one mover at least");
        movers.retain(|plane| number_of(*plane) == to);
        *planes = movers;
        Some(to)
    }
}
