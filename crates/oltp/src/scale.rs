//! How large the database is (TPC-C 5.11 clauses 1.2 and 4.3.3.1).
//!
//! Everything follows from the number of warehouses W, at the specification's cardinalities. A
//! *miniature* has fewer rows per warehouse so that tests take milliseconds; its contention and its
//! locality are not the workload's, so a run on one carries the warning `miniature_scale`.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Districts of a warehouse; the schema has one `s_dist_xx` column for each.
pub const DISTRICTS_MAX: u32 = 10;

/// Cardinalities of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// W: warehouses.
    pub warehouses: u32,
    /// Districts of each warehouse; 10 by the specification.
    #[serde(default = "spec_districts")]
    pub districts: u32,
    /// Customers of each district, and orders that it starts with; 3000 by the specification.
    #[serde(default = "spec_customers")]
    pub customers_per_district: u32,
    /// Items, and stock rows of each warehouse; 100,000 by the specification.
    #[serde(default = "spec_items")]
    pub items: u32,
}

fn spec_districts() -> u32 {
    10
}
fn spec_customers() -> u32 {
    3000
}
fn spec_items() -> u32 {
    100_000
}

impl Scale {
    /// The specification's cardinalities for W warehouses.
    pub fn new(warehouses: u32) -> Self {
        Self {
            warehouses,
            districts: spec_districts(),
            customers_per_district: spec_customers(),
            items: spec_items(),
        }
    }

    /// A database of a few hundred rows per district, for tests only.
    pub fn miniature(warehouses: u32) -> Self {
        Self { warehouses, districts: 3, customers_per_district: 60, items: 200 }
    }

    /// Whether this is not the specification's shape.
    pub fn is_miniature(&self) -> bool {
        *self != Self::new(self.warehouses)
    }

    /// Orders that each district starts with: one per customer (clause 4.3.3.1).
    pub fn orders_per_district(&self) -> u32 {
        self.customers_per_district
    }

    /// Of these, the undelivered ones with a NEW-ORDER row: 900 of 3000.
    pub fn new_orders_per_district(&self) -> u32 {
        self.customers_per_district * 3 / 10
    }

    /// Orders delivered at the start: 2100 of 3000.
    pub fn delivered_per_district(&self) -> u32 {
        self.orders_per_district() - self.new_orders_per_district()
    }

    /// Distinct last names in a district: 1000 by the specification (clause 4.3.2.3), fewer where
    /// a miniature has fewer customers, so that every name drawn exists.
    pub fn last_names(&self) -> u32 {
        self.customers_per_district.min(1000)
    }

    /// Checks that the numbers make a database.
    pub fn validate(&self) -> Result<(), Error> {
        let check = |option, value: u32, low: u32, high: u32, why| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(Error::Option { option, value: value.to_string(), why })
        };
        check("warehouses", self.warehouses, 1, 100_000, "must be 1 to 100000")?;
        check("districts", self.districts, 1, DISTRICTS_MAX, "must be 1 to 10")?;
        check(
            "customers_per_district",
            self.customers_per_district,
            10,
            3000,
            "must be 10 to 3000",
        )?;
        check("items", self.items, 20, 100_000, "must be 20 to 100000")
    }
}
