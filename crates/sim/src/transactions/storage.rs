//! Requests on their way to devices and back.

use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::events::{Events, What};
use super::outcome::IoOutcome;
use super::setup::Class;

/// Two or more queued devices at work are asked for completions in steps of this.
const STEP_NS: u64 = 1_000;
/// Requests that do not fit are moved to a multiple of this.
const SECTOR: u64 = 4096;

/// All devices.
pub(super) struct Storage<'a> {
    slots: Vec<Slot<'a>>,
    /// Queued devices with requests in work.
    working: usize,
    /// By ticket: what the host adds to a request in work and when that was issued. The first
    /// tickets are those of the actors, the others of requests that nobody waits for.
    in_work: Vec<InWork>,
    /// Tickets of the latter that are free.
    free: Vec<u32>,
    /// By class and operation: requests, bytes, time.
    pub(super) done: Vec<IoOutcome>,
    /// Requests that lay beyond the end of their device.
    pub(super) wrapped: u64,
}

struct Slot<'a> {
    device: &'a mut Box<dyn Device>,
    in_work: u64,
    /// Asked for completions up to here.
    asked_ns: u64,
    capacity: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct InWork {
    issued: u64,
    path_ns: u64,
    row: usize,
    bytes: u32,
}

/// One request of an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) class: u16,
    pub(super) op: Op,
    pub(super) bytes: u32,
    pub(super) offset: u64,
    /// What the host adds.
    pub(super) path_ns: u64,
}

impl<'a> Storage<'a> {
    pub(super) fn new(
        devices: &'a mut [Box<dyn Device>],
        classes: &[Class],
        actors: usize,
    ) -> Self {
        let slots = devices.iter_mut().map(|device| Slot {
            capacity: device.capacity().map(|capacity| capacity.0),
            device,
            in_work: 0,
            asked_ns: 0,
        });
        let rows = classes.iter().flat_map(|class| {
            Op::ALL.map(|op| IoOutcome { class: class.name.clone(), ..IoOutcome::of(op) })
        });
        Self {
            slots: slots.collect(),
            working: 0,
            in_work: vec![InWork::default(); actors],
            free: Vec::new(),
            done: rows.collect(),
            wrapped: 0,
        }
    }

    /// Issues a request that nobody waits for; the event of its completion follows.
    pub(super) fn send(&mut self, ask: Ask, class: &Class, now: u64, events: &mut Events) {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.in_work.push(InWork::default());
            (self.in_work.len() - 1) as u32
        });
        self.issue((ticket, ask), class, now, events);
    }

    /// Notes that a request that nobody waited for is done.
    pub(super) fn sent(&mut self, ticket: u32, now: u64) {
        self.completed(ticket, now);
        self.free.push(ticket);
    }

    /// Issues the one request of a ticket; the event of its completion follows.
    pub(super) fn issue(
        &mut self,
        (ticket, ask): (u32, Ask),
        class: &Class,
        now: u64,
        events: &mut Events,
    ) {
        let slot = &mut self.slots[class.device];
        let mut offset = class.base + ask.offset;
        if let Some(capacity) = slot.capacity
            && offset + u64::from(ask.bytes) > capacity
        {
            self.wrapped += 1;
            let room = capacity.saturating_sub(u64::from(ask.bytes)) / SECTOR;
            offset = (offset / SECTOR) % room.max(1) * SECTOR;
        }
        let (due, len) = (Nanos(now), ask.bytes);
        let request = Request { due, offset: Bytes(offset), len, op: ask.op, stream: ask.class };
        let row = usize::from(ask.class) * Op::ALL.len() + ask.op as usize;
        let own = InWork { issued: now, path_ns: ask.path_ns, row, bytes: ask.bytes };
        self.in_work[ticket as usize] = own;
        if let Some(queued) = slot.device.queued() {
            let arrival = now.max(slot.asked_ns);
            slot.asked_ns = arrival;
            queued.arrive(Nanos(arrival), u64::from(ticket), &request);
            slot.in_work += 1;
            self.working += usize::from(slot.in_work == 1);
        } else {
            let completion = slot.device.submit(due, &request).0;
            events.push(completion + ask.path_ns, What::IoDone(ticket));
        }
    }

    /// Notes that the request of a ticket is done.
    pub(super) fn completed(&mut self, ticket: u32, now: u64) {
        let own = self.in_work[ticket as usize];
        let row = &mut self.done[own.row];
        row.requests += 1;
        row.bytes += u64::from(own.bytes);
        row.time.record(now - own.issued);
    }

    /// Makes the events of completions before `until`; says whether there may be more. Then the
    /// caller looks at its next event anew.
    pub(super) fn look(&mut self, until: Option<u64>, events: &mut Events) -> bool {
        if self.working == 0 {
            return false;
        }
        let until = until.unwrap_or(u64::MAX);
        if self.working == 1 {
            let slot = self.slots.iter_mut().find(|slot| slot.in_work > 0);
            let slot = slot.expect("one of them works");
            let found = slot.next(until, &self.in_work, events);
            self.working -= usize::from(slot.in_work == 0);
            return found;
        }
        let from = self.slots.iter().filter(|slot| slot.in_work > 0).map(|slot| slot.asked_ns);
        let step = from.min().unwrap_or(0).saturating_add(STEP_NS).min(until);
        let mut found = false;
        for slot in &mut self.slots {
            while slot.in_work > 0 && slot.next(step, &self.in_work, events) {
                found = true;
            }
        }
        self.working = self.slots.iter().filter(|slot| slot.in_work > 0).count();
        found || step < until
    }

    pub(super) fn counters(self) -> std::collections::BTreeMap<String, u64> {
        let mut all = std::collections::BTreeMap::new();
        for slot in self.slots {
            for counter in slot.device.counters() {
                *all.entry(counter.name.to_owned()).or_insert(0) += counter.value;
            }
        }
        all
    }
}

impl Slot<'_> {
    fn next(&mut self, until: u64, in_work: &[InWork], events: &mut Events) -> bool {
        let queued = self.device.queued().expect("only those are asked");
        let Some((at, ticket)) = queued.next_completion(Nanos(until)) else {
            self.asked_ns = self.asked_ns.max(until);
            return false;
        };
        self.asked_ns = self.asked_ns.max(at.0);
        self.in_work -= 1;
        let path_ns = in_work[ticket as usize].path_ns;
        events.push(at.0 + path_ns, What::IoDone(ticket as u32));
        true
    }
}
