//! `wearmark serve`: over plain sockets, and as somebody uses it with a browser.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::program::{command, place, refused};

#[expect(dead_code, reason = "the pages of reports need more of it")]
#[path = "../../../report/tests/it/browser.rs"]
mod browser;

use browser::{Browser, Tab};

/// A study of a few seconds.
const STUDY: &str = "\
[study]
name = 'mini'
title = 'A small one'
[probe]
range = '64MiB'
budget = '6s'
[oltp]
warehouses = 1
warmup = '1s'
duration = '2s'
[validate]
duration = '2s'
";

/// A server; ends with this value.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        _ = std::process::Command::new("kill").args(["-INT", &id]).status();
        _ = self.child.wait();
    }
}

impl Served {
    fn start(directory: &Path) -> Self {
        let mut child = command(directory, &["serve", "--at", "0"]).spawn().unwrap();
        let mut url = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }

    /// Address and key.
    fn parts(&self) -> (&str, &str) {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.split_once("/?key=").unwrap()
    }

    /// Sends a request and gives the whole answer.
    fn ask(&self, line: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = TcpStream::connect(self.parts().0).unwrap();
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn only_who_has_the_key_is_answered() {
    let place = place();
    let served = Served::start(place.path());
    let (address, key) = served.parts();
    let host = ("Host", address);
    let port = address.rsplit_once(':').unwrap().1;
    let status = |line: &str, headers: &[(&str, &str)]| {
        let answer = served.ask(line, headers);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("GET /", &[host]), "401");
    assert_eq!(status("GET /api/runs", &[host]), "401");
    assert_eq!(status("GET /?key=0", &[host]), "401");
    assert_eq!(status("POST /api/start?study=quickstart", &[host]), "401");
    // A name of somebody else's that leads here.
    assert_eq!(status(&format!("GET /?key={key}"), &[("Host", "a.example")]), "403");
    let let_in = served.ask(&format!("GET /?key={key}"), &[host]);
    assert!(let_in.starts_with("HTTP/1.1 303"), "{let_in}");
    let cookie = format!("wearmark-{port}={key}");
    let own = ("Cookie", cookie.as_str());
    let table = served.ask("GET /api/runs", &[host, own]);
    assert!(table.contains("\"runs\":[]") && table.contains("choose-a-volume"), "{table}");
    let page = served.ask("GET /", &[host, own]);
    assert!(page.contains("Content-Security-Policy: default-src 'none'"), "{page}");
    // A page of another port has the cookie, too, but not our origin.
    let start = "POST /api/start?study=quickstart";
    for origin in ["http://127.0.0.1:1", "null", "http://a.example"] {
        assert_eq!(status(start, &[host, own, ("Origin", origin)]), "403", "{origin}");
    }
    assert_eq!(status(start, &[host, own]), "403");
    let origin = format!("http://{address}");
    let ours = ("Origin", origin.as_str());
    assert_eq!(status("POST /api/start?study=nothing", &[host, own, ours]), "409");
    assert_eq!(status("POST /api/stop?id=1", &[host, own, ours]), "409");
    for path in ["/run/../study.toml", "/run/%2e%2e/x.toml", "/run/a/b/c", "/api/events/..", "/x"] {
        assert_eq!(status(&format!("GET {path}"), &[host, own]), "404", "{path}");
    }
    assert_eq!(status("DELETE /", &[host, own]), "405");
}

#[test]
fn other_machines_are_not_served() {
    let place = place();
    refused(place.path(), &["serve", "--at", "0.0.0.0:0"], "is not a loopback address");
}

/// Waits until the page says so.
#[track_caller]
fn until(tab: &mut Tab<'_>, expression: &str) {
    let start = Instant::now();
    while !tab.holds(expression) {
        let page = tab.text("document.body.innerText");
        assert!(start.elapsed() < Duration::from_mins(3), "never {expression}:\n{page}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The states of the runs, the newest first.
const STATES: &str = "[...document.querySelectorAll('#rows td[data-head=State]')]\
                      .map((cell) => cell.textContent).join()";

#[test]
fn studies_are_started_watched_stopped_and_compared_in_a_browser() {
    let mut browser = match Browser::launch() {
        Ok(browser) => browser,
        Err(why) => return println!("skipped: {why}"),
    };
    let place = place();
    fs::write(place.path().join("mini.toml"), STUDY).unwrap();
    let served = Served::start(place.path());
    let mut tab = browser.tab(1200);
    tab.visit(&served.url);
    until(&mut tab, "document.querySelector('#none').innerText.includes('no run yet')");
    assert_eq!(tab.text("location.search"), "", "the key leaves the address bar");

    // One to its end, watched.
    tab.eval("document.querySelector('#study').value = 'mini.toml'; 0");
    tab.click("#start button");
    until(&mut tab, &format!("{STATES} == 'running'"));
    until(&mut tab, "document.querySelector('#live-title').innerText == 'mini-001'");
    until(&mut tab, "document.querySelectorAll('#charts svg').length > 0");
    assert!(tab.holds("document.querySelector('#done').value > 0"));
    tab.screenshot("runs-live");
    until(&mut tab, &format!("{STATES} == 'complete'"));
    until(&mut tab, "document.querySelector('#jobs').innerText.includes('is complete')");

    // Another, stopped: it keeps what it has, and goes on when it is started again.
    tab.click("#start button");
    until(&mut tab, &format!("{STATES} == 'running,complete'"));
    tab.click("#jobs button");
    until(&mut tab, &format!("{STATES} == 'stopped,complete'"));
    until(&mut tab, "document.querySelector('#jobs').innerText.includes('was stopped')");
    tab.click("#start button");
    until(&mut tab, &format!("{STATES} == 'complete,complete'"));

    // Both compared.
    assert!(tab.holds("document.querySelector('#compare').disabled"));
    for row in ["#rows tr:nth-child(1) input", "#rows tr:nth-child(2) input"] {
        tab.click(row);
    }
    tab.click("#compare");
    until(&mut tab, "document.querySelector('#verdict').innerText.includes('egression')");
    assert_eq!(
        tab.text("document.querySelector('#compared-title').innerText"),
        "mini-001 and mini-002"
    );
    assert!(tab.holds("document.querySelectorAll('#figures tr').length > 3"));

    // Filtered, from the keyboard.
    tab.eval("document.activeElement.blur(); 0");
    tab.key("/");
    assert_eq!(tab.text("document.activeElement.id"), "filter");
    tab.call("Input.insertText", &serde_json::json!({ "text": "mini-002 complete" }));
    until(&mut tab, "document.querySelector('#count').innerText == '1 of 2'");

    // On a phone nothing is cut off.
    tab.width(390);
    tab.settle();
    assert!(tab.holds("document.documentElement.scrollWidth <= 390"), "it scrolls sideways");
    tab.screenshot("runs-phone");
    assert_eq!(tab.complaints(), "");
    let (address, _) = served.parts();
    let own = format!("http://{address}/");
    for request in tab.requests() {
        let url = request.trim_matches('"');
        assert!(url.starts_with(&own) || url.starts_with("data:"), "{url}");
    }

    // The report is served whole, with its simulator.
    tab.width(1200);
    tab.visit(&format!("http://{address}/run/mini-001/report.html"));
    assert!(tab.text("document.title").contains("A small one"));
    assert_eq!(tab.text("self.origin"), "null", "what it holds may not act for the user");
    assert_eq!(tab.complaints(), "");
}
