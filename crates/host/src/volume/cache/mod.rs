//! A fast device as the cache of a slow one, as bcache makes it.
//!
//! [`pages`] decides, [`CacheDevice`] runs it over two devices. A read is answered when its bytes
//! are there; what it missed enters the cache behind its back. Dirty pages are written home at
//! `(dirty - target) / 40` bytes per second, at least 4 KiB/s: the proportional part of bcache's
//! controller (`writeback_rate_p_term_inverse`, drivers/md/bcache/writeback.c); its integral part
//! and the wait of 30 s after the first dirty page are left out, as are the congestion thresholds.
//! A page counts as cached from the moment its request is planned.

pub mod pages;
mod settings;

use std::collections::VecDeque;

use model::observe::{Path, Probe};
use model::queued::Ahead;
use model::{Counter, Device, Queued};
use trace::{Op, Request};
use units::{Bytes, Nanos};

pub(crate) use settings::CacheSpec;
pub use settings::{CacheMode, CacheSettings};

use super::member::Traffic;
use super::plan::Stage;
use super::runner::{Asker, Happened, Order, Purpose, Runner, Timer};
use super::settings::Unfit;
use pages::{FAST, PAGE_BYTES, Pages, SLOW};

/// Pages written home in one row, at most.
const ROW_PAGES: u64 = 16;
/// Rows on their way home (`in_flight`, drivers/md/bcache/writeback.c).
const ROWS: usize = 64;
/// Seconds in which the excess over the target is written home.
const EXCESS_SECONDS: u64 = 40;
/// How often the rate is worked out again at least (`writeback_rate_update_seconds`).
const RATE_UPDATE_NS: u64 = 5_000_000_000;
/// The least rate of writing home, in bytes per second.
const LEAST_BYTES_PER_S: u64 = 4096;

/// A slow device with a fast one as its cache.
pub struct CacheDevice {
    pages: Pages,
    runner: Runner,
    target_pages: u64,
    /// Rows on their way home.
    rows: usize,
    last_row_at: u64,
    is_waking: bool,
    completed: VecDeque<(u64, u64, Path)>,
    ahead: Ahead,
    asked: Traffic,
    taken: u64,
    answered: u64,
}

impl CacheDevice {
    /// `fast` as the cache of `slow`.
    ///
    /// # Errors
    /// Where the settings are impossible, or say more than `fast` has.
    pub fn new(
        fast: Box<dyn Device>,
        slow: Box<dyn Device>,
        settings: &CacheSettings,
    ) -> Result<Self, Unfit> {
        settings.check()?;
        settings.fits(fast.capacity())?;
        let pages = Pages::new(settings);
        Ok(Self {
            target_pages: (settings.dirty_target * pages.capacity_pages() as f64) as u64,
            pages,
            runner: Runner::new(vec![fast, slow], settings.depth, None),
            rows: 0,
            last_row_at: 0,
            is_waking: false,
            completed: VecDeque::new(),
            ahead: Ahead::default(),
            asked: Traffic::default(),
            taken: 0,
            answered: 0,
        })
    }

    /// What the fast and the slow device were handed.
    pub fn members(&self) -> [Traffic; 2] {
        [FAST, SLOW].map(|member| self.runner.members[member].handed)
    }

    /// Events so far, and requests handed down: a measure of its work that does not depend on the
    /// machine.
    pub fn steps(&self) -> u64 {
        self.runner.steps()
    }

    /// The pages, for their counts.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    fn take_in(&mut self, ticket: u64, request: &Request) {
        let Request { op, offset, len, .. } = *request;
        self.taken += 1;
        let bytes = if op == Op::Flush { 0 } else { u64::from(len) };
        self.asked.add(op, bytes);
        let mut plan = self.runner.plan();
        if bytes > 0 || op == Op::Flush {
            self.pages.plan(op, offset.0, bytes, &mut plan);
        }
        if op == Op::Read {
            let read: u64 = plan.stage(Stage::Fetch).iter().map(|part| part.bytes).sum();
            assert_eq!(read, bytes, "each byte once");
        }
        let acknowledged = if op == Op::Read { Stage::Fetch } else { Stage::Store };
        let asker = Asker { ticket, arrived: self.runner.now() };
        self.runner.start(plan, Order::of(asker, acknowledged, Purpose::Request));
        self.wake_for_dirty();
    }

    /// Sees to it that the next row is written home in time.
    fn wake_for_dirty(&mut self) {
        let dirty = self.pages.dirty_pages();
        if self.is_waking || dirty == 0 || self.rows >= ROWS {
            return;
        }
        let now = self.runner.now();
        let at = self.row_at(dirty).clamp(now, now + RATE_UPDATE_NS);
        self.is_waking = true;
        self.runner.wake(at, Timer::WriteBack);
    }

    /// When the next row goes home with this many pages dirty.
    fn row_at(&self, dirty: u64) -> u64 {
        let excess = dirty.saturating_sub(self.target_pages) * PAGE_BYTES;
        let rate = (excess / EXCESS_SECONDS).max(LEAST_BYTES_PER_S);
        self.last_row_at + ROW_PAGES * PAGE_BYTES * 1_000_000_000 / rate
    }

    /// Writes the next row home if it is time.
    fn write_back(&mut self, now: u64) {
        let dirty = self.pages.dirty_pages();
        if dirty > 0 && self.rows < ROWS && self.row_at(dirty) <= now {
            let mut plan = self.runner.plan();
            self.pages.write_back(ROW_PAGES, &mut plan);
            self.rows += 1;
            self.last_row_at = now;
            self.runner.start(plan, Order::own(Purpose::Destage));
        }
        self.wake_for_dirty();
    }

    fn advance(&mut self, until: u64) -> Option<(u64, u64, Path)> {
        while let Some((at, happened)) = self.runner.step(until) {
            match happened {
                Happened::Acknowledged(ticket, path) => {
                    self.answered += 1;
                    assert!(self.answered <= self.taken, "more is answered than was asked");
                    return Some((at, ticket, path));
                }
                Happened::Finished(_, order) if order.purpose == Purpose::Destage => {
                    self.rows -= 1;
                    self.wake_for_dirty();
                }
                Happened::Finished(..) => {}
                Happened::Woke(_) => {
                    self.is_waking = false;
                    self.write_back(at);
                }
            }
        }
        None
    }
}

impl Queued for CacheDevice {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        while let Some(found) = self.advance(now.0) {
            self.completed.push_back(found);
        }
        self.take_in(ticket, request);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        self.runner.watch(false);
        let found = self.completed.pop_front().or_else(|| self.advance(until.0));
        found.map(|(at, ticket, _)| (Nanos(at), ticket))
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let kept = self.completed.front().map(|(at, ..)| *at);
        kept.or_else(|| self.runner.next_event()).map(Nanos)
    }

    fn next_observed(&mut self, until: Nanos, probe: &mut dyn Probe) -> Option<(Nanos, u64, Path)> {
        self.runner.watch(true);
        let found = self.completed.pop_front().or_else(|| self.advance(until.0));
        self.runner.tell(probe);
        found.map(|(at, ticket, path)| (Nanos(at), ticket, path))
    }
}

impl Device for CacheDevice {
    model::submit_by_queue!();

    fn capacity(&self) -> Option<Bytes> {
        self.runner.members[SLOW].device.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let counts = self.pages.counts;
        let [fast, slow] = self.members();
        let dirty = self.pages.dirty_pages() * PAGE_BYTES;
        let own = [
            ("cache_hit_bytes", counts.hit_bytes),
            ("cache_miss_bytes", counts.miss_bytes),
            ("cache_bypassed_requests", counts.bypassed),
            ("cache_through_writes", counts.through),
            ("cache_written_back_bytes", counts.written_back_bytes),
            ("cache_dirty_bytes", dirty),
            ("cache_reused_buckets", counts.reused_buckets),
            ("fast_read_bytes", fast.read_bytes),
            ("fast_write_bytes", fast.write_bytes),
            ("slow_read_bytes", slow.read_bytes),
            ("slow_write_bytes", slow.write_bytes),
        ];
        own.map(|(name, value)| Counter { name, value }).into()
    }
}
