//! A member of a volume: a device, what it was handed, and what waits for it.
//!
//! A device that looks at its queue chooses among what it holds, which takes it longer the more
//! that is; real ones hold as many requests as they have tags. So a member holds at most `most`
//! requests, and the others wait here in the order of their arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use model::Device;
use model::observe::{Path, Probe, Span, Track};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::plan::Part;

/// Requests that a member which looks at its queue holds, where nothing else is said: the tags of
/// SATA's native command queueing.
const TAGS: usize = 32;

/// Requests and bytes of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
}

impl Traffic {
    /// Adds one request.
    pub fn add(&mut self, op: Op, bytes: u64) {
        match op {
            Op::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + bytes),
            Op::Write => {
                (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + bytes);
            }
            Op::Flush => self.flushes += 1,
            Op::Trim => self.trim_bytes += bytes,
        }
    }
}

/// What members do, for those who watch: spans with the ticket of the request that they are for;
/// none for the volume's own work.
pub(super) type Told = Vec<(Option<u64>, Span)>;

/// A device and what it was asked for.
pub(super) struct Member {
    pub device: Box<dyn Device>,
    pub is_queued: bool,
    /// Most requests that the device holds.
    most: usize,
    inside: usize,
    /// What has no place in the device yet.
    waiting: VecDeque<u32>,
    /// Earliest event of a queued device, if known since it was told of something.
    next_event: Option<u64>,
    /// Requests that it has not done.
    pub pending: u64,
    /// Behind the last request.
    pub head: u64,
    pub handed: Traffic,
    done: Traffic,
    /// When requests that were submitted directly will be done.
    leaving: BinaryHeap<Reverse<u64>>,
    /// Its requests so far.
    sequence: u64,
    /// What a queued device holds, by ticket; only asked, never walked.
    out: HashMap<u64, u32>,
}

impl Member {
    /// A device that holds `depth` requests; if that is not said, one that looks at its queue holds
    /// [`TAGS`] and one that answers at once takes all there are.
    pub fn new(mut device: Box<dyn Device>, depth: Option<usize>) -> Self {
        let is_queued = device.queued().is_some();
        let most = depth.unwrap_or(if is_queued { TAGS } else { usize::MAX });
        let (handed, done) = Default::default();
        let (leaving, out) = Default::default();
        Self {
            device,
            is_queued,
            most,
            inside: 0,
            waiting: VecDeque::new(),
            next_event: None,
            pending: 0,
            head: 0,
            handed,
            done,
            leaving,
            sequence: 0,
            out,
        }
    }

    /// Counts `part` as handed down.
    pub fn take(&mut self, part: &Part) {
        self.pending += 1;
        self.handed.add(part.op, part.bytes);
        self.head = part.offset + part.bytes;
    }

    /// Whether `flight` goes to the device now; if it does not, it waits.
    pub fn admit(&mut self, flight: u32) -> bool {
        let has_room = self.inside < self.most;
        if has_room {
            self.inside += 1;
        } else {
            self.waiting.push_back(flight);
        }
        has_room
    }

    /// The device is done with `part`: what has its place now.
    pub fn leave(&mut self, part: &Part) -> Option<u32> {
        self.pending -= 1;
        self.done.add(part.op, part.bytes);
        let next = self.waiting.pop_front();
        self.inside -= usize::from(next.is_none());
        next
    }

    /// Hands `part` to a device that looks at its queue.
    pub fn arrive(&mut self, now: u64, flight: u32, part: &Part) {
        self.next_event = None;
        self.sequence += 1;
        self.out.insert(self.sequence, flight);
        let device = self.device.queued().expect("it did when it was taken in");
        device.arrive(Nanos(now), self.sequence, &request(now, part));
    }

    /// The completion of a queued device at or before `until`, with the way of the request in it if
    /// somebody watches; `ticket` names the request of the volume that a flight is for.
    pub fn completion(
        &mut self,
        until: u64,
        told: Option<(&mut Told, Numbering)>,
        ticket: impl Fn(u32) -> Option<u64>,
    ) -> Option<(u64, u32, Path)> {
        self.next_event = None;
        let device = self.device.queued().expect("it has events");
        let (at, own, path) = match told {
            None => {
                let (at, own) = device.next_completion(Nanos(until))?;
                (at, own, Path::EMPTY)
            }
            Some((told, numbering)) => {
                let out = &self.out;
                let of = |own| out.get(&own).and_then(|flight| ticket(*flight));
                let mut ear = Ear { told, numbering, ticket: None, of: Some(&of) };
                device.next_observed(Nanos(until), &mut ear)?
            }
        };
        let flight = self.out.remove(&own).expect("it completes what it was handed, once");
        Some((at.0, flight, path))
    }

    /// Submits `part` to a device that answers at once: when it will be done.
    pub fn submit(&mut self, now: u64, part: &Part) -> u64 {
        self.device.submit(Nanos(now), &request(now, part)).0
    }

    /// The same while somebody watches, for the request `ticket` of the volume.
    pub fn submit_observed(
        &mut self,
        now: u64,
        part: &Part,
        (told, numbering): (&mut Told, Numbering),
        ticket: Option<u64>,
    ) -> (u64, Path) {
        let mut ear = Ear { told, numbering, ticket, of: None };
        let (at, path) = self.device.submit_observed(Nanos(now), &request(now, part), &mut ear);
        (at.0, path)
    }

    /// `part`, submitted past the queue, is done at `at`.
    pub fn passed(&mut self, part: &Part, at: u64) {
        self.handed.add(part.op, part.bytes);
        self.head = part.offset + part.bytes;
        self.done.add(part.op, part.bytes);
        self.leaving.push(Reverse(at));
    }

    /// Requests outstanding at `now`.
    pub fn outstanding(&mut self, now: u64) -> u64 {
        while self.leaving.peek().is_some_and(|at| at.0 <= now) {
            self.leaving.pop();
        }
        self.pending + self.leaving.len() as u64
    }

    /// When something happens in the device, if it is told of nothing before.
    pub fn next_event(&mut self) -> u64 {
        if !self.is_queued {
            return u64::MAX;
        }
        if let Some(at) = self.next_event {
            return at;
        }
        let device = self.device.queued().expect("it did when it was taken in");
        let at = device.next_event().map_or(u64::MAX, |at| at.0);
        self.next_event = Some(at);
        at
    }

    pub fn assert_conserved(&self) {
        assert_eq!(self.pending, 0, "no job is left, but a member works");
        assert!(self.waiting.is_empty(), "no job is left, but a part waits");
        assert_eq!(self.handed, self.done, "a member did not do what it was handed");
    }
}

/// How the resources of members are told apart: resource `i` of member `m` of `n` is `i n + m`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub member: usize,
    pub members: usize,
}

/// Keeps what a member tells, by ticket of the volume.
struct Ear<'a> {
    told: &'a mut Told,
    numbering: Numbering,
    /// Of the request at hand.
    ticket: Option<u64>,
    /// From the member's ticket, where it has its own.
    of: Option<&'a dyn Fn(u64) -> Option<u64>>,
}

impl Probe for Ear<'_> {
    fn request(&mut self, index: usize) {
        if let Some(of) = self.of {
            self.ticket = of(index as u64);
        }
    }

    fn span(&mut self, span: &Span) {
        let Numbering { member, members } = self.numbering;
        let track =
            Track { index: span.track.index * members as u32 + member as u32, ..span.track };
        self.told.push((self.ticket, Span { track, ..*span }));
    }
}

fn request(now: u64, part: &Part) -> Request {
    Request {
        due: Nanos(now),
        offset: Bytes(part.offset),
        len: u32::try_from(part.bytes).expect("a member request is below 4 GiB"),
        op: part.op,
        stream: 0,
    }
}
