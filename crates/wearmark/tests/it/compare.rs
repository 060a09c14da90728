//! `wearmark compare` from outside: exit codes, the forms it writes, baselines, the script for CI.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{fine, place, refused, run};

/// A trace, and what the given profile makes of it, in `name`.
fn simulated(directory: &Path, name: &str, profile: &str) {
    if !directory.join("load.parquet").exists() {
        let made = ["trace", "generate", "random", "-n", "2000", "--option", "rate=100/s"];
        fine(directory, &[&made[..], &["-o", "load.parquet"]].concat());
    }
    let out = fine(directory, &["sim", "load.parquet", "--profile", profile, "--json"]);
    fs::write(directory.join(name), out).unwrap();
}

#[test]
fn simulations_compare_exactly_and_every_form_is_written() {
    let dir = place();
    simulated(dir.path(), "old.json", "intel-x25-e");
    // The same device by another sum of money: ten percent more to every request.
    let mut slow: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("old.json")).unwrap()).unwrap();
    let classes = &mut slow["devices"][0]["open_loop"]["classes"];
    for class in classes.as_array_mut().unwrap() {
        scale(&mut class["response"], 1.1);
    }
    fs::write(dir.path().join("slow.json"), slow.to_string()).unwrap();
    let same = run(dir.path(), &["compare", "old.json", "old.json"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.out.ends_with("No regression beyond 5%\n"), "{}", same.out);
    let forms = ["--markdown", "c.md", "--junit", "c.xml", "--csv", "c.csv", "--html", "c.html"];
    let arguments = [&["compare", "old.json", "slow.json"][..], &forms].concat();
    let worse = run(dir.path(), &arguments);
    assert_eq!(worse.code, Some(1), "{worse:?}");
    assert!(worse.out.contains("Regression beyond 5%: intel-x25-e: mean of read"), "{worse:?}");
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(text("c.md").contains("| REGRESSED |") && text("c.html").contains("Results compared"));
    assert!(text("c.xml").contains("<failure message=") && text("c.csv").contains(",regressed\n"));
    // Older outputs are replaced, anything else is not.
    assert_eq!(run(dir.path(), &arguments).code, Some(1));
    fs::write(dir.path().join("c.md"), "my notes\n").unwrap();
    refused(dir.path(), &arguments, "c.md: is there, and is no comparison in Markdown");
    // A tenth is within a bound of 20 %.
    let within = ["compare", "old.json", "slow.json", "--bound", "0.2", "--json"];
    let told: Value = serde_json::from_str(&fine(dir.path(), &within)).unwrap();
    assert_eq!(told["verdict"], "no_regression");
    assert_eq!(told["figures"][0]["verdict"], "worse");
}

/// Multiplies the values of a histogram as it stands in JSON.
fn scale(histogram: &mut Value, factor: f64) {
    let buckets = histogram["buckets"].as_array_mut().expect("a histogram has buckets");
    for bucket in buckets {
        bucket[0] = ((bucket[0].as_f64().unwrap() * factor) as u64).into();
    }
    for name in ["sum", "min", "max"] {
        if let Some(value) = histogram.get(name).and_then(Value::as_f64) {
            histogram[name] = ((value * factor) as u64).into();
        }
    }
}

#[test]
fn what_does_not_compare_is_refused() {
    let dir = place();
    simulated(dir.path(), "sim.json", "intel-x25-e");
    simulated(dir.path(), "other.json", "intel-p3700");
    fine(dir.path(), &["probe", "--profile", "intel-x25-e", "--output", "probe.json", "--quiet"]);
    refused(
        dir.path(),
        &["compare", "sim.json", "probe.json"],
        "the files hold different things: simulations and probes",
    );
    refused(dir.path(), &["compare", "sim.json", "absent.json"], "absent.json");
    refused(dir.path(), &["compare", "load.parquet", "sim.json"], "load.parquet: not a valid");
    refused(dir.path(), &["compare", "sim.json", "sim.json", "--bound", "5"], "is no share");
    let nothing = run(dir.path(), &["compare", "sim.json", "other.json"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    assert!(nothing.out.contains("No verdict: no figure in common"), "{nothing:?}");
    // A modelled probe against itself: rates are steady, single runs prove no sameness.
    let probe = run(dir.path(), &["compare", "probe.json", "probe.json"]);
    assert_eq!(probe.code, Some(3), "{probe:?}");
}

#[test]
fn a_directory_is_a_baseline_and_kinds_do_not_mix_in_it() {
    let dir = place();
    fs::create_dir(dir.path().join("baseline")).unwrap();
    for seed in ["1", "2", "3"] {
        let to = format!("baseline/{seed}.json");
        let probe = ["probe", "--profile", "intel-x25-e", "--quiet", "--seed", seed, "--output"];
        fine(dir.path(), &[&probe[..], &[&to]].concat());
    }
    let same = run(dir.path(), &["compare", "baseline", "baseline"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    simulated(dir.path(), "baseline/4.json", "intel-x25-e");
    refused(dir.path(), &["compare", "baseline", "baseline"], "different things");
}

/// Runs alternate until the verdict, and what they left is not run again.
#[test]
fn commands_are_repeated_until_there_is_a_verdict() {
    let dir = place();
    simulated(dir.path(), "fast.json", "intel-x25-e");
    let text = fs::read_to_string(dir.path().join("fast.json")).unwrap();
    let mut slow: Value = serde_json::from_str(&text).unwrap();
    for class in slow["devices"][0]["open_loop"]["classes"].as_array_mut().unwrap() {
        scale(&mut class["response"], 1.1);
    }
    fs::write(dir.path().join("slow.json"), slow.to_string()).unwrap();
    let copy = |name: &str| format!("echo {name} >> order; cp {name}.json \"$WEARMARK_RESULT\"");
    let (fast, slow) = (copy("fast"), copy("slow"));
    let asked = ["compare", "old", "new", "--repeat-until", "8", "--run", &fast, &slow];
    let worse = run(dir.path(), &asked);
    assert_eq!(worse.code, Some(1), "{worse:?}");
    assert!(worse.out.ends_with(" after 3 pairs of runs\n"), "{}", worse.out);
    let order = || fs::read_to_string(dir.path().join("order")).unwrap();
    assert_eq!(order(), "fast\nslow\nslow\nfast\nfast\nslow\n");
    let json = run(dir.path(), &[&asked[..], &["--json"]].concat());
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((told["pairs"].as_u64(), &told["verdict"]), (Some(3), &"regression".into()));
    assert_eq!(order().lines().count(), 6);
    let same = ["compare", "c", "d", "--repeat-until", "8", "--run", &fast, &fast];
    assert_eq!(run(dir.path(), &same).code, Some(0));
    let fails = ["compare", "e", "f", "--repeat-until", "8", "--run", "false", "true"];
    refused(dir.path(), &fails, "false: exit status: 1; it said: nothing");
    let both = ["compare", "old", "./old", "--repeat-until", "8", "--run", &fast, &fast];
    refused(dir.path(), &both, "old: it cannot keep the runs of both states");
    let lacks = run(dir.path(), &["compare", "old", "new", "--repeat-until", "8"]);
    assert!(lacks.code == Some(2) && lacks.err.contains("--run <OLD_COMMAND>"), "{lacks:?}");
}

/// The example for CI, as it stands: the first run makes the baseline, a baseline that was twice as
/// fast is a regression.
#[test]
fn the_script_for_ci_runs() {
    let dir = place();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = here.join("../../docs/examples/check-in-ci.sh").canonicalize().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_wearmark")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let again = || {
        let mut command = Command::new(&script);
        command.current_dir(dir.path()).env("DURATION", "300ms").env("BOUND", "0.1");
        command.env("PATH", format!("{}:{path}", program.display()));
        command.output().expect("there is a shell")
    };
    let first = again();
    // The runs against themselves: whether their scatter proves sameness is the host's to say.
    assert!(matches!(first.status.code(), Some(0 | 3)), "{first:?}");
    let kept = dir.path().join("baseline/runs.json");
    let mut set: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    for run in set["runs"].as_array_mut().unwrap() {
        let rate = run["result"]["transactions_per_s"].as_f64().unwrap();
        run["result"]["transactions_per_s"] = (rate * 100.0).into();
    }
    fs::write(&kept, set.to_string()).unwrap();
    let second = again();
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let comment = fs::read_to_string(dir.path().join("comment.md")).unwrap();
    assert!(comment.contains("Regression beyond 10%: transactions"), "{comment}");
}

#[test]
fn a_trend_names_the_result_with_which_figures_changed() {
    let dir = place();
    for build in 1..=12 {
        let profile = if build < 7 { "crucial-mx500" } else { "intel-x25-e" };
        simulated(dir.path(), "one.json", profile);
        // One device by name, whatever it is.
        let text = fs::read_to_string(dir.path().join("one.json")).unwrap();
        fs::create_dir_all(dir.path().join("kept")).unwrap();
        let name = format!("kept/build-{build}.json");
        fs::write(dir.path().join(name), text.replace(profile, "device")).unwrap();
    }
    let found = run(dir.path(), &["trend", "kept", "--html", "trend.html"]);
    assert!(found.out.contains("build-7.json") && !found.out.contains("build-6"), "{found:?}");
    let page = fs::read_to_string(dir.path().join("trend.html")).unwrap();
    assert!(page.contains("What changed") && page.contains("build-7.json"));
    let told: Value =
        serde_json::from_str(&run(dir.path(), &["trend", "kept", "--json"]).out).unwrap();
    let line = told["lines"].as_array().unwrap().iter().find(|line| line["levels"][1].is_object());
    assert_eq!(line.expect("one changed")["levels"][1]["from"], 6);
    assert!(found.out.contains("at last for the worse: device: mean of read"), "{found:?}");
    assert_eq!(found.code, Some(1), "{found:?}");
    refused(dir.path(), &["trend", "load.parquet"], "load.parquet");
    refused(
        dir.path(),
        &["trend", "kept", "--html", "kept/build-1.json"],
        "is there, and is no page",
    );
}
