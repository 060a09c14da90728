//! The log: positions, its holder, who waits for it, whole pages and segments.

use stats::rng::Rng;

use super::outcome::LogOutcome;
use super::setup::{self, Wakes};

/// What the holder of the log does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Has waited for others, and takes in what they inserted.
    Join,
    /// Writes a new segment full of zeros.
    Fill,
    /// Makes the new segment durable.
    FillFlush,
    /// Writes what was inserted, up to the end of the segment at most.
    Write,
    /// It is written: computes what comes before the flush, and waits for a processor to do so.
    Written,
    /// Makes it durable.
    Flush,
    /// It is durable: computes what comes before the release.
    Computed,
    /// Releases the log.
    Release,
}

/// State of the log. Positions count bytes from its beginning.
#[derive(Debug)]
pub(super) struct LogState<'a> {
    setup: &'a setup::Log,
    inserted: u64,
    flushed: u64,
    holder: Option<u32>,
    /// What the holder makes durable.
    target: u64,
    /// Up to where it has written.
    written: u64,
    held_since: u64,
    waiters: Vec<u32>,
    woken: Vec<u32>,
    /// End of the last segment that is ready, a multiple of the page.
    ready_end: u64,
    /// From a position to its place in the region, where segments begin at multiples of their size.
    shift: u64,
    imaged: f64,
    pub(super) outcome: LogOutcome,
}

impl<'a> LogState<'a> {
    pub(super) fn new(setup: &'a setup::Log) -> Self {
        let page = u64::from(setup.page_bytes);
        let (ready, shift) = setup.fill.map_or((u64::MAX, 0), |fill| {
            let ready = fill.ready / page * page;
            (ready, ready.next_multiple_of(fill.segment_bytes) - ready)
        });
        Self {
            setup,
            inserted: 0,
            flushed: 0,
            holder: None,
            target: 0,
            written: 0,
            held_since: 0,
            waiters: Vec::new(),
            woken: Vec::new(),
            ready_end: ready,
            shift,
            imaged: setup.images.map_or(0.0, |images| images.imaged),
            outcome: LogOutcome::default(),
        }
    }

    /// Inserts a record and gives the position behind it.
    pub(super) fn insert(&mut self, bytes: u32, rng: &mut Rng) -> u64 {
        let mut bytes = u64::from(bytes);
        if let Some(images) = &self.setup.images {
            let fresh = (1.0 - self.imaged / images.pages.max(1.0)).max(0.0);
            let expected = images.touches_per_insert * fresh;
            let count = expected.floor() + f64::from(u8::from(rng.unit() < expected.fract()));
            self.imaged += count;
            let whole = count as u64 * u64::from(images.bytes);
            self.outcome.image_bytes += whole;
            bytes += whole;
        }
        self.inserted += bytes;
        self.outcome.inserted_bytes += bytes;
        self.inserted
    }

    /// A checkpoint begins: every page is logged whole again at its next change.
    pub(super) fn checkpoint(&mut self) {
        self.imaged = 0.0;
    }

    /// End of all that was inserted.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(super) fn is_flushed(&self, position: u64) -> bool {
        self.flushed >= position
    }

    /// Whether the actor holds the log now; otherwise it waits for the holder.
    pub(super) fn lead_or_wait(&mut self, actor: u32, now: u64) -> bool {
        if self.holder.is_some() {
            self.waiters.push(actor);
            return false;
        }
        self.holder = Some(actor);
        self.held_since = now;
        self.target = self.inserted;
        true
    }

    /// The holder has waited: it makes durable what was inserted meanwhile, too.
    pub(super) fn join(&mut self) -> Stage {
        self.target = self.inserted;
        self.next_stage()
    }

    /// What the holder does first, and after each flush: a segment is written to its end and made
    /// durable before the next one is begun (`XLogWrite`).
    pub(super) fn next_stage(&mut self) -> Stage {
        if self.written >= self.target {
            return Stage::Computed;
        }
        match self.setup.fill {
            Some(fill) if self.written == self.ready_end => {
                self.ready_end += fill.segment_bytes;
                Stage::Fill
            }
            _ => Stage::Write,
        }
    }

    /// The pieces of a new segment, which leave together: size and place of each.
    pub(super) fn fill(&mut self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let fill = self.setup.fill.expect("only then is there such a stage");
        self.outcome.filled_bytes += fill.segment_bytes;
        let base = (self.ready_end - fill.segment_bytes + self.shift) % self.setup.region_bytes;
        (0..fill.segment_bytes).step_by(fill.chunk_bytes as usize).map(move |at| {
            (u64::from(fill.chunk_bytes).min(fill.segment_bytes - at) as u32, base + at)
        })
    }

    /// Size and place of the holder's write: whole pages from the one that holds the end of what
    /// is written to the one that holds its target, or the last one of the segment.
    pub(super) fn write(&mut self) -> (u32, u64) {
        let page = u64::from(self.setup.page_bytes);
        let from = self.written / page * page;
        let end = self.setup.fill.map_or(u64::MAX, |fill| {
            let past = (from + self.shift) % fill.segment_bytes;
            from + fill.segment_bytes - past
        });
        self.written = self.target.min(end);
        let bytes = (self.written.next_multiple_of(page) - from).min(self.setup.region_bytes);
        self.outcome.flushes += 1;
        self.outcome.written_bytes += bytes;
        let place = (from + self.shift) % self.setup.region_bytes;
        let last_place = self.setup.region_bytes - bytes;
        (bytes.min(u64::from(u32::MAX)) as u32, place.min(last_place))
    }

    /// Releases the log; gives those to be woken, in order.
    pub(super) fn release(&mut self, positions: impl Fn(u32) -> u64, now: u64) -> &[u32] {
        self.holder = None;
        self.flushed = self.flushed.max(self.target);
        self.outcome.held_ns += now - self.held_since;
        self.woken.clear();
        match self.setup.rule.wakes {
            // Who waits until a lock is free goes to the head of its queue (`LWLockQueueSelf`).
            Wakes::All => self.woken.extend(self.waiters.drain(..).rev()),
            Wakes::SatisfiedAndOneLeader => {
                let flushed = self.flushed;
                let woken = &mut self.woken;
                self.waiters.retain(|waiter| {
                    let satisfied = positions(*waiter) <= flushed;
                    if satisfied {
                        woken.push(*waiter);
                    }
                    !satisfied
                });
                self.woken.extend(self.waiters.pop());
            }
        }
        &self.woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transactions::{Fill, GroupCommit, Log};

    const PAGE: u64 = 8192;

    fn setup(fill: Option<Fill>) -> Log {
        Log {
            class: 0,
            rule: GroupCommit::POSTGRESQL,
            commit_waits: true,
            page_bytes: PAGE as u32,
            region_bytes: 1 << 20,
            delay: None,
            between_cpu_ns: 0,
            leader_cpu_ns: 0,
            waiter_cpu_ns: 0,
            images: None,
            fill,
        }
    }

    /// Two pages and a bit are ready. Who needs half of the next segment writes and syncs these
    /// two, fills a segment where it belongs, and writes the rest to the segment's beginning.
    #[test]
    fn a_segment_is_written_to_its_end_before_the_next_one_is_filled() {
        let segment = 8 * PAGE;
        let chunk = 3 * PAGE as u32;
        let fill = Fill { segment_bytes: segment, chunk_bytes: chunk, ready: 2 * PAGE + 100 };
        let setup = setup(Some(fill));
        let mut log = LogState::new(&setup);
        log.insert(6 * PAGE as u32 - 50, &mut Rng::new(1));
        assert!(log.lead_or_wait(0, 0));
        assert_eq!(log.next_stage(), Stage::Write);
        assert_eq!(log.write(), (2 * PAGE as u32, 6 * PAGE), "the end of the first segment");
        assert_eq!(log.next_stage(), Stage::Fill);
        let pieces: Vec<(u32, u64)> = log.fill().collect();
        let at = |pages: u64| segment + pages * PAGE;
        assert_eq!(pieces, [(chunk, at(0)), (chunk, at(3)), (2 * PAGE as u32, at(6))]);
        assert_eq!(log.next_stage(), Stage::Write);
        assert_eq!(log.write(), (4 * PAGE as u32, at(0)));
        assert_eq!(log.next_stage(), Stage::Computed);
        assert_eq!(log.outcome.flushes, 2);
        log.release(|_| 0, 1);
        // The next one begins with the page that was left in part.
        log.insert(100, &mut Rng::new(1));
        assert!(log.lead_or_wait(0, 2));
        assert_eq!(log.next_stage(), Stage::Write);
        assert_eq!(log.write(), (2 * PAGE as u32, at(3)));
    }

    #[test]
    fn the_last_comer_of_those_who_wait_until_it_is_free_is_woken_first() {
        let setup = setup(None);
        let mut log = LogState::new(&setup);
        assert!(log.lead_or_wait(7, 0));
        assert!([1, 2, 3].iter().all(|waiter| !log.lead_or_wait(*waiter, 0)));
        assert_eq!(log.release(|_| 0, 5), [3, 2, 1]);
        assert_eq!(log.outcome.held_ns, 5);
    }
}
