//! What is checked without a browser: the bytes of the page, the terminal screen, and the page
//! script's pure functions under node.

use std::process::Command;

use proptest::prelude::*;
use report::{Axis, Column, Figure, Page, Section, Series, Style, Table};

use crate::{page::hostile, sample};

const SIZE_MAX: usize = 1_500_000;

#[test]
fn sample_page_is_small_and_always_the_same() {
    let text = report::html(&sample::page());
    assert!(text.len() < 300_000, "{} bytes", text.len());
    assert_eq!(text, report::html(&sample::page()));
}

#[test]
fn a_huge_page_stays_bounded() {
    let wave = |series: i32| {
        let at = |index: i32| {
            let t = f64::from(index) * 1.000_123;
            (t, (t * 0.37 + f64::from(series)).sin() * 123.456_789)
        };
        Series::new(format!("series {series}"), Style::Line, (0..50_000).map(at).collect())
    };
    let mut section = Section::new("huge", "Huge");
    for figure in 0..12 {
        let axes = (Axis::linear("Time", "s"), Axis::linear("Rate", "tx/s"));
        let series = (0..4).map(wave).collect();
        section = section.figure(Figure::lines(figure.to_string(), "Rate", axes.0, axes.1, series));
    }
    let mut table = Table::new("rows", "Rows", vec![Column::number("Value", "us")]);
    for row in 0..20_000 {
        table = table.row([row.to_string()]);
    }
    let text = report::html(&Page::new("Huge", "").section(section.table(table)));
    assert!(text.len() < SIZE_MAX, "{} bytes", text.len());
    assert!(text.contains("The first 1000 of 20000 rows"));
}

#[test]
fn nothing_in_the_page_points_elsewhere() {
    let text = report::html(&sample::page());
    // A namespace is a name, not an address.
    let text = text.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "//cdn", "url(\"", "@import", "src=", "fetch(", "import("] {
        assert!(!text.contains(address), "{address}");
    }
    assert!(text.contains("default-src 'none'"));
}

#[test]
fn terminal_screen() {
    insta::assert_snapshot!(report::terminal(&sample::page(), 90, false), @r"
    Order entry on this disk and four others
    SQLite 3.54 in WAL mode, 4 warehouses, 8 users, 60 s; probed and replayed on /data/target

      Transactions        1,240 tx/min            95% interval 1,180 to 1,300
      New order, p99      18.4 ms                 p50 2.1 ms, p90 7.9 ms
      Limited by          commit flushes          71% of the time at least one fsync is outst…
      Simulation error E  0.082 (0.071 to 0.093)  noise floor A/A 0.061
      Best alternative    x4.2                    DRAM SSD, simulated: 5,210 tx/min
      Endurance           6.3 years               at 11.4 GB a day on 60 TBW

    Transactions per minute per device
      this disk             ███████████▉ 1,240 tx/min
      this disk, simulated  ███████████▌ 1,195 tx/min
      Mtron SLC 32 GB       ███▉ 410 tx/min
      7,200 rpm disk        ▉ 96 tx/min
      DRAM SSD              ██████████████████████████████████████████████████ 5,210 tx/min

    Throughput against request size  Request size 4 KiB to 1 MiB
      sequential read   ▂▂▂▂▂▂▂▂▃▃▃▃▃▄▄▄▄▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇▇▇▇█████████ 54.2 MB/s to 522 MB/s
      random read       ▁▁▂▂▂▂▂▂▂▂▃▃▃▃▃▃▄▄▄▄▅▅▅▅▅▆▆▆▆▆▆▇▇▇▇▇▇▇▇▇▇▇▇█ 40.9 MB/s to 488 MB/s
      sequential write  ▁▁▁▁▂▂▂▂▂▂▂▂▃▃▃▃▃▃▄▄▄▄▄▄▅▅▅▅▅▅▅▆▆▆▆▆▆▆▆▆▆▆▆▆ 34.2 MB/s to 402 MB/s
      random write      ▁▁▁▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▂▃▃▃▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▅▅▅▅▅▅ 15 MB/s to 288 MB/s

    Logical and physical I/O rate per file class
      data logical   ███████████████████▋ 4.1 MB/s
      data physical  █████████████████████████████▊ 6.2 MB/s
      log logical    ███████████████████████████████████████████████ 9.8 MB/s
      log physical   █████████████████████████████████████████████████████████ 11.9 MB/s
      temp logical   █▍ 300 kB/s
      temp physical  █████▎ 1.1 MB/s

    Transactions per second over time  Time 0 s to 59.9 s
      new orders  ▂▅▆▇▆▇▆▇▆▇▆▇▃▆▇▇▇▇▇▆▇▆▇▆▂▆▇▆▇▇▇▇▆▇▆▆▃▇▆▇▆▇▇▇▇▇▇▆ 8.16 tx/s to 23.3 tx/s

    ! Other processes took 18% of the CPU while probing.
      hint: Stop them, or run again with `--settle 60s`.
    ! The replay lasted 9 s, too short for a p99.9.
      hint: Give it at least 60 s of trace.
    ");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = report::terminal(&sample::page(), 80, false);
    let coloured = report::terminal(&sample::page(), 80, true);
    assert!(coloured.contains("\x1b[1mOrder entry on this disk and four others\x1b[0m\n"));
    assert!(coloured.contains("\x1b[1;33m!\x1b[0m Other processes"));
    let mut parts = coloured.split('\x1b');
    let mut stripped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        stripped.push_str(part.split_once('m').expect("a colour ends in m").1);
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&stripped), trimmed(&plain));
    assert!(plain.lines().all(|line| narrow_columns(line) <= 80));
}

#[test]
fn script_functions_under_node() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/scale.test.js");
    match Command::new("node").arg("--test").arg(script).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}");
            assert!(!text.contains("# pass 0"), "{text}");
        }
        Err(error) => println!("skipped: node does not run ({error})"),
    }
}

/// Columns of a line without colour: the texts below are made of narrow characters.
fn narrow_columns(line: &str) -> usize {
    line.chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_safe_everywhere(text in ".{0,40}", width in 0usize..200) {
        let page = hostile(&text);
        let html = report::html(&page);
        prop_assert_eq!(html.matches("<script").count(), 2);
        prop_assert_eq!(html.matches("</script").count(), 2);
        let screen = report::terminal(&page, width, false);
        prop_assert!(screen.lines().count() <= 38);
        prop_assert!(screen.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", screen);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal(text in "[ -~]{0,200}", width in 60usize..=120) {
        let screen = report::terminal(&hostile(&text), width, false);
        for line in screen.lines() {
            prop_assert!(narrow_columns(line) <= width, "{:?}", line);
        }
    }
}
