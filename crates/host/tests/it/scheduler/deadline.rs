//! Deadline and mq-deadline against the rule of block/deadline-iosched.c and block/mq-deadline.c.

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::harness::{Rule, check, loads, replay, request};

const MS: u64 = 1_000_000;

/// What waits in a plain list, looked through from end to end.
struct Slow {
    all: Vec<Request>,
    settings: Settings,
    /// (place, expiry) in order of arrival.
    waiting: Vec<(usize, u64)>,
    last: Option<usize>,
    /// What was behind the last one when it was dispatched.
    then: Option<usize>,
    /// By direction: where the last one started.
    positions: [u64; 2],
    sent: u32,
    passed_over: u32,
}

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        let (all, settings) = (all.to_vec(), settings.clone());
        let (waiting, positions) = (Vec::new(), [0; 2]);
        let (last, then) = (None, None);
        Self { all, settings, waiting, last, then, positions, sent: 0, passed_over: 0 }
    }

    fn of(&self, write: bool) -> Vec<(usize, u64)> {
        let own = |(index, _): &&(usize, u64)| (self.all[*index].op == Op::Write) == write;
        self.waiting.iter().filter(own).copied().collect()
    }

    fn behind(&self, write: bool, offset: u64) -> Option<usize> {
        let own = self.of(write).into_iter().map(|(index, _)| index);
        own.filter(|index| self.all[*index].offset.0 >= offset)
            .min_by_key(|index| self.all[*index].offset.0)
    }

    fn next(&self, write: bool) -> Option<usize> {
        if self.settings.kind == Kind::MqDeadline {
            return self.behind(write, self.positions[usize::from(write)]);
        }
        let was = self.last.map(|index| self.all[index].op == Op::Write);
        self.then.filter(|_| was == Some(write))
    }
}

impl Rule for Slow {
    fn add(&mut self, now: u64, index: usize) {
        let deadline = &self.settings.deadline;
        let write = self.all[index].op == Op::Write;
        let expire = if write { deadline.write_expire } else { deadline.read_expire };
        self.waiting.push((index, now + expire.0));
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        let rules = self.settings.deadline.clone();
        let was_write = self.last.is_none_or(|index| self.all[index].op == Op::Write);
        let mut chosen = self.next(was_write).filter(|_| self.sent < rules.fifo_batch);
        if chosen.is_none() {
            let (reads, writes) = (self.of(false), self.of(true));
            let write = match (reads.is_empty(), writes.is_empty()) {
                (true, true) => return None,
                (false, true) => false,
                (true, false) => true,
                (false, false) => {
                    self.passed_over += 1;
                    self.passed_over > rules.writes_starved
                }
            };
            if write {
                self.passed_over = 0;
            }
            let (oldest, expiry) = if write { writes[0] } else { reads[0] };
            let in_order = self.next(write);
            chosen = if now >= expiry { Some(oldest) } else { in_order.or(Some(oldest)) };
            self.sent = 0;
        }
        let index = chosen?;
        self.sent += 1;
        self.waiting.retain(|(other, _)| *other != index);
        let write = self.all[index].op == Op::Write;
        self.last = Some(index);
        self.positions[usize::from(write)] = self.all[index].offset.0;
        self.then = self.behind(write, self.all[index].offset.0);
        Some(index)
    }
}

fn settings(kind: Kind) -> Settings {
    Settings { depth: 1, merge: false, nr_requests: Some(1 << 20), ..Settings::new(kind) }
}

/// Directions of the first `count` dispatches, as runs: positive for reads.
fn runs(settings: &Settings, requests: &[Request], count: usize) -> Vec<i32> {
    let (_, log) = replay(settings, requests);
    let mut runs: Vec<i32> = Vec::new();
    for (_, request) in &log[..count] {
        let step = if request.op == Op::Read { 1 } else { -1 };
        match runs.last_mut() {
            Some(run) if run.signum() == step => *run += step,
            _ => runs.push(step),
        }
    }
    runs
}

#[test]
fn a_constant_backlog_is_served_32_reads_to_16_writes() {
    for kind in [Kind::Deadline, Kind::MqDeadline] {
        let op = |at: u64| if at.is_multiple_of(2) { Op::Read } else { Op::Write };
        let backlog: Vec<_> = (0..400).map(|at| request(0, op(at), at << 20, 4096, 0)).collect();
        let mut settings = settings(kind);
        // mq-deadline starts as if it had been writing.
        let skipped = if kind == Kind::MqDeadline { 16 } else { 0 };
        let pattern = |settings: &Settings, count: usize| {
            let mut runs = runs(settings, &backlog, skipped + count);
            if skipped > 0 {
                assert_eq!(runs.remove(0), -16);
            }
            runs
        };
        assert_eq!(pattern(&settings, 240), [32, -16, 32, -16, 32, -16, 32, -16, 32, -16]);
        settings.deadline.writes_starved = 1;
        assert_eq!(pattern(&settings, 128), [16, -16, 16, -16, 16, -16, 16, -16]);
    }
}

#[test]
fn a_request_that_has_expired_starts_the_next_batch() {
    for kind in [Kind::Deadline, Kind::MqDeadline] {
        // One read far below, then ever new ones above it.
        let mut requests: Vec<_> =
            (900..904).map(|at| request(0, Op::Read, at << 20, 4096, 0)).collect();
        requests.push(request(1, Op::Read, 4096, 4096, 0));
        let above = |at: u64| request(2 + at * 60_000, Op::Read, (1000 + at) << 20, 4096, 0);
        requests.extend((0..12_000).map(above));
        let mut settings = settings(kind);
        settings.deadline.read_expire = Nanos(100 * MS);
        let (_, log) = replay(&settings, &requests);
        let (at, _) = log.iter().find(|(_, one)| one.offset == Bytes(4096)).unwrap();
        let batch = 16 * 91_000;
        assert!((100 * MS..100 * MS + 2 * batch).contains(at), "{kind:?}: {at}");
    }
}

#[test]
fn only_mq_deadline_goes_on_where_a_direction_was_left() {
    let mut requests: Vec<_> =
        (0..20).map(|at| request(0, Op::Write, (at + 50) << 20, 4096, 0)).collect();
    requests.push(request(0, Op::Write, 0, 4096, 0));
    // It comes while writes are served and ends their batch at 16.
    requests.push(request(100_000, Op::Read, 7 << 20, 4096, 0));
    // The oldest write that is left is not the next one.
    requests.swap(18, 5);
    let after = |kind| {
        let (_, log) = replay(&settings(kind), &requests);
        let read = log.iter().position(|(_, one)| one.op == Op::Read).unwrap();
        log[read + 1].1.offset.0 >> 20
    };
    let (left, oldest) = (after(Kind::MqDeadline), after(Kind::Deadline));
    assert_eq!((left, oldest), (65, 68));
}

#[test]
fn front_merges_can_be_switched_off_and_move_a_request() {
    for kind in [Kind::Deadline, Kind::MqDeadline] {
        let mut settings = Settings { merge: true, ..settings(kind) };
        let read = |due: u64, page: u64| request(due, Op::Read, page * 4096, 4096, 0);
        let requests = [read(0, 0), read(1, 20), read(2, 10), read(3, 19)];
        let order = |settings: &Settings| -> Vec<_> {
            let (_, log) = replay(settings, &requests);
            log.iter().map(|(_, one)| (one.offset.0 / 4096, one.len / 4096)).collect()
        };
        let expected = match kind {
            Kind::MqDeadline => [(0, 1), (10, 1), (19, 2)],
            // What had no next one in its day starts at the oldest.
            _ => [(0, 1), (19, 2), (10, 1)],
        };
        assert_eq!(order(&settings), expected);
        settings.deadline.front_merges = false;
        assert_eq!(order(&settings).len(), 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(3),
        depth in 1_u32..4,
        fifo_batch in 1_u32..20,
        writes_starved in 0_u32..4,
        expire in 1_u64..40,
    ) {
        for kind in [Kind::Deadline, Kind::MqDeadline] {
            let mut settings = Settings { depth, ..Settings::new(kind) };
            settings.deadline.fifo_batch = fifo_batch;
            settings.deadline.writes_starved = writes_starved;
            settings.deadline.read_expire = Nanos(expire * MS / 4);
            settings.deadline.write_expire = Nanos(expire * MS);
            check(&settings, &requests, &mut Slow::new(&requests, &settings));
        }
    }
}
