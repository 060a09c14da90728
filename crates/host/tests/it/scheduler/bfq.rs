//! BFQ: sectors in proportion to weights, and its order against a slow B-WF2Q+.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::harness::{Process, Rule, check, closed_loop, loads};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    let nr_requests = Some(1 << 10);
    let mut settings = Settings { depth: 4, merge: false, nr_requests, ..Settings::new(Kind::Bfq) };
    // Long enough that budgets end turns.
    settings.bfq.timeout = Nanos(10_000 * MS);
    settings
}

/// Bytes of each process that the device got.
fn bytes(settings: &Settings, processes: &[Process], end_ns: u64) -> Vec<u64> {
    let (log, _) = closed_loop(settings, processes, end_ns);
    let mut sums = vec![0; processes.len()];
    for (_, one) in log {
        sums[usize::from(one.stream)] += u64::from(one.len);
    }
    sums
}

#[test]
fn equal_processes_have_equal_sectors_within_a_budget() {
    let large = Process { len: 65536, step: 65536, ..Process::reader(FAR, 8, 0) };
    let processes = [Process::reader(0, 8, 0), large];
    for max_budget in [16 * 1024, 1024] {
        let mut settings = settings();
        settings.bfq.max_budget = max_budget;
        for end in [2_000, 5_000, 7_321] {
            let sums = bytes(&settings, &processes, end * MS);
            let budget = max_budget * 512;
            assert!(sums[0].abs_diff(sums[1]) <= budget, "{sums:?} with {budget}");
            assert!(sums[0] > 10 * budget || max_budget > 1024);
        }
    }
}

#[test]
fn weights_of_two_to_one_give_two_to_one() {
    // 80 and 40; then with a third one of 10.
    for (priorities, shares) in [(vec![0, 4], vec![2, 1]), (vec![0, 4, 7], vec![8, 4, 1])] {
        let count = priorities.len() as u64;
        let settings = Settings { priorities, ..settings() };
        let processes: Vec<_> = (0..count).map(|at| Process::reader(at * FAR, 8, 0)).collect();
        let sums = bytes(&settings, &processes, 20_000 * MS);
        let total: u64 = sums.iter().sum();
        for (sum, share) in sums.iter().zip(&shares) {
            let fair = total * share / shares.iter().sum::<u64>();
            // A budget and the one before it.
            assert!(sum.abs_diff(fair) <= 16 << 20, "{sums:?}: {sum} of {fair}");
        }
    }
}

#[test]
fn a_timeout_ends_a_turn_of_a_slow_process() {
    let slow = Process { step: 1 << 30, ..Process::reader(FAR, 2, 0) };
    let processes = [Process::reader(0, 2, 0), slow];
    let mut settings = settings();
    settings.bfq.timeout = Nanos(125 * MS);
    let (log, _) = closed_loop(&settings, &processes, 3_000 * MS);
    let turns: Vec<_> = log
        .windows(2)
        .filter(|pair| pair[0].1.stream != pair[1].1.stream)
        .map(|pair| pair[1].0)
        .collect();
    assert!(turns.len() > 20);
    assert!(turns.windows(2).all(|pair| pair[1] - pair[0] <= 127 * MS), "{turns:?}");
}

#[test]
fn it_idles_to_save_seeks_or_to_keep_weights() {
    let share = |rotational, priorities: &[u32], idle_ms| {
        let mut settings = Settings { rotational, priorities: priorities.to_vec(), ..settings() };
        settings.bfq.slice_idle = Nanos(idle_ms * MS);
        let processes = [Process::reader(0, 1, MS), Process::reader(FAR, 8, 0)];
        let sums = bytes(&settings, &processes, 10_000 * MS);
        sums[0] as f64 / (sums[0] + sums[1]) as f64
    };
    // It reads 4 KiB each 1.1 ms, where the other one reads twelve times as much.
    assert!(share(true, &[4, 4], 8) > 0.45, "{}", share(true, &[4, 4], 8));
    assert!(share(false, &[4, 4], 8) < 0.1);
    assert!(share(true, &[4, 4], 0) < 0.1);
    let heavy = share(false, &[0, 4], 8);
    assert!((0.6..0.7).contains(&heavy), "{heavy}");
}

/// B-WF2Q+ with budgets by the letter, in lists: exact fractions with 2^22 parts of a sector.
struct Slow {
    all: Vec<Request>,
    settings: Settings,
    time: u128,
    /// By process; writes of priority `n` are of process `100 + n`.
    accounts: BTreeMap<usize, Account>,
    active: Option<usize>,
    head: u64,
    expiry: Vec<u64>,
    at_device: Vec<usize>,
}

#[derive(Clone, Default)]
struct Account {
    waiting: Vec<usize>,
    next: Option<usize>,
    weight: u128,
    start: u128,
    finish: u128,
    busy: bool,
    budget: u64,
    wish: u64,
    used: u64,
    until: Option<u64>,
    looked: bool,
}

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        let (accounts, at_device) = Default::default();
        Self {
            all: all.to_vec(),
            settings: settings.clone(),
            time: 0,
            accounts,
            active: None,
            head: 0,
            expiry: vec![0; all.len()],
            at_device,
        }
    }

    fn owner(&self, index: usize) -> usize {
        let one = &self.all[index];
        let process = usize::from(one.stream);
        if one.op == Op::Read { process } else { 100 + self.settings.priorities[process] as usize }
    }

    fn cost(&self, index: usize) -> u64 {
        let sectors = u64::from(self.all[index].len) / 512;
        if self.all[index].op == Op::Read { sectors } else { 3 * sectors }
    }

    /// The request that a one-way elevator takes, of two.
    fn better(&self, one: usize, other: usize) -> usize {
        let far = |index: usize| {
            let at = self.all[index].offset.0;
            if at >= self.head {
                (0, at - self.head)
            } else if self.head - at <= self.settings.bfq.back_seek_max.0 {
                (0, (self.head - at) * self.settings.bfq.back_seek_penalty)
            } else {
                // Behind the head: the lowest of all.
                (1, at)
            }
        };
        let at = |index: usize| self.all[index].offset.0;
        match far(one).cmp(&far(other)) {
            Ordering::Less => one,
            Ordering::Equal if at(one) >= at(other) => one,
            Ordering::Greater | Ordering::Equal => other,
        }
    }

    fn line_up(&mut self, owner: usize, start: u128) {
        let first = self.accounts[&owner].next.map_or(0, |index| self.cost(index));
        let account = self.accounts.get_mut(&owner).unwrap();
        account.budget = account.wish.max(first);
        (account.used, account.start) = (0, start);
        account.finish = start + u128::from(account.budget) * (1 << 22) / account.weight;
    }

    fn give_up(&mut self, owner: usize, factor: u64) {
        self.active = None;
        let most = self.settings.bfq.max_budget;
        let account = self.accounts.get_mut(&owner).unwrap();
        if owner < 100 {
            let least = (most / 32).max(1);
            account.wish = match factor {
                0 => account.used.max(least),
                _ => (account.wish * factor).min(most),
            };
        }
        account.until = None;
        account.finish = account.start + u128::from(account.used) * (1 << 22) / account.weight;
        let start = account.finish;
        if account.waiting.is_empty() {
            account.busy = false;
        } else {
            self.line_up(owner, start);
        }
    }
}

impl Rule for Slow {
    fn add(&mut self, now: u64, index: usize) {
        let owner = self.owner(index);
        let bfq = &self.settings.bfq;
        let (most, sync) = (bfq.max_budget, owner < 100);
        let wait = if sync { bfq.fifo_expire_sync } else { bfq.fifo_expire_async };
        self.expiry[index] = now + wait.0;
        let priority = if sync { self.settings.priorities[owner] as usize } else { owner - 100 };
        let weight = (8 - priority as u128) * 10;
        let wish = if sync { most * 2 / 3 } else { most };
        let fresh = Account { weight, wish, ..Account::default() };
        let account = self.accounts.entry(owner).or_insert(fresh);
        account.waiting.push(index);
        let next = account.next;
        let next = next.map_or(index, |next| self.better(index, next));
        let account = self.accounts.get_mut(&owner).unwrap();
        account.next = Some(next);
        if !account.busy {
            account.busy = true;
            let start = account.finish.max(self.time);
            self.line_up(owner, start);
        }
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        if let Some(owner) = self.active {
            let account = &self.accounts[&owner];
            let cost = account.next.map(|next| self.cost(next));
            if account.until.is_some_and(|until| until <= now) {
                self.give_up(owner, 2);
            } else if cost.is_none() {
                self.give_up(owner, 0);
            } else if account.used + cost.unwrap() > account.budget {
                self.give_up(owner, 4);
            }
        }
        if self.active.is_none() {
            let busy: Vec<_> = self.accounts.iter().filter(|(_, account)| account.busy).collect();
            self.time = self.time.max(busy.iter().map(|(_, account)| account.start).min()?);
            let may = busy.into_iter().filter(|(_, account)| account.start <= self.time);
            // Requests that nobody waits for come first among equals.
            let rank = |owner: usize| (owner < 100, owner);
            let (owner, _) = may.min_by_key(|(owner, account)| (account.finish, rank(**owner)))?;
            self.active = Some(*owner);
            let owner = *owner;
            self.accounts.get_mut(&owner).unwrap().looked = false;
        }
        let owner = self.active.unwrap();
        let weights: u128 =
            self.accounts.values().filter(|account| account.busy).map(|one| one.weight).sum();
        let account = &self.accounts[&owner];
        let oldest = account.waiting[0];
        let fits = account.used + self.cost(oldest) <= account.budget;
        let index = if !account.looked && self.expiry[oldest] <= now && fits {
            oldest
        } else {
            account.next.unwrap()
        };
        let cost = self.cost(index);
        self.time += u128::from(cost) * (1 << 22) / weights;
        let (at, len) = (self.all[index].offset.0, u64::from(self.all[index].len));
        self.head = at + len;
        let timeout = self.settings.bfq.timeout.0;
        let account = self.accounts.get_mut(&owner).unwrap();
        account.looked = true;
        account.used += cost;
        account.until.get_or_insert(now + timeout);
        account.waiting.retain(|other| *other != index);
        let rest = account.waiting.clone();
        let place = |other: &usize| self.all[*other].offset.0;
        let above = rest.iter().copied().filter(|other| place(other) > at).min_by_key(place);
        let above = above.or(rest.iter().copied().min_by_key(place));
        let below = rest.iter().copied().filter(|other| place(other) < at).max_by_key(place);
        let next = match (above, below) {
            (Some(above), Some(below)) => Some(self.better(above, below)),
            (above, below) => above.or(below),
        };
        self.accounts.get_mut(&owner).unwrap().next = next;
        self.at_device.push(index);
        Some(index)
    }

    fn done(&mut self, _now: u64, index: usize) {
        self.at_device.retain(|other| *other != index);
        let owner = self.owner(index);
        let is_last = self.at_device.iter().all(|other| self.owner(*other) != owner);
        if self.active == Some(owner) && is_last && self.accounts[&owner].waiting.is_empty() {
            self.give_up(owner, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Without idling, which is tested by itself.
    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(4),
        depth in 1_u32..6,
        priorities in prop::collection::vec(0_u32..8, 4),
        max_budget in 1_u64..200,
        timeout in 200_000_u64..5_000_000,
        expire in 200_000_u64..5_000_000,
        back in 0_u64..4 << 30,
    ) {
        let mut settings = Settings { depth, priorities, ..Settings::new(Kind::Bfq) };
        settings.bfq.max_budget = max_budget;
        settings.bfq.timeout = Nanos(timeout);
        settings.bfq.slice_idle = Nanos(0);
        settings.bfq.fifo_expire_sync = Nanos(expire);
        settings.bfq.back_seek_max = Bytes(back);
        check(&settings, &requests, &mut Slow::new(&requests, &settings));
    }
}
