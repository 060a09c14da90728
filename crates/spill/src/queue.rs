//! Requests of one phase: at most `depth` in flight, each in a slot of its own, all of them
//! counted.
//!
//! A slot holds one cluster. It belongs to a request from [`Queue::read`] or [`Queue::write`] until
//! the request has completed. The slots are the memory of the phase: rows are taken from where the
//! device put them and put where it fetches them from.

use events::Sink;
use io::engine::{Completion, Engine, EngineOptions, Submission, Wait};
use trace::Op;

use crate::account::{Account, request};
use crate::error::Error;
use crate::medium::Medium;
use crate::options::Resources;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    submission: Submission,
    issued_ns: u64,
    place: usize,
}

/// The requests of a phase.
pub(crate) struct Queue<'a, M: Medium> {
    medium: &'a M,
    engine: M::Engine,
    pub(crate) account: &'a mut Account,
    sink: &'a dyn Sink,
    cluster_bytes: u32,
    depth: u32,
    in_flight: u32,
    /// By slot.
    flights: Vec<Option<Flight>>,
    completions: Vec<Completion>,
    /// Slots whose reads have completed, oldest first, until [`Queue::arrived`] takes them.
    arrived: Vec<u32>,
    /// When the run started.
    start_ns: u64,
}

impl<'a, M: Medium> Queue<'a, M> {
    /// With `slots` clusters of memory.
    pub(crate) fn new(
        medium: &'a M,
        resources: &Resources,
        slots: u64,
        account: &'a mut Account,
        (sink, start_ns): (&'a dyn Sink, u64),
    ) -> Result<Self, Error> {
        let cluster_bytes = resources.cluster.0 as u32;
        let options =
            EngineOptions { slots: slots as u32, slot_bytes: cluster_bytes, dsync: false };
        let engine = medium.engine(options)?;
        Ok(Self {
            medium,
            engine,
            account,
            sink,
            cluster_bytes,
            depth: resources.depth,
            in_flight: 0,
            flights: vec![None; slots as usize],
            completions: Vec::new(),
            arrived: Vec::new(),
            start_ns,
        })
    }

    /// The memory of a slot that no request has.
    #[inline]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut [u8] {
        debug_assert!(self.flights[slot as usize].is_none(), "slot {slot} is the device's");
        &mut self.engine.buffer(slot)[..self.cluster_bytes as usize]
    }

    /// Reads a cluster into a slot.
    pub(crate) fn read(&mut self, slot: u32, offset: u64, stream: u16) -> Result<(), Error> {
        self.submit(slot, Op::Read, offset, stream)
    }

    /// Writes a slot to a cluster.
    pub(crate) fn write(&mut self, slot: u32, offset: u64, stream: u16) -> Result<(), Error> {
        self.submit(slot, Op::Write, offset, stream)
    }

    fn submit(&mut self, slot: u32, op: Op, offset: u64, stream: u16) -> Result<(), Error> {
        if self.sink.cancelled() {
            return Err(Error::Interrupted);
        }
        while self.in_flight >= self.depth {
            self.wait()?;
        }
        assert!(self.flights[slot as usize].is_none(), "a slot has one request at a time");
        let submission = Submission { slot, op, offset, len: self.cluster_bytes };
        let issued_ns = self.medium.now_ns();
        let due_ns = issued_ns - self.start_ns;
        let place = self
            .account
            .issued(request(due_ns, op, offset, self.cluster_bytes, stream), slot as u16);
        self.flights[slot as usize] = Some(Flight { submission, issued_ns, place });
        self.in_flight += 1;
        self.engine.queue(submission);
        self.exchange(Wait::Poll)
    }

    /// Waits for one completion.
    fn wait(&mut self) -> Result<(), Error> {
        assert!(self.in_flight > 0, "somebody waits for nothing");
        let before = self.medium.now_ns();
        self.exchange(Wait::For(1))?;
        self.account.phase().waited_ns += self.medium.now_ns() - before;
        Ok(())
    }

    fn exchange(&mut self, wait: Wait) -> Result<(), Error> {
        let exchanged = self.engine.exchange(wait, &mut self.completions);
        exchanged.map_err(|source| io::Error::Engine { engine: "spill", source })?;
        let now_ns = self.medium.now_ns();
        for completion in self.completions.drain(..) {
            let flight = self.flights[completion.slot as usize].take();
            let flight = flight.expect("what completes was in flight");
            self.in_flight -= 1;
            io::engine::check(self.medium, flight.submission, completion.result)?;
            self.account.completed(flight.place, now_ns - flight.issued_ns);
            if flight.submission.op == Op::Read {
                self.arrived.push(completion.slot);
            }
        }
        Ok(())
    }

    /// Waits until no request has the slot.
    pub(crate) fn settle(&mut self, slot: u32) -> Result<(), Error> {
        while self.flights[slot as usize].is_some() {
            self.wait()?;
        }
        Ok(())
    }

    /// Waits until no request is in flight.
    pub(crate) fn settle_all(&mut self) -> Result<(), Error> {
        while self.in_flight > 0 {
            self.wait()?;
        }
        Ok(())
    }

    /// Slots whose reads have completed since the last call.
    pub(crate) fn arrived(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.arrived)
    }

    /// Tells the medium what the engine has done meanwhile.
    pub(crate) fn worked(&self, rows: u64) {
        self.medium.worked(rows);
    }
}
