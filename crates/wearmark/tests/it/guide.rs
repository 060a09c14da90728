//! Every command that a guide shows can be run as it stands.

use std::fs;
use std::path::Path;

use crate::program::{fine, place};

/// The `wearmark` lines of the shell blocks of a page, in order.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => {
                // Quotes keep a shell from reading `<` as its own.
                let words = line.split_whitespace().map(|word| word.trim_matches('\''));
                let words: Vec<&str> = words.collect();
                assert_eq!(words.first(), Some(&"wearmark"), "not a command of ours: {line}");
                found.push(words[1..].to_vec());
            }
            _ => {}
        }
    }
    found
}

/// Writes the TOML files of a page: the first line of such a block names it.
fn files(page: &str, directory: &Path) {
    let blocks = page.split("```toml\n# ").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let (name, text) = block.split_once('\n').unwrap();
        fs::write(directory.join(name), text).unwrap();
    }
}

/// 2,000 requests of two ASUs: a log that is appended (sequential throughout) and data that are
/// read and written.
fn spc() -> String {
    let line = |at: u64| {
        let seconds = at as f64 * 0.002 + if at % 10 < 5 { 0.0 } else { 0.001 };
        match at % 4 {
            0 => format!("1,{},4096,W,{seconds:.6}\n", at * 2),
            1 => format!("0,{},8192,W,{seconds:.6}\n", at * at % 5000 * 16),
            _ => format!("0,{},8192,R,{seconds:.6}\n", at * 7919 % 5000 * 16),
        }
    };
    (0..2000).map(line).collect()
}

/// 1,000 requests in the form of the MSR traces, with response times of some milliseconds.
fn msr() -> String {
    let line = |at: u64| {
        let (time, offset) = (128_166_372_000_000_000 + at * 200_000, at * 7919 % 5000 * 4096);
        let (op, response) =
            if at.is_multiple_of(3) { ("Write", 30_000) } else { ("Read", 80_000) };
        format!("{time},hm,0,{op},{offset},4096,{}\n", response + at * 31 % 977)
    };
    (0..1000).map(line).collect()
}

/// The SQL files of a page, as [`files`] has its TOML files.
fn sql_files(page: &str, directory: &Path) {
    let blocks = page.split("```sql\n-- ").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let (name, text) = block.split_once('\n').unwrap();
        fs::write(directory.join(name), text).unwrap();
    }
}

#[test]
fn the_guide_to_own_transactions_runs() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/own-transactions.md");
    fs::create_dir(dir.path().join("visits")).unwrap();
    files(page, dir.path());
    sql_files(page, dir.path());
    let peek = "\\set id random_zipfian(1, 100000 * :scale, 1.2)\n\
                SELECT abalance FROM pgbench_accounts WHERE aid = :id;\n";
    let transfer = "\\set id random(1, 100000 * :scale)\nBEGIN;\n\
                    UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;\n\
                    INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 1, :id, 1);\n\
                    UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\nEND;\n";
    fs::write(dir.path().join("peek.sql"), peek).unwrap();
    fs::write(dir.path().join("transfer.sql"), transfer).unwrap();
    let commands = commands(page);
    assert!(commands.len() >= 11, "{commands:?}");
    for command in &commands {
        let out = fine(dir.path(), command);
        let named = |kinds: &[&str]| kinds.iter().all(|kind| out.contains(kind));
        let kinds: &[&str] = match command[..] {
            [_, "run", "kv", ..] => &["read", "update"],
            ["predict", ..] | [_, "run", "shop", ..] => &["browse", "checkout"],
            [_, "run", "try", ..] => &["look", "visit"],
            [_, "run", "bench", "--script", ..] => &["peek", "transfer"],
            _ => &[],
        };
        assert!(named(kinds), "{command:?}: {out}");
    }
}

#[test]
fn the_guide_to_traces_runs() {
    let dir = place();
    fs::write(dir.path().join("mytrace.spc"), spc()).unwrap();
    fs::write(dir.path().join("recorded.csv"), msr()).unwrap();
    let commands = commands(include_str!("../../../../docs/guide/traces.md"));
    assert!(commands.len() >= 8, "{commands:?}");
    for command in &commands {
        let out = fine(dir.path(), command);
        assert!(!out.is_empty(), "{command:?} says nothing");
    }
}

/// A directory that the servers' user can enter.
fn open_place() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = place();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn the_guide_to_servers_runs() {
    let dir = open_place();
    let commands = commands(include_str!("../../../../docs/guide/servers.md"));
    assert!(commands.len() >= 8, "{commands:?}");
    for command in &commands {
        let postgresql = command.contains(&"pg") || command.contains(&"postgresql");
        let system = if postgresql { dbms::System::Postgresql } else { dbms::System::Mariadb };
        if let Err(error) = dbms::Programs::find(system) {
            println!("skipped: {error}");
            continue;
        }
        let lossy = dbms::Instance::forgetful_missing();
        if let (true, Some(why)) = (command.contains(&"torture"), lossy) {
            println!("skipped: {why}");
            continue;
        }
        fine(dir.path(), command);
    }
    assert_eq!(crate::program::listing(dir.path()), [""; 0], "a server was left behind");
}

/// A server without fsync fails, with the loss in words and exit code 1; SQLite is refused.
#[test]
fn a_torture_that_finds_a_loss_says_so() {
    let dir = open_place();
    let sqlite = ["oltp", "torture", "try", "--dbms", "sqlite"];
    crate::program::refused(dir.path(), &sqlite, "SQLite has no server to kill");
    let missing = dbms::Programs::find(dbms::System::Postgresql).err().map(|e| e.to_string());
    if let Some(why) = missing.or_else(dbms::Instance::forgetful_missing) {
        println!("skipped: {why}");
        return;
    }
    let arguments = ["oltp", "torture", "try", "--dbms", "postgresql", "--workload", "commit"];
    let off = ["--durability", "off", "--cycles", "20", "--longest", "300ms"];
    let ran = crate::program::run(dir.path(), &[&arguments[..], &off[..]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("were acknowledged") && ran.out.ends_with("FAILED\n"), "{ran:?}");
    assert_eq!(crate::program::listing(dir.path()), [""; 0]);
}

#[test]
fn the_guide_to_emulation_runs() {
    if let Some((why, _)) = emulate::directories_missing() {
        println!("skipped: {why}");
        return;
    }
    let dir = place();
    for name in ["db", "log"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let page = include_str!("../../../../docs/guide/emulating.md");
    files(page, dir.path());
    let commands = commands(page);
    assert!(commands.len() >= 4, "{commands:?}");
    let (orders, others): (Vec<_>, Vec<_>) =
        commands.iter().partition(|command| matches!(command[1], "set" | "status"));
    for command in others {
        let out = fine(dir.path(), command);
        let found = ["REQUESTS", "\"devices\"", "PREDICTED"].iter().any(|word| out.contains(word));
        assert!(found, "{command:?}: {out}");
    }
    let served = crate::emulate::Running::start(dir.path(), &["emulate", "aws-gp2", "--dir", "db"]);
    for command in orders {
        assert!(!fine(dir.path(), command).is_empty(), "{command:?}");
    }
    served.end();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(dir.path().to_str().unwrap()), "something is still mounted");
    assert_eq!(crate::program::listing(dir.path()), ["db", "log", "raid.toml", "runs"]);
}

/// The traces come from the page's own first command.
#[test]
fn the_guide_to_the_host_runs() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/host-stack.md");
    files(page, dir.path());
    let commands = commands(page);
    assert!(commands.len() >= 4, "{commands:?}");
    for command in &commands {
        if command.contains(&"--run-in") && crate::host::missing("mkfs.ext4") {
            continue;
        }
        assert!(!fine(dir.path(), command).is_empty(), "{command:?} says nothing");
    }
    let html = fs::read_to_string(dir.path().join("host.html")).unwrap();
    assert!(html.contains("What the host makes of it"));
    let ask = |more: &[&str]| -> serde_json::Value {
        let asked = ["sim", "lite-logical.parquet", "-p", "samsung-pm9a3", "--json"];
        serde_json::from_str(&fine(dir.path(), &[&asked[..], more].concat())).unwrap()
    };
    assert!(ask(&[])["hosts"].is_null(), "no host, no account");
    let found = ask(&["--host", "stack.toml"]);
    let flushes = |layer: &str| found["hosts"][0][layer]["flushes"].as_u64().unwrap();
    assert!(flushes("logical") > 100 && flushes("physical") >= flushes("logical"), "{found}");
    let requests = found["devices"][0]["open_loop"]["requests"].as_u64().unwrap();
    let asked = &found["hosts"][0]["physical"];
    let below = asked["read"]["requests"].as_u64().unwrap()
        + asked["write"]["requests"].as_u64().unwrap()
        + flushes("physical");
    assert_eq!(requests, below, "the device is asked for what the account says");
    fs::write(dir.path().join("bad.toml"), "[file_system]\nkind = \"ntfs\"\n").unwrap();
    let both =
        ["sim", "lite-logical.parquet", "--closed", "--host", "stack.toml", "-p", "samsung-pm9a3"];
    crate::program::refused(dir.path(), &both, "--closed with a [file_system]");
    let bad = ["trace", "host", "lite-logical.parquet", "--host", "raid.toml", "-o", "b.parquet"];
    crate::program::refused(dir.path(), &bad, "raid.toml: no [file_system]");
    let closed = |stack: &[&str]| -> f64 {
        let asked = ["sim", "lite-logical.parquet", "--closed", "-p", "hgst-hds72107", "--json"];
        let said = fine(dir.path(), &[&asked[..], stack].concat());
        let found: serde_json::Value = serde_json::from_str(&said).unwrap();
        let spans = found["devices"][0]["closed_loop"]["span_ns"].as_f64();
        spans.unwrap_or_else(|| panic!("{found}"))
    };
    let (disk, cached) = (closed(&[]), closed(&["--host", "cache.toml"]));
    assert!(cached < disk / 2.0, "a cache in front of the disk: {cached} ns, without {disk}");
    let bad = ["trace", "host", "lite-logical.parquet", "--host", "bad.toml", "-o", "b.parquet"];
    crate::program::refused(dir.path(), &bad, "bad.toml:2: unknown variant `ntfs`");
}

#[test]
fn the_questions_about_the_host_are_answered() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/host-questions.md");
    files(page, dir.path());
    let commands = commands(page);
    assert!(commands.len() >= 5, "{commands:?}");
    for command in &commands {
        assert!(!fine(dir.path(), command).is_empty(), "{command:?} says nothing");
    }
    let html = fs::read_to_string(dir.path().join("file-systems.html")).unwrap();
    assert!(html.contains("What the hosts write") && html.contains("What btrfs makes of it"));
    let closed = |more: &[&str]| -> serde_json::Value {
        let asked = ["sim", "calls-logical.parquet", "--closed", "-p", "hgst-hds72107", "--json"];
        serde_json::from_str(&fine(dir.path(), &[&asked[..], more].concat())).unwrap()
    };
    let levels = closed(&["--host", "raid0.toml", "--host", "raid5.toml"]);
    let name = |at: usize| levels["devices"][at]["profile"].as_str().unwrap().to_owned();
    assert_eq!(name(0), "raid0 of 4 hgst-hds72107, raid0");
    let span = |at: usize| levels["devices"][at]["closed_loop"]["span_ns"].as_f64().unwrap();
    assert!(span(1) > span(0), "parity costs: {levels}");
    let twice = ["--host", "raid0.toml", "--host", "raid5.toml", "--timeline", "t.json"];
    let sim = ["sim", "calls-logical.parquet", "-p", "intel-320"];
    crate::program::refused(dir.path(), &[&sim[..], &twice].concat(), "a timeline shows one trace");
}

#[test]
fn the_guide_to_sorts_and_joins_runs() {
    let dir = place();
    let commands = commands(include_str!("../../../../docs/guide/sort-and-join.md"));
    assert!(commands.len() >= 6, "{commands:?}");
    for command in &commands {
        let out = fine(dir.path(), command);
        assert!(!out.is_empty(), "{command:?} says nothing");
    }
    assert!(fs::read_to_string(dir.path().join("sort.html")).unwrap().contains("64 KiB"));
}

#[test]
fn the_guide_to_old_versions_runs() {
    let dir = place();
    let commands = commands(include_str!("../../../../docs/guide/old-versions-and-temp-space.md"));
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in &commands {
        let out = fine(dir.path(), command);
        assert!(out.lines().count() >= 3, "{command:?}: {out}");
    }
    assert!(fs::read_to_string(dir.path().join("versions.html")).unwrap().contains("old snapshot"));
    assert_eq!(crate::program::listing(dir.path()), ["versions.html"]);
}

#[test]
fn a_trace_has_a_screen_a_page_and_json_that_agree() {
    let dir = place();
    fs::write(dir.path().join("t.spc"), spc()).unwrap();
    let screen = fine(dir.path(), &["trace", "info", "t.spc", "--html", "t.html"]);
    assert!(screen.lines().count() <= 50, "more than a screen:\n{screen}");
    for word in ["2,000 in", "Miss ratio", "Where requests go", "asu0", "asu1", "Page: "] {
        assert!(screen.contains(word), "no '{word}' in\n{screen}");
    }
    let html = fs::read_to_string(dir.path().join("t.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("2,000 in"));
    let json = fine(dir.path(), &["trace", "info", "t.spc", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(info["all"]["requests"], 2000);
    assert_eq!(info["all"]["blocks"]["followed_share"], 1.0);
    assert_eq!(info["streams"][1]["sequentiality"]["sequential_share"], 1.0);
    let touched: u64 = info["heat"]["reads"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|cell| cell.as_u64().unwrap())
        .sum();
    assert_eq!(Some(touched), info["all"]["reads"].as_u64());
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let dir = place();
    fs::write(dir.path().join("t.spc"), spc()).unwrap();
    let arguments = ["trace", "info", "t.spc", "--html", "absent/t.html"];
    crate::program::refused(dir.path(), &arguments, "absent/t.html");
    assert!(!Path::new("absent").exists());
}

/// On real servers, started and stopped by the commands themselves.
#[test]
fn the_guide_to_transactions_runs() {
    let dir = place();
    if let Err(error) = dbms::Programs::find(dbms::System::Postgresql) {
        println!("skipped: {error}");
        return;
    }
    let commands = commands(include_str!("../../../../docs/guide/transactions.md"));
    assert!(commands.len() >= 6, "{commands:?}");
    for command in &commands {
        // What half a second on this disk says of a rate, and whether two seconds are alike, is its
        // own affair; the commands' verdicts are tested where a device in virtual time decides.
        let verdict = command.iter().any(|word| ["--find-rate", "compare"].contains(word));
        let ran = crate::program::run(dir.path(), command);
        assert!(
            ran.code == Some(0) || verdict && matches!(ran.code, Some(1 | 3)),
            "{command:?}\n{}\n{}",
            ran.out,
            ran.err
        );
        assert!(!ran.out.is_empty(), "{command:?} says nothing");
    }
    assert!(dir.path().join("rates.json").exists() && dir.path().join("compared.html").exists());
    let page = fs::read_to_string(dir.path().join("run.html")).unwrap();
    for word in ["order-entry on PostgreSQL", "Processor time per transaction", "The server"] {
        assert!(page.contains(word), "no '{word}' on the page");
    }
}

#[test]
fn the_guide_to_predictions_runs() {
    if let Err(error) = dbms::Programs::find(dbms::System::Postgresql) {
        return println!("skipped: {error}");
    }
    let dir = open_place();
    let page = include_str!("../../../../docs/guide/predicting.md");
    files(page, dir.path());
    let commands = commands(page);
    assert!(commands.len() >= 6, "{commands:?}");
    for command in &commands {
        fine(dir.path(), command);
        if !dir.path().join("mine-logical.parquet").exists() {
            return println!("skipped: the kernel's tracepoints cannot be used");
        }
    }
    let page = fs::read_to_string(dir.path().join("predicted.html")).unwrap();
    assert!(page.contains("hgst-hds72107, log on intel-p4800x"), "the page names its devices");
    // What a slower device does to the same transactions, and what waiting costs on it.
    let ask = |more: &[&str]| -> serde_json::Value {
        let asked = ["predict", "mine", "--on", "samsung-pm9a3", "--on", "hgst-hds72107", "--json"];
        serde_json::from_str(&fine(dir.path(), &[&asked[..], more].concat())).unwrap()
    };
    let figures = |answer: &serde_json::Value| {
        [0, 1].map(|at| answer["devices"][at]["per_min"].as_f64().unwrap())
    };
    let all = ask(&[]);
    let [fast, slow] = figures(&all);
    assert!(fast > 3.0 * slow, "a disk that turns is slower: {fast} {slow}");
    assert_eq!(all["devices"][1]["limits"][0]["what"], "log flush");
    let [_, free] = figures(&ask(&["--no-commit-wait"]));
    assert!(free > 3.0 * slow, "{free} {slow}");
    assert_eq!(all, ask(&[]), "the same bytes");
    // A controller that acknowledges in memory takes the waiting for a flush away.
    let below = ask(&["--host", "raid.toml"]);
    assert_eq!(below["devices"][1]["device"], "raid10 of 4 hgst-hds72107");
    let [_, cached] = figures(&below);
    assert!(cached > 3.0 * slow, "{cached} {slow}");
    fs::write(dir.path().join("ext4.toml"), "[file_system]\nkind = \"ext4\"\n").unwrap();
    let words = ["predict", "mine", "--on", "hgst-hds72107", "--host", "ext4.toml"];
    crate::program::refused(dir.path(), &words, "keeps the page cache and the file system");
}

/// The study takes minutes and is run where slow tests are; here what the page has its reader write
/// is a study, and a shipped one is printed with its defaults.
#[test]
fn the_guide_to_choosing_a_volume_can_be_followed() {
    let page = include_str!("../../../../docs/guide/choosing-a-volume.md");
    let dir = place();
    let shown = fine(dir.path(), &["study", "show", "choose-a-volume"]);
    fs::write(dir.path().join("mine.toml"), &shown).unwrap();
    assert_eq!(fine(dir.path(), &["study", "show", "mine.toml"]), shown, "all is spelt out");
    let parts = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let own = format!("[study]\nname = \"own\"\n\n{parts}");
    fs::write(dir.path().join("own.toml"), own).unwrap();
    let shown = fine(dir.path(), &["study", "show", "own.toml"]);
    for word in ["hgst-hds72107", "intel-p5600", "wal_compression", "predicted", "50GiB", "raid10"]
    {
        assert!(shown.contains(word), "no '{word}' in {shown}");
    }
    let [run, show, ..] = &commands(page)[..] else { panic!("the page has two commands") };
    assert_eq!(run, &["study", "run", "choose-a-volume"]);
    assert_eq!(show[..3], ["study", "show", "choose-a-volume"]);
    if std::env::var_os("SLOW").is_none() {
        return println!("skipped: SLOW=1 runs it, for six minutes");
    }
    fine(dir.path(), run);
}

/// On a server that somebody else started and loads: another process of the test.
#[test]
fn the_guide_to_captures_runs() {
    if let Err(error) = dbms::Programs::find(dbms::System::Postgresql) {
        return println!("skipped: {error}");
    }
    let dir = open_place();
    let load = "oltp run pg --dbms postgresql --workload commit --rows 1000 --users 4 --warmup 0s \
                --duration 10min --no-capture";
    let words: Vec<&str> = load.split_whitespace().collect();
    let stranger = crate::program::command(dir.path(), &words).spawn().unwrap();
    let id = rustix::process::Pid::from_child(&stranger);
    let ended = captures(dir.path());
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let stranger = crate::program::finish(stranger);
    if let Err(reason) = ended {
        return println!("skipped: {reason}");
    }
    assert_eq!(stranger.code, Some(130), "the server ran on: {stranger:?}");
}

/// Waits until the load runs, then runs the commands of the page.
fn captures(dir: &Path) -> Result<(), String> {
    let look = "capture --data-dir pg/data --for 300ms --no-physical -o look --json";
    let look: Vec<&str> = look.split_whitespace().collect();
    let seen = |out: &str| {
        let account: serde_json::Value = serde_json::from_str(out).unwrap_or_default();
        account["requests"]["commits"].as_u64().unwrap_or(0)
    };
    let mut last = String::new();
    // A server that is still being installed runs and ends several times.
    let refused =
        |said: &str| said.contains("cannot be seen") && !said.contains("the process is gone");
    let busy = (0..300).any(|_| {
        let ran = crate::program::run(dir, &look);
        last = ran.err;
        if ran.code != Some(0) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        seen(&ran.out) > 20 || refused(&last)
    });
    if refused(&last) {
        return Err(last);
    }
    assert!(busy, "the load never began: {last}");
    let commands = commands(include_str!("../../../../docs/guide/capturing.md"));
    assert!(commands.len() >= 5, "{commands:?}");
    for command in &commands {
        let out = fine(dir, command);
        assert!(!out.is_empty(), "{command:?} says nothing");
    }
    Ok(())
}

/// Runs the commands of a page in `directory`; `> FILE` at the end of one keeps what it prints.
fn run_all(directory: &Path, page: &str, codes: &[i32]) {
    for command in commands(page) {
        let kept = command.iter().position(|word| *word == ">");
        let ran = crate::program::run(directory, &command[..kept.unwrap_or(command.len())]);
        assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{command:?}: {ran:?}");
        if let Some(at) = kept {
            fs::write(directory.join(command[at + 1]), ran.out).unwrap();
        }
    }
}

/// Whether the runs of a load prove sameness is the host's to say: exit code 3 is right too.
#[test]
fn the_guide_to_checks_in_ci_runs() {
    let dir = place();
    fs::create_dir(dir.path().join("baseline")).unwrap();
    run_all(dir.path(), include_str!("../../../../docs/guide/checks-in-ci.md"), &[0, 3]);
    let comment = fs::read_to_string(dir.path().join("comment.md")).unwrap();
    assert!(comment.contains("**No regression beyond 5%**"), "{comment}");
}

#[test]
fn the_guide_to_fleets_runs() {
    let dir = place();
    fs::create_dir(dir.path().join("traces")).unwrap();
    run_all(dir.path(), include_str!("../../../../docs/guide/fleets.md"), &[0]);
    let rows = fs::read_to_string(dir.path().join("rows.jsonl")).unwrap();
    assert!(rows.lines().count() >= 8, "{rows}");
}

#[test]
fn the_guide_to_sweeps_runs() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/sweeps.md");
    files(page, dir.path());
    let all = commands(page);
    let said: Vec<String> = all.iter().map(|command| fine(dir.path(), command)).collect();
    assert!(said[0].starts_with("9 cells"), "{said:?}");
    assert!(said[1].contains("Flash answers sooner") && said[1].contains("holds"), "{said:?}");
}

#[test]
fn the_guide_to_advice_runs() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/advice.md");
    files(page, dir.path());
    let commands = commands(page);
    assert!(commands.len() >= 14, "{commands:?}");
    for command in &commands {
        let out = fine(dir.path(), command);
        assert!(!out.is_empty(), "{command:?} says nothing");
        for (asked, told) in [
            ("11.59MB", "years until it is worn out: 5.47 years"),
            ("storage", "2.17 times"),
            ("processors", "1.56 times"),
            ("arithmetic", "2.49 devices"),
            ("harmonic", "3.89 devices"),
            ("14305", "longer than break-even: storage is cheaper"),
        ] {
            assert!(!command.contains(&asked) || out.contains(told), "{command:?}: {out}");
        }
    }
}

#[test]
fn advice_that_cannot_be_given_says_so() {
    let dir = place();
    let offers = "[[offer]]\nname = \"a\"\nper_min = 100\np99_ms = 50\nper_month = 9\n";
    fs::write(dir.path().join("offers.toml"), offers).unwrap();
    let strict = ["advise", "buy", "offers.toml", "--p99", "10ms"];
    let ran = crate::program::run(dir.path(), &strict);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.out.contains("Cheapest: cannot be told from this"), "{ran:?}");
    let json = fine(dir.path(), &["advise", "buy", "offers.toml", "--json"]);
    let choice: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(choice["best"], "a");
    let refused = |arguments: &[&str], cause: &str| {
        crate::program::refused(dir.path(), arguments, cause);
    };
    refused(&["advise", "buy", "nothing.json"], "nothing.json: cannot read");
    refused(&["advise", "what-if", "faster", "--share", "1.5"], "the share of time is 1.5");
    let dated = ["advise", "life", "-p", "aws-gp2", "--free", "1GB", "--grows", "1GB"];
    refused(&[&dated[..], &["--from", "2026-02-30"]].concat(), "not a date");
    let life = fine(dir.path(), &["advise", "life", "-p", "intel-p3700"]);
    assert!(
        life.contains("cannot be told: years: the bytes written per second are not stated"),
        "{life}"
    );
}

#[test]
fn the_guide_to_papers_runs() {
    let dir = place();
    let commands = commands(include_str!("../../../../docs/guide/papers.md"));
    assert!(commands.len() >= 3, "{commands:?}");
    for command in &commands {
        if command[..2] == ["papers", "--html"] && std::env::var_os("SLOW").is_none() {
            println!("skipped: SLOW=1 runs all papers in full");
            continue;
        }
        let out = fine(dir.path(), command);
        assert!(!out.is_empty(), "{command:?} says nothing");
    }
    let page = fs::read_to_string(dir.path().join("lee2008.html")).unwrap();
    assert!(page.contains("table2.hdd.tps.4") && page.contains("178"));
    crate::program::refused(dir.path(), &["papers", "nobody1999"], "no paper 'nobody1999'");
}

/// The commands of the README that take seconds run, and print the rows that it shows.
#[test]
fn the_readme_shows_what_its_commands_print() {
    let dir = place();
    let page = include_str!("../../../../README.md");
    let of_words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut printed = Vec::new();
    for command in commands(page) {
        let kept = command.iter().position(|word| *word == ">");
        let out = fine(dir.path(), &command[..kept.unwrap_or(command.len())]);
        if let Some(at) = kept {
            fs::write(dir.path().join(command[at + 1]), &out).unwrap();
        }
        printed.extend(out.lines().map(of_words));
    }
    let blocks = page.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let tables =
        blocks.filter(|block| ["REQUEST", "FIGURE"].iter().any(|at| block.starts_with(at)));
    let shown: Vec<String> = tables.flat_map(str::lines).map(of_words).collect();
    assert!(shown.len() >= 12, "{shown:?}");
    for row in &shown {
        assert!(printed.contains(row), "the README shows '{row}'; printed were {printed:#?}");
    }
}

#[test]
fn the_guide_to_watching_a_run_runs() {
    let dir = place();
    let page = include_str!("../../../../docs/guide/watching-a-run.md");
    let commands = commands(page);
    assert!(!commands.is_empty());
    for command in commands {
        fine(dir.path(), &command);
    }
}
