//! Checking the conditions in PostgreSQL, in one snapshot that is rolled back.

use dbms::Error as ServerError;
use dbms::postgresql::Connection;

use crate::Error;
use crate::consistency::{ConditionResult, DETAIL_MAX, Found, check_all, sums};
use crate::meta::Meta;
use crate::workload::Dataset;
use crate::workload::own::Dialect;

/// Sums stay in memory up to about 40 warehouses; the passes over the large tables are
/// shared among processes, where the server has them.
const BEGIN: &str = "SET work_mem = '256MB'; SET temp_buffers = '128MB'; \
    SET max_parallel_workers_per_gather = 4; SET jit = off; \
    BEGIN ISOLATION LEVEL REPEATABLE READ";

/// Checks all conditions of the dataset.
pub(super) fn check(
    connection: &mut Connection,
    place: &str,
    meta: &Meta,
) -> Result<Vec<ConditionResult>, Error> {
    let failed =
        |doing: &'static str| move |source| super::server_error(place, doing.to_owned(), source);
    connection.execute(BEGIN).map_err(failed("beginning the check"))?;
    if let Some(sums) = sums(meta, "CREATE TEMP TABLE {table} ON COMMIT DROP AS") {
        connection.execute(&sums).map_err(failed("summing up order lines"))?;
    }
    let own = matches!(meta.dataset, Dataset::Own(_));
    let mut query = |sql: &str| {
        let found = if own { find_own(connection, sql) } else { find(connection, sql) };
        found.map_err(failed("checking a condition"))
    };
    let results = check_all(meta, Dialect::Postgresql, &mut query)?;
    connection.execute("ROLLBACK").map_err(failed("ending the check"))?;
    Ok(results)
}

/// The same of a query of an own workload, whose columns are anything.
fn find_own(connection: &mut Connection, sql: &str) -> Result<Found, ServerError> {
    let rows = connection.query(sql)?;
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
    let line = |row: &Vec<Option<String>>| {
        events::one_line(&row.iter().map(value).collect::<Vec<_>>().join(", "))
    };
    Ok((rows.len() as u64, rows.iter().take(DETAIL_MAX).map(line).collect()))
}

/// How many rows a query finds, and the first of them by key: a sound database is asked once.
fn find(connection: &mut Connection, sql: &str) -> Result<Found, ServerError> {
    let count = connection.query(&format!("SELECT count(*) FROM ({sql}) AS found"))?;
    let count = count.first().and_then(|row| row.first().cloned().flatten());
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(0);
    if count == 0 {
        return Ok((0, Vec::new()));
    }
    // The first values are the key.
    let rows = connection.query(&format!("{sql} ORDER BY 2, 4, 6 LIMIT {DETAIL_MAX}"))?;
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
    let line = |row: &Vec<Option<String>>| {
        let parts: Vec<String> = row
            .chunks_exact(2)
            .map(|pair| format!("{} {}", value(&pair[0]), value(&pair[1])))
            .collect();
        parts.join(", ")
    };
    Ok((count, rows.iter().map(line).collect()))
}
