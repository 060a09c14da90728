//! RAID 5 and 6 as md does them: where data and parity lie, and what a write reads.
//!
//! Left-symmetric (drivers/md/raid5.c, `raid5_compute_sector`): with `n` members the parity P of
//! stripe `s` is on member `n - 1 - s mod n`, RAID 6 has Q on the next, and the data follow in
//! turn. Work is done in columns, a page of 4 KiB of each member:
//! - `k` of the data blocks of a column are written. Read-modify-write reads those and the parity,
//!   reconstruct-write the data blocks that are not written whole, each less what the stripe cache
//!   knows; md modifies only if that takes strictly fewer reads (`handle_stripe_dirtying`). For
//!   RAID 5 that is `min(k + 1, n - 1 - k)` reads and `k + 1` writes.
//! - A block that is written in part is written whole.
//! - A lost block that is needed takes all others of its column. If all parity is lost, data are
//!   written without reads; md reads for a parity that it then cannot write.
//! - Reads of blocks that are there pass by the stripe cache.

use std::ops::Range;

use trace::Op;

use super::map::{Health, Place, Wanted};
use super::plan::{Part, Plan, Stage};
use super::settings::{COLUMN_BYTES, Level, Settings, Update};
use super::stripes::Stripes;

/// The geometry of parity stripes, and the rules for their updates.
#[derive(Clone, Debug)]
pub struct Parity {
    members: u64,
    /// Blocks of parity per column: 1 or 2.
    spare: u64,
    chunk_bytes: u64,
    update: Update,
    trims: bool,
}

/// A range of bytes within one stripe, as `stripe` and data bytes of it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    stripe: u64,
    start: u64,
    end: u64,
}

impl Parity {
    /// That of `settings`; none where the level has none.
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        let spare = match settings.level {
            Level::Raid5 => 1,
            Level::Raid6 => 2,
            _ => return None,
        };
        Some(Self {
            members: settings.members as u64,
            spare,
            chunk_bytes: settings.chunk_bytes,
            update: settings.update,
            trims: settings.parity_trim,
        })
    }

    /// The member that holds data chunk `data` of `stripe`.
    pub fn data_member(&self, stripe: u64, data: u64) -> usize {
        ((self.first_parity(stripe) + self.spare + data) % self.members) as usize
    }

    /// The members that hold its parity: P, and Q in RAID 6.
    pub fn parity_members(&self, stripe: u64) -> impl Iterator<Item = usize> + use<> {
        let (first, members) = (self.first_parity(stripe), self.members);
        (0..self.spare).map(move |index| ((first + index) % members) as usize)
    }

    fn first_parity(&self, stripe: u64) -> u64 {
        self.members - 1 - stripe % self.members
    }

    /// Data bytes of a stripe.
    fn width(&self) -> u64 {
        (self.members - self.spare) * self.chunk_bytes
    }

    /// The range stripe by stripe.
    fn pieces(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Piece> + use<> {
        let (width, end) = (self.width(), offset + bytes);
        let stripes = offset / width..end.div_ceil(width);
        stripes.map(move |stripe| Piece {
            stripe,
            start: offset.max(stripe * width) - stripe * width,
            end: end.min((stripe + 1) * width) - stripe * width,
        })
    }

    /// The range of `piece` that lies in data chunk `data`.
    fn within(&self, piece: &Piece, data: u64) -> Range<u64> {
        let first = data * self.chunk_bytes;
        let start = piece.start.clamp(first, first + self.chunk_bytes);
        let end = piece.end.clamp(first, first + self.chunk_bytes);
        start - first..end - first
    }

    /// Data chunks that `piece` touches.
    fn chunks(&self, piece: &Piece) -> Range<u64> {
        piece.start / self.chunk_bytes..piece.end.div_ceil(self.chunk_bytes)
    }

    /// Columns within a chunk that `piece` touches; one range, so perhaps some between two chunks
    /// that it does not.
    fn touched(&self, piece: &Piece) -> Range<u64> {
        let chunks = self.chunks(piece);
        let ranges = chunks.map(|data| self.within(piece, data));
        let (start, end) = ranges.fold((u64::MAX, 0), |(start, end), range| {
            (start.min(range.start), end.max(range.end))
        });
        start / COLUMN_BYTES..end.div_ceil(COLUMN_BYTES)
    }

    /// The stripe of a column.
    pub(super) fn stripe_of(&self, column: u64) -> u64 {
        column / self.columns_per_chunk()
    }

    fn columns_per_chunk(&self) -> u64 {
        self.chunk_bytes / COLUMN_BYTES
    }

    /// The columns of a range, stripe by stripe; a column is counted by its place on a member.
    pub fn columns(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.pieces(offset, bytes).map(|piece| {
            let first = piece.stripe * self.columns_per_chunk();
            let within = self.touched(&piece);
            first + within.start..first + within.end
        })
    }

    /// Whether a read of the range needs blocks that are lost.
    pub fn needs_lost(&self, health: &Health, offset: u64, bytes: u64) -> bool {
        health.lost != 0
            && self.pieces(offset, bytes).any(|piece| {
                self.chunks(&piece).any(|data| {
                    let end = piece.stripe * self.chunk_bytes + self.within(&piece, data).end;
                    health.unreadable(end) >> self.data_member(piece.stripe, data) & 1 == 1
                })
            })
    }

    /// Whether `wanted` has its columns for itself: writes, and reads of what is lost.
    pub(super) fn holds(&self, health: &Health, wanted: &Wanted) -> bool {
        match wanted.op {
            Op::Write => true,
            Op::Read => self.needs_lost(health, wanted.offset, wanted.bytes),
            Op::Trim | Op::Flush => false,
        }
    }

    pub(super) fn read(
        &self,
        health: &Health,
        offset: u64,
        bytes: u64,
        stripes: &mut Stripes,
        plan: &mut Plan,
    ) {
        for piece in self.pieces(offset, bytes) {
            let row = piece.stripe * self.chunk_bytes;
            for data in self.chunks(&piece) {
                let (member, range) =
                    (self.data_member(piece.stripe, data), self.within(&piece, data));
                let op = Op::Read;
                let part =
                    Part { member, op, offset: row + range.start, bytes: range.end - range.start };
                if health.unreadable(row + range.end) >> member & 1 == 0 {
                    plan.push(Stage::Fetch, part);
                    continue;
                }
                let first = row / COLUMN_BYTES;
                let touched =
                    first + range.start / COLUMN_BYTES..first + range.end.div_ceil(COLUMN_BYTES);
                for column in touched {
                    let lost = health.unreadable((column + 1) * COLUMN_BYTES);
                    let known = stripes.known(column);
                    if known >> member & 1 == 0 {
                        push(plan, Stage::Fetch, Op::Read, column, self.all() & !lost & !known);
                    }
                    stripes.learn(column, self.all());
                }
            }
        }
    }

    pub(super) fn write(
        &self,
        health: &Health,
        offset: u64,
        bytes: u64,
        stripes: &mut Stripes,
        plan: &mut Plan,
    ) {
        for piece in self.pieces(offset, bytes) {
            let parity = self.parity_members(piece.stripe).fold(0, |all, member| all | 1 << member);
            let first = piece.stripe * self.columns_per_chunk();
            for within in self.touched(&piece) {
                let (mut written, mut whole) = (0_u64, 0_u64);
                let (start, end) = (within * COLUMN_BYTES, (within + 1) * COLUMN_BYTES);
                for data in self.chunks(&piece) {
                    let range = self.within(&piece, data);
                    let bit = 1 << self.data_member(piece.stripe, data);
                    if range.start < end && range.end > start {
                        written |= bit;
                        if range.start <= start && range.end >= end {
                            whole |= bit;
                        }
                    }
                }
                if written == 0 {
                    continue;
                }
                let column = first + within;
                let lost = health.unreadable((column + 1) * COLUMN_BYTES);
                let known = stripes.known(column);
                let read = self.reads(Column { parity, written, whole, lost, known });
                let stage = if read == 0 { Stage::Fetch } else { Stage::Store };
                push(plan, Stage::Fetch, Op::Read, column, read);
                // What a rebuild has not reached yet it will make anew.
                push(plan, stage, Op::Write, column, (written | parity) & !lost);
                stripes.learn(column, read | written | parity & !lost);
            }
        }
    }

    /// The blocks of a column that a write reads, as bits.
    fn reads(&self, column: Column) -> u64 {
        let Column { parity, written, whole, lost, known } = column;
        if parity & !lost == 0 {
            return 0;
        }
        let modify = (written | parity & !lost) & !known;
        let rebuild = self.all() & !parity & !whole & !known;
        let fewer = match self.update {
            Update::Fewest => modify.count_ones() < rebuild.count_ones(),
            Update::Modify => true,
            Update::Reconstruct => false,
        };
        match (modify & lost == 0, rebuild & lost == 0) {
            // What is known already needs no other way.
            (_, true) if rebuild == 0 => 0,
            (true, true) if fewer => modify,
            (true, false) => modify,
            (_, true) => rebuild,
            (false, false) => self.all() & !lost & !known,
        }
    }

    /// Whole stripes only, where trims are let through: parity of zeros is zeros.
    pub(super) fn trim(
        &self,
        health: &Health,
        offset: u64,
        bytes: u64,
        stripes: &mut Stripes,
        plan: &mut Plan,
    ) {
        let whole = |piece: &Piece| piece.start == 0 && piece.end == self.width();
        for piece in self.pieces(offset, bytes).filter(|piece| self.trims && whole(piece)) {
            let first = piece.stripe * self.columns_per_chunk();
            (first..first + self.columns_per_chunk()).for_each(|column| stripes.forget(column));
            for member in bits(self.all() & !health.absent()) {
                let (offset, bytes) = (piece.stripe * self.chunk_bytes, self.chunk_bytes);
                plan.push(Stage::Store, Part { member, op: Op::Trim, offset, bytes });
            }
        }
    }

    /// All members, as bits.
    fn all(&self) -> u64 {
        u64::MAX >> (64 - self.members)
    }

    /// What makes the blocks of the lost member at `at` anew: reads of the others, then a write.
    pub(super) fn rebuild(&self, health: &Health, at: Place, bytes: u64, plan: &mut Plan) {
        let Place { member, offset } = at;
        let others = self.all() & !health.unreadable(offset + bytes) & !(1 << member);
        for other in bits(others) {
            plan.push(Stage::Fetch, Part { member: other, op: Op::Read, offset, bytes });
        }
        plan.push(Stage::Store, Part { member, op: Op::Write, offset, bytes });
    }
}

/// A block of `column` on each of `members`.
fn push(plan: &mut Plan, stage: Stage, op: Op, column: u64, members: u64) {
    for member in bits(members) {
        let (offset, bytes) = (column * COLUMN_BYTES, COLUMN_BYTES);
        plan.push(stage, Part { member, op, offset, bytes });
    }
}

/// A column that is written. Sets of members, as bits.
#[derive(Clone, Copy)]
struct Column {
    parity: u64,
    written: u64,
    whole: u64,
    lost: u64,
    known: u64,
}

/// The members of a set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let member = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            member
        })
    })
}
