//! Kyber: tokens per kind of request, fewer for whoever makes the others miss their target.
//!
//! Kernel 4.12, block/kyber-iosched.c. Reads, synchronous writes and all others are domains, each
//! with tokens for requests at the device. The domains take turns in batches. A read or synchronous
//! write that the device served later than its target starts a window, at whose end the tokens of
//! each domain are adjusted by the mean service times seen in it.
//!
//! The host has at least as many tags as tokens count; the share of `nr_requests` that others than
//! synchronous requests may have is in front of it.

use std::cmp::Ordering;

use serde::Deserialize;
use units::Nanos;

use super::policy::Policy;
use super::pool::{Entry, Id, List, Pool};
use super::time::ms;

/// `[scheduler.kyber]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Service time that reads should have.
    pub read_lat: Nanos,
    /// Service time that synchronous writes should have.
    pub write_lat: Nanos,
    /// Most tokens of reads, synchronous writes and others.
    pub depth: [u32; 3],
    /// Requests of a batch of each.
    pub batch: [u32; 3],
}

impl Default for Settings {
    fn default() -> Self {
        let (depth, batch) = ([256, 128, 64], [16, 8, 8]);
        Self { read_lat: ms(2), write_lat: ms(10), depth, batch }
    }
}

/// Window after a missed target, ns.
const WINDOW_NS: u64 = 10_000_000;
/// Windows behind one that ended badly, ns.
const NEXT_WINDOW_NS: u64 = 100_000_000;

const READ: usize = 0;
const SYNC_WRITE: usize = 1;
const OTHER: usize = 2;

fn domain_of(entry: &Entry) -> usize {
    match entry.op {
        trace::Op::Read => READ,
        trace::Op::Write if entry.sync => SYNC_WRITE,
        _ => OTHER,
    }
}

/// How the mean service time of a domain lies to its target, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Awful,
    Bad,
    Good,
    Great,
}

impl Status {
    fn of(domain: &Domain) -> Option<Self> {
        let mean = domain.sum_ns.checked_div(domain.samples)?;
        let target = domain.target_ns;
        Some(match mean.cmp(&target) {
            Ordering::Greater if mean >= target.saturating_mul(2) => Self::Awful,
            Ordering::Greater => Self::Bad,
            _ if mean <= target / 2 => Self::Great,
            _ => Self::Good,
        })
    }

    fn meets(self) -> bool {
        self >= Self::Good
    }
}

#[derive(Debug, Default)]
struct Domain {
    waiting: List,
    in_flight: u32,
    tokens: u32,
    most: u32,
    batch: u32,
    target_ns: u64,
    samples: u64,
    sum_ns: u64,
}

/// The state of Kyber.
#[derive(Debug)]
pub(super) struct Kyber {
    domains: [Domain; 3],
    /// Whose batch it is.
    turn: usize,
    batching: u32,
    /// End of the window in which service times are collected.
    window_until: Option<u64>,
}

impl Kyber {
    pub fn new(settings: &Settings) -> Self {
        let targets = [settings.read_lat.0, settings.write_lat.0, u64::MAX];
        let domain = |at: usize| Domain {
            tokens: settings.depth[at],
            most: settings.depth[at],
            batch: settings.batch[at],
            target_ns: targets[at],
            ..Domain::default()
        };
        let domains = [READ, SYNC_WRITE, OTHER].map(domain);
        Self { domains, turn: READ, batching: 0, window_until: None }
    }

    fn take(&mut self, pool: &mut Pool) -> Option<Id> {
        let own = &mut self.domains[self.turn];
        let id = own.waiting.front().filter(|_| own.in_flight < own.tokens)?;
        own.waiting.remove(id, pool);
        own.in_flight += 1;
        self.batching += 1;
        Some(id)
    }

    /// Gives and takes tokens by what was seen.
    fn adjust(&mut self) {
        let [read, write] = [READ, SYNC_WRITE].map(|at| Status::of(&self.domains[at]));
        let seen_other = self.domains[OTHER].samples > 0;
        self.adjust_synchronous(READ, read, write);
        self.adjust_synchronous(SYNC_WRITE, write, read);
        self.adjust_other(read.max(write), seen_other);
        self.domains.iter_mut().for_each(|domain| (domain.samples, domain.sum_ns) = (0, 0));
        let misses = [read, write].into_iter().flatten().any(|status| !status.meets());
        self.window_until = None;
        let other = &self.domains[OTHER];
        if misses || other.tokens < other.most {
            // The caller knows the time.
            self.window_until = Some(NEXT_WINDOW_NS);
        }
    }

    /// Moves tokens between the two where one meets its target and the other does not.
    fn adjust_synchronous(&mut self, domain: usize, own: Option<Status>, rival: Option<Status>) {
        let Some(own) = own else { return };
        if rival.is_some_and(|rival| rival.meets() == own.meets()) {
            return;
        }
        let Domain { tokens, most, .. } = &mut self.domains[domain];
        let rival_is_awful = rival == Some(Status::Awful);
        let depth = match own {
            _ if rival.is_none() => *tokens + 1,
            Status::Good => *tokens - (*tokens / if rival_is_awful { 4 } else { 8 }).max(1),
            Status::Great if rival_is_awful => *tokens / 2,
            Status::Great => *tokens - (*tokens / 4).max(1),
            Status::Awful if rival == Some(Status::Great) => *tokens + 2,
            Status::Bad | Status::Awful => *tokens + 1,
        };
        *tokens = depth.clamp(1, *most);
    }

    /// Throttles the others only while neither reads nor synchronous writes meet their target.
    fn adjust_other(&mut self, best: Option<Status>, seen: bool) {
        let Domain { tokens, most, .. } = &mut self.domains[OTHER];
        let depth = match best {
            Some(_) if !seen => *tokens,
            None | Some(Status::Great) => *tokens + 2,
            Some(Status::Good) => *tokens + 1,
            Some(Status::Bad) => *tokens - (*tokens / 4).max(1),
            Some(Status::Awful) => *tokens / 2,
        };
        *tokens = depth.clamp(1, *most);
    }
}

impl Policy for Kyber {
    fn enqueue(&mut self, _now: u64, id: Id, pool: &mut Pool) {
        self.domains[domain_of(&pool[id])].waiting.push_back(id, pool);
    }

    fn dispatch(&mut self, _now: u64, pool: &mut Pool) -> Option<Id> {
        if self.batching < self.domains[self.turn].batch
            && let Some(id) = self.take(pool)
        {
            return Some(id);
        }
        self.batching = 0;
        for _ in 0..self.domains.len() {
            self.turn = (self.turn + 1) % self.domains.len();
            if let Some(id) = self.take(pool) {
                return Some(id);
            }
        }
        None
    }

    fn completed(&mut self, now: u64, id: Id, pool: &Pool) {
        let entry = &pool[id];
        let own = &mut self.domains[domain_of(entry)];
        own.in_flight -= 1;
        let service_ns = now - entry.issued;
        if self.window_until.is_some() {
            own.samples += 1;
            own.sum_ns += service_ns;
        } else if service_ns > own.target_ns {
            self.window_until = Some(now + WINDOW_NS);
        }
    }

    fn next_timer(&self) -> Option<u64> {
        self.window_until
    }

    fn timer(&mut self, now: u64, _pool: &Pool) {
        self.adjust();
        self.window_until = self.window_until.map(|window| now + window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of reads and of others, 64 of 128 before, by the status of reads and writes.
    fn adjusted(read: Option<Status>, write: Option<Status>) -> [u32; 2] {
        let mut kyber = Kyber::new(&Settings { depth: [128; 3], ..Settings::default() });
        kyber.domains.iter_mut().for_each(|domain| domain.tokens = 64);
        let sample = |domain: &mut Domain, status: Option<Status>| {
            let target = domain.target_ns;
            (domain.samples, domain.sum_ns) = match status {
                None => (0, 0),
                Some(Status::Great) => (4, 4 * (target / 2)),
                Some(Status::Good) => (4, 4 * target),
                Some(Status::Bad) => (4, 4 * (2 * target - 1)),
                Some(Status::Awful) => (4, 4 * 2 * target),
            };
        };
        sample(&mut kyber.domains[READ], read);
        sample(&mut kyber.domains[SYNC_WRITE], write);
        kyber.domains[OTHER].samples = 1;
        kyber.adjust();
        [READ, OTHER].map(|at| kyber.domains[at].tokens)
    }

    #[test]
    fn tokens_move_as_kernel_4_12_moves_them() {
        use Status::{Awful, Bad, Good, Great};
        let columns = [None, Some(Great), Some(Good), Some(Bad), Some(Awful)];
        let table = [
            (None, [[64, 66], [64, 66], [64, 65], [64, 48], [64, 32]]),
            (Some(Great), [[65, 66], [64, 66], [64, 66], [48, 66], [32, 66]]),
            (Some(Good), [[65, 65], [64, 66], [64, 65], [56, 65], [48, 65]]),
            (Some(Bad), [[65, 48], [65, 66], [65, 65], [64, 48], [64, 48]]),
            (Some(Awful), [[65, 32], [66, 66], [65, 65], [64, 48], [64, 32]]),
        ];
        for (read, row) in table {
            let found = columns.map(|write| adjusted(read, write));
            assert_eq!(found, row, "{read:?}");
        }
    }
}
