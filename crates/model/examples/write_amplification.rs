//! Write amplification of a flash drive against its closed form:
//! `cargo run -p model --example write_amplification`.
//!
//! A plane is written over at random until its state no longer depends on the fill; then pages
//! programmed per page written are counted and compared with the mean field of greedy cleaning
//! ([`model::flash::theory::greedy`]).

use model::flash::reference::configuration_a;
use model::flash::{build, theory};
use profile::flash::{GcPolicy, Geometry};
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

const BLOCKS: u32 = 512;
const PAGES_PER_BLOCK: u32 = 32;
const OVER_PROVISIONING: f64 = 0.25;

fn main() {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: BLOCKS + 3,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: 4096,
    };
    let fill = theory::fill_factor(OVER_PROVISIONING);
    parameters.logical_pages = (f64::from(BLOCKS * PAGES_PER_BLOCK) * fill).round() as u32;
    parameters.gc.policy = GcPolicy::Greedy;
    parameters.gc.low_blocks = 2;
    parameters.gc.separate = false;
    let mut device = build(&parameters, 1).expect("a device that can exist");
    let mut rng = Rng::new(1);
    let pages = u64::from(parameters.logical_pages);
    for index in 0..9 * pages {
        if index == 5 * pages {
            device.reset_counts();
        }
        // One write a second: the device is idle in between.
        let now = Nanos(index * 1_000_000_000);
        let page = if index < pages { index } else { rng.below(pages) };
        let offset = Bytes(page * 4096);
        device.submit(now, &Request { due: now, offset, len: 4096, op: Op::Write, stream: 0 });
    }
    let counts = device.counts();
    let measured = counts.write_amplification();
    // Cleaning keeps a few blocks free; the form is of the blocks that are in use.
    let in_use = counts.in_use_pages_mean().expect("it cleaned");
    let expected = theory::greedy(pages as f64 / in_use, PAGES_PER_BLOCK);
    println!("write amplification {measured:.3}, by the closed form {expected:.3}");
    assert!((measured / expected - 1.0).abs() < 0.02, "{measured} against {expected}");
}
