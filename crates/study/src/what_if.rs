//! The simulator that a page carries: the load in few bytes, the devices of the page, the module.
//!
//! A page stays below 3 MB, so a long trace is cut: the page says how much of it is there.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use profile::Profile;
use report::{Simulator, format};
use trace::Trace;

/// Bytes that the compressed load may take: a third more once it stands in the page as text.
const LOAD_BYTES: usize = 640 << 10;
/// Requests that are tried first: as many as compress into that at best.
const MOST_REQUESTS: usize = 1_000_000;

/// The simulator of `trace` on the first of `devices`, to be compared with the others and with all
/// that ship. None where nothing can be simulated: there is no request, or no device.
pub fn simulator(trace: &Trace, devices: &[Profile], seed: u64) -> Option<Simulator> {
    if trace.is_empty() || devices.is_empty() || trace.validate().is_err() {
        return None;
    }
    let (load, requests) = load(trace);
    Some(Simulator {
        module: whatif::module().to_vec(),
        load,
        requests: requests as u64,
        about: about(trace, requests),
        devices: devices.iter().map(|own| (own.name().to_owned(), own.to_toml())).collect(),
        seed,
    })
}

/// As many requests from the front as there is room for, packed and compressed.
fn load(trace: &Trace) -> (Vec<u8>, usize) {
    let mut count = trace.count().min(MOST_REQUESTS);
    loop {
        let mut front = Trace { streams: trace.streams.clone(), ..Trace::default() };
        for request in (0..count).map(|index| trace.request(index)) {
            front.push(request);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let packed = encoder.write_all(&whatif::pack(&front)).and_then(|()| encoder.finish());
        let packed = packed.expect("memory takes all");
        if packed.len() <= LOAD_BYTES || count == 1 {
            return (packed, count);
        }
        // A little less than what its share says, so that few attempts are needed.
        count = (count * LOAD_BYTES / packed.len() * 31 / 32).max(1);
    }
}

fn about(trace: &Trace, requests: usize) -> String {
    let seconds = format::duration_ns(trace.due[requests - 1] as f64);
    let count = format::count(requests as f64);
    let all = trace.count();
    let part = if requests == all {
        format!("All {count} requests")
    } else {
        format!("The first {count} of {} requests", format::count(all as f64))
    };
    format!("{part} of the load, due within {seconds}, are in this page, each when it was due.")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use units::{Bytes, Nanos};

    use super::*;

    /// Requests at addresses that no compression foresees.
    fn scattered(count: u64) -> Trace {
        let mut trace = Trace { streams: vec![trace::Stream::default()], ..Trace::default() };
        let mut rng = stats::rng::Rng::new(7);
        let mut due = 0;
        for _ in 0..count {
            due += rng.below(100_000);
            let offset = Bytes(4096 * rng.below(1 << 24));
            let op = if rng.below(2) == 0 { trace::Op::Read } else { trace::Op::Write };
            trace.push(trace::Request { due: Nanos(due), offset, len: 4096, op, stream: 0 });
        }
        trace
    }

    #[test]
    fn a_long_trace_is_cut_to_what_a_page_has_room_for() {
        let device =
            Profile::from_toml(profile::find_shipped("intel-x25-e").unwrap(), "x").unwrap();
        let trace = scattered(300_000);
        let found = simulator(&trace, &[device], 1).unwrap();
        assert!(found.load.len() <= LOAD_BYTES && found.load.len() > LOAD_BYTES / 2);
        let mut packed = Vec::new();
        flate2::read::GzDecoder::new(found.load.as_slice()).read_to_end(&mut packed).unwrap();
        let read = whatif::unpack(&packed).unwrap();
        assert_eq!(read.count() as u64, found.requests);
        assert_eq!(read.offset, trace.offset[..read.count()]);
        assert!(
            found.about.starts_with("The first ") && found.about.contains("of 300,000 requests")
        );
        assert!(simulator(&Trace::default(), &[], 1).is_none());
    }
}
