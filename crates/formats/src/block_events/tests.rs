//! Sequences of events by hand, and random ones against a slow pairing.

use proptest::prelude::*;

use super::super::Streams;
use super::super::batch::Batch;
use super::super::notes::Notes;
use super::*;

const QUEUED: bool = true;

/// Action letter, rwbs, sector, sectors; one event each 10 ns from 100 on.
type Step = (&'static str, &'static str, u64, u32);

fn events(steps: &[Step]) -> Vec<BlockEvent> {
    let event = |(index, (action, rwbs, sector, sectors)): (usize, &Step)| BlockEvent {
        time_ns: 100 + 10 * index as u64,
        sector: *sector,
        bytes: sectors * 512,
        device: 8 << 20,
        action: Action::from_letters(action.as_bytes()),
        flags: Flags::from_rwbs(rwbs.as_bytes()),
    };
    steps.iter().enumerate().map(event).collect()
}

fn pair(events: &[BlockEvent], queued: bool) -> (Batch, Notes) {
    let mut machine = Events::new(Clock::SinceBoot, queued);
    for event in events {
        machine.take(*event);
    }
    let (mut batch, mut notes) = (Batch::new(Streams::new(""), true), Notes::default());
    machine.finish(&mut batch, &mut notes);
    (batch, notes)
}

/// (due, op, first sector, sectors, service) of each row.
fn rows(batch: &Batch) -> Vec<(u64, Op, u64, u32, Option<u64>)> {
    let row = |index: usize| {
        let service = batch.service.get(index).copied();
        let (offset, len) = (batch.offset[index], batch.len[index]);
        (batch.due[index], batch.op[index], offset / 512, len / 512, service)
    };
    (0..batch.count()).map(row).collect()
}

fn count(notes: &Notes, what: &str) -> u64 {
    notes.counted.iter().find(|counted| counted.what.contains(what)).map_or(0, |found| found.count)
}

fn codes(notes: &Notes) -> Vec<&str> {
    notes.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn issue_and_queue_times_are_told_apart() {
    let steps =
        [("Q", "R", 8, 8), ("G", "R", 8, 8), ("I", "R", 8, 8), ("D", "R", 8, 8), ("C", "R", 8, 8)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(30, Op::Read, 8, 8, Some(10))]);
    assert_eq!(batch.facts["due"], "when it was issued to the device (D)");
    assert_eq!((count(&notes, "insertions"), codes(&notes)), (1, vec![]));
    let (batch, notes) = pair(&events(&steps), QUEUED);
    assert_eq!(rows(&batch), [(0, Op::Read, 8, 8, Some(10))]);
    assert_eq!(batch.facts["due"], "when it was queued (Q)");
    assert_eq!((batch.facts["queue_wait_ns_mean"].as_str(), codes(&notes)), ("30", vec![]));
}

#[test]
fn queue_events_alone_are_read_with_a_warning() {
    for queued in [QUEUED, !QUEUED] {
        let steps = [("Q", "R", 8, 8), ("Q", "WS", 0, 8), ("Q", "FWS", 0, 0)];
        let (batch, notes) = pair(&events(&steps), queued);
        let expected =
            [(0, Op::Read, 8, 8, None), (10, Op::Write, 0, 8, None), (20, Op::Flush, 0, 0, None)];
        assert_eq!(rows(&batch), expected);
        assert_eq!(codes(&notes), ["queue_times_only"]);
        assert!(batch.facts["due"].contains("queued"));
    }
}

#[test]
fn queue_rows_are_dropped_when_issues_come() {
    let steps = [("Q", "R", 8, 8), ("Q", "R", 80, 8), ("D", "R", 8, 8), ("Q", "R", 99, 8)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(20, Op::Read, 8, 8, None)]);
    assert_eq!(count(&notes, "queue events"), 3);
}

#[test]
fn issues_alone_have_no_service_time_but_are_kept() {
    let (batch, notes) = pair(&events(&[("D", "W", 8, 8), ("D", "R", 8, 8)]), !QUEUED);
    assert_eq!(rows(&batch), [(0, Op::Write, 8, 8, None), (10, Op::Read, 8, 8, None)]);
    assert!(codes(&notes).is_empty());
}

#[test]
fn a_requeued_request_counts_from_its_last_issue() {
    let steps =
        [("Q", "W", 8, 8), ("D", "W", 8, 8), ("R", "W", 8, 8), ("D", "W", 8, 8), ("C", "W", 8, 8)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!((rows(&batch), count(&notes, "again")), (vec![(30, Op::Write, 8, 8, Some(10))], 1));
    let (batch, notes) = pair(&events(&steps), QUEUED);
    assert_eq!((rows(&batch), count(&notes, "again")), (vec![(0, Op::Write, 8, 8, Some(10))], 1));
}

#[test]
fn partial_completions_end_with_the_last_part() {
    let steps = [("D", "R", 8, 8), ("C", "R", 8, 2), ("C", "R", 10, 5), ("C", "R", 15, 1)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(0, Op::Read, 8, 8, Some(30))]);
    assert_eq!((count(&notes, "partial"), codes(&notes)), (2, vec![]));
}

#[test]
fn merged_requests_are_one_issue_and_several_queue_entries() {
    let steps = [
        ("Q", "W", 8, 8),
        ("Q", "W", 16, 4),
        ("M", "W", 16, 4),
        ("Q", "W", 4, 4),
        ("F", "W", 4, 4),
        ("D", "W", 4, 16),
        ("C", "W", 4, 16),
    ];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(50, Op::Write, 4, 16, Some(10))]);
    assert_eq!((count(&notes, "back merges"), count(&notes, "front merges")), (1, 1));
    let (batch, notes) = pair(&events(&steps), QUEUED);
    let expected = [
        (0, Op::Write, 8, 8, Some(10)),
        (10, Op::Write, 16, 4, Some(10)),
        (30, Op::Write, 4, 4, Some(10)),
    ];
    assert_eq!((rows(&batch), codes(&notes)), (expected.to_vec(), vec![]));
}

#[test]
fn split_requests_are_several_issues_and_one_queue_entry() {
    let steps = [
        ("Q", "R", 8, 8),
        ("X", "R", 8, 8),
        ("D", "R", 8, 3),
        ("D", "R", 11, 5),
        ("C", "R", 11, 5),
        ("C", "R", 8, 3),
    ];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    let expected = [(20, Op::Read, 8, 3, Some(30)), (30, Op::Read, 11, 5, Some(10))];
    assert_eq!((rows(&batch), count(&notes, "splits")), (expected.to_vec(), 1));
    let (batch, notes) = pair(&events(&steps), QUEUED);
    assert_eq!(rows(&batch), [(0, Op::Read, 8, 8, Some(30))]);
    assert_eq!(count(&notes, "in parts"), 1);
}

/// What a current kernel does for `fdatasync` behind a write, and for a write with FUA on a device
/// without it: the flush is a command of its own, its bookkeeping ends in empty writes.
#[test]
fn flushes_are_requests_and_their_bookkeeping_is_not() {
    let steps = [
        ("Q", "FWS", 0, 0),
        ("D", "FN", 0, 0),
        ("C", "FN", 0, 0),
        ("C", "WS", 0, 0),
        ("Q", "WFS", 8, 8),
        ("D", "WFS", 8, 8),
        ("C", "WFS", 8, 8),
        ("D", "FN", u64::MAX, 0),
        ("C", "FN", u64::MAX, 0),
        ("C", "FWFS", 8, 0),
    ];
    let expected = [
        (10, Op::Flush, 0, 0, Some(10)),
        (50, Op::Write, 8, 8, Some(10)),
        (70, Op::Flush, 0, 0, Some(10)),
    ];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), expected);
    assert_eq!((count(&notes, "bookkeeping"), count(&notes, "forced unit access")), (2, 1));
    assert!(codes(&notes).is_empty(), "{notes:?}");
    let (batch, notes) = pair(&events(&steps), QUEUED);
    let dues: Vec<u64> = rows(&batch).iter().map(|row| row.0).collect();
    assert_eq!((dues, count(&notes, "without a queue event")), (vec![0, 40, 70], 1));
    assert_eq!(codes(&notes), ["queue_events_missing"]);
}

#[test]
fn old_kernels_flush_with_the_write_bit() {
    let steps = [("D", "FWS", 0, 0), ("D", "WS", 8, 8), ("C", "FWS", 0, 0), ("C", "WS", 8, 8)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch)[0], (0, Op::Flush, 0, 0, Some(20)));
    assert_eq!(count(&notes, "bookkeeping"), 0);
}

#[test]
fn discards_are_trims_and_commands_without_data_are_counted() {
    let steps = [("D", "DS", 8, 800), ("D", "N", 0, 0), ("C", "DS", 8, 800), ("C", "N", 0, 0)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(0, Op::Trim, 8, 800, Some(20))]);
    assert_eq!(count(&notes, "no data and no flush"), 2);
}

#[test]
fn what_the_ends_of_a_trace_cut_off_is_counted() {
    let steps = [("C", "R", 8, 8), ("D", "R", 16, 8), ("C", "R", 16, 8), ("D", "W", 24, 8)];
    let (batch, notes) = pair(&events(&steps), !QUEUED);
    assert_eq!(rows(&batch), [(10, Op::Read, 16, 8, Some(10)), (30, Op::Write, 24, 8, Some(0))]);
    assert_eq!((count(&notes, "before the trace"), count(&notes, "never completed")), (1, 1));
    assert_eq!(codes(&notes), ["events_unpaired"]);
    let (batch, notes) = pair(&events(&steps[..1]), !QUEUED);
    assert_eq!((batch.count(), codes(&notes)), (0, vec!["no_requests"]));
}

#[test]
fn commands_sizes_and_devices_are_told_apart_at_the_same_sector() {
    let mut all = events(&[
        ("D", "R", 8, 8),
        ("D", "W", 8, 8),
        ("D", "R", 8, 16),
        ("D", "R", 8, 8),
        ("C", "R", 8, 16),
        ("C", "W", 8, 8),
        ("C", "R", 8, 8),
        ("C", "R", 8, 8),
    ]);
    (all[3].device, all[6].device) = (8 << 20 | 1, 8 << 20 | 1);
    let (batch, _) = pair(&all, !QUEUED);
    let services: Vec<_> = rows(&batch).iter().map(|row| row.4.expect("completed")).collect();
    assert_eq!(services, [70, 40, 20, 30]);
    assert_eq!(batch.stream, [0, 0, 0, 1]);
    let (table, _) = batch.streams.finish();
    assert_eq!((table[0].name.as_str(), table[1].name.as_str()), ("8:0", "8:1"));
}

#[test]
fn equal_requests_complete_in_the_order_of_their_issue() {
    let steps = [("D", "R", 8, 8), ("D", "R", 8, 8), ("C", "R", 8, 8), ("C", "R", 8, 8)];
    let (batch, _) = pair(&events(&steps), !QUEUED);
    let services: Vec<_> = rows(&batch).iter().map(|row| row.4).collect();
    assert_eq!(services, [Some(20), Some(20)]);
}

#[test]
fn completions_that_never_come_take_bounded_memory() {
    let requests = 3 * MOST_IN_FLIGHT as u64;
    let mut all: Vec<BlockEvent> = (0..requests)
        .map(|n| BlockEvent {
            time_ns: n,
            sector: 8 * n,
            bytes: 4096,
            action: Action::Issue,
            ..BlockEvent::default()
        })
        .collect();
    let last = BlockEvent { action: Action::Complete, time_ns: requests, ..all[all.len() - 1] };
    all.push(last);
    let (batch, notes) = pair(&all, !QUEUED);
    assert_eq!(batch.count() as u64, requests);
    assert_eq!(count(&notes, "never completed"), requests - 1);
    assert_eq!(batch.service.last(), Some(&1));
}

/// A pairing that searches everything in flight, for whole requests.
fn slow(events: &[BlockEvent]) -> Vec<(u64, Op, u64, u32, Option<u64>)> {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| event.time_ns);
    let mut rows = Vec::new();
    let mut open: Vec<(BlockEvent, usize)> = Vec::new();
    for event in &sorted {
        if event.action == Action::Issue {
            open.push((*event, rows.len()));
            let op = event.op().expect("data");
            rows.push((
                event.time_ns - sorted[0].time_ns,
                op,
                event.sector,
                event.bytes / 512,
                Some(0),
            ));
        } else {
            let same = |issue: &BlockEvent| {
                let of =
                    |event: &BlockEvent| (event.sector, event.bytes, event.flags, event.device);
                of(issue) == of(event)
            };
            if let Some(at) = open.iter().position(|(issue, _)| same(issue)) {
                let (issue, row) = open.remove(at);
                rows[row].4 = Some((event.time_ns - issue.time_ns).max(1));
            }
        }
    }
    rows
}

proptest! {
    /// Sizes are a function of the sector, so that no completion can be partial; times are within
    /// what the window puts in order.
    #[test]
    fn pairing_agrees_with_a_slow_one(
        picks in prop::collection::vec(
            (0u64..6, 0u32..3, 0u32..2, any::<bool>(), 0u64..100), 1..400,
        ),
    ) {
        let mut all: Vec<BlockEvent> = picks
            .iter()
            .enumerate()
            .map(|(index, (sector, op, device, issue, jitter))| BlockEvent {
                time_ns: 1000 + index as u64 * 10 + jitter * 10,
                sector: sector * 64,
                bytes: 512 * (1 + *sector as u32),
                device: *device,
                action: if *issue { Action::Issue } else { Action::Complete },
                flags: Flags([0, Flags::WRITE, Flags::DISCARD | Flags::WRITE][*op as usize]),
            })
            .collect();
        all.push(BlockEvent {
            action: Action::Complete,
            time_ns: 1 << 40,
            sector: 1 << 30,
            bytes: 512,
            ..BlockEvent::default()
        });
        let (batch, _) = pair(&all, !QUEUED);
        prop_assert_eq!(rows(&batch), slow(&all));
    }

    #[test]
    fn any_events_are_rows_that_hold_together(
        picks in prop::collection::vec(
            (0usize..18, any::<u8>(), 0u64..5, 0u32..5000, 0u64..5000, 0u32..3), 0..300,
        ),
        queued: bool,
    ) {
        let all: Vec<BlockEvent> = picks
            .iter()
            .map(|(action, flags, sector, bytes, time_ns, device)| BlockEvent {
                time_ns: *time_ns,
                sector: *sector,
                bytes: *bytes,
                device: *device,
                action: Action::ALL[*action],
                flags: Flags(*flags),
            })
            .collect();
        let (batch, _) = pair(&all, queued);
        let count = batch.count();
        prop_assert!(batch.service.is_empty() || batch.service.len() == count);
        let streams = batch.streams.count();
        prop_assert!(batch.stream.iter().all(|stream| usize::from(*stream) < streams));
        prop_assert!(batch.due.is_sorted());
    }
}
