//! What every scheduler is asked, and the one without rules.

use super::pool::{Id, List, Pool};

/// The order in which requests go to the device.
///
/// Times are ns and never fall from call to call. Merging, the bound on waiting requests, flushes
/// and the tags of the device are above it: it holds what is neither merged nor issued yet.
pub(super) trait Policy: Send {
    /// Takes entry `id`.
    fn enqueue(&mut self, now: u64, id: Id, pool: &mut Pool);

    /// Entry `id`, which is held, began at `old_start` until a merge in front of it.
    fn moved(&mut self, id: Id, old_start: u64, pool: &Pool) {
        let _ = (id, old_start, pool);
    }

    /// The entry that goes to the device at `now`; `None` where none waits or all must wait.
    fn dispatch(&mut self, now: u64, pool: &mut Pool) -> Option<Id>;

    /// The device has completed entry `id`.
    fn completed(&mut self, now: u64, id: Id, pool: &Pool) {
        let _ = (now, id, pool);
    }

    /// When it decides anew, if nothing happens before.
    fn next_timer(&self) -> Option<u64> {
        None
    }

    /// The time of [`Policy::next_timer`] has come.
    fn timer(&mut self, now: u64, pool: &Pool) {
        let _ = (now, pool);
    }
}

/// `none`, and `noop` with a plug: first in, first out.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    waiting: List,
}

impl Policy for Fifo {
    fn enqueue(&mut self, _now: u64, id: Id, pool: &mut Pool) {
        self.waiting.push_back(id, pool);
    }

    fn dispatch(&mut self, _now: u64, pool: &mut Pool) -> Option<Id> {
        self.waiting.pop_front(pool)
    }
}
