//! Windowed greedy: of the blocks that were closed first, clean the one with the fewest live pages.
//!
//! Between FIFO (a window of one block) and greedy (all blocks); Hu et al., "Write Amplification
//! Analysis in Flash-Based Solid State Drives", SYSTOR 2009. Among equals the older one is taken.

use super::members::Queues;
use super::{PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};

/// The closed blocks of every plane in the order of their closing, and the length of the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Windowed {
    queues: Queues,
    window_blocks: usize,
    block_count: u32,
}

impl Windowed {
    /// No closed block yet; a window of `window_blocks`, at least one.
    pub fn new(context: &PolicyContext, window_blocks: u32) -> Self {
        Self {
            queues: Queues::new(context.geometry.plane_count()),
            window_blocks: window_blocks.max(1) as usize,
            block_count: context.geometry.block_count(),
        }
    }
}

impl Victim for Windowed {
    fn closed(&mut self, plane: u32, block: u32, _valid: u16) {
        self.queues.push(plane, block);
    }

    #[inline]
    fn invalidated(&mut self, _plane: u32, _block: u32, _valid: u16) {}

    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        let window = self.queues.of(plane).iter().take(self.window_blocks).enumerate();
        let best = window.min_by_key(|(_, block)| blocks.get(**block).valid);
        let place = best.map(|(place, _)| place)?;
        self.queues.take(plane, place)
    }

    fn remove(&mut self, plane: u32, block: u32, _blocks: &Blocks) {
        self.queues.remove(plane, block);
    }

    fn save(&self, to: &mut Writer) {
        self.queues.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.queues.load(from, self.block_count)
    }
}
