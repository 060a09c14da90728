//! The page map in the state that long random writes lead to, without writing it out.
//!
//! Under uniform random writes the closed blocks of a plane have a known distribution of live pages
//! ([`Victim::steady_tail`]: mean-field theory), and which logical page is where is as good as
//! random. So each closed block gets its number of live pages by its quantile of the distribution,
//! live pages take random places in their blocks, and the logical pages of the plane are dealt to
//! them at random. Open blocks are written to a random depth, so that planes do not clean in step.
//! Pages that are not live hold nothing.
//!
//! Invariants: those of the page map, audited in tests; the amplification of the first writes is
//! that of the long run within 2 %.

use profile::flash::Order;
use stats::rng::{Rng, mix};

use super::{Frontier, PageMapped};
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::gc::Victim;

impl<V: Victim, A: Allocation> PageMapped<V, A> {
    /// Puts the first `pages` logical pages in place: written in order, or where `random` over and
    /// over at random. `false`, with nothing done, where the cleaning policy has no theory.
    pub(super) fn construct(&mut self, pages: u32, random: bool, seed: u64) -> bool {
        if random && self.victims.steady_tail(0.8, self.geometry.pages_per_block).is_none() {
            return false;
        }
        // Where pages choose their plane they spread evenly, as round robin has it.
        let order = self.allocation.planes().unwrap_or_else(|| Order::CWDP.planes(&self.geometry));
        for (slot, &plane) in order.iter().enumerate() {
            let mut lpns: Vec<u32> = (slot as u32..pages).step_by(order.len()).collect();
            let mut rng = Rng::new(mix(seed ^ u64::from(plane)));
            if random {
                shuffle(&mut lpns, &mut rng);
                self.construct_steady(plane, &lpns, &mut rng);
            } else {
                self.construct_full(plane, &lpns);
            }
            if !A::BOUND {
                self.live[plane as usize] = lpns.len() as u32;
            }
        }
        true
    }

    /// Blocks written full, one after another.
    fn construct_full(&mut self, plane: u32, lpns: &[u32]) {
        let pages = self.geometry.pages_per_block as usize;
        for lpns in lpns.chunks(pages) {
            let block = self.open_block(plane, 0, 1);
            let first = block * pages as u32;
            for (&lpn, ppn) in lpns.iter().zip(first..) {
                self.put(lpn, ppn);
            }
            self.blocks.all[block as usize].valid = lpns.len() as u16;
            if lpns.len() == pages {
                self.close_constructed(plane, block);
            } else {
                let next = first + lpns.len() as u32;
                let at = (plane * self.width) as usize;
                self.frontiers[at] = Frontier { next, end: first + pages as u32 };
            }
        }
    }

    fn construct_steady(&mut self, plane: u32, lpns: &[u32], rng: &mut Rng) {
        let pages = self.geometry.pages_per_block;
        let mut left = lpns;
        for at in plane * self.width..(plane + 1) * self.width {
            let block = self.open_block(plane, at - plane * self.width, 1);
            let depth = (rng.below(u64::from(pages)) as usize).min(left.len());
            let (own, rest) = left.split_at(depth);
            left = rest;
            let first = block * pages;
            for (&lpn, ppn) in own.iter().zip(first..) {
                self.put(lpn, ppn);
            }
            self.blocks.all[block as usize].valid = depth as u16;
            let next = first + depth as u32;
            self.frontiers[at as usize] = Frontier { next, end: first + pages };
        }
        let closed = self.blocks.free_count(plane) - self.low;
        let live = self.live_of_closed(closed, left.len() as u32);
        for live in live {
            let block = self.open_block(plane, 0, 1);
            let (own, rest) = left.split_at(live as usize);
            left = rest;
            self.scatter(block, own, rng);
            self.blocks.all[block as usize].valid = live as u16;
            self.close_constructed(plane, block);
        }
        assert!(left.is_empty(), "every page of plane {plane} has a place");
    }

    /// Live pages of each of `closed` blocks, `total` in all, the fewest first.
    fn live_of_closed(&self, closed: u32, total: u32) -> Vec<u32> {
        let pages = self.geometry.pages_per_block;
        let rho = f64::from(total) / (f64::from(closed) * f64::from(pages));
        let tail = self.victims.steady_tail(rho.clamp(1e-6, 0.999_999), pages).unwrap_or_default();
        let mut live: Vec<u32> = (0..closed)
            .map(|block| {
                // The block at quantile q from below has l live pages where 1 - q falls to w_l.
                let above = 1.0 - (f64::from(block) + 0.5) / f64::from(closed);
                tail.partition_point(|share| *share >= above) as u32
            })
            .collect();
        // Rounding leaves some pages too many or too few: spread them over blocks that have room.
        let mut missing = i64::from(total) - live.iter().map(|live| i64::from(*live)).sum::<i64>();
        while missing != 0 {
            let before = missing;
            for live in live.iter_mut().rev() {
                let can = if missing > 0 { *live < pages } else { *live > 0 };
                if missing != 0 && can {
                    *live = live.wrapping_add_signed(missing.signum() as i32);
                    missing -= missing.signum();
                }
            }
            assert!(missing != before, "{total} pages do not fit into {closed} blocks");
        }
        live.sort_unstable();
        live
    }

    /// Puts `lpns` into random pages of `block`, in order.
    fn scatter(&mut self, block: u32, lpns: &[u32], rng: &mut Rng) {
        let pages = self.geometry.pages_per_block;
        let mut next = 0;
        for (page, left) in (0..pages).zip((1..=pages).rev()) {
            if rng.below(u64::from(left)) < (lpns.len() - next) as u64 {
                self.put(lpns[next], block * pages + page);
                next += 1;
            }
        }
    }

    #[inline]
    fn put(&mut self, lpn: u32, ppn: u32) {
        self.map[lpn as usize] = ppn;
        self.reverse[ppn as usize] = lpn;
    }

    fn close_constructed(&mut self, plane: u32, block: u32) {
        let info = &mut self.blocks.all[block as usize];
        info.state = BlockState::Closed;
        let valid = info.valid;
        self.victims.closed(plane, block, valid);
    }
}

/// Fisher and Yates' shuffle.
fn shuffle(values: &mut [u32], rng: &mut Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, rng.below(last as u64 + 1) as usize);
    }
}
