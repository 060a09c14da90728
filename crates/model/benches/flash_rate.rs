//! Requests per second and core of the flash model, from a trace in memory.
//!
//! Configuration A: random writes on the empty device (A1), 70 % reads after a fill (A2), random
//! writes (A3) and 70 % reads (A5s) in steady cleaning. Every load runs five times, each from the
//! same state; the best and the median CPU time are printed, since other work on the machine only
//! ever adds. `LARGE=1` adds the device of 1 TiB.
//! `cargo bench -p model --bench flash_rate`.

use std::time::Instant;

use model::Device;
use model::flash::reference::{Load, configuration_a, configuration_a_of_1_tib};
use model::flash::{FlashDevice, build};
use profile::flash::FlashParameters;
use trace::Trace;

const BATCH: usize = 1024;
const RUNS: usize = 5;

/// Seconds of CPU time that this thread has used; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// Peak memory of this process in GiB, where the kernel says.
fn peak_gib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) / f64::from(1 << 20)
}

/// Runs `trace`; gives the mean response in us.
fn run(device: &mut dyn Device, trace: &Trace) -> f64 {
    let mut completions = [0; BATCH];
    let (mut start, mut sum) = (0, 0u128);
    while start < trace.count() {
        let end = (start + BATCH).min(trace.count());
        let completions = &mut completions[..end - start];
        device.submit_due(trace, start..end, completions);
        let responses = completions.iter().zip(&trace.due[start..end]).map(|(at, due)| at - due);
        sum += u128::from(responses.sum::<u64>());
        start = end;
    }
    sum as f64 / trace.count() as f64 / 1e3
}

fn measure(name: &str, trace: &Trace, device: &dyn Fn() -> Box<dyn FlashDevice>) {
    let clock = Instant::now();
    let mut seconds = Vec::new();
    let mut found = String::new();
    for _ in 0..RUNS {
        let mut device = device();
        let start = cpu_seconds(clock);
        let mean_us = run(device.as_mut(), trace);
        seconds.push(cpu_seconds(clock) - start);
        let counts = *device.counts();
        found = format!("mean {mean_us:.1} us, WAF {:.3}", counts.write_amplification());
    }
    seconds.sort_by(f64::total_cmp);
    let rate = |seconds: f64| trace.count() as f64 / seconds / 1e6;
    let (best, median) = (rate(seconds[0]), rate(seconds[RUNS / 2]));
    println!("{name}: {best:.1} M requests/s per core, median {median:.1}; {found}");
}

/// The device written once through and `rounds` times over at random, and when it is idle.
fn written(parameters: &FlashParameters, rounds: f64) -> (Box<dyn FlashDevice>, u64) {
    let mut device = build(parameters, 1).expect("a device that can exist");
    let mut now = 0;
    let pages = u64::from(parameters.logical_pages);
    let total = (pages as f64 * rounds) as u64;
    // In pieces, so that the trace does not need more memory than the device.
    for (all, random) in [(pages, false), (total, true)] {
        let mut done = 0;
        while done < all {
            let requests = (all - done).min(1 << 22);
            let mut load = Load::on(parameters, requests, 1e6, 0.0);
            load.seed = 7 + done;
            if random {
                run(device.as_mut(), &load.uniform(now));
            } else {
                let mut trace = load.sequential(now);
                let page = u64::from(load.page_bytes);
                trace.offset.iter_mut().for_each(|offset| *offset += done * page);
                run(device.as_mut(), &trace);
            }
            now += (requests as f64 * 1e3) as u64;
            done += requests;
        }
    }
    device.reset_counts();
    (device, now + 1_000_000_000_000_000)
}

fn small() {
    let parameters = configuration_a();
    let empty = || build(&parameters, 1).expect("a device that can exist");
    let a1 = Load::on(&parameters, 1_000_000, 5e3, 0.0).uniform(0);
    measure("A1 writes, no cleaning", &a1, &empty);

    let restored = |snapshot: &[u8]| {
        let mut device = empty();
        device.restore(snapshot).expect("its own snapshot");
        device
    };
    let (filled, now) = written(&parameters, 0.0);
    let filled = filled.snapshot().expect("flash has snapshots");
    let a2 = Load::on(&parameters, 900_000, 1e4, 0.7).uniform(now);
    measure("A2 70/30, no cleaning", &a2, &|| restored(&filled));

    let (steady, now) = written(&parameters, 4.0);
    let steady = steady.snapshot().expect("flash has snapshots");
    let a3 = Load::on(&parameters, 2_000_000, 1e3, 0.0).uniform(now);
    measure("A3 writes, steady cleaning", &a3, &|| restored(&steady));
    let a5s = Load::on(&parameters, 2_000_000, 2e3, 0.7).uniform(now);
    measure("A5s 70/30, steady cleaning", &a5s, &|| restored(&steady));
}

fn large() {
    let parameters = configuration_a_of_1_tib();
    let clock = Instant::now();
    let start = cpu_seconds(clock);
    let mut device = build(&parameters, 1).expect("a device that can exist");
    device.precondition(1.0, true, 1);
    let constructed_s = cpu_seconds(clock) - start;
    let peak = peak_gib();
    let mut now = 0;
    // The first window, then a long run.
    for (window, requests) in [("first", 4_000_000), ("long run", 60_000_000)] {
        let (mut seconds, mut done) = (0.0, 0);
        device.reset_counts();
        while done < requests {
            let mut load = Load::on(&parameters, 4_000_000, 1e3, 0.0);
            load.seed = 11 + done + requests;
            let trace = load.uniform(now);
            now = trace.span().0;
            let start = cpu_seconds(clock);
            run(device.as_mut(), &trace);
            seconds += cpu_seconds(clock) - start;
            done += load.requests;
        }
        let (rate, waf) = (done as f64 / seconds / 1e6, device.counts().write_amplification());
        println!(
            "1 TiB steady cleaning, {window}: {rate:.2} M requests/s per core, WAF {waf:.3}, \
             constructed in {constructed_s:.1} s of CPU time, {peak:.2} GiB"
        );
    }
}

fn main() {
    small();
    if std::env::var_os("LARGE").is_some() {
        large();
    } else {
        println!("skipped: the device of 1 TiB; LARGE=1 measures it");
    }
}
