//! The state of a disk as bytes: see [`crate::snapshot`].
//!
//! All of it: where the arm is, what the buffer holds and what it owes the platter, the read-ahead
//! in its course, the commands that wait and the completions that are known already. The angle of
//! the platters is a function of time and needs no place here.
//!
//! Every structure is taken apart without `..`, so that a new field does not compile until it is
//! saved or said to be a parameter. Tested by going on from the middle of random runs.

use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::arm::Arm;
use super::queue::{Held, Known, Waiting};
use super::write_back::{Dirty, WriteBack};
use super::{Ahead, Counts, Hdd, Queue};

use crate::SnapshotError;
use crate::observe::Path;
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
            taken_ahead,
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
        let (answered, arrived) = taken_ahead.parts();
        to.u64(answered as u64);
        to.u64(arrived.len() as u64);
        arrived.for_each(|at| to.u64s(&[u64::from(at.is_some()), at.unwrap_or(0)]));
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
        let answered = from.u64()? as usize;
        let mut arrived = Vec::new();
        for _ in 0..from.counted(16)? {
            let [is_known, at] = from.array()?;
            arrived.push((is_known != 0).then_some(at));
        }
        self.taken_ahead = crate::queued::Ahead::from_parts(answered, arrived);
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
        let Self { waiting, held, known, buffer_free_at, serves_until } = self;
        to.u64s(&[*buffer_free_at, *serves_until]);
        to.u64(waiting.len() as u64);
        for Waiting { at, ticket, request } in waiting {
            let Request { due, offset, len, op, stream } = *request;
            let op = Op::ALL.iter().position(|own| *own == op).expect("one of them") as u64;
            to.u64s(&[*at, *ticket, due.0, offset.0, len.into(), op, stream.into()]);
        }
        to.u64(held.len() as u64);
        for Held { ticket, due, since, lbn, count, write, place: _ } in held {
            to.u64s(&[*ticket, *due, *since, *lbn, u64::from(*count), u64::from(*write)]);
        }
        to.u64(known.len() as u64);
        for Known { at, ticket, path: _ } in known {
            to.u64s(&[*at, *ticket]);
        }
    }

    fn load(&mut self, from: &mut SnapshotReader, disk: &Hdd) -> Result<(), SnapshotError> {
        [self.buffer_free_at, self.serves_until] = from.array()?;
        for _ in 0..from.counted(56)? {
            let [at, ticket, due, offset, len, op, stream] = from.array()?;
            let op = Op::ALL.get(op as usize).ok_or_else(|| from.damaged("an operation"))?;
            let (due, offset) = (Nanos(due), Bytes(offset));
            let (len, stream) = (len as u32, stream as u16);
            let request = Request { due, offset, len, op: *op, stream };
            self.waiting.push_back(Waiting { at, ticket, request });
        }
        for _ in 0..from.counted(48)? {
            let [ticket, due, since, lbn, count, write] = from.array()?;
            let place = disk.place(from, lbn, count)?;
            let (count, write) = (count as u32, write != 0);
            self.held.push(Held { ticket, due, since, lbn, count, write, place });
        }
        for _ in 0..from.counted(16)? {
            let [at, ticket] = from.array()?;
            self.known.push(Known { at, ticket, path: Path::default() });
        }
        Ok(())
    }
}
