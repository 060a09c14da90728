//! Packs rows into clusters and sends them off, a few at a time.

use crate::error::Error;
use crate::medium::Medium;
use crate::queue::Queue;
use crate::space::{Space, Stretch};

/// A ring of slots: one is filled while the others are under way.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    first_slot: u32,
    slots: u32,
    /// Slot being filled, from the first.
    current: u32,
    /// Rows in it.
    filled: u64,
    width: usize,
    rows_per_cluster: u64,
}

impl Writer {
    /// On `slots` slots of a queue from `first_slot` on.
    pub(crate) fn new(
        first_slot: u32,
        slots: u32,
        width_bytes: u32,
        rows_per_cluster: u64,
    ) -> Self {
        let width = width_bytes as usize;
        Self { first_slot, slots, current: 0, filled: 0, width, rows_per_cluster }
    }

    /// Adds a row to the cluster being filled; whether that is full now and must be sent.
    #[inline]
    pub(crate) fn put<M: Medium>(
        &mut self,
        queue: &mut Queue<'_, M>,
        row: &[u8],
    ) -> Result<bool, Error> {
        let slot = self.first_slot + self.current;
        if self.filled == 0 {
            queue.settle(slot)?;
        }
        let start = self.filled as usize * self.width;
        queue.slot(slot)[start..start + self.width].copy_from_slice(row);
        self.filled += 1;
        Ok(self.filled == self.rows_per_cluster)
    }

    /// Sends the cluster, full or not, to the end of `stretch`; `false` where it holds nothing.
    pub(crate) fn send<M: Medium>(
        &mut self,
        queue: &mut Queue<'_, M>,
        space: &mut Space,
        stretch: &mut Stretch,
        stream: u16,
    ) -> Result<bool, Error> {
        if self.filled == 0 {
            return Ok(false);
        }
        let slot = self.first_slot + self.current;
        queue.write(slot, space.append(stretch), stream)?;
        stretch.rows += self.filled;
        self.filled = 0;
        self.current = (self.current + 1) % self.slots;
        Ok(true)
    }
}
