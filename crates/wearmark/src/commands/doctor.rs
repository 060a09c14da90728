//! `wearmark doctor`

use std::path::Path;

use study::doctor::{Check, Verdict, examine};

use super::{Context, Outcome, output};

/// Prints what works and what does not.
pub fn run(directory: &Path, context: &Context) -> anyhow::Result<Outcome> {
    let checks = examine(directory);
    if context.json {
        output::json(&checks)?;
    } else {
        output::print(&text(&checks, output::colour()))?;
    }
    let missing = checks.iter().any(|check| check.verdict == Verdict::Missing);
    Ok(if missing { Outcome::Finding } else { Outcome::Fine })
}

fn text(checks: &[Check], colour: bool) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let (mark, code) = match check.verdict {
            Verdict::Works => ("ok     ", "32"),
            Verdict::Limited => ("limited", "33"),
            Verdict::Missing => ("missing", "31"),
        };
        let mark = if colour { format!("\x1b[{code}m{mark}\x1b[0m") } else { mark.to_owned() };
        text.push_str(&format!("{mark}  {:width$}  {}\n", check.name, check.finding));
        if !check.remedy.is_empty() {
            text.push_str(&format!("{:9}{:width$}  -> {}\n", "", "", check.remedy));
        }
    }
    let worst = checks.iter().map(|check| check.verdict).max_by_key(|verdict| *verdict as u8);
    text.push_str(match worst {
        Some(Verdict::Missing) => "\nThe main job cannot run here: see 'missing' above.\n",
        Some(Verdict::Limited) => {
            "\nThe main job runs here; what is limited is said in its report.\n\
             Next: wearmark study run quickstart\n"
        }
        _ => "\nEverything works here. Next: wearmark study run quickstart\n",
    });
    text
}
