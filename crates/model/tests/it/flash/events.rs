//! The event model: it agrees with the timelines where both apply, and does what only it can.

use std::collections::{BTreeMap, BTreeSet};

use model::Device;
use model::flash::reference::{Load, configuration_a};
use model::observe::{Cause, Deaf, Path};
use profile::flash::{
    AllocationScheme, EventParameters, FlashParameters, GcMode, Geometry, Order, Suspend,
};
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::support::{completions, device, fill, mean_us};

fn with(parameters: FlashParameters, events: EventParameters) -> FlashParameters {
    FlashParameters { events: Some(events), ..parameters }
}

/// One die of 16 blocks of 16 pages, 4 us per transfer, 50 us per read, 500 us per program, 3.5 ms
/// per erase.
fn one_die(events: EventParameters) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 16,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    parameters.timing.bus_transfers_per_s = 1024e6;
    parameters.logical_pages = 100;
    parameters.gc.low_blocks = 3;
    with(parameters, events)
}

/// (due us, op, page) of whole pages, on stream 0 or, from page 50 on, 1.
fn trace(rows: &[(u64, Op, u64)]) -> Trace {
    let streams = ["a", "b"].map(|name| Stream { name: name.to_owned() }).to_vec();
    let mut trace = Trace { streams, ..Trace::default() };
    for &(due, op, page) in rows {
        let len = if op == Op::Flush { 0 } else { 4096 };
        let (due, offset) = (Nanos(due * 1000), Bytes(page * 4096));
        trace.push(Request { due, offset, len, op, stream: u16::from(page >= 50) });
    }
    trace
}

/// Responses in us of rows on a device whose pages were all written, from when it is idle.
fn responses_us(parameters: &FlashParameters, rows: &[(u64, Op, u64)]) -> Vec<f64> {
    let mut device = device(parameters);
    let idle = fill(device.as_mut(), parameters) + 1_000_000;
    let mut trace = trace(rows);
    trace.due.iter_mut().for_each(|due| *due += idle);
    let done = completions(device.as_mut(), &trace);
    done.iter().zip(&trace.due).map(|(at, due)| (at - due) as f64 / 1e3).collect()
}

#[test]
fn without_refinements_it_agrees_with_the_timelines() {
    let timelines = configuration_a();
    let events = with(timelines.clone(), EventParameters::default());
    let writes = Load::on(&timelines, 300_000, 5e3, 0.0).uniform(0);
    let mean = |parameters| mean_us(device(parameters).as_mut(), &writes);
    let (by_timelines, by_events) = (mean(&timelines), mean(&events));
    assert!((by_events / by_timelines - 1.0).abs() < 0.005, "{by_events} {by_timelines}");
    let mixed = |parameters: &FlashParameters| {
        let mut device = device(parameters);
        let idle = fill(device.as_mut(), parameters);
        mean_us(device.as_mut(), &Load::on(parameters, 300_000, 1e4, 0.7).uniform(idle))
    };
    let (by_timelines, by_events) = (mixed(&timelines), mixed(&events));
    assert!((by_events / by_timelines - 1.0).abs() < 0.01, "{by_events} {by_timelines}");
}

#[test]
fn cleaning_costs_what_it_costs_by_timelines() {
    let mut timelines = configuration_a();
    timelines.geometry.blocks_per_plane = 64;
    timelines.geometry.pages_per_block = 64;
    timelines.gc.low_blocks = 4;
    timelines.logical_pages = FlashParameters::logical_pages_at(&timelines.geometry, 0.1875);
    let amplification = |parameters: &FlashParameters| {
        let mut device = device(parameters);
        let idle = fill(device.as_mut(), parameters);
        let load = Load::on(parameters, 400_000, 2e3, 0.0);
        let trace = load.uniform(idle);
        completions(device.as_mut(), &trace);
        device.audit();
        device.counts().write_amplification()
    };
    let by_timelines = amplification(&timelines);
    let by_events = amplification(&with(timelines, EventParameters::default()));
    assert!((by_events / by_timelines - 1.0).abs() < 0.01, "{by_events} {by_timelines}");
}

/// Random writes in pairs of pages, while cleaning keeps pace: planes that work together amplify as
/// much as others and take half the time.
#[test]
fn planes_clean_together() {
    let mut apart = configuration_a();
    apart.geometry.blocks_per_plane = 64;
    apart.geometry.pages_per_block = 64;
    apart.gc.low_blocks = 4;
    apart.logical_pages = FlashParameters::logical_pages_at(&apart.geometry, 0.1875);
    let run = |parameters: FlashParameters| {
        let depth = 1 << 20;
        let parameters = with(parameters, EventParameters { depth, ..EventParameters::default() });
        let mut device = device(&parameters);
        assert!(device.precondition(1.0, true, 1));
        let mut load = Load::on(&parameters, 150_000, 1e9, 0.0);
        load.pages /= 2;
        let mut trace = load.uniform(0);
        trace.offset.iter_mut().for_each(|offset| *offset *= 2);
        trace.len.iter_mut().for_each(|len| *len *= 2);
        let last = completions(device.as_mut(), &trace).into_iter().max().expect("requests");
        device.audit();
        (device.counts().write_amplification(), last as f64)
    };
    let order = Order::parse("PCWD").expect("an order");
    apart.allocation = AllocationScheme::Static(order);
    let (amplification, ns) = run(apart.clone());
    let (together, together_ns) = run(FlashParameters { multi_plane: true, ..apart });
    assert!((together / amplification - 1.0).abs() < 0.02, "{together} {amplification}");
    // Transfers and the reads of copies do not overlap; programs and erases do.
    let share = together_ns / ns;
    assert!((0.5..0.62).contains(&share), "{share}");
}

#[test]
fn reads_go_before_writes_where_asked() {
    // A write is at work; two more and then a read wait for the die.
    let rows = [(0, Op::Write, 1), (1, Op::Write, 2), (2, Op::Write, 3), (3, Op::Read, 60)];
    let in_order = responses_us(&one_die(EventParameters::default()), &rows);
    assert_eq!(in_order, [504.0, 1007.0, 1510.0, 1509.0 + 54.0]);
    let first = EventParameters { reads_first: true, ..EventParameters::default() };
    assert_eq!(responses_us(&one_die(first), &rows), [504.0, 1061.0, 1564.0, 501.0 + 54.0]);
}

#[test]
fn reads_suspend_programs() {
    let suspend = Suspend { suspend_ns: 20_000, resume_ns: 30_000, most: 1 };
    let events =
        EventParameters { reads_first: true, suspend: Some(suspend), ..EventParameters::default() };
    let rows = [(0, Op::Write, 1), (100, Op::Read, 60), (300, Op::Read, 61)];
    // The first read interrupts; the second may not any more and waits for the end of the program.
    let write = 504.0 + 20.0 + 54.0 + 30.0;
    assert_eq!(responses_us(&one_die(events), &rows), [write, 74.0, write - 300.0 + 54.0]);
}

#[test]
fn a_page_on_its_way_is_read_from_memory_and_a_flush_waits_for_it() {
    let rows = [(0, Op::Write, 1), (10, Op::Read, 1), (20, Op::Flush, 0), (600, Op::Flush, 0)];
    let found = responses_us(&one_die(EventParameters::default()), &rows);
    assert_eq!(found, [504.0, 0.0, 484.0, 0.0]);
}

#[test]
fn commands_wait_for_a_slot_and_queues_take_turns() {
    let events = EventParameters { depth: 1, host_queues: 2, ..EventParameters::default() };
    // Four reads of stream 0 before one of stream 1. The fill was of stream 0, so it is the other's
    // turn after the first.
    let rows =
        [(0, Op::Read, 1), (0, Op::Read, 2), (0, Op::Read, 3), (0, Op::Read, 4), (0, Op::Read, 60)];
    let found = responses_us(&one_die(events.clone()), &rows);
    assert_eq!(found, [54.0, 162.0, 216.0, 270.0, 108.0]);
    let one_queue = EventParameters { host_queues: 1, ..events };
    assert_eq!(responses_us(&one_die(one_queue), &rows), [54.0, 108.0, 162.0, 216.0, 270.0]);
}

#[test]
fn retries_take_another_sensing() {
    let events = EventParameters { read_retries: vec![0.2, 0.1], ..EventParameters::default() };
    let rows: Vec<_> = (0..4000).map(|k| (k * 1000, Op::Read, k % 100)).collect();
    let found = responses_us(&one_die(events), &rows);
    let times = |us: f64| found.iter().filter(|found| **found == us).count() as f64 / 4000.0;
    assert!((times(54.0) - 0.7).abs() < 0.02, "{}", times(54.0));
    assert!((times(104.0) - 0.2).abs() < 0.02 && (times(154.0) - 0.1).abs() < 0.02);
}

#[test]
fn a_map_that_does_not_fit_costs_reads_of_it() {
    let mut parameters = one_die(EventParameters::default());
    parameters.geometry.blocks_per_plane = 256;
    parameters.logical_pages = 3000;
    let read_pages = |most| {
        let events = EventParameters { map_cache_pages: Some(most), ..EventParameters::default() };
        let rows = [(0, Op::Read, 1), (1000, Op::Read, 2), (2000, Op::Read, 2500)];
        responses_us(&with(parameters.clone(), events), &rows)
    };
    // 1,024 places in a page, three pages of the map; the fill ends in the third one.
    assert_eq!(read_pages(3), [54.0; 3], "all of it is in memory");
    // The first page is fetched and the third, which the fill changed, is written in its place.
    assert_eq!(read_pages(1), [54.0 + 504.0 + 54.0, 54.0, 108.0]);
}

#[test]
fn what_cannot_be_is_refused() {
    let good = EventParameters::default();
    for (events, field) in [
        (EventParameters { depth: 0, ..good.clone() }, "queue.depth"),
        (EventParameters { host_queues: 0, ..good.clone() }, "queue.host_queues"),
        (EventParameters { map_cache_pages: Some(0), ..good.clone() }, "map_cache.pages"),
        (EventParameters { read_retries: vec![0.9, 0.2], ..good.clone() }, "read_retries"),
    ] {
        let error = one_die(events).check().expect_err(field).to_string();
        assert!(error.starts_with(field), "{error}");
    }
    let mut full = one_die(EventParameters { map_cache_pages: Some(1), ..good });
    full.geometry.page_bytes = 512;
    full.logical_pages = 175;
    assert!(full.check().is_err(), "175 pages fit, but not with two of the map");
    full.events = None;
    assert_eq!(full.check(), Ok(()));
}

/// 2 channels of 2 dies of 2 planes of 12 blocks of 8 pages.
fn busy(events: EventParameters, scheme: u8) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 12,
        pages_per_block: 8,
        page_bytes: 4096,
    };
    parameters.logical_pages = 430;
    parameters.gc.low_blocks = 3;
    parameters.gc.mode = if scheme.is_multiple_of(2) {
        GcMode::Foreground
    } else {
        GcMode::Incremental { pages_per_write: 2 }
    };
    parameters.allocation = [
        AllocationScheme::Static(Order::CWDP),
        AllocationScheme::RoundRobin,
        AllocationScheme::Dynamic,
    ][usize::from(scheme / 2 % 3)];
    parameters.multi_plane = scheme >= 6;
    with(parameters, events)
}

fn everything() -> impl Strategy<Value = EventParameters> {
    let suspend = prop::option::of((1u64..50_000, 1u64..50_000, 1u32..4));
    (1u32..40, 1u32..4, any::<bool>(), suspend, prop::option::of(1u32..2), any::<bool>()).prop_map(
        |(depth, host_queues, reads_first, suspend, map_cache_pages, retries)| EventParameters {
            depth,
            host_queues,
            reads_first,
            suspend: suspend.map(|(suspend_ns, resume_ns, most)| Suspend {
                suspend_ns,
                resume_ns,
                most,
            }),
            read_retries: if retries { vec![0.3, 0.1] } else { Vec::new() },
            map_cache_pages,
        },
    )
}

/// (gap us, kind, page, pages, part of a page)
fn requests() -> impl Strategy<Value = Vec<(u64, u8, u64, u64, bool)>> {
    prop::collection::vec((0u64..300, 0u8..20, 0u64..425, 1u64..5, any::<bool>()), 1..400)
}

fn requests_trace(rows: &[(u64, u8, u64, u64, bool)]) -> Trace {
    let mut trace = trace(&[]);
    let mut due = 0;
    for &(gap, kind, page, pages, part) in rows {
        due += gap * 1000;
        let op = match kind {
            0..=5 => Op::Read,
            6..=17 => Op::Write,
            18 => Op::Trim,
            _ => Op::Flush,
        };
        let len = if op == Op::Flush { 0 } else { pages as u32 * 4096 - u32::from(part) * 1024 };
        let request = Request {
            due: Nanos(due),
            offset: Bytes(page * 4096),
            len,
            op,
            stream: u16::from(page >= 200),
        };
        trace.push(request);
    }
    trace
}

proptest! {
    /// Every request completes once, after it was due and in the same way whatever the batches;
    /// flushes cover the writes before them; what was written last is what is kept.
    #[test]
    fn nothing_is_lost(
        events in everything(), scheme in 0u8..12, rows in requests(), batch in 1usize..50,
    ) {
        let parameters = busy(events, scheme);
        prop_assert_eq!(parameters.check(), Ok(()));
        let trace = requests_trace(&rows);
        let mut whole = device(&parameters);
        let done = completions(whole.as_mut(), &trace);
        let mut in_parts = device(&parameters);
        let mut found = vec![0; trace.count()];
        for start in (0..trace.count()).step_by(batch) {
            let range = start..trace.count().min(start + batch);
            in_parts.submit_due(&trace, range.clone(), &mut found[range]);
        }
        prop_assert_eq!(&found, &done);
        whole.audit();
        for (at, due) in done.iter().zip(&trace.due) {
            prop_assert!(at >= due);
        }
        let mut written = 0;
        let mut last: BTreeMap<u64, bool> = BTreeMap::new();
        for index in 0..trace.count() {
            let (first, len) = (trace.offset[index] / 4096, u64::from(trace.len[index]));
            match trace.op[index] {
                Op::Write => (first..first + len.div_ceil(4096)).for_each(|page| {
                    written += 1;
                    last.insert(page, true);
                }),
                Op::Trim => last.extend((first..first + len / 4096).map(|page| (page, false))),
                _ => {}
            }
        }
        prop_assert_eq!(whole.counts().host_pages, written);
        // With one queue the order of fetching is that of arrival, and so the outcome is known.
        if parameters.events.as_ref().is_some_and(|events| events.host_queues == 1) {
            let kept: BTreeSet<u64> =
                last.iter().filter(|(_, kept)| **kept).map(|(page, _)| *page).collect();
            let quiet = done.iter().max().copied().unwrap_or(0);
            let _ = whole.submit(Nanos(quiet + 1_000_000_000), &flush(quiet + 1_000_000_000));
            for page in 0..430u32 {
                let found = whole.locate(page).is_some();
                prop_assert_eq!(found, kept.contains(&u64::from(page)), "page {}", page);
            }
        }
    }
}

fn flush(due: u64) -> Request {
    Request { due: Nanos(due), offset: Bytes(0), len: 0, op: Op::Flush, stream: 0 }
}

/// By request: the parts of its path, us.
fn paths_us(
    parameters: &FlashParameters,
    rows: &[(u64, Op, u64)],
) -> Vec<Vec<(&'static str, u64)>> {
    let mut device = device(parameters);
    assert!(device.precondition(1.0, false, 1));
    let trace = trace(rows);
    let (mut done, mut paths) = (vec![0; rows.len()], vec![Path::EMPTY; rows.len()]);
    device.submit_due_observed(&trace, 0..rows.len(), &mut done, &mut paths, &mut Deaf);
    let parts = |path: &Path| {
        let parts = Cause::ALL.into_iter().filter(|cause| path.get(*cause) > 0);
        parts.map(|cause| (cause.name(), path.get(cause) / 1000)).collect()
    };
    paths.iter().map(parts).collect()
}

/// One die meets every cause that it has.
#[test]
fn causes_are_told_apart() {
    let rows = [(0, Op::Write, 0), (100, Op::Read, 1)];
    let [write, read] = [[("transfer", 4), ("medium", 500)], [("transfer", 4), ("medium", 50)]];
    let plain = one_die(EventParameters::default());
    let behind = [("queue", 404), ("transfer", 4), ("medium", 50)];
    assert_eq!(paths_us(&plain, &rows), [write.to_vec(), behind.to_vec()]);
    // Interrupted at 100 us, for 10 us; the die is back after 64 us and takes 20 us to resume.
    let suspend = Some(Suspend { suspend_ns: 10_000, resume_ns: 20_000, most: 1 });
    let paths =
        paths_us(&one_die(EventParameters { suspend, ..EventParameters::default() }), &rows);
    let with = |path: &[(&'static str, u64)], own| [path, &[own]].concat();
    assert_eq!(paths, [with(&write, ("retry", 84)), with(&read, ("retry", 10))]);
    let retries = EventParameters { read_retries: vec![0.0, 1.0], ..EventParameters::default() };
    assert_eq!(paths_us(&one_die(retries), &rows[1..]), [with(&read, ("retry", 100))]);
    let cached = EventParameters { map_cache_pages: Some(1), ..EventParameters::default() };
    assert_eq!(paths_us(&one_die(cached), &rows[1..]), [with(&read, ("mapping", 54))]);
    // 4,096 bytes at 64 MB/s take 64 us, one after another.
    let mut linked = plain.clone();
    (linked.interface_bytes_per_s, linked.overhead_ns) = (Some(64e6), 7_000);
    let rows = [(0, Op::Write, 0), (0, Op::Write, 1), (0, Op::Flush, 0)];
    let first = [("controller", 7), ("transfer", 68), ("medium", 500)];
    let second = [("queue", 440), ("shared_wait", 64)];
    let flush = vec![("controller", 7), ("flush", 64 + 504 + 504)];
    let paths = paths_us(&linked, &rows);
    assert_eq!(paths, [first.to_vec(), [&second[..], &first].concat(), flush]);
}

/// What waits for cleaning says so: its wait is what a die did meanwhile.
#[test]
fn waits_for_cleaning_are_its_copies_and_erases() {
    let mut parameters = one_die(EventParameters::default());
    parameters.logical_pages = 170;
    // One at a time, each as soon as the one before is in the cells: the rest of each is cleaning.
    let mut device = device(&parameters);
    device.precondition(1.0, true, 1);
    let (mut now, mut waited_ns) = (Nanos(0), 0);
    for k in 0..400u64 {
        let page = (k * k * 31 + k * 17) % 170;
        let request = trace(&[(0, Op::Write, page)]).request(0);
        let (done, path) = device.submit_observed(now, &request, &mut Deaf);
        assert_eq!(path.total() - path.get(Cause::Gc), 504_000, "{path:?}");
        waited_ns += path.get(Cause::Gc);
        now = done;
    }
    let counts = *device.counts();
    // 50 us to read, 500 us to program and 4 us each way on the bus.
    let cleaned_ns = counts.moved_pages * 558_000 + counts.erased_blocks * 3_500_000;
    assert!(counts.erased_blocks > 10 && counts.moved_pages > 10, "{counts:?}");
    // The last cleaning may be in its course.
    assert!(cleaned_ns - waited_ns < 20_000_000, "{waited_ns} of {cleaned_ns}");
}

/// More pages on their way than a small device has room for beside its data: they wait until old
/// ones have died, and nothing is lost.
#[test]
fn a_queue_deeper_than_the_spare_room_waits() {
    for allocation in [
        AllocationScheme::RoundRobin,
        AllocationScheme::Dynamic,
        AllocationScheme::ByDie(Order::CWDP),
    ] {
        let mut parameters = configuration_a();
        let geometry = &mut parameters.geometry;
        (geometry.channels, geometry.chips_per_channel) = (2, 1);
        (geometry.blocks_per_plane, geometry.pages_per_block) = (24, 8);
        (parameters.logical_pages, parameters.gc.low_blocks) = (560, 3);
        parameters.allocation = allocation;
        let parameters = with(parameters, EventParameters::default());
        let mut device = device(&parameters);
        assert!(device.precondition(1.0, true, 1));
        // All at once: 800 requests of 8 pages each.
        let mut trace = trace(&[]);
        for k in 0..800u64 {
            let (due, offset) = (Nanos(k), Bytes(k * 37 % 552 * 4096));
            trace.push(Request { due, offset, len: 8 * 4096, op: Op::Write, stream: 0 });
        }
        let done = completions(device.as_mut(), &trace);
        assert!(done.iter().zip(&trace.due).all(|(at, due)| at > due), "{allocation:?}");
        assert_eq!(device.counts().host_pages, 6_400, "{allocation:?}");
        assert!((0..560).all(|lpn| device.locate(lpn).is_some()), "{allocation:?}");
        device.audit();
    }
}
