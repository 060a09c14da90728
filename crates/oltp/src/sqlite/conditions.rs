//! Checking the conditions in SQLite, in one snapshot.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::open::{open_read_only, read_meta};
use crate::Error;
use crate::consistency::{ConditionResult, DETAIL_MAX, Found, check_all, sums};
use crate::workload::own::Dialect;
use crate::workload::{Dataset, Workload};

/// Checks all conditions of a built-in workload's database in one snapshot, through a VFS where one
/// is named.
///
/// # Errors
/// No database of ours, or one that SQLite cannot read: then nothing can be said about conditions.
pub fn check(database: &Path, vfs: Option<&str>) -> Result<Vec<ConditionResult>, Error> {
    check_of(database, vfs, Workload::default())
}

/// As [`check`], of a workload.
///
/// # Errors
/// As [`check`]; a database of another workload than an own one that is named.
pub fn check_of(
    database: &Path,
    vfs: Option<&str>,
    workload: Workload,
) -> Result<Vec<ConditionResult>, Error> {
    let meta = read_meta(database, vfs, workload)?;
    let connection = open_read_only(database, vfs)?;
    let sqlite = |doing: &'static str| move |source| Error::sqlite(database, doing, source);
    connection.execute_batch("BEGIN").map_err(sqlite("beginning the check"))?;
    if let Some(sums) = sums(&meta, "CREATE TEMP TABLE {table} AS") {
        connection.execute_batch(&sums).map_err(sqlite("summing up order lines"))?;
    }
    let own = matches!(meta.dataset, Dataset::Own(_));
    let mut query = |sql: &str| rows(&connection, sql, own).map_err(sqlite("checking a condition"));
    check_all(&meta, Dialect::Sqlite, &mut query)
}

fn rows(connection: &Connection, sql: &str, own: bool) -> rusqlite::Result<Found> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut count, mut first) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        count += 1;
        if first.len() < DETAIL_MAX {
            first.push(if own { values(row, columns)? } else { describe(row, columns)? });
        }
    }
    Ok((count, first))
}

/// The values of a row, in order.
fn values(row: &Row<'_>, columns: usize) -> rusqlite::Result<String> {
    let mut parts = Vec::new();
    for column in 0..columns {
        parts.push(match row.get_ref(column)? {
            ValueRef::Null => "null".to_owned(),
            ValueRef::Integer(value) => value.to_string(),
            ValueRef::Real(value) => value.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                events::one_line(&String::from_utf8_lossy(bytes))
            }
        });
    }
    Ok(parts.join(", "))
}

/// `name value, name value`: queries return names and values in turn.
fn describe(row: &Row<'_>, columns: usize) -> rusqlite::Result<String> {
    let mut parts = Vec::new();
    for column in (0..columns).step_by(2) {
        let name: String = row.get(column)?;
        let value: Option<i64> = row.get(column + 1)?;
        let value = value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        parts.push(format!("{name} {value}"));
    }
    Ok(parts.join(", "))
}
