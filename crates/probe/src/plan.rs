//! Which cells are measured, in which order, for how long, and what that costs.
//!
//! [`Plan::quick`] has what a profile is fitted from (service time against request size per
//! pattern, throughput against depth, mixed load, the commit path, two open loops) twice, forwards
//! then backwards, so that a drift of the machine falls on both ends alike and shows as a
//! difference of the repeats. Its reads come together, after a rest: a write cache that is still
//! being emptied makes them up to four times slower. [`Plan::full`] follows the SNIA Performance
//! Test Specification: write twice the range sequentially, then rounds of its read share x block
//! size matrix, and of the quick cells, until the tracked write cell is steady over five rounds, at
//! most 25 rounds.

use events::Step;
use serde::{Deserialize, Serialize};

use fit::measurement::{Arrival, Burst, Cell, Durability, Order, Target, WARM_UP_SHARE};
use io::target::TargetInfo;

/// Sequential bytes per second that preconditioning is expected to reach, before it is known.
const EXPECTED_FILL_PER_S: f64 = 5e8;
/// Requests per second expected of a closed loop at depth 1, and ceiling, before they are known.
const EXPECTED_RATE_PER_S: f64 = 1e4;
const EXPECTED_BYTES_PER_S: f64 = 1e9;
/// Seconds to set a cell up and to settle after it.
const OVERHEAD_S: f64 = 0.03;
/// Rounds at most of a plan that runs until steady (PTS).
const MOST_ROUNDS: u32 = 25;

/// One cell of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// The workload. The rate of Poisson arrivals with a `rate_share` is a guess until the cell
    /// runs.
    pub cell: Cell,
    /// Measured seconds; the warm-up comes on top.
    pub seconds: f64,
    /// Rate of Poisson arrivals as a share of what the closed loop of the same requests reached at
    /// depth 8, so that a plan suits slow and fast devices alike.
    pub rate_share: Option<f64>,
}

/// Writes after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedBurst {
    /// How long the device is left alone, seconds.
    pub pause_s: f64,
    /// The workload.
    pub cell: Cell,
    /// Measured seconds, from the first request on.
    pub seconds: f64,
}

/// Times the pause, where a cache did not become empty in it.
const LONGER: f64 = 5.0;

impl PlannedBurst {
    /// Seconds that it takes, the pause included.
    pub fn expected_s(&self) -> f64 {
        self.pause_s + self.seconds
    }

    /// The same after a longer pause, where the one before was too short.
    pub fn after(&self, first: &Burst) -> Option<Self> {
        let again = Self { pause_s: LONGER * self.pause_s, ..*self };
        fit::wants_a_longer_pause(first).then_some(again)
    }
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The cells of one round.
    pub cells: Vec<PlannedCell>,
    /// Rounds that are always run. Every other round goes backwards.
    pub rounds: u32,
    /// Rounds at most, where the plan goes on until steady.
    pub most_rounds: u32,
    /// The cell whose rounds must be steady (mean IOPS and p99, both PTS rules); an index.
    pub steady_on: Option<usize>,
    /// How often the range is written from end to end before the first cell.
    pub fill_passes: u32,
    /// Whether as many bytes again are written at random after that.
    pub fill_random: bool,
    /// How long the device is left alone between writes and the reads after them, seconds.
    pub rest_s: f64,
    /// After the last round, where the target may be written.
    pub burst: Option<PlannedBurst>,
    /// Seconds of the load that commits, after that; see [`fit::commit_load`].
    pub commit_load_s: f64,
}

/// What a plan would do; the dry run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanSummary {
    /// The target as far as it is known without touching it.
    pub target: Target,
    /// The cells of one round.
    pub cells: Vec<PlannedCell>,
    /// Rounds that are always run, and rounds at most.
    pub rounds: (u32, u32),
    /// Expected seconds; for plans until steady those of the fewest rounds.
    pub expected_s: f64,
    /// Bytes that will be written to the target (wear), preconditioning included; an estimate.
    pub writes_bytes: u64,
    /// Cells that are left out because they were measured before.
    pub already_done: usize,
    /// The steps, for the event stream.
    pub steps: Vec<Step>,
}

/// A closed loop without durability, the most frequent kind of cell.
pub fn closed(order: Order, read_share: f64, size_bytes: u32, depth: u32) -> Cell {
    let (durability, arrival) = (Durability::None, Arrival::Closed);
    Cell { order, read_share, size_bytes, depth, durability, arrival }
}

fn poisson(read_share: f64, size_bytes: u32) -> Cell {
    let rate_per_s = EXPECTED_RATE_PER_S;
    Cell {
        arrival: Arrival::Poisson { rate_per_s },
        ..closed(Order::Random, read_share, size_bytes, 128)
    }
}

/// A name for a cell, unique among those that differ: `rand_read_4KiB_qd1`.
pub fn name(cell: &Cell) -> String {
    let order = if cell.order == Order::Random { "rand" } else { "seq" };
    let what = match cell.read_share {
        share if share >= 1.0 => "read".to_owned(),
        share if share <= 0.0 => "write".to_owned(),
        share => format!("mix{:.0}", share * 100.0),
    };
    let size = units::Bytes(u64::from(cell.size_bytes));
    let durability = match cell.durability {
        Durability::None => "",
        Durability::Flush => "_flush",
        Durability::Dsync => "_dsync",
    };
    let arrival = match cell.arrival {
        Arrival::Closed => String::new(),
        Arrival::Poisson { .. } => "_poisson".to_owned(),
    };
    format!("{order}_{what}_{size}_qd{}{durability}{arrival}", cell.depth)
}

/// Whether two cells are the same point of a plan; the rate of arrivals is not compared, because it
/// may depend on what was measured.
pub fn same(a: &Cell, b: &Cell) -> bool {
    let open = |cell: &Cell| cell.arrival != Arrival::Closed;
    let rateless = |cell: &Cell| Cell { arrival: Arrival::Closed, ..*cell };
    open(a) == open(b) && rateless(a) == rateless(b)
}

/// Whether a cell writes.
pub(crate) fn writes(cell: &Cell) -> bool {
    cell.read_share < 1.0
}

/// Share of the quick plan's time for the load that commits.
const COMMIT_LOAD_SHARE: f64 = 0.15;
/// Time of the burst and of the pause before it, on top of the cells', over that of the cells.
const BURST_SHARE: [f64; 2] = [0.06, 0.04];
/// Shortest burst worth measuring, and the longest pause and burst of the quick plan, seconds.
const SHORTEST_BURST_S: f64 = 1.0;
const LONGEST_S: [f64; 2] = [3.0, 2.0];
/// Pause and burst of the full plan, seconds.
const FULL_BURST_S: [f64; 2] = [60.0, 30.0];

/// Small writes one after the other: what a cache takes while it has room.
fn burst([seconds, pause_s]: [f64; 2]) -> Option<PlannedBurst> {
    let cell = closed(Order::Random, 0.0, 4096, 1);
    (seconds >= SHORTEST_BURST_S).then_some(PlannedBurst { pause_s, cell, seconds })
}

/// What `fit` needs of every device.
fn fit_cells(sizes_kib: &[u32]) -> Vec<(Cell, Option<f64>)> {
    use Order::{Random, Sequential};
    let kib = |size: u32| size << 10;
    let mut cells = Vec::new();
    for &size in sizes_kib {
        for (order, share) in [(Random, 1.0), (Sequential, 1.0), (Random, 0.0), (Sequential, 0.0)] {
            cells.push((closed(order, share, kib(size), 1), None));
        }
    }
    for depth in [2, 4, 8, 16, 32] {
        for share in [1.0, 0.0] {
            cells.push((closed(Random, share, kib(4), depth), None));
        }
    }
    for depth in [1, 30] {
        cells.push((closed(Random, 0.5, kib(4), depth), None));
    }
    // The larger sizes of the papers' figures with 30 outstanding requests.
    for size in [16, 64] {
        for share in [1.0, 0.5, 0.0] {
            cells.push((closed(Random, share, kib(size), 30), None));
        }
    }
    let durable =
        |order, size, durability| (Cell { durability, ..closed(order, 0.0, kib(size), 1) }, None);
    cells.push(durable(Random, 4, Durability::Flush));
    for size in [4, 8, 16, 32, 64] {
        cells.push(durable(Sequential, size, Durability::Flush));
    }
    cells.push(durable(Random, 4, Durability::Dsync));
    cells.push(durable(Sequential, 4, Durability::Dsync));
    // After the closed loops that their rates are shares of.
    cells.push((poisson(1.0, kib(4)), Some(0.5)));
    cells.push((poisson(0.0, kib(4)), Some(0.3)));
    cells
}

impl Plan {
    /// What `fit` needs, in about `budget_s` seconds for a disk that writes 500 MB/s or more, and a
    /// fifth of that for a burst and for rests.
    pub fn quick(info: &TargetInfo, budget_s: f64) -> Self {
        let mut cells = allowed(fit_cells(&[4, 8, 16, 64, 256]), info);
        cells.sort_by_key(|(cell, _)| writes(cell));
        let fill_s =
            if info.writable { info.range_bytes as f64 / EXPECTED_FILL_PER_S } else { 0.0 };
        let rounds = 2;
        let commit_load_s = (COMMIT_LOAD_SHARE * budget_s).min(8.0);
        let each =
            (budget_s - fill_s - commit_load_s) / f64::from(rounds) / cells.len().max(1) as f64;
        let seconds = ((each - OVERHEAD_S) / (1.0 + WARM_UP_SHARE)).clamp(0.2, 1.0);
        let burst = burst([0, 1].map(|at| (BURST_SHARE[at] * budget_s).min(LONGEST_S[at])));
        let rest_s = burst.map_or(0.0, |burst| burst.pause_s);
        let plan = Self::of(cells, seconds, rounds, 1);
        Self { rest_s, burst, commit_load_s, ..plan }.for_target(info)
    }

    /// The SNIA PTS matrix and what `fit` needs, in rounds until steady.
    pub fn full(info: &TargetInfo, cell_seconds: f64) -> Self {
        let mut cells = fit_cells(&[4, 8, 16, 32, 64, 128, 256, 1024]);
        for share in [1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0] {
            for size in [512, 4096, 8192, 16384, 32768, 65536, 131_072, 1_048_576] {
                cells.push((closed(Order::Random, share, size, 32), None));
            }
        }
        let mut unique: Vec<(Cell, Option<f64>)> = Vec::new();
        for (cell, share) in cells {
            if !unique.iter().any(|(known, _)| same(known, &cell)) {
                unique.push((cell, share));
            }
        }
        let cells = allowed(unique, info);
        let tracked_share = if info.writable { 0.0 } else { 1.0 };
        let tracked = closed(Order::Random, tracked_share, 4096, 32);
        let steady_on = cells.iter().position(|(cell, _)| same(cell, &tracked));
        let plan = Self::of(cells, cell_seconds, stats::steady::WINDOW as u32, 2);
        let plan = Self { most_rounds: MOST_ROUNDS, steady_on, fill_random: true, ..plan };
        Self { burst: burst(FULL_BURST_S), commit_load_s: 60.0, ..plan }.for_target(info)
    }

    /// These cells once, in this order.
    pub fn of_cells(info: &TargetInfo, cells: &[Cell], cell_seconds: f64) -> Self {
        let cells = cells.iter().map(|cell| (*cell, None)).collect();
        Self::of(cells, cell_seconds, 1, 1).for_target(info)
    }

    fn of(cells: Vec<(Cell, Option<f64>)>, seconds: f64, rounds: u32, fill_passes: u32) -> Self {
        let planned = |(cell, rate_share)| PlannedCell { cell, seconds, rate_share };
        let cells = cells.into_iter().map(planned).collect();
        Self {
            cells,
            rounds,
            most_rounds: rounds,
            steady_on: None,
            fill_passes,
            fill_random: false,
            rest_s: 0.0,
            burst: None,
            commit_load_s: 0.0,
        }
    }

    /// Only a target that may be written is filled, and one that holds data already only where
    /// cells write to it anyway.
    fn for_target(mut self, info: &TargetInfo) -> Self {
        let any_writes = self.cells.iter().any(|planned| writes(&planned.cell));
        if !info.writable || !(info.fresh || any_writes) {
            self.fill_passes = 0;
            self.fill_random = false;
        }
        if !info.writable {
            self.commit_load_s = 0.0;
        }
        let fits = |burst: &PlannedBurst| allows(info, &burst.cell);
        self.burst = self.burst.filter(fits);
        self
    }

    /// The cells of a round in the order in which it runs them; rounds count from 0.
    pub fn round(&self, round: u32) -> Vec<usize> {
        let forwards = 0..self.cells.len();
        if round.is_multiple_of(2) { forwards.collect() } else { forwards.rev().collect() }
    }

    /// How long the device is left alone before a cell, seconds, by whether it was written to last.
    pub fn rest_before(&self, cell: &Cell, written: bool) -> f64 {
        if written && !writes(cell) { self.rest_s } else { 0.0 }
    }

    /// Seconds of rest in the rounds that are always run.
    fn rests_s(&self) -> f64 {
        let mut written = self.fill_passes > 0;
        let order = (0..self.rounds).flat_map(|round| self.round(round));
        let rests = order.map(|index| {
            let cell = &self.cells[index].cell;
            let rest_s = self.rest_before(cell, written);
            written = writes(cell);
            rest_s
        });
        rests.sum()
    }

    /// Bytes that preconditioning writes.
    pub fn fill_bytes(&self, range_bytes: u64) -> u64 {
        range_bytes * u64::from(self.fill_passes + u32::from(self.fill_random))
    }

    /// Expected seconds of preconditioning and of one round.
    pub fn expected_s(&self, range_bytes: u64) -> (f64, f64) {
        let fill_s = self.fill_bytes(range_bytes) as f64 / EXPECTED_FILL_PER_S;
        (fill_s, self.cells.iter().map(PlannedCell::expected_s).sum())
    }

    /// What it would do to a target, given the cells measured before.
    pub fn summary(&self, info: &TargetInfo, already_done: usize) -> PlanSummary {
        let range_bytes = info.range_bytes;
        let (fill_s, _) = self.expected_s(range_bytes);
        let mut steps = Vec::new();
        if self.fill_passes > 0 {
            let writes_bytes = self.fill_bytes(range_bytes);
            steps.push(Step { name: "precondition".to_owned(), expected_s: fill_s, writes_bytes });
        }
        let planned = (0..self.rounds).flat_map(|round| {
            self.round(round).into_iter().map(move |index| (round, &self.cells[index]))
        });
        steps.extend(planned.skip(already_done).map(|(round, planned)| Step {
            name: format!("round {} {}", round + 1, name(&planned.cell)),
            expected_s: planned.expected_s(),
            writes_bytes: planned.expected_writes_bytes(),
        }));
        if let Some(burst) = &self.burst {
            steps.push(Step {
                name: format!("{} after a pause", name(&burst.cell)),
                expected_s: burst.expected_s(),
                writes_bytes: (burst.seconds * EXPECTED_RATE_PER_S) as u64
                    * u64::from(burst.cell.size_bytes),
            });
        }
        if self.commit_load_s > 0.0 {
            // About a third of its time goes into writes, at the speed expected of random ones.
            let writes_bytes = (self.commit_load_s * 0.3 * EXPECTED_FILL_PER_S) as u64;
            let (name, expected_s) = ("commit load".to_owned(), self.commit_load_s);
            steps.push(Step { name, expected_s, writes_bytes });
        }
        PlanSummary {
            target: measured_target(info),
            cells: self.cells.clone(),
            rounds: (self.rounds, self.most_rounds),
            expected_s: self.rests_s() + steps.iter().map(|step| step.expected_s).sum::<f64>(),
            writes_bytes: steps.iter().map(|step| step.writes_bytes).sum(),
            already_done,
            steps,
        }
    }
}

impl PlannedCell {
    /// Seconds including warm-up and setting up.
    pub fn expected_s(&self) -> f64 {
        self.seconds * (1.0 + WARM_UP_SHARE) + OVERHEAD_S
    }

    /// Bytes it is expected to write: 10,000 requests per second and slot, up to 1 GB/s.
    pub fn expected_writes_bytes(&self) -> u64 {
        let rate_per_s = match self.cell.arrival {
            Arrival::Closed => EXPECTED_RATE_PER_S * f64::from(self.cell.depth).min(10.0),
            Arrival::Poisson { rate_per_s } => rate_per_s,
        };
        let bytes_per_s = (rate_per_s * f64::from(self.cell.size_bytes)).min(EXPECTED_BYTES_PER_S);
        let seconds = self.seconds * (1.0 + WARM_UP_SHARE);
        (bytes_per_s * seconds * (1.0 - self.cell.read_share)) as u64
    }
}

/// A target as the result names it.
pub(crate) fn measured_target(info: &TargetInfo) -> Target {
    Target {
        path: info.named.display().to_string(),
        kind: info.kind.name().to_owned(),
        range_bytes: info.range_bytes,
        logical_block_bytes: info.logical_block_bytes,
        facts: info.facts.clone(),
    }
}

/// Leaves out what the target cannot do.
fn allowed(cells: Vec<(Cell, Option<f64>)>, info: &TargetInfo) -> Vec<(Cell, Option<f64>)> {
    cells.into_iter().filter(|(cell, _)| allows(info, cell)).collect()
}

fn allows(info: &TargetInfo, cell: &Cell) -> bool {
    (info.writable || cell.read_share >= 1.0)
        && cell.size_bytes.is_multiple_of(info.logical_block_bytes)
        && u64::from(cell.size_bytes) <= info.range_bytes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn info(writable: bool, block: u32) -> TargetInfo {
        TargetInfo {
            path: "x".into(),
            range_bytes: 1 << 30,
            logical_block_bytes: block,
            writable,
            fresh: writable,
            ..TargetInfo::default()
        }
    }

    #[test]
    fn the_quick_plan_takes_under_a_minute() {
        let plan = Plan::quick(&info(true, 512), 45.0);
        let summary = plan.summary(&info(true, 512), 0);
        assert!(summary.expected_s < 55.0, "{} s", summary.expected_s);
        assert!(plan.cells[0].seconds >= 0.3, "{} s per cell", plan.cells[0].seconds);
        assert!(summary.writes_bytes > 1 << 30);
    }

    #[test]
    fn names_are_unique_within_a_plan() {
        for plan in [Plan::quick(&info(true, 512), 45.0), Plan::full(&info(true, 512), 5.0)] {
            let names: HashSet<String> = plan.cells.iter().map(|p| name(&p.cell)).collect();
            assert_eq!(names.len(), plan.cells.len());
            let steps: HashSet<String> =
                plan.summary(&info(true, 512), 0).steps.into_iter().map(|step| step.name).collect();
            assert_eq!(steps.len(), plan.cells.len() * plan.rounds as usize + 3);
        }
    }

    #[test]
    fn the_full_plan_has_the_pts_matrix_and_tracks_random_writes() {
        let plan = Plan::full(&info(true, 512), 5.0);
        let tracked = plan.cells[plan.steady_on.unwrap()].cell;
        assert_eq!(name(&tracked), "rand_write_4KiB_qd32");
        for size in [512, 1 << 20] {
            assert!(plan.cells.iter().any(|p| p.cell.size_bytes == size && p.cell.depth == 32));
        }
        assert_eq!((plan.rounds, plan.most_rounds, plan.fill_passes), (5, 25, 2));
    }

    #[test]
    fn a_plan_asks_nothing_that_the_target_cannot_do() {
        let plan = Plan::full(&info(false, 4096), 5.0);
        assert!(plan.cells.iter().all(|p| p.cell.read_share >= 1.0 && p.cell.size_bytes >= 4096));
        assert_eq!(plan.fill_bytes(1 << 30), 0);
        assert_eq!(plan.summary(&info(false, 4096), 0).writes_bytes, 0);
    }

    #[test]
    fn reads_of_the_quick_plan_come_together_after_a_rest() {
        let plan = Plan::quick(&info(true, 512), 45.0);
        let order: Vec<usize> = (0..plan.rounds).flat_map(|round| plan.round(round)).collect();
        let mut written = true;
        let mut rests = 0;
        for index in order {
            let cell = &plan.cells[index].cell;
            rests += u32::from(plan.rest_before(cell, written) > 0.0);
            written = writes(cell);
        }
        assert_eq!(rests, 2, "after the fill, and after the writes of both rounds");
        assert!((plan.rests_s() - 2.0 * plan.burst.unwrap().pause_s).abs() < 1e-9);
    }

    #[test]
    fn every_other_round_goes_backwards() {
        let plan = Plan::quick(&info(true, 512), 45.0);
        let (first, mut second) = (plan.round(0), plan.round(1));
        second.reverse();
        assert_eq!(first, second);
    }
}
