//! Tests of the whole format: what is written comes back, and nothing else ever does.

use std::fs;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use proptest::prelude::*;
use trace::generate::{OltpLike, oltp_like};
use trace::{Chains, Malformed, Op, Origin, Parts, Request, Stream};
use units::{Bytes, Nanos};

use super::layout::{GROUP_MARK, RECORD_START};
use super::*;

fn in_a_directory<T>(run: impl FnOnce(&Path) -> T) -> T {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run(&directory.path().join("trace.parquet"))
}

fn bytes_of(trace: &Trace) -> Vec<u8> {
    in_a_directory(|path| {
        write(trace, path).expect("written");
        fs::read(path).expect("read back")
    })
}

fn read_how(bytes: &[u8], lenient: bool, threads: usize) -> Result<(Trace, Option<Loss>)> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("written");
    read_file(&file, Path::new("trace.parquet"), How { lenient, threads })
}

fn read_bytes(bytes: &[u8]) -> Result<Trace> {
    Ok(read_how(bytes, false, 1)?.0)
}

/// About 400 requests, with everything that a trace can hold.
pub(super) fn small() -> Trace {
    let mut trace = oltp_like(&OltpLike { transactions: 40, ..OltpLike::default() });
    let count = trace.count();
    trace.service = Some((0..count as u64).map(|i| 50_000 + i * 37 % 1000).collect());
    trace.chains = Some(Chains {
        actor: (0..count).map(|i| (i % 4) as u16).collect(),
        transaction: (0..count).map(|i| (i / 3) as u32).collect(),
    });
    trace
}

/// [`small`] in row groups of 100 requests, the last of which bring a new stream; and how long the
/// file is behind each group.
struct Grouped {
    trace: Trace,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

static GROUPED: LazyLock<Grouped> = LazyLock::new(|| {
    let mut trace = small();
    let names = ["data", "log", "late"].map(|name| Stream { name: name.to_owned() });
    trace.streams = names.to_vec();
    let count = trace.count();
    trace.stream[count - 1] = 2;
    let (bytes, ends) = in_a_directory(|path| {
        let early = trace.streams[..2].to_vec();
        let mut writer = Writer::new(path, early.clone(), trace.origin.clone()).expect("begun");
        let partial = path.with_file_name(".trace.parquet.partial");
        let mut ends = Vec::new();
        for start in (0..count).step_by(100) {
            let end = count.min(start + 100);
            let streams = if end < count { early.clone() } else { trace.streams.clone() };
            let mut batch = Trace { streams, ..Trace::default() };
            batch.extend_rows(&trace, start..end);
            writer.push_batch(&batch).expect("pushed");
            writer.sync().expect("synced");
            ends.push(fs::metadata(&partial).expect("there").len() as usize);
        }
        writer.finish().expect("finished");
        assert!(!partial.exists());
        (fs::read(path).expect("read back"), ends)
    });
    Grouped { trace, bytes, ends }
});

#[track_caller]
fn check_round_trip(trace: &Trace) {
    let bytes = bytes_of(trace);
    assert_eq!(&read_bytes(&bytes).expect("reads"), trace);
    assert_eq!(&read_how(&bytes, true, 3).expect("reads"), &(trace.clone(), None));
}

#[test]
fn everything_comes_back() {
    in_a_directory(|path| {
        write(&small(), path).expect("written");
        assert_eq!(read(path).expect("reads"), small());
    });
    check_round_trip(&Trace::default());
    check_round_trip(&Trace { service: Some(Vec::new()), ..Trace::default() });
    check_round_trip(&small());
    check_round_trip(&Trace { service: None, ..small() });
    check_round_trip(&Trace { chains: None, ..small() });
    check_round_trip(&Trace { service: None, chains: None, ..small() });
    assert_eq!(read_bytes(&GROUPED.bytes).expect("reads"), GROUPED.trace);
    assert_eq!(read_how(&GROUPED.bytes, false, 2).expect("reads").0, GROUPED.trace);
}

#[test]
fn row_groups_join_without_a_seam() {
    let count = 2 * ROW_GROUP + 3;
    let trace = Trace {
        due: (0..count as u64).collect(),
        offset: (0..count as u64).map(|i| i * 512).collect(),
        // More than a dictionary holds, then fewer.
        len: (0..count as u32).map(|i| if i < 5000 { i } else { 512 }).collect(),
        op: (0..count).map(|i| Op::ALL[i % 4]).collect(),
        stream: vec![0; count],
        streams: vec![Stream { name: "data".to_owned() }],
        ..Trace::default()
    };
    check_round_trip(&trace);
    // In batches of any size the file is the same.
    in_a_directory(|path| {
        let mut writer =
            Writer::new(path, trace.streams.clone(), Origin::default()).expect("begun");
        let mut start = 0;
        for size in [1, ROW_GROUP - 2, 0, ROW_GROUP + 1, 3] {
            let mut batch = Trace { streams: trace.streams.clone(), ..Trace::default() };
            batch.extend_rows(&trace, start..start + size);
            writer.push_batch(&batch).expect("pushed");
            start += size;
        }
        assert_eq!(start, count);
        writer.finish().expect("finished");
        assert!(fs::read(path).expect("there") == bytes_of(&trace), "the same bytes");
    });
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    assert!(bytes_of(&small()) == bytes_of(&small()));
}

/// The goal is six; this keeps the choice of encodings from being lost unseen.
#[test]
fn a_request_takes_at_most_five_and_a_half_bytes() {
    let trace = oltp_like(&OltpLike { transactions: 100_000, ..OltpLike::default() });
    let each = bytes_of(&trace).len() as f64 / trace.count() as f64;
    println!("{each:.2} bytes for each of {} requests", trace.count());
    assert!(each <= 5.5, "{each} bytes per request");
}

/// The parquet crate reads the same values from the pages as we from our index.
#[test]
fn another_reader_sees_the_same() {
    let Grouped { trace, bytes, .. } = &*GROUPED;
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).expect("Parquet");
    assert_eq!(reader.metadata().num_row_groups(), GROUPED.ends.len());
    let mut count = 0;
    for (index, row) in reader.get_row_iter(None).expect("rows").enumerate() {
        let row = row.expect("a row");
        let request = trace.request(index);
        assert_eq!(row.get_ulong(0).expect("due_ns"), request.due.0);
        assert_eq!(row.get_ulong(1).expect("offset_bytes"), request.offset.0);
        assert_eq!(row.get_uint(2).expect("len_bytes"), request.len);
        assert_eq!(row.get_ubyte(3).expect("op"), request.op as u8);
        assert_eq!(row.get_ushort(4).expect("stream"), request.stream);
        let (service, chains) = trace.captured().expect("captured");
        assert_eq!(row.get_ulong(5).expect("service_ns"), service[index]);
        assert_eq!(row.get_ushort(6).expect("actor"), chains.actor[index]);
        let last = row.into_columns().pop().expect("a column");
        assert_eq!(last, ("transaction".to_owned(), Field::UInt(chains.transaction[index])));
        count += 1;
    }
    assert_eq!(count, trace.count());
    let pairs = reader.metadata().file_metadata().key_value_metadata().expect("metadata");
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|p| p.value.clone());
    assert_eq!(value("wearmark.format_version").as_deref(), Some("2"));
    let streams = serde_json::to_string(&trace.streams).expect("JSON");
    assert_eq!(value("wearmark.streams"), Some(streams));
}

#[test]
fn a_malformed_trace_is_not_written() {
    let mut trace = small();
    trace.due[5] = u64::MAX;
    in_a_directory(|path| {
        let error = write(&trace, path).expect_err("refused");
        let cause = Malformed::TimeRunsBack { index: 6 };
        assert!(matches!(error, Error::Malformed { source, .. } if source == cause));
        assert!(!path.exists());
    });
}

#[test]
fn a_batch_that_does_not_go_on_is_refused() {
    let good = small();
    let check = |batch: Trace, expected: Malformed| {
        in_a_directory(|path| {
            let streams = good.streams.clone();
            let mut writer = Writer::new(path, streams, Origin::default()).expect("begun");
            writer.push_batch(&good).expect("pushed");
            match writer.push_batch(&batch).expect_err("refused") {
                Error::Malformed { source, .. } => assert_eq!(source, expected),
                other => panic!("{other}"),
            }
            drop(writer);
            assert!(!path.exists());
        });
    };
    let mut later = good.clone();
    later.due.iter_mut().for_each(|due| *due += good.span().0);
    check(good.clone(), Malformed::TimeRunsBack { index: 0 });
    check(Trace { streams: vec![Stream::default(); 2], ..later.clone() }, Malformed::OtherStreams);
    check(Trace { service: None, ..later.clone() }, Malformed::OtherColumns);
    check(Trace { chains: None, ..later }, Malformed::OtherColumns);
}

#[test]
fn a_killed_writer_leaves_what_is_whole() {
    let Grouped { trace, bytes, ends } = &*GROUPED;
    in_a_directory(|path| {
        let streams = trace.streams.clone();
        let mut writer = Writer::new(path, streams, trace.origin.clone()).expect("begun");
        writer.push_batch(trace).expect("pushed");
        writer.sync().expect("synced");
        writer
            .push_batch(&Trace { streams: trace.streams.clone(), ..Trace::default() })
            .expect("-");
        drop(writer);
        let partial = path.with_file_name(".trace.parquet.partial");
        assert!(!path.exists());
        let error = read(&partial).expect_err("cut off");
        let count = trace.count() as u64;
        assert!(matches!(error, Error::CutOff { requests, .. } if requests == count), "{error}");
        let (whole, loss) = read_whole_groups(&partial, 1).expect("reads");
        assert_eq!((&whole, loss.map(|loss| loss.cut_off)), (trace, Some(true)));
    });
    // The head, and nothing yet.
    let first = bytes.windows(8).position(|window| window == GROUP_MARK).expect("a group");
    let (none, loss) = read_how(&bytes[..first], true, 1).expect("reads");
    assert!(none.is_empty() && loss.is_some() && first < ends[0]);
}

/// Everything in front of the cut that is whole comes back, nothing else, wherever the cut is.
#[test]
fn a_file_cut_anywhere_yields_its_whole_groups() {
    let Grouped { trace, bytes, ends } = &*GROUPED;
    let head = bytes.windows(8).position(|window| window == GROUP_MARK).expect("a group");
    for cut in 0..bytes.len() {
        let strict = read_bytes(&bytes[..cut]).expect_err("cut");
        let lenient = read_how(&bytes[..cut], true, 1);
        if cut < head {
            assert!(lenient.is_err(), "cut {cut}");
            let nothing = matches!(strict, Error::CutOff { requests: 0, .. });
            assert!(nothing || cut == 0, "cut {cut}: {strict}");
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let count = trace.count().min(100 * whole);
        match strict {
            Error::CutOff { requests, .. } => assert_eq!(requests, count as u64, "cut {cut}"),
            other => panic!("cut {cut}: {other}"),
        }
        let (read, loss) = lenient.expect("reads");
        let loss = loss.expect("a loss");
        assert!(loss.cut_off && loss.offset + loss.bytes == cut as u64, "{loss:?}");
        let mut expected = trace.clone();
        expected.truncate(count);
        expected.streams.truncate(if whole == ends.len() { 3 } else { 2 });
        assert_eq!(read, expected, "cut {cut}");
    }
}

#[test]
fn a_longer_file_is_an_error() {
    let mut bytes = GROUPED.bytes.clone();
    bytes.extend(b"more");
    let error = read_bytes(&bytes).expect_err("longer").to_string();
    assert!(error.contains("the file goes on behind its end"), "{error}");
    let (trace, loss) = read_how(&bytes, true, 1).expect("reads");
    assert_eq!((trace, loss.map(|loss| loss.cut_off)), (GROUPED.trace.clone(), Some(false)));
}

#[test]
fn what_cannot_be_opened_names_its_path() {
    let error = read(Path::new("/nowhere/trace.parquet")).expect_err("not there").to_string();
    assert!(error.starts_with("/nowhere/trace.parquet: "), "{error}");
    let error = write(&small(), Path::new("/nowhere/trace.parquet")).expect_err("no directory");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(read(Path::new("/")).is_err() && write(&small(), Path::new("/")).is_err());
}

#[test]
fn a_file_with_another_start_is_refused_for_what_it_is() {
    for start in [&b""[..], b"0,1,512,r,0.0\n", b"PAR2WMHEAD02", b"PAR1\x15\x04\x15\x10 and so on"]
    {
        let error = read_bytes(start).expect_err("foreign");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
    }
    let mut later = GROUPED.bytes.clone();
    later[4..12].copy_from_slice(b"WMHEAD07");
    let error = read_bytes(&later).expect_err("from the future");
    assert!(matches!(error, Error::Version { found: 7, known: 2, .. }), "{error}");
    later[4..12].copy_from_slice(b"WMHEAD01");
    assert!(
        matches!(read_bytes(&later), Err(Error::Foreign { .. })),
        "no such version was released"
    );
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let request = (0u64..1 << 40, any::<u64>(), any::<u32>(), 0usize..4, 0u16..3);
    let captured = (any::<u64>(), any::<u16>(), any::<u32>());
    // Masks make columns of few values, of constant bytes, of nothing but zeros.
    let masks = any::<(u64, u32, u16)>();
    let rows = prop::collection::vec((request, captured), 0..60);
    (rows, masks, any::<(bool, bool)>(), "[a-z]{0,8}").prop_map(|(rows, masks, there, name)| {
        let mut trace = Trace::default();
        let mut due = 0;
        for ((gap, offset, len, op, stream), (service, actor, transaction)) in rows {
            due += gap & masks.0;
            let len = len & masks.1;
            let offset = Bytes((offset & masks.0).min(u64::MAX - u64::from(len)));
            let request = Request { due: Nanos(due), offset, len, op: Op::ALL[op], stream };
            let service = Nanos(service & masks.0);
            trace.push_captured(request, service, actor & masks.2, transaction & masks.1);
        }
        trace.service = trace.service.filter(|_| there.0);
        trace.chains = trace.chains.filter(|_| there.1);
        trace.streams = vec![Stream { name: name.clone() }; 3];
        trace.origin.facts.insert(name.clone(), name);
        trace
    })
}

/// The bytes with every record sealed anew, so that changes within them go unnoticed by the hashes
/// of records and row groups.
fn sealed_anew(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 4;
    while let Some(start) = out.get(at..at + RECORD_START) {
        let Some(length) = layout::length_of(start.try_into().expect("twelve bytes")) else {
            break;
        };
        let Some(record) = out.get(at..at + length) else { break };
        let mark: [u8; 8] = record[..8].try_into().expect("eight bytes");
        let mut content = record[RECORD_START..length - 8].to_vec();
        let mut next = at + length;
        if mark == *GROUP_MARK
            && let Some(group) = layout::Group::from_content(&content)
            && let Some(body) = out.get(next..).and_then(|b| b.get(..group.body_bytes as usize))
        {
            content[28..36].copy_from_slice(&hash::hash(body).to_le_bytes());
            next += body.len();
        }
        let record = layout::seal(mark, &content);
        out[at..at + length].copy_from_slice(&record);
        at = next;
    }
    out
}

#[test]
fn sealing_anew_changes_nothing_where_nothing_was_changed() {
    assert!(sealed_anew(&GROUPED.bytes) == GROUPED.bytes);
}

proptest! {
    #[test]
    fn any_trace_comes_back(trace in any_trace()) {
        prop_assert_eq!(read_bytes(&bytes_of(&trace)).expect("reads"), trace);
    }

    #[test]
    fn any_flipped_bit_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let Grouped { trace, bytes, .. } = &*GROUPED;
        let mut bytes = bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(read_bytes(&bytes).is_err(), "byte {at} bit {bit}");
        // Leniently, a start of the trace comes back, unchanged.
        if let Ok((read, loss)) = read_how(&bytes, true, 1) {
            prop_assert!(loss.is_some());
            let mut expected = trace.clone();
            expected.truncate(read.count());
            expected.streams.truncate(read.streams.len());
            prop_assert!(read.count().is_multiple_of(100) || read.count() == trace.count());
            prop_assert_eq!(read, expected);
        }
    }

    /// Damage under seals that fit it: somebody meant to. It may decode to another trace, but never
    /// to a malformed one, and never panics.
    #[test]
    fn forged_damage_never_panics(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = GROUPED.bytes.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let bytes = sealed_anew(&bytes);
        for lenient in [false, true] {
            if let Ok((trace, _)) = read_how(&bytes, lenient, 1) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}

/// Row groups one after the other are the trace, and are written as it is.
#[test]
fn a_file_in_parts_is_the_same_trace() {
    let Grouped { trace, bytes, .. } = &*GROUPED;
    in_a_directory(|path| {
        fs::write(path, bytes).expect("written");
        let stored = Stored::open(path).expect("ours");
        let (mut all, mut sizes) = (Trace::default(), Vec::new());
        stored
            .each(&mut |part| {
                sizes.push(part.count());
                assert_eq!(part.streams, trace.streams);
                all.extend_rows(part, 0..part.count());
                ControlFlow::Continue(())
            })
            .expect("whole");
        let outline = stored.outline();
        (all.streams, all.origin) = (outline.streams, outline.origin);
        assert!(sizes.len() > 2 && sizes[0] == 100, "{sizes:?}");
        assert_eq!((&all, outline.requests), (trace, trace.count() as u64));
        assert_eq!(outline.span_ns, trace.span().0);
        let again = path.with_extension("again");
        write_parts(&stored, &again).expect("written");
        assert_eq!(fs::read(&again).expect("read back"), bytes_of(trace));
        let first = crate::collect(&stored, trace.due[150]).expect("read");
        assert_eq!(first.count(), trace.due.partition_point(|due| *due <= trace.due[150]));
    });
}

/// Damage in a row group is found when it is read, those in front of it are handed over.
#[test]
fn a_damaged_part_is_an_error_at_its_place() {
    let Grouped { bytes, ends, .. } = &*GROUPED;
    let mut bytes = bytes.clone();
    bytes[ends[1] - 1] ^= 1;
    in_a_directory(|path| {
        fs::write(path, &bytes).expect("written");
        let stored = Stored::open(path).expect("its records are whole");
        let mut seen = 0;
        let error = stored.each(&mut |part| {
            seen += part.count();
            ControlFlow::Continue(())
        });
        let found = error.expect_err("damaged").to_string();
        assert!(found.contains("a row group was changed"), "{found}");
        assert_eq!(seen, 100);
        assert!(write_parts(&stored, &path.with_extension("again")).is_err());
        assert!(!path.with_extension("again").exists());
    });
}
