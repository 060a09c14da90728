//! What one request of a volume becomes: stages of member requests.

use trace::Op;

/// A request of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The member, from 0.
    pub member: usize,
    /// What it does.
    pub op: Op,
    /// First byte on the member.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// What the parts of a request wait for: a stage starts when the one before is done; the parts of a
/// stage run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Notes that a region is going to be written.
    Mark,
    /// Makes the notes durable.
    Settle,
    /// Reads: what is asked for, and what parity needs. Columns that need no reads are written
    /// beside them.
    Fetch,
    /// Writes to a log, before anything in place.
    Log,
    /// Makes the log durable.
    Secure,
    /// Writes in place, flushes and trims.
    Store,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Mark, Self::Settle, Self::Fetch, Self::Log, Self::Secure, Self::Store];
}

/// The stages of one request. Kept and filled again: no allocation per request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    stages: [Vec<Part>; Stage::ALL.len()],
}

impl Plan {
    /// No parts.
    pub fn clear(&mut self) {
        self.stages.iter_mut().for_each(Vec::clear);
    }

    /// The parts of a stage.
    pub fn stage(&self, stage: Stage) -> &[Part] {
        &self.stages[stage as usize]
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(Vec::is_empty)
    }

    /// All parts.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.stages.iter().flatten()
    }

    /// Adds `part`, merged with what lies before it on its member, as the block layer merges what
    /// is plugged together.
    pub fn push(&mut self, stage: Stage, part: Part) {
        let parts = &mut self.stages[stage as usize];
        match parts.iter_mut().rev().find(|last| last.member == part.member) {
            Some(last) if last.op == part.op && last.offset + last.bytes == part.offset => {
                last.bytes += part.bytes;
            }
            _ => parts.push(part),
        }
    }

    /// Lets no write go beside the reads: they wait for a log.
    pub(super) fn put_off_writes(&mut self) {
        for index in 0..self.stages[Stage::Fetch as usize].len() {
            let part = self.stages[Stage::Fetch as usize][index];
            if part.op == Op::Write {
                self.push(Stage::Store, part);
            }
        }
        self.stages[Stage::Fetch as usize].retain(|part| part.op != Op::Write);
    }

    /// Moves the parts of `stages` by `bytes` on their members.
    pub(super) fn shift(&mut self, bytes: u64, stages: &[Stage]) {
        for stage in stages {
            let parts = self.stages[*stage as usize].iter_mut();
            parts.filter(|part| part.op != Op::Flush).for_each(|part| part.offset += bytes);
        }
    }

    /// The bytes of all parts that do `op`.
    pub fn bytes(&self, op: Op) -> u64 {
        self.parts().filter(|part| part.op == op).map(|part| part.bytes).sum()
    }
}
