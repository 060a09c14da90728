//! `wearmark oltp run --find-rate`: short runs at one rate after the other, until the highest rate
//! at which the limit holds is known as well as such runs can tell.

use ::oltp::{Load, Options, Workload};
use events::{Event, Sink};
use predict::Goal;
use report::format;
use study::runs::RunSet;
use study::runs::search::{Found, Says, Search, Step, Try};
use units::{Nanos, Rate};

use super::run::{keep, one, seed};
use super::target::Opened;
use super::{Context, Outcome, output};
use crate::cli::OltpRun;
use crate::failure::Advice;

/// Warnings of a rate that is too high on purpose.
const EXPECTED: [&str; 5] =
    ["overload", "unanswered", "response_time_bound", "deliveries", "arrivals_dropped"];

/// Refuses a limit on transactions that the workload has not.
pub fn refuse_other_kinds(goal: &Goal, workload: Workload) -> anyhow::Result<()> {
    let kinds: Vec<&str> = workload.kinds().iter().map(|kind| kind.name()).collect();
    match &goal.kind {
        Some(kind) if !kinds.contains(&kind.as_str()) => {
            let hint = format!("its kinds: {}", kinds.join(", "));
            Err(Advice::error(format!("--find-rate: {workload} has no '{kind}'"), hint))
        }
        _ => Ok(()),
    }
}

/// Runs the search on a loaded database.
pub fn find_rate(
    arguments: &OltpRun,
    (opened, options): (&Opened, &Options),
    goal: &Goal,
    context: &Context,
) -> anyhow::Result<Outcome> {
    let place = opened.directory.clone().unwrap_or_else(|| ".".into());
    let mut set = RunSet::new(Some("rate".to_owned()), &place);
    let mut options = options.clone();
    options.load = Load::Closed { think: 0.0 };
    options.seed = seed(arguments, opened, 0)?;
    let first = Part { view: &context.view, runs: 0, at: "without a rate".to_owned() };
    let closed = one(arguments, opened, options.clone(), &first)?.run.result;
    let mut search = Search::new(goal.clone(), closed.transactions_per_s);
    let mut interrupted = closed.interrupted;
    if closed.transactions_per_s <= 0.0 && !interrupted {
        let hint = "measure longer: --duration";
        return Err(Advice::error("no transaction ended within the measurement", hint));
    }
    while let (false, Step::Run(rate)) = (interrupted, search.next()) {
        options.load = Load::Open { rate: Rate(rate) };
        let runs = search.runs() + 1;
        options.seed = seed(arguments, opened, runs as u32)?;
        let at = format!("{}/s{}", format::count(rate), so_far(&search));
        let part = Part { view: &context.view, runs, at };
        let mut run = one(arguments, opened, options.clone(), &part)?.run;
        // Of a run that was stopped nothing is taken: it was shorter than the others.
        if run.result.interrupted {
            interrupted = true;
            break;
        }
        search.tell(Try::of(&run.result, rate, goal));
        run.at = format!("{rate}");
        set.runs.push(run);
        keep(&set, &arguments.watching)?;
    }
    let found = search.clone().found(interrupted);
    if context.json {
        output::json(&found)?;
    } else {
        output::print(&text(&found, &search, options.measure))?;
    }
    Ok(match (interrupted, found.holds_at_per_s) {
        (true, _) => Outcome::Interrupted,
        (false, Some(_)) => Outcome::Fine,
        (false, None) if found.too_short || found.fails_at_per_s.is_none() => Outcome::NoVerdict,
        (false, None) => Outcome::Finding,
    })
}

fn so_far(search: &Search) -> String {
    let found = search.clone().found(true);
    let rate = |rate: Option<f64>| rate.map(format::count);
    match (rate(found.holds_at_per_s), rate(found.fails_at_per_s)) {
        (Some(holds), Some(fails)) => format!(" (holds at {holds}, fails at {fails})"),
        (Some(holds), None) => format!(" (holds at {holds})"),
        (None, Some(fails)) => format!(" (fails at {fails})"),
        (None, None) => String::new(),
    }
}

/// The runs of a search as parts of one stage.
struct Part<'a> {
    view: &'a dyn Sink,
    runs: usize,
    at: String,
}

impl Sink for Part<'_> {
    fn emit(&self, event: Event) {
        match event {
            Event::Warning(warning) if EXPECTED.contains(&warning.code.as_str()) => {}
            Event::Progress { done, doing, .. } => {
                // Nobody knows how many runs there will be: each closes a part of what is left.
                let before = 1.0 - 0.85f64.powi(self.runs as i32);
                self.view.emit(Event::Progress {
                    stage: "find-rate".to_owned(),
                    done: before + (1.0 - before) * 0.15 * done,
                    doing: format!("run {}, {}: {doing}", self.runs + 1, self.at),
                    eta_s: None,
                });
            }
            Event::Plan { .. } | Event::Sample { .. } | Event::Done { .. } => {}
            other => self.view.emit(other),
        }
    }

    fn cancelled(&self) -> bool {
        self.view.cancelled()
    }
}

fn text(found: &Found, search: &Search, measure: Nanos) -> String {
    let goal = &found.goal;
    let quantile = format!("P{}", (goal.quantile * 1e6).round() / 1e4);
    let over = format!("OVER {}", goal.limit);
    let header = ["RATE", "DONE/S", "REQUESTS", &over, "UNANSWERED BEFORE", &quantile, "ALL RUNS"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut tries: Vec<&Try> = found.tries.iter().collect();
    tries.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    for run in tries {
        rows.push(vec![
            format!("{}/s", format::count(run.rate_per_s)),
            format::count(run.done_per_s),
            run.requests.to_string(),
            format::percent(run.over as f64 / run.requests.max(1) as f64),
            run.unknown.to_string(),
            format::at_least_ns(run.quantile_ms * 1e6, run.at_least),
            match search.says(run.rate_per_s) {
                Says::Holds => "hold",
                Says::Unclear => "do not tell",
                Says::Fails => "FAIL",
            }
            .to_owned(),
        ]);
    }
    let rate = |rate: f64| format!("{}/s", format::count(rate));
    let mut text = output::table(&rows);
    text.push_str(&match (found.holds_at_per_s, found.fails_at_per_s) {
        (Some(holds), Some(fails)) => {
            format!("\n{goal} holds at {} and fails at {}", rate(holds), rate(fails))
        }
        (Some(holds), None) => {
            format!("\n{goal} holds at {}, and no higher rate failed", rate(holds))
        }
        (None, Some(fails)) => format!("\n{goal} fails at {}, and no lower rate held", rate(fails)),
        (None, None) => format!("\nno run says whether {goal} holds"),
    });
    if found.too_short {
        let needed = search.requests_needed();
        text.push_str(&format!(
            "; the runs are too short: to hold, a rate needs {needed} requests in three runs"
        ));
    }
    text.push_str(match (found.interrupted, found.ended) {
        (true, _) => "; stopped before its end\n",
        (false, false) => "; the search ran out of runs\n",
        (false, true) => "\n",
    });
    let closed = format::count(found.closed_loop_per_s);
    text.push_str(&format!(
        "{} runs of {measure}; the terminals alone do {closed}/s. What lies between is what such \
         runs cannot tell: longer ones (--duration) can.\n",
        found.tries.len()
    ));
    text
}
