//! The first phase: fill the memory, sort it, write it as a run.

use super::{RUNS, Work};
use crate::error::Error;
use crate::medium::Medium;
use crate::progress::Progress;
use crate::queue::Queue;
use crate::rows::{digest, rank};
use crate::space::{Space, Stretch};
use crate::writer::Writer;

impl<M: Medium> Work<'_, M> {
    /// Makes all rows and writes them as sorted runs; adds up their checksum in `sum`.
    ///
    /// The clusters of a run are written while the next ones are filled, and its last ones while
    /// the next run is made and sorted.
    pub(super) fn make_runs(&mut self, sum: &mut u64) -> Result<Vec<Stretch>, Error> {
        let (plan, all) = (self.plan, self.rows);
        let width = all.width_bytes as usize;
        let mut memory = vec![0u8; plan.rows_per_run.min(all.count) as usize * width];
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(memory.len() / width);
        let mut runs = Vec::new();
        let mut next_row = 0u64;
        let slots = plan.write_clusters;
        let times = (self.sink, self.start_ns);
        let mut queue = Queue::new(self.medium, &self.resources, slots, &mut self.account, times)?;
        let mut writer = Writer::new(0, slots as u32, all.width_bytes, plan.rows_per_cluster);
        while next_row < all.count {
            let count = plan.rows_per_run.min(all.count - next_row) as usize;
            order.clear();
            for (index, row) in memory[..count * width].chunks_exact_mut(width).enumerate() {
                all.make(next_row + index as u64, row);
                *sum = sum.wrapping_add(digest(row));
                order.push((rank(row).0, index as u32));
                if index % 4096 == 0 && self.sink.cancelled() {
                    return Err(Error::Interrupted);
                }
            }
            // Numbers rise with the places, so key and place order as key and number do.
            order.sort_unstable();
            queue.worked(count as u64);
            let sorted = order.iter().map(|(_, index)| {
                let start = *index as usize * width;
                &memory[start..start + width]
            });
            runs.push(write_run(
                &mut queue,
                &mut writer,
                &mut self.space,
                &mut self.progress,
                sorted,
            )?);
            next_row += count as u64;
        }
        queue.settle_all()?;
        Ok(runs)
    }
}

/// Writes rows as one run; its last clusters may still be under way.
fn write_run<'r, M: Medium>(
    queue: &mut Queue<'_, M>,
    writer: &mut Writer,
    space: &mut Space,
    progress: &mut Progress<'_>,
    sorted: impl Iterator<Item = &'r [u8]>,
) -> Result<Stretch, Error> {
    let mut run = Stretch::default();
    for row in sorted {
        if writer.put(queue, row)? {
            writer.send(queue, space, &mut run, RUNS)?;
            progress.moved();
        }
    }
    if writer.send(queue, space, &mut run, RUNS)? {
        progress.moved();
    }
    Ok(run)
}
