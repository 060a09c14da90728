//! Advice checked against brute force, and the papers beside what is simulated.
//!
//! The hundred cases of advice are a test of the crate `study`, whose slow set prints how many
//! hold.

use std::time::Instant;

use anyhow::Context;
use serde_json::Value;

use super::tools::{number, program, timed};
use super::{Sitting, Target};

/// What the test counts, and the least share that is to hold.
const COUNTED: [(&str, f64); 4] =
    [("placements", 0.95), ("purchases", 0.95), ("throughputs", 0.90), ("response times", 0.90)];

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let words = ["test", "--quiet", "-p", "study", "--test", "it", "advice", "--", "--nocapture"];
    // A case that does not hold is a finding, told by the counts.
    let output = std::process::Command::new("cargo")
        .args(words)
        .env("SLOW", "1")
        .current_dir(crate::root())
        .output()
        .context("cargo test")?;
    let text = String::from_utf8(output.stdout)?;
    for (what, least) in COUNTED {
        let (held, all) = counts(&text, what).with_context(|| format!("no count of {what}"))?;
        let name = format!("{what} that hold, of {all:.0}");
        sitting.add(name, held / all, "share", Target::AtLeast(least));
    }
    Ok(())
}

/// `placements: 49 of 50 hold`
fn counts(text: &str, what: &str) -> Option<(f64, f64)> {
    let line = text.lines().find_map(|line| line.split_once(&format!("{what}: ")))?.1;
    let (held, rest) = line.split_once(" of ")?;
    Some((held.parse().ok()?, rest.split_once(' ')?.0.parse().ok()?))
}

/// `wearmark papers`: differences, directions, and how long it takes.
pub fn papers(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, start) = (program()?, Instant::now());
    let (text, _) = timed(&program, &["papers", "--json", "--quiet"])?;
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let found: Value = serde_json::from_str(&text)?;
    let papers = found.as_array().context("a list of papers")?;
    let rows = || papers.iter().flat_map(|paper| paper["rows"].as_array().into_iter().flatten());
    let count = |verdict: &str| rows().filter(|row| row["verdict"] == verdict).count() as f64;
    let compared = rows().filter(|row| row["verdict"] == "compared");
    let differences = compared
        .map(|row| Ok(number(row, &["difference"])?.abs()))
        .collect::<anyhow::Result<Vec<f64>>>()?;
    let large = differences.iter().filter(|difference| **difference > 0.3).count();
    let (hold, fail) = (count("holds"), count("fails"));
    let at_most = Target::AtMost;
    sitting.add("statements that hold", hold / (hold + fail), "share", Target::AtLeast(0.95));
    sitting.add("figures compared", differences.len() as f64, "", Target::Beside);
    let middle = super::tools::median(differences.clone());
    sitting.add("median difference, without sign", middle, "share", at_most(0.15));
    sitting.add("differences above 30 %, each with its reason", large as f64, "", Target::Beside);
    sitting.add("outcomes accounted for by nothing", count("not_run"), "", at_most(0.0));
    sitting.add("time of all papers", minutes, "min", at_most(20.0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_where_a_test_name_stands_before_them() {
        let text = "skipped: nothing\ntest advice::purchases ... purchases: 48 of 50 hold\nok\n";
        assert_eq!(counts(text, "purchases"), Some((48.0, 50.0)));
        assert_eq!(counts(text, "placements"), None);
    }
}
