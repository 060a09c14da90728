//! What a write leaves behind in case of a crash: marks of regions, a log on a further member, a
//! log of partial parity.
//!
//! - Bitmap (drivers/md/md-bitmap.c): before the first write into a region its mark is written to
//!   every member and flushed; regions that were not written between two looks are unmarked by one
//!   write to every member. A second write does not wait for a mark that is on its way.
//! - Journal (raid5-cache.c): data and parity go to the log behind a block of 4 KiB that describes
//!   them, the log is flushed, then they go to their places; a flush has nothing left to do. In
//!   write-back mode a request is done when its data are in the log, and a flush writes a block
//!   and flushes the log; parity follows when the stripe is written.
//! - Partial parity log (raid5-ppl.c): columns that are not written whole write, for each stripe,
//!   the parity of what stays, behind a header of 4 KiB, to the parity's member.

use std::collections::BTreeMap;

use trace::Op;

use super::map::{Map, Wanted};
use super::plan::{Part, Plan, Stage};
use super::settings::{COLUMN_BYTES, Protection};

/// The log of partial parity within the reserved megabyte.
const PPL_BYTES: std::ops::Range<u64> = 64 << 10..1 << 20;

/// Marks and logs of a volume.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    kind: Protection,
    /// The member that is the journal.
    journal: usize,
    /// Next byte of the log, per member.
    heads: Vec<u64>,
    /// Marked regions, with whether they were written since the last look.
    marked: BTreeMap<u64, bool>,
    pub marks: u64,
    pub logged_bytes: u64,
}

impl Guard {
    pub fn new(kind: Protection, members: usize) -> Self {
        let start = if kind == Protection::Ppl { PPL_BYTES.start } else { 0 };
        Self {
            kind,
            journal: members,
            heads: vec![start; members + 1],
            marked: BTreeMap::new(),
            marks: 0,
            logged_bytes: 0,
        }
    }

    /// Adds to the plan of a write what goes before it. Says whether regions are marked that were
    /// not.
    pub fn before(&mut self, map: &Map, wanted: &Wanted, plan: &mut Plan) -> bool {
        match self.kind {
            Protection::None => {}
            Protection::Bitmap { region_bytes, .. } => {
                return self.mark(map, wanted, region_bytes, plan);
            }
            Protection::Journal { write_back, bytes } => {
                plan.put_off_writes();
                let all = plan.stage(Stage::Store).iter();
                let stored: u64 = all.map(|part| part.bytes).sum();
                // In write-back mode the data are there already.
                let logged = if write_back { stored.saturating_sub(wanted.bytes) } else { stored };
                self.log(bytes, logged + COLUMN_BYTES, plan);
            }
            Protection::Ppl => self.partial_parity(map, wanted, plan),
        }
        false
    }

    /// A write of the journal in write-back mode: its data, and a block that describes them.
    pub fn log_data(&mut self, data_bytes: u64, flush: bool, plan: &mut Plan) {
        let Protection::Journal { bytes, .. } = self.kind else { unreachable!("no journal") };
        self.append(self.journal, 0..bytes, data_bytes + COLUMN_BYTES, plan);
        if flush {
            let (member, op) = (self.journal, Op::Flush);
            plan.push(Stage::Secure, Part { member, op, offset: 0, bytes: 0 });
        }
    }

    fn log(&mut self, space: u64, bytes: u64, plan: &mut Plan) {
        self.append(self.journal, 0..space, bytes, plan);
        let (member, op) = (self.journal, Op::Flush);
        plan.push(Stage::Secure, Part { member, op, offset: 0, bytes: 0 });
    }

    /// Writes `bytes`, in blocks of 4 KiB, behind what was logged on `member`.
    fn append(&mut self, member: usize, space: std::ops::Range<u64>, bytes: u64, plan: &mut Plan) {
        let mut left = bytes.next_multiple_of(COLUMN_BYTES);
        self.logged_bytes += left;
        while left > 0 {
            let offset = self.heads[member];
            let bytes = left.min(space.end - offset);
            plan.push(Stage::Log, Part { member, op: Op::Write, offset, bytes });
            left -= bytes;
            let next = offset + bytes;
            self.heads[member] = if next == space.end { space.start } else { next };
        }
    }

    fn partial_parity(&mut self, map: &Map, wanted: &Wanted, plan: &mut Plan) {
        let parity = map.parity().expect("ppl is for raid5");
        // Columns that wait for reads are those that are not written whole.
        let stored: Vec<Part> = plan.stage(Stage::Store).to_vec();
        for columns in parity.columns(wanted.offset, wanted.bytes) {
            let stripe = parity.stripe_of(columns.start);
            let member = parity.parity_members(stripe).next().expect("raid5 has one");
            let bytes: u64 = stored
                .iter()
                .filter(|part| part.member == member)
                .map(|part| {
                    let end = (part.offset + part.bytes).min(columns.end * COLUMN_BYTES);
                    end.saturating_sub(part.offset.max(columns.start * COLUMN_BYTES))
                })
                .sum();
            if bytes > 0 {
                self.append(member, PPL_BYTES, bytes + COLUMN_BYTES, plan);
            }
        }
    }

    fn mark(&mut self, map: &Map, wanted: &Wanted, region_bytes: u64, plan: &mut Plan) -> bool {
        let mut fresh = false;
        let mut touch = |from: u64, to: u64| {
            for region in from / region_bytes..to.div_ceil(region_bytes) {
                fresh |= self.marked.insert(region, true).is_none();
            }
        };
        match map.parity() {
            Some(parity) => parity.columns(wanted.offset, wanted.bytes).for_each(|columns| {
                touch(columns.start * COLUMN_BYTES, columns.end * COLUMN_BYTES);
            }),
            None => touch(wanted.offset, wanted.offset + wanted.bytes),
        }
        if fresh {
            self.marks += 1;
            write_marks(map, Stage::Mark, plan);
            for member in map.present() {
                plan.push(Stage::Settle, Part { member, op: Op::Flush, offset: 0, bytes: 0 });
            }
        }
        fresh
    }

    /// Looks at what was not written since the last time; whether anything stays marked.
    pub fn look(&mut self, map: &Map, plan: &mut Plan) -> bool {
        let before = self.marked.len();
        self.marked.retain(|_, written| std::mem::take(written));
        if self.marked.len() < before {
            write_marks(map, Stage::Store, plan);
        }
        !self.marked.is_empty()
    }
}

/// The marks of all regions, on every member.
fn write_marks(map: &Map, stage: Stage, plan: &mut Plan) {
    for member in map.present() {
        plan.push(stage, Part { member, op: Op::Write, offset: 0, bytes: COLUMN_BYTES });
    }
}
