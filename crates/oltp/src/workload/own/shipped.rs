//! The workloads that ship, as they stand in `workloads/`.

/// The files of a workload: name and text.
pub(super) type Texts = &'static [(&'static str, &'static str)];

macro_rules! texts {
    ($name:literal: $($file:literal),+ $(,)?) => {
        ($name, &[
            $(($file, include_str!(concat!("../../../../../workloads/", $name, "/", $file)))),+
        ])
    };
}

/// All of them.
pub(super) const ALL: &[(&str, Texts)] = &[
    texts!("ycsb": "workload.toml", "schema.sql", "read.sql", "update.sql", "insert.sql",
           "scan.sql", "latest.sql", "modify.sql"),
    texts!("web-shop": "workload.toml", "schema.sql", "after-load.sql", "browse.sql", "search.sql",
           "orders.sql", "checkout.sql", "restock.sql", "sold.sql", "totals.sql"),
    texts!("pgbench": "workload.toml", "schema.sql", "tpcb-like.sql", "branches.sql",
           "accounts.sql"),
];
