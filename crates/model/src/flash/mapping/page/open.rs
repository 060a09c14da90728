//! The open blocks of the page map: whose pages go where.
//!
//! The frontiers of a plane are those of the streams, then those for moved pages: none where moved
//! pages go among new ones, one for all streams, or one for each that is persistently isolated.
//!
//! Invariant: every block says for which stream it was opened. Tested with the page map and, by
//! stream, in `tests/it/flash/streams.rs`.

use super::{CLOSED, Frontier, PageMapped};
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::gc::Victim;
use crate::flash::streams::{StreamCounts, Tally};

impl<V: Victim, A: Allocation> PageMapped<V, A> {
    /// Makes sure that frontier `at` of `plane` has a page left.
    #[inline]
    pub(super) fn ready(&mut self, plane: u32, at: usize) {
        if self.frontiers[at].next == self.frontiers[at].end {
            self.turn_over(plane, at);
        }
    }

    /// Closes the full block of frontier `at`, if it has one, and opens another.
    #[cold]
    fn turn_over(&mut self, plane: u32, at: usize) {
        self.close(plane, at);
        let pages = self.geometry.pages_per_block;
        let place = at as u32 - plane * self.width;
        let block = self.open_block(plane, place, self.wear.look());
        self.frontiers[at] = Frontier { next: block * pages, end: (block + 1) * pages };
        if place < self.host_streams {
            self.tally.opened(place, pages);
        }
    }

    /// Opens a block of `plane` for the frontier at `place` of it.
    pub(super) fn open_block(&mut self, plane: u32, place: u32, look: u32) -> u32 {
        let block = self.blocks.open(plane, look);
        let of_one = place < self.host_streams || self.persistent;
        let stream = if of_one { place % self.host_streams } else { self.host_streams } as u8;
        self.blocks.all[block as usize].stream = stream;
        self.victims.opened(plane, block, stream);
        block
    }

    fn close(&mut self, plane: u32, at: usize) {
        let Frontier { next, end } = self.frontiers[at];
        debug_assert_eq!(next, end);
        if end != 0 {
            let block = self.block_of(end - 1);
            let info = &mut self.blocks.all[block as usize];
            info.state = BlockState::Closed;
            self.victims.closed(plane, block, info.valid);
            self.frontiers[at] = CLOSED;
        }
    }

    /// The frontier that takes the live pages of `victim`, a block of `plane`.
    pub(super) fn frontier_for_moves(&self, plane: u32, victim: u32) -> usize {
        let from_end = if self.persistent {
            self.host_streams - u32::from(self.blocks.get(victim).stream)
        } else {
            1
        };
        ((plane + 1) * self.width - from_end) as usize
    }

    /// Counts `count` pages of `victim` that moved to frontier `at` of `plane`.
    pub(super) fn tally_moves(&mut self, plane: u32, at: usize, victim: u32, count: u64) {
        let from = self.blocks.get(victim).stream;
        let place = at - (plane * self.width) as usize;
        self.tally.moved(from, (place < self.host_streams as usize).then_some(place), count);
    }

    /// Pages of open blocks that streams have still to write, by stream.
    fn unwritten(&self) -> Vec<u64> {
        let of_stream = |stream: u32| {
            let places = (stream..self.frontiers.len() as u32).step_by(self.width as usize);
            places
                .map(|at| self.frontiers[at as usize])
                .map(|frontier| u64::from(frontier.end - frontier.next))
                .sum()
        };
        (0..self.host_streams).map(of_stream).collect()
    }

    pub(super) fn tally(&self) -> Vec<StreamCounts> {
        self.tally.counts(&self.unwritten())
    }

    pub(super) fn reset_tally(&mut self) {
        self.tally = Tally::after(self.unwritten());
    }
}
