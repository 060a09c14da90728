//! Lines as the tools print them, detected and read.

use crate::{Format, ReadOptions, Reading, read};
use trace::Op;

#[track_caller]
fn reading(text: &str, format: Format) -> Reading {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("trace");
    std::fs::write(&path, text).expect("written");
    let reading = read(&path, &ReadOptions::default()).expect("reads");
    assert_eq!(reading.detected.format, format, "{:?}", reading.detected);
    reading
}

/// The requests of a trace: due, offset, length, op, service.
fn rows(reading: &Reading) -> Vec<(u64, u64, u32, Op, u64)> {
    let trace = &reading.trace;
    let service = trace.service.clone().unwrap_or_else(|| vec![0; trace.count()]);
    (0..trace.count())
        .map(|n| (trace.due[n], trace.offset[n], trace.len[n], trace.op[n], service[n]))
        .collect()
}

fn streams(reading: &Reading) -> Vec<&str> {
    reading.trace.streams.iter().map(|stream| stream.name.as_str()).collect()
}

#[test]
fn biosnoop_with_and_without_queue_times() {
    let plain = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
                 0.000004    supervise      1950   xvda1   W 13092560   4096      0.74\n\
                 0.002004    Web Content    7      sdb     R 8          512       1.00\n";
    let queued = "Tracing block device I/O... Hit Ctrl-C to end.\n\
                  TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
                  0.000004    supervise      1950   xvda1   W 13092560   4096      0.50    0.74\n\
                  0.002004    Web Content    7      sdb     R 8          512       0.01    1.00\n";
    for text in [plain, queued] {
        let found = reading(text, Format::Biosnoop);
        // Issued at 4 us - 740 us and at 2004 us - 1000 us.
        let write = (0, 13_092_560 * 512, 4096, Op::Write, 740_000);
        let read = (1_740_000, 8 * 512, 512, Op::Read, 1_000_000);
        assert_eq!(rows(&found), [write, read]);
        assert_eq!(streams(&found), ["sdb", "xvda1"]);
    }
}

#[test]
fn windows_events_with_and_without_a_header() {
    let events = "DiskRead, 900, a.exe (4), 12, 0xff, 0x00053b8000, 0x00001000, 425, 0, 0x43\n\
                  Image, 7, x\n\
                  DiskWrite, 950, a.exe (4), 12, 0xff, 0x1000, 0x200, 25, 1, 0x43\n\
                  DiskFlush, 990, a.exe (4), 12, 0xff, 40, 1, 0, 40, 0\n\
                  DiskReadInit, 995, a.exe (4), 12, 0xff\n";
    let expected = [
        (0, 0x53b_8000, 4096, Op::Read, 425_000),
        (450_000, 4096, 512, Op::Write, 25_000),
        (475_000, 0, 0, Op::Flush, 40_000),
    ];
    let bare = reading(events, Format::Etw);
    assert_eq!(rows(&bare), expected);
    assert_eq!(streams(&bare), ["disk0", "disk1"]);
    assert_eq!(bare.notes.counted[0].count, 2);
    // Later versions have the processor in front of the IRP.
    let names = "TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ";
    let mut text = "BeginHeader\n".to_owned();
    for (kind, rest) in [
        ("DiskRead", "ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags"),
        ("DiskWrite", "ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags"),
        ("DiskFlush", "ElapsedTime, DiskNum, IrpFlags"),
    ] {
        text.push_str(&format!("   {kind}, {names}{rest}\n"));
    }
    text.push_str("EndHeader\n");
    text.push_str(&events.replace(" 12, 0xff", " 12, 1, 0xff"));
    assert_eq!(rows(&reading(&text, Format::Etw)), expected);
}

#[test]
fn vscsi_stats_by_its_heading() {
    let text = "#Vscsi Cmd Trace. (Trace Format Version 1)\n\
                #Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,\
                Time Stamp (microseconds)\n\
                2147483692,4096,1,write,24048792,2756778716647\n\
                2147483769,512,1,read,6322464,2756778716650\n";
    let found = reading(text, Format::VscsiStats);
    let write = (0, 24_048_792 * 512, 4096, Op::Write, 0);
    assert_eq!(rows(&found), [write, (3000, 6_322_464 * 512, 512, Op::Read, 0)]);
    assert_eq!(found.trace.service, None);
}

#[test]
fn lines_with_a_shape_of_their_own() {
    let iodedup = "100 4892 syslogd 904265560 8 W 6 0 531e779b7bbf1f2ab7e1c7ee8f6a2ee7\n\
                   350 77 my nfsd 16 4 R 6 0 0123456789abcdef0123456789abcdef\n";
    let write = (0, 904_265_560 * 512, 4096, Op::Write, 0);
    assert_eq!(rows(&reading(iodedup, Format::Iodedup)), [write, (250, 8192, 2048, Op::Read, 0)]);
    let diskmon = "0\t0.092804\t0.00018597\t0\tWrite\t36323703\t8\n\
                   1\t0.192804\t0.00020000\t1\tRead\t64\t16\n";
    let found = reading(diskmon, Format::Diskmon);
    let write = (0, 36_323_703 * 512, 4096, Op::Write, 185_970);
    assert_eq!(rows(&found), [write, (100_000_000, 32_768, 8192, Op::Read, 200_000)]);
    assert_eq!(streams(&found), ["disk0", "disk1"]);
    let blkreplay = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
                     0.250000000 ; 16843208 ; 8 ; R ; 0.000000000 ; 0.000000000\n\
                     0.500000000 ; 64 ; 16 ; W ; 0.000000000 ; 0.000000000\n";
    let read = (0, 16_843_208 * 512, 4096, Op::Read, 0);
    let found = reading(blkreplay, Format::Blkreplay);
    assert_eq!(rows(&found), [read, (250_000_000, 32_768, 8192, Op::Write, 0)]);
}

#[test]
fn a_header_of_a_script_is_enough() {
    let text = "time_us,op,offset,size,latency_us\n5,R,4096,512,90\n9,W,8192,512,80\n";
    let found = reading(text, Format::Columns);
    let expected = [(0, 4096, 512, Op::Read, 90_000), (4000, 8192, 512, Op::Write, 80_000)];
    assert_eq!(rows(&found), expected);
    let taken = "columns time:us,op,offset:bytes,size:bytes,latency:us, separated by commas";
    assert_eq!(found.notes.understood[0], taken);
}

#[test]
fn tracepoints_are_told_by_their_lines() {
    let text = " x 4 [001] 95.00011: block:block_rq_issue: 259,0 R 4096 () 800 + 8 [x]\n\
                 x 0 [001] 95.00030: block:block_rq_complete: 259,0 R () 800 + 8 [0]\n";
    let found = reading(text, Format::Tracepoints);
    assert_eq!(rows(&found), [(0, 409_600, 4096, Op::Read, 190_000)]);
}
