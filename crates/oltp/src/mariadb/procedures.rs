//! The stored procedures: each transaction as one call that commits or rolls back by itself.
//!
//! Clause numbers as in the statement forms beside this file; lock order and isolation are theirs
//! too. A row that must exist and does not is SQLSTATE 45000 with its name. New-Order's lines
//! arrive as text of fixed width, 16 digits each: number (2), item (6), warehouse (6), quantity
//! (2), in the order in which their stock is locked.

use crate::workload::Workload;

/// Names of a workload's procedures.
pub(super) fn names(workload: Workload) -> &'static [&'static str] {
    match workload {
        Workload::OrderEntry => &[
            "wearmark_new_order",
            "wearmark_payment",
            "wearmark_order_status",
            "wearmark_delivery",
            "wearmark_stock_level",
        ],
        Workload::Bank => &["wearmark_transfer"],
        Workload::Commit => &["wearmark_update"],
        Workload::Own(_) => &[],
    }
}

/// The statements that create them.
pub(super) fn create(workload: Workload) -> &'static [&'static str] {
    match workload {
        Workload::OrderEntry => &[NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL],
        Workload::Bank => &[TRANSFER],
        Workload::Commit => &[UPDATE],
        Workload::Own(_) => &[],
    }
}

/// Answers one row about the order, then its lines.
const NEW_ORDER: &str = "
CREATE PROCEDURE wearmark_new_order(IN in_w INT, IN in_d TINYINT, IN in_c INT, IN in_count TINYINT,
    IN in_local TINYINT, IN in_now DATETIME(3), IN in_lines VARCHAR(240) CHARACTER SET latin1)
MODIFIES SQL DATA
BEGIN
    DECLARE tax_w, tax_d, discount DECIMAL(4,4);
    DECLARE last_name VARCHAR(16) CHARACTER SET latin1;
    DECLARE credit CHAR(2) CHARACTER SET latin1;
    DECLARE price DECIMAL(5,2);
    DECLARE number_o, item, supply INT;
    DECLARE quantity, number_l TINYINT;
    DECLARE missing TINYINT DEFAULT 0;
    DECLARE at INT DEFAULT 1;
    SELECT w_tax INTO tax_w FROM warehouse WHERE w_id = in_w;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w AND d_id = in_d;
    SELECT d_tax, d_next_o_id - 1 INTO tax_d, number_o FROM district
        WHERE d_w_id = in_w AND d_id = in_d;
    SELECT c_discount, c_last, c_credit INTO discount, last_name, credit FROM customer
        WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;
    IF tax_w IS NULL OR tax_d IS NULL OR discount IS NULL THEN
        SIGNAL SQLSTATE '45000'
            SET MESSAGE_TEXT = 'a warehouse, a district or a customer number';
    END IF;
    INSERT INTO orders VALUES (number_o, in_d, in_w, in_c, in_now, NULL, in_count, in_local);
    INSERT INTO new_order VALUES (number_o, in_d, in_w);
    WHILE at < LENGTH(in_lines) DO
        SET number_l = SUBSTR(in_lines, at, 2), item = SUBSTR(in_lines, at + 2, 6),
            supply = SUBSTR(in_lines, at + 8, 6), quantity = SUBSTR(in_lines, at + 14, 2),
            price = NULL, at = at + 16;
        SELECT i_price INTO price FROM item WHERE i_id = item;
        IF price IS NULL THEN
            SET missing = 1;
        ELSE
            UPDATE stock SET
                s_quantity = IF(s_quantity >= quantity + 10, s_quantity - quantity,
                    s_quantity - quantity + 91),
                s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + (supply <> in_w)
                WHERE s_w_id = supply AND s_i_id = item;
            INSERT INTO order_line
                SELECT number_o, in_d, in_w, number_l, item, supply, NULL, quantity,
                    quantity * price,
                    ELT(in_d, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05,
                        s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10)
                FROM stock WHERE s_w_id = supply AND s_i_id = item;
            IF ROW_COUNT() = 0 THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a stock row';
            END IF;
        END IF;
    END WHILE;
    SELECT number_o, tax_w + tax_d, discount, last_name, credit, missing;
    SELECT ol_amount, i_name, i_price, s_quantity,
        i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%'
        FROM order_line STRAIGHT_JOIN item ON i_id = ol_i_id
        STRAIGHT_JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
        WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id = number_o;
    IF missing THEN ROLLBACK; ELSE COMMIT; END IF;
END";

/// Answers one row. The customer comes by number or, where that is NULL, by name.
const PAYMENT: &str = "
CREATE PROCEDURE wearmark_payment(IN in_w INT, IN in_d TINYINT, IN in_c_w INT, IN in_c_d TINYINT,
    IN in_c INT, IN in_last VARCHAR(16) CHARACTER SET latin1 COLLATE latin1_bin,
    IN in_amount DECIMAL(6,2), IN in_now DATETIME(3))
MODIFIES SQL DATA
BEGIN
    DECLARE found INT;
    DECLARE data VARCHAR(24) CHARACTER SET latin1;
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w AND d_id = in_d;
    IF in_c IS NULL THEN
        SELECT (COUNT(*) + 1) DIV 2 - 1 INTO found FROM customer
            WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = in_last;
        IF found < 0 THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a customer name';
        END IF;
        SELECT c_id INTO in_c FROM customer
            WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_last = in_last
            ORDER BY c_first, c_id LIMIT found, 1;
    END IF;
    UPDATE customer SET c_balance = c_balance - in_amount,
        c_ytd_payment = c_ytd_payment + in_amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = IF(c_credit = 'BC', LEFT(CONCAT(c_id, ' ', c_d_id, ' ', c_w_id, ' ', in_d, ' ',
            in_w, ' ', in_amount, '|', c_data), 500), c_data)
        WHERE c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = in_c;
    SELECT CONCAT(w_name, '    ', d_name) INTO data FROM warehouse STRAIGHT_JOIN district
        WHERE w_id = in_w AND d_w_id = in_w AND d_id = in_d;
    INSERT INTO history VALUES (in_c, in_c_d, in_c_w, in_d, in_w, in_now, in_amount, data);
    SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
        c_phone, c_credit, w_street_1, w_street_2, w_city, w_state, w_zip,
        d_street_1, d_street_2, d_city, d_state, d_zip,
        c_since, c_credit_lim, c_discount, c_balance
        FROM warehouse STRAIGHT_JOIN district STRAIGHT_JOIN customer
        WHERE w_id = in_w AND d_w_id = in_w AND d_id = in_d
        AND c_w_id = in_c_w AND c_d_id = in_c_d AND c_id = in_c;
    COMMIT;
END";

/// Answers one row about the order, then its lines.
const ORDER_STATUS: &str = "
CREATE PROCEDURE wearmark_order_status(IN in_w INT, IN in_d TINYINT, IN in_c INT,
    IN in_last VARCHAR(16) CHARACTER SET latin1 COLLATE latin1_bin)
READS SQL DATA
BEGIN
    DECLARE found, number_o INT;
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    START TRANSACTION;
    IF in_c IS NULL THEN
        SELECT (COUNT(*) + 1) DIV 2 - 1 INTO found FROM customer
            WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = in_last;
        IF found < 0 THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a customer name';
        END IF;
        SELECT c_id INTO in_c FROM customer
            WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = in_last
            ORDER BY c_first, c_id LIMIT found, 1;
    END IF;
    SELECT MAX(o_id) INTO number_o FROM orders
        WHERE o_w_id = in_w AND o_d_id = in_d AND o_c_id = in_c;
    SELECT c_id, c_balance, c_first, c_middle, c_last, o_id, o_entry_d, o_carrier_id
        FROM customer STRAIGHT_JOIN orders
        WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c
        AND o_w_id = in_w AND o_d_id = in_d AND o_id = number_o;
    SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id = number_o ORDER BY ol_number;
    COMMIT;
END";

/// Answers one text: the number of the order delivered in each district, 0 where there was none.
const DELIVERY: &str = "
CREATE PROCEDURE wearmark_delivery(IN in_w INT, IN in_carrier TINYINT, IN in_now DATETIME(3),
    IN in_districts TINYINT)
MODIFIES SQL DATA
BEGIN
    DECLARE d TINYINT DEFAULT 1;
    DECLARE number_o, customer_o INT;
    DECLARE total DECIMAL(12,2);
    DECLARE delivered VARCHAR(120) CHARACTER SET latin1 DEFAULT '';
    WHILE d <= in_districts DO
        SET number_o = NULL, customer_o = NULL;
        SELECT no_o_id INTO number_o FROM new_order WHERE no_w_id = in_w AND no_d_id = d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF number_o IS NOT NULL THEN
            DELETE FROM new_order WHERE no_w_id = in_w AND no_d_id = d AND no_o_id = number_o;
            SELECT o_c_id INTO customer_o FROM orders
                WHERE o_w_id = in_w AND o_d_id = d AND o_id = number_o;
            IF customer_o IS NULL THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the order of a new order';
            END IF;
            UPDATE orders SET o_carrier_id = in_carrier
                WHERE o_w_id = in_w AND o_d_id = d AND o_id = number_o;
            UPDATE order_line SET ol_delivery_d = in_now
                WHERE ol_w_id = in_w AND ol_d_id = d AND ol_o_id = number_o;
            SELECT SUM(ol_amount) INTO total FROM order_line
                WHERE ol_w_id = in_w AND ol_d_id = d AND ol_o_id = number_o;
            UPDATE customer SET c_balance = c_balance + total,
                c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = in_w AND c_d_id = d AND c_id = customer_o;
        END IF;
        SET delivered = CONCAT(delivered, COALESCE(number_o, 0), ' '), d = d + 1;
    END WHILE;
    SELECT delivered;
    COMMIT;
END";

/// Answers one number.
const STOCK_LEVEL: &str = "
CREATE PROCEDURE wearmark_stock_level(IN in_w INT, IN in_d TINYINT, IN in_threshold INT)
READS SQL DATA
BEGIN
    DECLARE next_o INT;
    SELECT d_next_o_id INTO next_o FROM district WHERE d_w_id = in_w AND d_id = in_d;
    IF next_o IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a district';
    END IF;
    SELECT COUNT(DISTINCT ol_i_id) FROM order_line STRAIGHT_JOIN stock
        ON s_w_id = ol_w_id AND s_i_id = ol_i_id
        WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id < next_o AND ol_o_id >= next_o - 20
        AND s_quantity < in_threshold;
    COMMIT;
END";

/// Answers the account's balance.
const TRANSFER: &str = "
CREATE PROCEDURE wearmark_transfer(IN in_account INT, IN in_teller INT, IN in_branch INT,
    IN in_amount BIGINT, IN in_now DATETIME(3))
MODIFIES SQL DATA
BEGIN
    UPDATE accounts SET abalance = abalance + in_amount WHERE aid = in_account;
    SELECT abalance FROM accounts WHERE aid = in_account;
    UPDATE tellers SET tbalance = tbalance + in_amount WHERE tid = in_teller;
    UPDATE branches SET bbalance = bbalance + in_amount WHERE bid = in_branch;
    IF ROW_COUNT() = 0 AND in_amount <> 0 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a branch';
    END IF;
    INSERT INTO history
        VALUES (in_teller, in_branch, in_account, in_amount, in_now, '                      ');
    COMMIT;
END";

const UPDATE: &str = "
CREATE PROCEDURE wearmark_update(IN in_row INT)
MODIFIES SQL DATA
BEGIN
    UPDATE commit_row SET value = value + 1 WHERE id = in_row;
    IF ROW_COUNT() = 0 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a row';
    END IF;
    COMMIT;
END";
