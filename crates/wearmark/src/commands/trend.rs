//! `wearmark trend`: when did it change?

use formats::Stop;
use study::checks::trend;
use study::run_dir::write_atomically;

use super::{Context, Outcome, output};
use crate::cli::Trend;
use crate::view::CANCELLED;

/// Runs `wearmark trend`.
pub fn run(arguments: &Trend, context: &Context) -> anyhow::Result<Outcome> {
    let found = trend(&arguments.directory, Stop::on(&CANCELLED))?;
    if let Some(path) = &arguments.html {
        let title = format!("Trend of {}", arguments.directory.display());
        write_atomically(path, report::html(&found.page(&title)).as_bytes())?;
    }
    if context.json {
        output::json(&found)?;
    } else {
        let rows = found.rows();
        if rows.len() > 1 {
            output::print(&output::table(&rows))?;
        }
        output::print(&format!("{}\n", found.headline()))?;
    }
    let worse = found.lines.iter().any(study::checks::Line::got_worse);
    Ok(if worse { Outcome::Finding } else { Outcome::Fine })
}
