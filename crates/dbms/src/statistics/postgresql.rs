//! PostgreSQL's cumulative statistics: `pg_stat_database` over all databases, `pg_stat_wal` (14
//! on), `pg_stat_bgwriter`, `pg_stat_checkpointer` (17 on), `pg_stat_io` (16 on).
//!
//! Each row comes as JSON, so that columns which a version adds are taken along. Where a number
//! moved between versions (writes and syncs of the log went from `pg_stat_wal` to `pg_stat_io` in
//! 18, checkpoints and writes by sessions in 17), [`activity`] takes it from where it is. Tested on
//! the installed server, and on replayed answers of 13 to 18.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Activity, Between, Statistics};
use crate::postgresql::Connection;
use crate::{Error, Login, System};

/// Prefix of the numbers, first and last version that has the view, and the query for one JSON
/// object a row.
const VIEWS: &[(&str, u32, u32, &str)] = &[
    (
        "database",
        13,
        LATEST,
        "SELECT to_json(t) FROM (SELECT sum(xact_commit) AS xact_commit, \
         sum(xact_rollback) AS xact_rollback, sum(blks_read) AS blks_read, \
         sum(blks_hit) AS blks_hit, sum(tup_inserted) AS tup_inserted, \
         sum(tup_updated) AS tup_updated, sum(tup_deleted) AS tup_deleted, \
         sum(tup_fetched) AS tup_fetched, sum(tup_returned) AS tup_returned, \
         sum(temp_files) AS temp_files, sum(temp_bytes) AS temp_bytes, \
         sum(deadlocks) AS deadlocks, sum(blk_read_time) AS read_ms, \
         sum(blk_write_time) AS write_ms FROM pg_stat_database) t",
    ),
    // Before the view there was only the place in the log.
    (
        "wal",
        13,
        13,
        "SELECT json_build_object('wal_bytes', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), \
         '0/0'))",
    ),
    ("wal", 14, LATEST, "SELECT to_json(t) FROM pg_stat_wal t"),
    ("bgwriter", 13, LATEST, "SELECT to_json(t) FROM pg_stat_bgwriter t"),
    ("checkpointer", 17, LATEST, "SELECT to_json(t) FROM pg_stat_checkpointer t"),
    (
        "io",
        16,
        LATEST,
        "SELECT json_object_agg(who || '.' || what, amount) FROM \
         (SELECT t.backend_type || '.' || t.object || '.' || t.context AS who, \
         j.key AS what, j.value AS amount FROM pg_stat_io t, json_each(to_json(t)) j \
         WHERE json_typeof(j.value) = 'number') x",
    ),
];

/// No last version.
const LATEST: u32 = u32::MAX;

pub(super) fn read(login: &Login) -> Result<Statistics, Error> {
    let mut connection = Connection::connect(login)?;
    let version = connection.server_version().to_owned();
    gather(version, &mut |sql| text(&mut connection, sql))
}

/// The numbers of a server of this version; `ask` executes a query for one value.
fn gather(
    version: String,
    ask: &mut dyn FnMut(&str) -> Result<String, Error>,
) -> Result<Statistics, Error> {
    let major: u32 = version.split(|c: char| !c.is_ascii_digit()).next().map_or(0, number);
    let page_bytes = number(&ask("SHOW block_size")?);
    let mut numbers = BTreeMap::new();
    for (prefix, first, last, sql) in VIEWS {
        if !(*first..=*last).contains(&major) {
            continue;
        }
        let json = ask(sql)?;
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

pub(super) fn log_position(connection: &mut Connection) -> Result<u64, Error> {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    Ok(number(&text(connection, sql)?))
}

pub(super) fn log_ready(connection: &mut Connection) -> Result<u64, Error> {
    let sql = "SELECT (ready.files * log.segment - pg_wal_lsn_diff(log.at, '0/0') % log.segment)::\
               bigint FROM (SELECT pg_current_wal_insert_lsn() AS at, \
               pg_size_bytes(current_setting('wal_segment_size')) AS segment) AS log, \
               LATERAL (SELECT count(*) AS files FROM pg_ls_waldir() \
               WHERE name ~ '^[0-9A-F]{24}$' AND name >= pg_walfile_name(log.at)) AS ready";
    Ok(number(&text(connection, sql)?))
}

pub(super) fn activity(between: &Between<'_>) -> Activity {
    let either = |old: &[&str], new: &[&str]| between.grew(old).or_else(|| between.grew(new));
    // Rows of pg_stat_io by their tail: `object.context.column`. Context `init` is the zeroing of
    // new segments, which the old counters left out.
    let io = |object: &str, context: &str, column: &str| {
        between.grew_like("io.", &format!(".{object}.{context}.{column}"))
    };
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
        page_writes_by_sessions: between.grew(&["bgwriter.buffers_backend"]).or_else(|| {
            let of_sessions = "io.client backend.relation.";
            between.grew_like(of_sessions, ".writes")
        }),
        page_images_in_log: between.grew(&["wal.wal_fpi"]),
        log_bytes: between.grew(&["wal.wal_bytes"]),
        log_writes: between.grew(&["wal.wal_write"]).or_else(|| io("wal", "normal", "writes")),
        log_syncs: between.grew(&["wal.wal_sync"]).or_else(|| io("wal", "normal", "fsyncs")),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server of a version answers after `n` transactions, by the columns that its manual
    /// lists for each view.
    fn answered(major: u32, n: u64) -> Statistics {
        let wal = match major {
            13 => format!(r#"{{"wal_bytes": {}}}"#, n * 500),
            14..=17 => format!(
                r#"{{"wal_records": {n}, "wal_fpi": 3, "wal_bytes": {}, "wal_buffers_full": 0,
                "wal_write": {n}, "wal_sync": {n}, "stats_reset": "2026-01-01T00:00:00+00:00"}}"#,
                n * 500
            ),
            _ => format!(
                r#"{{"wal_records": {n}, "wal_fpi": 3, "wal_bytes": {}, "wal_buffers_full": 0,
                "stats_reset": "2026-01-01T00:00:00+00:00"}}"#,
                n * 500
            ),
        };
        let old = format!(
            r#""checkpoints_timed": 1, "checkpoints_req": {}, "buffers_checkpoint": {n},
            "buffers_backend": 9,"#,
            2 + n / 100
        );
        let bgwriter = format!(
            r#"{{{} "buffers_clean": 5, "maxwritten_clean": 0, "buffers_alloc": 7}}"#,
            if major < 17 { &old } else { "" }
        );
        let checkpointer = format!(
            r#"{{"num_timed": 1, "num_requested": {}, "buffers_written": {n}}}"#,
            2 + n / 100
        );
        let of_the_log = format!(
            r#", "client backend.wal.normal.writes": {}, "client backend.wal.normal.fsyncs": {},
            "walwriter.wal.normal.writes": {}, "walwriter.wal.normal.fsyncs": {},
            "client backend.wal.init.writes": 16, "client backend.wal.init.fsyncs": 1"#,
            n - 10,
            n - 10,
            10,
            10
        );
        let io = format!(
            r#"{{"client backend.relation.normal.writes": 9,
            "client backend.relation.bulkread.writes": 0,
            "checkpointer.relation.normal.writes": {n}{}}}"#,
            if major < 18 { "" } else { &of_the_log }
        );
        let database = format!(r#"{{"xact_commit": {n}, "temp_files": 0}}"#);
        gather(format!("{major}.3 (Debian)"), &mut |sql| {
            let views = [
                ("block_size", "8192"),
                ("pg_stat_database", &database),
                ("pg_stat_wal", &wal),
                ("pg_current_wal_insert_lsn", &wal),
                ("pg_stat_bgwriter", &bgwriter),
                ("pg_stat_checkpointer", &checkpointer),
                ("pg_stat_io", &io),
            ];
            let absent = match major {
                13 => &["pg_stat_wal", "pg_stat_checkpointer", "pg_stat_io"][..],
                14 | 15 => &["pg_stat_checkpointer", "pg_stat_io"],
                16 => &["pg_stat_checkpointer"],
                _ => &[],
            };
            assert!(
                !absent.iter().any(|view| sql.contains(view)),
                "{major} has no such view: {sql}"
            );
            let found = views.iter().find(|(view, _)| sql.contains(view));
            Ok(found.unwrap_or_else(|| panic!("{sql}")).1.to_owned())
        })
        .unwrap()
    }

    #[test]
    fn versions_13_to_18_tell_the_same_of_the_same_work() {
        for major in 13..=18 {
            let activity = answered(major, 1100).since(&answered(major, 100));
            let counted = |since: u32| (major >= since).then_some(1000);
            assert_eq!(activity.commits, Some(1000), "{major}");
            assert_eq!(activity.log_bytes, Some(500_000), "{major}");
            assert_eq!(activity.log_writes, counted(14), "{major}");
            assert_eq!(activity.log_syncs, counted(14), "{major}");
            assert_eq!(activity.page_writes, Some(1000), "{major}");
            assert_eq!(activity.page_writes_by_sessions, Some(0), "{major}");
            assert_eq!(activity.checkpoints, Some(10), "{major}");
        }
    }
}
