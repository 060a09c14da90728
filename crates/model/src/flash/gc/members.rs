//! The closed blocks of every plane in the order in which they were closed: what FIFO and windowed
//! cleaning choose from.

use std::collections::VecDeque;

use crate::SnapshotError;
use crate::flash::snapshot::{Reader, Writer};

/// Closed blocks by plane, the one closed first in front.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Queues(Vec<VecDeque<u32>>);

impl Queues {
    pub(super) fn new(planes: u32) -> Self {
        Self(vec![VecDeque::new(); planes as usize])
    }

    pub(super) fn push(&mut self, plane: u32, block: u32) {
        self.0[plane as usize].push_back(block);
    }

    pub(super) fn of(&self, plane: u32) -> &VecDeque<u32> {
        &self.0[plane as usize]
    }

    /// Takes out the block at `place` from the front.
    pub(super) fn take(&mut self, plane: u32, place: usize) -> Option<u32> {
        self.0[plane as usize].remove(place)
    }

    /// Takes out `block`, wherever it is.
    pub(super) fn remove(&mut self, plane: u32, block: u32) {
        let place = self.of(plane).iter().position(|own| *own == block);
        self.take(plane, place.expect("a closed block is in the queue"));
    }

    pub(super) fn save(&self, to: &mut Writer) {
        for queue in &self.0 {
            to.u32(queue.len() as u32);
            for block in queue {
                to.u32(*block);
            }
        }
    }

    /// Reads back, refusing block numbers from `block_count` on.
    pub(super) fn load(
        &mut self,
        from: &mut Reader,
        block_count: u32,
    ) -> Result<(), SnapshotError> {
        for queue in &mut self.0 {
            queue.clear();
            for _ in 0..from.u32()? {
                let block = from.u32()?;
                if block >= block_count {
                    return Err(from.damaged());
                }
                queue.push_back(block);
            }
        }
        Ok(())
    }
}
