//! What every format of lines must do: the fast reading gives what the plain one gives, on both
//! kinds of processor; no bytes make it panic; it makes no difference where reads end.

use std::io::{self, Read};
use std::path::Path;

use proptest::prelude::*;
use trace::{Op, Trace};

use super::batch::Batch;
use super::cause::Cause;
use super::decode::LineFormat;
use super::entry::Reader;
use super::table::entry;
use super::{Format, Notes, ReadOptions, Streams, TimeUnit, read_from};
use crate::Result;

/// Formats of lines with lines as their archives have them.
const SAMPLES: &[(Format, &str)] = &[
    (
        Format::Spc,
        "0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n12,0,512,W,1.5,more,fields\n\
         123,7,512,W,1.625\n3,1234567890,16384,r,43692.123456789\n0,1,0,r,2\n",
    ),
    (
        Format::Msr,
        "128166385295514663,hm,0,Write,9056014336,2048,2833\n\
         128166385295514878,hm,1,Read,11855351808,512,2617\n\
         128166385301451520,prxy,0,Write,512,40960,12345678\n",
    ),
    (
        Format::Alibaba,
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n\
         70001,W,4096,512,1577808144360999\n",
    ),
    (
        Format::Tencent,
        "1538323200,4247200,128,1,1058\n1538323199,13896880,128,0,1063\n\
         1538323199,12345678901,16,0,99999\n",
    ),
    (
        Format::Systor17,
        "Timestamp,Response,IOType,LUN,Offset,Size\n\
         1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
         1456095145.126285000,,W,6,4256049987072,122880\n\
         1456095145.5,0.25,R,3,512,512\n",
    ),
    (
        Format::VscsiCsv,
        "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n2,5633900,88,4096,7\n",
    ),
    (
        Format::Disksim,
        "13.191135\t30\t0\t5\t1\n17.829285 20 576560 6 0\n5265.313 0 6357144 8 b\n7 1 2 3 1\n",
    ),
    (
        Format::Ssdsim,
        "0 0 303567 7 0\n26214000 1 55590 6 1\n938513000  4 264719034 16 0\n12345678901 4 1 1 1\n",
    ),
];

/// The same format without its fast reading.
struct Plain(Box<dyn LineFormat>);

impl LineFormat for Plain {
    fn line(&self, line: &[u8], out: &mut Batch) -> std::result::Result<(), Cause> {
        self.0.line(line, out)
    }
}

fn format_of(format: Format, options: &ReadOptions) -> (Box<dyn LineFormat>, Batch) {
    let entry = entry(format).expect("in the table");
    let Reader::Lines(make) = entry.reader else { panic!("{format:?} is no format of lines") };
    (make(options), Batch::new(Streams::new(entry.stream_prefix), entry.has_service))
}

/// Everything that a reading of lines gives, as text: rows, skipped lines, where it stopped and
/// why.
fn outcome(format: &dyn LineFormat, mut out: Batch, text: &[u8]) -> String {
    let stopped = format.lines(text, &mut out).map_err(|(at, cause)| (at, cause.to_string()));
    let skipped = out.lines_without_row;
    let (columns, service) = ((out.due, out.offset, out.len, out.op, out.stream), out.service);
    format!("{columns:?} {service:?} {:?} {skipped} {stopped:?}", out.streams.finish())
}

/// The three ways to read the same lines.
fn check_ways(
    format: Format,
    options: &ReadOptions,
    text: &[u8],
) -> std::result::Result<(), String> {
    let (fast, batch) = format_of(format, options);
    let found = outcome(&*fast, batch, text);
    let (plain, batch) = format_of(format, options);
    let expected = outcome(&Plain(plain), batch, text);
    if found != expected {
        return Err(format!("fast: {found}\nplain: {expected}"));
    }
    let portable = super::machine::without_extensions(|| {
        let (portable, batch) = format_of(format, options);
        outcome(&*portable, batch, text)
    });
    if found == portable { Ok(()) } else { Err(format!("fast: {found}\nportable: {portable}")) }
}

fn parse(format: Format, options: &ReadOptions, text: &[u8]) -> Result<(Trace, Notes)> {
    read_from(io::Cursor::new(text.to_vec()), Path::new("some.trace"), format, options)
}

#[test]
fn samples_read_the_same_in_every_way_and_repeated() {
    let options = ReadOptions::default();
    for (format, text) in SAMPLES {
        // Behind the first lines streams are known, and there is room for a window: the fast way.
        let text = text.repeat(40);
        check_ways(*format, &options, text.as_bytes()).expect("the same");
        let rows = parse(*format, &options, text.as_bytes()).expect("reads").0.count();
        let headers = usize::from(matches!(format, Format::Systor17 | Format::VscsiCsv));
        assert_eq!(rows, 40 * (text.lines().count() / 40 - headers), "{format:?}");
    }
}

#[test]
fn most_lines_are_read_fast() {
    for (format, text) in SAMPLES {
        if *format == Format::VscsiCsv {
            continue;
        }
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("Time")).collect();
        let first = format!("{}\n", lines[0]).repeat(100);
        let (fast, mut batch) = format_of(*format, &ReadOptions::default());
        fast.lines(first.as_bytes(), &mut batch).expect("reads");
        let slow = super::scan::slow_lines(|| {
            fast.lines(first.as_bytes(), &mut batch).expect("reads");
        });
        // The last ones have no 80 bytes behind their start.
        assert!(slow <= 5, "{format:?}: {slow} of 100 lines were slow");
    }
}

#[test]
fn rows_are_what_the_lines_say() {
    let read = |format: Format, rows: usize| {
        let text = SAMPLES.iter().find(|(known, _)| *known == format).expect("a sample").1;
        let (trace, _) = parse(format, &ReadOptions::default(), text.as_bytes()).expect("reads");
        assert_eq!(trace.count(), rows, "{format:?}");
        let names = trace.streams.iter().map(|s| s.name.clone()).collect::<Vec<_>>().join(" ");
        (trace, names)
    };
    let (msr, names) = read(Format::Msr, 3);
    assert_eq!((msr.due[1], msr.offset[0], msr.len[0]), (21_500, 9_056_014_336, 2048));
    assert_eq!((names.as_str(), msr.stream), ("hm_0 hm_1 prxy_0", vec![0, 1, 2]));
    assert_eq!(msr.service, Some(vec![283_300, 261_700, 1_234_567_800]));
    assert_eq!(msr.op, [Op::Write, Op::Read, Op::Write]);
    assert_eq!(msr.origin.facts["start_ns"], "12816638529551466300");
    let (alibaba, names) = read(Format::Alibaba, 3);
    assert_eq!((alibaba.due, alibaba.offset[1]), (vec![0, 46_000, 232_000], 59_110_326_272));
    assert_eq!(names, "volume419 volume725 volume70001");
    let (tencent, names) = read(Format::Tencent, 3);
    assert_eq!(tencent.due, [0, 0, 1_000_000_000]);
    assert_eq!(tencent.offset, [13_896_880 * 512, 12_345_678_901 * 512, 4_247_200 * 512]);
    assert_eq!(tencent.op, [Op::Read, Op::Read, Op::Write]);
    assert_eq!(names, "volume1058 volume1063 volume99999");
    let (systor, names) = read(Format::Systor17, 3);
    assert_eq!(systor.due, [0, 6_791_000, 373_715_000]);
    assert_eq!(systor.service, Some(vec![0, 806_000, 250_000_000]));
    assert_eq!((systor.len, names.as_str()), (vec![122_880, 131_072, 512], "lun0 lun3 lun6"));
    let (vscsi, _) = read(Format::VscsiCsv, 2);
    assert_eq!((vscsi.due, vscsi.offset[1]), (vec![0, 2_000_000_000], 7 * 512));
    assert_eq!((vscsi.op, vscsi.len), (vec![Op::Write, Op::Read], vec![512, 4096]));
    let (disksim, names) = read(Format::Disksim, 4);
    assert_eq!(disksim.due, [0, 6_191_135, 10_829_285, 5_258_313_000]);
    assert_eq!(disksim.origin.facts["start_ns"], "7000000");
    assert_eq!(disksim.op, [Op::Read, Op::Read, Op::Write, Op::Read]);
    assert_eq!(names, "dev0 dev1 dev20 dev30");
    let (ssdsim, _) = read(Format::Ssdsim, 4);
    assert_eq!(ssdsim.due, [0, 26_214_000, 938_513_000, 12_345_678_901]);
    assert_eq!(ssdsim.op, [Op::Write, Op::Read, Op::Write, Op::Read]);
    assert_eq!((ssdsim.offset[1], ssdsim.len[1]), (55_590 * 512, 6 * 512));
}

#[test]
fn options_change_units_and_sense() {
    let options = ReadOptions {
        time_unit: Some(TimeUnit::Microseconds),
        sector_bytes: Some(4096),
        read_is_one: Some(false),
        ..ReadOptions::default()
    };
    for (format, text) in [
        (Format::Ssdsim, "5 0 3 2 1\n"),
        (Format::Disksim, "5.0 0 3 2 1\n"),
        (Format::Tencent, "5,3,2,1,0\n"),
    ] {
        let read = |options| parse(format, options, text.repeat(20).as_bytes()).expect("reads").0;
        let (trace, usual) =
            (read(&options), read(&ReadOptions { read_is_one: None, ..options.clone() }));
        assert_eq!((trace.offset[9], trace.len[9], trace.op[9]), (3 * 4096, 2 * 4096, Op::Write));
        assert_eq!(usual.op[9] == Op::Read, format != Format::Tencent, "{format:?}");
        assert_eq!(trace.due[9], 0, "{format:?}");
        assert_eq!(trace.origin.facts["start_ns"], "5000", "{format:?}");
        check_ways(format, &options, text.repeat(20).as_bytes()).expect("the same");
    }
}

#[track_caller]
fn check_bad(format: Format, line: &str, cause: &str) {
    let error = parse(format, &ReadOptions::default(), line.as_bytes()).expect_err("a bad line");
    assert_eq!(error.to_string(), format!("some.trace:1: {cause}: '{line}'"));
    assert!(events::Hint::hint(&error).is_some_and(|hint| hint.contains(" line is ")));
}

#[test]
fn bad_lines_are_named_with_their_cause() {
    use Format::{Alibaba, Disksim, Msr, Ssdsim, Systor17, Tencent, VscsiCsv};
    let seven = "fewer than seven fields, separated by commas";
    check_bad(Msr, "1,hm,0,Write,2,3", seven);
    check_bad(Msr, "1,hm,0,Erase,2,3,4", "the type is neither Read nor Write");
    check_bad(Msr, "1,hm,0,Read,2,4294967296,4", "size is too large");
    check_bad(Msr, "200000000000000000,hm,0,Read,2,3,4", "filetime is too large");
    check_bad(Msr, "1,hm,0,Read,2,3,4,5", "more than seven fields, separated by commas");
    check_bad(Alibaba, "1,X,2,3,4", "the opcode is neither R nor W");
    check_bad(Alibaba, "1,R,18446744073709551616,3,4", "offset is too large");
    check_bad(Tencent, "1,2,3,2,5", "the op is neither 0 nor 1");
    check_bad(Tencent, "1,2,8388608,1,5", "size is too large");
    check_bad(Systor17, "1.x,,R,0,1,2", "the timestamp is not a decimal number");
    check_bad(Systor17, "1.5,0,R,0,1", "fewer than six fields, separated by commas");
    check_bad(VscsiCsv, "1,2,5a,4,5", "SCSI code 5a is no access to blocks");
    check_bad(VscsiCsv, "1,2,zz,4,5", "op is not a hexadecimal number");
    check_bad(Ssdsim, "1 2 3 4 2", "the op is neither 0 nor 1");
    check_bad(Ssdsim, "1 2 3 4 1 6", "more than five fields, separated by blanks");
    check_bad(Ssdsim, "1.5 2 3 4 1", "time is not a whole number");
    check_bad(Disksim, "1.5 2 3 4 g", "flags is not a hexadecimal number");
    check_bad(Disksim, "1.5 2 36028797018963968 4 1", "block is too large");
}

/// Found by fuzzing: the digits in front of the last sixteen were multiplied before they were known
/// to be digits.
#[test]
fn a_letter_in_front_of_a_long_time_does_not_overflow() {
    let line = "@128166002069996348,hm,0,Read,766992384,4096,58000";
    check_bad(Format::Msr, line, "filetime is not a whole number");
}

#[test]
fn lenient_readings_leave_bad_lines_out_and_say_which() {
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let mut text = b"0,1,512,r,0\n\nnonsense\n0,2,512,r,1\n".repeat(12);
    text.extend(vec![b'9'; 600_000]);
    text.extend(b"\n0,3,512,w,1\nlast");
    let (trace, notes) = parse(Format::Spc, &options, &text).expect("reads");
    assert_eq!((trace.count(), notes.bad, notes.bad_first.len()), (25, 14, 10));
    assert_eq!(notes.bad_first[0].place, super::cause::Place::Line(3));
    assert_eq!(notes.bad_first[1].place, super::cause::Place::Line(7));
    assert_eq!(notes.bad_first[0].cause, "ASU is not a whole number: 'nonsense'");
}

#[test]
fn unsorted_lines_are_sorted_and_counted() {
    let text = b"0,1,512,r,3\n0,2,512,r,1\n0,3,512,r,3\n0,4,512,r,1\n";
    let (trace, notes) = parse(Format::Spc, &ReadOptions::default(), text).expect("reads");
    assert_eq!(notes.out_of_order, 2);
    assert_eq!(trace.offset, [2 * 512, 4 * 512, 512, 3 * 512]);
}

#[test]
fn odd_texts_are_read() {
    for (text, expected) in [
        ("", 0),
        ("\n\r\n \n", 0),
        ("0,1,512,r,0", 1),
        ("0,1,512,r,0\r\n0,1,512,r,0\r\n", 2),
        ("\n\n0,1,512,r,0\n\n", 1),
    ] {
        let (trace, _) = parse(Format::Spc, &ReadOptions::default(), text.as_bytes()).expect(text);
        assert_eq!(trace.count(), expected, "{text:?}");
    }
    let nul = parse(Format::Spc, &ReadOptions::default(), b"0,1,512,r,0\n0,\0,512,r,0\n");
    let nul = nul.expect_err("a NUL byte").to_string();
    assert_eq!(nul, "some.trace:2: LBA is not a whole number: '0,\\0,512,r,0'");
}

/// Hands out at most this many bytes at a time.
struct Trickle(io::Cursor<Vec<u8>>, usize);

impl Read for Trickle {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = room.len().min(self.1);
        self.0.read(&mut room[..size])
    }
}

/// A change of a text: where (of 65,536 parts), and what.
#[derive(Clone, Debug)]
enum Change {
    /// A byte takes another's place.
    Byte(u16, u8),
    /// A byte goes.
    Remove(u16),
    /// Digits come in.
    Digits(u16, String),
    /// What is behind goes.
    Cut(u16),
}

fn change() -> impl Strategy<Value = Change> {
    let telling = prop::sample::select(b"0189,. \t\r\nrwRWx-\0\xff/:".to_vec());
    prop_oneof![
        4 => (any::<u16>(), telling).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => any::<u16>().prop_map(Change::Remove),
        4 => (any::<u16>(), "[0-9]{1,12}").prop_map(|(at, digits)| Change::Digits(at, digits)),
        1 => any::<u16>().prop_map(Change::Cut),
    ]
}

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    for change in changes {
        let at = |at: u16| usize::from(at) * text.len() / 65_536;
        match change {
            Change::Byte(place, byte) if !text.is_empty() => {
                let at = at(*place);
                text[at] = *byte;
            }
            Change::Remove(place) if !text.is_empty() => _ = text.remove(at(*place)),
            Change::Digits(place, digits) => {
                let at = at(*place);
                text.splice(at..at, digits.bytes());
            }
            Change::Cut(place) => text.truncate(at(*place).max(1)),
            _ => {}
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn fast_and_plain_agree_on_changed_lines(
        sample in prop::sample::select(SAMPLES), changes in prop::collection::vec(change(), 0..4),
    ) {
        let (format, text) = sample;
        let text = [text.as_bytes(), &changed(text, &changes), text.as_bytes()].concat();
        let options = ReadOptions::default();
        if let Err(difference) = check_ways(format, &options, &text) {
            return Err(TestCaseError::fail(difference));
        }
        // From the changed part on, as the first is read without a known stream.
        let start = text.len() / 3;
        if let Err(difference) = check_ways(format, &options, &text[start..]) {
            return Err(TestCaseError::fail(difference));
        }
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(
        format in prop::sample::select(SAMPLES), bytes: Vec<u8>, lenient: bool,
    ) {
        let options = ReadOptions { lenient, ..ReadOptions::default() };
        match parse(format.0, &options, &bytes) {
            Ok((trace, _)) => prop_assert_eq!(trace.validate(), Ok(())),
            Err(error) => prop_assert!(!lenient, "{}", error),
        }
    }

    #[test]
    fn where_reads_end_makes_no_difference(
        sample in prop::sample::select(SAMPLES), changes in prop::collection::vec(change(), 0..3),
        size in 1usize..60, lenient: bool,
    ) {
        let (format, text) = sample;
        let text = changed(text, &changes);
        let options = ReadOptions { lenient, ..ReadOptions::default() };
        let at_once = parse(format, &options, &text).map_err(|error| error.to_string());
        let trickle = Trickle(io::Cursor::new(text), size);
        let trickled = read_from(trickle, Path::new("some.trace"), format, &options);
        prop_assert_eq!(trickled.map_err(|error| error.to_string()), at_once);
    }
}
