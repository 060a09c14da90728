//! A RAID controller: every command of a member takes its time before it gets there.
//!
//! `contexts` processors take `command_ns` for each command, then its bytes cross one bus; at most
//! `queue` commands are on their way or at the members, the others wait in order. Commands per
//! second are at most `contexts / command_ns`, and a small write of RAID 5 takes four of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::plan::Part;
use super::settings::Controller;

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
