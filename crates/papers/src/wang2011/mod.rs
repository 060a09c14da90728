//! Wang et al. 2011: micro-benchmarks of four devices, endurance, and TPC-C-derived loads on two
//! file systems.

mod oltp;

use advise::Interval;
use advise::endurance::{ClassRate, DAY_S, Limit, YEAR_S, lifetime};
use profile::linear::Pattern;
use sim::DepthOutcome;

use crate::load::{KIB, Load, mean_ms, run, shipped};
use crate::{Effort, Experiment, Found, Paper};

pub(crate) const PAPER: &str = "wang2011";

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment { paper: PAPER, name: "transactions", run: oltp::transactions },
    Experiment { paper: PAPER, name: "cleaning", run: oltp::cleaning },
    Experiment { paper: PAPER, name: "buffers and mixes", run: oltp::variations },
    Experiment { paper: PAPER, name: "sequential", run: sequential },
    Experiment { paper: PAPER, name: "random", run: random },
    Experiment { paper: PAPER, name: "distributions", run: distributions },
    Experiment { paper: PAPER, name: "endurance", run: endurance },
];

/// The disk and the three SSDs. The X25-E is the line, since the model from the cell up has no
/// write cache and shows its rates at depth 32 alone.
pub(crate) const DEVICES: [&str; 4] =
    ["hgst-hds72107", "mtron-pro-7500-ftl", "intel-x25-e", "ocz-vertex-ex-ftl"];
const HDD: usize = 0;
const MTRON: usize = 1;
const INTEL: usize = 2;
const OCZ: usize = 3;

fn of(device: usize, load: Load, effort: Effort) -> DepthOutcome {
    run(&shipped(DEVICES[device]), 0.9, load, effort)
}

const READS: Load = Load::reads(Pattern::Random, 4 * KIB);
/// More than the largest write cache holds, 16,384 pages.
const WRITES: Load = Load::writes(Pattern::Random, 4 * KIB).long(30_000);
const MIXED: Load = Load { read_share: 0.5, ..WRITES };

fn mb_per_s(outcome: &DepthOutcome) -> f64 {
    outcome.bytes_per_s / 1e6
}

fn sequential(_: &Paper, effort: Effort) -> Vec<Found> {
    let large = |write: bool| {
        let load = if write { Load::writes } else { Load::reads };
        load(Pattern::Sequential, 256 * KIB)
    };
    let rate = |device, write| mb_per_s(&of(device, large(write).long(6000), effort));
    let [reads, writes] = [false, true].map(|write| [0, 1, 2, 3].map(|device| rate(device, write)));
    let knee = [8, 16, 32, 64, 128, 256].map(|kib| {
        let load = Load::writes(Pattern::Sequential, kib * KIB).long(20_000);
        (kib, mb_per_s(&run(&shipped("intel-x25-e-ftl"), 0.7, load, effort)))
    });
    let best = knee.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(kib, _)| *kib);
    vec![
        Found::value(
            "fig1.mtron.seq_saturation",
            f64::midpoint(reads[MTRON], writes[MTRON]),
            format!("256 KiB: {:.0} MB/s of reads, {:.0} of writes", reads[MTRON], writes[MTRON]),
        ),
        Found::value(
            "fig1.intel.seq_write_knee",
            f64::from(best * KIB),
            "size of sequential writes with the highest rate, intel-x25-e-ftl",
        ),
        Found::value(
            "fig1_9.large_request_penalty_above",
            f64::from(best),
            "size of sequential writes with the highest rate, intel-x25-e-ftl",
        ),
        Found::holds(
            "fig1.ocz.seq",
            writes[OCZ] < writes[MTRON] && writes[OCZ] < writes[INTEL] && reads[OCZ] > reads[MTRON],
            format!(
                "MB/s at 256 KiB, writes: Mtron {:.0}, Intel {:.0}, OCZ {:.0}; reads: {:.0}, \
                 {:.0}, {:.0}",
                writes[MTRON], writes[INTEL], writes[OCZ], reads[MTRON], reads[INTEL], reads[OCZ]
            ),
        ),
    ]
}

/// Figures 2 and 3: 4 KiB at random, with one and with 30 outstanding.
fn random(paper: &Paper, effort: Effort) -> Vec<Found> {
    let many = paper.number("micro.outstanding.many") as usize;
    let rates = |load: Load| [0, 1, 2, 3].map(|device| of(device, load, effort).iops);
    let [reads, writes, mixed] = [READS, WRITES, MIXED].map(rates);
    let [deep_reads, deep_writes, deep_mixed] = [READS, WRITES, MIXED].map(|load| {
        let load = load.deep(many);
        rates(load)
    });
    let in_order = rates(Load::reads(Pattern::Sequential, 4 * KIB));
    let in_order_writes = rates(Load::writes(Pattern::Sequential, 4 * KIB).long(20_000));
    let ssds = [MTRON, INTEL, OCZ];
    let words = |what: &str, rates: [f64; 4]| {
        let [hdd, mtron, intel, ocz] = rates;
        format!(
            "{what} per second: disk {hdd:.0}, Mtron {mtron:.0}, Intel {intel:.0}, OCZ {ocz:.0}"
        )
    };
    let gain = |deep: [f64; 4], one: [f64; 4]| [0, 1, 2, 3].map(|at| deep[at] / one[at]);
    let [read_gain, write_gain, mixed_gain] =
        [gain(deep_reads, reads), gain(deep_writes, writes), gain(deep_mixed, mixed)];
    let gains = |what: &str, [hdd, mtron, intel, ocz]: [f64; 4]| {
        format!("{what}, times: disk {hdd:.2}, Mtron {mtron:.2}, Intel {intel:.2}, OCZ {ocz:.2}")
    };
    let collapse = |at: usize| writes[at] < 0.1 * in_order_writes[at];
    let like_writes = |at: usize| (mixed[at] - writes[at]).abs() < (mixed[at] - reads[at]).abs();
    vec![
        Found::holds(
            "fig2.random.read_equals_seq",
            ssds.iter()
                .all(|at| reads[*at] > 0.45 * in_order[*at] && reads[*at] > 10.0 * reads[HDD]),
            format!("{}; {}", words("random reads", reads), words("sequential reads", in_order)),
        ),
        Found::holds(
            "fig2.random.write_mtron_ocz",
            collapse(MTRON) && collapse(OCZ) && mixed[MTRON] < 0.1 * reads[MTRON],
            format!("{}; {}", words("random writes", writes), words("mixed", mixed)),
        ),
        Found::holds(
            "fig2.random.mixed_like_write",
            ssds.iter().all(|at| like_writes(*at)),
            format!("{}; {}", words("mixed", mixed), words("writes", writes)),
        ),
        Found::holds(
            "fig2.random.intel_only_beats_hdd",
            writes[INTEL] > 2.0 * writes[HDD]
                && mixed[INTEL] > 2.0 * mixed[HDD]
                && [MTRON, OCZ].iter().all(|at| writes[*at] < 2.0 * writes[HDD]),
            format!("{}; {}", words("random writes", writes), words("mixed", mixed)),
        ),
        Found::holds(
            "fig3.random.read_improves",
            [HDD, INTEL, OCZ].iter().all(|at| read_gain[*at] > 1.2) && read_gain[MTRON] < 1.1,
            gains("reads with 30 over one outstanding", read_gain),
        ),
        Found::holds(
            "fig3.random.write_no_gain",
            ssds.iter().all(|at| write_gain[*at] < 1.15 && mixed_gain[*at] < 1.3),
            format!("{}; {}", gains("writes", write_gain), gains("mixed", mixed_gain)),
        ),
    ]
}

/// Figure 4: response times of one outstanding request.
fn distributions(_: &Paper, effort: Effort) -> Vec<Found> {
    let quantiles = |outcome: &DepthOutcome, write: bool| {
        let times = if write { &outcome.writes } else { &outcome.reads };
        [0.05, 0.5, 0.95].map(|q| times.quantile(q) as f64 / 1e3)
    };
    let reads = [MTRON, INTEL, OCZ].map(|at| quantiles(&of(at, READS, effort), false));
    let writes = quantiles(&of(MTRON, WRITES, effort), true);
    let ocz = quantiles(&of(OCZ, WRITES, effort), true);
    let medians = reads.map(|own| own[1]);
    let most = medians.iter().copied().fold(0.0, f64::max);
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    vec![
        Found::holds(
            "fig4.read.single_cliff",
            reads.iter().all(|own| own[2] < 1.5 * own[0]) && most < 2.5 * least,
            format!("us at 5, 50 and 95 %: Mtron, Intel and OCZ {reads:.0?}"),
        ),
        Found::holds(
            "fig4.mtron.write_cliffs",
            writes[0] < 300.0 && (3_000.0..30_000.0).contains(&writes[2]),
            format!("us of random writes at 5, 50 and 95 %: {writes:.0?}"),
        ),
        Found::holds(
            "fig4.write.multi_cliff",
            ocz[2] > 10.0 * ocz[0],
            format!("OCZ, us of random writes at 5, 50 and 95 %: {ocz:.0?}; Intel is a line"),
        ),
    ]
}

/// Tables 5 and 6: years at a rate of writes.
fn endurance(paper: &Paper, effort: Effort) -> Vec<Found> {
    let years = |limit: &Limit, per_s: f64| {
        let rate = ClassRate { class: String::new(), bytes_per_s: Interval::exact(per_s) };
        let found = lifetime(limit, &[rate]).expect("figures above 0");
        found.years.figure.map_or(f64::NAN, |figure| figure.value)
    };
    let rated = Limit::Rated { bytes: paper.number("table5.intel.lifetime_random_writes") * 1e15 };
    let mut found = Vec::new();
    let mut rates = Vec::new();
    for case in ["commercial_ext2fs", "mysql_ext2fs", "commercial_nilfs2", "mysql_nilfs2"] {
        let rate = paper.number(&format!("derived.intel.phys_write_rate.{case}")) * 1e6;
        let how = "2 PB over the physical write rate of figure 8 (wearmark advise life)";
        let id = format!("table6.intel.years.{case}");
        found.push(Found::value(id, years(&rated, rate), how));
        let printed = paper.number(&format!("table6.intel.years.{case}"));
        let back = 2e15 / (printed * YEAR_S) / 1e6;
        let id = format!("derived.intel.phys_write_rate.{case}");
        found.push(Found::value(id, back, "2 PB over the printed years"));
        rates.push(rate);
    }
    let how = "quotient of the physical write rates";
    let ids =
        ["commercial", "mysql"].map(|name| format!("derived.intel.nilfs2_over_ext2_writes.{name}"));
    for (at, id) in ids.into_iter().enumerate() {
        found.push(Found::value(id, rates[at + 2] / rates[at], how));
    }
    let daily = paper.number("table5.mtron.endurance_daily") * 1e9;
    let cycles = Limit::Cycles {
        cycles: paper.number("table5.mtron.pe_cycles"),
        flash_bytes: paper.number("table2.mtron_pro7500.capacity") * 1e9,
        amplification: Interval::exact(1.0),
    };
    found.push(Found::value(
        "table5.mtron.endurance_years",
        years(&cycles, daily / DAY_S),
        "100,000 cycles of 32 GB, sequential writes: one byte programmed per byte written",
    ));
    let all = daily * 365.0 * paper.number("table5.mtron.endurance_years") / 1e15;
    found.push(Found::value("derived.mtron.lifetime_sequential_bytes", all, "product"));
    found.extend(asymmetries(paper, effort));
    found
}

/// The two ratios of data-sheet rates, and the same of the models.
fn asymmetries(paper: &Paper, effort: Effort) -> Vec<Found> {
    let sequential = Load::writes(Pattern::Sequential, 4 * KIB).long(20_000);
    let (fast, slow) = (of(MTRON, sequential, effort), of(MTRON, WRITES, effort));
    let how = format!(
        "simulated: {:.0} sequential and {:.0} random writes of 4 KiB per second ({:.2} ms each)",
        fast.iops,
        slow.iops,
        mean_ms(&slow)
    );
    let quotient = paper.number("table2.intel_x25e_64.rand_read_iops_4k")
        / paper.number("table2.intel_x25e_64.rand_write_iops_4k");
    vec![
        Found::value("derived.mtron.seq_to_random_write_ratio", fast.iops / slow.iops, how),
        Found::value("derived.intel.read_to_write_random_ratio", quotient, "of the data sheet"),
    ]
}
