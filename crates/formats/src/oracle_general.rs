//! libCacheSim's `oracleGeneral`, binary: 24 bytes, little endian: `u32 time in seconds, u64
//! object, u32 size in bytes, i64 index of the object's next request` (-1: never again).
//!
//! It was made for caches, so it lacks what storage needs, and the reading says so: there is no
//! operation (all are taken for reads, with a warning), times are whole seconds, and an object is
//! an identity. Block traces that were converted keep their block number as the object, so **offset
//! = object x 512**; another unit can be given as the sector size (1 where objects are byte
//! offsets). Objects that are hashes have no place on a device; they exceed the address space and
//! are errors.
//!
//! Tested with records built here and with a trace that exists in two further forms.

use events::Warning;
use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::Times;
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::{Notes, STAGE};
use super::records::{FixedRecords, RecordSink, le32, le64};

const BYTES: usize = 24;
/// The next request of an object that is not requested again.
const NEVER: i64 = -1;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::OracleGeneral,
    guess,
    reader: Reader::Stream(|options| Box::new(FixedRecords::new(OracleGeneral::new(options)))),
    times: Times::Absolute,
    has_service: false,
    stream_prefix: "disk",
    grammar: "an oracleGeneral record has 24 bytes: u32 s, u64 object, u32 bytes, i64 next request",
    parts: None,
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let mut last = 0;
    let mut count = 0;
    for (index, record) in start.bytes.as_chunks::<BYTES>().0.iter().enumerate() {
        let (time, size, next) = (le32(record, 0), le32(record, 12), le64(record, 16) as i64);
        let later = next == NEVER || next > index as i64;
        if time < last || size == 0 || size >= 1 << 30 || !later || next >= 1 << 48 {
            return None;
        }
        last = time;
        count += 1;
    }
    let evidence =
        format!("{count} records of 24 bytes whose times rise and whose next requests follow");
    // One or two records can be anything.
    (count > 0).then_some(Guess { score: if count > 2 { 70 } else { 30 }, evidence })
}

struct OracleGeneral {
    unit_bytes: u64,
    unit_ns: u64,
}

impl OracleGeneral {
    fn new(options: &ReadOptions) -> Self {
        let unit_bytes = u64::from(options.sector_bytes.unwrap_or(512));
        let unit_ns = options.time_unit.map_or(1_000_000_000, super::TimeUnit::nanos);
        Self { unit_bytes, unit_ns }
    }
}

impl RecordSink<BYTES> for OracleGeneral {
    #[inline]
    fn record(&mut self, record: &[u8; BYTES], out: &mut Batch) -> Result<(), Cause> {
        let (object, len_bytes) = (le64(record, 4), le32(record, 12));
        let offset_bytes = object
            .checked_mul(self.unit_bytes)
            .filter(|offset| offset.checked_add(u64::from(len_bytes)).is_some())
            .ok_or(Cause::Said(
                "the object has no byte address; it is a hash, or its unit is smaller",
            ))?;
        let due_ns = u64::from(le32(record, 0)) * self.unit_ns;
        let stream = out.streams.number(0)?;
        let (op, service_ns) = (Op::Read, SERVICE_UNKNOWN_NS);
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) {
        if !out.is_empty() {
            let message = "oracleGeneral does not say what requests do: all are taken for reads";
            let hint = "use the trace in the form that it was converted from, if it is at hand";
            notes.warn(Warning::new(STAGE, "reads_assumed", message).with_hint(hint));
        }
        notes.understood.push(format!("offset: object x {} bytes", self.unit_bytes));
        notes
            .understood
            .push("times: whole seconds, so arrivals within one are at once".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{detect, read_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use std::path::Path;
    use trace::Trace;

    fn record(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
        let mut record = time.to_le_bytes().to_vec();
        record.extend(object.to_le_bytes());
        record.extend(size.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    }

    fn parse(bytes: Vec<u8>, sector_bytes: Option<u32>) -> crate::Result<(Trace, Notes)> {
        let options = ReadOptions { sector_bytes, ..ReadOptions::default() };
        read_from(Cursor::new(bytes), Path::new("x.bin"), Format::OracleGeneral, &options)
    }

    fn example() -> Vec<u8> {
        [record(70, 3, 512, 2), record(70, 9, 4096, NEVER), record(75, 3, 512, NEVER)].concat()
    }

    #[test]
    fn objects_are_sectors_and_everything_is_a_read() {
        let (trace, notes) = parse(example(), None).expect("reads");
        assert_eq!((trace.due, trace.offset), (vec![0, 0, 5_000_000_000], vec![1536, 4608, 1536]));
        assert_eq!((trace.len, trace.op), (vec![512, 4096, 512], vec![Op::Read; 3]));
        assert_eq!(notes.warnings[0].code, "reads_assumed");
        assert!(notes.understood[0].contains("object x 512"), "{:?}", notes.understood);
        assert_eq!(parse(example(), Some(1)).expect("reads").0.offset, [3, 9, 3]);
    }

    #[test]
    fn it_is_recognised_by_what_its_fields_mean() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, example()).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::OracleGeneral);
        let backwards = [example(), record(1, 1, 1, NEVER)].concat();
        std::fs::write(&path, backwards).expect("written");
        assert!(detect(&path).is_err());
    }

    #[test]
    fn hashes_and_cut_records_are_errors() {
        let error = parse(record(1, u64::MAX / 2, 1, NEVER), None).expect_err("far").to_string();
        assert!(error.starts_with("x.bin: byte 0: the object has no byte address"), "{error}");
        let error = parse(example()[..30].to_vec(), None).expect_err("cut").to_string();
        assert_eq!(error, "x.bin: byte 24: the last record has 6 bytes of 24");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(tail: Vec<u8>) {
            if let Ok((trace, _)) = parse([example(), tail].concat(), None) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
