//! CFQ: equal time for equal processes, in slices, and what breaks them.

use host::scheduler::{Kind, Settings};
use units::Nanos;

use super::harness::{Process, closed_loop, service_ns};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    Settings { depth: 4, merge: false, ..Settings::new(Kind::Cfq) }
}

/// Time that each process had the device in, and the lengths of its turns.
fn served(
    settings: &Settings,
    processes: &[Process],
    end_ns: u64,
) -> (Vec<u64>, Vec<(usize, u64)>) {
    let (log, _) = closed_loop(settings, processes, end_ns);
    let mut times = vec![0; processes.len()];
    let mut turns: Vec<(usize, u64)> = Vec::new();
    for (_, one) in &log {
        let (process, ns) = (usize::from(one.stream), service_ns(one));
        times[process] += ns;
        match turns.last_mut() {
            Some((last, sum)) if *last == process => *sum += ns,
            _ => turns.push((process, ns)),
        }
    }
    (times, turns)
}

#[test]
fn equal_processes_have_equal_time_within_a_slice() {
    for (slice_ms, depth) in [(100, 1), (100, 4), (20, 4), (20, 32)] {
        let mut settings = Settings { depth, ..settings() };
        settings.cfq.slice_sync = Nanos(slice_ms * MS);
        let processes = [0, FAR].map(|from| Process::reader(from, 8, 0));
        for end in [3_333 * MS, 5_000 * MS] {
            let (times, _) = served(&settings, &processes, end);
            assert!(times[0].abs_diff(times[1]) <= slice_ms * MS, "{times:?}");
            assert!(times[0] + times[1] > end - 10 * MS, "the device is busy: {times:?}");
        }
    }
}

#[test]
fn a_slice_is_time_and_not_bytes() {
    // One reads 4 KiB at a time, the other 64 KiB.
    let large = Process { len: 65536, step: 65536, ..Process::reader(FAR, 8, 0) };
    let request_ns = [50_000 + 10 * 4096, 50_000 + 10 * 65536];
    let (_, turns) = served(&settings(), &[Process::reader(0, 8, 0), large], 5_000 * MS);
    assert!(turns.len() > 40);
    for (process, ns) in &turns[1..turns.len() - 1] {
        // From its first completion on, and what is at the device then is completed too.
        let beyond = 5 * request_ns[*process];
        assert!((100 * MS..=100 * MS + beyond).contains(ns), "{process}: {ns}");
    }
}

#[test]
fn slices_grow_by_a_fifth_for_each_priority() {
    let settings = Settings { priorities: vec![0, 4, 7], ..settings() };
    let processes = [0, 1, 2].map(|at| Process::reader(at * FAR, 8, 0));
    let (_, turns) = served(&settings, &processes, 5_000 * MS);
    for (process, ns) in &turns[1..turns.len() - 1] {
        let slice = [180, 100, 40][*process] * MS;
        assert!(ns.abs_diff(slice) < 5 * MS, "{process}: {ns}");
    }
}

#[test]
fn it_idles_for_a_quick_process_and_not_for_a_slow_one() {
    let run = |think_ns, settings: &Settings| {
        let processes = [Process::reader(0, 1, think_ns), Process::reader(FAR, 8, 0)];
        served(settings, &processes, 10_000 * MS)
    };
    // Back after 1 ms, it keeps the device for its slice: 91 us of each 1.091 ms.
    let (times, _) = run(MS, &settings());
    let share = times[0] as f64 / (times[0] + times[1]) as f64;
    assert!((0.06..0.09).contains(&share), "{share}");
    // One that thinks for 12 ms is not waited for in the long run.
    let (times, _) = run(12 * MS, &settings());
    assert!(times[1] > 9_000 * MS, "{times:?}");
    let mut never = settings();
    never.cfq.slice_idle = Nanos(0);
    let (times, _) = run(MS, &never);
    assert!(times[1] > 9_500 * MS, "{times:?}");
}

#[test]
fn a_reader_does_not_wait_for_the_slice_of_writers() {
    let writer = Process { op: trace::Op::Write, ..Process::reader(FAR, 64, 0) };
    let reader = Process::reader(0, 1, 20 * MS);
    let (log, done) = closed_loop(&settings(), &[reader, writer], 2_000 * MS);
    // Its turn comes behind what is at the device: at most four requests, and its own.
    let most = 6 * service_ns(&log[0].1);
    let reads: Vec<_> = done.iter().filter(|one| one.process == 0).collect();
    assert!(reads.len() > 90, "{}", reads.len());
    assert!(reads.iter().all(|one| one.response_ns <= most), "{reads:?}");
}
