//! A question to a learned system, and its answer.

use model::Device;
use serde::{Deserialize, Serialize};
use sim::transactions::{
    Background, Class, CommitDelay, Delays, Length, Load, Pace, Path, Setup, Step, Templates,
    TransactionOutcome, Wait, Waits, transactions,
};
use units::Bytes;

use crate::Error;
use crate::background::{DATA_WRITES, KERNEL_THREADS};
use crate::goal::{Goal, highest_rate};
use crate::learn::{LEAST_CPU_NS, Learned, with_path};
use crate::warming;

/// Transactions that are simulated for the figures, and for each end of the interval.
const MEASURED: u64 = 60_000;
const CORNER: u64 = 20_000;
/// Transactions that tell what a change does.
const SKETCHED: u64 = 10_000;
/// A run of a given time on a slow device holds few transactions: it is simulated until there are
/// this many, but no more often than that.
const ENOUGH: u64 = 4_000;
const MOST_RUNS: u64 = 16;
/// Of 90 % of the draws of a normal distribution: how far they lie from its mean at most, in
/// standard deviations.
const NINETY_PERCENT: f64 = 1.645;
/// How far processor time and path may be off, for the interval.
const CPU_UNCERTAIN: f64 = 0.10;
const PATH_UNCERTAIN: f64 = 0.5;

/// Other programs compute once in this time, ns.
const OTHERS_EVERY_NS: f64 = 200_000.0;

/// What is asked; `None` is as captured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Number of terminals.
    pub terminals: Option<u32>,
    /// Arrivals per second, instead of a closed loop.
    pub rate: Option<f64>,
    /// The highest rate of arrivals at which this holds, instead of a closed loop.
    pub goal: Option<Goal>,
    /// Size of the database's buffer, bytes: at least that of the capture.
    pub buffer_bytes: Option<u64>,
    /// How long the leader of a commit waits for others to join it.
    pub commit_delay: Option<CommitDelay>,
    /// Number of processors.
    pub processors: Option<u32>,
    /// Their speed over that of the captured machine.
    pub speed: Option<f64>,
    /// Share of all processors that other programs ask for, 0 to 1.
    pub other_load: f64,
    /// What is computed for each request to a device, as by an emulator, ns: instead of what the
    /// kernel's threads and interrupts computed for the captured disk; 0 leaves that as it was.
    pub request_load_ns: u64,
    /// How much later than the device's answers come, as an emulator's do on busy processors, ns.
    pub request_late_ns: u32,
    /// What the leader of a commit computes less for a write and a flush than it was captured to,
    /// as in a served directory, ns.
    pub sync_less_ns: u64,
    /// Whether commits are answered before they are durable.
    pub no_commit_wait: bool,
    /// Whether the log lies on the second device.
    pub log_apart: bool,
    /// With what the capture itself took of the processors.
    pub while_captured: bool,
    /// The captured run from its start, with empty caches and for as long as it took, instead of
    /// a system whose caches are full.
    pub from_start: bool,
    /// Decides every draw.
    pub seed: u64,
}

/// The answer for one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Name of the device's profile.
    pub device: String,
    /// Terminals.
    pub terminals: u32,
    /// Transactions per minute, all kinds.
    pub per_min: f64,
    /// The same with 10 % more processor time and half as much path again, and with less of both;
    /// of a run that holds few transactions also how far 90 % of such runs lie from their mean.
    pub per_min_low: f64,
    /// See `per_min_low`.
    pub per_min_high: f64,
    /// By kind.
    pub kinds: Vec<KindAnswer>,
    /// What the time of a transaction goes to, largest first.
    pub limits: Vec<Limit>,
    /// What the devices are asked, warm-up included.
    #[serde(default)]
    pub io: Vec<IoAnswer>,
    /// Share of the processors' time that is used, 0 to 1.
    pub processor_share: f64,
    /// Processor time per transaction, whoever uses it, ns.
    #[serde(default)]
    pub busy_ns: f64,
    /// Flushes of the log per second.
    pub log_flushes_per_s: f64,
    /// Commits per flush.
    pub commits_per_flush: f64,
    /// Requests beyond the end of the device, which were moved to within.
    pub wrapped: u64,
    /// Arrivals that found too many waiting.
    pub dropped: u64,
    /// What the rate was chosen for, where it was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_goal: Option<AtGoal>,
    /// What the figures rest on, a sentence each.
    pub rests_on: Vec<String>,
}

/// A rate of arrivals that was looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtGoal {
    /// What was to hold.
    pub goal: Goal,
    /// Whether it holds at any rate; otherwise the rate is 0, and the response times are those of
    /// transactions that never wait for each other.
    pub holds: bool,
}

/// One kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindAnswer {
    /// Its name.
    pub kind: String,
    /// Per minute.
    pub per_min: f64,
    /// Quantiles from the request to the answer, ns.
    pub response_ns_p50: u64,
    /// 90 %.
    pub response_ns_p90: u64,
    /// 99 %.
    pub response_ns_p99: u64,
    /// 99.9 %.
    pub response_ns_p999: u64,
}

/// Requests of one operation on one file class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoAnswer {
    /// The file class: `data`, `log`.
    pub class: String,
    /// `read`, `write`, `flush`, `trim`.
    pub op: String,
    /// Requests per transaction.
    pub requests: f64,
    /// Bytes per transaction.
    pub bytes: f64,
}

/// What a part of the time goes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// `processors`, `log flush`, `locks`, `data reads`, `writes`, `client` or `free terminal`.
    pub what: String,
    /// Share of the response time, 0 to 1.
    pub share: f64,
}

/// Adds this to what the host adds to each request.
fn later(classes: &mut [Class], late_ns: u32) {
    for Class { path: Path { read, write, flush }, .. } in classes {
        for Delays(delays) in [read, write, flush] {
            if delays.is_empty() {
                delays.push(0);
            }
            for delay in delays {
                *delay = delay.saturating_add(late_ns);
            }
        }
    }
}

/// The learned system with the buffer of `base` and with what is asked, with other processor time
/// and path, for this many transactions.
fn setup(
    learned: &Learned,
    base: &Setup,
    question: &Question,
    (cpu, path): (f64, f64),
    count: u64,
) -> Setup {
    let mut setup = with_path(base, path);
    setup.terminals = question.terminals.unwrap_or(setup.terminals);
    if let Some(per_s) = question.rate {
        setup.load = Load::Open { per_s };
    }
    setup.processors.count = question.processors.unwrap_or(setup.processors.count);
    setup.processors.speed = question.speed.unwrap_or(1.0) / cpu;
    setup.log.commit_waits = !question.no_commit_wait;
    setup.log.delay = question.commit_delay.or(setup.log.delay);
    if question.log_apart {
        setup.classes[usize::from(setup.log.class)].device = 1;
    }
    setup.length.max_transactions = count;
    if let Some(start) = learned.start.as_ref().filter(|_| question.from_start) {
        let share = learned.touched_by(setup.terminals);
        setup.warming = learned.warming.as_ref().map(|all| warming::of_share(all, share));
        for task in setup.background.iter_mut().filter(|task| task.name == DATA_WRITES) {
            if let Pace::Transactions { after, .. } = &mut task.pace {
                *after = (learned.writes_after as f64 * share) as u64;
            }
        }
        if let Some(templates) = &learned.from_start {
            setup.templates.clone_from(templates);
        }
        setup.length = Length {
            warmup_ns: start.warmup_ns,
            measure_ns: start.measure_ns,
            max_transactions: u64::MAX,
        };
    }
    if !question.while_captured {
        learned.leave_capture_out(&mut setup.templates);
    }
    setup.background.extend(others(question.other_load, setup.processors.count));
    if question.request_load_ns > 0 {
        setup.background.retain(|task| task.name != KERNEL_THREADS);
        setup.background.push(Background {
            name: "for each request".to_owned(),
            pace: Pace::Requests,
            rounds: vec![vec![Step::Cpu(question.request_load_ns)]],
        });
    }
    later(&mut setup.classes, question.request_late_ns);
    for each_ns in [&mut setup.log.between_cpu_ns, &mut setup.log.leader_cpu_ns] {
        let least = (*each_ns).min(LEAST_CPU_NS as u64);
        *each_ns = each_ns.saturating_sub(question.sync_less_ns / 2).max(least);
    }
    setup.seed = question.seed;
    setup
}

/// Tasks that ask for a share of this many processors, as few as can.
fn others(share: f64, processors: u32) -> Vec<Background> {
    let processors = share.clamp(0.0, 1.0) * f64::from(processors);
    let tasks = processors.ceil();
    let each_ns = (OTHERS_EVERY_NS * processors / tasks.max(1.0)) as u64;
    let task = Background {
        name: "other programs".to_owned(),
        pace: Pace::Every(OTHERS_EVERY_NS as u64),
        rounds: vec![vec![Step::Cpu(each_ns)]],
    };
    vec![task; tasks as usize]
}

/// Simulates until there are enough transactions, at most this many times; returns all runs, and
/// the transactions per second of each.
fn simulate(
    setup: &Setup,
    most_runs: u64,
    make: &dyn Fn() -> Vec<Box<dyn Device>>,
) -> Result<(TransactionOutcome, Vec<f64>), Error> {
    let mut found = transactions(&mut make(), setup)?;
    let mut rates = vec![found.transactions_per_s];
    for run in 1..most_runs {
        if found.transactions >= ENOUGH {
            break;
        }
        let setup = Setup { seed: setup.seed.wrapping_add(run), ..setup.clone() };
        let more = transactions(&mut make(), &setup)?;
        rates.push(more.transactions_per_s);
        found.merge(&more);
    }
    Ok((found, rates))
}

/// Asks a learned system about a device, which `make` makes anew for each simulation: one, and a
/// second for the log where it lies apart.
///
/// # Errors
/// Where the question names a system that cannot exist.
pub fn predict(
    learned: &Learned,
    question: &Question,
    device: &str,
    make: &dyn Fn() -> Vec<Box<dyn Device>>,
) -> Result<Prediction, Error> {
    let start = learned.start.as_ref().filter(|_| question.from_start);
    if question.from_start && start.is_none() {
        return Err(Error::Lacks("the start of its load"));
    }
    let (base, buffer) = with_buffer(learned, question)?;
    // What was simulated, and the transactions per second: of each run, or at the rate found.
    let runs = |cpu, path, count| -> Result<(TransactionOutcome, Vec<f64>), Error> {
        let setup = setup(learned, &base, question, (cpu, path), count);
        let Some(goal) = &question.goal else {
            return simulate(&setup, start.map_or(1, |_| MOST_RUNS), make);
        };
        let once = |setup: &Setup| Ok(transactions(&mut make(), setup)?);
        let (per_s, found) = highest_rate(&setup, goal, &once)?;
        Ok((found, vec![per_s]))
    };
    let (outcome, rates) = runs(1.0, 1.0, MEASURED)?;
    let of = |(found, rates): (TransactionOutcome, Vec<f64>)| match question.goal {
        Some(_) => rates[0],
        None => found.transactions_per_s,
    };
    let slow = of(runs(1.0 + CPU_UNCERTAIN, 1.0 + PATH_UNCERTAIN, CORNER)?);
    let fast = of(runs(1.0 - CPU_UNCERTAIN, 1.0 - PATH_UNCERTAIN, CORNER)?);
    let middle = of((outcome.clone(), rates.clone()));
    let scatter = NINETY_PERCENT * deviation(&rates);
    let mut rests_on = learned.rests_on.clone();
    rests_on.extend(buffer);
    rests_on.extend(question.goal.as_ref().map(|goal| {
        format!("arrivals at random, at the highest rate at which {goal} holds, found to 1 %")
    }));
    rests_on.push(format!(
        "the interval: processor time {:.0} % and host path {:.0} % more and less",
        CPU_UNCERTAIN * 100.0,
        PATH_UNCERTAIN * 100.0
    ));
    rests_on.extend(start.map(|start| {
        let fill = learned.warming.is_some() || learned.from_start.is_some();
        let caches = if fill { "that fill as" } else { "that are full from its start, as" };
        format!(
            "a run of {:.0} s after {:.0} s of warm-up, with caches {caches} in the capture",
            start.measure_ns as f64 / 1e9,
            start.warmup_ns as f64 / 1e9
        )
    }));
    let seconds = (outcome.measured_ns as f64 / 1e9).max(1e-9);
    let processors = question.processors.unwrap_or(learned.setup.processors.count);
    let warmup_ns = start.map_or(learned.setup.length.warmup_ns, |start| start.warmup_ns);
    let whole_s = seconds + rates.len() as f64 * warmup_ns as f64 / 1e9;
    Ok(Prediction {
        device: device.to_owned(),
        terminals: question.terminals.unwrap_or(learned.setup.terminals),
        per_min: middle * 60.0,
        per_min_low: slow.min(middle - scatter).max(0.0) * 60.0,
        per_min_high: fast.max(middle + scatter) * 60.0,
        kinds: kinds(&outcome, seconds),
        limits: limits(&outcome),
        io: io(&outcome),
        processor_share: outcome.processor_share,
        busy_ns: outcome.processor_share * f64::from(processors) * 1e9
            / outcome.transactions_per_s.max(f64::MIN_POSITIVE),
        log_flushes_per_s: outcome.log.flushes as f64 / whole_s,
        commits_per_flush: outcome.log.commits as f64 / outcome.log.flushes.max(1) as f64,
        wrapped: outcome.wrapped,
        dropped: outcome.dropped,
        at_goal: question.goal.clone().map(|goal| AtGoal { goal, holds: middle > 0.0 }),
        rests_on,
    })
}

/// A short simulation, to be set beside others of it: what a change does to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// Transactions per second.
    pub per_s: f64,
    /// 99 % of the response times by kind, ns.
    pub response_ns_p99: Vec<(String, u64)>,
}

/// How far the host may be off, as factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostFactors {
    /// On processor time.
    pub cpu: f64,
    /// On what the host adds to each I/O.
    pub path: f64,
}

impl HostFactors {
    /// As learned.
    pub const LEARNED: Self = Self { cpu: 1.0, path: 1.0 };
    /// Slower and faster by as much as [`predict`] allows for.
    pub const ENDS: [Self; 2] = [
        Self { cpu: 1.0 + CPU_UNCERTAIN, path: 1.0 + PATH_UNCERTAIN },
        Self { cpu: 1.0 - CPU_UNCERTAIN, path: 1.0 - PATH_UNCERTAIN },
    ];
}

/// Simulates a few thousand transactions of what [`predict`] would answer.
///
/// # Errors
/// As [`predict`].
pub fn sketch(
    learned: &Learned,
    question: &Question,
    host: HostFactors,
    make: &dyn Fn() -> Vec<Box<dyn Device>>,
) -> Result<Sketch, Error> {
    let (base, _) = with_buffer(learned, question)?;
    sketched(&setup(learned, &base, question, (host.cpu, host.path), SKETCHED), make)
}

/// The same of each of this many parts of the captured transactions alone, with draws of its own:
/// how far they lie apart tells what the capture's length and the draws leave open.
///
/// # Errors
/// As [`predict`].
pub fn sketch_parts(
    learned: &Learned,
    question: &Question,
    parts: usize,
    make: &dyn Fn() -> Vec<Box<dyn Device>>,
) -> Result<Vec<Sketch>, Error> {
    let (base, _) = with_buffer(learned, question)?;
    let whole = setup(learned, &base, question, (1.0, 1.0), SKETCHED);
    let part = |number: usize| {
        let mut setup = whole.clone();
        setup.seed = whole.seed.wrapping_add(1 + number as u64);
        // Every so-many-th, for a load may change while it is captured.
        let own = whole.templates.iter().skip(number).step_by(parts);
        let mut templates = Templates::default();
        own.for_each(|(kind, steps)| templates.push(kind, steps));
        setup.templates = templates;
        setup
    };
    let enough = whole.templates.count() >= parts;
    (0..parts).filter(|_| enough).map(|number| sketched(&part(number), make)).collect()
}

fn sketched(setup: &Setup, make: &dyn Fn() -> Vec<Box<dyn Device>>) -> Result<Sketch, Error> {
    let outcome = transactions(&mut make(), setup)?;
    let seen = outcome.kinds.iter().filter(|kind| !kind.response.is_empty());
    let response_ns_p99 = seen.map(|kind| (kind.name.clone(), kind.response.quantile(0.99)));
    Ok(Sketch { per_s: outcome.transactions_per_s, response_ns_p99: response_ns_p99.collect() })
}

/// The learned system with the buffer that is asked for, and what that rests on.
fn with_buffer(learned: &Learned, question: &Question) -> Result<(Setup, Option<String>), Error> {
    let Some(bytes) = question.buffer_bytes else { return Ok((learned.setup.clone(), None)) };
    let buffer = learned.buffer.as_ref().ok_or(Error::Lacks("the size of its buffer"))?;
    if bytes < buffer.bytes() {
        let (asked, captured) = (Bytes(bytes), Bytes(buffer.bytes()));
        return Err(Error::SmallerBuffer { asked, captured });
    }
    let (setup, effect) = buffer.enlarge(&learned.setup, bytes);
    let rests_on = format!(
        "a buffer of {} instead of {}, which leaves {:.0} % of the reads: by LRU distances between \
         misses; {:.0} % of them were the first of their page, whose distances are estimated",
        Bytes(bytes),
        Bytes(buffer.bytes()),
        effect.reads_left * 100.0,
        effect.estimated * 100.0
    );
    Ok((setup, Some(rests_on)))
}

/// The sample's standard deviation; 0 of fewer than two.
fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() < 2 { 0.0 } else { (squares / (values.len() - 1) as f64).sqrt() }
}

fn kinds(outcome: &TransactionOutcome, seconds: f64) -> Vec<KindAnswer> {
    let seen = outcome.kinds.iter().filter(|kind| !kind.response.is_empty());
    let answers = seen.map(|kind| KindAnswer {
        kind: kind.name.clone(),
        per_min: kind.response.count() as f64 / seconds * 60.0,
        response_ns_p50: kind.response.quantile(0.5),
        response_ns_p90: kind.response.quantile(0.9),
        response_ns_p99: kind.response.quantile(0.99),
        response_ns_p999: kind.response.quantile(0.999),
    });
    answers.collect()
}

/// Requests per transaction that ended.
fn io(outcome: &TransactionOutcome) -> Vec<IoAnswer> {
    let ended = outcome.ended.max(1) as f64;
    let answers = outcome.io.iter().map(|io| IoAnswer {
        class: io.class.clone(),
        op: io.op.name().to_owned(),
        requests: io.requests as f64 / ended,
        bytes: io.bytes as f64 / ended,
    });
    answers.collect()
}

/// Shares of the response time of all transactions together.
fn limits(outcome: &TransactionOutcome) -> Vec<Limit> {
    let total: u64 = outcome.kinds.iter().map(|kind| kind.waits.total()).sum();
    let share = |of: &[Wait]| {
        let part = |waits: &Waits| of.iter().map(|wait| waits[*wait]).sum::<u64>();
        let sum: u64 = outcome.kinds.iter().map(|kind| part(&kind.waits)).sum();
        sum as f64 / total.max(1) as f64
    };
    let named = [
        ("processors", &[Wait::Cpu, Wait::RunQueue][..]),
        ("log flush", &[Wait::LogFlush, Wait::LogWait]),
        ("locks", &[Wait::Lock]),
        ("data reads", &[Wait::Read]),
        ("writes", &[Wait::Write]),
        ("client", &[Wait::Client]),
        ("free terminal", &[Wait::Terminal]),
    ];
    let mut limits: Vec<Limit> = named
        .into_iter()
        .map(|(what, of)| Limit { what: what.to_owned(), share: share(of) })
        .filter(|limit| limit.share > 0.0005)
        .collect();
    limits.sort_by(|a, b| b.share.total_cmp(&a.share));
    limits
}
