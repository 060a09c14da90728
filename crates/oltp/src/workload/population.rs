//! The rows that a database starts with (TPC-C 5.11 clause 4.3.3.1).
//!
//! Every row is a function of the seed, its table and its key alone, so it is the same whichever
//! thread makes it and in whatever order. Money is in cents and rates are in ten-thousandths, both
//! integers: SQLite has no decimal type, and sums of binary fractions would not be exact.

use stats::rng::{Rng, at};

use super::nurand::{Constants, NuRand};
use super::text::{Text, last_name};
use crate::scale::Scale;

/// The date of the load in every row, milliseconds since 1970: fixed (2026-01-01), so that the same
/// seed loads the same bytes.
pub const LOAD_TIME_MS: i64 = 1_767_225_600_000;

/// The makers of all rows of one database.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    seed: u64,
    scale: Scale,
    last_names: NuRand,
}

/// Which stream of random numbers a row draws from.
#[derive(Clone, Copy)]
enum Table {
    Warehouse = 1,
    District,
    Customer,
    History,
    Permutation,
    Order,
    Lines,
    Item,
    Stock,
}

/// Name, address and tax, which warehouses and districts share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// W_NAME or D_NAME.
    pub name: Text<10>,
    /// Street, city, state, zip.
    pub address: Address,
    /// W_TAX or D_TAX in ten-thousandths, 0 to 2000.
    pub tax: u32,
}

/// The five columns of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Address {
    /// First street column.
    pub street_1: Text<20>,
    /// Second street column.
    pub street_2: Text<20>,
    /// City.
    pub city: Text<20>,
    /// Two letters.
    pub state: Text<2>,
    /// Nine digits.
    pub zip: Text<9>,
}

/// A row of CUSTOMER, without the columns that are the same in all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Customer {
    /// C_LAST.
    pub last: Text<16>,
    /// C_FIRST.
    pub first: Text<16>,
    /// Street, city, state, zip.
    pub address: Address,
    /// C_PHONE.
    pub phone: Text<16>,
    /// C_CREDIT is BC rather than GC: one customer of ten.
    pub bad_credit: bool,
    /// C_DISCOUNT in ten-thousandths, 0 to 5000.
    pub discount: u32,
    /// C_DATA.
    pub data: Text<500>,
}

/// A row of ITEM.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Item {
    /// I_IM_ID.
    pub image: u32,
    /// I_NAME.
    pub name: Text<24>,
    /// I_PRICE in cents, 100 to 10,000.
    pub price: u32,
    /// I_DATA.
    pub data: Text<50>,
}

/// A row of STOCK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stock {
    /// S_QUANTITY, 10 to 100.
    pub quantity: u32,
    /// S_DIST_01 to S_DIST_10.
    pub dist: [Text<24>; 10],
    /// S_DATA.
    pub data: Text<50>,
}

/// A row of ORDERS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// O_C_ID.
    pub customer: u32,
    /// O_CARRIER_ID; none while undelivered.
    pub carrier: Option<u32>,
    /// O_OL_CNT, 5 to 15.
    pub lines: u32,
}

/// A row of ORDER_LINE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// OL_I_ID.
    pub item: u32,
    /// OL_AMOUNT in cents: 0 where delivered, else 1 to 999,999.
    pub amount: u32,
    /// OL_DIST_INFO.
    pub dist_info: Text<24>,
}

impl Population {
    /// The rows of a database of this scale and seed.
    pub fn new(scale: Scale, seed: u64) -> Self {
        let c_last = Constants::for_load(seed).c_last;
        let last_names = NuRand::new(8, 0, scale.last_names() - 1, c_last);
        Self { seed, scale, last_names }
    }

    fn rng(&self, table: Table, warehouse: u32, district: u32, key: u32) -> Rng {
        let place = u64::from(warehouse) << 8 | u64::from(district);
        Rng::new(at(at(self.seed ^ table as u64, place), u64::from(key)))
    }

    /// A warehouse.
    pub fn warehouse(&self, warehouse: u32) -> Place {
        place(&mut self.rng(Table::Warehouse, warehouse, 0, 0))
    }

    /// A district.
    pub fn district(&self, warehouse: u32, district: u32) -> Place {
        place(&mut self.rng(Table::District, warehouse, district, 0))
    }

    /// A customer: the first ones of a district carry every last name once.
    pub fn customer(&self, warehouse: u32, district: u32, customer: u32) -> Customer {
        let mut rng = self.rng(Table::Customer, warehouse, district, customer);
        let rng = &mut rng;
        let names = self.scale.last_names();
        let number = if customer <= names { customer - 1 } else { self.last_names.draw(rng) };
        let mut row = Customer {
            last: last_name(number),
            first: Text::default(),
            address: Address::default(),
            phone: Text::default(),
            bad_credit: rng.below(10) == 0,
            discount: rng.below(5001) as u32,
            data: Text::default(),
        };
        row.first.letters(rng, 8, 16);
        row.address = address(rng);
        row.phone.digits(rng, 16);
        row.data.letters(rng, 300, 500);
        row
    }

    /// H_DATA of a customer's first payment.
    pub fn history_data(&self, warehouse: u32, district: u32, customer: u32) -> Text<24> {
        let mut data = Text::default();
        data.letters(&mut self.rng(Table::History, warehouse, district, customer), 12, 24);
        data
    }

    /// O_C_ID of a district's orders, in the order of O_ID: a random permutation.
    pub fn customers_of_orders(&self, warehouse: u32, district: u32, into: &mut Vec<u32>) {
        let mut rng = self.rng(Table::Permutation, warehouse, district, 0);
        into.clear();
        into.extend(1..=self.scale.orders_per_district());
        for k in (1..into.len()).rev() {
            into.swap(k, rng.below(k as u64 + 1) as usize);
        }
    }

    /// An order of the customer that the permutation gives it.
    pub fn order(&self, warehouse: u32, district: u32, order: u32, customer: u32) -> Order {
        let mut rng = self.rng(Table::Order, warehouse, district, order);
        let carrier = rng.between(1, 10) as u32;
        let delivered = order <= self.scale.delivered_per_district();
        Order { customer, carrier: delivered.then_some(carrier), lines: rng.between(5, 15) as u32 }
    }

    /// The lines of an order, one after the other.
    pub fn lines(
        &self,
        warehouse: u32,
        district: u32,
        order: u32,
    ) -> impl Iterator<Item = Line> + use<> {
        let mut rng = self.rng(Table::Lines, warehouse, district, order);
        let delivered = order <= self.scale.delivered_per_district();
        let items = u64::from(self.scale.items);
        std::iter::repeat_with(move || {
            let item = rng.between(1, items) as u32;
            let amount = if delivered { 0 } else { rng.between(1, 999_999) as u32 };
            let mut dist_info = Text::default();
            dist_info.letters(&mut rng, 24, 24);
            Line { item, amount, dist_info }
        })
    }

    /// An item.
    pub fn item(&self, item: u32) -> Item {
        let mut rng = self.rng(Table::Item, 0, 0, item);
        let mut row = Item {
            image: rng.between(1, 10_000) as u32,
            price: rng.between(100, 10_000) as u32,
            ..Item::default()
        };
        row.name.letters(&mut rng, 14, 24);
        row.data.data(&mut rng);
        row
    }

    /// The stock of an item in a warehouse.
    pub fn stock(&self, warehouse: u32, item: u32) -> Stock {
        let mut rng = self.rng(Table::Stock, warehouse, 0, item);
        let mut row = Stock { quantity: rng.between(10, 100) as u32, ..Stock::default() };
        row.dist.iter_mut().for_each(|dist| dist.letters(&mut rng, 24, 24));
        row.data.data(&mut rng);
        row
    }
}

fn place(rng: &mut Rng) -> Place {
    let mut name = Text::default();
    name.letters(rng, 6, 10);
    Place { name, address: address(rng), tax: rng.below(2001) as u32 }
}

fn address(rng: &mut Rng) -> Address {
    let mut address = Address::default();
    address.street_1.letters(rng, 10, 20);
    address.street_2.letters(rng, 10, 20);
    address.city.letters(rng, 10, 20);
    address.state.letters(rng, 2, 2);
    address.zip.zip(rng);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_a_district_are_a_permutation_of_its_customers() {
        let population = Population::new(Scale::new(1), 7);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        population.customers_of_orders(1, 1, &mut one);
        population.customers_of_orders(1, 2, &mut two);
        assert_ne!(one, two);
        one.sort_unstable();
        assert_eq!(one, (1..=3000).collect::<Vec<_>>());
    }

    #[test]
    fn rows_depend_on_seed_table_and_key_only() {
        let population = Population::new(Scale::new(2), 7);
        assert_eq!(population.stock(2, 5), Population::new(Scale::new(2), 7).stock(2, 5));
        assert_ne!(population.stock(2, 5), population.stock(1, 5));
        assert_ne!(population.stock(2, 5), population.stock(2, 6));
        assert_ne!(population.stock(2, 5), Population::new(Scale::new(2), 8).stock(2, 5));
        assert_ne!(population.district(1, 1).name, population.warehouse(1).name);
    }

    #[test]
    fn columns_stay_in_the_specifications_ranges() {
        let population = Population::new(Scale::new(1), 3);
        let mut bad_credit = 0;
        for key in 1..=3000 {
            let customer = population.customer(1, 1, key);
            assert!((300..=500).contains(&customer.data.as_str().len()));
            assert!(customer.discount <= 5000 && customer.phone.as_str().len() == 16);
            bad_credit += u32::from(customer.bad_credit);
            if key <= 1000 {
                assert_eq!(customer.last, last_name(key - 1));
            }
            let order = population.order(1, 1, key, key);
            assert_eq!(order.carrier.is_some(), key <= 2100);
            assert!((5..=15).contains(&order.lines));
            for line in population.lines(1, 1, key).take(order.lines as usize) {
                assert!((1..=100_000).contains(&line.item));
                assert_eq!(line.amount == 0, key <= 2100);
            }
            let stock = population.stock(1, key);
            assert!((10..=100).contains(&stock.quantity));
            let item = population.item(key);
            assert!((100..=10_000).contains(&item.price));
        }
        // One in ten of 3000: 300 with a standard deviation of 16.
        assert!((220..380).contains(&bad_credit), "{bad_credit}");
    }
}
