//! A trace in parts gives the figures of the whole, wherever it is cut.

use std::convert::Infallible;
use std::ops::ControlFlow;

use model::Device;
use profile::Profile;
use sim::{Outcome, Watched, replay_parts, replay_with};
use stats::rng::Rng;
use trace::{Op, Outline, Parts, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// A trace that is handed over in parts of this many requests.
struct Cut(Trace, usize);

impl Parts<Infallible> for Cut {
    fn outline(&self) -> Outline {
        Parts::<Infallible>::outline(&self.0)
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<(), Infallible> {
        for start in (0..self.0.count()).step_by(self.1) {
            let mut part = Trace { streams: self.0.streams.clone(), ..Trace::default() };
            part.extend_rows(&self.0, start..(start + self.1).min(self.0.count()));
            if take(&part).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Bursts of reads and writes that keep a queue.
fn load(count: u64) -> Trace {
    let mut rng = Rng::new(11);
    let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec();
    let mut trace = Trace { streams, ..Trace::default() };
    for k in 0..count {
        let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
        let (due, offset) = (Nanos(k / 16 * 4_000_000), Bytes(rng.below(1 << 17) * 4096));
        trace.push(Request { due, offset, len: 8192, op, stream: (k % 2) as u16 });
    }
    trace
}

fn device(name: &str) -> Box<dyn Device> {
    let text = profile::find_shipped(name).expect("it ships");
    model::device(&Profile::from_toml(text, name).expect("it is sound"), 1)
}

#[track_caller]
fn check(name: &str, is_queued: bool) {
    assert_eq!(device(name).queued().is_some(), is_queued, "{name}");
    let trace = load(9_000);
    // None; within a batch and a part; and all of it.
    for (warm_up_ns, sizes) in [(0, [1, 1000]), (1_100_000_001, [4100, 37]), (u64::MAX, [500, 1])] {
        // Both ways of asking a device, each with and without a warm-up.
        for breakdown in if warm_up_ns == u64::MAX { vec![false] } else { vec![false, true] } {
            let watched = || Watched { breakdown, warm_up_ns, ..Watched::default() };
            let whole = replay_with(device(name).as_mut(), &trace, watched()).expect("runs");
            for size in sizes {
                let cut = Cut(trace.clone(), size);
                let Ok(found) = replay_parts(device(name).as_mut(), &cut, watched());
                let found: Outcome = found.expect("nobody stops it");
                assert_eq!(found, whole, "{name}, parts of {size}, warm-up {warm_up_ns}");
            }
        }
    }
}

#[test]
fn devices_that_answer_at_once_do_not_notice() {
    check("micron-7400", false);
    check("intel-320", false);
    check("generic-slc-8g", false);
}

#[test]
fn devices_that_look_at_their_queue_do_not_notice() {
    check("intel-x25-e-ftl", true);
    check("hgst-hds72107", true);
}
