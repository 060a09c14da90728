//! `cargo xtask bars [AREA[/PART]...]`: the figures that we promise, measured where you stand.
//!
//! Every run begins with a calibration of the machine ([`calibration`]), and rates of the processor
//! are also given per thousand of its integer steps, so that a slow host can be told from a slow
//! program. Where a rival is named it runs in the same sitting, in both orders and at the same
//! priority, and medians are compared. Nothing here fails and CI does not run it: what came of an
//! area replaces its section in `docs/bars.md`.

mod accounts;
mod advice;
mod calibration;
mod emulation;
mod host;
mod main_job;
mod models;
mod oltp;
mod page;
mod prediction;
mod probe;
mod replay;
mod sim;
mod suite;
pub(crate) mod tools;
mod torture;
mod traces;

use anyhow::bail;

use calibration::Calibration;
use tools::median;

/// A group of promises and how they are measured.
struct Area {
    name: &'static str,
    about: &'static str,
    measure: fn(&mut Sitting) -> anyhow::Result<()>,
}

/// What the figure should be.
#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
    /// It stands beside another figure and is not promised itself.
    Beside,
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::Within(low, high) => format!("{low} to {high}"),
            Self::Beside => "-".to_owned(),
        }
    }

    fn stands(self, figure: f64) -> &'static str {
        let met = match self {
            Self::AtMost(bound) => figure <= bound,
            Self::AtLeast(bound) => figure >= bound,
            Self::Within(low, high) => (low..=high).contains(&figure),
            Self::Beside => return "",
        };
        if met { "met" } else { "not met" }
    }
}

/// One measured figure.
struct Line {
    what: String,
    figure: f64,
    unit: &'static str,
    target: Target,
    /// The figure times an integer step, where it is a rate of the processor.
    per_steps: Option<f64>,
}

/// One run over an area: the machine's speed and what was measured so far.
struct Sitting {
    calibration: Calibration,
    /// Measures only what contains this, where an area is long.
    part: Option<String>,
    lines: Vec<Line>,
}

impl Sitting {
    /// Whether a part of a long area was asked for.
    fn wants(&self, name: &str) -> bool {
        self.part.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }

    fn add(&mut self, what: impl Into<String>, figure: f64, unit: &'static str, target: Target) {
        self.push(Line { what: what.into(), figure, unit, target, per_steps: None });
    }

    /// A rate that the processor bounds, in millions a second.
    fn add_rate(
        &mut self,
        what: impl Into<String>,
        millions: f64,
        unit: &'static str,
        target: Target,
    ) {
        let per_steps = Some(millions * self.calibration.step_ns);
        self.push(Line { what: what.into(), figure: millions, unit, target, per_steps });
    }

    fn push(&mut self, line: Line) {
        println!(
            "{:<62} {:>11} {:<8} {:>9} {:<16} {}",
            line.what,
            page::figure(line.figure),
            line.unit,
            line.per_steps.map(page::figure).unwrap_or_default(),
            line.target.text(),
            line.target.stands(line.figure)
        );
        self.lines.push(line);
    }
}

const AREAS: &[Area] = &[
    Area { name: "probe", about: "measuring a device, beside fio", measure: probe::measure },
    Area { name: "replay", about: "a trace at its times", measure: replay::measure },
    Area { name: "sim", about: "simulation, from the command line", measure: sim::measure },
    Area { name: "models", about: "device models, one core", measure: models::measure },
    Area { name: "traces", about: "reading and writing traces", measure: traces::measure },
    Area { name: "host", about: "the host, modelled and real", measure: host::measure },
    Area { name: "oltp", about: "transactions on SQLite, watched", measure: oltp::measure },
    Area { name: "accounts", about: "accounts of captured servers", measure: accounts::measure },
    Area { name: "torture", about: "defects found, losses survived", measure: torture::measure },
    Area { name: "emulation", about: "models served in real time", measure: emulation::measure },
    Area { name: "prediction", about: "predicted and really run", measure: prediction::measure },
    Area { name: "advice", about: "advice and brute force", measure: advice::measure },
    Area { name: "papers", about: "five papers, figure by figure", measure: advice::papers },
    Area { name: "main-job", about: "the first study", measure: main_job::measure },
    Area { name: "build", about: "building the program", measure: suite::build },
    Area { name: "tests", about: "the test command", measure: suite::tests },
];

/// Measures the named areas, or all.
pub fn measure(names: &[&str]) -> anyhow::Result<()> {
    let mut chosen = Vec::new();
    for name in names {
        let (area, part) = name.split_once('/').unwrap_or((name, ""));
        let Some(found) = AREAS.iter().find(|found| found.name == area) else {
            let names: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
            bail!("no area '{area}'; there are {}", names.join(", "));
        };
        chosen.push((found, (!part.is_empty()).then(|| part.to_owned())));
    }
    if names.is_empty() {
        chosen.extend(AREAS.iter().map(|area| (area, None)));
    }
    let mut failed = Vec::new();
    for (area, part) in chosen {
        println!("# {}: {}", area.name, area.about);
        let calibration = Calibration::measure()?;
        println!("{}", calibration.sentence());
        let is_whole = part.is_none();
        let mut sitting = Sitting { calibration, part, lines: Vec::new() };
        if let Err(error) = (area.measure)(&mut sitting) {
            println!("could not be measured to its end: {error:#}");
            failed.push(area.name);
        } else if is_whole {
            page::replace(area, &sitting)?;
        }
    }
    if !failed.is_empty() {
        bail!("not measured to the end: {}", failed.join(", "));
    }
    Ok(())
}
