//! The input audit of every run (TPC-C 5.11 clauses 5.5.1.5 and 9.2.2.5): did the generator ask for
//! what it should have?
//!
//! Counted are the inputs of every transaction that was begun, warm-up included: by Wald's identity
//! the shares of a kind are then unbiased whatever time the transactions took, which those of the
//! completed ones are not.
//!
//! A check passes where the observed figure lies in the specification's band, or where a correct
//! generator would stray as far by chance at least once in a million runs: by the exact binomial
//! tail for shares, the normal one for the mean, Pearson's chi-square for distributions. Short runs
//! are thus not failed for their length, and the larger the run the more a wrong one shows.

use serde::{Deserialize, Serialize};

use crate::workload::bank::BankScale;
use crate::workload::input::{Input, Inputs, Request, Who};
use crate::workload::nurand::NuRand;
use crate::workload::own::OwnInputs;
use crate::workload::{Kind, Source};

/// How improbable an observation must be under a correct generator to fail its check.
pub const ALPHA: f64 = 1e-6;

/// All checks of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Whether every applicable check passed.
    pub passed: bool,
    /// The checks.
    pub checks: Vec<AuditCheck>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditCheck {
    /// What was checked, such as `rollback_share`.
    pub name: String,
    /// The figure found: a share, a mean, or a chi-square statistic per degree of freedom.
    pub observed: f64,
    /// What a perfect generator has in the long run.
    pub expected: f64,
    /// The specification's band; none where it has none.
    pub band: Option<(f64, f64)>,
    /// Observations that the figure rests on.
    pub count: u64,
    /// Chance that a correct generator strays at least as far (two-sided).
    pub tail_probability: f64,
    /// Whether it passed.
    pub passed: bool,
}

/// Counts of the inputs that were given to workers.
#[derive(Clone, Debug)]
pub enum Tally {
    /// Of order entry.
    OrderEntry(Box<OrderTally>),
    /// Of bank.
    Bank(BankTally),
    /// Of commit: nothing is drawn but a uniform row.
    Commit,
    /// Of an own workload: requests of each kind.
    Own(Vec<u64>),
}

/// Counts of order entry's inputs.
#[derive(Clone, Debug)]
pub struct OrderTally {
    kinds: [u64; 5],
    rollbacks: u64,
    rolled_back: u64,
    lines_of_orders: [u64; 16],
    remote_lines: u64,
    remote_payments: u64,
    by_name: u64,
    customers_sought: u64,
    names: Counts,
    customers: Counts,
    items: Counts,
}

/// Counts of bank's inputs.
#[derive(Clone, Debug)]
pub struct BankTally {
    scale: BankScale,
    transfers: u64,
    elsewhere: u64,
    /// Transfers of each teller; those of a bank of more than [`TELLERS_COUNTED`] are not counted.
    tellers: Vec<u32>,
}

/// Most tellers whose transfers are counted one by one.
const TELLERS_COUNTED: u32 = 10_000;

/// How often each value of a skewed distribution was drawn.
#[derive(Clone, Debug)]
struct Counts {
    low: u32,
    counts: Vec<u32>,
}

impl Counts {
    fn new(nurand: &NuRand) -> Self {
        let (low, high) = nurand.range();
        Self { low, counts: vec![0; (high - low + 1) as usize] }
    }

    #[inline]
    fn add(&mut self, value: u32) {
        // An unused item number lies outside on purpose.
        let index = value.wrapping_sub(self.low) as usize;
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
    }
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(source: &Source) -> Self {
        match source {
            Source::OrderEntry(inputs) => Self::OrderEntry(Box::new(OrderTally::new(inputs))),
            Source::Bank(inputs) => Self::Bank(BankTally::new(*inputs.scale())),
            Source::Commit(_) => Self::Commit,
            Source::Own(inputs) => Self::Own(vec![0; inputs.own().kinds().len()]),
        }
    }

    /// Counts one input that is about to be executed.
    pub fn observe(&mut self, input: &Input) {
        match self {
            Self::OrderEntry(tally) => tally.observe(input),
            Self::Bank(tally) => tally.observe(input),
            Self::Commit => {}
            Self::Own(kinds) => kinds[input.kind().code()] += 1,
        }
    }

    /// Counts a New-Order that the DBMS really rolled back.
    pub fn rolled_back(&mut self) {
        if let Self::OrderEntry(tally) = self {
            tally.rolled_back += 1;
        }
    }

    /// Takes a rollback off the intended ones whose transaction was given up.
    pub fn gave_up(&mut self, input: &Input) {
        if let (Self::OrderEntry(tally), Request::NewOrder(order)) = (self, &input.request)
            && order.rolls_back
        {
            tally.rollbacks -= 1;
        }
    }

    /// Adds other counts of the same workload.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::OrderEntry(a), Self::OrderEntry(b)) => a.merge(b),
            (Self::Bank(a), Self::Bank(b)) => a.merge(b),
            (Self::Own(a), Self::Own(b)) => a.iter_mut().zip(b).for_each(|(a, b)| *a += b),
            _ => {}
        }
    }

    /// Checks the counts against what `source` should have drawn.
    pub fn audit(&self, source: &Source) -> Audit {
        let checks = match (self, source) {
            (Self::OrderEntry(tally), Source::OrderEntry(inputs)) => tally.checks(inputs),
            (Self::Bank(tally), _) => tally.checks(),
            (Self::Own(kinds), Source::Own(inputs)) => own_mix(kinds, inputs),
            _ => Vec::new(),
        };
        Audit { passed: checks.iter().all(|check| check.passed), checks }
    }
}

/// The mix of an own workload, where it stays the same.
fn own_mix(kinds: &[u64], inputs: &OwnInputs) -> Vec<AuditCheck> {
    let all = kinds.iter().sum();
    let each = inputs.own().kinds().iter().zip(kinds).filter_map(|(kind, &count)| {
        let expected = inputs.share(*kind)?;
        Some(share(&format!("mix_{}", kind.name()), count, all, expected, None))
    });
    each.collect()
}

impl BankTally {
    fn new(scale: BankScale) -> Self {
        let tellers = if scale.tellers() <= TELLERS_COUNTED { scale.tellers() } else { 0 };
        Self { scale, transfers: 0, elsewhere: 0, tellers: vec![0; tellers as usize] }
    }

    fn observe(&mut self, input: &Input) {
        let Request::Bank { account, teller, branch, .. } = input.request else { return };
        self.transfers += 1;
        self.elsewhere += u64::from(self.scale.branch_of_account(account) != branch);
        if let Some(count) = self.tellers.get_mut(teller as usize - 1) {
            *count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.elsewhere += other.elsewhere;
        self.tellers.iter_mut().zip(&other.tellers).for_each(|(a, b)| *a += b);
    }

    fn checks(&self) -> Vec<AuditCheck> {
        let expected = if self.scale.branches > 1 { 0.15 } else { 0.0 };
        let mut checks =
            vec![share("other_branch_share", self.elsewhere, self.transfers, expected, None)];
        if !self.tellers.is_empty() {
            let each = 1.0 / self.tellers.len() as f64;
            let probabilities = vec![each; self.tellers.len()];
            checks.push(distribution("tellers_uniform", &self.tellers, &probabilities));
        }
        checks
    }
}

impl OrderTally {
    fn new(inputs: &Inputs) -> Self {
        Self {
            kinds: [0; 5],
            rollbacks: 0,
            rolled_back: 0,
            lines_of_orders: [0; 16],
            remote_lines: 0,
            remote_payments: 0,
            by_name: 0,
            customers_sought: 0,
            names: Counts::new(&inputs.names),
            customers: Counts::new(&inputs.customers),
            items: Counts::new(&inputs.items),
        }
    }

    fn observe(&mut self, input: &Input) {
        match &input.request {
            Request::NewOrder(order) => {
                self.rollbacks += u64::from(order.rolls_back);
                self.lines_of_orders[order.count] += 1;
                self.customers.add(order.customer);
                for line in order.lines() {
                    self.remote_lines += u64::from(line.supply != input.warehouse);
                    self.items.add(line.item);
                }
            }
            Request::Payment { customer_warehouse, who, .. } => {
                self.remote_payments += u64::from(*customer_warehouse != input.warehouse);
                self.sought(*who);
            }
            Request::OrderStatus { who, .. } => self.sought(*who),
            Request::Delivery { .. } | Request::StockLevel { .. } => {}
            Request::Bank { .. } | Request::Commit { .. } | Request::Own(_) => return,
        }
        self.kinds[input.kind().code()] += 1;
    }

    fn sought(&mut self, who: Who) {
        self.customers_sought += 1;
        match who {
            Who::Id(customer) => self.customers.add(customer),
            Who::LastName(number) => {
                self.by_name += 1;
                self.names.add(number);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |a: &mut [u64], b: &[u64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.kinds, &other.kinds);
        add(&mut self.lines_of_orders, &other.lines_of_orders);
        self.rollbacks += other.rollbacks;
        self.rolled_back += other.rolled_back;
        self.remote_lines += other.remote_lines;
        self.remote_payments += other.remote_payments;
        self.by_name += other.by_name;
        self.customers_sought += other.customers_sought;
        self.names.merge(&other.names);
        self.customers.merge(&other.customers);
        self.items.merge(&other.items);
    }

    fn checks(&self, inputs: &Inputs) -> Vec<AuditCheck> {
        let mut checks = self.spec_checks(inputs);
        let all: u64 = self.kinds.iter().sum();
        for kind in Kind::ORDER_ENTRY {
            let name = format!("mix_{}", kind.name());
            let expected = inputs.mix().share(kind);
            checks.push(share(&name, self.kinds[kind.code()], all, expected, None));
        }
        for (name, counts, nurand) in [
            ("nurand_last_name", &self.names, &inputs.names),
            ("nurand_customer", &self.customers, &inputs.customers),
            ("nurand_item", &self.items, &inputs.items),
        ] {
            checks.push(distribution(name, &counts.counts, &nurand.probabilities()));
        }
        checks
    }

    /// The checks of clause 5.5.1.5.
    fn spec_checks(&self, inputs: &Inputs) -> Vec<AuditCheck> {
        let orders = self.kinds[Kind::NewOrder.code()];
        let lines: u64 = (0..).zip(&self.lines_of_orders).map(|(n, count)| n * count).sum();
        let mut checks = vec![
            share("rollback_share", self.rollbacks, orders, 0.01, Some((0.009, 0.011))),
            executed_rollbacks(self.rollbacks, self.rolled_back),
            mean_lines(lines, orders),
            distribution("lines_uniform", &narrow(&self.lines_of_orders[5..]), &[1.0 / 11.0; 11]),
            share("by_name_share", self.by_name, self.customers_sought, 0.6, Some((0.57, 0.63))),
        ];
        if inputs.scale().warehouses > 1 {
            let payments = self.kinds[Kind::Payment.code()];
            let band = Some((0.0095, 0.0105));
            checks.push(share("remote_line_share", self.remote_lines, lines, 0.01, band));
            let band = Some((0.14, 0.16));
            checks.push(share("remote_payment_share", self.remote_payments, payments, 0.15, band));
        }
        checks
    }
}

fn narrow(counts: &[u64]) -> Vec<u32> {
    counts.iter().map(|&count| u32::try_from(count).unwrap_or(u32::MAX)).collect()
}

/// A share of `count` observations against its band and the exact binomial tail.
fn share(name: &str, hits: u64, count: u64, expected: f64, band: Option<(f64, f64)>) -> AuditCheck {
    let observed = if count == 0 { expected } else { hits as f64 / count as f64 };
    let tail_probability = binomial_tail(hits, count, expected);
    let inside = band.is_some_and(|(low, high)| (low..=high).contains(&observed));
    AuditCheck {
        name: name.to_owned(),
        observed,
        expected,
        band,
        count,
        tail_probability,
        passed: inside || tail_probability >= ALPHA,
    }
}

/// Mean lines of an order: 10, with variance (11^2 - 1) / 12 = 10 per order.
fn mean_lines(lines: u64, orders: u64) -> AuditCheck {
    let band = (9.5, 10.5);
    let observed = if orders == 0 { 10.0 } else { lines as f64 / orders as f64 };
    let z = (observed - 10.0) / (10.0 / orders.max(1) as f64).sqrt();
    // Two-sided normal tail: a chi-square variable of one degree of freedom is z squared.
    let tail_probability = stats::chi_square::p_value(z * z, 1);
    AuditCheck {
        name: "lines_mean".to_owned(),
        observed,
        expected: 10.0,
        band: Some(band),
        count: orders,
        tail_probability,
        passed: (band.0..=band.1).contains(&observed) || tail_probability >= ALPHA,
    }
}

/// Every order that should roll back did, and no other. Transactions cut off at the end of a run
/// are counted by neither side.
fn executed_rollbacks(intended: u64, executed: u64) -> AuditCheck {
    AuditCheck {
        name: "rollbacks_executed".to_owned(),
        observed: executed as f64,
        expected: intended as f64,
        band: None,
        count: intended,
        tail_probability: f64::from(u8::from(intended == executed)),
        passed: intended == executed,
    }
}

/// Counts of a distribution's values against their exact probabilities.
fn distribution(name: &str, counts: &[u32], probabilities: &[f64]) -> AuditCheck {
    let (observed, expected) = merge_rare(counts, probabilities);
    let test = stats::chi_square::test(&observed, &expected);
    let count: u64 = observed.iter().sum();
    let enough = observed.len() > 1;
    AuditCheck {
        name: name.to_owned(),
        observed: if enough { test.statistic / test.degrees.max(1) as f64 } else { 1.0 },
        expected: 1.0,
        band: None,
        count,
        tail_probability: if enough { test.p_value } else { 1.0 },
        passed: !enough || test.p_value >= ALPHA,
    }
}

/// Chance of a chi-square statistic at least that of `counts`, if `probabilities` hold.
pub fn chi_square_tail(counts: &[u32], probabilities: &[f64]) -> f64 {
    let (observed, expected) = merge_rare(counts, probabilities);
    stats::chi_square::test(&observed, &expected).p_value
}

/// Merges neighbouring values until each class expects 5 counts at least: below that Pearson's
/// statistic is not chi-square distributed.
fn merge_rare(counts: &[u32], probabilities: &[f64]) -> (Vec<u64>, Vec<f64>) {
    let total: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    let (mut observed, mut expected) = (Vec::new(), Vec::new());
    let (mut count, mut mean) = (0u64, 0.0);
    for (&n, &p) in counts.iter().zip(probabilities) {
        count += u64::from(n);
        mean += p * total;
        if mean >= 5.0 {
            observed.push(count);
            expected.push(mean);
            (count, mean) = (0, 0.0);
        }
    }
    if let (Some(last), Some(last_mean)) = (observed.last_mut(), expected.last_mut()) {
        *last += count;
        *last_mean += mean;
    }
    (observed, expected)
}

/// Chance that a binomial variable of `count` trials strays from its mean at least as far as `hits`
/// does: twice the smaller tail, at most 1. Exact up to rounding: the terms of the tail are summed
/// from `hits` outwards until they no longer matter.
pub fn binomial_tail(hits: u64, count: u64, p: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if p <= 0.0 || p >= 1.0 {
        let certain = if p <= 0.0 { 0 } else { count };
        return f64::from(u8::from(hits == certain));
    }
    let odds = p / (1.0 - p);
    let (n, k) = (count as f64, hits as f64);
    let mut term = (ln_choose(n, k) + k * p.ln() + (n - k) * (-p).ln_1p()).exp();
    let upwards = k > n * p;
    let (mut sum, mut at) = (term, k);
    while term > sum * 1e-17 {
        if upwards {
            term *= (n - at) / (at + 1.0) * odds;
            at += 1.0;
        } else {
            term *= at / (n - at + 1.0) / odds;
            at -= 1.0;
        }
        sum += term;
    }
    (2.0 * sum).min(1.0)
}

fn ln_choose(n: f64, k: f64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series (Abramowitz and Stegun 6.1.41) from 16 on, the product below: error under
/// 1e-11.
fn ln_factorial(n: f64) -> f64 {
    if n < 16.0 {
        return (2..=n as u32).map(|k| f64::from(k).ln()).sum();
    }
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Dataset;
    use crate::workload::nurand::Constants;
    use crate::{Mix, Scale};

    #[test]
    fn binomial_tails_are_the_sums_of_their_terms() {
        // Four trials at one half: 1, 4, 6, 4, 1 sixteenths.
        for (hits, expected) in [(0, 0.125), (1, 0.625), (2, 1.0), (3, 0.625), (4, 0.125)] {
            assert!((binomial_tail(hits, 4, 0.5) - expected).abs() < 1e-12, "{hits}");
        }
        // No remote line in 2000 at 1 %: 2 x 0.99^2000.
        let expected = 2.0 * (2000.0 * 0.99f64.ln()).exp();
        assert!((binomial_tail(0, 2000, 0.01) / expected - 1.0).abs() < 1e-9);
        // A million trials, one standard deviation off: the normal tail 0.3173, continuity aside.
        let tail = binomial_tail(500_500, 1_000_000, 0.5);
        assert!((tail - 0.3178).abs() < 1e-3, "{tail}");
        assert_eq!(binomial_tail(0, 10, 0.0), 1.0);
        assert_eq!(binomial_tail(1, 10, 0.0), 0.0);
        assert_eq!(binomial_tail(0, 0, 0.3), 1.0);
    }

    fn inputs() -> Source {
        Dataset::OrderEntry(Scale::new(5)).source(Mix::NORMAL, 11, Constants::for_run(11, 3))
    }

    fn tally(inputs: &Source, count: u64, change: impl Fn(&mut Input)) -> Tally {
        let mut tally = Tally::new(inputs);
        for sequence in 0..count {
            let terminal = (sequence % 50) as u32;
            let (kind, _) = inputs.kind(terminal, sequence);
            let mut input = inputs.draw(terminal, sequence, kind);
            change(&mut input);
            tally.observe(&input);
            if matches!(&input.request, Request::NewOrder(order) if order.rolls_back) {
                tally.rolled_back();
            }
        }
        tally
    }

    fn failed(audit: &Audit) -> Vec<&str> {
        audit.checks.iter().filter(|c| !c.passed).map(|c| c.name.as_str()).collect()
    }

    #[test]
    fn the_generator_passes_its_audit_at_any_length() {
        let inputs = inputs();
        for count in [0, 1, 10, 300, 5000, 200_000] {
            let audit = tally(&inputs, count, |_| {}).audit(&inputs);
            assert!(audit.passed, "{count}: {:?}", failed(&audit));
        }
    }

    /// Each of the mistakes that were found in other tools is told by name.
    #[test]
    fn wrong_generators_fail_the_check_of_their_mistake() {
        let inputs = inputs();
        let check = |name: &str, change: &dyn Fn(&mut Input)| {
            let audit = tally(&inputs, 30_000, change).audit(&inputs);
            assert!(failed(&audit).contains(&name), "{name}: {:?}", failed(&audit));
        };
        check("remote_line_share", &|input| {
            let home = input.warehouse;
            if let Request::NewOrder(order) = &mut input.request {
                order.lines.iter_mut().for_each(|line| line.supply = home);
            }
        });
        check("remote_payment_share", &|input| {
            if let Request::Payment { customer_warehouse, .. } = &mut input.request {
                *customer_warehouse = input.warehouse;
            }
        });
        check("rollback_share", &|input| {
            if let Request::NewOrder(order) = &mut input.request {
                order.rolls_back = false;
            }
        });
        check("lines_uniform", &|input| {
            if let Request::NewOrder(order) = &mut input.request {
                order.count = order.count.max(6);
            }
        });
        check("lines_mean", &|input| {
            if let Request::NewOrder(order) = &mut input.request {
                order.count = 9;
            }
        });
        check("by_name_share", &|input| {
            if let Request::OrderStatus { who, .. } = &mut input.request {
                *who = Who::Id(7);
            }
        });
        check("nurand_customer", &|input| {
            if let Request::NewOrder(order) = &mut input.request {
                order.customer = order.customer % 3000 + 1;
            }
        });
        check("nurand_last_name", &|input| {
            if let Request::Payment { who: Who::LastName(name), amount, .. } = &mut input.request {
                *name = *amount % 1000;
            }
        });
        check("nurand_item", &|input| {
            if let Request::NewOrder(order) = &mut input.request {
                let items = order.lines.iter_mut();
                items.for_each(|line| line.item = line.item.wrapping_mul(7919) % 100_000 + 1);
            }
        });
        check("mix_payment", &|input| {
            if input.kind() == Kind::Payment {
                input.request = Request::Delivery { carrier: 1 };
            }
        });
    }

    #[test]
    fn a_bank_whose_accounts_are_all_at_home_fails() {
        let scale = BankScale { branches: 3, accounts_per_branch: 100 };
        let source = Dataset::Bank(scale).source(Mix::NORMAL, 5, Constants::for_run(5, 0));
        let right = tally(&source, 20_000, |_| {}).audit(&source);
        assert!(right.passed && right.checks.len() == 2, "{right:?}");
        let wrong = tally(&source, 20_000, |input| {
            if let Request::Bank { account, branch, .. } = &mut input.request {
                *account = (*branch - 1) * 100 + 1;
            }
        });
        assert_eq!(failed(&wrong.audit(&source)), ["other_branch_share"]);
        let wrong = tally(&source, 20_000, |input| {
            if let Request::Bank { teller, .. } = &mut input.request {
                *teller = (*teller).max(2);
            }
        });
        assert_eq!(failed(&wrong.audit(&source)), ["tellers_uniform"]);
    }

    #[test]
    fn an_order_that_did_not_roll_back_is_told() {
        let inputs = inputs();
        let mut tally = tally(&inputs, 3000, |_| {});
        tally.rolled_back();
        assert_eq!(failed(&tally.audit(&inputs)), ["rollbacks_executed"]);
    }
}
