//! The state of a disk as bytes: see [`crate::snapshot`].
//!
//! All of it: where the arm is, what the buffer holds and what it owes the platter, the read-ahead
//! in its course, the commands that wait and the completions that are known already. The angle of
//! the platters is a function of time and needs no place here.
//!
//! Every structure is taken apart without `..`, so that a new field does not compile until it is
//! saved or said to be a parameter. Tested by going on from the middle of random runs.

use super::arm::Arm;
use super::queue::Held;
use super::write_back::{Dirty, WriteBack};
use super::{Ahead, Counts, Hdd, Queue};
use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

const KIND: &str = "hdd";

impl Hdd {
    pub(super) fn save(&self) -> Vec<u8> {
        let Self {
            mechanism: _,
            overhead: _,
            bus: _,
            buffer: _,
            sectors: _,
            segments,
            arm,
            ready_at,
            arm_free_at,
            after_write,
            ahead,
            streaming,
            write_back,
            arm_writing_until,
            counts,
            depth: _,
            most_wait_ns: _,
            queue,
            told_until: _,
            fingerprint,
        } = self;
        let mut to = SnapshotWriter::new(KIND, *fingerprint);
        segments.save(&mut to);
        let Arm { cylinder, head } = *arm;
        to.u64s(&[cylinder.into(), head.into(), *ready_at, *arm_free_at, *arm_writing_until]);
        to.u64s(&[u64::from(*after_write), u64::from(*streaming)]);
        to.u64(u64::from(ahead.is_some()));
        if let Some(Ahead { segment, next, limit, at_ns }) = *ahead {
            to.u64s(&[segment as u64, next, limit, at_ns]);
        }
        let WriteBack { dirty, sectors } = write_back;
        to.u64(u64::from(*sectors));
        to.u64(dirty.len() as u64);
        for Dirty { ready_at, lbn, count, place: _ } in dirty {
            to.u64s(&[*ready_at, *lbn, u64::from(*count)]);
        }
        to.u64s(&counts.numbers());
        queue.save(&mut to);
        to.finish()
    }

    pub(super) fn load(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, KIND, self.fingerprint)?;
        self.segments.load(&mut from)?;
        let [cylinder, head, ready_at, arm_free_at, arm_writing_until] = from.array()?;
        if cylinder >= u64::from(self.mechanism.layout.cylinders()) || head > u64::from(u32::MAX) {
            return Err(from.damaged("the arm is beyond the platters"));
        }
        self.arm = Arm { cylinder: cylinder as u32, head: head as u32 };
        (self.ready_at, self.arm_free_at) = (ready_at, arm_free_at);
        self.arm_writing_until = arm_writing_until;
        let [after_write, streaming] = from.array()?;
        (self.after_write, self.streaming) = (after_write != 0, streaming != 0);
        self.ahead = None;
        if from.below(2)? == 1 {
            let [segment, next, limit, at_ns] = from.array()?;
            if segment >= u64::from(self.buffer.segments) || next > limit || limit > self.sectors {
                return Err(from.damaged("a read-ahead leads nowhere"));
            }
            self.ahead = Some(Ahead { segment: segment as usize, next, limit, at_ns });
        }
        let sectors = from.u64()?;
        let count = from.counted(24)?;
        self.write_back = WriteBack { dirty: Vec::new(), sectors: sectors as u32 };
        for _ in 0..count {
            let [ready_at, lbn, count] = from.array()?;
            let place = self.place(&from, lbn, count)?;
            self.write_back.dirty.push(Dirty { ready_at, lbn, count: count as u32, place });
        }
        self.counts = Counts::from_numbers(from.array()?);
        let mut queue = Queue::default();
        queue.load(&mut from, self)?;
        self.queue = queue;
        from.finish()
    }

    /// The place of `count` sectors from `lbn`, which are on the disk.
    fn place(
        &self,
        from: &SnapshotReader,
        lbn: u64,
        count: u64,
    ) -> Result<super::layout::Place, SnapshotError> {
        if count > u64::from(u32::MAX)
            || lbn.checked_add(count).is_none_or(|end| end > self.sectors)
        {
            return Err(from.damaged("a sector is beyond the end"));
        }
        Ok(self.mechanism.layout.locate(lbn))
    }
}

impl Counts {
    fn numbers(&self) -> [u64; 6] {
        let Self { requests, read_bytes, written_bytes, read_hits, partial_hits, buffered_writes } =
            *self;
        [requests, read_bytes, written_bytes, read_hits, partial_hits, buffered_writes]
    }

    fn from_numbers(numbers: [u64; 6]) -> Self {
        let [requests, read_bytes, written_bytes, read_hits, partial_hits, buffered_writes] =
            numbers;
        Self { requests, read_bytes, written_bytes, read_hits, partial_hits, buffered_writes }
    }
}

impl Queue {
    fn save(&self, to: &mut SnapshotWriter) {
        let Self { base, done, held, buffer_free_at, paths: _, given: _ } = self;
        to.u64s(&[*base as u64, *buffer_free_at]);
        to.u64(done.len() as u64);
        for completion in done {
            to.u64(*completion);
        }
        to.u64(held.len() as u64);
        for Held { index, due, since, lbn, count, write, place: _ } in held {
            to.u64s(&[*index as u64, *due, *since, *lbn, u64::from(*count), u64::from(*write)]);
        }
    }

    fn load(&mut self, from: &mut SnapshotReader, disk: &Hdd) -> Result<(), SnapshotError> {
        let [base, buffer_free_at] = from.array()?;
        (self.base, self.buffer_free_at) = (base as usize, buffer_free_at);
        let done = from.counted(8)?;
        self.done = (0..done).map(|_| from.u64()).collect::<Result<_, _>>()?;
        for _ in 0..from.counted(56)? {
            let [index, due, since, lbn, count, write] = from.array()?;
            let place = disk.place(from, lbn, count)?;
            if index.checked_sub(base).is_none_or(|at| at >= done as u64) {
                return Err(from.damaged("a command belongs to no request"));
            }
            let (index, count, write) = (index as usize, count as u32, write != 0);
            self.held.push(Held { index, due, since, lbn, count, write, place });
        }
        Ok(())
    }
}
