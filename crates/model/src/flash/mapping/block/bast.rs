//! BAST, block-associative sector translation (Kim, Kim, Noh, Min and Cho, IEEE Transactions on
//! Consumer Electronics 48(2), 2002): every log block belongs to one logical block.
//!
//! Overwrites are appended to the log of their block. A log that is full, or the least recently
//! written one when another block needs a log, is merged:
//!
//! - **switch**: it holds every page in order and becomes the block;
//! - **partial**: it holds the first pages in order, the rest is copied behind them;
//! - **full**: the newest copy of every page is copied to a new block.
//!
//! A handful of logs serves a handful of blocks that are written; beyond that every write merges
//! (log block thrashing).

use std::collections::VecDeque;

use profile::flash::NONE;

use super::Layer;
use super::superblocks::{Superblocks, Work, load_list, save_list};
use crate::SnapshotError;
use crate::flash::nand::Nand;
use crate::flash::snapshot::{Reader, Writer};
use crate::observe::Watch;

/// The BAST layer.
#[derive(Clone, Debug)]
pub struct Bast {
    /// By logical block: its data superblock.
    data: Vec<u32>,
    /// By logical block: its log superblock.
    log: Vec<u32>,
    /// Logical blocks that have a log, the least recently written first.
    recency: VecDeque<u32>,
    logs_most: usize,
}

impl Bast {
    /// For `logical_blocks` blocks, with at most `logs_most` log blocks.
    pub fn new(logical_blocks: usize, logs_most: u32) -> Self {
        Self {
            data: vec![NONE; logical_blocks],
            log: vec![NONE; logical_blocks],
            recency: VecDeque::new(),
            logs_most: logs_most as usize,
        }
    }

    fn merge<W: Watch>(&mut self, superblocks: &mut Superblocks, work: &mut Work<W>, logical: u32) {
        self.recency.retain(|other| *other != logical);
        let log = std::mem::replace(&mut self.log[logical as usize], NONE);
        let data = self.data[logical as usize];
        self.data[logical as usize] = merge_log(superblocks, work, (logical, log), data);
    }

    /// The log of `logical` with room for a page.
    fn room<W: Watch>(
        &mut self,
        superblocks: &mut Superblocks,
        work: &mut Work<W>,
        logical: u32,
    ) -> u32 {
        let log = self.log[logical as usize];
        if log != NONE && superblocks.fill(log) < superblocks.pages() {
            self.recency.retain(|other| *other != logical);
            self.recency.push_back(logical);
            return log;
        }
        if log != NONE {
            self.merge(superblocks, work, logical);
        } else if self.recency.len() == self.logs_most {
            let victim = self.recency[0];
            self.merge(superblocks, work, victim);
        }
        let log = superblocks.open(superblocks.group_of(logical));
        self.log[logical as usize] = log;
        self.recency.push_back(logical);
        log
    }
}

/// Merges `log`, which holds pages of `logical` only and the newest of each, with `data`: the
/// cheapest way that its content allows. Gives the superblock that then holds the block.
pub(super) fn merge_log<W: Watch>(
    superblocks: &mut Superblocks,
    work: &mut Work<W>,
    (logical, log): (u32, u32),
    data: u32,
) -> u32 {
    let first = logical * superblocks.pages();
    let fill = superblocks.fill(log);
    let in_order = (0..fill).all(|j| superblocks.live(log, j) == Some(first + j));
    let whole = if in_order { log } else { superblocks.open(superblocks.group_of(logical)) };
    superblocks.copy_rest(work, whole, (logical, if in_order { fill } else { 0 }));
    if data != NONE {
        superblocks.erase(work, data);
    }
    if !in_order {
        superblocks.erase(work, log);
    }
    whole
}

impl Layer for Bast {
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
        let data = &mut self.data[logical as usize];
        if *data == NONE {
            *data = superblocks.open(superblocks.group_of(logical));
        }
        let data = *data;
        if self.log[logical as usize] == NONE && superblocks.fill(data) <= j {
            return superblocks.program(work.nand, (now, start), (data, j), lpn, work.watch);
        }
        let log = self.room(superblocks, work, logical);
        let j = superblocks.fill(log);
        superblocks.program(work.nand, (now, start), (log, j), lpn, work.watch)
    }

    fn used(&self) -> Vec<u32> {
        self.data.iter().chain(&self.log).copied().filter(|number| *number != NONE).collect()
    }

    fn save(&self, to: &mut Writer) {
        to.u32s(&self.data);
        to.u32s(&self.log);
        save_list(&Vec::from(self.recency.clone()), to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u32s(&mut self.data)?;
        from.u32s(&mut self.log)?;
        self.recency = load_list(from, self.logs_most)?.into();
        Ok(())
    }
}
