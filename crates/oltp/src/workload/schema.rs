//! The tables of all workloads: names, columns, keys and indexes, once for every DBMS.
//!
//! Order entry has TPC-C's own names (5.11 clause 1.3), as SQL can have them: the specification's
//! NEW-ORDER, ORDER and ORDER-LINE are `new_order`, `orders` (ORDER is a keyword) and `order_line`.
//! The bank's rows have the specification's 100 and 50 bytes (TPC-B 2.0 clause 3.2), so each has a
//! filler; its balances are cents. There are no foreign keys: the specifications do not ask the
//! DBMS to enforce them, and their checks would lock parent rows.
//!
//! A DBMS says which of its types each [`Type`] is, and what else it knows of a table (fill
//! factors, clustering). [`super::rows`] has the rows that a table starts with.

use super::Workload;
use super::own::OwnTable;

/// A table of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// CUSTOMER.
    Customer,
    /// HISTORY.
    History,
    /// NEW-ORDER.
    NewOrder,
    /// ORDER.
    Orders,
    /// ORDER-LINE.
    OrderLine,
    /// ITEM.
    Item,
    /// STOCK.
    Stock,
    /// The bank's BRANCH.
    Branches,
    /// The bank's TELLER.
    Tellers,
    /// The bank's ACCOUNT.
    Accounts,
    /// The bank's HISTORY.
    Transfers,
    /// The table of the commit workload.
    CommitRow,
    /// A table of an own workload.
    Own(OwnTable),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer up to 100.
    Tiny,
    /// An integer of 16 bits.
    Short,
    /// An integer of 32 bits.
    Int,
    /// An integer of 64 bits.
    Long,
    /// Cents, as a decimal of this many digits where the DBMS has them.
    Money(u32),
    /// Ten-thousandths, below 1.
    Rate,
    /// A date with milliseconds.
    Date,
    /// Text of a fixed length.
    Char(u32),
    /// Text of at most this length.
    Text(u32),
    /// The same, and rows are sought by it or sorted: compared by bytes, as the specification's
    /// ASCII means it.
    Name(u32),
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in SQL.
    pub name: &'static str,
    /// What it holds.
    pub holds: Type,
    /// Whether it may be null.
    pub nullable: bool,
}

/// What a table consists of.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its name in SQL.
    pub name: &'static str,
    /// Its columns, in the order of the specification.
    pub columns: &'static [Column],
    /// The columns of its primary key; empty where it has none.
    pub key: &'static str,
    /// Name and columns of its secondary index.
    pub index: Option<(&'static str, &'static str)>,
    /// Bytes of a row on its way into a DBMS, about.
    pub row_bytes: u64,
}

impl Table {
    /// Those of a workload, in the order of the specification.
    pub fn of(workload: Workload) -> &'static [Self] {
        match workload {
            Workload::OrderEntry => &Self::ORDER_ENTRY,
            Workload::Bank => &[Self::Branches, Self::Tellers, Self::Accounts, Self::Transfers],
            Workload::Commit => &[Self::CommitRow],
            Workload::Own(own) => own.tables(),
        }
    }

    /// The tables of order entry.
    pub const ORDER_ENTRY: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrder,
        Self::Orders,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
    ];

    /// What it consists of.
    pub fn definition(self) -> &'static Definition {
        let position = match self {
            Self::Own(table) => return &table.0.definition,
            built_in => Self::BUILT_IN.iter().position(|known| *known == built_in),
        };
        &DEFINITIONS[position.expect("every built-in table is listed")]
    }

    /// Those of the built-in workloads, in the order of their definitions.
    const BUILT_IN: [Self; 14] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrder,
        Self::Orders,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
        Self::Branches,
        Self::Tellers,
        Self::Accounts,
        Self::Transfers,
        Self::CommitRow,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Its columns as a DBMS declares them, given the types that it has.
    pub(crate) fn columns(self, types: impl Fn(Type) -> String) -> String {
        let declare = |column: &Column| {
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!("{} {}{null}", column.name, types(column.holds))
        };
        self.definition().columns.iter().map(declare).collect::<Vec<_>>().join(", ")
    }
}

/// Columns as name and kind, with `null` after those that may be null.
macro_rules! columns {
    ($($name:ident $kind:ident $(($length:literal))? $($null:ident)?),* $(,)?) => {
        &[$(Column {
            name: stringify!($name),
            holds: Type::$kind $(($length))?,
            nullable: columns!(@ $($null)?),
        }),*]
    };
    (@) => { false };
    (@ null) => { true };
}

/// In the order of [`Table`].
static DEFINITIONS: [Definition; 14] = [
    Definition {
        name: "warehouse",
        columns: columns! {
            w_id Int, w_name Text(10), w_street_1 Text(20), w_street_2 Text(20), w_city Text(20),
            w_state Char(2), w_zip Char(9), w_tax Rate, w_ytd Money(12),
        },
        key: "w_id",
        index: None,
        row_bytes: 150,
    },
    Definition {
        name: "district",
        columns: columns! {
            d_id Tiny, d_w_id Int, d_name Text(10), d_street_1 Text(20), d_street_2 Text(20),
            d_city Text(20), d_state Char(2), d_zip Char(9), d_tax Rate, d_ytd Money(12),
            d_next_o_id Int,
        },
        key: "d_w_id, d_id",
        index: None,
        row_bytes: 150,
    },
    Definition {
        name: "customer",
        columns: columns! {
            c_id Int, c_d_id Tiny, c_w_id Int, c_first Name(16), c_middle Char(2), c_last Name(16),
            c_street_1 Text(20), c_street_2 Text(20), c_city Text(20), c_state Char(2),
            c_zip Char(9), c_phone Char(16), c_since Date, c_credit Char(2), c_credit_lim Money(12),
            c_discount Rate, c_balance Money(12), c_ytd_payment Money(12), c_payment_cnt Int,
            c_delivery_cnt Int, c_data Text(500),
        },
        key: "c_w_id, c_d_id, c_id",
        // By last name, in the order of first names (clauses 2.5.2.2 and 2.6.2.2).
        index: Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
        row_bytes: 660,
    },
    Definition {
        name: "history",
        columns: columns! {
            h_c_id Int, h_c_d_id Tiny, h_c_w_id Int, h_d_id Tiny, h_w_id Int, h_date Date,
            h_amount Money(6), h_data Text(24),
        },
        key: "",
        index: None,
        row_bytes: 90,
    },
    Definition {
        name: "new_order",
        columns: columns! { no_o_id Int, no_d_id Tiny, no_w_id Int },
        key: "no_w_id, no_d_id, no_o_id",
        index: None,
        row_bytes: 26,
    },
    Definition {
        name: "orders",
        columns: columns! {
            o_id Int, o_d_id Tiny, o_w_id Int, o_c_id Int, o_entry_d Date, o_carrier_id Tiny null,
            o_ol_cnt Tiny, o_all_local Tiny,
        },
        key: "o_w_id, o_d_id, o_id",
        // A customer's last order (clause 2.6.2.2).
        index: Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
        row_bytes: 70,
    },
    Definition {
        name: "order_line",
        columns: columns! {
            ol_o_id Int, ol_d_id Tiny, ol_w_id Int, ol_number Tiny, ol_i_id Int, ol_supply_w_id Int,
            ol_delivery_d Date null, ol_quantity Tiny, ol_amount Money(6), ol_dist_info Char(24),
        },
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
        index: None,
        row_bytes: 115,
    },
    Definition {
        name: "item",
        columns: columns! {
            i_id Int, i_im_id Int, i_name Text(24), i_price Money(5), i_data Text(50),
        },
        key: "i_id",
        index: None,
        row_bytes: 105,
    },
    Definition {
        name: "stock",
        columns: columns! {
            s_i_id Int, s_w_id Int, s_quantity Short, s_dist_01 Char(24), s_dist_02 Char(24),
            s_dist_03 Char(24), s_dist_04 Char(24), s_dist_05 Char(24), s_dist_06 Char(24),
            s_dist_07 Char(24), s_dist_08 Char(24), s_dist_09 Char(24), s_dist_10 Char(24),
            s_ytd Int, s_order_cnt Int, s_remote_cnt Int, s_data Text(50),
        },
        key: "s_w_id, s_i_id",
        index: None,
        row_bytes: 400,
    },
    Definition {
        name: "branches",
        columns: columns! { bid Int, bbalance Long, filler Char(84) },
        key: "bid",
        index: None,
        row_bytes: 100,
    },
    Definition {
        name: "tellers",
        columns: columns! { tid Int, bid Int, tbalance Long, filler Char(84) },
        key: "tid",
        index: None,
        row_bytes: 100,
    },
    Definition {
        name: "accounts",
        columns: columns! { aid Int, bid Int, abalance Long, filler Char(84) },
        key: "aid",
        index: None,
        row_bytes: 100,
    },
    Definition {
        name: "history",
        columns: columns! { tid Int, bid Int, aid Int, delta Long, mtime Date, filler Char(22) },
        key: "",
        index: None,
        row_bytes: 50,
    },
    Definition {
        name: "commit_row",
        columns: columns! { id Int, value Long, filler Char(84) },
        key: "id",
        index: None,
        row_bytes: 100,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A definition is that of its table, and keys and indexes are of columns that are there.
    #[test]
    fn definitions_fit_their_tables() {
        let mut next = 0;
        for &table in Workload::ALL.iter().flat_map(|&workload| Table::of(workload)) {
            assert_eq!(table, Table::BUILT_IN[next], "{table:?}");
            next += 1;
            let name = match table {
                Table::Transfers => "history".to_owned(),
                _ => format!("{table:?}").to_lowercase(),
            };
            assert_eq!(table.name().replace('_', ""), name);
            let definition = table.definition();
            let known = |name: &str| definition.columns.iter().any(|column| column.name == name);
            let index = definition.index.map_or("", |(_, columns)| columns);
            let named = [definition.key, index].into_iter().flat_map(|list| list.split(", "));
            assert!(named.filter(|name| !name.is_empty()).all(known), "{table:?}");
        }
        assert_eq!(next, DEFINITIONS.len());
    }
}
