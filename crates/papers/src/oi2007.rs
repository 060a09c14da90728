//! Oi 2007: DBT-2 on a RAID 0 of four disks and on a DRAM SSD, by number of warehouses.

use crate::{Effort, Experiment, Found, Paper};

pub(crate) const EXPERIMENTS: &[Experiment] =
    &[Experiment { paper: "oi2007", name: "arithmetic", run: arithmetic }];

/// New orders per minute and warehouse at most, with the key and think times of TPC-C (clause
/// 5.2.5): ten terminals, a cycle of 21.0 s on average and 45 % new orders.
const PER_WAREHOUSE: f64 = 12.86;

fn arithmetic(paper: &Paper, _: Effort) -> Vec<Found> {
    let size = paper.number("table1.ssd.capacity");
    let most = paper.number("notpm.ssd.linear_until_w");
    let how = "12.86 per warehouse, the ceiling of TPC-C";
    vec![
        Found::value("derived.gb_per_warehouse", size / most, "capacity over warehouses"),
        Found::value("derived.notpm_bound.80", 80.0 * PER_WAREHOUSE, how),
        Found::value("derived.notpm_bound.132", 132.0 * PER_WAREHOUSE, how),
    ]
}
