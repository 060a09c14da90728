//! The device below: one that looks at its queue, or one that answers at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Device;
use model::observe::{Path, Probe, Span};
use model::queued::NO_REQUEST;
use units::Nanos;

use super::pool::{Id, Pool};

/// A device that entries of a [`Pool`] are issued to.
pub(super) struct Below {
    pub device: Box<dyn Device>,
    is_queued: bool,
    /// Of a device that answers at once: (completion, order of issue, entry).
    answered: BinaryHeap<Reverse<(u64, u64, Id)>>,
    issued: u64,
    /// Of the same, by entry, while somebody watches.
    paths: Vec<Path>,
    /// What the device told since somebody watches, until it is asked for.
    told: Option<Vec<(u64, Span)>>,
}

/// Keeps what a device tells, by ticket of the request.
struct Recorder<'a> {
    told: &'a mut Vec<(u64, Span)>,
    pool: &'a Pool,
    /// Of the request at hand.
    ticket: u64,
    /// The device names requests by entry.
    by_entry: bool,
}

impl Probe for Recorder<'_> {
    fn request(&mut self, index: usize) {
        if self.by_entry {
            self.ticket = self.pool.ticket(index as Id).unwrap_or(NO_REQUEST);
        }
    }

    fn span(&mut self, span: &Span) {
        self.told.push((self.ticket, *span));
    }
}

impl Below {
    pub fn new(mut device: Box<dyn Device>) -> Self {
        let is_queued = device.queued().is_some();
        let (answered, paths) = Default::default();
        Self { device, is_queued, answered, issued: 0, paths, told: None }
    }

    /// Starts or ends to keep what the device tells.
    pub fn watch(&mut self, watched: bool) {
        if watched {
            self.told.get_or_insert_default();
        } else {
            self.told = None;
        }
    }

    /// Hands over what the device told.
    pub fn tell(&mut self, probe: &mut dyn Probe) {
        for (ticket, span) in self.told.iter_mut().flat_map(|told| told.drain(..)) {
            if ticket != NO_REQUEST {
                probe.request(ticket as usize);
            }
            probe.span(&span);
        }
    }

    /// Entry `id` goes to the device at `now`.
    pub fn issue(&mut self, now: u64, id: Id, pool: &Pool) {
        let request = pool.request(id, now);
        if self.is_queued {
            let device = self.device.queued().expect("it was when it was taken");
            device.arrive(Nanos(now), u64::from(id), &request);
            return;
        }
        let at = if let Some(told) = &mut self.told {
            let ticket = pool.ticket(id).unwrap_or(NO_REQUEST);
            let mut recorder = Recorder { told, pool, ticket, by_entry: false };
            let (at, path) = self.device.submit_observed(Nanos(now), &request, &mut recorder);
            let place = id as usize;
            self.paths.resize(self.paths.len().max(place + 1), Path::EMPTY);
            self.paths[place] = path;
            at
        } else {
            self.device.submit(Nanos(now), &request)
        };
        assert!(at.0 >= now, "a completion is not before its request");
        self.answered.push(Reverse((at.0, self.issued, id)));
        self.issued += 1;
    }

    /// The next completion at or before `until`.
    pub fn next_completion(&mut self, until: u64, pool: &Pool) -> Option<(u64, Id, Path)> {
        if !self.is_queued {
            let Reverse((at, _, id)) = *self.answered.peek()?;
            if at > until {
                return None;
            }
            self.answered.pop();
            let path = self.paths.get_mut(id as usize).map(std::mem::take);
            return Some((at, id, path.unwrap_or_default()));
        }
        let device = self.device.queued().expect("it was when it was taken");
        if let Some(told) = &mut self.told {
            let mut recorder = Recorder { told, pool, ticket: NO_REQUEST, by_entry: true };
            let found = device.next_observed(Nanos(until), &mut recorder);
            return found.map(|(at, ticket, path)| (at.0, ticket as Id, path));
        }
        let found = device.next_completion(Nanos(until));
        found.map(|(at, ticket)| (at.0, ticket as Id, Path::EMPTY))
    }

    /// When something happens in it, if nothing is issued before.
    pub fn next_event(&mut self) -> Option<u64> {
        match self.device.queued() {
            Some(device) => device.next_event().map(|at| at.0),
            None => self.answered.peek().map(|Reverse((at, _, _))| *at),
        }
    }
}
