//! Transactions in virtual time against closed forms, and their invariants.
//!
//! Machine repairman and M/M/c: Kleinrock, Queueing Systems 1, sections 3.5, 3.8 and 3.9. Greedy
//! group commit with a constant flush F: in the open loop with Poisson arrivals at rate L there are
//! `1 / (F + e^(-LF) / L)` flushes per second and a commit waits `F + (F / 2) LF / (LF + e^(-LF))`
//! on average (bulk service; a commit that arrives during a flush waits for its rest and for the
//! next one); in the closed loop with a time Z < F between commits two cohorts alternate, so that N
//! even terminals commit N / (2 F) times per second.

use model::{Device, Linear};
use profile::linear::{Flush, LinearParameters};
use sim::transactions::{
    Background, Class, CommitDelay, Delays, Discipline, Fill, GroupCommit, Images, Length, Load,
    LockClass, Log, Pace, Path, Processors, Scheduling, Setup, Step, Switching, Templates, Think,
    TransactionOutcome, Wait, Warming, transactions,
};
use stats::rng::Rng;
use trace::Op;

use crate::queued::LowestFirst;
use crate::replay::constant;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const FLUSH_NS: u64 = MS;
const IDLE_FOUND: Scheduling =
    Scheduling { server_group: false, client_group: false, finds_idle: true };

/// A device whose writes cost nothing and whose flushes take [`FLUSH_NS`]; reads take 100 us.
fn log_device() -> Box<dyn Device> {
    let mut parameters: LinearParameters = constant(100_000.0);
    parameters.write = parameters.write.map(|line| profile::linear::Line { base_ns: 0.0, ..line });
    parameters.flush = Flush { base_ns: FLUSH_NS as f64, ..Flush::default() };
    parameters.parallelism = 64;
    Box::new(Linear::new(&parameters, 1))
}

fn class(name: &str, device: usize) -> Class {
    Class { name: name.to_owned(), device, base: 0, path: Path::default() }
}

/// One kind of transaction, many processors, constant flush, no think time.
fn setup(terminals: u32, steps: &[&[Step]]) -> Setup {
    let mut templates = Templates::default();
    for steps in steps {
        templates.push(0, steps);
    }
    Setup {
        load: Load::Closed(Think::default()),
        terminals,
        processors: Processors {
            count: 1000,
            speed: 1.0,
            discipline: Discipline::Fair { slice_ns: 3 * MS, scheduling: IDLE_FOUND },
            wake_ns: 0,
            switching: Switching::default(),
        },
        classes: vec![class("log", 0), class("data", 0)],
        log: Log {
            class: 0,
            rule: GroupCommit::POSTGRESQL,
            commit_waits: true,
            page_bytes: 8192,
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
        length: Length { warmup_ns: S, measure_ns: 1000 * S, max_transactions: 400_000 },
        seed: 7,
    }
}

#[track_caller]
fn run(setup: &Setup) -> TransactionOutcome {
    transactions(&mut [log_device()], setup).expect("it can be simulated")
}

#[track_caller]
fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = found / expected - 1.0;
    println!("{what}: {found:.4}, theory {expected:.4} ({error:+.4})");
    assert!(error.abs() < tolerance, "{what}: {found} against {expected} ({error:+.4})");
}

/// Samples of an exponential distribution: its quantiles, with the mean made exact.
fn exponential(mean_ns: f64, count: u32) -> Vec<u64> {
    let quantile = |k: u32| -(1.0 - (f64::from(k) + 0.5) / f64::from(count)).ln();
    let sum: f64 = (0..count).map(quantile).sum();
    let factor = mean_ns * f64::from(count) / sum;
    (0..count).map(|k| (quantile(k) * factor) as u64).collect()
}

fn computing(mean_ns: f64) -> Vec<[Step; 1]> {
    exponential(mean_ns, 20_000).into_iter().map(|ns| [Step::Cpu(ns)]).collect()
}

fn slices<const N: usize>(steps: &[[Step; N]]) -> Vec<&[Step]> {
    steps.iter().map(<[Step; N]>::as_slice).collect()
}

/// Terminals that take turns on one processor find it cold each time, by a share of their computing
/// or by the limit; one alone never does.
#[test]
fn who_goes_on_after_others_computes_longer() {
    let (share, limit_ns) = (0.5, 20_000);
    for (terminals, us, cold_us) in [(1, 30, 0.0), (2, 30, 15.0), (5, 30, 15.0), (3, 200, 20.0)] {
        let mut setup = setup(terminals, &[&[Step::Cpu(us * 1000), Step::Client(1)]]);
        setup.processors.count = 1;
        setup.processors.switching =
            Switching { cold_share: share, cold_ns: limit_ns, ..Switching::default() };
        let outcome = run(&setup);
        let what = format!("{terminals} terminals, {us} us");
        let each_us = us as f64 + cold_us;
        close(&what, outcome.transactions_per_s, 1e6 / each_us, 1e-3);
        let switching = outcome.switching_share;
        assert!((switching - cold_us / each_us).abs() < 1e-3, "{what}: {switching}");
    }
}

/// One terminal whose client computes for 30 us, and its server for 30 us before the answer and for
/// a while behind it.
#[test]
fn what_is_computed_behind_an_answer_delays_only_who_needs_the_processor() {
    for (processors, behind_us, cycle_us) in
        // Alone on its processor; as long as the client takes; then the server is asked too soon.
        [(1, 20, 80), (1, 40, 100), (2, 20, 60), (2, 30, 60), (2, 40, 70), (1000, 40, 70)]
    {
        let steps = [
            Step::Ask(20_000),
            Step::Cpu(30_000),
            Step::Behind(behind_us * 1000),
            Step::Ask(10_000),
        ];
        let mut setup = setup(1, &[&steps]);
        setup.processors.count = processors;
        let outcome = run(&setup);
        let what = format!("{processors} processors, {behind_us} us behind");
        close(&what, outcome.transactions_per_s, 1e6 / f64::from(cycle_us), 1e-3);
        let used = (60 + behind_us) as f64 / f64::from(cycle_us) / f64::from(processors);
        close(&format!("{what}: use"), outcome.processor_share, used, 1e-2);
    }
    let mut shared = setup(1, &[&[Step::Cpu(1), Step::Behind(1), Step::Ask(1)]]);
    shared.processors.discipline = Discipline::Sharing;
    assert!(transactions(&mut [log_device()], &shared).is_err());
}

/// Mean number at the servers over the throughput, by the balance of states.
fn machine_repairman(users: u32, servers: u32, think: f64, service: f64) -> (f64, f64) {
    let mut weights = vec![1.0];
    for k in 0..users {
        let arrive = f64::from(users - k) / think;
        let leave = f64::from((k + 1).min(servers)) / service;
        weights.push(weights[k as usize] * arrive / leave);
    }
    let total: f64 = weights.iter().sum();
    let at: f64 = weights.iter().zip(0u32..).map(|(w, k)| w * f64::from(k)).sum::<f64>() / total;
    let rate = weights.iter().zip(0u32..).map(|(w, k)| w * f64::from(k.min(servers)) / service);
    let rate = rate.sum::<f64>() / total;
    (rate * 1e9, at / rate)
}

/// A leader sleeps twice, while its pages are written and while they are made durable, and each
/// time an idle processor must wake up for it.
#[test]
fn a_leader_needs_a_processor_between_write_and_flush() {
    let steps: &[&[Step]] = &[&[Step::Cpu(100_000), Step::Insert(100), Step::Commit]];
    let mut setup = setup(1, steps);
    setup.processors.wake_ns = 15_000;
    setup.log.leader_cpu_ns = 10_000;
    let cycle_ns = |setup: &Setup| 1e9 / run(setup).transactions_per_s;
    let once = cycle_ns(&setup);
    setup.log.between_cpu_ns = 40_000;
    close("longer cycle", cycle_ns(&setup) - once, 40_000.0 + 15_000.0, 1e-3);
}

#[test]
fn terminals_at_processors_are_the_machine_repairman() {
    let steps = computing(MS as f64);
    for (users, servers, think) in [(1, 1, 2.0), (5, 1, 4.0), (20, 1, 30.0), (20, 2, 5.0)] {
        for discipline in
            [Discipline::Fair { slice_ns: 3 * MS, scheduling: IDLE_FOUND }, Discipline::Sharing]
        {
            let mut setup = setup(users, &slices(&steps));
            let mean_ns = think * MS as f64;
            setup.load = Load::Closed(Think { mean_ns, exponential: true });
            setup.processors = Processors { count: servers, discipline, ..setup.processors };
            setup.length.max_transactions = 1_000_000;
            setup.length.measure_ns = 10_000 * S;
            let outcome = run(&setup);
            let (rate, response) = machine_repairman(users, servers, mean_ns, MS as f64);
            let what = format!("{users} terminals, {servers} processors, {discipline:?}");
            close(&what, outcome.transactions_per_s, rate, 0.01);
            close(&what, outcome.kinds[0].response.mean(), response, 0.01);
        }
    }
}

#[test]
fn arrivals_at_processors_are_mmc() {
    let steps = computing(MS as f64);
    for (servers, rho) in [(1u32, 0.5), (2, 0.6), (4, 0.7)] {
        let offered = f64::from(servers) * rho;
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 0..servers {
            sum += term;
            term *= offered / f64::from(k + 1);
        }
        let waits = term / (1.0 - rho) / (sum + term / (1.0 - rho));
        let expected = MS as f64 * (1.0 + waits / (f64::from(servers) * (1.0 - rho)));
        for discipline in
            [Discipline::Fair { slice_ns: S, scheduling: IDLE_FOUND }, Discipline::Sharing]
        {
            let mut setup = setup(1000, &slices(&steps));
            setup.load = Load::Open { per_s: 1e9 / MS as f64 * offered };
            setup.processors = Processors { count: servers, discipline, ..setup.processors };
            setup.length.max_transactions = 1_500_000;
            setup.length.measure_ns = 10_000 * S;
            let outcome = run(&setup);
            let what = format!("M/M/{servers} at {rho}, {discipline:?}");
            close(&what, outcome.kinds[0].response.mean(), expected, 0.01);
            close(&what, outcome.processor_share, rho, 0.01);
        }
    }
}

#[test]
fn one_terminal_commits_once_per_flush_and_pause() {
    let steps = [Step::Cpu(300_000), Step::Insert(200), Step::Commit];
    let outcome = run(&setup(1, &[&steps]));
    close("one terminal", outcome.transactions_per_s, 1e9 / (FLUSH_NS + 300_000) as f64, 1e-3);
    let waits = &outcome.kinds[0].waits;
    assert_eq!(waits[Wait::LogFlush] / outcome.transactions, FLUSH_NS);
    assert_eq!(waits[Wait::LogWait], 0);
}

#[test]
fn group_commit_of_a_closed_loop_is_two_cohorts() {
    for rule in [GroupCommit::POSTGRESQL, GroupCommit::INNODB] {
        for terminals in [2, 4, 20, 100] {
            for pause in [100_000, 500_000, 900_000] {
                let steps = [Step::Client(pause), Step::Insert(200), Step::Commit];
                let mut setup = setup(terminals, &[&steps]);
                setup.log.rule = rule;
                let outcome = run(&setup);
                let what = format!("{terminals} terminals, {pause} ns, {rule:?}");
                let expected = f64::from(terminals) / (2.0 * FLUSH_NS as f64) * 1e9;
                close(&what, outcome.transactions_per_s, expected, 0.01);
            }
        }
    }
}

/// A leader that waits for all others makes one cohort of the two.
#[test]
fn a_leader_that_waits_is_joined_by_those_in_work() {
    let (pause, delay) = (50_000, 200_000);
    for (terminals, siblings, expected) in [
        (20, 5, 20.0 / (pause + delay + FLUSH_NS) as f64),
        (4, 3, 4.0 / (pause + delay + FLUSH_NS) as f64),
        // Too few could join it.
        (4, 4, 4.0 / (2 * FLUSH_NS) as f64),
        (1, 0, 1.0 / (pause + delay + FLUSH_NS) as f64),
    ] {
        let steps = [Step::Client(pause), Step::Insert(200), Step::Commit];
        let mut setup = setup(terminals, &[&steps]);
        setup.log.delay = Some(CommitDelay { ns: delay, siblings });
        let outcome = run(&setup);
        let what = format!("{terminals} terminals, {siblings} siblings");
        close(&what, outcome.transactions_per_s, expected * 1e9, 0.01);
    }
    // Who waits for a row cannot join.
    let steps = [Step::Lock(0), Step::Cpu(10_000), Step::Insert(200), Step::Commit];
    let mut setup = setup(20, &[&steps]);
    setup.locks = vec![LockClass { name: "row".to_owned(), keys: 1, home: false }];
    setup.log.delay = Some(CommitDelay { ns: delay, siblings: 1 });
    close("one row", run(&setup).transactions_per_s, 1e9 / (FLUSH_NS + 10_000) as f64, 0.01);
}

#[test]
fn group_commit_of_an_open_loop_is_bulk_service() {
    for per_s in [100.0, 1000.0, 3000.0] {
        let steps = [Step::Insert(200), Step::Commit];
        let mut setup = setup(2000, &[&steps]);
        setup.load = Load::Open { per_s };
        setup.length.max_transactions = 600_000;
        setup.length.measure_ns = 100_000 * S;
        let outcome = run(&setup);
        let flush = FLUSH_NS as f64 / 1e9;
        let (lf, none) = (per_s * flush, (-per_s * flush).exp());
        let seconds = (outcome.measured_ns + S) as f64 / 1e9;
        let what = format!("{per_s} commits/s");
        let rate = outcome.log.flushes as f64 / seconds;
        close(&what, rate, 1.0 / (flush + none / per_s), 0.01);
        let wait = FLUSH_NS as f64 * (1.0 + 0.5 * lf / (lf + none));
        close(&what, outcome.kinds[0].response.mean(), wait, 0.01);
    }
}

/// PostgreSQL holds a row until its commit is durable, InnoDB does not: on one hot row the former
/// commits once per flush and the latter as if there were no lock.
#[test]
fn locks_outlive_the_flush_or_not() {
    let steps =
        [Step::Cpu(50_000), Step::Lock(0), Step::Cpu(50_000), Step::Insert(200), Step::Commit];
    let mut setup = setup(20, &[&steps]);
    setup.locks = vec![LockClass { name: "row".to_owned(), keys: 1, home: false }];
    let outcome = run(&setup);
    close("PostgreSQL", outcome.transactions_per_s, 1e9 / (FLUSH_NS + 50_000) as f64, 0.001);
    assert_eq!(outcome.log.flushes, outcome.log.commits, "no two share a flush");
    setup.log.rule = GroupCommit::INNODB;
    let outcome = run(&setup);
    assert!(outcome.transactions_per_s > 8_000.0, "{}", outcome.transactions_per_s);
    assert!(outcome.log.commits > 5 * outcome.log.flushes);
    // Each terminal its own row: no lock is ever waited for.
    setup.log.rule = GroupCommit::POSTGRESQL;
    setup.locks[0] = LockClass { name: "row".to_owned(), keys: 20, home: true };
    let outcome = run(&setup);
    assert_eq!(outcome.kinds[0].waits[Wait::Lock], 0);
    assert!(outcome.transactions_per_s > 8_000.0, "{}", outcome.transactions_per_s);
}

/// Whoever of the waiters is next, they wait as long on average (Little); but where it is any of
/// them, some wait much longer (Kleinrock, Queueing Systems 2, section 3.6).
#[test]
fn locks_at_random_have_the_same_mean_and_a_longer_tail() {
    let mut rng = Rng::new(5);
    let templates: Vec<[Step; 2]> = (0..20_000)
        .map(|_| [Step::Lock(0), Step::Client(rng.exponential(MS as f64) as u64 + 1)])
        .collect();
    let steps: Vec<&[Step]> = templates.iter().map(|steps| &steps[..]).collect();
    let mut setup = setup(20, &steps);
    setup.locks = vec![LockClass { name: "row".to_owned(), keys: 1, home: false }];
    setup.log.rule = GroupCommit::INNODB;
    let first = run(&setup);
    setup.log.rule = GroupCommit::POSTGRESQL;
    let any = run(&setup);
    let [first, any] = [&first, &any].map(|outcome| &outcome.kinds[0].response);
    close("mean", any.mean(), first.mean(), 0.01);
    let tail = any.quantile(0.99) as f64 / first.quantile(0.99) as f64;
    assert!(tail > 2.0 && any.quantile(0.5) < first.quantile(0.5), "{tail}");
}

/// One terminal, one session, 1 ms each: between two transactions that are waited for there are as
/// many others as a fair coin falls the other way, one on average, and they are done first.
#[test]
fn deferred_transactions_are_done_before_what_is_asked_after_them() {
    let mut setup = setup(1, &[&[Step::Cpu(MS)]]);
    setup.templates.push(1, &[Step::Cpu(MS)]);
    setup.kinds.push("deferred".to_owned());
    setup.deferred = Some(1);
    setup.length.max_transactions = 400_000;
    setup.length.measure_ns = 10_000 * S;
    let outcome = run(&setup);
    close("rate", outcome.transactions_per_s, 1000.0, 0.001);
    close("waited for", outcome.kinds[0].response.mean(), 2.0 * MS as f64, 0.01);
    // The k-th of a batch of n has k ms: the mean of k over all, of batches of geometric length.
    close("deferred", outcome.kinds[1].response.mean(), 2.0 * MS as f64, 0.01);
    setup.templates = Templates::default();
    setup.templates.push(1, &[Step::Cpu(MS)]);
    let mut device = [log_device()];
    let refused = transactions(&mut device, &setup).unwrap_err().to_string();
    assert!(refused.contains("for ever"), "{refused}");
}

/// Mixed work on everything that there is, background tasks included.
fn everything(seed: u64) -> Setup {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for _ in 0..200 {
        let mut steps = vec![Step::Cpu(rng.between(1, 200_000))];
        if rng.below(2) == 0 {
            steps.push(Step::Lock(0));
        }
        let offset = rng.below(1 << 20) * 8192;
        steps.push(Step::Read { class: 1, bytes: 8192, offset });
        steps.extend([Step::Lock(1), Step::Cpu(rng.below(50_000)), Step::Client(30_000)]);
        steps.extend([Step::Insert(rng.between(50, 9000) as u32), Step::Commit]);
        all.push(steps);
    }
    let all: Vec<&[Step]> = all.iter().map(Vec::as_slice).collect();
    let mut setup = setup(20, &all);
    setup.processors = Processors { count: 2, wake_ns: 5_000, ..setup.processors };
    setup.locks = vec![
        LockClass { name: "warehouse".to_owned(), keys: 2, home: false },
        LockClass { name: "district".to_owned(), keys: 20, home: false },
    ];
    setup.log.leader_cpu_ns = 10_000;
    setup.log.between_cpu_ns = 5_000;
    setup.log.waiter_cpu_ns = 4_000;
    setup.log.images =
        Some(Images { pages: 5_000.0, touches_per_insert: 2.5, bytes: 7_900, imaged: 0.0 });
    setup.log.fill = Some(Fill { segment_bytes: 16 << 20, chunk_bytes: 1 << 20, ready: 16 << 20 });
    setup.classes[0].path.flush = Delays(vec![20_000, 60_000, 90_000]);
    setup.background = vec![
        Background {
            name: "log writer".to_owned(),
            pace: Pace::Every(200 * MS),
            rounds: vec![vec![Step::Commit]],
        },
        Background {
            name: "checkpointer".to_owned(),
            pace: Pace::Transactions { each: 50.0, after: 0 },
            rounds: vec![
                vec![Step::Write { class: 1, bytes: 8192, offset: 0 }, Step::Flush { class: 1 }],
                vec![Step::Checkpoint, Step::Cpu(40_000)],
            ],
        },
        Background {
            name: "emulator".to_owned(),
            pace: Pace::Requests,
            rounds: vec![vec![Step::Cpu(2_000)]],
        },
    ];
    setup.length = Length { warmup_ns: S, measure_ns: 60 * S, max_transactions: 30_000 };
    setup.seed = seed;
    setup
}

/// The engine asserts for each transaction that its waits add up and that it ends once.
#[test]
fn nothing_is_lost_and_the_same_seed_gives_the_same_bytes() {
    for seed in 0..4 {
        let mut setup = everything(seed);
        let mut texts = Vec::new();
        for load in [Load::Closed(Think::default()), Load::Open { per_s: 500.0 }] {
            setup.load = load;
            for rule in [GroupCommit::POSTGRESQL, GroupCommit::INNODB] {
                setup.log.rule = rule;
                let outcome = run(&setup);
                assert_eq!(outcome.asked, outcome.ended + outcome.in_work);
                assert!(outcome.ended > 1000 && outcome.log.flushes > 100);
                assert_eq!(outcome.log.filled_bytes % (16 << 20), 0, "whole segments");
                assert!(outcome.log.filled_bytes > 0 && outcome.log.image_bytes > 0);
                let writes =
                    outcome.io.iter().find(|row| row.class == "log" && row.op == Op::Write);
                let written = writes.expect("the log is written").bytes;
                let said = outcome.log.written_bytes + outcome.log.filled_bytes;
                // The last write may be under way.
                assert!(said >= written && said - written < 32 << 20, "{said} {written}");
                assert!(outcome.rounds.iter().all(|(_, rounds)| *rounds > 10));
                let requests: u64 = outcome.io.iter().map(|row| row.requests).sum();
                let (emulator, rounds) = outcome.rounds.last().unwrap();
                // Some requests, or what is computed for them, may be under way.
                assert!(emulator == "emulator" && rounds.abs_diff(requests) < 64, "{requests}");
                let text = serde_json::to_string(&outcome).unwrap();
                assert_eq!(text, serde_json::to_string(&run(&setup)).unwrap());
                let read: TransactionOutcome = serde_json::from_str(&text).unwrap();
                assert!(read.kinds == outcome.kinds && read.log == outcome.log);
                texts.push(text);
            }
        }
        texts.dedup();
        assert_eq!(texts.len(), 4, "load and rule matter");
    }
}

/// A device that takes the shortest request of those that wait sees all that wait: the short ones
/// overtake, the server is never idle, and two of them do twice as much.
#[test]
fn queued_devices_see_all_that_wait() {
    let read = |class, offset| [Step::Read { class, bytes: 512, offset }];
    let (short, long) = (10_000, 90_000);
    for disks in [1u16, 2] {
        let mut setup = setup(16, &[]);
        setup.kinds.push("long".to_owned());
        for class in 0..disks {
            setup.templates.push(0, &read(class, short));
            setup.templates.push(1, &read(class, long));
        }
        setup.classes[1].device = usize::from(disks) - 1;
        setup.classes[0].path.read = Delays(vec![2_000]);
        setup.length.max_transactions = 100_000;
        let mut devices: Vec<Box<dyn Device>> = Vec::new();
        devices.resize_with(disks.into(), || Box::new(LowestFirst::default()));
        let outcome = transactions(&mut devices, &setup).unwrap();
        let [few, many] = [0, 1].map(|kind| outcome.kinds[kind].response.mean());
        println!("{disks}: short {few:.0} ns, long {many:.0} ns");
        // One of 16 that waits for its turn waits for 15 x 50 us.
        assert!(few < 100_000.0 && many > few + 50_000.0, "{few:.0} ns, {many:.0} ns");
        let served: u64 = [(0, short), (1, long)]
            .map(|(kind, ns)| outcome.kinds[kind].response.count() * ns)
            .iter()
            .sum();
        let busy = served as f64 / outcome.measured_ns as f64;
        assert!(busy > 0.9 * f64::from(disks) && busy <= f64::from(disks) * 1.001, "{busy}");
    }
}

#[test]
fn processors_and_the_commit_rule_can_be_asked_about() {
    let steps = [Step::Cpu(200_000), Step::Insert(200), Step::Commit];
    let mut setup = setup(20, &[&steps]);
    setup.processors.count = 2;
    let two = run(&setup);
    assert!(two.processor_share > 0.95, "2 processors limit: {}", two.processor_share);
    setup.processors.speed = 0.5;
    close("half speed", run(&setup).transactions_per_s, two.transactions_per_s / 2.0, 0.05);
    setup.processors.speed = 1.0;
    setup.log.commit_waits = false;
    let free = run(&setup);
    close("no commit waits", free.transactions_per_s, 10_000.0, 0.01);
    assert_eq!(free.log.flushes, 0, "no log writer was set up");
}

/// Pages that were logged whole since the checkpoint follow the coupon collector's `1 - e^(-n /
/// P)`.
#[test]
fn page_images_decay() {
    let steps = [Step::Cpu(10_000), Step::Insert(100), Step::Commit];
    let mut setup = setup(1, &[&steps]);
    setup.length = Length { warmup_ns: 0, measure_ns: 100 * S, max_transactions: 10_000 };
    setup.log.images =
        Some(Images { pages: 5_000.0, touches_per_insert: 1.0, bytes: 8_000, imaged: 0.0 });
    let outcome = run(&setup);
    let expected = 5_000.0 * (1.0 - (-10_000.0f64 / 5_000.0).exp());
    close("images", outcome.log.image_bytes as f64 / 8_000.0, expected, 0.02);
}

/// A volume of 1,000 requests a second, and a task that hands over 100 writes at once every 200 ms:
/// they take half of the rate, and a commit that comes behind them waits for up to 100 ms.
#[test]
fn commits_wait_behind_a_burst_of_writes() {
    let burst = |step: fn(u64) -> Step| (0..100).map(step).collect::<Vec<Step>>();
    let run = |round: Vec<Step>| {
        let steps = [Step::Client(4 * MS), Step::Insert(200), Step::Commit];
        let mut setup = setup(1, &[&steps]);
        setup.length = Length { warmup_ns: 0, measure_ns: 100 * S, max_transactions: u64::MAX };
        setup.background = vec![Background {
            name: "writer".to_owned(),
            pace: Pace::Every(200 * MS),
            rounds: vec![round],
        }];
        let mut parameters: LinearParameters = constant(0.0);
        let line = profile::linear::Line { ceiling_iops: Some(1000.0), ..parameters.write[0] };
        parameters.write = [line; 2];
        transactions(&mut [Box::new(Linear::new(&parameters, 1))], &setup).unwrap()
    };
    let together = run(burst(|at| Step::Send { class: 1, bytes: 4096, offset: at * 8192 }));
    let row = |outcome: &TransactionOutcome| {
        let data = outcome.io.iter().find(|row| row.class == "data").unwrap();
        (data.requests, data.time.quantile(0.5))
    };
    let (requests, time) = row(&together);
    assert!((49_800..=50_000).contains(&requests), "{requests}");
    close("a write of a burst", time as f64, 50e6, 0.05);
    let slowest = together.kinds[0].response.max();
    assert!((90 * MS..=110 * MS).contains(&slowest), "{slowest}");
    // One after the other, a commit waits for one of them.
    let apart = run(burst(|at| Step::Write { class: 1, bytes: 4096, offset: at * 8192 }));
    assert_eq!(row(&apart).0, requests);
    assert!(apart.kinds[0].response.max() < 10 * MS, "{}", apart.kinds[0].response.max());
}

/// Transactions write so much more log the fewer there were before them.
#[test]
fn the_log_of_the_first_transactions_is_longer() {
    let steps = [Step::Cpu(10_000), Step::Insert(100), Step::Commit];
    let mut setup = setup(1, &[&steps]);
    setup.length = Length { warmup_ns: 0, measure_ns: 100 * S, max_transactions: 10_000 };
    setup.warming = Some(Warming {
        extra_reads: Vec::new(),
        extra_ahead: Vec::new(),
        by_kind: Vec::new(),
        class: 1,
        bytes: 512,
        span: 512,
        log: vec![(1_000, 10.0), (2_000, 4.0), (3_000, 0.5)],
    });
    let expected = 100.0 * (10_000.0 + 4_000.0 + 0.5 * 8_000.0);
    close("log", run(&setup).log.inserted_bytes as f64, expected, 0.001);
}

#[test]
fn impossible_systems_are_refused() {
    let steps: &[Step] = &[Step::Cpu(1), Step::Commit];
    let mistake = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup(1, &[steps]);
        change(&mut setup);
        transactions(&mut [log_device()], &setup).expect_err("it cannot exist").to_string()
    };
    assert!(mistake(&|setup| setup.terminals = 0).contains("one terminal"));
    assert!(mistake(&|setup| setup.processors.speed = 0.0).contains("speed of 0"));
    assert!(mistake(&|setup| setup.load = Load::Open { per_s: -1.0 }).contains("rate of -1"));
    assert!(mistake(&|setup| setup.templates = Templates::default()).contains("no transaction"));
    assert!(mistake(&|setup| setup.classes[1].device = 1).contains("on no device"));
    assert!(mistake(&|setup| setup.templates.push(0, &[Step::Insert(1)])).contains("no time"));
    assert!(mistake(&|setup| setup.templates.push(1, steps)).contains("no name"));
    let send = [Step::Cpu(1), Step::Send { class: 1, bytes: 4096, offset: 0 }];
    assert!(mistake(&|setup| setup.templates.push(0, &send)).contains("wait for what they write"));
    let lock = [Step::Lock(0), Step::Commit];
    assert!(mistake(&|setup| setup.templates.push(0, &lock)).contains("order of their classes"));
    let read = [Step::Read { class: 9, bytes: 1, offset: 0 }];
    assert!(mistake(&|setup| setup.templates.push(0, &read)).contains("file class 9"));
}
