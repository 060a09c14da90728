//! Reads the clusters of a part in order, a few ahead.

use std::collections::VecDeque;

use crate::error::Error;
use crate::medium::Medium;
use crate::queue::Queue;
use crate::space::{Space, Stretch};

/// A part that is read from its start.
pub(super) struct Reader<'s> {
    stretch: &'s Stretch,
    stream: u16,
    rows_per_cluster: u64,
    /// Next cluster to ask for.
    next: u64,
    /// Rows not handed out yet.
    left: u64,
    /// Clusters under way or here, oldest first.
    slots: VecDeque<u32>,
    /// The slot handed out last, to be used again.
    spare: Option<u32>,
    /// Whether this is the last time that the part is read.
    last_time: bool,
}

impl<'s> Reader<'s> {
    /// On `slots` slots of the queue from `first_slot` on.
    pub(super) fn new<M: Medium>(
        queue: &mut Queue<'_, M>,
        space: &mut Space,
        (stretch, stream): (&'s Stretch, u16),
        (first_slot, slots): (u32, u32),
        (rows_per_cluster, last_time): (u64, bool),
    ) -> Result<Self, Error> {
        let mut reader = Self {
            stretch,
            stream,
            rows_per_cluster,
            next: 0,
            left: stretch.rows,
            slots: VecDeque::new(),
            spare: None,
            last_time,
        };
        for slot in first_slot..first_slot + slots {
            reader.request(queue, space, slot)?;
        }
        Ok(reader)
    }

    fn request<M: Medium>(
        &mut self,
        queue: &mut Queue<'_, M>,
        space: &mut Space,
        slot: u32,
    ) -> Result<(), Error> {
        if self.next == self.stretch.clusters {
            return Ok(());
        }
        let offset = space.offset(self.stretch, self.next);
        self.next += 1;
        self.slots.push_back(slot);
        queue.read(slot, offset, self.stream)
    }

    /// The next cluster: its slot and its rows. It is the caller's until the next call.
    pub(super) fn next<M: Medium>(
        &mut self,
        queue: &mut Queue<'_, M>,
        space: &mut Space,
    ) -> Result<Option<(u32, u64)>, Error> {
        if let Some(slot) = self.spare.take() {
            self.request(queue, space, slot)?;
        }
        let Some(slot) = self.slots.pop_front() else { return Ok(None) };
        queue.settle(slot)?;
        queue.arrived();
        if self.last_time {
            let cluster = self.next - self.slots.len() as u64 - 1;
            space.consumed(self.stretch, cluster);
        }
        let rows = self.left.min(self.rows_per_cluster);
        self.left -= rows;
        self.spare = Some(slot);
        queue.worked(rows);
        Ok(Some((slot, rows)))
    }
}
