//! The cells of a probe on a modelled device, in virtual time: what a profile says lies beside what
//! a disk does, and a fit can be tried on a device whose parameters are known.
//!
//! One device goes through the fill and all cells, as a disk does, so that a cell finds what the
//! one before left in its cache. Cells last as long as in the quick plan. Left out are writes that
//! are durable one by one (`O_DSYNC`) and the load that commits: both are made of calls, and a
//! model takes requests.

use events::{Event, Sink};
use fit::measurement::{
    Arrival, Cell, CellResult, ClassResult, Durability, Measurements, Order, Target, Window,
};
use io::target::{TargetInfo, TargetKind};
use model::Device;
use probe::cell::distribution;
use probe::plan::{self, Plan, PlannedCell, WARM_UP_SHARE};
use profile::Profile;
use profile::linear::Pattern;
use sim::{Synthetic, Watched};
use stats::Histogram;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::Error;

const STAGE: &str = "probe";
/// Seconds that the quick plan would take on a disk.
const BUDGET_S: f64 = 45.0;
/// Between two cells, as on a disk: a cache goes on writing back.
const PAUSE_NS: u64 = 30_000_000;
/// Requests of the fill, and how many are outstanding.
const FILL: (u32, usize) = (1 << 20, 8);
/// Windows of a cell.
const WINDOWS: usize = 20;
/// Smallest request: what a page of every kind of device is a multiple of.
const BLOCK_BYTES: u32 = 4096;

/// Probes the device of `profile`; `None` where the user stopped it.
///
/// # Errors
/// Where the device holds less than `range`.
pub fn probe(
    profile: &Profile,
    range: Bytes,
    seed: u64,
    sink: &dyn Sink,
) -> Result<Option<Measurements>, Error> {
    if let Some(capacity) = profile.capacity().filter(|capacity| *capacity < range) {
        return Err(Error::RangeBeyondDevice {
            profile: profile.name().to_owned(),
            range,
            capacity,
        });
    }
    let plan = Plan::quick(&as_target(profile, range), BUDGET_S);
    let planned: Vec<&PlannedCell> = (0..plan.rounds)
        .flat_map(|round| plan.round(round))
        .map(|index| &plan.cells[index])
        .filter(|planned| planned.cell.durability != Durability::Dsync)
        .collect();
    let mut session = Session {
        device: model::device(profile, seed),
        range_bytes: range.0,
        seed,
        at_ns: 0,
        cells: Vec::new(),
    };
    session.fill();
    for (done, cell) in planned.iter().enumerate() {
        if sink.cancelled() {
            return Ok(None);
        }
        sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: done as f64 / planned.len() as f64,
            doing: plan::name(&cell.cell),
            eta_s: None,
        });
        session.measure(cell);
    }
    let facts = [("model".to_owned(), profile.profile.description.clone())];
    let target = Target {
        path: profile.name().to_owned(),
        kind: "model".to_owned(),
        range_bytes: range.0,
        logical_block_bytes: BLOCK_BYTES,
        facts: facts.into_iter().collect(),
    };
    let (schema, cells) = (probe::SCHEMA, session.cells);
    Ok(Some(Measurements { schema, target, cells, commit_load: None, warnings: Vec::new() }))
}

/// What a plan is made for.
fn as_target(profile: &Profile, range: Bytes) -> TargetInfo {
    TargetInfo {
        named: profile.name().into(),
        path: profile.name().into(),
        kind: TargetKind::BlockDevice,
        range_bytes: range.0,
        logical_block_bytes: BLOCK_BYTES,
        facts: std::collections::BTreeMap::new(),
        writable: true,
        fresh: true,
    }
}

/// A probe under way.
struct Session {
    device: Box<dyn Device>,
    range_bytes: u64,
    seed: u64,
    /// The device's clock.
    at_ns: u64,
    cells: Vec<CellResult>,
}

impl Session {
    /// Writes the range from end to end: what was never written has no place on flash.
    fn fill(&mut self) {
        let (size, depth) = FILL;
        let load = Synthetic {
            range_bytes: self.range_bytes,
            ..Synthetic::new(Pattern::Sequential, 0.0, size)
        };
        let count = self.range_bytes.div_ceil(u64::from(size));
        let found = sim::closed_loop_depth(self.device.as_mut(), load, depth, count);
        self.at_ns = found.end_ns;
        self.settle();
    }

    fn measure(&mut self, planned: &PlannedCell) {
        let cell = self.resolve(planned);
        let started_s = self.at_ns as f64 / 1e9;
        let warm_up_ns = (planned.seconds * WARM_UP_SHARE * 1e9) as u64;
        let start_ns = self.at_ns + warm_up_ns;
        let span_ns = start_ns..start_ns + (planned.seconds * 1e9) as u64;
        // Repeats of a cell visit different places.
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.cells.len() as u64);
        let result = match cell.arrival {
            Arrival::Closed => self.closed(&cell, seed, span_ns),
            Arrival::Poisson { rate_per_s } => self.open(&cell, seed, span_ns, rate_per_s),
        };
        self.cells.push(CellResult { started_s, ..result });
        self.settle();
    }

    /// The cell with the rate of its arrivals filled in, as [`probe::run_on`] does it.
    fn resolve(&self, planned: &PlannedCell) -> Cell {
        let Some(share) = planned.rate_share else { return planned.cell };
        let Cell { order, read_share, size_bytes, .. } = planned.cell;
        let closed = plan::closed(order, read_share, size_bytes, 8);
        let same = self.cells.iter().filter(|result| plan::same(&result.cell, &closed));
        let rates = same.map(|result| result.requests as f64 / result.elapsed_s);
        match rates.reduce(f64::min) {
            Some(rate) if rate > 0.0 => {
                let rate_per_s = (rate * share).round().max(1.0);
                Cell { arrival: Arrival::Poisson { rate_per_s }, ..planned.cell }
            }
            _ => planned.cell,
        }
    }

    /// A fixed number of outstanding requests.
    fn closed(&mut self, cell: &Cell, seed: u64, span_ns: std::ops::Range<u64>) -> CellResult {
        let load = Synthetic {
            range_bytes: self.range_bytes,
            flush_each_write: cell.durability == Durability::Flush,
            start_ns: self.at_ns,
            seed,
            ..Synthetic::new(pattern(cell.order), cell.read_share, cell.size_bytes)
        };
        let span_s = (span_ns.end - span_ns.start) as f64 / 1e9;
        let device = self.device.as_mut();
        let found = sim::closed_loop_span(device, load, cell.depth as usize, span_ns, WINDOWS);
        self.at_ns = found.end_ns.max(self.at_ns);
        let window_s = span_s / WINDOWS as f64;
        let windows = found.windows.iter().enumerate().map(|(index, own)| Window {
            at_s: index as f64 * window_s,
            iops: own.count() as f64 / window_s,
            p99_ns: own.quantile(0.99),
        });
        let times =
            [(Op::Read, &found.reads), (Op::Write, &found.writes), (Op::Flush, &found.flushes)];
        result(
            cell,
            span_s,
            found.requests,
            times.map(|(op, own)| (op, own.clone())),
            windows.collect(),
        )
    }

    /// Poisson arrivals.
    fn open(
        &mut self,
        cell: &Cell,
        seed: u64,
        span_ns: std::ops::Range<u64>,
        rate_per_s: f64,
    ) -> CellResult {
        let mut rng = Rng::new(seed);
        let streams = vec![Stream { name: "data".to_owned() }];
        let mut trace = Trace { streams, ..Trace::default() };
        let places = self.range_bytes / u64::from(cell.size_bytes);
        let mut due = self.at_ns as f64;
        loop {
            due += rng.exponential(1e9 / rate_per_s);
            if due >= span_ns.end as f64 {
                break;
            }
            let op = if rng.unit() < cell.read_share { Op::Read } else { Op::Write };
            let offset = Bytes(rng.below(places) * u64::from(cell.size_bytes));
            let due = Nanos(due as u64);
            trace.push(Request { due, offset, len: cell.size_bytes, op, stream: 0 });
        }
        let watched = Watched { warm_up_ns: span_ns.start, ..Watched::default() };
        let found = sim::replay_with(self.device.as_mut(), &trace, watched);
        let found = found.expect("nobody stops it");
        self.at_ns = found.span_ns.max(span_ns.end);
        let times = [Op::Read, Op::Write].map(|op| (op, found.response_of(op)));
        let span_s = (span_ns.end - span_ns.start) as f64 / 1e9;
        result(cell, span_s, found.requests, times, Vec::new())
    }

    /// What a cell left in a cache must not be written during the next one.
    fn settle(&mut self) {
        let flush =
            Request { due: Nanos(self.at_ns), offset: Bytes(0), len: 0, op: Op::Flush, stream: 0 };
        let mut trace =
            Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
        trace.push(flush);
        self.at_ns = sim::replay(self.device.as_mut(), &trace).span_ns.max(self.at_ns) + PAUSE_NS;
    }
}

fn pattern(order: Order) -> Pattern {
    match order {
        Order::Sequential => Pattern::Sequential,
        Order::Random => Pattern::Random,
    }
}

fn result(
    cell: &Cell,
    elapsed_s: f64,
    requests: u64,
    times: impl IntoIterator<Item = (Op, Histogram)>,
    windows: Vec<Window>,
) -> CellResult {
    let seen = times.into_iter().filter(|(_, times)| !times.is_empty());
    let class = |(op, times): (Op, Histogram)| {
        let times = distribution(&times);
        ClassResult { op, service: times.clone(), response: times }
    };
    CellResult {
        cell: *cell,
        started_s: 0.0,
        elapsed_s,
        requests,
        bytes: requests * u64::from(cell.size_bytes),
        cpu_user_ns: 0.0,
        cpu_system_ns: 0.0,
        classes: seen.map(class).collect(),
        windows,
        steady: None,
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use events::Quiet;
    use fit::FitOptions;

    use super::*;
    use crate::profiles::read_profile;

    fn probed(name: &str) -> (Profile, Measurements) {
        let profile = read_profile(name).expect("it ships");
        let measured = probe(&profile, Bytes::GIB, 1, &Quiet).expect("it fits");
        (profile, measured.expect("nobody stops it"))
    }

    /// The mean of a class in all cells like `cell`, us.
    fn mean_us(measured: &Measurements, cell: &Cell, op: Op) -> f64 {
        let cells = measured.cells.iter().filter(|result| plan::same(&result.cell, cell));
        let classes = cells.flat_map(|result| &result.classes).filter(|class| class.op == op);
        let means: Vec<f64> = classes.map(|class| class.response.mean_ns / 1e3).collect();
        means.iter().sum::<f64>() / means.len() as f64
    }

    #[test]
    fn the_lines_of_a_profile_come_out_of_its_probe() {
        let (_, measured) = probed("intel-x25-m-g2");
        let fitted = fit::fit(&measured, &FitOptions { seed: 1, name: "again".to_owned() })
            .expect("it can be fitted");
        let again = probe(&fitted.profile, Bytes::GIB, 1, &Quiet).unwrap().unwrap();
        for (read_share, op) in [(1.0, Op::Read), (0.0, Op::Write)] {
            for size in [4, 16, 64] {
                let cell = plan::closed(Order::Random, read_share, size << 10, 1);
                let (one, two) = (mean_us(&measured, &cell, op), mean_us(&again, &cell, op));
                assert!((two / one - 1.0).abs() < 0.15, "{op:?} {size} KiB: {one} us, again {two}");
            }
        }
    }

    #[test]
    fn cells_are_those_of_a_disk_and_conserve_requests() {
        let (_, measured) = probed("hgst-hds72107");
        let one = measured.cells.len() / 2;
        for (forwards, backwards) in
            measured.cells[..one].iter().zip(measured.cells[one..].iter().rev())
        {
            assert!(plan::same(&forwards.cell, &backwards.cell), "rounds go there and back");
        }
        for result in &measured.cells {
            let name = plan::name(&result.cell);
            let counted = |op| {
                let own = result.classes.iter().find(|class| class.op == op);
                own.map_or(0, |class| class.response.count)
            };
            assert_eq!(counted(Op::Read) + counted(Op::Write), result.requests, "{name}");
            assert_eq!(
                counted(Op::Flush) > 0,
                result.cell.durability == Durability::Flush,
                "{name}"
            );
            let in_windows: f64 = result.windows.iter().map(|own| own.iops).sum();
            let per_window = result.elapsed_s / WINDOWS as f64;
            if !result.windows.is_empty() {
                assert!((in_windows * per_window - result.requests as f64).abs() < 1e-6, "{name}");
            }
        }
        // An arm and a platter: 7,200 turns a minute, half of one on average.
        let random = plan::closed(Order::Random, 1.0, 4096, 1);
        let mean = mean_us(&measured, &random, Op::Read);
        assert!((4_200.0..20_000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_range_beyond_the_device_is_refused() {
        let profile = read_profile("generic-slc-8g").expect("it ships");
        let error = probe(&profile, Bytes(8 << 30), 1, &Quiet).unwrap_err();
        assert!(error.to_string().contains("6.5"), "{error}");
    }
}
