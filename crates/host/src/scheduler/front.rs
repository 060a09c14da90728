//! What stands in front of a scheduler: merging with neighbours, and the bound on requests.

use std::collections::BTreeSet;

use trace::{Op, Request};

use super::pool::{Entry, Id, List, Pool};
use super::settings::{Kind, Plugging, Settings};

/// Entries by where they begin and end, to find neighbours of what arrives.
#[derive(Debug)]
pub(super) struct Neighbours {
    largest_bytes: u64,
    /// Only requests of one process are merged: each has a queue of its own.
    by_process: bool,
    enabled: bool,
    in_front: bool,
    starts: BTreeSet<(u8, u64, Id)>,
    ends: BTreeSet<(u8, u64, Id)>,
}

impl Neighbours {
    pub fn new(settings: &Settings) -> Self {
        Self {
            largest_bytes: settings.max_request.0,
            by_process: matches!(settings.kind, Kind::Cfq | Kind::Bfq),
            enabled: settings.merge,
            in_front: settings.deadline.front_merges
                || !matches!(settings.kind, Kind::Deadline | Kind::MqDeadline),
            starts: BTreeSet::new(),
            ends: BTreeSet::new(),
        }
    }

    /// One direction, and one kind of waiting.
    fn class(op: Op, sync: bool) -> u8 {
        (op as u8) << 1 | u8::from(sync)
    }

    fn is_mergeable(&self, op: Op, bytes: u64) -> bool {
        self.enabled && bytes > 0 && matches!(op, Op::Read | Op::Write)
    }

    /// The oldest entry that `request` may be appended to; else one that it may be put in front of.
    pub fn find(&self, request: &Request, sync: bool, pool: &Pool) -> Option<Id> {
        let bytes = u64::from(request.len);
        if !self.is_mergeable(request.op, bytes) {
            return None;
        }
        let class = Self::class(request.op, sync);
        let fits = |id: &Id| {
            let entry = &pool[*id];
            entry.bytes() + bytes <= self.largest_bytes
                && (!self.by_process || !sync || entry.stream == request.stream)
        };
        let at = |places: &BTreeSet<(u8, u64, Id)>, place| {
            let found = places.range((class, place, 0)..=(class, place, Id::MAX));
            found.map(|(_, _, id)| *id).filter(fits).min_by_key(|id| (pool[*id].arrived, *id))
        };
        let (start, end) = (request.offset.0, request.offset.0 + bytes);
        let front = || at(&self.starts, end).filter(|_| self.in_front);
        at(&self.ends, start).or_else(front)
    }

    pub fn insert(&mut self, id: Id, entry: &Entry) {
        if self.is_mergeable(entry.op, entry.bytes()) {
            let class = Self::class(entry.op, entry.sync);
            self.starts.insert((class, entry.start, id));
            self.ends.insert((class, entry.end, id));
        }
    }

    pub fn remove(&mut self, id: Id, entry: &Entry) {
        if self.is_mergeable(entry.op, entry.bytes()) {
            let class = Self::class(entry.op, entry.sync);
            self.starts.remove(&(class, entry.start, id));
            self.ends.remove(&(class, entry.end, id));
        }
    }
}

/// How many requests are between entry and completion, and who waits to be one of them.
///
/// Two classes. Before blk-mq: those that nobody waits for, and the others, each with a bound of
/// its own (`nr_requests`; kernel 2.6.32, `get_request` in block/blk-core.c). With blk-mq a bound
/// of both, of which the first class gets a share only where the scheduler says so.
#[derive(Debug)]
pub(super) struct Bound {
    most: u32,
    most_of: [u32; 2],
    used: [u32; 2],
    waiting: [List; 2],
    /// Writes are of the first class even where somebody waits for them.
    by_direction: bool,
}

impl Bound {
    pub fn new(settings: &Settings) -> Self {
        let most = settings.nr_requests();
        let (most, first) = match (settings.plugging(), settings.async_depth()) {
            (Plugging::Legacy, _) => (most.saturating_mul(2), most),
            (Plugging::BlkMq, share) => (most, share.unwrap_or(most)),
        };
        let second = settings.nr_requests();
        let by_direction = settings.kind == Kind::MqDeadline;
        let (used, waiting) = Default::default();
        Self { most, most_of: [first, second], used, waiting, by_direction }
    }

    fn class(&self, entry: &Entry) -> usize {
        usize::from(if self.by_direction { !entry.writes() } else { entry.sync })
    }

    fn has_room(&self, class: usize) -> bool {
        self.used[0] + self.used[1] < self.most && self.used[class] < self.most_of[class]
    }

    /// Whether entry `id` may go on; else it waits here, behind those that do.
    pub fn admit(&mut self, id: Id, pool: &mut Pool) -> bool {
        let class = self.class(&pool[id]);
        let admitted = self.waiting[class].is_empty() && self.has_room(class);
        if admitted {
            self.used[class] += 1;
        } else {
            self.waiting[class].push_back(id, pool);
        }
        admitted
    }

    /// Entry `id` has been completed.
    pub fn release(&mut self, id: Id, pool: &Pool) {
        self.used[self.class(&pool[id])] -= 1;
    }

    /// Of those that wait and have room, the one that came first.
    pub fn next(&mut self, pool: &mut Pool) -> Option<Id> {
        let front = |class: usize| {
            let id = self.waiting[class].front().filter(|_| self.has_room(class))?;
            // At the same time those that somebody waits for go first.
            Some((pool[id].arrived, std::cmp::Reverse(class), id))
        };
        let (_, class, id) = [front(0), front(1)].into_iter().flatten().min()?;
        self.waiting[class.0].remove(id, pool);
        self.used[class.0] += 1;
        Some(id)
    }
}
