//! Rates of volumes of members with constant latency: the closed forms of
//! Patterson, Gibson, Katz, "A case for redundant arrays of inexpensive disks" (1988), with the
//! reads that md does.

use host::volume::{Copies, Level, Settings, Update, Volume};
use model::Device;
use trace::Op;
use units::Nanos;

use super::load::{self, Asked, Constant, Draws, closed, members, request};

const READ_NS: u64 = 100_000;
const WRITE_NS: u64 = 250_000;
/// Reads and writes per second of a member.
const R: f64 = 1e4;
const W: f64 = 4e3;

/// Random requests of 4 KiB, `reads` of them reads, by many users.
fn rate(settings: &Settings, reads: f64) -> f64 {
    let mut volume = Volume::new(members(settings.members, READ_NS, WRITE_NS).0, settings).unwrap();
    let capacity = volume.capacity().unwrap().0;
    let mut draws = Draws(7);
    let users = 100 * settings.members as u64;
    closed(&mut volume, users, 60_000, || draws.mixed(reads, 4096, capacity)).0
}

fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(off.abs() < tolerance, "{what}: {found:.0}/s, expected {expected:.0}/s");
}

#[test]
fn stripes_and_mirrors_have_the_rates_of_their_members() {
    for n in [2, 4, 7] {
        let raid0 = Settings::new(Level::Raid0, n);
        check("RAID 0 reads", rate(&raid0, 1.0), n as f64 * R, 0.03);
        check("RAID 0 writes", rate(&raid0, 0.0), n as f64 * W, 0.03);
        check("RAID 0 mixed", rate(&raid0, 0.7), n as f64 / (0.7 / R + 0.3 / W), 0.03);
    }
    for copies in [Copies::Near, Copies::Far, Copies::Offset] {
        for n in [4, 5] {
            let raid10 = Settings { copies, ..Settings::new(Level::Raid10, n) };
            check("RAID 10 reads", rate(&raid10, 1.0), n as f64 * R, 0.03);
            check("RAID 10 writes", rate(&raid10, 0.0), n as f64 * W / 2.0, 0.03);
            let mix = n as f64 / (0.7 / R + 0.3 * 2.0 / W);
            check("RAID 10 mixed", rate(&raid10, 0.7), mix, 0.03);
        }
    }
    for n in [2, 3] {
        let raid1 = Settings::new(Level::Raid1, n);
        check("RAID 1 reads", rate(&raid1, 1.0), n as f64 * R, 0.03);
        check("RAID 1 writes", rate(&raid1, 0.0), W, 0.01);
    }
}

#[test]
fn small_writes_of_raid_5_and_6_cost_four_and_six_requests() {
    for n in [4, 5, 8] {
        let raid5 = Settings::new(Level::Raid5, n);
        let n = n as f64;
        check("RAID 5 reads", rate(&raid5, 1.0), n * R, 0.03);
        check("RAID 5 writes", rate(&raid5, 0.0), n / (2.0 / R + 2.0 / W), 0.03);
        let mix = n / (0.7 / R + 0.3 * (2.0 / R + 2.0 / W));
        check("RAID 5 mixed", rate(&raid5, 0.7), mix, 0.03);
    }
    // md reads the other block of three, controllers old data and old parity.
    let three = Settings::new(Level::Raid5, 3);
    check("RAID 5 of 3", rate(&three, 0.0), 3.0 / (1.0 / R + 2.0 / W), 0.03);
    let three = Settings { update: Update::Modify, ..three };
    check("RAID 5 of 3, controller", rate(&three, 0.0), 3.0 / (2.0 / R + 2.0 / W), 0.03);
    for n in [6, 8] {
        let raid6 = Settings::new(Level::Raid6, n);
        check("RAID 6 writes", rate(&raid6, 0.0), n as f64 / (3.0 / R + 3.0 / W), 0.03);
    }
}

#[test]
fn a_degraded_raid_5_reads_two_times_n_minus_1_over_n_as_much() {
    for n in [3, 5, 8] {
        let settings =
            Settings { failed: vec![1], stripe_cache: 0, ..Settings::new(Level::Raid5, n) };
        let (devices, logs) = members(n, READ_NS, WRITE_NS);
        let mut volume = Volume::new(devices, &settings).unwrap();
        let capacity = volume.capacity().unwrap().0;
        let mut draws = Draws(3);
        let count = 60_000;
        let (found, _) =
            closed(&mut volume, 100 * n as u64, count, || draws.mixed(1.0, 4096, capacity));
        let read: usize = logs.iter().map(|log| log.lock().unwrap().len()).sum();
        let factor = 2.0 * (n - 1) as f64 / n as f64;
        check("member reads", read as f64 / count as f64, factor, 0.01);
        // The members that are left share them evenly.
        check("reads", found, (n - 1) as f64 * R / factor, 0.03);
        assert!(logs[1].lock().unwrap().is_empty(), "the lost member is read");
    }
}

#[test]
fn a_write_takes_the_slowest_read_and_then_the_slowest_write() {
    // Members 0 to 3, slower one by one; the parity of stripe 0 is on 3, data on 0, 1, 2.
    let times = [(10, 100), (20, 200), (30, 300), (40, 400)];
    for queued in [false, true] {
        let device = |(read, write): (u64, u64)| -> Box<dyn Device> {
            let inner = Constant::new(read, write, 1 << 40);
            if queued { Box::new(Asked::new(inner)) } else { Box::new(inner) }
        };
        let settings = Settings::new(Level::Raid5, 4);
        let make = || Volume::new(times.map(device).into(), &settings).unwrap();
        let at = |volume: &mut Volume, op, offset, len| {
            volume.submit(Nanos(0), &request(op, offset, len)).0
        };
        // The tie takes the other data: 20 or 30, then 100 and 400.
        assert_eq!(at(&mut make(), Op::Write, 0, 4096), 30 + 400);
        // Chunk 1 is on member 1.
        assert_eq!(at(&mut make(), Op::Read, 512 << 10, 4096), 20);
        // A stripe as a whole reads nothing.
        assert_eq!(at(&mut make(), Op::Write, 0, 3 * (512 << 10)), 400);
        // Two stripes and a bit: the bit reads beside the writes of the others. Data of stripe 2
        // start on member 2, parity is on 1; the others, 3 and 0, are read after their writes.
        let bytes = 6 * (512 << 10) + 4096;
        let found = at(&mut make(), Op::Write, 0, bytes);
        // Member 3 reads behind its write: 440, then 300 on member 2.
        assert_eq!(found, 40 + 400 + 300);
        // The stripe cache knows a column after a write.
        let mut volume = make();
        let first = at(&mut volume, Op::Write, 0, 4096);
        let second = volume.submit(Nanos(1000), &request(Op::Write, 0, 4096)).0;
        assert_eq!((first, second), (430, 1400));
    }
}

#[test]
fn writes_of_one_column_follow_one_another() {
    let settings = Settings::new(Level::Raid5, 4);
    let (devices, logs) = members(4, 10, 100);
    let mut volume = Volume::new(devices, &settings).unwrap();
    let queued = volume.queued().unwrap();
    for ticket in 0..3 {
        queued.arrive(Nanos(ticket), ticket, &request(Op::Write, 0, 4096));
    }
    // Another column of the same members goes on meanwhile.
    queued.arrive(Nanos(3), 3, &request(Op::Write, 4096, 4096));
    let mut found = Vec::new();
    while let Some((at, ticket)) = queued.next_completion(Nanos(u64::MAX - 1)) {
        found.push((at.0, ticket));
    }
    // 10 of reads and 100; then both at once, each 100 on members 0 and 3; the third follows.
    assert_eq!(found, [(110, 0), (210, 3), (310, 1), (410, 2)]);
    let writes =
        |log: &load::Log| log.lock().unwrap().iter().filter(|(_, op, ..)| *op == Op::Write).count();
    assert_eq!(logs.iter().map(writes).collect::<Vec<_>>(), [4, 0, 0, 4]);
}

#[test]
fn members_that_look_at_their_queue_give_the_same_times() {
    for level in [Level::Raid0, Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10] {
        let settings = Settings::new(level, 4);
        let run = |queued: bool| {
            let device = |_| -> Box<dyn Device> {
                let inner = Constant::new(READ_NS, WRITE_NS, 1 << 30);
                if queued { Box::new(Asked::new(inner)) } else { Box::new(inner) }
            };
            let mut volume = Volume::new((0..4).map(device).collect(), &settings).unwrap();
            let capacity = volume.capacity().unwrap().0;
            let mut draws = Draws(11);
            // One user: nobody else decides which of two mirrors is read.
            let found = closed(&mut volume, 1, 500, || draws.mixed(0.5, 16_384, capacity));
            (found, volume.members().collect::<Vec<_>>())
        };
        assert_eq!(run(false), run(true), "{level:?}");
    }
}
