//! Queues whose mean response is known exactly, through the whole simulator.
//!
//! Open queues: Poisson arrivals at rate l at servers of mean time s, load rho = l s / c. M/G/1 is
//! Pollaczek and Khinchine's `s + l E[s^2] / (2 (1 - rho))`, of which M/D/1 and M/M/1 are cases;
//! M/M/c follows Erlang's C (Kleinrock, Queueing Systems 1, sections 3.2, 3.5 and 5.6). Closed
//! networks of N users who think for z on average: exact mean value analysis (Reiser and Lavenberg
//! 1980) for one exponential server, the machine-repairman formula for several.
//!
//! A mean over correlated responses is worth what its batches say: each check takes the mean of 40
//! batches, demands that the theory lies within 1 % of it, and that the batches' 99 % interval is
//! itself narrower than that, so that a pass means something.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Device, Linear, Ram};
use profile::Quantiles;
use profile::flash::EventParameters;
use profile::linear::{Context, LinearParameters, Residual};
use profile::ram::RamParameters;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::replay::constant;

const SERVICE_NS: f64 = 100_000.0;
const BATCHES: usize = 40;
/// Student's t for 39 degrees of freedom, two-sided 99 %.
const T: f64 = 2.708;

/// Mean of the responses and half of its 99 % interval, both ns.
fn batch_means(responses: &[f64]) -> (f64, f64) {
    let size = responses.len() / BATCHES;
    let means: Vec<f64> =
        responses.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, T * (variance / count).sqrt())
}

#[track_caller]
fn check(what: &str, responses: &[f64], expected: f64) {
    let (mean, half) = batch_means(responses);
    let (error, width) = (mean / expected - 1.0, half / expected);
    println!(
        "{what}: {mean:.0} ns, theory {expected:.0} ({error:+.4}), 99 % interval +-{width:.4}"
    );
    assert!(width < 0.01, "{what}: the interval of +-{width:.4} is too wide to tell");
    assert!(error.abs() < 0.01, "{what}: {mean:.0} against {expected:.0} ({error:+.4})");
}

/// Reads at the times of a Poisson process.
fn poisson(count: usize, gap_ns: f64, seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let streams = vec![Stream { name: "all".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    let mut now = 0.0;
    for _ in 0..count {
        now += rng.exponential(gap_ns);
        let due = Nanos(now as u64);
        trace.push(Request { due, offset: Bytes(0), len: 4096, op: Op::Read, stream: 0 });
    }
    trace
}

fn responses(device: &mut dyn Device, count: usize, gap_ns: f64) -> Vec<f64> {
    let trace = poisson(count, gap_ns, 23);
    sim::responses(device, &trace).into_iter().map(|time| time as f64).collect()
}

/// A distribution of mean 1 as quantile points.
fn points(quantile: impl Fn(f64) -> f64) -> Quantiles {
    // Dense where the tail is.
    let mut points: Vec<(f64, f64)> = (0..1000)
        .map(|step| 1.0 - (f64::from(step) / -72.0).exp())
        .map(|p| (p, quantile(p)))
        .collect();
    points.push((1.0, quantile(1.0 - 1e-6)));
    let quantiles = Quantiles(points);
    quantiles.scaled(1.0 / quantiles.mean())
}

fn exponential() -> Quantiles {
    points(|p| -(1.0 - p).ln())
}

/// Linear between its points: the exact second moment of what a profile says.
fn second_moment(quantiles: &Quantiles) -> f64 {
    let pieces = quantiles.0.windows(2);
    pieces
        .map(|pair| {
            let (width, a, b) = (pair[1].0 - pair[0].0, pair[0].1, pair[1].1);
            width * (a * a + a * b + b * b) / 3.0
        })
        .sum()
}

fn drawing(quantiles: &Quantiles, servers: u32) -> LinearParameters {
    let residual = Residual {
        op: Op::Read,
        pattern: None,
        size_bytes: None,
        context: Context::Any,
        ratios: quantiles.clone(),
    };
    LinearParameters { parallelism: servers, residuals: vec![residual], ..constant(SERVICE_NS) }
}

#[test]
fn md1() {
    for rho in [0.3, 0.7] {
        let mut device = Linear::new(&constant(SERVICE_NS), 1);
        let expected = SERVICE_NS * (1.0 + rho / (2.0 * (1.0 - rho)));
        let found = responses(&mut device, 1_200_000, SERVICE_NS / rho);
        check(&format!("M/D/1 at {rho}"), &found, expected);
    }
}

/// The DRAM SSD with one port: controller time and transfer add up to a constant.
#[test]
fn md1_of_memory() {
    let parameters =
        RamParameters { capacity: None, latency_ns: 59_040.0, bytes_per_s: 1e8, ports: 1 };
    for rho in [0.5, 0.7] {
        let mut device = Ram::new(&parameters);
        let expected = SERVICE_NS * (1.0 + rho / (2.0 * (1.0 - rho)));
        let found = responses(&mut device, 1_200_000, SERVICE_NS / rho);
        check(&format!("M/D/1 of memory at {rho}"), &found, expected);
    }
}

/// Single pages of one die: the time in the cells and on the bus is a constant, and the die has
/// nothing else to do. By timelines and with an event queue.
#[test]
fn md1_on_a_flash_die() {
    let mut parameters = model::flash::reference::configuration_a();
    let geometry = &mut parameters.geometry;
    (geometry.channels, geometry.chips_per_channel, geometry.planes_per_die) = (1, 1, 1);
    parameters.logical_pages = profile::flash::FlashParameters::logical_pages_at(geometry, 0.1875);
    // 4,096 bytes in 8 us.
    parameters.timing.bus_transfers_per_s = 512e6;
    let service_ns = 50_000.0 + 8_000.0;
    for (name, events) in [("timelines", None), ("events", Some(EventParameters::default()))] {
        parameters.events = events;
        for rho in [0.3, 0.7] {
            let mut device = model::flash::build(&parameters, 1).expect("it can exist");
            assert!(device.precondition(1.0, false, 1));
            let expected = service_ns * (1.0 + rho / (2.0 * (1.0 - rho)));
            let found = responses(device.as_mut(), 1_200_000, service_ns / rho);
            check(&format!("M/D/1 on a die ({name}) at {rho}"), &found, expected);
        }
    }
}

#[test]
fn mm1() {
    for (rho, count) in [(0.3, 1_000_000), (0.6, 2_000_000)] {
        let mut device = Linear::new(&drawing(&exponential(), 1), 1);
        let found = responses(&mut device, count, SERVICE_NS / rho);
        check(&format!("M/M/1 at {rho}"), &found, SERVICE_NS / (1.0 - rho));
    }
}

/// Two kinds of service times far apart, and uniform ones.
#[test]
fn mg1() {
    let bimodal = Quantiles(vec![(0.0, 0.5), (0.9, 0.5), (0.900_01, 5.5), (1.0, 5.5)]);
    let bimodal = bimodal.scaled(1.0 / bimodal.mean());
    let uniform = Quantiles(vec![(0.0, 0.0), (1.0, 2.0)]);
    for (name, quantiles) in [("bimodal", bimodal), ("uniform", uniform)] {
        for rho in [0.3, 0.6] {
            let mut device = Linear::new(&drawing(&quantiles, 1), 3);
            let found = responses(&mut device, 3_000_000, SERVICE_NS / rho);
            let wait = rho * second_moment(&quantiles) / (2.0 * (1.0 - rho));
            check(&format!("M/G/1 {name} at {rho}"), &found, SERVICE_NS * (1.0 + wait));
        }
    }
}

#[test]
fn mmc() {
    for (servers, rho) in [(2u32, 0.6), (4, 0.7), (16, 0.8)] {
        let offered = f64::from(servers) * rho;
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 0..servers {
            sum += term;
            term *= offered / f64::from(k + 1);
        }
        let waits = term / (1.0 - rho) / (sum + term / (1.0 - rho));
        let expected = SERVICE_NS * (1.0 + waits / (f64::from(servers) * (1.0 - rho)));
        let mut device = Linear::new(&drawing(&exponential(), servers), 5);
        let gap = SERVICE_NS / rho / f64::from(servers);
        let found = responses(&mut device, 2_000_000, gap);
        check(&format!("M/M/{servers} at {rho}"), &found, expected);
    }
}

/// Responses of `users` who think for an exponential time, ask once and wait.
fn closed(device: &mut dyn Device, users: usize, think_ns: f64, count: usize) -> Vec<f64> {
    let mut rng = Rng::new(41);
    let mut ready: BinaryHeap<Reverse<(u64, usize)>> =
        (0..users).map(|user| Reverse((rng.exponential(think_ns) as u64, user))).collect();
    let mut responses = Vec::with_capacity(count);
    while responses.len() < count {
        let Reverse((now, user)) = ready.pop().expect("every user is thinking or waiting");
        let due = Nanos(now);
        let request = Request { due, offset: Bytes(0), len: 4096, op: Op::Read, stream: 0 };
        let completion = device.submit(due, &request).0;
        responses.push((completion - now) as f64);
        ready.push(Reverse((completion + rng.exponential(think_ns) as u64, user)));
    }
    responses
}

/// Mean response of a closed network, by the balance of its states: k at the servers, which
/// complete at min(k, servers) / s, the others thinking.
fn machine_repairman(users: u32, servers: u32, think_ns: f64) -> f64 {
    let mut weights = vec![1.0];
    for k in 0..users {
        let arrive = f64::from(users - k) / think_ns;
        let leave = f64::from((k + 1).min(servers)) / SERVICE_NS;
        weights.push(weights[k as usize] * arrive / leave);
    }
    let at_servers: f64 = weights.iter().zip(0u32..).map(|(w, k)| w * f64::from(k)).sum();
    let rate: f64 =
        weights.iter().zip(0u32..).map(|(w, k)| w * f64::from(k.min(servers)) / SERVICE_NS).sum();
    at_servers / rate
}

#[test]
fn closed_networks() {
    for (users, servers, think) in [(1, 1, 2.0), (5, 1, 4.0), (20, 1, 30.0), (12, 4, 2.0)] {
        let think_ns = think * SERVICE_NS;
        let expected = machine_repairman(users, servers, think_ns);
        if servers == 1 {
            // Exact mean value analysis: an arriving user sees the queue of one user fewer.
            let mut queue = 0.0;
            let mut response = 0.0;
            for own in 1..=users {
                response = SERVICE_NS * (1.0 + queue);
                queue = response * f64::from(own) / (response + think_ns);
            }
            assert!((response / expected - 1.0).abs() < 1e-9, "two theories agree");
        }
        let mut device = Linear::new(&drawing(&exponential(), servers), 7);
        let found = closed(&mut device, users as usize, think_ns, 500_000);
        check(&format!("{users} users, {servers} servers"), &found, expected);
    }
}

/// What a device can do at most is arithmetic, and a simulation reaches it exactly.
#[test]
fn ceilings_are_exact() {
    let flood = |count| poisson(count, 1.0, 3);
    // One server of 100 us; eight of them; a rate limit of 50,000/s; 409.6 MB/s for 4 KiB.
    let limited = |iops, bytes_per_s| {
        let mut parameters = constant(SERVICE_NS);
        parameters.parallelism = 64;
        for line in parameters.read.iter_mut().chain(&mut parameters.write) {
            line.ceiling_iops = iops;
            line.ceiling_bytes_per_s = bytes_per_s;
        }
        parameters
    };
    for (name, parameters, count, expected_ns) in [
        ("one server", constant(SERVICE_NS), 1_000, 1_000 * 100_000),
        ("eight", LinearParameters { parallelism: 8, ..constant(SERVICE_NS) }, 8_000, 100_000_000),
        ("rate", limited(Some(50_000.0), None), 10_000, 10_000 * 20_000 - 20_000 + 100_000),
        ("bandwidth", limited(None, Some(409.6e6)), 10_000, 10_000 * 10_000 - 10_000 + 100_000),
    ] {
        let mut trace = flood(count);
        trace.due.fill(0);
        let outcome = sim::replay(&mut Linear::new(&parameters, 1), &trace);
        assert_eq!(outcome.span_ns, expected_ns, "{name}");
    }
    // Memory: the first request's controller time, then the interface without a pause.
    let parameters =
        RamParameters { capacity: None, latency_ns: 5_000.0, bytes_per_s: 1e9, ports: 4 };
    let mut trace = flood(10_000);
    trace.due.fill(0);
    let outcome = sim::replay(&mut Ram::new(&parameters), &trace);
    assert_eq!(outcome.span_ns, 5_000 + 10_000 * 4_096);
}
