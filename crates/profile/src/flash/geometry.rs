//! What a flash device is built of: channels, chips, dies, planes, blocks, pages.
//!
//! Numbers are global and dense, most significant part first: a plane is numbered
//! `((channel * chips + chip) * dies + die) * planes + plane`, a block `plane * blocks + block`, a
//! physical page (ppn) `block * pages + page`. So a die owns adjacent planes, a plane adjacent
//! blocks, and one division each way leads from any number to the part that holds it.
//!
//! Invariants: every part occurs at least once; all pages fit in 32 bits with one value to spare
//! (16 TiB of 4 KiB pages), which is what keeps the maps at four bytes per page. Tested by walking
//! all parts of small devices.

use super::Flaw;

/// The value of a 32-bit page, block or plane number that means "none".
pub const NONE: u32 = u32::MAX;

/// Counts of the parts of a device, each within the next larger part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Buses between controller and chips.
    pub channels: u32,
    /// Chips (ways) on a channel.
    pub chips_per_channel: u32,
    /// Dies in a chip: what works on one command at a time.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block, at most 65,535.
    pub pages_per_block: u32,
    /// Bytes of data in a page, a power of two of at least 512.
    pub page_bytes: u32,
}

impl Geometry {
    /// Most pages of a device: numbers are 32 bits and one of them means none.
    pub const MOST_PAGES: u64 = NONE as u64;

    /// Dies of the device.
    #[inline]
    pub fn die_count(&self) -> u32 {
        self.channels * self.chips_per_channel * self.dies_per_chip
    }

    /// Planes of the device.
    #[inline]
    pub fn plane_count(&self) -> u32 {
        self.die_count() * self.planes_per_die
    }

    /// Blocks of the device.
    #[inline]
    pub fn block_count(&self) -> u32 {
        self.plane_count() * self.blocks_per_plane
    }

    /// Physical pages of the device.
    #[inline]
    pub fn page_count(&self) -> u64 {
        u64::from(self.block_count()) * u64::from(self.pages_per_block)
    }

    /// Bytes of all pages: the raw capacity.
    #[inline]
    pub fn raw_bytes(&self) -> u64 {
        self.page_count() * u64::from(self.page_bytes)
    }

    /// The die of a plane.
    #[inline]
    pub fn die_of_plane(&self, plane: u32) -> u32 {
        plane / self.planes_per_die
    }

    /// The channel of a die.
    #[inline]
    pub fn channel_of_die(&self, die: u32) -> u32 {
        die / (self.chips_per_channel * self.dies_per_chip)
    }

    /// The plane at (channel, chip, die, plane), each within the part before it.
    #[inline]
    pub fn plane_at(&self, [channel, chip, die, plane]: [u32; 4]) -> u32 {
        ((channel * self.chips_per_channel + chip) * self.dies_per_chip + die) * self.planes_per_die
            + plane
    }

    /// The first count that no device can have.
    pub(crate) fn flaw(&self) -> Result<(), Flaw> {
        let counts = [
            ("geometry.channels", self.channels, 4096),
            ("geometry.chips_per_channel", self.chips_per_channel, 4096),
            ("geometry.dies_per_chip", self.dies_per_chip, 4096),
            ("geometry.planes_per_die", self.planes_per_die, 4096),
            ("geometry.blocks_per_plane", self.blocks_per_plane, 1 << 24),
            ("geometry.pages_per_block", self.pages_per_block, 65_535),
        ];
        for (field, count, most) in counts {
            if count == 0 {
                return Err(Flaw::new(field, "a device has at least one"));
            }
            if count > most {
                return Err(Flaw::new(field, format!("it must be at most {most}")));
            }
        }
        if !self.page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&self.page_bytes) {
            let cause = "a page is a power of two from 512 bytes to 1 MiB";
            return Err(Flaw::new("geometry.page", cause));
        }
        let pages =
            counts.iter().try_fold(1u64, |all, (_, count, _)| all.checked_mul(*count as u64));
        match pages {
            Some(pages) if pages < Self::MOST_PAGES => Ok(()),
            _ => Err(Flaw::new(
                "geometry.blocks_per_plane",
                format!("the device has {} pages or more; use larger pages", Self::MOST_PAGES),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plane_has_one_number_and_its_die_and_channel() {
        let geometry = Geometry {
            channels: 3,
            chips_per_channel: 2,
            dies_per_chip: 4,
            planes_per_die: 5,
            blocks_per_plane: 7,
            pages_per_block: 11,
            page_bytes: 4096,
        };
        assert_eq!(geometry.flaw(), Ok(()));
        let mut expected = 0;
        for channel in 0..3 {
            for chip in 0..2 {
                for die in 0..4 {
                    let die_number = (channel * 2 + chip) * 4 + die;
                    for plane in 0..5 {
                        assert_eq!(geometry.plane_at([channel, chip, die, plane]), expected);
                        assert_eq!(geometry.die_of_plane(expected), die_number);
                        assert_eq!(geometry.channel_of_die(die_number), channel);
                        expected += 1;
                    }
                }
            }
        }
        assert_eq!(geometry.plane_count(), expected);
        assert_eq!(geometry.page_count(), 120 * 7 * 11);
        assert_eq!(geometry.raw_bytes(), 120 * 7 * 11 * 4096);
    }

    #[test]
    fn devices_without_parts_or_with_too_many_pages_are_refused() {
        let good = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 16,
            pages_per_block: 16,
            page_bytes: 512,
        };
        assert_eq!(good.flaw(), Ok(()));
        for (geometry, field) in [
            (Geometry { channels: 0, ..good }, "channels"),
            (Geometry { planes_per_die: 0, ..good }, "planes_per_die"),
            (Geometry { pages_per_block: 70_000, ..good }, "pages_per_block"),
            (Geometry { page_bytes: 5000, ..good }, "page"),
            (Geometry { page_bytes: 256, ..good }, "page"),
            (
                Geometry { blocks_per_plane: 1 << 20, pages_per_block: 4096, ..good },
                "blocks_per_plane",
            ),
        ] {
            let found = geometry.flaw().expect_err(field).field;
            assert_eq!(found, format!("geometry.{field}"));
        }
    }
}
