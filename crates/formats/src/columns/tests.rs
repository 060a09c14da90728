//! Whole texts through the public interface.

use std::path::Path;

use crate::{Columns, Format, Notes, ReadOptions, Result, read_from};
use proptest::prelude::*;
use trace::{Op, Trace};

fn columns(text: &str) -> Columns {
    text.parse().expect(text)
}

fn read_with(text: &str, options: &ReadOptions) -> Result<(Trace, Notes)> {
    let input = std::io::Cursor::new(text.as_bytes().to_vec());
    read_from(input, Path::new("trace"), Format::Columns, options)
}

fn read(text: &str, described: &str) -> Result<(Trace, Notes)> {
    let options = ReadOptions { columns: Some(columns(described)), ..ReadOptions::default() };
    read_with(text, &options)
}

#[test]
fn columns_of_any_separator_order_and_unit_are_read() {
    for (text, described) in [
        ("5,R,8,4096\n9,W,16,512\n", "time:us,op,offset:sectors,size:bytes"),
        ("4096\tread\t0.000005\t4\n512\twrite\t0.000009\t8\n", "size,op,time,offset:KiB"),
        ("x ; 5000 | 1 ; 0x1000 ; 8\n", "-,time:ns,op,offset,size"),
        ("0.005  rd 8 8\n0.009 WS 16 1\n", "time:ms,op,offset:sectors,size:sectors"),
        ("R|50|8|4096\nW|90|16|512\n", "size=4,offset:sectors=3,op=1,time:filetime=2"),
    ] {
        if text.starts_with('x') {
            assert!(read(text, described).is_err());
            continue;
        }
        let (trace, _) = read(text, described).expect(described);
        assert_eq!((&trace.due[..], &trace.offset[..]), (&[0, 4000][..], &[4096, 8192][..]));
        assert_eq!((&trace.len[..], &trace.op[..]), (&[4096, 512][..], &[Op::Read, Op::Write][..]));
        assert_eq!(trace.origin.facts["start_ns"], "5000", "{text}");
    }
}

#[test]
fn a_completion_is_reckoned_back_to_the_issue() {
    let text = "0.000004 W 8 4096 0.74\n0.000827 W 16 512 0.01\n";
    let (trace, _) = read(text, "end:s,op,offset:sectors,size,latency:ms").expect("reads");
    // 4 us - 740 us, and 827 us - 10 us.
    assert_eq!(trace.due, [0, 736_000 + 817_000]);
    assert_eq!(trace.service, Some(vec![740_000, 10_000]));
    assert_eq!(trace.origin.facts["start_ns"], "-736000");
    let both = read("1,3,R,0,512\n2,2,R,0,512\n", "time:us,end:us,op,offset,size").expect("reads");
    assert_eq!(both.0.service, Some(vec![2000, 0]));
    let error = read("3,1,R,0,512\n", "time:us,end:us,op,offset,size").expect_err("runs back");
    assert!(error.to_string().contains("it ends before it begins"), "{error}");
}

#[test]
fn words_of_other_events_are_left_out() {
    let text = "1 Q WS 8 8\n2 D WS 8 8\n3 C WS 8 8\n4 D R 16 8\n";
    let described = "time:us,only:D,op,offset:sectors,size:sectors";
    let (trace, notes) = read(text, described).expect("reads");
    assert_eq!((trace.count(), &trace.due[..]), (2, &[0, 2000][..]));
    assert_eq!(notes.counted[0].count, 2);
}

#[test]
fn headings_are_passed_over_and_wrong_lines_are_not() {
    let text = "Tracing...\ntime op off size\n1 R 0 512\nTracing...\n2 R 0 512\n# end\n";
    let (trace, _) = read(text, "time:us,op,offset,size").expect("reads");
    assert_eq!(trace.count(), 2);
    // A number in the place of the time: a request that does not read.
    let error = read("1 X 0 512\n1 R 0 512\n", "time:us,op,offset,size").expect_err("wrong");
    assert!(error.to_string().contains("trace:1: the op is neither"), "{error}");
    let error = read("1 R 0 512\nx\n", "time:us,op,offset,size").expect_err("wrong");
    assert!(error.to_string().contains("trace:2: it has 1 columns"), "{error}");
}

#[test]
fn a_number_is_an_op_only_where_that_is_stated() {
    let ops =
        |described: &str| read("1,0,0,512\n2,1,0,512\n", described).map(|(trace, _)| trace.op);
    assert_eq!(ops("time:us,op:01,offset,size").expect("reads"), [Op::Read, Op::Write]);
    assert_eq!(ops("time:us,op:10,offset,size").expect("reads"), [Op::Write, Op::Read]);
    let error = ops("time:us,op,offset,size").expect_err("unstated").to_string();
    assert!(error.contains("op:01 takes 0 for a read"), "{error}");
}

#[test]
fn streams_are_numbers_or_names() {
    let text = "1 R 0 512 10 a\n2 R 0 512 9 b\n";
    let names = |described: &str| -> Vec<String> {
        let (trace, _) = read(text, described).expect("reads");
        trace.streams.into_iter().map(|stream| stream.name).collect()
    };
    assert_eq!(names("time:us,op,offset,size,disk"), ["disk9", "disk10"]);
    assert_eq!(names("time:us,op,offset,size,-,stream"), ["a", "b"]);
    assert_eq!(names("time:us,op,offset,size"), ["disk0"]);
}

fn refused(text: &str) -> (String, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("trace");
    std::fs::write(&path, text).expect("written");
    let error = crate::read(&path, &ReadOptions::default()).expect_err(text);
    (error.to_string(), events::Hint::hint(&error).expect("a hint"))
}

#[test]
fn a_refusal_shows_the_columns_and_a_description_that_reads_them() {
    let text = "R;100;fio;8192;4096\nW;104;fio;4096;512\nR;120;fio;0;4096\nR;130;fio;0;4096\n";
    let (cause, hint) = refused(text);
    let shown = "a line has 5 columns, separated by semicolons [1: R | 2: 130 | 3: fio | 4: 0";
    assert!(cause.contains(shown), "{cause}");
    let described = "op,time:us,-,offset:bytes,size:bytes";
    assert!(hint.contains(&format!("--columns {described} (guessed")), "{hint}");
    assert_eq!(read(text, described).expect("reads").0.count(), 4);
    let (cause, hint) = refused("a b c d 1\nf g h i 1\n");
    assert!(cause.contains("1: f | 2: g"), "{cause}");
    assert!(hint.contains("such as time:us,op,offset:sectors,size:bytes"), "{hint}");
}

proptest! {
    /// What is printed in any unit, order and separator comes back.
    #[test]
    fn printed_requests_come_back(
        rows in prop::collection::vec(
            (0u64..1 << 40, 0u64..1 << 30, 1u32..1 << 12, 0..3usize), 1..50,
        ),
        order in Just(vec![0usize, 1, 2, 3, 4]).prop_shuffle(),
        separator in 0usize..5,
        unit in 0usize..4,
        threads in 1usize..3,
    ) {
        let between = ["\t", ";", "|", ",", "  "][separator];
        let (time, per) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)][unit];
        let names = [&format!("time:{time}"), "op", "offset:sectors", "size:sectors", "-"];
        let mut text = String::new();
        for (due, sector, sectors, op) in &rows {
            let (whole, rest) = (due / per, due % per);
            let fraction = format!("{:09}", u128::from(rest) * 1_000_000_000 / u128::from(per));
            let op = ["R", "WS", "DISCARD"][*op];
            let fields = [
                format!("{whole}.{fraction}"),
                op.to_owned(),
                sector.to_string(),
                sectors.to_string(),
                "x".to_owned(),
            ];
            let line: Vec<_> = order.iter().map(|place| fields[*place].as_str()).collect();
            text.push_str(&line.join(between));
            text.push('\n');
        }
        let described: Vec<_> = order.iter().map(|place| names[*place]).collect();
        let options = ReadOptions {
            columns: Some(columns(&described.join(","))),
            threads,
            ..ReadOptions::default()
        };
        let (trace, notes) = read_with(&text, &options).expect("reads");
        let mut expected = rows.clone();
        expected.sort_by_key(|row| row.0);
        let start = expected[0].0;
        prop_assert_eq!(notes.bad, 0);
        for (index, (due, sector, sectors, op)) in expected.iter().enumerate() {
            let found = trace.request(index);
            prop_assert_eq!(found.due.0, due - start);
            prop_assert_eq!((found.offset.0, found.len), (sector * 512, sectors * 512));
            prop_assert_eq!(found.op, [Op::Read, Op::Write, Op::Trim][*op]);
        }
    }
}
