//! Write-back throttling: buffered writes give way while reads are slow.
//!
//! Kernel 6.x, block/blk-wbt.c and blk-rq-qos.c. It counts the buffered writes (and trims) between
//! entry and completion and lets others wait: at most a quarter of the depth for 100 ms after
//! a read arrived or was completed, else half of it. The depth is 16, or that of the device;
//! at the end of each window it is halved where the fastest read took longer than `min_lat`, and
//! doubled again where reads are fine or only writes go on. Neither reads nor direct writes wait.
//!
//! Not modelled: tasks that dirtied too much and wait for the page cache (`wb_recent_wait`), and
//! writes of the swapper.

use serde::Deserialize;
use units::Nanos;

use super::pool::{Entry, Id, List, Pool};

/// `[scheduler.throttle]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Time that the fastest read of a window should have; by default 75 ms with `rotational`, else
    /// 2 ms.
    pub min_lat: Option<Nanos>,
    /// Window at the depth of the start.
    pub window: Nanos,
    /// Whether the device has a volatile write cache: waiting writes then go on in bursts.
    pub write_cache: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_lat: None, window: Nanos(100_000_000), write_cache: true }
    }
}

/// Depth of the start (`RWB_DEF_DEPTH`).
const DEPTH: u32 = 16;
/// Windows without a sample until the depth goes back (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_WINDOWS: u32 = 5;
/// Writes that a window with a valid sample has (`RWB_MIN_WRITE_SAMPLES`).
const WRITE_SAMPLES: u64 = 3;
/// How long a read counts as competing, ns (`HZ / 10`).
const CLOSE_NS: u64 = 100_000_000;

/// What a window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Exceeded,
    OnlyWrites,
    Unknown,
}

/// What was completed in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    reads: u64,
    fastest_read_ns: u64,
    writes: u64,
}

/// The state of the throttle.
#[derive(Debug)]
pub(super) struct Throttle {
    min_lat_ns: u64,
    window_ns: u64,
    write_cache: bool,
    device_depth: u32,
    /// 0 at the start, each step up halves the depth.
    step: i32,
    depth: u32,
    at_most: bool,
    unknown: u32,
    in_flight: u32,
    /// The same for trims, which are counted apart.
    trims_in_flight: u32,
    waiting: [List; 2],
    window: Window,
    window_until: Option<u64>,
    current_window_ns: u64,
    /// When a read arrived or completed last.
    read_at: Option<u64>,
    /// The read that is watched: (entry, when it was issued).
    read: Option<(Id, u64)>,
}

/// Index of a kind that is throttled.
fn kind(entry: &Entry) -> usize {
    usize::from(entry.op == trace::Op::Trim)
}

/// Whether an entry is throttled at all.
fn is_throttled(entry: &Entry) -> bool {
    entry.writes() && !entry.sync
}

impl Throttle {
    pub fn new(settings: &Settings, rotational: bool, device_depth: u32) -> Self {
        let usual = if rotational { 75_000_000 } else { 2_000_000 };
        let mut throttle = Self {
            min_lat_ns: settings.min_lat.map_or(usual, |time| time.0),
            window_ns: settings.window.0,
            write_cache: settings.write_cache,
            device_depth,
            step: 0,
            depth: 0,
            at_most: false,
            unknown: 0,
            in_flight: 0,
            trims_in_flight: 0,
            waiting: Default::default(),
            window: Window::default(),
            window_until: None,
            current_window_ns: settings.window.0,
            read_at: None,
            read: None,
        };
        throttle.set_depth();
        throttle
    }

    /// The depth of the step, from `rq_depth_calc_max_depth`.
    fn set_depth(&mut self) {
        self.at_most = false;
        if self.device_depth == 1 {
            // One request is ready when the other completes.
            self.depth = if self.step > 0 { 1 } else { 2 };
            self.at_most = self.step <= 0;
            return;
        }
        let base = DEPTH.min(self.device_depth) - 1;
        let shift = self.step.unsigned_abs().min(31);
        self.depth = if self.step > 0 {
            1 + (base >> shift)
        } else {
            1 + base
                .checked_shl(shift)
                .filter(|depth| depth >> shift == base)
                .unwrap_or(u32::MAX / 2)
        };
        let most = 3 * self.device_depth / 4;
        if self.step < 0 && self.depth > most {
            (self.depth, self.at_most) = (most, true);
        }
    }

    fn normal(&self) -> u32 {
        if self.depth <= 2 { self.depth } else { self.depth.div_ceil(2) }
    }

    fn background(&self) -> u32 {
        if self.depth <= 2 { 1 } else { self.depth.div_ceil(4) }
    }

    fn in_flight(&self, kind: usize) -> u32 {
        [self.in_flight, self.trims_in_flight][kind]
    }

    fn in_flight_mut(&mut self, kind: usize) -> &mut u32 {
        [&mut self.in_flight, &mut self.trims_in_flight][kind]
    }

    /// How many of a kind may be on their way at `now`.
    fn limit(&self, now: u64, kind: usize) -> u32 {
        let is_close = self.read_at.is_some_and(|at| now < at + CLOSE_NS);
        if kind == 1 || is_close { self.background() } else { self.normal() }
    }

    /// Whether entry `id` may go on; else it waits here.
    pub fn admit(&mut self, now: u64, id: Id, pool: &mut Pool) -> bool {
        if !is_throttled(&pool[id]) {
            self.note_read(now, &pool[id]);
            return true;
        }
        let kind = kind(&pool[id]);
        let admitted =
            self.waiting[kind].is_empty() && self.in_flight(kind) < self.limit(now, kind);
        if admitted {
            *self.in_flight_mut(kind) += 1;
        } else {
            self.waiting[kind].push_back(id, pool);
        }
        if self.window_until.is_none() {
            self.arm(now);
        }
        admitted
    }

    fn note_read(&mut self, now: u64, entry: &Entry) {
        if entry.op == trace::Op::Read {
            self.read_at = Some(now);
        }
    }

    /// The device gets entry `id`.
    pub fn issued(&mut self, now: u64, id: Id, pool: &Pool) {
        if pool[id].op == trace::Op::Read && self.read.is_none() {
            self.read = Some((id, now));
        }
    }

    /// The device has completed entry `id`; those that wait are asked for with
    /// [`Throttle::next`] where the answer is yes.
    pub fn completed(&mut self, now: u64, id: Id, pool: &Pool) -> bool {
        let entry = &pool[id];
        let service_ns = now - entry.issued;
        if self.window_until.is_none() {
            // Nobody looks at what completes between windows.
        } else if entry.op == trace::Op::Read {
            self.window.fastest_read_ns = match self.window.reads {
                0 => service_ns,
                _ => self.window.fastest_read_ns.min(service_ns),
            };
            self.window.reads += 1;
        } else {
            self.window.writes += 1;
        }
        if self.read.is_some_and(|(read, _)| read == id) {
            self.read = None;
        }
        if !is_throttled(entry) {
            self.note_read(now, entry);
            return false;
        }
        let kind = kind(entry);
        *self.in_flight_mut(kind) -= 1;
        let left = self.in_flight(kind);
        let wake_below = match kind {
            1 => self.background(),
            _ if self.write_cache => 0,
            _ => self.normal(),
        };
        left == 0 || left < wake_below && wake_below - left >= self.background() / 2
    }

    /// The next one that need not wait any more.
    pub fn next(&mut self, now: u64, pool: &mut Pool) -> Option<Id> {
        for kind in 0..2 {
            if self.in_flight(kind) < self.limit(now, kind)
                && let Some(id) = self.waiting[kind].pop_front(pool)
            {
                *self.in_flight_mut(kind) += 1;
                return Some(id);
            }
        }
        None
    }

    fn arm(&mut self, now: u64) {
        self.current_window_ns = self.window_ns;
        if self.step > 0 {
            // 100 ms / sqrt(step + 1), in whole sixteenths as the kernel counts.
            let root = (u64::from(self.step.unsigned_abs() + 1) << 8).isqrt();
            self.current_window_ns = (self.window_ns << 4) / root;
        }
        self.window_until = Some(now + self.current_window_ns);
    }

    pub fn next_timer(&self) -> Option<u64> {
        self.window_until
    }

    fn verdict(&self, now: u64) -> Verdict {
        let seen = self.window;
        let open_ns = self.read.map_or(0, |(_, at)| now - at);
        if open_ns > self.current_window_ns || (open_ns > self.min_lat_ns && seen.reads == 0) {
            Verdict::Exceeded
        } else if seen.reads < 1 || seen.writes < WRITE_SAMPLES {
            let writes = seen.writes > 0 || self.in_flight + self.trims_in_flight > 0;
            if writes { Verdict::OnlyWrites } else { Verdict::Unknown }
        } else if seen.fastest_read_ns > self.min_lat_ns {
            Verdict::Exceeded
        } else {
            Verdict::Fine
        }
    }

    /// The window is over; whether some that wait may go on.
    pub fn timer(&mut self, now: u64) -> bool {
        let before = self.step;
        match self.verdict(now) {
            Verdict::Exceeded => self.scale_down(true),
            Verdict::Fine | Verdict::OnlyWrites => self.scale_up(),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_WINDOWS && self.step > 0 {
                    self.scale_up();
                } else if self.unknown >= UNKNOWN_WINDOWS && self.step < 0 {
                    self.scale_down(false);
                }
            }
        }
        self.window = Window::default();
        self.window_until = None;
        if self.step != 0 || self.in_flight + self.trims_in_flight > 0 {
            self.arm(now);
        }
        self.step < before
    }

    fn scale_up(&mut self) {
        if !self.at_most {
            self.step -= 1;
            self.set_depth();
            self.unknown = 0;
        }
    }

    fn scale_down(&mut self, hard: bool) {
        if self.depth == 1 {
            return;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        self.set_depth();
        self.unknown = 0;
    }
}
