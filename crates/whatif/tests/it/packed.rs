use proptest::collection::vec;
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};
use whatif::{pack, unpack};

use crate::load::database;

fn requests() -> impl Strategy<Value = Vec<(u64, u64, u32, usize, u16)>> {
    let due = prop_oneof![0..3u64, 0..1u64 << 40];
    let offset = prop_oneof![0..9u64, 0..1u64 << 62];
    vec((due, offset, any::<u32>(), 0..4usize, 0..3u16), 0..60)
}

fn trace_of(rows: &[(u64, u64, u32, usize, u16)], unit: u32) -> Trace {
    let streams = ["", "log", "temp \u{e9}"].map(|name| Stream { name: name.into() });
    let mut trace = Trace { streams: streams.to_vec(), ..Trace::default() };
    let mut at = 0;
    for &(pause, offset, len, op, stream) in rows {
        at += pause;
        let offset = Bytes(offset / u64::from(unit) * u64::from(unit));
        let (due, len, op) = (Nanos(at), len / unit * unit, Op::ALL[op]);
        trace.push(Request { due, offset, len, op, stream });
    }
    trace
}

proptest! {
    #[test]
    fn any_trace_comes_back(
        rows in requests(), unit in prop_oneof![Just(1u32), Just(512), Just(7)]
    ) {
        let trace = trace_of(&rows, unit);
        prop_assert_eq!(unpack(&pack(&trace)), Some(trace));
    }

    #[test]
    fn damaged_bytes_are_refused_or_another_trace(
        rows in requests(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = pack(&trace_of(&rows, 1));
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert_eq!(unpack(&bytes), None);
            bytes = pack(&trace_of(&rows, 1));
            bytes.push(to);
            prop_assert_eq!(unpack(&bytes), None);
        } else {
            bytes[at] = to;
            if let Some(trace) = unpack(&bytes) {
                prop_assert!(trace.validate().is_ok());
            }
        }
    }
}

#[test]
fn requests_of_a_database_take_few_bytes() {
    let trace = database(10_000);
    let bytes = pack(&trace).len() as f64 / trace.count() as f64;
    // Three of the time, one each of operation, stream and length, at most four of the address.
    assert!(bytes < 10.0, "{bytes} bytes a request");
}
