//! A device model in virtual time as a medium.
//!
//! The engine runs as it does on a disk: it issues, it waits, it decides by what has arrived. Only
//! the waiting is the model's: [`Engine::exchange`] moves the clock to the next completion instead
//! of sleeping. So the order of requests follows the simulated device and not the one that a trace
//! was taken on. What the engine computes takes a stated time per row, or none. Data is kept in
//! memory.
//!
//! Models that look at their queue are asked as [`model::Queued`] wants it. Same options, same
//! model, same seed: same requests, same times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use io::engine::{Completion, Device, Engine, EngineOptions, Submission, Wait};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::error::Error;
use crate::medium::Medium;

/// A device model with memory behind it.
pub struct Simulated {
    name: PathBuf,
    shared: Arc<Mutex<Shared>>,
    sector_bytes: u32,
    cpu_ns_per_row: u64,
}

struct Shared {
    device: Box<dyn model::Device>,
    now_ns: u64,
    cpu_ns: u64,
    data: Vec<u8>,
    /// Completions that are known and not taken: time, ticket.
    known: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Simulated {
    /// On a fresh `device` called `name`. Each row costs `cpu_ns_per_row` in each phase that
    /// touches it.
    pub fn new(name: &str, device: Box<dyn model::Device>, cpu_ns_per_row: u64) -> Self {
        let shared =
            Shared { device, now_ns: 0, cpu_ns: 0, data: Vec::new(), known: BinaryHeap::new() };
        let shared = Arc::new(Mutex::new(shared));
        Self { name: name.into(), shared, sector_bytes: 512, cpu_ns_per_row }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn arrive(&mut self, ticket: u64, submission: Submission) {
        let request = Request {
            due: Nanos(self.now_ns),
            offset: Bytes(submission.offset),
            len: submission.len,
            op: submission.op,
            stream: 0,
        };
        let now = Nanos(self.now_ns);
        if self.device.queued().is_some() {
            self.until(now.0);
            let queued = self.device.queued().expect("asked just before");
            queued.arrive(now, ticket, &request);
        } else {
            let at = self.device.submit(now, &request);
            self.known.push(Reverse((at.0, ticket)));
        }
    }

    /// Asks a device that looks at its queue for what completes up to `until_ns`.
    fn until(&mut self, until_ns: u64) {
        let Some(queued) = self.device.queued() else { return };
        while let Some((at, ticket)) = queued.next_completion(Nanos(until_ns)) {
            self.known.push(Reverse((at.0, ticket)));
        }
    }

    /// The next completion, however late; moves the clock there.
    fn next(&mut self) -> Option<u64> {
        if self.known.is_empty()
            && let Some(queued) = self.device.queued()
            && let Some((at, ticket)) = queued.next_completion(Nanos(u64::MAX))
        {
            self.known.push(Reverse((at.0, ticket)));
        }
        let Reverse((at, ticket)) = self.known.pop()?;
        self.now_ns = self.now_ns.max(at);
        Some(ticket)
    }

    /// A completion that has happened by now.
    fn past(&mut self) -> Option<u64> {
        self.until(self.now_ns);
        let Reverse((at, _)) = *self.known.peek()?;
        (at <= self.now_ns).then(|| self.known.pop().expect("just seen").0.1)
    }
}

/// The engine of a [`Simulated`] device.
pub struct SimulatedEngine {
    shared: Arc<Mutex<Shared>>,
    slot_bytes: usize,
    memory: Vec<u8>,
    queued: Vec<Submission>,
    /// By slot: bytes that its request moves.
    lengths: Vec<u32>,
    outstanding: u64,
}

impl SimulatedEngine {
    /// Data moves when the request is issued: nobody looks at it before the completion.
    fn transfer(&mut self, submission: Submission) {
        let Submission { slot, op, offset, len } = submission;
        let start = slot as usize * self.slot_bytes;
        let slot_memory = &mut self.memory[start..start + len as usize];
        let (from, to) = (offset as usize, offset as usize + len as usize);
        let data = &mut lock(&self.shared).data;
        if data.len() < to {
            data.resize(to, 0);
        }
        match op {
            Op::Read => slot_memory.copy_from_slice(&data[from..to]),
            Op::Write => data[from..to].copy_from_slice(slot_memory),
            _ => {}
        }
    }

    fn take(&mut self, ticket: u64, completions: &mut Vec<Completion>) {
        self.outstanding -= 1;
        let slot = ticket as u32;
        completions.push(Completion { slot, result: self.lengths[slot as usize] as i32 });
    }
}

impl Engine for SimulatedEngine {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * self.slot_bytes;
        &mut self.memory[start..start + self.slot_bytes]
    }

    fn queue(&mut self, submission: Submission) {
        self.queued.push(submission);
    }

    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> std::io::Result<()> {
        for submission in std::mem::take(&mut self.queued) {
            self.transfer(submission);
            self.lengths[submission.slot as usize] = submission.len;
            self.outstanding += 1;
            lock(&self.shared).arrive(submission.slot.into(), submission);
        }
        let mut missing = match wait {
            Wait::Poll => 0,
            Wait::For(count) => u64::from(count).min(self.outstanding),
            Wait::Until(_) => 1.min(self.outstanding),
        };
        while missing > 0 {
            let next = lock(&self.shared).next();
            self.take(next.expect("what was issued completes"), completions);
            missing -= 1;
        }
        while let Some(ticket) = { lock(&self.shared).past() } {
            self.take(ticket, completions);
        }
        Ok(())
    }

    fn ready(&mut self) -> bool {
        false
    }
}

impl Device for Simulated {
    type Engine = SimulatedEngine;

    fn path(&self) -> &Path {
        &self.name
    }

    fn engine(&self, options: EngineOptions) -> Result<SimulatedEngine, io::Error> {
        let slot_bytes = options.slot_bytes as usize;
        Ok(SimulatedEngine {
            shared: Arc::clone(&self.shared),
            slot_bytes,
            memory: vec![0; slot_bytes * options.slots as usize],
            queued: Vec::new(),
            lengths: vec![0; options.slots as usize],
            outstanding: 0,
        })
    }

    fn size_bytes(&self) -> std::io::Result<u64> {
        Ok(self.shared().device.capacity().map_or(u64::MAX, |bytes| bytes.0))
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Medium for Simulated {
    fn now_ns(&self) -> u64 {
        self.shared().now_ns
    }

    fn cpu_ns(&self) -> u64 {
        self.shared().cpu_ns
    }

    fn worked(&self, rows: u64) {
        let ns = rows * self.cpu_ns_per_row;
        let mut shared = self.shared();
        shared.now_ns += ns;
        shared.cpu_ns += ns;
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn reserve(&self, bytes: u64) -> Result<(), Error> {
        let free = self.shared().device.capacity();
        match free {
            Some(free) if free.0 < bytes => {
                Err(Error::TooFewFree { path: self.name.clone(), needed: Bytes(bytes), free })
            }
            _ => Ok(()),
        }
    }

    fn warnings(&self) -> Vec<events::Warning> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        "device"
    }
}
