//! Who waits at one processor, or within a group of tasks there, and who is next.
//!
//! Earliest eligible virtual deadline first (EEVDF; Stoica and Abdel-Wahab 1995), as Linux has it
//! since 6.6 (kernel/sched/fair.c, `pick_eevdf`, `place_entity`, `update_entity_lag`): each entry
//! has run a virtual time; it is eligible while that is no more than the mean of all, and the
//! eligible one whose slice would end first is next. Who sleeps keeps what is owed to it, and owes
//! what it ran too much: it stays as `asleep` until the others have caught up.

/// Weight of a task, and of a group that is alone on its processor.
pub(super) const WHOLE: i64 = 1024;

#[derive(Clone, Copy, Debug)]
struct Entry {
    who: u32,
    /// Virtual time, ns of a task of weight [`WHOLE`].
    ran: i64,
    deadline: i64,
    weight: i64,
    asleep: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    /// Who of them runs.
    pub(super) current: Option<u32>,
    /// Virtual time when the last one left.
    floor: i64,
    slice_ns: i64,
}

impl Queue {
    pub(super) fn new(slice_ns: u64) -> Self {
        Self { slice_ns: slice_ns.min(1 << 40) as i64, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// One below this number that waits, not the one that runs.
    pub(super) fn waiting_below(&self, end: u32) -> Option<u32> {
        let waits =
            |entry: &&Entry| entry.who < end && !entry.asleep && self.current != Some(entry.who);
        self.entries.iter().find(waits).map(|entry| entry.who)
    }

    fn at(&self, who: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.who == who)
    }

    pub(super) fn contains(&self, who: u32) -> bool {
        self.at(who).is_some()
    }

    fn weight(&self) -> i64 {
        self.entries.iter().map(|entry| entry.weight).sum()
    }

    fn mean(&self) -> i64 {
        let Some(first) = self.entries.first() else { return self.floor };
        let sum: i64 =
            self.entries.iter().map(|entry| (entry.ran - first.ran) * entry.weight).sum();
        first.ran + sum.div_euclid(self.weight())
    }

    /// Somebody comes whom `lag` is owed; or wakes up here, who never quite left.
    pub(super) fn place(&mut self, who: u32, weight: i64, lag: i64) {
        let mut lag = lag;
        if let Some(at) = self.at(who) {
            if self.entries[at].ran >= self.mean() {
                self.entries[at].asleep = false;
                return;
            }
            // What was owed to it meanwhile is lost (`DELAY_ZERO`).
            self.entries.swap_remove(at);
            lag = 0;
        }
        let (mean, total) = (self.mean(), self.weight());
        let slice = self.slice_ns * WHOLE / weight;
        // Its coming moves the mean: it is placed so that the lag holds after that.
        let lag = if total > 0 { lag * (total + weight) / total } else { 0 };
        let ran = mean - lag;
        self.entries.push(Entry { who, ran, deadline: ran + slice, weight, asleep: false });
    }

    pub(super) fn set_weight(&mut self, who: u32, weight: i64) {
        if let Some(at) = self.at(who) {
            let entry = &mut self.entries[at];
            if entry.weight != weight {
                entry.deadline = entry.ran + (entry.deadline - entry.ran) * entry.weight / weight;
                entry.weight = weight;
            }
        }
    }

    /// The one that runs has run for so long; gives whether its slice is over.
    pub(super) fn charge(&mut self, ns: u64) -> bool {
        let Some(at) = self.current.and_then(|who| self.at(who)) else { return false };
        let slice_ns = self.slice_ns;
        let entry = &mut self.entries[at];
        entry.ran += ns as i64 * WHOLE / entry.weight;
        let over = entry.ran >= entry.deadline;
        if over {
            entry.deadline = entry.ran + slice_ns * WHOLE / entry.weight;
        }
        over
    }

    /// How long the one that runs may go on, ns.
    pub(super) fn slice_left(&self) -> u64 {
        let at = self.current.and_then(|who| self.at(who));
        at.map_or(u64::MAX, |at| {
            let entry = &self.entries[at];
            ((entry.deadline - entry.ran) * entry.weight / WHOLE).max(0) as u64 + 1
        })
    }

    /// Whom it would take: the one that runs as long as it is eligible and its slice is not over.
    pub(super) fn choose(&self) -> Option<u32> {
        let mean = self.mean();
        let eligible = |entry: &&Entry| entry.ran <= mean;
        if let Some(at) = self.current.and_then(|who| self.at(who))
            && eligible(&&self.entries[at])
        {
            return self.current;
        }
        let others = self.entries.iter().filter(eligible);
        others.min_by_key(|entry| (entry.deadline, entry.who)).map(|entry| entry.who)
    }

    pub(super) fn is_asleep(&self, who: u32) -> bool {
        self.at(who).is_some_and(|at| self.entries[at].asleep)
    }

    /// Somebody sleeps: leaves, and what is owed to it is given; or stays, owing.
    pub(super) fn sleep(&mut self, who: u32) -> Option<i64> {
        let at = self.at(who)?;
        let owes = self.entries[at].ran > self.mean();
        if owes && self.entries.len() > 1 {
            self.entries[at].asleep = true;
            return None;
        }
        Some(self.remove(who))
    }

    /// Takes somebody out and gives what is owed to it, within two slices.
    pub(super) fn remove(&mut self, who: u32) -> i64 {
        let Some(at) = self.at(who) else { return 0 };
        let mean = self.mean();
        let entry = self.entries.swap_remove(at);
        if self.current == Some(who) {
            self.current = None;
        }
        if self.entries.is_empty() {
            self.floor = entry.ran;
            return 0;
        }
        let most = 2 * self.slice_ns * WHOLE / entry.weight;
        (mean - entry.ran).clamp(-most, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn run(queue: &mut Queue, ns: u64) -> u32 {
        queue.current = None;
        let next = queue.choose().expect("somebody waits");
        queue.current = Some(next);
        queue.charge(ns);
        next
    }

    #[test]
    fn who_is_always_ready_gets_a_share_by_weight() {
        let mut queue = Queue::new(MS);
        for (who, weight) in [(0, WHOLE), (1, WHOLE), (2, WHOLE / 2)] {
            queue.place(who, weight, 0);
        }
        let mut had = [0u64; 3];
        for k in 0..10_000u64 {
            let ns = 10_000 + k % 7 * 30_000;
            had[run(&mut queue, ns) as usize] += ns;
        }
        let total = had.iter().sum::<u64>() as f64;
        for (had, share) in had.iter().zip([0.4, 0.4, 0.2]) {
            assert!((*had as f64 / total - share).abs() < 0.001, "{had} of {total}");
        }
    }

    #[test]
    fn who_runs_goes_on_while_it_is_eligible() {
        let mut queue = Queue::new(MS);
        queue.place(0, WHOLE, 0);
        assert_eq!(run(&mut queue, 0), 0);
        queue.place(1, WHOLE, 0);
        assert_eq!(queue.choose(), Some(0), "both have run as much");
        queue.charge(20_000);
        assert_eq!(queue.choose(), Some(1), "0 has run more than the mean");
        // What is owed to 2 counts: it would have run less than all.
        queue.place(2, WHOLE, 50_000);
        assert_eq!(queue.choose(), Some(2));
    }

    #[test]
    fn who_sleeps_owing_stays_until_the_others_have_caught_up() {
        let mut queue = Queue::new(MS);
        queue.place(0, WHOLE, 0);
        queue.place(1, WHOLE, 0);
        assert_eq!(run(&mut queue, 100_000), 0);
        assert_eq!(queue.sleep(0), None);
        assert!(queue.is_asleep(0) && queue.waiting_below(9) == Some(1));
        assert_eq!(run(&mut queue, 150_000), 1);
        queue.current = None;
        assert_eq!(queue.choose(), Some(0), "it owes no more, so it can be let go");
        // Awake again before that, it begins at the mean: what was owed to it is lost.
        queue.place(0, WHOLE, 0);
        assert!(!queue.is_asleep(0));
        assert_eq!(queue.remove(0), 0);
        // Who sleeps while something is owed to it keeps that.
        queue.place(2, WHOLE, 0);
        assert_eq!(run(&mut queue, 80_000), 1);
        assert_eq!(queue.sleep(2), Some(40_000));
    }
}
