//! Audit, snapshot and restore of the page map.

use profile::flash::NONE;

use super::{CLOSED, Cleaning, Frontier, PageMapped};
use crate::SnapshotError;
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::gc::Victim;
use crate::flash::snapshot::{Reader, Writer};

impl<V: Victim, A: Allocation> PageMapped<V, A> {
    /// See [`crate::flash::Mapping::audit`].
    pub(super) fn audit_maps(&self) {
        let pages = self.geometry.pages_per_block;
        let mut valid = vec![0u16; self.blocks.all.len()];
        for (lpn, &ppn) in self.map.iter().enumerate().filter(|(_, ppn)| **ppn != NONE) {
            assert_eq!(self.reverse[ppn as usize] as usize, lpn, "physical page {ppn}");
            valid[(ppn / pages) as usize] += 1;
        }
        for (number, (block, valid)) in self.blocks.all.iter().zip(&valid).enumerate() {
            assert_eq!(block.valid, *valid, "live pages of block {number}");
            let unused = matches!(block.state, BlockState::Free | BlockState::Retired);
            assert!(!unused || *valid == 0, "block {number} is {:?} and holds data", block.state);
        }
        self.audit_places(&valid);
    }

    /// Open and free blocks are where they should be, and nothing live lies beyond a frontier.
    fn audit_places(&self, valid: &[u16]) {
        let pages = self.geometry.pages_per_block;
        for plane in 0..self.geometry.plane_count() {
            let own = self.blocks.of_plane(plane);
            let in_state = |state| {
                own.clone().filter(|block| self.blocks.get(*block).state == state).count() as u32
            };
            assert_eq!(in_state(BlockState::Free), self.blocks.free_count(plane), "plane {plane}");
            let first = (plane * self.width) as usize;
            let open = &self.frontiers[first..first + self.width as usize];
            let open: Vec<&Frontier> = open.iter().filter(|own| **own != CLOSED).collect();
            assert_eq!(in_state(BlockState::Open), open.len() as u32, "plane {plane}");
            for Frontier { next, end } in open {
                assert!(own.contains(&((end - 1) / pages)), "a frontier outside plane {plane}");
                assert!((*next..*end).all(|ppn| !self.is_live(ppn)), "data beyond a frontier");
            }
            let cleaning = self.cleaning[plane as usize].victim != NONE;
            assert_eq!(in_state(BlockState::Cleaning), u32::from(cleaning), "plane {plane}");
            if !A::BOUND {
                let live: u32 = own.map(|block| u32::from(valid[block as usize])).sum();
                assert_eq!(live, self.live[plane as usize], "live pages of plane {plane}");
            }
        }
    }

    pub(super) fn save_state(&self, to: &mut Writer) {
        to.u32s(&self.map);
        to.u32s(&self.reverse);
        self.blocks.save(to);
        for frontier in &self.frontiers {
            to.u32(frontier.next);
            to.u32(frontier.end);
        }
        for cleaning in &self.cleaning {
            to.u32(cleaning.victim);
            to.u32(cleaning.page);
            to.u32(u32::from(cleaning.levelling));
        }
        self.victims.save(to);
        to.u32s(&self.allocation.positions());
        self.wear.save(to);
        to.u32s(&self.live);
        to.u32s(&self.live_most);
        self.counts.save(to);
        self.tally.save(to);
    }

    pub(super) fn load_state(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let (logical, physical) = (self.map.len(), self.reverse.len());
        from.indices(&mut self.map, physical)?;
        from.indices(&mut self.reverse, logical)?;
        self.blocks.load(from)?;
        let streams = self.host_streams;
        if self.blocks.all.iter().any(|block| u32::from(block.stream) > streams) {
            return Err(from.damaged());
        }
        for frontier in &mut self.frontiers {
            *frontier = Frontier { next: from.u32()?, end: from.u32()? };
            if frontier.next > frontier.end || frontier.end as usize > physical {
                return Err(from.damaged());
            }
        }
        for cleaning in &mut self.cleaning {
            let (victim, page) = (from.index(self.geometry.block_count())?, from.u32()?);
            *cleaning = Cleaning { victim, page, levelling: from.u32()? != 0 };
        }
        self.victims.load(from)?;
        let mut positions = self.allocation.positions();
        from.u32s(&mut positions)?;
        self.allocation.set_positions(&positions);
        self.wear.load(from)?;
        from.u32s(&mut self.live)?;
        from.u32s(&mut self.live_most)?;
        self.counts.load(from)?;
        self.tally.load(from)
    }
}
