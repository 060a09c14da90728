//! Devices that look at their queue: a later arrival can change when an earlier request completes.
//!
//! A reordering disk, reads that overtake writes, a suspended program: such a model cannot say at
//! the arrival of a request when it will be done. It is told of arrivals and asked for completions
//! instead ([`Queued`]), and is a [`Device`](crate::Device) as well:
//!
//! - a trace at its due times is exact: [`submit_due`] lets requests behind a batch arrive as long
//!   as they can change a completion within it;
//! - a closed loop is exact: the engine asks for [`Device::queued`](crate::Device::queued);
//! - [`submit`], one request at a time, serves one request at a time: nothing can overtake. A layer
//!   above that has no other way (a write cache in front) sees the device so.
//!
//! Invariants: arrivals and completions never run back; every ticket that arrived completes once;
//! nothing completes before it arrived.

use std::collections::VecDeque;
use std::ops::Range;

use trace::{Request, Trace};
use units::Nanos;

use crate::observe::{Cause, Path, Probe};

/// A device that is told of arrivals and asked for completions.
pub trait Queued: Send {
    /// `request` arrives at `now`, which is not before anything told or asked so far; `ticket` will
    /// name it.
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request);

    /// The next completion at or before `until`, in the order of their times; `None` where there is
    /// none and the clock has reached `until`.
    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)>;

    /// When something happens inside next, if nothing arrives before; `None` where nothing will.
    ///
    /// Nothing completes earlier. Who must not ask beyond the time that has passed (a device that
    /// is served in real time) learns from it when to ask again.
    fn next_event(&mut self) -> Option<Nanos>;

    /// [`Queued::next_completion`], and where the time of that request went since it arrived;
    /// `probe` is told what the device did, with tickets as the numbers of requests but for
    /// [`NO_REQUEST`].
    ///
    /// What arrived before the device was asked so for the first time may have a shorter path; a
    /// model that does not say gives empty ones.
    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        let _ = probe;
        self.next_completion(until).map(|(at, ticket)| (at, ticket, Path::EMPTY))
    }
}

/// The ticket of a request that is in no trace: no trace has so many.
pub const NO_REQUEST: u64 = u64::MAX;

/// What a queued device knows beyond the batch that it was last asked for: part of its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// First request of the trace that was not answered yet.
    answered: usize,
    /// Requests from there on that have arrived, with their completions.
    arrived: VecDeque<Option<u64>>,
    /// Where their time went, while somebody watches; no part of the state.
    paths: VecDeque<Path>,
}

impl Ahead {
    /// Its parts, for a snapshot: requests answered, and completions known beyond them.
    pub fn parts(&self) -> (usize, impl ExactSizeIterator<Item = Option<u64>> + '_) {
        (self.answered, self.arrived.iter().copied())
    }

    /// From its parts.
    pub fn from_parts(answered: usize, arrived: impl IntoIterator<Item = Option<u64>>) -> Self {
        Self { answered, arrived: arrived.into_iter().collect(), paths: VecDeque::new() }
    }
}

/// [`Device::submit`](crate::Device::submit) for a queued device: waits for the answer.
pub fn submit<Q: Queued + ?Sized>(device: &mut Q, now: Nanos, request: &Request) -> Nanos {
    device.arrive(now, NO_REQUEST, request);
    loop {
        let (at, ticket) = device.next_completion(Nanos(u64::MAX)).expect("what arrived completes");
        if ticket == NO_REQUEST {
            return at;
        }
    }
}

/// [`Device::submit_observed`](crate::Device::submit_observed) for a queued device.
pub fn submit_observed<Q: Queued + ?Sized>(
    device: &mut Q,
    now: Nanos,
    request: &Request,
    probe: &mut dyn Probe,
) -> (Nanos, Path) {
    // From before it arrives on.
    let before = device.next_observed(now, probe);
    assert!(before.is_none(), "one request at a time");
    device.arrive(now, NO_REQUEST, request);
    loop {
        let next = device.next_observed(Nanos(u64::MAX), probe);
        let (at, ticket, mut path) = next.expect("what arrived completes");
        if ticket == NO_REQUEST {
            path.spend(Cause::Unknown, at.0 - now.0 - path.total());
            return (at, path);
        }
    }
}

/// [`Device::submit_due`](crate::Device::submit_due) for a queued device. Tickets are places in the
/// trace; batches follow one another, and a batch that starts at 0 starts a new trace.
pub fn submit_due<Q: Queued + ?Sized>(
    device: &mut Q,
    ahead: &mut Ahead,
    trace: &Trace,
    range: Range<usize>,
    completions: &mut [u64],
) {
    ahead.paths.clear();
    let next = |device: &mut Q, until| {
        device.next_completion(until).map(|(at, ticket)| (at, ticket, Path::EMPTY))
    };
    serve_due(device, ahead, trace, range, completions, next);
}

/// [`Device::submit_due_observed`](crate::Device::submit_due_observed) for a queued device.
pub fn submit_due_observed<Q: Queued + ?Sized>(
    device: &mut Q,
    ahead: &mut Ahead,
    trace: &Trace,
    range: Range<usize>,
    (completions, paths): (&mut [u64], &mut [Path]),
    probe: &mut dyn Probe,
) {
    assert_eq!(range.len(), paths.len(), "one path per request");
    let start = range.start;
    if start == 0 {
        ahead.paths.clear();
    }
    let mut known = std::mem::take(&mut ahead.paths);
    let next = |device: &mut Q, until| {
        let found = device.next_observed(until, probe);
        if let Some((_, ticket, path)) = found {
            let place = ticket as usize - start;
            if known.len() <= place {
                known.resize(place + 1, Path::EMPTY);
            }
            known[place] = path;
        }
        found
    };
    serve_due(device, ahead, trace, range.clone(), completions, next);
    known.resize(known.len().max(range.len()), Path::EMPTY);
    let due = &trace.due[range.clone()];
    for (((path, known), at), due) in
        paths.iter_mut().zip(known.drain(..range.len())).zip(completions).zip(due)
    {
        *path = known;
        path.spend(Cause::Unknown, *at - due - known.total());
    }
    ahead.paths = known;
}

fn serve_due<Q: Queued + ?Sized>(
    device: &mut Q,
    ahead: &mut Ahead,
    trace: &Trace,
    range: Range<usize>,
    completions: &mut [u64],
    mut next_completion: impl FnMut(&mut Q, Nanos) -> Option<(Nanos, u64, Path)>,
) {
    assert_eq!(range.len(), completions.len(), "one completion per request");
    if range.start == 0 {
        *ahead = Ahead::default();
    }
    if ahead.answered != range.start {
        assert!(ahead.arrived.is_empty(), "batches of a trace follow one another");
        ahead.answered = range.start;
    }
    let mut missing = range.len();
    missing -= ahead.arrived.iter().take(range.len()).filter(|at| at.is_some()).count();
    while missing > 0 {
        let next = ahead.answered + ahead.arrived.len();
        let due = trace.due.get(next).copied().unwrap_or(u64::MAX);
        if let Some((at, ticket, _)) = next_completion(device, Nanos(due)) {
            let place = ticket as usize - ahead.answered;
            ahead.arrived[place] = Some(at.0);
            missing -= usize::from(place < range.len());
        } else {
            assert!(next < trace.count(), "what arrived completes");
            device.arrive(Nanos(due), next as u64, &trace.request(next));
            ahead.arrived.push_back(None);
        }
    }
    ahead.answered = range.end;
    for (completion, known) in completions.iter_mut().zip(ahead.arrived.drain(..range.len())) {
        *completion = known.expect("none of them is missing");
    }
}
