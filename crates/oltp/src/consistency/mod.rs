//! What must hold in a database of each workload, whatever ran on it and whatever crashed.
//!
//! Order entry has the twelve conditions of TPC-C 5.11 clause 3.3.2, bank and commit a few of their
//! own. A condition is a list of queries that return a row for each violation: name and value in
//! turn, so that the row explains itself. The texts are here; the SQL of order entry is each DBMS's
//! own (null-safe comparison and temporary tables differ), that of bank and commit is the same for
//! all. All conditions of a workload are always reported.
//!
//! Condition 11 holds as written only before a run. After one (the database counts its runs) the
//! form checked is the one it generalises to: orders less new orders are the delivered orders, and
//! those are at least as many as were loaded.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::meta::Meta;
use crate::workload::Dataset;

/// Offending rows kept per condition.
pub(crate) const DETAIL_MAX: usize = 10;

/// What was found about one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionResult {
    /// Number among the workload's conditions, from 1.
    pub number: u32,
    /// Clause of the specification, such as `3.3.2.1`; the workload's name where it has none.
    pub clause: String,
    /// What must hold, one line.
    pub states: String,
    /// Whether it does.
    pub holds: bool,
    /// Rows that violate it.
    pub violations: u64,
    /// The first of these, with keys and both sides.
    pub detail: Vec<String>,
}

/// The twelve conditions of order entry, in the order of clause 3.3.2.
pub(crate) const ORDER_ENTRY_STATES: [&str; 12] = [
    "W_YTD = sum(D_YTD)",
    "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
    "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER in the district",
    "sum(O_OL_CNT) = rows of ORDER-LINE in the district",
    "O_CARRIER_ID is null if and only if the order has a NEW-ORDER row",
    "O_OL_CNT = rows of ORDER-LINE of the order",
    "OL_DELIVERY_D is null if and only if O_CARRIER_ID is null",
    "W_YTD = sum(H_AMOUNT)",
    "D_YTD = sum(H_AMOUNT)",
    "C_BALANCE = delivered OL_AMOUNT - sum(H_AMOUNT)",
    "rows of ORDER - rows of NEW-ORDER = orders delivered at load (before a run)",
    "C_BALANCE + C_YTD_PAYMENT = delivered OL_AMOUNT",
];

/// A condition as the queries that find its violations. `{before_runs}` stands for 1 or 0 and
/// `{loaded}` for the orders that each district had delivered at load.
pub(crate) struct Condition {
    pub number: u32,
    pub queries: &'static [&'static str],
}

const BANK: [(&str, &str); 4] = [
    (
        "balance of each branch = sum of its history",
        "SELECT 'bid', b.bid, 'bbalance', b.bbalance, 'history', coalesce(h.delta, 0) \
         FROM branches b LEFT JOIN (SELECT bid, sum(delta) AS delta FROM history GROUP BY bid) h \
         ON h.bid = b.bid WHERE b.bbalance <> coalesce(h.delta, 0)",
    ),
    (
        "balance of each teller = sum of its history",
        "SELECT 'tid', t.tid, 'tbalance', t.tbalance, 'history', coalesce(h.delta, 0) \
         FROM tellers t LEFT JOIN (SELECT tid, sum(delta) AS delta FROM history GROUP BY tid) h \
         ON h.tid = t.tid WHERE t.tbalance <> coalesce(h.delta, 0)",
    ),
    (
        "balance of each account = sum of its history",
        "SELECT 'aid', a.aid, 'abalance', a.abalance, 'history', coalesce(h.delta, 0) \
         FROM accounts a LEFT JOIN (SELECT aid, sum(delta) AS delta FROM history GROUP BY aid) h \
         ON h.aid = a.aid WHERE a.abalance <> coalesce(h.delta, 0)",
    ),
    (
        "every branch, teller and account is there",
        "SELECT 'branches', b, 'tellers', t, 'accounts', a FROM \
         (SELECT count(*) AS b FROM branches) x, (SELECT count(*) AS t FROM tellers) y, \
         (SELECT count(*) AS a FROM accounts) z \
         WHERE b <> {branches} OR t <> {tellers} OR a <> {accounts}",
    ),
];

const COMMIT: [(&str, &str); 1] = [(
    "every row is there",
    "SELECT 'rows', n, 'first', low, 'last', high FROM \
     (SELECT count(*) AS n, min(id) AS low, max(id) AS high FROM commit_row) x \
     WHERE n <> {rows} OR low <> 1 OR high <> {rows}",
)];

/// What a query found: how many rows, and the first [`DETAIL_MAX`] of them, each as one line.
pub(crate) type Found = (u64, Vec<String>);

/// Answers a query.
pub(crate) type Query<'a> = dyn FnMut(&str) -> Result<Found, Error> + 'a;

/// Checks every condition of a dataset; `order_entry` has that workload's queries in the dialect of
/// the DBMS that `query` asks.
pub(crate) fn check_all(
    meta: &Meta,
    order_entry: &[Condition],
    query: &mut Query<'_>,
) -> Result<Vec<ConditionResult>, Error> {
    let simple = |list: &[(&'static str, &str)], place: &dyn Fn(&str) -> String| {
        (1..).zip(list).map(|(number, (states, sql))| (number, *states, vec![place(sql)])).collect()
    };
    let all: Vec<(u32, &str, Vec<String>)> = match meta.dataset {
        Dataset::OrderEntry(scale) => {
            let place = |sql: &&str| {
                sql.replace("{before_runs}", if meta.runs == 0 { "1" } else { "0" })
                    .replace("{loaded}", &scale.delivered_per_district().to_string())
            };
            let queries = |condition: &Condition| condition.queries.iter().map(place).collect();
            let states = |condition: &Condition| ORDER_ENTRY_STATES[condition.number as usize - 1];
            order_entry.iter().map(|c| (c.number, states(c), queries(c))).collect()
        }
        Dataset::Bank(scale) => simple(&BANK, &|sql| {
            sql.replace("{branches}", &scale.branches.to_string())
                .replace("{tellers}", &scale.tellers().to_string())
                .replace("{accounts}", &scale.accounts().to_string())
        }),
        Dataset::Commit(scale) => {
            simple(&COMMIT, &|sql| sql.replace("{rows}", &scale.rows.to_string()))
        }
    };
    let mut results = Vec::new();
    for (number, states, queries) in all {
        let (mut violations, mut detail) = (0, Vec::new());
        for sql in &queries {
            let (count, first) = query(sql)?;
            violations += count;
            detail.extend(first);
        }
        detail.truncate(DETAIL_MAX);
        let clause = match meta.dataset {
            Dataset::OrderEntry(_) => format!("3.3.2.{number}"),
            _ => meta.dataset.workload().name().to_owned(),
        };
        let (states, holds) = (states.to_owned(), violations == 0);
        results.push(ConditionResult { number, clause, states, holds, violations, detail });
    }
    Ok(results)
}
