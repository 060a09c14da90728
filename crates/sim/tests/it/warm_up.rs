//! Requests of the warm-up reach the device, and no figure of the run.

use profile::Profile;
use sim::{Outcome, Watched, replay_with};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Random writes, with a read now and then, over the whole of the small flash device.
fn load(count: u64) -> Trace {
    let mut rng = Rng::new(5);
    let streams = vec![Stream { name: "data".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    for k in 0..count {
        let op = if rng.below(10) == 0 { Op::Read } else { Op::Write };
        let offset = Bytes(rng.below(1_703_936) * 4096);
        trace.push(Request { due: Nanos(k * 2_000_000), offset, len: 4096, op, stream: 0 });
    }
    trace
}

fn flash() -> Profile {
    let text = profile::find_shipped("generic-slc-8g").expect("it ships");
    Profile::from_toml(text, "generic-slc-8g").expect("it is sound")
}

fn run(trace: &Trace, warm_up_ns: u64) -> Outcome {
    let mut device = model::device(&flash(), 1);
    let watched = Watched { breakdown: true, warm_up_ns, ..Watched::default() };
    replay_with(device.as_mut(), trace, watched).expect("nobody stops it")
}

#[test]
fn all_requests_reach_the_device_and_those_after_the_warm_up_are_counted() {
    let trace = load(20_000);
    // Between two requests, and within a batch.
    let (cut, warm_up_ns) = (7_001, 7_000 * 2_000_000 + 1);
    let (whole, part) = (run(&trace, 0), run(&trace, warm_up_ns));
    assert_eq!((part.requests, part.warm_up_requests), (20_000 - cut, cut));
    assert_eq!(part.response().count(), 20_000 - cut);
    assert_eq!(part.intervals.iter().map(|own| own.requests).sum::<u64>(), 20_000 - cut);
    assert!(part.intervals.iter().all(|own| own.at_s >= warm_up_ns as f64 / 1e9));
    assert_eq!(part.breakdown.as_ref().expect("asked for").all.requests, 20_000 - cut);
    assert_eq!((part.span_ns, &part.counters), (whole.span_ns, &whole.counters));
    assert!((part.offered_per_s() / 500.0 - 1.0).abs() < 1e-3, "{}", part.offered_per_s());
    // A warm-up that ends before the second request leaves all but the first.
    assert_eq!(run(&trace, 1).requests, 19_999);
    assert_eq!(run(&trace, u64::MAX).requests, 0);
}

#[test]
fn marks_tell_what_was_written_until_then() {
    let trace = load(20_000);
    let cut = 7_001;
    let outcome = run(&trace, 7_000 * 2_000_000 + 1);
    let written = |until: usize| -> u64 {
        let requests = trace.op[..until].iter().zip(&trace.len[..until]);
        requests.filter(|(op, _)| **op == Op::Write).map(|(_, len)| u64::from(*len)).sum()
    };
    let (first, last) = (outcome.wear[0], *outcome.wear.last().expect("marks"));
    assert_eq!((first.written_bytes, last.written_bytes), (written(cut), written(20_000)));
    assert!((12..=18).contains(&outcome.wear.len()), "{}", outcome.wear.len());
    for pair in outcome.wear.windows(2) {
        assert!(pair[0].at_s < pair[1].at_s && pair[0].written_bytes < pair[1].written_bytes);
    }
    let flash = last.flash.expect("it is flash");
    assert_eq!(flash.programmed_bytes, outcome.counters["nand_written_bytes"]);
    assert_eq!(flash.erased_blocks, outcome.counters["erased_blocks"]);
    assert!(flash.erased_blocks > 0 && flash.least_worn_erases <= flash.most_worn_erases);
    assert!(first.flash.expect("it is flash").erased_blocks < flash.erased_blocks);
}
