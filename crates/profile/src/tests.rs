//! Shipped profiles load, texts round-trip, and what is impossible is refused where it stands.

use events::Hint;
use proptest::prelude::*;

use super::*;

fn shipped_profile(name: &str) -> Profile {
    Profile::from_toml(find_shipped(name).expect("it ships"), name).expect("it is sound")
}

#[test]
fn every_shipped_profile_loads_under_its_own_name() {
    for (name, text) in shipped() {
        let profile = Profile::from_toml(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name(), *name);
        assert!(!profile.profile.sources.is_empty(), "{name} names no source");
    }
    assert!(shipped().windows(2).all(|pair| pair[0].0 < pair[1].0), "alphabetical");
}

/// Messages are one line, and nothing that a file holds steers the terminal.
#[test]
fn what_a_file_holds_is_quoted_on_one_line() {
    let text = find_shipped("aws-gp3").expect("it ships");
    let key = text.replacen("[profile]", "[profile]\n\"\\u001b[2J\\n\" = 1", 1);
    let error = Profile::from_toml(&key, "p.toml").unwrap_err().to_string();
    assert!(error.starts_with("p.toml:") && error.contains("` [2J `"), "{error:?}");
    let name = text.replacen("\"aws-gp3\"", "\"aws\\ngp3\"", 1);
    let error = Profile::from_toml(&name, "p.toml").unwrap_err().to_string();
    assert!(error.contains("profile.name: it holds a control character"), "{error:?}");
}

#[test]
fn what_is_written_reads_back_equal() {
    for (name, text) in shipped() {
        let profile = Profile::from_toml(text, name).expect("it is sound");
        let written = profile.to_toml();
        assert_eq!(Profile::from_toml(&written, name).as_ref(), Ok(&profile), "{written}");
        let without = profile.without_cache();
        assert_eq!(Profile::from_toml(&without.to_toml(), name), Ok(without));
    }
}

/// `text` with its long lines cut between words, for people who read the test.
fn folded(text: &str) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let mut width = 0;
        for part in line.split_inclusive(' ') {
            if width + part.len() > 90 {
                folded.truncate(folded.trim_end().len());
                folded.push_str("\n  ");
                width = 2;
            }
            folded.push_str(part);
            width += part.len();
        }
        folded.push('\n');
    }
    folded
}

#[test]
fn a_written_profile_is_one_that_a_person_can_read() {
    let mut profile = shipped_profile("fuji-xerox-gigaexpress");
    profile.validation = Some(Validation {
        error_ratio: 0.05,
        interval: [0.04, 0.06],
        device_against_itself: Some(0.03),
        trace: "order-entry, 4 users".to_owned(),
        date: "2026-11-21".to_owned(),
    });
    insta::assert_snapshot!(folded(&profile.to_toml()), @r#"
    [profile]
    name = "fuji-xerox-gigaexpress"
    description = "Fuji Xerox GigaExpress 16 GB, a DRAM SSD on a PCI Express card. Oi
      publishes its capacity and interface, not its speed."
    class = "dram-ssd"
    sources = ["Oi, OLTP on a DRAM SSD, 2007, Table 1"]

    [state]
    condition = "steady"
    measured = "2007"

    [device]
    kind = "ram"
    capacity = "16GB"
    interface_mb_per_s = { value = 250.0, source = "not published; one lane of PCI Express
      1.0", assumed = true }
    latency_us = { value = 15.0, source = "not published; Texas Memory states at most 15 us
      for the RamSan-440, a DRAM SSD of 2008", assumed = true }
    ports = { value = 4.0, source = "not published", assumed = true }

    [validation]
    error_ratio = 0.05
    interval = [0.04, 0.06]
    device_against_itself = 0.03
    trace = "order-entry, 4 users"
    date = "2026-11-21"
    "#);
}

/// Replaces one line of a shipped profile and says what becomes of it.
fn refusal(name: &str, line: &str, replacement: &str) -> Error {
    let text = find_shipped(name).expect("it ships");
    assert!(text.contains(line), "{name} has no '{line}'");
    Profile::from_toml(&text.replacen(line, replacement, 1), "my.toml").expect_err(replacement)
}

fn check_refusal(name: &str, (line, replacement): (&str, &str), expected: &str) {
    let error = refusal(name, line, replacement);
    assert!(error.to_string().starts_with(expected), "{error}\n  expected {expected}");
    assert!(error.hint().is_some());
}

#[test]
fn impossible_devices_are_refused_with_field_and_line() {
    let parallelism = "parallelism = { value = 36";
    for (line, value, expected) in [
        (parallelism, "0", "my.toml:25: device.parallelism: it must be at least 1"),
        (parallelism, "1.5", "my.toml:25: device.parallelism: it must be a whole number"),
        (parallelism, "nan", "my.toml:25: device.parallelism: it must be a whole number"),
        ("base_us = { value = 76.4", "-1", "my.toml:30: device.read.sequential.base_us: it is neg"),
        ("us_per_kib = { value = 0.366", "inf", "my.toml:31: device.read.sequential.us_per_kib: "),
        (
            "ceiling_iops = { value = 450000",
            "0",
            "my.toml:38: device.read.random.ceiling_iops: it must be above zero",
        ),
    ] {
        let (key, _) = line.rsplit_once(' ').expect("a value");
        check_refusal("intel-p3700", (line, &format!("{key} {value}")), expected);
    }
    check_refusal(
        "intel-p3700",
        ("[0.0, 0.93], ", ""),
        "my.toml:63: device.residual[0].quantiles: probabilities must run from 0 to 1",
    );
    check_refusal(
        "intel-p3700",
        ("capacity = \"800GB\"", "capacity = 0"),
        "my.toml:23: device.capacity: a device holds at least one byte",
    );
    check_refusal(
        "intel-p3700",
        ("source = \"Tom's Hardware\" }", "source = \"\" }"),
        "my.toml:32: device.read.sequential.ceiling_mb_per_s: its source is empty",
    );
}

#[test]
fn of_several_tables_the_right_one_is_named() {
    let text = find_shipped("intel-p3700").expect("it ships");
    let second = "\n[[device.residual]]\nop = \"write\"\nsource = \"x\"\nquantiles = []\n";
    let error = Profile::from_toml(&format!("{text}{second}"), "my.toml").expect_err("empty");
    // Behind a blank line: head, operation, source, quantiles.
    let line = text.lines().count() + 5;
    let expected = format!("my.toml:{line}: device.residual[1].quantiles: the table is empty");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn impossible_jitter_is_refused() {
    let text = find_shipped("intel-p3700").expect("it ships");
    let wrong = |more: &str| {
        let jitter = format!("{text}\n[[device.jitter]]\n{more}\n");
        Profile::from_toml(&jitter, "my.toml").expect_err(more).to_string()
    };
    let write = "op = \"write\"\nspread = { value = 0.3, source = \"x\" }\n";
    let stalls = "stalls_per_million = { value = 100, source = \"x\" }\n";
    for (more, expected) in [
        (write.replace("write", "read"), "op: the operation has a table of quantiles already"),
        (write.replace("write", "trim"), "op: trims have no distribution"),
        (write.replace("0.3", "0"), "spread: it must be above zero"),
        (write.replace("0.3", "4"), "spread: beyond 3"),
        (format!("{write}{stalls}"), "stall_ms: stalls_per_million and stall_ms need"),
        (format!("{write}stall_spread = {{ value = 1, source = \"x\" }}"), "stall_spread: there"),
        (format!("{write}{}", stalls.replace("100", "600000")), "stalls_per_million: what most"),
    ] {
        let text = wrong(&more);
        assert!(text.contains(&format!("device.jitter[0].{expected}")), "{text}");
    }
    let twice = wrong(&format!("{write}[[device.jitter]]\n{write}"));
    assert!(twice.contains("device.jitter[1].op: an operation has one"), "{twice}");
}

#[test]
fn impossible_caches_are_refused_with_field_and_line() {
    for (line, replacement, expected) in [
        ("capacity_mb = { value = 16", "capacity_mb = { value = 0", "55: write_cache.capacity_mb"),
        (
            "capacity_mb = { value = 16",
            "capacity_mb = { value = 0.004",
            "55: write_cache.capacity_mb: a cache holds at least one line",
        ),
        ("line = \"4KiB\"", "line = 5000", "57: write_cache.line: a line is a power of two"),
        ("ports = { value = 1", "ports = { value = 0", "61: write_cache.ports"),
        ("value = 0.9", "value = 1.1", "62: write_cache.high_watermark: a share"),
        ("value = 0.5", "value = 0.95", "63: write_cache.low_watermark: it is above"),
    ] {
        check_refusal("mtron-pro-7500", (line, replacement), &format!("my.toml:{expected}"));
    }
}

#[test]
fn impossible_limits_are_refused_with_field_and_line() {
    for (line, replacement, expected) in [
        ("rate = { value = 300,", "rate = { value = 0,", "91: limits.iops.rate: it must be above"),
        (
            "burst = { value = 3000,",
            "burst = { value = 30,",
            "93: limits.iops.burst: it is below the rate",
        ),
        (
            concat!(
                "burst = { value = 3000, source = \"\"\"\\\n  Amazon EC2 user guide, ",
                "general-purpose.md, June 2023: 3 per GiB, at least 100\"\"\" }",
            ),
            "",
            "90: limits.iops.burst: burst and credits need each other",
        ),
        (
            concat!(
                "io_kib = { value = 256, source = \"Amazon EC2 user guide, ",
                "EBS I/O characteristics, 2023\" }",
            ),
            "",
            "87: limits.merges_contiguous: it needs io_kib",
        ),
        ("[limits.mb_per_s]", "[limits.kb_per_s]", "98: unknown field `kb_per_s`"),
    ] {
        check_refusal("aws-gp2", (line, replacement), &format!("my.toml:{expected}"));
    }
    let limits = "[limits.iops]\nrate = { value = 100, source = \"x\" }\n";
    let text = find_shipped("hitachi-15k450").expect("it ships");
    let error = Profile::from_toml(&format!("{text}\n{limits}"), "my.toml").expect_err("a queue");
    assert!(error.to_string().contains("not in front of a device that looks at its queue"));
}

#[test]
fn a_field_is_changed_by_its_path() {
    let gp2 = shipped_profile("aws-gp2");
    let changed = gp2.with_field("limits.iops.credits_at_start", "0.5").expect("a share");
    let own = |profile: &Profile| profile.limits.clone().expect("a volume").parameters();
    assert_eq!(own(&gp2).ios.expect("I/Os").start_share, 1.0);
    assert_eq!(own(&changed).ios.expect("I/Os").start_share, 0.5);
    let larger = gp2.with_field("device.capacity", "1GiB").expect("a size");
    assert_eq!(larger.capacity(), Some(Bytes(1 << 30)));
    for (field, value, expected) in [
        ("device.flush.base_us", "-1", "device.flush.base_us: it is negative"),
        ("device.flush.bas_us", "1", "unknown field `bas_us`"),
        ("device.flash.base_us", "1", "the profile has no such section"),
        ("device.flush", "1", "it is a section"),
        ("device.flush.base_us", "soon", "invalid type"),
    ] {
        let error = gp2.with_field(field, value).expect_err(field).to_string();
        assert!(error.contains(expected), "{field}={value}: {error}");
    }
}

#[test]
fn control_characters_are_refused() {
    for (line, replacement, field) in [
        ("name = \"intel-p3700\"", "name = \"\\u001b[31mred\"", "profile.name"),
        ("class = ", "class = \"a\\u0000\" # ", "profile.class"),
    ] {
        let error = refusal("intel-p3700", line, replacement).to_string();
        assert!(error.contains(&format!("{field}: it holds a control character")), "{error}");
    }
}

#[test]
fn malformed_texts_are_refused_with_their_line() {
    for (line, replacement, expected) in [
        ("kind = \"linear\"", "kind = \"quantum\"", "my.toml:22: unknown variant `quantum`"),
        ("kind = \"linear\"", "", "my.toml:21: missing field `kind`"),
        ("condition = ", "kind = \"ram\"\ncondition = ", "my.toml:15: unknown field `kind`"),
        ("capacity = ", "capacty = ", "my.toml:23: unknown field `capacty`"),
        ("capacity = \"800GB\"", "capacity = \"much\"", "my.toml:23: 'much' is not a size"),
        ("[device.flush]", "[device.flush", "my.toml:52: "),
        ("[profile]", "", "my.toml:6: unknown field `class`"),
        ("op = \"read\"", "op = \"erase\"", "my.toml:58: unknown variant `erase`"),
    ] {
        check_refusal("intel-p3700", (line, replacement), expected);
    }
    let error = Profile::from_toml("", "empty.toml").expect_err("nothing in it");
    assert_eq!(error.to_string(), "empty.toml:1: missing field `device`");
}

#[test]
fn a_profile_changed_in_code_is_checked_on_request() {
    let mut profile = shipped_profile("mtron-pro-7500");
    profile.write_cache.as_mut().expect("it has a cache").capacity_mb.value = -1.0;
    let error = profile.check().expect_err("a negative cache");
    assert!(error.to_string().contains("mtron-pro-7500:0: write_cache.capacity_mb"), "{error}");
    assert_eq!(profile.without_cache().check(), Ok(()));
}

proptest! {
    #[test]
    fn no_text_panics(at in 0usize..3000, with in "[\\[\\]=\"{},a0.\\n-]{0,6}") {
        let text = find_shipped("intel-p3700").expect("it ships");
        let at = at.min(text.len());
        if text.is_char_boundary(at) {
            let _ = Profile::from_toml(&format!("{}{with}{}", &text[..at], &text[at..]), "x");
        }
    }
}
