//! `--metrics`: what a real run offers while it goes on, and that the dashboard asks for nothing
//! else.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::program::{command, fine, finish, place, refused};

/// Starts a command with `--metrics 0`, and tells where it offers its figures.
fn start(directory: &Path, arguments: &[&str]) -> (Child, String) {
    let arguments = [arguments, &["--metrics", "0"]].concat();
    let mut child = command(directory, &arguments).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    // Read on, so that the program never waits for a reader.
    std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
    let address = line.trim().strip_prefix("metrics http://").expect(&line);
    (child, address.strip_suffix("/metrics").expect(&line).to_owned())
}

/// The figures, or nothing where the run is over.
fn scrape(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(ask.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// The figures once they hold `wanted`; the run is left to end.
#[track_caller]
fn figures(directory: &Path, arguments: &[&str], wanted: &str) -> String {
    let (mut child, address) = start(directory, arguments);
    let started = Instant::now();
    let text = loop {
        match scrape(&address) {
            Some(text) if text.contains(wanted) => break text,
            last => assert!(
                child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_mins(1),
                "no {wanted} in {last:?}"
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let ran = finish(child);
    // On a busy machine the run may find that it was late: exit code 1.
    let found = ["NOT VALID", "VIOLATED"].iter().any(|word| ran.out.contains(word));
    let late = ran.code == Some(1) && found;
    assert!(ran.code == Some(0) || late, "{arguments:?}: {ran:?}");
    assert_eq!(scrape(&address), None, "nobody answers after the run");
    text
}

/// Names of the samples, without labels.
fn names(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(['{', ' ']).next().unwrap()).collect()
}

const LOAD: [&str; 10] = [
    "oltp",
    "run",
    "load",
    "--workload",
    "commit",
    "--rows",
    "1000",
    "--users",
    "4",
    "--no-capture",
];

#[test]
fn a_run_offers_what_the_dashboard_asks_for() {
    let dir = place();
    let run = [&LOAD[..], &["--warmup", "0s", "--duration", "3s"]].concat();
    let text = figures(dir.path(), &run, r#"wearmark_requests_total{stage="oltp",class="update"}"#);
    assert!(text.ends_with("# EOF\n"), "{text}");
    let offered = names(&text);
    let page: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/examples/grafana-dashboard.json"))
            .unwrap();
    let mut asked = 0;
    for panel in page["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let asks = target["expr"].as_str().unwrap();
            let words = asks.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("wearmark_")) {
                asked += 1;
                assert!(offered.contains(name), "{name} of {asks} is not in {offered:?}");
            }
        }
    }
    assert!(asked >= 7, "{asked} names in the dashboard");
}

#[test]
fn a_replay_offers_response_times_by_operation() {
    let dir = place();
    let make = ["trace", "generate", "random", "-n", "400", "--option", "rate=150/s"];
    fine(dir.path(), &[&make[..], &["--option", "size=4KiB", "-o", "t.parquet"]].concat());
    let replay = ["replay", "t.parquet", "--target", "."];
    let text = figures(dir.path(), &replay, r#"wearmark_requests_total{stage="replay""#);
    assert!(text.contains(r#"stage="replay",class="read"}"#), "{text}");
}

#[test]
fn an_address_that_cannot_be_is_refused() {
    let dir = place();
    let with = |address| [&LOAD[..], &["--metrics", address]].concat();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(dir.path(), &with(&address), "cannot listen at");
    assert!(crate::program::listing(dir.path()).is_empty(), "nothing was begun");
    let ran = crate::program::run(dir.path(), &with("somewhere"));
    assert!(ran.code == Some(2) && ran.err.contains("write a port"), "{ran:?}");
}
