//! Hand-made sequences of calls through the tracker.

use std::sync::Arc;

use super::*;
use crate::server::calls;
use crate::server::class::System;
use crate::server::logical::Options;

/// A server whose processes do not exist, so that every question to `/proc` fails.
const MAIN: u32 = u32::MAX - 9;
const TASK: u32 = u32::MAX - 10;
const CHILD: u32 = u32::MAX - 11;
const FILE: Target = Target::File(0);

fn tracker() -> Tracker {
    let server = Server::new(System::Mariadb, MAIN, "/d");
    let (_, points) = calls::list(System::Mariadb, Options::default());
    let mut tracker = Tracker::new(server, points, Arc::default());
    tracker.process_of.extend([(MAIN, MAIN), (TASK, MAIN)]);
    tracker
}

fn event(time_ns: u64, kind: Kind, side: Side, values: [u64; 3]) -> Event {
    Event { time_ns, task: TASK, call: kind as u8, kind, side, values }
}

/// Both sides of a call.
fn call(tracker: &mut Tracker, time_ns: u64, kind: Kind, values: [u64; 3], result: i64) {
    tracker.pending.push(event(time_ns, kind, Side::Enter, values));
    tracker.pending.push(event(time_ns + 2, kind, Side::Exit, [result as u64, 0, 0]));
}

fn offsets(tracker: &Tracker) -> Vec<(Op, u64, u32)> {
    tracker.tracked.ios.iter().map(|io| (io.op, io.offset, io.len)).collect()
}

#[test]
fn positions_follow_reads_writes_and_seeks() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::Open, [0, 0, 0], 5);
    call(&mut tracker, 20, Kind::Write, [5, 0, 0], 100);
    call(&mut tracker, 30, Kind::Read, [5, 0, 0], 50);
    call(&mut tracker, 40, Kind::ReadAt, [5, 4096, 0], 8);
    call(&mut tracker, 50, Kind::Read, [5, 0, 0], 7);
    tracker.pending.push(event(60, Kind::Seek, Side::Enter, [5, (-20i64) as u64, 1]));
    call(&mut tracker, 61, Kind::Write, [5, 0, 0], 3);
    tracker.pending.push(event(70, Kind::Seek, Side::Enter, [5, 0, 2]));
    call(&mut tracker, 71, Kind::Write, [5, 0, 0], 4);
    tracker.pending.push(event(80, Kind::Seek, Side::Enter, [5, 900, 0]));
    call(&mut tracker, 81, Kind::Write, [5, 0, 0], 5);
    tracker.polled(1000);
    let expected = [
        (Op::Write, 0, 100),
        (Op::Read, 100, 50),
        (Op::Read, 4096, 8),
        (Op::Read, 150, 7),
        (Op::Write, 137, 3),
        (Op::Write, NO_OFFSET, 4),
        (Op::Write, 900, 5),
    ];
    assert_eq!(offsets(&tracker), expected);
    assert_eq!(tracker.tracked.counts, Counts::default());
}

#[test]
fn an_appending_descriptor_has_no_known_position() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::Open, [0, O_APPEND, 0], 5);
    call(&mut tracker, 20, Kind::Write, [5, 0, 0], 100);
    tracker.polled(1000);
    assert_eq!(offsets(&tracker), [(Op::Write, NO_OFFSET, 100)]);
}

#[test]
fn failures_ends_of_file_and_halves_are_no_io() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::ReadAt, [5, 0, 0], -5);
    call(&mut tracker, 20, Kind::ReadAt, [5, 0, 0], 0);
    call(&mut tracker, 30, Kind::Flush, [5, 0, 0], 0);
    tracker.pending.push(event(40, Kind::ReadAt, Side::Exit, [9, 0, 0]));
    tracker.pending.push(event(50, Kind::ReadAt, Side::Enter, [5, 0, 0]));
    tracker.pending.push(event(60, Kind::Hidden, Side::Enter, [3, 0, 0]));
    tracker.polled(1000);
    assert_eq!(offsets(&tracker), [(Op::Flush, 0, 0)]);
    let tracked = tracker.finish(Recorded { dropped: 7, ..Recorded::default() });
    let expected = Counts { losses: 7, unpaired: 2, failed: 1, hints: 0, hidden: 3 };
    assert_eq!(tracked.counts, expected);
}

#[test]
fn events_of_two_processors_are_put_in_order_before_they_count() {
    let mut tracker = tracker();
    tracker.pending.push(event(30, Kind::Close, Side::Enter, [5, 0, 0]));
    call(&mut tracker, 40, Kind::Write, [5, 0, 0], 9);
    call(&mut tracker, 10, Kind::Open, [0, 0, 0], 5);
    call(&mut tracker, 20, Kind::Write, [5, 0, 0], 8);
    tracker.polled(35);
    assert_eq!(offsets(&tracker), [(Op::Write, 0, 8)], "what is later than 35 waits");
    tracker.polled(100);
    let [first, second] = tracker.tracked.ios[..] else { panic!("two writes") };
    assert_ne!(first.handle, second.handle, "the close came between them");
    assert_eq!((first.start_ns, first.end_ns), (20, 22));
    assert_eq!(second.offset, NO_OFFSET, "another file, whose opening was not seen");
}

#[test]
fn an_answer_about_a_later_owner_is_withdrawn() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::Open, [0, 0, 0], 5);
    call(&mut tracker, 20, Kind::Open, [0, 0, 0], 6);
    tracker.polled(100);
    for handle in &mut tracker.tracked.handles {
        (handle.target, handle.asked_ns) = (FILE, 150);
    }
    // One was closed before the question, the other after it.
    tracker.pending.push(event(140, Kind::Close, Side::Enter, [5, 0, 0]));
    tracker.pending.push(event(160, Kind::Close, Side::Enter, [6, 0, 0]));
    tracker.polled(1000);
    let targets: Vec<_> = tracker.tracked.handles.iter().map(|handle| handle.target).collect();
    assert_eq!(targets, [Target::Unknown, FILE]);
}

#[test]
fn processes_inherit_and_threads_share() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::Open, [0, 0, 0], 5);
    tracker.pending.push(event(20, Kind::Born, Side::Enter, [u64::from(CHILD), 0, 0]));
    // The child closes its copy; the parent's stays. A thread of the child shares its table.
    let of_child = |mut event: Event| {
        event.task = CHILD;
        event
    };
    let thread = u64::from(CHILD) - 1;
    let born = event(30, Kind::Born, Side::Enter, [thread, CLONE_THREAD | CLONE_FILES, 0]);
    tracker.pending.push(of_child(born));
    tracker.pending.push(of_child(event(40, Kind::Close, Side::Enter, [5, 0, 0])));
    tracker.polled(1000);
    assert_eq!(tracker.tables[&MAIN].get(&5), Some(&0));
    assert!(tracker.tables[&CHILD].is_empty());
    assert_eq!(tracker.process_of[&(thread as u32)], CHILD);
    assert!(!tracker.tables.contains_key(&(thread as u32)));
}

#[test]
fn a_range_of_descriptors_is_closed() {
    let mut tracker = tracker();
    for descriptor in 4..8 {
        call(&mut tracker, descriptor as u64 * 10, Kind::Open, [0, 0, 0], descriptor);
    }
    tracker.pending.push(event(500, Kind::Close, Side::Enter, [5, 6, 0]));
    tracker.polled(1000);
    assert_eq!(tracker.tables[&MAIN].keys().copied().collect::<Vec<_>>(), [4, 7]);
}

#[test]
fn a_task_has_a_processor_from_switch_to_switch() {
    let mut tracker = tracker();
    let mut switch = |time_ns, before: u32, next: u32| {
        let values = [u64::from(before), u64::from(next), 0];
        tracker.pending.push(event(time_ns, Kind::Switch, Side::Enter, values));
    };
    // One that had a processor before the capture, a stranger, and one that goes on elsewhere.
    switch(5, TASK, 0);
    switch(10, 0, TASK);
    switch(30, TASK, CHILD);
    switch(40, CHILD, TASK);
    switch(45, TASK, MAIN);
    switch(60, MAIN, 0);
    tracker.polled(1000);
    let run = |start_ns, end_ns, task| OnProcessor { start_ns, end_ns, task };
    let expected = [run(10, 30, TASK), run(40, 45, TASK), run(45, 60, MAIN)];
    assert_eq!(tracker.tracked.runs, expected);
}

#[test]
fn who_does_something_has_a_processor() {
    let mut tracker = tracker();
    let mut push = |time_ns, kind, values: [u32; 2]| {
        let values = [u64::from(values[0]), u64::from(values[1]), 0];
        tracker.pending.push(event(time_ns, kind, Side::Enter, values));
    };
    // Nobody tells that it got a processor.
    push(10, Kind::Received, [9, 0]);
    push(20, Kind::Sent, [9, 0]);
    push(30, Kind::Switch, [TASK, 0]);
    push(45, Kind::Switch, [CHILD, TASK]);
    push(47, Kind::Received, [9, 0]);
    push(50, Kind::Switch, [TASK, 0]);
    push(60, Kind::Switch, [TASK, 0]);
    tracker.polled(1000);
    let run = |start_ns, end_ns| OnProcessor { start_ns, end_ns, task: TASK };
    assert_eq!(tracker.tracked.runs, [run(10, 30), run(45, 50)]);
}

#[test]
fn what_ran_while_nobody_watched_is_no_run() {
    let mut tracker = tracker();
    let mut push = |time_ns, side, values: [u64; 2]| {
        tracker.pending.push(event(time_ns, Kind::Switch, side, [values[0], values[1], 0]));
    };
    let task = u64::from(TASK);
    push(10, Side::Enter, [0, task]);
    push(20, Side::Enter, [task, 0]);
    push(25, Side::Enter, [0, task]);
    push(30, Side::Exit, [0, 0]);
    // Not everything is off at once; these count for nothing.
    push(32, Side::Enter, [0, task]);
    push(35, Side::Enter, [task, 0]);
    push(40, Side::Enter, [0, task]);
    push(50, Side::Exit, [1, 0]);
    push(52, Side::Enter, [task, 0]);
    push(60, Side::Enter, [0, task]);
    push(70, Side::Enter, [task, 0]);
    tracker.polled(1000);
    let run = |start_ns, end_ns| OnProcessor { start_ns, end_ns, task: TASK };
    let tracked = tracker.finish(Recorded::default());
    assert_eq!(tracked.runs, [run(10, 20), run(60, 70)]);
    assert_eq!(tracked.runs_seen, [(0, 30), (50, 70)]);
}

#[test]
fn sleeps_are_kept_and_disturb_no_call() {
    let mut tracker = tracker();
    call(&mut tracker, 10, Kind::Wait, [137, 0, 0], 0);
    // One that ended without being woken: its exit is filtered out.
    tracker.pending.push(event(20, Kind::Wait, Side::Enter, [137, 0, 0]));
    call(&mut tracker, 30, Kind::Flush, [5, 0, 0], 0);
    // The exit of a wake, whose enter is filtered out.
    tracker.pending.push(event(40, Kind::Wait, Side::Exit, [0, 0, 0]));
    tracker.polled(1000);
    assert_eq!(tracker.tracked.sleeps, [Sleep { start_ns: 10, end_ns: 12, task: TASK }]);
    assert_eq!(offsets(&tracker), [(Op::Flush, 0, 0)]);
    assert_eq!(tracker.tracked.counts, Counts::default());
}
