//! Queues whose mean waiting time is known exactly.
//!
//! With Poisson arrivals at rate l and one server, the mean time in an M/D/1 queue is
//! `s + rho s / (2 (1 - rho))`, and in an M/M/1 queue `s / (1 - rho)` (Kleinrock, Queueing Systems
//! 1, sections 5.7 and 3.2). M/M/c follows Erlang's C formula.

use model::{Device, Linear};
use profile::Quantiles;
use profile::linear::{Context, LinearParameters, Residual};
use stats::rng::Rng;
use trace::Op;
use units::Nanos;

use crate::support::{plain, request};

const SERVICE_NS: f64 = 100_000.0;
const REQUESTS: usize = 2_000_000;

/// Mean response of Poisson arrivals that keep each of `servers` busy a share `rho` of the time.
fn mean_response(parameters: &LinearParameters, rho: f64) -> f64 {
    let mut device = Linear::new(parameters, 11);
    let mut rng = Rng::new(23);
    let gap = SERVICE_NS / rho / f64::from(parameters.parallelism);
    let mut now = 0.0f64;
    let mut sum = 0.0;
    for _ in 0..REQUESTS {
        now += rng.exponential(gap);
        let at = now as u64;
        sum += (device.submit(Nanos(at), &request(Op::Read, 0, 4096)).0 - at) as f64;
    }
    sum / REQUESTS as f64
}

/// An exponential distribution of mean 1 as quantile points, dense where it bends.
fn exponential() -> Quantiles {
    let mut points: Vec<(f64, f64)> = (0..1000)
        .map(|i| 1.0 - (f64::from(i) / -72.0).exp())
        .map(|p| (p, -(1.0 - p).ln()))
        .collect();
    points.push((1.0, 1000.0 / 72.0));
    Quantiles(points)
}

fn exponential_times(servers: u32) -> LinearParameters {
    LinearParameters {
        parallelism: servers,
        residuals: vec![Residual {
            op: Op::Read,
            pattern: None,
            size_bytes: None,
            context: Context::Any,
            ratios: exponential(),
        }],
        ..plain(SERVICE_NS, 0.0)
    }
}

fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() < tolerance, "{what}: {found} against {expected} ({error:+.4})");
}

#[test]
fn constant_times_make_an_md1_queue() {
    for rho in [0.2, 0.5, 0.8] {
        let expected = SERVICE_NS * (1.0 + rho / (2.0 * (1.0 - rho)));
        check(&format!("M/D/1 {rho}"), mean_response(&plain(SERVICE_NS, 0.0), rho), expected, 0.01);
    }
}

#[test]
fn exponential_times_make_an_mm1_queue() {
    for rho in [0.2, 0.5, 0.8] {
        let expected = SERVICE_NS / (1.0 - rho);
        check(&format!("M/M/1 {rho}"), mean_response(&exponential_times(1), rho), expected, 0.02);
    }
}

#[test]
fn parallel_servers_make_an_mmc_queue() {
    let (servers, rho) = (8u32, 0.8);
    let offered = f64::from(servers) * rho;
    let mut term = 1.0;
    let mut sum = 0.0;
    for k in 0..servers {
        sum += term;
        term *= offered / f64::from(k + 1);
    }
    let waits = term / (1.0 - rho) / (sum + term / (1.0 - rho));
    let expected = SERVICE_NS * (1.0 + waits / (f64::from(servers) * (1.0 - rho)));
    check("M/M/8", mean_response(&exponential_times(servers), rho), expected, 0.02);
}
