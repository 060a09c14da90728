//! Command queueing: nothing is lost, nothing starves, batches do not matter, and it pays.

use model::Device;
use model::hdd::Hdd;
use profile::hdd::{HddParameters, QueueParameters};
use proptest::prelude::*;
use stats::rng::Rng;
use trace::{Op, Request, Trace};
use units::{Bytes, Nanos};

use crate::hdd::{TURN_NS, plain};

fn queued(depth: u32, most_wait_ns: u64, write_back: u32) -> HddParameters {
    let mut parameters = plain(500, 2, 100);
    parameters.overhead.read_miss_ns = [100_000; 2];
    parameters.overhead.read_hit_ns = [50_000; 2];
    parameters.overhead.write_hit_ns = [60_000; 2];
    parameters.overhead.write_miss_ns = [100_000; 2];
    parameters.queue = QueueParameters { depth, most_wait_ns };
    parameters.buffer.write_back = write_back;
    parameters.buffer.write_back_sectors = 64 * write_back;
    parameters.buffer.segments = 4;
    parameters.buffer.segment_sectors = 64;
    parameters
}

fn trace(requests: impl IntoIterator<Item = (u64, Op, u64, u32)>) -> Trace {
    let mut trace =
        Trace { streams: vec![trace::Stream { name: "data".to_owned() }], ..Trace::default() };
    for (due, op, lbn, sectors) in requests {
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (lbn * 512, sectors * 512) };
        trace.push(Request { due: Nanos(due), offset: Bytes(offset), len, op, stream: 0 });
    }
    trace
}

fn run(parameters: &HddParameters, trace: &Trace, batch: usize) -> Vec<u64> {
    let mut disk = Hdd::new(parameters);
    let mut out = vec![0; trace.count()];
    for (index, chunk) in out.chunks_mut(batch).enumerate() {
        let start = index * batch;
        disk.submit_due(trace, start..start + chunk.len(), chunk);
    }
    out
}

/// Completions for one who asks when something happens, and not beyond.
fn stepped(parameters: &HddParameters, trace: &Trace) -> Vec<u64> {
    let mut disk = Hdd::new(parameters);
    let disk = disk.queued().expect("it has a queue");
    let mut out = vec![0; trace.count()];
    let mut last = 0;
    let mut told = 0;
    while told < trace.count() || out.contains(&0) {
        let due = trace.due.get(told).copied().unwrap_or(u64::MAX);
        let event = disk.next_event().map_or(u64::MAX, |at| at.0);
        if event > due {
            disk.arrive(Nanos(due), told as u64, &trace.request(told));
            told += 1;
            continue;
        }
        while let Some((at, ticket)) = disk.next_completion(Nanos(event)) {
            assert!(last <= at.0 && at.0 <= event, "{last} {at:?} {event}");
            last = at.0;
            out[ticket as usize] = at.0;
        }
    }
    out
}

fn load() -> impl Strategy<Value = Vec<(u64, Op, u64, u32)>> {
    let one = (0u64..12_000_000, 0u8..10, 0u64..99_000, 1u32..60);
    prop::collection::vec(one, 1..120).prop_map(|items| {
        let mut due = 0;
        let place = |(gap, kind, lbn, sectors)| {
            due += gap;
            let op = match kind {
                0..5 => Op::Read,
                5..9 => Op::Write,
                _ => Op::Flush,
            };
            (due, op, lbn, sectors)
        };
        items.into_iter().map(place).collect()
    })
}

proptest! {
    #[test]
    fn batches_do_not_matter_and_nothing_is_early(
        load in load(),
        depth in 2u32..40,
        write_back in 0u32..6,
        batch in 1usize..50,
    ) {
        let trace = trace(load);
        let parameters = queued(depth, 1_000_000_000, write_back);
        let whole = run(&parameters, &trace, trace.count());
        prop_assert_eq!(&whole, &run(&parameters, &trace, batch));
        for (index, completion) in whole.iter().enumerate() {
            let least = if trace.op[index] == Op::Flush { 0 } else { 50_000 };
            prop_assert!(*completion >= trace.due[index] + least, "{index}");
            prop_assert!(*completion < u64::MAX / 2, "{index} never completes");
        }
    }

    /// As in real time: the disk is never asked beyond the time that has passed.
    #[test]
    fn who_asks_at_every_event_hears_the_same(
        load in load(),
        depth in 2u32..40,
        write_back in 0u32..6,
    ) {
        let trace = trace(load);
        let parameters = queued(depth, 1_000_000_000, write_back);
        prop_assert_eq!(stepped(&parameters, &trace), run(&parameters, &trace, trace.count()));
    }

    #[test]
    fn without_a_queue_to_order_it_is_order_of_arrival(load in load(), depth in 2u32..40) {
        // So far apart that one is done before the next comes.
        let alone = |(index, (_, op, lbn, sectors)): (usize, (u64, Op, u64, u32))| {
            (index as u64 * 50 * TURN_NS, op, lbn, sectors)
        };
        let trace = trace(load.into_iter().enumerate().map(alone));
        let in_order = run(&queued(1, 1_000_000_000, 0), &trace, 7);
        prop_assert_eq!(in_order, run(&queued(depth, 1_000_000_000, 0), &trace, 7));
    }
}

/// Reads at random places, `per_s` of them for a while.
fn random_reads(count: usize, per_s: f64) -> Trace {
    let mut rng = Rng::new(11);
    trace(
        (0..count)
            .map(|index| ((index as f64 / per_s * 1e9) as u64, Op::Read, rng.below(99_000), 1)),
    )
}

#[test]
fn ordering_by_position_more_than_doubles_random_reads() {
    let trace = random_reads(4_000, 1e9);
    let rate = |depth| {
        let completions = run(&queued(depth, u64::MAX, 0), &trace, 64);
        trace.count() as f64 * 1e9 / *completions.iter().max().expect("some") as f64
    };
    let rates = [1, 2, 4, 8, 16, 32].map(rate);
    assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
    // Alone a read takes 8.1 ms; the rates of published drives rise by 2 to 3 at depth 32.
    assert!((115.0..130.0).contains(&rates[0]), "{rates:?}");
    assert!((2.0..3.5).contains(&(rates[5] / rates[0])), "{rates:?}");
}

/// Users who wait for their reads gain from the queue what a trace does that is always late.
#[test]
fn a_closed_loop_is_ordered_by_position_as_well() {
    const READS: u64 = 4_000;
    let rate = |users: u64| {
        let mut disk = Hdd::new(&queued(32, u64::MAX, 0));
        let disk = disk.queued().expect("it has a queue");
        let mut rng = Rng::new(11);
        let mut next = |ticket, now| {
            let offset = Bytes(rng.below(99_000) * 512);
            let read = Request { due: now, offset, len: 512, op: Op::Read, stream: 0 };
            (ticket, now, read)
        };
        let mut last = Nanos(0);
        for ticket in 0..READS {
            if ticket >= users {
                last = disk.next_completion(Nanos(u64::MAX)).expect("they are in work").0;
            }
            let (ticket, now, read) = next(ticket, last);
            disk.arrive(now, ticket, &read);
        }
        READS as f64 * 1e9 / last.0 as f64
    };
    let [one, many] = [1, 32].map(rate);
    assert!((115.0..130.0).contains(&one), "{one}");
    assert!((2.0..3.5).contains(&(many / one)), "{many} over {one}");
}

#[test]
fn nothing_waits_much_longer_than_the_bound() {
    // A crowd on the first cylinders, all there from the start, and one read on the last cylinder:
    // by position alone that one waits for the end.
    let mut rng = Rng::new(3);
    let far = [(0, Op::Read, 99_500, 1)];
    let crowd: Vec<_> = (0..3_000).map(|_| (0, Op::Read, rng.below(400), 1)).collect();
    let trace = trace(crowd[..20].iter().copied().chain(far).chain(crowd[20..].iter().copied()));
    let wait = |most_wait_ns| {
        let mut parameters = queued(32, most_wait_ns, 0);
        parameters.buffer.segments = 0;
        run(&parameters, &trace, 100)[20]
    };
    let (bounded, unbounded) = (wait(100_000_000), wait(u64::MAX));
    // Those that came before it may be over the bound as well: at most 31, 25 ms each.
    assert!(bounded < 100_000_000 + 32 * 25_000_000, "{bounded}");
    assert!(unbounded > 2_000_000_000, "{unbounded}: the crowd alone would not starve it");
}

#[test]
fn a_flush_waits_for_what_the_buffer_holds() {
    let parameters = queued(32, 1_000_000_000, 8);
    let writes = (0..8u64).map(|index| (0, Op::Write, index * 12_000, 8));
    let trace = trace(writes.chain([(1_000_000, Op::Flush, 0, 0)]));
    let completions = run(&parameters, &trace, 9);
    assert!(completions[..8].iter().all(|at| *at < 1_000_000), "{completions:?}");
    // Eight places all over the disk: at least eight short seeks and settles.
    assert!(completions[8] > 8_000_000, "{completions:?}");
}
