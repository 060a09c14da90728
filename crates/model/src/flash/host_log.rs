//! A log above zones: what a host with writes in no order puts over a ZNS device.
//!
//! The host keeps a map from its pages to pages of zones, as dm-zoned or a log-structured file
//! system does, and cleans zones itself: below a number of free zones it reads the live pages of
//! the zone with the fewest, writes them to a zone for moved pages and resets the victim. All of
//! that crosses the interface: the device sees the moved pages as host bytes, amplifies them by 1,
//! and knows nothing of it. Requests wait for cleaning only through the dies and the interface that
//! they share with it, and a request that needs the zone waits for none.
//!
//! Invariants, audited: the maps agree; live counts are those of the maps; the device refused
//! nothing. The write amplification of the host is that of a page map whose blocks are zones
//! (`theory::greedy`); tested in `tests/it/flash/zones.rs`.

use std::collections::VecDeque;

use profile::flash::{FlashParameters, NONE, ZoneParameters};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::device::{Flash, PathApart};
use super::mapping::zoned::Zoned;
use super::snapshot::{Reader, Writer};
use super::{Counts, FlashDevice, StreamCounts, Wear, ZoneCounts};
use crate::device::submit_by_serving;
use crate::observe::{Cause, ForGc, Off, Path, Watch};
use crate::snapshot::fingerprint;
use crate::{Counter, Device, SnapshotError};

/// A zone that the log writes to: its next page and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    next: u32,
    end: u32,
}

/// The log, over a device of zones.
#[derive(Clone, Debug)]
pub struct HostLog {
    zones: Flash<Zoned>,
    zone_pages: u32,
    page_bytes: u32,
    low_zones: usize,
    capacity_bytes: u64,
    /// By page of the host: its page in the zones, and back.
    map: Vec<u32>,
    reverse: Vec<u32>,
    /// Live pages by zone.
    live: Vec<u32>,
    free: VecDeque<u32>,
    /// Zones for new pages and for moved ones.
    heads: [Head; 2],
    moved_pages: u64,
    unwritten_pages: u64,
    written_bytes: u64,
    fingerprint: u64,
}

const NEW: usize = 0;
const MOVED: usize = 1;

impl HostLog {
    /// An empty log over an empty device of `parameters`.
    pub fn new(parameters: &FlashParameters, zones: &ZoneParameters, seed: u64) -> Self {
        let pages = zones.pages(&parameters.geometry) as u32;
        let behind = FlashParameters { logical_pages: pages, ..parameters.clone() };
        let device = Flash::new(&behind, Zoned::new(&behind, zones, pages), seed);
        let count = pages / zones.zone_pages;
        let page_bytes = parameters.geometry.page_bytes;
        Self {
            zones: device,
            zone_pages: zones.zone_pages,
            page_bytes,
            low_zones: zones.host_log_low_zones.unwrap_or(2) as usize,
            capacity_bytes: u64::from(parameters.logical_pages) * u64::from(page_bytes),
            map: vec![NONE; parameters.logical_pages as usize],
            reverse: vec![NONE; pages as usize],
            live: vec![0; count as usize],
            free: (0..count).collect(),
            heads: [Head::default(); 2],
            moved_pages: 0,
            unwritten_pages: 0,
            written_bytes: 0,
            fingerprint: fingerprint(&(parameters, seed)),
        }
    }

    fn request(&self, op: Op, now: u64, first: u32, pages: u32, stream: u16) -> Request {
        let page = u64::from(self.page_bytes);
        let offset = Bytes(u64::from(first) * page);
        Request { due: Nanos(now), offset, len: pages * self.page_bytes, op, stream }
    }

    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let (start, end) = (request.offset.0, request.offset.0 + u64::from(request.len));
        assert!(end <= self.capacity_bytes, "a request ends at {end}, beyond the capacity");
        let page = u64::from(self.page_bytes);
        match request.op {
            Op::Flush => watch.forward(&mut self.zones, Nanos(now), request).0,
            Op::Trim => {
                (start.div_ceil(page)..end / page).for_each(|lpn| self.forget(lpn as u32));
                now
            }
            Op::Read => self.read(now, request, (start, end), watch),
            Op::Write => self.write(now, request, (start, end), watch),
        }
    }

    /// Reads what neighbours in the zones with one command.
    fn read<W: Watch>(
        &mut self,
        now: u64,
        request: &Request,
        (start, end): (u64, u64),
        watch: &mut W,
    ) -> u64 {
        let page = u64::from(self.page_bytes);
        let mut last = (now, Path::default());
        let mut at = start;
        while at < end {
            let place = self.map[(at / page) as usize];
            let mut next = ((at / page + 1) * page).min(end);
            if place == NONE {
                self.unwritten_pages += 1;
                at = next;
                continue;
            }
            while next < end
                && u64::from(self.map[(next / page) as usize])
                    == u64::from(place) + next / page - at / page
            {
                next = (next + page).min(end);
            }
            let offset = Bytes(u64::from(place) * page + at % page);
            let own = Request { due: Nanos(now), offset, len: (next - at) as u32, ..*request };
            last = self.later(last, watch, |this, watch| this.zones.command(now, &own, watch));
            at = next;
        }
        watch.follow(&last.1);
        last.0
    }

    /// The later of `last` and of what `command` does.
    fn later<W: Watch>(
        &mut self,
        last: (u64, Path),
        watch: &mut W,
        command: impl FnOnce(&mut Self, &mut PathApart<W>) -> u64,
    ) -> (u64, Path) {
        let mut apart = PathApart::new(watch);
        let done = command(self, &mut apart);
        if done > last.0 { (done, apart.into_path()) } else { last }
    }

    /// Writes whole pages; what a request leaves of its first and last page is read before.
    fn write<W: Watch>(
        &mut self,
        now: u64,
        request: &Request,
        (start, end): (u64, u64),
        watch: &mut W,
    ) -> u64 {
        let page = u64::from(self.page_bytes);
        self.written_bytes += u64::from(request.len);
        let mut earliest = now;
        for edge in [start, end] {
            let place = (!edge.is_multiple_of(page)).then(|| self.map[(edge / page) as usize]);
            if let Some(place) = place.filter(|place| *place != NONE) {
                let read = self.request(Op::Read, now, place, 1, request.stream);
                let mut apart = PathApart::new(watch);
                earliest = earliest.max(self.zones.command(now, &read, &mut apart));
            }
        }
        watch.spend(Cause::Medium, earliest - now);
        let (mut lpn, stop) = ((start / page) as u32, end.div_ceil(page) as u32);
        let mut last = (earliest, Path::default());
        while lpn < stop {
            let (first, count) = self.append(NEW, lpn..stop);
            let own = self.request(Op::Write, now, first, count, request.stream);
            last = self.later(last, watch, |this, watch| {
                this.zones.write_after((now, earliest), &own, watch)
            });
            lpn += count;
            self.clean(now, watch);
        }
        watch.follow(&last.1);
        last.0
    }

    /// Maps as many of `lpns` as the zone of `head` has room for; gives their first page there and
    /// how many they are.
    fn append(&mut self, head: usize, lpns: std::ops::Range<u32>) -> (u32, u32) {
        if self.heads[head].next == self.heads[head].end {
            let zone = self.free.pop_front().expect("cleaning keeps a free zone");
            let first = zone * self.zone_pages;
            self.heads[head] = Head { next: first, end: first + self.zone_pages };
        }
        let Head { next: first, end } = self.heads[head];
        let count = (end - first).min(lpns.end - lpns.start);
        for (place, lpn) in (first..first + count).zip(lpns) {
            self.forget(lpn);
            self.map[lpn as usize] = place;
            self.reverse[place as usize] = lpn;
        }
        self.live[(first / self.zone_pages) as usize] += count;
        self.heads[head].next += count;
        (first, count)
    }

    fn forget(&mut self, lpn: u32) {
        let place = std::mem::replace(&mut self.map[lpn as usize], NONE);
        if place != NONE {
            self.live[(place / self.zone_pages) as usize] -= 1;
        }
    }

    /// Cleans zones until enough are free.
    fn clean<W: Watch>(&mut self, now: u64, watch: &mut W) {
        while self.free.len() < self.low_zones {
            let victim = self.victim();
            self.move_live(now, victim, &mut ForGc(watch));
            let reset = self.request(Op::Trim, now, victim * self.zone_pages, self.zone_pages, 0);
            self.zones.command(now, &reset, &mut ForGc(watch));
            self.free.push_back(victim);
        }
    }

    /// The full zone with the fewest live pages.
    fn victim(&self) -> u32 {
        let mut idle = vec![true; self.live.len()];
        self.free.iter().for_each(|zone| idle[*zone as usize] = false);
        for head in self.heads.iter().filter(|head| head.next < head.end) {
            idle[(head.next / self.zone_pages) as usize] = false;
        }
        let full = (0..self.live.len()).filter(|zone| idle[*zone]);
        let victim = full.min_by_key(|zone| self.live[*zone]).expect("more zones than open ones");
        assert!(self.live[victim] < self.zone_pages, "every zone is full of live pages");
        victim as u32
    }

    /// Moves the live pages of `victim`, each run of them once it was read.
    fn move_live<W: Watch>(&mut self, now: u64, victim: u32, watch: &mut W) {
        let places = victim * self.zone_pages..(victim + 1) * self.zone_pages;
        for place in places {
            let lpn = self.reverse[place as usize];
            if self.map.get(lpn as usize) != Some(&place) {
                continue;
            }
            let read = self.request(Op::Read, now, place, 1, 0);
            let ready = self.zones.command(now, &read, watch);
            let (first, count) = self.append(MOVED, lpn..lpn + 1);
            let write = self.request(Op::Write, now, first, count, 0);
            self.zones.write_after((now, ready), &write, watch);
            self.moved_pages += 1;
        }
    }

    /// Pages that the host wrote to the device, over those that its requests wrote.
    fn host_amplification_permille(&self) -> u64 {
        let own = self.written_bytes.div_ceil(u64::from(self.page_bytes));
        (self.zones.counts().host_pages * 1000).checked_div(own).unwrap_or(1000)
    }
}

impl Device for HostLog {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new(self.fingerprint);
        to.u32s(&self.map);
        to.u32s(&self.reverse);
        to.u32s(&self.live);
        let free: Vec<u32> = self.free.iter().copied().collect();
        to.u32(free.len() as u32);
        for zone in &free {
            to.u32(*zone);
        }
        self.heads.iter().for_each(|head| to.u32s(&[head.next, head.end]));
        to.u64s(&[self.moved_pages, self.unwritten_pages, self.written_bytes]);
        self.zones.save(&mut to);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = Reader::new(bytes, self.fingerprint)?;
        let (pages, places) = (self.map.len(), self.reverse.len());
        from.indices(&mut self.map, places)?;
        from.indices(&mut self.reverse, pages)?;
        from.u32s(&mut self.live)?;
        self.free.clear();
        for _ in 0..from.u32()? {
            let zone = from.u32()?;
            if zone as usize >= self.live.len() {
                return Err(from.damaged());
            }
            self.free.push_back(zone);
        }
        for head in &mut self.heads {
            let mut ends = [0; 2];
            from.u32s(&mut ends)?;
            *head = Head { next: ends[0], end: ends[1] };
            if head.next > head.end || head.end as usize > places {
                return Err(from.damaged());
            }
        }
        let mut numbers = [0; 3];
        from.u64s(&mut numbers)?;
        [self.moved_pages, self.unwritten_pages, self.written_bytes] = numbers;
        self.zones.load(&mut from)?;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.capacity_bytes))
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.zones.counters();
        let own = [
            ("host_log_written_bytes", self.written_bytes),
            ("host_log_moved_pages", self.moved_pages),
            ("host_log_free_zones", self.free.len() as u64),
            ("host_log_amplification_permille", self.host_amplification_permille()),
        ];
        counters.extend(own.map(|(name, value)| Counter { name, value }));
        counters
    }
}

impl FlashDevice for HostLog {
    fn counts(&self) -> &Counts {
        self.zones.counts()
    }

    /// Writes it out, in order or over and over at random, and forgets the time that it took.
    fn precondition(&mut self, fill: f64, random: bool, seed: u64) -> bool {
        assert!(*self.counts() == Counts::default(), "the device was written before");
        let pages = (self.map.len() as f64 * fill.clamp(0.0, 1.0)).round() as u64;
        let overwrites = if random { super::mapping::ROUNDS * pages } else { 0 };
        let mut rng = stats::rng::Rng::new(seed);
        let idle = self.zones.clone();
        for k in 0..pages + overwrites {
            let lpn = if k < pages { k } else { rng.below(pages) };
            let write = self.request(Op::Write, 0, lpn as u32, 1, 0);
            self.serve(0, &write, &mut Off);
        }
        self.zones.rest_as(&idle);
        self.reset_counts();
        true
    }

    fn reset_counts(&mut self) {
        self.zones.reset_counts();
        (self.moved_pages, self.unwritten_pages, self.written_bytes) = (0, 0, 0);
    }

    fn stream_counts(&self) -> Vec<StreamCounts> {
        Vec::new()
    }

    fn zone_counts(&self) -> Option<ZoneCounts> {
        let counts = self.zones.zone_counts()?;
        Some(ZoneCounts { host_moved_pages: self.moved_pages, ..counts })
    }

    fn wear(&self) -> Wear {
        self.zones.wear()
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        let place = self.map.get(lpn as usize).copied().filter(|place| *place != NONE)?;
        self.zones.locate(place)
    }

    fn free_blocks(&self) -> u64 {
        self.zones.free_blocks()
    }

    fn audit(&self) {
        let mut live = vec![0; self.live.len()];
        for (lpn, &place) in self.map.iter().enumerate().filter(|(_, place)| **place != NONE) {
            assert_eq!(self.reverse[place as usize] as usize, lpn, "page {place} of the zones");
            assert!(self.zones.locate(place).is_some(), "page {place} was never written");
            live[(place / self.zone_pages) as usize] += 1;
        }
        assert_eq!(live, self.live, "live pages by zone");
        let refused = self.zones.zone_counts().expect("zones");
        assert_eq!((refused.misplaced_pages, refused.over_limit_pages), (0, 0), "refused pages");
        assert!(self.free.iter().all(|zone| self.live[*zone as usize] == 0));
        self.zones.audit();
    }
}
