//! Entries on doubly linked lists in one arena: what every replacement policy is made of.
//!
//! A machine has tens of millions of pages, so an entry is small: 17 bytes and, in the index, 5
//! bytes for a slot of which at most 7 in 8 are used. Weights are kept only where they differ.

use hashbrown::HashTable;

use super::Victim;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// First list of ghosts: keys that are remembered without their content.
pub(super) const GHOST: usize = 2;

/// Bits of [`Nodes::marks`]: the list that an entry is on.
const LIST: u8 = 0b11;
/// Used since the hand of the clock passed.
const REFERENCED: u8 = 0b100;
/// Differs from the device.
const DIRTY: u8 = 0b1000;

/// One entry, cached or a ghost.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    newer: u32,
    older: u32,
}

/// One list, from the newest entry to the oldest.
#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
    weight: u64,
    count: usize,
}

/// All entries of a cache: two lists of cached ones, two of ghosts, found by key.
///
/// The index is only asked for keys, never walked, so that its order is of no consequence.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    arena: Vec<Node>,
    marks: Vec<u8>,
    /// Bytes that entries take in the cache: of each, or of every one.
    weights: Vec<u64>,
    weight: u64,
    free: Vec<u32>,
    index: HashTable<u32>,
    lists: [List; 4],
}

impl Nodes {
    pub fn new() -> Self {
        let empty = List { newest: NONE, oldest: NONE, weight: 0, count: 0 };
        Self {
            arena: Vec::new(),
            marks: Vec::new(),
            weights: Vec::new(),
            weight: 0,
            free: Vec::new(),
            index: HashTable::new(),
            lists: [empty; 4],
        }
    }

    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.find(hash(key), |at| self.arena[*at as usize].key == key).copied()
    }

    /// The cached entry of `key`.
    pub fn find_cached(&self, key: u64) -> Option<u32> {
        self.find(key).filter(|at| self.is_cached(*at))
    }

    /// Entries beside the one of `key`, which change where it is renewed.
    pub fn neighbours(&self, key: u64) -> Option<(u32, u32)> {
        let Node { newer, older, .. } = self.arena[self.find(key)? as usize];
        let reach = |at: u32| self.arena.get(at as usize).map_or(NONE, |node| node.newer);
        Some((reach(newer), reach(older)))
    }

    pub fn key(&self, at: u32) -> u64 {
        self.arena[at as usize].key
    }

    pub fn list(&self, at: u32) -> usize {
        usize::from(self.marks[at as usize] & LIST)
    }

    pub fn is_cached(&self, at: u32) -> bool {
        self.list(at) < GHOST
    }

    pub fn is_dirty(&self, at: u32) -> bool {
        self.marks[at as usize] & DIRTY != 0
    }

    pub fn set_dirty(&mut self, at: u32, dirty: bool) {
        self.mark(at, DIRTY, dirty);
    }

    pub fn is_referenced(&self, at: u32) -> bool {
        self.marks[at as usize] & REFERENCED != 0
    }

    pub fn set_referenced(&mut self, at: u32, referenced: bool) {
        self.mark(at, REFERENCED, referenced);
    }

    fn mark(&mut self, at: u32, bit: u8, on: bool) {
        let marks = &mut self.marks[at as usize];
        *marks = if on { *marks | bit } else { *marks & !bit };
    }

    fn weight_of(&self, at: u32) -> u64 {
        self.weights.get(at as usize).copied().unwrap_or(self.weight)
    }

    pub fn oldest(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].oldest).filter(|at| *at != NONE)
    }

    /// The entry of the same list that is one newer.
    pub fn newer(&self, at: u32) -> Option<u32> {
        Some(self.arena[at as usize].newer).filter(|at| *at != NONE)
    }

    pub fn weight(&self, list: usize) -> u64 {
        self.lists[list].weight
    }

    pub fn count(&self, list: usize) -> usize {
        self.lists[list].count
    }

    /// Bytes of all cached entries.
    pub fn cached_weight(&self) -> u64 {
        self.lists[..GHOST].iter().map(|list| list.weight).sum()
    }

    /// Puts a new entry at the newest end of `list`.
    pub fn insert(&mut self, list: usize, key: u64, weight: u64) {
        let node = Node { key, newer: NONE, older: NONE };
        let at = if let Some(at) = self.free.pop() {
            self.arena[at as usize] = node;
            self.marks[at as usize] = list as u8;
            at
        } else {
            assert!(self.arena.len() < NONE as usize, "entries have numbers of 32 bits");
            self.arena.push(node);
            self.marks.push(list as u8);
            (self.arena.len() - 1) as u32
        };
        self.weigh(at, weight);
        assert!(self.find(key).is_none(), "an entry is inserted once");
        let Self { index, arena, .. } = self;
        index.insert_unique(hash(key), at, |at| hash(arena[*at as usize].key));
        self.link(at, list);
    }

    fn weigh(&mut self, at: u32, weight: u64) {
        if self.arena.len() == 1 {
            self.weight = weight;
        }
        if self.weights.is_empty() && weight != self.weight {
            self.weights.resize(self.arena.len(), self.weight);
        }
        if !self.weights.is_empty() {
            self.weights.resize(self.arena.len(), weight);
            self.weights[at as usize] = weight;
        }
    }

    /// Moves an entry to the newest end of `list`.
    pub fn renew(&mut self, at: u32, list: usize) {
        if self.lists[list].newest == at {
            return;
        }
        self.unlink(at);
        self.link(at, list);
    }

    /// Forgets an entry.
    pub fn remove(&mut self, at: u32) -> Victim {
        self.unlink(at);
        let key = self.key(at);
        let found = self.index.find_entry(hash(key), |other| *other == at);
        found.expect("what is in the arena is in the index").remove();
        self.free.push(at);
        Victim { key, dirty: self.is_dirty(at) }
    }

    fn link(&mut self, at: u32, list: usize) {
        let newest = self.lists[list].newest;
        let node = &mut self.arena[at as usize];
        (node.newer, node.older) = (NONE, newest);
        let marks = &mut self.marks[at as usize];
        *marks = *marks & !LIST | list as u8;
        let weight = self.weight_of(at);
        if newest == NONE {
            self.lists[list].oldest = at;
        } else {
            self.arena[newest as usize].newer = at;
        }
        let list = &mut self.lists[list];
        list.newest = at;
        list.weight += weight;
        list.count += 1;
    }

    fn unlink(&mut self, at: u32) {
        let Node { newer, older, .. } = self.arena[at as usize];
        let (list, weight) = (self.list(at), self.weight_of(at));
        match newer {
            NONE => self.lists[list].newest = older,
            newer => self.arena[newer as usize].older = older,
        }
        match older {
            NONE => self.lists[list].oldest = newer,
            older => self.arena[older as usize].newer = newer,
        }
        let list = &mut self.lists[list];
        list.weight -= weight;
        list.count -= 1;
    }
}

/// Spreads keys, which nobody chooses to collide, over 64 bits: a multiplication whose upper half
/// is folded into the lower.
fn hash(key: u64) -> u64 {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    product as u64 ^ (product >> 64) as u64
}
