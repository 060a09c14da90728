//! What holds on any device, shown on the one that does nothing.

use events::{Ending, Event};
use fit::measurement::{Arrival, Cell, CellResult, Durability, Order};
use io::engine::{Completion, Device, Engine, EngineOptions, NullDevice, Submission, Wait};
use probe::plan::closed;
use probe::{Error, Options, run_on};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Mutex;
use trace::Op;

use crate::{Recording, cells, info, options};

const RANGE: u64 = 64 << 20;

fn measure(options: &Options) -> Vec<CellResult> {
    let device = NullDevice { size_bytes: RANGE };
    let sink = Recording::default();
    run_on(&device, &info(RANGE), options, Vec::new(), &sink, &mut |_| {}).unwrap().cells
}

#[test]
fn every_kind_of_cell_gives_what_its_definition_says() {
    let results = measure(&options("null", cells(), RANGE));
    assert_eq!(results.len(), 6);
    for result in &results {
        let share = |op: Op| {
            let class = result.classes.iter().find(|class| class.op == op);
            class.map_or(0, |class| class.service.count) as f64 / result.requests as f64
        };
        let expected = result.cell.read_share;
        assert!((share(Op::Read) - expected).abs() < 0.05, "{result:?}");
        assert!((share(Op::Write) - (1.0 - expected)).abs() < 0.05, "{result:?}");
        let flushes = result.cell.durability == Durability::Flush;
        assert!((share(Op::Flush) - f64::from(u8::from(flushes))).abs() < 0.01, "{result:?}");
        assert_eq!(result.bytes, result.requests * u64::from(result.cell.size_bytes));
        assert!((result.elapsed_s - 0.05).abs() < 1e-6);
        for class in &result.classes {
            let counted: u64 = class.service.buckets.iter().map(|(_, count)| count).sum();
            assert_eq!(counted, class.service.count);
            assert_eq!(class.response.count, class.service.count);
            if result.cell.arrival == Arrival::Closed {
                assert_eq!(class.response, class.service);
            } else {
                assert!(class.response.mean_ns >= class.service.mean_ns);
            }
        }
        let windows: f64 = result.windows.iter().map(|w| w.iops * 0.05 / 5.0).sum();
        assert!((windows - result.requests as f64).abs() < 1.0 + 1e-6 * windows, "{windows}");
    }
}

#[test]
fn progress_never_falls_and_the_stream_is_complete() {
    let device = NullDevice { size_bytes: RANGE };
    let sink = Recording::default();
    let mut handed = Vec::new();
    let plan = options("null", cells(), RANGE);
    let measured = run_on(&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |cell| {
        handed.push(cell.clone());
    });
    assert_eq!(handed, measured.unwrap().cells);
    let events = sink.taken();
    assert!(matches!(&events[0], Event::Plan { steps, .. } if steps.len() == 7));
    let is_end = |event: &Event| matches!(event, Event::Done { ending: Ending::Complete, .. });
    assert!(is_end(events.last().unwrap()));
    let mut last = 0.0;
    for event in events {
        if let Event::Progress { done, .. } = event {
            assert!(done >= last && done <= 1.0, "{last} then {done}");
            last = done;
        }
    }
    assert!(last > 0.5, "{last}");
}

#[test]
fn a_cancelled_run_keeps_what_it_has_and_resumes() {
    let device = NullDevice { size_bytes: RANGE };
    let mut plan = options("null", cells(), RANGE);
    plan.precondition = false;
    let sink = Recording { stop_at: Some(6), ..Recording::default() };
    let first = run_on(&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {}).unwrap();
    assert!(!first.cells.is_empty() && first.cells.len() < 6, "{} cells", first.cells.len());
    let events = sink.taken();
    assert!(matches!(events.last(), Some(Event::Done { ending: Ending::Interrupted, .. })));

    plan.done = first.cells.clone();
    let mut handed = 0;
    let sink = Recording::default();
    let second =
        run_on(&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| handed += 1).unwrap();
    assert_eq!(second.cells.len(), 6);
    assert_eq!(handed, 6 - first.cells.len());
    assert_eq!(second.cells[..first.cells.len()], first.cells);
    let planned: Vec<Cell> = second.cells.iter().map(|result| result.cell).collect();
    assert_eq!(planned, cells());
}

#[test]
fn a_run_that_is_done_measures_nothing() {
    let mut plan = options("null", cells(), RANGE);
    plan.done = measure(&plan);
    let mut handed = 0;
    let device = NullDevice { size_bytes: RANGE };
    let sink = Recording::default();
    let again = run_on(&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| handed += 1);
    assert_eq!((again.unwrap().cells, handed), (plan.done, 0));
}

#[test]
fn impossible_cells_are_refused() {
    let good = closed(Order::Random, 1.0, 4096, 1);
    let poisson = |rate_per_s| Arrival::Poisson { rate_per_s };
    for (cell, why) in [
        (Cell { size_bytes: 1000, ..good }, "logical block"),
        (Cell { size_bytes: 0, ..good }, "logical block"),
        (Cell { size_bytes: 128 << 20, ..good }, "do not fit"),
        (Cell { depth: 0, ..good }, "depth"),
        (Cell { read_share: 1.5, ..good }, "read share"),
        (Cell { read_share: f64::NAN, ..good }, "read share"),
        (Cell { arrival: poisson(0.0), ..good }, "arrival rate"),
        (Cell { arrival: poisson(f64::INFINITY), ..good }, "arrival rate"),
    ] {
        let device = NullDevice { size_bytes: RANGE };
        let plan = options("null", vec![cell], RANGE);
        let sink = Recording::default();
        let outcome = run_on(&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {});
        match outcome {
            Err(Error::BadCell { why: said }) => assert!(said.contains(why), "{said}"),
            other => panic!("{cell:?}: {other:?}"),
        }
    }
}

/// Writes down what reaches the device; holds completions back, in an order of its own.
struct Watched {
    seen: Mutex<Vec<(Submission, u64)>>,
    hold: usize,
}

struct WatchedEngine<'a> {
    device: &'a Watched,
    memory: Vec<u8>,
    held: Vec<Completion>,
    busy: Vec<bool>,
}

impl Engine for WatchedEngine<'_> {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.busy[slot as usize], "the buffer of a request under way was touched");
        &mut self.memory
    }

    fn queue(&mut self, submission: Submission) {
        let busy = &mut self.busy[submission.slot as usize];
        assert!(!*busy, "a slot was used twice at once");
        *busy = true;
        self.device.seen.lock().unwrap().push((submission, probe::clock::now_ns()));
        self.held.push(Completion { slot: submission.slot, result: submission.len as i32 });
    }

    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> std::io::Result<()> {
        let keep = match wait {
            Wait::For(count) => {
                assert!(count as usize <= self.held.len(), "waits for more than is outstanding");
                self.device.hold.min(self.held.len() - count as usize)
            }
            _ => self.device.hold.min(self.held.len()),
        };
        while self.held.len() > keep {
            let completion = self.held.remove(self.held.len() / 2);
            self.busy[completion.slot as usize] = false;
            completions.push(completion);
        }
        Ok(())
    }

    fn ready(&mut self) -> bool {
        self.held.len() > self.device.hold
    }
}

impl Drop for WatchedEngine<'_> {
    fn drop(&mut self) {
        assert!(self.held.is_empty(), "requests in are not completions out");
    }
}

impl<'a> Device for &'a Watched {
    type Engine = WatchedEngine<'a>;

    fn path(&self) -> &Path {
        Path::new("watched")
    }

    fn engine(&self, options: EngineOptions) -> Result<Self::Engine, io::Error> {
        Ok(WatchedEngine {
            device: self,
            memory: vec![0; options.slot_bytes as usize],
            held: Vec::new(),
            busy: vec![false; options.slots as usize],
        })
    }

    fn size_bytes(&self) -> std::io::Result<u64> {
        Ok(RANGE)
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn watched(cell: Cell, hold: usize, seconds: f64) -> (CellResult, Vec<(Submission, u64)>) {
    let device = Watched { seen: Mutex::default(), hold };
    let mut plan = options("watched", vec![cell], RANGE);
    plan.precondition = false;
    plan.cell_seconds = Some(seconds);
    let sink = Recording::default();
    let measured = run_on(&&device, &info(RANGE), &plan, Vec::new(), &sink, &mut |_| {}).unwrap();
    (measured.cells[0].clone(), device.seen.into_inner().unwrap())
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let order = prop_oneof![Just(Order::Sequential), Just(Order::Random)];
    let durability =
        prop_oneof![Just(Durability::None), Just(Durability::Flush), Just(Durability::Dsync)];
    let arrival = prop_oneof![
        Just(Arrival::Closed),
        (1_000.0f64..50_000.0).prop_map(|rate_per_s| Arrival::Poisson { rate_per_s })
    ];
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0];
    (order, share, 1u32..64, 1u32..40, durability, arrival).prop_map(
        |(order, read_share, blocks, depth, durability, arrival)| Cell {
            order,
            read_share,
            size_bytes: blocks * 512,
            depth,
            durability,
            arrival,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Requests in = completions out, at most `depth` at once, no slot or buffer used twice (the
    /// engine asserts these), everything aligned and inside the range.
    #[test]
    fn requests_are_conserved_and_stay_in_bounds(cell in any_cell(), hold in 0usize..8) {
        let (result, seen) = watched(cell, hold, 0.01);
        let transfers = seen.iter().filter(|(s, _)| s.op != Op::Flush);
        let mut places = Vec::new();
        for (submission, _) in transfers {
            prop_assert_eq!(submission.len, cell.size_bytes);
            prop_assert!(submission.offset.is_multiple_of(u64::from(cell.size_bytes)));
            prop_assert!(submission.offset + u64::from(submission.len) <= RANGE);
            places.push(submission.offset / u64::from(cell.size_bytes));
        }
        prop_assert!(result.requests as usize <= places.len());
        if cell.order == Order::Sequential {
            let follows = |pair: &[u64]| pair[1] == pair[0] + 1 || pair[1] == 0;
            prop_assert!(places.windows(2).all(follows));
        }
    }
}

#[test]
fn random_places_are_uniform() {
    let (_, seen) = watched(closed(Order::Random, 1.0, 4096, 4), 2, 0.05);
    let mut counts = [0f64; 16];
    for (submission, _) in &seen {
        counts[(submission.offset / (RANGE / 16)) as usize] += 1.0;
    }
    let expected = seen.len() as f64 / 16.0;
    let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    // Chi-square with 15 degrees of freedom: 37.7 is exceeded once in a thousand.
    assert!(chi < 37.7, "chi-square {chi} over {} requests", seen.len());
}

/// Arrivals are counted over the whole run, so that a late thread shifts but does not change them:
/// their number is Poisson with the planned mean.
#[test]
fn open_loop_arrivals_come_at_their_rate() {
    let rate_per_s = 40_000.0;
    let cell =
        Cell { arrival: Arrival::Poisson { rate_per_s }, ..closed(Order::Random, 1.0, 4096, 64) };
    let (result, seen) = watched(cell, 0, 0.5);
    let expected = rate_per_s * 0.55;
    let deviations = (seen.len() as f64 - expected).abs() / expected.sqrt();
    assert!(deviations < 5.0, "{} arrivals, expected {expected}", seen.len());
    let response = &result.classes[0].response;
    assert!(response.mean_ns >= result.classes[0].service.mean_ns);
}
