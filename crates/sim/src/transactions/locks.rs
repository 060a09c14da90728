//! Locks: one holder per key; of those who wait, the first or any is next.

use std::collections::VecDeque;

use stats::rng::Rng;

use super::setup::LockClass;

const FREE: u32 = u32::MAX;

/// All keys of all classes.
#[derive(Debug)]
pub(super) struct Locks {
    /// By class: first key, number of keys, whether each terminal has its own.
    classes: Vec<(u32, u32, bool)>,
    holder: Vec<u32>,
    /// Waiters of keys that have any; queues are reused.
    queues: Vec<VecDeque<u32>>,
}

impl Locks {
    pub(super) fn new(classes: &[LockClass]) -> Self {
        let mut first = 0;
        let starts = classes.iter().map(|class| {
            let own = (first, class.keys, class.home);
            first += class.keys;
            own
        });
        let classes = starts.collect();
        let queues = vec![VecDeque::new(); first as usize];
        Self { classes, holder: vec![FREE; first as usize], queues }
    }

    /// A key of the class for somebody at this terminal.
    pub(super) fn key(&self, class: u16, terminal: u32, rng: &mut Rng) -> u32 {
        let (first, keys, home) = self.classes[usize::from(class)];
        first + if home { terminal % keys } else { rng.below(u64::from(keys)) as u32 }
    }

    /// Whether the actor has the key now; otherwise it waits and [`Locks::release`] will name it.
    pub(super) fn take(&mut self, key: u32, actor: u32) -> bool {
        let holder = &mut self.holder[key as usize];
        assert_ne!(*holder, actor, "an actor takes a key once");
        if *holder == FREE {
            *holder = actor;
            return true;
        }
        self.queues[key as usize].push_back(actor);
        false
    }

    /// Gives the key to a waiter, which is returned: the first, or any where `rng` is given.
    pub(super) fn release(&mut self, key: u32, actor: u32, rng: Option<&mut Rng>) -> Option<u32> {
        let holder = &mut self.holder[key as usize];
        assert_eq!(*holder, actor, "the holder releases");
        let queue = &mut self.queues[key as usize];
        let next = match rng {
            Some(rng) if queue.len() > 1 => queue.remove(rng.below(queue.len() as u64) as usize),
            _ => queue.pop_front(),
        };
        *holder = next.unwrap_or(FREE);
        next
    }
}
