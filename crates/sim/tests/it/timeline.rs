//! Timelines, read back from the file that people open.

use std::collections::BTreeMap;

use model::observe::Cause;
use model::{Device, Linear, Ram, WriteCache};
use profile::Profile;
use profile::ram::RamParameters;
use serde_json::Value;
use sim::timeline::{Timeline, write};
use sim::{Outcome, Watched, replay, replay_with};
use trace::Trace;

use crate::load;

fn devices() -> Vec<(&'static str, Box<dyn Device>)> {
    let ram = RamParameters { capacity: None, latency_ns: 9e3, bytes_per_s: 5e8, ports: 2 };
    let text = profile::find_shipped("mtron-pro-7500").expect("it ships");
    let cache = load::cache();
    vec![
        ("mtron", model::device(&Profile::from_toml(text, "mtron").expect("it is sound"), 1)),
        ("cached \"rich\"\\", Box::new(WriteCache::new(Linear::new(&load::linear(), 2), &cache))),
        ("ram", Box::new(Ram::new(&ram))),
    ]
}

fn watched(device: &mut dyn Device, trace: &Trace, timeline: &mut Timeline) -> Outcome {
    let watched = Watched { probe: Some(timeline), breakdown: true, ..Watched::default() };
    replay_with(device, trace, watched).expect("nobody stops it")
}

/// A time of the file, ns, exactly.
fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}

fn parsed(devices: &[(&str, &Timeline)], trace: &Trace) -> Vec<Value> {
    let mut text = String::new();
    write(devices, trace, &mut |piece| text.push_str(piece));
    let mut file: Value = serde_json::from_str(&text).expect("it is JSON");
    match file["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("not a list: {other}"),
    }
}

#[test]
fn what_is_watched_changes_no_figure() {
    let trace = load::oltp(20_000, 4, 0.3);
    for ((name, mut device), (_, mut unwatched)) in devices().into_iter().zip(devices()) {
        let mut timeline = Timeline::new(0..u64::MAX, usize::MAX);
        let mut outcome = watched(device.as_mut(), &trace, &mut timeline);
        let breakdown = outcome.breakdown.take().expect("it was asked for");
        assert_eq!(outcome, replay(unwatched.as_mut(), &trace), "{name}");
        let mean = outcome.response().mean();
        assert_eq!(breakdown.all.requests, outcome.requests);
        assert!((breakdown.all.mean_ns / mean - 1.0).abs() < 1e-9, "{name}");
        let parts: f64 = breakdown.slowest.parts.iter().map(|part| part.mean_ns).sum();
        assert!((parts / breakdown.slowest.mean_ns - 1.0).abs() < 1e-9, "{name}");
        assert!(breakdown.slowest.mean_ns >= outcome.response().quantile(0.99) as f64 * 0.98);
        assert_eq!(breakdown.all.of(Cause::Unknown), 0.0);
    }
}

#[test]
fn tracks_do_one_thing_at_a_time_and_requests_are_whole() {
    let trace = load::oltp(5_000, 4, 0.3);
    let mut watched_devices = devices();
    let timelines: Vec<(&str, Timeline, Outcome)> = watched_devices
        .iter_mut()
        .map(|(name, device)| {
            let mut timeline = Timeline::new(0..u64::MAX, usize::MAX);
            let outcome = watched(device.as_mut(), &trace, &mut timeline);
            (*name, timeline, outcome)
        })
        .collect();
    let named: Vec<(&str, &Timeline)> =
        timelines.iter().map(|(name, timeline, _)| (*name, timeline)).collect();
    let mut busy: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut open: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut response_sums = [0u128; 3];
    let mut medium_ns = [0u64; 3];
    let mut names = Vec::new();
    for event in parsed(&named, &trace) {
        let pid = event["pid"].as_u64().expect("a device");
        let device = pid as usize - 1;
        match event["ph"].as_str().expect("a phase") {
            "X" => {
                let start = ns(&event["ts"]);
                let track = (pid, event["tid"].as_u64().expect("a track"));
                busy.entry(track).or_default().push((start, start + ns(&event["dur"])));
            }
            "b" => {
                let args = event["args"].as_object().expect("arguments");
                let path: u64 =
                    args.iter().filter(|(key, _)| key.ends_with("_us")).map(|(_, v)| ns(v)).sum();
                medium_ns[device] += args.get("medium_us").map_or(0, ns);
                let key = (pid, event["id"].as_u64().expect("a request"));
                assert!(open.insert(key, ns(&event["ts"]) + path).is_none());
            }
            "e" => {
                let key = (pid, event["id"].as_u64().expect("a request"));
                let end = open.remove(&key).expect("it began");
                assert_eq!(end, ns(&event["ts"]), "the path ends when the request does");
                response_sums[device] += u128::from(end - trace.due[key.1 as usize]);
            }
            "M" if event["name"] == "process_name" => {
                names.push(event["args"]["name"].as_str().expect("a name").to_owned());
            }
            "M" | "C" => {}
            other => panic!("an unknown phase {other}"),
        }
    }
    assert_eq!(names, ["mtron", "cached \"rich\"\\", "ram"]);
    assert!(open.is_empty(), "every request ends");
    for (track, spans) in &mut busy {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{track:?} overlaps");
    }
    for ((_, _, outcome), sum) in timelines.iter().zip(response_sums) {
        assert_eq!(outcome.response().sum(), sum);
    }
    // A server works on a request for its service time, and the timeline shows all of them: the
    // paths' time in the medium is that of the spans that serve requests.
    for (device, (_, timeline, _)) in timelines.iter().enumerate().take(2) {
        let of_requests = timeline.spans().iter().map(|(span, _)| span).filter(|span| {
            span.track.kind == model::observe::TrackKind::Server
                && span.purpose == model::observe::Purpose::Request
        });
        let sum: u64 = of_requests.map(|span| span.end_ns - span.start_ns).sum();
        assert_eq!(sum, medium_ns[device]);
    }
}

#[test]
fn a_window_and_a_limit_bound_the_file() {
    let trace = load::oltp(5_000, 4, 0.3);
    let run = |window, most| {
        let mut timeline = Timeline::new(window, most);
        let (_, mut device) = devices().remove(0);
        watched(device.as_mut(), &trace, &mut timeline);
        timeline
    };
    let middle = trace.due[2_500];
    let windowed = run(middle..middle + 1_000_000, usize::MAX);
    assert!(!windowed.spans().is_empty() && windowed.left_out() == 0);
    for (span, _) in windowed.spans() {
        assert!(span.start_ns < middle + 1_000_000 && span.end_ns > middle);
    }
    let limited = run(0..u64::MAX, 100);
    let all = run(0..u64::MAX, usize::MAX);
    assert_eq!(all.left_out(), 0);
    assert!(limited.spans().len() <= 100 && limited.left_out() > 1_000);
    let events = parsed(&[("limited", &limited)], &trace);
    let kept = events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "b").count();
    assert_eq!(kept, 100);
}

#[test]
fn a_replay_stops_where_it_is_told() {
    let trace = load::oltp(5_000, 4, 0.3);
    let mut seen = Vec::new();
    let mut stop = |position: sim::Position| {
        seen.push(position.requests);
        if position.requests >= 2_000 {
            return std::ops::ControlFlow::Break(());
        }
        std::ops::ControlFlow::Continue(())
    };
    let (_, mut device) = devices().remove(0);
    let watched = Watched { progress: Some(&mut stop), ..Watched::default() };
    assert_eq!(replay_with(device.as_mut(), &trace, watched), None);
    assert_eq!(seen, [1024, 2048]);
}
