//! The conditions of order entry in PostgreSQL's SQL (TPC-C 5.11 clause 3.3.2).
//!
//! One pass over order_line and orders makes a temporary table of orders with the sums of their
//! lines, one over customer and history one of customers with theirs; every condition is then a
//! query that returns offending rows only, all in one snapshot that is rolled back. Comparisons are null-safe (IS DISTINCT FROM), and
//! both sides of each relation are checked, so that a row that is missing altogether is found too.

use dbms::Error as ServerError;
use dbms::postgresql::Connection;

use crate::Error;
use crate::consistency::{Condition, ConditionResult, DETAIL_MAX, Found, check_all};
use crate::meta::Meta;
use crate::workload::Dataset;

/// Joins and sums stay in memory up to about 40 warehouses; the passes over the large tables are
/// shared among processes, where the server has them.
const BEGIN: &str = "SET work_mem = '256MB'; SET temp_buffers = '128MB'; \
    SET max_parallel_workers_per_gather = 4; SET jit = off; \
    BEGIN ISOLATION LEVEL REPEATABLE READ";

/// Orders beside the sums of their lines, and customers beside those of their orders and payments;
/// rows of either side that have no other are in them too. What several conditions ask is so joined
/// once.
const SUMS: &str = "
CREATE TEMP TABLE order_sum ON COMMIT DROP AS
    SELECT coalesce(o_w_id, w) AS w, coalesce(o_d_id, d) AS d, coalesce(o_id, o) AS o,
        o_id IS NOT NULL AS entered, o_c_id, o_carrier_id, o_ol_cnt, lines, undated, delivered
    FROM orders FULL JOIN (
        SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*)::integer AS lines,
            (count(*) - count(ol_delivery_d))::integer AS undated,
            coalesce(sum(ol_amount) FILTER (WHERE ol_delivery_d IS NOT NULL), 0) AS delivered
        FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS line_sum
    ON o_w_id = w AND o_d_id = d AND o_id = o;
ANALYZE order_sum;
CREATE TEMP TABLE customer_sum ON COMMIT DROP AS
    SELECT coalesce(c_w_id, w) AS w, coalesce(c_d_id, d) AS d, coalesce(c_id, c) AS c,
        c_id IS NOT NULL AS known, c_balance, c_ytd_payment, delivered, paid
    FROM customer FULL JOIN (
        SELECT w, d, c, sum(delivered) AS delivered, sum(paid) AS paid FROM (
            SELECT w, d, o_c_id AS c, delivered, 0 AS paid FROM order_sum
            WHERE entered AND lines IS NOT NULL
            UNION ALL
            SELECT h_c_w_id, h_c_d_id, h_c_id, 0, h_amount FROM history) AS parts
        GROUP BY w, d, c) AS sums
    ON c_w_id = w AND c_d_id = d AND c_id = c";

const ORDER_ENTRY: [Condition; 12] = [
    Condition {
        number: 1,
        queries: &[
            "SELECT 'w_id', w_id, 'w_ytd', w_ytd, 'sum(d_ytd)', sum(d_ytd) \
             FROM warehouse LEFT JOIN district ON d_w_id = w_id \
             GROUP BY w_id, w_ytd HAVING w_ytd IS DISTINCT FROM sum(d_ytd)",
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
             FROM district) AS last \
             WHERE d_next_o_id - 1 IS DISTINCT FROM o \
             OR (n IS NOT NULL AND n IS DISTINCT FROM o)",
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
             HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)"],
    },
    Condition {
        number: 4,
        queries: &["SELECT 'w_id', w, 'd_id', d, 'sum(o_ol_cnt)', coalesce(sum(o_ol_cnt), 0), \
             'lines', coalesce(sum(lines), 0) FROM order_sum GROUP BY w, d \
             HAVING coalesce(sum(o_ol_cnt), 0) <> coalesce(sum(lines), 0)"],
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
            "SELECT 'o_w_id', w, 'o_d_id', d, 'o_id', o, 'o_ol_cnt', o_ol_cnt, 'lines', lines \
             FROM order_sum WHERE entered AND o_ol_cnt IS DISTINCT FROM lines",
            "SELECT 'ol_w_id', w, 'ol_d_id', d, 'ol_o_id', o, 'order', NULL FROM order_sum \
             WHERE NOT entered",
        ],
    },
    Condition {
        number: 7,
        queries: &["SELECT 'o_w_id', w, 'o_d_id', d, 'o_id', o, 'o_carrier_id', o_carrier_id, \
             'lines', lines, 'undated', undated FROM order_sum WHERE lines IS NOT NULL \
             AND undated <> CASE WHEN o_carrier_id IS NULL THEN lines ELSE 0 END"],
    },
    Condition {
        number: 8,
        queries: &["SELECT 'w_id', w, 'w_ytd', sum(ytd), 'sum(h_amount)', sum(paid) FROM (\
             SELECT w_id AS w, w_ytd AS ytd, 0 AS paid FROM warehouse \
             UNION ALL SELECT h_w_id, 0, sum(h_amount) FROM history GROUP BY h_w_id) AS sides \
             GROUP BY w HAVING sum(ytd) IS DISTINCT FROM sum(paid)"],
    },
    Condition {
        number: 9,
        queries: &["SELECT 'd_w_id', w, 'd_id', d, 'd_ytd', sum(ytd), 'sum(h_amount)', sum(paid) \
             FROM (SELECT d_w_id AS w, d_id AS d, d_ytd AS ytd, 0 AS paid FROM district \
             UNION ALL SELECT h_w_id, h_d_id, 0, sum(h_amount) FROM history \
             GROUP BY h_w_id, h_d_id) AS sides \
             GROUP BY w, d HAVING sum(ytd) IS DISTINCT FROM sum(paid)"],
    },
    Condition {
        number: 10,
        queries: &[
            "SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_balance', c_balance, \
             'delivered', delivered, 'paid', paid FROM customer_sum WHERE known \
             AND c_balance IS DISTINCT FROM coalesce(delivered, 0) - coalesce(paid, 0)",
            "SELECT 'w', w, 'd', d, 'c', c, 'customer', NULL FROM customer_sum WHERE NOT known",
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
             GROUP BY no_w_id, no_d_id) AS sides \
             GROUP BY w, d HAVING sum(orders) - sum(new_orders) <> \
             CASE WHEN {before_runs} = 1 THEN {loaded} \
             ELSE greatest(sum(delivered), {loaded}) END"],
    },
    Condition {
        number: 12,
        queries: &["SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_balance', c_balance, \
             'c_ytd_payment', c_ytd_payment, 'delivered', delivered FROM customer_sum \
             WHERE known AND c_balance + c_ytd_payment IS DISTINCT FROM coalesce(delivered, 0)"],
    },
];

/// Checks all conditions of the dataset.
pub(super) fn check(
    connection: &mut Connection,
    place: &str,
    meta: &Meta,
) -> Result<Vec<ConditionResult>, Error> {
    let failed =
        |doing: &'static str| move |source| super::server_error(place, doing.to_owned(), source);
    connection.execute(BEGIN).map_err(failed("beginning the check"))?;
    if let Dataset::OrderEntry(_) = meta.dataset {
        connection.execute(SUMS).map_err(failed("summing up order lines"))?;
    }
    let results = check_all(meta, &ORDER_ENTRY, &mut |sql| {
        find(connection, sql).map_err(failed("checking a condition"))
    })?;
    connection.execute("ROLLBACK").map_err(failed("ending the check"))?;
    Ok(results)
}

/// How many rows a query finds, and the first of them: a sound database is asked once.
fn find(connection: &mut Connection, sql: &str) -> Result<Found, ServerError> {
    let count = connection.query(&format!("SELECT count(*) FROM ({sql}) AS found"))?;
    let count = count.first().and_then(|row| row.first().cloned().flatten());
    let count = count.and_then(|text| text.parse().ok()).unwrap_or(0);
    if count == 0 {
        return Ok((0, Vec::new()));
    }
    let rows = connection.query(&format!("{sql} LIMIT {DETAIL_MAX}"))?;
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
