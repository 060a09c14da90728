//! Open-loop replay.

use model::{Device, Linear};
use profile::Profile;
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use proptest::prelude::*;
use sim::{Error, Outcome, check, replay, responses};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

pub fn constant(service_ns: f64) -> LinearParameters {
    let line = Line {
        base_ns: service_ns,
        ns_per_byte: 0.0,
        ceiling_iops: None,
        ceiling_bytes_per_s: None,
    };
    LinearParameters {
        capacity: Some(Bytes(1 << 30)),
        read: [line; 2],
        write: [line; 2],
        parallelism: 1,
        detection: Detection::PerStream,
        mixed: Mixed::default(),
        flush: Flush::default(),
        trim_ns: 0.0,
        residuals: Vec::new(),
    }
}

/// An OLTP-like trace: page reads and writes, a log that is appended and flushed.
fn oltp(count: usize, seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut trace = Trace {
        streams: ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec(),
        ..Trace::default()
    };
    let (mut now, mut log) = (0, 1u64 << 29);
    while trace.count() < count {
        now += rng.below(200_000);
        let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
        let offset = Bytes(rng.below(1 << 16) * 4096);
        trace.push(Request { due: Nanos(now), offset, len: 4096, op, stream: 0 });
        if rng.below(4) == 0 {
            let len = 4096 * rng.between(1, 4) as u32;
            let write =
                Request { due: Nanos(now), offset: Bytes(log), len, op: Op::Write, stream: 1 };
            log += u64::from(len);
            trace.push(write);
            let flush = Request { offset: Bytes(0), len: 0, op: Op::Flush, ..write };
            trace.push(Request { due: Nanos(now + 60_000), ..flush });
            now += 60_000;
        }
    }
    trace
}

fn mtron(seed: u64) -> Box<dyn Device> {
    let text = profile::find_shipped("mtron-pro-7500").expect("it ships");
    let profile = Profile::from_toml(text, "mtron").expect("it is sound");
    model::device(&profile, seed)
}

#[test]
fn a_trace_by_hand() {
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    let read = Request { due: Nanos(0), offset: Bytes(0), len: 4096, op: Op::Read, stream: 0 };
    // The second waits for the first, the third finds the device idle.
    for due in [1_000, 3_000, 50_000] {
        trace.push(Request { due: Nanos(due), ..read });
    }
    let mut device = Linear::new(&constant(10_000.0), 1);
    assert_eq!(responses(&mut device, &trace), [10_000, 18_000, 10_000]);
    let outcome = replay(&mut Linear::new(&constant(10_000.0), 1), &trace);
    assert_eq!((outcome.requests, outcome.span_ns), (3, 60_000));
    assert_eq!(outcome.classes.len(), 1);
    let class = &outcome.classes[0];
    assert_eq!((class.op, class.stream.as_str(), class.bytes), (Op::Read, "data", 12_288));
    assert_eq!((class.response.min(), class.response.max()), (10_000, 18_000));
    assert_eq!(class.service, class.response);
    assert_eq!(outcome.counters["device_requests"], 3);
}

#[test]
fn an_outcome_counts_every_request_once() {
    let trace = oltp(5_000, 3);
    let outcome = replay(mtron(1).as_mut(), &trace);
    let names: Vec<String> = outcome
        .classes
        .iter()
        .map(|class| format!("{} {} {}", class.op.name(), class.stream, class.response.count()))
        .collect();
    let count = |op, stream| {
        trace.requests().filter(|request| request.op == op && request.stream == stream).count()
    };
    assert_eq!(
        names,
        [
            format!("read data {}", count(Op::Read, 0)),
            format!("write data {}", count(Op::Write, 0)),
            format!("write log {}", count(Op::Write, 1)),
            format!("flush log {}", count(Op::Flush, 1)),
        ]
    );
    let bytes: u64 = trace.len.iter().map(|len| u64::from(*len)).sum();
    assert_eq!(outcome.classes.iter().map(|class| class.bytes).sum::<u64>(), bytes);
    let intervals = &outcome.intervals;
    assert!(intervals.len() <= Outcome::INTERVALS);
    assert_eq!(
        intervals.iter().map(|interval| interval.requests).sum::<u64>(),
        trace.count() as u64
    );
    assert_eq!(intervals.iter().map(|interval| interval.bytes).sum::<u64>(), bytes);
    assert!(intervals.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    let longest = intervals.iter().map(|interval| interval.max_response_ns).max();
    assert_eq!(longest, Some(outcome.response().max()));
    assert_eq!(outcome.response_of(Op::Flush).count(), count(Op::Flush, 1) as u64);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let trace = oltp(20_000, 5);
    let json = || serde_json::to_string(&replay(mtron(9).as_mut(), &trace)).expect("it serialises");
    assert_eq!(json(), json());
    // Times are whole numbers and come back exactly; the last digit of a rate need not.
    let back: Outcome = serde_json::from_str(&json()).expect("it reads back");
    let outcome = replay(mtron(9).as_mut(), &trace);
    assert!(back.classes == outcome.classes && back.counters == outcome.counters);
}

#[test]
fn an_empty_trace_is_an_empty_outcome() {
    let outcome = replay(mtron(1).as_mut(), &Trace::default());
    assert_eq!((outcome.requests, outcome.classes.len(), outcome.intervals.len()), (0, 0, 0));
    assert!(responses(mtron(1).as_mut(), &Trace::default()).is_empty());
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Linear::new(&constant(1.0), 1);
    let mut trace = oltp(10, 1);
    assert_eq!(check(&device, &trace), Ok(()));
    trace.offset[3] = 1 << 30;
    trace.len[3] = 512;
    let expected =
        Error::BeyondCapacity { index: 3, end: (1 << 30) + 512, capacity_bytes: 1 << 30 };
    assert_eq!(check(&device, &trace), Err(expected));
    trace.len.pop();
    assert!(matches!(check(&device, &trace), Err(Error::Malformed(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// `replay` and `responses` see the same device, whatever the batch boundaries.
    #[test]
    fn responses_are_those_of_the_outcome(count in 1usize..3_000, seed: u64) {
        let trace = oltp(count, seed);
        let times = responses(mtron(seed).as_mut(), &trace);
        let outcome = replay(mtron(seed).as_mut(), &trace);
        prop_assert_eq!(times.len(), trace.count());
        let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
        prop_assert_eq!(outcome.response().sum(), sum);
        let mut device = mtron(seed);
        for (request, time) in trace.requests().zip(times) {
            prop_assert_eq!(device.submit(request.due, &request).0 - request.due.0, time);
        }
    }
}
