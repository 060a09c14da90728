//! FIFO: clean the block that was closed first, as a log does.
//!
//! The policy of log-structured devices and the one with the simplest theory (Menon and Robinson;
//! [`crate::flash::theory::fifo`]). It levels wear by itself.

use super::members::Queues;
use super::{PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::theory;

/// The closed blocks of every plane in the order of their closing.
#[derive(Clone, Debug, PartialEq)]
pub struct Fifo {
    queues: Queues,
    block_count: u32,
}

impl Fifo {
    /// No closed block yet.
    pub fn new(context: &PolicyContext) -> Self {
        let geometry = context.geometry;
        Self { queues: Queues::new(context.pool_count()), block_count: geometry.block_count() }
    }
}

impl Victim for Fifo {
    fn closed(&mut self, plane: u32, block: u32, _valid: u16) {
        self.queues.push(plane, block);
    }

    #[inline]
    fn invalidated(&mut self, _plane: u32, _block: u32, _valid: u16) {}

    fn take(&mut self, plane: u32, _blocks: &Blocks) -> Option<u32> {
        self.queues.take(plane, 0)
    }

    fn remove(&mut self, plane: u32, block: u32, _blocks: &Blocks) {
        self.queues.remove(plane, block);
    }

    fn steady_tail(&self, rho: f64, pages: u32) -> Option<Vec<f64>> {
        Some(theory::fifo_tail(rho, pages))
    }

    fn save(&self, to: &mut Writer) {
        self.queues.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.queues.load(from, self.block_count)
    }
}
