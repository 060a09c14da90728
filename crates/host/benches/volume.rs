//! Volumes over RAM disks: requests per second of one core, by CPU time, in a closed loop of 64
//! users with 70 % reads of 8 KiB; and in an open one that asks more than ten times what members
//! can do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use host::volume::cache::{CacheDevice, CacheMode, CacheSettings};
use host::volume::{Controller, Level, Settings, Volume};
use model::{Device, Ram};
use profile::ram::RamParameters;
use trace::{Op, Request};
use units::{Bytes, Nanos};

const USERS: u64 = 64;
const REQUESTS: u64 = 400_000;

/// Seconds of CPU time that this thread has used; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

fn ram() -> Box<dyn Device> {
    memory(10_000.0, 4)
}

fn slow() -> Box<dyn Device> {
    memory(3_333_000.0, 1)
}

fn memory(latency_ns: f64, ports: u32) -> Box<dyn Device> {
    let capacity = Some(Bytes(1 << 40));
    Box::new(Ram::new(&RamParameters { capacity, latency_ns, bytes_per_s: 4e9, ports }))
}

struct Load {
    state: u64,
    blocks: u64,
}

impl Load {
    fn next(&mut self) -> Request {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let draw = self.state ^ (self.state >> 29);
        let op = if draw % 10 < 7 { Op::Read } else { Op::Write };
        let offset = Bytes((draw >> 8) % self.blocks * 8192);
        Request { due: Nanos(0), offset, len: 8192, op, stream: 0 }
    }
}

fn run(device: &mut dyn Device) -> f64 {
    let blocks = device.capacity().map_or(1 << 20, |bytes| bytes.0 / 8192);
    let mut load = Load { state: 1, blocks };
    let start = Instant::now();
    let before = cpu_seconds(start);
    if let Some(queued) = device.queued() {
        for user in 0..USERS {
            queued.arrive(Nanos(0), user, &load.next());
        }
        for _ in 0..REQUESTS {
            let (at, user) = queued.next_completion(Nanos(u64::MAX)).expect("it completes");
            queued.arrive(at, user, &load.next());
        }
    } else {
        let mut users: BinaryHeap<_> = (0..USERS).map(|user| Reverse((0, user))).collect();
        for _ in 0..REQUESTS {
            let Reverse((now, user)) = users.pop().expect("a user is free");
            users.push(Reverse((device.submit(Nanos(now), &load.next()).0, user)));
        }
    }
    REQUESTS as f64 / (cpu_seconds(start) - before) / 1e6
}

/// Requests that arrive at 10,000 per second, whatever has been answered.
fn overload(device: &mut dyn Device) -> f64 {
    const COUNT: u64 = 60_000;
    let blocks = device.capacity().map_or(1 << 20, |bytes| bytes.0 / 8192);
    let mut load = Load { state: 1, blocks };
    let start = Instant::now();
    let before = cpu_seconds(start);
    let queued = device.queued().expect("a volume with parity");
    for number in 0..COUNT {
        let now = Nanos(number * 100_000);
        while queued.next_completion(now).is_some() {}
        queued.arrive(now, number, &load.next());
    }
    while queued.next_completion(Nanos(u64::MAX)).is_some() {}
    COUNT as f64 / (cpu_seconds(start) - before) / 1e6
}

/// Median of three fresh devices.
fn measure(name: &str, make: impl Fn() -> Box<dyn Device>) {
    measure_by(name, run, make);
}

fn measure_by(name: &str, run: fn(&mut dyn Device) -> f64, make: impl Fn() -> Box<dyn Device>) {
    let mut rates: Vec<f64> = (0..3).map(|_| run(make().as_mut())).collect();
    rates.sort_by(f64::total_cmp);
    println!("{name:<32} {:>6.2} M requests/s per core", rates[1]);
}

fn main() {
    let volume = |settings: &Settings| -> Box<dyn Device> {
        let members = (0..settings.members).map(|_| ram()).collect();
        Box::new(Volume::new(members, settings).expect("a volume"))
    };
    measure("one member, no volume", ram);
    let levels = [Level::Raid0, Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6];
    for level in levels {
        let settings = Settings::new(level, 8);
        measure(&format!("{level:?} of 8"), || volume(&settings));
    }
    // 300 requests per second of each member.
    measure_by("Raid5 of 4, overloaded", overload, || {
        let settings = Settings::new(Level::Raid5, 4);
        let members = (0..4).map(|_| slow()).collect();
        Box::new(Volume::new(members, &settings).expect("a volume"))
    });
    let lost = Settings { failed: vec![3], ..Settings::new(Level::Raid5, 8) };
    measure("Raid5 of 8, one lost", || volume(&lost));
    let behind =
        Settings { controller: Some(Controller::default()), ..Settings::new(Level::Raid0, 8) };
    measure("Raid0 of 8 behind a controller", || volume(&behind));
    let cache = CacheSettings { mode: CacheMode::WriteBack, ..CacheSettings::new(1 << 30) };
    measure("cache of 1 GiB, write-back", || {
        Box::new(CacheDevice::new(ram(), ram(), &cache).expect("a cache"))
    });
}
