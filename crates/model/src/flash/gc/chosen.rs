//! A policy that is chosen when the device is made, not when the program is compiled.
//!
//! Every policy that a translation layer is compiled for costs seconds of build time, and the code
//! for it. Only the usual one, [`Greedy`], is compiled into the layers directly; the others are
//! called through [`Chosen`], at the price of a branch per call that always goes the same way. See
//! `docs/journal/2026-11-22-build-time.md`.

use profile::flash::{FlashParameters, GcPolicy};

use super::{ByStream, CostBenefit, DChoices, Fifo, Greedy, PolicyContext, Victim, Windowed};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};

/// One of the policies.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// The block with the fewest live pages.
    Greedy(Greedy),
    /// The block closed first.
    Fifo(Fifo),
    /// The best of some drawn at random.
    DChoices(DChoices),
    /// The best of those closed first.
    Windowed(Windowed),
    /// Few live pages and long undisturbed.
    CostBenefit(CostBenefit),
    /// Shares of the blocks for streams.
    ByStream(ByStream),
}

impl Chosen {
    /// The policy of `parameters`, with no closed block yet.
    pub fn new(parameters: &FlashParameters, seed: u64) -> Self {
        let context = PolicyContext { geometry: &parameters.geometry, pools_per_plane: 1, seed };
        let shares = &parameters.streams.block_shares;
        match parameters.gc.policy {
            policy if !shares.is_empty() => {
                let greedy = policy == GcPolicy::Greedy;
                Self::ByStream(ByStream::new(&context, shares, greedy))
            }
            GcPolicy::Greedy => Self::Greedy(Greedy::new(&context)),
            GcPolicy::Fifo => Self::Fifo(Fifo::new(&context)),
            GcPolicy::DChoices(count) => Self::DChoices(DChoices::new(&context, count)),
            GcPolicy::Windowed(blocks) => Self::Windowed(Windowed::new(&context, blocks)),
            GcPolicy::CostBenefit => Self::CostBenefit(CostBenefit::new(&context)),
        }
    }
}

/// Calls the same method of whichever policy it is.
macro_rules! each {
    ($chosen:expr, $policy:ident => $call:expr) => {
        match $chosen {
            Chosen::Greedy($policy) => $call,
            Chosen::Fifo($policy) => $call,
            Chosen::DChoices($policy) => $call,
            Chosen::Windowed($policy) => $call,
            Chosen::CostBenefit($policy) => $call,
            Chosen::ByStream($policy) => $call,
        }
    };
}

impl Victim for Chosen {
    fn opened(&mut self, plane: u32, block: u32, stream: u8) {
        each!(self, policy => policy.opened(plane, block, stream));
    }

    fn closed(&mut self, plane: u32, block: u32, valid: u16) {
        each!(self, policy => policy.closed(plane, block, valid));
    }

    #[inline]
    fn invalidated(&mut self, plane: u32, block: u32, valid: u16) {
        each!(self, policy => policy.invalidated(plane, block, valid));
    }

    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        each!(self, policy => policy.take(plane, blocks))
    }

    fn remove(&mut self, plane: u32, block: u32, blocks: &Blocks) {
        each!(self, policy => policy.remove(plane, block, blocks));
    }

    fn steady_tail(&self, rho: f64, pages: u32) -> Option<Vec<f64>> {
        each!(self, policy => policy.steady_tail(rho, pages))
    }

    fn save(&self, to: &mut Writer) {
        each!(self, policy => policy.save(to));
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        each!(self, policy => policy.load(from))
    }
}
