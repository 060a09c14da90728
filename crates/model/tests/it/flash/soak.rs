//! A soak: reads and writes on configuration A in steady cleaning, for days of its life.
//!
//! In the slow set, with 10^9 requests or as many as `SOAK_REQUESTS` says; the unit suite does a
//! million. Every request that goes in comes out, and not before it came; no page is lost; every
//! page programmed is the host's or was moved, and lies in a block that was erased since or is in
//! use.

use model::flash::FlashDevice;
use model::flash::reference::{Load, configuration_a};
use profile::flash::FlashParameters;

use super::support::device;

/// Requests of one trace: they fit in a second-level cache or two.
const BATCH: u64 = 1 << 18;

fn requests() -> u64 {
    let asked = std::env::var("SOAK_REQUESTS").ok().and_then(|count| count.parse().ok());
    match asked {
        Some(count) => count,
        None if std::env::var_os("SLOW").is_some() => 1_000_000_000,
        None => {
            println!("skipped: a soak of 10^9 requests; SLOW=1 runs it, SOAK_REQUESTS=N a part");
            1_000_000
        }
    }
}

/// What a soak counts on its own.
#[derive(Default)]
struct Tally {
    reads: u64,
    writes: u64,
    response_ns: u128,
    longest_ns: u64,
}

/// Serves a batch from `start_ns`; gives when its last request was due.
fn serve(device: &mut dyn FlashDevice, load: &Load, start_ns: u64, tally: &mut Tally) -> u64 {
    let trace = load.uniform(start_ns);
    // No request has this completion until it is answered.
    let mut completions = vec![0; trace.count()];
    for start in (0..trace.count()).step_by(1024) {
        let range = start..trace.count().min(start + 1024);
        device.submit_due(&trace, range.clone(), &mut completions[range]);
    }
    for ((at, due), op) in completions.iter().zip(&trace.due).zip(&trace.op) {
        let response = at.checked_sub(*due).expect("no request is answered before it came");
        assert!(response >= 50_000, "no page is read or written in {response} ns");
        tally.response_ns += u128::from(response);
        tally.longest_ns = tally.longest_ns.max(response);
        let is_read = *op == trace::Op::Read;
        tally.reads += u64::from(is_read);
        tally.writes += u64::from(!is_read);
    }
    trace.due.last().copied().unwrap_or(start_ns)
}

fn check(device: &dyn FlashDevice, parameters: &FlashParameters, tally: &Tally) {
    let counts = device.counts();
    assert_eq!((counts.read_pages, counts.host_pages), (tally.reads, tally.writes));
    assert_eq!((counts.unwritten_pages, counts.merged_pages, counts.trimmed_pages), (0, 0, 0));
    let geometry = &parameters.geometry;
    let (programmed, block) = (counts.programmed_pages(), u64::from(geometry.pages_per_block));
    // Pages programmed and not erased yet are in blocks of the device.
    let held = programmed as i128 - i128::from(counts.erased_blocks * block);
    assert!(held.unsigned_abs() <= u128::from(geometry.page_count()), "{held} pages are nowhere");
    assert_eq!(counts.erased_blocks, counts.victims, "every victim is erased");
    let lost = (0..parameters.logical_pages).filter(|lpn| device.locate(*lpn).is_none()).count();
    assert_eq!(lost, 0, "pages are lost");
    device.audit();
}

#[test]
fn nothing_is_lost_in_the_long_run() {
    let parameters = configuration_a();
    let mut device = device(&parameters);
    assert!(device.precondition(1.0, true, 11));
    let requests = requests();
    let (mut tally, mut now, mut left) = (Tally::default(), 0, requests);
    let mut load = Load::on(&parameters, BATCH, 1e4, 0.7);
    while left > 0 {
        load.requests = left.min(BATCH);
        now = serve(device.as_mut(), &load, now, &mut tally);
        left -= load.requests;
        load.seed += 1;
    }
    assert_eq!(tally.reads + tally.writes, requests);
    check(device.as_ref(), &parameters, &tally);
    let (counts, wear) = (device.counts(), device.wear());
    println!(
        "{requests} requests over {:.0} s of virtual time: mean {:.0} us, longest {:.1} ms, write \
         amplification {:.4}, {} blocks erased, {:.0} +- {:.1} times each",
        now as f64 / 1e9,
        tally.response_ns as f64 / requests as f64 / 1e3,
        tally.longest_ns as f64 / 1e6,
        counts.write_amplification(),
        counts.erased_blocks,
        wear.erases_mean,
        wear.erases_deviation,
    );
    assert!(counts.write_amplification() > 1.5, "it cleans all the time");
}
