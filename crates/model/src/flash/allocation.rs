//! Which plane takes a page that is written.
//!
//! - **static**: decided by the logical page number. The four letters of an order such as `CWDP`
//!   name channel, way (chip), die and plane; the first varies fastest from page to page (Hu et
//!   al., "Exploring and Exploiting the Multilevel Parallelism Inside SSDs", IEEE TC 2013). A page
//!   stays in its plane for ever.
//! - **by die**: the die by the logical page number, in that order; its planes in turn.
//! - **round robin**: the next plane in channel-first order, whatever is written.
//! - **dynamic**: the plane whose die is free first; among equals the next in turn.
//!
//! The last three skip planes that hold as much as they can.

use super::nand::Nand;
use super::{Error, Flaw, Geometry};

/// The schemes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationScheme {
    /// By the logical page number, in an order such as `CWDP`.
    Static(Order),
    /// The die by the logical page number, in an order such as `CWDP`; its planes in turn.
    ByDie(Order),
    /// The next plane in turn.
    RoundRobin,
    /// The plane whose die is free first.
    Dynamic,
}

/// The order in which pages spread over channels (C), ways (W), dies (D) and planes (P).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order([u8; 4]);

impl Order {
    /// Channel first, then way, die and plane: the most parallel one for small requests.
    pub const CWDP: Self = Self(*b"CWDP");

    /// The four letters of the order.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("CWDP")
    }

    /// Reads an order of four letters, in any case.
    ///
    /// # Errors
    /// Where it does not name each of C, W, D and P once.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let upper = text.to_ascii_uppercase();
        let letters = <[u8; 4]>::try_from(upper.as_bytes()).ok();
        let complete = |letters: &[u8; 4]| b"CWDP".iter().all(|letter| letters.contains(letter));
        letters.filter(complete).map(Self).ok_or_else(|| {
            let cause = "an order names each of C, W, D and P once, as CWDP does";
            Flaw::new("allocation", cause).into()
        })
    }

    /// The planes of `geometry` in this order.
    pub(crate) fn planes(self, geometry: &Geometry) -> Vec<u32> {
        let counts = [
            geometry.channels,
            geometry.chips_per_channel,
            geometry.dies_per_chip,
            geometry.planes_per_die,
        ];
        let place = self.0.map(|letter| b"CWDP".iter().position(|own| *own == letter).unwrap_or(0));
        let at = |slot: u32| {
            let mut rest = slot;
            let mut part = [0; 4];
            for place in place {
                part[place] = rest % counts[place];
                rest /= counts[place];
            }
            geometry.plane_at(part)
        };
        (0..geometry.plane_count()).map(at).collect()
    }
}

/// Chooses planes.
pub trait Allocation: Send + Clone {
    /// Whether every logical page belongs to one plane.
    const BOUND: bool;

    /// The plane that takes logical page `lpn`. `has_room` says of a plane whether it can take one;
    /// at least one can.
    fn plane(&mut self, lpn: u32, nand: &Nand, has_room: impl Fn(u32) -> bool) -> u32;

    /// The plane of logical page `lpn` is entry `lpn` modulo the length, where pages are bound.
    fn planes(&self) -> Option<Vec<u32>> {
        None
    }

    /// What decides later choices.
    fn positions(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Restores [`Allocation::positions`], which has the same length.
    fn set_positions(&mut self, _positions: &[u32]) {}
}

/// [`AllocationScheme::Static`].
#[derive(Clone, Debug)]
pub struct Static {
    planes: Vec<u32>,
}

impl Static {
    /// Planes of `geometry` in `order`.
    pub fn new(geometry: &Geometry, order: Order) -> Self {
        Self { planes: order.planes(geometry) }
    }
}

impl Allocation for Static {
    const BOUND: bool = true;

    #[inline]
    fn plane(&mut self, lpn: u32, _nand: &Nand, _has_room: impl Fn(u32) -> bool) -> u32 {
        self.planes[(lpn % self.planes.len() as u32) as usize]
    }

    fn planes(&self) -> Option<Vec<u32>> {
        Some(self.planes.clone())
    }
}

/// [`AllocationScheme::RoundRobin`] and [`AllocationScheme::Dynamic`].
#[derive(Clone, Debug)]
pub struct Dynamic {
    planes: Vec<u32>,
    next: u32,
    by_load: bool,
}

impl Dynamic {
    /// In turn, or where `by_load` the least busy.
    pub fn new(geometry: &Geometry, by_load: bool) -> Self {
        Self { planes: Order::CWDP.planes(geometry), next: 0, by_load }
    }
}

impl Allocation for Dynamic {
    const BOUND: bool = false;

    #[inline]
    fn plane(&mut self, _lpn: u32, nand: &Nand, has_room: impl Fn(u32) -> bool) -> u32 {
        let count = self.planes.len() as u32;
        let turns = (0..count).map(|k| {
            let slot = self.next + k;
            self.planes[(if slot < count { slot } else { slot - count }) as usize]
        });
        let mut open = turns.filter(|plane| has_room(*plane));
        let plane =
            if self.by_load { open.min_by_key(|plane| nand.free_at(*plane)) } else { open.next() };
        self.next = if self.next + 1 == count { 0 } else { self.next + 1 };
        plane.expect("some plane has room as long as the logical capacity fits")
    }

    fn positions(&self) -> Vec<u32> {
        vec![self.next]
    }

    fn set_positions(&mut self, positions: &[u32]) {
        self.next = positions[0] % self.planes.len() as u32;
    }
}

/// [`AllocationScheme::ByDie`].
#[derive(Clone, Debug)]
pub struct ByDie {
    /// First planes of the dies, in the order in which pages take them.
    dies: Vec<u32>,
    planes_per_die: u32,
    /// By die: the plane in it that is next.
    next: Vec<u32>,
}

impl ByDie {
    /// Dies of `geometry` in `order`, whose `P` does not matter.
    pub fn new(geometry: &Geometry, order: Order) -> Self {
        let planes = order.planes(geometry);
        let firsts = planes.into_iter().filter(|plane| plane % geometry.planes_per_die == 0);
        Self {
            dies: firsts.collect(),
            planes_per_die: geometry.planes_per_die,
            next: vec![0; geometry.die_count() as usize],
        }
    }
}

impl Allocation for ByDie {
    const BOUND: bool = false;

    #[inline]
    fn plane(&mut self, lpn: u32, _nand: &Nand, has_room: impl Fn(u32) -> bool) -> u32 {
        let first = self.dies[(lpn % self.dies.len() as u32) as usize];
        let next = &mut self.next[(first / self.planes_per_die) as usize];
        let turns = (0..self.planes_per_die).map(|k| first + (*next + k) % self.planes_per_die);
        let mut open = turns.into_iter().filter(|plane| has_room(*plane));
        let plane = open.next().expect("some plane has room as long as the logical capacity fits");
        *next = (plane - first + 1) % self.planes_per_die;
        plane
    }

    fn positions(&self) -> Vec<u32> {
        self.next.clone()
    }

    fn set_positions(&mut self, positions: &[u32]) {
        for (next, position) in self.next.iter_mut().zip(positions) {
            *next = position % self.planes_per_die;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 8,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    #[test]
    fn the_first_letter_varies_fastest() {
        let planes = |order: &str| Order::parse(order).expect(order).planes(&SMALL);
        // Plane numbers are channel * 4 + chip * 2 + plane.
        assert_eq!(planes("CWDP"), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(planes("PDWC"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(planes("wcpd"), [0, 2, 4, 6, 1, 3, 5, 7]);
        for wrong in ["", "CWD", "CWDD", "CWDPX", "ABCD"] {
            assert!(Order::parse(wrong).is_err(), "{wrong}");
        }
    }
}
