//! The files of a captured run: `PREFIX-run.json`, `PREFIX-transactions.csv`,
//! `PREFIX-logical.parquet` and, where the disk was captured, `PREFIX-device-DISK.parquet`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use oltp::{Kind, Load};
use predict::{Captured, Cpu, KindOf, System, Transaction};
use sim::transactions::{Load as SimLoad, Think};
use trace::{Op, Trace};

use crate::Error;
use crate::runs::{Run, RunSet};

/// All kinds, by the number that the capture gives them.
const KINDS: [Kind; Kind::COUNT] = [
    Kind::NewOrder,
    Kind::Payment,
    Kind::OrderStatus,
    Kind::Delivery,
    Kind::StockLevel,
    Kind::Transfer,
    Kind::Update,
];

fn with(prefix: &Path, suffix: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The run of a capture: the last of `PREFIX-run.json`.
///
/// # Errors
/// A file that is missing or no set of runs.
pub fn read_run(prefix: &Path) -> Result<Run, Error> {
    let mut set = RunSet::read(&with(prefix, "-run.json"))?;
    Ok(set.runs.pop().expect("a set that is read has a run"))
}

/// Reads the rest of a capture.
///
/// # Errors
/// A file that is missing or malformed; a run that was not on a server.
pub fn read(prefix: &Path, run: &Run) -> Result<Captured, Error> {
    let lacks = |what| Error::Predict(predict::Error::Lacks(what));
    let server = run.server.as_ref().ok_or(lacks("a server: SQLite's locks are not modelled"))?;
    let accounts = server.accounts.as_ref().ok_or(lacks("the server's accounts"))?;
    let result = &run.result;
    let system = match accounts.system {
        capture::server::System::Postgresql => System::Postgresql,
        capture::server::System::Mariadb => System::Innodb,
    };
    let path = with(prefix, "-transactions.csv");
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    let transactions = transactions(&path, &text)?;
    let logical = formats::own::read(&with(prefix, "-logical.parquet")).map_err(Error::Trace)?;
    let cpu = &accounts.cpu;
    let per = |seconds: f64| seconds * 1e9 / accounts.transactions.max(1) as f64;
    let client = &result.cpu;
    Ok(Captured {
        system,
        kinds: KINDS
            .iter()
            .map(|kind| KindOf { name: kind.name().to_owned(), writes: kind.writes() })
            .collect(),
        transactions,
        connections: connections(&logical),
        logical,
        physical: physical(prefix)?,
        cpu: Cpu {
            server_ns: per(cpu.server_user_s + cpu.server_system_s),
            client_ns: client.user_ns_per_transaction + client.system_ns_per_transaction,
            kernel_ns: per(cpu.kernel_threads_s),
        },
        processors: (cpu.machine_s / result.measured_s.max(1e-3)).round().max(1.0) as u32,
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
        warehouses: result.dataset.scale().map(|scale| scale.warehouses),
    })
}

/// Keying and thinking as the mean over the captured kinds.
fn load(load: &Load, run: &Run) -> SimLoad {
    match *load {
        Load::Open { rate } => SimLoad::Open { per_s: rate.0 },
        Load::Closed { think } => {
            let all: f64 = run.result.transactions.iter().map(|kind| kind.count as f64).sum();
            let own =
                run.result.transactions.iter().map(|kind| {
                    (kind.kind.keying_s() + kind.kind.think_mean_s()) * kind.count as f64
                });
            let mean_s = own.sum::<f64>() / all.max(1.0);
            SimLoad::Closed(Think { mean_ns: mean_s * think * 1e9, exponential: true })
        }
    }
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

/// The table of transactions, by the names of its columns.
fn transactions(path: &Path, text: &str) -> Result<Vec<Transaction>, Error> {
    let bad = |cause: String| Error::Artifact {
        path: path.to_owned(),
        what: "table of transactions",
        cause,
    };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let column = |name: &str| {
        let at = header.iter().position(|own| *own == name);
        at.ok_or_else(|| bad(format!("it has no column '{name}'")))
    };
    let (kind, turns) = (column("kind")?, column("turns")?);
    let (duration, gap) = (column("duration_ns")?, column("gap_ns")?);
    let kinds: HashMap<&str, u16> =
        KINDS.iter().zip(0u16..).map(|(kind, number)| (kind.name(), number)).collect();
    let mut found = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |at: usize| {
            let wrong = || bad(format!("line {number} lacks '{}'", header[at]));
            cells.get(at).copied().ok_or_else(wrong)
        };
        let figure = |at: usize| {
            let wrong = || bad(format!("line {number}: '{}' is no number", header[at]));
            cell(at)?.parse::<u64>().map_err(|_| wrong())
        };
        let name = cell(kind)?;
        let unknown = || bad(format!("line {number}: '{name}' is no kind of transaction"));
        found.push(Transaction {
            kind: *kinds.get(name).ok_or_else(unknown)?,
            turns: figure(turns)? as u32,
            duration_ns: figure(duration)?,
            gap_ns: figure(gap)?,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_by_its_columns() {
        let text = "transaction,kind,gap_ns,turns,duration_ns\n1,payment,5,3,9\n2,update,1,1,2\n";
        let found = transactions(Path::new("t.csv"), text).unwrap();
        let kinds: Vec<u16> = found.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [Kind::Payment as u16, Kind::Update as u16]);
        assert_eq!((found[0].turns, found[0].duration_ns, found[0].gap_ns), (3, 9, 5));
        let cause = |text: &str| transactions(Path::new("t.csv"), text).unwrap_err().to_string();
        assert!(cause("transaction,turns\n").contains("no column 'kind'"));
        let header = "kind,turns,duration_ns,gap_ns\n";
        assert!(cause(&format!("{header}payment,1,x,2\n")).contains("line 2: 'duration_ns'"));
        assert!(cause(&format!("{header}lunch,1,1,2\n")).contains("'lunch' is no kind"));
        assert!(cause(&format!("{header}payment,1\n")).contains("line 2 lacks 'duration_ns'"));
    }

    #[test]
    fn kinds_are_numbered_as_the_capture_numbers_them() {
        for (number, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, number);
        }
    }
}
