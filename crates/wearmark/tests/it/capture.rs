//! `wearmark capture` on servers that the test runs and loads: the test is the stranger.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;

use dbms::instance::{Instance, Places, Settings};
use serde_json::Value;

use crate::program::{Ran, command, fine, place, refused};

/// Statements of each of the load's sessions.
const EACH: u64 = 300;
const SESSIONS: u64 = 4;

/// A running server with a table; the reason where there can be none.
fn server(directory: &Path, system: dbms::System) -> Result<Instance, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("the kernel's tracepoints need root".to_owned());
    }
    let settings = Settings {
        connections: 10,
        // Its asynchronous I/O shows no address.
        extra: match system {
            dbms::System::Postgresql => Vec::new(),
            dbms::System::Mariadb => vec![("innodb_use_native_aio".to_owned(), "OFF".to_owned())],
        },
        ..Settings::default()
    };
    let places = Places::at(directory.join("db"));
    let created = Instance::create(system, &places, &settings, &events::Quiet);
    let mut instance = created.map_err(|error| error.to_string())?.temporary();
    instance.start(&events::Quiet).map_err(|error| error.to_string())?;
    let table = "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)";
    let mut session = Session::open(&instance);
    if system == dbms::System::Mariadb {
        session.execute("CREATE DATABASE IF NOT EXISTS test");
        session.execute("USE test");
    }
    session.execute(table);
    for id in 0..SESSIONS {
        session.execute(&format!("INSERT INTO t VALUES ({id}, 0)"));
    }
    Ok(instance)
}

enum Session {
    Postgresql(dbms::postgresql::Connection),
    Mariadb(dbms::mariadb::Connection),
}

impl Session {
    fn open(instance: &Instance) -> Self {
        let login = instance.login();
        match instance.system() {
            dbms::System::Postgresql => {
                Self::Postgresql(dbms::postgresql::Connection::connect(&login).unwrap())
            }
            dbms::System::Mariadb => {
                Self::Mariadb(dbms::mariadb::Connection::connect(&login).unwrap())
            }
        }
    }

    fn execute(&mut self, sql: &str) {
        match self {
            Self::Postgresql(connection) => connection.execute(sql).unwrap(),
            Self::Mariadb(connection) => {
                connection.execute(sql).unwrap();
            }
        }
    }
}

/// Each session updates its row this many times, each time a transaction of its own, and asks for
/// it as often for nothing.
fn load(instance: &Instance) {
    let idle = match instance.system() {
        dbms::System::Postgresql => "VALUES (1)",
        dbms::System::Mariadb => "DO 1",
    };
    std::thread::scope(|scope| {
        for id in 0..SESSIONS {
            scope.spawn(move || {
                let mut session = Session::open(instance);
                if instance.system() == dbms::System::Mariadb {
                    session.execute("USE test");
                }
                for _ in 0..EACH {
                    session.execute(&format!("UPDATE t SET n = n + 1 WHERE id = {id}"));
                    session.execute(idle);
                }
            });
        }
    });
}

/// A capture that has attached: its first line of progress is out.
fn attach(directory: &Path, arguments: &[&str]) -> Result<(Child, BufReader<impl Read>), String> {
    let mut child = command(directory, arguments).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    while !all.contains("calls kept") {
        if told.read_line(&mut all).unwrap() == 0 {
            child.wait().unwrap();
            return Err(all);
        }
    }
    Ok((child, told))
}

/// Asks a capture to stop, and waits for what it printed.
fn stop(mut child: Child, mut told: BufReader<impl Read>) -> Ran {
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    end(&mut child, &mut told)
}

fn end(child: &mut Child, told: &mut BufReader<impl Read>) -> Ran {
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    told.read_to_string(&mut err).unwrap();
    Ran { code: child.wait().unwrap().code(), out, err }
}

fn account(directory: &Path, prefix: &str) -> Value {
    let text = fs::read_to_string(directory.join(format!("{prefix}-accounts.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Sum of a figure over rows that are of an operation.
fn sum(rows: &Value, figure: &str, op: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter();
    rows.filter(|row| row["op"] == op).map(|row| row[figure].as_u64().unwrap()).sum()
}

/// What a load of known size did must be in the capture: every commit, every byte of the trace.
#[track_caller]
fn check(system: dbms::System) {
    let dir = place();
    let instance = match server(dir.path(), system) {
        Ok(instance) => instance,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let data = instance.files().data.display().to_string();
    let arguments =
        ["capture", "--data-dir", &data, "--for", "10min", "-o", "mine", "--html", "mine.html"];
    let (child, told) = match attach(dir.path(), &arguments) {
        Ok(attached) => attached,
        Err(reason) => return println!("skipped: {reason}"),
    };
    load(&instance);
    let ran = stop(child, told);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(
        ran.out.contains("stopped after") && ran.out.contains("wearmark predict mine"),
        "{ran:?}"
    );

    let account = account(dir.path(), "mine");
    assert_eq!(account["ending"], "interrupted");
    let requests = &account["requests"];
    let (all, commits) =
        (requests["count"].as_u64().unwrap(), requests["commits"].as_u64().unwrap());
    let wanted = EACH * SESSIONS;
    // A session's log-in is a request or two; a sleep for another reason may look like a commit.
    assert!((2 * wanted..2 * wanted + 8 * SESSIONS).contains(&all), "{all} of {}", 2 * wanted);
    assert!(commits.abs_diff(wanted) <= wanted / 100, "{commits} of {wanted} commits");
    assert_eq!(requests["sessions"], SESSIONS, "{requests}");
    assert_eq!(requests["scheduled"], false);

    // Conservation: what the account says is what the traces hold.
    let (rows, name) = (&account["calls"], "mine-logical.parquet");
    let info = fine(dir.path(), &["trace", "info", name, "--json"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    let ops = ["read", "write", "flush", "trim"];
    let total: u64 = ops.map(|op| sum(rows, "requests", op)).iter().sum();
    assert_eq!(info["all"]["requests"].as_u64().unwrap(), total);
    let bytes = sum(rows, "bytes", "read") + sum(rows, "bytes", "write");
    let moved = ["read_bytes", "write_bytes"].map(|name| info["all"][name].as_u64().unwrap());
    assert_eq!(moved.iter().sum::<u64>(), bytes);
    assert!(sum(&account["calls"], "requests", "flush") > 0);
    assert!(dir.path().join("mine.html").exists());

    // Directions: a disk that turns is slower than flash.
    let asked = ["predict", "mine", "--on", "samsung-pm9a3", "--on", "hgst-hds72107", "--json"];
    let answer: Value = serde_json::from_str(&fine(dir.path(), &asked)).unwrap();
    let per_min = [0, 1].map(|at| answer["devices"][at]["per_min"].as_f64().unwrap());
    assert!(per_min[0] > 3.0 * per_min[1], "{per_min:?}");
    assert_eq!(answer["devices"][1]["limits"][0]["what"], "log flush");
    let kinds = answer["captured"]["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 2, "commits and others: {kinds:?}");
}

#[test]
fn a_running_postgresql_is_captured_and_predicted() {
    check(dbms::System::Postgresql);
}

#[test]
fn a_running_mariadb_is_captured_and_predicted() {
    check(dbms::System::Mariadb);
}

#[test]
fn a_server_that_dies_leaves_what_it_did() {
    let dir = place();
    let mut instance = match server(dir.path(), dbms::System::Postgresql) {
        Ok(instance) => instance,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let pid = instance.pid().unwrap().to_string();
    let arguments = ["capture", "--pid", &pid, "--for", "10min", "--no-physical", "-o", "dead"];
    let (mut child, mut told) = match attach(dir.path(), &arguments) {
        Ok(attached) => attached,
        Err(reason) => return println!("skipped: {reason}"),
    };
    load(&instance);
    instance.kill();
    let ran = end(&mut child, &mut told);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("[server_ended]"), "{ran:?}");
    let account = account(dir.path(), "dead");
    assert_eq!(account["ending"], "server_ended");
    let commits = account["requests"]["commits"].as_u64().unwrap();
    assert!(commits.abs_diff(EACH * SESSIONS) <= EACH * SESSIONS / 100, "{commits}");
    fine(dir.path(), &["trace", "info", "dead-logical.parquet"]);
}

#[test]
fn what_cannot_be_captured_is_said() {
    let dir = place();
    let (dir, root) = (dir.path(), rustix::process::geteuid().is_root());
    refused(dir, &["capture"], "not said what to capture");
    refused(dir, &["capture", "--pid", "4194304"], "process 4194304: it does not exist");
    refused(
        dir,
        &["capture", "--data-dir", "."],
        if root { "no server's data" } else { "may see" },
    );
    refused(dir, &["capture", "--cgroup", "no/such"], "is no control group");
    refused(dir, &["capture", "--device", "/dev/null"], "it is no block device");
    refused(dir, &["capture", "--pid", "1", "--for", "1ms"], "too short");
    assert!(crate::program::listing(dir).is_empty(), "nothing was made");
    let printed =
        fine(dir, &["capture", "--print-commands", "--device", "/dev/sdx", "--for", "30s"]);
    assert!(printed.contains("blktrace -d /dev/sdx -w 30"), "{printed}");
}

/// What the printed `bpftrace` program prints is a trace.
#[test]
fn lines_of_the_printed_commands_are_read() {
    let dir = place();
    // As bpftrace printed them on a kernel 6.18.
    let lines = "\
254,0 1 1 0.257699206 54 D WS 334518016 + 160 [kworker/1:1H]
254,0 1 1 0.258699206 0 C WS 334518016 + 160 [0]
254,0 1 1 0.264367867 54 D FF 0 + 0 [kworker/1:1H]
254,0 1 1 0.264417039 27666 C FF 0 + 0 [0]
";
    fs::write(dir.path().join("sdx.txt"), lines).unwrap();
    let info = fine(dir.path(), &["trace", "info", "sdx.txt", "--json"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["all"]["requests"], 2, "{info}");
}

/// A full disk costs the trace, not the account.
#[test]
fn a_full_disk_is_in_the_account() {
    let dir = place();
    let instance = match server(dir.path(), dbms::System::Postgresql) {
        Ok(instance) => instance,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let small = dir.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=96k", "none"])
        .arg(&small)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return println!("skipped: no tmpfs can be mounted");
    }
    let data = instance.files().data.display().to_string();
    let arguments =
        ["capture", "--data-dir", &data, "--for", "10min", "--no-physical", "-o", "small/x"];
    let attached = attach(dir.path(), &arguments);
    let ran = attached.map(|(child, told)| {
        load(&instance);
        stop(child, told)
    });
    let account = ran.is_ok().then(|| account(&small, "x"));
    let left = crate::program::listing(&small);
    let _ = std::process::Command::new("umount").arg(&small).status();
    let ran = match ran {
        Ok(ran) => ran,
        Err(reason) => return println!("skipped: {reason}"),
    };
    assert!(ran.err.contains("[file_missing]"), "{ran:?}");
    let account = account.unwrap();
    let files = account["files"].as_array().unwrap();
    let missing = files.iter().filter(|file| file["missing"].is_string()).count();
    assert!(missing > 0, "{files:?}");
    for file in files.iter().filter(|file| file["missing"].is_string()) {
        let name = file["name"].as_str().unwrap();
        assert!(
            left.iter().all(|left| !left.starts_with(name)),
            "half of {name} is left: {left:?}"
        );
    }
}

#[test]
fn without_root_the_ways_that_are_left_are_named() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can become somebody else");
    }
    let dir = place();
    let mut sleeper = match std::process::Command::new("sleep").arg("60").spawn() {
        Ok(sleeper) => sleeper,
        Err(error) => return println!("skipped: no sleep here: {error}"),
    };
    let refused = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_wearmark"))
        .args(["capture", "--pid", &sleeper.id().to_string(), "-o", "/tmp/never"])
        .current_dir(dir.path())
        .output();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let Ok(refused) = refused else { return println!("skipped: no setpriv here") };
    let err = String::from_utf8_lossy(&refused.stderr);
    if err.contains("setpriv") {
        return println!("skipped: {err}");
    }
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(err.contains("cannot be seen") && err.contains("--print-commands"), "{err}");
}
