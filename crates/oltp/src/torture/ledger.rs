//! What a server has acknowledged, kept where its crash does not reach: in our memory.
//!
//! After each recovery the ledger asks the database. What must be there: every order that was
//! acknowledged, by its number; and of everything that can only be counted, at least as much as was
//! acknowledged, and at most that plus what was in flight at the kill, whose fate nobody knows.
//! What was in flight and survived is settled by that look: from then on it must stay.
//!
//! Pure but for the questions; tested with answers made up.

use std::collections::{BTreeMap, BTreeSet};

use crate::driver::{Outcome, Reply};
use crate::workload::Dataset;
use crate::workload::input::{Input, Request};
use crate::workload::own::OwnRequest;

/// Violations that are described; the others are counted.
const EXAMPLES_MAX: usize = 10;

/// One transaction's effects that were acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// An order: warehouse, district, number.
    Order(u32, u32, u32),
    /// A payment, or a transfer of the bank.
    History,
    /// This many orders were delivered.
    Delivered(u32),
    /// One was added to a row of the commit workload.
    Update(u32),
    /// A transaction of an own workload that can be asked for.
    Own(OwnRequest),
}

impl Fact {
    /// What the end of a transaction says.
    pub(super) fn of(input: &Input, outcome: Outcome, reply: &Reply) -> Option<Self> {
        if outcome == Outcome::RolledBack {
            return None;
        }
        match input.request {
            Request::NewOrder(order) => {
                Some(Self::Order(input.warehouse, order.district, reply.order))
            }
            Request::Payment { .. } | Request::Bank { .. } => Some(Self::History),
            Request::Delivery { .. } => {
                let delivered = reply.delivered.iter().filter(|&&order| order != 0).count();
                Some(Self::Delivered(delivered as u32))
            }
            Request::Commit { row } => Some(Self::Update(row)),
            Request::OrderStatus { .. } | Request::StockLevel { .. } => None,
            Request::Own(own) => own.program().kept.is_some().then_some(Self::Own(own)),
        }
    }
}

/// Asks the database for rows of integers.
pub(super) type Ask<'a, E> = dyn FnMut(&str) -> Result<Vec<Vec<i64>>, E> + 'a;

/// What a look at the recovered database found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Acknowledged effects that are missing.
    pub(super) lost: u64,
    /// Effects beyond what was acknowledged or in flight.
    pub(super) unasked: u64,
    /// Effects of transactions that were in flight and have survived.
    pub(super) survived: u64,
    /// The first violations in words.
    pub(super) examples: Vec<String>,
}

impl Look {
    fn violation(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(text());
        }
    }
}

/// The ledger of a torture.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Acknowledged orders of all cycles by (warehouse, district).
    orders: BTreeMap<(u32, u32), BTreeSet<u32>>,
    /// What was counted at the last look: orders, history rows, delivered orders.
    counted: BTreeMap<&'static str, u64>,
    /// Values of the commit workload's rows at the last look.
    rows: BTreeMap<u32, u64>,
    /// Acknowledged transactions of own workloads that can be asked for.
    own: Vec<OwnRequest>,
}

const ORDERS: &str = "SELECT count(*) FROM orders";
const HISTORY: &str = "SELECT count(*) FROM history";
const DELIVERED: &str = "SELECT count(*) FROM orders WHERE o_carrier_id IS NOT NULL";
const ROWS: &str = "SELECT id, value FROM commit_row WHERE value <> 0";

impl Ledger {
    /// The counts before anything runs.
    pub(super) fn open<E>(dataset: &Dataset, ask: &mut Ask<'_, E>) -> Result<Self, E> {
        let mut ledger = Self::default();
        ledger.look(dataset, &[], &[], ask)?;
        Ok(ledger)
    }

    /// Looks at the recovered database after one cycle: what was acknowledged in it, and the
    /// requests in flight at its end.
    pub(super) fn look<E>(
        &mut self,
        dataset: &Dataset,
        acknowledged: &[Fact],
        in_flight: &[Input],
        ask: &mut Ask<'_, E>,
    ) -> Result<Look, E> {
        let mut look = Look::default();
        let flying = |matches: fn(&Request) -> u64| -> u64 {
            in_flight.iter().map(|input| matches(&input.request)).sum()
        };
        let said = |of: fn(&Fact) -> u64| -> u64 { acknowledged.iter().map(of).sum() };
        match dataset {
            Dataset::OrderEntry(_) => {
                self.look_for_orders(acknowledged, &mut look, ask)?;
                // Those that are missing are counted by name already.
                let there = said(Fact::orders) - look.lost;
                let flown = flying(|request| u64::from(matches!(request, Request::NewOrder(_))));
                let orders = (there, flown);
                self.count(ORDERS, orders, &mut look, ask)?;
                let payments = flying(|r| u64::from(matches!(r, Request::Payment { .. })));
                self.count(HISTORY, (said(Fact::histories), payments), &mut look, ask)?;
                let delivered = flying(|r| u64::from(matches!(r, Request::Delivery { .. })) * 10);
                self.count(DELIVERED, (said(Fact::delivered), delivered), &mut look, ask)?;
            }
            Dataset::Bank(_) => {
                let flying = in_flight.len() as u64;
                self.count(HISTORY, (said(Fact::histories), flying), &mut look, ask)?;
            }
            Dataset::Commit(_) => self.look_at_rows(acknowledged, in_flight, &mut look, ask)?,
            Dataset::Own(_) => self.look_for_own(acknowledged, in_flight, &mut look, ask)?,
        }
        Ok(look)
    }

    /// Looks once more for every order of every cycle.
    pub(super) fn look_again<E>(&self, ask: &mut Ask<'_, E>) -> Result<Look, E> {
        let mut look = Look::default();
        Self::missing(&self.orders, &mut look, ask)?;
        Self::gone(&self.own, &mut look, ask)?;
        Ok(look)
    }

    fn look_for_own<E>(
        &mut self,
        acknowledged: &[Fact],
        in_flight: &[Input],
        look: &mut Look,
        ask: &mut Ask<'_, E>,
    ) -> Result<(), E> {
        let fresh: Vec<OwnRequest> = acknowledged
            .iter()
            .filter_map(|fact| match fact {
                Fact::Own(request) => Some(*request),
                _ => None,
            })
            .collect();
        Self::gone(&fresh, look, ask)?;
        self.own.extend(fresh);
        for input in in_flight {
            if let Request::Own(request) = &input.request
                && let Some((sql, _)) = request.program().kept_query(request)
            {
                look.survived += u64::from(!ask(&sql)?.is_empty());
            }
        }
        Ok(())
    }

    /// Asks for every transaction by the query of its kind.
    fn gone<E>(wanted: &[OwnRequest], look: &mut Look, ask: &mut Ask<'_, E>) -> Result<(), E> {
        for request in wanted {
            let Some((sql, shown)) = request.program().kept_query(request) else { continue };
            if ask(&sql)?.is_empty() {
                look.lost += 1;
                let name = request.kind().name();
                look.violation(|| format!("{name} with {shown} was acknowledged and is gone"));
            }
        }
        Ok(())
    }

    fn look_for_orders<E>(
        &mut self,
        acknowledged: &[Fact],
        look: &mut Look,
        ask: &mut Ask<'_, E>,
    ) -> Result<(), E> {
        let mut fresh: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
        for fact in acknowledged {
            if let Fact::Order(warehouse, district, order) = *fact
                && !fresh.entry((warehouse, district)).or_default().insert(order)
            {
                look.unasked += 1;
                look.violation(|| {
                    let place = format!("warehouse {warehouse}, district {district}");
                    format!("order {order} of {place} was acknowledged twice")
                });
            }
        }
        Self::missing(&fresh, look, ask)?;
        for (district, orders) in fresh {
            self.orders.entry(district).or_default().extend(orders);
        }
        Ok(())
    }

    fn missing<E>(
        orders: &BTreeMap<(u32, u32), BTreeSet<u32>>,
        look: &mut Look,
        ask: &mut Ask<'_, E>,
    ) -> Result<(), E> {
        for ((warehouse, district), wanted) in orders {
            let Some(first) = wanted.first() else { continue };
            let rows = ask(&format!(
                "SELECT o_id FROM orders WHERE o_w_id = {warehouse} AND o_d_id = {district} \
                 AND o_id >= {first}"
            ))?;
            let there: BTreeSet<u32> =
                rows.iter().filter_map(|row| row.first()).map(|&order| order as u32).collect();
            for order in wanted.difference(&there) {
                look.lost += 1;
                look.violation(|| {
                    format!(
                        "order {order} of warehouse {warehouse}, district {district} was \
                         acknowledged and is gone"
                    )
                });
            }
        }
        Ok(())
    }

    /// Compares how much a count has grown with what was acknowledged and in flight.
    fn count<E>(
        &mut self,
        sql: &'static str,
        (acknowledged, flying): (u64, u64),
        look: &mut Look,
        ask: &mut Ask<'_, E>,
    ) -> Result<(), E> {
        let now = ask(sql)?.first().and_then(|row| row.first().copied()).unwrap_or(0) as u64;
        let Some(before) = self.counted.insert(sql, now) else { return Ok(()) };
        compare(sql, (before, now), (acknowledged, flying), look);
        Ok(())
    }

    fn look_at_rows<E>(
        &mut self,
        acknowledged: &[Fact],
        in_flight: &[Input],
        look: &mut Look,
        ask: &mut Ask<'_, E>,
    ) -> Result<(), E> {
        let mut expected: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for fact in acknowledged {
            if let Fact::Update(row) = fact {
                expected.entry(*row).or_default().0 += 1;
            }
        }
        for input in in_flight {
            if let Request::Commit { row } = input.request {
                expected.entry(row).or_default().1 += 1;
            }
        }
        let now: BTreeMap<u32, u64> = ask(ROWS)?
            .iter()
            .filter_map(|row| Some((*row.first()? as u32, *row.get(1)? as u64)))
            .collect();
        let all: BTreeSet<u32> =
            self.rows.keys().chain(now.keys()).chain(expected.keys()).copied().collect();
        for row in all {
            let value = |of: &BTreeMap<u32, u64>| of.get(&row).copied().unwrap_or(0);
            let bounds = expected.get(&row).copied().unwrap_or_default();
            compare(&format!("row {row}"), (value(&self.rows), value(&now)), bounds, look);
        }
        self.rows = now;
        Ok(())
    }
}

/// Judges one count: before and now, acknowledged and in flight.
fn compare(
    what: &str,
    (before, now): (u64, u64),
    (acknowledged, flying): (u64, u64),
    look: &mut Look,
) {
    let least = before + acknowledged;
    if now < least {
        look.lost += least - now;
        look.violation(|| format!("{what}: {now}, at least {least} were acknowledged"));
    } else if now > least + flying {
        look.unasked += now - least - flying;
        look.violation(|| format!("{what}: {now}, at most {} were asked for", least + flying));
    } else {
        look.survived += now - least;
    }
}

impl Fact {
    fn orders(&self) -> u64 {
        u64::from(matches!(self, Self::Order(..)))
    }

    fn histories(&self) -> u64 {
        u64::from(matches!(self, Self::History))
    }

    fn delivered(&self) -> u64 {
        if let Self::Delivered(orders) = self { u64::from(*orders) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::Scale;
    use crate::workload::commit::CommitScale;

    const SHOP: fn() -> Dataset = || Dataset::OrderEntry(Scale::miniature(1));
    const ROWS_OF_ONE: Dataset = Dataset::Commit(CommitScale { rows: 9 });

    /// Looks with made-up counts of orders, history and delivered orders, and orders 5 to 7.
    fn look(ledger: &mut Ledger, facts: &[Fact], flying: &[Input], counts: [i64; 3]) -> Look {
        let mut ask = |sql: &str| -> Result<Vec<Vec<i64>>, Infallible> {
            Ok(match sql {
                ORDERS => vec![vec![counts[0]]],
                HISTORY => vec![vec![counts[1]]],
                DELIVERED => vec![vec![counts[2]]],
                _ => vec![vec![5], vec![6], vec![7]],
            })
        };
        ledger.look(&SHOP(), facts, flying, &mut ask).unwrap()
    }

    fn delivery() -> Input {
        Input { warehouse: 1, request: Request::Delivery { carrier: 1 } }
    }

    #[test]
    fn what_was_acknowledged_must_be_there() {
        let mut ledger = Ledger::default();
        look(&mut ledger, &[], &[], [10, 20, 3]);
        let facts = [Fact::Order(1, 1, 5), Fact::Order(1, 1, 6), Fact::History, Fact::Delivered(2)];
        assert_eq!(look(&mut ledger, &facts, &[], [12, 21, 5]), Look::default());
        let gone = look(&mut ledger, &[Fact::Order(1, 1, 8), Fact::History], &[], [12, 21, 5]);
        assert_eq!((gone.lost, gone.unasked, gone.examples.len()), (2, 0, 2));
        assert!(gone.examples[0].contains("order 8"), "{gone:?}");
        let again =
            ledger.look_again(&mut |_: &str| Ok::<_, Infallible>(vec![vec![5], vec![8]])).unwrap();
        assert_eq!((again.lost, again.examples.len()), (1, 1));
    }

    #[test]
    fn what_was_in_flight_may_be_there_and_then_must_stay() {
        let mut ledger = Ledger::default();
        look(&mut ledger, &[], &[], [10, 20, 3]);
        let survived = look(&mut ledger, &[], &[delivery()], [10, 20, 13]);
        assert_eq!((survived.lost, survived.survived, survived.unasked), (0, 10, 0));
        assert_eq!(look(&mut ledger, &[], &[], [10, 20, 12]).lost, 1);
        assert_eq!(look(&mut ledger, &[], &[delivery()], [11, 20, 23]).unasked, 2);
    }

    #[test]
    fn an_order_number_is_given_once() {
        let mut ledger = Ledger::default();
        look(&mut ledger, &[], &[], [10, 0, 0]);
        let twice = look(&mut ledger, &[Fact::Order(1, 1, 5); 2], &[], [12, 0, 0]);
        assert_eq!((twice.lost, twice.unasked), (0, 1));
    }

    #[test]
    fn rows_count_their_updates_one_by_one() {
        let mut ledger = Ledger::default();
        let mut look = |facts: &[Fact], flying: &[Input], rows: &[[i64; 2]]| {
            let rows: Vec<Vec<i64>> = rows.iter().map(|row| row.to_vec()).collect();
            let mut ask = |_: &str| Ok::<_, Infallible>(rows.clone());
            ledger.look(&ROWS_OF_ONE, facts, flying, &mut ask).unwrap()
        };
        let flying = [Input { warehouse: 0, request: Request::Commit { row: 2 } }];
        let first = look(&[Fact::Update(1), Fact::Update(1)], &flying, &[[1, 2], [2, 1]]);
        assert_eq!((first.lost, first.survived, first.unasked), (0, 1, 0));
        let second = look(&[Fact::Update(3)], &[], &[[1, 1], [2, 1], [4, 1]]);
        assert_eq!((second.lost, second.unasked), (2, 1));
    }
}
