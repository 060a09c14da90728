//! PostgreSQL's cumulative statistics: `pg_stat_database` over all databases, `pg_stat_wal` (14 on),
//! `pg_stat_bgwriter`, `pg_stat_checkpointer` (17 on), `pg_stat_io` (16 on).
//!
//! Each row comes as JSON, so that columns which a version adds are taken along.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Activity, Between, Statistics};
use crate::postgresql::Connection;
use crate::{Error, Login, System};

/// Prefix of the numbers, first version that has the view, and the query for one JSON object a row.
const VIEWS: &[(&str, u32, &str)] = &[
    (
        "database",
        13,
        "SELECT to_json(t) FROM (SELECT sum(xact_commit) AS xact_commit, \
         sum(xact_rollback) AS xact_rollback, sum(blks_read) AS blks_read, \
         sum(blks_hit) AS blks_hit, sum(tup_inserted) AS tup_inserted, \
         sum(tup_updated) AS tup_updated, sum(tup_deleted) AS tup_deleted, \
         sum(tup_fetched) AS tup_fetched, sum(tup_returned) AS tup_returned, \
         sum(temp_files) AS temp_files, sum(temp_bytes) AS temp_bytes, \
         sum(deadlocks) AS deadlocks, sum(blk_read_time) AS read_ms, \
         sum(blk_write_time) AS write_ms FROM pg_stat_database) t",
    ),
    ("wal", 14, "SELECT to_json(t) FROM pg_stat_wal t"),
    ("bgwriter", 13, "SELECT to_json(t) FROM pg_stat_bgwriter t"),
    ("checkpointer", 17, "SELECT to_json(t) FROM pg_stat_checkpointer t"),
    (
        "io",
        16,
        "SELECT json_object_agg(who || '.' || what, amount) FROM \
         (SELECT t.backend_type || '.' || t.object || '.' || t.context AS who, \
         j.key AS what, j.value AS amount FROM pg_stat_io t, json_each(to_json(t)) j \
         WHERE json_typeof(j.value) = 'number') x",
    ),
];

pub(super) fn read(login: &Login) -> Result<Statistics, Error> {
    let mut connection = Connection::connect(login)?;
    let version = connection.server_version().to_owned();
    let major: u32 = version.split(|c: char| !c.is_ascii_digit()).next().map_or(0, number);
    let page_bytes = number(&text(&mut connection, "SHOW block_size")?);
    let mut numbers = BTreeMap::new();
    for (prefix, first, sql) in VIEWS {
        if major < *first {
            continue;
        }
        let json = text(&mut connection, sql)?;
        let Ok(Value::Object(fields)) = serde_json::from_str(&json) else {
            return Err(Error::Protocol { what: format!("statistics that are no object: {json}") });
        };
        for (name, value) in fields {
            if let Some(value) = value.as_f64() {
                numbers.insert(format!("{prefix}.{name}"), value);
            }
        }
    }
    Ok(Statistics { system: System::Postgresql, version, page_bytes, numbers })
}

fn number<T: std::str::FromStr + Default>(text: &str) -> T {
    text.parse().unwrap_or_default()
}

/// The first column of the first row; empty where there is none.
fn text(connection: &mut Connection, sql: &str) -> Result<String, Error> {
    let rows = connection.query(sql)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()?).unwrap_or_default())
}

pub(super) fn activity(between: &Between<'_>) -> Activity {
    let either = |old: &[&str], new: &[&str]| between.grew(old).or_else(|| between.grew(new));
    let old_writes =
        ["bgwriter.buffers_checkpoint", "bgwriter.buffers_clean", "bgwriter.buffers_backend"];
    Activity {
        commits: between.grew(&["database.xact_commit"]),
        rollbacks: between.grew(&["database.xact_rollback"]),
        deadlocks: between.grew(&["database.deadlocks"]),
        page_requests: between.grew(&["database.blks_read", "database.blks_hit"]),
        page_reads: between.grew(&["database.blks_read"]),
        page_writes: either(
            &old_writes,
            &["checkpointer.buffers_written", "bgwriter.buffers_clean"],
        ),
        page_writes_by_sessions: between.grew(&["bgwriter.buffers_backend"]),
        page_images_in_log: between.grew(&["wal.wal_fpi"]),
        log_bytes: between.grew(&["wal.wal_bytes"]),
        log_writes: between.grew(&["wal.wal_write"]),
        log_syncs: between.grew(&["wal.wal_sync"]),
        temp_bytes: between.grew(&["database.temp_bytes"]),
        temp_files: between.grew(&["database.temp_files"]),
        checkpoints: either(
            &["bgwriter.checkpoints_timed", "bgwriter.checkpoints_req"],
            &["checkpointer.num_timed", "checkpointer.num_requested"],
        ),
        ..Activity::default()
    }
}

/// Settings that concern storage.
const SETTINGS: &str = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN \
    ('block_size', 'wal_block_size', 'wal_segment_size', 'shared_buffers', 'work_mem', \
    'max_wal_size', 'checkpoint_timeout', 'fsync', 'synchronous_commit', 'wal_sync_method', \
    'full_page_writes', 'wal_level', 'max_connections', 'temp_tablespaces', 'data_checksums', \
    'effective_io_concurrency', 'debug_io_direct', 'io_method')";

pub(super) fn settings(login: &Login) -> Result<BTreeMap<String, String>, Error> {
    let rows = Connection::connect(login)?.query(SETTINGS)?;
    let pair = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some((row.next()??, row.next()??))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}
