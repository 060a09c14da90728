//! Every command of the guide does what it says, and the small ones print what people expect.

use std::fs;

use crate::program::{fine, listing, place, refused, run};

#[test]
fn doctor_names_everything_it_lacks() {
    let dir = place();
    let text = fine(dir.path(), &["doctor"]);
    assert!(text.contains("io_uring") && text.contains("direct I/O"), "{text}");
    let checks: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["doctor", "--json"])).unwrap();
    assert!(checks.as_array().unwrap().len() >= 8);
    assert_eq!(listing(dir.path()), [""; 0], "the doctor left a file");
}

#[test]
fn a_place_that_does_not_exist_is_a_finding() {
    let dir = place();
    let ran = run(dir.path(), &["doctor", "absent"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("missing"), "{ran:?}");
}

#[test]
fn dry_runs_do_nothing_but_tell() {
    let dir = place();
    let text = fine(dir.path(), &["study", "run", "quickstart", "--dry-run"]);
    assert!(text.contains("written to the disk") && text.contains("Nothing was done"), "{text}");
    // What is probed has a name, given or not.
    let text = fine(dir.path(), &["probe", "--dry-run"]);
    let written = format!("written to {} (its wear)", dir.path().display());
    assert!(text.contains(&written) && text.contains("Nothing was done"), "{text}");
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn the_shown_study_can_be_run_as_it_is() {
    let dir = place();
    let shown = fine(dir.path(), &["study", "show", "quickstart"]);
    fs::write(dir.path().join("my.toml"), &shown).unwrap();
    assert_eq!(fine(dir.path(), &["study", "show", "my.toml"]), shown);
}

#[test]
fn every_listed_profile_is_valid_and_simulates_a_trace() {
    let dir = place();
    fs::write(dir.path().join("t.spc"), "0,0,4096,W,0.001\n0,800,4096,R,0.002\n").unwrap();
    let list = fine(dir.path(), &["profile", "list"]);
    let names: Vec<&str> =
        list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 6, "{list}");
    for name in names {
        assert!(fine(dir.path(), &["profile", "check", name]).contains("is a valid profile"));
        let text = fine(dir.path(), &["sim", "t.spc", "--profile", name]);
        assert!(text.contains(name) && text.contains("write"), "{text}");
    }
}

#[test]
fn a_trace_tells_how_long_flash_lasts() {
    let dir = place();
    let load = ["--option", "rate=500/s", "--option", "reads=0", "--option", "range=6656MiB"];
    let made = ["trace", "generate", "random", "-n", "200000", "-o", "w.parquet"];
    fine(dir.path(), &[&made[..], &load].concat());
    let sim = ["sim", "w.parquet", "-p", "generic-slc-8g", "-p", "samsung-970-pro"];
    let text = fine(dir.path(), &[&sim[..], &["--html", "w.html"]].concat());
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default();
    // 2,097,152 pages that stand 100,000 erases, at 500 writes a second amplified by 3.59
    // (Desnoyers 2014, greedy cleaning at this spare factor).
    let years = row("lasts, by its cells").split_whitespace().nth(5).expect("a figure");
    let years: f64 = years.parse().unwrap_or_else(|_| panic!("{text}"));
    assert!((years / 3.70 - 1.0).abs() < 0.05, "{years}");
    assert!(row("lasts, as rated").contains("years"), "{text}");
    let page = fs::read_to_string(dir.path().join("w.html")).unwrap();
    assert!(page.contains("How it wears") && page.contains("How long its cells last"));
    // The simulator in the page, with as much of the trace as there is room for.
    assert!(page.contains("of 200,000 requests of the load") && page.len() < 3_000_000);
    assert!(page.contains(r#"[["generic-slc-8g","#) && page.contains(r#"["samsung-970-pro","#));
    let warm = fine(dir.path(), &[&sim[..], &["--warm-up", "200s", "--json"]].concat());
    let found: serde_json::Value = serde_json::from_str(&warm).unwrap();
    let outcome = &found["devices"][0]["open_loop"];
    let count = |name: &str| outcome[name].as_u64().unwrap_or_default();
    assert_eq!(count("requests") + count("warm_up_requests"), 200_000);
    assert!((90_000..110_000).contains(&count("warm_up_requests")), "{outcome}");
    let args = [&sim[..], &["--warm-up", "1h"]].concat();
    refused(dir.path(), &args, "leaves nothing of a trace");
}

#[test]
fn what_a_maker_states_of_a_drive_is_held_against_itself() {
    let dir = place();
    let found = run(dir.path(), &["profile", "check", "micron-9100-max"]);
    assert!(found.err.contains("written_tb is 0.56 of"), "{found:?}");
    let fits = run(dir.path(), &["profile", "check", "samsung-pm9d3a"]);
    assert_eq!((fits.code, fits.err.as_str()), (Some(0), ""));
    let shown = fine(dir.path(), &["profile", "show", "generic-slc-8g"]);
    assert!(shown.starts_with("# 6.5 GiB of 8 GiB of flash can be addressed"), "{shown}");
    assert!(shown.contains("18.8 % of the flash, 23.1 % of the capacity"), "{shown}");
}

#[test]
fn a_profile_is_held_against_what_others_published() {
    let dir = place();
    let args = ["profile", "check", "intel-p3700", "--published"];
    let text = fine(dir.path(), &args);
    assert!(text.starts_with("FIGURE") && text.contains("random read 4KiB depth 16"), "{text}");
    let json = fine(dir.path(), &[&args[..], &["--json"]].concat());
    let checks: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checks = checks.as_array().unwrap();
    assert_eq!(checks.len(), text.lines().count() - 1, "a line for each figure");
    for check in checks {
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let ratio = number(&check["model"]) / number(&check["published"]["value"]);
        assert!((number(&check["error"]) - (ratio - 1.0)).abs() < 1e-9, "{check}");
    }
    let plain = fine(dir.path(), &["profile", "check", "generic-slc-8g", "--published"]);
    assert!(plain.contains("has no [[published]] figures"), "{plain}");
}

#[test]
fn a_trace_is_described_and_survives_conversion() {
    let dir = place();
    let spc = "0,0,4096,W,0.001000\n1,800,8192,R,0.002000\n0,8,4096,W,0.003000\n";
    fs::write(dir.path().join("t.spc"), spc).unwrap();
    fine(dir.path(), &["trace", "convert", "t.spc", "t.parquet"]);
    let info = fine(dir.path(), &["trace", "info", "t.parquet"]);
    assert!(info.contains("asu0") && info.contains("asu1"), "{info}");
    fine(dir.path(), &["trace", "convert", "t.parquet", "again.spc"]);
    let info: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["trace", "info", "again.spc", "--json"])).unwrap();
    assert_eq!(info["all"]["requests"], 3);
}

#[test]
fn a_small_trace_is_replayed_and_its_target_is_removed() {
    let dir = place();
    let lines =
        |i: u64| format!("0,{},4096,{},{:.6}\n", i * 8, ["W", "R"][i as usize % 2], i as f64 / 1e3);
    let spc: String = (0..200).map(lines).collect();
    fs::write(dir.path().join("t.spc"), spc).unwrap();
    let ran = run(dir.path(), &["replay", "t.spc", "--target", "."]);
    // A busy machine may make the timing certificate invalid, which is a finding.
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    assert!(ran.out.contains("200 requests in, 200 completions out"), "{ran:?}");
    assert_eq!(listing(dir.path()), ["t.spc"]);
}

#[test]
fn man_pages_and_completions_come_from_the_program() {
    let dir = place();
    fine(dir.path(), &["man", "man"]);
    let pages = listing(&dir.path().join("man"));
    assert!(pages.contains(&"wearmark-study-run.1".to_owned()), "{pages:?}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(fine(dir.path(), &["completions", shell]).contains("study"));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = place();
    let mut child = crate::program::command(dir.path(), &["profile", "list"]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = crate::program::finish(child);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
}
