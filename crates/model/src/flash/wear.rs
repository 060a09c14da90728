//! Wear: which block is used next, when cold data move, how long the device lives.
//!
//! Blocks last a number of program/erase cycles that the cell kind sets.
//!
//! - **dynamic levelling**: of the blocks that have been free longest, the least worn one is
//!   written next.
//! - **static levelling**: data that nobody overwrites keep their block from being erased. From
//!   time to time a plane compares its blocks; where the least worn closed block lags behind the
//!   most worn block by more than a given spread, it is cleaned in place of a policy's victim, and
//!   the block joins the ones in use.
//! - **end of life**: a block that has used up its cycles is retired, as long as its plane has
//!   spare blocks; beyond that it is used on and the device counts as worn out.
//!
//! Invariants: levelling never chooses an open block; retired blocks are never opened again.

use profile::flash::WearParameters;

use super::Blocks;
use super::blocks::BlockState;
use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// What levelling remembers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WearLevelling {
    parameters: WearParameters,
    /// Choices of victims of each plane until it compares its blocks again.
    countdown: Vec<u32>,
    /// Blocks that each plane can still lose.
    spare: Vec<u32>,
}

/// Choices of victims between two comparisons: a comparison visits all blocks of a plane, so it
/// must be rarer than there are blocks to be cheap, and as often as that to keep up.
fn interval(blocks: &Blocks) -> u32 {
    (blocks.of_plane(0).len() as u32 / 16).max(1)
}

impl WearLevelling {
    pub(crate) fn new(parameters: &WearParameters, planes: usize, spare_blocks: u32) -> Self {
        Self {
            parameters: *parameters,
            countdown: vec![0; planes],
            spare: vec![spare_blocks; planes],
        }
    }

    /// How many free blocks are compared before one is opened.
    #[inline]
    pub(crate) fn look(&self) -> u32 {
        self.parameters.dynamic_look_blocks
    }

    /// The block of `plane` whose cold data should move now.
    pub(crate) fn coldest(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        let spread = self.parameters.static_spread?;
        let countdown = &mut self.countdown[plane as usize];
        if *countdown > 0 {
            *countdown -= 1;
            return None;
        }
        *countdown = interval(blocks);
        let all = blocks.of_plane(plane);
        let used = all.clone().filter(|block| blocks.get(*block).state != BlockState::Retired);
        let most = used.map(|block| blocks.get(block).erase_count).max()?;
        let closed = all.filter(|block| blocks.get(*block).state == BlockState::Closed);
        let coldest = closed.min_by_key(|block| blocks.get(*block).erase_count)?;
        if most - blocks.get(coldest).erase_count <= spread {
            return None;
        }
        Some(coldest)
    }

    /// Whether a block that was erased `erase_count` times is at its end.
    #[inline]
    pub(crate) fn is_worn_out(&self, erase_count: u32) -> bool {
        self.parameters.cycles_most.is_some_and(|most| erase_count >= most)
    }

    /// Whether `plane` has a spare block to lose.
    pub(crate) fn has_spare(&self, plane: u32) -> bool {
        self.spare[plane as usize] > 0
    }

    /// `plane` loses a spare block.
    pub(crate) fn use_spare(&mut self, plane: u32) {
        self.spare[plane as usize] -= 1;
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        to.u32s(&self.countdown);
        to.u32s(&self.spare);
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u32s(&mut self.countdown)?;
        from.u32s(&mut self.spare)
    }
}

/// How worn the blocks of a device are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Erases of the least worn block.
    pub erases_min: u32,
    /// Mean erases of a block.
    pub erases_mean: f64,
    /// Standard deviation of the erases of the blocks.
    pub erases_deviation: f64,
    /// Erases of the most worn block.
    pub erases_max: u32,
    /// Blocks that are used no more.
    pub retired_blocks: u32,
    /// Share of the cycles that is left, by the mean; `None` where blocks last for ever.
    pub life_left: Option<f64>,
}

impl Wear {
    /// The wear of `blocks` that stand `cycles_most` erases.
    pub fn of(blocks: &Blocks, cycles_most: Option<u32>) -> Self {
        let counts = || blocks.all.iter().map(|block| f64::from(block.erase_count));
        let number = blocks.all.len() as f64;
        let mean = counts().sum::<f64>() / number;
        let variance = counts().map(|count| (count - mean).powi(2)).sum::<f64>() / number;
        let extremes = || blocks.all.iter().map(|block| block.erase_count);
        let retired = blocks.all.iter().filter(|block| block.state == BlockState::Retired);
        Self {
            erases_min: extremes().min().unwrap_or(0),
            erases_mean: mean,
            erases_deviation: variance.sqrt(),
            erases_max: extremes().max().unwrap_or(0),
            retired_blocks: retired.count() as u32,
            life_left: cycles_most.map(|most| (1.0 - mean / f64::from(most)).max(0.0)),
        }
    }
}
