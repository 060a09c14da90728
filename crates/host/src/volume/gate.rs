//! A RAID controller: every command of a member takes its time before it gets there.
//!
//! `contexts` processors take a time for each command, then its bytes cross one bus; at most
//! `queue` commands are on their way or at the members, the others wait in order. Commands per
//! second are at most `contexts` over that time, and a small write of RAID 5 takes four of them.
//! Writes can have a time and a bandwidth of their own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use trace::Op;

use super::plan::Part;
use super::settings::Controller;

/// The state of a controller.
pub(super) struct Gate {
    /// Of reads and all else, and of writes.
    costs: [Cost; 2],
    queue: usize,
    free_at: BinaryHeap<Reverse<u64>>,
    bus_free_at: u64,
    host_free_at: u64,
    inside: usize,
    waiting: VecDeque<(u32, Part)>,
}

/// What a command takes.
#[derive(Clone, Copy, Debug)]
struct Cost {
    command_ns: u64,
    ns_per_byte: f64,
}

/// A command on its way through a controller. Moments in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// A processor begins with it.
    pub begins: u64,
    /// That is done.
    pub through: u64,
    /// Its bytes get the bus.
    pub on_bus: u64,
    /// They are at the member.
    pub ends: u64,
}

impl Gate {
    pub fn new(controller: &Controller) -> Self {
        let reads = (controller.command_ns, controller.bytes_per_s);
        let writes = (
            controller.write_command_ns.unwrap_or(reads.0),
            controller.write_bytes_per_s.unwrap_or(reads.1),
        );
        let cost = |(command_ns, rate): (u64, f64)| Cost { command_ns, ns_per_byte: 1e9 / rate };
        Self {
            costs: [reads, writes].map(cost),
            queue: controller.queue,
            free_at: (0..controller.contexts).map(|_| Reverse(0)).collect(),
            bus_free_at: 0,
            host_free_at: 0,
            inside: 0,
            waiting: VecDeque::new(),
        }
    }

    /// `flight` comes at `now` with `part`: how it gets to its member, if that is known.
    pub fn enter(&mut self, now: u64, flight: u32, part: &Part) -> Option<Passage> {
        if self.inside == self.queue {
            self.waiting.push_back((flight, *part));
            return None;
        }
        self.inside += 1;
        Some(self.pass(now, part))
    }

    /// A member is done at `now`: what may go now, and how it gets to its member.
    pub fn leave(&mut self, now: u64) -> Option<(u32, Passage)> {
        let Some((flight, part)) = self.waiting.pop_front() else {
            self.inside -= 1;
            return None;
        };
        Some((flight, self.pass(now, &part)))
    }

    /// `bytes` come from the host, or go there, at `now`: when they are through. What memory takes
    /// or gives crosses this link alone; it is as wide as the bus to the members is for reads.
    pub fn cross(&mut self, now: u64, bytes: u64) -> u64 {
        let takes = (bytes as f64 * self.costs[0].ns_per_byte).round() as u64;
        self.host_free_at = self.host_free_at.max(now) + takes;
        self.host_free_at
    }

    fn pass(&mut self, now: u64, part: &Part) -> Passage {
        let cost = self.costs[usize::from(part.op == Op::Write)];
        let mut first = self.free_at.peek_mut().expect("at least one context");
        let begins = first.0.max(now);
        let through = begins + cost.command_ns;
        *first = Reverse(through);
        drop(first);
        let on_bus = through.max(self.bus_free_at);
        self.bus_free_at = on_bus + (part.bytes as f64 * cost.ns_per_byte).round() as u64;
        Passage { begins, through, on_bus, ends: self.bus_free_at }
    }
}
