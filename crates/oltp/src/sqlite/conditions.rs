//! The conditions of order entry in SQLite's SQL.
//!
//! One pass over order_line makes a temporary table of per-order sums, one over orders one of
//! per-customer sums; every condition is then a query over sums that returns offending rows only.
//! Comparisons are null-safe (IS NOT), and both sides of each relation are checked, so that a row
//! that is missing altogether is found too.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::open::{open_read_only, read_meta};
use crate::Error;
use crate::consistency::{Condition, ConditionResult, DETAIL_MAX, Found, check_all};
use crate::workload::Workload;

/// Per-order and per-customer sums, each from one pass over a clustered table.
const SUMS: &str = "
CREATE TEMP TABLE line_sum (
    w INTEGER, d INTEGER, o INTEGER, lines INTEGER, undated INTEGER, delivered INTEGER,
    PRIMARY KEY (w, d, o)) WITHOUT ROWID;
INSERT INTO line_sum
    SELECT ol_w_id, ol_d_id, ol_o_id, count(*), count(*) - count(ol_delivery_d),
        sum(CASE WHEN ol_delivery_d IS NOT NULL THEN ol_amount ELSE 0 END)
    FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id;
CREATE TEMP TABLE customer_sum (
    w INTEGER, d INTEGER, c INTEGER, delivered INTEGER, paid INTEGER,
    PRIMARY KEY (w, d, c)) WITHOUT ROWID;
INSERT INTO customer_sum
    SELECT w, d, c, sum(delivered), sum(paid) FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, delivered, 0 AS paid
        FROM orders CROSS JOIN line_sum ON w = o_w_id AND d = o_d_id AND o = o_id
        UNION ALL
        SELECT h_c_w_id, h_c_d_id, h_c_id, 0, h_amount FROM history)
    GROUP BY w, d, c;
";

const ORDER_ENTRY: [Condition; 12] = [
    Condition {
        number: 1,
        queries: &[
            "SELECT 'w_id', w_id, 'w_ytd', w_ytd, 'sum(d_ytd)', sum(d_ytd) \
             FROM warehouse LEFT JOIN district ON d_w_id = w_id \
             GROUP BY w_id HAVING w_ytd IS NOT sum(d_ytd)",
            "SELECT 'd_w_id', d_w_id, 'd_id', d_id, 'warehouse', NULL FROM district \
             WHERE NOT EXISTS (SELECT 1 FROM warehouse WHERE w_id = d_w_id)",
        ],
    },
    Condition {
        number: 2,
        queries: &[
            "SELECT 'd_w_id', d_w_id, 'd_id', d_id, 'd_next_o_id - 1', d_next_o_id - 1, \
             'max(o_id)', o, 'max(no_o_id)', n FROM (SELECT d_w_id, d_id, d_next_o_id, \
             (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS o, \
             (SELECT max(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS n \
             FROM district) \
             WHERE d_next_o_id - 1 IS NOT o OR (n IS NOT NULL AND n IS NOT o)",
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'district', NULL FROM orders \
             WHERE NOT EXISTS (SELECT 1 FROM district WHERE d_w_id = o_w_id AND d_id = o_d_id) \
             GROUP BY o_w_id, o_d_id",
        ],
    },
    Condition {
        number: 3,
        queries: &["SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'max - min + 1', \
             max(no_o_id) - min(no_o_id) + 1, 'rows', count(*) \
             FROM new_order GROUP BY no_w_id, no_d_id \
             HAVING max(no_o_id) - min(no_o_id) + 1 IS NOT count(*)"],
    },
    Condition {
        number: 4,
        queries: &["SELECT 'w_id', w, 'd_id', d, 'sum(o_ol_cnt)', sum(expected), 'lines', \
             sum(found) FROM (\
             SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS expected, 0 AS found FROM orders \
             GROUP BY o_w_id, o_d_id \
             UNION ALL SELECT w, d, 0, sum(lines) FROM line_sum GROUP BY w, d) \
             GROUP BY w, d HAVING sum(expected) IS NOT sum(found)"],
    },
    Condition {
        number: 5,
        queries: &[
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_carrier_id', \
             o_carrier_id, 'new_order', no_o_id FROM orders LEFT JOIN new_order \
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE (o_carrier_id IS NULL) IS NOT (no_o_id IS NOT NULL)",
            "SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'no_o_id', no_o_id, 'order', NULL \
             FROM new_order WHERE NOT EXISTS (SELECT 1 FROM orders \
             WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id)",
        ],
    },
    Condition {
        number: 6,
        queries: &[
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_ol_cnt', o_ol_cnt, \
             'lines', lines FROM orders LEFT JOIN line_sum \
             ON w = o_w_id AND d = o_d_id AND o = o_id WHERE o_ol_cnt IS NOT lines",
            "SELECT 'ol_w_id', w, 'ol_d_id', d, 'ol_o_id', o, 'order', NULL FROM line_sum \
             WHERE NOT EXISTS (SELECT 1 FROM orders \
             WHERE o_w_id = w AND o_d_id = d AND o_id = o)",
        ],
    },
    Condition {
        number: 7,
        queries: &["SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_carrier_id', \
             o_carrier_id, 'lines', lines, 'undated', undated FROM line_sum LEFT JOIN orders \
             ON o_w_id = w AND o_d_id = d AND o_id = o \
             WHERE undated IS NOT CASE WHEN o_carrier_id IS NULL THEN lines ELSE 0 END"],
    },
    Condition {
        number: 8,
        queries: &["SELECT 'w_id', w, 'w_ytd', sum(ytd), 'sum(h_amount)', sum(paid) FROM (\
             SELECT w_id AS w, w_ytd AS ytd, 0 AS paid FROM warehouse \
             UNION ALL SELECT h_w_id, 0, h_amount FROM history) \
             GROUP BY w HAVING sum(ytd) IS NOT sum(paid)"],
    },
    Condition {
        number: 9,
        queries: &["SELECT 'd_w_id', w, 'd_id', d, 'd_ytd', sum(ytd), 'sum(h_amount)', sum(paid) \
             FROM (SELECT d_w_id AS w, d_id AS d, d_ytd AS ytd, 0 AS paid FROM district \
             UNION ALL SELECT h_w_id, h_d_id, 0, h_amount FROM history) \
             GROUP BY w, d HAVING sum(ytd) IS NOT sum(paid)"],
    },
    Condition {
        number: 10,
        queries: &[
            "SELECT 'c_w_id', c_w_id, 'c_d_id', c_d_id, 'c_id', c_id, 'c_balance', c_balance, \
             'delivered', delivered, 'paid', paid FROM customer LEFT JOIN customer_sum \
             ON w = c_w_id AND d = c_d_id AND c = c_id \
             WHERE c_balance IS NOT coalesce(delivered, 0) - coalesce(paid, 0)",
            "SELECT 'w', w, 'd', d, 'c', c, 'customer', NULL FROM customer_sum \
             WHERE NOT EXISTS (SELECT 1 FROM customer \
             WHERE c_w_id = w AND c_d_id = d AND c_id = c)",
        ],
    },
    Condition {
        number: 11,
        queries: &["SELECT 'd_w_id', w, 'd_id', d, 'orders', sum(orders), 'new orders', \
             sum(new_orders), 'delivered', sum(delivered) FROM (\
             SELECT d_w_id AS w, d_id AS d, 0 AS orders, 0 AS new_orders, 0 AS delivered \
             FROM district \
             UNION ALL SELECT o_w_id, o_d_id, count(*), 0, count(o_carrier_id) FROM orders \
             GROUP BY o_w_id, o_d_id \
             UNION ALL SELECT no_w_id, no_d_id, 0, count(*), 0 FROM new_order \
             GROUP BY no_w_id, no_d_id) \
             GROUP BY w, d HAVING sum(orders) - sum(new_orders) IS NOT \
             CASE WHEN {before_runs} THEN {loaded} ELSE max(sum(delivered), {loaded}) END"],
    },
    Condition {
        number: 12,
        queries: &["SELECT 'c_w_id', c_w_id, 'c_d_id', c_d_id, 'c_id', c_id, 'c_balance', \
             c_balance, 'c_ytd_payment', c_ytd_payment, 'delivered', delivered \
             FROM customer LEFT JOIN customer_sum ON w = c_w_id AND d = c_d_id AND c = c_id \
             WHERE c_balance + c_ytd_payment IS NOT coalesce(delivered, 0)"],
    },
];

/// Checks all conditions of a database in one snapshot, through a VFS where one is named.
///
/// # Errors
/// No database of ours, or one that SQLite cannot read: then nothing can be said about conditions.
pub fn check(database: &Path, vfs: Option<&str>) -> Result<Vec<ConditionResult>, Error> {
    let meta = read_meta(database, vfs)?;
    let connection = open_read_only(database, vfs)?;
    let sqlite = |doing: &'static str| move |source| Error::sqlite(database, doing, source);
    connection.execute_batch("BEGIN").map_err(sqlite("beginning the check"))?;
    if meta.dataset.workload() == Workload::OrderEntry {
        connection.execute_batch(SUMS).map_err(sqlite("summing up order lines"))?;
    }
    check_all(&meta, &ORDER_ENTRY, &mut |sql| {
        rows(&connection, sql).map_err(sqlite("checking a condition"))
    })
}

fn rows(connection: &Connection, sql: &str) -> rusqlite::Result<Found> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut count, mut first) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        count += 1;
        if first.len() < DETAIL_MAX {
            first.push(describe(row, columns)?);
        }
    }
    Ok((count, first))
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
