//! The cache as a device, and as one that is told of arrivals and asked for completions.

use trace::Request;
use units::{Bytes, Nanos};

use super::{Open, QueuedCache};
use crate::device::submit_by_queue;
use crate::observe::{Deaf, Path, Probe, Purpose, Span};
use crate::queued::{NO_REQUEST, Queued};
use crate::{Counter, Device, SnapshotError};

/// Passes on what the device behind does, with the requests of the cache by their own tickets.
struct Behind<'a> {
    probe: &'a mut dyn Probe,
    open: &'a [Open],
    arrived: u64,
    is_destage: bool,
}

impl Probe for Behind<'_> {
    fn request(&mut self, index: usize) {
        self.is_destage = index & 1 == 1;
        let slot = index >> 1;
        let ticket = if self.is_destage { self.arrived } else { self.open[slot].ticket };
        if ticket != NO_REQUEST {
            self.probe.request(ticket as usize);
        }
    }

    fn span(&mut self, span: &Span) {
        let is_own = self.is_destage && span.purpose == Purpose::Request;
        self.probe.span(&if is_own { span.on_behalf_of(Purpose::Destage) } else { *span });
    }
}

impl<D: Device> QueuedCache<D> {
    /// The next completion of the device up to `until`.
    pub(super) fn ask(
        &mut self,
        until: u64,
        probe: Option<&mut dyn Probe>,
    ) -> Option<(u64, u64, Path)> {
        let mut deaf = Deaf;
        let probe = match probe {
            Some(probe) => Some(probe),
            None => self.told.is_some().then_some(&mut deaf as &mut dyn Probe),
        };
        let device = self.behind.queued().expect("it did when the cache was made");
        let Some(probe) = probe else {
            let found = device.next_completion(Nanos(until));
            return found.map(|(at, ticket)| (at.0, ticket, Path::EMPTY));
        };
        let (open, arrived) = (&self.open, self.arrived);
        let mut behind = Behind { probe, open, arrived, is_destage: false };
        let found = device.next_observed(Nanos(until), &mut behind);
        found.map(|(at, ticket, path)| (at.0, ticket, path))
    }
}

impl<D: Device> Queued for QueuedCache<D> {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        // What completes until then is kept for whoever asks.
        let mut before = Vec::new();
        while let Some(found) = self.next(now.0, None) {
            before.push(found);
        }
        self.completed.extend(before);
        assert!(now.0 >= self.clock, "time runs back");
        self.clock = now.0;
        self.take_in(ticket, request);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        self.told = None;
        self.next(until.0, None).map(|(at, ticket, _)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.next_event_ns().map(Nanos)
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        for (ticket, span) in self.told.get_or_insert_default().drain(..) {
            if ticket != NO_REQUEST {
                probe.request(ticket as usize);
            }
            probe.span(&span);
        }
        let found = self.next(until.0, Some(probe));
        found.map(|(at, ticket, path)| (Nanos(at), ticket, path))
    }
}

impl<D: Device> Device for QueuedCache<D> {
    submit_by_queue!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        self.save()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.load(bytes)
    }

    fn capacity(&self) -> Option<Bytes> {
        self.behind.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let mut all = self.counts.counters(self.lines.dirty());
        all.extend(self.behind.counters());
        all
    }
}
