//! Who asks for transactions, and what is counted of them.

use std::collections::VecDeque;

use super::outcome::{KindOutcome, Waits};
use super::setup::{Length, Setup};

/// Most arrivals of an open loop that wait for a terminal.
const MOST_WAITING: usize = 1 << 20;

/// Transactions that wait for a terminal, and terminals that wait for a transaction.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// When each arrived.
    waiting: VecDeque<u64>,
    idle: Vec<u32>,
    pub(super) asked: u64,
    pub(super) dropped: u64,
}

impl Desk {
    /// A transaction arrives; gives the terminal that takes it.
    pub(super) fn arrive(&mut self, now: u64) -> Option<u32> {
        if let Some(terminal) = self.idle.pop() {
            self.asked += 1;
            return Some(terminal);
        }
        if self.waiting.len() < MOST_WAITING {
            self.asked += 1;
            self.waiting.push_back(now);
        } else {
            self.dropped += 1;
        }
        None
    }

    /// Transactions that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// A terminal is free; gives the arrival of its next transaction.
    pub(super) fn free(&mut self, terminal: u32) -> Option<u64> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle.push(terminal);
        }
        next
    }
}

/// Counts transactions that ended in the measurement.
#[derive(Debug)]
pub(super) struct Tally {
    length: Length,
    pub(super) ended: u64,
    pub(super) measured: u64,
    pub(super) kinds: Vec<KindOutcome>,
}

impl Tally {
    pub(super) fn new(setup: &Setup) -> Self {
        let kind = |name: &String| KindOutcome { name: name.clone(), ..KindOutcome::default() };
        let kinds = setup.kinds.iter().map(kind).collect();
        Self { length: setup.length, ended: 0, measured: 0, kinds }
    }

    /// A transaction ended.
    #[inline]
    pub(super) fn end(&mut self, kind: u16, response: u64, waits: &Waits, now: u64) {
        assert_eq!(waits.total(), response, "the waits add up to the response");
        self.ended += 1;
        if now >= self.length.warmup_ns {
            self.measured += 1;
            let kind = &mut self.kinds[usize::from(kind)];
            kind.response.record(response);
            kind.waits.add(waits);
        }
    }

    /// Whether an event at this time is beyond the end.
    #[inline]
    pub(super) fn over(&self, at: u64) -> bool {
        at >= self.length.warmup_ns + self.length.measure_ns
            || self.measured >= self.length.max_transactions
    }
}
