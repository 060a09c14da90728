//! Runs the order-entry workload on a loaded database:
//! `order_entry DIRECTORY [USERS [SECONDS [MIX [JOURNAL [BUFFER]]]]]`.

use std::error::Error;
use std::path::PathBuf;

use oltp::{Database, JournalMode, Options, SqliteSettings, framework_cost_ns, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name the directory")?);
    let users = arguments.next().unwrap_or_else(|| "20".to_owned()).parse()?;
    let seconds: u64 = arguments.next().unwrap_or_else(|| "10".to_owned()).parse()?;
    let mix = arguments.next().unwrap_or_else(|| "normal".to_owned()).parse()?;
    let journal_mode = match arguments.next().as_deref() {
        Some("delete") => JournalMode::Delete,
        Some("truncate") => JournalMode::Truncate,
        Some("persist") => JournalMode::Persist,
        _ => JournalMode::Wal,
    };
    let buffer = arguments.next().unwrap_or_else(|| "64MiB".to_owned()).parse()?;
    let sqlite = SqliteSettings { directory, journal_mode, buffer, ..SqliteSettings::default() };
    let warmup = units::Nanos(2_000_000_000);
    let measure = units::Nanos(seconds * 1_000_000_000);
    let database = Database::Sqlite(sqlite);
    let options = Options { database, users, mix, warmup, measure, ..Options::default() };
    let result = run(&options, &events::Quiet)?;
    println!(
        "{:.0} tps, {:.0} new orders/min, CPU {:.1} us user + {:.1} us system per transaction",
        result.transactions_per_s,
        result.new_orders_per_min,
        result.cpu.user_ns_per_transaction / 1e3,
        result.cpu.system_ns_per_transaction / 1e3,
    );
    for kind in &result.transactions {
        println!(
            "{:>12}: {} ({} rolled back), response ms p50 {:.2} p90 {:.2} p99 {:.2}, service us \
             {:.0}",
            kind.kind.name(),
            kind.count,
            kind.rollbacks,
            kind.response_ms_p50,
            kind.response_ms_p90,
            kind.response_ms_p99,
            kind.service_ns.mean() / 1e3,
        );
    }
    let overhead = &result.client_overhead;
    println!(
        "client overhead {:.1} us, {:.1} +- {:.1} % of CPU ({} samples); sizes {:?}",
        overhead.client_ns_per_transaction / 1e3,
        overhead.share * 100.0,
        overhead.standard_error * 100.0,
        overhead.samples,
        result.sizes
    );
    for check in result.audit.checks.iter().filter(|check| !check.passed) {
        println!("audit: {check:?}");
    }
    for warning in &result.warnings {
        println!("warning: {} ({})", warning.message, warning.code);
    }
    let short = Options { measure: units::Nanos(2_000_000_000), ..options };
    let scale = result.dataset.scale().ok_or("not order entry")?;
    let cost = framework_cost_ns(scale, &short, &events::Quiet)?;
    println!("framework alone (null driver): {:.2} us CPU per transaction", cost / 1e3);
    Ok(())
}
