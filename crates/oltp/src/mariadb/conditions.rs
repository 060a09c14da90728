//! Checking the conditions in MariaDB, in one snapshot.

use dbms::mariadb::Connection;

use super::server_error;
use crate::Error;
use crate::consistency::{ConditionResult, DETAIL_MAX, Found, check_all, sums};
use crate::meta::Meta;
use crate::workload::Dataset;
use crate::workload::own::Dialect;

/// Unions and groups of tens of warehouses stay in memory: 600,000 rows of 50 bytes at ten.
const SNAPSHOT: &str = "SET SESSION tmp_memory_table_size = 268435456, \
     max_heap_table_size = 268435456; \
     SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
     START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// Aria tables need neither log nor undo.
const TEMPORARY: &str = "CREATE TEMPORARY TABLE {table} ENGINE = Aria TRANSACTIONAL = 0 AS";

/// Checks all conditions in one snapshot, over a connection of its own.
pub(super) fn check(
    connection: &mut Connection,
    place: &str,
    meta: &Meta,
) -> Result<Vec<ConditionResult>, Error> {
    let failed = |doing: &'static str| move |source| server_error(place, doing, source);
    connection.execute(SNAPSHOT).map_err(failed("beginning the check"))?;
    if let Some(sums) = sums(meta, TEMPORARY) {
        connection.execute(&sums).map_err(failed("summing up order lines"))?;
    }
    let own = matches!(meta.dataset, Dataset::Own(_));
    let mut query = |sql: &str| rows(connection, sql, own).map_err(failed("checking a condition"));
    check_all(meta, Dialect::Mariadb, &mut query)
}

fn rows(connection: &mut Connection, sql: &str, own: bool) -> Result<Found, dbms::Error> {
    let (mut count, mut first) = (0, Vec::new());
    connection.query(sql, &mut |row| {
        count += 1;
        if first.len() < DETAIL_MAX {
            let mut parts = Vec::new();
            for _ in 0..if own { row.columns() } else { 0 } {
                parts.push(events::one_line(&row.string()?));
            }
            // Queries return names and values in turn.
            for _ in 0..if own { 0 } else { row.columns() / 2 } {
                let name = row.string()?;
                let value = row.bytes_or_null()?.map(String::from_utf8_lossy);
                parts.push(format!("{name} {}", value.as_deref().unwrap_or("null")));
            }
            first.push(parts.join(", "));
        }
        Ok(())
    })?;
    Ok((count, first))
}
