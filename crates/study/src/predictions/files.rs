//! The files of a captured run: `PREFIX-run.json`, `PREFIX-transactions.csv`,
//! `PREFIX-logical.parquet` and, where the disk was captured, `PREFIX-device-DISK.parquet`. A
//! capture of a server that somebody else ran has `PREFIX-accounts.json` and `PREFIX-requests.csv`
//! instead of the first two; its transactions are requests, for nobody told what belongs together.
//! One of SQLite has `PREFIX-from-start.parquet`, what was asked of the device since its load
//! began.

use std::path::{Path, PathBuf};

use capture::server::{
    DISTURBED_SHARE, Quality, REQUEST_KINDS, ServerAccounts, ServerCpu, TaskGroups, WakeCosts,
};
use oltp::{Dataset, Kind, Load};
use predict::{Captured, Contended, Cpu, Embedded, KindOf, Learned, Start, System, Transaction};
use sim::transactions::{Load as SimLoad, Scheduling, Think};
use trace::{Op, Trace};

use crate::Error;
use crate::captures::{Capture, read_table, with};
use crate::runs::{CaptureCost, FROM_START, Run, RunSet};

/// Reads the rest of a capture and learns from it.
///
/// # Errors
/// As [`read`] and [`read_embedded`]; a capture that lacks something.
pub fn learn_run(prefix: &Path, run: &Run) -> Result<Learned, Error> {
    Ok(match run.server {
        Some(_) => predict::learn(&read(prefix, run)?)?,
        None => predict::learn_embedded(&read_embedded(prefix, run)?)?,
    })
}

/// The run of a capture: the last of `PREFIX-run.json`.
///
/// # Errors
/// A file that is missing or no set of runs.
pub fn read_run(prefix: &Path) -> Result<Run, Error> {
    let mut set = RunSet::read(&with(prefix, "-run.json"))?;
    Ok(set.runs.pop().expect("a set that is read has a run"))
}

/// What a capture takes in place is this many times what recording its events takes in a loop:
/// calls that are not recorded go through the kernel's slow path too. 6 to 18 % of all processor
/// time for order entry and commits on PostgreSQL and MariaDB.
const IN_PLACE: f64 = 8.0;
/// How far that may be off, as a share of it.
const IN_PLACE_ERROR: f64 = 0.5;

/// Processor time per transaction that the capture is expected to have taken, ns.
fn expected_of_capture(quality: Option<Quality>, transactions: u64) -> f64 {
    let recording_s = quality.unwrap_or_default().capture_s();
    IN_PLACE * recording_s * 1e9 / transactions.max(1) as f64
}

/// The share of processor time that a capture took: what was expected and what turning it off and
/// on showed, each weighed by its certainty.
fn by_turns(expected: f64, cost: &CaptureCost) -> f64 {
    let weight = |error: f64| 1.0 / (error * error).max(1e-6);
    let (prior, seen) = (weight(IN_PLACE_ERROR * expected), weight(cost.ratio_error));
    ((prior * expected + seen * cost.share()) / (prior + seen)).max(0.0)
}

/// Processor time per transaction, by whom.
fn used(run: &Run, accounts: &ServerAccounts) -> Cpu {
    let (cpu, client) = (&accounts.cpu, &run.result.cpu);
    let per = |seconds: f64| seconds * 1e9 / accounts.transactions.max(1) as f64;
    let mut used = Cpu {
        server_ns: per(cpu.server_user_s + cpu.server_system_s),
        capture_ns: expected_of_capture(accounts.quality, accounts.transactions),
        client_ns: client.user_ns_per_transaction + client.system_ns_per_transaction,
        kernel_ns: per(cpu.kernel_threads_s + cpu.interrupt_s),
    };
    if let Some(cost) = run.server.as_ref().and_then(|server| server.capture_cost.as_ref()) {
        let all_ns = used.server_ns + used.client_ns + used.kernel_ns;
        used.capture_ns = by_turns(used.capture_ns / all_ns, cost) * all_ns;
    }
    used
}

/// Processor time of the whole machine per transaction of a captured run, ns, without what the
/// capture took; `None` where its server was not watched.
pub(crate) fn busy_ns(run: &Run) -> Option<f64> {
    let accounts = run.server.as_ref()?.accounts.as_ref()?;
    let all_ns = accounts.cpu.busy_s() * 1e9 / accounts.transactions.max(1) as f64;
    Some(all_ns - used(run, accounts).capture_ns)
}

/// Reads the rest of a capture.
///
/// # Errors
/// A file that is missing or malformed; a run that was not on a server.
fn read(prefix: &Path, run: &Run) -> Result<Captured, Error> {
    let lacks = |what| Error::Predict(predict::Error::Lacks(what));
    let server = run.server.as_ref().ok_or(lacks("a server"))?;
    let accounts = server.accounts.as_ref().ok_or(lacks("the server's accounts"))?;
    let result = &run.result;
    let system = system(accounts.system)?;
    let logical = formats::own::read(&with(prefix, "-logical.parquet")).map_err(Error::Trace)?;
    let cpu = &accounts.cpu;
    Ok(Captured {
        system,
        kinds: kinds(run),
        transactions: transactions(prefix, run)?,
        connections: connections(&logical),
        logical,
        physical: physical(prefix)?,
        cpu: used(run, accounts),
        processors: (cpu.machine_s / result.measured_s.max(1e-3)).round().max(1.0) as u32,
        scheduling: scheduling(cpu, system),
        wake_ns: wakes(cpu).map(|wakes| wakes.idle_ns),
        switching: predict::switching(wakes(cpu).map(|wakes| wakes.interrupt_ns)),
        disturbed: cpu.disturbed,
        terminals: result.options.users,
        load: load(&result.options.load, run),
        per_s: result.transactions_per_s,
        // InnoDB counts the bytes that it wrote, whole blocks; the trace tells those inserted.
        log_bytes: server
            .activity
            .as_ref()
            .and_then(|activity| activity.log_bytes)
            .filter(|_| system == System::Postgresql),
        buffer_bytes: server.settings.as_ref().map(|settings| settings.buffer.0),
        contended: contended(&result.dataset),
        start: start(run),
    })
}

/// The rows that its transactions meet at.
fn contended(dataset: &Dataset) -> Contended {
    match (dataset, dataset.scale()) {
        (_, Some(scale)) => Contended::OrderEntry(scale.warehouses),
        (Dataset::Commit(scale), None) => Contended::OneOf(scale.rows),
        (Dataset::Bank(scale), None) => Contended::OneOf(scale.branches),
        _ => Contended::Unknown,
    }
}

/// How the load of a run began.
fn start(run: &Run) -> Option<Start> {
    let seen = run.server.as_ref()?.start.as_ref()?;
    let result = &run.result;
    let mut ended = 0;
    let transactions = result.series.transactions.iter().map(|count| {
        ended += u64::from(*count);
        ended
    });
    let transactions: Vec<u64> = transactions.collect();
    let beside = |seen: &[u64]| transactions.iter().copied().zip(seen.iter().copied()).collect();
    let (last, bytes) = (*seen.reads.last()?, *seen.read_bytes.last()?);
    Some(Start {
        warmup_ns: result.options.warmup.0,
        measure_ns: result.options.measure.0,
        reads: beside(&seen.reads),
        log_bytes: beside(&seen.log_bytes),
        log_ready: seen.log_ready,
        read_bytes: (bytes / last.max(1)).next_multiple_of(512).min(1 << 20) as u32,
        by_kind: seen.by_kind.clone(),
    })
}

/// Reads the rest of a capture of SQLite.
///
/// # Errors
/// A file that is missing or malformed.
fn read_embedded(prefix: &Path, run: &Run) -> Result<Embedded, Error> {
    let result = &run.result;
    let accounts = run.accounts.as_ref();
    let cpu = accounts.map(|accounts| &accounts.cpu);
    let path = with(prefix, &format!("-{FROM_START}.parquet"));
    if !path.exists() {
        let what =
            "the start of its load: the database's files were not opened past the page cache";
        return Err(Error::Predict(predict::Error::Lacks(what)));
    }
    Ok(Embedded {
        kinds: kinds(run),
        transactions: transactions(prefix, run)?,
        device: formats::own::read(&path).map_err(Error::Trace)?,
        warmup_ns: result.options.warmup.0,
        measure_ns: result.options.measure.0,
        processors: cpu.map_or(1, |cpu| cpu.processors.max(1)),
        terminals: result.options.users,
        load: load(&result.options.load, run),
        per_s: result.transactions_per_s,
        disturbed: cpu.is_some_and(|cpu| cpu.foreign_share > DISTURBED_SHARE),
    })
}

/// All kinds, by the number that the capture gives them.
fn kinds(run: &Run) -> Vec<KindOf> {
    let of = |kind: &Kind| KindOf { name: kind.name().to_owned(), writes: kind.writes() };
    run.result.dataset.workload().by_code().iter().map(of).collect()
}

/// The table of transactions of a run.
fn transactions(prefix: &Path, run: &Run) -> Result<Vec<Transaction>, Error> {
    let path = with(prefix, "-transactions.csv");
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    let kinds = run.result.dataset.workload().by_code();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    read_table(&path, &text, &names)
}

fn system(system: capture::server::System) -> Result<System, Error> {
    match system {
        capture::server::System::Postgresql => Ok(System::Postgresql),
        capture::server::System::Mariadb => Ok(System::Innodb),
        capture::server::System::Program => {
            let what = "a database server: how any other program commits is not known";
            Err(Error::Predict(predict::Error::Lacks(what)))
        }
    }
}

/// Reads a capture of a server that somebody else ran.
///
/// # Errors
/// A file that is missing or malformed; a capture without requests.
pub fn read_capture(prefix: &Path, capture: &Capture) -> Result<Captured, Error> {
    let lacks = |what| Error::Predict(predict::Error::Lacks(what));
    let accounts = capture.accounts.as_ref().ok_or(lacks("a server: it is of a device"))?;
    let requests = capture.requests.as_ref().filter(|all| all.count > 0);
    let requests = requests.ok_or(lacks("requests of clients: none was answered in its time"))?;
    let system = system(accounts.system)?;
    let path = with(prefix, "-requests.csv");
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    let logical = formats::own::read(&with(prefix, "-logical.parquet")).map_err(Error::Trace)?;
    let cpu = &accounts.cpu;
    let per = |seconds: f64| seconds * 1e9 / accounts.transactions.max(1) as f64;
    let log_bytes = capture.activity.as_ref().and_then(|activity| activity.log_bytes);
    let kind = |name: &&str| KindOf { name: (*name).to_owned(), writes: *name == "commit" };
    Ok(Captured {
        system,
        kinds: REQUEST_KINDS.iter().map(kind).collect(),
        transactions: read_table(&path, &text, &REQUEST_KINDS)?,
        connections: connections(&logical),
        logical,
        physical: physical(prefix)?,
        // The clients compute while the server waits for them: their time is in the think time.
        cpu: Cpu {
            server_ns: per(cpu.server_user_s + cpu.server_system_s),
            capture_ns: expected_of_capture(accounts.quality, accounts.transactions),
            client_ns: 0.0,
            kernel_ns: per(cpu.kernel_threads_s + cpu.interrupt_s),
        },
        processors: (cpu.machine_s / capture.seconds.max(1e-3)).round().max(1.0) as u32,
        scheduling: scheduling(cpu, system),
        wake_ns: wakes(cpu).map(|wakes| wakes.idle_ns),
        switching: predict::switching(wakes(cpu).map(|wakes| wakes.interrupt_ns)),
        disturbed: cpu.disturbed,
        terminals: requests.sessions_mean.round().max(1.0) as u32,
        load: if requests.scheduled {
            SimLoad::Open { per_s: requests.per_s }
        } else {
            SimLoad::Closed(Think { mean_ns: requests.think_ns_mean, exponential: true })
        },
        per_s: requests.per_s,
        log_bytes: log_bytes.filter(|_| system == System::Postgresql),
        buffer_bytes: None,
        contended: Contended::Unknown,
        start: None,
    })
}

/// Keying and thinking as the mean over the captured kinds.
fn load(load: &Load, run: &Run) -> SimLoad {
    match *load {
        Load::Open { rate } => SimLoad::Open { per_s: rate.0 },
        Load::Closed { think } => {
            let all: f64 = run.result.transactions.iter().map(|kind| kind.count as f64).sum();
            let own = run.result.kinds().iter().map(|kind| {
                let count = run.result.of(*kind).map_or(0, |found| found.count) as f64;
                (kind.keying_s() + kind.think_mean_s()) * count
            });
            let mean_s = own.sum::<f64>() / all.max(1.0);
            SimLoad::Closed(Think { mean_ns: mean_s * think * 1e9, exponential: true })
        }
    }
}

/// What a wake-up costs, unless others had the processors then.
fn wakes(cpu: &ServerCpu) -> Option<WakeCosts> {
    cpu.wakes.filter(|_| !cpu.disturbed)
}

/// How the kernel shares processors; where a capture does not tell, as with autogroups, which it
/// has by default, and a server that the client started: PostgreSQL's processes leave its
/// session, MariaDB's threads do not.
fn scheduling(cpu: &ServerCpu, system: System) -> Scheduling {
    let usual = TaskGroups { server: false, clients: system == System::Postgresql };
    let TaskGroups { server, clients } = cpu.groups.unwrap_or(usual);
    Scheduling { server_group: server, client_group: clients, finds_idle: false }
}

/// Whether each actor of a logical trace serves a client, from the roles that it keeps.
fn connections(logical: &Trace) -> Vec<bool> {
    let roles = logical.origin.facts.get("actor_roles").map_or("", String::as_str);
    roles.split(',').map(|role| role == "connection").collect()
}

/// The disk that the log lies on.
fn physical(prefix: &Path) -> Result<Option<Trace>, Error> {
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let name = prefix.file_name().map(|name| name.to_string_lossy().into_owned());
    let begin = format!("{}-device-", name.unwrap_or_default());
    let listed = std::fs::read_dir(folder).map_err(Error::io(folder, "read"))?;
    let mut paths: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with(&begin) && name.ends_with(".parquet"))
        })
        .collect();
    paths.sort();
    for path in paths {
        let disk = formats::own::read(&path).map_err(Error::Trace)?;
        let log = disk.streams.iter().position(|stream| stream.name == "log");
        let writes_log = (0..disk.count())
            .any(|at| disk.op[at] == Op::Write && Some(usize::from(disk.stream[at])) == log);
        if writes_log {
            return Ok(Some(disk));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected is a tenth, give or take half of it.
    #[test]
    fn turns_of_a_capture_count_by_their_certainty() {
        let cost = |on_ns, ratio_error| CaptureCost { off_ns: 80.0, on_ns, turns: 4, ratio_error };
        let of = |cost: &CaptureCost| by_turns(0.1, cost);
        assert!((of(&cost(100.0, 0.001)) - 0.2).abs() < 0.001);
        assert!((of(&cost(100.0, 0.05)) - 0.15).abs() < 0.001, "both are as certain");
        assert!((of(&cost(100.0, 1.0)) - 0.1).abs() < 0.001);
        assert_eq!(of(&cost(70.0, 0.01)), 0.0, "no capture gives time");
        let quality = Quality { events: 50_000, event_ns: 200.0, ..Quality::default() };
        let expected_ns = expected_of_capture(Some(quality), 1_000);
        assert_eq!(expected_ns, 80_000.0, "50 events, 1.6 us each in place");
    }

    #[test]
    fn what_a_wake_up_cost_beside_others_is_not_taken() {
        let measured = Some(WakeCosts { idle_ns: 4_000.0, interrupt_ns: 8_000.0 });
        let quiet = ServerCpu { wakes: measured, ..ServerCpu::default() };
        assert_eq!(wakes(&quiet), measured);
        assert_eq!(wakes(&ServerCpu { disturbed: true, ..quiet }), None);
    }
}
