//! All of it in one account: bytes by layer and class, per transaction, with the sums that must
//! close and what makes them suspect.
//!
//! The layers are [`Account`]s, the shape that the accounts of SQLite have, so that one reader
//! serves all three systems: `logical` is what the server asked of the file system, `physical NAME`
//! what the disk did. Sums close where the trace of a disk, class by class, agrees with the
//! kernel's own counters of that disk within [`CLOSE`].
//!
//! Tested on hand-made traces; the whole on real servers.

use std::collections::BTreeMap;

use events::Warning;
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::class::System;
use super::clock::{ServerCpu, parts_of};
use super::logical::{Logical, Unresolved};
use super::physical::{PhysicalClass, ServerPhysical};
use crate::Unavailable;
use crate::account::{Account, account};
use crate::block::Physical;

/// Largest difference between a disk's trace and the kernel's counters that closes a sum.
pub const CLOSE: f64 = 0.02;
/// Largest share of a disk's bytes by others that leaves a run undisturbed.
const FOREIGN: f64 = 0.05;
/// Interval of the rates.
const WINDOW: Nanos = Nanos(1_000_000_000);

/// Everything that was observed around a server during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAccounts {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Which server.
    pub system: System,
    /// Transactions of the measurement.
    pub transactions: u64,
    /// Bytes, requests, sizes and rates by class: `logical`, then one `physical NAME` per disk.
    pub layers: Vec<Account>,
    /// The same per transaction, without rates.
    pub per_transaction: Vec<PerTransaction>,
    /// One per disk.
    pub closures: Vec<Closure>,
    /// What the logical capture could not see; `None` where it could not run.
    pub quality: Option<Quality>,
    /// Processor time by whom.
    pub cpu: ServerCpu,
    /// The same in microseconds per transaction, by name; empty without transactions.
    pub cpu_us_per_transaction: BTreeMap<String, f64>,
    /// What could not be observed and why, one sentence each.
    pub unavailable: Vec<String>,
}

/// Figures of one class in one layer, per transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerTransaction {
    /// The layer.
    pub layer: String,
    /// The class; `all` for the total.
    pub class: String,
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Flushes.
    pub flushes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}

/// A disk's trace against the kernel's own counters of the disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closure {
    /// Name of the disk.
    pub disk: String,
    /// Bytes read and written by all classes of the trace.
    pub traced_bytes: u64,
    /// Bytes read and written by the kernel's counters.
    pub counted_bytes: u64,
    /// Difference over the counted bytes; 0 where nothing happened.
    pub difference: f64,
    /// Whether that is at most [`CLOSE`].
    pub closes: bool,
    /// Share of the bytes that belongs to no file of the server and is not the file system's own.
    pub foreign_share: f64,
}

/// What a logical capture took, and what it could not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Events lost.
    pub losses: u64,
    /// Events recorded.
    #[serde(default)]
    pub events: u64,
    /// What recording an event took the server, ns.
    #[serde(default)]
    pub event_ns: f64,
    /// Calls under way at the start or the end.
    pub unpaired: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Asynchronous I/Os, whose addresses no tracepoint shows.
    pub hidden: u64,
    /// Requests at an unknown offset of a known file.
    pub offset_unknown: u64,
    /// Requests for write-back without waiting.
    pub write_back_hints: u64,
    /// I/O on descriptors whose file could not be found out.
    pub unresolved: Unresolved,
}

/// What the observers recorded; absent where a capture was not possible.
pub struct Sources<'a> {
    /// Which server.
    pub system: System,
    /// Transactions of the measurement.
    pub transactions: u64,
    /// The logical capture.
    pub logical: Result<&'a Logical, &'a Unavailable>,
    /// The physical capture.
    pub physical: Result<&'a ServerPhysical, &'a Unavailable>,
    /// Processor time.
    pub cpu: ServerCpu,
}

impl Quality {
    /// Processor time of the server that went into recording, s.
    pub fn capture_s(&self) -> f64 {
        self.events as f64 * self.event_ns / 1e9
    }
}

impl ServerAccounts {
    /// Adds everything up.
    pub fn new(sources: Sources<'_>) -> Self {
        let Sources { system, transactions, logical, physical, cpu } = sources;
        let (mut layers, mut closures, mut unavailable) = (Vec::new(), Vec::new(), Vec::new());
        match logical {
            Ok(logical) => layers.push(account(&logical.trace, WINDOW)),
            Err(error) => unavailable.push(format!("logical I/O: {error}")),
        }
        match physical {
            Ok(physical) => {
                for (name, disk) in &physical.disks {
                    let layer = format!("physical {name}");
                    let account = Account { layer, ..account(&disk.trace, WINDOW) };
                    closures.extend(closure(name, &account, disk));
                    layers.push(account);
                }
            }
            Err(error) => unavailable.push(format!("physical I/O: {error}")),
        }
        unavailable.extend(cpu.unavailable.iter().cloned());
        let parts = parts_of(&cpu, transactions);
        Self {
            schema: 1,
            system,
            transactions,
            per_transaction: per_transaction(&layers, transactions),
            layers,
            closures,
            quality: logical.ok().map(quality),
            cpu,
            cpu_us_per_transaction: parts.into_iter().map(|(n, us)| (n.to_owned(), us)).collect(),
            unavailable,
        }
    }

    /// What makes the figures suspect.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut found = Vec::new();
        let mut add = |code: &str, message: String, hint: &str| {
            found.push(Warning::new("oltp", code, message).with_hint(hint));
        };
        let quality = self.quality.unwrap_or_default();
        if quality.losses > 0 {
            let message = format!("{} I/Os of the server were not kept", quality.losses);
            add("capture_loss", message, "shorten the measurement");
        }
        if quality.hidden > 0 {
            let message = format!("{} asynchronous I/Os show no address", quality.hidden);
            add("hidden_io", message, "set innodb_use_native_aio to off");
        }
        let unresolved = quality.unresolved.bytes as f64;
        let logical = self.layers.iter().find(|layer| layer.layer == "logical");
        let all = logical.map_or(0, |layer| layer.total.read.bytes + layer.total.write.bytes);
        if unresolved > 0.01 * all as f64 {
            let message = format!("files of {unresolved:.0} bytes of I/O could not be found out");
            add("unresolved_io", message, "use connections that last");
        }
        for closure in &self.closures {
            let disk = &closure.disk;
            if !closure.closes {
                let off = closure.difference * 100.0;
                let message = format!("{disk}: trace and kernel's counters differ by {off:.1} %");
                add("sums_open", message, "run on an idle machine");
            }
            if closure.foreign_share > FOREIGN {
                let share = closure.foreign_share * 100.0;
                let message = format!("{disk}: {share:.0} % of the bytes are other programs'");
                add("other_io", message, "run on an idle machine, or give the server its own disk");
            }
        }
        if self.cpu.disturbed {
            let share = self.cpu.foreign_share * 100.0;
            let message = format!("other programs used {share:.0} % of the processor time");
            add("other_load", message, "run on an idle machine");
        }
        found
    }
}

fn quality(logical: &Logical) -> Quality {
    Quality {
        losses: logical.losses,
        events: logical.events,
        event_ns: logical.event_ns,
        unpaired: logical.unpaired,
        failed: logical.failed,
        hidden: logical.hidden,
        offset_unknown: logical.offset_unknown,
        write_back_hints: logical.write_back_hints,
        unresolved: logical.unresolved,
    }
}

fn per_transaction(layers: &[Account], transactions: u64) -> Vec<PerTransaction> {
    if transactions == 0 {
        return Vec::new();
    }
    let per = |count: u64| count as f64 / transactions as f64;
    let rows = layers.iter().flat_map(|layer| {
        let classes = layer.classes.iter().chain([&layer.total]);
        classes.map(|class| PerTransaction {
            layer: layer.layer.clone(),
            class: class.class.clone(),
            reads: per(class.read.requests),
            writes: per(class.write.requests),
            flushes: per(class.flush.requests),
            read_bytes: per(class.read.bytes),
            written_bytes: per(class.write.bytes),
        })
    });
    rows.collect()
}

/// `None` where the kernel's counters could not be read.
fn closure(disk: &str, account: &Account, physical: &Physical) -> Option<Closure> {
    let stats = physical.stats?;
    let bytes = |class: &crate::account::ClassAccount| class.read.bytes + class.write.bytes;
    let traced_bytes = account.classes.iter().map(bytes).sum();
    let counted_bytes = (stats.read_sectors + stats.write_sectors) * 512;
    let difference = u64::abs_diff(traced_bytes, counted_bytes) as f64;
    let difference = difference / counted_bytes.max(1) as f64;
    let foreign = PhysicalClass::Foreign.name();
    let foreign = account.classes.iter().find(|class| class.class == foreign).map_or(0, bytes);
    Some(Closure {
        disk: disk.to_owned(),
        traced_bytes,
        counted_bytes,
        difference,
        closes: difference <= CLOSE,
        foreign_share: foreign as f64 / traced_bytes.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Stream, Trace};
    use units::Bytes;

    use super::*;
    use crate::diskstats::DiskStats;

    fn trace(streams: &[&str], requests: &[(Op, u32, u16)]) -> Trace {
        let mut trace = Trace {
            streams: streams.iter().map(|name| Stream { name: (*name).to_owned() }).collect(),
            ..Trace::default()
        };
        for (op, len, stream) in requests {
            let (due, offset) = (Nanos(trace.count() as u64), Bytes(0));
            trace.push(Request { due, offset, len: *len, op: *op, stream: *stream });
        }
        trace.origin.layer = "logical".to_owned();
        trace
    }

    fn sources(counted_sectors: u64) -> ServerAccounts {
        let mut logical = Logical {
            trace: trace(&["data", "log"], &[(Op::Read, 8192, 0), (Op::Write, 4096, 1)]),
            ..Logical::default()
        };
        logical.hidden = 3;
        let streams = ["data", "log", "foreign"];
        let requests = [(Op::Read, 8192, 0), (Op::Write, 8192, 1), (Op::Write, 4096, 2)];
        let stats = DiskStats { write_sectors: counted_sectors, ..DiskStats::default() };
        let disk = Physical {
            trace: trace(&streams, &requests),
            losses: 0,
            unpaired: 0,
            stats: Some(stats),
        };
        let physical = ServerPhysical { disks: vec![("vdx".to_owned(), disk)] };
        ServerAccounts::new(Sources {
            system: System::Mariadb,
            transactions: 2,
            logical: Ok(&logical),
            physical: Ok(&physical),
            cpu: ServerCpu { server_user_s: 0.5, disturbed: true, ..ServerCpu::default() },
        })
    }

    #[test]
    fn layers_and_figures_per_transaction() {
        let accounts = sources(40);
        let names: Vec<&str> = accounts.layers.iter().map(|layer| layer.layer.as_str()).collect();
        assert_eq!(names, ["logical", "physical vdx"]);
        let log = &accounts.per_transaction[1];
        assert_eq!((log.class.as_str(), log.writes, log.written_bytes), ("log", 0.5, 2048.0));
        assert_eq!(accounts.cpu_us_per_transaction["server user"], 250_000.0);
        let text = serde_json_of(&accounts);
        assert!(text.contains("\"schema\":1"), "{text}");
    }

    fn serde_json_of(accounts: &ServerAccounts) -> String {
        serde_json::to_string(accounts).expect("plain data")
    }

    #[test]
    fn sums_close_or_are_warned_of() {
        // 20480 bytes traced; 40 sectors are as many.
        let closed = sources(40);
        assert_eq!(closed.closures[0].difference, 0.0);
        assert!((closed.closures[0].foreign_share - 0.2).abs() < 1e-12);
        let codes = |accounts: &ServerAccounts| {
            accounts.warnings().into_iter().map(|warning| warning.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&closed), ["hidden_io", "other_io", "other_load"]);
        let open = sources(41);
        assert!(!open.closures[0].closes, "{:?}", open.closures);
        assert!(codes(&open).contains(&"sums_open".to_owned()));
    }

    #[test]
    fn what_could_not_be_observed_is_said() {
        let missing = Unavailable::new("kernel tracing needs root", "be root");
        let accounts = ServerAccounts::new(Sources {
            system: System::Postgresql,
            transactions: 0,
            logical: Err(&missing),
            physical: Err(&missing),
            cpu: ServerCpu::default(),
        });
        let expected =
            ["logical I/O: kernel tracing needs root", "physical I/O: kernel tracing needs root"];
        assert_eq!(accounts.unavailable, expected);
        assert!(accounts.per_transaction.is_empty() && accounts.warnings().is_empty());
    }
}
