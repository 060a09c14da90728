//! Devices side by side: the same bytes however many threads, nothing half done.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use events::{Event, Quiet, Sink};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::*;
use crate::profiles::read_profile;

const NAMES: [&str; 5] =
    ["mtron-pro-7500", "intel-x25-e", "samsung-860-qvo", "intel-p3700", "fuji-xerox-gigaexpress"];

fn target(name: &str) -> Devices {
    Devices::alone(read_profile(name).expect("it ships"))
}

fn targets() -> Vec<Devices> {
    NAMES.iter().map(|name| target(name)).collect()
}

fn load(count: usize) -> Trace {
    let mut rng = Rng::new(9);
    let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec();
    let mut trace = Trace { streams, ..Trace::default() };
    let (mut now, mut log) = (0, 1u64 << 32);
    for _ in 0..count {
        now += rng.below(400_000);
        let (due, is_log) = (Nanos(now), rng.below(3) == 0);
        let op = if is_log || rng.below(4) == 0 { Op::Write } else { Op::Read };
        let offset = if is_log { log } else { rng.below(1 << 18) * 4096 };
        log += u64::from(is_log) * 4096;
        let stream = u16::from(is_log);
        trace.push(Request { due, offset: Bytes(offset), len: 4096, op, stream });
    }
    trace
}

fn comparison<'a>(
    trace: &'a Trace,
    targets: &'a [Devices],
    window: &'a Range<u64>,
    threads: usize,
) -> Comparison<'a> {
    Comparison {
        trace,
        targets,
        seed: 3,
        closed: false,
        warm_up_ns: 0,
        threads,
        timeline: Some((window, 10_000)),
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let (trace, targets, window) = (load(20_000), targets(), 0..100_000_000);
    let bytes = |threads| {
        let found = compare(&comparison(&trace, &targets, &window, threads), &Quiet).unwrap();
        assert!(!found.interrupted);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("timeline.json");
        write_timeline(&path, &found, &trace).unwrap();
        let html = report::html(&page(&found, &targets, "a trace"));
        let rows = text(&found.devices);
        (serde_json::to_string(&found.devices).unwrap(), std::fs::read(path).unwrap(), html, rows)
    };
    let one = bytes(1);
    for threads in [2, 3, 16] {
        assert!(bytes(threads) == one, "{threads} threads");
    }
    for name in NAMES {
        assert!(one.0.contains(name) && one.2.contains(name) && one.3[0].contains(&name.into()));
    }
    assert!(one.3.iter().any(|row| row[1] == "in queue" && row[0] == "slowest 1 %"), "{:?}", one.3);
}

#[test]
fn operations_are_summed_over_their_streams() {
    let (trace, targets, window) = (load(5_000), targets(), 0..1_000_000);
    let found = compare(&comparison(&trace, &targets, &window, 1), &Quiet).unwrap();
    let rows = text(&found.devices);
    let requests = |is_in: &dyn Fn(&str) -> bool| -> u64 {
        let counts = rows.iter().filter(|row| row[1] == "requests" && is_in(&row[0]));
        counts.map(|row| row[2].parse::<u64>().unwrap()).sum()
    };
    let writes = requests(&|name| name.starts_with("write ") && name != "write all");
    assert!(writes > 0 && requests(&|name| name == "write all") == writes, "{rows:?}");
}

/// Says stop once this many devices have been asked about often enough to be done.
struct StopAfter(AtomicUsize);

impl Sink for StopAfter {
    fn emit(&self, _event: Event) {}
    fn cancelled(&self) -> bool {
        // 20,000 requests are 20 batches, and each device asks once before it starts.
        self.0.fetch_add(1, Ordering::Relaxed) >= 2 * 21 + 5
    }
}

#[test]
fn stopping_keeps_the_devices_that_are_done() {
    let (trace, targets, window) = (load(20_000), targets(), 0..1_000_000);
    let comparison = comparison(&trace, &targets, &window, 1);
    let whole = compare(&comparison, &Quiet).unwrap();
    let found = compare(&comparison, &StopAfter(AtomicUsize::new(0))).unwrap();
    assert!(found.interrupted);
    assert_eq!(found.devices, whole.devices[..2]);
    assert_eq!(found.timelines.len(), 2);
}

/// The last of several devices is too small: nothing runs, one error says which.
#[test]
fn a_trace_beyond_one_device_stops_before_anything_runs() {
    let (mut trace, window) = (load(10), 0..1);
    let targets = [target("intel-p3700"), target("mtron-pro-7500")];
    trace.offset[7] = 100 << 30;
    let error = compare(&comparison(&trace, &targets, &window, 2), &Quiet).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("on mtron-pro-7500: request 7 ends at byte"), "{text}");
    assert!(events::Hint::hint(&error).unwrap().contains("larger capacity"));
    let trace = load(10);
    let closed = Comparison { closed: true, ..comparison(&trace, &targets, &window, 2) };
    let error = compare(&closed, &Quiet).unwrap_err();
    assert!(matches!(error, Error::Sim(sim::Error::NotObserved)), "{error}");
}

#[test]
fn a_timeline_that_is_cut_warns_and_compresses() {
    struct Warned(Mutex<Vec<String>>);
    impl Sink for Warned {
        fn emit(&self, event: Event) {
            if let Event::Warning(warning) = event {
                self.0.lock().unwrap().push(warning.code);
            }
        }
    }
    let (trace, targets, window) = (load(20_000), targets(), 0..u64::MAX);
    let sink = Warned(Mutex::default());
    let found = compare(&comparison(&trace, &targets[..1], &window, 1), &sink).unwrap();
    // The load is more than the drive can serve, which is told too.
    assert_eq!(*sink.0.lock().unwrap(), ["overloaded", "timeline_cut"]);
    let directory = tempfile::tempdir().unwrap();
    let (plain, packed) = (directory.path().join("t.json"), directory.path().join("t.json.gz"));
    write_timeline(&plain, &found, &trace).unwrap();
    write_timeline(&packed, &found, &trace).unwrap();
    let mut unpacked = String::new();
    let file = std::fs::File::open(&packed).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, std::fs::read_to_string(plain).unwrap());
    let events: serde_json::Value = serde_json::from_str(&unpacked).unwrap();
    assert!(events["traceEvents"].as_array().unwrap().len() > 10_000);
    let absent = directory.path().join("absent/t.json");
    assert!(matches!(write_timeline(&absent, &found, &trace), Err(Error::Io { .. })));
}

/// Keeps the codes of the warnings.
#[derive(Default)]
struct Warnings(Mutex<Vec<&'static str>>);

impl Sink for Warnings {
    fn emit(&self, event: Event) {
        if let Event::Warning(warning) = event {
            let code = ["overloaded"].into_iter().find(|code| *code == warning.code);
            self.0.lock().unwrap().extend(code);
        }
    }
}

/// A 7200 rpm disk at 5,000 random requests/s falls behind; at one in 200 ms it does not.
#[test]
fn a_device_that_falls_behind_is_said_to() {
    let targets = [target("hgst-hds72107")];
    let window = 0..1;
    let found = |trace: &Trace| {
        let said = Warnings::default();
        let compared = compare(&comparison(trace, &targets, &window, 1), &said).unwrap();
        let rows = text(&compared.devices);
        let row = rows.iter().find(|row| row[0] == "requests" && row[1] == "offered").cloned();
        (said.0.into_inner().unwrap(), row)
    };
    let busy = load(5_000);
    let mut idle = load(5_000);
    idle.due.iter_mut().for_each(|due| *due *= 1_000);
    let (said, row) = found(&busy);
    assert_eq!(said, ["overloaded"]);
    let offered = 5_000.0 / (busy.span().0 as f64 / 1e9);
    assert_eq!(row.unwrap()[2], format!("{}/s", report::format::count(offered)));
    assert_eq!(found(&idle), (vec![], None));
}
