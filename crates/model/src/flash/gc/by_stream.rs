//! Shares of the blocks for streams: a stream that holds more than its share is cleaned.
//!
//! Where every stream is written to blocks of its own, and moved pages stay in their stream, each
//! is a log for itself. A policy that looks at all blocks alike gives such logs the same fill,
//! which is the best for none: data that die fast repay room, data that hardly die do not (Stoica
//! and Ailamaki, "Improving Flash Write Performance by Using Update Frequency", VLDB 2013;
//! Desnoyers, ACM TOS 2014). So each stream is given a share of the blocks, the one that exceeds
//! its share most is cleaned, and [`crate::flash::theory::two_logs`] says which shares are best.
//!
//! Within a stream victims are chosen by [`Greedy`] or [`Fifo`]. A block without a dead page is
//! closed anew and the next stream is tried, so that a share too small for its data costs nothing;
//! where all streams offer such a block, it is taken.
//!
//! Invariants: those of a policy; the blocks of all streams are the blocks of the plane that are
//! neither free nor retired. Tested by the slow oracle and by the closed form of separated logs.

use super::{Fifo, Greedy, PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};

/// The policy within a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Within {
    /// The block with the fewest live pages.
    Greedy(Greedy),
    /// The block closed first.
    Fifo(Fifo),
}

impl Within {
    fn closed(&mut self, pool: u32, block: u32, valid: u16) {
        match self {
            Self::Greedy(policy) => policy.closed(pool, block, valid),
            Self::Fifo(policy) => policy.closed(pool, block, valid),
        }
    }

    fn take(&mut self, pool: u32, blocks: &Blocks) -> Option<u32> {
        match self {
            Self::Greedy(policy) => policy.take(pool, blocks),
            Self::Fifo(policy) => policy.take(pool, blocks),
        }
    }
}

/// Cleans the stream that exceeds its share most.
#[derive(Clone, Debug, PartialEq)]
pub struct ByStream {
    within: Within,
    /// Of the blocks of a plane, by stream; they sum to 1.
    shares: Vec<f64>,
    /// By plane, then stream: blocks that are not free.
    used: Vec<u32>,
    /// By block.
    stream: Vec<u8>,
    pages_per_block: u16,
}

impl ByStream {
    /// No closed block yet; `shares` of the streams, greedy within them or first in, first out.
    pub fn new(context: &PolicyContext, shares: &[f64], greedy: bool) -> Self {
        let sum: f64 = shares.iter().sum();
        let context = PolicyContext { pools_per_plane: shares.len() as u32, ..*context };
        Self {
            within: if greedy {
                Within::Greedy(Greedy::new(&context))
            } else {
                Within::Fifo(Fifo::new(&context))
            },
            shares: shares.iter().map(|share| share / sum).collect(),
            used: vec![0; context.pool_count() as usize],
            stream: vec![0; context.geometry.block_count() as usize],
            pages_per_block: context.geometry.pages_per_block as u16,
        }
    }

    fn pool(&self, plane: u32, block: u32) -> u32 {
        plane * self.shares.len() as u32 + u32::from(self.stream[block as usize])
    }

    /// The streams of `plane`, the one that exceeds its share most first.
    fn by_excess(&self, plane: u32) -> Vec<u32> {
        let streams = self.shares.len();
        let used = &self.used[plane as usize * streams..][..streams];
        let excess =
            |stream: &u32| f64::from(used[*stream as usize]) / self.shares[*stream as usize];
        let mut order: Vec<u32> = (0..streams as u32).collect();
        order.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
        order
    }
}

impl Victim for ByStream {
    fn opened(&mut self, plane: u32, block: u32, stream: u8) {
        self.stream[block as usize] = stream;
        let pool = self.pool(plane, block);
        self.used[pool as usize] += 1;
    }

    fn closed(&mut self, plane: u32, block: u32, valid: u16) {
        let pool = self.pool(plane, block);
        self.within.closed(pool, block, valid);
    }

    #[inline]
    fn invalidated(&mut self, plane: u32, block: u32, valid: u16) {
        let pool = self.pool(plane, block);
        match &mut self.within {
            Within::Greedy(policy) => policy.invalidated(pool, block, valid),
            Within::Fifo(policy) => policy.invalidated(pool, block, valid),
        }
    }

    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        let first = plane * self.shares.len() as u32;
        let mut whole = None;
        for stream in self.by_excess(plane) {
            let pool = first + stream;
            let Some(block) = self.within.take(pool, blocks) else { continue };
            if blocks.get(block).valid < self.pages_per_block {
                self.used[pool as usize] -= 1;
                return Some(block);
            }
            self.within.closed(pool, block, self.pages_per_block);
            whole = whole.or(Some(pool));
        }
        let pool = whole?;
        self.used[pool as usize] -= 1;
        self.within.take(pool, blocks)
    }

    fn remove(&mut self, plane: u32, block: u32, blocks: &Blocks) {
        let pool = self.pool(plane, block);
        self.used[pool as usize] -= 1;
        match &mut self.within {
            Within::Greedy(policy) => policy.remove(pool, block, blocks),
            Within::Fifo(policy) => policy.remove(pool, block, blocks),
        }
    }

    fn save(&self, to: &mut Writer) {
        match &self.within {
            Within::Greedy(policy) => policy.save(to),
            Within::Fifo(policy) => policy.save(to),
        }
        to.u32s(&self.used);
        let streams: Vec<u32> = self.stream.iter().map(|stream| u32::from(*stream)).collect();
        to.u32s(&streams);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        match &mut self.within {
            Within::Greedy(policy) => policy.load(from)?,
            Within::Fifo(policy) => policy.load(from)?,
        }
        from.u32s(&mut self.used)?;
        let mut streams = vec![0; self.stream.len()];
        from.u32s(&mut streams)?;
        for (own, stream) in self.stream.iter_mut().zip(streams) {
            if stream as usize >= self.shares.len() {
                return Err(from.damaged());
            }
            *own = stream as u8;
        }
        Ok(())
    }
}
