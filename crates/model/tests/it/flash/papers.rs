//! The flash drives of the papers, from the cell up: what is printed of them comes out of the
//! shipped `-ftl` profiles (Wang et al. 2011, Tables 1 and 2 and figures 1 to 4; Petrov et al.
//! 2010, slides; Petrov et al. 2011, Table 1; Lee et al. 2008, Table 1).
//!
//! Closed loops of this many requests in flight. Every check prints the line of the table in
//! `docs/guide/device-models.md` that it stands for; `-- --nocapture papers` shows them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Device;
use profile::{DeviceSpec, Profile};
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

/// A drive under a load, and its clock.
struct Drive {
    name: &'static str,
    device: Box<dyn Device>,
    now: u64,
    range_bytes: u64,
    /// Loads so far, each of which is random in its own way.
    loads: u64,
    /// Checks that were not met.
    missed: Vec<String>,
}

/// Completions that are known already, the earliest first.
type Known = BinaryHeap<Reverse<u64>>;

/// What is kept in flight.
#[derive(Clone, Copy)]
struct Work {
    random: bool,
    /// Share of reads, 0 to 1.
    read_share: f64,
    len: u32,
    depth: usize,
    /// Counted, after as many that are not.
    requests: u64,
}

const RANDOM: Work = Work { random: true, read_share: 1.0, len: 4096, depth: 1, requests: 2000 };
const SEQUENTIAL: Work = Work { random: false, ..RANDOM };

impl Work {
    const fn writes(self) -> Self {
        Self { read_share: 0.0, ..self }
    }
    const fn of(self, len: u32) -> Self {
        Self { len, ..self }
    }
    const fn deep(self, depth: usize) -> Self {
        Self { depth, ..self }
    }
    const fn long(self, requests: u64) -> Self {
        Self { requests, ..self }
    }
}

impl Drive {
    /// The shipped profile `name` in the state that it describes.
    fn new(name: &'static str) -> Self {
        Self::of(name, &read(name))
    }

    fn of(name: &'static str, profile: &Profile) -> Self {
        let DeviceSpec::Flash(spec) = &profile.device else { panic!("{name} is of flash") };
        let device = model::device(profile, 1);
        let capacity = device.capacity().expect("it has one").0 as f64;
        let range_bytes = (capacity * spec.precondition.fill) as u64;
        Self { name, device, now: 0, range_bytes, loads: 0, missed: Vec::new() }
    }

    /// Requests per second of `work`.
    fn rate(&mut self, work: Work) -> f64 {
        self.loads += 1;
        let mut rng = Rng::new(self.loads);
        let places = self.range_bytes / u64::from(work.len);
        let mut in_flight: Known = (0..work.depth).map(|_| Reverse(self.now)).collect();
        let mut started = self.now;
        for k in 0..2 * work.requests {
            let now = self.next(&mut in_flight);
            if k == work.requests {
                started = now;
            }
            let read = rng.below(1 << 20) < (work.read_share * f64::from(1 << 20)) as u64;
            let place = if work.random { rng.below(places) } else { k % places };
            let request = Request {
                due: Nanos(now),
                offset: Bytes(place * u64::from(work.len)),
                len: work.len,
                op: if read { Op::Read } else { Op::Write },
                stream: 0,
            };
            self.submit(now, k, &request, &mut in_flight);
            self.now = now;
        }
        let counted = self.now - started;
        // What is still in flight is done before the next load begins.
        for _ in 0..work.depth {
            self.now = self.now.max(self.next(&mut in_flight));
        }
        work.requests as f64 * 1e9 / counted as f64
    }

    /// Hands over a request; the completion is in flight, or inside the device.
    fn submit(&mut self, now: u64, ticket: u64, request: &Request, known: &mut Known) {
        match self.device.queued() {
            Some(queued) => queued.arrive(Nanos(now), ticket, request),
            None => known.push(Reverse(self.device.submit(Nanos(now), request).0)),
        }
    }

    /// When the next request is done.
    fn next(&mut self, known: &mut Known) -> u64 {
        if let Some(Reverse(now)) = known.pop() {
            return now;
        }
        let queued = self.device.queued().expect("work in flight");
        queued.next_completion(Nanos(u64::MAX)).expect("what arrived completes").0.0
    }

    /// MB/s of `work`.
    fn mb_per_s(&mut self, work: Work) -> f64 {
        self.rate(work) * f64::from(work.len) / 1e6
    }

    /// Notes what was found, which may differ from what is printed by the share `within`.
    fn check(&mut self, what: &str, found: f64, printed: f64, within: f64) {
        let error = found / printed - 1.0;
        let percent = error * 100.0;
        println!("| `{}` | {what} | {printed} | {found:.0} | {percent:+.0} % |", self.name);
        if error.abs() > within {
            self.missed.push(format!("{what}: {found:.1}, printed {printed} ({error:+.3})"));
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.missed.is_empty(), "{}: {}", self.name, self.missed.join("; "));
        }
    }
}

fn read(name: &str) -> Profile {
    let text = profile::find_shipped(name).expect("it ships");
    Profile::from_toml(text, name).expect("it is sound")
}

const MIB: u32 = 1 << 20;
const MIXED: Work = Work { read_share: 0.5, ..RANDOM };

#[test]
fn mtron_reads_fast_and_writes_at_random_130_times_a_second() {
    let mut drive = Drive::new("mtron-pro-7500-ftl");
    for (what, work, printed, within) in [
        ("random reads/s", RANDOM, 12e3, 0.02),
        ("random reads/s, 30 in flight", RANDOM.deep(30), 12e3, 0.02),
        ("sequential reads/s", SEQUENTIAL, 12e3, 0.02),
        ("sequential 4 KB writes/s", SEQUENTIAL.writes().long(20_000), 21e3, 0.02),
        ("random writes/s", RANDOM.writes().long(6000), 130.0, 0.08),
        ("random writes/s, 30 in flight", RANDOM.writes().long(6000).deep(30), 130.0, 0.08),
    ] {
        let found = drive.rate(work);
        drive.check(what, found, printed, within);
    }
    for (what, work, printed) in [
        ("sequential read MB/s, 1 MiB", SEQUENTIAL.of(MIB), 130.0),
        ("sequential write MB/s, 1 MiB", SEQUENTIAL.of(MIB).writes(), 120.0),
    ] {
        let found = drive.mb_per_s(work);
        drive.check(what, found, printed, 0.02);
    }
    // Figure 2: a mix is as slow as writing. Half of it are reads, which wait for the merges.
    let writes = drive.rate(RANDOM.writes().long(6000));
    let mixed = drive.rate(MIXED.long(12_000));
    println!("| `{}` | random mix/s | close to writes | {mixed:.0} | |", drive.name);
    assert!(mixed < 2.1 * writes, "{mixed} against {writes} writes per second");
}

#[test]
fn vertex_ex_writes_no_faster_at_random_than_a_disk() {
    let mut drive = Drive::new("ocz-vertex-ex-ftl");
    let found = drive.mb_per_s(SEQUENTIAL.of(MIB).deep(4));
    drive.check("sequential read MB/s, 1 MiB, 4 in flight", found, 260.0, 0.02);
    let found = drive.mb_per_s(SEQUENTIAL.of(MIB).writes());
    drive.check("sequential write MB/s, 1 MiB", found, 100.0, 0.05);
    let single = drive.rate(RANDOM);
    drive.check("random reads/s (below 0.1 ms each)", single, 10_000.0, 0.05);
    // Figure 3: 30 outstanding requests help reads, not writes.
    let many = drive.rate(RANDOM.deep(30));
    assert!(many > 3.0 * single, "{many} with 30 outstanding, {single} with one");
    let writes = drive.rate(RANDOM.writes().long(20_000));
    let deep = drive.rate(RANDOM.writes().long(3000).deep(30));
    let mixed = drive.rate(MIXED.long(6000));
    println!("| `{}` | random writes/s | collapse | {writes:.0} | |", drive.name);
    println!("| `{}` | random mix/s | close to writes | {mixed:.0} | |", drive.name);
    assert!(writes < 130.0, "a disk of 7,200 rpm writes as fast: {writes}");
    assert!(deep < 1.1 * writes, "{deep} with 30 outstanding, {writes} with one");
    assert!(mixed < 2.1 * writes, "{mixed} against {writes} writes per second");
}

#[test]
fn samsung_streams_through_two_channels() {
    let mut drive = Drive::new("samsung-mcaqe32g-ftl");
    let found = drive.mb_per_s(SEQUENTIAL.of(MIB).deep(4));
    drive.check("sequential read MB/s, 1 MiB, 4 in flight", found, 56.0, 0.02);
    let found = drive.mb_per_s(SEQUENTIAL.of(MIB).writes().deep(4));
    drive.check("sequential write MB/s, 1 MiB, 4 in flight", found, 32.0, 0.05);
    let found = 1e6 / drive.rate(RANDOM);
    drive.check("read latency us, 4 KB", found, 200.0, 0.02);
    // 0.4 ms are printed for a write of unstated size: it lies between one page and two.
    let one = 1e6 / drive.rate(SEQUENTIAL.writes().of(2048));
    let two = 1e6 / drive.rate(SEQUENTIAL.writes());
    println!("| `{}` | write latency us, 2 KB and 4 KB | 400 | {one:.0}, {two:.0} | |", drive.name);
    assert!(one < 400.0 && two > 400.0, "{one} and {two} us");
}

#[test]
fn x25_e_reads_35_000_and_writes_3_300_times_a_second() {
    let mut drive = Drive::new("intel-x25-e-ftl");
    let deep = RANDOM.deep(32);
    for (what, work, printed, within) in [
        ("random writes/s, 32 in flight", deep.writes().long(200_000), 3300.0, 0.10),
        ("random reads/s, 32 in flight", deep, 35_000.0, 0.03),
        ("random 8 KB reads/s, 32 in flight", deep.of(8192), 23_000.0, 0.04),
        ("random 16 KB reads/s, 32 in flight", deep.of(16_384), 12_743.0, 0.03),
    ] {
        let found = drive.rate(work);
        drive.check(what, found, printed, within);
    }
    let found = 1e6 / drive.rate(RANDOM);
    drive.check("read latency us, 4 KB", found, 75.0, 0.02);
    let found = drive.mb_per_s(SEQUENTIAL.of(MIB).deep(4));
    drive.check("sequential read MB/s, 1 MiB, 4 in flight", found, 250.0, 0.02);
    // 170 MB/s are specified; 185 and 189 MB/s were measured.
    let found = x25_e_at(0.7, false).mb_per_s(SEQUENTIAL.of(64 << 10).writes().deep(32));
    drive.check("sequential write MB/s, written in order", found, 170.0, 0.12);
    // Figure 2: alone among the three it is faster than a disk with one request at a time.
    let found = drive.rate(RANDOM.writes().long(20_000));
    println!(
        "| `{}` | random writes/s, one in flight | above a disk's | {found:.0} | |",
        drive.name
    );
    assert!(found > 200.0, "{found} writes per second");
}

/// The X25-E with a share `fill` of it written, in order or over and over at random.
fn x25_e_at(fill: f64, random: bool) -> Drive {
    let mut profile = read("intel-x25-e-ftl");
    let DeviceSpec::Flash(spec) = &mut profile.device else { panic!("it is of flash") };
    (spec.precondition.fill, spec.precondition.random) = (fill, random);
    Drive::of("intel-x25-e-ftl", &profile)
}

/// Petrov et al. 2010, fragmentation slides: loss in per cent against the drive written in order.
#[test]
fn x25_e_slows_down_as_it_fills_and_fragments() {
    let large = Work { len: 64 << 10, ..SEQUENTIAL }.deep(32);
    let small = RANDOM.deep(32);
    for (fill, what, work, printed, within) in [
        (0.7, "random writes", small.writes().long(50_000), 50.0, 20.0),
        (0.7, "sequential writes", large.writes().long(50_000), 18.0, 30.0),
        (0.7, "random reads", small.long(20_000), 11.0, 15.0),
        (0.9, "random writes", small.writes().long(50_000), 75.0, 10.0),
        (0.9, "sequential writes", large.writes().long(50_000), 79.0, 30.0),
        (0.9, "random reads", small.long(20_000), 0.0, 3.0),
    ] {
        let fresh = x25_e_at(fill, false).rate(work);
        let fragmented = x25_e_at(fill, true).rate(work);
        let loss = (1.0 - fragmented / fresh) * 100.0;
        println!("| `intel-x25-e-ftl` | {what} lost at {fill} full, % | {printed} | {loss:.0} | |");
        assert!(
            (loss - printed).abs() <= within,
            "{what} at {fill}: {loss:.1} % against {printed}"
        );
    }
}
