//! FAST, fully associative sector translation (Lee, Park, Chung, Lee, Park and Song, ACM
//! Transactions on Embedded Computing Systems 6(3), 2007): all blocks share the log.
//!
//! One *sequential* log block takes overwrites that start a block and go on from there, and becomes
//! the block by a switch or partial merge. All others are appended to *random* log blocks, whatever
//! they belong to. When these are used up the oldest is reclaimed: every block that has a live page
//! in it is merged in full, from wherever its pages are, so one reclaim can cost as many merges as
//! the log block has pages.

use std::collections::VecDeque;

use profile::flash::NONE;

use super::Layer;
use super::superblocks::{Superblocks, Work, load_list, save_list};
use crate::SnapshotError;
use crate::flash::nand::Nand;
use crate::flash::snapshot::{Reader, Writer};
use crate::observe::Watch;

/// The FAST layer.
#[derive(Clone, Debug)]
pub struct Fast {
    /// By logical block: its data superblock.
    data: Vec<u32>,
    /// The logical block that the sequential log belongs to, and the log; [`NONE`] twice where
    /// there is none.
    sequential: (u32, u32),
    /// Random logs, the oldest first; the last one is being written.
    random: VecDeque<u32>,
    random_most: usize,
    /// Group that the next random log is opened in.
    next_group: u32,
}

const NO_LOG: (u32, u32) = (NONE, NONE);

impl Fast {
    /// For `logical_blocks` blocks, with at most `random_most` random log blocks.
    pub fn new(logical_blocks: usize, random_most: u32) -> Self {
        Self {
            data: vec![NONE; logical_blocks],
            sequential: NO_LOG,
            random: VecDeque::new(),
            random_most: random_most as usize,
            next_group: 0,
        }
    }

    /// Copies the newest of every page of `logical` to a new superblock, or behind the sequential
    /// log where that is still the newest of what it holds.
    fn merge<W: Watch>(&mut self, superblocks: &mut Superblocks, work: &mut Work<W>, logical: u32) {
        let first = logical * superblocks.pages();
        let log = if self.sequential.0 == logical { self.sequential.1 } else { NONE };
        let fill = if log == NONE { 0 } else { superblocks.fill(log) };
        let in_order =
            log != NONE && (0..fill).all(|j| superblocks.live(log, j) == Some(first + j));
        let whole = if in_order { log } else { superblocks.open(superblocks.group_of(logical)) };
        superblocks.copy_rest(work, whole, (logical, if in_order { fill } else { 0 }));
        let data = std::mem::replace(&mut self.data[logical as usize], whole);
        superblocks.erase(work, data);
        if log != NONE {
            self.sequential = NO_LOG;
            if !in_order {
                superblocks.erase(work, log);
            }
        }
    }

    /// Merges everything that lives in the oldest random log and erases it.
    fn reclaim<W: Watch>(&mut self, superblocks: &mut Superblocks, work: &mut Work<W>) {
        let victim = self.random.pop_front().expect("a random log");
        for j in 0..superblocks.pages() {
            if let Some(lpn) = superblocks.live(victim, j) {
                self.merge(superblocks, work, lpn / superblocks.pages());
            }
        }
        superblocks.erase(work, victim);
    }

    /// The random log with room for a page.
    fn room<W: Watch>(&mut self, superblocks: &mut Superblocks, work: &mut Work<W>) -> u32 {
        let pages = superblocks.pages();
        match self.random.back() {
            Some(&log) if superblocks.fill(log) < pages => log,
            _ => {
                if self.random.len() == self.random_most {
                    self.reclaim(superblocks, work);
                }
                let log = superblocks.open(self.next_group);
                self.next_group = (self.next_group + 1) % superblocks.groups();
                self.random.push_back(log);
                log
            }
        }
    }
}

impl Layer for Fast {
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
        let at = (now, start);
        let (logical, j) = (lpn / superblocks.pages(), lpn % superblocks.pages());
        let data = &mut self.data[logical as usize];
        if *data == NONE {
            *data = superblocks.open(superblocks.group_of(logical));
        }
        let data = *data;
        if superblocks.fill(data) <= j {
            return superblocks.program(work.nand, at, (data, j), lpn, work.watch);
        }
        if j == 0 {
            if self.sequential != NO_LOG {
                self.merge(superblocks, work, self.sequential.0);
            }
            self.sequential = (logical, superblocks.open(superblocks.group_of(logical)));
        }
        let (of, log) = self.sequential;
        if of == logical && superblocks.fill(log) == j {
            let end = superblocks.program(work.nand, at, (log, j), lpn, work.watch);
            if j + 1 == superblocks.pages() {
                self.merge(superblocks, work, logical);
            }
            return end;
        }
        let log = self.room(superblocks, work);
        let j = superblocks.fill(log);
        superblocks.program(work.nand, at, (log, j), lpn, work.watch)
    }

    fn used(&self) -> Vec<u32> {
        let data = self.data.iter().chain(&self.random).chain([&self.sequential.1]);
        data.copied().filter(|number| *number != NONE).collect()
    }

    fn save(&self, to: &mut Writer) {
        to.u32s(&self.data);
        to.u32(self.sequential.0);
        to.u32(self.sequential.1);
        save_list(&Vec::from(self.random.clone()), to);
        to.u32(self.next_group);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u32s(&mut self.data)?;
        self.sequential = (from.u32()?, from.u32()?);
        self.random = load_list(from, self.random_most)?.into();
        self.next_group = from.u32()?;
        Ok(())
    }
}
