//! What all schedulers share: merging, plugs, the bound, flushes, and what is conserved.

use host::scheduler::{Kind, Plugging, Scheduled, Settings};
use model::observe::{Activity, Cause, Deaf, Path, Probe, Span, Track};
use model::{Device, Queued};
use proptest::prelude::*;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::harness::{
    Recorder, Rule, check, loads, recorded, replay, request, service_ns, slowly, trace_of,
};

pub const KINDS: [Kind; 7] = [
    Kind::None,
    Kind::Deadline,
    Kind::MqDeadline,
    Kind::Anticipatory,
    Kind::Cfq,
    Kind::Bfq,
    Kind::Kyber,
];

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Settings in which nothing but order of arrival counts.
fn plain() -> Settings {
    Settings { merge: false, nr_requests: Some(1 << 20), ..Settings::new(Kind::None) }
}

fn issued(settings: &Settings, requests: &[Request]) -> Vec<(u64, u64, u32)> {
    let (_, log) = replay(settings, requests);
    log.iter().map(|(at, request)| (*at, request.offset.0, request.len)).collect()
}

#[test]
fn neighbours_of_one_moment_become_one_request() {
    let settings = Settings::new(Kind::None);
    let reads = |places: [u64; 4]| places.map(|at| request(0, Op::Read, at * 4096, 4096, 0));
    assert_eq!(issued(&settings, &reads([3, 4, 5, 6])), [(0, 3 * 4096, 4 * 4096)]);
    assert_eq!(issued(&settings, &reads([6, 5, 4, 3])), [(0, 3 * 4096, 4 * 4096)]);
    let apart = [(0, 3 * 4096, 4096), (0, 5 * 4096, 4096), (0, 7 * 4096, 4096), (0, 0, 4096)];
    assert_eq!(issued(&settings, &reads([3, 5, 7, 0])), apart);
    // Never longer than the largest request; another direction or process-to-wait-for is no
    // neighbour.
    let short = Settings { max_request: Bytes(8192), ..settings.clone() };
    assert_eq!(issued(&short, &reads([3, 4, 5, 6])), [(0, 12288, 8192), (0, 20480, 8192)]);
    let mut mixed = reads([3, 4, 5, 6]);
    mixed[1].op = Op::Write;
    assert_eq!(issued(&settings, &mixed).len(), 3);
    let off = Settings { merge: false, ..settings };
    assert_eq!(issued(&off, &reads([3, 4, 5, 6])).len(), 4);
}

#[test]
fn what_waits_is_merged_and_what_was_issued_is_not() {
    let settings = Settings { depth: 1, nr_requests: Some(8), ..Settings::new(Kind::None) };
    // The first is at the device; the second waits, and the third joins it.
    let at = |due, place: u64| request(due, Op::Read, place * 4096, 4096, 0);
    let service = service_ns(&at(0, 0));
    let requests = [at(0, 0), at(10 * US, 1), at(20 * US, 2)];
    assert_eq!(issued(&settings, &requests), [(0, 0, 4096), (service, 4096, 8192)]);
}

#[test]
fn a_legacy_plug_opens_after_four_or_3_ms_or_for_a_reader() {
    let settings = Settings { plugging: Some(Plugging::Legacy), ..Settings::new(Kind::None) };
    let write = |due: u64, place: u64| request(due, Op::Write, place * 1_000_000, 4096, 0);
    let times = |requests: &[Request]| -> Vec<u64> {
        issued(&settings, requests).iter().map(|(at, ..)| *at).collect()
    };
    assert_eq!(times(&[write(0, 0), write(MS, 1)]), [3 * MS, 3 * MS]);
    let four = [write(0, 0), write(MS, 1), write(MS, 2), write(2 * MS, 3)];
    assert_eq!(times(&four), [2 * MS; 4]);
    let mut read = write(MS, 1);
    read.op = Op::Read;
    assert_eq!(times(&[write(0, 0), read]), [MS, MS]);
    // A completion opens it, and it closes again only behind an empty queue.
    let ended = MS + service_ns(&read);
    assert_eq!(times(&[read, write(ended - 1, 0)]), [MS, ended]);
    let mut flash = settings.clone();
    flash.rotational = false;
    assert_eq!(issued(&flash, &[write(0, 0)])[0].0, 0);
}

#[test]
fn the_bound_lets_requests_wait_and_loses_none() {
    let settings = Settings { nr_requests: Some(2), depth: 8, merge: false, ..plain() };
    let requests: Vec<_> = (0..6).map(|at| request(0, Op::Read, at << 20, 4096, 0)).collect();
    let service = service_ns(&requests[0]);
    let times: Vec<_> = issued(&settings, &requests).iter().map(|(at, ..)| at / service).collect();
    assert_eq!(times, [0, 0, 1, 2, 3, 4]);
    // Before blk-mq, readers have slots of their own.
    let legacy = Settings { plugging: Some(Plugging::Legacy), rotational: false, ..settings };
    let mut mixed = requests.clone();
    mixed[..4].iter_mut().for_each(|request| request.op = Op::Write);
    let places: Vec<_> = issued(&legacy, &mixed).iter().map(|(_, at, _)| at >> 20).collect();
    assert_eq!(places, [0, 1, 4, 5, 2, 3]);
}

#[test]
fn a_flush_drains_and_holds_what_comes_behind() {
    let settings = plain();
    let mut requests: Vec<_> = (0..6).map(|at| request(at, Op::Write, at << 20, 4096, 0)).collect();
    requests[2] = request(2, Op::Flush, 0, 0, 0);
    let (completions, log) = replay(&settings, &requests);
    let order: Vec<_> = log.iter().map(|(at, request)| (*at, request.op)).collect();
    let drained = 2 * service_ns(&requests[0]);
    assert_eq!(completions[1], drained);
    assert_eq!(order[2], (drained, Op::Flush));
    let behind = completions[2];
    assert_eq!(order[3..], [(behind, Op::Write); 3]);
    assert_eq!(order.len(), 6);
}

/// First in, first out.
#[derive(Default)]
struct InOrder(Vec<usize>);

impl Rule for InOrder {
    fn add(&mut self, _now: u64, index: usize) {
        self.0.push(index);
    }
    fn pick(&mut self, _now: u64) -> Option<usize> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

/// `requests` with some flushes and trims, and neighbours to merge.
fn anything() -> impl Strategy<Value = Vec<Request>> {
    let kinds = prop::collection::vec((0..20_u32, 0..40_u64), 250);
    (loads(4), kinds).prop_map(|(mut requests, kinds)| {
        for (request, (kind, page)) in requests.iter_mut().zip(kinds) {
            match kind {
                0 => {
                    request.op = Op::Flush;
                    (request.offset, request.len) = (Bytes(0), 0);
                }
                1 => request.op = Op::Trim,
                2 => request.len = 0,
                3..12 => (request.offset, request.len) = (Bytes(page * 4096), 4096),
                _ => {}
            }
        }
        requests
    })
}

/// Variants of the block layer that each scheduler runs in.
fn variants(kind: Kind) -> Vec<Settings> {
    let usual = Settings::new(kind);
    let narrow = Settings { depth: 1, nr_requests: Some(3), ..usual.clone() };
    let legacy = Settings { plugging: Some(Plugging::Legacy), ..usual.clone() };
    let flash = Settings { rotational: false, sync_writes: true, depth: 4, ..usual.clone() };
    let gentle = Settings { write_back_throttling: kind != Kind::Bfq, depth: 8, ..usual.clone() };
    vec![usual, narrow, legacy, flash, gentle]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn none_is_first_in_first_out(requests in loads(4), depth in 1_u32..6) {
        check(&Settings { depth, ..plain() }, &requests, &mut InOrder::default());
    }

    #[test]
    fn every_request_completes_once_and_the_same_twice(requests in anything()) {
        for settings in KINDS.into_iter().flat_map(variants) {
            let (completions, log) = replay(&settings, &requests);
            for (completion, request) in completions.iter().zip(&requests) {
                prop_assert!(*completion > request.due.0, "{settings:?}");
            }
            prop_assert!(log.iter().map(|(at, _)| *at).is_sorted());
            let bytes = |op: Op, requests: &mut dyn Iterator<Item = &Request>| -> u64 {
                requests.filter(|one| one.op == op).map(|one| u64::from(one.len)).sum()
            };
            for op in Op::ALL {
                let below = bytes(op, &mut log.iter().map(|(_, request)| request));
                prop_assert_eq!(bytes(op, &mut requests.iter()), below);
            }
            prop_assert!(log.iter().all(|(_, one)| u64::from(one.len) <= settings.max_request.0));
            prop_assert_eq!((completions, log), replay(&settings, &requests));
        }
    }

    /// Told of arrivals one by one and asked at any time, it answers the same.
    #[test]
    fn how_often_it_is_asked_changes_nothing(
        requests in anything(),
        asks in prop::collection::vec(0..400_000_u64, 250),
    ) {
        for settings in KINDS.into_iter().flat_map(variants) {
            let (expected, _) = replay(&settings, &requests);
            let (mut scheduled, _) = recorded(&settings);
            let mut found = vec![0; requests.len()];
            let (mut told, mut last) = (0, 0);
            let mut note = |at: Nanos, ticket: u64| {
                assert!(at.0 >= last && found[ticket as usize] == 0, "in order, once");
                last = at.0;
                found[ticket as usize] = at.0;
            };
            for (index, request) in requests.iter().enumerate() {
                scheduled.arrive(request.due, index as u64, request);
                told += 1;
                let next = requests.get(index + 1).map_or(u64::MAX, |next| next.due.0);
                let mut until = request.due.0;
                for ask in &asks {
                    until = (until + ask).min(next);
                    while let Some((at, ticket)) = scheduled.next_completion(Nanos(until)) {
                        note(at, ticket);
                        told -= 1;
                    }
                    if until == next || told == 0 {
                        break;
                    }
                }
            }
            while let Some(event) = scheduled.next_event() {
                if told == 0 {
                    break;
                }
                while let Some((at, ticket)) = scheduled.next_completion(event) {
                    note(at, ticket);
                    told -= 1;
                }
            }
            prop_assert_eq!(&found, &expected, "{:?}", settings);
        }
    }

    /// Over a device that looks at its queue, here a second block layer that does nothing.
    #[test]
    fn a_queued_device_below_answers_alike(requests in anything()) {
        let inner = Settings { depth: 65_536, ..plain() };
        for settings in KINDS.into_iter().flat_map(variants) {
            let (expected, _) = replay(&settings, &requests);
            let below = Scheduled::new(Box::new(Recorder::default()), &inner);
            let mut above = Scheduled::new(Box::new(below), &settings);
            let mut found = vec![0; requests.len()];
            above.submit_due(&trace_of(&requests), 0..requests.len(), &mut found);
            prop_assert_eq!(&found, &expected, "{:?}", settings);
        }
    }

    #[test]
    fn observing_changes_nothing_and_explains_all(requests in anything()) {
        let trace = trace_of(&requests);
        let count = requests.len();
        for settings in KINDS.into_iter().flat_map(variants) {
            let (expected, _) = replay(&settings, &requests);
            let (mut scheduled, _) = recorded(&settings);
            let (mut found, mut paths) = (vec![0; count], vec![Path::EMPTY; count]);
            scheduled.submit_due_observed(&trace, 0..count, &mut found, &mut paths, &mut Deaf);
            prop_assert_eq!(&found, &expected);
            for ((path, at), request) in paths.iter().zip(&found).zip(&requests) {
                prop_assert_eq!(path.total(), at - request.due.0);
            }
        }
    }
}

/// [`Recorder`] that tells what it does.
#[derive(Default)]
struct Telling(Recorder);

impl Device for Telling {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        self.0.submit(now, request)
    }

    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        let at = self.submit(now, request);
        let start = at.0 - service_ns(request);
        probe.span(&Span::new(Track::server(0), Activity::from(request.op), start, at.0));
        let mut path = Path::of(Cause::Queue, start - now.0);
        path.spend(Cause::Medium, at.0 - start);
        (at, path)
    }
}

/// By request: when the device was done with it.
#[derive(Default)]
struct Heard {
    request: usize,
    ends: Vec<(usize, u64)>,
}

impl Probe for Heard {
    fn request(&mut self, index: usize) {
        self.request = index;
    }
    fn span(&mut self, span: &Span) {
        self.ends.push((self.request, span.end_ns));
    }
}

proptest! {
    /// What the device tells is passed on under the name of the first request of those merged.
    #[test]
    fn a_probe_hears_the_device_by_request(requests in anything(), nested in any::<bool>()) {
        let (trace, count) = (trace_of(&requests), requests.len());
        let inner = Settings { depth: 65_536, ..plain() };
        for settings in KINDS.into_iter().flat_map(variants) {
            let mut below: Box<dyn Device> = Box::new(Telling::default());
            if nested {
                below = Box::new(Scheduled::new(below, &inner));
            }
            let mut above = Scheduled::new(below, &settings);
            let (mut found, mut paths) = (vec![0; count], vec![Path::EMPTY; count]);
            let mut heard = Heard::default();
            above.submit_due_observed(&trace, 0..count, &mut found, &mut paths, &mut heard);
            let counters = above.counters();
            let merged = counters.iter().find(|counter| counter.name.contains("merged"));
            prop_assert_eq!(heard.ends.len() as u64 + merged.unwrap().value, count as u64);
            for (request, end) in &heard.ends {
                prop_assert_eq!(found[*request], *end);
            }
            // All of them were watched from the first one on: no time is left unexplained.
            prop_assert!(paths.iter().all(|path| path.get(Cause::Unknown) == 0));
            let medium = |index: usize| paths[index].get(Cause::Medium);
            let medium: u64 = heard.ends.iter().map(|(index, _)| medium(*index)).sum();
            prop_assert!(medium > 0);
        }
    }
}

#[test]
fn the_slow_simulator_is_one_server() {
    let requests: Vec<_> = (0..3).map(|at| request(at, Op::Read, at << 20, 0, 0)).collect();
    let issued = slowly(&requests, &mut InOrder::default(), 1);
    assert_eq!(issued, [(0, 0), (50_000, 1), (100_000, 2)]);
}
