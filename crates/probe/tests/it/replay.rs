//! Replay: bookkeeping on the null device, times on a real file.

use events::{Event, Quiet};
use io::engine::NullDevice;
use io::target::TargetSpec;
use probe::Error;
use probe::replay::{Mode, ReplayOptions, Replayed, replay, replay_on};
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::{Recording, info, scratch};

const RANGE: u64 = 16 << 20;

fn trace_of(requests: impl IntoIterator<Item = (u64, Op, u64, u32)>) -> Trace {
    let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
    for (due, op, offset, len) in requests {
        let (due, offset) = (Nanos(due), Bytes(offset));
        trace.push(Request { due, offset, len, op, stream: 0 });
    }
    trace
}

fn options(path: &str, mode: Mode) -> ReplayOptions {
    ReplayOptions {
        mode,
        realtime: false,
        precondition: false,
        ..ReplayOptions::new(TargetSpec::new(path))
    }
}

fn on_null(trace: &Trace, mode: Mode) -> Replayed {
    let device = NullDevice { size_bytes: RANGE };
    let options = options("null", mode);
    replay_on(&device, &info(RANGE), trace, &options, Vec::new(), &Quiet).unwrap()
}

#[test]
fn a_timed_replay_keeps_the_schedule() {
    let trace = trace_of((0..200).map(|i| (i * 1_000_000, Op::Read, i * 4096, 4096)));
    let replayed = on_null(&trace, Mode::Timed);
    let certificate = &replayed.certificate;
    assert_eq!((certificate.requests_in, certificate.completions_out), (200, 200));
    // However late single requests are on a busy machine, lateness does not add up.
    assert!((certificate.duration_ratio - 1.0).abs() < 0.2, "{certificate:?}");
    assert!((certificate.ideal_s - 0.199).abs() < 1e-9);
    for index in 0..200 {
        let (service, response) = (replayed.service_ns[index], replayed.response_ns[index]);
        assert_eq!(response, service + replayed.lateness_ns[index], "request {index}");
    }
    // Nothing is ever issued before it is due.
    assert!(certificate.elapsed_s >= certificate.ideal_s);
}

#[test]
fn lateness_makes_a_replay_invalid() {
    // All due at once: however fast they are issued, most are milliseconds late.
    let trace = trace_of((0..100_000).map(|i| (0, Op::Read, i % 1000 * 4096, 4096)));
    let replayed = on_null(&trace, Mode::Timed);
    assert!(!replayed.certificate.valid);
    assert!(replayed.warnings.iter().any(|warning| warning.code == "replay_invalid"));
    assert!(replayed.certificate.invalid_because[0].contains("late"));
}

#[test]
fn untimed_modes_ignore_the_captured_times() {
    let trace = trace_of((0..100).map(|i| (i * 60_000_000_000, Op::Write, i * 4096, 4096)));
    for mode in [Mode::AsFastAsPossible, Mode::ClosedLoop { depth: 4 }] {
        let replayed = on_null(&trace, mode);
        assert_eq!(replayed.certificate.completions_out, 100);
        assert!(replayed.certificate.valid, "{:?}", replayed.certificate);
        assert!(replayed.certificate.elapsed_s < 10.0);
        let expected = if mode == Mode::AsFastAsPossible { 256 } else { 4 };
        assert_eq!(replayed.certificate.max_outstanding, expected);
    }
}

#[test]
fn what_is_left_out_or_changed_is_counted_and_said() {
    let trace = trace_of([
        (0, Op::Read, 100, 10),
        (1, Op::Trim, 0, 4096),
        (2, Op::Flush, 0, 0),
        (3, Op::Write, 4096, 4096),
    ]);
    let replayed = on_null(&trace, Mode::AsFastAsPossible);
    let certificate = &replayed.certificate;
    assert_eq!((certificate.requests_in, certificate.skipped, certificate.widened), (3, 1, 1));
    let codes: Vec<&str> = replayed.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"replay_widened") && codes.contains(&"replay_skipped"), "{codes:?}");
    assert_eq!((replayed.service_ns.len(), replayed.service_ns[1]), (4, 0));
}

#[test]
fn a_cancelled_replay_keeps_what_it_issued() {
    let trace = trace_of((0..50).map(|i| (i * 100_000_000, Op::Read, i * 4096, 4096)));
    let device = NullDevice { size_bytes: RANGE };
    let sink = Recording { stop_at: Some(3), ..Recording::default() };
    let options = options("null", Mode::Timed);
    let replayed = replay_on(&device, &info(RANGE), &trace, &options, Vec::new(), &sink).unwrap();
    let issued = replayed.service_ns.len();
    assert!((1..50).contains(&issued), "{issued} of 50");
    assert_eq!(replayed.certificate.requests_in, issued as u64);
    let last = sink.taken().pop();
    assert!(matches!(last, Some(Event::Done { ending: events::Ending::Interrupted, .. })));
}

#[test]
fn traces_that_cannot_be_replayed_are_refused() {
    let mut backwards = trace_of([(5, Op::Read, 0, 512), (6, Op::Read, 0, 512)]);
    backwards.due[1] = 0;
    for (trace, why) in [(Trace::default(), "no request"), (backwards, "request 1")] {
        let outcome = replay(&trace, &options("/nonexistent/x", Mode::Timed), &Quiet);
        match outcome {
            Err(Error::BadTrace { why: said }) => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn requests_in_are_completions_out(
        requests in prop::collection::vec(
            (0u64..50_000, 0usize..4, 0u64..(RANGE - 70_000), 0u32..70_000), 1..200,
        ),
        depth in 1u32..20,
    ) {
        let mut due = 0;
        let trace = trace_of(requests.into_iter().map(|(gap, op, offset, len)| {
            due += gap;
            match Op::ALL[op] {
                Op::Flush => (due, Op::Flush, 0, 0),
                op => (due, op, offset, len),
            }
        }));
        for mode in [Mode::Timed, Mode::ClosedLoop { depth }] {
            let replayed = on_null(&trace, mode);
            let certificate = replayed.certificate;
            prop_assert_eq!(certificate.requests_in, certificate.completions_out);
            prop_assert_eq!(certificate.requests_in + certificate.skipped, trace.count() as u64);
            prop_assert_eq!(replayed.response_ns.len(), trace.count());
        }
    }
}

#[test]
fn a_file_of_the_replays_own_is_created_kept_and_reused() {
    let Some(directory) = scratch() else { return };
    let path = directory.path().join("replay.bin");
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Trim];
    let trace = trace_of((0..400u64).map(|i| match ops[i as usize % 4] {
        Op::Flush => (i * 50_000, Op::Flush, 0, 0),
        op => (i * 50_000, op, i * 4096, 4096),
    }));
    let options = ReplayOptions {
        precondition: true,
        keep_file: true,
        punch_holes: true,
        realtime: true,
        ..options(path.to_str().unwrap(), Mode::Timed)
    };
    let first = replay(&trace, &options, &Quiet).unwrap();
    assert_eq!(first.certificate.completions_out, 400, "{:?}", first.certificate);
    assert!(std::fs::metadata(&path).unwrap().len() >= trace.extent().0);
    // The mark lets the second run write to it without being told twice.
    let again = ReplayOptions { precondition: false, keep_file: false, ..options };
    let second = replay(&trace, &again, &Quiet).unwrap();
    assert_eq!(second.certificate.requests_in, 400);
    assert!(path.exists(), "a file that this run did not create stays");
}
