//! A page with the simulator in a real browser: the module answers as this build does, sliders and
//! keys are followed, a phone shows it, and nothing is asked of any network.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use report::{Page, Simulator};
use serde_json::{Value, json};
use trace::Trace;

use crate::browser::{Browser, Tab};
use crate::load::database;

/// Bytes that a page with a simulator may have.
const PAGE_BYTES: usize = 3_000_000;
/// The bar: so many requests in so long, on a machine that does nothing else.
const BAR_REQUESTS: u64 = 1_000_000;

fn page(trace: &Trace, devices: &[&str]) -> Page {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&whatif::pack(trace)).expect("memory takes all");
    let text = |name: &&str| {
        let text = profile::find_shipped(name).expect("it ships");
        ((*name).to_owned(), text.to_owned())
    };
    let mut page = Page::new("A load", "with a simulator");
    page.simulator = Some(Simulator {
        module: whatif::module().to_vec(),
        load: encoder.finish().expect("memory takes all"),
        requests: trace.count() as u64,
        about: "A load of a test.".to_owned(),
        devices: devices.iter().map(text).collect(),
        seed: 1,
    });
    page
}

fn write(folder: &Path, page: &Page) -> PathBuf {
    let file = folder.join("page.html");
    let html = report::html(page);
    assert!(html.len() <= PAGE_BYTES, "{} bytes", html.len());
    std::fs::write(&file, html).expect("the page is written");
    file
}

fn browser() -> Option<Browser> {
    match Browser::launch() {
        Ok(browser) => Some(browser),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

const STATUS: &str = "document.getElementById('what-if-status').textContent";

/// Waits for a sentence in the status line.
fn told(tab: &mut Tab<'_>, part: &str) -> String {
    let limit = Instant::now() + Duration::from_mins(1);
    loop {
        let status = tab.text(STATUS);
        if status.contains(part) {
            return status;
        }
        assert!(Instant::now() < limit, "waits for {part:?}, the page says {status:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Instantiates the page's module beside the page's own worker.
const DIRECT: &str = "(async () => { \
    const bytes = id => Uint8Array.from(atob(document.getElementById(id).textContent), \
        c => c.charCodeAt(0)); \
    const plain = id => new Response(new Blob([bytes(id)]).stream() \
        .pipeThrough(new DecompressionStream('gzip'))).arrayBuffer(); \
    const {instance} = await WebAssembly.instantiate(await plain('what-if-module')); \
    const wasm = instance.exports; \
    const put = data => { const at = wasm.reserve(data.length); \
        new Uint8Array(wasm.memory.buffer, at, data.length).set(data); }; \
    put(new Uint8Array(await plain('what-if-load'))); \
    const loaded = wasm.load(); \
    window.askDirectly = text => { put(new TextEncoder().encode(text)); wasm.ask(); \
        return new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), \
            wasm.length())); }; \
    return loaded; })()";

#[test]
fn the_module_answers_as_this_build_does() {
    let Some(mut browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = database(3_000);
    let file = write(folder.path(), &page(&trace, &["intel-x25-e"]));
    let mut tab = browser.tab(1280);
    tab.open(&file);
    assert_eq!(tab.eval(DIRECT), 3_000);
    let mut asked = 0;
    let mut check = |question: &Value| {
        let text = question.to_string();
        let theirs = tab.text(&format!("askDirectly({})", json!(text)));
        let ours = whatif::answer(&trace, &text);
        assert_eq!(
            theirs, ours,
            "\nthe module is older than the models: `cargo xtask wasm` renews it\n{text:.200}"
        );
        asked += 1;
    };
    check(&json!({"ask": "devices"}));
    for (name, _) in profile::shipped() {
        check(&json!({"ask": "fields", "device": name}));
        check(&json!({"ask": "simulate", "device": name, "rate": 1.5, "seed": 9}));
        check(&json!({"ask": "simulate", "device": name, "cache_mb": 32, "times": 2}));
    }
    check(&json!({"ask": "simulate", "device": "no device"}));
    println!("{asked} questions");
}

#[test]
fn sliders_and_keys_are_followed_and_nothing_is_fetched() {
    let Some(mut browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = database(3_000);
    let file = write(folder.path(), &page(&trace, &["hitachi-15k450", "intel-x25-e"]));
    let mut tab = browser.tab(1280);
    tab.open(&file);
    tab.point_in("#what-if", 0.5, 0.1);
    let first = told(&mut tab, "requests in");
    let cell = |row: usize, column: usize| {
        format!("document.getElementById('what-if-rows').rows[{row}].cells[{column}].textContent")
    };
    assert_eq!(tab.text(&cell(0, 4)), "1", "the same device, nothing changed: {first}");
    assert!(tab.holds("document.querySelectorAll('#what-if-plot .series').length === 2"));

    // Keys alone: to the rate, two steps up are twice the rate.
    tab.eval("document.getElementById('what-if-rate').focus()");
    tab.key("ArrowRight");
    tab.key("ArrowRight");
    let value = "document.getElementById('what-if-rate').getAttribute('aria-valuetext')";
    assert_eq!(tab.text(value), "2 times that of the trace");
    let offered = "[...document.getElementById('what-if-rows').rows].find(row => \
                   row.cells[1].textContent === 'offered per second').cells[4].textContent";
    let limit = Instant::now() + Duration::from_mins(1);
    while tab.text(offered) != "2" {
        assert!(Instant::now() < limit, "{}: {}", tab.text(offered), tab.text(STATUS));
        std::thread::sleep(Duration::from_millis(20));
    }

    // The other device, and a cache that it has not.
    let choose = "(() => { const own = document.getElementById('what-if-device'); \
                  own.value = 'page:intel-x25-e'; \
                  own.dispatchEvent(new Event('input', {bubbles: true})); })()";
    tab.eval(choose);
    told(&mut tab, "on intel-x25-e, ");
    let shipped = "document.querySelectorAll('#what-if-device optgroup')[1].children.length";
    assert_eq!(tab.eval(shipped), profile::shipped().len());

    // What cannot be is said, and the next question is answered.
    let too_much = "(() => { const own = document.getElementById('what-if-device'); \
                    own.append(new Option('broken', 'broken =')); own.value = 'broken ='; \
                    own.dispatchEvent(new Event('input', {bubbles: true})); })()";
    tab.eval(too_much);
    told(&mut tab, "the profile:");
    tab.eval("document.getElementById('what-if-form').reset()");
    told(&mut tab, "on hitachi-15k450, ");
    assert_eq!(tab.text(&cell(0, 4)), "1");

    assert_eq!(tab.complaints(), "");
    let others: Vec<String> = tab.requests().into_iter().skip(1).collect();
    assert!(others.iter().all(|url| url.starts_with("\"blob:")), "{others:?}");
    tab.screenshot("what-if");
    tab.width(360);
    let wide = "document.documentElement.scrollWidth";
    assert_eq!(tab.eval(wide), 360, "a phone needs no sideways scrolling");
    let unnamed = "[...document.querySelectorAll('#what-if-form select, #what-if-form input')] \
                   .filter(own => !own.labels.length).length";
    assert_eq!(tab.eval(unnamed), 0);
    tab.screenshot("what-if-phone");
}

#[test]
fn a_million_requests_are_simulated_while_a_reader_waits() {
    let Some(mut browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = database(100_000);
    let file = write(folder.path(), &page(&trace, &["intel-x25-e"]));
    let mut tab = browser.tab(1280);
    tab.open(&file);
    assert_eq!(tab.eval(DIRECT), 100_000);
    for name in ["intel-x25-e", "intel-x25-e-ftl", "hitachi-15k450", "samsung-pm9a3-ftl"] {
        let times = BAR_REQUESTS / 100_000;
        let text = json!({"ask": "simulate", "device": name, "times": times}).to_string();
        let timed = format!(
            "(() => {{ const began = performance.now(); const found = JSON.parse(askDirectly({})); \
             return [found.requests ?? found.error, performance.now() - began]; }})()",
            json!(text)
        );
        let found = tab.eval(&timed);
        assert_eq!(found[0], BAR_REQUESTS, "{name}");
        println!("{name}: {BAR_REQUESTS} requests in {:.0} ms", found[1].as_f64().unwrap());
    }
}
