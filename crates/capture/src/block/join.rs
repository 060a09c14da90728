//! Pairs each request's issue with its completion.
//!
//! Issues and completions come from different processors, each in order; sorted by time, a
//! completion belongs to the open issue at its sector. A completion may be partial: the rest goes
//! on at the next sector. A flush has no sector and pairs with the last one that was issued: a
//! queue has one at a time (`blk_flush_queue`), and one whose completion was missed, as when the
//! two tracepoints are switched on one after the other, would take that of the next, and so on to
//! the end of the capture. Where several queues have one each, sums are right and single times are
//! not. Zero-length completions of a write are the flush machinery's own bookkeeping and issue
//! nothing.
//!
//! Invariants: each issue is paired at most once; requests come out sorted by issue time. Tested
//! on hand-made sequences.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use trace::{Op, Request};
use units::{Bytes, Nanos};

/// Bytes of the sectors that the tracer counts in, whatever the device's block is.
const SECTOR: u64 = 512;

/// One event of the tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    pub sector: u64,
    pub sectors: u32,
    pub op: Op,
    /// Metadata of the file system, by its own word.
    pub meta: bool,
    /// Issue, or else completion.
    pub issue: bool,
}

/// One request from issue to completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
    /// CLOCK_MONOTONIC, ns.
    pub end_ns: u64,
    /// On the disk, bytes.
    pub offset: u64,
    pub len: u32,
    pub op: Op,
    /// Metadata of the file system, by its own word.
    pub meta: bool,
}

/// What came out.
pub(super) struct Paired {
    pub requests: Vec<Joined>,
    /// Issues without completion and completions without issue.
    pub unpaired: u64,
}

impl Joined {
    /// As an entry of a trace.
    pub(super) fn to_request(self, origin_ns: u64, stream: u16) -> Request {
        let due = Nanos(self.start_ns.saturating_sub(origin_ns));
        Request { due, offset: Bytes(self.offset), len: self.len, op: self.op, stream }
    }
}

/// What the tracer's `rwbs` letters say; `None` for commands that are no I/O.
pub(super) fn operation(rwbs: &[u8]) -> Option<Op> {
    // A leading F asks for a flush in front; the operation's letter follows, F itself included.
    let letter = match rwbs {
        [b'F', second @ (b'W' | b'R' | b'D' | b'N' | b'F'), ..] => *second,
        [first, ..] => *first,
        [] => return None,
    };
    match letter {
        b'R' => Some(Op::Read),
        b'W' => Some(Op::Write),
        b'D' => Some(Op::Trim),
        b'F' => Some(Op::Flush),
        _ => None,
    }
}

/// Where an open request is looked up.
type Key = (Op, u64);

/// A request that is under way: what was issued, and what has completed of it.
struct Open {
    joined: Joined,
    done: u64,
}

/// Pairs the events, which may come in any order.
pub(super) fn join(mut events: Vec<RawEvent>) -> Paired {
    // At equal times the issue goes first.
    events.sort_by_key(|event| (event.time_ns, !event.issue));
    let mut open: HashMap<Key, VecDeque<Open>> = HashMap::new();
    let mut requests = Vec::with_capacity(events.len() / 2);
    let mut unpaired = 0;
    for event in events {
        let len = u64::from(event.sectors) * SECTOR;
        let sector = if event.op == Op::Flush { 0 } else { event.sector };
        let key = (event.op, sector);
        if event.issue {
            let offset = sector * SECTOR;
            let (start_ns, end_ns, op, meta) = (event.time_ns, event.time_ns, event.op, event.meta);
            let len = if op == Op::Flush { 0 } else { len as u32 };
            let joined = Joined { start_ns, end_ns, offset, len, op, meta };
            open.entry(key).or_default().push_back(Open { joined, done: 0 });
            continue;
        }
        let take = if event.op == Op::Flush { VecDeque::pop_back } else { VecDeque::pop_front };
        let Some(mut found) = open.get_mut(&key).and_then(take) else {
            // Bookkeeping of the flush machinery, or issued before the capture.
            unpaired += u64::from(event.sectors > 0);
            continue;
        };
        found.done += len;
        if found.done < u64::from(found.joined.len) && len > 0 {
            let next = (event.op, event.sector + u64::from(event.sectors));
            open.entry(next).or_default().push_front(found);
            continue;
        }
        found.joined.end_ns = event.time_ns;
        requests.push(found.joined);
    }
    unpaired += open.values().map(|queue| queue.len() as u64).sum::<u64>();
    requests.sort_by_key(|request| (request.start_ns, request.offset));
    Paired { requests, unpaired }
}

/// A queue slot for each request, such that requests of one slot do not overlap in time.
pub(super) fn slots(requests: &[Joined]) -> Vec<u16> {
    let mut busy: BinaryHeap<Reverse<(u64, u16)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<u16>> = BinaryHeap::new();
    let mut used: u16 = 0;
    let mut slots = Vec::with_capacity(requests.len());
    for request in requests {
        while let Some(&Reverse((end, slot))) = busy.peek().filter(|b| b.0.0 <= request.start_ns) {
            debug_assert!(end <= request.start_ns);
            busy.pop();
            free.push(Reverse(slot));
        }
        let slot = free.pop().map_or_else(
            || {
                used = used.saturating_add(1);
                used - 1
            },
            |Reverse(slot)| slot,
        );
        busy.push(Reverse((request.end_ns, slot)));
        slots.push(slot);
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, issue: bool, op: Op, sector: u64, sectors: u32) -> RawEvent {
        RawEvent { time_ns, sector, sectors, op, meta: false, issue }
    }

    #[test]
    fn letters() {
        for (rwbs, expected) in [
            ("R", Some(Op::Read)),
            ("RA", Some(Op::Read)),
            ("WS", Some(Op::Write)),
            ("WFS", Some(Op::Write)),
            ("FWS", Some(Op::Write)),
            ("FF", Some(Op::Flush)),
            ("F", Some(Op::Flush)),
            ("FS", Some(Op::Flush)),
            ("DS", Some(Op::Trim)),
            ("N", None),
            ("", None),
        ] {
            assert_eq!(operation(rwbs.as_bytes()), expected, "{rwbs}");
        }
    }

    #[test]
    fn issue_and_completion_pair_by_place_not_by_order() {
        let paired = join(vec![
            event(30, false, Op::Read, 8, 8),
            event(10, true, Op::Write, 100, 16),
            event(20, true, Op::Read, 8, 8),
            event(45, false, Op::Write, 100, 16),
        ]);
        let expected = [
            Joined {
                start_ns: 10,
                end_ns: 45,
                offset: 51_200,
                len: 8192,
                op: Op::Write,
                meta: false,
            },
            Joined { start_ns: 20, end_ns: 30, offset: 4096, len: 4096, op: Op::Read, meta: false },
        ];
        assert_eq!(paired.requests, expected);
        assert_eq!(paired.unpaired, 0);
    }

    #[test]
    fn a_partial_completion_goes_on_behind_it() {
        let paired = join(vec![
            event(10, true, Op::Write, 100, 16),
            event(20, false, Op::Write, 100, 4),
            event(30, false, Op::Write, 104, 12),
        ]);
        let expected = Joined {
            start_ns: 10,
            end_ns: 30,
            offset: 51_200,
            len: 8192,
            op: Op::Write,
            meta: false,
        };
        assert_eq!(paired.requests, [expected]);
        assert_eq!(paired.unpaired, 0);
    }

    #[test]
    fn a_flush_whose_completion_was_missed_takes_nobody_elses() {
        let mut events = vec![event(5, true, Op::Flush, 0, 0)];
        for at in [100, 200, 300] {
            events.push(event(at, true, Op::Flush, 0, 0));
            events.push(event(at + 30, false, Op::Flush, 0, 0));
        }
        let paired = join(events);
        let times: Vec<(u64, u64)> =
            paired.requests.iter().map(|one| (one.start_ns, one.end_ns - one.start_ns)).collect();
        assert_eq!(times, [(100, 30), (200, 30), (300, 30)]);
        assert_eq!(paired.unpaired, 1);
    }

    #[test]
    fn flushes_pair_and_their_bookkeeping_is_no_loss() {
        let paired = join(vec![
            event(10, true, Op::Flush, 0, 0),
            event(20, false, Op::Flush, u64::MAX, 0),
            event(21, false, Op::Write, 0, 0),
            event(30, false, Op::Read, 8, 8),
            event(40, true, Op::Read, 16, 8),
        ]);
        let flush =
            Joined { start_ns: 10, end_ns: 20, offset: 0, len: 0, op: Op::Flush, meta: false };
        assert_eq!(paired.requests, [flush]);
        assert_eq!(paired.unpaired, 2, "one issued before the capture, one not done at its end");
    }

    #[test]
    fn slots_never_overlap() {
        let request = |start_ns, end_ns| Joined {
            start_ns,
            end_ns,
            offset: 0,
            len: 512,
            op: Op::Read,
            meta: false,
        };
        let requests = [request(0, 10), request(5, 8), request(8, 20), request(10, 11)];
        assert_eq!(slots(&requests), [0, 1, 1, 0]);
    }
}
