//! The HTML page in a real browser: opens quietly, shows every figure, answers mouse and keyboard,
//! is legible in both themes and on paper, and survives hostile texts.
//!
//! Skipped with a reason where there is no Chromium. With `WEARMARK_PICTURES=1` pictures are kept
//! in `target/tmp/report`; they are for people, not compared, since fonts differ between machines.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use report::{
    Axis, BarSeries, Column, Figure, FigureKind, Grid, GridLayer, Item, Page, Section, Series,
    Style, Table,
};

use crate::browser::{Browser, Tab};
use crate::sample;

const WIDE: u32 = 1280;
const NARROW: u32 = 360;
/// WCAG 2.1, 1.4.3: text against its background.
const CONTRAST_MIN: f64 = 4.5;

type Check = fn(&mut Tab<'_>, &Path);

const CHECKS: &[(&str, Check)] = &[
    ("opens quietly with one request", opens_quietly),
    ("every figure has ink", every_figure_has_ink),
    ("hover shows the values of all series", hover_shows_values),
    ("a legend entry hides and shows its series", legend_toggles),
    ("the keyboard reaches and reads every figure", keyboard_reads),
    ("drag zooms, double click and Escape reset", drag_zooms),
    ("data tables open", data_tables_open),
    ("both themes are legible, the choice is kept", themes_are_legible),
    ("print shows all sections in light colours", print_is_complete),
    ("the page is useful without script", useful_without_script),
    ("a narrow window needs no sideways scrolling", narrow_fits),
    ("everything operable has a name", operable_things_are_named),
    ("hostile texts stay texts", hostile_texts_stay_texts),
    ("odd data are drawn without complaint", odd_data_are_drawn),
];

#[test]
fn page_in_a_real_browser() {
    let mut browser = match Browser::launch() {
        Ok(browser) => browser,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), &sample::page());
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let started = std::time::Instant::now();
        let mut tab = browser.tab(WIDE);
        tab.media("screen", "light");
        tab.open(&file);
        if catch_unwind(AssertUnwindSafe(|| check(&mut tab, &file))).is_err() {
            failed.push(*name);
        }
        tab.close();
        println!("{:5} ms  {name}", started.elapsed().as_millis());
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
}

/// Writes a page beside others and returns its path.
fn write(folder: &Path, page: &Page) -> PathBuf {
    let file = folder.join("page.html");
    std::fs::write(&file, report::html(page)).expect("the page is written");
    file
}

fn figures(page: &Page) -> Vec<&Figure> {
    fn figure(item: &Item) -> Option<&Figure> {
        match item {
            Item::Figure(figure) => Some(figure),
            Item::Table(_) => None,
        }
    }
    page.sections.iter().flat_map(|section| &section.items).filter_map(figure).collect()
}

fn series_names(figure: &Figure) -> Vec<&str> {
    match &figure.kind {
        FigureKind::Lines(series) => series.iter().map(|one| one.name.as_str()).collect(),
        FigureKind::Bars { series, .. } => series.iter().map(|one| one.name.as_str()).collect(),
        FigureKind::Grid(grid) => grid.layers.iter().map(|one| one.name.as_str()).collect(),
    }
}

fn opens_quietly(tab: &mut Tab<'_>, file: &Path) {
    assert_eq!(tab.complaints(), "");
    assert_eq!(tab.requests(), [format!("\"file://{}\"", file.display())]);
    let drawn = tab.eval("document.querySelectorAll('.chart-frame > svg').length");
    assert!(drawn.as_u64() >= Some(figures(&sample::page()).len() as u64), "{drawn}");
    tab.screenshot("light-wide");
}

/// Per figure and series: how many shapes, and the size of the box around them.
const INK: &str = "[...document.querySelectorAll('.plot')].map(plot => \
    [...plot.querySelectorAll('.series')].map(series => { \
        const boxes = [...series.querySelectorAll('.curve, .mark, .bar')].map(e => e.getBBox()); \
        const reach = boxes.reduce((sum, b) => sum + b.width + b.height, 0); \
        const shape = series.querySelector('.curve, .mark, .bar'); \
        const style = shape ? getComputedStyle(shape) : null; \
        const paint = style && (style.fill === 'none' ? style.stroke : style.fill); \
        return {name: series.dataset.series, reach, paint}; }))";

fn every_figure_has_ink(tab: &mut Tab<'_>, _: &Path) {
    let ink = tab.eval(INK);
    let page = sample::page();
    for (index, figure) in figures(&page).into_iter().enumerate() {
        let names = series_names(figure);
        assert_eq!(ink[index].as_array().map(Vec::len), Some(names.len()), "{}", figure.title);
        for (at, name) in names.into_iter().enumerate() {
            let series = &ink[index][at];
            assert_eq!(series["name"], name);
            assert!(series["reach"].as_f64() > Some(20.0), "{}: {series}", figure.title);
            let paint = series["paint"].as_str().unwrap_or("none");
            assert!(paint.starts_with("rgb(") && paint != "rgb(255, 255, 255)", "{series}");
        }
    }
}

/// The selector of the chart of a figure with this id.
fn chart(id: &str) -> String {
    format!("#figure-{id} .chart-frame")
}

fn tip(tab: &mut Tab<'_>, id: &str) -> String {
    tab.text(&format!(
        "(() => {{ const t = document.querySelector('#figure-{id} .tip'); \
         return t.checkVisibility() ? t.innerText : ''; }})()"
    ))
}

fn hover_shows_values(tab: &mut Tab<'_>, _: &Path) {
    for figure in figures(&sample::page()) {
        assert_eq!(tip(tab, &figure.id), "", "{} shows a value before any hover", figure.title);
        tab.hover(&chart(&figure.id), 0.6, 0.5);
        let shown = tip(tab, &figure.id);
        for name in series_names(figure) {
            assert!(shown.contains(name), "{}: {name} in {shown:?}", figure.title);
        }
        let numbers = shown.chars().filter(char::is_ascii_digit).count();
        assert!(numbers >= series_names(figure).len(), "{}: {shown:?}", figure.title);
        tab.hover(&chart(&figure.id), 0.9, 0.5);
        assert_ne!(tip(tab, &figure.id), shown, "{}: elsewhere, other values", figure.title);
    }
    let bars = chart("tpm");
    tab.hover(&bars, 0.2, 0.5);
    assert!(tip(tab, "tpm").contains("1,240 tx/min (1,166 tx/min to 1,302 tx/min)"));
    tab.hover("h1", 0.5, 0.5);
    assert_eq!(tip(tab, "tpm"), "", "the read-out leaves with the mouse");
}

fn legend_toggles(tab: &mut Tab<'_>, _: &Path) {
    let key = "#figure-throughput .key:nth-child(2)";
    let names = "[...document.querySelectorAll('#figure-throughput .series')]\
                 .map(e => e.dataset.series).join()";
    let pressed = format!("document.querySelector('{key}').getAttribute('aria-pressed')");
    let all = tab.text(names);
    assert_eq!(all, "sequential read,random read,sequential write,random write");
    assert_eq!(tab.text(&pressed), "true");
    tab.click(key);
    assert_eq!(tab.text(names), "sequential read,sequential write,random write");
    assert_eq!(tab.text(&pressed), "false");
    tab.hover(&chart("throughput"), 0.6, 0.5);
    assert!(!tip(tab, "throughput").contains("random read"));
    tab.click(key);
    assert_eq!(tab.text(names), all);
}

fn keyboard_reads(tab: &mut Tab<'_>, _: &Path) {
    let focused =
        "document.activeElement.closest('figure')?.id + ' ' + document.activeElement.className";
    let live = "document.activeElement.closest('figure').querySelector('[aria-live]').textContent";
    let mut reached = Vec::new();
    for _ in 0..200 {
        tab.key("Tab");
        let place = tab.text(focused);
        let Some(id) = place.strip_suffix(" chart-frame") else { continue };
        let id = id.trim_start_matches("figure-").to_owned();
        if reached.contains(&id) {
            break;
        }
        let forth = if tab.holds(
            "document.activeElement.querySelector('.category[text-anchor=end], \
            text.category:not(:has(tspan))') !== null",
        ) {
            "ArrowDown"
        } else {
            "ArrowRight"
        };
        tab.key(forth);
        let first = tab.text(live);
        tab.key(forth);
        let second = tab.text(live);
        assert!(!first.is_empty() && second != first, "{id}: {first:?} then {second:?}");
        tab.key("End");
        let last = tab.text(live);
        assert!(last != second, "{id}: {last:?}");
        tab.key("Home");
        assert_eq!(tab.text(live), first, "{id}");
        tab.key("Escape");
        assert_eq!(tab.text(live), "", "{id}");
        reached.push(id);
    }
    let page = sample::page();
    let expected: Vec<_> = figures(&page).into_iter().map(|figure| figure.id.clone()).collect();
    assert_eq!(reached, expected, "Tab order");
    keyboard_walks_one_series(tab);
}

fn keyboard_walks_one_series(tab: &mut Tab<'_>) {
    let live = "document.querySelector('#figure-throughput [aria-live]').textContent";
    tab.eval("document.querySelector('#figure-throughput .chart-frame').focus()");
    tab.key("ArrowRight");
    assert!(tab.text(live).starts_with("4 KiB. sequential read: 54.2 MB/s; random read: "));
    tab.key("ArrowDown");
    tab.key("ArrowDown");
    assert_eq!(tab.text(live), "random read only. 4 KiB. random read: 40.9 MB/s");
    let ticks = "document.querySelector('#figure-throughput .chart-frame > svg').textContent";
    let before = tab.text(ticks);
    tab.key("+");
    assert_ne!(tab.text(ticks), before, "plus zooms");
    tab.key("Escape");
    let figure = "#figure-throughput .key";
    tab.eval(&format!("document.querySelector('{figure}').focus()"));
    tab.key("Enter");
    assert!(tab.holds(&format!(
        "document.querySelector('{figure}').getAttribute('aria-pressed') === 'false'"
    )));
}

fn drag_zooms(tab: &mut Tab<'_>, _: &Path) {
    let frame = chart("cdf");
    let ticks =
        "[...document.querySelectorAll('#figure-cdf .tick')].map(e => e.textContent).join()";
    let reset = "document.querySelector('#figure-cdf .reset').checkVisibility()";
    let whole = tab.text(ticks);
    let drag = |tab: &mut Tab<'_>, height: f64| {
        let (from, to) = (tab.point_in(&frame, 0.4, 0.4), tab.point_in(&frame, 0.6, height));
        tab.mouse("mouseMoved", from, 0);
        tab.mouse("mousePressed", from, 1);
        tab.mouse("mouseMoved", (f64::midpoint(from.0, to.0), from.1), 1);
        tab.mouse("mouseMoved", to, 1);
        tab.mouse("mouseReleased", to, 1);
    };
    assert!(!tab.holds(reset));
    drag(tab, 0.41);
    assert_ne!(tab.text(ticks), whole, "a drag zooms");
    assert!(tab.holds(reset));
    let point = tab.point_in(&frame, 0.5, 0.5);
    for clicks in [1, 2] {
        tab.mouse("mousePressed", point, clicks);
        tab.mouse("mouseReleased", point, clicks);
    }
    assert_eq!(tab.text(ticks), whole, "a double click resets");
    drag(tab, 0.7);
    let zoomed = tab.text(ticks);
    assert_ne!(zoomed, whole, "a tall drag zooms both axes");
    tab.screenshot("zoomed");
    tab.eval(&format!("document.querySelector('{frame}').focus()"));
    tab.key("Escape");
    assert_eq!(tab.text(ticks), whole, "Escape resets");
    drag(tab, 0.41);
    tab.click("#figure-cdf .reset");
    assert_eq!(tab.text(ticks), whole, "the button resets");
    assert_eq!(tab.complaints(), "");
}

fn data_tables_open(tab: &mut Tab<'_>, _: &Path) {
    let cell = "document.querySelector('#figure-throughput td').checkVisibility()";
    assert!(!tab.holds(cell));
    tab.click("#figure-throughput summary");
    assert!(tab.holds(cell));
    let rows = tab.eval("document.querySelectorAll('#figure-throughput tbody tr').length");
    assert_eq!(rows, 9, "one row per request size");
    let row = tab.text("document.querySelector('#figure-throughput tbody tr').innerText");
    assert!(row.contains("4 KiB") && row.contains("54.2 MB/s"), "{row}");
}

/// Every visible text whose contrast against what is behind it is below the minimum.
const FAINT: &str = include_str!("contrast.js");

fn assert_legible(tab: &mut Tab<'_>, what: &str) {
    let found = tab.eval(&format!("({})({CONTRAST_MIN})", FAINT.trim().trim_end_matches(';')));
    assert!(found["checked"].as_u64() > Some(100), "{what}: {found}");
    assert_eq!(found["faint"].as_array().map(Vec::len), Some(0), "{what}: {found:#}");
}

fn themes_are_legible(tab: &mut Tab<'_>, _: &Path) {
    let paper = "getComputedStyle(document.body).backgroundColor";
    let pressed = "document.getElementById('theme').getAttribute('aria-pressed')";
    let light = tab.text(paper);
    tab.hover(&chart("throughput"), 0.5, 0.5);
    assert_legible(tab, "light");
    tab.media("screen", "dark");
    let dark = tab.text(paper);
    assert_ne!(dark, light, "the system's choice is followed");
    // The page hears of it by an event, which a busy browser delivers late.
    let heard = format!(
        "new Promise(r => {{ const ask = () => ({pressed} === 'true' ? r(1) : setTimeout(ask, \
         10)); ask(); setTimeout(() => r(0), 5000); }})"
    );
    assert_eq!(tab.eval(&heard), 1, "the button follows the system");
    assert_legible(tab, "dark by the system");
    tab.screenshot("dark-wide");
    tab.click("#theme");
    assert_eq!(tab.text(paper), light, "the button overrules the system");
    assert_eq!(tab.text(pressed), "false");
    tab.reload();
    assert_eq!(tab.text(paper), light, "the choice is kept for the visit");
    tab.media("screen", "light");
    tab.click("#theme");
    assert_eq!(tab.text(paper), dark);
    tab.click("#figure-cdf summary");
    assert_legible(tab, "dark by the button");
}

fn print_is_complete(tab: &mut Tab<'_>, _: &Path) {
    tab.media("screen", "dark");
    tab.click("#theme");
    tab.click("#theme");
    tab.media("print", "dark");
    tab.width(720);
    let hidden = tab.text(
        "[...document.querySelectorAll('.section, #verdict, #warnings, figure, .chart-frame > \
         svg')].filter(e => !e.checkVisibility() || e.getBoundingClientRect().height < 20)\
         .map(e => e.id || e.getAttribute('class')).join()",
    );
    assert_eq!(hidden, "");
    assert_eq!(tab.text("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
    assert!(!tab.holds("document.querySelector('nav').checkVisibility()"));
    assert_legible(tab, "print");
    tab.screenshot("print");
    tab.media("", "dark");
    let pdf = tab.pdf("print");
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{} bytes", pdf.len());
}

fn useful_without_script(tab: &mut Tab<'_>, _: &Path) {
    tab.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({ "value": true }));
    tab.reload();
    assert_eq!(tab.eval("document.querySelectorAll('.chart-frame').length"), 0);
    let hidden = tab.eval(
        "[...document.querySelectorAll('figure')]\
         .filter(e => !e.querySelector('td')?.checkVisibility()).map(e => e.id).join()",
    );
    assert_eq!(hidden, "", "every figure shows its data");
    assert_eq!(tab.eval("document.querySelector('#theme').checkVisibility()"), false);
    tab.screenshot("without-script");
    tab.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({ "value": false }));
}

fn narrow_fits(tab: &mut Tab<'_>, _: &Path) {
    tab.width(NARROW);
    let overflow = tab.eval("document.documentElement.scrollWidth - innerWidth");
    assert!(overflow.as_f64() <= Some(0.0), "{overflow} pixels too wide");
    let outside = tab.text(
        "[...document.querySelectorAll('.chart-frame > svg text')].filter(e => { \
         const b = e.getBoundingClientRect(); return b.left < 0 || b.right > innerWidth; })\
         .map(e => e.textContent).join()",
    );
    assert_eq!(outside, "", "labels outside the window");
    tab.screenshot("light-narrow");
    every_figure_has_ink(tab, Path::new(""));
}

fn operable_things_are_named(tab: &mut Tab<'_>, _: &Path) {
    let tree = tab.call("Accessibility.getFullAXTree", &serde_json::json!({}));
    let nodes = tree["nodes"].as_array().expect("a tree has nodes");
    let mut named = 0;
    for node in nodes.iter().filter(|node| node["ignored"] != true) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        if ["button", "link", "application", "navigation", "region"].contains(&role) {
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.trim().is_empty(), "{role} without a name: {node:#}");
            named += 1;
        }
    }
    assert!(named > 30, "{named} things found");
}

const HOSTILE: &[&str] = &[
    "</script><script>window.pwned = 1</script>",
    "\"><img src=x onerror=\"window.pwned = 1\">",
    "' onmouseover='window.pwned = 1",
    "<!--<script>",
    "{{ 7 * 7 }}{% raw %}",
    "]]>&lt;b&gt;&amp;\u{2028}\u{0}\u{1b}[31m\u{202e}",
    "</style><style>* { display: none }</style>",
    "javascript:window.pwned=1",
    "__proto__",
    "constructor",
    "",
];

/// A page whose every text is the given one.
pub fn hostile(text: &str) -> Page {
    let axis = || Axis::linear(text, text);
    let points = vec![(1.0, 2.0), (2.0, 3.0)];
    let mut figure = Figure::lines(
        text,
        text,
        axis(),
        axis(),
        vec![
            Series::new(text, Style::Line, points.clone()),
            Series::new(text, Style::Step, points),
        ],
    );
    figure.caption = text.into();
    figure.source = text.into();
    let bars = BarSeries::new(text, vec![1.0]).interval(vec![(0.5, 2.0)]);
    let table = Table::new(text, text, vec![Column::number(text, text)]).row([text]).caption(text);
    let warning = events::Warning::new(text, text, text).with_hint(text);
    Page::new(text, text).fact(text, text, text).warning(warning).provenance(text, text).section(
        Section::new(text, text)
            .paragraph(text)
            .figure(figure)
            .figure(Figure::bars(text, text, vec![text.into()], axis(), vec![bars.clone()]))
            .figure(Figure::stacked_bars(text, text, vec![text.into()], axis(), vec![bars]))
            .table(table),
    )
}

fn hostile_texts_stay_texts(tab: &mut Tab<'_>, _: &Path) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for text in HOSTILE {
        let file = write(folder.path(), &hostile(text));
        tab.open(&file);
        assert_eq!(tab.complaints(), "", "{text}");
        assert_eq!(tab.requests().len(), 1, "{text}");
        assert!(tab.holds("window.pwned === undefined"), "{text}");
        assert!(tab.holds("document.querySelectorAll('main img, main script').length === 0"));
        assert!(tab.holds("document.querySelectorAll('.chart-frame > svg .series').length >= 3"));
        for selector in ["h1", ".fact dt", "h3", ".prose", ".item.table td", ".key span"] {
            let shown = tab.text(&format!("document.querySelector('{selector}')?.textContent"));
            let expected =
                if text.is_empty() && selector == ".key span" { "(unnamed)" } else { text };
            // HTML has no character 0: the parser drops it or shows a replacement.
            let without_zero = |text: &str| text.replace(['\u{0}', '\u{fffd}'], "");
            assert_eq!(without_zero(shown.trim()), without_zero(expected.trim()), "{selector}");
        }
    }
}

fn odd_data_are_drawn(tab: &mut Tab<'_>, _: &Path) {
    let values = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300, 5.0];
    let points: Vec<_> = values.iter().flat_map(|&x| values.map(|y| (x, y))).collect();
    let mut section = Section::new("odd", "Odd");
    let all = [Style::Points, Style::Line, Style::LinePoints, Style::Dashed, Style::Step];
    for (number, points) in
        [points, vec![], vec![(3.0, 3.0)], vec![(f64::NAN, 1.0)]].iter().enumerate()
    {
        for axis in [Axis::linear, Axis::log2, Axis::log10] {
            for unit in ["", "ns", "bytes"] {
                let series =
                    all.map(|style| Series::new(format!("{style:?}"), style, points.clone()));
                let id = format!("lines-{number}");
                let axes = (axis("x", unit), axis("y", unit));
                section = section.figure(Figure::lines(id, "Lines", axes.0, axes.1, series.into()));
            }
        }
    }
    let many = (0..40).map(|index| format!("category {index}")).collect();
    let ragged = vec![
        BarSeries::new("a", vec![1.0, f64::NAN, -3.0]).interval(vec![(f64::NAN, 1.0)]),
        BarSeries::new("b", vec![]),
    ];
    for (number, categories) in [many, vec!["one".to_owned()], vec![]].into_iter().enumerate() {
        let (id, log) = (format!("bars-{number}"), Axis::log10("y", "s"));
        let bars = Figure::bars(id.clone(), "Bars", categories.clone(), log, ragged.clone());
        let linear = Axis::linear("y", "%");
        let stacked = Figure::stacked_bars(id, "Stacked", categories, linear, ragged.clone());
        section = section.figure(bars).figure(stacked);
    }
    for (columns, x, cells) in [
        (0, (0.0, 1.0), vec![]),
        (3, (f64::NAN, 0.0), vec![u64::MAX, 1]),
        (400, (-1.0, 1e300), vec![1]),
    ] {
        let layers = vec![GridLayer { name: "layer".to_owned(), cells }];
        let grid = Grid { columns, rows: columns.min(2), x, y: (0.0, 1.0), layers };
        let axes = (Axis::linear("x", "s"), Axis::linear("y", "bytes"));
        section = section.figure(Figure::grid("map", "Map", axes.0, axes.1, grid));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), &Page::new("Odd", "").section(section));
    tab.open(&file);
    assert_eq!(tab.complaints(), "");
    let broken = "[...document.querySelectorAll('.plot *')].filter(e => [...e.attributes]\
                  .some(a => /NaN|Infinity|undefined/.test(a.value))).length";
    assert_eq!(tab.eval(broken), 0);
    for key in ["ArrowRight", "ArrowRight", "ArrowDown", "End", "+", "+", "-", "Escape"] {
        for index in [0, 9, 18, 35, 36, 41, 42, 43, 44] {
            tab.eval(&format!("document.querySelectorAll('.chart-frame')[{index}].focus()"));
            tab.key(key);
        }
    }
    assert_eq!(tab.complaints(), "");
    assert_eq!(tab.eval(broken), 0);
}
