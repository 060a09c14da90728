//! Schedulers over the model of a disk that ships: what they are for.

use std::sync::{Arc, Mutex};

use host::scheduler::{Kind, Scheduled, Settings};
use model::{Device, Hdd};
use profile::{DeviceSpec, Profile, find_shipped};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::harness::{Done, Process, run};

const MS: u64 = 1_000_000;
/// Bytes of the disk that are used: a 15,000 rpm disk of 73 GB.
const SPAN: u64 = 60 << 30;

/// The disk with its own queue off, and where it was sent.
struct Sent {
    disk: Hdd,
    places: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Device for Sent {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        let end = request.offset.0 + u64::from(request.len);
        self.places.lock().unwrap().push((request.offset.0, end));
        self.disk.submit(now, request)
    }
    fn capacity(&self) -> Option<Bytes> {
        self.disk.capacity()
    }
}

/// Completions, and the mean distance in bytes from one request to the next.
fn on_the_disk(settings: &Settings, processes: &[Process], end_ns: u64) -> (Vec<Done>, f64) {
    let text = find_shipped("seagate-savvio-15k").expect("it ships");
    let profile = Profile::from_toml(text, "savvio").expect("it is sound");
    let DeviceSpec::Hdd(spec) = &profile.device else { unreachable!("it is a disk") };
    let places = Arc::<Mutex<Vec<(u64, u64)>>>::default();
    let disk = Hdd::new(&spec.parameters());
    assert!(disk.capacity().is_none_or(|capacity| capacity.0 > SPAN));
    let device = Sent { disk, places: Arc::clone(&places) };
    let mut scheduled = Scheduled::new(Box::new(device), settings);
    let done = run(&mut scheduled, processes, end_ns);
    let places = places.lock().unwrap();
    let distances = places.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].1) as f64);
    (done, distances.sum::<f64>() / (places.len() - 1) as f64)
}

fn settings(kind: Kind) -> Settings {
    Settings { depth: 1, nr_requests: Some(128), ..Settings::new(kind) }
}

fn random(op: Op, outstanding: u32, from: u64) -> Process {
    Process { op, anywhere: Some(SPAN), ..Process::reader(from, outstanding, 0) }
}

fn mean_ms<'a>(done: impl Iterator<Item = &'a Done>) -> f64 {
    let all: Vec<_> = done.map(|one| one.response_ns as f64 / 1e6).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn sorting_32_reads_shortens_seeks() {
    let run = |kind| on_the_disk(&settings(kind), &[random(Op::Read, 32, 0)], 20_000 * MS);
    let (none, far) = run(Kind::None);
    let (sorted, near) = run(Kind::MqDeadline);
    println!(
        "32 random reads, one tag: {:.1} to {:.1} GB a seek, {:.0} to {:.0} reads/s",
        far / 1e9,
        near / 1e9,
        none.len() as f64 / 20.0,
        sorted.len() as f64 / 20.0
    );
    // First in, first out: a third of the span. In batches of 16 of 32 sorted ones: each steps
    // about a 32nd, and a batch begins at the oldest only once that has expired.
    assert!((far / (SPAN as f64 / 3.0) - 1.0).abs() < 0.05, "{far}");
    assert!(near < far / 4.0, "{near} of {far}");
    assert!(sorted.len() * 10 > none.len() * 13);
}

#[test]
fn deadline_shields_reads_from_writes() {
    let run = |kind| {
        let processes = [random(Op::Read, 1, 1), random(Op::Write, 64, 0)];
        on_the_disk(&settings(kind), &processes, 20_000 * MS).0
    };
    let reads = |done: &[Done]| mean_ms(done.iter().filter(|one| one.process == 0));
    let (none, deadline) = (run(Kind::None), run(Kind::Deadline));
    println!(
        "a reader beside 64 writes: {:.0} ms with none, {:.0} ms with deadline",
        reads(&none),
        reads(&deadline)
    );
    assert!(reads(&deadline) * 3.0 < reads(&none));
    // Writes go on: two batches of reads pass at most.
    let writes = deadline.iter().filter(|one| one.process == 1).count();
    assert!(writes * 2 > deadline.len(), "{writes}");
}

#[test]
fn anticipation_pays_for_two_sequential_readers_and_not_for_30_random_ones() {
    let rate = |kind, processes: &[Process]| {
        let settings = Settings { depth: 32, ..settings(kind) };
        on_the_disk(&settings, processes, 10_000 * MS).0.len() as f64 / 10.0
    };
    let reader = |from| Process { len: 65536, step: 65536, ..Process::reader(from, 1, 100_000) };
    let pair = [reader(0), reader(SPAN / 2)];
    let (deadline, anticipatory) = (rate(Kind::Deadline, &pair), rate(Kind::Anticipatory, &pair));
    let cfq = rate(Kind::Cfq, &pair);
    println!(
        "two sequential readers: {deadline:.0}/s deadline, {anticipatory:.0}/s anticipatory, \
         {cfq:.0}/s cfq"
    );
    assert!(anticipatory > 2.0 * deadline && cfq > 2.0 * deadline);
    let users: Vec<_> = (0..30).map(|user| random(Op::Read, 1, user * 7919)).collect();
    let (none, anticipatory) = (rate(Kind::None, &users), rate(Kind::Anticipatory, &users));
    println!("30 random readers: {none:.0}/s none, {anticipatory:.0}/s anticipatory");
    assert!(anticipatory < 1.5 * none);
}
