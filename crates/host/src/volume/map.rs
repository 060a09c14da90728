//! The address map: from a request of the volume to the requests of its members.
//!
//! Pure: it knows no devices and no time. With `n` members and chunks of `c` bytes, chunk `i` is at
//! - RAID 0: member `i mod n`, row `i / n`;
//! - RAID 10 near: slots `2i` and `2i + 1`, slot `s` at member `s mod n`, row `s / n`;
//! - RAID 10 far: as RAID 0 within the first half of the members, and again on the next member
//!   within the second half;
//! - RAID 10 offset: member `i mod n`, row `2 (i / n)`, and the next member, one row further;
//! - RAID 5 and 6: see [`super::parity`].
//!
//! A row is a chunk per member; row `r` starts at byte `r c`. drivers/md/raid0.c and
//! `__raid10_find_phys` in drivers/md/raid10.c.
//!
//! Members of several sizes count as the smallest, but for concat. Tested byte by byte against a
//! slow list of where every byte lies, and with content.

use trace::Op;

use super::parity::Parity;
use super::plan::{Part, Plan, Stage};
use super::settings::{Copies, Level, MOST_MEMBERS, Settings, Unfit};
use super::stripes::Stripes;

/// Where a piece of the volume lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The member, from 0.
    pub member: usize,
    /// First byte on it.
    pub offset: u64,
}

/// A range of the volume and what is to be done with it. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Its length; none for a flush.
    pub bytes: u64,
}

/// Which members hold what they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Members without content, as bits.
    pub lost: u64,
    /// One of them that is being rebuilt: it is written, and below this byte it is read, too.
    pub recovering: Option<Place>,
}

impl Health {
    /// Members that are not written, as bits.
    pub fn absent(&self) -> u64 {
        self.lost & !self.recovering.map_or(0, |at| 1 << at.member)
    }

    /// Members that cannot be read up to byte `end`, as bits.
    pub fn unreadable(&self, end: u64) -> u64 {
        match self.recovering {
            Some(at) if end <= at.offset => self.lost & !(1 << at.member),
            _ => self.lost,
        }
    }
}

/// The map of a volume.
#[derive(Clone, Debug)]
pub struct Map {
    level: Level,
    members: u64,
    chunk_bytes: u64,
    copies: Copies,
    /// Bytes used of each member; `u64::MAX` where a member does not say.
    member_bytes: u64,
    /// First volume byte of each member, and the end: concat.
    starts: Vec<u64>,
    parity: Option<Parity>,
    /// The members that are there.
    pub health: Health,
}

impl Map {
    /// The map of `settings` over members of these capacities (`None`: as much as is asked for).
    pub fn new(settings: &Settings, capacities: &[Option<u64>]) -> Result<Self, Unfit> {
        let unfit = |field, cause| Err(Unfit { field, cause });
        settings.check()?;
        let (count, chunk_bytes) = (settings.members, settings.chunk_bytes);
        if capacities.len() != count {
            return unfit("volume.members", "not as many devices");
        }
        let smallest = capacities.iter().flatten().min().copied();
        let reserved = settings.protection.reserved_bytes();
        let whole = |bytes: u64| bytes.saturating_sub(reserved) / chunk_bytes * chunk_bytes;
        let member_bytes = smallest.map_or(u64::MAX, whole);
        let is_far = settings.level == Level::Raid10 && settings.copies == Copies::Far;
        if is_far && smallest.is_none() {
            return unfit("volume.layout", "far copies need members of a known capacity");
        }
        if settings.rebuild.is_some() && smallest.is_none() {
            return unfit("volume.rebuild.member", "a rebuild needs a known capacity");
        }
        let mut starts = Vec::new();
        if settings.level == Level::Concat {
            let mut start = 0_u64;
            for (member, capacity) in capacities.iter().enumerate() {
                starts.push(start);
                let Some(bytes) = capacity.or((member + 1 == count).then_some(u64::MAX)) else {
                    return unfit("volume.level", "concat needs members of a known capacity");
                };
                start = start.saturating_add(bytes);
            }
            starts.push(start);
        }
        let lost = settings.lost();
        let made = Self {
            level: settings.level,
            members: count as u64,
            chunk_bytes,
            copies: settings.copies,
            member_bytes,
            starts,
            parity: Parity::new(settings),
            health: Health { lost, recovering: None },
        };
        if !made.survives(lost) {
            return unfit("volume.failed", "more is lost than the level can do without");
        }
        Ok(made)
    }

    /// Whether every byte is still there without the members `lost`, as bits.
    fn survives(&self, lost: u64) -> bool {
        let count = self.members;
        let both = |first: u64, second: u64| lost >> first & 1 == 1 && lost >> second & 1 == 1;
        match self.level {
            Level::Concat | Level::Raid0 => lost == 0,
            Level::Raid1 => u64::from(lost.count_ones()) < count,
            Level::Raid5 => lost.count_ones() <= 1,
            Level::Raid6 => lost.count_ones() <= 2,
            // An even number of members in pairs; the other layouts lean on the next one.
            Level::Raid10 if self.copies == Copies::Near && count.is_multiple_of(2) => {
                (0..count / 2).all(|pair| !both(2 * pair, 2 * pair + 1))
            }
            Level::Raid10 => (0..count).all(|member| !both(member, (member + 1) % count)),
        }
    }

    /// The capacity of the volume; `None` where the members do not say.
    pub fn capacity(&self) -> Option<u64> {
        let bytes = self.member_bytes;
        let rows = bytes / self.chunk_bytes;
        let chunks = match self.level {
            Level::Concat => {
                return self.starts.last().copied().filter(|bytes| *bytes != u64::MAX);
            }
            _ if bytes == u64::MAX => return None,
            Level::Raid0 => rows * self.members,
            Level::Raid1 => rows,
            Level::Raid5 => rows * (self.members - 1),
            Level::Raid6 => rows * (self.members - 2),
            Level::Raid10 if self.copies == Copies::Near => rows * self.members / 2,
            Level::Raid10 => rows / 2 * self.members,
        };
        Some(chunks * self.chunk_bytes)
    }

    /// Bytes of each member that are used; `None` where they do not say.
    pub fn member_bytes(&self) -> Option<u64> {
        Some(self.member_bytes).filter(|bytes| *bytes != u64::MAX)
    }

    /// The members that are written.
    pub fn present(&self) -> impl Iterator<Item = usize> + use<> {
        let absent = self.health.absent();
        (0..self.members as usize).filter(move |member| absent >> member & 1 == 0)
    }

    /// The parity of the level, where it has one.
    pub fn parity(&self) -> Option<&Parity> {
        self.parity.as_ref()
    }

    /// Adds to `plan` what `wanted` asks of the members. `choose` picks the copy that is read, and
    /// `stripes` knows what blocks of parity stripes need no read.
    pub fn plan(
        &self,
        wanted: &Wanted,
        choose: &mut impl FnMut(&[Place], u64) -> usize,
        stripes: &mut Stripes,
        plan: &mut Plan,
    ) {
        let Wanted { op, offset, bytes } = *wanted;
        if op == Op::Flush {
            for member in self.present() {
                plan.push(Stage::Store, Part { member, op, offset: 0, bytes: 0 });
            }
            return;
        }
        if let Some(parity) = &self.parity {
            match op {
                Op::Read => parity.read(&self.health, offset, bytes, stripes, plan),
                Op::Write => parity.write(&self.health, offset, bytes, stripes, plan),
                Op::Trim => parity.trim(&self.health, offset, bytes, stripes, plan),
                Op::Flush => unreachable!("it is done"),
            }
            return;
        }
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let (room, first, second) = self.places(at);
            let bytes = room.min(end - at);
            if self.level == Level::Raid1 {
                let mut all = [Place::default(); MOST_MEMBERS];
                let all = &mut all[..self.members as usize];
                all.iter_mut().zip(0..).for_each(|(place, member)| {
                    *place = Place { member, offset: at };
                });
                self.copies(op, all, bytes, choose, plan);
            } else if let Some(second) = second {
                self.copies(op, &mut [first, second], bytes, choose, plan);
            } else {
                let stage = if op == Op::Read { Stage::Fetch } else { Stage::Store };
                let Place { member, offset } = first;
                plan.push(stage, Part { member, op, offset, bytes });
            }
            at += bytes;
        }
    }

    /// Adds a piece that lies at all of `places`.
    fn copies(
        &self,
        op: Op,
        places: &mut [Place],
        bytes: u64,
        choose: &mut impl FnMut(&[Place], u64) -> usize,
        plan: &mut Plan,
    ) {
        let part = |place: &Place| Part { member: place.member, op, offset: place.offset, bytes };
        if op != Op::Read {
            let absent = self.health.absent();
            let there = places.iter().filter(|place| absent >> place.member & 1 == 0);
            there.for_each(|place| plan.push(Stage::Store, part(place)));
            return;
        }
        let mut count = 0;
        for index in 0..places.len() {
            let place = places[index];
            if self.health.unreadable(place.offset + bytes) >> place.member & 1 == 0 {
                places[count] = place;
                count += 1;
            }
        }
        let readable = &places[..count];
        let chosen = if count == 1 { 0 } else { choose(readable, bytes) };
        plan.push(Stage::Fetch, part(&readable[chosen]));
    }

    /// Adds to `plan` what makes `bytes` of a lost member at `at` anew: reads of members that hold
    /// them, then a write. What holds nothing is left out.
    pub fn rebuild(&self, at: Place, bytes: u64, plan: &mut Plan) {
        if let Some(parity) = &self.parity {
            parity.rebuild(&self.health, at, bytes, plan);
            return;
        }
        let Place { member, mut offset } = at;
        let end = offset + bytes;
        while offset < end {
            let bytes = (self.chunk_bytes - offset % self.chunk_bytes).min(end - offset);
            if let Some(copy) = self.other_copy(Place { member, offset }) {
                let (from, op) = (copy.member, Op::Read);
                plan.push(Stage::Fetch, Part { member: from, op, offset: copy.offset, bytes });
                plan.push(Stage::Store, Part { member, op: Op::Write, offset, bytes });
            }
            offset += bytes;
        }
    }

    /// Where else lies what lies at `at`; nowhere if nothing does.
    fn other_copy(&self, at: Place) -> Option<Place> {
        let count = self.members;
        let member = at.member as u64;
        let (row, within) = (at.offset / self.chunk_bytes, at.offset % self.chunk_bytes);
        let rows = self.member_bytes / self.chunk_bytes;
        let (next, last) = ((member + 1) % count, (member + count - 1) % count);
        let (member, row) = match (self.level, self.copies) {
            (Level::Raid1, _) => {
                let there = |other: &u64| self.health.lost >> other & 1 == 0;
                (((0..count).find(there))?, row)
            }
            (Level::Raid10, Copies::Near) => {
                let slot = (row * count + member) ^ 1;
                (slot % count, slot / count)
            }
            (Level::Raid10, Copies::Far) => match row.checked_sub(rows / 2) {
                None => (next, row + rows / 2),
                Some(row) if row < rows / 2 => (last, row),
                Some(_) => return None,
            },
            (Level::Raid10, Copies::Offset) if row.is_multiple_of(2) => (next, row + 1),
            (Level::Raid10, Copies::Offset) => (last, row - 1),
            _ => return None,
        };
        let offset = row * self.chunk_bytes + within;
        (row < rows).then_some(Place { member: member as usize, offset })
    }

    /// How many bytes from `at` on lie together, where, and where their copy lies in RAID 10.
    fn places(&self, at: u64) -> (u64, Place, Option<Place>) {
        let count = self.members;
        let (chunk, within) = (at / self.chunk_bytes, at % self.chunk_bytes);
        let place = |member: u64, row: u64| Place {
            member: member as usize,
            offset: row * self.chunk_bytes + within,
        };
        let room = self.chunk_bytes - within;
        match self.level {
            Level::Concat => {
                let member = self.starts.partition_point(|start| *start <= at) - 1;
                assert!(member < count as usize, "byte {at} is behind the end of the volume");
                let room = self.starts[member + 1] - at;
                (room, Place { member, offset: at - self.starts[member] }, None)
            }
            Level::Raid1 => (u64::MAX, Place { member: 0, offset: at }, None),
            Level::Raid0 => (room, place(chunk % count, chunk / count), None),
            Level::Raid10 => {
                let (member, row) = (chunk % count, chunk / count);
                let next = (member + 1) % count;
                let slot = |slot: u64| place(slot % count, slot / count);
                let (first, second) = match self.copies {
                    Copies::Near => (slot(2 * chunk), slot(2 * chunk + 1)),
                    Copies::Far => {
                        let half = self.member_bytes / self.chunk_bytes / 2;
                        (place(member, row), place(next, half + row))
                    }
                    Copies::Offset => (place(member, 2 * row), place(next, 2 * row + 1)),
                };
                (room, first, Some(second))
            }
            Level::Raid5 | Level::Raid6 => unreachable!("parity has its own map"),
        }
    }
}
