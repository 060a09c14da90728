//! `wearmark sim`

use report::format;
use serde::Serialize;
use study::scenarios::read_profile;

use super::trace::input::read;
use super::{Context, Outcome, output};
use crate::cli::Sim;

/// One profile's result.
#[derive(Serialize)]
struct Simulated {
    profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_loop: Option<sim::Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_loop: Option<sim::ClosedOutcome>,
}

/// Simulates the trace on every profile.
pub fn run(arguments: &Sim, context: &Context) -> anyhow::Result<Outcome> {
    let trace = read(&arguments.input, context)?.trace;
    let mut results = Vec::new();
    for name in &arguments.profile {
        let mut profile = read_profile(name)?;
        if arguments.no_cache {
            profile = profile.without_cache();
        }
        let mut device = profile.device(arguments.seed);
        let mut result =
            Simulated { profile: profile.name().to_owned(), open_loop: None, closed_loop: None };
        if arguments.closed {
            result.closed_loop = Some(sim::closed_loop(device.as_mut(), &trace)?);
        } else {
            result.open_loop = Some(sim::replay(device.as_mut(), &trace));
        }
        results.push(result);
    }
    if context.json {
        output::json(&results)?;
    } else {
        output::print(&text(&results))?;
    }
    Ok(Outcome::Fine)
}

fn text(results: &[Simulated]) -> String {
    let header = ["PROFILE", "REQUESTS", "OP", "STREAM", "MEAN", "P50", "P99", "P99.9", "MAX"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut closed = String::new();
    for result in results {
        let classes = match (&result.open_loop, &result.closed_loop) {
            (Some(outcome), _) => &outcome.classes,
            (None, Some(outcome)) => {
                closed.push_str(&format!(
                    "{}: {} transactions per minute (captured: {})\n",
                    result.profile,
                    format::count(outcome.transactions_per_min()),
                    format::count(outcome.captured_transactions_per_s * 60.0),
                ));
                &outcome.classes
            }
            (None, None) => continue,
        };
        for class in classes {
            let at = |q| format::duration_ns(class.response.quantile(q) as f64);
            rows.push(vec![
                result.profile.clone(),
                class.response.count().to_string(),
                class.op.name().to_owned(),
                class.stream.clone(),
                format::duration_ns(class.response.mean()),
                at(0.5),
                at(0.99),
                at(0.999),
                format::duration_ns(class.response.max() as f64),
            ]);
        }
    }
    format!("{}{closed}", output::table(&rows))
}
