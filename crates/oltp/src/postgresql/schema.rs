//! Types, keys, indexes and fill factors in PostgreSQL.
//!
//! Order entry has TPC-C's own types, with INTEGER for identifiers and counts, so that other tools'
//! checkers run on it unchanged. Keys and indexes are built after the rows are in.
//!
//! Fill factors leave room for HOT updates, which keep a new row version in its page and out of the
//! indexes: `warehouse` and `district`, a few rows that every transaction changes, have almost
//! empty pages, and so have `branches` and `tellers`; `customer` and `stock` have room for one or
//! two more rows. `orders` and `order_line` are loaded in full pages, because what was delivered
//! never changes again, and leave room in the pages that a run adds, so that a delivery finds it.

use crate::workload::schema::{Table, Type};

/// The table of [`crate::meta`].
pub(super) const META: &str =
    "CREATE TABLE wearmark_meta (key text PRIMARY KEY, value bigint NOT NULL)";

/// The statement that makes a table.
pub(super) fn create(table: Table) -> String {
    let columns = table.columns(|kind| match kind {
        Type::Tiny | Type::Short | Type::Int => "integer".to_owned(),
        Type::Long => "bigint".to_owned(),
        Type::Money(digits) => format!("numeric({digits},2)"),
        Type::Rate => "numeric(4,4)".to_owned(),
        Type::Date => "timestamp".to_owned(),
        Type::Char(length) => format!("char({length})"),
        Type::Text(length) => format!("varchar({length})"),
        Type::Name(length) => format!("varchar({length}) COLLATE \"C\""),
    });
    let with = match table {
        Table::Warehouse | Table::District | Table::Branches | Table::Tellers => {
            " WITH (fillfactor = 10)"
        }
        Table::CommitRow => " WITH (fillfactor = 50)",
        Table::Customer | Table::Stock => " WITH (fillfactor = 90)",
        Table::Accounts => " WITH (fillfactor = 95)",
        _ => "",
    };
    format!("CREATE TABLE {} ({columns}){with}", table.name())
}

/// The statements that follow when the rows are in.
pub(super) fn after(table: Table) -> Vec<String> {
    let (name, definition) = (table.name(), table.definition());
    let mut after = Vec::new();
    if !definition.key.is_empty() {
        after.push(format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", definition.key));
    }
    if let Some((index, columns)) = definition.index {
        after.push(format!("CREATE INDEX {index} ON {name} ({columns})"));
    }
    match table {
        Table::Orders => after.push(format!("ALTER TABLE {name} SET (fillfactor = 90)")),
        Table::OrderLine => after.push(format!("ALTER TABLE {name} SET (fillfactor = 85)")),
        _ => {}
    }
    after
}
