//! Bitmap, journal, partial parity log, rebuild: what they add, when, and where.

use host::volume::{Level, Protection, Rebuild, Settings, Volume};
use model::Device;
use trace::Op;
use units::Nanos;

use super::load::{Constant, Draws, Log, closed, members, request};

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// What a member was asked, without the times.
fn asked(log: &Log) -> Vec<(Op, u64, u64)> {
    log.lock().unwrap().drain(..).map(|(_, op, offset, bytes)| (op, offset, bytes)).collect()
}

fn value(volume: &Volume, name: &str) -> u64 {
    volume.counters().iter().find(|counter| counter.name == name).expect(name).value
}

/// Submits at `at`, and lets everything happen until then.
fn submit(volume: &mut Volume, at: u64, op: Op, offset: u64, len: u32) -> u64 {
    volume.submit(Nanos(at), &request(op, offset, len)).0 - at
}

#[test]
fn a_region_is_marked_on_every_member_before_its_first_write() {
    let settings = Settings { protection: Protection::BITMAP, ..Settings::new(Level::Raid1, 2) };
    let (devices, logs) = members(2, 100, 1000);
    let mut volume = Volume::new(devices, &settings).unwrap();
    let mark = [(Op::Write, 0, 4096), (Op::Flush, 0, 0)];
    // A mark, a flush that takes no time here, the write behind the reserved MiB.
    assert_eq!(submit(&mut volume, 0, Op::Write, 0, 4096), 2000);
    for log in &logs {
        assert_eq!(asked(log), [mark[0], mark[1], (Op::Write, MIB, 4096)]);
    }
    assert_eq!(submit(&mut volume, SECOND, Op::Write, 8192, 4096), 1000, "the region is marked");
    assert_eq!(submit(&mut volume, SECOND + 5000, Op::Write, 64 * MIB, 4096), 2000, "another");
    // Written in this turn (5 s), not in the next (10 s): unmarked then.
    assert_eq!(submit(&mut volume, 9 * SECOND, Op::Write, 0, 4096), 1000);
    for log in &logs {
        asked(log);
    }
    assert_eq!(submit(&mut volume, 11 * SECOND, Op::Write, 0, 4096), 1000, "written at 9 s");
    assert_eq!(asked(&logs[0]), [mark[0], (Op::Write, MIB, 4096)], "64 MiB is unmarked at 10 s");
    assert_eq!(submit(&mut volume, 60 * SECOND, Op::Write, 0, 4096), 2000, "idle for long");
    assert_eq!(value(&volume, "bitmap_marks"), 3);
}

#[test]
fn a_partial_parity_log_is_one_more_write_on_the_member_of_the_parity() {
    let protection = Protection::Ppl;
    let settings = Settings { protection, ..Settings::new(Level::Raid5, 4) };
    let (devices, logs) = members(4, 100, 1000);
    let mut volume = Volume::new(devices, &settings).unwrap();
    // Reads, the log, then data and parity.
    assert_eq!(submit(&mut volume, 0, Op::Write, 0, 4096), 100 + 1000 + 1000);
    assert_eq!(asked(&logs[0]), [(Op::Write, MIB, 4096)]);
    let parity = asked(&logs[3]);
    assert_eq!(parity, [(Op::Write, 64 << 10, 8192), (Op::Write, MIB, 4096)]);
    // A whole stripe needs none.
    let stripe = 3 * (512 << 10);
    assert_eq!(submit(&mut volume, SECOND, Op::Write, stripe, stripe as u32), 1000);
    assert_eq!(value(&volume, "logged_bytes"), 8192);
}

fn journalled(write_back: bool) -> (Volume, Vec<Log>) {
    let protection = Protection::Journal { write_back, bytes: 64 * MIB };
    let settings = Settings { protection, ..Settings::new(Level::Raid5, 4) };
    let (mut devices, mut logs) = members(4, 100, 1000);
    let journal = Constant::new(5, 50, 64 * MIB);
    logs.push(journal.log.clone());
    devices.push(Box::new(journal));
    (Volume::new(devices, &settings).unwrap(), logs)
}

#[test]
fn a_journal_in_write_through_mode_comes_before_the_members() {
    let (mut volume, logs) = journalled(false);
    // Reads, data and parity behind a block of 4 KiB, members.
    assert_eq!(submit(&mut volume, 0, Op::Write, 0, 4096), 100 + 50 + 1000);
    assert_eq!(asked(&logs[4]), [(Op::Write, 0, 3 * 4096), (Op::Flush, 0, 0)]);
    // Whole stripes too, a MiB and a half of data and half a MiB of parity.
    assert_eq!(submit(&mut volume, SECOND, Op::Write, 0, 3 * (512 << 10)), 50 + 1000);
    assert_eq!(asked(&logs[4])[0], (Op::Write, 3 * 4096, 2 * MIB + 4096));
    // What was answered is safe.
    assert_eq!(submit(&mut volume, 2 * SECOND, Op::Flush, 0, 0), 0);
    assert_eq!(asked(&logs[4]), []);
}

#[test]
fn a_journal_in_write_back_mode_answers_and_writes_later() {
    let (mut volume, logs) = journalled(true);
    assert_eq!(submit(&mut volume, 0, Op::Write, 0, 4096), 50);
    assert_eq!(asked(&logs[4]), [(Op::Write, 0, 2 * 4096)]);
    assert_eq!(submit(&mut volume, SECOND, Op::Read, 0, 4096), 0, "it is in memory");
    assert_eq!(submit(&mut volume, 2 * SECOND, Op::Flush, 0, 0), 50);
    assert_eq!(asked(&logs[4]), [(Op::Write, 8192, 4096), (Op::Flush, 0, 0)]);
    assert!(logs[..4].iter().all(|log| asked(log).is_empty()), "nothing is in its place yet");
    // 30 s after the first: reads, parity to the log, both to their places.
    assert_eq!(submit(&mut volume, 31 * SECOND, Op::Read, 8 * MIB, 4096), 100);
    assert_eq!(asked(&logs[4]), [(Op::Write, 12_288, 2 * 4096), (Op::Flush, 0, 0)]);
    assert_eq!(asked(&logs[0])[0], (Op::Write, 0, 4096));
    assert_eq!(asked(&logs[3])[0], (Op::Write, 0, 4096));
}

#[test]
fn a_full_stripe_cache_lets_the_writers_of_a_journal_wait() {
    let (mut volume, logs) = journalled(true);
    let capacity = volume.capacity().unwrap().0;
    let mut draws = Draws(1);
    let (found, responses) = closed(&mut volume, 64, 20_000, || draws.mixed(0.0, 4096, capacity));
    // Four members write two of four blocks each time, 1000 ns, and read two, 100 ns.
    let expected = 4.0 / (2.0 * 100.0 + 2.0 * 1000.0) * 1e9;
    assert!((found / expected - 1.0).abs() < 0.03, "{found:.0}/s, expected {expected:.0}/s");
    assert!(responses.iter().min().is_some_and(|least| *least >= 50));
    assert!(value(&volume, "memory_stalled_writes") > 15_000);
    assert!(logs.iter().all(|log| !log.lock().unwrap().is_empty()));
}

/// RAID of four members of 256 MiB with number 2 lost and made anew.
fn rebuilding(level: Level, rebuild: Rebuild) -> (Volume, Vec<Log>) {
    let settings = Settings { failed: vec![2], rebuild: Some(rebuild), ..Settings::new(level, 4) };
    let made = (0..4).map(|_| Constant::new(1000, 2000, 256 * MIB));
    let pairs = made.map(|device| {
        let log = device.log.clone();
        (Box::new(device) as Box<dyn Device>, log)
    });
    let (devices, logs): (Vec<_>, Vec<_>) = pairs.unzip();
    (Volume::new(devices, &settings).unwrap(), logs)
}

#[test]
fn a_rebuild_without_load_takes_capacity_over_rate_and_ends_the_loss() {
    for level in [Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10] {
        let rebuild = Rebuild { most_bytes_per_s: 64 * MIB, ..Rebuild::of(2) };
        let (mut volume, logs) = rebuilding(level, rebuild);
        let queued = volume.queued().unwrap();
        assert!(queued.next_completion(Nanos(2 * SECOND)).is_none());
        assert_eq!(value(&volume, "rebuilt_bytes"), 128 * MIB, "{level:?}");
        assert!(volume.queued().unwrap().next_completion(Nanos(5 * SECOND)).is_none());
        assert_eq!(value(&volume, "rebuilt_bytes"), 256 * MIB, "{level:?}");
        let traffic: Vec<_> = volume.members().collect();
        assert_eq!(traffic[2].write_bytes, 256 * MIB, "{level:?}");
        let read: u64 = traffic.iter().map(|member| member.read_bytes).sum();
        let sources = if matches!(level, Level::Raid5 | Level::Raid6) { 3 } else { 1 };
        assert_eq!(read, sources * 256 * MIB, "{level:?}");
        for log in &logs {
            asked(log);
        }
        // Nothing happens any more, and the member is read.
        assert!(volume.queued().unwrap().next_event().is_none());
        let found = submit(&mut volume, 6 * SECOND, Op::Read, 0, 3 << 20);
        assert!(found <= 4000, "{level:?}: {found} ns");
        let others: usize = logs.iter().map(|log| log.lock().unwrap().len()).sum();
        assert!(others <= 4, "{level:?}: {others} reads of a healthy volume");
    }
}

#[test]
fn a_rebuild_beside_a_load_keeps_to_the_least_rate() {
    let rebuild = Rebuild { least_bytes_per_s: 8 * MIB, ..Rebuild::of(2) };
    let (mut volume, _) = rebuilding(Level::Raid5, rebuild);
    let mut draws = Draws(2);
    let capacity = volume.capacity().unwrap().0;
    // A request every ms for 4 s.
    let queued = volume.queued().unwrap();
    let mut done = 0;
    for ticket in 0..4000 {
        let now = Nanos(ticket * 1_000_000);
        while queued.next_completion(now).is_some() {
            done += 1;
        }
        queued.arrive(now, ticket, &draws.mixed(0.5, 8192, capacity));
    }
    assert!((3990..=4000).contains(&done), "{done} done");
    let rebuilt = value(&volume, "rebuilt_bytes") / MIB;
    assert!((32..=33).contains(&rebuilt), "{rebuilt} MiB in 4 s");
}
