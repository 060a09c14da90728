//! The cleaner of nilfs-utils (`cleanerd`): which segments it takes, and when.

use trace::Op;

use super::Nilfs2;
use crate::file_system::layout::NoSpace;
use crate::file_system::log_structured::Policy;
use crate::file_system::{Cause, Physical, request};

/// Time between two looks at the free segments while nothing is cleaned, ns.
const CHECK_NS: u64 = 10_000_000_000;

impl Nilfs2 {
    /// One step of the cleaner; the time of the next one.
    pub(super) fn clean(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<u64, NoSpace> {
        let cleaner = self.settings.log.cleaner;
        let Some(policy) = cleaner.policy else { return Ok(u64::MAX) };
        let segments = f64::from(self.store.shape().segments);
        let free = f64::from(self.store.free_segments()) / segments;
        if cleaner.stop_above > 0.0 {
            self.is_cleaning =
                free < cleaner.start_below || (self.is_cleaning && free <= cleaner.stop_above);
            if !self.is_cleaning {
                return Ok(at_ns + CHECK_NS);
            }
        }
        let is_urgent = cleaner.stop_above > 0.0 && free < cleaner.start_below;
        let (interval_ns, count) = if is_urgent {
            (cleaner.urgent_interval_ns, cleaner.urgent_segments)
        } else {
            (cleaner.interval_ns, cleaner.segments_per_clean)
        };
        self.expire(at_ns);
        let victims = self.choose(policy, count, at_ns);
        if victims.is_empty() {
            let oldest = self.store.victim(Policy::OldestFirst, at_ns);
            let ready_ns =
                oldest.map_or(0, |one| self.store.closed_ns(one) + cleaner.protection_ns);
            return Ok(ready_ns.max(at_ns + interval_ns));
        }
        self.live.clear();
        for victim in &victims {
            let most = self.settings.request_bytes;
            let start = self.offset(victim * self.store.shape().segment_blocks);
            let end = start + self.settings.log.segment_bytes;
            for offset in (start..end).step_by(most as usize) {
                let bytes = most.min(end - offset);
                out.push(Physical { offset, bytes, ..request(at_ns, Op::Read, Cause::Clean) });
            }
            self.store.collect(*victim, &mut self.live);
            self.forget_dead(*victim);
        }
        self.add_metadata(at_ns);
        self.write_items(at_ns, Some(out))?;
        for victim in victims {
            self.store.free(victim);
        }
        Ok(at_ns + interval_ns)
    }

    /// Up to `count` segments that are old enough and have enough dead blocks in them.
    fn choose(&mut self, policy: Policy, count: u32, now_ns: u64) -> Vec<u32> {
        let cleaner = self.settings.log.cleaner;
        let blocks = self.store.shape().segment_blocks;
        let mut found = Vec::new();
        let mut put_off = Vec::new();
        while found.len() < count as usize
            && let Some(victim) = self.store.victim(policy, now_ns)
            && self.store.closed_ns(victim) + cleaner.protection_ns <= now_ns
        {
            self.store.set_aside(victim);
            let dead = f64::from(blocks - self.store.live_in(victim)) / f64::from(blocks);
            if dead < cleaner.min_reclaimable {
                put_off.push(victim);
            } else {
                found.push(victim);
            }
        }
        for victim in &found {
            self.store.put_back(*victim, self.store.closed_ns(*victim));
        }
        for victim in put_off {
            self.store.put_back(victim, now_ns);
        }
        found
    }
}
