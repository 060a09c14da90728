//! How long the cells and the bus take.
//!
//! A cell that stores `n` bits belongs to `n` pages, and the pages of a cell differ: the first bit
//! is read and programmed fast, the last one slowly (Grupp et al., "Characterizing Flash Memory",
//! MICRO 2009). So reads and programs have one time per *class* of page, and the class of a page is
//! its place in its block modulo the bits per cell.
//!
//! A bus moves `width / 8` bytes per transfer. Its time is kept in picoseconds and what a transfer
//! loses to whole nanoseconds is carried into the next one on its channel, so that a channel of any
//! speed moves exactly its rate: a simulator that truncates the time of a byte to nanoseconds makes
//! every bus beyond 1000 MT/s free.
//!
//! Invariants: no time is negative or beyond an hour; the bus rate is above zero.

use super::{Flaw, Geometry};

/// Bits that a cell stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// One bit.
    Slc,
    /// Two bits.
    Mlc,
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

impl CellKind {
    /// Bits per cell: the number of page classes.
    #[inline]
    pub fn bits(self) -> usize {
        match self {
            Self::Slc => 1,
            Self::Mlc => 2,
            Self::Tlc => 3,
            Self::Qlc => 4,
        }
    }
}

/// Times of the flash array and of its bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Bits per cell.
    pub cell: CellKind,
    /// From the cells to the page register, ns: one for all pages, or one per class.
    pub read_ns: Vec<f64>,
    /// From the page register to the cells, ns: one for all pages, or one per class.
    pub program_ns: Vec<f64>,
    /// Erasing a block, ns.
    pub erase_ns: f64,
    /// Command and address cycles of a read or a program on the bus, ns.
    pub command_ns: f64,
    /// Transfers per second of a channel.
    pub bus_transfers_per_s: f64,
    /// Bits per transfer, a multiple of eight.
    pub bus_width_bits: u32,
}

impl Timing {
    /// Time of `bytes` on the bus, ps, rounded to the nearest; commands not included.
    #[inline]
    pub fn bus_ps(&self, bytes: u32) -> u64 {
        let per_transfer = f64::from(self.bus_width_bits) / 8.0;
        (f64::from(bytes) / per_transfer * 1e12 / self.bus_transfers_per_s).round() as u64
    }

    /// Time of a command on the bus, ps.
    #[inline]
    pub fn command_ps(&self) -> u64 {
        (self.command_ns * 1e3).round() as u64
    }

    /// Read time by place of the page in its block, ns.
    pub fn read_table(&self, geometry: &Geometry) -> Vec<u32> {
        table(&self.read_ns, geometry)
    }

    /// Program time by place of the page in its block, ns.
    pub fn program_table(&self, geometry: &Geometry) -> Vec<u32> {
        table(&self.program_ns, geometry)
    }

    /// The first time that no device can have.
    pub(crate) fn flaw(&self) -> Result<(), Flaw> {
        for (field, classes) in
            [("timing.read_us", &self.read_ns), ("timing.program_us", &self.program_ns)]
        {
            if classes.len() != 1 && classes.len() != self.cell.bits() {
                let bits = self.cell.bits();
                let cause = format!("give one time, or one for each of the {bits} page classes");
                return Err(Flaw::new(field, cause));
            }
            classes.iter().try_for_each(|ns| time(field, *ns, 4e9))?;
        }
        time("timing.erase_us", self.erase_ns, 3.6e12)?;
        time("timing.command_ns", self.command_ns, 1e9)?;
        if !self.bus_transfers_per_s.is_finite() || self.bus_transfers_per_s <= 0.0 {
            return Err(Flaw::new("timing.channel_mt_per_s", "it must be above zero"));
        }
        if self.bus_transfers_per_s < 1e3 {
            return Err(Flaw::new("timing.channel_mt_per_s", "no bus is that slow"));
        }
        if self.bus_width_bits == 0 || !self.bus_width_bits.is_multiple_of(8) {
            return Err(Flaw::new("timing.channel_width_bits", "it must be a multiple of eight"));
        }
        Ok(())
    }
}

fn time(field: &'static str, ns: f64, most_ns: f64) -> Result<(), Flaw> {
    match ns {
        ns if !ns.is_finite() => Err(Flaw::new(field, "it is not a finite number")),
        ns if ns < 0.0 => Err(Flaw::new(field, "it is negative")),
        ns if ns > most_ns => Err(Flaw::new(field, "it is longer than any flash takes")),
        _ => Ok(()),
    }
}

fn table(classes: &[f64], geometry: &Geometry) -> Vec<u32> {
    let pages = 0..geometry.pages_per_block as usize;
    pages.map(|page| classes[page % classes.len()].round() as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(mt_per_s: f64) -> Timing {
        Timing {
            cell: CellKind::Tlc,
            read_ns: vec![40_000.0, 60_000.0, 80_000.0],
            program_ns: vec![500_000.0],
            erase_ns: 3.5e6,
            command_ns: 0.0,
            bus_transfers_per_s: mt_per_s * 1e6,
            bus_width_bits: 8,
        }
    }

    #[test]
    fn fast_buses_take_time_and_differ() {
        for (mt_per_s, ps) in [
            (333.0, 12_300_300),
            (666.0, 6_150_150),
            (800.0, 5_120_000),
            (1000.0, 4_096_000),
            (1001.0, 4_091_908),
            (3600.0, 1_137_778),
        ] {
            assert_eq!(bus(mt_per_s).bus_ps(4096), ps, "{mt_per_s} MT/s");
        }
    }

    #[test]
    fn classes_alternate_through_the_block() {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 5,
            page_bytes: 4096,
        };
        let timing = bus(333.0);
        let expected = [40_000, 60_000, 80_000, 40_000, 60_000];
        assert_eq!(timing.read_table(&geometry), expected);
        assert_eq!(timing.program_table(&geometry), [500_000; 5]);
        let wrong = Timing { read_ns: vec![1.0, 2.0], ..timing };
        assert_eq!(wrong.flaw().expect_err("two classes of three").field, "timing.read_us");
    }
}
