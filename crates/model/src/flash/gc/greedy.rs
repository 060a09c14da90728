//! Greedy: clean the block with the fewest live pages.
//!
//! The classic policy; its write amplification under uniform random writes is the least of all
//! policies that do not know the future (Hu et al. 2009; Desnoyers 2012). Closed blocks hang in
//! doubly linked lists, one per plane and number of live pages, and a floor per plane says below
//! which number all lists are empty: a victim costs O(1) amortised, since the floor falls by at
//! most one per dead page. Among equals the one that got there last is taken.

use profile::flash::NONE;

use super::{PolicyContext, Victim};
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::theory;

/// The closed blocks of every plane by their live pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Greedy {
    /// Lists per plane: one for each number of live pages, 0 to all.
    lists: u32,
    heads: Vec<u32>,
    /// No list below this one holds a block.
    floor: Vec<u32>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    previous: u32,
    next: u32,
}

impl Greedy {
    /// No closed block yet.
    pub fn new(context: &PolicyContext) -> Self {
        let lists = context.geometry.pages_per_block + 1;
        let planes = context.pool_count() as usize;
        let unlinked = Link { previous: NONE, next: NONE };
        Self {
            lists,
            heads: vec![NONE; planes * lists as usize],
            floor: vec![lists; planes],
            links: vec![unlinked; context.geometry.block_count() as usize],
        }
    }

    #[inline]
    fn link(&mut self, plane: u32, block: u32, valid: u32) {
        let head = &mut self.heads[(plane * self.lists + valid) as usize];
        let next = std::mem::replace(head, block);
        self.links[block as usize] = Link { previous: NONE, next };
        if next != NONE {
            self.links[next as usize].previous = block;
        }
        let floor = &mut self.floor[plane as usize];
        *floor = (*floor).min(valid);
    }

    #[inline]
    fn unlink(&mut self, plane: u32, block: u32, valid: u32) {
        let Link { previous, next } = self.links[block as usize];
        if previous == NONE {
            self.heads[(plane * self.lists + valid) as usize] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
    }
}

impl Victim for Greedy {
    #[inline]
    fn closed(&mut self, plane: u32, block: u32, valid: u16) {
        self.link(plane, block, u32::from(valid));
    }

    #[inline]
    fn invalidated(&mut self, plane: u32, block: u32, valid: u16) {
        let valid = u32::from(valid);
        self.unlink(plane, block, valid + 1);
        self.link(plane, block, valid);
    }

    fn take(&mut self, plane: u32, _blocks: &Blocks) -> Option<u32> {
        let mut valid = self.floor[plane as usize];
        while valid < self.lists {
            let block = self.heads[(plane * self.lists + valid) as usize];
            if block != NONE {
                self.floor[plane as usize] = valid;
                self.unlink(plane, block, valid);
                return Some(block);
            }
            valid += 1;
        }
        self.floor[plane as usize] = self.lists;
        None
    }

    fn remove(&mut self, plane: u32, block: u32, blocks: &Blocks) {
        self.unlink(plane, block, u32::from(blocks.get(block).valid));
    }

    fn steady_tail(&self, rho: f64, pages: u32) -> Option<Vec<f64>> {
        Some(theory::greedy_tail(rho, pages))
    }

    fn save(&self, to: &mut Writer) {
        to.u32s(&self.heads);
        to.u32s(&self.floor);
        for link in &self.links {
            to.u32(link.previous);
            to.u32(link.next);
        }
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let blocks = self.links.len() as u32;
        from.indices(&mut self.heads, blocks as usize)?;
        from.u32s(&mut self.floor)?;
        for link in &mut self.links {
            *link = Link { previous: from.index(blocks)?, next: from.index(blocks)? };
        }
        Ok(())
    }
}
