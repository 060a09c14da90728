//! Controllers: ceilings of commands and bandwidth, queue limits, memory behind a battery.

use host::volume::{Controller, Level, Settings, Update, Volume};
use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::load::{Draws, closed, members, request};

fn settings(level: Level, members: usize, controller: Controller) -> Settings {
    Settings { controller: Some(controller), ..Settings::new(level, members) }
}

/// A controller of 25,000 commands per second and no other limit.
fn plain() -> Controller {
    Controller {
        contexts: 1,
        command_ns: 40_000,
        bytes_per_s: f64::INFINITY,
        queue: 1000,
        ..Controller::default()
    }
}

fn reads(device: &mut dyn Device, bytes: u32, count: u64) -> f64 {
    let capacity = device.capacity().unwrap().0;
    let mut draws = Draws(5);
    closed(device, 64, count, || draws.mixed(1.0, bytes, capacity)).0
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.02, "{found:.0}/s, expected {expected:.0}/s");
}

/// Drives that give 35,500 reads of 4 KiB per second, as the X25-E of the 2010 slides.
fn volume(drives: usize) -> Volume {
    let settings = settings(Level::Raid0, drives, plain());
    Volume::new(members(drives, 28_169, 28_169).0, &settings).unwrap()
}

#[test]
fn one_drive_saturates_a_controller_and_a_second_controller_doubles_it() {
    for drives in [1, 2, 4] {
        near(reads(&mut volume(drives), 4096, 20_000), 25_000.0);
    }
    // Software RAID 0 over the volumes of two controllers.
    let two: Vec<Box<dyn Device>> = vec![Box::new(volume(2)), Box::new(volume(2))];
    let mut both = Volume::new(two, &Settings::new(Level::Raid0, 2)).unwrap();
    near(reads(&mut both, 4096, 20_000), 50_000.0);
    // A fast controller leaves the drives as the limit.
    let fast = Controller { contexts: 8, ..plain() };
    let settings = settings(Level::Raid0, 2, fast);
    let mut volume = Volume::new(members(2, 28_169, 28_169).0, &settings).unwrap();
    near(reads(&mut volume, 4096, 20_000), 2.0 * 35_500.0);
}

#[test]
fn a_small_write_of_raid_5_is_four_commands() {
    let controller = Controller { contexts: 2, ..plain() };
    let settings = Settings { update: Update::Modify, ..settings(Level::Raid5, 5, controller) };
    let mut volume = Volume::new(members(5, 1000, 1000).0, &settings).unwrap();
    let capacity = volume.capacity().unwrap().0;
    let mut draws = Draws(5);
    let (found, _) = closed(&mut volume, 64, 20_000, || draws.mixed(0.0, 4096, capacity));
    near(found, 50_000.0 / 4.0);
}

#[test]
fn writes_have_ceilings_of_their_own() {
    let controller = Controller {
        write_command_ns: Some(100_000),
        write_bytes_per_s: Some(4e8),
        bytes_per_s: 1e9,
        ..plain()
    };
    let settings = settings(Level::Raid0, 4, controller);
    let rate = |reads: f64, bytes: u32| {
        let mut volume = Volume::new(members(4, 1000, 1000).0, &settings).unwrap();
        let capacity = volume.capacity().unwrap().0;
        let mut draws = Draws(5);
        closed(&mut volume, 64, 10_000, || draws.mixed(reads, bytes, capacity)).0
    };
    near(rate(1.0, 4096), 25_000.0);
    near(rate(0.0, 4096), 10_000.0);
    near(rate(1.0, 256 << 10) * f64::from(256 << 10), 1e9);
    near(rate(0.0, 256 << 10) * f64::from(256 << 10), 4e8);
}

#[test]
fn the_bus_bounds_large_requests() {
    let controller = Controller { bytes_per_s: 1e9, ..plain() };
    let settings = settings(Level::Raid0, 4, controller);
    let mut volume = Volume::new(members(4, 28_169, 28_169).0, &settings).unwrap();
    near(reads(&mut volume, 256 << 10, 5000) * f64::from(256 << 10), 1e9);
}

/// As many requests at once as there are, each in the same time.
struct Parallel(u64);

impl Device for Parallel {
    fn submit(&mut self, now: Nanos, _: &Request) -> Nanos {
        Nanos(now.0 + self.0)
    }
    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(1 << 40))
    }
}

#[test]
fn no_more_commands_than_the_queue_are_under_way() {
    let controller = Controller { command_ns: 0, queue: 16, ..plain() };
    let device: Box<dyn Device> = Box::new(Parallel(100_000));
    let mut volume = Volume::new(vec![device], &settings(Level::Raid0, 1, controller)).unwrap();
    // 64 users, 16 at a time, 100 us each.
    near(reads(&mut volume, 4096, 20_000), 160_000.0);
}

#[test]
fn memory_answers_until_it_is_full_and_then_at_the_rate_of_the_members() {
    let controller = Controller { command_ns: 0, cache_bytes: 8 << 20, destages: 400, ..plain() };
    let settings = settings(Level::Raid0, 4, controller.clone());
    let (devices, logs) = members(4, 100_000, 250_000);
    let mut volume = Volume::new(devices, &settings).unwrap();
    let capacity = volume.capacity().unwrap().0;
    let mut draws = Draws(9);
    let count = 20_000;
    let (_, responses) = closed(&mut volume, 8, count, || draws.mixed(0.0, 4096, capacity));
    // 2048 pages of room, and those that went to their places meanwhile: none of them waits.
    let quick = responses.iter().take_while(|ns| **ns == 50_000).count();
    assert!((2048..2500).contains(&quick), "{quick} answered from memory");
    // From then on 4 members at 4000/s; 8 users each wait for their turn.
    let late = &responses[4000..];
    let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
    near(8.0 / mean * 1e9, 16_000.0);
    // What is answered stays in memory at most.
    let written: usize = logs.iter().map(|log| log.lock().unwrap().len()).sum();
    assert!((count as usize - 2048 - 8..=count as usize).contains(&written), "{written} written");
}

#[test]
fn memory_holds_what_it_has_not_written() {
    let controller = Controller { cache_bytes: 1 << 20, destages: 1, ..plain() };
    let settings = settings(Level::Raid0, 1, controller);
    let (devices, logs) = members(1, 1_000_000, 10_000_000);
    let mut volume = Volume::new(devices, &settings).unwrap();
    let queued = volume.queued().unwrap();
    let ask = [
        request(Op::Write, 0, 4096),
        request(Op::Write, 8192, 4096),
        request(Op::Write, 8192, 4096),
        request(Op::Read, 8192, 4096),
        request(Op::Flush, 0, 0),
        request(Op::Read, 65_536, 4096),
    ];
    for (ticket, request) in ask.iter().enumerate() {
        queued.arrive(Nanos(0), ticket as u64, request);
    }
    let mut found = Vec::new();
    while let Some((at, ticket)) = queued.next_completion(Nanos(1 << 40)) {
        found.push((at.0, ticket));
    }
    // All but the read of something else after 50 us; that one is behind the first write.
    let quick: Vec<_> = (0..5).map(|ticket| (50_000, ticket)).collect();
    assert_eq!(found[..5], quick);
    assert_eq!(found[5..], [(40_000 + 10_000_000 + 1_000_000, 5)]);
    let written: Vec<_> = logs[0].lock().unwrap().iter().map(|entry| (entry.1, entry.2)).collect();
    assert_eq!(written, [(Op::Write, 0), (Op::Read, 65_536), (Op::Write, 8192)]);
    let counters = volume.counters();
    let value = |name: &str| counters.iter().find(|counter| counter.name == name).unwrap().value;
    assert_eq!((value("memory_absorbed_writes"), value("memory_hits")), (1, 1));
}
