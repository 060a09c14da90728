//! A device model from a TOML text of one's own: `cargo run -p model --example from_toml`.
//!
//! Random reads of 4 KiB, first one at a time, then eight at once: a drive with four parallel units
//! serves them four times as fast, not eight times.

use model::Device;
use profile::Profile;
use trace::{Op, Request};
use units::{Bytes, Nanos};

const DRIVE: &str = r#"
[profile]
name = "mine"
description = "A drive with four parallel units"
class = "ssd"
sources = ["made up"]

[state]
condition = "steady"
measured = "2026"

[device]
kind = "linear"
capacity = "64GiB"
parallelism = { value = 4, source = "made up", assumed = true }

[device.read.sequential]
base_us = { value = 80, source = "made up", assumed = true }
us_per_kib = { value = 1, source = "made up", assumed = true }

[device.read.random]
base_us = { value = 80, source = "made up", assumed = true }
us_per_kib = { value = 1, source = "made up", assumed = true }

[device.write.sequential]
base_us = { value = 30, source = "made up", assumed = true }
us_per_kib = { value = 1, source = "made up", assumed = true }

[device.write.random]
base_us = { value = 30, source = "made up", assumed = true }
us_per_kib = { value = 1, source = "made up", assumed = true }

[device.flush]
base_us = { value = 100, source = "made up", assumed = true }
"#;

/// Reads per second with `depth` requests in flight.
fn reads_per_s(profile: &Profile, depth: u64) -> f64 {
    const READS: u64 = 4000;
    let mut device = model::device(profile, 1);
    let (mut now, mut in_flight) = (0, std::collections::BinaryHeap::new());
    for index in 0..READS {
        if index >= depth {
            // The earliest completion makes room for the next request.
            let std::cmp::Reverse(first) = in_flight.pop().expect("requests in flight");
            now = first;
        }
        let offset = Bytes(index * 7919 % 65536 * 4096);
        let request = Request { due: Nanos(now), offset, len: 4096, op: Op::Read, stream: 0 };
        in_flight.push(std::cmp::Reverse(device.submit(Nanos(now), &request).0));
    }
    READS as f64 / (now as f64 / 1e9)
}

fn main() {
    let profile = Profile::from_toml(DRIVE, "mine.toml").expect("a sound profile");
    let (one, eight) = (reads_per_s(&profile, 1), reads_per_s(&profile, 8));
    println!("1 request in flight: {one:.0} reads/s; 8: {eight:.0} reads/s");
    // A read takes 80 + 4 us.
    assert!((one / (1e6 / 84.0) - 1.0).abs() < 0.01, "{one}");
    assert!((eight / one - 4.0).abs() < 0.05, "{eight} to {one}");
}
