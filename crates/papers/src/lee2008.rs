//! Lee et al. 2008: commits and TPC-B on a disk or flash log, sorts and joins on temporary space.
//!
//! Commits are simulated as terminals that compute and then wait for a log with group commit. What
//! a transaction computes is not printed; it is taken from one cell of the table, four terminals
//! with the log on flash (28 % of two processors at 2,222 per second), which is an input and not
//! compared. A log write takes 0.4 ms on flash, as the paper says of a log that is alone on its
//! device. The disk turns between forced writes: its write cache is off, the next sector has passed
//! the head when a commit follows another, and its write waits for almost a whole revolution.

use model::{Device, Linear};
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use profile::{DeviceSpec, Profile};
use sim::transactions::{
    Class, Discipline, GroupCommit, Length, Load, Log, Path, Processors, Scheduling, Setup, Step,
    Switching, Templates, Think, TransactionOutcome, transactions,
};
use spill::{Keys, Rows};
use study::host_stack::Devices;
use study::temp::{Place, Sweep, Task, sweep};
use units::Bytes;

use crate::load::shipped;
use crate::{Effort, Experiment, Found, Paper};

const PAPER: &str = "lee2008";

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment { paper: PAPER, name: "commits", run: commits },
    Experiment { paper: PAPER, name: "TPC-B", run: bank },
    Experiment { paper: PAPER, name: "sort and join", run: temporary },
    Experiment { paper: PAPER, name: "arithmetic", run: arithmetic },
];

const PLACES: [&str; 2] = ["hdd", "flash"];
/// The Barracuda of the paper has no profile: another SATA disk of 7,200 rpm stands for it.
const DISK: &str = "hgst-hds72107";
const PROCESSORS: f64 = 2.0;
const S: u64 = 1_000_000_000;

/// A device whose writes all take `ms`.
fn log_device(ms: f64, mb_per_s: f64) -> Box<dyn Device> {
    let line = Line {
        base_ns: ms * 1e6,
        ns_per_byte: 1e3 / mb_per_s,
        ceiling_iops: None,
        ceiling_bytes_per_s: None,
    };
    let parameters = LinearParameters {
        capacity: Some(Bytes(32_000_000_000)),
        read: [line; 2],
        write: [line; 2],
        parallelism: 1,
        detection: Detection::PerStream,
        mixed: Mixed::default(),
        flush: Flush::default(),
        trim_ns: 0.0,
        residuals: Vec::new(),
    };
    Box::new(Linear::new(&parameters, 1))
}

/// The disk of the log: forced writes are on the platter when they complete, so that nothing may
/// wait in its buffer.
fn log_disk() -> Profile {
    let mut own = shipped(DISK);
    let DeviceSpec::Hdd(spec) = &mut own.device else { panic!("{DISK} is a disk") };
    spec.buffer.write_back = None;
    own
}

fn device(paper: &Paper, place: usize) -> Box<dyn Device> {
    match PLACES[place] {
        "hdd" => model::device(&log_disk(), 1),
        _ => log_device(
            paper.number("text.ssd.log_write_latency"),
            paper.number("table1.ssd.write_transfer"),
        ),
    }
}

/// Computing time of a transaction, ns, by the cell that is an input.
fn cpu_ns(paper: &Paper) -> u64 {
    let share = paper.number("table2.flash.cpu.4") / 100.0;
    (share * PROCESSORS / paper.number("table2.flash.tps.4") * 1e9) as u64
}

fn simulate(
    paper: &Paper,
    place: usize,
    terminals: u32,
    cpu_ns: u64,
    log_bytes: u32,
    effort: Effort,
) -> TransactionOutcome {
    let mut templates = Templates::default();
    templates.push(0, &[Step::Cpu(cpu_ns), Step::Insert(log_bytes), Step::Commit]);
    let setup = Setup {
        load: Load::Closed(Think::default()),
        terminals,
        processors: Processors {
            count: PROCESSORS as u32,
            speed: 1.0,
            discipline: Discipline::Fair { slice_ns: 3_000_000, scheduling: Scheduling::default() },
            wake_ns: 0,
            switching: Switching::default(),
        },
        classes: vec![Class { name: "log".to_owned(), device: 0, base: 0, path: Path::default() }],
        log: Log {
            class: 0,
            rule: GroupCommit::INNODB,
            commit_waits: true,
            page_bytes: paper.number("setup.tpcb.sector") as u32,
            region_bytes: 1 << 30,
            delay: None,
            between_cpu_ns: 0,
            leader_cpu_ns: 0,
            waiter_cpu_ns: 0,
            images: None,
            fill: None,
        },
        locks: Vec::new(),
        kinds: vec!["update".to_owned()],
        templates,
        background: Vec::new(),
        deferred: None,
        warming: None,
        length: Length {
            warmup_ns: S,
            measure_ns: 100 * S,
            max_transactions: effort.count(100_000),
        },
        seed: 1,
    };
    transactions(&mut [device(paper, place)], &setup).expect("it can be simulated")
}

/// Table 2: transactions per second and processor share by terminals.
fn commits(paper: &Paper, effort: Effort) -> Vec<Found> {
    let mut found = Vec::new();
    let mut rates = [[0.0; 5]; 2];
    for (place, name) in PLACES.into_iter().enumerate() {
        for (at, terminals) in [4u32, 8, 16, 32, 64].into_iter().enumerate() {
            let outcome = simulate(paper, place, terminals, cpu_ns(paper), 512, effort);
            let (rate, share) = (outcome.transactions_per_s, outcome.processor_share);
            rates[place][at] = rate;
            let how = format!("{terminals} terminals, group commit, log alone on its device");
            let is_input = name == "flash" && terminals == 4;
            if !is_input {
                found.push(Found::value(
                    format!("table2.{name}.tps.{terminals}"),
                    rate,
                    how.clone(),
                ));
                let id = format!("table2.{name}.cpu.{terminals}");
                found.push(Found::value(id, share * 100.0, how.clone()));
            }
            let cycle = f64::from(terminals) / rate * 1e3;
            let id = format!("derived.table2.{name}.cycle_ms.{terminals}");
            found.push(Found::value(id, cycle, how.clone()));
            let each = share * PROCESSORS / rate * 1e3;
            let id = format!("derived.table2.{name}.cpu_ms_per_tx.{terminals}");
            found.push(Found::value(id, each, how));
        }
    }
    let [hdd, flash] = rates;
    let speed_up = |at: usize| flash[at] / hdd[at];
    let per_terminal = [4.0, 8.0, 16.0, 32.0, 64.0];
    let each: Vec<f64> = hdd.iter().zip(per_terminal).map(|(rate, n)| rate / n).collect();
    found.extend([
        Found::value("derived.table2.speedup.max", speed_up(0), "4 terminals"),
        Found::value("derived.table2.speedup.min", speed_up(4), "64 terminals"),
        Found::holds(
            "table2.flash.cpu_bound",
            flash[4] < 1.1 * flash[2],
            format!("{:.0} per second with 16 terminals and {:.0} with 64", flash[2], flash[4]),
        ),
        Found::holds(
            "derived.table2.hdd.linear",
            each[3] > 0.9 * each[0],
            format!("{:.1} per second and terminal with 4, {:.1} with 32", each[0], each[3]),
        ),
        Found::holds(
            "claim.log_rollback",
            speed_up(0) > 5.0,
            format!("{:.1} times with 4 terminals, {:.1} with 64", speed_up(0), speed_up(4)),
        ),
    ]);
    found
}

/// Table 3: 20 users on TPC-B; what a transaction computes is 1.7 times that of Table 2, as the
/// cell of the flash log says.
fn bank(paper: &Paper, effort: Effort) -> Vec<Found> {
    let share = paper.number("table3.flash.cpu") / 100.0;
    let cpu_ns = (share * PROCESSORS / paper.number("table3.flash.tps") * 1e9) as u64;
    let users = paper.number("setup.tpcb.users") as u32;
    let mut found = Vec::new();
    let mut rates = [0.0; 2];
    let mut times = [0.0; 2];
    for (place, name) in PLACES.into_iter().enumerate() {
        let sectors = paper.number(&format!("table3.{name}.log_write_size"));
        let outcome = simulate(paper, place, users, cpu_ns, 900, effort);
        let rate = outcome.transactions_per_s;
        let commits = outcome.log.commits as f64 / outcome.log.flushes.max(1) as f64;
        let flush_ms = outcome.log.held_ns as f64 / outcome.log.flushes.max(1) as f64 / 1e6;
        (rates[place], times[place]) = (rate, flush_ms);
        let how = format!("{users} users, {commits:.1} commits per log write");
        let cpu = outcome.processor_share * 100.0;
        if name == "hdd" {
            found.push(Found::value("table3.hdd.tps", rate, how.clone()));
            found.push(Found::value("table3.hdd.cpu", cpu, how.clone()));
        }
        let written = commits * 900.0 / paper.number("setup.tpcb.sector");
        let id = format!("table3.{name}.log_write_size");
        let sizes = format!("{how}; 900 bytes of log each are assumed ({sectors} printed)");
        found.push(Found::value(id, written, sizes));
        found.push(Found::value(format!("table3.{name}.log_write_time"), flush_ms, how.clone()));
        let response = f64::from(users) / rate * 1e3;
        found.push(Found::value(format!("derived.tpcb.{name}.response_ms"), response, how.clone()));
        let id = format!("derived.tpcb.{name}.cpu_ms_per_tx");
        found.push(Found::value(id, cpu / 100.0 * PROCESSORS / rate * 1e3, how.clone()));
        let id = format!("derived.tpcb.{name}.min_tx_per_log_write");
        found.push(Found::value(id, rate * flush_ms / 1e3, how));
    }
    let how = "both simulated";
    found.push(Found::value("text.tpcb.speedup", rates[1] / rates[0], how));
    found.push(Found::value("text.tpcb.log_write_ratio", times[0] / times[1], how));
    found
}

/// Elapsed seconds of a sort or a join by cluster size, on the disk and on the flash drive.
fn elapsed(task: Task, effort: Effort) -> [Vec<f64>; 2] {
    [DISK, "samsung-mcaqe32g"].map(|name| {
        let place = Place::Model(Box::new(Devices::alone(shipped(name))));
        let plan = Sweep {
            task,
            memory: Bytes(if effort == Effort::Full { 2 << 20 } else { 512 << 10 }),
            clusters: [4, 8, 16, 32, 64].map(|kib| Bytes(kib << 10)).to_vec(),
            depth: 1,
            places: vec![place],
            cpu_ns_per_row: 2000,
            seed: 1,
            record: false,
        };
        let (all, _) = sweep(&plan, &events::Quiet).expect("it can be simulated");
        all.iter().map(|measured| measured.elapsed_ns() as f64 / 1e9).collect()
    })
}

fn temporary(_: &Paper, effort: Effort) -> Vec<Found> {
    let rows = |count, keys, seed| Rows {
        count: effort.count(count).max(20_000),
        width_bytes: 112,
        keys,
        seed,
    };
    let sort = elapsed(Task::Sort(rows(600_000, Keys::Random, 1)), effort);
    let count = effort.count(300_000).max(20_000);
    let join = elapsed(
        Task::Join(rows(300_000, Keys::Ascending, 1), rows(300_000, Keys::Uniform(count), 2)),
        effort,
    );
    let spread = |times: &[f64]| {
        let most = times.iter().copied().fold(0.0, f64::max);
        most / times.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let ratio = |[disk, flash]: &[Vec<f64>; 2]| best(disk) / best(flash);
    let at_8k = |[disk, flash]: &[Vec<f64>; 2]| disk[1] / flash[1];
    let how = |what: &str, [disk, flash]: &[Vec<f64>; 2]| {
        format!("{what} with clusters of 4 to 64 KiB: disk {disk:.1?} s, flash {flash:.1?} s")
    };
    vec![
        Found::holds(
            "claim.temp",
            ratio(&sort) > 2.0 && ratio(&join) > 2.0,
            format!("{}; {}", how("sort", &sort), how("join", &join)),
        ),
        Found::holds(
            "claim.cluster_size",
            spread(&sort[1]) < spread(&sort[0]) && spread(&join[1]) < spread(&join[0]),
            format!(
                "slowest over fastest cluster size: sort {:.1} on the disk and {:.1} on flash, \
                 join {:.1} and {:.1}",
                spread(&sort[0]),
                spread(&sort[1]),
                spread(&join[0]),
                spread(&join[1])
            ),
        ),
        Found::value("secondary.hashjoin2010.speedup", at_8k(&join), how("join, at 8 KiB", &join)),
        Found::holds(
            "secondary.hashjoin.cluster",
            spread(&join[0]) > 2.0 * spread(&join[1]),
            how("join", &join),
        ),
    ]
}

fn arithmetic(paper: &Paper, _: Effort) -> Vec<Found> {
    let figure = |id: &str| paper.number(id);
    let (disk, flash) = (figure("table1.hdd.transfer"), figure("table1.ssd.read_transfer"));
    let (latency, write) = (figure("table1.hdd.latency"), figure("table1.ssd.write_latency"));
    let (reads, writes) = (flash, figure("table1.ssd.write_transfer"));
    vec![
        Found::value("derived.hdd.revolution", 60e3 / 7200.0, "60 s over 7,200"),
        Found::holds(
            "text.bandwidth_ratio",
            (1.9..3.5).contains(&(disk / flash)) && latency / write > 10.0,
            format!("bandwidth {:.1} times, latency {:.0} times", disk / flash, latency / write),
        ),
        Found::holds(
            "text.read_write_asymmetry",
            (1.5..2.1).contains(&(reads / writes)),
            format!("reads are {:.2} times as fast as writes", reads / writes),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request};
    use units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn the_disk_turns_between_forced_writes_of_the_log() {
        let DeviceSpec::Hdd(spec) = log_disk().device else { panic!("a disk") };
        assert_eq!(spec.parameters().buffer.write_back, 0, "the write cache is off");
        let mut disk = model::device(&log_disk(), 1);
        let mut write = |now: u64, sector: u64| {
            let (due, offset) = (Nanos(now), Bytes(sector * 512));
            let request = Request { due, offset, len: 512, op: Op::Write, stream: 0 };
            disk.submit(due, &request).0
        };
        let mut done = write(0, 0);
        for sector in 1..20 {
            // A commit later the head has passed the next sector.
            let next = write(done + 200_000, sector);
            let revolutions = (next - done) as f64 * 7200.0 / 60e9;
            assert!((0.99..1.02).contains(&revolutions), "{revolutions} revolutions");
            done = next;
        }
    }
}
