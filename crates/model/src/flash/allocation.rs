//! Which plane takes a page that is written. See [`profile::flash::AllocationScheme`].

use profile::flash::{Geometry, Order};

use super::nand::Nand;

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

/// [`profile::flash::AllocationScheme::Static`].
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

/// [`profile::flash::AllocationScheme::RoundRobin`] and
/// [`profile::flash::AllocationScheme::Dynamic`].
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

/// [`profile::flash::AllocationScheme::ByDie`].
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

/// The schemes in which a page may go to any plane, chosen when the device is made.
#[derive(Clone, Debug)]
pub enum Free {
    /// The die by the logical page number.
    ByDie(ByDie),
    /// The next plane in turn, or the least busy.
    Dynamic(Dynamic),
}

impl Allocation for Free {
    const BOUND: bool = false;

    #[inline]
    fn plane(&mut self, lpn: u32, nand: &Nand, has_room: impl Fn(u32) -> bool) -> u32 {
        match self {
            Self::ByDie(own) => own.plane(lpn, nand, has_room),
            Self::Dynamic(own) => own.plane(lpn, nand, has_room),
        }
    }

    fn positions(&self) -> Vec<u32> {
        match self {
            Self::ByDie(own) => own.positions(),
            Self::Dynamic(own) => own.positions(),
        }
    }

    fn set_positions(&mut self, positions: &[u32]) {
        match self {
            Self::ByDie(own) => own.set_positions(positions),
            Self::Dynamic(own) => own.set_positions(positions),
        }
    }
}
