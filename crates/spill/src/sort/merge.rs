//! The second phase: merges that read ahead what will be needed next.
//!
//! Each source holds the cluster that it is at; a pool of further clusters is read ahead. The next
//! to read is the one behind the cluster whose last row is the smallest of all sources: that source
//! runs dry first (forecasting; Knuth, TAOCP 3, 5.4.6). A source has one read under way at most, so
//! that the last row that it has is known whenever it is asked.
//!
//! Invariant: a source that is dry and has clusters left is the first to be read for, and its own
//! slot is free then: nobody waits for a read that was not issued.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use super::{MERGES, Output, Work};
use crate::error::Error;
use crate::medium::Medium;
use crate::queue::Queue;
use crate::rows::rank;
use crate::space::{Space, Stretch};
use crate::writer::Writer;

/// A run that is merged.
struct Source {
    run: Stretch,
    /// First cluster that was not asked for.
    next: u64,
    /// Clusters here or under way, oldest first; only the newest may be under way.
    slots: VecDeque<u32>,
    /// Next row of the front cluster.
    row: u64,
    /// Rows left, those of the front cluster included.
    left: u64,
}

/// The sources of a merge and the clusters that they share.
struct Sources<'a, 'q, M: Medium> {
    queue: &'a mut Queue<'q, M>,
    space: &'a mut Space,
    open: Vec<Source>,
    free: Vec<u32>,
    /// Sources with clusters left and none under way, by the last row that they hold.
    forecast: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// By slot: whose cluster it holds.
    owner: Vec<u32>,
    width: usize,
    rows_per_cluster: u64,
}

impl<M: Medium> Sources<'_, '_, M> {
    /// Reads the first cluster of each, then ahead.
    fn start(&mut self) -> Result<(), Error> {
        for source in 0..self.open.len() as u32 {
            if self.open[source as usize].run.clusters > 0 {
                self.request(source)?;
            }
        }
        for source in 0..self.open.len() {
            if let Some(&slot) = self.open[source].slots.front() {
                self.queue.settle(slot)?;
            }
        }
        self.take_in();
        self.read_ahead()
    }

    /// Asks for the next cluster of a source.
    fn request(&mut self, number: u32) -> Result<(), Error> {
        let slot = self.free.pop().expect("a slot per source");
        let source = &mut self.open[number as usize];
        let offset = self.space.offset(&source.run, source.next);
        source.next += 1;
        source.slots.push_back(slot);
        self.owner[slot as usize] = number;
        self.queue.read(slot, offset, MERGES)
    }

    /// Notes what has arrived: each source with more to read can be forecast again.
    fn take_in(&mut self) {
        for slot in self.queue.arrived() {
            let number = self.owner[slot as usize];
            let source = &mut self.open[number as usize];
            let cluster = source.next - 1;
            // It is in memory: its place in the file is free.
            self.space.consumed(&source.run, cluster);
            if source.next < source.run.clusters {
                let last = (self.rows_per_cluster as usize - 1) * self.width;
                let (key, id) = rank(&self.queue.slot(slot)[last..]);
                self.forecast.push(Reverse((key, id, number)));
            }
        }
    }

    fn read_ahead(&mut self) -> Result<(), Error> {
        while !self.free.is_empty()
            && let Some(Reverse((_, _, number))) = self.forecast.pop()
        {
            self.request(number)?;
            self.take_in();
        }
        Ok(())
    }

    /// The row that a source is at.
    #[inline]
    fn row(&mut self, number: u32) -> &[u8] {
        let source = &self.open[number as usize];
        let slot = *source.slots.front().expect("a source in the merge has a row");
        let start = source.row as usize * self.width;
        &self.queue.slot(slot)[start..start + self.width]
    }

    /// Goes to the next row of a source; `false` where there is none.
    #[inline]
    fn advance(&mut self, number: u32) -> Result<bool, Error> {
        let source = &mut self.open[number as usize];
        source.row += 1;
        source.left -= 1;
        if source.left > 0 && source.row < self.rows_per_cluster {
            return Ok(true);
        }
        self.next_cluster(number)
    }

    /// The front cluster is used up: its slot is free, the next one must be there.
    fn next_cluster(&mut self, number: u32) -> Result<bool, Error> {
        let source = &mut self.open[number as usize];
        let slot = source.slots.pop_front().expect("it was at a row of it");
        self.queue.worked(source.row);
        source.row = 0;
        let more = source.left > 0;
        self.free.push(slot);
        self.take_in();
        self.read_ahead()?;
        if more {
            let front = self.open[number as usize].slots.front();
            let front = *front.expect("a dry source is the first to be read for");
            self.queue.settle(front)?;
            self.take_in();
        }
        Ok(more)
    }

    /// Hands every row of all sources to `take`, smallest first.
    fn merge(
        &mut self,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.start()?;
        let mut heads = BinaryHeap::with_capacity(self.open.len());
        for number in 0..self.open.len() as u32 {
            if self.open[number as usize].left > 0 {
                let (key, id) = rank(self.row(number));
                heads.push(Reverse((key, id, number)));
            }
        }
        let mut row = vec![0u8; self.width];
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((_, _, number)) = *head;
            row.copy_from_slice(self.row(number));
            take(self, &row)?;
            if self.advance(number)? {
                let (key, id) = rank(self.row(number));
                *head = Reverse((key, id, number));
            } else {
                PeekMut::pop(head);
            }
        }
        Ok(())
    }
}

impl<M: Medium> Work<'_, M> {
    /// Merges runs and hands the rows on, which here means checking them.
    pub(super) fn merge_out(&mut self, runs: Vec<Stretch>) -> Result<Output, Error> {
        let mut output = Output::default();
        self.with_sources(runs, |sources, _, progress| {
            let rows_per_cluster = sources.rows_per_cluster;
            sources.merge(|_, row| {
                if output.rows.is_multiple_of(rows_per_cluster) {
                    progress.moved();
                }
                output.take(row)
            })
        })?;
        Ok(output)
    }

    /// Merges runs into a new one.
    pub(super) fn merge_to_run(&mut self, runs: Vec<Stretch>) -> Result<Stretch, Error> {
        let mut merged = Stretch::default();
        self.with_sources(runs, |sources, writer, progress| {
            sources.merge(|sources, row| {
                if writer.put(sources.queue, row)? {
                    writer.send(sources.queue, sources.space, &mut merged, MERGES)?;
                    progress.moved();
                    progress.moved();
                    sources.take_in();
                }
                Ok(())
            })?;
            writer.send(sources.queue, sources.space, &mut merged, MERGES)?;
            sources.queue.settle_all()
        })?;
        Ok(merged)
    }

    /// Opens runs as sources, with a writer on slots of its own.
    fn with_sources(
        &mut self,
        runs: Vec<Stretch>,
        work: impl FnOnce(
            &mut Sources<'_, '_, M>,
            &mut Writer,
            &mut crate::progress::Progress<'_>,
        ) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let count = runs.len() as u64;
        let read_slots = (count + plan.read_ahead) as u32;
        let slots = u64::from(read_slots) + plan.write_clusters;
        let times = (self.sink, self.start_ns);
        let mut queue = Queue::new(self.medium, &self.resources, slots, &mut self.account, times)?;
        let open =
            |run: Stretch| Source { next: 0, slots: VecDeque::new(), row: 0, left: run.rows, run };
        let mut sources = Sources {
            queue: &mut queue,
            space: &mut self.space,
            open: runs.into_iter().map(open).collect(),
            free: (0..read_slots).rev().collect(),
            forecast: BinaryHeap::new(),
            owner: vec![0; read_slots as usize],
            width: self.rows.width_bytes as usize,
            rows_per_cluster: plan.rows_per_cluster,
        };
        let width_bytes = self.rows.width_bytes;
        let mut writer =
            Writer::new(read_slots, plan.write_clusters as u32, width_bytes, plan.rows_per_cluster);
        work(&mut sources, &mut writer, &mut self.progress)
    }
}
