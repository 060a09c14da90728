//! Splits an input or a part: a cluster per part is filled and sent off when it is full.

use std::collections::VecDeque;

use super::plan::part_of;
use super::reader::Reader;
use super::{PROBE, Work};
use crate::error::Error;
use crate::medium::Medium;
use crate::queue::Queue;
use crate::rows::{Rows, rank};
use crate::space::{Space, Stretch};

/// The clusters being filled.
struct Splitter<'a> {
    space: &'a mut Space,
    width: usize,
    rows_per_cluster: u64,
    stream: u16,
    level: u32,
    parts: Vec<Stretch>,
    /// By part: the slot that is filled, and the rows in it.
    filling: Vec<(u32, u64)>,
    free: Vec<u32>,
    /// Slots under way, oldest first.
    sent: VecDeque<u32>,
}

impl Splitter<'_> {
    /// Puts a row where it belongs; whether a cluster was sent.
    #[inline]
    fn put<M: Medium>(&mut self, queue: &mut Queue<'_, M>, row: &[u8]) -> Result<bool, Error> {
        let part = part_of(rank(row).0, self.level, self.parts.len() as u64);
        let (slot, filled) = &mut self.filling[part];
        let start = *filled as usize * self.width;
        queue.slot(*slot)[start..start + self.width].copy_from_slice(row);
        *filled += 1;
        if *filled < self.rows_per_cluster {
            return Ok(false);
        }
        self.send(queue, part)?;
        let fresh = if let Some(slot) = self.free.pop() {
            slot
        } else {
            let oldest = self.sent.pop_front().expect("what is not free is under way");
            queue.settle(oldest)?;
            oldest
        };
        self.filling[part] = (fresh, 0);
        Ok(true)
    }

    /// Sends the cluster of a part, which holds rows.
    fn send<M: Medium>(&mut self, queue: &mut Queue<'_, M>, part: usize) -> Result<(), Error> {
        let (slot, filled) = self.filling[part];
        self.parts[part].rows += filled;
        let offset = self.space.append(&mut self.parts[part]);
        queue.write(slot, offset, self.stream)?;
        self.sent.push_back(slot);
        queue.worked(filled);
        Ok(())
    }

    /// Sends what is left and waits for all of it.
    fn finish<M: Medium>(mut self, queue: &mut Queue<'_, M>) -> Result<Vec<Stretch>, Error> {
        for part in 0..self.parts.len() {
            if self.filling[part].1 > 0 {
                self.send(queue, part)?;
            }
        }
        queue.settle_all()?;
        Ok(self.parts)
    }
}

impl<M: Medium> Work<'_, M> {
    fn side(&self, stream: u16) -> (Rows, u64) {
        let side = usize::from(stream == PROBE);
        (self.rows[side], self.plan.rows_per_cluster[side])
    }

    /// Splits an input while it is made.
    pub(super) fn split_input(&mut self, stream: u16) -> Result<Vec<Stretch>, Error> {
        let (rows, _) = self.side(stream);
        let mut row = vec![0u8; rows.width_bytes as usize];
        self.split(stream, 0, self.plan.parts, |splitter, queue, progress, sink| {
            for number in 0..rows.count {
                rows.make(number, &mut row);
                if splitter.put(queue, &row)? {
                    progress.moved();
                } else if number % 4096 == 0 && sink.cancelled() {
                    return Err(Error::Interrupted);
                }
            }
            Ok(())
        })
    }

    /// Splits a part once more.
    pub(super) fn split_part(
        &mut self,
        part: &Stretch,
        stream: u16,
        (level, parts): (u32, u64),
    ) -> Result<Vec<Stretch>, Error> {
        let (rows, rows_per_cluster) = self.side(stream);
        let width = rows.width_bytes as usize;
        let first_read = (parts + self.plan.write_clusters) as u32;
        let ahead = (first_read, self.plan.read_ahead as u32);
        let mut row = vec![0u8; width];
        self.split(stream, level, parts, |splitter, queue, progress, _| {
            let how = (rows_per_cluster, true);
            let mut reader = Reader::new(queue, splitter.space, (part, stream), ahead, how)?;
            while let Some((slot, count)) = reader.next(queue, splitter.space)? {
                for index in 0..count as usize {
                    row.copy_from_slice(&queue.slot(slot)[index * width..(index + 1) * width]);
                    if splitter.put(queue, &row)? {
                        progress.moved();
                    }
                }
            }
            Ok(())
        })
    }

    fn split(
        &mut self,
        stream: u16,
        level: u32,
        parts: u64,
        fill: impl FnOnce(
            &mut Splitter<'_>,
            &mut Queue<'_, M>,
            &mut crate::progress::Progress<'_>,
            &dyn events::Sink,
        ) -> Result<(), Error>,
    ) -> Result<Vec<Stretch>, Error> {
        let (rows, rows_per_cluster) = self.side(stream);
        let written = parts + self.plan.write_clusters;
        let slots = written + self.plan.read_ahead;
        let times = (self.sink, self.start_ns);
        let mut queue = Queue::new(self.medium, &self.resources, slots, &mut self.account, times)?;
        let mut splitter = Splitter {
            space: &mut self.space,
            width: rows.width_bytes as usize,
            rows_per_cluster,
            stream,
            level,
            parts: vec![Stretch::default(); parts as usize],
            filling: (0..parts as u32).map(|slot| (slot, 0)).collect(),
            free: (parts as u32..written as u32).collect(),
            sent: VecDeque::new(),
        };
        fill(&mut splitter, &mut queue, &mut self.progress, self.sink)?;
        splitter.finish(&mut queue)
    }
}
