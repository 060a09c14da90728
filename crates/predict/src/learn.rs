//! From a captured run to a system that can be simulated.

use model::{Device, Linear};
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use sim::transactions::{
    Class, Delays, Discipline, Fill, Length, LockClass, Log, Path, Processors, Setup, Step,
    Templates, Warming, transactions,
};
use trace::Op;

use crate::buffer::Buffer;
use crate::captured::{Captured, Contended, Start, Transaction, mean, quantile};
use crate::log::{self, LogFacts};
use crate::{Error, background, warming};

/// Most samples that are drawn from.
const MOST_SAMPLES: usize = 20_000;
/// What a leader computes after its flush and before it, the host's path apart, and a waiter when
/// it is woken, before it looks whether to lead, ns: parts of the accounts, set aside so that
/// commits wait for a processor as they do. Interrupts and cold caches come on top.
const LEADER_CPU_NS: f64 = 10_000.0;
const BETWEEN_CPU_NS: f64 = 5_000.0;
const WAITER_CPU_NS: f64 = 5_000.0;
/// An idle processor begins after so long, ns, before calibration: a few microseconds of interrupt
/// and switch, more where a hypervisor wakes the processor.
pub(crate) const WAKE_NS: f64 = 15_000.0;
/// Rounds in which transactions are made to compute what they did: less computing is also less that
/// is lost by switching between tasks.
const COMPUTING_ROUNDS: usize = 6;
/// Least share of computing that is left in one of them.
const LEAST_OWN: f64 = 0.5;
/// Rounds in which the path of a sync and computing are set, which depend on each other.
const CALIBRATION_ROUNDS: usize = 2;
/// By which factors calibration makes the wake-up longer or shorter, of which it takes one.
const WAKE_FACTORS: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0];
/// Relative error of a measured throughput beside which a wake-up of e times the usual is as
/// unlikely.
const MEASURED_WITHIN: f64 = 0.05;
/// A simulated sync takes this many times as long as a captured one at most.
const SYNC_WITHIN: f64 = 1.02;
/// Transactions that are simulated for each factor that is tried.
const SEARCHED: u64 = 5_000;
/// A read of a file that the page cache answers takes less than this, ns.
const CACHED_READ_NS: u64 = 40_000;
/// Least processor time of the server for a message or a part of a sync, ns: nothing is done for
/// nothing.
pub(crate) const LEAST_CPU_NS: f64 = 1_000.0;
/// Processor time by the switches between tasks is at least this share of that by the accounts, or
/// they were not seen.
const LEAST_WATCHED: f64 = 0.6;
/// Where switches between tasks were not watched, a sample's processor time over the median of its
/// kind stays within this factor: longer gaps are waits, not work.
const SPREAD: f64 = 2.0;

/// The kernel sends a new segment in requests of about this size: 1 MiB to a served directory, as
/// much as the disk takes to others.
const SENT_BYTES: u32 = 1 << 20;
/// Most of the server's computing that goes into the way from a sync to the disk and back.
const MOST_PATH_SHARE: f64 = 0.5;
/// A capture that seems to take more of all computing than this was not measured well.
const MOST_CAPTURE: f64 = 0.5;

/// A system that can be simulated on any device.
#[derive(Clone, Debug)]
pub struct Learned {
    /// All but the devices; file classes lie on device 0.
    pub setup: Setup,
    /// How the captured load began, where that was seen.
    pub start: Option<Start>,
    /// What is read then beyond the templates; not part of `setup`, whose caches are full.
    pub(crate) warming: Option<Warming>,
    /// How many transactions later data are written for the first time.
    pub(crate) writes_after: u64,
    /// The reads that the captured buffer missed, where its size is known.
    pub(crate) buffer: Option<Buffer>,
    /// The samples of such a run in their order, where they cannot be drawn at random.
    pub(crate) from_start: Option<Templates>,
    /// Transactions per second, as captured.
    pub captured_per_s: f64,
    /// What the host adds to a sync of the log, ns; `None` where the device's part is not known.
    pub path_ns: Option<f64>,
    /// The same of the mean sync of the capture, which also waited for processors.
    pub(crate) mean_path_ns: f64,
    /// The mean sync itself, ns.
    pub(crate) mean_call_ns: f64,
    /// Factor on the wake-up of processors that makes the source itself come out right.
    pub calibration: Option<f64>,
    /// Simulated over captured throughput of the source after it.
    pub calibrated_to: Option<f64>,
    /// What the figures rest on, a sentence each.
    pub rests_on: Vec<String>,
    /// The device of the capture, by its own times.
    pub(crate) source: LinearParameters,
    /// Processor time per transaction that the capture took itself, ns.
    pub(crate) capture_ns: f64,
    /// Processor time per transaction by the accounts, ns.
    pub(crate) computed_ns: f64,
    /// Warehouses, for order entry: a terminal is at home in one.
    pub(crate) warehouses: Option<u32>,
    /// Whether the wake-up of an idle processor is not to be calibrated.
    pub(crate) wake_is_measured: bool,
    pub(crate) disturbed: bool,
}

impl Learned {
    /// Takes out of what transactions compute what the capture took itself.
    pub(crate) fn leave_capture_out(&self, templates: &mut Templates) {
        let share = self.capture_ns / templates.computing_ns().max(1.0);
        let own = 1.0 - share.clamp(0.0, MOST_CAPTURE);
        templates.scale_computing(own);
        templates.scale_clients(own);
    }

    /// The data that another number of terminals touches, over those of the captured one.
    pub(crate) fn touched_by(&self, terminals: u32) -> f64 {
        let homes = |terminals: u32| self.warehouses.map_or(1, |all| terminals.clamp(1, all));
        f64::from(homes(terminals)) / f64::from(homes(self.setup.terminals))
    }

    /// The device of the capture: constant times, those that its own requests took.
    pub fn source_device(&self) -> Box<dyn Device> {
        Box::new(Linear::new(&self.source, 1))
    }
}

/// How long the kernel lets a task run while others wait: `sched_base_slice` of Linux since 6.15,
/// 0.7 ms on one processor and more by the logarithm of their number (kernel/sched/fair.c,
/// `get_update_sysctl_factor`).
pub(crate) fn slice_ns(processors: u32) -> u64 {
    700_000 * u64::from(1 + processors.clamp(1, 8).ilog2())
}

/// How long an idle processor takes to begin, ns, before calibration.
fn wake_ns(captured: &Captured) -> f64 {
    captured.wake_ns.unwrap_or(WAKE_NS)
}

fn processors(captured: &Captured) -> Processors {
    Processors {
        count: captured.processors,
        speed: 1.0,
        discipline: Discipline::Fair {
            slice_ns: slice_ns(captured.processors),
            scheduling: captured.scheduling,
        },
        wake_ns: wake_ns(captured) as u64,
        switching: captured.switching,
    }
}

/// The driver of order entry lets a terminal go on while its delivery is in work.
fn deferred(captured: &Captured) -> Option<u16> {
    let Contended::OrderEntry(_) = captured.contended else { return None };
    let at = captured.kinds.iter().position(|kind| kind.name == "delivery")?;
    u16::try_from(at).ok()
}

/// Learns the system behind a captured run.
///
/// # Errors
/// Where the capture has no transactions, no actors or no processor time.
pub fn learn(captured: &Captured) -> Result<Learned, Error> {
    if captured.transactions.is_empty() {
        return Err(Error::Lacks("transactions"));
    }
    if captured.logical.captured().is_none() {
        return Err(Error::Lacks("the server's system calls"));
    }
    if captured.cpu.server_ns <= 0.0 {
        return Err(Error::Lacks("the server's processor time"));
    }
    let facts = log::facts(captured);
    let log_class = class_of(captured, "log").ok_or(Error::Lacks("a file class of the log"))?;
    let data_class = class_of(captured, "data").unwrap_or(log_class);
    let path_ns = facts.device.map(|device| {
        let sync_ns = device.write_ns + device.flush_ns;
        // The end of a call contains the wake-up of its task, which is simulated.
        (facts.call_ns - sync_ns - wake_ns(captured)).max(0.0)
    });
    let mean_path_ns = facts.mean_device.map_or(0.0, |device| {
        let sync_ns = device.write_ns + device.flush_ns;
        (facts.mean_call_ns - sync_ns - wake_ns(captured)).max(0.0)
    });
    let mut classes: Vec<Class> = Vec::new();
    for stream in &captured.logical.streams {
        classes.push(Class { name: stream.name.clone(), ..Class::default() });
    }
    classes[usize::from(log_class)].base = end_of_data(captured, log_class);
    let path_cpu_ns = path_cpu(captured, &facts, path_ns.unwrap_or(0.0));
    if let Some(ns) = path_ns {
        classes[usize::from(log_class)].path =
            Path { flush: Delays(vec![(ns - path_cpu_ns) as u32]), ..Path::default() };
    }
    let (templates, buffer) = templates(captured, &facts, path_cpu_ns, data_class);
    let warming = warming::learn(captured, &templates, data_class);
    let background::Beside { tasks, writes_after } = background::learn(captured, data_class);
    let setup = Setup {
        load: captured.load,
        terminals: captured.terminals,
        processors: processors(captured),
        classes,
        log: log_of(captured, &facts, path_cpu_ns, log_class),
        locks: locks(captured),
        kinds: captured.kinds.iter().map(|kind| kind.name.clone()).collect(),
        templates,
        background: tasks,
        deferred: deferred(captured),
        warming: None,
        length: Length { warmup_ns: 2_000_000_000, measure_ns: u64::MAX / 4, max_transactions: 1 },
        seed: 1,
    };
    let rests_on = rests_on(captured, &facts, path_ns);
    Ok(Learned {
        setup,
        start: captured.start.clone(),
        warming,
        writes_after,
        buffer,
        from_start: None,
        captured_per_s: captured.per_s,
        path_ns,
        mean_path_ns,
        mean_call_ns: facts.mean_call_ns,
        calibration: None,
        calibrated_to: None,
        rests_on,
        source: source(captured, &facts),
        warehouses: warehouses(captured),
        wake_is_measured: captured.wake_ns.is_some(),
        computed_ns: captured.cpu.server_ns + captured.cpu.client_ns + captured.cpu.kernel_ns,
        capture_ns: captured.cpu.capture_ns,
        disturbed: captured.disturbed,
    })
}

fn warehouses(captured: &Captured) -> Option<u32> {
    match captured.contended {
        Contended::OrderEntry(warehouses) => Some(warehouses),
        Contended::OneOf(_) | Contended::Unknown => None,
    }
}

/// Where the log lies on the device: behind everything else.
fn end_of_data(captured: &Captured, log_class: u16) -> u64 {
    let logical = &captured.logical;
    let others = (0..logical.count()).filter(|&at| logical.stream[at] != log_class);
    let end = others.map(|at| logical.offset[at] + u64::from(logical.len[at])).max();
    end.unwrap_or(0).next_multiple_of(1 << 20)
}

fn class_of(captured: &Captured, name: &str) -> Option<u16> {
    let at = captured.logical.streams.iter().position(|stream| stream.name == name)?;
    u16::try_from(at).ok()
}

fn rests_on(captured: &Captured, facts: &LogFacts, path_ns: Option<f64>) -> Vec<String> {
    let mut found = vec![format!(
        "{:.0} us of processor time per transaction by the accounts of server and client",
        (captured.cpu.server_ns + captured.cpu.client_ns) / 1e3
    )];
    if captured.cpu.capture_ns > 0.0 {
        let us = captured.cpu.capture_ns / 1e3;
        found.push(format!("{us:.0} us of these went into the capture and are left out"));
    }
    found.push(match path_ns {
        Some(ns) => format!("{:.0} us that the host adds to a sync of the log", ns / 1e3),
        None => "no host path of the log: requests of the disk were not captured".to_owned(),
    });
    let commits = commits(captured).max(1);
    let each = facts.bytes / commits;
    found.push(format!("{each} bytes of log per commit, as captured"));
    if captured.disturbed {
        let what = "a capture that other programs disturbed: it was not calibrated";
        found.push(what.to_owned());
    }
    found
}

fn commits(captured: &Captured) -> u64 {
    let writes = |one: &&Transaction| captured.kinds[usize::from(one.kind)].writes;
    captured.transactions.iter().filter(writes).count() as u64
}

/// The part of a sync's path that the server computes: going through file system and block layer is
/// computing, and in its accounts, but waiting for a sleeping processor is in the path too.
fn path_cpu(captured: &Captured, facts: &LogFacts, path_ns: f64) -> f64 {
    let syncs = facts.flushes as f64 / captured.transactions.len().max(1) as f64;
    path_ns.min(MOST_PATH_SHARE * captured.cpu.server_ns / syncs.max(1e-9))
}

fn log_of(captured: &Captured, facts: &LogFacts, path_cpu_ns: f64, class: u16) -> Log {
    let segment_bytes = 16 << 20;
    let ready = captured.start.as_ref().and_then(|start| start.log_ready).unwrap_or(0);
    let fill = Fill { segment_bytes, chunk_bytes: SENT_BYTES, ready };
    Log {
        class,
        rule: captured.system.rule(),
        commit_waits: true,
        page_bytes: captured.system.log_page_bytes(),
        region_bytes: 1 << 26,
        delay: None,
        between_cpu_ns: (BETWEEN_CPU_NS + path_cpu_ns / 2.0) as u64,
        leader_cpu_ns: (LEADER_CPU_NS + path_cpu_ns / 2.0) as u64,
        waiter_cpu_ns: WAITER_CPU_NS as u64,
        images: None,
        fill: (facts.filled >= segment_bytes).then_some(fill),
    }
}

/// Order entry on rows of warehouses and districts, and deliveries of a warehouse, which take
/// turns; updates on their row. Only where locks outlive the flush do they decide about commits.
fn locks(captured: &Captured) -> Vec<LockClass> {
    let class = |name: &str, keys, home| LockClass { name: name.to_owned(), keys, home };
    match captured.contended {
        Contended::Unknown => Vec::new(),
        Contended::OneOf(rows) => vec![class("row", rows, false)],
        Contended::OrderEntry(warehouses) => vec![
            class("warehouse", warehouses, true),
            class("district", 10 * warehouses, false),
            class("deliveries", warehouses, true),
        ],
    }
}

/// From how long on a read call has waited for the disk, whose mean read takes `disk_ns`, ns. A
/// shorter one found its pages in the page cache: half of the disk's reads may be ahead of need.
pub fn waits_from_ns(disk_ns: f64) -> u64 {
    CACHED_READ_NS.min((disk_ns / 2.0) as u64)
}

/// Reads of data that reached the device.
#[derive(Debug, Default)]
struct DeviceReads {
    /// By transaction number, the calls that made them.
    calls: Vec<Vec<usize>>,
    /// Shorter calls waited for nothing: the disk reads ahead.
    waits_from_ns: u64,
    /// Mean size of a read ahead.
    ahead_bytes: u32,
}

/// Reads of data that reached the device: as many as the disk counted, the slowest calls; where the
/// disk was not seen, those too slow for the page cache.
fn device_reads(captured: &Captured) -> DeviceReads {
    let mut calls = vec![Vec::new(); captured.transactions.len() + 1];
    let logical = &captured.logical;
    let Some((service, chains)) = logical.captured() else { return DeviceReads::default() };
    let mut reads: Vec<usize> =
        (0..logical.count()).filter(|&at| logical.op[at] == Op::Read).collect();
    let (mut waits, mut ahead_bytes) = (0, 0);
    match &captured.physical {
        _ if captured.system.is_direct() => {}
        None => reads.retain(|&at| service[at] >= CACHED_READ_NS),
        Some(physical) => {
            let of_disk: Vec<usize> = Captured::of(physical, "data", Op::Read).collect();
            let times = physical.service.as_deref().unwrap_or(&[]);
            waits = waits_from_ns(mean(of_disk.iter().map(|&at| times[at])));
            reads.sort_by_key(|&at| std::cmp::Reverse(service[at]));
            reads.truncate(of_disk.len());
            let ahead = reads.partition_point(|&at| service[at] >= waits);
            let own: u64 = reads[..ahead].iter().map(|&at| u64::from(logical.len[at])).sum();
            let all: u64 = of_disk.iter().map(|&at| u64::from(physical.len[at])).sum();
            let each = all.saturating_sub(own) / (reads.len() - ahead).max(1) as u64;
            ahead_bytes = each.next_multiple_of(4096).clamp(4096, 1 << 20) as u32;
            reads.sort_unstable();
        }
    }
    for at in reads {
        if let Some(own) = calls.get_mut(chains.transaction[at] as usize) {
            own.push(at);
        }
    }
    DeviceReads { calls, waits_from_ns: waits, ahead_bytes }
}

fn templates(
    captured: &Captured,
    facts: &LogFacts,
    path_cpu_ns: f64,
    data_class: u16,
) -> (Templates, Option<Buffer>) {
    let all = &captured.transactions;
    let computing = Computing::of(captured);
    let weight = computing.weights();
    let count = all.len() as f64;
    let mean_weight = all.iter().map(&weight).sum::<f64>() / count;
    let mean_turns = all.iter().map(|one| f64::from(one.turns.max(1))).sum::<f64>() / count;
    let commits = commits(captured);
    let leads = (facts.flushes as f64 / commits.max(1) as f64).min(1.0);
    let leader_ns = LEADER_CPU_NS + BETWEEN_CPU_NS + path_cpu_ns;
    let commit_ns = leads * leader_ns + (1.0 - leads) * WAITER_CPU_NS;
    let commit_share = commits as f64 / count;
    let server_ns = (captured.cpu.server_ns - commit_ns * commit_share).max(0.0);
    // What is computed within a call, while the device works, or when the answer is sent already is
    // in the accounts, but nobody waits for it: it only keeps processors from others.
    let outside_ns = (leads * LEADER_CPU_NS + (1.0 - leads) * WAITER_CPU_NS) * commit_share;
    let gap_ns = mean(all.iter().map(|one| one.gap_ns));
    let longest_ns = gap_ns.min(if computing.is_watched { mean_weight } else { f64::MAX });
    let waited_for_ns = server_ns.min((longest_ns - outside_ns).max(LEAST_CPU_NS));
    let behind_ns = (server_ns - waited_for_ns) / mean_turns;
    let log_bytes = (facts.bytes / commits.max(1)).clamp(1, 1 << 24) as u32;
    let reads = device_reads(captured);
    let buffer = captured.buffer_bytes.map(|bytes| Buffer::learn(captured, bytes));
    let (mut buffer, places) = buffer.unzip();
    let mut templates = Templates::default();
    let skip = all.len().div_ceil(MOST_SAMPLES);
    for (index, one) in all.iter().enumerate().step_by(skip) {
        let kind = &captured.kinds[usize::from(one.kind)];
        let sample = Sample {
            server_ns: (waited_for_ns * weight(one) / mean_weight).max(LEAST_CPU_NS),
            behind_ns: behind_ns as u64,
            client_ns: captured.cpu.client_ns * f64::from(one.turns.max(1)) / mean_turns,
            turns: one.turns.max(1),
            log_bytes: kind.writes.then_some(log_bytes),
            locks: lock_steps(captured, &kind.name),
            reads: reads.calls.get(index + 1).map_or(&[][..], Vec::as_slice),
        };
        templates.push(one.kind, &sample.steps(captured, data_class, &reads));
        if let (Some(buffer), Some(places)) = (&mut buffer, &places) {
            buffer.of_steps.extend(sample.reads.iter().map(|at| places.get(at).copied()));
        }
    }
    (templates, buffer)
}

/// What is known of how long transactions compute while their clients wait.
struct Computing {
    /// Whether switches between tasks were watched. Where most of them were missed, they say
    /// nothing of the rest.
    is_watched: bool,
    /// By kind: the mean, ns; where they were not watched, the median of the time that is no I/O.
    usual: Vec<f64>,
}

impl Computing {
    fn of(captured: &Captured) -> Self {
        let all = &captured.transactions;
        let watched = || all.iter().filter(|one| one.cpu_ns > 0);
        let cpu_ns = mean(watched().map(|one| one.cpu_ns));
        let is_watched = cpu_ns > LEAST_WATCHED * captured.cpu.server_ns;
        let overall = mean(watched().map(|one| one.answer_cpu_ns));
        let of_kind = |kind: usize| {
            let is_own = |one: &&Transaction| usize::from(one.kind) == kind;
            if !is_watched {
                return quantile(all.iter().filter(is_own).map(|one| one.gap_ns), 0.5).max(1.0);
            }
            let own = watched().filter(is_own).map(|one| one.answer_cpu_ns);
            Some(mean(own)).filter(|ns| *ns > 0.0).unwrap_or(overall)
        };
        Self { is_watched, usual: (0..captured.kinds.len()).map(of_kind).collect() }
    }

    /// How long a transaction computes, relative to others: its own time where switches between
    /// tasks were watched, the mean of its kind where they were watched for others of it. Otherwise
    /// the time that is no I/O, within a factor of its kind's: kinds that wait for locks then seem
    /// to compute more than they do.
    fn weights(&self) -> impl Fn(&Transaction) -> f64 {
        move |one| {
            let usual = self.usual[usize::from(one.kind)];
            match (self.is_watched, one.cpu_ns) {
                (true, 0) => usual,
                (true, _) => one.answer_cpu_ns as f64,
                (false, _) => usual * (one.gap_ns as f64 / usual).clamp(1.0 / SPREAD, SPREAD),
            }
        }
    }
}

/// Locks that transactions queue for, in the order of their classes, each with the share of the
/// server's processor time that comes before it. The shares follow from the place of the statement
/// that takes the lock: a payment begins with the row of its warehouse and goes on with that of its
/// district, a new order reads its terms first.
fn lock_steps(captured: &Captured, kind: &str) -> &'static [(f64, Step)] {
    match (captured.contended, kind) {
        (Contended::OneOf(_), _) => &[(0.5, Step::Lock(0))],
        (Contended::OrderEntry(_), "payment") => &[(0.1, Step::Lock(0)), (0.35, Step::Lock(1))],
        (Contended::OrderEntry(_), "new_order") => &[(0.15, Step::Lock(1))],
        (Contended::OrderEntry(_), "delivery") => &[(0.05, Step::Lock(2))],
        _ => &[],
    }
}

/// One sample on its way to a template.
struct Sample<'a> {
    server_ns: f64,
    behind_ns: u64,
    client_ns: f64,
    turns: u32,
    log_bytes: Option<u32>,
    locks: &'static [(f64, Step)],
    reads: &'a [usize],
}

impl Sample<'_> {
    /// A turn is the client computing, a hand-over, the server computing and reading, and a
    /// hand-over back; the commit is in the last one, after which the client takes the answer,
    /// while the server goes on for what it computes besides. A hand-over takes no time itself: it
    /// gives the processor away and asks for one anew.
    fn steps(&self, captured: &Captured, data_class: u16, from_disk: &DeviceReads) -> Vec<Step> {
        let logical = &captured.logical;
        let service = logical.service.as_deref().unwrap_or(&[]);
        let turns = f64::from(self.turns);
        // The client computes before, between and after the turns.
        let client = (self.client_ns / (turns + 1.0)) as u64;
        let server = (self.server_ns / turns) as u64;
        let mut steps = Vec::new();
        let mut reads = self.reads.iter();
        let mut locks = self.locks.iter().peekable();
        let reads_per_turn = self.reads.len().div_ceil(self.turns as usize);
        for turn in 0..self.turns {
            steps.push(Step::Ask(client));
            let mut computed = 0;
            while let Some((share, lock)) =
                locks.next_if(|(share, _)| *share * turns < f64::from(turn + 1))
            {
                let before = ((share * turns - f64::from(turn)) * server as f64) as u64;
                steps.extend([Step::Cpu(before - computed), *lock]);
                computed = before;
            }
            steps.push(Step::Cpu(server - computed));
            for &at in reads.by_ref().take(reads_per_turn) {
                let class = if usize::from(logical.stream[at]) < logical.streams.len() {
                    logical.stream[at]
                } else {
                    data_class
                };
                let (bytes, offset) = (logical.len[at], logical.offset[at]);
                steps.push(if service[at] >= from_disk.waits_from_ns {
                    Step::Read { class, bytes, offset }
                } else {
                    Step::ReadAhead { class, bytes: from_disk.ahead_bytes, offset }
                });
            }
            if let Some(bytes) = self.log_bytes.filter(|_| turn + 1 == self.turns) {
                steps.extend([Step::Insert(bytes), Step::Commit]);
            }
            steps.push(Step::Behind(self.behind_ns));
        }
        steps.push(Step::Ask(client));
        steps
    }
}

/// The device of the capture as its own requests showed it; where they were not captured, a device
/// to which the whole time of a call is charged.
fn source(captured: &Captured, facts: &LogFacts) -> LinearParameters {
    let device =
        facts.mean_device.unwrap_or(log::DeviceTimes { write_ns: 0.0, flush_ns: facts.call_ns });
    let seen = captured.physical.as_ref().unwrap_or(&captured.logical);
    let service = seen.service.as_deref().unwrap_or(&[]);
    let read_ns = quantile(Captured::of(seen, "data", Op::Read).map(|at| service[at]), 0.5);
    constant_device(read_ns, device.write_ns, device.flush_ns)
}

/// A device of three times.
pub(crate) fn constant_device(read_ns: f64, write_ns: f64, flush_ns: f64) -> LinearParameters {
    let line =
        |base_ns| Line { base_ns, ns_per_byte: 0.0, ceiling_iops: None, ceiling_bytes_per_s: None };
    LinearParameters {
        capacity: None,
        read: [line(read_ns); 2],
        write: [line(write_ns); 2],
        parallelism: 32,
        detection: Detection::PerStream,
        mixed: Mixed::default(),
        flush: Flush { base_ns: flush_ns, ..Flush::default() },
        trim_ns: 0.0,
        residuals: Vec::new(),
    }
}

/// Sets two factors by simulating the source itself: one on the host's path, so that a sync takes
/// as long as it did on average, waiting for processors included; and one on the wake-up of
/// processors, so that throughput comes out as measured: how late a hypervisor or a sleep state
/// lets a task begin is not in the capture. Where throughput hardly depends on it, because no
/// processor sleeps, the wake-up stays near what is usual. What is left then is told, and put to
/// nothing else; processors are never made faster.
///
/// A capture that others disturbed is left as it is: their load is no property of the host.
///
/// # Errors
/// Where the learned system cannot be simulated.
pub fn calibrate(learned: &mut Learned) -> Result<(), Error> {
    let mut factors = (1.0, 1.0);
    let mut switching_ns = set_computing(learned, factors)?;
    let is_calibrated = !learned.disturbed && learned.captured_per_s > 0.0;
    for _ in 0..if is_calibrated { CALIBRATION_ROUNDS } else { 0 } {
        factors = best_factors(learned)?;
        switching_ns = set_computing(learned, factors)?;
    }
    let us = switching_ns / 1e3;
    learned.rests_on.push(format!("{us:.0} us of these went into switches between tasks"));
    if !is_calibrated {
        return Ok(());
    }
    let (path, wake) = factors;
    let (per_s, _) = of_source(learned, (path, wake), 4 * SEARCHED)?;
    let reached = per_s / learned.captured_per_s;
    learned.setup = stretched(learned, (path, wake));
    learned.calibration = Some(wake);
    learned.calibrated_to = Some(reached);
    learned.rests_on.push(format!(
        "wake-ups {wake:.2} times as long as usual and a host path {path:.2} times that of \
         undisturbed syncs, by which the source itself comes out at {:+.0} %",
        (reached - 1.0) * 100.0
    ));
    Ok(())
}

/// The factors on path and wake-up by which syncs and throughput of the source come out best.
fn best_factors(learned: &Learned) -> Result<(f64, f64), Error> {
    let mut best: Option<(f64, (f64, f64))> = None;
    let wakes: &[f64] = if learned.wake_is_measured { &[1.0] } else { &WAKE_FACTORS };
    for &wake in wakes {
        let path = path_factor(learned, wake)?;
        let (per_s, sync_ns) = of_source(learned, (path, wake), SEARCHED)?;
        if best.is_some() && sync_ns > SYNC_WITHIN * sync_of_source(learned) {
            // No path is so short that syncs with this wake-up take what they did.
            break;
        }
        let off = (per_s / learned.captured_per_s).ln() / MEASURED_WITHIN;
        let unusual = ((wake + 0.1) / 1.1).ln();
        let cost = off * off + unusual * unusual;
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, (path, wake)));
        }
    }
    Ok(best.expect("there are factors to try").1)
}

/// Sets how long transactions compute so that the source computes as long as was captured, for the
/// accounts hold more than its templates: what it costs that tasks share processors, which is
/// simulated besides, and the path of a sync, of which calibration may leave less. Returns what
/// switches between tasks take of each transaction, ns.
pub(crate) fn set_computing(learned: &mut Learned, factors: (f64, f64)) -> Result<f64, Error> {
    let mut switching_ns = 0.0;
    if learned.computed_ns <= 0.0 {
        return Ok(switching_ns);
    }
    for _ in 0..COMPUTING_ROUNDS {
        let mut setup = stretched(learned, factors);
        setup.length.max_transactions = 2 * SEARCHED;
        let found = transactions(&mut [learned.source_device()], &setup)?;
        let each_ns = f64::from(setup.processors.count) * 1e9 / found.transactions_per_s;
        switching_ns = found.switching_share * each_ns;
        let missing_ns = learned.computed_ns - found.processor_share * each_ns;
        let templates = &mut learned.setup.templates;
        // How long clients wait was measured; the rest of the accounts is behind their answers.
        let left_ns = missing_ns - templates.add_behind(missing_ns);
        let factor = 1.0 + left_ns / templates.computing_ns().max(1.0);
        templates.scale_computing(factor.max(LEAST_OWN));
        templates.scale_clients(factor.max(LEAST_OWN));
    }
    Ok(switching_ns)
}

/// The factor on the host's path by which a simulated sync takes as long as the mean one of the
/// capture.
fn path_factor(learned: &Learned, wake: f64) -> Result<f64, Error> {
    let path_ns = learned.path_ns.unwrap_or(0.0);
    if path_ns <= 0.0 {
        return Ok(1.0);
    }
    let sync_ns = sync_of_source(learned);
    let (mut low, mut high) = (0.0, (learned.mean_path_ns / path_ns).max(1.0));
    for _ in 0..7 {
        let middle = f64::midpoint(low, high);
        if of_source(learned, (middle, wake), SEARCHED)?.1 < sync_ns {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// How long the log is held for a sync, ns: the calls, and what the leader computes after them.
fn sync_of_source(learned: &Learned) -> f64 {
    learned.mean_call_ns + LEADER_CPU_NS
}

/// Transactions per second of the source with factors on path and wake-up, and the mean time of a
/// sync there, ns.
fn of_source(learned: &Learned, factors: (f64, f64), count: u64) -> Result<(f64, f64), Error> {
    let mut setup = stretched(learned, factors);
    setup.length.max_transactions = count;
    let found = transactions(&mut [learned.source_device()], &setup)?;
    let sync_ns = found.log.held_ns as f64 / found.log.flushes.max(1) as f64;
    Ok((found.transactions_per_s, sync_ns))
}

/// The learned system with factors on the host's path and the wake-up of processors.
fn stretched(learned: &Learned, (path, wake): (f64, f64)) -> Setup {
    let mut setup = with_path(&learned.setup, path);
    setup.processors.wake_ns = (setup.processors.wake_ns as f64 * wake) as u64;
    setup
}

/// The same system with the path of the host times a factor: delays, and computing.
pub(crate) fn with_path(setup: &Setup, factor: f64) -> Setup {
    let mut setup = setup.clone();
    for class in &mut setup.classes {
        let Path { read, write, flush } = &mut class.path;
        for delays in [read, write, flush] {
            for delay in &mut delays.0 {
                *delay = (f64::from(*delay) * factor) as u32;
            }
        }
    }
    scale_path_cpu(&mut setup, factor);
    setup
}

/// Times a factor what the leader of a commit computes on the way to the disk and back.
fn scale_path_cpu(setup: &mut Setup, factor: f64) {
    let log = &mut setup.log;
    let path_ns = log.leader_cpu_ns.saturating_sub(LEADER_CPU_NS as u64);
    log.leader_cpu_ns -= path_ns;
    log.leader_cpu_ns += (path_ns as f64 * factor) as u64;
    let path_ns = log.between_cpu_ns.saturating_sub(BETWEEN_CPU_NS as u64);
    log.between_cpu_ns -= path_ns;
    log.between_cpu_ns += (path_ns as f64 * factor) as u64;
}
