//! d-choices: clean the best of `d` closed blocks drawn at random.
//!
//! Nearly as good as greedy from `d = 10` on, without any order to keep (Van Houdt, SIGMETRICS
//! 2013; [`crate::flash::theory::d_choices`]); `d = 1` is random cleaning. Draws are made with
//! replacement from the plane's list, counter-mode numbers by the count of draws so far; among
//! equals the one drawn first is taken.

use profile::flash::NONE;
use stats::rng;

use super::{PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::theory;

/// The closed blocks of every plane, in no order.
#[derive(Clone, Debug, PartialEq)]
pub struct DChoices {
    /// By plane.
    closed: Vec<Vec<u32>>,
    /// Where in its list each block is; [`NONE`] where it is not closed.
    place: Vec<u32>,
    choices: u32,
    seed: u64,
    drawn: u64,
}

impl DChoices {
    /// No closed block yet; `choices` draws per victim, at least one.
    pub fn new(context: &PolicyContext, choices: u32) -> Self {
        Self {
            closed: vec![Vec::new(); context.geometry.plane_count() as usize],
            place: vec![NONE; context.geometry.block_count() as usize],
            choices: choices.max(1),
            seed: rng::mix(context.seed ^ 0xd_c401),
            drawn: 0,
        }
    }

    fn draw(&mut self, bound: usize) -> usize {
        let word = rng::at(self.seed, self.drawn);
        self.drawn += 1;
        ((u128::from(word) * bound as u128) >> 64) as usize
    }
}

impl Victim for DChoices {
    fn closed(&mut self, plane: u32, block: u32, _valid: u16) {
        let list = &mut self.closed[plane as usize];
        self.place[block as usize] = list.len() as u32;
        list.push(block);
    }

    #[inline]
    fn invalidated(&mut self, _plane: u32, _block: u32, _valid: u16) {}

    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32> {
        let count = self.closed[plane as usize].len();
        if count == 0 {
            return None;
        }
        let mut best = NONE;
        for _ in 0..self.choices {
            let drawn = self.draw(count);
            let block = self.closed[plane as usize][drawn];
            if best == NONE || blocks.get(block).valid < blocks.get(best).valid {
                best = block;
            }
        }
        self.remove(plane, best, blocks);
        Some(best)
    }

    fn remove(&mut self, plane: u32, block: u32, _blocks: &Blocks) {
        let list = &mut self.closed[plane as usize];
        let place = std::mem::replace(&mut self.place[block as usize], NONE);
        list.swap_remove(place as usize);
        if let Some(&moved) = list.get(place as usize) {
            self.place[moved as usize] = place;
        }
    }

    fn steady_tail(&self, rho: f64, pages: u32) -> Option<Vec<f64>> {
        let a = theory::d_choices(rho, pages, self.choices);
        Some(theory::d_choices_tail(rho, pages, self.choices, a))
    }

    fn save(&self, to: &mut Writer) {
        to.u64(self.drawn);
        for list in &self.closed {
            to.u32(list.len() as u32);
            for block in list {
                to.u32(*block);
            }
        }
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.drawn = from.u64()?;
        self.place.fill(NONE);
        for list in &mut self.closed {
            list.clear();
            for place in 0..from.u32()? {
                let block = from.u32()?;
                let own = self.place.get_mut(block as usize).ok_or_else(|| from.damaged())?;
                *own = place;
                list.push(block);
            }
        }
        Ok(())
    }
}
