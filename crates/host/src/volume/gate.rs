//! A RAID controller: every command of a member takes its time before it gets there.
//!
//! `contexts` processors take `command_ns` for each command, then its bytes cross one bus; at most
//! `queue` commands are on their way or at the members, the others wait in order. Commands per
//! second are at most `contexts / command_ns`, and a small write of RAID 5 takes four of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::plan::Part;

/// A controller. Sizes in bytes, times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Commands that it works on in parallel.
    pub contexts: usize,
    /// Time of each.
    pub command_ns: u64,
    /// Bandwidth of its bus; `f64::INFINITY` if that is no limit.
    pub bytes_per_s: f64,
    /// Commands on their way or at the members.
    pub queue: usize,
    /// Memory behind a battery: writes are answered from there. None: cache off, write-through.
    pub cache_bytes: u64,
    /// How soon they are.
    pub cache_ns: u64,
    /// Writes out of memory at a time.
    pub destages: usize,
}

impl Default for Controller {
    /// The generation of 2009: 50,000 commands/s (HP Smart Array P410), PCIe 1.0 x8, cache off.
    fn default() -> Self {
        Self {
            contexts: 1,
            command_ns: 20_000,
            bytes_per_s: 2e9,
            queue: 256,
            cache_bytes: 0,
            cache_ns: 50_000,
            destages: 64,
        }
    }
}

/// The state of a controller.
pub(super) struct Gate {
    command_ns: u64,
    ns_per_byte: f64,
    queue: usize,
    free_at: BinaryHeap<Reverse<u64>>,
    bus_free_at: u64,
    inside: usize,
    waiting: VecDeque<(u32, Part)>,
}

impl Gate {
    pub fn new(controller: &Controller) -> Self {
        Self {
            command_ns: controller.command_ns,
            ns_per_byte: 1e9 / controller.bytes_per_s,
            queue: controller.queue,
            free_at: (0..controller.contexts).map(|_| Reverse(0)).collect(),
            bus_free_at: 0,
            inside: 0,
            waiting: VecDeque::new(),
        }
    }

    /// `part` comes at `now`: when it gets to its member, if that is known.
    pub fn enter(&mut self, now: u64, job: u32, part: Part) -> Option<u64> {
        if self.inside == self.queue {
            self.waiting.push_back((job, part));
            return None;
        }
        self.inside += 1;
        Some(self.pass(now, &part))
    }

    /// A member is done at `now`: the part that may go now, and when it gets to its member.
    pub fn leave(&mut self, now: u64) -> Option<(u64, u32, Part)> {
        let Some((job, part)) = self.waiting.pop_front() else {
            self.inside -= 1;
            return None;
        };
        Some((self.pass(now, &part), job, part))
    }

    fn pass(&mut self, now: u64, part: &Part) -> u64 {
        let mut first = self.free_at.peek_mut().expect("at least one context");
        let through = first.0.max(now) + self.command_ns;
        *first = Reverse(through);
        drop(first);
        let start = through.max(self.bus_free_at);
        self.bus_free_at = start + (part.bytes as f64 * self.ns_per_byte).round() as u64;
        self.bus_free_at
    }
}
