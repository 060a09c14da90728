//! A log over the log of a flash device: when the device amplifies what the upper log writes, and
//! by how much both do together (Yang et al., "Don't stack your log on your log", INFLOW 2014).

use host::file_system::log_structured::segments::{Cleaning, Log, Policy, Shape};
use model::flash::FlashDevice;
use model::flash::reference::configuration_a;
use profile::flash::{GcPolicy, Geometry};
use stats::rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

/// Pages of an erase block.
const BLOCK: u32 = 64;

/// A plane of `pages` logical pages and 3 % more erase blocks than they need.
fn device(pages: u32) -> Box<dyn FlashDevice> {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: (pages / BLOCK) * 103 / 100 + 3,
        pages_per_block: BLOCK,
        page_bytes: 4096,
    };
    parameters.logical_pages = pages;
    parameters.gc.policy = GcPolicy::Greedy;
    parameters.gc.low_blocks = 2;
    parameters.gc.separate = false;
    model::flash::build(&parameters, 1).expect("a device that can exist")
}

/// The upper log, the device below it, and what both wrote.
struct Stacked {
    log: Log,
    device: Box<dyn FlashDevice>,
    now_ns: u64,
}

impl Stacked {
    /// Segments of `segment` blocks on about 16,384 pages.
    fn new(segment: u32, logs: usize, policy: Policy) -> Self {
        let segments = 16_384 / segment;
        let shape = Shape { segments, segment_blocks: segment, logs, holds_dead: false };
        let reserved_segments = logs as u32 + 1;
        let log = Log::new(shape, Cleaning { policy, reserved_segments, batch: 1 });
        // Whole erase blocks, so that the device is not larger than the log.
        let device = device((segments * segment).next_multiple_of(BLOCK));
        Self { log, device, now_ns: 0 }
    }

    fn write(&mut self, block: u32) {
        let mut places = Vec::new();
        let place = self.log.write(block, self.now_ns, |_, to| places.push(to)).expect("room");
        places.push(place);
        for place in places {
            self.now_ns += 1_000_000_000;
            let due = Nanos(self.now_ns);
            let offset = Bytes(u64::from(place) * 4096);
            let request = Request { due, offset, len: 4096, op: Op::Write, stream: 0 };
            self.device.submit(due, &request);
        }
    }

    /// Fills 70 % and overwrites: amplification of the log, of the device, of both.
    fn run(mut self, pick: impl Fn(u64, u32) -> u32) -> [f64; 3] {
        let shape = self.log.store().shape();
        let live = (f64::from(shape.segments * shape.segment_blocks) * 0.7) as u32;
        let turns = 8 * u64::from(live);
        (0..live).for_each(|block| self.write(block));
        (0..turns).for_each(|turn| self.write(pick(turn, live)));
        self.device.reset_counts();
        let before = self.log.counts();
        (turns..2 * turns).for_each(|turn| self.write(pick(turn, live)));
        let after = self.log.counts();
        let user = (after.user_blocks - before.user_blocks) as f64;
        let moved = (after.moved_blocks - before.moved_blocks) as f64;
        let counts = self.device.counts();
        let both = counts.programmed_pages() as f64 / user;
        [(user + moved) / user, counts.write_amplification(), both]
    }
}

fn uniform(turn: u64, live: u32) -> u32 {
    (rng::at(31, turn) % u64::from(live)) as u32
}

/// 90 % of the writes go to 10 % of the blocks.
fn hot_and_cold(turn: u64, live: u32) -> u32 {
    let (hot, draw) = (live / 10, rng::at(32, turn));
    if rng::at(33, turn) % 10 < 9 {
        (draw % u64::from(hot)) as u32
    } else {
        hot + (draw % u64::from(live - hot)) as u32
    }
}

#[test]
fn whole_erase_blocks_in_one_stream_are_amplified_by_one() {
    // u = exp(-a (1 - u)) of the upper log, two segments of which are counted out.
    for (factor, policy) in [
        (1, Policy::OldestFirst),
        (2, Policy::OldestFirst),
        (4, Policy::OldestFirst),
        (2, Policy::Greedy),
    ] {
        let segment = factor * BLOCK;
        let [host, device, both] = Stacked::new(segment, 1, policy).run(uniform);
        assert_eq!(device, 1.0, "segments of {factor} erase blocks, {policy:?}");
        assert!((both / host - 1.0).abs() < 1e-12, "{both}, not {host}");
        let segments = f64::from(16_384 / segment);
        let fill = 0.7 * segments / (segments - 2.0);
        let mut u = 0.0_f64;
        (0..10_000).for_each(|_| u = (-(1.0 - u) / fill).exp());
        let form = 1.0 / (1.0 - u);
        assert!((both / form - 1.0).abs() < 0.05, "both {both}, closed form of the upper {form}");
    }
}

#[test]
fn segments_that_are_no_whole_erase_blocks_are_amplified() {
    // Greedy: segments are used again in no order, so that erase blocks die in parts.
    for segment in [24, 40, 96, 160] {
        let [host, device, both] = Stacked::new(segment, 1, Policy::Greedy).run(hot_and_cold);
        assert!(device > 1.5, "segments of {segment} pages: {device}");
        assert!((both / (host * device) - 1.0).abs() < 0.05, "{both}, not {host} x {device}");
    }
}

#[test]
fn streams_that_interleave_are_amplified() {
    for (logs, pick) in [(2, hot_and_cold as fn(u64, u32) -> u32), (3, hot_and_cold)] {
        let [host, device, both] = Stacked::new(2 * BLOCK, logs, Policy::Greedy).run(pick);
        assert!(device > 1.02, "{logs} logs: {device}");
        assert!((both / (host * device) - 1.0).abs() < 0.05, "{both}, not {host} x {device}");
        let [_, alone, _] = Stacked::new(2 * BLOCK, 1, Policy::Greedy).run(pick);
        assert_eq!(alone, 1.0);
    }
}
