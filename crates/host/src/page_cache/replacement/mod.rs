//! Which page leaves a full cache: LRU, FIFO, CLOCK, 2Q, ARC and clean-first (CFLRU).
//!
//! A policy is one file that implements the five methods of [`Rules`] over the lists of
//! [`nodes::Nodes`]; entries have a weight in bytes, so that objects of any size can be cached, and
//! pages are the case of equal weights. An entry larger than the cache is never inserted.
//!
//! Tested against a slow list per policy (`tests/it/replacement.rs`), and against the miss counts
//! that libCacheSim's own tests assert (commit 0252dcfc) on a CloudPhysics trace: LRU, FIFO, CLOCK
//! and ARC are exact at eight sizes.

mod arc;
mod clean_first;
mod clock;
mod fifo;
mod lru;
mod nodes;
mod two_q;

use nodes::Nodes;
use serde::{Deserialize, Serialize};

/// Name of a replacement policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The entry used longest ago leaves.
    #[default]
    Lru,
    /// The entry that came first leaves.
    Fifo,
    /// FIFO in which an entry used since gets a second chance.
    Clock,
    /// Johnson and Shasha 1994: a FIFO of newcomers, an LRU of entries seen again.
    TwoQ,
    /// Megiddo and Modha 2003: recency against frequency, balanced by what ghosts show.
    Arc,
    /// Park et al. 2006 (CFLRU): among the oldest, a clean page leaves before a dirty one.
    CleanFirst,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Lru, Self::Fifo, Self::Clock, Self::TwoQ, Self::Arc, Self::CleanFirst];

    fn rules(self, capacity: u64) -> Box<dyn Rules> {
        match self {
            Self::Lru => Box::new(lru::Lru),
            Self::Fifo => Box::new(fifo::Fifo),
            Self::Clock => Box::new(clock::Clock),
            Self::TwoQ => Box::new(two_q::TwoQ::new(capacity)),
            Self::Arc => Box::new(arc::Arc::new(capacity)),
            Self::CleanFirst => Box::new(clean_first::CleanFirst),
        }
    }
}

/// What one policy decides. Lists 0 and 1 are cached, 2 and 3 are ghosts; what they mean is the
/// policy's own.
trait Rules: Send {
    /// The cached entry `at` was used.
    fn hit(&mut self, nodes: &mut Nodes, at: u32);

    /// `key` was asked for and is not cached: learns from its ghost, where there is one, and
    /// forgets that ghost.
    fn miss(&mut self, nodes: &mut Nodes, key: u64) {
        let _ = (nodes, key);
    }

    /// Makes the next entry leave for one of `incoming` bytes; at least one entry is cached.
    fn evict(&mut self, nodes: &mut Nodes, incoming: u64) -> Victim;

    /// Inserts the entry that was missed last.
    fn insert(&mut self, nodes: &mut Nodes, key: u64, weight: u64);
}

/// An entry that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its key.
    pub key: u64,
    /// Whether it was dirty: it must be written before its memory is used again.
    pub dirty: bool,
}

/// A cache with a replacement policy; content is the caller's.
pub struct Replacement {
    capacity: u64,
    nodes: Nodes,
    rules: Box<dyn Rules>,
}

impl Replacement {
    /// An empty cache of `capacity` bytes.
    pub fn new(policy: Policy, capacity: u64) -> Self {
        Self { capacity, nodes: Nodes::new(), rules: policy.rules(capacity) }
    }

    /// Uses `key` where it is cached; returns whether it is.
    pub fn hit(&mut self, key: u64) -> bool {
        let found = self.nodes.find_cached(key);
        if let Some(at) = found {
            self.rules.hit(&mut self.nodes, at);
        }
        found.is_some()
    }

    /// Uses `key` and makes it dirty where it is cached; returns whether it is.
    pub fn hit_by_write(&mut self, key: u64) -> bool {
        let found = self.nodes.find_cached(key);
        if let Some(at) = found {
            self.rules.hit(&mut self.nodes, at);
            self.nodes.set_dirty(at, true);
        }
        found.is_some()
    }

    /// Loads what a use of `key` will need into the caches of the processor. Uses that follow each
    /// other wait for one load after the other; the loads of several keys overlap.
    pub fn look_ahead(&self, key: u64) {
        std::hint::black_box(self.nodes.neighbours(key));
    }

    /// Uses `key` of `weight` bytes, and inserts it where it was missing; entries that leave for
    /// it are appended to `victims`. Returns whether it was cached.
    pub fn access(&mut self, key: u64, weight: u64, victims: &mut Vec<Victim>) -> bool {
        if self.hit(key) {
            return true;
        }
        if weight > self.capacity {
            return false;
        }
        self.rules.miss(&mut self.nodes, key);
        while self.nodes.cached_weight() + weight > self.capacity {
            victims.push(self.rules.evict(&mut self.nodes, weight));
        }
        self.rules.insert(&mut self.nodes, key, weight);
        false
    }

    /// Whether `key` is cached; does not count as a use.
    pub fn contains(&self, key: u64) -> bool {
        self.nodes.find_cached(key).is_some()
    }

    /// Says whether the content of `key` differs from the device; without effect where it is not
    /// cached.
    pub fn set_dirty(&mut self, key: u64, dirty: bool) {
        if let Some(at) = self.nodes.find_cached(key) {
            self.nodes.set_dirty(at, dirty);
        }
    }

    /// Drops `key`, and its ghost.
    pub fn remove(&mut self, key: u64) {
        if let Some(at) = self.nodes.find(key) {
            self.nodes.remove(at);
        }
    }

    /// Bytes of all cached entries; at most the capacity.
    pub fn cached_bytes(&self) -> u64 {
        self.nodes.cached_weight()
    }

    /// Bytes that it may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

/// Makes the oldest entry of `list` leave without a trace.
fn drop_oldest(nodes: &mut Nodes, list: usize) -> Victim {
    let at = nodes.oldest(list).expect("a cache that must evict holds an entry");
    nodes.remove(at)
}

/// Makes the oldest entry of `list` leave and remembers its key on `ghosts`.
fn demote_oldest(nodes: &mut Nodes, list: usize, ghosts: usize) -> Victim {
    let at = nodes.oldest(list).expect("a cache that must evict holds an entry");
    let victim = Victim { key: nodes.key(at), dirty: nodes.is_dirty(at) };
    nodes.renew(at, ghosts);
    nodes.set_dirty(at, false);
    nodes.set_referenced(at, false);
    victim
}
