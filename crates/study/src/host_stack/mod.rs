//! A logical trace through the host stack: what the device gets for it, the account by layer and
//! cause as a table, the same calls on a real host beside it, and what is above devices.

mod above;
mod beside;
mod real;

use std::path::Path;
use std::time::{Duration, Instant};

use events::{Event, Sink, Warning};
use host::file_system::Cause;
use host::{Account, Asked, FileLayer, Spec, Stack, Traffic};
use report::{Axis, BarSeries, Column, Figure, Section, Table, format};
use serde::Serialize;
use trace::Trace;

use crate::Error;
pub use above::Devices;
pub use beside::{Beside, Side};
pub use real::{Real, really};

/// Requests between two looks at the clock and at what the user wants.
const AT_ONCE: usize = 1 << 16;

/// Requests that are looked ahead for together.
const LOOK_AHEAD: usize = 32;

/// Reads a `stack.toml`.
///
/// # Errors
/// Where it cannot be read or is no stack that can exist.
pub fn read_spec(path: &Path) -> Result<Spec, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    Ok(Spec::from_toml(&text, &path.display().to_string())?)
}

/// What the device gets for `logical` below the host `spec`, and the account; `None` where the
/// user stopped it.
///
/// # Errors
/// Where the trace is malformed.
pub fn below(
    spec: &FileLayer,
    logical: &Trace,
    sink: &dyn Sink,
) -> Result<Option<(Trace, Account)>, Error> {
    logical.validate().map_err(sim::Error::Malformed)?;
    if logical.origin.layer == "device" {
        let message = "the trace shows what a device got: its requests have passed a host already";
        sink.emit(Event::Warning(Warning::new("host", "below_a_host", message).with_hint(
            "use the trace of calls that a capture writes beside it (PREFIX-logical.parquet)",
        )));
    }
    let mut stack = Stack::new(spec, logical);
    let (start, mut told) = (Instant::now(), Instant::now());
    for (index, request) in logical.requests().enumerate() {
        if index % LOOK_AHEAD == 0 {
            let soon = index..logical.count().min(index + LOOK_AHEAD);
            soon.for_each(|index| stack.look_ahead(&logical.request(index)));
        }
        stack.submit(&request)?;
        if index % AT_ONCE == 0 {
            if sink.cancelled() {
                return Ok(None);
            }
            if told.elapsed() > Duration::from_secs(2) {
                told = Instant::now();
                let done = index as f64 / logical.count() as f64;
                sink.emit(Event::Progress {
                    stage: "host".to_owned(),
                    done,
                    doing: format!("{index} calls through the host"),
                    eta_s: Some(start.elapsed().as_secs_f64() * (1.0 - done) / done),
                });
            }
        }
    }
    Ok(Some(stack.finish()))
}

/// The account as rows of cells, the first one the header.
pub fn text(account: &Account) -> Vec<Vec<String>> {
    let header = ["LAYER", "READS", "READ", "WRITES", "WRITTEN", "FLUSHES"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(lines(account));
    rows
}

/// A host by its name, and what it made of the calls.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// The name of its file.
    pub name: String,
    /// Requests and bytes by layer and cause.
    #[serde(flatten)]
    pub account: Account,
}

/// The accounts as sections of a page; several are compared in a picture first.
pub fn sections(hosts: &[Host]) -> Vec<Section> {
    let mut sections = Vec::new();
    if hosts.len() > 1 {
        sections.push(
            Section::new("hosts", "What the hosts write")
                .figure(written(
                    "hosts-bytes",
                    "Bytes written to the device",
                    "B",
                    hosts,
                    |asked| asked.write.bytes,
                ))
                .figure(written("hosts-writes", "Writes to the device", "", hosts, |asked| {
                    asked.write.requests
                })),
        );
    }
    sections
        .extend(hosts.iter().enumerate().map(|(index, host)| section(index, host, hosts.len())));
    sections
}

/// A bar per host, in parts by cause.
fn written(id: &str, title: &str, unit: &str, hosts: &[Host], of: fn(&Asked) -> u64) -> Figure {
    let names = hosts.iter().map(|host| host.name.clone()).collect();
    let value = |host: &Host, cause: &str| host.account.causes.get(cause).map_or(0, of) as f64;
    let causes = Cause::ALL.iter().map(|cause| cause.name());
    let seen = causes.filter(|cause| hosts.iter().any(|host| value(host, cause) > 0.0));
    let series = seen.map(|cause| {
        let values = hosts.iter().map(|host| value(host, cause)).collect();
        BarSeries::new(cause.replace('_', " "), values)
    });
    Figure::stacked_bars(id, title, names, Axis::linear("Written", unit), series.collect())
}

fn section(index: usize, host: &Host, count: usize) -> Section {
    let columns = vec![
        Column::text("Layer"),
        Column::number("Reads", ""),
        Column::number("Read", ""),
        Column::number("Writes", ""),
        Column::number("Written", ""),
        Column::number("Flushes", ""),
    ];
    let id = format!("host-{index}");
    let table = Table::new(&id, "Requests and bytes by layer and cause", columns).caption(
        "Calls are what the trace holds. Bytes kept were read from memory, overwritten there \
         before they were written back, or are dirty at the end. Filled are ends of blocks.",
    );
    let table = lines(&host.account).into_iter().fold(table, Table::row);
    let title = match count {
        1 => "What the host makes of it".to_owned(),
        _ => format!("What {} makes of it", host.name),
    };
    Section::new(format!("{id}-account"), title).table(table)
}

fn lines(account: &Account) -> Vec<Vec<String>> {
    let kept = &account.kept;
    let bytes = |bytes: u64| if bytes == 0 { dash() } else { format::bytes(bytes as f64) };
    let only = |name: &str, read: u64, written: u64| {
        vec![name.to_owned(), dash(), bytes(read), dash(), bytes(written), dash()]
    };
    let mut rows = vec![line("calls", &account.logical)];
    rows.push(only("kept in memory", kept.hit_bytes, kept.absorbed_bytes + kept.dirty_bytes));
    rows.push(only("holes", kept.hole_bytes, 0));
    rows.push(only("filled", account.read_padding_bytes, account.write_padding_bytes));
    rows.push(only("read ahead beside", account.read_ahead_beside_bytes, 0));
    rows.retain(|row| row[1..].iter().any(|cell| *cell != dash()));
    rows.push(line("device", &account.physical));
    rows.extend(account.causes.iter().map(|(cause, asked)| line(&format!("- {cause}"), asked)));
    rows
}

fn line(name: &str, asked: &Asked) -> Vec<String> {
    let number = |count: u64| if count == 0 { dash() } else { count.to_string() };
    let of = |traffic: &Traffic| {
        let bytes = if traffic.bytes == 0 { dash() } else { format::bytes(traffic.bytes as f64) };
        [number(traffic.requests), bytes]
    };
    let mut row = vec![name.to_owned()];
    row.extend(of(&asked.read));
    row.extend(of(&asked.write));
    row.push(number(asked.flushes));
    row
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    #[derive(Default)]
    struct Said(std::sync::Mutex<Vec<String>>);
    impl Sink for Said {
        fn emit(&self, event: Event) {
            if let Event::Warning(warning) = event {
                self.0.lock().unwrap().push(warning.code);
            }
        }
    }

    /// A log that is overwritten block by block, each with its sync.
    fn log(layer: &str) -> Trace {
        let streams = vec![Stream { name: "log".to_owned() }];
        let mut trace = Trace { streams, ..Trace::default() };
        layer.clone_into(&mut trace.origin.layer);
        for at in 0..200 {
            let due = Nanos(at * 10_000_000);
            let write =
                Request { due, offset: Bytes(at * 4096), len: 4096, op: Op::Write, stream: 0 };
            trace.push(write);
            trace.push(Request { len: 0, offset: Bytes(0), op: Op::Flush, ..write });
        }
        trace
    }

    #[test]
    fn a_commit_costs_a_write_and_a_flush_and_the_rows_say_so() {
        let stack = "[page_cache]\nmemory = \"64MiB\"\n[file_system]\nkind = \"ext4\"\n";
        let spec = Spec::from_toml(stack, "stack.toml").unwrap().file_layer.unwrap();
        let said = Said::default();
        let (physical, account) = below(&spec, &log("logical"), &said).unwrap().unwrap();
        assert_eq!((physical.count(), account.logical.flushes), (400, 200));
        let rows = text(&account);
        assert_eq!(rows[1].join(" "), "calls - - 200 800 KiB 200");
        let device = rows.iter().find(|row| row[0] == "device").unwrap();
        assert_eq!(device.join(" "), "device - - 200 800 KiB 200");
        assert!(said.0.lock().unwrap().is_empty());
        below(&spec, &log("device"), &said).unwrap();
        assert_eq!(*said.0.lock().unwrap(), ["below_a_host"]);
    }
}
