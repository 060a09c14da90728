//! Every way in which a device can fail, on cells, preconditioning and replay.

use events::{Ending, Event, Hint};
use fit::measurement::Order;
use io::engine::{Fault, FaultyDevice, NullDevice};
use io::target::TargetSpec;
use probe::plan::closed;
use probe::replay::{Mode, ReplayOptions, replay_on};
use probe::{Error, run_on};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::{Recording, info, options};

const RANGE: u64 = 16 << 20;

fn faulty(fault: Fault, good_requests: u64) -> FaultyDevice<NullDevice> {
    FaultyDevice::new(NullDevice { size_bytes: RANGE }, fault, good_requests)
}

/// Runs a mixed cell on a device that breaks after 100 requests; its error, and how the stream
/// ended.
fn probe_fails(fault: Fault, read_share: f64, precondition: bool) -> (Error, Option<Ending>) {
    let device = faulty(fault, if precondition { 20 } else { 100 });
    let mut plan = options("null", vec![closed(Order::Random, read_share, 4096, 8)], RANGE);
    plan.precondition = precondition;
    let sink = Recording::default();
    let outcome = run_on(&&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {});
    let ending = sink.taken().into_iter().rev().find_map(|event| match event {
        Event::Done { ending, .. } => Some(ending),
        _ => None,
    });
    (outcome.expect_err("the device failed"), ending)
}

fn check(fault: Fault, read_share: f64, precondition: bool, expected: fn(&Error) -> bool) {
    let (error, ending) = probe_fails(fault, read_share, precondition);
    assert!(expected(&error), "{fault:?}: {error:?}");
    assert_eq!(ending, Some(Ending::Failed));
    assert!(error.hint().is_some(), "{error}");
    assert!(
        error.to_string().contains("null") || matches!(error, Error::Io(io::Error::Engine { .. })),
        "{error}"
    );
}

#[test]
fn a_cell_reports_what_the_device_did() {
    let io = |error: &Error| {
        let Error::Io(io::Error::Io { source, .. }) = error else { return false };
        source.raw_os_error() == Some(libc::EIO)
    };
    check(Fault::Errno(libc::EIO), 1.0, false, io);
    check(Fault::Errno(libc::EIO), 0.0, false, io);
    check(Fault::Errno(libc::ENOSPC), 0.0, false, |e| {
        matches!(e, Error::Io(io::Error::NoSpace { .. }))
    });
    check(Fault::Errno(libc::EDQUOT), 0.0, false, |e| {
        matches!(e, Error::Io(io::Error::NoSpace { .. }))
    });
    check(Fault::Half, 1.0, false, |e| {
        matches!(e, Error::Io(io::Error::Short { got: 2048, len: 4096, .. }))
    });
    check(Fault::Half, 0.0, false, |e| {
        matches!(e, Error::Io(io::Error::Short { op: Op::Write, .. }))
    });
    check(Fault::ShrinksTo(0), 1.0, false, |e| {
        matches!(e, Error::Io(io::Error::Shrank { size: Bytes(0), .. }))
    });
    check(Fault::Exchange(libc::EBADF), 1.0, false, |e| {
        matches!(e, Error::Io(io::Error::Engine { .. }))
    });
    check(Fault::NoEngine(libc::EPERM), 1.0, false, |e| {
        matches!(e, Error::Io(io::Error::Engine { .. }))
    });
    check(Fault::NoFlush(libc::EIO), 0.0, false, |e| {
        matches!(e, Error::Io(io::Error::Target { action: "flush", .. }))
    });
}

#[test]
fn preconditioning_reports_what_the_device_did() {
    check(
        Fault::Errno(libc::ENOSPC),
        0.0,
        true,
        |e| matches!(e, Error::Io(io::Error::NoSpace { offset, .. }) if *offset > 0),
    );
    check(Fault::Errno(libc::EIO), 0.0, true, |e| {
        matches!(e, Error::Io(io::Error::Io { op: Op::Write, .. }))
    });
    check(Fault::NoFlush(libc::EIO), 0.0, true, |e| {
        matches!(e, Error::Io(io::Error::Target { .. }))
    });
}

/// A write beyond the new end makes a real file grow back, so each write succeeds: the size gives
/// it away after the cell.
#[test]
fn a_file_that_shrank_under_writes_is_noticed() {
    let device = FaultyDevice::new(NullDevice { size_bytes: RANGE / 2 }, Fault::Slow(0), u64::MAX);
    let mut plan = options("null", vec![closed(Order::Random, 0.0, 4096, 8)], RANGE);
    plan.precondition = false;
    let sink = Recording::default();
    let outcome = run_on(&&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {});
    assert!(matches!(outcome, Err(Error::Io(io::Error::Shrank { .. }))), "{outcome:?}");
}

#[test]
fn a_slow_device_is_measured_as_slow() {
    let device = faulty(Fault::Slow(2000), 0);
    let mut plan = options("null", vec![closed(Order::Random, 1.0, 4096, 1)], RANGE);
    plan.precondition = false;
    let sink = Recording::default();
    let measured = run_on(&&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {}).unwrap();
    let cell = &measured.cells[0];
    assert!(cell.classes[0].service.min_ns >= 2_000_000, "{cell:?}");
    assert!(cell.requests <= 25);
    assert!(cell.warnings.iter().any(|warning| warning.code == "too_few_requests"));
}

fn trace() -> Trace {
    let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
    for index in 0..300u64 {
        let op = if index % 2 == 0 { Op::Read } else { Op::Write };
        let (due, offset) = (Nanos(index * 10_000), Bytes(index * 4096));
        trace.push(Request { due, offset, len: 4096, op, stream: 0 });
    }
    trace
}

#[test]
fn a_replay_reports_what_the_device_did() {
    type Expected = fn(&Error) -> bool;
    let expected: [(Fault, Expected); 5] = [
        (Fault::Errno(libc::EIO), |e| {
            matches!(e, Error::Io(io::Error::Io { offset: 409_600, .. }))
        }),
        (Fault::Errno(libc::ENOSPC), |e| {
            matches!(e, Error::Io(io::Error::NoSpace { offset: 409_600, .. }))
        }),
        (Fault::Half, |e| matches!(e, Error::Io(io::Error::Short { .. }))),
        (Fault::ShrinksTo(1 << 18), |e| {
            matches!(e, Error::Io(io::Error::Shrank { size: Bytes(0x40000), .. }))
        }),
        (Fault::NoEngine(libc::EPERM), |e| matches!(e, Error::Io(io::Error::Engine { .. }))),
    ];
    for (fault, expected) in expected {
        for mode in [Mode::Timed, Mode::AsFastAsPossible] {
            let device = faulty(fault, 100);
            let mut options = ReplayOptions::new(TargetSpec::new("null"));
            (options.mode, options.precondition) = (mode, false);
            (options.realtime, options.max_outstanding) = (false, 1);
            let sink = Recording::default();
            let outcome = replay_on(&&device, &info(RANGE), &trace(), &options, Vec::new(), &sink);
            let error = outcome.expect_err("the device failed");
            assert!(expected(&error), "{fault:?}: {error:?}");
            let last = sink.taken().pop();
            assert!(matches!(last, Some(Event::Done { ending: Ending::Failed, .. })), "{last:?}");
        }
    }
}
