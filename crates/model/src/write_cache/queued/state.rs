//! The state of the cache and of the device behind it as bytes: see [`crate::snapshot`].
//!
//! With whatever is on its way. Paths are no part of it.

use std::cmp::Reverse;

use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::{Counts, Destage, Open, QueuedCache};
use crate::observe::Path;
use crate::queued::Ahead;
use crate::snapshot::{SnapshotReader, SnapshotWriter};
use crate::{Device, SnapshotError};

const KIND: &str = "qcache";

impl<D: Device> QueuedCache<D> {
    pub(super) fn save(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new(KIND, self.fingerprint);
        to.block(&self.behind.snapshot()?);
        self.lines.save(&mut to);
        self.ports.save(&mut to);
        to.u64s(&self.counts.numbers());
        let draining = u64::from(self.draining);
        to.u64s(&[self.clock, self.order, self.sent, draining, self.idle_from, self.arrived]);
        to.u64(self.open.len() as u64);
        for Open { ticket, request, at_ns, waits, is_forwarded, path: _ } in &self.open {
            let Request { due, offset, len, op, stream } = *request;
            let op = Op::ALL.iter().position(|own| *own == op).expect("one of them") as u64;
            to.u64s(&[*ticket, due.0, offset.0, u64::from(len), op, u64::from(stream)]);
            to.u64s(&[*at_ns, u64::from(*waits), u64::from(*is_forwarded)]);
        }
        to.u32s(&self.unused);
        let mut hits: Vec<_> = self.hits.iter().map(|Reverse(hit)| *hit).collect();
        hits.sort_unstable();
        to.u64(hits.len() as u64);
        for (at, order, slot) in hits {
            to.u64s(&[at, order, u64::from(slot)]);
        }
        to.u64(self.stalled.len() as u64);
        for (slot, line) in &self.stalled {
            to.u64s(&[u64::from(*slot), *line]);
        }
        to.u64(self.destages.len() as u64);
        for (number, Destage { first, end, waiting }) in &self.destages {
            to.u64s(&[*number, *first, *end]);
            to.u32s(waiting);
        }
        to.u64(self.last_of.len() as u64);
        for (line, number) in &self.last_of {
            to.u64s(&[*line, *number]);
        }
        to.u64(self.completed.len() as u64);
        for (at, ticket, _) in &self.completed {
            to.u64s(&[*at, *ticket]);
        }
        let (answered, arrived) = self.ahead.parts();
        to.u64s(&[answered as u64]);
        to.u64(arrived.len() as u64);
        arrived.for_each(|at| to.option(at));
        Some(to.finish())
    }

    pub(super) fn load(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let from = &mut SnapshotReader::new(bytes, KIND, self.fingerprint)?;
        self.behind.restore(from.block()?)?;
        self.lines.load(from)?;
        self.ports.load(from)?;
        self.counts = Counts::from_numbers(from.array()?);
        let [clock, order, sent, draining, idle_from, arrived] = from.array()?;
        (self.clock, self.order, self.sent) = (clock, order, sent);
        (self.draining, self.idle_from, self.arrived) = (draining != 0, idle_from, arrived);
        self.told = None;
        self.load_requests(from)?;
        self.load_destages(from)?;
        self.completed.clear();
        for _ in 0..from.counted(24)? {
            let [at, ticket] = from.array()?;
            self.completed.push_back((at, ticket, Path::EMPTY));
        }
        let [answered] = from.array()?;
        let count = from.counted(16)?;
        let arrived = (0..count).map(|_| from.option()).collect::<Result<Vec<_>, _>>()?;
        self.ahead = Ahead::from_parts(answered as usize, arrived);
        from.clone().finish()
    }

    fn load_requests(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        self.open.clear();
        for _ in 0..from.counted(88)? {
            let [ticket, due, offset, len, op, stream] = from.array()?;
            let [at_ns, waits, is_forwarded] = from.array()?;
            let op = *Op::ALL.get(op as usize).ok_or_else(|| from.damaged("no operation"))?;
            let (due, offset) = (Nanos(due), Bytes(offset));
            let request = Request { due, offset, len: len as u32, op, stream: stream as u16 };
            let (waits, is_forwarded) = (waits as u32, is_forwarded != 0);
            let path = Path::EMPTY;
            self.open.push(Open { ticket, request, at_ns, waits, is_forwarded, path });
        }
        let slots = self.open.len();
        self.unused = from.u32s_below(slots)?;
        self.hits.clear();
        for _ in 0..from.counted(32)? {
            let [at, order, slot] = from.array()?;
            self.hits.push(Reverse((at, order, slot_of(from, slot, slots)?)));
        }
        self.stalled.clear();
        for _ in 0..from.counted(24)? {
            let [slot, line] = from.array()?;
            self.stalled.push_back((slot_of(from, slot, slots)?, line));
        }
        Ok(())
    }

    fn load_destages(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        self.destages.clear();
        for _ in 0..from.counted(40)? {
            let [number, first, end] = from.array()?;
            let waiting = from.u32s_below(self.open.len())?;
            self.destages.insert(number, Destage { first, end, waiting });
        }
        self.last_of.clear();
        for _ in 0..from.counted(24)? {
            let [line, number] = from.array()?;
            self.last_of.insert(line, number);
        }
        Ok(())
    }
}

fn slot_of(from: &SnapshotReader, slot: u64, slots: usize) -> Result<u32, SnapshotError> {
    if slot < slots as u64 {
        Ok(slot as u32)
    } else {
        Err(from.damaged("a number is out of range"))
    }
}
