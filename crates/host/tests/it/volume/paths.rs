//! Where the time of a request of a volume goes: along the slowest member of each round.

use host::Scheduled;
use host::scheduler::{self, Kind};
use host::volume::cache::{CacheDevice, CacheMode, CacheSettings};
use host::volume::{Controller, Level, Protection, Rebuild, Settings, Volume};
use model::observe::{Activity, Cause, Deaf, Path, Probe, Purpose, Span, Track};
use model::{Device, Hdd};
use profile::{DeviceSpec, Profile, find_shipped};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::load::Draws;

/// One request after the other, reads in 10 us and writes in 100 us, and says so.
#[derive(Default)]
struct Told {
    free_at: u64,
}

impl Told {
    fn serve(&mut self, now: u64, request: &Request) -> (u64, u64) {
        let takes = match request.op {
            Op::Read => 10_000,
            Op::Write => 100_000,
            Op::Flush | Op::Trim => 0,
        };
        let start = self.free_at.max(now);
        self.free_at = start + takes;
        (start, self.free_at)
    }
}

impl Device for Told {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        Nanos(self.serve(now.0, request).1)
    }

    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        let (start, end) = self.serve(now.0, request);
        let mut path = Path::of(Cause::Queue, start - now.0);
        path.spend(Cause::Medium, end - start);
        probe.span(&Span::new(Track::server(0), request.op.into(), start, end));
        (Nanos(end), path)
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(1 << 30))
    }
}

fn told() -> Box<dyn Device> {
    Box::new(Told::default())
}

/// A member that looks at its queue.
fn scheduled() -> Box<dyn Device> {
    Box::new(Scheduled::new(told(), &scheduler::Settings::new(Kind::Deadline)))
}

fn disk() -> Box<dyn Device> {
    let text = find_shipped("hitachi-15k450").expect("it ships");
    let profile = Profile::from_toml(text, "hitachi").expect("it is sound");
    let DeviceSpec::Hdd(spec) = &profile.device else { unreachable!("it is a disk") };
    Box::new(Hdd::new(&spec.parameters()))
}

fn request(due: u64, op: Op, offset: u64, len: u32) -> Request {
    Request { due: Nanos(due), offset: Bytes(offset), len, op, stream: 0 }
}

fn trace(requests: impl IntoIterator<Item = Request>) -> Trace {
    let streams = vec![Stream { name: "data".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    requests.into_iter().for_each(|request| trace.push(request));
    trace
}

/// Random requests, more than members of 10 ms or so can do, some to the same columns.
fn busy(count: u64, apart_ns: u64) -> Trace {
    let mut draws = Draws(17);
    trace((0..count).map(|number| {
        let op = match draws.below(40) {
            0 => Op::Flush,
            1..20 => Op::Read,
            _ => Op::Write,
        };
        let blocks = if draws.below(3) == 0 { 40 } else { 1 << 17 };
        let len = if op == Op::Flush { 0 } else { 4096 * (1 + draws.below(8) as u32) };
        request(number * apart_ns, op, draws.below(blocks) * 4096, len)
    }))
}

/// Keeps spans, with the number of the request they are for.
#[derive(Default)]
struct Ear {
    index: usize,
    spans: Vec<(usize, Span)>,
}

impl Probe for Ear {
    fn request(&mut self, index: usize) {
        self.index = index;
    }
    fn span(&mut self, span: &Span) {
        self.spans.push((self.index, *span));
    }
}

/// The paths of a trace, which are asserted to sum to the response times, with those.
fn paths(make: &dyn Fn() -> Box<dyn Device>, trace: &Trace) -> (Vec<u64>, Vec<Path>, Ear) {
    let count = trace.count();
    let mut unseen = vec![0; count];
    make().submit_due(trace, 0..count, &mut unseen);
    let (mut completions, mut paths) = (vec![0; count], vec![Path::EMPTY; count]);
    let (mut device, mut ear) = (make(), Ear::default());
    // In batches: what arrives ahead keeps its path.
    for start in (0..count).step_by(300) {
        let range = start..(start + 300).min(count);
        let into = (&mut completions[range.clone()], &mut paths[range.clone()]);
        device.submit_due_observed(trace, range, into.0, into.1, &mut ear);
    }
    assert_eq!(completions, unseen, "who watches changes nothing");
    for ((at, due), path) in completions.iter().zip(&trace.due).zip(&paths) {
        assert_eq!(path.total(), at - due, "the parts sum to the response");
    }
    let responses = completions.iter().zip(&trace.due).map(|(at, due)| at - due).collect();
    (responses, paths, ear)
}

fn volume(
    settings: &Settings,
    member: fn() -> Box<dyn Device>,
) -> impl Fn() -> Box<dyn Device> + use<> {
    let settings = settings.clone();
    move || {
        let journal = usize::from(matches!(settings.protection, Protection::Journal { .. }));
        let members = (0..settings.members + journal).map(|_| member()).collect();
        Box::new(Volume::new(members, &settings).expect("a volume"))
    }
}

fn all_settings() -> Vec<(&'static str, Settings)> {
    let raid5 = Settings::new(Level::Raid5, 4);
    let behind = |controller| Some(Controller { queue: 20, ..controller });
    let cached = Controller { cache_bytes: 1 << 18, ..Controller::default() };
    let rebuild = Some(Rebuild { step_bytes: 1 << 16, ..Rebuild::of(2) });
    let journal = |write_back| Protection::Journal { write_back, bytes: 1 << 24 };
    vec![
        ("raid0", Settings::new(Level::Raid0, 3)),
        ("raid0, one at a time", Settings { depth: Some(1), ..Settings::new(Level::Raid0, 3) }),
        ("raid1", Settings::new(Level::Raid1, 2)),
        ("raid10", Settings::new(Level::Raid10, 4)),
        ("raid5", raid5.clone()),
        ("raid5, small cache", Settings { stripe_cache: 20, ..raid5.clone() }),
        ("raid5, one lost", Settings { failed: vec![1], ..raid5.clone() }),
        ("raid5, rebuilt", Settings { failed: vec![2], rebuild, ..raid5.clone() }),
        ("raid5, slow parity", Settings { parity_ns_per_column: 9000, ..raid5.clone() }),
        ("controller", Settings { controller: behind(Controller::default()), ..raid5.clone() }),
        ("controller, cache", Settings { controller: behind(cached), ..raid5.clone() }),
        ("bitmap", Settings { protection: Protection::BITMAP, ..raid5.clone() }),
        ("journal", Settings { protection: journal(false), ..raid5.clone() }),
        ("journal, write back", Settings { protection: journal(true), ..raid5.clone() }),
        ("ppl", Settings { protection: Protection::Ppl, ..raid5 }),
        ("raid6", Settings::new(Level::Raid6, 5)),
    ]
}

#[test]
fn parts_sum_to_the_response_and_none_is_unknown() {
    let trace = busy(1500, 60_000);
    for (name, settings) in all_settings() {
        for (kind, member) in [("direct", told as fn() -> _), ("queued", scheduled), ("disk", disk)]
        {
            let (responses, paths, ear) = paths(&volume(&settings, member), &trace);
            let sum = |cause| paths.iter().map(|path| path.get(cause)).sum::<u64>();
            assert_eq!(sum(Cause::Unknown), 0, "{name}, {kind}");
            let all: u64 = responses.iter().sum();
            println!(
                "{name:<22} {kind:<8} waits in the volume {:>5.1} %, in members {:>5.1} %",
                sum(Cause::SharedWait) as f64 / all as f64 * 100.0,
                sum(Cause::Queue) as f64 / all as f64 * 100.0,
            );
            assert!(!ear.spans.is_empty(), "{name}, {kind}: members are heard");
        }
    }
}

#[test]
fn parts_of_a_cache_device_sum_to_the_response() {
    let trace = busy(1500, 60_000);
    for mode in [CacheMode::WriteThrough, CacheMode::WriteBack, CacheMode::WriteAround] {
        for member in [told as fn() -> Box<dyn Device>, scheduled] {
            let settings = CacheSettings { mode, ..CacheSettings::new(1 << 26) };
            let make = move || -> Box<dyn Device> {
                Box::new(CacheDevice::new(member(), member(), &settings).expect("a cache"))
            };
            let (_, paths, _) = paths(&make, &trace);
            assert!(paths.iter().all(|path| path.get(Cause::Unknown) == 0), "{mode:?}");
        }
    }
}

fn path(parts: &[(Cause, u64)]) -> Path {
    let mut path = Path::EMPTY;
    for (cause, us) in parts {
        path.spend(*cause, us * 1000);
    }
    path
}

#[test]
fn a_write_goes_along_its_slowest_read_and_its_slowest_write() {
    use Cause::{Cache, Controller as Command, Medium, Queue, SharedWait, Transfer};
    let raid5 = Settings::new(Level::Raid5, 4);
    let write = |at, offset| request(at, Op::Write, offset, 4096);
    // The second of one column waits for the first; the blocks are known then.
    let same = trace([write(0, 0), write(20_000, 0)]);
    let (_, found, _) = paths(&volume(&raid5, told), &same);
    assert_eq!(found[0], path(&[(Medium, 110)]));
    assert_eq!(found[1], path(&[(SharedWait, 90), (Medium, 100)]));
    // Two columns on the same members: the reads of the second wait there, and its writes, too.
    let (_, found, _) = paths(&volume(&raid5, told), &trace([write(0, 0), write(0, 4096)]));
    assert_eq!(found[1], path(&[(Queue, 10 + 90), (Medium, 110)]));
    // With one request at a time in each member the same wait is the volume's.
    let single = Settings { depth: Some(1), ..raid5.clone() };
    let (_, found, _) = paths(&volume(&single, told), &trace([write(0, 0), write(0, 4096)]));
    assert_eq!(found[1], path(&[(SharedWait, 10 + 90), (Medium, 110)]));
    // A thread of 7 us per column between them.
    let slow = Settings { parity_ns_per_column: 7000, ..raid5.clone() };
    let (_, found, _) = paths(&volume(&slow, told), &trace([write(0, 0)]));
    assert_eq!(found[0], path(&[(Medium, 110), (Command, 7)]));
    // A controller of 20 us per command and 4096 bytes in 4 us: two reads, then two writes.
    let controller = Controller { bytes_per_s: 1.024e9, ..Controller::default() };
    let behind = Settings { controller: Some(controller.clone()), ..raid5.clone() };
    let (_, found, _) = paths(&volume(&behind, told), &trace([write(0, 0)]));
    let expected = [(SharedWait, 20 + 20), (Command, 20 + 20), (Transfer, 8), (Medium, 110)];
    assert_eq!(found[0], path(&expected));
    // Its memory answers once the bytes are there.
    let cached = Controller { cache_bytes: 1 << 20, ..controller };
    let cached = Settings { controller: Some(cached), ..raid5 };
    let (_, found, _) = paths(&volume(&cached, told), &trace([write(0, 0)]));
    assert_eq!(found[0], path(&[(Cache, 4 + 50)]));
}

#[test]
fn spans_say_which_member_worked_and_for_whom() {
    let write = request(0, Op::Write, 0, 4096);
    let settings = Settings::new(Level::Raid5, 4);
    let (_, _, ear) = paths(&volume(&settings, told), &trace([write]));
    // Data on member 0, parity on 3; the other data are read.
    let found: Vec<_> = ear
        .spans
        .iter()
        .map(|(index, span)| (*index, span.track.index, span.activity, span.start_ns / 1000))
        .collect();
    let (read, write) = (Activity::Read, Activity::Write);
    assert_eq!(found, [(0, 1, read, 0), (0, 2, read, 0), (0, 0, write, 10), (0, 3, write, 10)]);
    // What a volume does on its own account is not the request's.
    let controller = Controller { cache_bytes: 1 << 20, ..Controller::default() };
    let cached = Settings { controller: Some(controller), ..settings };
    let late = trace([request(0, Op::Write, 0, 4096), request(9_000_000, Op::Read, 1 << 20, 4096)]);
    let (_, _, ear) = paths(&volume(&cached, told), &late);
    let of = |purpose| ear.spans.iter().filter(|(_, span)| span.purpose == purpose).count();
    assert_eq!((of(Purpose::Destage), of(Purpose::Request)), (4, 1));
}

/// Spans of one resource never overlap, whichever member it is of.
#[test]
fn tracks_of_members_are_told_apart() {
    for member in [told as fn() -> Box<dyn Device>, scheduled] {
        let settings = Settings::new(Level::Raid5, 4);
        let (_, _, ear) = paths(&volume(&settings, member), &busy(500, 60_000));
        let mut spans: Vec<_> = ear.spans.iter().map(|(_, span)| span).collect();
        spans.sort_by_key(|span| (span.track, span.start_ns));
        let tracks = spans.windows(2).filter(|pair| pair[0].track != pair[1].track).count() + 1;
        assert_eq!(tracks, 4);
        for pair in spans.windows(2).filter(|pair| pair[0].track == pair[1].track) {
            assert!(pair[0].end_ns <= pair[1].start_ns, "{pair:?}");
        }
    }
}

#[test]
fn one_request_at_a_time_has_its_path_too() {
    for settings in [Settings::new(Level::Raid0, 3), Settings::new(Level::Raid5, 4)] {
        let mut device = volume(&settings, told)();
        for number in 0..20 {
            let now = number * 1_000_000;
            let request = request(now, Op::Write, number * 4096, 4096);
            let (at, path) = device.submit_observed(Nanos(now), &request, &mut Deaf);
            assert_eq!(path.total(), at.0 - now);
            assert!(path.get(Cause::Medium) >= 100_000 && path.get(Cause::Unknown) == 0);
        }
    }
}
