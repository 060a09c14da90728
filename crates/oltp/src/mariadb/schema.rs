//! Types and options of tables in MariaDB.
//!
//! Every table but the histories is clustered by its primary key, as InnoDB does; the histories,
//! which have no key by the specification, get InnoDB's hidden one and grow at their end. Texts are
//! latin1: the specification's strings are ASCII, and a fixed byte per character keeps fixed
//! columns fixed. Dates are in UTC. Secondary indexes are built after the load.

use crate::workload::Workload;
use crate::workload::schema::{Table, Type};

pub(super) const META: &str =
    "CREATE TABLE wearmark_meta (name VARCHAR(64) PRIMARY KEY, value BIGINT NOT NULL)";

/// The statement that makes a table. Row statistics are gathered once, after the load: a background
/// recount in the middle of a run is a disturbance.
pub(super) fn create(table: Table) -> String {
    let columns = table.columns(|kind| match kind {
        Type::Tiny => "TINYINT".to_owned(),
        Type::Short => "SMALLINT".to_owned(),
        Type::Int => "INT".to_owned(),
        Type::Long => "BIGINT".to_owned(),
        Type::Money(digits) => format!("DECIMAL({digits},2)"),
        Type::Rate => "DECIMAL(4,4)".to_owned(),
        Type::Date => "DATETIME(3)".to_owned(),
        Type::Char(length) => format!("CHAR({length})"),
        Type::Text(length) | Type::Name(length) => format!("VARCHAR({length})"),
    });
    let key = match table.definition().key {
        "" => String::new(),
        key => format!(", PRIMARY KEY ({key})"),
    };
    format!(
        "CREATE TABLE {} ({columns}{key}) \
         ENGINE = InnoDB CHARACTER SET latin1 COLLATE latin1_bin STATS_AUTO_RECALC = 0",
        table.name()
    )
}

/// The statements that take away whatever an earlier load of ours left.
pub(super) fn drop_all(workload: Workload) -> String {
    let tables = Table::of(workload).iter().map(|table| table.name());
    let tables = ["wearmark_meta"].into_iter().chain(tables).collect::<Vec<_>>().join(", ");
    // Tables of an own workload may refer to each other.
    let mut sql = format!(
        "SET SESSION foreign_key_checks = 0; DROP TABLE IF EXISTS {tables}; \
         SET SESSION foreign_key_checks = 1"
    );
    for name in super::procedures::names(workload) {
        sql.push_str("; DROP PROCEDURE IF EXISTS ");
        sql.push_str(name);
    }
    sql
}
