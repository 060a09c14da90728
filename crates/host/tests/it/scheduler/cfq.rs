//! CFQ: equal time for equal processes, in slices, and what breaks them.

use std::collections::BTreeMap;

use host::scheduler::{Kind, Settings};
use proptest::prelude::*;
use trace::{Op, Request};
use units::Nanos;

use super::harness::{
    Decaying, Process, Rule, check, closed_loop, elevator, loads, neighbour, service_ns,
};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    Settings { depth: 4, merge: false, ..Settings::new(Kind::Cfq) }
}

/// Time that each process had the device in, and the lengths of its turns.
fn served(
    settings: &Settings,
    processes: &[Process],
    end_ns: u64,
) -> (Vec<u64>, Vec<(usize, u64)>) {
    let (log, _) = closed_loop(settings, processes, end_ns);
    let mut times = vec![0; processes.len()];
    let mut turns: Vec<(usize, u64)> = Vec::new();
    for (_, one) in &log {
        let (process, ns) = (usize::from(one.stream), service_ns(one));
        times[process] += ns;
        match turns.last_mut() {
            Some((last, sum)) if *last == process => *sum += ns,
            _ => turns.push((process, ns)),
        }
    }
    (times, turns)
}

#[test]
fn equal_processes_have_equal_time_within_a_slice() {
    for (slice_ms, depth) in [(100, 1), (100, 4), (20, 4), (20, 32)] {
        let mut settings = Settings { depth, ..settings() };
        settings.cfq.slice_sync = Nanos(slice_ms * MS);
        let processes = [0, FAR].map(|from| Process::reader(from, 8, 0));
        for end in [3_333 * MS, 5_000 * MS] {
            let (times, _) = served(&settings, &processes, end);
            assert!(times[0].abs_diff(times[1]) <= slice_ms * MS, "{times:?}");
            assert!(times[0] + times[1] > end - 10 * MS, "the device is busy: {times:?}");
        }
    }
}

#[test]
fn a_slice_is_time_and_not_bytes() {
    // One reads 4 KiB at a time, the other 64 KiB.
    let large = Process { len: 65536, step: 65536, ..Process::reader(FAR, 8, 0) };
    let request_ns = [50_000 + 10 * 4096, 50_000 + 10 * 65536];
    let (_, turns) = served(&settings(), &[Process::reader(0, 8, 0), large], 5_000 * MS);
    assert!(turns.len() > 40);
    for (process, ns) in &turns[1..turns.len() - 1] {
        // From its first completion on, and what is at the device then is completed too.
        let beyond = 5 * request_ns[*process];
        assert!((100 * MS..=100 * MS + beyond).contains(ns), "{process}: {ns}");
    }
}

#[test]
fn slices_grow_by_a_fifth_for_each_priority() {
    let settings = Settings { priorities: vec![0, 4, 7], ..settings() };
    let processes = [0, 1, 2].map(|at| Process::reader(at * FAR, 8, 0));
    let (_, turns) = served(&settings, &processes, 5_000 * MS);
    for (process, ns) in &turns[1..turns.len() - 1] {
        let slice = [180, 100, 40][*process] * MS;
        assert!(ns.abs_diff(slice) < 5 * MS, "{process}: {ns}");
    }
}

#[test]
fn it_idles_for_a_quick_process_and_not_for_a_slow_one() {
    let run = |think_ns, settings: &Settings| {
        let processes = [Process::reader(0, 1, think_ns), Process::reader(FAR, 8, 0)];
        served(settings, &processes, 10_000 * MS)
    };
    // Back after 1 ms, it keeps the device for its slice: 91 us of each 1.091 ms.
    let (times, _) = run(MS, &settings());
    let share = times[0] as f64 / (times[0] + times[1]) as f64;
    assert!((0.06..0.09).contains(&share), "{share}");
    // One that thinks for 12 ms is not waited for in the long run.
    let (times, _) = run(12 * MS, &settings());
    assert!(times[1] > 9_000 * MS, "{times:?}");
    let mut never = settings();
    never.cfq.slice_idle = Nanos(0);
    let (times, _) = run(MS, &never);
    assert!(times[1] > 9_500 * MS, "{times:?}");
}

#[test]
fn a_reader_does_not_wait_for_the_slice_of_writers() {
    let writer = Process { op: Op::Write, ..Process::reader(FAR, 64, 0) };
    let reader = Process::reader(0, 1, 20 * MS);
    let (log, done) = closed_loop(&settings(), &[reader, writer], 2_000 * MS);
    // Its turn comes behind what is at the device: at most four requests, and its own.
    let most = 6 * service_ns(&log[0].1);
    let reads: Vec<_> = done.iter().filter(|one| one.process == 0).collect();
    assert!(reads.len() > 90, "{}", reads.len());
    assert!(reads.iter().all(|one| one.response_ns <= most), "{reads:?}");
}

/// The rule in lists. Requests that nobody waits for are of process `100 + priority`.
struct Slow {
    all: Vec<Request>,
    settings: Settings,
    queues: BTreeMap<usize, Queue>,
    active: Option<usize>,
    idle: Option<u64>,
    head: u64,
    at_device: Vec<usize>,
    expiry: Vec<u64>,
    sync_end: u64,
    is_deep: bool,
    peak: usize,
    looks: u32,
}

#[derive(Clone, Default)]
struct Queue {
    waiting: Vec<usize>,
    next: Option<usize>,
    place: i64,
    end: Option<u64>,
    sent: u32,
    looked: bool,
    must: bool,
    left: i64,
    idles: bool,
    think: Decaying,
    seek: Decaying,
    last: u64,
    ended: Option<u64>,
}

impl Slow {
    fn new(all: &[Request], settings: &Settings) -> Self {
        Self {
            all: all.to_vec(),
            settings: settings.clone(),
            queues: BTreeMap::new(),
            active: None,
            idle: None,
            head: 0,
            at_device: Vec::new(),
            expiry: vec![0; all.len()],
            sync_end: 0,
            is_deep: true,
            peak: 0,
            looks: 0,
        }
    }

    fn owner(&self, index: usize) -> usize {
        let process = usize::from(self.all[index].stream);
        let sync = self.all[index].op == Op::Read;
        if sync { process } else { 100 + self.settings.priorities[process] as usize }
    }

    fn slice(&self, owner: usize) -> i64 {
        let priority =
            if owner < 100 { self.settings.priorities[owner] as i64 } else { owner as i64 - 100 };
        let cfq = &self.settings.cfq;
        let base = if owner < 100 { cfq.slice_sync.0 } else { cfq.slice_async.0 } as i64;
        base + base / 5 * (4 - priority)
    }

    fn busy(&self) -> Vec<usize> {
        let busy = self.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        busy.map(|(owner, _)| *owner).collect()
    }

    fn on_device(&self, own: impl Fn(usize) -> bool) -> usize {
        self.at_device.iter().filter(|index| own(self.owner(**index))).count()
    }

    fn line_up(&mut self, owner: usize, now: u64) {
        let others = self.busy().into_iter().filter(|other| *other != owner).count() as i64;
        let base = self.settings.cfq.slice_sync.0 as i64;
        let offset = others * (base + base / 5 * 4 - self.slice(owner));
        let queue = self.queues.get_mut(&owner).unwrap();
        queue.place = now as i64 + offset - queue.left;
        queue.left = 0;
    }

    /// The first in line; requests that nobody waits for come first among equals.
    fn first(&self) -> Option<usize> {
        let key = |owner: &usize| (self.queues[owner].place, *owner < 100, *owner);
        self.busy().into_iter().min_by_key(key)
    }

    fn used(&self, owner: usize, now: u64) -> bool {
        self.queues[&owner].end.is_some_and(|end| end <= now)
    }

    fn stop(&mut self, now: u64, keep: bool) {
        let Some(owner) = self.active.take() else { return };
        self.idle = None;
        let queue = self.queues.get_mut(&owner).unwrap();
        if let (true, Some(end)) = (keep, queue.end) {
            queue.left = end as i64 - now as i64;
        }
        if !queue.waiting.is_empty() {
            self.line_up(owner, now);
        }
    }

    fn is_seeky(&self, owner: usize) -> bool {
        self.queues[&owner].seek.mean() > 8192 * 512
    }
}

impl Rule for Slow {
    fn add(&mut self, now: u64, index: usize) {
        let owner = self.owner(index);
        let sync = owner < 100;
        let cfq = self.settings.cfq.clone();
        self.expiry[index] =
            now + if sync { cfq.fifo_expire_sync } else { cfq.fifo_expire_async }.0;
        self.queues.entry(owner).or_insert(Queue { idles: sync, ..Queue::default() });
        let next = self.queues[&owner].next;
        let back = cfq.back_seek_max.0;
        let next = next.map_or(index, |next| elevator(&self.all, self.head, back, index, next));
        let was_empty = self.queues[&owner].waiting.is_empty();
        let queue = self.queues.get_mut(&owner).unwrap();
        queue.waiting.push(index);
        queue.next = Some(next);
        if was_empty {
            self.line_up(owner, now);
        }
        if sync {
            let deep = self.is_deep;
            let (from, len) = (self.all[index].offset.0, u64::from(self.all[index].len));
            let queue = self.queues.get_mut(&owner).unwrap();
            let thought = queue.ended.map_or(0, |ended| now - ended);
            queue.think.add(thought.min(2 * cfq.slice_idle.0));
            queue.seek.add_seek(if queue.last == 0 { 0 } else { from.abs_diff(queue.last) });
            queue.last = from + len;
            if cfq.slice_idle.0 == 0 || !cfq.low_latency && deep && queue.seek.mean() > 8192 * 512 {
                queue.idles = false;
            } else if queue.think.0 > 80 {
                queue.idles = queue.think.mean() <= cfq.slice_idle.0;
            }
        }
        if let Some(active) = self.active {
            if active == owner {
                if self.idle.take().is_some() {
                    self.queues.get_mut(&owner).unwrap().must = true;
                }
            } else if self.used(active, now) || (sync && active >= 100) {
                self.stop(now, true);
                let front = self.first().map(|first| self.queues[&first].place);
                self.queues.get_mut(&owner).unwrap().place = front.unwrap() - 1_000_000_000;
            }
        }
    }

    fn pick(&mut self, now: u64) -> Option<usize> {
        let cfq = self.settings.cfq.clone();
        if let Some(owner) = self.active {
            let queue = &self.queues[&owner];
            let runs = !self.used(owner, now) || queue.must;
            let awaited =
                self.idle.is_some() || queue.idles && self.on_device(|other| other == owner) > 0;
            if runs && queue.waiting.is_empty() && awaited {
                return None;
            }
            if !runs || queue.waiting.is_empty() {
                self.stop(now, false);
            }
        }
        if self.active.is_none() {
            let owner = self.first()?;
            self.active = Some(owner);
            self.idle = None;
            let queue = self.queues.get_mut(&owner).unwrap();
            (queue.end, queue.sent, queue.looked, queue.must) = (None, 0, false, false);
        }
        let owner = self.active.unwrap();
        let sync = owner < 100;
        let others = self.on_device(|other| (other < 100) != sync);
        if others > 0 && (!sync || self.queues[&owner].idles) {
            return None;
        }
        let own = self.on_device(|other| other == owner) as u64;
        let alone = self.busy().len() <= 1;
        let quantum = u64::from(cfq.quantum);
        let mut most = if own >= quantum && alone { 4 * quantum } else { quantum };
        if !sync && cfq.low_latency {
            let slices = (now - self.sync_end) / cfq.slice_sync.0;
            most = most.min(if slices == 0 && own == 0 { 1 } else { slices });
        }
        if own >= most {
            return None;
        }
        let queue = self.queues.get_mut(&owner).unwrap();
        let oldest = queue.waiting[0];
        let expired = !queue.looked && self.expiry[oldest] <= now;
        let index = if expired { oldest } else { queue.next.unwrap() };
        queue.looked = true;
        queue.must = false;
        queue.sent += 1;
        queue.waiting.retain(|other| *other != index);
        queue.next = neighbour(&self.all, cfq.back_seek_max.0, index, &queue.waiting);
        let sent = queue.sent;
        self.head = self.all[index].offset.0 + u64::from(self.all[index].len);
        self.at_device.push(index);
        if !sync {
            let priority = owner as u32 - 100;
            let limit = 2 * cfq.slice_async_rq * (1 + 7 - priority);
            if self.busy().len() > 1 && sent >= limit {
                self.stop(now, false);
            }
        }
        Some(index)
    }

    fn done(&mut self, now: u64, index: usize) {
        // Whether the device is deep is looked at 50 times, while more than five are waiting or on.
        let on = self.at_device.len();
        let waiting: usize = self.queues.values().map(|queue| queue.waiting.len()).sum();
        self.peak = self.peak.max(on);
        if waiting > 5 || on > 5 {
            self.looks += 1;
            if self.looks == 51 {
                (self.is_deep, self.looks, self.peak) = (self.peak >= 5, 0, 0);
            }
        }
        self.at_device.retain(|other| *other != index);
        let owner = self.owner(index);
        let sync = owner < 100;
        let slice = self.slice(owner) as u64;
        let queue = self.queues.get_mut(&owner).unwrap();
        if sync {
            queue.ended = Some(now);
            self.sync_end = now;
        }
        if self.active != Some(owner) {
            return;
        }
        let end = *queue.end.get_or_insert(now + slice);
        let queue = queue.clone();
        if end <= now {
            self.stop(now, true);
        } else if sync
            && queue.waiting.is_empty()
            && queue.idles
            && self.at_device.is_empty()
            && (self.settings.rotational || !self.is_deep)
            && !(queue.think.0 > 80 && end - now < queue.think.mean())
        {
            let seeky = queue.seek.0 > 80 && self.is_seeky(owner);
            let idle = self.settings.cfq.slice_idle.0;
            self.idle = Some(now + if seeky { idle.min(2 * MS) } else { idle });
        }
    }

    fn timer(&self) -> Option<u64> {
        self.idle
    }

    fn expire(&mut self, now: u64) {
        self.idle = None;
        if let Some(owner) = self.active {
            let queue = &self.queues[&owner];
            let replaced = queue.waiting.is_empty() && !self.busy().is_empty();
            if !queue.must && (self.used(owner, now) || replaced) {
                self.stop(now, false);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_is_that_of_the_rule(
        requests in loads(4),
        depth in 1_u32..10,
        priorities in prop::collection::vec(0_u32..8, 4),
        slices in [200_000_u64..5_000_000, 200_000..5_000_000],
        idle in 0_u64..3_000_000,
        expire in 200_000_u64..5_000_000,
        quantum in 1_u32..6,
        rotational in any::<bool>(),
        low_latency in any::<bool>(),
    ) {
        let mut settings =
            Settings { depth, priorities, rotational, ..Settings::new(Kind::Cfq) };
        [settings.cfq.slice_sync, settings.cfq.slice_async] = slices.map(Nanos);
        settings.cfq.slice_idle = Nanos(idle);
        settings.cfq.fifo_expire_sync = Nanos(expire);
        settings.cfq.quantum = quantum;
        settings.cfq.low_latency = low_latency;
        check(&settings, &requests, &mut Slow::new(&requests, &settings));
    }
}
