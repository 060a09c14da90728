//! Lines of every kind, and what was written read back.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::super::notes::Losses;
use super::super::{Format, ReadOptions, detect, read_from};
use super::*;

fn parse(text: &str, options: &ReadOptions) -> crate::Result<(Trace, Notes)> {
    let input = Cursor::new(text.as_bytes().to_vec());
    read_from(input, Path::new("some.txt"), Format::Blkparse, options)
}

const EXAMPLE: &str = "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000003500   697  P   N [kjournald]
  8,0    3        4     0.000005500   697  I   W 223490 + 8 (    5500) [kjournald]
  8,0    3        5     0.000007000   697  U   N [kjournald] 1
  8,0    3        6     0.000008000   697  D   W 223490 + 8 [kjournald]
  8,0    1        7     0.000009000   697  A   R 5000 + 8 <- (8,1) 400
  8,0    1        8     0.000009500   697  X   R 5000 / 5008 [cat]
  8,0    1        9     0.000010000   697  D  FN [kworker/0:1H]
  8,0    1       10     0.000011000     0  C   W 223490 + 8 [0]
  8,0    1       11     0.000012000     0  C  FN 0 [0]
  8,0    1       12     0.000013000     9  D   R 36 (12 00 00 00 24 00 ..) [hald]
  8,0    1       13     0.000014000     9  C   R (12 00 00 00 24 00 ..) [0]
  8,0    1       14     0.000015000     0  m   N cfq697 dispatch: + 8
  8,0    1       15     0.000016000     0  C   R 777 + 8 [5]

CPU1 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,        8KiB
Total (8,0):
Events (8,0): 15 entries
Skips: 2 forward (1,000 -  10.0%)
";

#[test]
fn lines_become_requests_and_the_rest_is_counted() {
    let (trace, notes) = parse(EXAMPLE, &ReadOptions::default()).expect("reads");
    let shown: Vec<_> = trace
        .requests()
        .map(|request| (request.due.0, request.offset.0, request.len, request.op))
        .collect();
    assert_eq!(shown, [(0, 223_490 * 512, 4096, Op::Write), (2_000, 0, 0, Op::Flush)]);
    assert_eq!(trace.origin.facts["start_ns"], "8000");
    assert_eq!((trace.service, trace.streams[0].name.as_str()), (Some(vec![3000, 2000]), "8:0"));
    let counted: Vec<_> =
        notes.counted.iter().map(|counted| format!("{} {}", counted.count, counted.what)).collect();
    insta::assert_snapshot!(counted.join("\n"), @r"
    5 lines of the summary
    1 completions with an error
    1000 events lost by the capture
    1 queue events (Q)
    1 requests allocated (G)
    3 issues (D)
    4 completions (C)
    1 plugs (P)
    1 unplugs (U)
    1 insertions into the scheduler (I)
    1 splits (X)
    1 remaps (A)
    1 messages (m)
    1 completions of requests issued before the trace began
    2 events left out: no data and no flush
    ");
    let codes: Vec<_> = notes.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["events_lost", "events_unpaired"]);
}

#[test]
fn a_wrong_line_is_named_with_its_cause() {
    for (line, cause) in [
        ("8 0 1", "a comma is missing behind the major number"),
        ("8,x 0 1 0.0 1 D R 8 + 8 [x]", "the minor number is not a whole number"),
        ("5000,1 0 1 0.0 1 D R 8 + 8 [x]", "the device number is too large"),
        ("8,0 0 1 zero 1 D R 8 + 8 [x]", "the time is not a whole number"),
        ("8,0 0 1 0.0 1 D", "fewer than seven fields in front of the sector"),
        ("8,0 0 1 0.0 1 Z R 8 + 8 [x]", "this action is none of blkparse's"),
        (
            "8,0 0 1 0.0 1 D R x + 8 [x]",
            "neither a sector nor a name in brackets follows the action",
        ),
        ("8,0 0 1 0.0 1 D R 8 + x [x]", "the count of sectors is not a whole number"),
        ("8,0 0 1 0.0 1 D R 8 + 8388608 [x]", "the count of sectors is too large"),
        ("8,0 0 1 0.0 1 D R 36028797018963967 + 8 [x]", "the sector is too large"),
        ("nonsense", "the major number is not a whole number"),
    ] {
        let error = parse(&format!("\n{line}\n"), &ReadOptions::default()).expect_err(line);
        assert_eq!(error.to_string(), format!("some.txt:2: {cause}: '{line}'"));
    }
}

#[test]
fn it_is_recognised_by_its_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("x");
    std::fs::write(&path, EXAMPLE).expect("written");
    assert_eq!(detect(&path).expect("known").format, Format::Blkparse);
}

fn text(trace: &Trace) -> (String, Vec<String>) {
    let (mut text, mut losses) = (Vec::new(), Losses::default());
    write::write_to(trace, &mut text, &mut losses).expect("written");
    let losses = losses.into_counted();
    let losses = losses.iter().map(|loss| format!("{} {}", loss.count, loss.what)).collect();
    (String::from_utf8(text).expect("text"), losses)
}

fn trace(rows: &[(u64, u64, u32, Op, u64)]) -> Trace {
    let mut trace = Trace { streams: vec![Stream { name: "8:16".to_owned() }], ..Trace::default() };
    for (due, offset, len, op, _) in rows {
        let (due, offset) = (Nanos(*due), Bytes(*offset));
        trace.push(Request { due, offset, len: *len, op: *op, stream: 0 });
    }
    trace.service = Some(rows.iter().map(|row| row.4).collect());
    trace
}

#[test]
fn what_is_written_looks_like_blkparse() {
    let rows = [(1_000_000_005, 4096, 8192, Op::Read, 2000), (1_000_000_500, 0, 0, Op::Flush, 100)];
    let (text, losses) = text(&trace(&rows));
    insta::assert_snapshot!(text, @r"
       8,16  0        1     1.000000005     0  D   R 8 + 16 [wearmark]
       8,16  0        2     1.000000500     0  D  FN [wearmark]
       8,16  0        3     1.000000600     0  C  FN 0 [0]
       8,16  0        4     1.000002005     0  C   R 8 + 16 [0]
    ");
    assert!(losses.is_empty());
}

#[test]
fn what_the_text_cannot_hold_is_said() {
    let rows = [
        (0, 100, 100, Op::Read, 500),
        (1, 0, 0, Op::Write, 5),
        (2, 4096, 512, Op::Write, 0),
        (10, 0, 512, Op::Read, 50),
    ];
    let mut trace = trace(&rows);
    trace.streams[0].name = "data".to_owned();
    let (_, losses) = text(&trace);
    assert_eq!(
        losses,
        [
            "1 names of streams; they are device numbers in order",
            "1 requests widened to whole 512-byte sectors",
            "1 empty requests, left out",
            "1 requests without a completion: their service time is not known",
            "1 requests that overtook an equal one: their service times are swapped",
        ]
    );
}

proptest! {
    #[test]
    fn what_was_written_comes_back(
        picks in prop::collection::vec(
            (0u64..3000, 0u64..30, 1u32..4, 0usize..4, 1u64..9000), 1..200,
        ),
    ) {
        let mut due = 0;
        let mut rows = Vec::new();
        for (index, (gap, place, sectors, op, service)) in picks.iter().enumerate() {
            due += gap;
            // No two alike are in flight together, but for flushes, which come in the order of
            // issue.
            let offset = (place + index as u64 * 30) * 512;
            let row = match Op::ALL[*op] {
                Op::Flush => (due, 0, 0, Op::Flush, 10_000),
                op => (due, offset, sectors * 512, op, *service),
            };
            rows.push(row);
        }
        let mut expected = trace(&rows);
        let (text, losses) = text(&expected);
        prop_assert!(losses.is_empty(), "{losses:?}");
        let (read, notes) = parse(&text, &ReadOptions::default()).expect("reads");
        prop_assert!(notes.warnings.is_empty(), "{notes:?}");
        // Times count from the first request; the rest of them is in the origin.
        let start = expected.due[0];
        prop_assert_eq!(&read.origin.facts["start_ns"], &start.to_string());
        expected.due.iter_mut().for_each(|due| *due -= start);
        prop_assert_eq!(Trace { origin: expected.origin.clone(), ..read }, expected);
    }

    #[test]
    fn any_text_is_a_trace_or_an_error(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "8,0 0 1 0.1 5 ", "D R ", "C W ", "Q FWS ", "8 + 8 ", "[x]", "\n", "CPU0", "(", "9e9",
            "-1", " ",
        ]), 0..60),
        lenient: bool, queued_times: bool,
    ) {
        let options = ReadOptions { lenient, queued_times, ..ReadOptions::default() };
        if let Ok((trace, _)) = parse(&pieces.concat(), &options) {
            prop_assert_eq!(trace.validate(), Ok(()));
        }
    }
}
