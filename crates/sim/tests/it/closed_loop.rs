//! Closed loops: captured actors and synthetic users.

use model::Linear;
use profile::linear::Pattern;
use sim::{Error, Synthetic, closed_loop, closed_loop_depth, closed_loop_times};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::replay::constant;

/// (due, service, actor, transaction) of 4 KiB reads.
fn captured(rows: &[(u64, u64, u16, u32)]) -> Trace {
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    for &(due, service, actor, transaction) in rows {
        let (due, offset) = (Nanos(due), Bytes(0));
        let request = Request { due, offset, len: 4096, op: Op::Read, stream: 0 };
        trace.push_captured(request, Nanos(service), actor, transaction);
    }
    trace
}

#[test]
fn cpu_time_stays_and_io_time_is_the_models() {
    // One actor: 100 of I/O, 50 of CPU, 100 of I/O, 30 of CPU, 100 of I/O; two transactions.
    let trace = captured(&[(1_000, 100, 0, 1), (1_150, 100, 0, 1), (1_280, 100, 0, 2)]);
    let outcome = closed_loop(&mut Linear::new(&constant(10.0), 1), &trace).expect("observed");
    assert_eq!((outcome.requests, outcome.actors, outcome.transactions), (3, 1, 2));
    assert_eq!(outcome.captured_span_ns, 1_380);
    assert_eq!(outcome.span_ns, 1_000 + 10 + 50 + 10 + 30 + 10);
    assert_eq!(outcome.transaction_response.max(), 10 + 50 + 10);
    assert_eq!(outcome.captured_transaction_response.max(), 250);
    assert!((outcome.transactions_per_s - 2e9 / 1_110.0).abs() < 1e-3);
    assert!((outcome.transactions_per_min() / outcome.transactions_per_s - 60.0).abs() < 1e-9);
}

#[test]
fn actors_run_in_parallel_and_meet_at_the_device() {
    // Two actors that never met in the capture meet on a device ten times slower.
    let trace = captured(&[(0, 10, 0, 1), (20, 10, 1, 2), (40, 10, 0, 1), (60, 10, 1, 2)]);
    let outcome = closed_loop(&mut Linear::new(&constant(100.0), 1), &trace).expect("observed");
    // Actor 0: 0..100, CPU 30, issue 130, waits for actor 1 (20: 100..200), 200..300.
    // Actor 1: issue 20, 100..200, CPU 30, issue 230, 300..400.
    assert_eq!(outcome.span_ns, 400);
    assert_eq!(outcome.transaction_response.max(), 380);
    assert_eq!(outcome.transaction_response.min(), 300);
    assert_eq!(outcome.actors, 2);
    let times = closed_loop_times(&mut Linear::new(&constant(100.0), 1), &trace);
    assert_eq!(times, Ok(vec![100, 180, 170, 170]));
}

/// On a device with the captured times the captured run comes out.
#[test]
fn the_same_device_gives_the_captured_run() {
    let rows: Vec<_> = (0..500u64)
        .map(|i| (i * 1_000 + (i % 7) * 10, 200, (i % 3) as u16, 1 + i as u32))
        .collect();
    let trace = captured(&rows);
    let outcome = closed_loop(&mut Linear::new(&constant(200.0), 1), &trace).expect("observed");
    assert_eq!(outcome.span_ns, outcome.captured_span_ns);
    assert_eq!(outcome.transactions_per_s, outcome.captured_transactions_per_s);
    assert_eq!(outcome.transaction_response, outcome.captured_transaction_response);
}

#[test]
fn requests_outside_transactions_are_no_transaction() {
    let trace = captured(&[(0, 10, 0, 0), (20, 10, 0, 0)]);
    let outcome = closed_loop(&mut Linear::new(&constant(5.0), 1), &trace).expect("observed");
    assert_eq!((outcome.transactions, outcome.transactions_per_s), (0, 0.0));
    assert_eq!(outcome.requests, 2);
}

#[test]
fn an_unobserved_trace_is_refused() {
    let mut trace = captured(&[(0, 10, 0, 0)]);
    trace.service = None;
    let error = closed_loop(&mut Linear::new(&constant(5.0), 1), &trace).expect_err("unobserved");
    assert_eq!(error, Error::NotObserved);
    let mut trace = captured(&[(0, 10, 0, 0)]);
    trace.chains = None;
    let error = closed_loop(&mut Linear::new(&constant(5.0), 1), &trace).expect_err("unobserved");
    assert_eq!(error, Error::NotObserved);
    let mut ragged = captured(&[(0, 10, 0, 0)]);
    ragged.chains.as_mut().expect("chains").actor.clear();
    let error = closed_loop(&mut Linear::new(&constant(5.0), 1), &ragged).expect_err("ragged");
    assert!(matches!(error, Error::Malformed(_)));
}

#[test]
fn depth_multiplies_throughput_up_to_the_parallelism() {
    let mut parameters = constant(1_000_000.0);
    parameters.parallelism = 4;
    for (depth, expected) in [(1, 1_000.0), (2, 2_000.0), (4, 4_000.0), (9, 4_000.0)] {
        let load = Synthetic::new(Pattern::Random, 1.0, 4096);
        let outcome = closed_loop_depth(&mut Linear::new(&parameters, 1), load, depth, 10_000);
        assert_eq!(outcome.requests, 10_000);
        assert!((outcome.iops / expected - 1.0).abs() < 0.01, "{depth}: {}", outcome.iops);
    }
}

#[test]
fn warm_up_is_not_counted_and_flushes_are_apart() {
    let load = Synthetic {
        warm_up_requests: 100,
        flush_each_write: true,
        ..Synthetic::new(Pattern::Sequential, 0.0, 4096)
    };
    let mut parameters = constant(1_000.0);
    parameters.flush.base_ns = 3_000.0;
    let outcome = closed_loop_depth(&mut Linear::new(&parameters, 1), load, 1, 50);
    assert_eq!((outcome.requests, outcome.writes.count(), outcome.reads.count()), (50, 50, 0));
    assert_eq!(outcome.flushes.mean(), 3_000.0);
    assert_eq!(outcome.elapsed_ns, 50 * 4_000);
}
