//! Captures made by hand, whose answers are known.

use model::{Device, Linear};
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use sim::transactions::{Load, Pace, Scheduling, Setup, Step, Think};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::learn::{set_computing, with_path};
use crate::{
    Captured, Contended, Cpu, Embedded, Error, KindOf, KindReads, Prediction, Question, Start,
    System, Transaction, calibrate, learn, learn_embedded, predict,
};

const US: u64 = 1_000;

fn device(read_ns: f64, write_ns: f64, flush_ns: f64) -> Box<dyn Device> {
    let line =
        |base_ns| Line { base_ns, ns_per_byte: 0.0, ceiling_iops: None, ceiling_bytes_per_s: None };
    Box::new(Linear::new(
        &LinearParameters {
            capacity: None,
            read: [line(read_ns); 2],
            write: [line(write_ns); 2],
            parallelism: 32,
            detection: Detection::PerStream,
            mixed: Mixed::default(),
            flush: Flush { base_ns: flush_ns, ..Flush::default() },
            trim_ns: 0.0,
            residuals: Vec::new(),
        },
        1,
    ))
}

fn streams(names: &[&str]) -> Vec<Stream> {
    names.iter().map(|name| Stream { name: (*name).to_owned() }).collect()
}

fn request(at_us: u64, op: Op, len: u32, stream: u16, offset: u64) -> Request {
    Request { due: Nanos(at_us * US), offset: Bytes(offset), len, op, stream }
}

/// One terminal of PostgreSQL that commits 1,000 times: a copy of 20 us, a sync of 600 us, of which
/// the disk takes 100 + 300; 150 us of processor time.
pub(crate) fn captured() -> Captured {
    let mut logical = Trace {
        streams: streams(&["data", "log"]),
        service: Some(Vec::new()),
        chains: Some(trace::Chains::default()),
        ..Trace::default()
    };
    let mut physical = Trace {
        streams: streams(&["data", "log", "filesystem"]),
        service: Some(Vec::new()),
        chains: Some(trace::Chains::default()),
        ..Trace::default()
    };
    for number in 1..=1_000u32 {
        let at = u64::from(number) * 1000;
        let place = u64::from(number / 40) * 8192;
        let write = request(at, Op::Write, 8192, 1, place);
        logical.push_captured(write, Nanos(20 * US), 0, number);
        logical.push_captured(request(at + 20, Op::Flush, 0, 1, 0), Nanos(600 * US), 0, number);
        physical.push_captured(request(at + 50, Op::Write, 8192, 1, place), Nanos(100 * US), 0, 0);
        physical.push_captured(request(at + 200, Op::Flush, 0, 2, 0), Nanos(300 * US), 0, 0);
    }
    let one = Transaction {
        number: 0,
        kind: 0,
        turns: 1,
        duration_ns: 800 * US,
        gap_ns: 120 * US,
        cpu_ns: 0,
        answer_cpu_ns: 0,
    };
    Captured {
        system: System::Postgresql,
        kinds: vec![KindOf { name: "update".to_owned(), writes: true }],
        transactions: vec![one; 1_000],
        logical,
        connections: vec![true],
        physical: Some(physical),
        cpu: Cpu { server_ns: 110_000.0, capture_ns: 0.0, client_ns: 40_000.0, kernel_ns: 0.0 },
        processors: 2,
        scheduling: Scheduling::default(),
        wake_ns: None,
        switching: crate::switching(None),
        disturbed: false,
        terminals: 1,
        load: Load::Closed(Think::default()),
        per_s: 1e9 / 800_000.0,
        log_bytes: Some(200_000),
        buffer_bytes: None,
        contended: Contended::Unknown,
        start: None,
    }
}

/// The same, learned.
pub(crate) fn learned() -> crate::Learned {
    learn(&captured()).unwrap()
}

#[test]
fn processor_time_is_that_of_the_accounts() {
    let mut captured = captured();
    for (index, one) in captured.transactions.iter_mut().enumerate() {
        // Gaps of any length, as on a machine that others use.
        one.gap_ns = (index as u64 % 100 + 1) * 50 * US;
        one.turns = index as u32 % 7 + 1;
    }
    let learned = learn(&captured).unwrap();
    let of = |steps: &[Step]| {
        let each = steps.iter().map(|step| match step {
            Step::Cpu(ns) | Step::Ask(ns) | Step::Behind(ns) => *ns,
            _ => 0,
        });
        each.sum::<u64>() as f64
    };
    let templates = &learned.setup.templates;
    let mean = templates.iter().map(|(_, steps)| of(steps)).sum::<f64>() / 1_000.0;
    let log = &learned.setup.log;
    let mean = mean + (log.between_cpu_ns + log.leader_cpu_ns) as f64;
    assert!((mean / 150_000.0 - 1.0).abs() < 0.001, "{mean}");
}

#[test]
fn what_the_capture_took_is_left_out_of_predictions_alone() {
    // A device that takes no time, 40 us of whose computing are not its own.
    let mut captured = captured();
    captured.cpu = Cpu { server_ns: 114_000.0, capture_ns: 40_000.0, ..captured.cpu };
    let learned = learn(&captured).unwrap();
    let make = || vec![device(0.0, 0.0, 0.0)];
    let asked = |while_captured| {
        let setup = crate::Learned { setup: without_path(&learned), ..learned.clone() };
        let question = Question { while_captured, ..Question::default() };
        predict(&setup, &question, "none", &make).unwrap().per_min
    };
    let [with, without] = [true, false].map(|captured| 60e9 / asked(captured));
    assert!((with - without - 40_000.0).abs() < 500.0, "{with} {without}");
}

/// Three terminals use two processors; a task of others that asks for one of these gets between a
/// fair part (a quarter of both) and what it asks for. One terminal finds an idle processor beside
/// those that ask for a quarter.
#[test]
fn other_programs_take_their_share_of_the_processors() {
    let mut learned = learn(&captured()).unwrap();
    learned.setup = without_path(&learned);
    learned.setup.processors.switching = sim::transactions::Switching::default();
    let ask = |terminals, other_load| {
        let question = Question { terminals: Some(terminals), other_load, ..Question::default() };
        let make = || vec![device(0.0, 0.0, 0.0)];
        predict(&learned, &question, "none", &make).unwrap()
    };
    let (alone, beside) = (ask(3, 0.0), ask(3, 0.5));
    assert!(alone.processor_share > 0.95, "{alone:?}");
    let left = beside.per_min / alone.per_min;
    assert!((0.5..0.75).contains(&left), "{left}");
    let left = ask(1, 0.25).per_min / ask(1, 0.0).per_min;
    assert!(left > 0.82, "{left}: slower processors would leave three quarters");
}

/// What emulators compute for its requests is hardly felt by one terminal, which waits for the
/// device then and finds the other of two processors idle. Eight keep both processors busy.
#[test]
fn what_an_emulator_computes_is_felt_by_many_alone() {
    let mut learned = learn(&captured()).unwrap();
    learned.setup = without_path(&learned);
    learned.setup.processors.switching = sim::transactions::Switching::default();
    let per_s = |terminals, request_load_ns| {
        let question =
            Question { terminals: Some(terminals), request_load_ns, ..Question::default() };
        let make = || vec![device(100_000.0, 100_000.0, 100_000.0)];
        predict(&learned, &question, "none", &make).unwrap().per_min / 60.0
    };
    let left = per_s(1, 50_000) / per_s(1, 0);
    assert!(left > 0.95, "{left}");
    let left = per_s(8, 100_000) / per_s(8, 0);
    assert!((0.7..0.9).contains(&left), "{left}");
}

/// 150 us by the accounts, on processors that are half as fast.
#[test]
fn slower_processors_compute_longer_for_each_transaction() {
    let mut learned = learn(&captured()).unwrap();
    learned.setup = without_path(&learned);
    learned.setup.processors.switching = sim::transactions::Switching::default();
    let question = Question { speed: Some(0.5), ..Question::default() };
    let make = || vec![device(100_000.0, 100_000.0, 100_000.0)];
    let found = predict(&learned, &question, "none", &make).unwrap();
    assert!((found.busy_ns / 300_000.0 - 1.0).abs() < 0.02, "{}", found.busy_ns);
}

/// Time per transaction of the answer to a question, where each request takes 100 us, ns.
fn each_ns(learned: &crate::Learned, question: &Question) -> f64 {
    let make = || vec![device(100_000.0, 100_000.0, 100_000.0)];
    60e9 / predict(learned, question, "none", &make).unwrap().per_min
}

/// A terminal waits for a write and a flush.
#[test]
fn answers_that_come_late_are_waited_for() {
    let mut learned = learn(&captured()).unwrap();
    learned.setup = without_path(&learned);
    let each_ns =
        |request_late_ns| each_ns(&learned, &Question { request_late_ns, ..Question::default() });
    let later = each_ns(50_000) - each_ns(0);
    assert!((later / 100_000.0 - 1.0).abs() < 0.05, "{later}");
}

/// Of one terminal's commits each computes so much less; no more than there is.
#[test]
fn syncs_compute_less_where_somebody_else_does_their_work() {
    let mut captured = captured();
    captured.terminals = 1;
    let learned = learn(&captured).unwrap();
    let each_ns =
        |sync_less_ns| each_ns(&learned, &Question { sync_less_ns, ..Question::default() });
    let less = each_ns(0) - each_ns(10_000);
    assert!((less / 10_000.0 - 1.0).abs() < 0.1, "{less}");
    let all = learned.setup.log.between_cpu_ns + learned.setup.log.leader_cpu_ns;
    let most = each_ns(0) - each_ns(1_000_000);
    assert!((most / (all as f64 - 2_000.0) - 1.0).abs() < 0.1, "{most} of {all}");
}

/// A write and a flush of the disk per transaction, for which kernel threads compute 20 us.
#[test]
fn kernel_threads_run_with_the_requests() {
    let mut captured = captured();
    captured.cpu.kernel_ns = 20_000.0;
    let background = learn(&captured).unwrap().setup.background;
    let task = background.iter().find(|task| task.name == "kernel threads").unwrap();
    assert_eq!(task.pace, Pace::Requests);
    assert_eq!(task.rounds, [[Step::Cpu(10_000)]]);
    // An emulator computes in their place.
    let mut busy_ns = |kernel_ns: f64, request_load_ns| {
        captured.cpu.kernel_ns = kernel_ns;
        let learned = learn(&captured).unwrap();
        let question = Question { request_load_ns, ..Question::default() };
        let make = || vec![device(100_000.0, 100_000.0, 100_000.0)];
        predict(&learned, &question, "one", &make).unwrap().busy_ns
    };
    assert!(busy_ns(20_000.0, 0) > busy_ns(0.0, 0) + 15_000.0);
    assert_eq!(busy_ns(20_000.0, 30_000), busy_ns(0.0, 30_000));
}

/// A buffer is full after 500 of 1,000 captured transactions, 100 came before: from then on two
/// pages are written in every tenth of a second.
#[test]
fn data_are_written_once_the_buffer_is_full() {
    let mut captured = captured();
    captured.start = Some(Start {
        warmup_ns: 100_000 * US,
        measure_ns: 1_000_000 * US,
        reads: (1..=11).map(|look| (look * 100, 10 * look)).collect(),
        read_bytes: 8192,
        log_bytes: Vec::new(),
        log_ready: None,
        by_kind: Vec::new(),
    });
    let physical = captured.physical.as_mut().unwrap();
    for at_us in (500_000..1_000_000).step_by(50_000) {
        physical.push_captured(request(at_us, Op::Write, 8192, 0, at_us), Nanos(US), 0, 0);
    }
    let learned = learn(&captured).unwrap();
    let task = learned.setup.background.iter().find(|task| task.name == "data writes").unwrap();
    assert_eq!(task.pace, Pace::Transactions { each: 50.0, after: 0 }, "a full buffer writes");
    let written = |from_start, read_ns| {
        let question = Question { from_start, ..Question::default() };
        let make = || vec![device(read_ns, 100_000.0, 300_000.0)];
        let found = predict(&learned, &question, "one", &make).unwrap();
        found.io.iter().find(|io| io.class == "data" && io.op == "write").map(|io| io.requests)
    };
    let each = written(false, 10_000.0).unwrap();
    assert!((each * 50.0 - 1.0).abs() < 0.05, "{each}");
    // From empty caches half of a run is without, and all of one that is too slow to fill them.
    let each = written(true, 10_000.0).unwrap();
    assert!(each * 50.0 > 0.4 && each * 50.0 < 0.8, "{each}");
    assert_eq!(written(true, 100_000_000.0), None);
}

/// A path that calibration made shorter is still in the accounts.
#[test]
fn the_source_computes_what_was_captured_whatever_its_path() {
    let mut crowd = captured();
    crowd.terminals = 4;
    crowd.cpu.kernel_ns = 20_000.0;
    for one in &mut crowd.transactions {
        one.turns = 4;
    }
    let mut learned = learn(&crowd).unwrap();
    set_computing(&mut learned, (0.3, 1.0)).unwrap();
    let mut setup = with_path(&learned.setup, 0.3);
    setup.length.max_transactions = 20_000;
    let found = sim::transactions::transactions(&mut [learned.source_device()], &setup).unwrap();
    let each_ns = found.processor_share * 2e9 / found.transactions_per_s;
    assert!((each_ns / 170_000.0 - 1.0).abs() < 0.03, "{each_ns}");
}

/// No path and processors that are awake.
fn without_path(learned: &crate::Learned) -> Setup {
    let mut setup = learned.setup.clone();
    setup.processors.wake_ns = 0;
    for class in &mut setup.classes {
        class.path = sim::transactions::Path::default();
    }
    setup
}

#[test]
fn kinds_that_wait_for_locks_do_not_seem_to_compute() {
    let mut captured = captured();
    captured.kinds.push(KindOf { name: "look".to_owned(), writes: false });
    // Every other transaction computes as much without waiting for a lock.
    for one in captured.transactions.iter_mut().skip(1).step_by(2) {
        (one.kind, one.gap_ns) = (1, 20 * US);
    }
    let of_kind = |captured: &Captured, kind: u16| {
        let learned = learn(captured).unwrap();
        let own = learned.setup.templates.iter().filter(|(own, _)| *own == kind);
        let cpu = |step: &Step| if let Step::Cpu(ns) | Step::Ask(ns) = step { *ns } else { 0 };
        own.flat_map(|(_, steps)| steps).map(cpu).sum::<u64>() as f64 / 500.0
    };
    assert!(of_kind(&captured, 0) > 2.5 * of_kind(&captured, 1));
    // Only the first half was watched.
    for one in &mut captured.transactions[..500] {
        (one.cpu_ns, one.answer_cpu_ns) = (90 * US, 90 * US);
    }
    let ratio = of_kind(&captured, 0) / of_kind(&captured, 1);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn the_path_of_a_sync_is_its_call_less_the_device() {
    let learned = learn(&captured()).unwrap();
    assert_eq!(learned.path_ns, Some(205_000.0), "20 + 600 - 100 - 300 - 15 us");
    let mut blind = captured();
    blind.physical = None;
    let learned = learn(&blind).unwrap();
    assert_eq!(learned.path_ns, None);
    assert!(learned.rests_on.iter().any(|line| line.contains("no host path")));
}

#[test]
fn the_source_comes_out_as_captured_and_processors_get_no_faster() {
    let mut learned = learn(&captured()).unwrap();
    calibrate(&mut learned).unwrap();
    let reached = learned.calibrated_to.unwrap();
    assert!((reached - 1.0).abs() < 0.05, "{reached}");
    assert_eq!(learned.setup.processors.speed, 1.0);
    // Twice the throughput that the accounts allow is not reached by any factor.
    let mut wrong = captured();
    wrong.per_s *= 10.0;
    let mut learned = learn(&wrong).unwrap();
    calibrate(&mut learned).unwrap();
    assert!(learned.calibration.unwrap() < 0.05 && learned.calibrated_to.unwrap() < 0.5);
    assert_eq!(learned.setup.processors.speed, 1.0);
    // What others did to a capture is no property of the host.
    let mut disturbed = captured();
    disturbed.disturbed = true;
    let mut learned = learn(&disturbed).unwrap();
    calibrate(&mut learned).unwrap();
    assert_eq!(learned.calibration, None);
}

/// Eight terminals on two processors: what switches between tasks cost is in the accounts, and is
/// simulated as well, but not counted twice.
#[test]
fn switches_between_tasks_are_not_counted_twice() {
    let mut crowd = captured();
    crowd.terminals = 8;
    for one in &mut crowd.transactions {
        one.turns = 4;
    }
    for wake_ns in [None, Some(4_000.0)] {
        crowd.wake_ns = wake_ns;
        let mut learned = learn(&crowd).unwrap();
        set_computing(&mut learned, (1.0, 1.0)).unwrap();
        let mut setup = learned.setup.clone();
        setup.length.max_transactions = 20_000;
        let found =
            sim::transactions::transactions(&mut [learned.source_device()], &setup).unwrap();
        let each_ns = found.processor_share * 2e9 / found.transactions_per_s;
        assert!((each_ns / 150_000.0 - 1.0).abs() < 0.02, "{each_ns}");
        let switching = found.switching_share / found.processor_share;
        assert!((0.05..0.4).contains(&switching), "{switching}");
        let mut alone = setup.clone();
        alone.terminals = 1;
        let found =
            sim::transactions::transactions(&mut [learned.source_device()], &alone).unwrap();
        assert!(found.switching_share < 0.1 * switching * found.processor_share);
    }
}

#[test]
fn a_wake_up_that_was_measured_is_not_calibrated() {
    let mut measured = captured();
    (measured.wake_ns, measured.switching) = (Some(4_000.0), crate::switching(Some(9_000.0)));
    let mut learned = learn(&measured).unwrap();
    assert_eq!(learned.path_ns, Some(216_000.0), "20 + 600 - 100 - 300 - 4 us");
    let processors = learned.setup.processors;
    assert_eq!((processors.wake_ns, processors.switching.interrupt_ns), (4_000, 9_000));
    calibrate(&mut learned).unwrap();
    assert_eq!((learned.calibration, learned.setup.processors.wake_ns), (Some(1.0), 4_000));
}

/// A run that something unknown held up: syncs take as long as they did, whatever the throughput.
#[test]
fn syncs_take_as_long_as_they_did() {
    for longer_us in [0, 200] {
        let mut slow = captured();
        slow.per_s /= 5.0;
        let service = slow.logical.service.as_mut().unwrap();
        let syncs = service.iter_mut().filter(|ns| **ns == 600 * US);
        syncs.step_by(2).for_each(|ns| *ns += longer_us * US);
        let mut learned = learn(&slow).unwrap();
        calibrate(&mut learned).unwrap();
        assert!(learned.calibrated_to.unwrap() > 2.0);
        let mut setup = learned.setup.clone();
        setup.length.max_transactions = 5_000;
        let found =
            sim::transactions::transactions(&mut [learned.source_device()], &setup).unwrap();
        let sync_us = found.log.held_ns as f64 / found.log.flushes as f64 / 1e3;
        // The leader computes 10 us more after the call.
        let expected_us = 20.0 + 600.0 + longer_us as f64 / 2.0 + 10.0;
        assert!((sync_us / expected_us - 1.0).abs() < 0.02, "{sync_us} us, not {expected_us}");
    }
}

#[test]
fn another_device_and_more_terminals() {
    let mut learned = learn(&captured()).unwrap();
    learned.setup.processors.switching = sim::transactions::Switching::default();
    let ask = |terminals, flush_ns, change: &dyn Fn(&mut Question)| {
        let mut question = Question { terminals: Some(terminals), ..Question::default() };
        change(&mut question);
        let make = || vec![device(100_000.0, 100_000.0, flush_ns), device(0.0, 1_000.0, 1_000.0)];
        predict(&learned, &question, "one", &make).unwrap()
    };
    let same = |_: &mut Question| {};
    // One terminal: the cycle is computing, write, flush, path, and wake-ups of idle processors.
    let one = ask(1, 2_000_000.0, &same);
    let cycle_ns = 60.0 * 1e9 / one.per_min;
    // 55 us of the path are computing, and in the accounts.
    let least = 150_000.0 + 100_000.0 + 2_000_000.0 + 150_000.0;
    assert!(cycle_ns > least && cycle_ns < least + 100_000.0, "{cycle_ns} ns, {least} at least");
    assert_eq!(one.limits[0].what, "log flush");
    assert!(one.per_min_low < one.per_min && one.per_min < one.per_min_high);
    let shares: f64 = one.limits.iter().map(|limit| limit.share).sum();
    assert!((shares - 1.0).abs() < 0.01, "{shares}");
    // Twenty share flushes: two groups alternate.
    let many = ask(20, 2_000_000.0, &same);
    assert!(many.commits_per_flush > 9.0 && many.per_min > 8.0 * one.per_min, "{many:?}");
    // Without waiting the processors limit, at what the accounts say less the way of the syncs.
    let free = ask(20, 2_000_000.0, &|question| question.no_commit_wait = true);
    assert_eq!(free.limits[0].what, "processors");
    let per_s = free.per_min / 60.0;
    assert!((per_s / (2e9 / 80_000.0) - 1.0).abs() < 0.03, "{per_s}");
    let half = ask(20, 2_000_000.0, &|question| {
        question.no_commit_wait = true;
        question.processors = Some(1);
    });
    assert!((half.per_min / free.per_min - 0.5).abs() < 0.02, "{half:?}");
    // The log on a device of its own that costs nothing.
    let apart = ask(1, 2_000_000.0, &|question| question.log_apart = true);
    assert!(apart.per_min > 4.0 * one.per_min, "{apart:?}");
    // An open loop below and above what is possible.
    let open = ask(20, 2_000_000.0, &|question| question.rate = Some(1_000.0));
    assert!((open.per_min / 60_000.0 - 1.0).abs() < 0.05, "{open:?}");
}

#[test]
fn reads_that_the_disk_served_are_kept() {
    let mut with_reads = captured();
    // Two reads per transaction, one from the page cache; the disk saw 1,000.
    let physical = with_reads.physical.as_mut().unwrap();
    let last = physical.due.last().copied().unwrap() / US;
    for number in 0..1_000u64 {
        let read = request(last + 1 + number, Op::Read, 8192, 0, number * 8192);
        physical.push_captured(read, Nanos(150 * US), 0, 0);
    }
    let last = with_reads.logical.due.last().copied().unwrap() / US;
    for number in 0..1_000u64 {
        let read = |at| request(last + at, Op::Read, 8192, 0, number * 8192);
        let own = number as u32 + 1;
        let logical = &mut with_reads.logical;
        logical.push_captured(read(2 * number + 1), Nanos(3 * US), 0, own);
        logical.push_captured(read(2 * number + 2), Nanos(170 * US), 0, own);
    }
    let learned = learn(&with_reads).unwrap();
    let reads =
        |steps: &[Step]| steps.iter().filter(|step| matches!(step, Step::Read { .. })).count();
    assert!(learned.setup.templates.iter().all(|(_, steps)| reads(steps) == 1));
}

/// The disk serves two reads per transaction, of which one finds its page in the page cache.
#[test]
fn what_the_disk_reads_ahead_is_not_waited_for() {
    let mut ahead = captured();
    let physical = ahead.physical.as_mut().unwrap();
    for number in 0..2_000u64 {
        let read = request(1_000_000 + number, Op::Read, 12 << 10, 0, number << 20);
        physical.push_captured(read, Nanos(150 * US), 0, 0);
    }
    for number in 0..1_000u64 {
        let read = |at| request(1_000_000 + at, Op::Read, 8192, 0, number << 20);
        for (at, us) in [(2 * number, 6), (2 * number + 1, 170)] {
            ahead.logical.push_captured(read(at), Nanos(us * US), 0, number as u32 + 1);
        }
    }
    let templates = learn(&ahead).unwrap().setup.templates;
    assert_eq!(templates.reads(), (1_000, 1_000));
    // The disk read 24 MiB, calls that waited asked for 8 of them.
    let bytes = |(_, steps): (u16, &[Step])| {
        steps.iter().find_map(|step| match step {
            Step::ReadAhead { bytes, .. } => Some(*bytes),
            _ => None,
        })
    };
    assert!(templates.iter().all(|one| bytes(one) == Some(16 << 10)));
    // A disk that answers in 10 us is waited for in calls as short as those.
    for time in ahead.physical.as_mut().unwrap().service.as_mut().unwrap().iter_mut() {
        *time = 10 * US;
    }
    assert_eq!(learn(&ahead).unwrap().setup.templates.reads(), (2_000, 0));
}

/// The accounts have 260 us per transaction, of which 130 + 15 are the commit's; its client waits
/// for 50 us, of which 10 come after the flush.
#[test]
fn what_nobody_waits_for_is_computed_behind_the_answer() {
    let mut captured = captured();
    captured.cpu.server_ns = 260_000.0;
    captured.transactions.iter_mut().for_each(|one| one.gap_ns = 300 * US);
    let of = |captured: &Captured| {
        let learned = learn(captured).unwrap();
        let (_, steps) = learned.setup.templates.iter().next().unwrap();
        let sum = |one: fn(&Step) -> Option<u64>| steps.iter().filter_map(one).sum::<u64>();
        let cpu = sum(|step| if let Step::Cpu(ns) = step { Some(*ns) } else { None });
        (cpu, sum(|step| if let Step::Behind(ns) = step { Some(*ns) } else { None }))
    };
    assert_eq!(of(&captured), (115 * US, 0), "it may all be waited for");
    for one in &mut captured.transactions {
        (one.cpu_ns, one.answer_cpu_ns) = (200 * US, 50 * US);
    }
    assert_eq!(of(&captured), (40 * US, 75 * US));
    // Switches that were missed say nothing.
    for one in &mut captured.transactions[..990] {
        (one.cpu_ns, one.answer_cpu_ns) = (20 * US, 10 * US);
    }
    assert_eq!(of(&captured), (115 * US, 0));
}

/// Of 20 terminals that update one of 50 rows at a time, some find it locked by another, and wait
/// for its flush before their own.
#[test]
fn updates_of_few_rows_wait_for_one_another() {
    let asked = |contended| {
        let captured = Captured { contended, ..captured() };
        let learned = learn(&captured).unwrap();
        let question = Question { terminals: Some(20), ..Question::default() };
        predict(&learned, &question, "one", &|| vec![device(1.0, 100_000.0, 1_000_000.0)]).unwrap()
    };
    let [free, many, few] =
        [Contended::Unknown, Contended::OneOf(100_000), Contended::OneOf(50)].map(asked);
    let p99 = |of: &Prediction| of.kinds[0].response_ns_p99 as f64;
    assert!((p99(&many) / p99(&free) - 1.0).abs() < 0.2, "{many:?}\n{free:?}");
    assert!(p99(&few) > 1.3 * p99(&free), "{few:?}\n{free:?}");
    assert!(few.per_min < free.per_min && few.per_min > 0.5 * free.per_min);
    assert!(few.limits.iter().any(|limit| limit.what == "locks" && limit.share > 0.1));
}

#[test]
fn segments_are_filled_where_the_capture_filled_some() {
    let mut captured = captured();
    captured.start = Some(Start {
        warmup_ns: 1_000_000 * US,
        measure_ns: 9_000_000 * US,
        reads: Vec::new(),
        read_bytes: 0,
        log_bytes: Vec::new(),
        log_ready: Some(44_000_000),
        by_kind: Vec::new(),
    });
    assert_eq!(learn(&captured).unwrap().setup.log.fill, None);
    for piece in 0..64 {
        let fill = request(3_350_000 + piece, Op::Write, 256 << 10, 1, 1 << 30);
        captured.logical.push_captured(fill, Nanos(US), 0, 0);
    }
    assert_eq!(learn(&captured).unwrap().setup.log.fill.unwrap().ready, 44_000_000);
}

/// Caches fill within 1,000 transactions, whatever these cost: a slow device is still reading when
/// a fast one has long done with it.
#[test]
fn empty_caches_are_filled_by_transactions_and_not_by_time() {
    let mut captured = captured();
    let reads = [(100, 1_000), (200, 1_800), (500, 3_300), (1_000, 4_300), (20_000, 4_300)];
    captured.start = Some(Start {
        warmup_ns: 2_000_000 * US,
        measure_ns: 10_000_000 * US,
        reads: reads.to_vec(),
        read_bytes: 8192,
        log_bytes: Vec::new(),
        log_ready: None,
        by_kind: Vec::new(),
    });
    let learned = learn(&captured).unwrap();
    let ask = |read_ns: f64, from_start| {
        let question = Question { from_start, ..Question::default() };
        let make = || vec![device(read_ns, 100_000.0, 300_000.0)];
        predict(&learned, &question, "one", &make).unwrap()
    };
    // 2 s hold more than 1,000 transactions with their 4,300 reads of 10 us: nothing is left.
    let (cold, full) = (ask(10_000.0, true), ask(10_000.0, false));
    assert!((cold.per_min / full.per_min - 1.0).abs() < 0.02, "{cold:?}\n{full:?}");
    // Reads of 20 ms: ten of them in each of the first transactions, then eight, then five.
    let (cold, full) = (ask(20_000_000.0, true), ask(20_000_000.0, false));
    assert!(full.per_min > 40_000.0, "{full:?}");
    assert!((cold.per_min / (60.0 / 0.2) - 1.0).abs() < 0.1, "{cold:?}");
    assert_eq!(cold.limits[0].what, "data reads");
    captured.start = None;
    let asked = Question { from_start: true, ..Question::default() };
    let learned = learn(&captured).unwrap();
    let none = predict(&learned, &asked, "one", &|| vec![device(1.0, 1.0, 1.0)]);
    assert_eq!(none, Err(Error::Lacks("the start of its load")));
}

/// While caches are empty each kind reads what it was seen to read, and what the measured ones of
/// its kind do later.
#[test]
fn kinds_read_what_the_disk_read_for_them() {
    let mut captured = captured();
    captured.kinds.push(KindOf { name: "look".to_owned(), writes: false });
    for number in (0..1_000).step_by(2) {
        captured.transactions[number].kind = 1;
    }
    let ask = |reads: &[(u64, u64)], by_kind: &[KindReads]| {
        let mut captured = captured.clone();
        captured.start = Some(Start {
            warmup_ns: 0,
            measure_ns: 10_000_000 * US,
            reads: reads.to_vec(),
            read_bytes: 8192,
            log_bytes: Vec::new(),
            log_ready: None,
            by_kind: by_kind.to_vec(),
        });
        let learned = learn(&captured).unwrap();
        let question = Question { from_start: true, ..Question::default() };
        let make = || vec![device(5_000_000.0, 100_000.0, 300_000.0)];
        predict(&learned, &question, "one", &make).unwrap()
    };
    let p50 = |of: Prediction| [0, 1].map(|kind| of.kinds[kind].response_ns_p50 as f64 / 1e6);
    let looks = |upto| KindReads { upto, kinds: vec![(500, 0), (500, 2_000)] };
    // Two reads of 5 ms by the mean transaction: four by each that looks, none by the others.
    let [other, look] = p50(ask(&[(10_000, 20_000)], &[looks(10_000)]));
    assert!(other < 2.0 && (look / 20.0 - 1.0).abs() < 0.1, "{other} {look}");
    // Not seen, and no reads in the measurement either: all alike.
    let [other, look] = p50(ask(&[(10_000, 20_000)], &[]));
    assert!(
        (other / 11.0 - 1.0).abs() < 0.15 && (look / 10.0 - 1.0).abs() < 0.15,
        "{other} {look}"
    );
    // Two came that look, and read a hundred each; half of those that are drawn look. Together they
    // read what the disk was seen to.
    let rare = KindReads { upto: 10_000, kinds: vec![(98, 0), (2, 200)] };
    let found = ask(&[(10_000, 20_000)], &[rare]);
    let reads = found.io.iter().find(|io| io.class == "data" && io.op == "read").unwrap();
    assert!((reads.requests / 2.0 - 1.0).abs() < 0.1, "{found:?}");
}

/// Three pages leave within a millisecond, one 200 ms later; the file system writes its journal all
/// the time.
#[test]
fn data_leaves_in_bursts_and_the_journal_does_not() {
    let mut captured = captured();
    captured.logical.streams = streams(&["data", "log", "filesystem"]);
    let physical = captured.physical.as_mut().unwrap();
    let mut requests: Vec<Request> = [0, 400, 900, 200_900]
        .map(|at| request(at, Op::Write, 8192, 0, at * 8192))
        .into_iter()
        .chain((0..100).map(|at| request(at * 2_000, Op::Write, 4096, 2, 0)))
        .collect();
    requests.sort_by_key(|request| request.due);
    *physical = Trace { streams: physical.streams.clone(), ..Trace::default() };
    for request in &requests {
        physical.push(*request);
    }
    let setup = learn(&captured).unwrap().setup;
    let rounds = |name: &str| {
        let task = setup.background.iter().find(|task| task.name == name).unwrap();
        task.rounds.clone()
    };
    let send = |at: u64| Step::Send { class: 0, bytes: 8192, offset: at * 8192 };
    let write = |at: u64| Step::Write { class: 0, bytes: 8192, offset: at * 8192 };
    let bursts = vec![vec![send(0), send(400), write(900)], vec![write(200_900)]];
    assert_eq!(rounds("data writes"), bursts);
    assert_eq!(rounds("journal writes").len(), 100);
    captured.system = System::Innodb;
    let setup = learn(&captured).unwrap().setup;
    let task = setup.background.iter().find(|task| task.name == "data writes").unwrap();
    assert_eq!(task.rounds[1], vec![write(200_900), Step::Flush { class: 0 }]);
}

/// 100 transactions in each tenth of a second, ten of them before the measurement. The first 500
/// write 4,000 bytes of log each, the next 500 half of that, those of the measurement 1,000.
#[test]
fn whole_pages_make_the_log_of_the_first_transactions_longer() {
    let mut captured = captured();
    let bytes = |upto: u64| {
        4_000 * upto.min(500)
            + 1_000 * (2 * upto.clamp(500, 1_000) - 1_000)
            + 1_000 * (upto.max(1_000) - 1_000)
    };
    captured.start = Some(Start {
        warmup_ns: 1_000_000 * US,
        measure_ns: 10_000_000 * US,
        reads: Vec::new(),
        read_bytes: 8192,
        log_bytes: (1..=110).map(|look| (100 * look, bytes(100 * look))).collect(),
        log_ready: None,
        by_kind: Vec::new(),
    });
    let warming = learn(&captured).unwrap().warming.unwrap();
    let of = |number: u64| warming.log.iter().find(|(upto, _)| *upto > number).unwrap().1;
    assert_eq!([0, 499, 500, 999, 1_000, 10_000].map(of), [4.0, 4.0, 2.0, 2.0, 1.0, 1.0]);
    assert!(warming.extra_reads.is_empty());
    captured.start = captured.start.map(|start| Start { log_bytes: Vec::new(), ..start });
    assert_eq!(learn(&captured).unwrap().warming, None);
}

/// A run of a slow device holds few transactions: it is simulated several times, and the interval
/// says how far one run may lie from the others.
#[test]
fn a_short_run_is_repeated() {
    let mut captured = captured();
    captured.start = Some(Start {
        warmup_ns: 0,
        measure_ns: 10_000_000 * US,
        reads: vec![(10_000, 20_000)],
        read_bytes: 8192,
        log_bytes: Vec::new(),
        log_ready: None,
        by_kind: Vec::new(),
    });
    let learned = learn(&captured).unwrap();
    let question = Question { from_start: true, ..Question::default() };
    let ask = || {
        let make = || vec![device(100_000_000.0, 100_000.0, 300_000.0)];
        predict(&learned, &question, "one", &make).unwrap()
    };
    // Two reads of 100 ms each on average: some 50 transactions in ten seconds.
    let slow = ask();
    assert!((slow.per_min / 300.0 - 1.0).abs() < 0.1, "{slow:?}");
    let counted: f64 = slow.kinds.iter().map(|kind| kind.per_min).sum();
    assert!((counted / slow.per_min - 1.0).abs() < 1e-9, "{slow:?}");
    let width = (slow.per_min_high - slow.per_min_low) / slow.per_min;
    // The number of reads in 50 transactions varies by 10 %: 90 % of runs within 16.
    assert!((0.2..0.7).contains(&width), "{slow:?}");
    assert_eq!(slow, ask(), "the same answer");
}

/// An embedded database: 900 transactions of the writer (ten reads in each of the first 300, then a
/// write and a flush) and 100 of a reader (one read), 20 us of computing before each request.
fn embedded() -> Embedded {
    let mut device = Trace {
        streams: streams(&["data", "log"]),
        service: Some(Vec::new()),
        chains: Some(trace::Chains::default()),
        ..Trace::default()
    };
    let mut transactions = Vec::new();
    let mut at = 0;
    for number in 1..=1_000u32 {
        let is_read = number % 10 == 0;
        transactions.push(Transaction {
            number,
            kind: u16::from(is_read),
            ..Transaction::default()
        });
        let reads = if is_read { 1 } else { 10 * u32::from(number <= 300) };
        let ops = (0..reads).map(|_| Op::Read);
        let end = [Op::Write, Op::Flush].into_iter().filter(|_| !is_read);
        for op in ops.chain(end) {
            at += 120;
            let asked = request(at, op, 4096 * u32::from(op != Op::Flush), 0, 0);
            device.push_captured(asked, Nanos(100 * US), u16::from(is_read), number);
        }
    }
    let kind = |name: &str, writes| KindOf { name: name.to_owned(), writes };
    Embedded {
        kinds: vec![kind("payment", true), kind("order_status", false)],
        transactions,
        device,
        warmup_ns: 400_000 * US,
        measure_ns: 500_000 * US,
        processors: 2,
        terminals: 1,
        load: Load::Closed(Think::default()),
        per_s: 1_000.0,
        disturbed: false,
    }
}

#[test]
fn an_embedded_database_has_a_lane_for_its_writer() {
    let learned = learn_embedded(&embedded()).unwrap();
    let ask = |terminals, us: f64, from_start| {
        let question = Question { terminals: Some(terminals), from_start, ..Question::default() };
        let make = || vec![device(us * 1e3, us * 1e3, us * 1e3)];
        predict(&learned, &question, "one", &make).unwrap()
    };
    // 630 of 700 measured transactions write and flush, the others read: 1.9 requests of 1 ms each.
    let of = |answer: &Prediction| 60.0 / answer.per_min;
    let one = of(&ask(1, 1_000.0, false));
    assert!((one / 1.9e-3 - 1.0).abs() < 0.06, "{one}");
    // More terminals keep the writer busy: 2.04 ms for each of the 90 % that write.
    let many = ask(8, 1_000.0, false);
    assert!((of(&many) / (0.9 * 2.04e-3) - 1.0).abs() < 0.05, "{many:?}");
    assert_eq!(many.limits[0].what, "locks");
    // From the start: 0.9 s hold 80 of the transactions that read ten times, whose writer needs
    // 12 requests each; at a tenth of that time all of them are through before the measurement.
    let cold = of(&ask(1, 1_000.0, true));
    assert!((cold / (0.9 * 12e-3 + 0.1e-3) - 1.0).abs() < 0.06, "{cold}");
    let fast = of(&ask(1, 10.0, true));
    assert!(fast < 0.1e-3, "{fast}");
    // Its own device: as it was captured.
    let mut bare = embedded();
    bare.device.chains = None;
    let lacks = learn_embedded(&bare).map(|_| ()).expect_err("no actors");
    assert_eq!(lacks, Error::Lacks("requests past the page cache"));
}

#[test]
fn captures_that_lack_something_are_refused() {
    let lacks = |change: &dyn Fn(&mut Captured)| {
        let mut captured = captured();
        change(&mut captured);
        learn(&captured).map(|_| ()).expect_err("it lacks something")
    };
    assert_eq!(lacks(&|one| one.transactions.clear()), Error::Lacks("transactions"));
    let calls = Error::Lacks("the server's system calls");
    assert_eq!(lacks(&|one| one.logical.chains = None), calls);
    let time = Error::Lacks("the server's processor time");
    assert_eq!(lacks(&|one| one.cpu.server_ns = 0.0), time);
}
