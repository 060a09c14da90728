//! A bounded map that forgets what was used longest ago.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<V> {
    key: u64,
    value: V,
    newer: u32,
    older: u32,
}

/// Values by key, at most as many as it was made for; the index is only asked, never walked.
#[derive(Clone, Debug)]
pub(super) struct Lru<V> {
    most: usize,
    nodes: Vec<Node<V>>,
    free: Vec<u32>,
    index: HashMap<u64, u32>,
    newest: u32,
    oldest: u32,
}

impl<V> Lru<V> {
    /// An empty map of at most `most` values.
    pub fn new(most: usize) -> Self {
        let (newest, oldest) = (NONE, NONE);
        Self { most, nodes: Vec::new(), free: Vec::new(), index: HashMap::new(), newest, oldest }
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The value of `key`, without using it.
    pub fn peek(&self, key: u64) -> Option<&V> {
        self.index.get(&key).map(|at| &self.nodes[*at as usize].value)
    }

    /// The value of `key`, now the one used last.
    pub fn touch(&mut self, key: u64) -> Option<&mut V> {
        let at = *self.index.get(&key)?;
        self.unlink(at);
        self.link(at);
        Some(&mut self.nodes[at as usize].value)
    }

    /// Whether the next new key makes it forget one.
    pub fn is_full(&self) -> bool {
        self.index.len() >= self.most
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: u64) {
        if let Some(at) = self.index.remove(&key) {
            self.unlink(at);
            self.free.push(at);
        }
    }

    /// Keys from the one used longest ago on.
    pub fn oldest_first(&self) -> impl Iterator<Item = (u64, &V)> + '_ {
        let node = |at: u32| self.nodes.get(at as usize);
        std::iter::successors(node(self.oldest), move |at| node(at.newer))
            .map(|node| (node.key, &node.value))
    }

    /// Puts `value` in as the one used last; what is forgotten for it.
    pub fn insert(&mut self, key: u64, value: V) -> Option<u64> {
        if let Some(old) = self.touch(key) {
            *old = value;
            return None;
        }
        if self.most == 0 {
            return None;
        }
        let forgotten = self.is_full().then(|| self.nodes[self.oldest as usize].key);
        if let Some(key) = forgotten {
            self.remove(key);
        }
        let node = Node { key, value, newer: NONE, older: NONE };
        let at = if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            at
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.index.insert(key, at);
        self.link(at);
        forgotten
    }

    fn link(&mut self, at: u32) {
        let newest = self.newest;
        let node = &mut self.nodes[at as usize];
        (node.newer, node.older) = (NONE, newest);
        match self.nodes.get_mut(newest as usize) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Node { newer, older, .. } = self.nodes[at as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lru;

    #[test]
    fn it_forgets_what_was_used_longest_ago_as_a_list_does() {
        let (mut lru, mut list) = (Lru::new(5), Vec::<(u64, u64)>::new());
        let mut state = 1_u64;
        for step in 0..5000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, what) = (state >> 33 & 7, state >> 60);
            let known = list.iter().position(|(own, _)| *own == key);
            let found = known.map(|at| list.remove(at));
            match what {
                0..6 => {
                    let full = found.is_none() && list.len() == 5;
                    let forgotten = full.then(|| list.remove(0).0);
                    list.push((key, step));
                    assert_eq!(lru.insert(key, step), forgotten);
                }
                6..13 => {
                    list.extend(found);
                    assert_eq!(lru.touch(key).copied(), found.map(|(_, value)| value));
                }
                _ => lru.remove(key),
            }
            assert!(lru.oldest_first().map(|(key, value)| (key, *value)).eq(list.iter().copied()));
            assert_eq!(lru.len(), list.len());
        }
    }
}
