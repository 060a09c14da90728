//! `docs/bars.md`: a section per area, each replaced when its area is measured.

use std::collections::BTreeMap;
use std::process::Command;

use super::{AREAS, Area, Sitting};

const HEAD: &str = "\
# Bars

The figures that wearmark promises, as they were last measured. `cargo xtask bars [AREA]` measures
an area anew and replaces its section. Each section begins with the speed of the machine in that
minute: machines of one kind differ by a factor of two from day to day, so a rate says little
without it. The column *per 1000 steps* gives a rate of the processor relative to the integer step
of the calibration.
";

/// Four significant digits.
pub fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    format!("{value:.*}", (3 - digits).clamp(0, 6) as usize)
}

/// Replaces the section of an area.
pub fn replace(area: &Area, sitting: &Sitting) -> anyhow::Result<()> {
    let path = crate::root().join("docs/bars.md");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let mut sections = sections(&old);
    sections.insert(area.name.to_owned(), section(area, sitting));
    let mut text = HEAD.to_owned();
    for area in AREAS {
        if let Some(section) = sections.get(area.name) {
            text.push_str(&format!("\n## {}\n\n{}\n", area.name, section.trim()));
        }
    }
    Ok(std::fs::write(path, crate::lines::markdown::wrap(&text))?)
}

/// The bodies of the sections by their titles.
fn sections(text: &str) -> BTreeMap<String, String> {
    text.split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .map(|(title, body)| (title.to_owned(), body.to_owned()))
        .collect()
}

fn section(area: &Area, sitting: &Sitting) -> String {
    let mut text = format!(
        "{}{}; {}.\n{}.\n\n| figure of | figure | unit | per 1000 steps | bar | |\n\
         |---|---|---|---|---|---|\n",
        area.about[..1].to_uppercase(),
        &area.about[1..],
        provenance(),
        sitting.calibration.sentence(),
    );
    for line in &sitting.lines {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            line.what,
            figure(line.figure),
            line.unit,
            line.per_steps.map(figure).unwrap_or_default(),
            line.target.text(),
            line.target.stands(line.figure)
        ));
    }
    text
}

/// Day, commit and processors.
fn provenance() -> String {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(crate::root()).output();
        output.map_or_else(
            |_| "?".to_owned(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!(
        "{} at {}, {processors} processors ({})",
        run("date", &["-u", "+%Y-%m-%d"]),
        run("git", &["rev-parse", "--short", "HEAD"]),
        model.unwrap_or("model unknown").trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_their_titles() {
        let text = "# Bars\n\nhead\n\n## one\n\nfirst\n\n## two\n\n| a |\n";
        let found = sections(text);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(found["one"].trim(), "first");
        assert_eq!(found["two"].trim(), "| a |");
    }

    #[test]
    fn figures_have_four_digits() {
        let cases = [(0.0, "0.000"), (1.0, "1.000"), (0.01234, "0.01234"), (123456.0, "123456")];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }
}
