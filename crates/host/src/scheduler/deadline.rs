//! Deadline: sector order in batches, reads before writes, and no request waits for ever.
//!
//! Kernel 2.6.32 block/deadline-iosched.c and 6.5 block/mq-deadline.c (one priority class, since a
//! trace names none). A batch goes on in sector order of its direction, for at most `fifo_batch`
//! requests. A new one is of reads if any waits, unless writes wait and `writes_starved` batches
//! have passed them over; it starts at the request that has waited longest if that has expired or
//! there is no next one in sector order.
//!
//! What the next one is differs: before blk-mq, the one that followed the last dispatched request
//! of the direction when that was dispatched, and forgotten when the direction changes; since 6.5,
//! the first one at or behind the last position of each direction.

use std::collections::BTreeSet;

use serde::Deserialize;
use units::Nanos;

use super::policy::Policy;
use super::pool::{Id, List, Pool};
use super::time::ms;

/// `[scheduler.deadline]`: of deadline and of mq-deadline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long reads wait before they go first.
    pub read_expire: Nanos,
    /// How long writes wait before they go first.
    pub write_expire: Nanos,
    /// Read batches that may pass over waiting writes.
    pub writes_starved: u32,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// Whether a request may be merged in front of one that waits.
    pub front_merges: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            read_expire: ms(500),
            write_expire: ms(5000),
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
        }
    }
}

/// Index of a direction.
const READ: usize = 0;
const WRITE: usize = 1;

/// What waits in one direction.
#[derive(Debug, Default)]
struct Direction {
    by_start: BTreeSet<(u64, Id)>,
    by_age: List,
    expire_ns: u64,
    /// 2.6.32: what followed the last dispatched one.
    following: Option<Id>,
    /// 6.5: where the last dispatched one started.
    position: u64,
}

/// The state of either.
#[derive(Debug)]
pub(super) struct Deadline {
    directions: [Direction; 2],
    /// Of the last dispatched request.
    direction: usize,
    batching: u32,
    starved: u32,
    fifo_batch: u32,
    writes_starved: u32,
    keeps_positions: bool,
}

impl Deadline {
    /// `keeps_positions`: as mq-deadline does.
    pub fn new(settings: &Settings, keeps_positions: bool) -> Self {
        let expire = [settings.read_expire.0, settings.write_expire.0];
        Self {
            directions: expire.map(|expire_ns| Direction { expire_ns, ..Direction::default() }),
            // As mq-deadline starts; before it there is no next one to go on with.
            direction: WRITE,
            batching: 0,
            starved: 0,
            fifo_batch: settings.fifo_batch,
            writes_starved: settings.writes_starved,
            keeps_positions,
        }
    }

    fn following(&self, direction: usize) -> Option<Id> {
        let own = &self.directions[direction];
        if self.keeps_positions {
            own.by_start.range((own.position, 0)..).next().map(|(_, id)| *id)
        } else {
            own.following
        }
    }

    /// The direction of a new batch.
    fn choose(&mut self) -> Option<usize> {
        let [reads, writes] = [READ, WRITE].map(|at| !self.directions[at].by_age.is_empty());
        if !reads && !writes {
            return None;
        }
        if reads && writes {
            // Counted after the comparison: two batches pass, the third is of writes.
            self.starved += 1;
            if self.starved <= self.writes_starved {
                return Some(READ);
            }
        } else if reads {
            return Some(READ);
        }
        self.starved = 0;
        Some(WRITE)
    }

    /// The first request of a new batch.
    fn first(&self, now: u64, direction: usize, pool: &Pool) -> Id {
        let oldest = self.directions[direction].by_age.front().expect("one waits");
        let has_expired = pool[oldest].expires <= now;
        self.following(direction).filter(|_| !has_expired).unwrap_or(oldest)
    }

    fn take(&mut self, id: Id, direction: usize, pool: &mut Pool) {
        self.batching += 1;
        self.direction = direction;
        let start = pool[id].start;
        let own = &mut self.directions[direction];
        own.by_start.remove(&(start, id));
        own.by_age.remove(id, pool);
        own.position = start;
        own.following = own.by_start.range((start, id)..).next().map(|(_, id)| *id);
        self.directions[1 - direction].following = None;
    }
}

impl Policy for Deadline {
    fn enqueue(&mut self, now: u64, id: Id, pool: &mut Pool) {
        let own = &mut self.directions[usize::from(pool[id].writes())];
        pool[id].expires = now.saturating_add(own.expire_ns);
        own.by_start.insert((pool[id].start, id));
        own.by_age.push_back(id, pool);
    }

    fn moved(&mut self, id: Id, old_start: u64, pool: &Pool) {
        let own = &mut self.directions[usize::from(pool[id].writes())];
        assert!(own.by_start.remove(&(old_start, id)), "it waits");
        own.by_start.insert((pool[id].start, id));
    }

    fn dispatch(&mut self, now: u64, pool: &mut Pool) -> Option<Id> {
        let next = self.following(self.direction).filter(|_| self.batching < self.fifo_batch);
        let (id, direction) = if let Some(id) = next {
            (id, self.direction)
        } else {
            let direction = self.choose()?;
            self.batching = 0;
            (self.first(now, direction, pool), direction)
        };
        self.take(id, direction, pool);
        Some(id)
    }
}
