//! Anticipatory scheduling: when it waits, for whom, and for how long.

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::Nanos;

use super::harness::{
    Decaying, Process, Rule, check, closed_loop, elevator, loads, neighbour, replay, request,
    service_ns,
};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    Settings { depth: 8, merge: false, ..Settings::new(Kind::Anticipatory) }
}

/// How often the device went from one process to another, of this many dispatches.
fn switches(log: &[(u64, Request)]) -> (usize, usize) {
    let changes = log.windows(2).filter(|pair| pair[0].1.stream != pair[1].1.stream);
    (changes.count(), log.len())
}

#[test]
fn it_waits_for_a_process_that_comes_back_soon() {
    let pair = |think_ns| [Process::reader(0, 1, think_ns), Process::reader(FAR, 1, think_ns)];
    // Back within 6 ms: the device stays with one process for a long time.
    let (log, _) = closed_loop(&settings(), &pair(MS), 4_000 * MS);
    let (changes, all) = switches(&log);
    assert!(changes * 20 < all, "{changes} of {all}");
    // One request at a time, since both are synchronous and far from each other.
    let gap = |pair: &[(u64, Request)]| pair[1].0 - pair[0].0;
    assert!(log.windows(2).all(|pair| gap(pair) >= service_ns(&pair[0].1)));
    // Not for one that thinks for 10 ms, once that is known: its place goes to the other at once.
    let (log, _) = closed_loop(&settings(), &pair(10 * MS), 4_000 * MS);
    let (changes, all) = switches(&log[20..]);
    assert!(changes * 10 > all * 9, "{changes} of {all}");
    // Nor where waiting is switched off.
    let mut off = settings();
    off.anticipatory.antic_expire = Nanos(0);
    let (log, _) = closed_loop(&off, &pair(0), 1_000 * MS);
    let (changes, all) = switches(&log);
    assert!(changes * 10 > all * 9, "{changes} of {all}");
}

#[test]
fn it_waits_for_6_ms_at_most() {
    // Sequential and quick, so that it is worth waiting for; then it stays away.
    let mut requests: Vec<_> =
        (0..40).map(|at| request(at * MS / 2, Op::Read, at * 4096, 4096, 0)).collect();
    let last = requests[39].due.0;
    requests.push(request(last + 1, Op::Read, FAR, 4096, 1));
    let (completions, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, completions[39] + 6 * MS);
    let mut short = settings();
    short.anticipatory.antic_expire = Nanos(2 * MS);
    let (completions, log) = replay(&short, &requests);
    assert_eq!(log[40].0, completions[39] + 2 * MS);
    // What is near goes at once, whosever it is.
    requests[40].offset.0 = 41 * 4096;
    let (_, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, last + 1);
    // While it waits, more is near from millisecond to millisecond: 4 MiB, and 8 MiB after one.
    requests[40].offset.0 = FAR;
    for (after, issued) in [(MS / 2, 6 * MS), (MS, MS)] {
        let mut requests = requests.clone();
        let place = 41 * 4096 + (6 << 20);
        requests.push(request(completions[39] + after, Op::Read, place, 4096, 2));
        assert_eq!(replay(&settings(), &requests).1[40].0, completions[39] + issued);
    }
    // So does what nobody waits for, if its turn is: a batch of reads ends after 500 ms only.
    requests[40].offset.0 = FAR;
    requests[40].op = Op::Write;
    let (completions, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, completions[39] + 6 * MS);
}

#[test]
fn batches_take_turns_by_time_and_never_mix_at_the_device() {
    let writer = Process { op: Op::Write, outstanding: 64, ..Process::reader(FAR, 1, 0) };
    let (log, _) = closed_loop(&settings(), &[Process::reader(0, 4, 0), writer], 12_000 * MS);
    // Requests of one direction are complete before the first of the other is issued.
    let mut open: Vec<(u64, Op)> = Vec::new();
    let mut free_at = 0;
    for (at, one) in &log {
        free_at = free_at.max(*at) + service_ns(one);
        open.retain(|(done, _)| *done > *at);
        assert!(open.iter().all(|(_, op)| *op == one.op), "at {at}");
        open.push((free_at, one.op));
    }
    let starts: Vec<_> = log
        .windows(2)
        .filter(|pair| pair[0].1.op != pair[1].1.op)
        .map(|pair| (pair[1].1.op, pair[1].0))
        .collect();
    let turns = starts.windows(2).map(|pair| (pair[0].0, pair[1].1 - pair[0].1));
    let of = |op: Op| turns.clone().filter(move |turn| turn.0 == op).map(|turn| turn.1);
    // Reads have 500 ms of each turn. Writes start with 12 requests, twice as many each time until
    // they fill 125 ms.
    assert!(of(Op::Read).all(|ns| (499 * MS..502 * MS).contains(&ns)), "{starts:?}");
    let writes: Vec<_> = of(Op::Write).collect();
    let request = service_ns(&log[0].1);
    let expected = (0..7).map(|turn| (12 * request) << turn);
    assert!(expected.zip(&writes).all(|(ns, found)| ns.abs_diff(*found) <= request), "{writes:?}");
    assert!(writes[7..].iter().all(|ns| (120 * MS..127 * MS).contains(ns)), "{writes:?}");
    assert!(writes.len() > 15);
}

/// The rule in lists; times in ns, and the kernel's sectors in bytes.
struct Slow {
    all: Vec<Request>,
    settings: Settings,
    waiting: Vec<usize>,
    /// By direction, of which 1 is synchronous: what the elevator takes next, the head, expiry of
    /// requests and length of batches, and when the oldest was looked at.
    next: [Option<usize>; 2],
    head: [u64; 2],
    looked: [u64; 2],
    expiry: Vec<u64>,
    sync: usize,
    batch_end: u64,
    changed: bool,
    new: bool,
    at_device: usize,
    batch: u64,
    left: u64,
    idled: bool,
    /// Whether it is held back, and until when; or that it was and goes on.
    held: bool,
    until: Option<u64>,
    finished: bool,
    last: Option<usize>,
    ended: Option<u64>,
    beginner: [u64; 2],
    processes: Vec<Habits>,
}

#[derive(Clone, Copy, Default)]
struct Habits {
    think: Decaying,
    seek: Decaying,
    place: Option<u64>,
    ended: Option<u64>,
}

const BACK: u64 = 512 << 20;

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        let antic = &settings.anticipatory;
        Self {
            all: all.to_vec(),
            settings: settings.clone(),
            waiting: Vec::new(),
            next: [None; 2],
            head: [0; 2],
            looked: [0; 2],
            expiry: vec![0; all.len()],
            sync: 1,
            batch_end: antic.read_batch_expire.0,
            changed: false,
            new: false,
            at_device: 0,
            batch: (antic.write_batch_expire.0 / (10 * MS)).max(2),
            left: 0,
            idled: false,
            held: false,
            until: None,
            finished: false,
            last: None,
            ended: None,
            beginner: [0; 2],
            processes: vec![Habits::default(); 8],
        }
    }

    fn is_sync(&self, index: usize) -> usize {
        usize::from(self.all[index].op == Op::Read)
    }

    fn of(&self, sync: usize) -> Vec<usize> {
        self.waiting.iter().copied().filter(|index| self.is_sync(*index) == sync).collect()
    }

    fn expire_ns(&self, sync: usize) -> u64 {
        let antic = &self.settings.anticipatory;
        if sync == 1 { antic.read_expire.0 } else { antic.write_expire.0 }
    }

    fn reads_waiting_of(&self, process: usize) -> bool {
        self.of(1).iter().any(|index| usize::from(self.all[*index].stream) == process)
    }

    fn learn(&mut self, now: u64, process: usize, index: usize, others_wait: bool) {
        let (from, len) = (self.all[index].offset.0, u64::from(self.all[index].len));
        let own = &mut self.processes[process];
        if let Some(place) = own.place {
            let think = match own.ended {
                Some(ended) if !others_wait => (now - ended).min(19 * MS),
                _ => 0,
            };
            let seek = from.abs_diff(place);
            if own.think.0 == 0 {
                self.beginner =
                    [(7 * self.beginner[0] + think) / 8, (7 * self.beginner[1] + seek) / 8];
            }
            own.think.add(think);
            own.seek.add_seek(seek);
        }
        own.place = Some(from + len);
    }

    /// Whether not to wait any longer, with `next` at hand.
    fn good(&mut self, now: u64, next: Option<usize>, waits: bool) -> bool {
        let Some(last) = self.last else { return true };
        let antic = self.settings.anticipatory.antic_expire.0;
        let own = next.is_some_and(|index| {
            self.is_sync(index) == 1 && usize::from(self.all[index].stream) == last
        });
        if own || self.ended.is_some_and(|ended| now - ended >= antic) {
            return true;
        }
        if self.reads_waiting_of(last) {
            return true;
        }
        let process = self.processes[last];
        if let Some(index) = next.filter(|index| self.is_sync(*index) == 1) {
            let delay = if waits { self.ended.map_or(0, |ended| (now - ended) / MS) } else { 0 };
            let (from, head) = (self.all[index].offset.0, self.head[self.sync]);
            let near = (4 << 20) << delay;
            let usual = if process.seek.0 > 0 { process.seek.mean() } else { self.beginner[1] };
            let is_near = head <= from + near / 2 && from <= head + near;
            if delay > 20 || delay * MS > antic || is_near || usual > from.abs_diff(head) {
                self.learn(now, last, index, false);
                return true;
            }
        }
        let think = if process.think.0 > 0 { process.think.mean() } else { self.beginner[0] };
        think > antic
    }

    fn late(&mut self, now: u64) -> Option<usize> {
        if now - self.looked[self.sync] < self.expire_ns(self.sync) {
            return None;
        }
        self.looked[self.sync] = now;
        self.of(self.sync).first().copied().filter(|index| self.expiry[*index] < now)
    }
}

impl Rule for Slow {
    fn add(&mut self, now: u64, index: usize) {
        let sync = self.is_sync(index);
        if sync == 1 {
            let process = usize::from(self.all[index].stream);
            let others_wait = self.reads_waiting_of(process);
            self.learn(now, process, index, others_wait);
        }
        self.expiry[index] = now + self.expire_ns(sync);
        self.waiting.push(index);
        let next = self.next[sync];
        let head = self.head[sync];
        self.next[sync] =
            Some(next.map_or(index, |next| elevator(&self.all, head, BACK, index, next)));
        if self.held && self.good(now, Some(index), true) {
            (self.held, self.until, self.finished) = (false, None, true);
        }
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        let antic = self.settings.anticipatory.clone();
        let (writes, reads) = (self.of(0), self.of(1));
        if self.sync == 0 && reads.is_empty() && (self.left == 0 || writes.is_empty()) {
            self.idled = true;
        }
        if self.waiting.is_empty() || self.held || self.changed {
            return None;
        }
        let both = !reads.is_empty() && !writes.is_empty();
        let over = !self.new && (now > self.batch_end || self.sync == 0 && self.left == 0);
        let mut chosen = None;
        if !(both && over) {
            chosen = self.next[self.sync];
            if self.sync == 1 && antic.antic_expire.0 > 0 {
                if let Some(late) = self.late(now) {
                    chosen = Some(late);
                } else if self.last.is_some() && !self.finished && !self.good(now, chosen, false) {
                    self.held = true;
                    self.until = self.ended.map(|ended| ended + antic.antic_expire.0);
                    return None;
                } else if chosen.is_some() && writes.is_empty() {
                    self.batch_end = now + antic.read_batch_expire.0;
                }
            } else if chosen.is_some() && writes.is_empty() {
                self.batch_end = now + antic.read_batch_expire.0;
            }
        }
        if chosen.is_none() {
            if !reads.is_empty() && (writes.is_empty() || self.sync == 0) {
                self.changed = self.sync == 0;
                self.sync = 1;
            } else {
                if self.sync == 1 {
                    (self.changed, self.new) = (true, false);
                }
                (self.sync, self.left, self.idled) = (0, self.batch, false);
            }
            self.looked[self.sync] = now;
            chosen = self.of(self.sync).first().copied();
        }
        let chosen = self.late(now).or(chosen)?;
        if self.changed {
            if self.at_device > 0 {
                return None;
            }
            if self.sync == 0 {
                self.batch_end = now + antic.write_batch_expire.0;
            }
            (self.changed, self.new) = (false, self.sync == 1);
        }
        let sync = self.is_sync(chosen);
        (self.finished, self.ended) = (false, None);
        self.last = (sync == 1).then_some(usize::from(self.all[chosen].stream));
        if sync == 0 {
            self.left = self.left.saturating_sub(1);
        }
        self.waiting.retain(|index| *index != chosen);
        self.head[sync] = self.all[chosen].offset.0 + u64::from(self.all[chosen].len);
        self.next[sync] = neighbour(&self.all, BACK, chosen, &self.of(sync));
        self.at_device += 1;
        Some(chosen)
    }

    fn done(&mut self, now: u64, index: usize) {
        let antic = self.settings.anticipatory.clone();
        let batch = if self.sync == 1 { antic.read_batch_expire } else { antic.write_batch_expire };
        if self.changed && self.at_device == 1 {
            self.batch_end = now + batch.0;
            (self.changed, self.new) = (false, self.sync == 1);
        }
        self.at_device -= 1;
        let sync = self.is_sync(index);
        if self.new && sync == 1 && self.sync == 1 {
            let length = antic.write_batch_expire.0;
            let took = (now + length).saturating_sub(self.batch_end);
            if took > length && !self.idled {
                self.batch = if took > 3 * length { self.batch / 2 } else { self.batch - 1 };
            } else if took < length && self.left == 0 {
                self.batch = if 3 * took < length { self.batch * 2 } else { self.batch + 1 };
            }
            self.batch = self.batch.max(1);
            self.batch_end = now + antic.read_batch_expire.0;
            self.new = false;
        }
        let process = usize::from(self.all[index].stream);
        if sync == 1 {
            self.processes[process].ended = Some(now);
            if self.last == Some(process) {
                self.ended = Some(now);
                if self.held {
                    self.until = Some(now + antic.antic_expire.0);
                }
            }
        }
    }

    fn timer(&self) -> Option<u64> {
        self.until
    }

    fn expire(&mut self, _now: u64) {
        (self.held, self.until, self.finished) = (false, None, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(4),
        depth in 1_u32..6,
        antic in prop_oneof![Just(0_u64), 200_000_u64..8_000_000],
        expire in [500_000_u64..8_000_000, 500_000..8_000_000],
        batch in [50_000_u64..8_000_000, 50_000..30_000_000],
    ) {
        let mut settings = Settings { depth, ..Settings::new(Kind::Anticipatory) };
        let antic_ns = Nanos(antic);
        settings.anticipatory.antic_expire = antic_ns;
        [settings.anticipatory.read_expire, settings.anticipatory.write_expire] =
            expire.map(Nanos);
        [settings.anticipatory.read_batch_expire, settings.anticipatory.write_batch_expire] =
            batch.map(Nanos);
        check(&settings, &requests, &mut Slow::new(&requests, &settings));
    }
}
