//! A load that commits, as databases do: the device in the state in which it will serve them.
//!
//! A micro-benchmark holds one pattern at a time, back to back. A database alternates: reads of hot
//! and cold pages with CPU time between them, an append to the log, a flush, and now and then a
//! checkpoint that writes hundreds of pages. The same request takes another time there: the flush
//! wakes a processor that went to sleep, a large append meets a cold buffer, a hot page is nearer
//! than a cold one. This module makes such a load from a few fixed shares and a seed, without
//! knowledge of any particular workload. `probe` measures it through the dependent replay; the fit
//! takes its distributions around the lines from it.

use std::collections::BTreeMap;

use stats::rng::Rng;
use trace::{Op, Origin, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::measurement::Order;

/// The log is overwritten from its start after each checkpoint, as databases do.
const LOG_BYTES: u64 = 16 << 20;
const PAGE: u32 = 4096;
/// Commits between two checkpoints, and pages that one writes.
const CHECKPOINT_COMMITS: u32 = 200;
const CHECKPOINT_PAGES: u32 = 600;
/// Sizes of commits in pages, with their shares in twentieths. To each comes the last page of the
/// commit before, which is written again with the new records in it.
const COMMIT_PAGES: [(u32, u64); 6] = [(1, 3), (2, 4), (4, 5), (8, 4), (16, 3), (32, 1)];
/// Mean CPU time between two reads, ns.
const READ_GAP_NS: f64 = 8_000.0;
/// Share of the reads that fetch a recent page from the log: two pages, because a log's frames
/// straddle them.
const LOG_READS: f64 = 0.3;

/// Streams of the trace.
const DATA: u16 = 0;
const LOG: u16 = 1;

/// Captured service time that gaps are counted from; any will do, since only gaps are replayed.
const NOMINAL_NS: u64 = 1_000;

/// The load's trace for a range of `range_bytes`; the same seed gives the same trace.
pub fn trace(range_bytes: u64, transactions: u32, seed: u64) -> Trace {
    let mut maker = Maker::new(range_bytes, seed);
    for number in 1..=transactions {
        maker.transaction(number);
        if number.is_multiple_of(CHECKPOINT_COMMITS) {
            maker.checkpoint(number);
        }
    }
    maker.finish()
}

struct Maker {
    rng: Rng,
    rows: Vec<(Request, u16, u32)>,
    /// Virtual time of the writer and of the reader.
    clocks: [u64; 2],
    data_pages: u64,
    log_bytes: u64,
    log_at: u64,
}

impl Maker {
    fn new(range_bytes: u64, seed: u64) -> Self {
        let log_bytes = LOG_BYTES.min(range_bytes / 4);
        Self {
            rng: Rng::new(seed),
            rows: Vec::new(),
            clocks: [0, 0],
            data_pages: ((range_bytes - log_bytes) / u64::from(PAGE)).max(1),
            log_bytes,
            log_at: 0,
        }
    }

    fn log_base(&self) -> u64 {
        self.data_pages * u64::from(PAGE)
    }

    fn issue(&mut self, actor: u16, transaction: u32, gap_ns: f64, request: (Op, u64, u32, u16)) {
        let clock = &mut self.clocks[usize::from(actor)];
        *clock += gap_ns as u64;
        let (op, offset, len, stream) = request;
        let due = Nanos(*clock);
        *clock += NOMINAL_NS;
        self.rows.push((
            Request { due, offset: Bytes(offset), len, op, stream },
            actor,
            transaction,
        ));
    }

    /// A page of the data: four fifths of the accesses go to a fifth of the pages.
    fn page(&mut self) -> u64 {
        let hot = self.rng.unit() < 0.8;
        let fifth = (self.data_pages / 5).max(1);
        let page = if hot { self.rng.below(fifth) * 5 } else { self.rng.below(self.data_pages) };
        page.min(self.data_pages - 1) * u64::from(PAGE)
    }

    fn read(&mut self, actor: u16, transaction: u32) {
        let gap = 1_000.0 + self.rng.exponential(READ_GAP_NS);
        let recent = self.log_at.saturating_sub(u64::from(2 * PAGE)) / u64::from(PAGE);
        if recent > 0 && self.rng.unit() < LOG_READS {
            let offset = self.log_base() + self.rng.below(recent) * u64::from(PAGE);
            self.issue(actor, transaction, gap, (Op::Read, offset, 2 * PAGE, LOG));
        } else {
            let offset = self.page();
            self.issue(actor, transaction, gap, (Op::Read, offset, PAGE, DATA));
        }
    }

    /// Reads, an append, a flush; every fourth transaction a second actor reads beside it.
    fn transaction(&mut self, number: u32) {
        for _ in 0..self.rng.below(20) {
            self.read(0, number);
        }
        let mut draw = self.rng.below(20);
        let mut pages = 1;
        for (size, share) in COMMIT_PAGES {
            pages = size;
            if draw < share {
                break;
            }
            draw -= share;
        }
        if self.log_at + u64::from(pages * PAGE) > self.log_bytes {
            self.log_at = 0;
        }
        let repeated = if self.log_at == 0 { 0 } else { PAGE };
        let offset = self.log_base() + self.log_at - u64::from(repeated);
        let len = pages * PAGE + repeated;
        self.log_at += u64::from(pages * PAGE);
        self.issue(0, number, 15_000.0, (Op::Write, offset, len, LOG));
        self.issue(0, number, 3_000.0, (Op::Flush, 0, 0, LOG));
        self.clocks[0] += 20_000;
        if number.is_multiple_of(4) {
            self.clocks[1] = self.clocks[1].max(self.clocks[0]);
            for _ in 0..self.rng.below(30) {
                self.read(1, number);
            }
        }
    }

    /// Pages in the order of their addresses, flushed before and after.
    fn checkpoint(&mut self, number: u32) {
        self.issue(0, number, 10_000.0, (Op::Flush, 0, 0, LOG));
        let mut pages: Vec<u64> = (0..CHECKPOINT_PAGES).map(|_| self.page()).collect();
        pages.sort_unstable();
        pages.dedup();
        for offset in pages {
            self.issue(0, number, 5_000.0, (Op::Write, offset, PAGE, DATA));
        }
        self.issue(0, number, 10_000.0, (Op::Flush, 0, 0, DATA));
        self.log_at = 0;
    }

    fn finish(mut self) -> Trace {
        self.rows.sort_by_key(|(request, ..)| request.due);
        let mut trace = Trace {
            streams: ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec(),
            origin: Origin { source: "wearmark commit load".to_owned(), ..Origin::default() },
            ..Trace::default()
        };
        for (request, actor, transaction) in self.rows {
            trace.push_captured(request, Nanos(NOMINAL_NS), actor, transaction);
        }
        trace
    }
}

/// Class of every request of a trace: operation, order, size. The size of a flush is what was
/// written since the one before. Sequential means: starts where the previous request of the same
/// operation and stream ended, or, of writes, repeats its last page and goes on, which is what the
/// linear model takes it for.
pub fn classes(trace: &Trace) -> Vec<(Op, Order, u32)> {
    let mut ends: BTreeMap<(Op, u16), u64> = BTreeMap::new();
    let mut dirty = 0u64;
    let class = |request: Request| {
        if request.op == Op::Flush {
            let size = u32::try_from(std::mem::take(&mut dirty)).unwrap_or(u32::MAX);
            return (Op::Flush, Order::Random, size);
        }
        let (offset, len) = (request.offset.0, u64::from(request.len));
        let end = ends.insert((request.op, request.stream), offset + len);
        let repeats_page = request.op == Op::Write
            && len > u64::from(PAGE)
            && end == Some(offset + u64::from(PAGE));
        let is_sequential = end == Some(offset) || repeats_page;
        let order = if is_sequential { Order::Sequential } else { Order::Random };
        if request.op == Op::Write {
            dirty += u64::from(request.len);
        }
        (request.op, order, request.len)
    };
    trace.requests().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_well_formed_and_stays_in_its_range() {
        for range_bytes in [16 << 20, 1 << 30] {
            let trace = trace(range_bytes, 500, 7);
            assert_eq!(trace.validate(), Ok(()));
            assert!(trace.extent().0 <= range_bytes, "{} of {range_bytes}", trace.extent());
            assert!(trace.offset.iter().all(|offset| offset.is_multiple_of(4096)));
            let flushes = trace.op.iter().filter(|op| **op == Op::Flush).count();
            assert_eq!(flushes, 500 + 2 * 2, "a flush per commit, two per checkpoint");
        }
        assert_eq!(trace(1 << 30, 50, 7), trace(1 << 30, 50, 7));
        assert_ne!(trace(1 << 30, 50, 7), trace(1 << 30, 50, 8));
    }

    #[test]
    fn flushes_are_classed_by_what_they_make_durable() {
        let trace = trace(1 << 30, 250, 1);
        let classes = classes(&trace);
        let mut written = 0u64;
        for (request, (op, order, size)) in trace.requests().zip(&classes) {
            match request.op {
                Op::Write => written += u64::from(request.len),
                Op::Flush => assert_eq!(u64::from(*size), std::mem::take(&mut written)),
                _ => {}
            }
            assert_eq!(request.op, *op);
            let log_append = request.op == Op::Write && request.stream == LOG;
            assert!(!log_append || *order == Order::Sequential || size % 4096 == 0);
        }
        let appends = |order| {
            trace
                .requests()
                .zip(&classes)
                .filter(move |(r, c)| r.op == Op::Write && r.stream == LOG && c.1 == order)
        };
        assert!(appends(Order::Sequential).count() > 20 * appends(Order::Random).count());
    }
}
