//! Tables and indexes in SQLite.
//!
//! Money is an INTEGER of cents and rates (tax, discount) an INTEGER of ten-thousandths, because
//! SQLite has no decimal type and sums of its REALs are not exact; divide by 100.0 and 10000.0 to
//! read them. Dates are INTEGER milliseconds since 1970.
//!
//! Narrow tables are clustered by their key (WITHOUT ROWID; a key of one column is the rowid). The
//! wide ones, customer and stock, are not: a clustered table of SQLite keeps whole rows in inner
//! pages too, and with 6 to 12 rows a page the tree would grow six levels deep. They keep their
//! load order and have their primary key as an index built after the load.

use crate::workload::own::Dialect;
use crate::workload::schema::{Table, Type};
use crate::workload::{Dataset, Own};

/// `PRAGMA application_id` of every file that this crate made: "WEAR".
pub(crate) const APPLICATION_ID: i64 = 0x5745_4152;

/// `PRAGMA user_version` of a completely loaded database: the layout of this module. A load that
/// never finished has 0.
pub(crate) const LAYOUT: i64 = 2;

/// What a database says of itself; see [`crate::meta`].
pub(crate) const META_TABLE: &str =
    "CREATE TABLE wearmark_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID";

/// The statements that make all tables of a dataset.
pub(super) fn create_all(dataset: &Dataset, tables: &[Table]) -> Vec<String> {
    match dataset {
        Dataset::Own(own) => vec![own.whole().schema[Dialect::Sqlite as usize].clone()],
        _ => tables.iter().map(|&table| create(table)).collect(),
    }
}

/// The statement that makes a table.
fn create(table: Table) -> String {
    let (name, key) = (table.name(), table.definition().key);
    let columns = table.columns(|kind| {
        let text = matches!(kind, Type::Char(_) | Type::Text(_) | Type::Name(_));
        if text { "TEXT".to_owned() } else { "INTEGER".to_owned() }
    });
    let (key, clustered) = match key {
        "" => (String::new(), ""),
        _ if is_wide(table) => (String::new(), ""),
        one if !one.contains(',') => (format!(", PRIMARY KEY ({one})"), ""),
        many => (format!(", PRIMARY KEY ({many})"), " WITHOUT ROWID"),
    };
    format!("CREATE TABLE {name} ({columns}{key}){clustered}")
}

fn is_wide(table: Table) -> bool {
    matches!(table, Table::Customer | Table::Stock)
}

/// What an own workload does when its rows are in.
fn of_own(own: Own) -> Vec<(String, String)> {
    let sql = own.whole().after[Dialect::Sqlite as usize].clone();
    if sql.is_empty() { Vec::new() } else { vec![("what was loaded".to_owned(), sql)] }
}

/// Names and statements of the indexes, built after the load: the primary keys of the wide tables
/// and what the workload has besides.
pub(super) fn indexes(dataset: &Dataset, tables: &[Table]) -> Vec<(String, String)> {
    if let Dataset::Own(own) = dataset {
        return of_own(*own);
    }
    let mut indexes = Vec::new();
    for &table in tables {
        let (name, definition) = (table.name(), table.definition());
        if is_wide(table) {
            let (index, key) = (format!("{name}_key"), definition.key);
            let sql = format!("CREATE UNIQUE INDEX {index} ON {name} ({key})");
            indexes.push((index, sql));
        }
        if let Some((index, columns)) = definition.index {
            let sql = format!("CREATE INDEX {index} ON {name} ({columns})");
            indexes.push((index.to_owned(), sql));
        }
    }
    indexes
}
