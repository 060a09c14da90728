//! `wearmark oltp` from outside: runs that are kept, swept and compared; private servers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{command, fine, finish, listing, place, refused, run};

/// A short run of the commit workload, kept in `save`.
fn commit(directory: &Path, extra: &[&str]) -> String {
    let mut arguments = vec!["oltp", "run", ".", "--workload", "commit", "--rows", "200"];
    arguments.extend(["--users", "3", "--warmup", "100ms", "--duration", "300ms", "--no-capture"]);
    arguments.extend(["--synchronous", "off", "--quiet"]);
    arguments.extend(extra);
    fine(directory, &arguments)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn runs_that_got_slower_are_a_finding() {
    let dir = place();
    let screen = commit(dir.path(), &["--repeat", "5", "--save", "old.json", "--html", "old.html"]);
    assert!(screen.contains("run by run") && screen.contains("input audit: passed"), "{screen}");
    let page = fs::read_to_string(dir.path().join("old.html")).unwrap();
    assert!(page.contains("commit on SQLite") && page.contains("Throughput run by run"));
    let mut set = json(&dir.path().join("old.json"));
    assert_eq!(set["runs"].as_array().unwrap().len(), 5);

    // Runs without the noise of the host, and the same at half the throughput.
    for (index, run) in set["runs"].as_array_mut().unwrap().iter_mut().enumerate() {
        run["result"]["transactions_per_s"] = (1000.0 + index as f64).into();
    }
    fs::write(dir.path().join("old.json"), set.to_string()).unwrap();
    for run in set["runs"].as_array_mut().unwrap() {
        let result = &mut run["result"];
        result["transactions_per_s"] =
            (result["transactions_per_s"].as_f64().unwrap() / 2.0).into();
    }
    fs::write(dir.path().join("new.json"), set.to_string()).unwrap();
    let same = run(dir.path(), &["oltp", "compare", "old.json", "old.json"]);
    assert_eq!(same.code, Some(0), "{}{}", same.out, same.err);
    assert!(same.out.contains("no difference shown"), "{}", same.out);
    let arguments = ["oltp", "compare", "old.json", "new.json", "--html", "c.html"];
    let worse = run(dir.path(), &arguments);
    assert_eq!(worse.code, Some(1), "{}{}", worse.out, worse.err);
    let line = worse.out.lines().find(|line| line.starts_with("transactions")).unwrap();
    assert!(line.contains("0.500") && line.contains("REGRESSED"), "{line}");
    let better = run(dir.path(), &["oltp", "compare", "new.json", "old.json", "--json"]);
    assert_eq!(better.code, Some(0));
    let better: Value = serde_json::from_str(&better.out).unwrap();
    assert_eq!(better[0]["verdict"], "better");
}

#[test]
fn sqlite_runs_in_virtual_time_on_a_device_that_is_not_there() {
    let dir = place();
    let load = ["oltp", "run", ".", "--workload", "commit", "--rows", "200", "--users", "3"];
    let run_on = |profile: &str, extra: &[&str]| {
        let mut arguments = load.to_vec();
        arguments.extend(["--warmup", "1s", "--duration", "20s", "--on", profile, "--quiet"]);
        arguments.extend(extra);
        run(dir.path(), &arguments)
    };
    let began = std::time::Instant::now();
    let disk = run_on("hgst-hds72107", &["--json", "--save", "runs.json"]);
    assert_eq!(disk.code, Some(0), "{}", disk.err);
    let took_s = began.elapsed().as_secs_f64();
    let result: Value = serde_json::from_str(&disk.out).unwrap();
    // One commit per turn of the disk at most, 7,200 of them a minute.
    let rate = result["transactions_per_s"].as_f64().unwrap();
    assert!((60.0..=121.0).contains(&rate), "{rate}");
    assert!(took_s < 20.0, "21 s of virtual time took {took_s} s");
    assert_eq!(json(&dir.path().join("runs.json"))["runs"].as_array().unwrap().len(), 1);
    // Nothing of it is in the database: a real run is its first.
    let before = fs::read(dir.path().join("commit_rows.db")).unwrap();
    assert_eq!(run_on("crucial-mx500", &[]).code, run_on("crucial-mx500", &[]).code);
    assert_eq!(fs::read(dir.path().join("commit_rows.db")).unwrap(), before);

    for (extra, said) in [
        (&["--dbms", "postgresql"][..], "a server cannot run in virtual time"),
        (&["--speed", "0"], "a processor speed of 0 is not above 0"),
    ] {
        let refused = run_on("hgst-hds72107", extra);
        assert!(refused.code == Some(2) && refused.err.contains(said), "{}", refused.err);
        assert!(refused.err.contains("hint: "), "{}", refused.err);
    }
}

#[test]
fn two_runs_prove_no_sameness_and_unlike_runs_do_not_compare() {
    let dir = place();
    commit(dir.path(), &["--repeat", "2", "--save", "a.json"]);
    let same = run(dir.path(), &["oltp", "compare", "a.json", "a.json"]);
    assert_eq!(same.code, Some(3), "{}{}", same.out, same.err);
    assert!(same.out.contains("unproven"), "{}", same.out);
    let arguments = ["oltp", "run", ".", "--workload", "bank", "--branches", "1", "--users", "2"];
    let short = ["--warmup", "0s", "--duration", "200ms", "--no-capture", "--save", "b.json"];
    fine(dir.path(), &[&arguments[..], &short[..], &["--quiet"]].concat());
    refused(dir.path(), &["oltp", "compare", "a.json", "b.json"], "different things");
    fs::write(dir.path().join("c.json"), "{}").unwrap();
    refused(dir.path(), &["oltp", "compare", "a.json", "c.json"], "c.json");
}

/// A collapse by 60 % shows in one run a side: in the scatter of its own series.
#[test]
fn a_collapse_is_found_in_single_runs() {
    let dir = place();
    commit(dir.path(), &["--save", "old.json"]);
    let mut set = json(&dir.path().join("old.json"));
    // A steady run of 30 s, then the same at four tenths; the host's own noise stays out of it.
    let steady = |set: &mut Value, per_interval: u64| {
        let result = &mut set["runs"][0]["result"];
        let counts: Vec<u64> = (0..30).map(|k| per_interval + k % 5).collect();
        result["transactions_per_s"] = (per_interval + 2).into();
        (result["measured_s"], result["series"]["interval_s"]) = (30.0.into(), 1.0.into());
        result["series"]["measure_from_s"] = 0.0.into();
        result["series"]["new_orders"] = vec![0u64; 30].into();
        result["series"]["transactions"] = counts.into();
    };
    for (name, rate) in [("old.json", 1000), ("new.json", 400), ("near.json", 1000)] {
        steady(&mut set, rate);
        fs::write(dir.path().join(name), set.to_string()).unwrap();
    }
    let compared = |old: &str, new: &str| run(dir.path(), &["oltp", "compare", old, new]);
    let worse = compared("old.json", "new.json");
    assert_eq!(worse.code, Some(1), "{}{}", worse.out, worse.err);
    let line = worse.out.lines().find(|line| line.starts_with("transactions")).unwrap();
    assert!(line.contains("REGRESSED") && line.contains("within the runs"), "{line}");
    assert_eq!(compared("new.json", "old.json").code, Some(0));
    assert_eq!(compared("old.json", "near.json").code, Some(3));
}

/// Runs on one database take one seed after the other, over calls too; a seed that is given counts
/// on from itself.
#[test]
fn no_run_repeats_the_transactions_of_another() {
    let dir = place();
    let seeds = |name: &str| -> Vec<u64> {
        let set = json(&dir.path().join(name));
        let seed = |run: &Value| run["result"]["options"]["seed"].as_u64().unwrap();
        set["runs"].as_array().unwrap().iter().map(seed).collect()
    };
    let screen = commit(dir.path(), &["--repeat", "2", "--save", "a.json"]);
    assert!(screen.contains("seeds 1, 2"), "{screen}");
    commit(dir.path(), &["--save", "b.json"]);
    commit(dir.path(), &["--repeat", "2", "--seed", "7", "--save", "c.json"]);
    commit(dir.path(), &["--save", "d.json"]);
    assert_eq!((seeds("a.json"), seeds("b.json")), (vec![1, 2], vec![3]));
    assert_eq!((seeds("c.json"), seeds("d.json")), (vec![7, 8], vec![6]));
}

/// A listener that never speaks: the program gives up by itself, or when it is interrupted.
#[test]
fn a_server_that_never_speaks_holds_nobody() {
    let dir = place();
    let url = |scheme: &str, timeout: u32| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("{scheme}://u:p@127.0.0.1:{port}/d?connect_timeout={timeout}");
        (listener, url)
    };
    for scheme in ["postgresql", "mysql"] {
        let (_silent, soon) = url(scheme, 1);
        refused(dir.path(), &["oltp", "check", "--url", &soon], "did not answer within 1 s");

        let (listener, late) = url(scheme, 3600);
        let child = command(dir.path(), &["oltp", "check", "--url", &late]).spawn().unwrap();
        // Once it has connected it waits.
        let connected = listener.accept().unwrap();
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ended = finish(child);
        assert_eq!(ended.code, Some(130), "{}{}", ended.out, ended.err);
        drop(connected);
    }
}

#[test]
fn a_sweep_goes_on_where_it_was_stopped() {
    let dir = place();
    let sweep = |over: &str| {
        let arguments =
            ["oltp", "sweep", ".", "--over", over, "--workload", "commit", "--rows", "99"];
        let short = ["--warmup", "0s", "--duration", "200ms", "--no-capture", "--quiet"];
        let kept = ["--save", "s.json", "--html", "s.html", "--synchronous", "off"];
        fine(dir.path(), &[&arguments[..], &short[..], &kept[..]].concat())
    };
    sweep("users=1,2");
    let before = json(&dir.path().join("s.json"));
    let screen = sweep("users=1,2,4");
    assert!(screen.starts_with("USERS") && screen.lines().count() == 4, "{screen}");
    let after = json(&dir.path().join("s.json"));
    let runs = after["runs"].as_array().unwrap();
    assert_eq!(runs[..2], before["runs"].as_array().unwrap()[..], "points are not run again");
    assert_eq!((runs.len(), &runs[2]["at"]), (3, &Value::from("4")));
    assert!(fs::read_to_string(dir.path().join("s.html")).unwrap().contains("Over users"));
    let other = ["oltp", "sweep", ".", "--over", "buffer=1MiB", "--save", "s.json"];
    refused(dir.path(), &other, "holds a sweep over 'users'");
    refused(dir.path(), &["oltp", "sweep", ".", "--over", "colour=red"], "cannot be swept");
    refused(dir.path(), &["oltp", "sweep", ".", "--over", "users"], "users");
}

#[test]
fn a_mistyped_option_costs_no_server() {
    let dir = place();
    let server = ["oltp", "run", "pg", "--dbms", "postgresql"];
    for (wrong, cause) in [
        (["--users", "0"], "users"),
        (["--mix", "1,2"], "mix"),
        (["--workload", "orders"], "workload"),
        (["--warehouses", "0"], "warehouses"),
    ] {
        refused(dir.path(), &[&server[..], &wrong[..]].concat(), cause);
    }
    assert_eq!(listing(dir.path()), [""; 0]);
}

/// The arguments of a search on a small database of commits.
fn search(limit: &'static str) -> Vec<&'static str> {
    let mut arguments = vec!["oltp", "run", ".", "--workload", "commit", "--rows", "200"];
    arguments.extend(["--users", "3", "--warmup", "50ms", "--duration", "1s", "--no-capture"]);
    arguments.extend(["--synchronous", "off", "--quiet", "--json", "--find-rate", limit]);
    arguments
}

/// A limit that a device in virtual time meets up to a rate that is known: one commit per turn of
/// the disk, 120 a second, so 60 are fine and 1000 are not.
#[test]
fn the_rate_at_which_a_limit_holds_is_found() {
    let dir = place();
    let mut arguments = vec!["oltp", "run", ".", "--workload", "commit", "--rows", "200"];
    arguments.extend(["--users", "3", "--warmup", "1s", "--duration", "8s", "--quiet"]);
    arguments.extend(["--on", "hgst-hds72107", "--save", "rates.json"]);
    arguments.extend(["--find-rate", "update p50<40ms", "--json"]);
    let found = run(dir.path(), &arguments);
    assert_eq!(found.code, Some(0), "{}{}", found.out, found.err);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    let closed = found["closed_loop_per_s"].as_f64().unwrap();
    let (holds, fails) =
        (found["holds_at_per_s"].as_f64().unwrap(), found["fails_at_per_s"].as_f64().unwrap());
    assert!(holds > 0.5 * closed && fails < 1.2 * closed, "{holds} {fails} {closed}");
    assert!(fails / holds < 1.5, "{found}");
    assert_eq!((&found["ended"], &found["interrupted"]), (&true.into(), &false.into()));
    let tries = found["tries"].as_array().unwrap();
    let seeds: std::collections::BTreeSet<u64> =
        tries.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), tries.len(), "a run repeats another's transactions");
    let kept = json(&dir.path().join("rates.json"));
    assert_eq!(kept["over"], "rate");
    assert_eq!(kept["runs"].as_array().unwrap().len(), tries.len());
}

#[test]
fn a_limit_that_no_rate_meets_ends_in_runs_that_are_too_short() {
    let dir = place();
    // A commit is a turn of the disk in virtual time, whatever the disk below does.
    let arguments = [search("p50<1us"), vec!["--on", "hgst-hds72107"]].concat();
    let ran = run(dir.path(), &arguments);
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(found["holds_at_per_s"].is_null() && found["fails_at_per_s"].is_number(), "{found}");
    // At low rates a second has too few requests to say anything.
    assert_eq!(found["too_short"], true, "{found}");
}

#[test]
fn a_search_for_what_is_not_there_is_refused() {
    let dir = place();
    refused(dir.path(), &search("payment p99<1s"), "--find-rate: commit has no 'payment'");
    assert_eq!(listing(dir.path()), [""; 0], "refused before anything is made");
}

/// What was done before the signal is kept.
#[test]
fn a_search_that_is_stopped_keeps_its_runs() {
    let dir = place();
    let mut arguments = search("p99<50ms");
    arguments.extend(["--save", "rates.json"]);
    let child = command(dir.path(), &arguments).spawn().unwrap();
    let kept = dir.path().join("rates.json");
    let began = std::time::Instant::now();
    while !kept.exists() {
        assert!(began.elapsed() < std::time::Duration::from_mins(2), "no run ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ran = finish(child);
    assert_eq!(ran.code, Some(130), "{}{}", ran.out, ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["interrupted"], true);
    let tries = found["tries"].as_array().unwrap().len();
    assert!(tries >= 1 && tries == json(&kept)["runs"].as_array().unwrap().len(), "{found}");
}
