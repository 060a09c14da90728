//! The conditions of order entry in MariaDB's SQL.
//!
//! One pass over order_line makes a temporary table of per-order sums, one over orders and history
//! one of per-customer sums; every condition is then a query over sums that returns offending rows
//! only. Comparisons are null-safe (`<=>`), and both sides of each relation are checked, so that a
//! row that is missing altogether is found too. All of it reads one snapshot.

use dbms::mariadb::Connection;

use super::server_error;
use crate::Error;
use crate::consistency::{Condition, ConditionResult, DETAIL_MAX, Found, check_all};
use crate::meta::Meta;
use crate::workload::Workload;

/// Unions and groups of tens of warehouses stay in memory: 600,000 rows of 50 bytes at ten.
const SNAPSHOT: &str = "SET SESSION tmp_memory_table_size = 268435456, \
     max_heap_table_size = 268435456; \
     SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
     START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// Per-order and per-customer sums, each from one pass. Aria tables need neither log nor undo.
const SUMS: &str = "
CREATE TEMPORARY TABLE line_sum (
    w INT, d TINYINT, o INT, line_count INT, undated INT, delivered DECIMAL(14,2),
    PRIMARY KEY (w, d, o)) ENGINE = Aria TRANSACTIONAL = 0
    SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS line_count,
        count(*) - count(ol_delivery_d) AS undated,
        sum(IF(ol_delivery_d IS NULL, 0, ol_amount)) AS delivered
    FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id;
CREATE TEMPORARY TABLE customer_sum (
    w INT, d TINYINT, c INT, delivered DECIMAL(14,2), paid DECIMAL(14,2),
    PRIMARY KEY (w, d, c)) ENGINE = Aria TRANSACTIONAL = 0
    SELECT w, d, c, sum(delivered) AS delivered, sum(paid) AS paid FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, delivered, 0 AS paid
        FROM orders JOIN line_sum ON w = o_w_id AND d = o_d_id AND o = o_id
        UNION ALL
        SELECT h_c_w_id, h_c_d_id, h_c_id, 0, h_amount FROM history) AS parts
    GROUP BY w, d, c
";

const ORDER_ENTRY: [Condition; 12] = [
    Condition {
        number: 1,
        queries: &[
            "SELECT 'w_id', w_id, 'w_ytd', w_ytd, 'sum(d_ytd)', sum(d_ytd) \
             FROM warehouse LEFT JOIN district ON d_w_id = w_id \
             GROUP BY w_id, w_ytd HAVING NOT (w_ytd <=> sum(d_ytd))",
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
             FROM district) AS numbers \
             WHERE NOT (d_next_o_id - 1 <=> o) OR (n IS NOT NULL AND NOT (n <=> o))",
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'district', NULL FROM \
             (SELECT DISTINCT o_w_id, o_d_id FROM orders) AS places \
             WHERE NOT EXISTS (SELECT 1 FROM district WHERE d_w_id = o_w_id AND d_id = o_d_id)",
        ],
    },
    Condition {
        number: 3,
        queries: &["SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'max - min + 1', \
             max(no_o_id) - min(no_o_id) + 1, 'rows', count(*) \
             FROM new_order GROUP BY no_w_id, no_d_id \
             HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)"],
    },
    Condition {
        number: 4,
        queries: &["SELECT 'w_id', w, 'd_id', d, 'sum(o_ol_cnt)', sum(expected), 'lines', \
             sum(found) FROM (\
             SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS expected, 0 AS found FROM orders \
             GROUP BY o_w_id, o_d_id \
             UNION ALL SELECT w, d, 0, sum(line_count) FROM line_sum GROUP BY w, d) AS parts \
             GROUP BY w, d HAVING NOT (sum(expected) <=> sum(found))"],
    },
    Condition {
        number: 5,
        queries: &[
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_carrier_id', \
             o_carrier_id, 'new_order', no_o_id FROM orders LEFT JOIN new_order \
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
            "SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'no_o_id', no_o_id, 'order', NULL \
             FROM new_order WHERE NOT EXISTS (SELECT 1 FROM orders \
             WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id)",
        ],
    },
    Condition {
        number: 6,
        queries: &[
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_ol_cnt', o_ol_cnt, \
             'lines', line_count FROM orders LEFT JOIN line_sum \
             ON w = o_w_id AND d = o_d_id AND o = o_id WHERE NOT (o_ol_cnt <=> line_count)",
            "SELECT 'ol_w_id', w, 'ol_d_id', d, 'ol_o_id', o, 'order', NULL FROM line_sum \
             WHERE NOT EXISTS (SELECT 1 FROM orders \
             WHERE o_w_id = w AND o_d_id = d AND o_id = o)",
        ],
    },
    Condition {
        number: 7,
        queries: &["SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_carrier_id', \
             o_carrier_id, 'lines', line_count, 'undated', undated FROM line_sum LEFT JOIN orders \
             ON o_w_id = w AND o_d_id = d AND o_id = o \
             WHERE NOT (undated <=> IF(o_carrier_id IS NULL, line_count, 0))"],
    },
    Condition {
        number: 8,
        queries: &["SELECT 'w_id', w, 'w_ytd', sum(ytd), 'sum(h_amount)', sum(paid) FROM (\
             SELECT w_id AS w, w_ytd AS ytd, 0 AS paid FROM warehouse \
             UNION ALL SELECT h_w_id, 0, sum(h_amount) FROM history GROUP BY h_w_id) AS parts \
             GROUP BY w HAVING NOT (sum(ytd) <=> sum(paid))"],
    },
    Condition {
        number: 9,
        queries: &["SELECT 'd_w_id', w, 'd_id', d, 'd_ytd', sum(ytd), 'sum(h_amount)', sum(paid) \
             FROM (SELECT d_w_id AS w, d_id AS d, d_ytd AS ytd, 0 AS paid FROM district \
             UNION ALL SELECT h_w_id, h_d_id, 0, sum(h_amount) FROM history \
             GROUP BY h_w_id, h_d_id) AS parts \
             GROUP BY w, d HAVING NOT (sum(ytd) <=> sum(paid))"],
    },
    Condition {
        number: 10,
        queries: &[
            "SELECT 'c_w_id', c_w_id, 'c_d_id', c_d_id, 'c_id', c_id, 'c_balance', c_balance, \
             'delivered', delivered, 'paid', paid FROM customer LEFT JOIN customer_sum \
             ON w = c_w_id AND d = c_d_id AND c = c_id \
             WHERE NOT (c_balance <=> coalesce(delivered, 0) - coalesce(paid, 0))",
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
             GROUP BY no_w_id, no_d_id) AS parts \
             GROUP BY w, d HAVING NOT (sum(orders) - sum(new_orders) <=> \
             IF({before_runs}, {loaded}, greatest(sum(delivered), {loaded})))"],
    },
    Condition {
        number: 12,
        queries: &["SELECT 'c_w_id', c_w_id, 'c_d_id', c_d_id, 'c_id', c_id, 'c_balance', \
             c_balance, 'c_ytd_payment', c_ytd_payment, 'delivered', delivered \
             FROM customer LEFT JOIN customer_sum ON w = c_w_id AND d = c_d_id AND c = c_id \
             WHERE NOT (c_balance + c_ytd_payment <=> coalesce(delivered, 0))"],
    },
];

/// Checks all conditions in one snapshot, over a connection of its own.
pub(super) fn check(
    connection: &mut Connection,
    place: &str,
    meta: &Meta,
) -> Result<Vec<ConditionResult>, Error> {
    let failed = |doing: &'static str| move |source| server_error(place, doing, source);
    connection.execute(SNAPSHOT).map_err(failed("beginning the check"))?;
    if meta.dataset.workload() == Workload::OrderEntry {
        connection.execute(SUMS).map_err(failed("summing up order lines"))?;
    }
    check_all(meta, &ORDER_ENTRY, &mut |sql| {
        rows(connection, sql).map_err(failed("checking a condition"))
    })
}

fn rows(connection: &mut Connection, sql: &str) -> Result<Found, dbms::Error> {
    let (mut count, mut first) = (0, Vec::new());
    connection.query(sql, &mut |row| {
        count += 1;
        if first.len() < DETAIL_MAX {
            let mut parts = Vec::new();
            // Queries return names and values in turn.
            for _ in 0..row.columns() / 2 {
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
