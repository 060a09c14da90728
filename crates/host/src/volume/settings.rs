//! What a volume is made of and how it behaves.

use serde::Deserialize;

/// md works on parity stripes in columns of one page per member (`STRIPE_SIZE`,
/// drivers/md/raid5.c).
pub const COLUMN_BYTES: u64 = 4096;

/// Most members of a volume: sets of members are bits of a `u64`.
pub const MOST_MEMBERS: usize = 64;

/// How a volume spreads its bytes over its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// One member behind the other.
    Concat,
    /// Chunks in turn over all members.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Chunks in turn, one of parity per stripe, left-symmetric.
    Raid5,
    /// Chunks in turn, two of parity per stripe, left-symmetric.
    Raid6,
    /// Chunks in turn, each on two members.
    Raid10,
}

/// Where RAID 10 puts the second copy of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copies {
    /// On the next member, beside the first.
    #[default]
    Near,
    /// On the next member, in the second half of it: reads stripe as in RAID 0.
    Far,
    /// On the next member, one row of chunks further.
    Offset,
}

/// Which mirror reads, where the request does not continue what a mirror read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBalance {
    /// The one with the fewest requests outstanding: md where a member does not rotate.
    #[default]
    LeastPending,
    /// The one whose head is nearest: md on disks.
    NearestHead,
}

/// How the parity of a column is made anew when only some of its data are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// From old data and old parity if that takes strictly fewer reads than from the data that
    /// stay (md, `handle_stripe_dirtying`).
    #[default]
    Fewest,
    /// From old data and old parity wherever possible: most controllers.
    Modify,
    /// From the data that stay wherever possible: md's RAID 6 before Linux 4.1.
    Reconstruct,
}

/// A volume. Sizes in bytes, times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The level.
    pub level: Level,
    /// Members that hold data or parity.
    pub members: usize,
    /// A chunk: what lies on one member before the next one's turn. Whole columns of 4 KiB.
    pub chunk_bytes: u64,
    /// The second copy in RAID 10.
    pub copies: Copies,
    /// Members that are lost, from 0.
    pub failed: Vec<usize>,
    /// Which mirror reads.
    pub read_balance: ReadBalance,
    /// How parity is updated.
    pub update: Update,
    /// Columns whose blocks stay known after a write (`stripe_cache_size`).
    pub stripe_cache: usize,
    /// Whole stripes of RAID 5 and 6 hand a trim down (`devices_handle_discard_safely`).
    pub parity_trim: bool,
}

impl Settings {
    /// `members` members at `level`, all else as md has it: chunks of 512 KiB, 256 columns kept.
    pub fn new(level: Level, members: usize) -> Self {
        Self {
            level,
            members,
            chunk_bytes: 512 << 10,
            copies: Copies::default(),
            failed: Vec::new(),
            read_balance: ReadBalance::default(),
            update: Update::default(),
            stripe_cache: 256,
            parity_trim: false,
        }
    }
}
