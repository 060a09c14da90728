//! Tables and indexes in SQLite.
//!
//! Names are those of TPC-C 5.11 clause 1.3, as SQL can have them: the specification's NEW-ORDER,
//! ORDER and ORDER-LINE are `new_order`, `orders` (ORDER is a keyword) and `order_line`. Columns keep
//! their names. Money is an INTEGER of cents and rates (tax, discount) an INTEGER of
//! ten-thousandths, because SQLite has no decimal type and sums of its REALs are not exact; divide
//! by 100.0 and 10000.0 to read them. Dates are INTEGER milliseconds since 1970.
//!
//! Narrow tables are clustered by their key (WITHOUT ROWID). The wide ones, customer and stock,
//! are not: a clustered table of SQLite keeps whole rows in inner pages too, and with 6 to 12 rows a
//! page the tree would grow six levels deep. They keep their load order and have their primary key
//! as an index built after the load.

/// `PRAGMA application_id` of every file that this crate made: "WEAR".
pub(crate) const APPLICATION_ID: i64 = 0x5745_4152;

/// `PRAGMA user_version` of a completely loaded database: the layout of this module. A load that
/// never finished has 0.
pub(crate) const LAYOUT: i64 = 2;

/// What a database says of itself; see [`crate::meta`].
pub(crate) const META_TABLE: &str =
    "CREATE TABLE wearmark_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID";

/// The tables of order entry, in the order of the specification.
pub(crate) const TABLES: &str = "
CREATE TABLE warehouse (
    w_id INTEGER PRIMARY KEY, w_name TEXT NOT NULL, w_street_1 TEXT NOT NULL,
    w_street_2 TEXT NOT NULL, w_city TEXT NOT NULL, w_state TEXT NOT NULL, w_zip TEXT NOT NULL,
    w_tax INTEGER NOT NULL, w_ytd INTEGER NOT NULL);

CREATE TABLE district (
    d_id INTEGER NOT NULL, d_w_id INTEGER NOT NULL, d_name TEXT NOT NULL,
    d_street_1 TEXT NOT NULL, d_street_2 TEXT NOT NULL, d_city TEXT NOT NULL,
    d_state TEXT NOT NULL, d_zip TEXT NOT NULL, d_tax INTEGER NOT NULL, d_ytd INTEGER NOT NULL,
    d_next_o_id INTEGER NOT NULL, PRIMARY KEY (d_w_id, d_id)) WITHOUT ROWID;

CREATE TABLE customer (
    c_id INTEGER NOT NULL, c_d_id INTEGER NOT NULL, c_w_id INTEGER NOT NULL,
    c_first TEXT NOT NULL, c_middle TEXT NOT NULL, c_last TEXT NOT NULL,
    c_street_1 TEXT NOT NULL, c_street_2 TEXT NOT NULL, c_city TEXT NOT NULL,
    c_state TEXT NOT NULL, c_zip TEXT NOT NULL, c_phone TEXT NOT NULL, c_since INTEGER NOT NULL,
    c_credit TEXT NOT NULL, c_credit_lim INTEGER NOT NULL, c_discount INTEGER NOT NULL,
    c_balance INTEGER NOT NULL, c_ytd_payment INTEGER NOT NULL, c_payment_cnt INTEGER NOT NULL,
    c_delivery_cnt INTEGER NOT NULL, c_data TEXT NOT NULL);

CREATE TABLE history (
    h_c_id INTEGER NOT NULL, h_c_d_id INTEGER NOT NULL, h_c_w_id INTEGER NOT NULL,
    h_d_id INTEGER NOT NULL, h_w_id INTEGER NOT NULL, h_date INTEGER NOT NULL,
    h_amount INTEGER NOT NULL, h_data TEXT NOT NULL);

CREATE TABLE new_order (
    no_o_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, no_w_id INTEGER NOT NULL,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)) WITHOUT ROWID;

CREATE TABLE orders (
    o_id INTEGER NOT NULL, o_d_id INTEGER NOT NULL, o_w_id INTEGER NOT NULL,
    o_c_id INTEGER NOT NULL, o_entry_d INTEGER NOT NULL, o_carrier_id INTEGER,
    o_ol_cnt INTEGER NOT NULL, o_all_local INTEGER NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id)) WITHOUT ROWID;

CREATE TABLE order_line (
    ol_o_id INTEGER NOT NULL, ol_d_id INTEGER NOT NULL, ol_w_id INTEGER NOT NULL,
    ol_number INTEGER NOT NULL, ol_i_id INTEGER NOT NULL, ol_supply_w_id INTEGER NOT NULL,
    ol_delivery_d INTEGER, ol_quantity INTEGER NOT NULL, ol_amount INTEGER NOT NULL,
    ol_dist_info TEXT NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) WITHOUT ROWID;

CREATE TABLE item (
    i_id INTEGER PRIMARY KEY, i_im_id INTEGER NOT NULL, i_name TEXT NOT NULL,
    i_price INTEGER NOT NULL, i_data TEXT NOT NULL);

CREATE TABLE stock (
    s_i_id INTEGER NOT NULL, s_w_id INTEGER NOT NULL, s_quantity INTEGER NOT NULL,
    s_dist_01 TEXT NOT NULL, s_dist_02 TEXT NOT NULL, s_dist_03 TEXT NOT NULL,
    s_dist_04 TEXT NOT NULL, s_dist_05 TEXT NOT NULL, s_dist_06 TEXT NOT NULL,
    s_dist_07 TEXT NOT NULL, s_dist_08 TEXT NOT NULL, s_dist_09 TEXT NOT NULL,
    s_dist_10 TEXT NOT NULL, s_ytd INTEGER NOT NULL, s_order_cnt INTEGER NOT NULL,
    s_remote_cnt INTEGER NOT NULL, s_data TEXT NOT NULL);
";

/// Indexes, built after the load: the primary keys of the wide tables, customers by last name in
/// the order of first names (clauses 2.5.2.2 and 2.6.2.2), orders by customer (clause 2.6.2.2).
pub(crate) const INDEXES: [(&str, &str); 4] = [
    ("stock key", "CREATE UNIQUE INDEX stock_key ON stock (s_w_id, s_i_id)"),
    ("customer key", "CREATE UNIQUE INDEX customer_key ON customer (c_w_id, c_d_id, c_id)"),
    (
        "customers by name",
        "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    ),
    ("orders by customer", "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)"),
];
