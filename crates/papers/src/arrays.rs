//! Petrov et al. 2010: software and hardware RAID 0 of two and four X25-E behind one and two
//! controllers.
//!
//! The drive is a line with the slides' figures of a single drive. The controller has four
//! ceilings, commands and bandwidth of reads and of writes, and all four are from one configuration
//! of the table: one controller with four drives as its own RAID 0, random requests of 4 KiB and
//! sequential ones of 256 KiB. A command for a simple volume takes less of it than one for an array
//! of its own; how much less is from random requests of 4 KiB to simple volumes of one controller.
//! The slides do not say how many requests were in flight where they print latencies; Little's law
//! gives that number, from the first configuration. Those ten figures are inputs; every other one
//! of the table is predicted.

use host::volume::{Controller, Level, Settings, Volume};
use model::{Device, Linear};
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed, Pattern};
use sim::{DepthOutcome, Synthetic, closed_loop_depth};
use units::Bytes;

use crate::load::{KIB, mean_ms};
use crate::{Effort, Found, Paper};

/// What is above the drives: name in the table, and how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    /// One controller, two drives, hardware RAID 0.
    Two,
    /// One controller, four drives, hardware RAID 0.
    OneHard,
    /// One controller, four drives, software RAID 0 over simple volumes.
    OneSoft,
    /// Two controllers, two drives each, software RAID 0 over two hardware RAID 0.
    TwoHard,
    /// Two controllers, two drives each, software RAID 0 over simple volumes.
    TwoSoft,
}

const ARRAYS: [(&str, Array); 4] = [
    ("c1_hw", Array::OneHard),
    ("c1_sw", Array::OneSoft),
    ("c2_swhw", Array::TwoHard),
    ("c2_sw", Array::TwoSoft),
];
const OPS: [&str; 2] = ["read", "write"];
/// The slides name no stripe size: the usual one of such controllers.
const CHUNK: u64 = 64 << 10;
/// Requests in flight where a throughput is asked for.
const DEEP: [(Pattern, usize); 2] = [(Pattern::Sequential, 16), (Pattern::Random, 64)];

/// The figures of a single drive and of the configuration that the controller is made from.
struct Facts<'a>(&'a Paper);

impl Facts<'_> {
    /// A figure of the hardware RAID 0 of four drives behind one controller.
    fn one(&self, figure: &str, at: usize) -> f64 {
        self.0.number(&format!("raid4.c1_hw.{figure}.{}", OPS[at]))
    }

    fn drive(&self, pattern: Pattern, seed: u64) -> Box<dyn Device> {
        let figure = |id: &str| self.0.number(id);
        let line = |at: usize| {
            let op = OPS[at];
            let mb_per_s = figure(&format!("spec.x25e_64.seq_{op}_bw"));
            let ns_per_byte = 1e3 / mb_per_s;
            let (kind, ceiling_iops, ceiling) = match pattern {
                Pattern::Sequential => ("seq", None, mb_per_s * 1e6),
                Pattern::Random => {
                    let iops = figure(&format!("random.4k.{op}"));
                    ("rand", Some(iops), figure(&format!("random.8k.{op}")) * 8192.0)
                }
            };
            let ms = figure(&format!("latency.avg.{kind}_{op}.wc_on"));
            let base_ns = ms * 1e6 - 4096.0 * ns_per_byte;
            Line { base_ns, ns_per_byte, ceiling_iops, ceiling_bytes_per_s: Some(ceiling) }
        };
        let parameters = LinearParameters {
            capacity: Some(Bytes(64_000_000_000 / CHUNK * CHUNK)),
            read: [line(0); 2],
            write: [line(1); 2],
            parallelism: 32,
            detection: Detection::PerStream,
            mixed: Mixed::default(),
            flush: Flush::default(),
            trim_ns: 0.0,
            residuals: Vec::new(),
        };
        Box::new(Linear::new(&parameters, seed))
    }

    /// A controller that stripes itself, or one that the host sees single drives behind.
    fn controller(&self, stripes: bool) -> Controller {
        let array = if stripes { "c1_hw" } else { "c1_sw" };
        let random = |op: &str| self.0.number(&format!("raid4.{array}.rand_throughput.4kb.{op}"));
        let [reads, writes] = OPS.map(random);
        let [read_mb, write_mb] = [0, 1].map(|at| self.one("seq_throughput.256kb", at));
        Controller {
            contexts: 1,
            command_ns: (1e9 / reads).round() as u64,
            bytes_per_s: read_mb * 1e6,
            write_command_ns: Some((1e9 / writes).round() as u64),
            write_bytes_per_s: Some(write_mb * 1e6),
            ..Controller::default()
        }
    }

    fn behind(&self, drives: usize, pattern: Pattern, controller: Controller) -> Box<dyn Device> {
        let members = (0..drives as u64).map(|seed| self.drive(pattern, seed)).collect();
        let settings = Settings {
            chunk_bytes: CHUNK,
            controller: Some(controller),
            ..Settings::new(Level::Raid0, drives)
        };
        Box::new(Volume::new(members, &settings).expect("a volume"))
    }

    fn array(&self, array: Array, pattern: Pattern) -> Box<dyn Device> {
        match array {
            Array::Two => self.behind(2, pattern, self.controller(true)),
            Array::OneHard | Array::OneSoft => {
                self.behind(4, pattern, self.controller(array == Array::OneHard))
            }
            Array::TwoHard | Array::TwoSoft => {
                let controller = self.controller(array == Array::TwoHard);
                let two = (0..2).map(|_| self.behind(2, pattern, controller.clone())).collect();
                // Software over hardware: a chunk is a whole stripe below. Over simple volumes: all
                // four in turn, which alternates between the controllers as well.
                let chunk_bytes = if array == Array::TwoHard { 2 * CHUNK } else { CHUNK };
                let depth = Some(usize::MAX);
                let settings = Settings { chunk_bytes, depth, ..Settings::new(Level::Raid0, 2) };
                Box::new(Volume::new(two, &settings).expect("a volume"))
            }
        }
    }

    /// Requests in flight where latencies were measured, by Little's law.
    fn in_flight(&self, pattern: Pattern, at: usize) -> usize {
        let per_ms = match pattern {
            Pattern::Random => self.one("rand_throughput.4kb", at) / 1e3,
            Pattern::Sequential => {
                self.one("seq_throughput.256kb", at) * 1e3 / f64::from(256 * KIB)
            }
        };
        let latency = match pattern {
            Pattern::Random => "rand_latency.4kb",
            Pattern::Sequential => "seq_latency.256kb",
        };
        (per_ms * self.one(latency, at)).round().max(1.0) as usize
    }
}

fn run(
    device: &mut dyn Device,
    (pattern, at, kib): (Pattern, usize, u32),
    depth: usize,
    effort: Effort,
) -> DepthOutcome {
    let capacity = device.capacity().expect("of drives").0;
    let bytes = kib * KIB;
    let count = effort.count(if pattern == Pattern::Random { 20_000 } else { 4000 });
    let load = Synthetic {
        range_bytes: capacity / u64::from(bytes) * u64::from(bytes),
        warm_up_requests: count / 10,
        ..Synthetic::new(pattern, if at == 0 { 1.0 } else { 0.0 }, bytes)
    };
    closed_loop_depth(device, load, depth, count)
}

/// MB/s of sequential, requests per second of random requests.
fn throughput(outcome: &DepthOutcome, pattern: Pattern) -> f64 {
    match pattern {
        Pattern::Random => outcome.iops,
        Pattern::Sequential => outcome.bytes_per_s / 1e6,
    }
}

/// The tables of four drives.
pub(crate) fn four_drives(paper: &Paper, effort: Effort) -> Vec<Found> {
    let facts = Facts(paper);
    let mut found = Vec::new();
    for (name, array) in ARRAYS {
        for (pattern, depth) in DEEP {
            let (kind, sizes) = match pattern {
                Pattern::Sequential => ("seq", [256, 512]),
                Pattern::Random => ("rand", [4, 8]),
            };
            for kib in sizes {
                for (at, op) in OPS.into_iter().enumerate() {
                    let load = (pattern, at, kib);
                    let mut device = facts.array(array, pattern);
                    let rate = throughput(&run(device.as_mut(), load, depth, effort), pattern);
                    let how = format!("{array:?}, {depth} in flight");
                    let id = format!("raid4.{name}.{kind}_throughput.{kib}kb.{op}");
                    found.push(Found::value(id, rate, how));
                    let flying = facts.in_flight(pattern, at);
                    let mut device = facts.array(array, pattern);
                    let ms = mean_ms(&run(device.as_mut(), load, flying, effort));
                    let id = format!("raid4.{name}.{kind}_latency.{kib}kb.{op}");
                    found.push(Found::value(id, ms, format!("{array:?}, {flying} in flight")));
                }
            }
        }
    }
    found.retain(|found| !is_input(&found.id));
    let statements = statements(&found, &facts);
    found.extend(statements);
    found
}

/// The figures that the controller is made from.
fn is_input(id: &str) -> bool {
    id.starts_with("raid4.c1_sw.rand_throughput.4kb.")
        || id.starts_with("raid4.c1_hw.") && (id.contains(".4kb.") || id.contains(".256kb."))
}

/// The three conclusions of the slide, of our figures.
fn statements(found: &[Found], facts: &Facts<'_>) -> Vec<Found> {
    let of = |array: &str, figure: &str| {
        let id = format!("raid4.{array}.{figure}");
        let own = found.iter().find(|found| found.id == id);
        match own.map(|found| found.ours) {
            Some(crate::Ours::Value(value)) => value,
            _ => facts.0.number(&id),
        }
    };
    let ratio = |one: &str, other: &str, figure: &str| of(one, figure) / of(other, figure);
    let random = ["rand_throughput.4kb.read", "rand_throughput.4kb.write"];
    let sequential = ["seq_throughput.256kb.read", "seq_throughput.256kb.write"];
    let doubled = random.map(|figure| ratio("c2_swhw", "c1_hw", figure));
    let simple = random.map(|figure| ratio("c2_sw", "c2_swhw", figure));
    let hard = sequential.map(|figure| ratio("c2_swhw", "c2_sw", figure));
    let words = |what: &str, ratios: [f64; 2]| {
        format!("{what}: {:.2} times the reads and {:.2} times the writes", ratios[0], ratios[1])
    };
    vec![
        Found::holds(
            "raid4.two_controllers",
            doubled.iter().all(|ratio| (1.6..2.4).contains(ratio)),
            words("two controllers over one, 4 KiB at random", doubled),
        ),
        Found::holds(
            "raid4.simple_volumes",
            simple.iter().all(|ratio| *ratio > 1.01),
            words("simple volumes over hardware, 4 KiB at random", simple),
        ),
        Found::holds(
            "raid4.hw_seq",
            hard.iter().any(|ratio| *ratio > 1.01) && hard.iter().all(|ratio| *ratio > 0.95),
            words("hardware over simple volumes, 256 KiB in sequence", hard),
        ),
    ]
}

/// The table of two drives, and what a controller does to small requests.
pub(crate) fn two_drives(paper: &Paper, effort: Effort) -> Vec<Found> {
    let facts = Facts(paper);
    let how = "hardware RAID 0 of two drives";
    let mut found = Vec::new();
    let mut reads = 0.0;
    for (at, op) in OPS.into_iter().enumerate() {
        let of = |pattern, kib, depth| {
            let mut device = facts.array(Array::Two, pattern);
            run(device.as_mut(), (pattern, at, kib), depth, effort)
        };
        let sequential = of(Pattern::Sequential, 256, 16).bytes_per_s / 1e6;
        let rate = of(Pattern::Random, 4, 64).iops;
        let latency = mean_ms(&of(Pattern::Random, 4, facts.in_flight(Pattern::Random, at)));
        let mut add = |figure: String, value| {
            found.push(Found::value(format!("raid_vs_single.raid0x2.{figure}"), value, how));
        };
        add(format!("seq_{op}_bw"), sequential);
        add(format!("rand_{op}_latency"), latency);
        add(format!("{op}_iops_4k"), rate);
        let single = paper.number(&format!("spec.x25e_64.{op}_iops_4k"));
        let loss = (1.0 - rate / single) * 100.0;
        found.push(Found::value(format!("derived.raid0x2.{op}_iops_loss"), loss, how));
        if at == 0 {
            reads = loss;
        }
    }
    found.push(Found::value("raid_vs_single.text.random_loss", reads, "of 4 KiB reads"));
    found.push(saturation(&facts, effort));
    found.push(streams(&facts, effort));
    found
}

/// Small requests: one drive, two and four behind a controller.
fn saturation(facts: &Facts<'_>, effort: Effort) -> Found {
    let rates = [1, 2, 4].map(|drives| {
        let mut device = facts.behind(drives, Pattern::Random, facts.controller(true));
        run(device.as_mut(), (Pattern::Random, 0, 4), 64, effort).iops
    });
    let same = rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 0.02);
    let how = format!("4 KiB reads of one, two and four drives: {rates:.0?} per second");
    Found::holds("raid.controller_saturation", same, how)
}

/// Reads of two drives are faster than those of one; writes with memory for all of them are as
/// fast as what crosses the bus.
fn streams(facts: &Facts<'_>, effort: Effort) -> Found {
    let cached = Controller { cache_bytes: 1 << 30, ..facts.controller(true) };
    let rate = |controller: Controller, at| {
        let mut device = facts.behind(2, Pattern::Sequential, controller);
        run(device.as_mut(), (Pattern::Sequential, at, 256), 16, effort).bytes_per_s / 1e6
    };
    let [reads, writes] = [rate(facts.controller(true), 0), rate(cached, 1)];
    let single = [0, 1].map(|at| facts.0.number(&format!("spec.x25e_64.seq_{}_bw", OPS[at])));
    Found::holds(
        "raid_vs_single.text.seq",
        reads > 1.3 * single[0] && writes > 2.0 * single[1],
        format!(
            "two drives read {reads:.0} MB/s; they write {writes:.0} MB/s into 1 GiB of memory of \
             the controller, more than both of them take"
        ),
    )
}
