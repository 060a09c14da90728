//! Far more requests than members can do: the work for each does not grow with those that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host::Scheduled;
use host::scheduler::{self, Kind};
use host::volume::cache::{CacheDevice, CacheMode, CacheSettings};
use host::volume::{Controller, Level, Protection, Rebuild, Settings, Volume};
use model::{Device, Queued};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::load::{Draws, closed, request};

/// A disk that takes the nearest of what it holds: it looks at all of that for each choice.
struct Nearest {
    held: Vec<(u64, Request)>,
    head: u64,
    free_at: u64,
    /// The request in work.
    serving: Option<(u64, u64)>,
    /// Requests looked at, and the most held at a time.
    looked: Arc<AtomicU64>,
    deepest: Arc<AtomicU64>,
}

/// Of every request.
const SERVICE_NS: u64 = 3_000_000;

impl Nearest {
    fn choose(&mut self, now: u64) {
        if self.serving.is_some() {
            return;
        }
        self.looked.fetch_add(self.held.len() as u64, Ordering::Relaxed);
        let head = self.head;
        let nearest =
            (0..self.held.len()).min_by_key(|at| self.held[*at].1.offset.0.abs_diff(head));
        if let Some(at) = nearest {
            let (ticket, request) = self.held.remove(at);
            self.head = request.offset.0;
            self.free_at = self.free_at.max(now) + SERVICE_NS;
            self.serving = Some((self.free_at, ticket));
        }
    }
}

impl Queued for Nearest {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        self.held.push((ticket, *request));
        let held = self.held.len() as u64 + u64::from(self.serving.is_some());
        self.deepest.fetch_max(held, Ordering::Relaxed);
        self.choose(now.0);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        let (at, ticket) = self.serving.filter(|(at, _)| *at <= until.0)?;
        self.serving = None;
        self.choose(at);
        Some((Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.serving.map(|(at, _)| Nanos(at))
    }
}

impl Device for Nearest {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        model::queued::submit(self, now, request)
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        Some(self)
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(1 << 40))
    }
}

/// What members counted.
#[derive(Default)]
struct Counts {
    looked: Arc<AtomicU64>,
    deepest: Arc<AtomicU64>,
}

impl Counts {
    fn member(&self) -> Box<dyn Device> {
        let (looked, deepest) = (self.looked.clone(), self.deepest.clone());
        let held = Vec::new();
        Box::new(Nearest { held, head: 0, free_at: 0, serving: None, looked, deepest })
    }
}

/// `count` writes and reads of 4 KiB at 10,000 per second, some to the same few columns; the end.
fn overload(device: &mut dyn Queued, count: u64, capacity: u64) -> u64 {
    let mut draws = Draws(3);
    let mut answered = vec![false; count as usize];
    let (mut end, mut left) = (0, count);
    let mut answer = |found: Option<(Nanos, u64)>| {
        let Some((at, ticket)) = found else { return false };
        assert!(!std::mem::replace(&mut answered[ticket as usize], true), "answered twice");
        assert!(at.0 >= end, "completions run back");
        (end, left) = (at.0, left - 1);
        left > 0
    };
    for ticket in 0..count {
        let now = Nanos(ticket * 100_000);
        while answer(device.next_completion(now)) {}
        let blocks = if draws.below(4) == 0 { 16 } else { capacity / 4096 };
        let op = if draws.below(3) == 0 { Op::Read } else { Op::Write };
        device.arrive(now, ticket, &request(op, draws.below(blocks) * 4096, 4096));
    }
    while answer(device.next_completion(Nanos(1 << 50))) {}
    assert_eq!(left, 0, "not everybody is answered");
    end
}

/// Steps of the layer and looks of its members, both per request.
struct Work {
    steps: f64,
    looks: f64,
    deepest: u64,
}

fn work(settings: &Settings, count: u64) -> Work {
    let counts = Counts::default();
    let journal = usize::from(matches!(settings.protection, Protection::Journal { .. }));
    let members = (0..settings.members + journal).map(|_| counts.member()).collect();
    let mut volume = Volume::new(members, settings).expect("a volume");
    let capacity = volume.capacity().expect("of disks").0;
    let end = overload(volume.queued().expect("of disks that look"), count, capacity);
    // It really was overloaded: what comes in a second takes many.
    assert!(end > 4 * count * 100_000, "{} s", end / 1_000_000_000);
    let of = |total: u64| total as f64 / count as f64;
    Work {
        steps: of(volume.steps()),
        looks: of(counts.looked.load(Ordering::Relaxed)),
        deepest: counts.deepest.load(Ordering::Relaxed),
    }
}

#[test]
fn a_cache_device_keeps_what_its_devices_cannot_hold() {
    for mode in [CacheMode::WriteThrough, CacheMode::WriteBack, CacheMode::WriteAround] {
        for count in [2000, 20_000] {
            let counts = Counts::default();
            let settings = CacheSettings { mode, ..CacheSettings::new(1 << 26) };
            let [fast, slow] = [counts.member(), counts.member()];
            let mut cache = CacheDevice::new(fast, slow, &settings).expect("a cache");
            overload(cache.queued().expect("always"), count, 1 << 40);
            let of = |total: u64| total as f64 / count as f64;
            let (steps, looks) = (of(cache.steps()), of(counts.looked.load(Ordering::Relaxed)));
            println!("{mode:?}: steps {steps:.1} looks {looks:.1}");
            assert!(steps < 10.0, "{mode:?}: {steps} steps");
            assert!(looks < 4.0 * 32.0, "{mode:?}: {looks} looks");
            assert_eq!(counts.deepest.load(Ordering::Relaxed), 32);
        }
    }
}

#[test]
fn work_per_request_does_not_grow_with_those_that_wait() {
    let raid5 = Settings::new(Level::Raid5, 4);
    let controller = Controller { cache_bytes: 1 << 20, ..Controller::default() };
    let rebuild = Some(Rebuild { step_bytes: 1 << 16, ..Rebuild::of(1) });
    let journal = Protection::Journal { write_back: true, bytes: 1 << 30 };
    for (name, settings) in [
        ("RAID 5", raid5.clone()),
        ("RAID 5, one lost", Settings { failed: vec![1], ..raid5.clone() }),
        ("RAID 5, rebuilt", Settings { failed: vec![1], rebuild, ..raid5.clone() }),
        ("RAID 5, controller", Settings { controller: Some(controller), ..raid5.clone() }),
        ("RAID 5, bitmap", Settings { protection: Protection::BITMAP, ..raid5.clone() }),
        ("RAID 5, any columns", Settings { stripe_cache: 0, ..raid5.clone() }),
        ("RAID 5, journal", Settings { protection: journal, ..raid5.clone() }),
        ("RAID 5, parity", Settings { parity_ns_per_column: 5000, ..raid5.clone() }),
        ("RAID 6", Settings::new(Level::Raid6, 4)),
        ("RAID 10", Settings::new(Level::Raid10, 4)),
    ] {
        let (few, many) = (work(&settings, 2000), work(&settings, 20_000));
        println!(
            "{name:<20} steps {:>6.1} {:>6.1}  looks {:>6.1} {:>6.1}",
            few.steps, many.steps, few.looks, many.looks
        );
        for work in [few, many] {
            assert!(work.steps < 40.0, "{name}: {} steps", work.steps);
            // At most 32 held, for each of the requests of members.
            assert!(work.looks < 8.0 * 32.0, "{name}: {} looks", work.looks);
            assert_eq!(work.deepest, 32, "{name}");
        }
    }
}

#[test]
fn a_scheduler_keeps_what_its_device_cannot_hold() {
    for kind in [Kind::None, Kind::Deadline, Kind::MqDeadline, Kind::Kyber, Kind::Cfq, Kind::Bfq] {
        for count in [2000, 20_000] {
            let counts = Counts::default();
            let settings = scheduler::Settings::new(kind);
            let mut device = Scheduled::new(counts.member(), &settings);
            overload(device.queued().expect("always"), count, 1 << 40);
            assert_eq!(device.looks(), count);
            let looks = counts.looked.load(Ordering::Relaxed);
            assert!(looks <= count * u64::from(settings.depth), "{kind:?}: {looks} looks");
        }
    }
}

/// Every request waits for the flushes before it; it is looked at when it comes and when it may go.
#[test]
fn requests_behind_many_flushes_are_looked_at_twice() {
    let counts = Counts::default();
    let settings = scheduler::Settings::new(Kind::None);
    let mut device = Scheduled::new(counts.member(), &settings);
    let queued = device.queued().expect("always");
    let count = 20_000;
    for ticket in 0..count {
        let op = if ticket % 10 == 9 { Op::Flush } else { Op::Write };
        queued.arrive(Nanos(ticket * 100), ticket, &request(op, ticket * 40_960, 4096));
    }
    for ticket in 0..count {
        // Within one group the disk chooses.
        let (_, found) = queued.next_completion(Nanos(1 << 50)).expect("it completes");
        assert_eq!(found / 10, ticket / 10);
    }
    let looks = device.looks() as f64 / count as f64;
    assert!(looks < 2.1, "{looks} looks at a request");
}

/// As many requests at once as there are, each in 100 us.
struct Parallel;

impl Device for Parallel {
    fn submit(&mut self, now: Nanos, _: &Request) -> Nanos {
        Nanos(now.0 + 100_000)
    }
    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(1 << 40))
    }
}

#[test]
fn the_stripe_cache_bounds_the_rate_of_writes() {
    let rate = |stripe_cache: usize, reads: f64, bytes: u32| {
        let settings = Settings { stripe_cache, ..Settings::new(Level::Raid5, 4) };
        let members = (0..4).map(|_| Box::new(Parallel) as Box<dyn Device>).collect();
        let mut volume = Volume::new(members, &settings).expect("a volume");
        let mut draws = Draws(2);
        closed(&mut volume, 1000, 50_000, || draws.mixed(reads, bytes, 1 << 40)).0
    };
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.02, "{found:.0}/s, expected {expected:.0}/s");
    };
    // Who waits enters below three quarters: this many columns to all of them are in work.
    let between = |found: f64, all: f64| {
        assert!((0.75 * all..=all).contains(&found), "{found:.0}/s, at most {all:.0}/s");
    };
    // A column in work takes 100 us of reads and 100 us of writes; a request of 16 KiB takes four.
    between(rate(17, 0.0, 4096), 17.0 / 200e-6);
    between(rate(256, 0.0, 4096), 256.0 / 200e-6);
    between(rate(256, 0.0, 16 << 10), 64.0 / 200e-6);
    // Reads pass by, and without a bound everybody is in work.
    near(rate(17, 1.0, 4096), 1000.0 / 100e-6);
    near(rate(0, 0.0, 4096), 1000.0 / 200e-6);
}

#[test]
fn one_thread_for_parity_bounds_the_columns_per_second() {
    let rate = |level, bytes: u32, reads: f64| {
        let settings = Settings { parity_ns_per_column: 5000, ..Settings::new(level, 4) };
        let members = (0..4).map(|_| Box::new(Parallel) as Box<dyn Device>).collect();
        let mut volume = Volume::new(members, &settings).expect("a volume");
        let mut draws = Draws(2);
        closed(&mut volume, 100, 20_000, || draws.mixed(reads, bytes, 1 << 40)).0
    };
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.01, "{found:.0}/s, expected {expected:.0}/s");
    };
    // 100 users and 200 us of members could do 500,000.
    near(rate(Level::Raid5, 4096, 0.0), 200_000.0);
    near(rate(Level::Raid6, 8192, 0.0), 100_000.0);
    // No parity is worked out for reads.
    near(rate(Level::Raid5, 4096, 1.0), 1_000_000.0);
    near(rate(Level::Raid10, 4096, 0.0), 1_000_000.0);
}
