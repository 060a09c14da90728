//! Loads and runs a workload on a private MariaDB instance and prints CPU time per transaction, the
//! client's and the server's: `mariadb DIRECTORY WORKLOAD SIZE USERS SECONDS RUNS [ACCESS...]`.
//! The instance is kept in DIRECTORY for the next call; remove it by hand.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use dbms::{Instance, Places, Settings, System};
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::{
    Access, Database, Dataset, LoadOptions, Options, Scale, ServerSettings, Workload, load,
    run_observed,
};
use units::Nanos;

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, workload, size, users, seconds, runs, access @ ..] = arguments.as_slice()
    else {
        return Err("mariadb DIRECTORY WORKLOAD SIZE USERS SECONDS RUNS [ACCESS...]".into());
    };
    let places = Places::at(PathBuf::from(directory));
    let mut instance = if places.data.exists() {
        Instance::open(&places.data)?
    } else {
        Instance::create(System::Mariadb, &places, &Settings::default(), &events::Quiet)?
    };
    instance.start(&events::Quiet)?;
    let (size, users): (u32, u32) = (size.parse()?, users.parse()?);
    let dataset = match workload.parse()? {
        Workload::OrderEntry => Dataset::OrderEntry(Scale::new(size)),
        Workload::Bank => Dataset::Bank(BankScale::new(size)),
        Workload::Commit => Dataset::Commit(CommitScale { rows: size }),
        Workload::Own(own) => Dataset::Own(own),
    };
    let mut settings = ServerSettings::new(instance.address(), instance.login().user);
    settings.connections = users;
    load_where_missing(&instance, &settings, dataset)?;
    let named = |a: &Access| access.iter().any(|name| name == a.name());
    for seed in 1..=runs.parse::<u64>()? {
        let mut accesses: Vec<Access> = Access::ALL.into_iter().filter(named).collect();
        // Each second time backwards, so that no access always follows the same other.
        if seed % 2 == 0 {
            accesses.reverse();
        }
        for access in accesses {
            settings.access = access;
            let options = Options {
                database: Database::Mariadb(settings.clone()),
                workload: dataset.workload(),
                users,
                warmup: Nanos(2_000_000_000),
                measure: Nanos(seconds.parse::<u64>()? * 1_000_000_000),
                seed,
                ..Options::default()
            };
            measure(&instance, &options, access)?;
        }
    }
    let start = Instant::now();
    let conditions = Database::Mariadb(settings).dbms(dataset.workload())?.check()?;
    let broken: Vec<u32> =
        conditions.iter().filter(|found| !found.holds).map(|found| found.number).collect();
    println!("conditions: {:.1} s, violated {broken:?}", start.elapsed().as_secs_f64());
    instance.stop()?;
    Ok(())
}

fn load_where_missing(
    instance: &Instance,
    settings: &ServerSettings,
    dataset: Dataset,
) -> Result<(), Failed> {
    let database = Database::Mariadb(settings.clone());
    let found = database.dbms(dataset.workload())?.meta();
    if found.is_ok_and(|meta| meta.dataset == dataset) {
        return Ok(());
    }
    let before = instance.cpu().total_s();
    let report = load(&LoadOptions { database, dataset, seed: 1 }, &events::Quiet)?;
    println!(
        "load: {} rows in {:.1} s, CPU client {:.2} s, server {:.2} s",
        report.rows,
        report.elapsed_s,
        report.cpu_s,
        instance.cpu().total_s() - before,
    );
    Ok(())
}

fn measure(instance: &Instance, options: &Options, access: Access) -> Result<(), Failed> {
    let mut cpu = Vec::new();
    let mut look = |_| cpu.push(instance.cpu().total_s());
    let result = run_observed(options, &events::Quiet, &mut look)?;
    let count: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    let client = result.cpu.user_ns_per_transaction + result.cpu.system_ns_per_transaction;
    println!(
        "{:>9}: {:.0} tps, CPU us per transaction: client {:.1}, server {:.0}; {} retries, {} \
         failures; p90 ms {:?}",
        access.name(),
        result.transactions_per_s,
        client / 1e3,
        (cpu[2] - cpu[1]) * 1e6 / count as f64,
        result.retries,
        result.failures,
        result.transactions.iter().map(|kind| kind.response_ms_p90.round()).collect::<Vec<_>>(),
    );
    Ok(())
}
