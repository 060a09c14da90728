//! Petrov et al. 2010: Amdahl and balance by arithmetic, one drive and arrays by simulation.

use advise::balance::{Mean, Processor, Rates};
use advise::speed_up::amdahl;

use crate::{Effort, Experiment, Found, Paper, arrays, drive};

const PAPER: &str = "petrov2010";

const fn own(name: &'static str, run: fn(&Paper, Effort) -> Vec<Found>) -> Experiment {
    Experiment { paper: PAPER, name, run }
}

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    own("90 % full, sequential writes", drive::seq_write_90),
    own("90 % full, random writes", drive::rand_write_90),
    own("90 % full, sequential reads", drive::seq_read_90),
    own("90 % full, random reads", drive::rand_read_90),
    own("90 % full, requests in flight", drive::in_flight),
    own("70 % full, sequential writes", drive::seq_write_70),
    own("70 % full, random writes", drive::rand_write_70),
    own("70 % full, sequential reads", drive::seq_read_70),
    own("70 % full, random reads", drive::rand_read_70),
    own("four drives", arrays::four_drives),
    own("two drives", arrays::two_drives),
    own("one drive as a line", drive::line),
    own("arithmetic", arithmetic),
];

fn arithmetic(paper: &Paper, _: Effort) -> Vec<Found> {
    let figure = |id: &str| paper.number(id);
    let (share, times) = (figure("amdahl.io_share"), figure("amdahl.k"));
    let speed_up = |share| amdahl(share, times).expect("a share and a factor");
    let law = "Amdahl's law";
    let mut found = vec![
        Found::value("amdahl.speedup.storage", speed_up(share), law),
        Found::value("amdahl.speedup.cpu", speed_up(1.0 - share), law),
        Found::holds("amdahl.formula", true, "wearmark advise what-if faster computes the same"),
    ];
    let sheet = |op: &str| figure(&format!("spec.x25e_64.{op}_iops_4k"));
    let quotient = sheet("read") / sheet("write");
    found.push(Found::value("random.asymmetry.max", quotient, "of the data sheet"));
    found.extend(balance(paper));
    found.extend(prices(paper));
    let latency = |id: &str| figure(&format!("latency.{id}"));
    for (op, id) in [("seq_write", "seq_write"), ("rand_write", "rand_write")] {
        let factor = latency(&format!("avg.{op}.wc_off")) / latency(&format!("avg.{op}.wc_on"));
        let id = format!("derived.latency.wc_factor.{id}");
        found.push(Found::value(id, factor, "quotient of two printed figures"));
    }
    let tail = latency("max.rand_write.wc_on") / latency("avg.rand_write.wc_on");
    let id = "derived.latency.max_over_avg.rand_write";
    found.push(Found::value(id, tail, "quotient of two printed figures"));
    found
}

fn balance(paper: &Paper) -> Vec<Found> {
    let figure = |id: &str| paper.number(id);
    let processor = Processor {
        clock_hz: figure("balance.clock") * 1e9,
        cycles_per_instruction: figure("balance.cpi"),
        instructions_per_byte: figure("balance.mips_per_mbps"),
        page_bytes: figure("balance.page") * 1024.0,
        read_share: figure("balance.rand_read_share") / 100.0,
    };
    let writes = figure("spec.savvio_15k.write_iops");
    let disk = Rates { reads_per_s: writes, writes_per_s: writes };
    let flash =
        Rates { reads_per_s: figure("random.8k.read"), writes_per_s: figure("random.8k.write") };
    let of = |rates: &Rates, mean| processor.devices(rates, mean).expect("figures above 0");
    let disks = of(&disk, Mean::Arithmetic);
    let [arithmetic, harmonic] = [Mean::Arithmetic, Mean::Harmonic].map(|mean| of(&flash, mean));
    let price = |name: &str| figure(&format!("spec.{name}.price"));
    vec![
        Found::value(
            "derived.balance.io_needed",
            processor.bytes_per_s() / 1e6,
            "MB/s per processor",
        ),
        Found::value("derived.balance.iops_8k", processor.requests_per_s(), "pages per second"),
        Found::value("derived.balance.hdd", disks, "at 300 writes per second"),
        Found::value("balance.hdd_per_cpu", disks.ceil(), "whole disks, at 300 per second"),
        Found::value("derived.balance.ssd_arith", arithmetic, "arithmetic mean of the rates"),
        Found::value("derived.balance.ssd_harmonic", harmonic, "harmonic mean of the rates"),
        Found::value(
            "balance.ssd_per_cpu",
            arithmetic.ceil(),
            format!("arithmetic mean; the harmonic one gives {:.0}", harmonic.ceil()),
        ),
        Found::value(
            "balance.hdd_cost",
            disks.ceil() * price("savvio_15k"),
            "at the price printed",
        ),
        Found::value(
            "balance.ssd_cost",
            arithmetic.ceil() * price("x25e_64"),
            "at the price printed",
        ),
    ]
}

fn prices(paper: &Paper) -> Vec<Found> {
    let figure = |id: &str| paper.number(id);
    let (price, size) = (figure("spec.x25e_64.price"), figure("spec.x25e_64.capacity"));
    let how = "quotient of printed figures";
    let rate = |op: &str| figure(&format!("spec.x25e_64.{op}_iops_4k"));
    let pair = |op: &str| figure(&format!("raid_vs_single.raid0x2.{op}_iops_4k"));
    // What is printed for two drives and their controller.
    let both = figure("raid_vs_single.raid0x2.price_per_gb") * 2.0 * size;
    vec![
        Found::value("raid_vs_single.single.price_per_gb", price / size, how),
        Found::value("raid_vs_single.single.read_iops_per_eur", rate("read") / price, how),
        Found::value("raid_vs_single.single.write_iops_per_eur", rate("write") / price, how),
        Found::value("raid_vs_single.raid0x2.read_iops_per_eur", pair("read") / both, how),
        Found::value("raid_vs_single.raid0x2.write_iops_per_eur", pair("write") / both, how),
    ]
}
