//! Whose turn it is: workers, their times, and the device that they wait for.
//!
//! Invariants: at most one worker runs; it is the one with the earliest time, in the order of
//! coming where times are equal; its time never falls; what reaches the device arrives in the order
//! of time. A worker that leaves, however it does, hands the turn on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::processors::{Computing, Processors, Stopwatch};

/// Requests that do not fit are moved to a multiple of this, bytes.
const SECTOR: u64 = 4096;

/// What a world is made of besides its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Processors that compute at once.
    pub processors: u32,
    /// What computing costs.
    pub computing: Computing,
}

/// Threads, processors and a device in virtual time; see the crate.
pub struct World {
    computing: Computing,
    state: Mutex<State>,
}

struct State {
    device: Box<dyn Device>,
    /// Requests that a device which looks at its queue has not completed.
    outstanding: usize,
    processors: Processors,
    workers: Vec<Worker>,
    /// Workers that have yet to join: nobody runs before.
    missing: usize,
    /// Who runs when: time, order of coming, worker.
    ready: BTreeSet<(u64, u64, usize)>,
    order: u64,
    running: Option<usize>,
    /// How far the run is.
    front_ns: u64,
}

struct Worker {
    now_ns: u64,
    /// Its entry in `ready` may be moved forward by [`World::wake`].
    idle: Option<(u64, u64)>,
    turn: Arc<Condvar>,
}

/// The calling thread as a worker.
struct Here {
    world: Arc<World>,
    worker: usize,
    watch: Stopwatch,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// A worker's part in a world: it leaves when this is dropped, on the thread that joined.
#[must_use]
pub struct Member {
    not_send: PhantomData<*const ()>,
}

impl Drop for Member {
    fn drop(&mut self) {
        let here = HERE.with(|here| here.borrow_mut().take());
        if let Some(here) = here {
            let mut state = here.world.lock();
            state.running = None;
            state.dispatch();
        }
    }
}

impl World {
    /// A world without workers at time 0.
    pub fn new(device: Box<dyn Device>, settings: &Settings) -> Arc<Self> {
        let state = State {
            device,
            outstanding: 0,
            processors: Processors::new(settings.processors),
            workers: Vec::new(),
            missing: 0,
            ready: BTreeSet::new(),
            order: 0,
            running: None,
            front_ns: 0,
        };
        Arc::new(Self { computing: settings.computing, state: Mutex::new(state) })
    }

    /// Makes room for `workers` that will join; nobody runs before all have, or are known to be
    /// [`World::absent`].
    pub fn expect(&self, workers: usize) {
        let mut state = self.lock();
        let worker = || Worker { now_ns: 0, idle: None, turn: Arc::default() };
        state.workers = (0..workers).map(|_| worker()).collect();
        state.missing = workers;
        state.order = workers as u64;
    }

    /// The calling thread becomes `worker`; returns when its first turn comes.
    ///
    /// # Panics
    /// Where the thread is a worker already.
    pub fn join(self: &Arc<Self>, worker: usize) -> Member {
        let here = Here { world: Arc::clone(self), worker, watch: Stopwatch::new() };
        let mut state = self.lock();
        state.missing -= 1;
        // In the order of their numbers, whoever came first.
        state.ready.insert((0, worker as u64, worker));
        drop(self.turn(state, worker));
        here.watch.start();
        HERE.with(|place| {
            let mut place = place.borrow_mut();
            assert!(place.is_none(), "a thread is one worker");
            *place = Some(here);
        });
        Member { not_send: PhantomData }
    }

    /// One of the expected workers will not join.
    pub fn absent(&self) {
        let mut state = self.lock();
        state.missing -= 1;
        state.dispatch();
    }

    /// Whether the calling thread is a worker.
    pub fn is_here() -> bool {
        HERE.with(|here| here.borrow().is_some())
    }

    /// The time of the calling worker, or how far the run is where the thread is none, ns.
    pub fn now_ns(&self) -> u64 {
        self.as_worker(|here, state| {
            let now_ns = state.workers[here.worker].now_ns;
            (state, now_ns)
        })
        .unwrap_or_else(|| self.lock().front_ns)
    }

    /// The calling worker does a request, and its time moves to the end of it. For any other thread
    /// storage takes no time. What lies beyond the end of the device is moved to within it.
    pub fn io(&self, op: Op, offset: u64, len: u32, stream: u16) {
        self.as_worker(|here, state| {
            let worker = here.worker;
            let now_ns = state.workers[worker].now_ns;
            let mut state = self.until(state, worker, now_ns);
            let offset = within(state.device.capacity(), offset, len);
            let request = Request { due: Nanos(now_ns), offset: Bytes(offset), len, op, stream };
            let state = if let Some(queued) = state.device.queued() {
                queued.arrive(Nanos(now_ns), worker as u64, &request);
                state.outstanding += 1;
                self.turn(state, worker)
            } else {
                let done_ns = state.device.submit(Nanos(now_ns), &request).0;
                self.until(state, worker, done_ns)
            };
            (state, ())
        });
    }

    /// Lets everybody go first whose time is earlier: what the caller looks at next is as it is at
    /// its time.
    pub fn settle(&self) {
        self.as_worker(|here, state| {
            let now_ns = state.workers[here.worker].now_ns;
            (self.until(state, here.worker, now_ns), ())
        });
    }

    /// The calling worker has nothing to do until `until_ns` or [`World::wake`].
    pub fn idle(&self, until_ns: u64) {
        self.as_worker(|here, mut state| {
            let until_ns = until_ns.max(state.workers[here.worker].now_ns);
            state.order += 1;
            state.workers[here.worker].idle = Some((until_ns, state.order));
            let order = state.order;
            state.ready.insert((until_ns, order, here.worker));
            let mut state = self.turn(state, here.worker);
            state.workers[here.worker].idle = None;
            (state, ())
        });
    }

    /// Workers that idle look again, at the caller's time.
    pub fn wake(&self) {
        self.as_worker(|here, mut state| {
            let now_ns = state.workers[here.worker].now_ns;
            for worker in 0..state.workers.len() {
                let Some((until_ns, order)) = state.workers[worker].idle else { continue };
                if until_ns > now_ns {
                    state.ready.remove(&(until_ns, order, worker));
                    state.ready.insert((now_ns, order, worker));
                    state.workers[worker].idle = Some((now_ns, order));
                }
            }
            (state, ())
        });
    }

    /// Bytes that the device offers, where that is known.
    pub fn capacity(&self) -> Option<Bytes> {
        self.lock().device.capacity()
    }

    /// What the device counted.
    pub fn counters(&self) -> Vec<model::Counter> {
        self.lock().device.counters()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked leaves by its `Member`; the others go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges what the caller computed and runs `work` on its behalf, which costs nothing; `None`
    /// where the thread is no worker.
    fn as_worker<'a, T>(
        &'a self,
        work: impl FnOnce(&Here, MutexGuard<'a, State>) -> (MutexGuard<'a, State>, T),
    ) -> Option<T> {
        HERE.with(|place| {
            let place = place.borrow();
            let here = place.as_ref()?;
            let mut state = self.lock();
            self.charge(&mut state, here);
            let (state, value) = work(here, state);
            drop(state);
            here.watch.start();
            Some(value)
        })
    }

    fn charge(&self, state: &mut State, here: &Here) {
        let cost_ns = here.watch.stop(self.computing);
        let now_ns = state.workers[here.worker].now_ns;
        state.workers[here.worker].now_ns = state.processors.end_ns(now_ns, cost_ns);
    }

    /// The worker goes on at `at_ns`, when nobody is earlier.
    fn until<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        worker: usize,
        at_ns: u64,
    ) -> MutexGuard<'a, State> {
        let alone = state.outstanding == 0 && state.missing == 0 && state.running == Some(worker);
        if alone && state.ready.first().is_none_or(|(next_ns, ..)| *next_ns > at_ns) {
            state.workers[worker].now_ns = at_ns;
            state.front_ns = state.front_ns.max(at_ns);
            return state;
        }
        state.order += 1;
        let order = state.order;
        state.ready.insert((at_ns, order, worker));
        self.turn(state, worker)
    }

    /// Hands the turn on and waits for the next one.
    #[allow(clippy::unused_self)] // The guard is this world's.
    fn turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        worker: usize,
    ) -> MutexGuard<'a, State> {
        if state.running == Some(worker) {
            state.running = None;
        }
        state.dispatch();
        let turn = Arc::clone(&state.workers[worker].turn);
        while state.running != Some(worker) {
            state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

/// Where a request lies on a device of this capacity.
fn within(capacity: Option<Bytes>, offset: u64, len: u32) -> u64 {
    match capacity {
        Some(Bytes(capacity)) if offset + u64::from(len) > capacity => {
            let places = capacity.saturating_sub(u64::from(len)) / SECTOR;
            offset / SECTOR % places.max(1) * SECTOR
        }
        _ => offset,
    }
}

/// Waits for what another worker holds: returns when one has moved, so that the caller asks again.
/// False, at once, where the calling thread is no worker: it may block.
pub fn give_way() -> bool {
    let world = HERE.with(|here| here.borrow().as_ref().map(|here| Arc::clone(&here.world)));
    let Some(world) = world else { return false };
    world.as_worker(|here, mut state| {
        if state.ready.is_empty() {
            state.complete_next(u64::MAX);
        }
        let next_ns = state.ready.first().map_or(0, |(at_ns, ..)| *at_ns);
        let now_ns = state.workers[here.worker].now_ns.max(next_ns);
        (world.until(state, here.worker, now_ns), ())
    });
    true
}

/// The calling worker sleeps for `ns`; false, at once, where the calling thread is none.
pub fn sleep(ns: u64) -> bool {
    let world = HERE.with(|here| here.borrow().as_ref().map(|here| Arc::clone(&here.world)));
    let Some(world) = world else { return false };
    world.as_worker(|here, state| {
        let until_ns = state.workers[here.worker].now_ns + ns;
        (world.until(state, here.worker, until_ns), ())
    });
    true
}

impl std::fmt::Debug for World {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("World").field("computing", &self.computing).finish_non_exhaustive()
    }
}

impl State {
    /// Gives the turn to the earliest worker, where nobody has it.
    fn dispatch(&mut self) {
        if self.missing > 0 || self.running.is_some() {
            return;
        }
        // What completes may be earlier than all who are ready.
        while self.complete_next(self.ready.first().map_or(u64::MAX, |(at_ns, ..)| *at_ns)) {}
        let Some((at_ns, _, worker)) = self.ready.pop_first() else { return };
        self.running = Some(worker);
        self.workers[worker].now_ns = at_ns;
        self.front_ns = self.front_ns.max(at_ns);
        self.workers[worker].turn.notify_one();
    }

    /// Makes the worker ready whose request completes next, until `until_ns`.
    fn complete_next(&mut self, until_ns: u64) -> bool {
        if self.outstanding == 0 {
            return false;
        }
        let queued = self.device.queued().expect("only such a device has requests outstanding");
        let Some((at, ticket)) = queued.next_completion(Nanos(until_ns)) else { return false };
        self.outstanding -= 1;
        self.order += 1;
        self.ready.insert((at.0, self.order, ticket as usize));
        true
    }
}
