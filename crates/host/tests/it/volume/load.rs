//! Members of constant latency and closed loops over them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};

use model::{Device, Queued};
use trace::{Op, Request};
use units::{Bytes, Nanos};

/// What a member was asked: time, operation, first byte, length.
pub type Log = Arc<Mutex<Vec<(u64, Op, u64, u64)>>>;

/// A device that serves one request after the other, each in a time that depends on what it does.
pub struct Constant {
    pub read_ns: u64,
    pub write_ns: u64,
    pub capacity: u64,
    free_at: u64,
    clock: u64,
    pub log: Log,
}

impl Constant {
    pub fn new(read_ns: u64, write_ns: u64, capacity: u64) -> Self {
        Self { read_ns, write_ns, capacity, free_at: 0, clock: 0, log: Log::default() }
    }
}

impl Device for Constant {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        assert!(now.0 >= self.clock, "time runs back");
        self.clock = now.0;
        assert!(request.offset.0 + u64::from(request.len) <= self.capacity, "behind the end");
        let mut log = self.log.lock().unwrap();
        log.push((now.0, request.op, request.offset.0, u64::from(request.len)));
        let takes = match request.op {
            Op::Read => self.read_ns,
            Op::Write => self.write_ns,
            Op::Flush | Op::Trim => 0,
        };
        self.free_at = self.free_at.max(now.0) + takes;
        Nanos(self.free_at)
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.capacity))
    }
}

/// The same as one that looks at its queue: later arrivals are answered later all the same.
pub struct Asked {
    inner: Constant,
    out: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Asked {
    pub fn new(inner: Constant) -> Self {
        Self { inner, out: BinaryHeap::new() }
    }
}

impl Queued for Asked {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        let at = self.inner.submit(now, request).0;
        self.out.push(Reverse((at, ticket)));
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        let Reverse((at, ticket)) = *self.out.peek()?;
        self.inner.clock = self.inner.clock.max(at.min(until.0));
        (at <= until.0).then(|| {
            self.out.pop();
            (Nanos(at), ticket)
        })
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.out.peek().map(|Reverse((at, _))| Nanos(*at))
    }
}

impl Device for Asked {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        model::queued::submit(self, now, request)
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        Some(self)
    }

    fn capacity(&self) -> Option<Bytes> {
        self.inner.capacity()
    }
}

/// `count` equal members and what they will have been asked.
pub fn members(count: usize, read_ns: u64, write_ns: u64) -> (Vec<Box<dyn Device>>, Vec<Log>) {
    let made = (0..count).map(|_| Constant::new(read_ns, write_ns, 1 << 40));
    let pairs = made.map(|device| {
        let log = device.log.clone();
        (Box::new(device) as Box<dyn Device>, log)
    });
    pairs.unzip()
}

pub fn request(op: Op, offset: u64, len: u32) -> Request {
    Request { due: Nanos(0), offset: Bytes(offset), len, op, stream: 0 }
}

/// Random numbers, the same ones for the same seed.
pub struct Draws(pub u64);

impl Draws {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 ^ (self.0 >> 29)) * u128::from(most)) >> 64) as u64
    }

    /// A read with this probability, of `bytes`, anywhere in `capacity`.
    pub fn mixed(&mut self, reads: f64, bytes: u32, capacity: u64) -> Request {
        let op = if (self.below(1 << 20) as f64) < reads * (1 << 20) as f64 {
            Op::Read
        } else {
            Op::Write
        };
        request(op, self.below(capacity / u64::from(bytes)) * u64::from(bytes), bytes)
    }
}

/// `users` submit `count` requests, each user the next one when the last one is done. Requests per
/// second, and the response times in ns.
pub fn closed(
    device: &mut dyn Device,
    users: u64,
    count: u64,
    mut next: impl FnMut() -> Request,
) -> (f64, Vec<u64>) {
    let mut started = vec![0; users as usize];
    let mut responses = Vec::new();
    let (mut end, mut open) = (0, users);
    if let Some(queued) = device.queued() {
        for user in 0..users {
            queued.arrive(Nanos(0), user, &next());
        }
        let mut left = count - users;
        while open > 0 {
            let (at, user) = queued.next_completion(Nanos(u64::MAX)).expect("it completes");
            assert!(at.0 >= end, "completions run back");
            end = at.0;
            responses.push(end - started[user as usize]);
            if left == 0 {
                open -= 1;
                continue;
            }
            left -= 1;
            started[user as usize] = end;
            queued.arrive(at, user, &next());
        }
        return (count as f64 / end as f64 * 1e9, responses);
    }
    let mut heap: BinaryHeap<_> = (0..users).map(|user| Reverse((0, user))).collect();
    for _ in 0..count {
        let Reverse((now, user)) = heap.pop().expect("a user is free");
        let at = device.submit(Nanos(now), &next()).0;
        responses.push(at - now);
        heap.push(Reverse((at, user)));
        end = end.max(at);
    }
    (count as f64 / end as f64 * 1e9, responses)
}
