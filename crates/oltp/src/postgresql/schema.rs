//! Tables, keys, indexes and fill factors in PostgreSQL.
//!
//! Order entry has TPC-C's own names (5.11 clause 1.3) and types, with INTEGER for identifiers and
//! counts, so that other tools' checkers run on it unchanged. Keys and indexes are built after the
//! rows are in. There are no foreign keys: the specification does not ask the DBMS to enforce them.
//!
//! Fill factors leave room for HOT updates, which keep a new row version in its page and out of the
//! indexes: `warehouse` and `district`, a few rows that every transaction changes, have almost empty
//! pages; `customer` and `stock` have room for one or two more rows. `orders` and `order_line` are
//! loaded in full pages, because what was delivered never changes again, and leave room in the
//! pages that a run adds, so that a delivery finds it.
//!
//! Names and orders of customers compare by bytes (COLLATE "C"), as the specification's ASCII means
//! it and as every DBMS here does.

use super::rows::Table;
use crate::workload::Dataset;

/// One table: its name, how it is made, and what follows when its rows are in.
pub(super) struct TableSql {
    pub name: &'static str,
    pub create: &'static str,
    pub after: &'static [&'static str],
}

/// The table of [`crate::meta`].
pub(super) const META: &str =
    "CREATE TABLE wearmark_meta (key text PRIMARY KEY, value bigint NOT NULL)";

/// A table of order entry.
pub(super) fn order_entry(table: Table) -> TableSql {
    let (create, after) = match table {
        Table::Warehouse => (WAREHOUSE, &["ALTER TABLE warehouse ADD PRIMARY KEY (w_id)"][..]),
        Table::District => (DISTRICT, &["ALTER TABLE district ADD PRIMARY KEY (d_w_id, d_id)"][..]),
        Table::Customer => (
            CUSTOMER,
            &[
                "ALTER TABLE customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id)",
                "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
            ][..],
        ),
        Table::History => (HISTORY, &[][..]),
        Table::NewOrder => {
            (NEW_ORDER, &["ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id)"][..])
        }
        Table::Orders => (
            ORDERS,
            &[
                "ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id)",
                "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
                "ALTER TABLE orders SET (fillfactor = 90)",
            ][..],
        ),
        Table::OrderLine => (
            ORDER_LINE,
            &[
                "ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
                "ALTER TABLE order_line SET (fillfactor = 85)",
            ][..],
        ),
        Table::Item => (ITEM, &["ALTER TABLE item ADD PRIMARY KEY (i_id)"][..]),
        Table::Stock => (STOCK, &["ALTER TABLE stock ADD PRIMARY KEY (s_w_id, s_i_id)"][..]),
    };
    TableSql { name: table.name(), create, after }
}

const WAREHOUSE: &str = "CREATE TABLE warehouse (
    w_id integer NOT NULL, w_name varchar(10) NOT NULL, w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL, w_city varchar(20) NOT NULL, w_state char(2) NOT NULL,
    w_zip char(9) NOT NULL, w_tax numeric(4,4) NOT NULL, w_ytd numeric(12,2) NOT NULL)
    WITH (fillfactor = 10)";

const DISTRICT: &str = "CREATE TABLE district (
    d_id integer NOT NULL, d_w_id integer NOT NULL, d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL, d_street_2 varchar(20) NOT NULL, d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL, d_zip char(9) NOT NULL, d_tax numeric(4,4) NOT NULL,
    d_ytd numeric(12,2) NOT NULL, d_next_o_id integer NOT NULL) WITH (fillfactor = 10)";

const CUSTOMER: &str = "CREATE TABLE customer (
    c_id integer NOT NULL, c_d_id integer NOT NULL, c_w_id integer NOT NULL,
    c_first varchar(16) COLLATE \"C\" NOT NULL, c_middle char(2) NOT NULL,
    c_last varchar(16) COLLATE \"C\" NOT NULL, c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL, c_city varchar(20) NOT NULL, c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL, c_phone char(16) NOT NULL, c_since timestamp NOT NULL,
    c_credit char(2) NOT NULL, c_credit_lim numeric(12,2) NOT NULL,
    c_discount numeric(4,4) NOT NULL, c_balance numeric(12,2) NOT NULL,
    c_ytd_payment numeric(12,2) NOT NULL, c_payment_cnt integer NOT NULL,
    c_delivery_cnt integer NOT NULL, c_data varchar(500) NOT NULL) WITH (fillfactor = 90)";

const HISTORY: &str = "CREATE TABLE history (
    h_c_id integer NOT NULL, h_c_d_id integer NOT NULL, h_c_w_id integer NOT NULL,
    h_d_id integer NOT NULL, h_w_id integer NOT NULL, h_date timestamp NOT NULL,
    h_amount numeric(6,2) NOT NULL, h_data varchar(24) NOT NULL)";

const NEW_ORDER: &str = "CREATE TABLE new_order (
    no_o_id integer NOT NULL, no_d_id integer NOT NULL, no_w_id integer NOT NULL)";

const ORDERS: &str = "CREATE TABLE orders (
    o_id integer NOT NULL, o_d_id integer NOT NULL, o_w_id integer NOT NULL,
    o_c_id integer NOT NULL, o_entry_d timestamp NOT NULL, o_carrier_id integer,
    o_ol_cnt integer NOT NULL, o_all_local integer NOT NULL)";

const ORDER_LINE: &str = "CREATE TABLE order_line (
    ol_o_id integer NOT NULL, ol_d_id integer NOT NULL, ol_w_id integer NOT NULL,
    ol_number integer NOT NULL, ol_i_id integer NOT NULL, ol_supply_w_id integer NOT NULL,
    ol_delivery_d timestamp, ol_quantity integer NOT NULL, ol_amount numeric(6,2) NOT NULL,
    ol_dist_info char(24) NOT NULL)";

const ITEM: &str = "CREATE TABLE item (
    i_id integer NOT NULL, i_im_id integer NOT NULL, i_name varchar(24) NOT NULL,
    i_price numeric(5,2) NOT NULL, i_data varchar(50) NOT NULL)";

const STOCK: &str = "CREATE TABLE stock (
    s_i_id integer NOT NULL, s_w_id integer NOT NULL, s_quantity integer NOT NULL,
    s_dist_01 char(24) NOT NULL, s_dist_02 char(24) NOT NULL, s_dist_03 char(24) NOT NULL,
    s_dist_04 char(24) NOT NULL, s_dist_05 char(24) NOT NULL, s_dist_06 char(24) NOT NULL,
    s_dist_07 char(24) NOT NULL, s_dist_08 char(24) NOT NULL, s_dist_09 char(24) NOT NULL,
    s_dist_10 char(24) NOT NULL, s_ytd integer NOT NULL, s_order_cnt integer NOT NULL,
    s_remote_cnt integer NOT NULL, s_data varchar(50) NOT NULL) WITH (fillfactor = 90)";

/// The bank's tables. Rows have the specification's 100 and 50 bytes (TPC-B clause 3.2); balances
/// are cents. Branches and tellers, which every transfer changes, have almost empty pages.
pub(super) const BANK: [TableSql; 4] = [
    TableSql {
        name: "branches",
        create: "CREATE TABLE branches (bid integer NOT NULL, bbalance bigint NOT NULL,
            filler char(84) NOT NULL) WITH (fillfactor = 10)",
        after: &["ALTER TABLE branches ADD PRIMARY KEY (bid)"],
    },
    TableSql {
        name: "tellers",
        create: "CREATE TABLE tellers (tid integer NOT NULL, bid integer NOT NULL,
            tbalance bigint NOT NULL, filler char(84) NOT NULL) WITH (fillfactor = 10)",
        after: &["ALTER TABLE tellers ADD PRIMARY KEY (tid)"],
    },
    TableSql {
        name: "accounts",
        create: "CREATE TABLE accounts (aid integer NOT NULL, bid integer NOT NULL,
            abalance bigint NOT NULL, filler char(84) NOT NULL) WITH (fillfactor = 95)",
        after: &["ALTER TABLE accounts ADD PRIMARY KEY (aid)"],
    },
    TableSql {
        name: "history",
        create: "CREATE TABLE history (tid integer NOT NULL, bid integer NOT NULL,
            aid integer NOT NULL, delta bigint NOT NULL, mtime timestamp NOT NULL,
            filler char(22) NOT NULL)",
        after: &[],
    },
];

/// The table of the commit workload.
pub(super) const COMMIT: [TableSql; 1] = [TableSql {
    name: "commit_row",
    create: "CREATE TABLE commit_row (id integer NOT NULL, value bigint NOT NULL,
        filler char(84) NOT NULL) WITH (fillfactor = 50)",
    after: &["ALTER TABLE commit_row ADD PRIMARY KEY (id)"],
}];

/// Every table of a workload.
pub(super) fn tables(dataset: &Dataset) -> Vec<&'static str> {
    match dataset {
        Dataset::OrderEntry(_) => Table::ALL.iter().map(|table| table.name()).collect(),
        Dataset::Bank(_) => BANK.iter().map(|table| table.name).collect(),
        Dataset::Commit(_) => COMMIT.iter().map(|table| table.name).collect(),
    }
}
