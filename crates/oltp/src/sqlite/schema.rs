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

use crate::workload::schema::{Table, Type};

/// `PRAGMA application_id` of every file that this crate made: "WEAR".
pub(crate) const APPLICATION_ID: i64 = 0x5745_4152;

/// `PRAGMA user_version` of a completely loaded database: the layout of this module. A load that
/// never finished has 0.
pub(crate) const LAYOUT: i64 = 2;

/// What a database says of itself; see [`crate::meta`].
pub(crate) const META_TABLE: &str =
    "CREATE TABLE wearmark_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID";

/// The statement that makes a table.
pub(super) fn create(table: Table) -> String {
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

/// Names and statements of the indexes, built after the load: the primary keys of the wide tables
/// and what the workload has besides.
pub(super) fn indexes(tables: &[Table]) -> Vec<(String, String)> {
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
