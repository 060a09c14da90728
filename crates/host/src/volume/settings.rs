//! What a volume is made of and how it behaves.

use serde::Deserialize;
use thiserror::Error;

/// md works on parity stripes in columns of one page per member (`STRIPE_SIZE`,
/// drivers/md/raid5.c).
pub const COLUMN_BYTES: u64 = 4096;

/// Most members of a volume: sets of members are bits of a `u64`.
pub const MOST_MEMBERS: usize = 64;

/// Why members make no such volume.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{field}: {cause}")]
pub struct Unfit {
    /// The setting, as a TOML path: `volume.members`.
    pub field: &'static str,
    /// What is wrong with it.
    pub cause: &'static str,
}

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

impl Level {
    /// The name in `stack.toml` and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Concat => "concat",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
            Self::Raid10 => "raid10",
        }
    }
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
    /// Columns of the stripe cache (`stripe_cache_size`): as many are in work at most, and blocks
    /// of as many stay known after a write. 0: none stays known, and any number is in work.
    pub stripe_cache: usize,
    /// Time of the one thread that works out parity, for each column; 0: none.
    pub parity_ns_per_column: u64,
    /// Requests that a member holds at a time; the others wait in order. `None`: 32 where it looks
    /// at its queue, all where it answers at once.
    pub depth: Option<usize>,
    /// Whole stripes of RAID 5 and 6 hand a trim down (`devices_handle_discard_safely`).
    pub parity_trim: bool,
    /// How a crash between the writes of one request is provided for.
    pub protection: Protection,
    /// The controller before the members, where it is not software that does it.
    pub controller: Option<Controller>,
    /// A lost member that is made anew.
    pub rebuild: Option<Rebuild>,
}

/// What bounds the damage of a crash between the writes of one request (the write hole).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: the whole volume is checked after a crash.
    #[default]
    None,
    /// A write-intent bitmap: regions are marked on every member before they are written, and
    /// unmarked when they have not been written for a while (md-bitmap.c).
    Bitmap {
        /// Bytes per mark.
        region_bytes: u64,
        /// Between two looks at what was not written.
        delay_ns: u64,
    },
    /// A log of data and parity on a further member, the last one (raid5-cache.c).
    Journal {
        /// Requests are done when they are in the log; parity is made later.
        write_back: bool,
        /// Its length.
        bytes: u64,
    },
    /// A partial parity log on the member of the parity (raid5-ppl.c).
    Ppl,
}

impl Protection {
    /// A bitmap as mdadm makes it: 64 MiB per mark, a look every 5 s.
    pub const BITMAP: Self = Self::Bitmap { region_bytes: 64 << 20, delay_ns: 5_000_000_000 };

    /// Bytes in front of each member that hold no data.
    pub(super) fn reserved_bytes(self) -> u64 {
        match self {
            Self::None | Self::Journal { .. } => 0,
            Self::Bitmap { .. } | Self::Ppl => 1 << 20,
        }
    }
}

/// A member that is made anew beside the load. Rates in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// The member, one of those that are lost.
    pub member: usize,
    /// The rate while there are requests (`speed_limit_min`).
    pub least_bytes_per_s: u64,
    /// The rate without any (`speed_limit_max`).
    pub most_bytes_per_s: u64,
    /// What is made at a time.
    pub step_bytes: u64,
}

impl Rebuild {
    /// `member` within md's limits: 1000 and 200,000 KiB/s; steps of 256 columns.
    pub fn of(member: usize) -> Self {
        let (least_bytes_per_s, most_bytes_per_s) = (1000 << 10, 200_000 << 10);
        Self { member, least_bytes_per_s, most_bytes_per_s, step_bytes: 1 << 20 }
    }
}

/// A controller. Sizes in bytes, times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Commands that it works on in parallel.
    pub contexts: usize,
    /// Time of each.
    pub command_ns: u64,
    /// Bandwidth of its bus; `f64::INFINITY` if that is no limit.
    pub bytes_per_s: f64,
    /// Time of each command that writes, where it is another.
    pub write_command_ns: Option<u64>,
    /// Bandwidth of writes, where it is another.
    pub write_bytes_per_s: Option<f64>,
    /// Commands on their way or at the members.
    pub queue: usize,
    /// Memory behind a battery: writes are answered from there. None: cache off, write-through.
    pub cache_bytes: u64,
    /// How soon they are, once they have crossed the bus.
    pub cache_ns: u64,
    /// Writes out of memory at a time.
    pub destages: usize,
}

impl Default for Controller {
    /// The generation of 2009: 50,000 commands/s (HP Smart Array P410), PCIe 1.0 x8, cache off.
    fn default() -> Self {
        Self {
            contexts: 1,
            command_ns: 20_000,
            bytes_per_s: 2e9,
            write_command_ns: None,
            write_bytes_per_s: None,
            queue: 256,
            cache_bytes: 0,
            cache_ns: 50_000,
            destages: 64,
        }
    }
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
            parity_ns_per_column: 0,
            depth: None,
            parity_trim: false,
            protection: Protection::None,
            controller: None,
            rebuild: None,
        }
    }

    /// The lost members, as bits.
    pub(super) fn lost(&self) -> u64 {
        self.failed.iter().fold(0, |lost, member| lost | 1 << member)
    }

    /// What cannot be, whatever the members are.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        let unfit = |field, cause| Err(Unfit { field, cause });
        let least = match self.level {
            Level::Concat | Level::Raid0 => 1,
            Level::Raid1 | Level::Raid10 => 2,
            Level::Raid5 => 3,
            Level::Raid6 => 4,
        };
        if self.members < least || self.members > MOST_MEMBERS {
            let cause = "raid1 and raid10 take at least 2 members, raid5 3, raid6 4; 64 are most";
            return unfit("volume.members", cause);
        }
        let is_whole =
            |bytes: u64| bytes > 0 && bytes.is_multiple_of(COLUMN_BYTES) && bytes <= 1 << 30;
        if !is_whole(self.chunk_bytes) {
            return unfit("volume.chunk", "a chunk is whole pages of 4 KiB, at most 1 GiB");
        }
        if self.failed.iter().any(|member| *member >= self.members) {
            return unfit("volume.failed", "there is no such member; they count from 0");
        }
        if self.depth == Some(0) {
            return unfit("volume.depth", "a member holds at least one request");
        }
        if !self.can_protect() {
            let cause = "a bitmap needs mirrors or parity; a journal of at least 1 MiB needs \
                         parity and no controller; ppl needs raid5";
            return unfit("volume.write_hole", cause);
        }
        if let Some(rebuild) = self.rebuild {
            if !self.failed.contains(&rebuild.member) {
                return unfit("volume.rebuild.member", "it is one of 'failed'");
            }
            let least = rebuild.least_bytes_per_s;
            if least == 0 || least > rebuild.most_bytes_per_s {
                let cause = "it is above 0 and at most most_per_second";
                return unfit("volume.rebuild.least_per_second", cause);
            }
            if !is_whole(rebuild.step_bytes) {
                let cause = "a step is whole pages of 4 KiB, at most 1 GiB";
                return unfit("volume.rebuild.step", cause);
            }
        }
        if let Some(controller) = &self.controller {
            let counts = [controller.contexts, controller.queue, controller.destages];
            if counts.contains(&0) {
                return unfit(
                    "volume.controller.contexts",
                    "contexts, queue, destages: at least 1",
                );
            }
            let rates = [Some(controller.bytes_per_s), controller.write_bytes_per_s];
            if rates.into_iter().flatten().any(|rate| rate.is_nan() || rate <= 0.0) {
                return unfit("volume.controller.mb_per_s", "a bandwidth is above 0");
            }
        }
        Ok(())
    }

    fn can_protect(&self) -> bool {
        let has_copies = !matches!(self.level, Level::Concat | Level::Raid0);
        let has_parity = matches!(self.level, Level::Raid5 | Level::Raid6);
        match self.protection {
            Protection::None => true,
            Protection::Bitmap { region_bytes, delay_ns } => {
                has_copies && region_bytes > 0 && delay_ns > 0
            }
            Protection::Journal { bytes, .. } => {
                has_parity && bytes >= 1 << 20 && self.controller.is_none()
            }
            Protection::Ppl => self.level == Level::Raid5,
        }
    }
}
