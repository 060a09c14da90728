//! What a power cut leaves of what was not synced.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::ftruncate;
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::place::Place;

/// Size of what survives or does not, where chance decides: what storage writes as a whole.
const SECTOR: u64 = 4096;

/// What a power cut leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nothing.
    All,
    /// Each sector, and each size, by chance.
    Some {
        /// Where the chance comes from.
        seed: u64,
    },
}

/// What was lost in a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Bytes written and not synced.
    pub bytes: u64,
    /// Files that held some.
    pub files: u64,
    /// Names made, removed or changed and not synced.
    pub names: u64,
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.files += other.files;
        self.names += other.names;
    }
}

impl Place {
    /// Takes back what was not synced, all of it or what chance says.
    pub(crate) fn cut_power(&mut self, fate: Fate) -> Result<Lost> {
        let mut chance = Chance(fate);
        let mut lost = Lost::default();
        for node in self.tree.all() {
            let Some((durable, old)) = node.images.borrow_mut().take() else { continue };
            let size = node.stat()?.st_size as u64;
            let kept = if size > durable { chance.size(durable, size) } else { durable };
            lost.bytes += size.saturating_sub(kept);
            lost.files += 1;
            ftruncate(&*node.file, kept)?;
            for (offset, bytes) in old {
                lost.bytes += put_back(&node.file, offset, &bytes, &mut chance)?;
            }
        }
        let keep = chance.below(self.names.pending());
        lost.names = self.names.take_back(keep)? as u64;
        Ok(lost)
    }
}

/// Writes old bytes back, sector by sector where chance spares some; tells how many.
pub(crate) fn put_back(file: &File, offset: u64, bytes: &[u8], chance: &mut Chance) -> Result<u64> {
    let mut lost = 0;
    let mut at = 0;
    while at < bytes.len() {
        let sector_end = (offset + at as u64 + 1).next_multiple_of(SECTOR) - offset;
        let end = (sector_end as usize).min(bytes.len());
        if !chance.survives() {
            file.write_all_at(&bytes[at..end], offset + at as u64)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            lost += (end - at) as u64;
        }
        at = end;
    }
    Ok(lost)
}

/// Decides what survives.
pub(crate) struct Chance(Fate);

impl Chance {
    pub(crate) fn new(fate: Fate) -> Self {
        Self(fate)
    }

    /// A number below 2^64, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014); `None` where all is
    /// lost.
    fn draw(&mut self) -> Option<u64> {
        let Fate::Some { seed } = &mut self.0 else { return None };
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }

    fn survives(&mut self) -> bool {
        self.draw().is_some_and(|drawn| drawn & 1 == 1)
    }

    /// Of this many changes in order, how many survive.
    fn below(&mut self, count: usize) -> usize {
        self.draw().map_or(0, |drawn| (drawn % (count as u64 + 1)) as usize)
    }

    /// How far a file that has grown is left, in whole sectors.
    fn size(&mut self, durable: u64, size: u64) -> u64 {
        let sectors = (size - durable).div_ceil(SECTOR);
        let kept = self.below(sectors as usize) as u64 * SECTOR;
        (durable + kept).min(size)
    }
}
