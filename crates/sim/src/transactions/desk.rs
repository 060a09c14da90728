//! Who asks for transactions, and what is counted of them.

use std::collections::VecDeque;

use super::outcome::{KindOutcome, Waits};
use super::setup::{Length, Setup};
use super::template::Template;

/// Most arrivals of an open loop that wait for a session.
const MOST_WAITING: usize = 1 << 20;

/// A transaction that a terminal asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) terminal: u32,
    pub(super) at: u64,
    /// Which of those begun or waiting it is, from 0.
    pub(super) number: u64,
    pub(super) template: Template,
    /// Whether its terminal waits for the answer.
    pub(super) waited_for: bool,
}

/// Transactions that wait for a session, and sessions that wait for a transaction.
#[derive(Debug, Default)]
pub(super) struct Desk {
    waiting: VecDeque<Asked>,
    idle: Vec<u32>,
    pub(super) asked: u64,
    pub(super) dropped: u64,
    /// Transactions in work or waiting for whose answer nobody waits.
    pub(super) deferred: u64,
}

impl Desk {
    /// Whether one more can be asked for; otherwise it is dropped.
    pub(super) fn has_room(&mut self) -> bool {
        let room = self.waiting.len() < MOST_WAITING;
        self.dropped += u64::from(!room);
        room
    }

    /// A transaction is asked for.
    pub(super) fn queue(&mut self, asked: Asked) {
        self.asked += 1;
        self.waiting.push_back(asked);
    }

    /// The next transaction, for a session that is free.
    pub(super) fn next(&mut self) -> Option<Asked> {
        self.waiting.pop_front()
    }

    /// A session has nothing to do.
    pub(super) fn idles(&mut self, session: u32) {
        self.idle.push(session);
    }

    /// A session that has nothing to do, and a transaction for it.
    pub(super) fn pair(&mut self) -> Option<(u32, Asked)> {
        if self.waiting.is_empty() {
            return None;
        }
        Some((self.idle.pop()?, self.waiting.pop_front()?))
    }

    /// Transactions that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
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
