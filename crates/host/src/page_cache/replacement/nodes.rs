//! Entries on doubly linked lists in one arena: what every replacement policy is made of.

use std::collections::HashMap;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// First list of ghosts: keys that are remembered without their content.
pub(super) const GHOST: usize = 2;

/// One entry, cached or a ghost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub key: u64,
    /// Bytes that it takes in the cache.
    pub weight: u64,
    pub list: u8,
    /// Used since the hand of the clock passed.
    pub referenced: bool,
    pub dirty: bool,
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
/// The map is only asked for keys, never walked, so that its order is of no consequence.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    arena: Vec<Node>,
    free: Vec<u32>,
    index: HashMap<u64, u32>,
    lists: [List; 4],
}

impl Nodes {
    pub fn new() -> Self {
        let empty = List { newest: NONE, oldest: NONE, weight: 0, count: 0 };
        Self { arena: Vec::new(), free: Vec::new(), index: HashMap::new(), lists: [empty; 4] }
    }

    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.get(&key).copied()
    }

    pub fn node(&self, at: u32) -> &Node {
        &self.arena[at as usize]
    }

    pub fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.arena[at as usize]
    }

    pub fn is_cached(&self, at: u32) -> bool {
        usize::from(self.node(at).list) < GHOST
    }

    pub fn oldest(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].oldest).filter(|at| *at != NONE)
    }

    /// The entry of the same list that is one newer.
    pub fn newer(&self, at: u32) -> Option<u32> {
        Some(self.node(at).newer).filter(|at| *at != NONE)
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
        let node = Node {
            key,
            weight,
            list: list as u8,
            referenced: false,
            dirty: false,
            newer: NONE,
            older: NONE,
        };
        let at = if let Some(at) = self.free.pop() {
            self.arena[at as usize] = node;
            at
        } else {
            self.arena.push(node);
            (self.arena.len() - 1) as u32
        };
        assert!(self.index.insert(key, at).is_none(), "an entry is inserted once");
        self.link(at, list);
    }

    /// Moves an entry to the newest end of `list`.
    pub fn renew(&mut self, at: u32, list: usize) {
        self.unlink(at);
        self.link(at, list);
    }

    /// Forgets an entry.
    pub fn remove(&mut self, at: u32) -> Node {
        self.unlink(at);
        let node = *self.node(at);
        self.index.remove(&node.key);
        self.free.push(at);
        node
    }

    fn link(&mut self, at: u32, list: usize) {
        let newest = self.lists[list].newest;
        let node = &mut self.arena[at as usize];
        (node.list, node.newer, node.older) = (list as u8, NONE, newest);
        let weight = node.weight;
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
        let Node { newer, older, list, weight, .. } = *self.node(at);
        match newer {
            NONE => self.lists[usize::from(list)].newest = older,
            newer => self.arena[newer as usize].older = older,
        }
        match older {
            NONE => self.lists[usize::from(list)].oldest = newer,
            older => self.arena[older as usize].newer = newer,
        }
        let list = &mut self.lists[usize::from(list)];
        list.weight -= weight;
        list.count -= 1;
    }
}
