//! Runs one cell: the request pattern, the recording of its times, its threads.
//!
//! Follows the definitions of `measurement`: sequential requests start where the previous one of
//! their thread ended, random ones are uniform over the range and aligned to their size; closed
//! loops keep `depth` requests outstanding, Poisson arrivals have exponential gaps and count their
//! response from the intended start (coordinated omission cannot hide in it).
//!
//! A completion counts if it falls into the measured interval, which begins after the warm-up and
//! has a fixed end; requests still outstanding at the end are waited for but not counted.
//! Tested on the null device (conservation, arrival statistics), on devices that fail on purpose
//! (every error branch) and on real files (`tests/it`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use fit::measurement::{
    Arrival, Cell, CellResult, ClassResult, Distribution, Durability, Order, Window,
};
use io::engine::{Device, EngineOptions};
use stats::Histogram;
use stats::rng::Rng;
use trace::Op;

use crate::clock::{self, CpuTime};
use crate::driver::{self, DriveOptions, Driven, Flight, Work};
use crate::error::Error;
use crate::realtime::{self, Urgency};

/// How a cell is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellOptions {
    /// Bytes that requests address, from the start of the target.
    pub(crate) range_bytes: u64,
    /// Measured seconds.
    pub(crate) seconds: f64,
    /// Seconds before those that are not counted.
    pub(crate) warm_up_s: f64,
    /// Intervals that the measured seconds are cut into.
    pub(crate) windows: u32,
    /// Seed of offsets, arrivals and data.
    pub(crate) seed: u64,
    /// Whether the issuing threads ask for real-time priority.
    pub(crate) realtime: bool,
}

/// Ahead of a Poisson arrival the thread spins this long.
pub(crate) const SPIN_NS: u64 = 60_000;

/// A finished cell and what the disturbance checks need beside it.
pub(crate) struct CellRun {
    pub(crate) result: CellResult,
    /// Run-queue delay summed over the threads, ns, where the kernel tells.
    pub(crate) run_queue_delay_ns: Option<u64>,
    /// Threads used.
    pub(crate) threads: u32,
    pub(crate) driven: Driven,
}

/// Refuses cells that have no meaning on this target.
pub(crate) fn check(cell: &Cell, range_bytes: u64, block_bytes: u32) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::BadCell { why });
    if cell.size_bytes == 0 || !cell.size_bytes.is_multiple_of(block_bytes) {
        return refuse(format!(
            "requests of {} bytes are not a multiple of the logical block of {block_bytes}",
            cell.size_bytes
        ));
    }
    if u64::from(cell.size_bytes) > range_bytes {
        return refuse(format!(
            "requests of {} bytes do not fit in a range of {range_bytes}",
            cell.size_bytes
        ));
    }
    if !(1..=4096).contains(&cell.depth) {
        return refuse(format!("a depth of {} is not within 1 to 4096", cell.depth));
    }
    if !(0.0..=1.0).contains(&cell.read_share) {
        return refuse(format!("a read share of {} is not within 0 to 1", cell.read_share));
    }
    match cell.arrival {
        Arrival::Poisson { rate_per_s } if !(rate_per_s > 0.0 && rate_per_s.is_finite()) => {
            refuse(format!("an arrival rate of {rate_per_s} per second is not above zero"))
        }
        _ => Ok(()),
    }
}

/// Where requests go.
struct Pattern {
    rng: Rng,
    order: Order,
    size: u64,
    /// Whole requests that fit in the range.
    places: u64,
    cursor: u64,
    read_share: f64,
}

impl Pattern {
    fn new(cell: &Cell, options: &CellOptions, worker: u32, workers: u32) -> Self {
        let size = u64::from(cell.size_bytes);
        let places = options.range_bytes / size;
        Self {
            rng: Rng::new(options.seed.wrapping_add(u64::from(worker) << 32)),
            order: cell.order,
            size,
            places,
            // Threads start at equal distances, so that sequential ones do not follow each other.
            cursor: places * u64::from(worker) / u64::from(workers),
            read_share: cell.read_share,
        }
    }

    #[inline]
    fn next(&mut self) -> (Op, u64) {
        let place = match self.order {
            Order::Random => self.rng.below(self.places),
            Order::Sequential => {
                let place = self.cursor;
                self.cursor = if place + 1 < self.places { place + 1 } else { 0 };
                place
            }
        };
        let reads = match self.read_share {
            share if share >= 1.0 => true,
            share if share <= 0.0 => false,
            share => self.rng.unit() < share,
        };
        (if reads { Op::Read } else { Op::Write }, place * self.size)
    }
}

/// Histograms of one operation.
struct Times {
    service: Histogram,
    response: Histogram,
}

impl Default for Times {
    fn default() -> Self {
        Self { service: roomy(), response: roomy() }
    }
}

/// A histogram that has its memory already, so that the I/O loop allocates nothing.
fn roomy() -> Histogram {
    let mut histogram = Histogram::new();
    histogram.record(60_000_000_000);
    histogram.clear();
    histogram
}

/// The form of a histogram that is saved.
pub fn distribution(histogram: &Histogram) -> Distribution {
    Distribution {
        count: histogram.count(),
        mean_ns: histogram.mean(),
        min_ns: histogram.min(),
        max_ns: histogram.max(),
        buckets: histogram.buckets(),
    }
}

/// What one thread saw.
struct Recorder {
    ops: [Option<Box<Times>>; 4],
    windows: Vec<Histogram>,
    begin_ns: u64,
    start_ns: u64,
    end_ns: u64,
    window_ns: u64,
    /// The window that the latest completion fell into, and its end: spares a division each.
    window: usize,
    window_end_ns: u64,
    open_loop: bool,
    requests: u64,
    bytes: u64,
    cpu_at_start: Option<CpuTime>,
    cpu_at_end: Option<CpuTime>,
}

impl Recorder {
    /// A recorder of a cell that begins now: its memory is there before, since the histograms of a
    /// few hundred windows take longer than one of them lasts.
    fn begin(cell: &Cell, options: &CellOptions) -> Self {
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let windows = (0..options.windows).map(|_| roomy()).collect();
        let window_ns = (nanos(options.seconds) / u64::from(options.windows)).max(1);
        let of = |wanted: bool| wanted.then(Box::<Times>::default);
        let ops = Op::ALL.map(|op| match op {
            Op::Read => of(cell.read_share > 0.0),
            Op::Write => of(cell.read_share < 1.0),
            Op::Flush => of(cell.durability == Durability::Flush && cell.read_share < 1.0),
            Op::Trim => None,
        });
        let begin_ns = clock::now_ns();
        let start_ns = begin_ns + nanos(options.warm_up_s);
        Self {
            ops,
            windows,
            begin_ns,
            start_ns,
            end_ns: start_ns + window_ns * u64::from(options.windows),
            window_ns,
            window: 0,
            window_end_ns: start_ns + window_ns,
            open_loop: cell.arrival != Arrival::Closed,
            requests: 0,
            bytes: 0,
            cpu_at_start: None,
            cpu_at_end: None,
        }
    }

    /// Reads the CPU clock at the borders of the measured interval.
    #[inline]
    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.start_ns && self.cpu_at_start.is_none() {
            self.cpu_at_start = Some(CpuTime::of_thread());
        }
        if now_ns >= self.end_ns && self.cpu_at_end.is_none() {
            self.cpu_at_end = Some(CpuTime::of_thread());
        }
    }

    #[inline]
    fn record(&mut self, flight: &Flight, at_ns: u64) {
        if at_ns < self.start_ns || at_ns >= self.end_ns {
            return;
        }
        while at_ns >= self.window_end_ns {
            self.window += 1;
            self.window_end_ns += self.window_ns;
        }
        let service_ns = at_ns.saturating_sub(flight.issued_ns);
        let op = flight.order.op;
        let Some(times) = &mut self.ops[op as usize] else { return };
        times.service.record(service_ns);
        if self.open_loop {
            times.response.record(at_ns.saturating_sub(flight.order.due_ns));
        }
        if op != Op::Flush {
            self.windows[self.window].record(service_ns);
            self.requests += 1;
            self.bytes += u64::from(flight.order.len);
        }
    }

    fn cpu(&self) -> CpuTime {
        match (self.cpu_at_start, self.cpu_at_end) {
            (Some(start), Some(end)) => end.since(start),
            (Some(start), None) => CpuTime::of_thread().since(start),
            _ => CpuTime::default(),
        }
    }
}

/// A cell as work for the I/O loop.
struct CellWork {
    pattern: Pattern,
    recorder: Recorder,
    size: u32,
    flush_writes: bool,
    /// Mean gap and next due time of Poisson arrivals, ns. The due time is kept as a float of
    /// nanoseconds since the start, so that rounding does not add up.
    poisson: Option<(f64, f64)>,
    begin_ns: u64,
}

impl Work for CellWork {
    #[inline]
    fn next_due(&mut self, now_ns: u64) -> Option<u64> {
        self.recorder.tick(now_ns);
        if now_ns >= self.recorder.end_ns {
            return None;
        }
        Some(match self.poisson {
            None => 0,
            Some((_, next)) => self.begin_ns + next as u64,
        })
    }

    #[inline]
    fn take(&mut self, now_ns: u64) -> driver::Order {
        let (op, offset) = self.pattern.next();
        let due_ns = match &mut self.poisson {
            None => now_ns,
            Some((mean_ns, next)) => {
                let due_ns = self.begin_ns + *next as u64;
                *next += self.pattern.rng.exponential(*mean_ns);
                due_ns
            }
        };
        driver::Order { op, offset, len: self.size, tag: 0, due_ns }
    }

    #[inline]
    fn completed(&mut self, flight: &Flight, at_ns: u64) -> bool {
        self.recorder.record(flight, at_ns);
        self.flush_writes && flight.order.op == Op::Write
    }
}

/// What a worker thread hands back.
struct Worked {
    recorder: Recorder,
    cpu: CpuTime,
    run_queue_delay_ns: Option<u64>,
    driven: Driven,
}

/// Runs a cell. `watch` is called about ten times a second with the share done and stops the cell
/// by returning false; what was measured up to then is returned, marked by its shorter time.
pub(crate) fn run<D: Device>(
    device: &D,
    cell: &Cell,
    options: &CellOptions,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<CellRun, Error> {
    let (threads, depth) = device.layout(cell.depth);
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(threads as usize);
    let (sender, receiver) = mpsc::channel();
    let started = clock::now_ns();
    let planned_s = options.warm_up_s + options.seconds;
    let mut outcomes = Vec::new();
    thread::scope(|scope| {
        for worker in 0..threads {
            let place = Place { worker, workers: threads, depth };
            let (sender, stop, barrier) = (sender.clone(), &stop, &barrier);
            scope.spawn(move || {
                let outcome = work(device, cell, options, &place, (stop, barrier));
                if outcome.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                let _ = sender.send(outcome);
            });
        }
        while outcomes.len() < threads as usize {
            if let Ok(outcome) = receiver.recv_timeout(Duration::from_millis(100)) {
                outcomes.push(outcome);
                continue;
            }
            let done = (clock::now_ns() - started) as f64 / 1e9 / planned_s;
            if !watch(done.min(1.0)) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    let worked = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(summarise(cell, options, &worked))
}

/// Which thread of a cell this is.
struct Place {
    worker: u32,
    workers: u32,
    depth: u32,
}

fn work<D: Device>(
    device: &D,
    cell: &Cell,
    options: &CellOptions,
    place: &Place,
    (stop, barrier): (&AtomicBool, &Barrier),
) -> Result<Worked, Error> {
    let engine = device.engine(EngineOptions {
        slots: place.depth,
        slot_bytes: cell.size_bytes,
        dsync: cell.durability == Durability::Dsync,
    });
    // Threads that could not open an engine still meet the others here, else those would wait.
    barrier.wait();
    let mut engine = engine?;
    let _urgency = Urgency::raise(options.realtime, false);
    realtime::short_timers();
    let mut pattern = Pattern::new(cell, options, place.worker, place.workers);
    let poisson = match cell.arrival {
        Arrival::Closed => None,
        Arrival::Poisson { rate_per_s } => {
            let mean_ns = 1e9 * f64::from(place.workers) / rate_per_s;
            Some((mean_ns, pattern.rng.exponential(mean_ns)))
        }
    };
    let recorder = Recorder::begin(cell, options);
    let begin_ns = recorder.begin_ns;
    let flush_writes = cell.durability == Durability::Flush;
    let mut work =
        CellWork { pattern, recorder, size: cell.size_bytes, flush_writes, poisson, begin_ns };
    let drive = DriveOptions {
        slots: place.depth,
        spin_ns: SPIN_NS,
        seed: options.seed.wrapping_add(u64::from(place.worker)),
    };
    let delay = clock::run_queue_delay_ns();
    let driven = driver::drive(device, &mut engine, &mut work, drive, stop)?;
    let recorder = work.recorder;
    let cpu = recorder.cpu();
    let run_queue_delay_ns =
        clock::run_queue_delay_ns().zip(delay).map(|(after, before)| after - before);
    Ok(Worked { recorder, cpu, run_queue_delay_ns, driven })
}

/// Puts the threads' records together.
fn summarise(cell: &Cell, options: &CellOptions, worked: &[Worked]) -> CellRun {
    let now = clock::now_ns();
    let elapsed_ns =
        |recorder: &Recorder| now.min(recorder.end_ns).saturating_sub(recorder.start_ns);
    let elapsed_s = worked.iter().map(|w| elapsed_ns(&w.recorder)).max().unwrap_or(0) as f64 / 1e9;
    let sum = |of: fn(&Worked) -> u64| worked.iter().map(of).sum::<u64>();
    let requests = sum(|w| w.recorder.requests);
    let per_request = |ns: u64| if requests == 0 { 0.0 } else { ns as f64 / requests as f64 };
    let result = CellResult {
        cell: *cell,
        started_s: 0.0,
        elapsed_s,
        requests,
        bytes: sum(|w| w.recorder.bytes),
        cpu_user_ns: per_request(sum(|w| w.cpu.user_ns)),
        cpu_system_ns: per_request(sum(|w| w.cpu.system_ns)),
        classes: classes(worked),
        windows: windows(options, worked, elapsed_s),
        steady: None,
        warnings: Vec::new(),
    };
    let delays: Option<Vec<u64>> = worked.iter().map(|w| w.run_queue_delay_ns).collect();
    let driven = Driven {
        issued: sum(|w| w.driven.issued),
        completed: sum(|w| w.driven.completed),
        slots_exhausted: sum(|w| w.driven.slots_exhausted),
        starved: sum(|w| w.driven.starved),
    };
    CellRun {
        result,
        run_queue_delay_ns: delays.map(|delays| delays.iter().sum()),
        threads: worked.len() as u32,
        driven,
    }
}

fn classes(worked: &[Worked]) -> Vec<ClassResult> {
    let mut classes = Vec::new();
    for op in Op::ALL {
        let mut total = Times::default();
        for times in worked.iter().filter_map(|w| w.recorder.ops[op as usize].as_ref()) {
            total.service.merge(&times.service);
            total.response.merge(&times.response);
        }
        if total.service.count() == 0 {
            continue;
        }
        let service = distribution(&total.service);
        let response = match total.response.count() {
            0 => service.clone(),
            _ => distribution(&total.response),
        };
        classes.push(ClassResult { op, service, response });
    }
    classes
}

fn windows(options: &CellOptions, worked: &[Worked], elapsed_s: f64) -> Vec<Window> {
    let length_s = options.seconds / f64::from(options.windows);
    // A cell that was stopped has only the windows that ended before.
    let whole = ((elapsed_s / length_s + 1e-6) as usize).min(options.windows as usize);
    let of = |index: usize| {
        let mut window = Histogram::default();
        for part in worked {
            window.merge(&part.recorder.windows[index]);
        }
        Window {
            at_s: options.warm_up_s + index as f64 * length_s,
            iops: window.count() as f64 / length_s,
            p99_ns: window.quantile(0.99),
        }
    };
    (0..whole).map(of).collect()
}

/// A distribution's value at quantile `q` (nearest rank), ns; 0 where it is empty.
pub fn quantile_ns(distribution: &Distribution, q: f64) -> u64 {
    let rank = ((q * distribution.count as f64).ceil() as u64).max(1);
    let mut seen = 0;
    for (value, count) in &distribution.buckets {
        seen += count;
        if seen >= rank {
            return (*value).clamp(distribution.min_ns, distribution.max_ns);
        }
    }
    distribution.max_ns
}
