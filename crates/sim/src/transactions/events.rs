//! The queue of events: by time, then in the order in which they were made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// An actor goes on: its wait is over.
    Go(u32),
    /// What runs on a processor has run its time, if this is still the generation.
    Burst { processor: u16, generation: u32 },
    /// A processor that may idle looks for work.
    Balance(u16),
    /// The request of a ticket completed: that of an actor, or one that nobody waits for.
    IoDone(u32),
    /// A terminal asks for a transaction.
    Ask(u32),
    /// An actor begins the transaction that was given to it.
    Start(u32),
    /// A transaction arrives (open loop).
    Arrival,
    /// The next round of a background task is due.
    Round(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: u64,
    sequence: u64,
    what: What,
}

/// Events to come.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<Entry>>,
    made: u64,
}

impl Events {
    #[inline]
    pub(super) fn push(&mut self, at: u64, what: What) {
        self.heap.push(Reverse(Entry { at, sequence: self.made, what }));
        self.made += 1;
    }

    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, What)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}
