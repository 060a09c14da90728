//! What a private server costs, in processor time: loads, then runs each access several times by
//! turns, then checks. `server_speed DIRECTORY [WORKLOAD [SIZE [SECONDS [RUNS [ACCESS,..]]]]]`, for
//! example `server_speed /var/tmp/w order-entry 10 10 5`. DIRECTORY must not exist.
//!
//! Prints one line per run (client and server microseconds per transaction) and medians at the
//! end. The server has a buffer of 128 MiB and is durable; the client is on its unix socket.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use dbms::{Instance, Places, Settings, System};
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::{Access, Dataset, LoadOptions, Options, Scale, ServerSettings, Workload};
use units::Nanos;

/// Client CPU of the calling process, seconds.
fn own_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A private server and what to do with it.
struct Bench {
    instance: Instance,
    server: ServerSettings,
    workload: Workload,
    dataset: Dataset,
}

/// Transactions per second, client and server microseconds per transaction.
type Figures = (f64, f64, f64);

impl Bench {
    fn server_cpu_s(&self) -> f64 {
        self.instance.cpu().total_s()
    }

    fn load(&self) -> Result<(), Box<dyn Error>> {
        let database = oltp::Database::Postgresql(self.server.clone());
        let dataset = self.dataset;
        let (client, before, start) = (own_cpu_s(), self.server_cpu_s(), Instant::now());
        let load = oltp::load(&LoadOptions { database, dataset, seed: 1 }, &events::Quiet)?;
        println!(
            "load {dataset}: {:.1} s, server CPU {:.2} s, client CPU {:.2} s, {} rows, {} MB",
            start.elapsed().as_secs_f64(),
            self.server_cpu_s() - before,
            own_cpu_s() - client,
            load.rows,
            load.database_bytes / 1_000_000,
        );
        Ok(())
    }

    fn run(&self, access: Access, seconds: u64) -> Result<Figures, Box<dyn Error>> {
        let server = ServerSettings { access, connections: 20, ..self.server.clone() };
        let options = Options {
            database: oltp::Database::Postgresql(server),
            workload: self.workload,
            users: 20,
            warmup: Nanos(2_000_000_000),
            measure: Nanos(seconds * 1_000_000_000),
            ..Options::default()
        };
        let mut marks = Vec::new();
        let result = oltp::run_observed(&options, &events::Quiet, &mut |_| {
            marks.push((own_cpu_s(), self.server_cpu_s()));
        })?;
        let count: u64 = result.transactions.iter().map(|kind| kind.count).sum();
        let per = |seconds: f64| seconds * 1e6 / count as f64;
        let figures =
            (result.transactions_per_s, per(marks[2].0 - marks[1].0), per(marks[2].1 - marks[1].1));
        println!(
            "{:>9}: {:.0} tps, client {:.1} us, server {:.1} us, {} retries, {} failures, audit {}",
            access.name(),
            figures.0,
            figures.1,
            figures.2,
            result.retries,
            result.failures,
            result.audit.passed
        );
        Ok(figures)
    }

    fn check(&self) -> Result<(), Box<dyn Error>> {
        let database = oltp::Database::Postgresql(self.server.clone());
        let (before, start) = (self.server_cpu_s(), Instant::now());
        let conditions = database.dbms(self.workload)?.check()?;
        println!(
            "check: {:.1} s, server CPU {:.1} s, {} of {} hold",
            start.elapsed().as_secs_f64(),
            self.server_cpu_s() - before,
            conditions.iter().filter(|condition| condition.holds).count(),
            conditions.len()
        );
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |k: usize, default: &str| arguments.get(k).cloned().unwrap_or_else(|| default.to_owned());
    let directory = PathBuf::from(arguments.first().ok_or("name a directory")?);
    let workload: Workload = argument(1, "order-entry").parse()?;
    let size: u32 = argument(2, "10").parse()?;
    let seconds: u64 = argument(3, "10").parse()?;
    let runs: usize = argument(4, "5").parse()?;
    let wanted = argument(5, "statement,statement-pipelined,pipelined,procedure");
    let dataset = match workload {
        Workload::OrderEntry => Dataset::OrderEntry(Scale::new(size)),
        Workload::Bank => Dataset::Bank(BankScale::new(size)),
        Workload::Commit => Dataset::Commit(CommitScale { rows: size }),
        Workload::Own(own) => Dataset::Own(own),
    };
    let (places, settings) = (Places::at(&directory), Settings::default());
    let made = Instance::create(System::Postgresql, &places, &settings, &events::Quiet)?;
    let mut instance = made.temporary();
    instance.start(&events::Quiet)?;
    let login = instance.login();
    let server = ServerSettings::new(login.address, login.user);
    let bench = Bench { instance, server, workload, dataset };
    bench.load()?;
    let mut all: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
    for run in 0..runs {
        let mut accesses: Vec<Access> =
            Access::ALL.into_iter().filter(|a| wanted.split(',').any(|w| w == a.name())).collect();
        // Each second time backwards, so that no access always follows the same other.
        if run % 2 == 1 {
            accesses.reverse();
        }
        for access in accesses {
            all.entry(access.name()).or_default().push(bench.run(access, seconds)?);
        }
    }
    for (access, values) in all {
        let part =
            |pick: fn(&Figures) -> f64| median(&mut values.iter().map(pick).collect::<Vec<_>>());
        let (tps, client, server) = (part(|v| v.0), part(|v| v.1), part(|v| v.2));
        println!("median {access:>19}: {tps:.0} tps, client {client:.1} us, server {server:.1} us");
    }
    bench.check()
}
