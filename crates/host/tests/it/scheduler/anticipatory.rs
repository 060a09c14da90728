//! Anticipatory scheduling: when it waits, for whom, and for how long.

use host::scheduler::{Kind, Settings};
use trace::{Op, Request};
use units::Nanos;

use super::harness::{Process, closed_loop, replay, request, service_ns};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    Settings { depth: 8, merge: false, ..Settings::new(Kind::Anticipatory) }
}

/// How often the device went from one process to another, of so many dispatches.
fn switches(log: &[(u64, Request)]) -> (usize, usize) {
    let changes = log.windows(2).filter(|pair| pair[0].1.stream != pair[1].1.stream);
    (changes.count(), log.len())
}

#[test]
fn it_waits_for_a_process_that_comes_back_soon() {
    let pair = |think_ns| [Process::reader(0, 1, think_ns), Process::reader(FAR, 1, think_ns)];
    // Back within 6 ms: the device stays with one process for a long time.
    let (log, _) = closed_loop(&settings(), &pair(MS), 4_000 * MS);
    let (changes, all) = switches(&log);
    assert!(changes * 20 < all, "{changes} of {all}");
    // One request at a time, since both are synchronous and far from each other.
    let gap = |pair: &[(u64, Request)]| pair[1].0 - pair[0].0;
    assert!(log.windows(2).all(|pair| gap(pair) >= service_ns(&pair[0].1)));
    // Not for one that thinks for 10 ms, once that is known: its place goes to the other at once.
    let (log, _) = closed_loop(&settings(), &pair(10 * MS), 4_000 * MS);
    let (changes, all) = switches(&log[20..]);
    assert!(changes * 10 > all * 9, "{changes} of {all}");
    // Nor where waiting is switched off.
    let mut off = settings();
    off.anticipatory.antic_expire = Nanos(0);
    let (log, _) = closed_loop(&off, &pair(0), 1_000 * MS);
    let (changes, all) = switches(&log);
    assert!(changes * 10 > all * 9, "{changes} of {all}");
}

#[test]
fn it_waits_for_6_ms_at_most() {
    // Sequential and quick, so that it is worth waiting for; then it stays away.
    let mut requests: Vec<_> =
        (0..40).map(|at| request(at * MS / 2, Op::Read, at * 4096, 4096, 0)).collect();
    let last = requests[39].due.0;
    requests.push(request(last + 1, Op::Read, FAR, 4096, 1));
    let (completions, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, completions[39] + 6 * MS);
    let mut short = settings();
    short.anticipatory.antic_expire = Nanos(2 * MS);
    let (completions, log) = replay(&short, &requests);
    assert_eq!(log[40].0, completions[39] + 2 * MS);
    // What is near goes at once, whosever it is.
    requests[40].offset.0 = 41 * 4096;
    let (_, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, last + 1);
    // So does what nobody waits for, if its turn is: a batch of reads ends after 500 ms only.
    requests[40].offset.0 = FAR;
    requests[40].op = Op::Write;
    let (completions, log) = replay(&settings(), &requests);
    assert_eq!(log[40].0, completions[39] + 6 * MS);
}

#[test]
fn batches_take_turns_by_time_and_never_mix_at_the_device() {
    let writer = Process { op: Op::Write, outstanding: 64, ..Process::reader(FAR, 1, 0) };
    let (log, _) = closed_loop(&settings(), &[Process::reader(0, 4, 0), writer], 12_000 * MS);
    // Requests of one direction are complete before the first of the other is issued.
    let mut open: Vec<(u64, Op)> = Vec::new();
    let mut free_at = 0;
    for (at, one) in &log {
        free_at = free_at.max(*at) + service_ns(one);
        open.retain(|(done, _)| *done > *at);
        assert!(open.iter().all(|(_, op)| *op == one.op), "at {at}");
        open.push((free_at, one.op));
    }
    let starts: Vec<_> = log
        .windows(2)
        .filter(|pair| pair[0].1.op != pair[1].1.op)
        .map(|pair| (pair[1].1.op, pair[1].0))
        .collect();
    let turns = starts.windows(2).map(|pair| (pair[0].0, pair[1].1 - pair[0].1));
    let of = |op: Op| turns.clone().filter(move |turn| turn.0 == op).map(|turn| turn.1);
    // Reads have 500 ms of each turn. Writes start with 12 requests, twice as many each time until
    // they fill 125 ms.
    assert!(of(Op::Read).all(|ns| (499 * MS..502 * MS).contains(&ns)), "{starts:?}");
    let writes: Vec<_> = of(Op::Write).collect();
    let request = service_ns(&log[0].1);
    let expected = (0..7).map(|turn| (12 * request) << turn);
    assert!(expected.zip(&writes).all(|(ns, found)| ns.abs_diff(*found) <= request), "{writes:?}");
    assert!(writes[7..].iter().all(|ns| (120 * MS..127 * MS).contains(ns)), "{writes:?}");
    assert!(writes.len() > 15);
}
