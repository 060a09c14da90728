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

/// `[[device.jitter]]` of a device whose writes take `line_us`, drawn: times in us, sorted.
fn drawn(jitter: &str, line_us: f64) -> Vec<f64> {
    let line = format!(
        "base_us = {{ value = {line_us}, source = \"x\" }}\n\
         us_per_kib = {{ value = 0, source = \"x\" }}\n"
    );
    let patterns = ["read.sequential", "read.random", "write.sequential", "write.random"]
        .map(|pattern| format!("[device.{pattern}]\n{line}"))
        .concat();
    let text = format!(
        "[profile]\nname = \"x\"\n[state]\ncondition = \"steady\"\n[device]\nkind = \"linear\"\n\
         parallelism = {{ value = 1, source = \"x\" }}\n{patterns}\
         [device.flush]\nbase_us = {{ value = 0, source = \"x\" }}\n\
         [[device.jitter]]\nop = \"write\"\n{jitter}"
    );
    let profile = profile::Profile::from_toml(&text, "x").expect("it is sound");
    let mut device = model::device(&profile, 7);
    let mut now = Nanos(0);
    let mut times: Vec<f64> = (0..REQUESTS as u64)
        .map(|index| {
            let before = now;
            // Far apart, so that every other one is not sequential either.
            now = device.submit(now, &request(Op::Write, (index % 2) << 30, 4096));
            (now.0 - before.0) as f64 / 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Mean, median and tail of a lognormal whose mean is the line: `exp(z s - s^2 / 2)`.
#[test]
fn jitter_is_lognormal_about_the_line() {
    for spread in [0.1_f64, 0.46] {
        let times = drawn(&format!("spread = {{ value = {spread}, source = \"x\" }}\n"), 350.0);
        let at = |p: f64| times[(p * times.len() as f64) as usize];
        check("mean", times.iter().sum::<f64>() / times.len() as f64, 350.0, 2e-3);
        for (p, z) in [(0.5, 0.0), (0.99, 2.326_348), (0.999, 3.090_232)] {
            let expected = 350.0 * (z * spread - spread * spread / 2.0).exp();
            // The sampler knows 256 values of the body and 256 of its tail.
            check(&format!("quantile {p} at {spread}"), at(p), expected, 1e-2);
        }
    }
}

/// Stalls come at their rate, are as long as stated, and add to the mean of the line.
#[test]
fn stalls_stand_apart_from_the_body() {
    let times = drawn(
        "spread = { value = 0.3, source = \"x\" }\n\
         stalls_per_million = { value = 1500, source = \"x\" }\n\
         stall_ms = { value = 20, source = \"x\" }\n\
         stall_spread = { value = 0.2, source = \"x\" }\n",
        500.0,
    );
    let stalled: Vec<f64> = times.iter().copied().filter(|time| *time > 8_000.0).collect();
    check("their share", stalled.len() as f64 / times.len() as f64, 1500e-6, 0.06);
    check("their median", stalled[stalled.len() / 2], 20_000.0, 0.03);
    let mean = 500.0 * (1.0 - 1500e-6) + 1500e-6 * 20_000.0 * (0.02_f64).exp();
    check("mean", times.iter().sum::<f64>() / times.len() as f64, mean, 5e-3);
    check("median", times[times.len() / 2], 500.0 * (-0.045 + 0.3 * 0.001_88_f64).exp(), 1e-2);
}
