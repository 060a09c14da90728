//! The host's side: requests that wait for a command slot, and flushes that wait for writes.
//!
//! Requests wait in submission queues, one per stream modulo their number, and are fetched in turn
//! as slots get free. A flush is complete when every write that was fetched before it is: writes
//! belong to *epochs* that flushes end.
//!
//! Invariants: at most `depth` commands are in flight; flushes complete in order.

use std::collections::VecDeque;

use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::SnapshotError;
use crate::flash::snapshot::{Reader, Writer};

/// A request in flight or waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub ticket: u64,
    pub request: Request,
    /// Parts of it that are not done, and one while it is being cut into parts.
    pub left: u32,
    pub epoch: u64,
}

/// Commands and their slots.
#[derive(Clone, Debug)]
pub(super) struct Host {
    commands: Vec<Command>,
    unused: Vec<u32>,
    queues: Vec<VecDeque<u32>>,
    next_queue: usize,
    waiting: usize,
    in_flight: u32,
    depth: u32,
    /// Writes in flight and flushes that wait for them, by epoch; the first is `first_epoch`.
    epochs: VecDeque<(u32, Vec<u32>)>,
    first_epoch: u64,
}

impl Host {
    pub fn new(queues: u32, depth: u32) -> Self {
        Self {
            commands: Vec::new(),
            unused: Vec::new(),
            queues: vec![VecDeque::new(); queues as usize],
            next_queue: 0,
            waiting: 0,
            in_flight: 0,
            depth,
            epochs: VecDeque::from([(0, Vec::new())]),
            first_epoch: 0,
        }
    }

    pub fn command(&mut self, slot: u32) -> &mut Command {
        &mut self.commands[slot as usize]
    }

    /// Slots for commands.
    pub fn command_count(&self) -> usize {
        self.commands.len()
    }

    /// A request arrives; gives its slot, and whether it is fetched at once.
    pub fn arrive(&mut self, ticket: u64, request: &Request) -> (u32, bool) {
        let command = Command { ticket, request: *request, left: 1, epoch: 0 };
        let slot = if let Some(slot) = self.unused.pop() {
            self.commands[slot as usize] = command;
            slot
        } else {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        };
        if self.in_flight < self.depth {
            self.in_flight += 1;
            return (slot, true);
        }
        let queue = usize::from(request.stream) % self.queues.len();
        self.queues[queue].push_back(slot);
        self.waiting += 1;
        (slot, false)
    }

    /// The command of `slot` completed; gives its ticket, and the slot that is fetched in its
    /// place.
    pub fn complete(&mut self, slot: u32) -> (u64, Option<u32>) {
        self.unused.push(slot);
        let ticket = self.commands[slot as usize].ticket;
        if self.waiting == 0 {
            self.in_flight -= 1;
            return (ticket, None);
        }
        let count = self.queues.len();
        let mut in_turn = (0..count).map(|k| (self.next_queue + k) % count);
        let queue = in_turn.find(|queue| !self.queues[*queue].is_empty()).expect("one waits");
        self.next_queue = (queue + 1) % count;
        self.waiting -= 1;
        (ticket, self.queues[queue].pop_front())
    }

    /// A write is fetched: it belongs to the present epoch.
    pub fn write_begins(&mut self, slot: u32) {
        self.commands[slot as usize].epoch = self.first_epoch + self.epochs.len() as u64 - 1;
        self.epochs.back_mut().expect("an epoch").0 += 1;
    }

    /// A write is done; gives the flushes that are complete with it.
    pub fn write_ends(&mut self, slot: u32) -> Vec<u32> {
        let place = (self.commands[slot as usize].epoch - self.first_epoch) as usize;
        self.epochs[place].0 -= 1;
        self.complete_epochs()
    }

    /// A flush is fetched; gives the flushes that are complete: this one, where nothing is written.
    pub fn flush(&mut self, slot: u32) -> Vec<u32> {
        self.epochs.back_mut().expect("an epoch").1.push(slot);
        self.epochs.push_back((0, Vec::new()));
        self.complete_epochs()
    }

    fn complete_epochs(&mut self) -> Vec<u32> {
        let mut complete = Vec::new();
        while self.epochs.len() > 1 && self.epochs[0].0 == 0 {
            complete.extend(self.epochs.pop_front().expect("more than one").1);
            self.first_epoch += 1;
        }
        complete
    }

    pub fn save(&self, to: &mut Writer) {
        let Self { commands, unused, queues, next_queue, waiting, in_flight, .. } = self;
        let Self { depth: _, epochs, first_epoch, .. } = self;
        to.u64(commands.len() as u64);
        for Command { ticket, request, left, epoch } in commands {
            let Request { due, offset, len, op, stream } = *request;
            let op = Op::ALL.iter().position(|own| *own == op).expect("one of them") as u32;
            to.u64s(&[*ticket, due.0, offset.0, *epoch]);
            to.u32s(&[len, op, stream.into(), *left]);
        }
        to.list(unused.iter().copied());
        for queue in queues {
            to.list(queue.iter().copied());
        }
        to.u64s(&[*next_queue as u64, *waiting as u64, *first_epoch]);
        to.u32(*in_flight);
        to.u64(epochs.len() as u64);
        for (writes, flushes) in epochs {
            to.u32(*writes);
            to.list(flushes.iter().copied());
        }
    }

    pub fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let count = from.count()?;
        self.commands.clear();
        for _ in 0..count {
            let (mut long, mut short) = ([0; 4], [0; 4]);
            from.u64s(&mut long)?;
            from.u32s(&mut short)?;
            let ([ticket, due, offset, epoch], [len, op, stream, left]) = (long, short);
            let op = *Op::ALL.get(op as usize).ok_or_else(|| from.damaged())?;
            let stream = u16::try_from(stream).map_err(|_| from.damaged())?;
            let request = Request { due: Nanos(due), offset: Bytes(offset), len, op, stream };
            self.commands.push(Command { ticket, request, left, epoch });
        }
        self.unused = from.list(count)?;
        for queue in &mut self.queues {
            *queue = from.list(count)?;
        }
        let mut numbers = [0; 3];
        from.u64s(&mut numbers)?;
        let [next_queue, waiting, first_epoch] = numbers;
        self.next_queue = next_queue as usize % self.queues.len();
        (self.waiting, self.first_epoch) = (waiting as usize, first_epoch);
        self.in_flight = from.u32()?;
        self.epochs.clear();
        for _ in 0..from.count()? {
            self.epochs.push_back((from.u32()?, from.list(count)?));
        }
        if self.epochs.is_empty() { Err(from.damaged()) } else { Ok(()) }
    }
}
