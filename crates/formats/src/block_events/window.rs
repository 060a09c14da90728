//! Puts events that are slightly out of order into the order of time, in bounded memory.
//!
//! Each processor writes its own buffer; a tool that strings the buffers together leaves runs that
//! overlap. Events are held back until [`AHEAD`] more have come, [`MOST_AHEAD`] once any were out
//! of order: files in order, which most are, stay in the second-level cache. What is later than
//! that goes on out of order, and the pairing counts it. Events of equal time keep their order.

use super::{BlockEvent, Pairing};

/// Events held back at first: 128 KiB of them.
const AHEAD: usize = 1 << 12;
/// Events held back at most: 4 MiB of them, more than a tracer's buffers for a few processors.
const MOST_AHEAD: usize = 1 << 17;

/// The events held back.
pub(crate) struct Window {
    /// Room for twice as many as are held back; the first `count` of them are taken.
    held: Vec<BlockEvent>,
    count: usize,
    newest_ns: u64,
    /// Events that came after a later one.
    pub out_of_order: u64,
    /// Of these, those that were put in order already.
    sorted: u64,
}

impl Default for Window {
    fn default() -> Self {
        let held = vec![BlockEvent::default(); 2 * AHEAD];
        Self { held, count: 0, newest_ns: 0, out_of_order: 0, sorted: 0 }
    }
}

impl Window {
    /// Takes an event where it is wanted, and passes on the oldest ones when there are enough.
    /// There is no branch on `wanted`: which kind of event comes next cannot be predicted.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "a lazy operator would be that branch")]
    pub(crate) fn push_if(&mut self, wanted: bool, event: BlockEvent, pairing: &mut Pairing) {
        self.held[self.count] = event;
        self.count += usize::from(wanted);
        self.out_of_order += u64::from(wanted & (event.time_ns < self.newest_ns));
        self.newest_ns = self.newest_ns.max(if wanted { event.time_ns } else { 0 });
        if self.count == self.held.len() {
            self.pass(self.count / 2, pairing);
        }
    }

    /// Passes on all of them.
    pub(crate) fn flush(&mut self, pairing: &mut Pairing) {
        self.pass(self.count, pairing);
    }

    fn pass(&mut self, mut passed: usize, pairing: &mut Pairing) {
        if self.sorted != self.out_of_order {
            self.held[..self.count].sort_by_key(|event| event.time_ns);
            self.sorted = self.out_of_order;
            if self.held.len() < 2 * MOST_AHEAD && passed < self.count {
                self.held.resize(2 * MOST_AHEAD, BlockEvent::default());
                passed = 0;
            }
        }
        for event in &self.held[..passed] {
            pairing.event(event);
        }
        self.held.copy_within(passed..self.count, 0);
        self.count -= passed;
    }
}
