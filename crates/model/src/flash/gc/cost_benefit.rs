//! Cost-benefit: prefer blocks that are both sparsely live and long undisturbed.
//!
//! The victim has the greatest `age * (1 - u) / (2 u)`, where `u` is the live share of its pages
//! and the age counts from its last change, in changes to closed blocks of its plane (Kawaguchi,
//! Nishioka and Motoda, "A Flash-Memory Based File System", USENIX 1995, after the log-structured
//! file system's policy). A block without live pages is always best; among equals the one with the
//! lower number is taken.
//!
//! Ages order blocks differently at every moment, so a victim costs a look at every block of the
//! plane: use planes of at most some thousand blocks.

use super::{PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::blocks::BlockState;
use crate::flash::snapshot::{Reader, Writer};

/// When each closed block was last changed.
#[derive(Clone, Debug, PartialEq)]
pub struct CostBenefit {
    pages_per_block: u16,
    /// By plane: changes so far.
    clock: Vec<u64>,
    /// By block: the clock of its plane at its last change.
    changed_at: Vec<u64>,
}

impl CostBenefit {
    /// No closed block yet.
    pub fn new(context: &PolicyContext) -> Self {
        Self {
            pages_per_block: context.geometry.pages_per_block as u16,
            clock: vec![0; context.geometry.plane_count() as usize],
            changed_at: vec![0; context.geometry.block_count() as usize],
        }
    }

    #[inline]
    fn changed(&mut self, plane: u32, block: u32) {
        let clock = &mut self.clock[plane as usize];
        *clock += 1;
        self.changed_at[block as usize] = *clock;
    }

    fn merit(&self, plane: u32, block: u32, blocks: &Blocks) -> f64 {
        let valid = blocks.get(block).valid;
        let age = self.clock[plane as usize] - self.changed_at[block as usize];
        let dead = f64::from(self.pages_per_block - valid);
        // No live page: infinitely good. Without the 1 the youngest block would never be taken.
        (age + 1) as f64 * dead / (2.0 * f64::from(valid))
    }
}

impl Victim for CostBenefit {
    fn closed(&mut self, plane: u32, block: u32, _valid: u16) {
        self.changed(plane, block);
    }

    #[inline]
    fn invalidated(&mut self, plane: u32, block: u32, _valid: u16) {
        self.changed(plane, block);
    }

    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        let all = blocks.of_plane(plane);
        let closed = all.filter(|block| blocks.get(*block).state == BlockState::Closed);
        let merits = closed.map(|block| (self.merit(plane, block, blocks), block));
        merits
            .reduce(|best, other| if other.0 > best.0 { other } else { best })
            .map(|(_, block)| block)
    }

    fn remove(&mut self, _plane: u32, _block: u32, _blocks: &Blocks) {}

    fn save(&self, to: &mut Writer) {
        to.u64s(&self.clock);
        to.u64s(&self.changed_at);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u64s(&mut self.clock)?;
        from.u64s(&mut self.changed_at)
    }
}
