//! Puts events that are slightly out of order into the order of time, in bounded memory.
//!
//! Each processor writes its own buffer; a tool that strings the buffers together leaves runs that
//! overlap. Events are held back until [`AHEAD`] more have come. What is later than that goes on out
//! of order, and the pairing counts it. Events of equal time keep their order.

use super::{BlockEvent, Pairing};

/// Events held back: 1 MiB of them.
pub(crate) const AHEAD: usize = 1 << 15;

/// The events held back.
#[derive(Default)]
pub(crate) struct Window {
    held: Vec<BlockEvent>,
    newest_ns: u64,
    disordered: bool,
    /// Events that came after a later one.
    pub out_of_order: u64,
}

impl Window {
    /// Takes an event, and passes on the oldest ones when there are enough.
    #[inline]
    pub(crate) fn push(&mut self, event: BlockEvent, pairing: &mut Pairing) {
        if event.time_ns < self.newest_ns {
            self.disordered = true;
            self.out_of_order += 1;
        }
        self.newest_ns = self.newest_ns.max(event.time_ns);
        self.held.push(event);
        if self.held.len() >= 2 * AHEAD {
            self.pass(AHEAD, pairing);
        }
    }

    /// Passes on all of them.
    pub(crate) fn flush(&mut self, pairing: &mut Pairing) {
        self.pass(self.held.len(), pairing);
    }

    fn pass(&mut self, count: usize, pairing: &mut Pairing) {
        if self.disordered {
            self.held.sort_by_key(|event| event.time_ns);
            self.disordered = false;
        }
        for event in &self.held[..count] {
            pairing.event(event);
        }
        self.held.drain(..count);
    }
}
