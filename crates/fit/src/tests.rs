//! Measurements made by a known model give that model back; damaged ones give an error or a note.

use std::collections::BTreeMap;

use events::Hint;
use model::{Device, Linear, WriteCache};
use profile::Quantiles;
use profile::linear::{Context, Detection, Flush, Line, LinearParameters, Mixed, Residual};
use profile::write_cache::WriteCacheParameters;
use stats::Histogram;
use stats::rng::Rng;
use trace::Request;
use units::Nanos;

use super::*;
use crate::commit_load;
use crate::measurement::{
    Arrival, Cell, CellResult, ClassResult, CommitClass, CommitLoad, Distribution, Durability,
    Order, Window,
};

const RANGE_BYTES: u64 = 1 << 30;
/// Samples per cell: a quick probe has about as many.
const SAMPLES: usize = 6000;

fn line(base_us: f64, us_per_kib: f64, iops: f64, mb_per_s: f64) -> Line {
    Line {
        base_ns: base_us * 1e3,
        ns_per_byte: us_per_kib * 1e3 / 1024.0,
        ceiling_iops: Some(iops),
        ceiling_bytes_per_s: Some(mb_per_s * 1e6),
    }
}

/// A device with a bimodal write, a long tail, flushes and penalties: everything there is to find.
fn known() -> LinearParameters {
    let smooth = Quantiles(vec![(0.0, 0.8), (0.5, 0.9), (0.9, 1.3), (0.99, 2.0), (1.0, 9.3)]);
    let cliff = Quantiles(vec![(0.0, 0.6), (0.85, 0.7), (0.86, 2.4), (0.99, 2.9), (1.0, 6.0)]);
    let residual = |op, context, ratios: &Quantiles, mean: f64| Residual {
        op,
        pattern: None,
        size_bytes: None,
        context,
        ratios: ratios.scaled(mean / ratios.mean()),
    };
    LinearParameters {
        capacity: None,
        read: [line(40.0, 1.0, 80_000.0, 3e3), line(60.0, 3.0, 50_000.0, 1.2e3)],
        write: [line(20.0, 1.5, 60_000.0, 2e3), line(30.0, 4.0, 30_000.0, 1e3)],
        parallelism: 4,
        detection: Detection::PerStream,
        mixed: Mixed { read_factor: 1.8, write_factor: 1.2, window_requests: 32 },
        flush: Flush { base_ns: 200_000.0, ns_per_dirty_byte: 2.0, ns_per_dirty_request: 0.0 },
        trim_ns: 0.0,
        residuals: vec![
            residual(Op::Read, Context::Any, &smooth, 1.0),
            residual(Op::Write, Context::Any, &cliff, 1.0),
            residual(Op::Write, Context::AfterFlush, &smooth, 1.5),
            residual(Op::Flush, Context::Any, &cliff, 1.0),
        ],
    }
}

fn known_device(seed: u64) -> Box<dyn Device> {
    Box::new(Linear::new(&known(), seed))
}

fn cell(order: Order, read_share: f64, size_bytes: u32, depth: u32) -> Cell {
    let (durability, arrival) = (Durability::None, Arrival::Closed);
    Cell { order, read_share, size_bytes, depth, durability, arrival }
}

fn distribution(times: &[u64]) -> Distribution {
    let mut histogram = Histogram::new();
    for time in times {
        histogram.record(*time);
    }
    Distribution {
        count: histogram.count(),
        mean_ns: histogram.mean(),
        min_ns: histogram.min(),
        max_ns: histogram.max(),
        buckets: histogram.buckets(),
    }
}

/// What a probe would measure of `device` in `cell`.
fn measure(device: &mut dyn Device, cell: Cell, seed: u64) -> CellResult {
    let (times, iops) = check::simulate(device, (&cell, RANGE_BYTES), SAMPLES, seed);
    let elapsed_s = SAMPLES as f64 / iops;
    let mut classes = Vec::new();
    for op in Op::ALL {
        if !times[op as usize].is_empty() {
            let service = distribution(&times[op as usize]);
            classes.push(ClassResult { op, response: service.clone(), service });
        }
    }
    let windows = windows(&times.concat(), elapsed_s, iops);
    CellResult {
        cell,
        started_s: 0.0,
        elapsed_s,
        requests: SAMPLES as u64,
        bytes: SAMPLES as u64 * u64::from(cell.size_bytes),
        cpu_user_ns: 0.0,
        cpu_system_ns: 0.0,
        classes,
        windows,
        steady: Some(true),
        warnings: Vec::new(),
    }
}

/// Twenty windows, right for one outstanding request.
fn windows(times: &[u64], elapsed_s: f64, iops: f64) -> Vec<Window> {
    let width_s = elapsed_s / 20.0;
    let mut counts = [0u64; 20];
    let scale = SAMPLES as f64 * 1e9 / iops / times.iter().sum::<u64>() as f64;
    let mut at_s = 0.0;
    for time in times {
        at_s += *time as f64 * scale / 1e9;
        counts[((at_s / width_s) as usize).min(19)] += 1;
    }
    let window = |(index, count): (usize, &u64)| Window {
        at_s: index as f64 * width_s,
        iops: *count as f64 / width_s,
        p99_ns: 0,
    };
    counts.iter().enumerate().map(window).collect()
}

/// The cells of a quick plan.
fn plan() -> Vec<Cell> {
    use Order::{Random, Sequential};
    let mut cells = Vec::new();
    for size in [4u32, 8, 16, 64, 256] {
        for (order, share) in [(Random, 1.0), (Sequential, 1.0), (Random, 0.0), (Sequential, 0.0)] {
            cells.push(cell(order, share, size << 10, 1));
        }
    }
    for depth in [2, 4, 8, 16, 32] {
        cells.push(cell(Random, 1.0, 4096, depth));
        cells.push(cell(Random, 0.0, 4096, depth));
    }
    for (order, share) in [(Random, 1.0), (Sequential, 1.0), (Random, 0.0), (Sequential, 0.0)] {
        cells.push(cell(order, share, 256 << 10, 8));
    }
    cells.push(cell(Random, 0.5, 4096, 1));
    for size in [4u32, 8, 16, 32, 64] {
        let durability = Durability::Flush;
        cells.push(Cell { durability, ..cell(Sequential, 0.0, size << 10, 1) });
    }
    cells
}

fn measurements(cells: Vec<CellResult>) -> Measurements {
    let target = Target {
        path: "/data/file".to_owned(),
        kind: "file".to_owned(),
        range_bytes: RANGE_BYTES,
        logical_block_bytes: 512,
        facts: BTreeMap::from([("model".to_owned(), "Test 1000".to_owned())]),
    };
    Measurements { schema: 1, target, cells, commit_load: None, burst: None, warnings: Vec::new() }
}

fn measured() -> Measurements {
    let cells = plan().into_iter().enumerate();
    measurements(
        cells
            .map(|(index, cell)| measure(known_device(index as u64).as_mut(), cell, index as u64))
            .collect(),
    )
}

fn options() -> FitOptions {
    FitOptions { seed: 7, name: "my-device".to_owned() }
}

fn codes(fit: &Fit) -> Vec<&str> {
    fit.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

fn linear_of(profile: &Profile) -> &LinearSpec {
    match &profile.device {
        DeviceSpec::Linear(linear) => linear,
        other => panic!("a fit gives a linear device, not {other:?}"),
    }
}

#[track_caller]
fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() <= tolerance, "{what}: {found} against {expected} ({error:+.3})");
}

#[test]
fn a_known_device_is_found_again() {
    let fit = fit(&measured(), &options()).expect("it fits");
    let found = linear_of(&fit.profile).parameters();
    let known = known();
    for (what, found, known) in [
        ("sequential read", found.read[0], known.read[0]),
        ("random read", found.read[1], known.read[1]),
        ("sequential write", found.write[0], known.write[0]),
        ("random write", found.write[1], known.write[1]),
    ] {
        // The noise of 6000 samples of these distributions is about 1 % of a mean.
        close(&format!("{what} base"), found.base_ns, known.base_ns, 0.10);
        close(&format!("{what} slope"), found.ns_per_byte, known.ns_per_byte, 0.10);
        for size in [4096, 65_536] {
            close(&format!("{what} at {size}"), found.at(size), known.at(size), 0.05);
        }
    }
    assert_eq!(found.parallelism, known.parallelism);
    close("read ceiling", found.read[1].ceiling_iops.expect("measured"), 50_000.0, 0.05);
    close("write ceiling", found.write[1].ceiling_iops.expect("measured"), 30_000.0, 0.05);
    close("reads in a mix", found.mixed.read_factor, 1.8, 0.05);
    close("writes in a mix", found.mixed.write_factor, 1.2, 0.05);
    close("flush base", found.flush.base_ns, 200_000.0, 0.05);
    close("flush per byte", found.flush.ns_per_dirty_byte, 2.0, 0.10);
    assert!(fit.profile.write_cache.is_none());
    assert_eq!(fit.lines.len(), 4);
    assert!(fit.lines.iter().all(|line| line.points.len() == 5 && line.r_squared > 0.99));
    for check in fit.checks.iter().filter(|check| check.cell.depth == 1) {
        assert!(check.error_ratio < 0.05, "{check:?}");
    }
    assert_eq!(codes(&fit), [""; 0], "{:?}", fit.warnings);
}

#[test]
fn a_fitted_profile_is_a_sound_file_with_evidence() {
    let fit = fit(&measured(), &options()).expect("it fits");
    let text = fit.profile.to_toml();
    assert_eq!(Profile::from_toml(&text, "my.toml"), Ok(fit.profile.clone()));
    assert_eq!(fit.profile.name(), "my-device");
    assert_eq!(fit.profile.state.condition, "steady");
    let base = &linear_of(&fit.profile).read.random.base_us;
    assert_eq!(base.source, "probe: random read 4KiB..256KiB depth 1, 5 sizes, 30000 samples");
    assert!(base.error.is_some_and(|error| error > 0.0) && !base.assumed);
    assert!(!text.contains("assumed"), "everything was measured");
}

/// An OLTP load that no cell had: reads, writes and log appends with flushes, gaps in between.
fn oltp(device: &mut dyn Device, seed: u64) -> [Vec<u64>; 4] {
    let mut rng = Rng::new(seed);
    let mut times: [Vec<u64>; 4] = Default::default();
    let (mut now, mut log) = (0, RANGE_BYTES / 2);
    let mut submit = |now: &mut u64, op, offset, len, stream| {
        let request = Request { due: Nanos(*now), offset: Bytes(offset), len, op, stream };
        let completion = device.submit(Nanos(*now), &request).0;
        times[op as usize].push(completion - *now);
        *now = completion;
    };
    for _ in 0..4000 {
        for _ in 0..rng.between(1, 12) {
            now += rng.below(30_000);
            submit(&mut now, Op::Read, rng.below(RANGE_BYTES / 8192) * 4096, 4096, 0);
        }
        let len = 4096 * rng.between(1, 4) as u32;
        submit(&mut now, Op::Write, log, len, 1);
        log += u64::from(len);
        now += rng.below(5_000);
        submit(&mut now, Op::Flush, 0, 0, 1);
    }
    times
}

#[test]
fn an_unseen_load_takes_the_times_of_the_known_device() {
    let fit = fit(&measured(), &options()).expect("it fits");
    let simulated = oltp(model::device(&fit.profile, 3).as_mut(), 5);
    let real = oltp(known_device(77).as_mut(), 5);
    let again = oltp(known_device(78).as_mut(), 5);
    for op in [Op::Read, Op::Write, Op::Flush] {
        let index = op as usize;
        let error = stats::error_ratio::compare(&simulated[index], &real[index]).error_ratio;
        let floor = stats::error_ratio::compare(&again[index], &real[index]).error_ratio;
        assert!(error <= f64::max(0.05, 1.5 * floor), "{op:?}: E {error:.3}, floor {floor:.3}");
    }
}

#[test]
fn a_write_cache_is_found_where_writes_burst_and_then_stall() {
    let slow = LinearParameters {
        residuals: Vec::new(),
        write: [line(20.0, 1.0, 1e6, 1e4), line(2_000.0, 1.0, 1e6, 1e4)],
        mixed: Mixed::default(),
        parallelism: 1,
        ..known()
    };
    let cache = WriteCacheParameters {
        capacity: Bytes(3000 * 4096),
        hit_base_ns: 400_000.0,
        high_watermark: 0.0,
        low_watermark: 0.0,
        coalesce_bytes: 4096,
        ..WriteCacheParameters::default()
    };
    let device = || WriteCache::new(Linear::new(&slow, 1), &cache);
    // Each begins with an empty cache.
    let cells = [(1.0, 4096), (0.0, 4096), (0.0, 65_536), (0.5, 4096)]
        .map(|(share, size)| measure(&mut device(), cell(Order::Random, share, size, 1), 1));
    let fit = fit(&measurements(cells.to_vec()), &options()).expect("it fits");
    let found = fit.profile.write_cache.as_ref().expect("a cache");
    close("capacity", found.capacity_mb.value, 3000.0 * 4096.0 / 1e6, 0.10);
    close("hit", found.hit_base_us.value, 400.0, 0.02);
    let behind = linear_of(&fit.profile).write.random.line();
    close("behind", behind.at(4096) / 1e3, 2_004.0, 0.05);
    let full = 1e6 / cells[2].windows[19].iops;
    close("behind, larger", behind.at(65_536) / 1e3, full, 0.05);
    assert_eq!(linear_of(&fit.profile).mixed, None, "the cache explains what a mix does");
    assert!(codes(&fit).contains(&"fit_write_cache"));
}

fn one_cell(cell: Cell, times: &[u64]) -> CellResult {
    let mut result = measure(known_device(1).as_mut(), cell, 1);
    result.classes.truncate(1);
    result.classes[0].service = distribution(times);
    result.requests = times.len() as u64;
    // The client thinks for 3 us between two requests.
    result.elapsed_s = times.iter().map(|time| time + 3_000).sum::<u64>() as f64 / 1e9;
    result.windows.clear();
    result
}

#[test]
fn constant_times_are_a_line_without_spread() {
    let cells = [4096u32, 8192, 16_384].map(|size| {
        one_cell(cell(Order::Random, 1.0, size, 1), &[u64::from(size) * 10 + 20_000; 1000])
    });
    let fit = fit(&measurements(cells.to_vec()), &options()).expect("it fits");
    let found = linear_of(&fit.profile).parameters().read[1];
    close("base", found.base_ns, 20_000.0, 1e-5);
    close("slope", found.ns_per_byte, 10.0, 1e-5);
    let random = |check: &&CellCheck| check.op == Op::Read;
    assert!(fit.checks.iter().filter(random).all(|check| check.error_ratio < 0.003));
}

#[test]
fn one_cell_makes_a_profile_full_of_notes() {
    let only = cell(Order::Random, 1.0, 4096, 1);
    let cells = vec![measure(known_device(1).as_mut(), only, 1)];
    let fit = fit(&measurements(cells), &options()).expect("it fits");
    let codes = codes(&fit);
    for code in ["fit_one_size", "fit_not_measured", "fit_no_flush", "fit_no_depth", "fit_no_mix"] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
    let linear = linear_of(&fit.profile);
    assert!(linear.flush.base_us.assumed && linear.parallelism.assumed);
    assert!(linear.write.random.base_us.assumed, "no write was measured");
    assert!(linear.write.random.base_us.source.starts_with("not measured; taken from"));
    assert!(fit.warnings.iter().all(|warning| warning.stage == "fit"));
}

#[test]
fn a_negative_intercept_is_set_to_zero_and_said() {
    // Small requests are faster than any line through the large ones allows.
    let cells = [(4096u32, 5_000u64), (65_536, 300_000), (262_144, 1_300_000)];
    let cells = cells.map(|(size, ns)| one_cell(cell(Order::Random, 0.0, size, 1), &[ns; 500]));
    let fit = fit(&measurements(cells.to_vec()), &options()).expect("it fits");
    assert!(codes(&fit).contains(&"fit_negative_line"), "{:?}", fit.warnings);
    let found = linear_of(&fit.profile).parameters().write[1];
    assert!(found.base_ns == 0.0 && found.ns_per_byte > 0.0);
    // The distributions make up for what the line misses.
    assert!(fit.checks.iter().all(|check| check.error_ratio < 0.01), "{:?}", fit.checks);
}

#[track_caller]
fn refused(cells: Vec<CellResult>, expected: &str) {
    let error = fit(&measurements(cells), &options()).expect_err(expected);
    assert!(error.to_string().contains(expected), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    refused(Vec::new(), "0 cells in all");
    let deep = measure(known_device(1).as_mut(), cell(Order::Random, 1.0, 4096, 8), 1);
    refused(vec![deep], "1 cells in all");
    let single = cell(Order::Random, 1.0, 4096, 1);
    let mut empty = measure(known_device(1).as_mut(), single, 1);
    empty.classes[0].service = Distribution::default();
    refused(vec![empty.clone()], "1 cells in all");
    empty.classes.clear();
    refused(vec![empty], "1 cells in all");
    let good = measure(known_device(1).as_mut(), single, 1);
    for mean_ns in [f64::NAN, 0.0, -4.0, f64::INFINITY] {
        let mut wrong = good.clone();
        wrong.classes[0].service.mean_ns = mean_ns;
        refused(vec![good.clone(), wrong], "random read 4KiB depth 1");
    }
    let mut hollow = good;
    hollow.classes[0].service.buckets.clear();
    refused(vec![hollow], "over 6000 samples");
}

#[test]
fn the_same_measurements_give_the_same_fit() {
    let measured = measured();
    assert_eq!(fit(&measured, &options()), fit(&measured, &options()));
}

/// A device whose requests take three times as long in a load that commits as in the cells: the
/// profile must say what the load says, whatever penalties the model adds by itself.
#[test]
fn a_load_that_commits_takes_the_place_of_the_cells() {
    let mut slow = known();
    for line in slow.read.iter_mut().chain(&mut slow.write) {
        line.base_ns *= 3.0;
    }
    slow.flush.base_ns *= 0.5;
    let trace = commit_load::trace(RANGE_BYTES, 3000, 5);
    let times = sim::closed_loop_times(&mut Linear::new(&slow, 9), &trace).unwrap();
    let mut by_class: BTreeMap<(u8, Order, u32), Vec<u64>> = BTreeMap::new();
    for ((op, order, size), time) in commit_load::classes(&trace).into_iter().zip(&times) {
        by_class.entry((op as u8, order, size)).or_default().push(*time);
    }
    let class = |(&(op, order, size_bytes), times): (&(u8, Order, u32), &Vec<u64>)| CommitClass {
        op: Op::ALL[usize::from(op)],
        order,
        size_bytes,
        response: distribution(times),
    };
    let load = CommitLoad {
        seed: 5,
        range_bytes: RANGE_BYTES,
        requests: times.len() as u64,
        classes: by_class.iter().map(class).collect(),
    };
    let options = FitOptions { seed: 1, name: "test".to_owned() };
    let error_of = |commit_load| {
        let fitted = fit(&Measurements { commit_load, ..measured() }, &options).unwrap();
        // Another part of the load than the one measured.
        let unseen = commit_load::trace(RANGE_BYTES, 2000, 77);
        let real = sim::closed_loop_times(&mut Linear::new(&slow, 3), &unseen).unwrap();
        let simulated =
            sim::closed_loop_times(model::device(&fitted.profile, 4).as_mut(), &unseen).unwrap();
        stats::error_ratio::compare(&simulated, &real).error_ratio
    };
    let (without, with) = (error_of(None), error_of(Some(load)));
    assert!(with < 0.06 && without > 0.25, "E {with} with the load, {without} without");
}

/// Nearly every append of a log begins with the page that the one before had not filled; the model
/// must find sequential what the fit takes for it, else it draws from another table.
#[test]
fn the_model_agrees_on_which_requests_of_the_commit_load_are_sequential() {
    let trace = commit_load::trace(1 << 30, 250, 1);
    let classes = commit_load::classes(&trace);
    let is_append = |index: &usize| trace.op[*index] == Op::Write && trace.stream[*index] == 1;
    let appends: Vec<usize> = (0..trace.count()).filter(is_append).collect();
    let repeats = appends.windows(2).filter(|pair| {
        let end = trace.offset[pair[0]] + u64::from(trace.len[pair[0]]);
        trace.offset[pair[1]] + 4096 == end && classes[pair[1]].1 == Order::Sequential
    });
    assert!(repeats.count() > appends.len() * 9 / 10);
    let mut device = known_device(1);
    // In the order of the trace: with its dependencies the two actors would pass each other.
    for request in trace.requests() {
        device.submit(request.due, &request);
    }
    let found = classes
        .iter()
        .filter(|(op, order, _)| *op != Op::Flush && *order == Order::Sequential)
        .count();
    let counters = device.counters();
    let counted = counters.iter().find(|counter| counter.name == "device_sequential_requests");
    assert_eq!(found as u64, counted.unwrap().value);
}
