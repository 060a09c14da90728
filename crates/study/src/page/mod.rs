//! From a run to the page that people look at: which figures, in which order, with which words.
//!
//! `report` draws the page; it knows nothing of devices or databases. One file per section.

mod device;
mod devices;
pub mod trace;
pub(crate) mod transactions;
mod validation;

use fit::measurement::Measurements;
use oltp::OltpResult;
use report::{Page, format};

use crate::Error;
use crate::result::StudyResult;
use crate::run_dir::RunDir;
use crate::stages;
use crate::stages::fit::FitReport;
use crate::stages::oltp::Accounts;
use crate::validation::Validation;

/// Builds the page of a run.
pub fn page(run: &RunDir, result: &StudyResult) -> Result<Page, Error> {
    let oltp: OltpResult = run.read_json(stages::oltp::RESULT)?;
    let accounts: Accounts = run.read_json(stages::oltp::ACCOUNTS)?;
    let measured: Measurements = run.read_json(stages::probe::MEASUREMENTS)?;
    let fit: FitReport = run.read_json(stages::fit::FIT)?;
    let checked: Validation = run.read_json(stages::validate::VALIDATION)?;
    let place = result.machine.get("file_system").map_or("", String::as_str);
    let subtitle = format!(
        "{} W, {} users, SQLite on {place}",
        result.study.oltp.warehouses, result.study.oltp.users
    );
    let title = if result.study.study.title.is_empty() {
        &result.study.study.name
    } else {
        &result.study.study.title
    };
    let mut page = headline(Page::new(title.clone(), subtitle), result)
        .section(devices::section(&result.scenarios, result.oltp.transactions_per_min))
        .section(transactions::section(&oltp, Some(&accounts)))
        .section(validation::section(&checked))
        .section(device::section(&measured, &fit.lines));
    page.warnings.clone_from(&result.warnings);
    page = page
        .provenance("seed", result.study.study.seed.to_string())
        .provenance("run directory", run.path().display().to_string());
    for (name, value) in &result.machine {
        page = page.provenance(name.clone(), value.clone());
    }
    Ok(page)
}

fn headline(page: Page, result: &StudyResult) -> Page {
    let oltp = &result.oltp;
    let new_order = oltp.transactions.iter().find(|kind| kind.kind == oltp::Kind::NewOrder.name());
    let response = new_order.map_or(String::new(), |kind| {
        format!(
            "response of new orders p50 {}, p99 {}",
            format::duration_ns(kind.response_ms_p50 * 1e6),
            format::duration_ns(kind.response_ms_p99 * 1e6)
        )
    });
    let limit = match oltp.limited_by.as_str() {
        "device" => "the disk",
        "cpu" => "CPU",
        _ => "disk and CPU alike",
    };
    let waits =
        format!("the writer waits for the disk {} of its time", format::percent(oltp.device_share));
    let error = &result.validation;
    let page = page
        .fact(
            "New orders",
            format!("{} per minute", format::count(oltp.new_orders_per_min)),
            response,
        )
        .fact("Limited by", limit, waits)
        .fact(
            "Error of the simulation",
            format!("E = {:.3}", error.error_ratio),
            format!(
                "the disk against itself: {:.3}; aim: at most {:.3}",
                error.noise_floor, error.aim
            ),
        );
    let others = result.scenarios.iter().filter(|scenario| !scenario.fitted);
    let best = others.max_by(|a, b| a.transactions_per_min.total_cmp(&b.transactions_per_min));
    match best {
        Some(best) => page.fact(
            "Best of the other devices",
            format!("{} new orders per minute", format::count(best.new_orders_per_min)),
            best.profile.clone(),
        ),
        None => page,
    }
}
