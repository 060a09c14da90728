//! What must hold in a database of each workload, whatever ran on it and whatever crashed.
//!
//! Order entry has the twelve conditions of TPC-C 5.11 clause 3.3.2 and five for what those leave
//! out, bank and commit a few of their own. A condition is a list of queries that return a row for
//! each violation: name and value in turn, so that the row explains itself. Their SQL is the same
//! for every DBMS; only how a temporary table is made differs. All conditions of a workload are
//! always reported.
//!
//! Condition 11 holds as written only before a run. After one (the database counts its runs) the
//! form checked is the one it generalises to: orders less new orders are the delivered orders, and
//! those are at least as many as were loaded.

mod order_entry;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::meta::Meta;
use crate::workload::Dataset;
use crate::workload::own::{Dialect, Own};
use crate::workload::population::Population;

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

/// What must hold, and the queries that find what violates it.
type Condition = (&'static str, &'static [&'static str]);

const BANK: [Condition; 4] = [
    (
        "balance of each branch = sum of its history",
        &["SELECT 'bid', b.bid, 'bbalance', b.bbalance, 'history', coalesce(h.delta, 0) \
           FROM branches b LEFT JOIN (SELECT bid, sum(delta) AS delta FROM history GROUP BY bid) h \
           ON h.bid = b.bid WHERE b.bbalance <> coalesce(h.delta, 0)"],
    ),
    (
        "balance of each teller = sum of its history",
        &["SELECT 'tid', t.tid, 'tbalance', t.tbalance, 'history', coalesce(h.delta, 0) \
           FROM tellers t LEFT JOIN (SELECT tid, sum(delta) AS delta FROM history GROUP BY tid) h \
           ON h.tid = t.tid WHERE t.tbalance <> coalesce(h.delta, 0)"],
    ),
    (
        "balance of each account = sum of its history",
        &["SELECT 'aid', a.aid, 'abalance', a.abalance, 'history', coalesce(h.delta, 0) \
           FROM accounts a LEFT JOIN (SELECT aid, sum(delta) AS delta FROM history GROUP BY aid) h \
           ON h.aid = a.aid WHERE a.abalance <> coalesce(h.delta, 0)"],
    ),
    (
        "every branch, teller and account is there",
        &["SELECT 'branches', b, 'tellers', t, 'accounts', a FROM \
           (SELECT count(*) AS b FROM branches) x, (SELECT count(*) AS t FROM tellers) y, \
           (SELECT count(*) AS a FROM accounts) z \
           WHERE b <> {branches} OR t <> {tellers} OR a <> {accounts}"],
    ),
];

const COMMIT: [Condition; 1] = [(
    "every row is there",
    &["SELECT 'rows', n, 'first', low, 'last', high FROM \
       (SELECT count(*) AS n, min(id) AS low, max(id) AS high FROM commit_row) x \
       WHERE n <> {rows} OR low <> 1 OR high <> {rows}"],
)];

/// What a query found: how many rows, and the first [`DETAIL_MAX`] of them, each as one line.
pub(crate) type Found = (u64, Vec<String>);

/// Answers a query.
pub(crate) type Query<'a> = dyn FnMut(&str) -> Result<Found, Error> + 'a;

/// The statements that make the temporary tables of a database's conditions, where they need any;
/// `create` is how the DBMS makes `{table}` of a query.
pub(crate) fn sums(meta: &Meta, create: &str) -> Option<String> {
    let values = values(meta);
    let make =
        |(name, query)| format!("{} {}", create.replace("{table}", name), place(query, &values));
    let all = || order_entry::SUMS.map(make).join("; ");
    matches!(meta.dataset, Dataset::OrderEntry(_)).then(all)
}

/// What stands in the place of names in queries.
type Values = Vec<(&'static str, u64)>;

fn values(meta: &Meta) -> Values {
    match meta.dataset {
        Dataset::OrderEntry(scale) => {
            let population = Population::new(scale, meta.seed);
            let (mut images, mut prices, mut texts) = (0, 0, 0);
            for item in (1..=scale.items).map(|item| population.item(item)) {
                images += u64::from(item.image);
                prices += u64::from(item.price);
                texts += (item.name.as_str().len() + item.data.as_str().len()) as u64;
            }
            let (warehouses, items) = (u64::from(scale.warehouses), u64::from(scale.items));
            let districts = warehouses * u64::from(scale.districts);
            vec![
                ("{loaded}", u64::from(scale.delivered_per_district())),
                ("{orders}", u64::from(scale.orders_per_district())),
                ("{before_runs}", u64::from(meta.runs == 0)),
                ("{warehouses}", warehouses),
                ("{districts}", districts),
                ("{customers}", districts * u64::from(scale.customers_per_district)),
                ("{stock}", warehouses * items),
                ("{items}", items),
                ("{images}", images),
                ("{prices}", prices),
                ("{texts}", texts),
            ]
        }
        Dataset::Bank(scale) => vec![
            ("{branches}", u64::from(scale.branches)),
            ("{tellers}", u64::from(scale.tellers())),
            ("{accounts}", u64::from(scale.accounts())),
        ],
        Dataset::Commit(scale) => vec![("{rows}", u64::from(scale.rows))],
        Dataset::Own(_) => Vec::new(),
    }
}

/// `sql` with the values in the places of their names.
fn place(sql: &str, values: &Values) -> String {
    let put = |sql: String, (name, value): &(&str, u64)| sql.replace(name, &value.to_string());
    values.iter().fold(sql.to_owned(), put)
}

/// Checks the invariants of an own workload.
fn check_own(
    own: Own,
    dialect: Dialect,
    query: &mut Query<'_>,
) -> Result<Vec<ConditionResult>, Error> {
    let each = (1..).zip(&own.body()?.invariants).map(|(number, invariant)| {
        let (violations, mut detail) = query(&invariant.sql[dialect as usize])?;
        detail.truncate(DETAIL_MAX);
        let (clause, states) = (own.name().to_owned(), invariant.states.clone());
        let holds = violations == 0;
        Ok(ConditionResult { number, clause, states, holds, violations, detail })
    });
    each.collect()
}

/// Checks every condition of a dataset, once its [`sums`] are there.
pub(crate) fn check_all(
    meta: &Meta,
    dialect: Dialect,
    query: &mut Query<'_>,
) -> Result<Vec<ConditionResult>, Error> {
    if let Dataset::Own(own) = meta.dataset {
        return check_own(own, dialect, query);
    }
    let conditions: &[Condition] = match meta.dataset {
        Dataset::OrderEntry(_) => &order_entry::CONDITIONS,
        Dataset::Bank(_) => &BANK,
        Dataset::Commit(_) => &COMMIT,
        Dataset::Own(_) => &[],
    };
    let values = values(meta);
    let mut results = Vec::new();
    for (number, (states, queries)) in (1..).zip(conditions) {
        let (mut violations, mut detail) = (0, Vec::new());
        for sql in *queries {
            let (count, first) = query(&place(sql, &values))?;
            violations += count;
            detail.extend(first);
        }
        detail.truncate(DETAIL_MAX);
        let clause = match meta.dataset {
            Dataset::OrderEntry(_) if number <= order_entry::SPECIFIED => {
                format!("3.3.2.{number}")
            }
            _ => meta.dataset.workload().name().to_owned(),
        };
        let (states, holds) = ((*states).to_owned(), violations == 0);
        results.push(ConditionResult { number, clause, states, holds, violations, detail });
    }
    Ok(results)
}
