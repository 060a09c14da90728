//! Stored procedures: one function in PL/pgSQL per transaction, one round trip per call.
//!
//! They are made by the load, with the same set-based statements as the pipelined access has.
//! `order_entry_unused_item` raises [`UNUSED_ITEM`], with which a new order that names an unused
//! item undoes itself (TPC-C 5.11 clause 2.4.2.3); pipelined access calls it too.

use crate::workload::Workload;
use crate::workload::own::Dialect;

/// `SQLSTATE` that ends an order with an unused item.
pub(super) const UNUSED_ITEM: &str = "WM001";

/// `SQLSTATE` of a row that INTO STRICT does not find.
pub(super) const NO_ROW: &str = "P0002";

/// Takes all of them away.
pub(super) const DROP: &str = "
DROP FUNCTION IF EXISTS order_entry_unused_item;
DROP FUNCTION IF EXISTS order_entry_new_order;
DROP FUNCTION IF EXISTS order_entry_payment;
DROP FUNCTION IF EXISTS order_entry_order_status;
DROP FUNCTION IF EXISTS order_entry_delivery;
DROP FUNCTION IF EXISTS order_entry_stock_level;
DROP FUNCTION IF EXISTS bank_transfer;
DROP FUNCTION IF EXISTS commit_update";

/// Those of a workload.
pub(super) fn of(workload: Workload) -> &'static str {
    match workload {
        Workload::OrderEntry => ORDER_ENTRY,
        Workload::Bank => BANK,
        Workload::Commit => COMMIT,
        Workload::Own(own) => &own.whole().after[Dialect::Postgresql as usize],
    }
}

/// The rule of clause 2.4.2.2 and the district's text, which both accesses need.
macro_rules! stock_columns {
    () => {
        "s_quantity = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity \
             ELSE s_quantity - quantity + 91 END, \
         s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1"
    };
}
macro_rules! dist_of {
    ($district:literal) => {
        concat!(
            "CASE ",
            $district,
            " WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
             WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
             WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 \
             ELSE s_dist_10 END"
        )
    };
}
/// Takes the oldest new order of each district (clause 2.7.4); the last column says whether all
/// that belongs to it was found. One statement, so its parts see one state and meet in memory.
macro_rules! delivery {
    ($w:literal, $districts:literal, $carrier:literal, $now:literal) => {
        concat!(
            "WITH gone AS (DELETE FROM new_order USING (SELECT d, (SELECT min(no_o_id) \
                 FROM new_order WHERE no_w_id = ",
            $w,
            " AND no_d_id = d) AS o \
                 FROM generate_series(1, ",
            $districts,
            ") AS d) AS oldest \
                 WHERE no_w_id = ",
            $w,
            " AND no_d_id = d AND no_o_id = o RETURNING d, o), \
             sent AS (UPDATE orders SET o_carrier_id = ",
            $carrier,
            " FROM gone \
                 WHERE o_w_id = ",
            $w,
            " AND o_d_id = d AND o_id = o RETURNING d, o_c_id AS c), \
             dated AS (UPDATE order_line SET ol_delivery_d = ",
            $now,
            " FROM gone \
                 WHERE ol_w_id = ",
            $w,
            " AND ol_d_id = d AND ol_o_id = o \
                 RETURNING d, ol_amount), \
             due AS (SELECT d, sum(ol_amount) AS amount FROM dated GROUP BY d), \
             paid AS (UPDATE customer SET c_balance = c_balance + amount, \
                 c_delivery_cnt = c_delivery_cnt + 1 FROM sent JOIN due USING (d) \
                 WHERE c_w_id = ",
            $w,
            " AND c_d_id = d AND c_id = c RETURNING d) \
             SELECT gone.d, gone.o, paid.d IS NOT NULL FROM gone LEFT JOIN paid USING (d)"
        )
    };
}
pub(super) use {delivery, dist_of, stock_columns};

const ORDER_ENTRY: &str = concat!(
    "
CREATE FUNCTION order_entry_unused_item() RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'WM001';
END $$;

CREATE FUNCTION order_entry_new_order(
    in_w integer, in_d integer, in_c integer, in_local integer, in_now timestamp, in_waves integer,
    in_wave integer[], in_number integer[], in_item integer[], in_supply integer[],
    in_quantity integer[],
    OUT out_o integer, OUT out_total numeric, OUT out_last varchar, OUT out_credit bpchar,
    OUT out_names varchar[], OUT out_brands integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    taxes numeric;
    rate numeric;
    amount numeric := 0;
    found_lines integer := 0;
    part record;
BEGIN
    SELECT w_tax, c_discount, c_last, c_credit INTO STRICT taxes, rate, out_last, out_credit
        FROM warehouse, customer
        WHERE w_id = in_w AND c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w AND d_id = in_d
        RETURNING d_next_o_id - 1, taxes + d_tax INTO STRICT out_o, taxes;
    INSERT INTO orders VALUES
        (out_o, in_d, in_w, in_c, in_now, NULL, cardinality(in_item), in_local);
    INSERT INTO new_order VALUES (out_o, in_d, in_w);
    out_brands := 0;
    FOR k IN 1..in_waves LOOP
        WITH sold AS (
            UPDATE stock SET ",
    stock_columns!(),
    ", s_remote_cnt = s_remote_cnt + (supply <> in_w)::integer
            FROM unnest(in_wave, in_number, in_item, in_supply, in_quantity)
                AS line (wave, number, item, supply, quantity)
            JOIN item ON i_id = item
            WHERE wave = k AND s_w_id = supply AND s_i_id = item
            RETURNING number, item, supply, quantity, i_price * quantity AS amount, i_name,
                (i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%')::integer AS brand, ",
    dist_of!("in_d"),
    " AS dist
        ), written AS (
            INSERT INTO order_line
            SELECT out_o, in_d, in_w, number, item, supply, NULL, quantity, amount, dist FROM sold
        )
        SELECT count(*) AS lines, sum(amount) AS amount, sum(brand) AS brands,
            array_agg(i_name) AS names INTO part FROM sold;
        found_lines := found_lines + part.lines;
        amount := amount + coalesce(part.amount, 0);
        out_brands := out_brands + coalesce(part.brands, 0);
        out_names := out_names || part.names;
    END LOOP;
    IF found_lines < cardinality(in_item) THEN
        PERFORM order_entry_unused_item();
    END IF;
    out_total := round(amount * (1 - rate) * (1 + taxes), 2);
END $$;

CREATE FUNCTION order_entry_payment(
    in_w integer, in_d integer, in_cw integer, in_cd integer, in_c integer, in_last varchar,
    in_amount numeric, in_now timestamp, OUT out_c integer, OUT out_warehouse varchar[],
    OUT out_district varchar[], OUT out_customer varchar[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w
        RETURNING ARRAY[w_name, w_street_1, w_street_2, w_city, w_state, w_zip]
        INTO STRICT out_warehouse;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w AND d_id = in_d
        RETURNING ARRAY[d_name, d_street_1, d_street_2, d_city, d_state, d_zip]
        INTO STRICT out_district;
    IF in_c IS NULL THEN
        SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] INTO in_c FROM customer
            WHERE c_w_id = in_cw AND c_d_id = in_cd AND c_last = in_last;
    END IF;
    UPDATE customer SET c_balance = c_balance - in_amount,
        c_ytd_payment = c_ytd_payment + in_amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE c_credit WHEN 'BC' THEN left(concat_ws(' ', c_id, in_cd, in_cw, in_d, in_w,
            in_amount::numeric(6,2)) || '|' || c_data, 500) ELSE c_data END
        WHERE c_w_id = in_cw AND c_d_id = in_cd AND c_id = in_c
        RETURNING c_id, ARRAY[c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state,
            c_zip, c_phone, c_credit] INTO STRICT out_c, out_customer;
    INSERT INTO history VALUES (out_c, in_cd, in_cw, in_d, in_w, in_now, in_amount,
        out_warehouse[1] || '    ' || out_district[1]);
END $$;

CREATE FUNCTION order_entry_order_status(
    in_w integer, in_d integer, in_c integer, in_last varchar,
    OUT out_c integer, OUT out_balance numeric, OUT out_names varchar[], OUT out_o integer,
    OUT out_entered timestamp, OUT out_carrier integer, OUT out_items integer[],
    OUT out_supplies integer[], OUT out_quantities integer[], OUT out_amounts numeric[],
    OUT out_delivered timestamp[])
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF in_c IS NULL THEN
        SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] INTO in_c FROM customer
            WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = in_last;
    END IF;
    SELECT c_id, c_balance, ARRAY[c_first, c_middle, c_last]
        INTO STRICT out_c, out_balance, out_names
        FROM customer WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;
    SELECT o_id, o_entry_d, o_carrier_id INTO STRICT out_o, out_entered, out_carrier
        FROM orders WHERE o_w_id = in_w AND o_d_id = in_d AND o_c_id = in_c
        ORDER BY o_id DESC LIMIT 1;
    SELECT array_agg(ol_i_id ORDER BY ol_number), array_agg(ol_supply_w_id ORDER BY ol_number),
        array_agg(ol_quantity ORDER BY ol_number), array_agg(ol_amount ORDER BY ol_number),
        array_agg(ol_delivery_d ORDER BY ol_number)
        INTO out_items, out_supplies, out_quantities, out_amounts, out_delivered
        FROM order_line WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id = out_o;
END $$;

CREATE FUNCTION order_entry_delivery(
    in_class integer, in_w integer, in_districts integer, in_carrier integer, in_now timestamp)
RETURNS TABLE (out_d integer, out_o integer, out_whole boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_advisory_xact_lock(in_class, in_w);
    RETURN QUERY ",
    delivery!("in_w", "in_districts", "in_carrier", "in_now"),
    ";
END $$;

CREATE FUNCTION order_entry_stock_level(in_w integer, in_d integer, in_threshold integer)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(DISTINCT s_i_id) FROM district
        JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id
            AND ol_o_id < d_next_o_id AND ol_o_id >= d_next_o_id - 20
        JOIN stock ON s_w_id = in_w AND s_i_id = ol_i_id
        WHERE d_w_id = in_w AND d_id = in_d AND s_quantity < in_threshold);
END $$;
"
);

const BANK: &str = "
CREATE FUNCTION bank_transfer(
    in_account integer, in_teller integer, in_branch integer, in_amount bigint, in_now timestamp,
    OUT out_balance bigint, OUT out_found integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    changed integer;
BEGIN
    UPDATE accounts SET abalance = abalance + in_amount WHERE aid = in_account
        RETURNING abalance INTO out_balance;
    GET DIAGNOSTICS out_found = ROW_COUNT;
    UPDATE tellers SET tbalance = tbalance + in_amount WHERE tid = in_teller;
    GET DIAGNOSTICS changed = ROW_COUNT;
    out_found := out_found + changed;
    INSERT INTO history VALUES (in_teller, in_branch, in_account, in_amount, in_now, '');
    UPDATE branches SET bbalance = bbalance + in_amount WHERE bid = in_branch;
    GET DIAGNOSTICS changed = ROW_COUNT;
    out_found := out_found + changed;
END $$";

const COMMIT: &str = "
CREATE FUNCTION commit_update(in_row integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    changed integer;
BEGIN
    UPDATE commit_row SET value = value + 1 WHERE id = in_row;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed;
END $$";
