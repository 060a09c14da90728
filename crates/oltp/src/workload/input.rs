//! The parameters of one transaction; those of order entry are drawn here (TPC-C 5.11 clauses
//! 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1).
//!
//! [`Inputs::draw`] fills a fixed-size [`Input`] without allocating. The home warehouse is fixed
//! per terminal and so is Stock-Level's district. A draw is a function of the seed, the terminal
//! and the sequence number of its request, so a run's inputs can be made again from its seed.

use stats::rng::{Rng, at};

use super::nurand::{Constants, NuRand};
use super::own::OwnRequest;
use super::{Kind, Mix};
use crate::scale::Scale;

/// Most lines of an order.
pub const LINES_MAX: usize = 15;

/// Where a terminal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its warehouse, from 1.
    pub warehouse: u32,
    /// Its district (Stock-Level only), from 1.
    pub district: u32,
}

impl Home {
    /// The home of a terminal: terminals go round the warehouses, then round the districts, so ten
    /// per warehouse take each (warehouse, district) once (clause 2.8.1.1).
    pub fn of(terminal: u32, scale: &Scale) -> Self {
        let warehouse = terminal % scale.warehouses;
        let district = terminal / scale.warehouses % scale.districts;
        Self { warehouse: warehouse + 1, district: district + 1 }
    }
}

/// How a customer is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// By C_ID.
    Id(u32),
    /// By C_LAST: the number of the name.
    LastName(u32),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderLine {
    /// OL_I_ID.
    pub item: u32,
    /// OL_SUPPLY_W_ID.
    pub supply: u32,
    /// OL_QUANTITY, 1 to 10.
    pub quantity: u32,
}

/// Parameters of New-Order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// District.
    pub district: u32,
    /// Customer.
    pub customer: u32,
    /// Whether the last line names an unused item, so that the order is rolled back.
    pub rolls_back: bool,
    /// Lines in use.
    pub count: usize,
    /// The lines; those beyond `count` mean nothing.
    pub lines: [OrderLine; LINES_MAX],
}

impl NewOrder {
    /// The lines in use.
    pub fn lines(&self) -> &[OrderLine] {
        &self.lines[..self.count]
    }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// See [`NewOrder`].
    NewOrder(NewOrder),
    /// A payment.
    Payment {
        /// District that takes it.
        district: u32,
        /// The customer's warehouse.
        customer_warehouse: u32,
        /// The customer's district.
        customer_district: u32,
        /// The customer.
        who: Who,
        /// H_AMOUNT in cents.
        amount: u32,
    },
    /// A customer's last order.
    OrderStatus {
        /// District.
        district: u32,
        /// The customer.
        who: Who,
    },
    /// Delivery of a warehouse.
    Delivery {
        /// O_CARRIER_ID, 1 to 10.
        carrier: u32,
    },
    /// Low stock of a district's last orders.
    StockLevel {
        /// District.
        district: u32,
        /// Threshold, 10 to 20.
        threshold: u32,
    },
    /// The bank's transfer.
    Bank {
        /// Account.
        account: u32,
        /// Teller.
        teller: u32,
        /// The teller's branch, which may not be the account's.
        branch: u32,
        /// What is added to all three balances, in cents; may be negative.
        amount: i64,
    },
    /// Adds one to a row of the commit workload.
    Commit {
        /// The row.
        row: u32,
    },
    /// A request of an own workload.
    Own(OwnRequest),
}

/// The parameters of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Home warehouse; 0 in workloads that have none.
    pub warehouse: u32,
    /// What it does.
    pub request: Request,
}

impl Input {
    /// Which transaction it is.
    pub fn kind(&self) -> Kind {
        match self.request {
            Request::NewOrder(_) => Kind::NewOrder,
            Request::Payment { .. } => Kind::Payment,
            Request::OrderStatus { .. } => Kind::OrderStatus,
            Request::Delivery { .. } => Kind::Delivery,
            Request::StockLevel { .. } => Kind::StockLevel,
            Request::Bank { .. } => Kind::Transfer,
            Request::Commit { .. } => Kind::Update,
            Request::Own(request) => request.kind(),
        }
    }
}

/// The distributions that a run of order entry draws from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    seed: u64,
    scale: Scale,
    mix: Mix,
    /// Last names.
    pub names: NuRand,
    /// Customer numbers.
    pub customers: NuRand,
    /// Item numbers.
    pub items: NuRand,
}

impl Inputs {
    /// The inputs of a run with this seed.
    pub fn new(scale: Scale, mix: Mix, seed: u64, constants: Constants) -> Self {
        Self {
            seed,
            scale,
            mix,
            names: NuRand::new(8, 0, scale.last_names() - 1, constants.c_last),
            customers: NuRand::new(10, 1, scale.customers_per_district, constants.c_id),
            items: NuRand::new(13, 1, scale.items, constants.ol_i_id),
        }
    }

    /// The database's size.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The mix.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    fn stream(&self, terminal: u32, sequence: u64, part: u64) -> u64 {
        at(at(self.seed, u64::from(terminal)), sequence * 2 + part)
    }

    /// Which transaction a terminal asks for, and the random numbers of its keying and think times.
    pub fn kind(&self, terminal: u32, sequence: u64) -> (Kind, Rng) {
        let mut rng = Rng::new(self.stream(terminal, sequence, 0));
        let kind = self.mix.pick(rng.unit());
        (kind, rng)
    }

    /// The parameters of that transaction.
    pub fn draw(&self, terminal: u32, sequence: u64, kind: Kind) -> Input {
        let home = Home::of(terminal, &self.scale);
        let mut rng = Rng::new(self.stream(terminal, sequence, 1));
        let request = match kind {
            Kind::NewOrder => Request::NewOrder(self.new_order(&mut rng, home)),
            Kind::Payment => self.payment(&mut rng, home),
            Kind::OrderStatus => {
                Request::OrderStatus { district: self.district(&mut rng), who: self.who(&mut rng) }
            }
            Kind::Delivery => Request::Delivery { carrier: rng.between(1, 10) as u32 },
            Kind::StockLevel => Request::StockLevel {
                district: home.district,
                threshold: rng.between(10, 20) as u32,
            },
            Kind::Transfer | Kind::Update | Kind::Own(_) => {
                unreachable!("order entry draws its own kinds")
            }
        };
        Input { warehouse: home.warehouse, request }
    }

    fn district(&self, rng: &mut Rng) -> u32 {
        rng.between(1, u64::from(self.scale.districts)) as u32
    }

    /// Clauses 2.5.1.2 and 2.6.1.2: 60 % by last name, 40 % by number.
    fn who(&self, rng: &mut Rng) -> Who {
        if rng.below(100) < 60 {
            Who::LastName(self.names.draw(rng))
        } else {
            Who::Id(self.customers.draw(rng))
        }
    }

    /// A warehouse other than the home one, uniform; only where there are two at least.
    fn other_warehouse(&self, rng: &mut Rng, home: u32) -> u32 {
        let other = rng.between(1, u64::from(self.scale.warehouses) - 1) as u32;
        if other >= home { other + 1 } else { other }
    }

    /// Clause 2.4.1.
    fn new_order(&self, rng: &mut Rng, home: Home) -> NewOrder {
        let mut order = NewOrder {
            district: self.district(rng),
            customer: self.customers.draw(rng),
            rolls_back: rng.below(100) == 0,
            count: rng.between(5, LINES_MAX as u64) as usize,
            lines: [OrderLine::default(); LINES_MAX],
        };
        let several = self.scale.warehouses > 1;
        for line in &mut order.lines[..order.count] {
            let remote = rng.below(100) == 0 && several;
            line.item = self.items.draw(rng);
            line.supply =
                if remote { self.other_warehouse(rng, home.warehouse) } else { home.warehouse };
            line.quantity = rng.between(1, 10) as u32;
        }
        if order.rolls_back {
            // Clause 2.4.1.5: an item number that no row has.
            order.lines[order.count - 1].item = self.scale.items + 1;
        }
        order
    }

    /// Clause 2.5.1.
    fn payment(&self, rng: &mut Rng, home: Home) -> Request {
        let district = self.district(rng);
        let remote = rng.below(100) >= 85 && self.scale.warehouses > 1;
        let (customer_warehouse, customer_district) = if remote {
            (self.other_warehouse(rng, home.warehouse), self.district(rng))
        } else {
            (home.warehouse, district)
        };
        let who = self.who(rng);
        let amount = rng.between(100, 500_000) as u32;
        Request::Payment { district, customer_warehouse, customer_district, who, amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(warehouses: u32) -> Inputs {
        let constants = Constants::for_run(1, 0);
        Inputs::new(Scale::new(warehouses), Mix::NORMAL, 5, constants)
    }

    #[test]
    fn homes_cover_every_district_once_before_any_twice() {
        let scale = Scale::new(3);
        let mut homes: Vec<(u32, u32)> = (0..30)
            .map(|terminal| Home::of(terminal, &scale))
            .map(|home| (home.warehouse, home.district))
            .collect();
        homes.sort_unstable();
        let every = (1..=3).flat_map(|w| (1..=10).map(move |d| (w, d)));
        assert_eq!(homes, every.collect::<Vec<_>>());
    }

    #[test]
    fn remote_warehouses_are_other_ones_and_all_of_them() {
        let inputs = inputs(4);
        let mut supplies = [0u32; 5];
        let mut payers = [0u32; 5];
        for sequence in 0..20_000 {
            let input = inputs.draw(1, sequence, Kind::NewOrder);
            let Request::NewOrder(order) = input.request else { unreachable!() };
            assert_eq!(input.warehouse, 2);
            order.lines().iter().for_each(|line| supplies[line.supply as usize] += 1);
            let payment = inputs.draw(1, sequence, Kind::Payment).request;
            let Request::Payment { customer_warehouse, .. } = payment else { unreachable!() };
            payers[customer_warehouse as usize] += 1;
        }
        // 1 % of about 200,000 lines over three others: 667 each, standard deviation 26.
        for other in [1, 3, 4] {
            assert!((530..800).contains(&supplies[other]), "{supplies:?}");
            assert!((850..1150).contains(&payers[other]), "{payers:?}");
        }
        assert_eq!(supplies[0] + payers[0], 0);
    }

    #[test]
    fn with_one_warehouse_nothing_is_remote() {
        let inputs = inputs(1);
        for sequence in 0..5000 {
            let Request::NewOrder(order) = inputs.draw(0, sequence, Kind::NewOrder).request else {
                unreachable!()
            };
            assert!(order.lines().iter().all(|line| line.supply == 1));
            let Request::Payment { customer_warehouse, .. } =
                inputs.draw(0, sequence, Kind::Payment).request
            else {
                unreachable!()
            };
            assert_eq!(customer_warehouse, 1);
        }
    }

    #[test]
    fn only_the_last_line_of_a_rollback_names_an_unused_item() {
        let inputs = inputs(2);
        let mut rollbacks = 0;
        for sequence in 0..10_000 {
            let Request::NewOrder(order) = inputs.draw(3, sequence, Kind::NewOrder).request else {
                unreachable!()
            };
            let (last, others) = order.lines().split_last().unwrap();
            assert!(others.iter().all(|line| (1..=100_000).contains(&line.item)));
            assert_eq!(last.item == 100_001, order.rolls_back);
            rollbacks += u32::from(order.rolls_back);
        }
        // 1 % of 10,000: 100 with a standard deviation of 10.
        assert!((55..145).contains(&rollbacks), "{rollbacks}");
    }

    #[test]
    fn inputs_depend_on_seed_terminal_and_sequence_only() {
        let one = inputs(2);
        let two = inputs(2);
        let _ = one.draw(0, 0, Kind::Payment);
        assert_eq!(one.draw(9, 44, Kind::NewOrder), two.draw(9, 44, Kind::NewOrder));
        assert_ne!(one.draw(9, 44, Kind::NewOrder), one.draw(9, 45, Kind::NewOrder));
    }
}
