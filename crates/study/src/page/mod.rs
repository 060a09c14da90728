//! From a run to the page that people look at: which figures, in which order, with which words.
//!
//! `report` draws the page; it knows nothing of devices or databases. One file per section.

mod device;
mod devices;
mod places;
pub mod trace;
mod validation;

pub use places::ranking;

use fit::FittedLine;
use fit::measurement::Measurements;
use report::{Page, Simulator, format};

use crate::Error;
use crate::advice::Advice;
use crate::artifacts::{ACCOUNTS, DEVICE_TRACE, FIT, LOAD, MEASUREMENTS, PROFILE, VALIDATION};
use crate::file::StudyFile;
use crate::profiles::read_device;
use crate::result::{StudyResult, ValidationSummary, captured};
use crate::run_dir::RunDir;
use crate::runs::transactions;
use crate::validation::Verdict;
use crate::what_if;

/// What a probe measured of a disk or of a model, as a page of its own.
pub fn measured(measured: &Measurements, lines: &[FittedLine]) -> Page {
    let target = &measured.target;
    let is_model = target.kind == "model";
    let what = if is_model { "A modelled device, probed" } else { "A disk, probed" };
    let title = if is_model { "The device" } else { "Your disk" };
    Page::new(what, target.path.clone()).section(device::section(title, measured, lines))
}

/// Builds the page of a run.
pub fn page(run: &RunDir, result: &StudyResult) -> Result<Page, Error> {
    let study = &result.study;
    let place = result.machine.get("file_system").map_or("", String::as_str);
    let subtitle = format!(
        "{}, {} users, {} on {place}",
        load_words(study),
        study.oltp.users,
        study.oltp.dbms.title()
    );
    let header = &study.study;
    let title = if header.title.is_empty() { &header.name } else { &header.title };
    let page = Page::new(title.clone(), subtitle);
    let mut page = if study.is_run_on_devices() {
        places::fill(page, &captured(run)?, result)
    } else {
        simulated(page, run, result)?
    };
    page.warnings.clone_from(&result.warnings);
    page = page
        .provenance("seed", study.study.seed.to_string())
        .provenance("run directory", run.path().display().to_string());
    for (name, value) in &result.machine {
        page = page.provenance(name.clone(), value.clone());
    }
    Ok(page)
}

/// What is loaded, in words.
fn load_words(study: &StudyFile) -> String {
    let oltp = &study.oltp;
    match oltp.workload.as_str() {
        "bank" => format!("bank, {} branches", oltp.branches),
        "commit" => format!("commit, {} rows", oltp.rows),
        _ => format!("{} W", oltp.warehouses),
    }
}

/// A study whose other devices are simulated with the captured I/O.
fn simulated(page: Page, run: &RunDir, result: &StudyResult) -> Result<Page, Error> {
    let oltp = run.read(&LOAD)?;
    let accounts = run.read(&ACCOUNTS)?;
    let measured = run.read(&MEASUREMENTS)?;
    let fit = run.read(&FIT)?;
    let checked = run.read(&VALIDATION)?;
    let mut page = headline(page, result)
        .section(devices::section(result))
        .section(transactions::section(&oltp, Some(&accounts)))
        .section(validation::section(&checked))
        .section(device::section("Your disk", &measured, &fit.lines));
    page.simulator = simulator(run, result)?;
    Ok(page)
}

/// The captured I/O on the fitted profile, and on devices of the study without a host of their own.
fn simulator(run: &RunDir, result: &StudyResult) -> Result<Option<Simulator>, Error> {
    // The largest file of a run, which a report that is written anew may have to do without.
    let path = run.join(DEVICE_TRACE);
    if !path.exists() {
        return Ok(None);
    }
    let trace = formats::own::read(&path)?;
    let own = run.join(PROFILE);
    let others = result.study.scenario.iter().filter(|scenario| scenario.host.is_none());
    let names = std::iter::once(own.to_string_lossy().into_owned())
        .chain(others.map(|scenario| scenario.profile.clone()));
    let devices: Result<Vec<_>, Error> = names.map(|name| read_device(&name)).collect();
    Ok(what_if::simulator(&trace, &devices?, result.study.study.seed))
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
    let waits = format!(
        "the writer, which commits, waits for the disk {} of its time",
        format::percent(oltp.device_share)
    );
    let page = page
        .fact(
            "New orders",
            format!("{} per minute", format::count(oltp.new_orders_per_min)),
            response,
        )
        .fact("Limited by", limit, waits);
    let (Some(error), Some(found)) = (&result.validation, &result.advice) else { return page };
    let page = page
        .fact(
            "Error of the simulation",
            format!("E = {:.3}: {}", error.error_ratio, verdict_word(error.verdict)),
            error_words(error),
        )
        .caution(!found.withheld.is_empty());
    advice(page, result, found)
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "meets its aim",
        Verdict::Missed => "MISSES its aim",
        Verdict::Undecided => "CANNOT BE TOLD from its aim",
    }
}

/// E against its aim, in all and where the load waits.
fn error_words(error: &ValidationSummary) -> String {
    let limiting = &error.limiting;
    let verdict = |error: f64, aim: f64| if error <= aim { "meets" } else { "MISSES" };
    let worst = limiting.worst.as_ref().map_or_else(String::new, |worst| {
        format!(
            "; worst where it waits: {} at {:.3} (itself {:.3}), {} of the waiting",
            class_name(&worst.op, worst.size_bytes),
            worst.error_ratio,
            worst.noise_floor,
            format::percent(worst.share)
        )
    });
    let interval = error
        .error_ratio_interval
        .map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}, "));
    let without_drift = error.error_ratio_without_drift.map_or_else(String::new, |without| {
        format!("; with the drift of the disk taken out {without:.3}")
    });
    format!(
        "{interval}aim {:.3}, the disk against itself {:.3}{without_drift}; by time waited {:.3}, \
         {} {:.3}{worst}",
        error.aim,
        error.noise_floor,
        limiting.error_ratio,
        verdict(limiting.error_ratio, limiting.aim),
        limiting.aim,
    )
}

fn class_name(op: &str, size_bytes: u32) -> String {
    match size_bytes {
        0 => format!("{op}es"),
        size => format!("{op}s up to {}", format::bytes(f64::from(size))),
    }
}

/// The headline about other devices: a prediction with its interval, or why there is none.
fn advice(page: Page, result: &StudyResult, advice: &Advice) -> Page {
    const LABEL: &str = "Best of the other devices";
    if result.scenarios.iter().all(|scenario| scenario.fitted) {
        return page;
    }
    if !advice.withheld.is_empty() {
        return page.fact(LABEL, "no advice", advice.withheld.join("; ")).caution(true);
    }
    let best = result.scenarios.iter().find(|found| Some(&found.profile) == advice.best.as_ref());
    let Some((best, prediction)) = best.and_then(|best| Some((best, best.prediction?))) else {
        return page;
    };
    let measured = result.oltp.transactions_per_min;
    let share = prediction.new_orders_per_min / prediction.transactions_per_min;
    let (low, high) = (
        format::count(prediction.transactions_per_min_low * share),
        format::count(prediction.transactions_per_min_high * share),
    );
    let words = if advice.proven_faster {
        "faster than this disk"
    } else if prediction.transactions_per_min_high < measured {
        "slower than this disk, as are all others"
    } else {
        "not shown to be faster or slower than this disk"
    };
    page.fact(
        LABEL,
        format!("{} new orders per minute", format::count(prediction.new_orders_per_min)),
        format!("{}, {low} to {high}: {words}; {}", best.profile, best.assumptions()),
    )
    .caution(!advice.proven_faster)
}
