//! The I/O loop: the only place where requests are issued and completions are timed.
//!
//! A [`Work`] says what to issue and when it is due; the loop issues it no earlier, as promptly as
//! it can, and hands every completion back with its time. Closed loops (always due), Poisson
//! arrivals and replay at captured times are three kinds of work for this one loop.
//!
//! Timing: the issue time of a request is read immediately before the system call that sends it,
//! the completion time immediately after the one that found it. Ahead of a due time the thread
//! sleeps, and spins for the last [`DriveOptions::spin_ns`] of it, because a timer wakes a thread
//! tens of microseconds late. While it spins it watches for completions through shared memory.
//!
//! Where requests are always due, several completions are collected per system call. Little's law
//! keeps the mean time that a request spends in a slot at `depth / rate` whichever way completions
//! are collected, so this cannot flatter a figure as long as the rate does not fall.
//!
//! Invariants: requests taken = completions handed back, on every path that returns, errors
//! included (property test in `cell`); at most `slots` requests are outstanding; nothing is
//! allocated per request.

use std::sync::atomic::{AtomicBool, Ordering};

use io::buffer::Payload;
use io::engine::{self, Completion, Device, Engine, Submission, Wait};
use trace::Op;

use crate::clock;
use crate::error::Error;

/// While requests are outstanding and none has completed for so long, the loop sleeps towards the
/// next due time instead of spinning: at real-time priority the spinning itself may keep the kernel
/// thread from running that would complete them (ext4 writes did not complete for milliseconds).
const STARVED_AFTER_NS: u64 = 300_000;
/// Requests per system call at most. At depth 32 on a virtio disk, rows of any length gave 0.74 to
/// 0.84 times fio's rate of random reads in four rounds of alternating runs, rows of 3 gave 1.02 to
/// 1.04 times at 0.61 to 0.63 times its CPU. Probably longer rows reach the device in bursts,
/// between which it runs dry; 3 rather than 2 is not well supported.
const SENT_AT_ONCE: usize = 3;
/// Requests between two checks for cancellation.
const LONGEST_SLEEP_NS: u64 = 50_000_000;
/// Sleeping is not worth it for less.
const SHORTEST_SLEEP_NS: u64 = 5_000;

/// What is to be issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Caller's name for it.
    pub(crate) tag: u64,
    /// When it should be issued, ns of the monotonic clock.
    pub(crate) due_ns: u64,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) order: Order,
    /// Just before the system call that sent it, ns of the monotonic clock.
    pub(crate) issued_ns: u64,
}

/// A source of requests and the sink of their times.
pub(crate) trait Work {
    /// When the next request is due; `None` once there is none left.
    fn next_due(&mut self, now_ns: u64) -> Option<u64>;

    /// The next request; called only after `next_due` returned a time that has come.
    fn take(&mut self, now_ns: u64) -> Order;

    /// A request has completed. True asks for a flush in the same slot.
    fn completed(&mut self, flight: &Flight, at_ns: u64) -> bool;
}

/// How the loop runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveOptions {
    /// Requests outstanding at most; the engine has as many slots.
    pub(crate) slots: u32,
    /// How long before a due time the thread stops sleeping.
    pub(crate) spin_ns: u64,
    /// Seed of the data written.
    pub(crate) seed: u64,
}

/// What the loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Driven {
    /// Requests issued, flushes included.
    pub(crate) issued: u64,
    /// Completions, each of one request.
    pub(crate) completed: u64,
    /// How often a request that was due found every slot taken.
    pub(crate) slots_exhausted: u64,
    /// How often the loop slept because spinning seemed to hold completions up.
    pub(crate) starved: u64,
}

/// Completions to collect per system call when requests are always due.
///
/// One up to a depth of 8, then a sixteenth of the slots: enough to halve the system calls, too few
/// to let the device run dry.
pub(crate) fn batch(slots: u32) -> u32 {
    (slots / 16).max(1)
}

/// Runs `work` to its end, or until `stop`, or to the first error; always waits for what is
/// outstanding.
pub(crate) fn drive<D: Device, W: Work>(
    device: &D,
    engine: &mut D::Engine,
    work: &mut W,
    options: DriveOptions,
    stop: &AtomicBool,
) -> Result<Driven, Error> {
    let mut state = Loop::new(options);
    let mut now = clock::now_ns();
    let mut error = None;
    loop {
        let stopping = error.is_some() || stop.load(Ordering::Relaxed);
        let next = if stopping { Next::Nothing } else { state.fill(engine, work, now) };
        if state.outstanding() == 0 && next == Next::Nothing {
            break;
        }
        let Some(wait) = state.wait(next, now, engine) else {
            std::hint::spin_loop();
            now = clock::now_ns();
            continue;
        };
        state.stamp();
        if let Err(source) = engine.exchange(wait, &mut state.completions) {
            return Err(io::Error::Engine { engine: "I/O", source }.into());
        }
        now = clock::now_ns();
        if let Err(found) = state.collect(device, work, now) {
            error.get_or_insert(found);
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(state.driven),
    }
}

/// What there is to do after the slots have been filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// No request is left.
    Nothing,
    /// The next one is due then.
    Due(u64),
    /// The next one is due, but every slot is taken.
    SlotsFull,
}

struct Loop {
    free: Vec<u32>,
    flights: Vec<Flight>,
    /// Slots whose request waits for the next system call.
    queued: Vec<u32>,
    /// Slots whose write is to be flushed.
    to_flush: Vec<u32>,
    completions: Vec<Completion>,
    payload: Payload,
    options: DriveOptions,
    driven: Driven,
    last_progress_ns: u64,
}

impl Loop {
    fn new(options: DriveOptions) -> Self {
        let slots = options.slots.max(1);
        let nothing = Order { op: Op::Flush, offset: 0, len: 0, tag: 0, due_ns: 0 };
        Self {
            free: (0..slots).rev().collect(),
            flights: vec![Flight { order: nothing, issued_ns: 0 }; slots as usize],
            queued: Vec::with_capacity(slots as usize),
            to_flush: Vec::with_capacity(slots as usize),
            completions: Vec::with_capacity(slots as usize),
            payload: Payload::new(options.seed),
            options,
            driven: Driven::default(),
            last_progress_ns: 0,
        }
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.driven.issued - self.driven.completed
    }

    #[inline]
    fn send<E: Engine>(&mut self, engine: &mut E, slot: u32, order: Order) {
        if order.op == Op::Write {
            self.payload.refresh(&mut engine.buffer(slot)[..order.len as usize]);
        }
        let Order { op, offset, len, .. } = order;
        engine.queue(Submission { slot, op, offset, len });
        self.flights[slot as usize].order = order;
        self.queued.push(slot);
        self.driven.issued += 1;
    }

    /// Queues everything that is due and for which there is a slot.
    #[inline]
    fn fill<E: Engine, W: Work>(&mut self, engine: &mut E, work: &mut W, now: u64) -> Next {
        while let Some(slot) = self.to_flush.pop() {
            let tag = self.flights[slot as usize].order.tag;
            let order = Order { op: Op::Flush, offset: 0, len: 0, tag, due_ns: now };
            self.send(engine, slot, order);
        }
        loop {
            match work.next_due(now) {
                None => return Next::Nothing,
                Some(due) if due > now => return Next::Due(due),
                Some(_) => {}
            }
            if self.queued.len() >= SENT_AT_ONCE {
                return Next::Due(now);
            }
            let Some(slot) = self.free.pop() else {
                self.driven.slots_exhausted += 1;
                return Next::SlotsFull;
            };
            if self.outstanding() == 0 {
                self.last_progress_ns = now;
            }
            let order = work.take(now);
            self.send(engine, slot, order);
        }
    }

    /// How to wait; `None` to spin.
    #[inline]
    fn wait<E: Engine>(&mut self, next: Next, now: u64, engine: &mut E) -> Option<Wait> {
        match next {
            Next::Nothing => Some(Wait::For(1)),
            Next::SlotsFull => {
                Some(Wait::For(batch(self.options.slots).min(self.outstanding() as u32)))
            }
            Next::Due(_) if !self.queued.is_empty() => Some(Wait::Poll),
            Next::Due(due) if due - now > self.options.spin_ns => {
                Some(Wait::Until((due - now - self.options.spin_ns).min(LONGEST_SLEEP_NS)))
            }
            Next::Due(_) if engine.ready() => Some(Wait::Poll),
            Next::Due(due) => {
                let waited = now.saturating_sub(self.last_progress_ns);
                let left = (due - now).saturating_sub(SHORTEST_SLEEP_NS);
                if self.outstanding() == 0 || waited < STARVED_AFTER_NS || left == 0 {
                    return None;
                }
                self.driven.starved += 1;
                Some(Wait::Until(left))
            }
        }
    }

    /// Writes down the time at which what is queued is sent.
    #[inline]
    fn stamp(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let at = clock::now_ns();
        for slot in self.queued.drain(..) {
            self.flights[slot as usize].issued_ns = at;
        }
    }

    /// Hands completions back; the first that failed becomes an error, the others still count.
    #[inline]
    fn collect<D: Device, W: Work>(
        &mut self,
        device: &D,
        work: &mut W,
        now: u64,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        if !self.completions.is_empty() {
            self.last_progress_ns = now;
        }
        for completion in self.completions.drain(..) {
            let slot = completion.slot;
            let flight = self.flights[slot as usize];
            self.driven.completed += 1;
            let Order { op, offset, len, .. } = flight.order;
            let submission = Submission { slot, op, offset, len };
            match engine::check(device, submission, completion.result) {
                Ok(()) if work.completed(&flight, now) => self.to_flush.push(slot),
                Ok(()) => self.free.push(slot),
                Err(error) => {
                    self.free.push(slot);
                    if outcome.is_ok() {
                        outcome = Err(error.into());
                    }
                }
            }
        }
        outcome
    }
}
