//! Write-back throttling against the rule of block/blk-wbt.c.

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::Nanos;

use super::harness::{Rule, check, loads, replay, request};

const MS: u64 = 1_000_000;

/// First in, first out behind the throttle, with lists that are looked through.
struct Slow {
    all: Vec<Request>,
    min_lat: u64,
    window: u64,
    tags: i64,
    write_cache: bool,
    go: Vec<usize>,
    waiting: Vec<usize>,
    tracked: Vec<usize>,
    issued: Vec<u64>,
    /// Reads at the device, the watched one, and its issue.
    watched: Option<usize>,
    step: i64,
    capped: bool,
    silent: u32,
    reads: Vec<u64>,
    writes: u32,
    now_window: u64,
    until: Option<u64>,
    read_at: Option<u64>,
}

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        Self {
            all: all.to_vec(),
            min_lat: settings.throttle.min_lat.unwrap().0,
            window: settings.throttle.window.0,
            tags: i64::from(settings.depth),
            write_cache: settings.throttle.write_cache,
            go: Vec::new(),
            waiting: Vec::new(),
            tracked: Vec::new(),
            issued: vec![0; all.len()],
            watched: None,
            step: 0,
            capped: settings.depth == 1,
            silent: 0,
            reads: Vec::new(),
            writes: 0,
            now_window: settings.throttle.window.0,
            until: None,
            read_at: None,
        }
    }

    /// Depth of the step, and whether it cannot grow.
    fn depth(&self) -> (i64, bool) {
        if self.tags == 1 {
            return if self.step > 0 { (1, false) } else { (2, true) };
        }
        let mut depth = self.tags.min(16) - 1;
        for _ in 0..self.step.abs().min(40) {
            depth = if self.step > 0 { depth / 2 } else { (depth * 2).min(1 << 40) };
        }
        let most = self.tags * 3 / 4;
        if self.step < 0 && depth + 1 > most { (most, true) } else { (depth + 1, false) }
    }

    fn limit(&self, now: u64) -> i64 {
        let depth = self.depth().0;
        let beside_reads = self.read_at.is_some_and(|at| now - at < 100 * MS);
        match (depth, beside_reads) {
            (..=2, true) => 1,
            (..=2, false) => depth,
            (_, true) => (depth + 3) / 4,
            (_, false) => (depth + 1) / 2,
        }
    }

    fn wake(&mut self, now: u64) {
        while !self.waiting.is_empty() && (self.tracked.len() as i64) < self.limit(now) {
            let index = self.waiting.remove(0);
            self.tracked.push(index);
            self.go.push(index);
        }
    }

    fn arm(&mut self, now: u64) {
        self.now_window = self.window;
        if self.step > 0 {
            let mut root = 0;
            while (root + 1) * (root + 1) <= (self.step as u64 + 1) * 256 {
                root += 1;
            }
            self.now_window = self.window * 16 / root;
        }
        self.until = Some(now + self.now_window);
    }

    fn up(&mut self) {
        if !self.capped {
            self.step -= 1;
            self.capped = self.depth().1;
            self.silent = 0;
        }
    }

    fn down(&mut self, hard: bool) {
        if self.depth().0 > 1 {
            self.step = if hard && self.step < 0 { 0 } else { self.step + 1 };
            self.capped = self.depth().1;
            self.silent = 0;
        }
    }
}

impl Rule for Slow {
    fn add(&mut self, now: u64, index: usize) {
        if self.all[index].op == Op::Read {
            self.read_at = Some(now);
            self.go.push(index);
            return;
        }
        if self.waiting.is_empty() && (self.tracked.len() as i64) < self.limit(now) {
            self.tracked.push(index);
            self.go.push(index);
        } else {
            self.waiting.push(index);
        }
        if self.until.is_none() {
            self.arm(now);
        }
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        if self.go.is_empty() {
            return None;
        }
        let index = self.go.remove(0);
        self.issued[index] = now;
        if self.all[index].op == Op::Read && self.watched.is_none() {
            self.watched = Some(index);
        }
        Some(index)
    }

    fn done(&mut self, now: u64, index: usize) {
        let is_read = self.all[index].op == Op::Read;
        if self.until.is_some() && is_read {
            self.reads.push(now - self.issued[index]);
        } else if self.until.is_some() {
            self.writes += 1;
        }
        if self.watched == Some(index) {
            self.watched = None;
        }
        if is_read {
            self.read_at = Some(now);
            return;
        }
        self.tracked.retain(|other| *other != index);
        let left = self.tracked.len() as i64;
        let depth = self.depth().0;
        let normal = if depth <= 2 { depth } else { (depth + 1) / 2 };
        let background = if depth <= 2 { 1 } else { (depth + 3) / 4 };
        let room = if self.write_cache { -left } else { normal - left };
        if left == 0 || (room > 0 && room >= background / 2) {
            self.wake(now);
        }
    }

    fn timer(&self) -> Option<u64> {
        self.until
    }

    fn expire(&mut self, now: u64) {
        let open = self.watched.map_or(0, |index| now - self.issued[index]);
        let step = self.step;
        if open > self.now_window
            || open > self.min_lat && self.reads.is_empty()
            || self.writes >= 3 && self.reads.iter().min().is_some_and(|min| *min > self.min_lat)
        {
            self.down(true);
        } else if self.writes > 0 || !self.tracked.is_empty() {
            self.up();
        } else {
            self.silent += 1;
            if self.silent >= 5 && self.step > 0 {
                self.up();
            } else if self.silent >= 5 && self.step < 0 {
                self.down(false);
            }
        }
        (self.reads, self.writes, self.until) = (Vec::new(), 0, None);
        if self.step != 0 || !self.tracked.is_empty() {
            self.arm(now);
        }
        if self.step < step {
            self.wake(now);
        }
    }
}

/// Writes of 4 KiB without end, and reads each millisecond within `reads`; all at first unissued.
fn writes_beside(reads: std::ops::Range<u64>) -> Vec<Request> {
    let mut all = Vec::new();
    for at in 0..600_u64 {
        if reads.contains(&at) {
            all.push(request(at * MS, Op::Read, (at << 20) + (1 << 19), 4096, 1));
        }
        for more in 0..12 {
            all.push(request(at * MS, Op::Write, (at << 20) + more * 8192, 4096, 0));
        }
    }
    all
}

/// Most requests of an operation between entry and completion at once, from a time on.
fn most(settings: &Settings, requests: &[Request], op: Op, times: std::ops::Range<u64>) -> usize {
    let (completions, log) = replay(settings, requests);
    let issued = |one: &Request| {
        log.iter().find(|(_, other)| other.offset == one.offset && other.op == one.op).unwrap().0
    };
    let own: Vec<_> = requests
        .iter()
        .zip(&completions)
        .filter(|(one, _)| one.op == op)
        .map(|(one, at)| (issued(one), *at))
        .collect();
    let at_once = |now: u64| own.iter().filter(|(from, to)| *from <= now && now < *to).count();
    times.step_by(MS as usize / 4).map(at_once).max().unwrap()
}

fn settings() -> Settings {
    let mut settings = Settings {
        write_back_throttling: true,
        rotational: false,
        merge: false,
        nr_requests: Some(1 << 16),
        ..Settings::new(Kind::None)
    };
    settings.throttle.min_lat = Some(Nanos(50 * MS));
    settings
}

#[test]
fn buffered_writes_fall_to_4_beside_reads() {
    let requests = writes_beside(0..300);
    assert_eq!(most(&settings(), &requests, Op::Write, 0..90 * MS), 4);
    // Reads are fast, so the depth grows to three quarters of 32 tags: a quarter of it for 100 ms
    // behind the last read, half of it then.
    assert_eq!(most(&settings(), &requests, Op::Write, 310 * MS..390 * MS), 6);
    assert_eq!(most(&settings(), &requests, Op::Write, 410 * MS..490 * MS), 12);
    let alone = most(&settings(), &writes_beside(0..0), Op::Write, 0..90 * MS);
    assert_eq!(alone, 8);
    let off = Settings { write_back_throttling: false, ..settings() };
    assert!(most(&off, &requests, Op::Write, 0..90 * MS) > 16);
}

#[test]
fn reads_and_direct_writes_never_wait() {
    let requests = writes_beside(0..300);
    let direct = Settings { sync_writes: true, ..settings() };
    let off = Settings { write_back_throttling: false, ..direct.clone() };
    assert_eq!(replay(&direct, &requests), replay(&off, &requests));
    let (_, log) = replay(&settings(), &requests);
    let reads = log.iter().filter(|(_, one)| one.op == Op::Read);
    assert!(reads.clone().all(|(at, one)| *at == one.due.0), "issued when they came");
    assert_eq!(reads.count(), 300);
}

#[test]
fn slow_reads_halve_the_depth_to_one() {
    let mut settings = settings();
    settings.throttle.min_lat = Some(Nanos(60_000));
    let requests = writes_beside(0..600);
    assert_eq!(most(&settings, &requests, Op::Write, 0..90 * MS), 4);
    assert_eq!(most(&settings, &requests, Op::Write, 500 * MS..590 * MS), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(3),
        depth in prop_oneof![Just(1_u32), 2..64_u32],
        min_lat in 50_000_u64..1_000_000,
        window in 500_000_u64..30_000_000,
        write_cache in any::<bool>(),
    ) {
        let mut settings = Settings { depth, ..settings() };
        settings.throttle.min_lat = Some(Nanos(min_lat));
        settings.throttle.window = Nanos(window);
        settings.throttle.write_cache = write_cache;
        check(&settings, &requests, &mut Slow::new(&requests, &settings));
    }
}
