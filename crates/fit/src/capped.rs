//! A rate that a provider lets through, and credits above it.
//!
//! Reads and writes in small random requests that all end at one rate, at any depth, stand behind
//! one counter: a device alone gives each operation its own. Where the same cell ran faster
//! earlier, the counter has *credits*: a bucket that was full at the start and lost, with every
//! request, one token of those that come back at the rate. What was lost until the rate showed for
//! the first time is the size of the bucket.
//!
//! Cells that ran without credits say nothing of the device behind the counter, and are left out of
//! everything else that is fitted.

use std::collections::BTreeSet;

use profile::Parameter;
use profile::limits::{AllowanceSpec, LimitsSpec};

use crate::Notes;
use crate::lines::round;
use crate::measurement::{Arrival, Cell, CellResult, Durability, FILL_BYTES, Order, WARM_UP_SHARE};
use crate::select::{last_rate, rate};

/// Rates that differ by no more than this are one.
const SAME: f64 = 0.04;
/// A cell that ran this many times faster than the rate had credits.
const FASTER: f64 = 1.3;
/// Depth from which on a cell can meet the rate, and its largest request.
const DEEP: u32 = 4;
const SMALL_BYTES: u32 = 16 << 10;
/// Fewest different cells that must end at the rate.
const FEWEST_CELLS: usize = 4;
/// Reads and writes whose times at depth 1 differ by less may meet one rate by the device alone.
const UNLIKE: f64 = 0.08;

/// A rate, and what may pass above it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cap {
    per_s: f64,
    /// Rate while there are credits, and how many.
    credits: Option<(f64, f64)>,
    /// Cells that ran without credits, by their index.
    pub(super) spent: BTreeSet<usize>,
    cells: usize,
}

pub(super) fn find(cells: &[CellResult], range_bytes: u64, notes: &mut Notes) -> Option<Cap> {
    let ends: Vec<(usize, f64)> = (cells.iter().enumerate())
        .filter(|(_, result)| meets_a_rate(&result.cell))
        .map(|(index, result)| (index, last_rate(result)))
        .collect();
    let (per_s, members) = lowest_shared(cells, &ends)?;
    let had_credits = |index: usize| fastest(cells, &cells[index].cell) > FASTER * per_s;
    let spent: BTreeSet<usize> = (0..cells.len())
        .filter(|&index| had_credits(index) && last_rate(&cells[index]) < (1.0 + SAME) * per_s)
        .collect();
    let credits = (!spent.is_empty()).then(|| {
        let unspent = ends.iter().filter(|(index, _)| !spent.contains(index)).copied();
        let unspent: Vec<(usize, f64)> = unspent.collect();
        let best = cells.iter().filter(|result| is_plain(&result.cell)).map(best_rate);
        let burst = lowest_shared(cells, &unspent).filter(|(rate, _)| *rate > FASTER * per_s);
        let burst = burst.map_or_else(|| best.fold(per_s, f64::max), |(rate, _)| rate);
        (burst, lost_until_spent(cells, range_bytes, per_s, &spent))
    });
    if credits.is_none() && !differ_at_depth_one(cells) {
        return None;
    }
    let cap = Cap { per_s, credits, spent, cells: members };
    notes.add("fit_limits", cap.words(), "limits are part of the profile, not of its lines");
    Some(cap)
}

impl Cap {
    pub(super) fn has_credits(&self) -> bool {
        self.credits.is_some()
    }

    /// Whether something that slowed down to this rate met the limit, and nothing else.
    pub(super) fn explains(&self, per_s: f64) -> bool {
        (per_s / self.per_s - 1.0).abs() < FASTER - 1.0
    }

    fn words(&self) -> String {
        let rate = format!(
            "{} kinds of cells end at {:.0} requests a second, reads and writes alike",
            self.cells, self.per_s
        );
        match self.credits {
            None => rate,
            Some((burst, credits)) => {
                format!("{rate}, after {credits:.0} credits at up to {burst:.0} a second")
            }
        }
    }

    /// The limits of a profile.
    pub(super) fn spec(&self) -> LimitsSpec {
        let source = format!("probe: {}", self.words());
        let parameter = |value: f64| Parameter::new(round(value), source.clone());
        let iops = AllowanceSpec {
            rate: parameter(self.per_s),
            burst: self.credits.map(|(burst, _)| parameter(burst)),
            credits: self.credits.map(|(_, credits)| parameter(credits)),
            credits_at_start: None,
        };
        LimitsSpec { iops: Some(iops), ..LimitsSpec::default() }
    }
}

/// Whether a cell asks for more than a rate lets through, as far as its kind goes.
fn meets_a_rate(cell: &Cell) -> bool {
    is_plain(cell)
        && cell.order == Order::Random
        && cell.depth >= DEEP
        && cell.size_bytes <= SMALL_BYTES
}

fn is_plain(cell: &Cell) -> bool {
    cell.arrival == Arrival::Closed && cell.durability == Durability::None
}

/// The rate of a cell while it was fastest: over a third of its windows.
fn best_rate(result: &CellResult) -> f64 {
    let most = result.windows.len().div_ceil(3).max(1);
    let means = result.windows.chunks(most).map(|windows| {
        windows.iter().map(|window| window.iops).sum::<f64>() / windows.len() as f64
    });
    means.fold(rate(result), f64::max)
}

/// The best rate of all repeats of a cell.
fn fastest(cells: &[CellResult], cell: &Cell) -> f64 {
    let same = cells.iter().filter(|result| result.cell == *cell);
    same.map(best_rate).fold(0.0, f64::max)
}

/// The lowest rate at which enough kinds of cells end, two of reads and two of writes among them;
/// and how many kinds these are.
fn lowest_shared(cells: &[CellResult], ends: &[(usize, f64)]) -> Option<(f64, usize)> {
    let mut sorted = ends.to_vec();
    sorted.sort_by(|one, other| one.1.total_cmp(&other.1));
    (0..sorted.len()).find_map(|from| {
        let most = sorted[from].1 * (1.0 + SAME);
        let group: Vec<&(usize, f64)> =
            sorted[from..].iter().take_while(|(_, rate)| *rate <= most).collect();
        let kind = |index: usize| {
            let cell = &cells[index].cell;
            (cell.depth, cell.size_bytes, (cell.read_share * 1000.0) as u32)
        };
        let kinds: BTreeSet<_> = group.iter().map(|(index, _)| kind(*index)).collect();
        // One of each may be a coincidence.
        let has = |share: u32| kinds.iter().filter(|kind| kind.2 == share).count() >= 2;
        let is_shared = kinds.len() >= FEWEST_CELLS && has(0) && has(1000);
        is_shared.then(|| (group[group.len() / 2].1, kinds.len()))
    })
}

/// Whether reads and writes take different times alone, so that the device itself would not give
/// both the same rate.
fn differ_at_depth_one(cells: &[CellResult]) -> bool {
    let mean = |share: f64| {
        let own = cells.iter().filter(|result| {
            let cell = &result.cell;
            (cell.depth, cell.size_bytes, cell.order) == (1, 4096, Order::Random)
                && cell.read_share == share
                && (cell.durability, cell.arrival) == (Durability::None, Arrival::Closed)
        });
        own.flat_map(|result| &result.classes).map(|class| class.service.mean_ns).next()
    };
    let (Some(read), Some(write)) = (mean(1.0), mean(0.0)) else { return false };
    (read / write - 1.0).abs() > UNLIKE
}

/// Tokens that a full bucket had lost when the rate showed for the first time.
fn lost_until_spent(
    cells: &[CellResult],
    range_bytes: u64,
    per_s: f64,
    spent: &BTreeSet<usize>,
) -> f64 {
    // Before the first cell the range was written.
    let (mut lost, mut at_s) = ((range_bytes / u64::from(FILL_BYTES)) as f64, 0.0f64);
    let mut pass = |seconds: f64, requests: f64| {
        lost = (lost + requests - per_s * seconds).max(0.0);
        lost
    };
    for (index, result) in cells.iter().enumerate() {
        pass((result.started_s - at_s).max(0.0), 0.0);
        let warm_up_s = result.elapsed_s * WARM_UP_SHARE;
        at_s = result.started_s + warm_up_s + result.elapsed_s;
        let first = result.windows.first().map_or_else(|| rate(result), |window| window.iops);
        let mut lost = pass(warm_up_s, first * warm_up_s);
        if result.windows.is_empty() {
            lost = pass(result.elapsed_s, result.requests as f64);
        }
        let window_s = result.elapsed_s / result.windows.len().max(1) as f64;
        for window in &result.windows {
            if spent.contains(&index) && window.iops < (1.0 + SAME) * per_s {
                return lost;
            }
            lost = pass(window_s, window.iops * window_s);
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{ClassResult, Distribution, Window};

    /// A device of these times at depth 1 and this many units behind a bucket, in the order in
    /// which a plan asks.
    fn probed(us: [f64; 2], units: u32, per_s: f64, burst: f64, credits: f64) -> Vec<CellResult> {
        let (mut level, mut at_s) = (credits, 0.0);
        let shares = [1.0, 0.0];
        let one: Vec<(f64, u32)> = [1, 2, 4, 8, 16, 32]
            .into_iter()
            .flat_map(|depth| shares.map(|share| (share, depth)))
            .collect();
        let both = one.iter().chain(one.iter().rev());
        both.map(|&(read_share, depth)| {
            let us = us[usize::from(read_share == 0.0)];
            let alone = f64::from(depth.min(units)) * 1e6 / us;
            let mut iops = |seconds: f64| {
                let most = alone.min(burst) * seconds;
                let requests = most.min(level + per_s * seconds);
                level = (level + per_s * seconds - requests).min(credits);
                requests / seconds
            };
            iops(0.03);
            let windows: Vec<Window> = (0..20)
                .map(|index| Window {
                    at_s: f64::from(index) * 0.015,
                    iops: iops(0.015),
                    p99_ns: 1,
                })
                .collect();
            let requests = windows.iter().map(|window| window.iops * 0.015).sum::<f64>();
            let started_s = at_s;
            at_s += 0.33;
            result(read_share, depth, started_s, requests as u64, windows)
        })
        .collect()
    }

    fn result(
        read_share: f64,
        depth: u32,
        started_s: f64,
        requests: u64,
        windows: Vec<Window>,
    ) -> CellResult {
        let cell = Cell {
            order: Order::Random,
            read_share,
            size_bytes: 4096,
            depth,
            durability: Durability::None,
            arrival: Arrival::Closed,
        };
        let mean_ns = 0.3e9 * f64::from(depth) / requests as f64;
        let service = Distribution { count: requests, mean_ns, ..Distribution::default() };
        let op = if read_share > 0.0 { trace::Op::Read } else { trace::Op::Write };
        let classes = vec![ClassResult { op, service: service.clone(), response: service }];
        CellResult {
            cell,
            started_s,
            elapsed_s: 0.3,
            requests,
            bytes: requests * 4096,
            cpu_user_ns: 0.0,
            cpu_system_ns: 0.0,
            classes,
            windows,
            steady: None,
            warnings: Vec::new(),
        }
    }

    #[track_caller]
    fn check(found: f64, expected: f64, what: &str) {
        assert!((found / expected - 1.0).abs() < 0.05, "{what}: {found}, not {expected}");
    }

    #[test]
    fn a_rate_its_burst_and_its_credits_are_found() {
        for (per_s, burst, credits) in
            [(2000.0, 16_000.0, 12_000.0), (500.0, 3_000.0, 3_000.0), (3000.0, 9_000.0, 9_000.0)]
        {
            let cells = probed([500.0, 600.0], 32, per_s, burst, credits);
            let cap = find(&cells, 0, &mut Notes::default()).expect("there is a rate");
            check(cap.per_s, per_s, "rate");
            let (found_burst, found_credits) = cap.credits.expect("there are credits");
            check(found_burst, burst, "burst");
            check(found_credits, credits, "credits");
            assert!(!cap.spent.is_empty() && cap.spent.iter().all(|&index| index > 3));
        }
    }

    #[test]
    fn a_rate_without_credits_is_found_where_the_device_tells_reads_from_writes() {
        let cells = probed([500.0, 400.0], 64, 3000.0, 3000.0, 0.0);
        let cap = find(&cells, 0, &mut Notes::default()).expect("there is a rate");
        check(cap.per_s, 3000.0, "rate");
        assert_eq!((cap.credits, cap.spent.len()), (None, 0));
    }

    #[test]
    fn a_device_that_is_busy_has_no_limits_of_a_provider() {
        let find = |us, units| find(&probed(us, units, 1e9, 1e9, 0.0), 0, &mut Notes::default());
        // One arm; four units; many.
        assert_eq!(find([5000.0, 5000.0], 1), None);
        assert_eq!(find([100.0, 100.0], 4), None);
        assert_eq!(find([200.0, 100.0], 8), None);
    }
}
