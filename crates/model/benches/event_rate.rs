//! The event model of flash on configuration A: requests per second of one core, by CPU time, and
//! the same load by timelines in the same run.

use std::time::Instant;

use model::Device;
use model::flash::build;
use model::flash::reference::{Load, configuration_a};
use profile::flash::{EventParameters, FlashParameters, GcMode, Suspend};
use trace::Trace;

/// Seconds of CPU time that this thread has used; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

fn run(device: &mut dyn Device, trace: &Trace) -> f64 {
    let mut completions = vec![0; trace.count()];
    let start = Instant::now();
    let before = cpu_seconds(start);
    device.submit_due(trace, 0..trace.count(), &mut completions);
    trace.count() as f64 / (cpu_seconds(start) - before) / 1e6
}

/// Median of three fresh devices, filled by writing all pages and overwriting as many again.
fn measure(name: &str, parameters: &FlashParameters, load: &Load, steady: bool) {
    let mut rates: Vec<f64> = (0..3)
        .map(|_| {
            let mut device = build(parameters, 1).expect("a device");
            let mut fill = Load::on(parameters, u64::from(parameters.logical_pages), 1e4, 0.0);
            let mut idle = 0;
            if steady {
                let mut done = vec![0; fill.requests as usize];
                device.submit_due(&fill.sequential(0), 0..done.len(), &mut done);
                idle = done.iter().max().copied().unwrap_or(0);
                fill.per_s = 1e3;
                device.submit_due(&fill.uniform(idle), 0..done.len(), &mut done);
                idle = done.iter().max().copied().unwrap_or(0);
            }
            run(device.as_mut(), &load.uniform(idle))
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{name:<48} {:>6.2} M requests/s per core", rates[1]);
}

fn main() {
    let timelines = configuration_a();
    let plain = FlashParameters { events: Some(EventParameters::default()), ..timelines.clone() };
    let mut full = timelines.clone();
    full.gc.mode = GcMode::Incremental { pages_per_write: 4 };
    full.events = Some(EventParameters {
        depth: 256,
        host_queues: 4,
        reads_first: true,
        suspend: Some(Suspend { suspend_ns: 20_000, resume_ns: 30_000, most: 4 }),
        read_retries: vec![0.02, 0.005],
        map_cache_pages: Some(1024),
    });
    let a1 = Load::on(&timelines, 1_000_000, 5e3, 0.0);
    let a5s = Load::on(&timelines, 1_000_000, 3e3, 0.7);
    for (name, parameters) in
        [("timelines", &timelines), ("events, plain", &plain), ("events, everything", &full)]
    {
        measure(&format!("{name}: A1 writes, no cleaning"), parameters, &a1, false);
        measure(&format!("{name}: A5s 70/30, steady cleaning"), parameters, &a5s, true);
    }
}
