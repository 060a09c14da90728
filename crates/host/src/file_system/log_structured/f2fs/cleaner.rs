//! Cleaning in the foreground, where free segments are short, and while the device is idle.

use trace::Op;

use super::writes::Writes;
use super::{COLD_DATA, F2fs, HOT_NODE, LOGS, Owner, node_of};
use crate::file_system::layout::NoSpace;
use crate::file_system::log_structured::Policy;
use crate::file_system::{BLOCK_BYTES, Cause, Physical, request};

/// The device counts as idle so long after the last write, ns.
const IDLE_NS: u64 = 5_000_000_000;

impl F2fs {
    /// Cleans in the foreground while free segments are short (f2fs_balance_fs, f2fs_gc).
    pub(super) fn balance(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        if self.store.free_segments() > self.reserved_segments + self.segments_for_nodes() {
            return Ok(());
        }
        // Segments in which nothing lives wait for a checkpoint only.
        let emptied = self.store.victim(Policy::Greedy, at_ns);
        if emptied.is_some_and(|segment| self.store.live_in(segment) == 0) {
            self.checkpoint(at_ns, out)?;
        }
        let mut rounds = 0;
        while self.store.free_segments() <= self.reserved_segments + self.segments_for_nodes() {
            let victim = self.store.victim_that(|segment| self.store.live_in(segment) > 0);
            let Some(victim) = victim.filter(|_| rounds < self.store.shape().segments) else {
                return Err(self.store.full().into());
            };
            rounds += 1;
            self.clean(at_ns, victim, out)?;
            // A few at a time: a checkpoint costs as much as a segment.
            if rounds % 4 == 0 || self.store.free_segments() <= LOGS as u32 {
                self.checkpoint(at_ns, out)?;
            }
        }
        if rounds > 0 { self.checkpoint(at_ns, out) } else { Ok(()) }
    }

    /// Moves what lives in a segment.
    fn clean(&mut self, at_ns: u64, victim: u32, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let mut live = std::mem::take(&mut self.live);
        live.clear();
        self.store.collect(victim, &mut live);
        let most = self.settings.request_bytes / BLOCK_BYTES;
        for run in live.chunk_by(|a, b| a.place + 1 == b.place) {
            for part in run.chunks(most as usize) {
                let offset = self.offset(part[0].place);
                let bytes = part.len() as u64 * BLOCK_BYTES;
                out.push(Physical { offset, bytes, ..request(at_ns, Op::Read, Cause::Clean) });
            }
        }
        let mut writes = Writes::new(at_ns, self.settings.request_bytes, out);
        for one in &live {
            let log = match Owner::unpacked(self.owners[one.block as usize]) {
                Owner::Page(file, page) => {
                    self.mark_node(file, node_of(page));
                    COLD_DATA
                }
                Owner::Node(file, key) => {
                    let number = self.files[&file].numbers.get(key).expect("a node has a number");
                    self.nat.insert(number);
                    self.store.log_of(victim).max(HOT_NODE)
                }
            };
            let place = self.append(log, one.block, [at_ns, one.written_ns], &mut writes)?;
            writes.add(self.offset(place), Cause::Clean, 0);
        }
        self.written_blocks[1] += live.len() as u64;
        self.live = live;
        self.assert_counted();
        Ok(())
    }

    /// One step of the cleaner in the background; the time until the next one, ns.
    pub(super) fn clean_idle(
        &mut self,
        at_ns: u64,
        out: &mut Vec<Physical>,
    ) -> Result<u64, NoSpace> {
        let cleaner = self.settings.log.cleaner;
        let Some(policy) = cleaner.policy else { return Ok(u64::MAX - at_ns) };
        let (least, most) = (cleaner.interval_ns, 2 * cleaner.interval_ns);
        let is_idle = self.last_write_ns + IDLE_NS <= at_ns;
        self.sleep_ns = if is_idle && self.has_enough_invalid() {
            self.sleep_ns.saturating_sub(least).max(least)
        } else {
            (self.sleep_ns + least).min(most)
        };
        if !is_idle {
            return Ok(self.sleep_ns);
        }
        for _ in 0..cleaner.segments_per_clean {
            let victim = self.store.victim(policy, at_ns);
            let blocks = self.store.shape().segment_blocks;
            let Some(victim) = victim.filter(|one| (1..blocks).contains(&self.store.live_in(*one)))
            else {
                // Nothing to do: 300 s with the defaults.
                return Ok(10 * least);
            };
            self.clean(at_ns, victim, out)?;
        }
        Ok(self.sleep_ns)
    }

    /// More than 40 % of the blocks are invalid, and less than 40 % of what could be free is.
    fn has_enough_invalid(&self) -> bool {
        let blocks = u64::from(self.store.shape().segment_blocks);
        let free = u64::from(self.store.free_segments()) * blocks;
        let total = u64::from(self.store.shape().segments) * blocks;
        let invalid = total - free - self.store.live_blocks();
        let reclaimable = free + invalid;
        invalid as f64 > 0.4 * self.user_blocks as f64 && (free as f64) < 0.4 * reclaimable as f64
    }
}
