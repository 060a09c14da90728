//! MariaDB's `SHOW GLOBAL STATUS`, InnoDB's part above all.
//!
//! `Handler_commit` counts transactions as the engines end them, those that only read and those of
//! the server itself included; `Com_commit` would count only the statement of that name. Since 10.8
//! InnoDB does not count the log's syncs apart from the others (`Innodb_data_fsyncs`).

use std::collections::BTreeMap;

use super::{Activity, Between, Statistics};
use crate::mariadb::Connection;
use crate::{Error, Login, System};

pub(super) fn read(login: &Login) -> Result<Statistics, Error> {
    let mut connection = Connection::connect(login)?;
    let version = connection.version().to_owned();
    let page_bytes = connection.get("SELECT @@innodb_page_size")?.unwrap_or(0) as u64;
    let pairs = pairs(&mut connection, "SHOW GLOBAL STATUS")?;
    let numbers = pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
    let numbers = numbers.collect();
    Ok(Statistics { system: System::Mariadb, version, page_bytes, numbers })
}

/// Names and values of a statement that lists them.
fn pairs(connection: &mut Connection, sql: &str) -> Result<Vec<(String, String)>, Error> {
    let mut pairs = Vec::new();
    connection.query(sql, &mut |row| {
        pairs.push((row.string()?, row.string()?));
        Ok(())
    })?;
    Ok(pairs)
}

pub(super) fn activity(between: &Between<'_>) -> Activity {
    let one = |name: &str| between.grew(&[name]);
    Activity {
        commits: one("Handler_commit"),
        rollbacks: one("Handler_rollback"),
        deadlocks: one("Innodb_deadlocks"),
        page_requests: one("Innodb_buffer_pool_read_requests"),
        page_reads: one("Innodb_buffer_pool_reads"),
        page_writes: one("Innodb_pages_written"),
        doublewrite_pages: one("Innodb_dblwr_pages_written"),
        log_bytes: one("Innodb_os_log_written"),
        log_writes: one("Innodb_log_writes"),
        log_syncs: one("Innodb_os_log_fsyncs"),
        syncs: one("Innodb_data_fsyncs"),
        temp_files: between.grew(&["Created_tmp_files", "Created_tmp_disk_tables"]),
        history_length: between.now("Innodb_history_list_length"),
        ..Activity::default()
    }
}

/// Settings that concern storage.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
    ('innodb_page_size', 'innodb_buffer_pool_size', 'innodb_log_file_size', \
    'innodb_flush_method', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', \
    'innodb_io_capacity', 'innodb_undo_tablespaces', 'innodb_undo_directory', \
    'innodb_log_group_home_dir', 'innodb_checksum_algorithm', 'innodb_use_native_aio', \
    'innodb_log_file_buffering', 'sync_binlog', 'log_bin', 'sort_buffer_size', \
    'join_buffer_size', 'tmpdir', 'max_connections')";

pub(super) fn settings(login: &Login) -> Result<BTreeMap<String, String>, Error> {
    let mut connection = Connection::connect(login)?;
    Ok(pairs(&mut connection, SETTINGS)?.into_iter().collect())
}
