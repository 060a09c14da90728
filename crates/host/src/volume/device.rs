//! A volume as a device, and as one that is told of arrivals and asked for completions.

use std::ops::Range;

use model::observe::{Path, Probe};
use model::queued;
use model::{Counter, Device, Queued};
use trace::{Request, Trace};
use units::{Bytes, Nanos};

use super::{Protection, Traffic, Volume};

impl Queued for Volume {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        while let Some(found) = self.advance(now.0) {
            self.completed.push_back(found);
        }
        let wanted = self.count(request);
        self.take_in(ticket, wanted);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        self.runner.watch(false);
        let found = self.completed.pop_front().or_else(|| self.advance(until.0));
        found.map(|(at, ticket, _)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let kept = self.completed.front().map(|(at, ..)| *at);
        kept.or_else(|| self.runner.next_event()).map(Nanos)
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        self.runner.watch(true);
        let found = self.completed.pop_front().or_else(|| self.advance(until.0));
        self.runner.tell(probe);
        found.map(|(at, ticket, path)| (Nanos(at), ticket, path))
    }
}

impl Device for Volume {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        if !self.is_direct {
            return queued::submit(self, now, request);
        }
        let wanted = self.count(request);
        let mut plan = self.plan(now.0, &wanted);
        let at = self.runner.submit(now.0, &plan);
        plan.clear();
        self.runner.put_back(plan);
        self.answered += 1;
        Nanos(at)
    }

    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        if !self.is_direct {
            return queued::submit_observed(self, now, request, probe);
        }
        let wanted = self.count(request);
        let mut plan = self.plan(now.0, &wanted);
        let (at, path) = self.runner.submit_observed(now.0, &plan, probe);
        plan.clear();
        self.runner.put_back(plan);
        self.answered += 1;
        (Nanos(at), path)
    }

    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        if self.is_direct {
            assert_eq!(range.len(), completions.len(), "one completion per request");
            for (index, completion) in range.zip(completions) {
                let request = trace.request(index);
                *completion = self.submit(request.due, &request).0;
            }
            return;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        queued::submit_due(self, &mut ahead, trace, range, completions);
        self.ahead = ahead;
    }

    fn submit_due_observed(
        &mut self,
        trace: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
        paths: &mut [Path],
        probe: &mut dyn Probe,
    ) {
        if self.is_direct {
            assert_eq!(range.len(), completions.len(), "one completion per request");
            assert_eq!(range.len(), paths.len(), "one path per request");
            for ((index, completion), path) in range.zip(completions).zip(paths) {
                let request = trace.request(index);
                probe.request(index);
                let found = self.submit_observed(request.due, &request, probe);
                (*completion, *path) = (found.0.0, found.1);
            }
            return;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        let into = (completions, paths);
        queued::submit_due_observed(self, &mut ahead, trace, range, into, probe);
        self.ahead = ahead;
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        if self.is_direct { None } else { Some(self) }
    }

    fn capacity(&self) -> Option<Bytes> {
        self.map.capacity().map(Bytes)
    }

    fn counters(&self) -> Vec<Counter> {
        let sum = |of: fn(&Traffic) -> u64| self.members().map(|member| of(&member)).sum();
        let mut all = vec![
            Counter { name: "volume_reads", value: self.asked.reads },
            Counter { name: "volume_read_bytes", value: self.asked.read_bytes },
            Counter { name: "volume_writes", value: self.asked.writes },
            Counter { name: "volume_write_bytes", value: self.asked.write_bytes },
            Counter { name: "volume_flushes", value: self.asked.flushes },
            Counter { name: "member_reads", value: sum(|traffic| traffic.reads) },
            Counter { name: "member_read_bytes", value: sum(|traffic| traffic.read_bytes) },
            Counter { name: "member_writes", value: sum(|traffic| traffic.writes) },
            Counter { name: "member_write_bytes", value: sum(|traffic| traffic.write_bytes) },
            Counter { name: "member_flushes", value: sum(|traffic| traffic.flushes) },
        ];
        if let Some(memory) = &self.memory {
            all.push(Counter { name: "memory_absorbed_writes", value: memory.absorbed });
            all.push(Counter { name: "memory_hits", value: memory.hits });
            all.push(Counter { name: "memory_stalled_writes", value: memory.stalls });
        }
        if let Some(rebuild) = &self.rebuild {
            all.push(Counter { name: "rebuilt_bytes", value: rebuild.bytes() });
        }
        match self.settings.protection {
            Protection::None => {}
            Protection::Bitmap { .. } => {
                all.push(Counter { name: "bitmap_marks", value: self.guard.marks });
            }
            Protection::Journal { .. } | Protection::Ppl => {
                all.push(Counter { name: "logged_bytes", value: self.guard.logged_bytes });
            }
        }
        let own = all.len();
        for counter in self.runner.members.iter().flat_map(|member| member.device.counters()) {
            match all.iter_mut().skip(own).find(|known| known.name == counter.name) {
                Some(known) => known.value += counter.value,
                None => all.push(counter),
            }
        }
        all
    }
}
