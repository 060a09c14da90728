//! Samples of further public traces: counts, latencies, and that forms of one trace agree.

use std::collections::HashMap;
use std::process::Command;

use formats::{Format, ReadOptions, Reading, read};
use trace::Op;

use crate::shared::sample;

fn read_sample(name: &str) -> Option<Reading> {
    Some(read(&sample(name)?, &ReadOptions::default()).expect("reads"))
}

fn share_of_writes(reading: &Reading) -> f64 {
    let writes = reading.trace.op.iter().filter(|op| **op == Op::Write).count();
    (1000.0 * writes as f64 / reading.trace.count() as f64).round() / 10.0
}

#[test]
fn cloudphysics_binary_has_its_counts() {
    let Some(reading) = read_sample("cloudphysics-113872.vscsi.zst") else { return };
    assert_eq!((reading.detected.format, reading.trace.count()), (Format::Vscsi, 113_872));
    assert_eq!(share_of_writes(&reading), 58.7);
    assert_eq!(reading.trace.span().0 / 1_000_000_000, 7200);
    assert!(reading.trace.service.is_none() && reading.notes.warnings.is_empty());
}

/// The binary form has us, the other two whole seconds of the same clock.
#[test]
fn all_forms_of_the_cloudphysics_trace_agree() {
    let Some(binary) = read_sample("cloudphysics-113872.vscsi.zst") else { return };
    let Some(oracle) = read_sample("cloudphysics-113872.oracleGeneral.zst") else { return };
    assert_eq!(oracle.detected.format, Format::OracleGeneral);
    assert_eq!(oracle.notes.warnings[0].code, "reads_assumed");
    let (binary, oracle) = (binary.trace, oracle.trace);
    assert!(binary.offset == oracle.offset, "offsets");
    // A cache knows one size per object: the converter kept that of its first request.
    let mut first = HashMap::new();
    let pairs = binary.offset.iter().zip(&binary.len);
    let expected: Vec<u32> = pairs.map(|(at, len)| *first.entry(*at).or_insert(*len)).collect();
    assert!(oracle.len == expected, "sizes");
    let start =
        |trace: &trace::Trace| -> u64 { trace.origin.facts["start_ns"].parse().expect("ns") };
    let seconds = |trace: &trace::Trace| -> Vec<u64> {
        trace.due.iter().map(|due| (due + start(trace)) / 1_000_000_000).collect()
    };
    assert!(seconds(&binary) == seconds(&oracle), "times");
}

#[test]
fn sqlite_on_ext4_has_its_events() {
    let Some(reading) = read_sample("wiscsee-sqlitewal-10000ev.txt.zst") else { return };
    assert_eq!((reading.detected.format, reading.trace.count()), (Format::Wiscsee, 5008));
    let service = reading.trace.service.expect("measured");
    assert_eq!(service[0], 122_793);
    let known = service.iter().filter(|ns| **ns > 0).count();
    println!("{known} of 4,992 completions paired; {:?}", reading.notes.counted);
    assert!(known >= 4900, "{known}");
}

#[test]
fn hfplayer_traces_have_their_counts() {
    for (name, count) in
        [("hfplayer-small-tpch-781.csv.zst", 780), ("hfplayer-synthetic-32769.csv.zst", 32_768)]
    {
        let Some(reading) = read_sample(name) else { return };
        assert_eq!((reading.detected.format, reading.trace.count()), (Format::Hfplayer, count));
        assert!(reading.trace.service.expect("measured").iter().all(|ns| *ns > 0));
    }
}

#[test]
fn the_week_of_hp_has_its_records() {
    let Some(reading) = read_sample("hp-ajw-1week-1992.srt.zst") else { return };
    assert_eq!((reading.detected.format, reading.trace.count()), (Format::HpSrt, 44_519));
    let trace = &reading.trace;
    // Two disks of 335 MB.
    assert_eq!((trace.streams.len(), trace.extent().0 / 1_000_000), (2, 334));
    let service = trace.service.as_ref().expect("measured");
    let mean_ms = service.iter().sum::<u64>() as f64 / service.len() as f64 / 1e6;
    assert!((mean_ms - 25.088).abs() < 0.001, "{mean_ms}");
    assert_eq!(trace.span().0 / 86_400_000_000_000, 6, "the seventh day");
}

#[test]
fn fios_latency_log_has_the_latencies_that_fio_reports() {
    let Some(reading) = read_sample("own-randrw70.fio-lat.log.zst") else { return };
    assert_eq!((reading.detected.format, reading.trace.count()), (Format::FioLatency, 20_279));
    let service = reading.trace.service.as_ref().expect("measured");
    for (op, count, clat_us, slat_us) in
        [(Op::Read, 14_147, 82.416, 20.803), (Op::Write, 6132, 108.990, 22.547)]
    {
        let of_op = reading.trace.op.iter().zip(service).filter(|(found, _)| **found == op);
        let latencies: Vec<u64> = of_op.map(|(_, ns)| *ns).collect();
        let mean_us = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64 / 1000.0;
        // The log has total latencies: submission and completion, to the rounding of fio's means.
        let expected = clat_us + slat_us;
        assert_eq!(latencies.len(), count);
        assert!((mean_us - expected).abs() < 0.3, "{} {mean_us} {expected}", op.name());
    }
}

/// Means as published with the traces.
#[test]
fn service_times_of_eight_disks_have_their_means() {
    let Some(path) = sample("disksim-valid.tar.zst") else { return };
    for (disk, count, mean_ms) in [
        ("atlas10k", 10_000, 3.893),
        ("atlas_III", 10_000, 6.263),
        ("barracuda", 10_000, 6.627),
        ("cheetah9LP", 10_000, 4.273),
        ("dec_rz26", 7980, 15.809),
        ("hp_c2247a", 9999, 15.298),
        ("hp_c2490a", 9984, 12.550),
        ("st41601n", 9999, 14.617),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let member = format!("disksim-valid/{disk}.trace");
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&path).arg("-C").arg(directory.path()).arg(&member);
        let Ok(status) = tar.status() else {
            println!("skipped: there is no tar");
            return;
        };
        if !status.success() {
            println!("skipped: this tar does not read zstd");
            return;
        }
        let file = directory.path().join(&member);
        let Reading { trace, detected, .. } = read(&file, &ReadOptions::default()).expect("reads");
        assert_eq!((detected.format, trace.count()), (Format::DisksimValidate, count), "{disk}");
        let service = trace.service.expect("measured");
        let mean = service.iter().sum::<u64>() as f64 / service.len() as f64 / 1e6;
        assert!((mean - mean_ms).abs() < 0.0005, "{disk} {mean}");
    }
}
