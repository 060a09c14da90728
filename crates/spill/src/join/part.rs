//! Joins one part of the build side with the same part of the probe side.

use super::reader::Reader;
use super::table::Table;
use super::{BUILD, PROBE, Work};
use crate::error::Error;
use crate::medium::Medium;
use crate::queue::Queue;
use crate::space::Stretch;

/// Splits upon splits at most.
const MOST_LEVELS: u32 = 4;

impl<M: Medium> Work<'_, M> {
    /// Joins two parts; `level` numbers the next split.
    pub(super) fn join_part(
        &mut self,
        build: &Stretch,
        probe: &Stretch,
        level: u32,
    ) -> Result<(), Error> {
        if build.rows == 0 || probe.rows == 0 {
            self.space.release(build);
            self.space.release(probe);
            return Ok(());
        }
        if build.rows <= self.plan.table_rows {
            return self.join_blocks(build, probe);
        }
        if level >= MOST_LEVELS {
            self.plan.in_blocks += 1;
            return self.join_blocks(build, probe);
        }
        let split = (level, self.plan.parts_for(build.rows));
        let build_parts = self.split_part(build, BUILD, split)?;
        self.plan.split_again += 1;
        // Rows of one key stay together whatever the hash: then no split helps.
        let stuck = build_parts.iter().any(|part| part.rows == build.rows);
        let probe_parts = self.split_part(probe, PROBE, split)?;
        for (build, probe) in build_parts.iter().zip(&probe_parts) {
            self.join_part(build, probe, if stuck { MOST_LEVELS } else { level + 1 })?;
        }
        Ok(())
    }

    /// Builds a table of as many build rows as fit, reads the probe part past it, and again.
    fn join_blocks(&mut self, build: &Stretch, probe: &Stretch) -> Result<(), Error> {
        let ahead = self.plan.read_ahead as u32;
        let [build_fit, probe_fit] = self.plan.rows_per_cluster;
        let widths = self.rows.map(|rows| rows.width_bytes as usize);
        let times = (self.sink, self.start_ns);
        let slots = 2 * u64::from(ahead);
        let mut queue = Queue::new(self.medium, &self.resources, slots, &mut self.account, times)?;
        let (space, progress) = (&mut self.space, &mut self.progress);
        // Whole clusters only, so that none is read twice.
        let most = (self.plan.table_rows / build_fit).max(1) * build_fit;
        let block = if build.rows <= self.plan.table_rows { build.rows } else { most };
        let mut table = Table::new(block, self.rows[0].width_bytes);
        let mut builds =
            Reader::new(&mut queue, space, (build, BUILD), (0, ahead), (build_fit, true))?;
        let mut left = build.rows;
        while left > 0 {
            table.clear();
            while table.count() < block.min(left) {
                let Some((slot, rows)) = builds.next(&mut queue, space)? else { break };
                let cluster = &queue.slot(slot)[..rows as usize * widths[0]];
                cluster.chunks_exact(widths[0]).for_each(|row| table.insert(row));
                progress.moved();
            }
            left -= table.count();
            let how = (probe_fit, left == 0);
            let mut probes = Reader::new(&mut queue, space, (probe, PROBE), (ahead, ahead), how)?;
            while let Some((slot, rows)) = probes.next(&mut queue, space)? {
                let cluster = &queue.slot(slot)[..rows as usize * widths[1]];
                for row in cluster.chunks_exact(widths[1]) {
                    table.probe(row, &mut self.output);
                }
                progress.moved();
            }
        }
        queue.settle_all()
    }
}
