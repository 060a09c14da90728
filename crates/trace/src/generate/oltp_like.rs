//! A database under transactions: bursts of random page reads, a log append and a flush per commit,
//! and paced checkpoint writes. It has the shape of an OLTP trace and imitates no particular
//! system.
//!
//! Tested for the counts, rates and orders that the settings promise; the trace of a seed is
//! pinned.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;
use units::{Bytes, Nanos};

use super::{DATA, LOG, empty};
use crate::{Op, Request, Trace};

/// A database under transactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OltpLike {
    /// Seed.
    pub seed: u64,
    /// Transactions.
    pub transactions: u64,
    /// Mean arrivals per second (Poisson).
    pub transactions_per_s: f64,
    /// Bytes of a database page.
    pub page_bytes: u32,
    /// Pages of the database.
    pub database_pages: u64,
    /// Mean page reads per transaction that miss the buffer (geometric).
    pub pages_read_per_transaction: f64,
    /// Mean gap between a transaction's requests, ns (exponential).
    pub think_ns: f64,
    /// Share of accesses that go to the hot fifth of the pages.
    pub hot_access_share: f64,
    /// Mean bytes of log per transaction (exponential); appended in whole 4 KiB blocks.
    pub log_bytes_per_transaction: f64,
    /// Time between checkpoints, ns; 0 writes none.
    pub checkpoint_interval_ns: u64,
    /// Pages written per checkpoint, in ascending order, spread over half the interval.
    pub pages_per_checkpoint: u64,
}

impl Default for OltpLike {
    /// 10,000 transactions at 500 per second on a 1 GiB database.
    fn default() -> Self {
        Self {
            seed: 1,
            transactions: 10_000,
            transactions_per_s: 500.0,
            page_bytes: 8192,
            database_pages: 131_072,
            pages_read_per_transaction: 6.0,
            think_ns: 150_000.0,
            hot_access_share: 0.8,
            log_bytes_per_transaction: 5_000.0,
            checkpoint_interval_ns: 5_000_000_000,
            pages_per_checkpoint: 2_000,
        }
    }
}

/// Block in which the log is appended.
const LOG_BLOCK_BYTES: u64 = 4096;

/// The trace of a database under transactions. The log follows the database in the address space
/// and only grows.
pub fn oltp_like(settings: &OltpLike) -> Trace {
    let mut rng = Rng::new(settings.seed);
    let mut requests = Vec::new();
    let mut arrival = 0.0;
    let mut commits = Vec::new();
    for _ in 0..settings.transactions {
        arrival += rng.exponential(1e9 / settings.transactions_per_s);
        let mut now = arrival;
        while rng.unit() * (1.0 + settings.pages_read_per_transaction)
            < settings.pages_read_per_transaction
        {
            requests.push(page_request(settings, now, Op::Read, random_page(settings, &mut rng)));
            now += rng.exponential(settings.think_ns);
        }
        commits.push((now as u64, rng.exponential(settings.log_bytes_per_transaction) as u64));
    }
    append_log(settings, &mut commits, &mut requests);
    write_checkpoints(settings, arrival as u64, &mut rng, &mut requests);
    // Stable, so that a flush stays behind the log write that is due at the same time.
    requests.sort_by_key(|request| request.due);
    let mut trace = empty("oltp_like", settings.seed, &["data", "log"]);
    for request in requests {
        trace.push(request);
    }
    trace
}

fn page_request(settings: &OltpLike, due: f64, op: Op, page: u64) -> Request {
    Request {
        due: Nanos(due as u64),
        offset: Bytes(page * u64::from(settings.page_bytes)),
        len: settings.page_bytes,
        op,
        stream: DATA,
    }
}

/// A page: of the first fifth with the hot share, else of the rest.
fn random_page(settings: &OltpLike, rng: &mut Rng) -> u64 {
    let hot = settings.database_pages / 5;
    if rng.unit() < settings.hot_access_share {
        rng.below(hot.max(1))
    } else {
        hot + rng.below((settings.database_pages - hot).max(1))
    }
}

/// One append and one flush per commit, in the order of the commits.
fn append_log(settings: &OltpLike, commits: &mut [(u64, u64)], requests: &mut Vec<Request>) {
    commits.sort_unstable();
    let mut position = settings.database_pages * u64::from(settings.page_bytes);
    for &mut (due, bytes) in commits {
        let len = (bytes / LOG_BLOCK_BYTES + 1) * LOG_BLOCK_BYTES;
        let due = Nanos(due);
        let append = Request {
            due,
            offset: Bytes(position),
            len: u32::try_from(len).unwrap_or(LOG_BLOCK_BYTES as u32),
            op: Op::Write,
            stream: LOG,
        };
        position += u64::from(append.len);
        let flush = Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: LOG };
        requests.extend([append, flush]);
    }
}

fn write_checkpoints(settings: &OltpLike, end_ns: u64, rng: &mut Rng, requests: &mut Vec<Request>) {
    let interval = settings.checkpoint_interval_ns;
    if interval == 0 {
        return;
    }
    for checkpoint in 1..=end_ns / interval {
        let mut pages: Vec<u64> =
            (0..settings.pages_per_checkpoint).map(|_| random_page(settings, rng)).collect();
        pages.sort_unstable();
        pages.dedup();
        let gap = interval as f64 / 2.0 / pages.len().max(1) as f64;
        let start = (checkpoint * interval) as f64;
        requests.extend(pages.iter().enumerate().map(|(index, page)| {
            page_request(settings, start + gap * index as f64, Op::Write, *page)
        }));
        let due = Nanos((start + gap * pages.len() as f64) as u64);
        requests.push(Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: DATA });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oltp_like_has_the_shape_it_promises() {
        let settings = OltpLike::default();
        let trace = oltp_like(&settings);
        assert_eq!(trace.validate(), Ok(()));
        assert_eq!(trace, oltp_like(&settings));
        assert_ne!(trace.due, oltp_like(&OltpLike { seed: 2, ..settings }).due);
        let database = settings.database_pages * u64::from(settings.page_bytes);
        let (mut reads, mut hot, mut commits, mut next) = (0u64, 0u64, 0u64, database);
        for (index, request) in trace.requests().enumerate() {
            match (request.op, request.stream) {
                (Op::Read, DATA) => {
                    reads += 1;
                    hot += u64::from(request.offset.0 < database / 5);
                    assert!(request.offset.0 + u64::from(request.len) <= database);
                }
                (Op::Write, LOG) => {
                    commits += 1;
                    assert_eq!(request.offset.0, next, "the log is appended");
                    next += u64::from(request.len);
                    let after = trace.request(index + 1);
                    assert_eq!((after.op, after.due), (Op::Flush, request.due));
                }
                (Op::Write, DATA) => assert!(request.due.0 >= settings.checkpoint_interval_ns),
                (op, _) => assert_eq!(op, Op::Flush),
            }
        }
        assert_eq!(commits, settings.transactions);
        let per_transaction = reads as f64 / settings.transactions as f64;
        assert!((per_transaction - 6.0).abs() < 0.2, "{per_transaction} reads");
        assert!((hot as f64 / reads as f64 - 0.8).abs() < 0.02);
        // 20 s make three checkpoints at least, each of nearly 2,000 distinct pages.
        let writes = trace.op.iter().filter(|op| **op == Op::Write).count() as u64 - commits;
        assert!((5_000..=8_000).contains(&writes), "{writes} checkpoint writes");
    }

    #[test]
    fn small_settings_do_not_break_it() {
        let none = OltpLike { transactions: 0, ..OltpLike::default() };
        assert!(oltp_like(&none).is_empty());
        let tiny = OltpLike {
            transactions: 10,
            database_pages: 1,
            pages_read_per_transaction: 0.0,
            log_bytes_per_transaction: 0.0,
            checkpoint_interval_ns: 1_000_000,
            pages_per_checkpoint: 0,
            ..OltpLike::default()
        };
        assert_eq!(oltp_like(&tiny).validate(), Ok(()));
    }
}
