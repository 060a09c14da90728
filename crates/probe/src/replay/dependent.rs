//! Requests that wait for each other: each actor of a capture issues its next request when its
//! previous one has completed and the captured CPU time between the two has passed.
//!
//! A closed loop captured near saturation cannot be replayed at its captured times: wherever the
//! device is slower than it was, requests pile up that the application would never have issued, and
//! the replay measures its own queue. Here the load reacts as the application does, and response
//! times count from the moment at which the application would have asked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace::Trace;

use super::schedule::{Prepared, Replaying, Requests};
use crate::driver::{Flight, Order, Work};

/// No next request in a chain.
const LAST: u32 = u32::MAX;

/// The chains of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains {
    /// The actor's next request, or [`LAST`].
    next: Vec<u32>,
    /// CPU time between this request's completion and the issue of the next, ns.
    gap_ns: Vec<u64>,
    /// First request of every actor.
    heads: Vec<u32>,
}

impl Chains {
    /// Links the requests that are issued; skipped ones add their gaps to the request before them.
    /// `None` where the trace does not say who issued what, or how long it took.
    pub(super) fn of(requests: &Requests, trace: &Trace) -> Option<Self> {
        let (service, trace::Chains { actor, .. }) = trace.captured()?;
        let due_ns = &trace.due;
        let count = requests.list.len();
        let mut chains =
            Self { next: vec![LAST; count], gap_ns: vec![0; count], heads: Vec::new() };
        let actors = actor.iter().max().map_or(0, |most| usize::from(*most) + 1);
        let mut last: Vec<Option<usize>> = vec![None; actors];
        let issued = (0..count).filter(|index| requests.list[*index].is_some());
        for index in issued {
            let actor = usize::from(actor[index]);
            match last[actor].replace(index) {
                None => chains.heads.push(index as u32),
                Some(previous) => {
                    let end = due_ns[previous] + service[previous];
                    chains.next[previous] = index as u32;
                    chains.gap_ns[previous] = due_ns[index].saturating_sub(end);
                }
            }
        }
        Some(chains)
    }
}

/// The chains as work for the I/O loop.
pub(super) struct Dependent<'a> {
    state: &'a mut Replaying,
    requests: &'a Requests,
    chains: &'a Chains,
    /// (due, request) of every actor that is not waiting for a completion.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a> Dependent<'a> {
    pub(super) fn new(
        state: &'a mut Replaying,
        requests: &'a Requests,
        chains: &'a Chains,
    ) -> Self {
        let due = |index: u32| {
            let request = requests.list[index as usize].expect("chains link issued requests");
            state.start_ns() + request.due_ns
        };
        let ready = chains.heads.iter().map(|&index| Reverse((due(index), index))).collect();
        Self { state, requests, chains, ready }
    }
}

impl Work for Dependent<'_> {
    /// `None` also while every actor waits: the loop then waits for a completion and asks again.
    #[inline]
    fn next_due(&mut self, _now_ns: u64) -> Option<u64> {
        self.ready.peek().map(|Reverse((due, _))| *due)
    }

    #[inline]
    fn take(&mut self, _now_ns: u64) -> Order {
        let Reverse((due_ns, index)) = self.ready.pop().expect("next_due found one");
        self.state.issue();
        let request = self.requests.list[index as usize].expect("chains link issued requests");
        let Prepared { offset, len, op, .. } = request;
        Order { op, offset, len, tag: u64::from(index), due_ns }
    }

    #[inline]
    fn completed(&mut self, flight: &Flight, at_ns: u64) -> bool {
        self.state.note(flight, at_ns);
        let index = flight.order.tag as usize;
        let next = self.chains.next[index];
        if next != LAST {
            self.ready.push(Reverse((at_ns + self.chains.gap_ns[index], next)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;
    use crate::replay::Mode;

    /// (due, service, actor, op)
    fn captured(rows: &[(u64, u64, u16, Op)]) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for &(due, service, actor, op) in rows {
            let len = if op == Op::Flush { 0 } else { 4096 };
            let request = Request { due: Nanos(due), offset: Bytes(0), len, op, stream: 0 };
            trace.push_captured(request, Nanos(service), actor, 1);
        }
        trace
    }

    #[test]
    fn a_request_waits_for_its_actor_and_the_captured_gap() {
        let trace = captured(&[
            (0, 100, 0, Op::Read),
            (50, 10, 1, Op::Read),
            (130, 20, 0, Op::Trim),
            (150, 20, 0, Op::Write),
        ]);
        let requests = Requests::prepare(&trace, 512, false);
        let chains = Chains::of(&requests, &trace).expect("captured");
        let mut state = Replaying::new(&requests, Mode::Dependent);
        let mut work = Dependent::new(&mut state, &requests, &chains);
        assert_eq!(work.next_due(0), Some(0));
        let first = work.take(0);
        assert_eq!((first.tag, work.next_due(0)), (0, Some(50)));
        let second = work.take(60);
        assert_eq!(work.next_due(60), None, "both actors wait");
        // The first takes 400 instead of 100: what follows moves, gap of 50 kept, trim passed over.
        assert!(!work.completed(&Flight { order: first, issued_ns: 1 }, 400));
        assert_eq!(work.next_due(400), Some(450));
        assert_eq!((work.take(450).tag, work.next_due(450)), (3, None));
        assert!(!work.completed(&Flight { order: second, issued_ns: 60 }, 500));
        assert_eq!(work.next_due(500), None);
        assert_eq!(
            (state.response_ns[0], state.service_ns[0], state.lateness_ns[1]),
            (400, 399, 10)
        );
    }
}
