//! Tables and indexes in MariaDB.
//!
//! Names are TPC-C's own (clause 1.3), ORDER is `orders`. Every table but the histories is clustered
//! by its primary key, as InnoDB does; the histories, which have no key by the specification, get
//! InnoDB's hidden one and grow at their end. Money is DECIMAL(12,2), rates are DECIMAL(4,4), dates
//! DATETIME(3) in UTC, texts latin1: the specification's strings are ASCII, and a fixed byte per
//! character keeps fixed columns fixed. No foreign keys: their checks would lock parent rows.
//! Secondary indexes are built after the load.

use crate::workload::{Dataset, Workload};

/// One table.
pub(super) struct Table {
    pub name: &'static str,
    /// Columns and keys.
    pub columns: &'static str,
    /// What is built after the load.
    pub indexes: &'static str,
}

/// What follows the columns of every table. Row statistics are gathered once, after the load: a
/// background recount in the middle of a run is a disturbance.
pub(super) const OPTIONS: &str =
    "ENGINE = InnoDB CHARACTER SET latin1 COLLATE latin1_bin STATS_AUTO_RECALC = 0";

pub(super) const META: &str =
    "CREATE TABLE wearmark_meta (name VARCHAR(64) PRIMARY KEY, value BIGINT NOT NULL)";

pub(super) fn tables(workload: Workload) -> &'static [Table] {
    match workload {
        Workload::OrderEntry => &ORDER_ENTRY,
        Workload::Bank => &BANK,
        Workload::Commit => &COMMIT,
    }
}

/// The statements that take away whatever an earlier load of ours left.
pub(super) fn drop_all(dataset: &Dataset) -> String {
    let mut sql = String::from("DROP TABLE IF EXISTS wearmark_meta");
    for table in tables(dataset.workload()) {
        sql.push_str(", ");
        sql.push_str(table.name);
    }
    for name in super::procedures::names(dataset.workload()) {
        sql.push_str("; DROP PROCEDURE IF EXISTS ");
        sql.push_str(name);
    }
    sql
}

const ORDER_ENTRY: [Table; 9] = [
    Table {
        name: "warehouse",
        columns: "w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL,
            w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL,
            w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL,
            PRIMARY KEY (w_id)",
        indexes: "",
    },
    Table {
        name: "district",
        columns: "d_id TINYINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL,
            d_street_1 VARCHAR(20) NOT NULL, d_street_2 VARCHAR(20) NOT NULL,
            d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL,
            d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL,
            PRIMARY KEY (d_w_id, d_id)",
        indexes: "",
    },
    Table {
        name: "customer",
        columns: "c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL,
            c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL,
            c_street_1 VARCHAR(20) NOT NULL, c_street_2 VARCHAR(20) NOT NULL,
            c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL,
            c_phone CHAR(16) NOT NULL, c_since DATETIME(3) NOT NULL, c_credit CHAR(2) NOT NULL,
            c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL,
            c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL,
            c_payment_cnt INT NOT NULL, c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL,
            PRIMARY KEY (c_w_id, c_d_id, c_id)",
        // In the order of first names (clauses 2.5.2.2 and 2.6.2.2).
        indexes: "ADD INDEX customer_name (c_w_id, c_d_id, c_last, c_first)",
    },
    Table {
        name: "history",
        columns: "h_c_id INT NOT NULL, h_c_d_id TINYINT NOT NULL, h_c_w_id INT NOT NULL,
            h_d_id TINYINT NOT NULL, h_w_id INT NOT NULL, h_date DATETIME(3) NOT NULL,
            h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL",
        indexes: "",
    },
    Table {
        name: "new_order",
        columns: "no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL,
            PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
        indexes: "",
    },
    Table {
        name: "orders",
        columns: "o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL,
            o_c_id INT NOT NULL, o_entry_d DATETIME(3) NOT NULL, o_carrier_id TINYINT,
            o_ol_cnt TINYINT NOT NULL, o_all_local TINYINT NOT NULL,
            PRIMARY KEY (o_w_id, o_d_id, o_id)",
        // A customer's last order (clause 2.6.2.2).
        indexes: "ADD INDEX orders_customer (o_w_id, o_d_id, o_c_id, o_id)",
    },
    Table {
        name: "order_line",
        columns: "ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL,
            ol_number TINYINT NOT NULL, ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL,
            ol_delivery_d DATETIME(3), ol_quantity TINYINT NOT NULL,
            ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL,
            PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
        indexes: "",
    },
    Table {
        name: "item",
        columns: "i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL,
            i_price DECIMAL(5,2) NOT NULL, i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)",
        indexes: "",
    },
    Table {
        name: "stock",
        columns: "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL,
            s_dist_01 CHAR(24) NOT NULL, s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL,
            s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL,
            s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
            s_dist_10 CHAR(24) NOT NULL, s_ytd INT NOT NULL, s_order_cnt INT NOT NULL,
            s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)",
        indexes: "",
    },
];

/// Rows have the specification's 100 and 50 bytes (TPC-B clause 3.2); balances are cents.
const BANK: [Table; 4] = [
    Table {
        name: "branches",
        columns: "bid INT NOT NULL, bbalance BIGINT NOT NULL, filler CHAR(84) NOT NULL,
            PRIMARY KEY (bid)",
        indexes: "",
    },
    Table {
        name: "tellers",
        columns: "tid INT NOT NULL, bid INT NOT NULL, tbalance BIGINT NOT NULL,
            filler CHAR(84) NOT NULL, PRIMARY KEY (tid)",
        indexes: "",
    },
    Table {
        name: "accounts",
        columns: "aid INT NOT NULL, bid INT NOT NULL, abalance BIGINT NOT NULL,
            filler CHAR(84) NOT NULL, PRIMARY KEY (aid)",
        indexes: "",
    },
    Table {
        name: "history",
        columns: "tid INT NOT NULL, bid INT NOT NULL, aid INT NOT NULL, delta BIGINT NOT NULL,
            mtime DATETIME(3) NOT NULL, filler CHAR(22) NOT NULL",
        indexes: "",
    },
];

const COMMIT: [Table; 1] = [Table {
    name: "commit_row",
    columns: "id INT NOT NULL, value BIGINT NOT NULL, filler CHAR(84) NOT NULL, PRIMARY KEY (id)",
    indexes: "",
}];
