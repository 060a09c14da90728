//! Text formats: every public sample reads with the counts that are known of it, and the forms of
//! one trace agree.

use formats::{Format, ReadOptions, Reading, read};
use trace::{Op, Trace};

use crate::shared::sample;

fn read_sample(name: &str, format: Format) -> Option<Reading> {
    let reading = read(&sample(name)?, &ReadOptions::default()).expect(name);
    assert_eq!(reading.detected.format, format, "{name}: {:?}", reading.detected);
    assert_eq!(reading.detected.compression.as_deref(), Some("zstd"));
    assert_eq!(reading.notes.bad, 0);
    reading.trace.validate().expect("valid");
    Some(reading)
}

/// Share of writes in percent, to one decimal.
fn writes(trace: &Trace) -> f64 {
    let writes = trace.op.iter().filter(|op| **op == Op::Write).count();
    (writes as f64 / trace.count() as f64 * 1000.0).round() / 10.0
}

fn codes(reading: &Reading) -> Vec<&str> {
    reading.notes.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn the_forms_of_financial1_agree() {
    let Some(genuine) = read_sample("financial1-first948.spc.zst", Format::Spc) else { return };
    let Some(ssdsim) = read_sample("financial1-first10k.ssdsim.txt.zst", Format::Ssdsim) else {
        return;
    };
    let Some(derived) = read_sample("financial1-first10k.derived.spc.zst", Format::Spc) else {
        return;
    };
    let (genuine, ssdsim, derived) = (genuine.trace, ssdsim.trace, derived.trace);
    assert_eq!((genuine.count(), writes(&genuine)), (949, 80.7));
    assert_eq!((ssdsim.count(), writes(&ssdsim), ssdsim.streams.len()), (10_000, 59.2, 22));
    let mean = ssdsim.len.iter().map(|len| f64::from(*len)).sum::<f64>() / 10_000.0 / 1024.0;
    assert_eq!((mean * 100.0).round(), 540.0);
    assert_eq!((ssdsim.span().0 as f64 * 1e-8).round(), 2596.0);
    assert_eq!((&ssdsim.offset, &ssdsim.len), (&derived.offset, &derived.len));
    assert_eq!((&ssdsim.op, &ssdsim.stream), (&derived.op, &derived.stream));
    for (ns, rounded) in ssdsim.due.iter().zip(&derived.due) {
        assert!(ns.abs_diff(*rounded) <= 1_000, "{ns} {rounded}");
    }
    for index in 0..949 {
        let (one, other) = (genuine.request(index), derived.request(index));
        // The genuine text was rounded by its publisher; the derived one is rounded again.
        assert!(one.due.0.abs_diff(ssdsim.due[index]) <= 1_800);
        let names = [
            &genuine.streams[usize::from(one.stream)].name,
            &derived.streams[usize::from(other.stream)].name,
        ];
        assert_eq!(names[0], names[1]);
        assert_eq!((one.offset, one.len, one.op), (other.offset, other.len, other.op));
    }
}

#[test]
fn samples_with_service_times_have_them() {
    let Some(msr) = read_sample("msr-hm_0-sample1000.csv.zst", Format::Msr) else { return };
    assert_eq!((msr.trace.count(), writes(&msr.trace)), (1000, 49.2));
    assert_eq!(msr.trace.streams[0].name, "hm_0");
    assert_eq!(msr.trace.service.as_ref().expect("measured")[0], 283_300);
    let Some(systor) = read_sample("systor17-sample999.csv.zst", Format::Systor17) else { return };
    assert_eq!((systor.trace.count(), codes(&systor)), (999, vec!["trace_unsorted"]));
    assert!(systor.trace.service.is_some());
}

#[test]
fn volumes_of_a_cloud_become_streams() {
    let name = "tencent-cbs-sample50k.csv.zst";
    let Some(tencent) = read_sample(name, Format::Tencent) else { return };
    assert_eq!((tencent.trace.count(), tencent.trace.streams.len()), (50_000, 2038));
    assert_eq!(writes(&tencent.trace), 51.0);
    assert_eq!(codes(&tencent), ["trace_unsorted", "trace_times_coarse"]);
}

#[test]
fn simulator_inputs_are_told_apart() {
    let name = "ms-tpcc-6999.mqsim.txt.zst";
    // The fields of MQSim and SSDsim are the same; the other one is named.
    let Some(mqsim) = read_sample(name, Format::Ssdsim) else { return };
    assert!(mqsim.detected.others.iter().any(|other| other.format == Format::Mqsim));
    assert_eq!((mqsim.trace.count(), mqsim.trace.streams.len()), (6999, 16));
    assert_eq!(writes(&mqsim.trace), 37.4);
    let span_ms = (mqsim.trace.due[6998] - mqsim.trace.due[0]) as f64 * 1e-6;
    assert_eq!(span_ms.round(), 136.0);
    let named = ReadOptions { format: Some(Format::Mqsim), ..ReadOptions::default() };
    let named = read(&sample(name).expect("there"), &named).expect("reads");
    assert_eq!((named.detected.format, &named.trace.due), (Format::Mqsim, &mqsim.trace.due));
    for (name, writes_share, span_s) in [
        ("disksim-ascii-100k.txt.zst", Some(20.4), 1533.0),
        ("disksim-ssd-iozone-100k.txt.zst", None, 936.0),
    ] {
        let Some(reading) = read_sample(name, Format::Disksim) else { return };
        let trace = &reading.trace;
        assert_eq!(trace.count(), 100_000);
        assert_eq!(writes_share.unwrap_or(writes(trace)), writes(trace));
        let span = (trace.due[99_999] - trace.due[0]) as f64 * 1e-9;
        assert!((span - span_s).abs() < 1.0, "{name}: {span}");
    }
}

#[test]
fn the_text_of_cloudphysics_has_its_counts() {
    let Some(csv) = read_sample("cloudphysics-113872.csv.zst", Format::VscsiCsv) else { return };
    assert_eq!((csv.trace.count(), writes(&csv.trace)), (113_872, 58.7));
    assert_eq!((csv.trace.span().as_secs_f64() / 100.0).round(), 72.0);
    let mean = csv.trace.len.iter().map(|len| f64::from(*len)).sum::<f64>() / 113_872.0 / 1024.0;
    assert_eq!(mean.round(), 36.0);
}

#[test]
fn threads_make_no_difference() {
    for name in [
        "financial1-first948.spc.zst",
        "disksim-ascii-100k.txt.zst",
        "tencent-cbs-sample50k.csv.zst",
    ] {
        let Some(path) = sample(name) else { return };
        let one = read(&path, &ReadOptions::default()).expect(name);
        for threads in [2, 3, 7] {
            let options = ReadOptions { threads, ..ReadOptions::default() };
            assert_eq!(read(&path, &options).expect(name), one);
        }
    }
}
