//! The twelve conditions of order entry (TPC-C 5.11 clause 3.3.2), and five of our own for what
//! those do not look at: stock, the counters of customers, items, rows that are missing. In SQL
//! that every DBMS here takes.
//!
//! Temporary tables, [`SUMS`], each from one pass over the large tables, set beside each other
//! what the conditions compare. Both have a row for every key that either side has, with 0 for the
//! side that is missing, so a row that is missing altogether is found too. Where a side can still
//! be null, `coalesce(a <> b, TRUE)` counts as a difference: the DBMSs share no null-safe operator.

use super::Condition;

/// Conditions of the specification; what follows them is ours.
pub(super) const SPECIFIED: u32 = 12;

/// Temporary tables and their queries: orders beside the sums of their lines, customers beside the
/// sums of their orders and payments, stock beside the lines that were entered since the load.
pub(super) const SUMS: [(&str, &str); 3] = [
    (
        "order_sum",
        "SELECT w, d, o, sum(entered) AS entered, max(c) AS c, max(carrier) AS carrier, \
             sum(expected) AS expected, sum(line_count) AS line_count, sum(undated) AS undated, \
             sum(delivered) AS delivered FROM (\
         SELECT o_w_id AS w, o_d_id AS d, o_id AS o, 1 AS entered, o_c_id AS c, \
             o_carrier_id AS carrier, o_ol_cnt AS expected, 0 AS line_count, 0 AS undated, \
             0 AS delivered FROM orders \
         UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, NULL, NULL, 0, count(*), \
             count(*) - count(ol_delivery_d), \
             sum(CASE WHEN ol_delivery_d IS NULL THEN 0 ELSE ol_amount END) \
             FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS sides \
         GROUP BY w, d, o",
    ),
    (
        "customer_sum",
        "SELECT w, d, c, sum(known) AS known, sum(balance) AS balance, \
             sum(ytd_payment) AS ytd_payment, sum(delivered) AS delivered, sum(paid) AS paid, \
             sum(payment_cnt) AS payment_cnt, sum(payments) AS payments, \
             sum(delivery_cnt) AS delivery_cnt, sum(deliveries) AS deliveries FROM (\
         SELECT c_w_id AS w, c_d_id AS d, c_id AS c, 1 AS known, c_balance AS balance, \
             c_ytd_payment AS ytd_payment, 0 AS delivered, 0 AS paid, \
             c_payment_cnt AS payment_cnt, 0 AS payments, c_delivery_cnt AS delivery_cnt, \
             0 AS deliveries FROM customer \
         UNION ALL SELECT w, d, c, 0, 0, 0, delivered, 0, 0, 0, 0, \
             CASE WHEN carrier IS NOT NULL AND o > {loaded} THEN 1 ELSE 0 END FROM order_sum \
             WHERE entered > 0 AND line_count > 0 \
         UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, 0, 0, 0, h_amount, 0, 1, 0, 0 \
             FROM history) AS sides \
         GROUP BY w, d, c",
    ),
    (
        "stock_sum",
        "SELECT w, i, sum(order_cnt) AS order_cnt, sum(ytd) AS ytd, sum(remote_cnt) AS remote_cnt, \
             sum(line_count) AS line_count, sum(quantity) AS quantity, sum(remote) AS remote FROM (\
         SELECT s_w_id AS w, s_i_id AS i, s_order_cnt AS order_cnt, s_ytd AS ytd, \
             s_remote_cnt AS remote_cnt, 0 AS line_count, 0 AS quantity, 0 AS remote FROM stock \
         UNION ALL SELECT ol_supply_w_id, ol_i_id, 0, 0, 0, count(*), sum(ol_quantity), \
             sum(CASE WHEN ol_supply_w_id <> ol_w_id THEN 1 ELSE 0 END) FROM order_line \
             WHERE ol_o_id > {orders} GROUP BY ol_supply_w_id, ol_i_id) AS sides \
         GROUP BY w, i",
    ),
];

/// What must hold, and the queries for what violates it. `{before_runs}` stands for 1 or 0,
/// `{orders}` for the orders that each district had at load and `{loaded}` for those of them that
/// were delivered; `{warehouses}` to `{items}` are rows of a table, `{images}` to `{texts}` sums
/// over the items as they were loaded.
pub(super) const CONDITIONS: [Condition; 17] = [
    (
        "W_YTD = sum(D_YTD)",
        &[
            "SELECT 'w_id', w_id, 'w_ytd', w_ytd, 'sum(d_ytd)', sum(d_ytd) \
             FROM warehouse LEFT JOIN district ON d_w_id = w_id \
             GROUP BY w_id, w_ytd HAVING coalesce(w_ytd <> sum(d_ytd), TRUE)",
            "SELECT 'd_w_id', d_w_id, 'd_id', d_id, 'warehouse', NULL FROM district \
             WHERE NOT EXISTS (SELECT 1 FROM warehouse WHERE w_id = d_w_id)",
        ],
    ),
    (
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        &[
            "SELECT 'd_w_id', d_w_id, 'd_id', d_id, 'd_next_o_id - 1', d_next_o_id - 1, \
             'max(o_id)', o, 'max(no_o_id)', n FROM (SELECT d_w_id, d_id, d_next_o_id, \
             (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS o, \
             (SELECT max(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS n \
             FROM district) AS numbers WHERE coalesce(d_next_o_id - 1 <> o, TRUE) \
             OR (n IS NOT NULL AND coalesce(n <> o, TRUE))",
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'district', NULL FROM \
             (SELECT DISTINCT o_w_id, o_d_id FROM orders) AS places \
             WHERE NOT EXISTS (SELECT 1 FROM district WHERE d_w_id = o_w_id AND d_id = o_d_id)",
        ],
    ),
    (
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER in the district",
        &["SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'max - min + 1', \
           max(no_o_id) - min(no_o_id) + 1, 'rows', count(*) \
           FROM new_order GROUP BY no_w_id, no_d_id \
           HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)"],
    ),
    (
        "sum(O_OL_CNT) = rows of ORDER-LINE in the district",
        &["SELECT 'w_id', w, 'd_id', d, 'sum(o_ol_cnt)', sum(expected), 'lines', sum(line_count) \
           FROM order_sum GROUP BY w, d HAVING sum(expected) <> sum(line_count)"],
    ),
    (
        "O_CARRIER_ID is null if and only if the order has a NEW-ORDER row",
        &[
            "SELECT 'o_w_id', o_w_id, 'o_d_id', o_d_id, 'o_id', o_id, 'o_carrier_id', \
             o_carrier_id, 'new_order', no_o_id FROM orders LEFT JOIN new_order \
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
            "SELECT 'no_w_id', no_w_id, 'no_d_id', no_d_id, 'no_o_id', no_o_id, 'order', NULL \
             FROM new_order WHERE NOT EXISTS (SELECT 1 FROM orders \
             WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id)",
        ],
    ),
    (
        "O_OL_CNT = rows of ORDER-LINE of the order",
        &[
            "SELECT 'o_w_id', w, 'o_d_id', d, 'o_id', o, 'o_ol_cnt', expected, 'lines', \
             line_count FROM order_sum WHERE entered > 0 AND expected <> line_count",
            "SELECT 'ol_w_id', w, 'ol_d_id', d, 'ol_o_id', o, 'order', NULL FROM order_sum \
             WHERE entered = 0",
        ],
    ),
    (
        "OL_DELIVERY_D is null if and only if O_CARRIER_ID is null",
        &["SELECT 'o_w_id', w, 'o_d_id', d, 'o_id', o, 'o_carrier_id', carrier, 'lines', \
           line_count, 'undated', undated FROM order_sum \
           WHERE undated <> CASE WHEN carrier IS NULL THEN line_count ELSE 0 END"],
    ),
    (
        "W_YTD = sum(H_AMOUNT)",
        &["SELECT 'w_id', w, 'w_ytd', sum(ytd), 'sum(h_amount)', sum(paid) FROM (\
           SELECT w_id AS w, w_ytd AS ytd, 0 AS paid FROM warehouse \
           UNION ALL SELECT h_w_id, 0, sum(h_amount) FROM history GROUP BY h_w_id) AS sides \
           GROUP BY w HAVING sum(ytd) <> sum(paid)"],
    ),
    (
        "D_YTD = sum(H_AMOUNT)",
        &["SELECT 'd_w_id', w, 'd_id', d, 'd_ytd', sum(ytd), 'sum(h_amount)', sum(paid) \
           FROM (SELECT d_w_id AS w, d_id AS d, d_ytd AS ytd, 0 AS paid FROM district \
           UNION ALL SELECT h_w_id, h_d_id, 0, sum(h_amount) FROM history \
           GROUP BY h_w_id, h_d_id) AS sides GROUP BY w, d HAVING sum(ytd) <> sum(paid)"],
    ),
    (
        "C_BALANCE = delivered OL_AMOUNT - sum(H_AMOUNT)",
        &[
            "SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_balance', balance, \
             'delivered', delivered, 'paid', paid FROM customer_sum \
             WHERE known > 0 AND balance <> delivered - paid",
            "SELECT 'w', w, 'd', d, 'c', c, 'customer', NULL FROM customer_sum WHERE known = 0",
        ],
    ),
    (
        "rows of ORDER - rows of NEW-ORDER = orders delivered at load (before a run)",
        &["SELECT 'd_w_id', w, 'd_id', d, 'orders', sum(orders), 'new orders', \
           sum(new_orders), 'delivered', sum(delivered) FROM (\
           SELECT d_w_id AS w, d_id AS d, 0 AS orders, 0 AS new_orders, 0 AS delivered \
           FROM district \
           UNION ALL SELECT o_w_id, o_d_id, count(*), 0, count(o_carrier_id) FROM orders \
           GROUP BY o_w_id, o_d_id \
           UNION ALL SELECT no_w_id, no_d_id, 0, count(*), 0 FROM new_order \
           GROUP BY no_w_id, no_d_id) AS sides \
           GROUP BY w, d HAVING sum(orders) - sum(new_orders) <> \
           CASE WHEN {before_runs} = 1 OR sum(delivered) < {loaded} THEN {loaded} \
           ELSE sum(delivered) END"],
    ),
    (
        "C_BALANCE + C_YTD_PAYMENT = delivered OL_AMOUNT",
        &["SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_balance', balance, 'c_ytd_payment', \
           ytd_payment, 'delivered', delivered FROM customer_sum \
           WHERE known > 0 AND balance + ytd_payment <> delivered"],
    ),
    (
        "S_ORDER_CNT, S_YTD, S_REMOTE_CNT = lines, quantity, remote lines of the orders entered",
        &["SELECT 's_w_id', w, 's_i_id', i, 's_order_cnt', order_cnt, 'lines', line_count, \
           's_ytd', ytd, 'quantity', quantity, 's_remote_cnt', remote_cnt, 'remote', remote \
           FROM stock_sum \
           WHERE order_cnt <> line_count OR ytd <> quantity OR remote_cnt <> remote"],
    ),
    (
        "C_PAYMENT_CNT = rows of HISTORY of the customer",
        &["SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_payment_cnt', payment_cnt, 'payments', \
           payments FROM customer_sum WHERE known > 0 AND payment_cnt <> payments"],
    ),
    (
        "C_DELIVERY_CNT = orders of the customer delivered since the load",
        &["SELECT 'c_w_id', w, 'c_d_id', d, 'c_id', c, 'c_delivery_cnt', delivery_cnt, \
           'deliveries', deliveries FROM customer_sum \
           WHERE known > 0 AND delivery_cnt <> deliveries"],
    ),
    (
        "every warehouse, district, customer and stock row is there",
        &["SELECT 'warehouses', w, 'districts', d, 'customers', c, 'stock', s FROM \
           (SELECT count(*) AS w FROM warehouse) a, (SELECT count(*) AS d FROM district) b, \
           (SELECT count(*) AS c FROM customer) e, (SELECT count(*) AS s FROM stock) f \
           WHERE w <> {warehouses} OR d <> {districts} OR c <> {customers} OR s <> {stock}"],
    ),
    // Money is a number of cents or, where the DBMS has decimals, of their hundreds.
    (
        "items are as they were loaded",
        &["SELECT 'items', n, 'sum(i_im_id)', images, 'sum(i_price)', prices, 'letters', texts \
           FROM (SELECT count(*) AS n, coalesce(sum(i_im_id), 0) AS images, \
           coalesce(sum(i_price), 0) AS prices, \
           coalesce(sum(length(i_name) + length(i_data)), 0) AS texts FROM item) AS sums \
           WHERE n <> {items} OR images <> {images} OR texts <> {texts} \
           OR (prices <> {prices} AND prices * 100 <> {prices})"],
    ),
];
