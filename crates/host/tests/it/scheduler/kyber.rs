//! Kyber against the rule of block/kyber-iosched.c (4.12).

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::Nanos;

use super::harness::{Rule, check, loads, replay, request};

const MS: u64 = 1_000_000;

/// Lists and arithmetic with signs, as the rule is written.
struct Slow {
    all: Vec<Request>,
    settings: Settings,
    waiting: [Vec<usize>; 3],
    issued: Vec<u64>,
    used: [i64; 3],
    depth: [i64; 3],
    current: usize,
    batch: u32,
    window: Option<u64>,
    seen: [Vec<u64>; 3],
}

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        Self {
            issued: vec![0; all.len()],
            all: all.to_vec(),
            depth: settings.kyber.depth.map(i64::from),
            settings: settings.clone(),
            waiting: Default::default(),
            used: [0; 3],
            current: 0,
            batch: 0,
            window: None,
            seen: Default::default(),
        }
    }

    fn domain(&self, index: usize) -> usize {
        match (self.all[index].op, self.settings.sync_writes) {
            (Op::Read, _) => 0,
            (Op::Write, true) => 1,
            _ => 2,
        }
    }

    /// 2 great, 1 good, -1 bad, -2 awful, 0 without samples.
    fn status(&self, domain: usize, target: u64) -> i64 {
        let seen = &self.seen[domain];
        if seen.is_empty() {
            return 0;
        }
        let mean = seen.iter().sum::<u64>() / seen.len() as u64;
        if mean >= 2 * target {
            -2
        } else if mean > target {
            -1
        } else if mean <= target / 2 {
            2
        } else {
            1
        }
    }

    fn fair(&mut self, domain: usize, own: i64, other: i64) {
        let depth = self.depth[domain];
        if own == 0 || own * other > 0 {
            return;
        }
        let change = match (own, other) {
            (_, 0) => 1,
            (1, -2) => -(depth / 4).max(1),
            (1, _) => -(depth / 8).max(1),
            (2, -2) => depth / 2 - depth,
            (2, _) => -(depth / 4).max(1),
            (-2, 2) => 2,
            _ => 1,
        };
        let most = i64::from(self.settings.kyber.depth[domain]);
        self.depth[domain] = (depth + change).max(1).min(most);
    }
}

impl Rule for Slow {
    fn add(&mut self, _now: u64, index: usize) {
        self.waiting[self.domain(index)].push(index);
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        for attempt in 0..4 {
            if attempt == 0 && self.batch >= self.settings.kyber.batch[self.current] {
                continue;
            }
            if attempt > 0 {
                self.batch = 0;
                self.current = (self.current + 1) % 3;
            }
            let domain = self.current;
            if !self.waiting[domain].is_empty() && self.used[domain] < self.depth[domain] {
                self.used[domain] += 1;
                self.batch += 1;
                let index = self.waiting[domain].remove(0);
                self.issued[index] = now;
                return Some(index);
            }
        }
        // The turn comes round to where it was; no batch is left.
        self.batch = 0;
        None
    }

    fn done(&mut self, now: u64, index: usize) {
        let domain = self.domain(index);
        self.used[domain] -= 1;
        let took = now - self.issued[index];
        let kyber = &self.settings.kyber;
        let target = [kyber.read_lat.0, kyber.write_lat.0, u64::MAX][domain];
        if self.window.is_some() {
            self.seen[domain].push(took);
        } else if took > target {
            self.window = Some(now + 10 * MS);
        }
    }

    fn timer(&self) -> Option<u64> {
        self.window
    }

    fn expire(&mut self, now: u64) {
        let kyber = self.settings.kyber.clone();
        let read = self.status(0, kyber.read_lat.0);
        let write = self.status(1, kyber.write_lat.0);
        self.fair(0, read, write);
        self.fair(1, write, read);
        let depth = self.depth[2];
        let best = match (read, write) {
            (0, status) | (status, 0) => status,
            (read, write) => read.max(write),
        };
        let change = if read == 0 && write == 0 {
            2
        } else if self.seen[2].is_empty() {
            0
        } else {
            [depth / 2 - depth, -(depth / 4).max(1), 0, 1, 2][(best + 2) as usize]
        };
        self.depth[2] = (depth + change).max(1).min(i64::from(kyber.depth[2]));
        self.seen = Default::default();
        let again = read < 0 || write < 0 || self.depth[2] < i64::from(kyber.depth[2]);
        self.window = again.then_some(now + 100 * MS);
    }
}

/// Most writes at the device at once in each tenth of the run, and reads; from arrivals and a log.
fn most_writes(settings: &Settings, requests: &[Request], from: u64) -> usize {
    let (completions, log) = replay(settings, requests);
    let done = |one: &Request| -> u64 {
        let index = requests.iter().position(|other| other.offset == one.offset).unwrap();
        completions[index]
    };
    let writes: Vec<_> = log
        .iter()
        .filter(|(_, one)| one.op == Op::Write)
        .map(|(at, one)| (*at, done(one)))
        .collect();
    let at_once = |now: u64| writes.iter().filter(|(at, done)| *at <= now && now < *done).count();
    let starts = writes.iter().map(|(at, _)| *at).filter(|at| *at >= from);
    starts.map(at_once).max().unwrap_or(0)
}

#[test]
fn writes_get_fewer_tokens_while_reads_miss_their_target() {
    for sync_writes in [true, false] {
        let settings =
            Settings { depth: 64, sync_writes, merge: false, ..Settings::new(Kind::Kyber) };
        let mut requests = Vec::new();
        // Writes beyond what the device can take, and a read now and then that waits behind them.
        for at in 0..12_000_u64 {
            requests.push(request(at * 80_000, Op::Write, at << 20, 4096, 0));
            if at % 25 == 0 {
                requests.push(request(at * 80_000, Op::Read, (at << 20) + (1 << 19), 4096, 1));
            }
        }
        let early = most_writes(&settings, &requests, 0);
        let late = most_writes(&settings, &requests, 900 * MS);
        assert!(early >= 48, "sync {sync_writes}: {early}");
        assert!(late <= early / 2, "sync {sync_writes}: {late} of {early}");
        // Without a target that is missed nothing is taken away.
        let mut patient = settings.clone();
        patient.kyber.read_lat = Nanos(1000 * MS);
        patient.kyber.write_lat = Nanos(1000 * MS);
        assert!(most_writes(&patient, &requests, 900 * MS) >= early);
    }
}

#[test]
fn domains_take_turns_in_batches_of_16_8_and_8() {
    let mut requests: Vec<_> = (0..60).map(|at| request(0, Op::Read, at << 20, 4096, 0)).collect();
    requests.extend((60..90).map(|at| request(0, Op::Write, at << 20, 4096, 0)));
    let settings = Settings {
        depth: 1,
        nr_requests: Some(1 << 10),
        merge: false,
        ..Settings::new(Kind::Kyber)
    };
    let (_, log) = replay(&settings, &requests);
    let ops: String =
        log.iter().map(|(_, one)| if one.op == Op::Read { 'r' } else { 'w' }).collect();
    let expected = ["r".repeat(16), "w".repeat(8)].concat().repeat(3);
    assert_eq!(ops[..72], expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(3),
        depth in 1_u32..24,
        sync_writes in any::<bool>(),
        tokens in [1_u32..20, 1..20, 1..20],
        batch in [1_u32..6, 1..6, 1..6],
        targets in [50_000_u64..3_000_000, 50_000..3_000_000],
    ) {
        let mut settings = Settings { depth, sync_writes, ..Settings::new(Kind::Kyber) };
        settings.kyber.depth = tokens;
        settings.kyber.batch = batch;
        [settings.kyber.read_lat, settings.kyber.write_lat] = targets.map(Nanos);
        check(&settings, &requests, &mut Slow::new(&requests, &settings));
    }
}
