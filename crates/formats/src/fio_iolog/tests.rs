//! Lines of every kind, and what was written read back.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use trace::{Chains, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::super::notes::Losses;
use super::super::{Format, ReadOptions, TimeUnit, read_from};
use super::*;

fn parse_with(text: &str, options: &ReadOptions) -> crate::Result<(Trace, Notes)> {
    let input = Cursor::new(text.as_bytes().to_vec());
    read_from(input, Path::new("x.log"), Format::FioIolog, options)
}

fn parse(text: &str) -> crate::Result<(Trace, Notes)> {
    parse_with(text, &ReadOptions::default())
}

fn codes(notes: &Notes) -> Vec<&str> {
    notes.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

const VERSION_3_TEXT: &str = "\
fio version 3 iolog
15 a.dat add
15 a.dat open
97 a.dat read 4096 8192
2676 b write 0 512
2676 b datasync 0 0
2680 b sync
3000 a.dat trim 512 1024
3100 a.dat close
";

#[test]
fn version_3_has_times_in_us_from_its_first_line() {
    let (trace, notes) = parse(VERSION_3_TEXT).expect("reads");
    assert_eq!(trace.due, [0, 2_579_000, 2_579_000, 2_583_000, 2_903_000]);
    assert_eq!(trace.origin.facts["start_ns"], "82000");
    assert_eq!(trace.op, [Op::Read, Op::Write, Op::Flush, Op::Flush, Op::Trim]);
    assert_eq!(trace.offset, [4096, 0, 0, 0, 512]);
    assert_eq!(trace.len, [8192, 512, 0, 0, 1024]);
    assert_eq!((trace.stream, &trace.streams[1].name), (vec![0, 1, 1, 1, 0], &"b".to_owned()));
    assert_eq!((notes.counted[0].count, codes(&notes)), (3, vec![]));
    let options = ReadOptions { time_unit: Some(TimeUnit::Milliseconds), ..ReadOptions::default() };
    let (trace, _) = parse_with(VERSION_3_TEXT, &options).expect("reads");
    assert_eq!(trace.origin.facts["start_ns"], "82000000");
}

#[test]
fn waits_of_version_2_are_ms_from_the_start() {
    let text = "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 200 0\n\
                f write 512 512\nf wait 300\nf read 0 512\nf sync\n";
    let (trace, notes) = parse(text).expect("reads");
    assert_eq!(trace.due, [0, 200_000_000, 300_000_000, 300_000_000]);
    assert_eq!(codes(&notes), Vec::<&str>::new());
    assert!(notes.understood[0].contains("ms since the start"), "{:?}", notes.understood);
}

#[test]
fn waits_that_are_missing_or_look_like_intervals_are_suspect() {
    let (trace, notes) =
        parse("fio version 2 iolog\nf read 0 512\nf read 512 512\n").expect("reads");
    assert_eq!((trace.due, codes(&notes)), (vec![0, 0], vec!["no_times"]));
    let (trace, notes) =
        parse("fio version 2 iolog\nf wait 9 0\nf read 0 512\nf wait 5 0\nf read 0 512\n")
            .expect("reads");
    assert_eq!((trace.due, codes(&notes)), (vec![0, 0], vec!["waits_run_back"]));
    assert_eq!(trace.origin.facts["start_ns"], "9000000");
}

#[test]
fn a_wrong_line_is_named_with_its_cause() {
    for (line, cause) in [
        ("x f read 0 512", "the time is not a whole number"),
        ("5 f", "fewer than two fields"),
        ("5 f wait 7", "this action is none of fio's"),
        ("5 f READ 0 512", "this action is none of fio's"),
        ("5 f read", "the offset is not a whole number"),
        ("5 f read 0", "the length is not a whole number"),
        ("5 f read 0 4294967296", "the length is too large"),
        ("18446744073709551 f read 0 1", ""),
    ] {
        let result = parse(&format!("fio version 3 iolog\n0 f add\n{line}\n"));
        if cause.is_empty() {
            result.expect("the largest time");
        } else {
            let error = result.expect_err(line).to_string();
            assert_eq!(error, format!("x.log:3: {cause}: '{line}'"));
        }
    }
    let error = parse("0 f add\n").expect_err("no version").to_string();
    assert!(error.contains("x.log:1: the first line is not 'fio version 2 iolog'"), "{error}");
}

fn text(trace: &Trace) -> (String, Vec<String>) {
    let (mut text, mut losses) = (Vec::new(), Losses::default());
    write::write_to(trace, &mut text, &mut losses).expect("written");
    let losses = losses.into_counted();
    let losses = losses.iter().map(|loss| format!("{} {}", loss.count, loss.what)).collect();
    (String::from_utf8(text).expect("text"), losses)
}

fn trace(rows: &[(u64, u64, u32, Op, u16)], names: &[&str]) -> Trace {
    let streams = names.iter().map(|name| Stream { name: (*name).to_owned() }).collect();
    let mut trace = Trace { streams, ..Trace::default() };
    for (due, offset, len, op, stream) in rows {
        let (due, offset) = (Nanos(*due), Bytes(*offset));
        trace.push(Request { due, offset, len: *len, op: *op, stream: *stream });
    }
    trace
}

#[test]
fn what_is_written_is_version_3() {
    let rows = [(0, 4096, 512, Op::Write, 0), (7000, 0, 0, Op::Flush, 1)];
    let (text, losses) = text(&trace(&rows, &["data", "log"]));
    insta::assert_snapshot!(text, @r"
    fio version 3 iolog
    1 data add
    1 log add
    1 data open
    1 log open
    1 data write 4096 512
    8 log datasync 0 0
    8 data close
    8 log close
    ");
    assert!(losses.is_empty());
}

#[test]
fn what_an_iolog_cannot_hold_is_said() {
    let rows = [(500, 0, 512, Op::Read, 0), (1000, 0, 0, Op::Write, 1), (1000, 0, 1, Op::Read, 2)];
    let mut trace = trace(&rows, &["a b", "a:b", "..", "ok"]);
    trace.service = Some(vec![1, 2, 3]);
    trace.chains = Some(Chains { actor: vec![0; 3], transaction: vec![0; 3] });
    let (text, losses) = text(&trace);
    assert!(text.contains("a_b read") && text.contains("stream2 read"), "{text}");
    assert_eq!(
        losses,
        [
            "3 names of streams that are no file names",
            "1 times cut to whole microseconds",
            "1 empty requests, left out",
            "3 service times",
            "3 actors and transactions",
        ]
    );
}

proptest! {
    #[test]
    fn what_was_written_comes_back(
        picks in prop::collection::vec(
            (0u64..3000, any::<u32>(), 1u32.., 0usize..4, 0u16..3), 1..100,
        ),
    ) {
        let mut due = 0;
        let mut rows = Vec::new();
        for (gap, offset, len, op, stream) in picks {
            due += gap * 1000;
            rows.push(match Op::ALL[op] {
                Op::Flush => (due, 0, 0, Op::Flush, stream),
                op => (due, u64::from(offset) * 77, len, op, stream),
            });
        }
        // A stream without requests leaves no line that is kept; name all by requests at time 0.
        for stream in 0..3 {
            rows.insert(0, (0, 0, 1, Op::Read, stream));
        }
        let expected = trace(&rows, &["data", "log", "temp"]);
        let (text, losses) = text(&expected);
        prop_assert!(losses.is_empty(), "{losses:?}");
        let (read, _) = parse(&text).expect("reads");
        prop_assert_eq!(Trace { origin: expected.origin.clone(), ..read }, expected);
    }

    #[test]
    fn any_text_is_a_trace_or_an_error(
        version in 1u8..5,
        pieces in prop::collection::vec(prop::sample::select(vec![
            "5 ", "f ", "read ", "wait ", "sync", "\n", "99999999999999999999 ", "-1", "\u{fffd}",
            "add",
        ]), 0..60),
        lenient: bool,
    ) {
        let text = format!("fio version {version} iolog\n{}", pieces.concat());
        let options = ReadOptions { lenient, ..ReadOptions::default() };
        if let Ok((trace, _)) = parse_with(&text, &options) {
            prop_assert_eq!(trace.validate(), Ok(()));
        }
    }
}
