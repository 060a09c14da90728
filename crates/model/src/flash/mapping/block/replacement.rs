//! Block mapping with replacement blocks: the plainest layer, and the one whose random writes are
//! the slowest.
//!
//! A write that the block cannot take opens a *replacement*: the pages in front are copied, the
//! page is written, and writes that go on upwards from there are appended. When a write goes back,
//! or this many other blocks are open already, the rest is copied and the old block erased. So a
//! sequential stream costs one program per page, and a random write costs a block.

use std::collections::VecDeque;

use profile::flash::NONE;

use super::Layer;
use super::superblocks::{Superblocks, Work};
use crate::SnapshotError;
use crate::flash::nand::Nand;
use crate::flash::snapshot::{Reader, Writer};
use crate::observe::Watch;

/// A logical block that is being replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    logical: u32,
    superblock: u32,
}

/// Block mapping with replacement blocks.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// By logical block: its superblock.
    data: Vec<u32>,
    /// Replacements, the least recently written first.
    open: VecDeque<Open>,
    open_most: usize,
}

impl Replacement {
    /// For `logical_blocks` blocks, of which at most `open_most` are replaced at a time.
    pub fn new(logical_blocks: usize, open_most: u32) -> Self {
        Self {
            data: vec![NONE; logical_blocks],
            open: VecDeque::new(),
            open_most: open_most as usize,
        }
    }

    /// Completes a replacement and erases the block that it replaces.
    fn complete<W: Watch>(&mut self, superblocks: &mut Superblocks, work: &mut Work<W>, at: usize) {
        let Open { logical, superblock } = self.open.remove(at).expect("an open replacement");
        let first = superblocks.fill(superblock);
        superblocks.copy_rest(work, superblock, (logical, first));
        let old = std::mem::replace(&mut self.data[logical as usize], superblock);
        superblocks.erase(work, old);
    }
}

impl Layer for Replacement {
    fn write<W: Watch>(
        &mut self,
        superblocks: &mut Superblocks,
        nand: &mut Nand,
        (now, start): (u64, u64),
        lpn: u32,
        watch: &mut W,
    ) -> u64 {
        let mut work = Work { nand, now, watch };
        let work = &mut work;
        let (logical, j) = (lpn / superblocks.pages(), lpn % superblocks.pages());
        let first = logical * superblocks.pages();
        let mut target = NONE;
        if let Some(at) = self.open.iter().position(|open| open.logical == logical) {
            let superblock = self.open[at].superblock;
            if superblocks.fill(superblock) <= j {
                let open = self.open.remove(at).expect("found");
                self.open.push_back(open);
                target = superblock;
            } else {
                self.complete(superblocks, work, at);
            }
        } else if self.data[logical as usize] == NONE {
            self.data[logical as usize] = superblocks.open(superblocks.group_of(logical));
        }
        let data = self.data[logical as usize];
        if target == NONE && superblocks.fill(data) <= j {
            return superblocks.program(work.nand, (now, start), (data, j), lpn, work.watch);
        }
        if target == NONE {
            if self.open.len() == self.open_most {
                self.complete(superblocks, work, 0);
            }
            target = superblocks.open(superblocks.group_of(logical));
            self.open.push_back(Open { logical, superblock: target });
        }
        for k in superblocks.fill(target)..j {
            superblocks.copy(work, (target, k), first + k);
        }
        let end = superblocks.program(work.nand, (now, start), (target, j), lpn, work.watch);
        if j + 1 == superblocks.pages() {
            self.complete(superblocks, work, self.open.len() - 1);
        }
        end
    }

    fn used(&self) -> Vec<u32> {
        let data = self.data.iter().copied().filter(|data| *data != NONE);
        data.chain(self.open.iter().map(|open| open.superblock)).collect()
    }

    fn save(&self, to: &mut Writer) {
        to.u32s(&self.data);
        to.u32(self.open.len() as u32);
        for open in &self.open {
            to.u32(open.logical);
            to.u32(open.superblock);
        }
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u32s(&mut self.data)?;
        let length = from.u32()? as usize;
        if length > self.open_most {
            return Err(from.damaged());
        }
        let open = |from: &mut Reader| Ok(Open { logical: from.u32()?, superblock: from.u32()? });
        self.open = (0..length).map(|_| open(from)).collect::<Result<_, SnapshotError>>()?;
        Ok(())
    }
}
