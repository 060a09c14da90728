//! One scan of the table, with what it read.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Order;
use crate::Error;
use crate::statements::{Ground, Session};

/// What one scan took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// Elapsed time, ms.
    pub elapsed_ms: f64,
    /// Rows that it saw.
    pub rows: u64,
    /// Updates that it saw, over all rows.
    pub sum: u64,
    /// Pages asked of the buffer meanwhile. InnoDB counts for the whole server, so purge is in it.
    pub logical_reads: Option<u64>,
    /// Pages read into it: from the kernel, not always a device.
    pub physical_reads: Option<u64>,
}

/// In a transaction that begins now.
pub(super) fn fresh(ground: &Ground, monitor: &mut Session, order: Order) -> Result<Scan, Error> {
    let mut session = ground.session()?;
    run(monitor, &mut session, order)
}

/// In `reader`; `monitor` reads the server's counters.
pub(super) fn run(
    monitor: &mut Session,
    reader: &mut Session,
    order: Order,
) -> Result<Scan, Error> {
    let sql = statement(reader, order);
    if let Session::Postgresql(_) = reader {
        return postgresql(reader, &sql, order);
    }
    let before = reads(monitor, reader)?;
    let started = Instant::now();
    let rows = reader.rows(&sql)?;
    let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
    let after = reads(monitor, reader)?;
    let (rows, sum) = counted(&rows);
    let since = |of: fn(&(u64, u64)) -> u64| {
        let (before, after) = (before.as_ref()?, after.as_ref()?);
        Some(of(after).saturating_sub(of(before)))
    };
    Ok(Scan {
        elapsed_ms,
        rows,
        sum,
        logical_reads: since(|reads| reads.0),
        physical_reads: since(|reads| reads.1),
    })
}

/// Rows and sum of an answer.
fn counted(rows: &[Vec<Option<String>>]) -> (u64, u64) {
    let cell = |index: usize| {
        let text = rows.first().and_then(|row| row.get(index)).cloned().flatten();
        text.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) as u64
    };
    (cell(0), cell(1))
}

fn statement(session: &Session, order: Order) -> String {
    let all = "SELECT COUNT(*), SUM(n), SUM(LENGTH(pad)) FROM v";
    match (order, session) {
        (Order::Table, _) => all.to_owned(),
        (Order::Index, Session::Postgresql(_)) => format!("{all} WHERE r >= 0"),
        (Order::Index, Session::Mariadb(_)) => format!("{all} FORCE INDEX (v_r) WHERE r >= 0"),
        (Order::Index, Session::Sqlite(..)) => format!("{all} INDEXED BY v_r WHERE r >= 0"),
    }
}

/// Timed under EXPLAIN, which counts the blocks; then once more for what it saw.
fn postgresql(session: &mut Session, sql: &str, order: Order) -> Result<Scan, Error> {
    let along = if order == Order::Index { "off" } else { "on" };
    session.run(&format!(
        "SET max_parallel_workers_per_gather = 0; SET jit = off; SET enable_seqscan = {along}; \
         SET enable_bitmapscan = off"
    ))?;
    let started = Instant::now();
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}");
    let text = session.rows(&explain)?.into_iter().flatten().flatten().collect::<String>();
    let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let number = |name: &str| plan[0]["Plan"][name].as_u64();
    let (hit, read) = (number("Shared Hit Blocks"), number("Shared Read Blocks"));
    let (rows, sum) = counted(&session.rows(sql)?);
    Ok(Scan {
        elapsed_ms,
        rows,
        sum,
        logical_reads: hit.zip(read).map(|(hit, read)| hit + read),
        physical_reads: read,
    })
}

/// Pages asked for and pages read so far.
fn reads(monitor: &mut Session, reader: &Session) -> Result<Option<(u64, u64)>, Error> {
    if let Session::Sqlite(connection, _) = reader {
        return Ok(cache_counts(connection));
    }
    let rows = monitor.rows(
        "SHOW GLOBAL STATUS WHERE Variable_name IN \
         ('Innodb_buffer_pool_read_requests', 'Innodb_pages_read')",
    )?;
    let value = |name: &str| {
        let is = |row: &&Vec<Option<String>>| row.first().and_then(|c| c.as_deref()) == Some(name);
        rows.iter().find(is).and_then(|row| row.get(1)?.as_deref()?.parse::<u64>().ok())
    };
    Ok(value("Innodb_buffer_pool_read_requests").zip(value("Innodb_pages_read")))
}

/// Hits and misses of the page cache of an SQLite connection, as all and as misses.
fn cache_counts(connection: &rusqlite::Connection) -> Option<(u64, u64)> {
    use rusqlite::ffi;
    let count = |what| {
        let (mut current, mut highest) = (0, 0);
        // SAFETY: the handle is open as long as the connection is borrowed, and both places are
        // ours.
        let done = unsafe {
            ffi::sqlite3_db_status(connection.handle(), what, &raw mut current, &raw mut highest, 0)
        };
        (done == ffi::SQLITE_OK).then_some(current as u64)
    };
    let hits = count(ffi::SQLITE_DBSTATUS_CACHE_HIT)?;
    let misses = count(ffi::SQLITE_DBSTATUS_CACHE_MISS)?;
    Some((hits + misses, misses))
}
