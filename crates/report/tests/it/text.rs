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
    insta::assert_snapshot!(report::terminal(&sample::page(), 100, false));
}

#[test]
fn terminal_screen_of_80_columns_in_colour() {
    let screen = report::terminal(&sample::page(), 80, true).replace('\x1b', "ESC");
    insta::assert_snapshot!(screen);
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
