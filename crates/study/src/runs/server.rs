//! A run on a server, with what its own counters, the kernel and the clock saw of it.
//!
//! Everything is watched from the start of the measurement to its end, and the reads of the disk
//! from the start of the load. What cannot be watched (no root, a server on another machine) is a
//! sentence in the run, never a failure.

use capture::Unavailable;
use capture::server::{
    Logical, PhysicalCapture, Server, ServerAccounts, ServerCapture, ServerClock, ServerPhysical,
    Sources, Span, System, TransactionIo, WakeCosts, attribute,
};
use dbms::statistics::{Activity, LogPosition, Statistics};
use dbms::{Instance, Login, ServerCpu};
use events::{Event, Sink};
use oltp::{Options, Phase};
use predict::Limit;
use trace::Trace;

use super::capture_cost;
use super::make::Made;
use super::start::StartWatch;
use super::{Run, ServerRun};
use crate::Error;
use crate::observe::Capture;

/// Makes one run; `instance` is none for a server that was there already.
pub(super) fn make(
    options: &Options,
    instance: Option<&Instance>,
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    let mut watch = Watch::new(options, instance, capture);
    let note_spans = instance.is_some() && capture >= Capture::Database;
    let (mut result, spans) =
        oltp::run_noted(options, note_spans, sink, &mut |phase| watch.at(phase))?;
    if let Some(instance) = instance {
        instance.check()?;
    }
    // Those of the measurement, and those before it.
    let (mut measured, mut before) = (Vec::new(), Vec::new());
    let first_ns = spans.iter().filter(|span| span.measured).map(|span| span.start_ns).min();
    for span in &spans {
        let oltp::Span { task, start_ns, end_ns, .. } = *span;
        let own = Span { kind: span.kind.code() as u16, task, start_ns, end_ns };
        if span.measured {
            measured.push(own);
        } else if first_ns.is_some_and(|first_ns| start_ns < first_ns) {
            before.push(own);
        }
    }
    let codes = result.dataset.workload().codes();
    let mut seen = watch.finish(result.cpu.transactions, codes, &measured, &before);
    let is_asked = capture == Capture::WithItsCost && !seen.transactions.is_empty();
    if let Some(server) = instance.and_then(observed).filter(|_| is_asked) {
        let begin = || begin_capture(&server, capture);
        seen.server.capture_cost = capture_cost::measure(options, sink, &begin);
    }
    for warning in seen.server.accounts.iter().flat_map(ServerAccounts::warnings) {
        sink.emit(Event::Warning(warning.clone()));
        result.warnings.push(warning);
    }
    let run = Run { at: String::new(), result, accounts: None, server: Some(seen.server) };
    Ok(Made { run, traces: seen.traces, transactions: seen.transactions })
}

/// What is watched of a server beside its files.
const WATCHED: capture::server::Options =
    capture::server::Options { client_turns: true, waits: false, processors: true };

/// The captures of a run, which end when they are dropped.
fn begin_capture(
    server: &Server,
    capture: Capture,
) -> (Option<PhysicalCapture>, Option<ServerCapture>) {
    let physical =
        (capture >= Capture::BlockLayer).then(|| PhysicalCapture::start(server).ok()).flatten();
    (physical, ServerCapture::start(server, WATCHED).ok())
}

/// What is kept of a watch.
struct Seen {
    server: ServerRun,
    traces: Vec<(String, Trace)>,
    transactions: Vec<TransactionIo>,
}

/// The observers of one run.
struct Watch<'a> {
    instance: Option<&'a Instance>,
    system: dbms::System,
    login: Login,
    capture: Capture,
    /// The reads from the start of the load.
    start: Option<StartWatch>,
    begun: Option<Begun>,
    ended: Option<Ended>,
}

/// What was started at the beginning of the measurement.
struct Begun {
    cpu: Option<ServerCpu>,
    statistics: Option<Statistics>,
    clock: Option<ServerClock>,
    logical: Option<Result<ServerCapture, Unavailable>>,
    physical: Option<Result<PhysicalCapture, Unavailable>>,
}

/// What came of it.
struct Ended {
    cpu: Option<ServerCpu>,
    activity: Option<Activity>,
    clock: Option<capture::server::ServerCpu>,
    logical: Option<Result<Logical, Unavailable>>,
    physical: Option<Result<ServerPhysical, Unavailable>>,
}

impl<'a> Watch<'a> {
    fn new(options: &Options, instance: Option<&'a Instance>, capture: Capture) -> Self {
        let system = match &options.database {
            oltp::Database::Mariadb(_) => dbms::System::Mariadb,
            _ => dbms::System::Postgresql,
        };
        let settings = options.database.server().expect("a run on a server has its settings");
        let login = settings.login(options.workload);
        Self { instance, system, login, capture, start: None, begun: None, ended: None }
    }

    fn at(&mut self, phase: Phase) {
        match phase {
            Phase::WarmUp => {
                let server = self.instance.filter(|_| self.capture >= Capture::Database);
                self.start = server.and_then(|own| {
                    let log = LogPosition::ask(self.system, &self.login).ok().flatten();
                    StartWatch::begin(observed(own).as_ref(), log, &own.files().data)
                });
            }
            Phase::Measurement => {
                self.start.iter_mut().for_each(StartWatch::warmed_up);
                self.begun = Some(self.begin());
            }
            Phase::End => self.ended = self.begun.take().map(|begun| self.end(begun)),
        }
    }

    fn begin(&self) -> Begun {
        let server = self.instance.and_then(observed);
        let logical = server.as_ref().filter(|_| self.capture >= Capture::Database);
        let physical = server.as_ref().filter(|_| self.capture >= Capture::BlockLayer);
        Begun {
            statistics: Statistics::read(self.system, &self.login).ok(),
            physical: physical.map(PhysicalCapture::start),
            logical: logical.map(|server| ServerCapture::start(server, WATCHED)),
            clock: server.map(|server| ServerClock::start(&server.pids())),
            cpu: self.instance.map(Instance::cpu),
        }
    }

    fn end(&self, begun: Begun) -> Ended {
        let now = self.instance.map(Instance::cpu);
        let cpu = now.zip(begun.cpu).map(|(now, begin)| ServerCpu {
            user_s: now.user_s - begin.user_s,
            system_s: now.system_s - begin.system_s,
        });
        let mut clock = begun.clock.map(ServerClock::finish);
        let logical = begun.logical.map(|capture| capture.map(ServerCapture::finish));
        let physical = begun.physical.map(|capture| capture.map(PhysicalCapture::finish));
        // The load has ended, and nothing is recorded any more: processors idle.
        if let Some(clock) = &mut clock {
            clock.wakes = WakeCosts::measure();
        }
        let later = Statistics::read(self.system, &self.login).ok();
        let activity = later.zip(begun.statistics).map(|(later, earlier)| later.since(&earlier));
        Ended { cpu, activity, clock, logical, physical }
    }

    fn finish(self, transactions: u64, kinds: usize, spans: &[Span], before: &[Span]) -> Seen {
        let mut server = ServerRun {
            settings: self.instance.map(|instance| instance.settings().clone()),
            places: self.instance.map(|instance| instance.places().clone()),
            notes: match self.instance {
                Some(instance) => instance.notes(),
                None => dbms::statistics::limits(&self.login),
            },
            cpu: None,
            activity: None,
            accounts: None,
            limits: Vec::new(),
            capture_cost: None,
            start: self.start.and_then(|watch| watch.finish(before, kinds)),
        };
        let (mut traces, mut each) = (Vec::new(), Vec::new());
        let Some(mut ended) = self.ended else {
            return Seen { server, traces, transactions: each };
        };
        server.cpu = ended.cpu;
        server.activity = ended.activity;
        if let Some(Ok(logical)) = &mut ended.logical {
            each = attribute(logical, spans);
            server.limits = limits(&logical.trace, &each);
        }
        if let Some(cpu) = ended.clock {
            let off = Unavailable {
                reason: "it was not captured".to_owned(),
                remedy: "run without --no-capture".to_owned(),
            };
            server.accounts = Some(ServerAccounts::new(Sources {
                system: watched(self.system),
                transactions,
                logical: result(ended.logical.as_ref(), &off),
                physical: result(ended.physical.as_ref(), &off),
                cpu,
            }));
        }
        if let Some(Ok(logical)) = ended.logical {
            traces.push(("logical".to_owned(), logical.trace));
        }
        if let Some(Ok(physical)) = ended.physical {
            let disks = physical.disks.into_iter();
            traces.extend(disks.map(|(name, disk)| (format!("device-{name}"), disk.trace)));
        }
        Seen { server, traces, transactions: each }
    }
}

/// What the response time of the transactions went to: their own I/O and the wait for another's
/// flush of the log are seen as such, and so is the client; the rest is computing and waiting for a
/// processor or a lock.
fn limits(logical: &Trace, each: &[TransactionIo]) -> Vec<Limit> {
    let Some((service, chains)) = logical.captured() else { return Vec::new() };
    let log_class = logical.streams.iter().position(|stream| stream.name == "log");
    let (mut log, mut data) = (0, 0);
    for at in (0..logical.count()).filter(|&at| chains.transaction[at] != 0) {
        let is_log = Some(usize::from(logical.stream[at])) == log_class;
        *(if is_log { &mut log } else { &mut data }) += service[at];
    }
    let sum = |of: fn(&TransactionIo) -> u64| each.iter().map(of).sum::<u64>();
    let all = sum(|one| one.duration_ns);
    let parts = [
        ("log flush", log + sum(|one| one.shared_commit_ns)),
        ("data files", data),
        ("client", sum(|one| one.client_ns)),
        ("processors and locks", sum(|one| one.gap_ns)),
    ];
    let mut limits: Vec<Limit> = parts
        .into_iter()
        .filter(|(_, ns)| all > 0 && *ns > 0)
        .map(|(what, ns)| Limit { what: what.to_owned(), share: ns as f64 / all as f64 })
        .collect();
    limits.sort_by(|a, b| b.share.total_cmp(&a.share));
    limits
}

fn result<'a, T>(
    found: Option<&'a Result<T, Unavailable>>,
    off: &'a Unavailable,
) -> Result<&'a T, &'a Unavailable> {
    found.map_or(Err(off), Result::as_ref)
}

fn watched(system: dbms::System) -> System {
    match system {
        dbms::System::Postgresql => System::Postgresql,
        dbms::System::Mariadb => System::Mariadb,
    }
}

/// The instance as the captures know it.
fn observed(instance: &Instance) -> Option<Server> {
    let (files, places) = (instance.files(), instance.places());
    Some(Server {
        log: places.log.as_ref().map(|_| files.log.clone()),
        temp: places.temp.as_ref().map(|_| files.temp.clone()),
        undo: places.undo.as_ref().map(|_| files.undo.clone()),
        ..Server::new(watched(instance.system()), instance.pid()?, files.data.clone())
    })
}

#[cfg(test)]
mod tests {
    use trace::{Op, Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    /// Two transactions of 100 ns: 30 in the log's calls, 10 in the data's, 20 behind the flush of
    /// another, 40 at the client, the rest computing. A call of the background counts for neither.
    #[test]
    fn the_time_of_transactions_is_divided_by_what_was_seen() {
        let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() });
        let mut logical = Trace { streams: streams.to_vec(), ..Trace::default() };
        let one = |service, shared_commit_ns, client_ns| TransactionIo {
            duration_ns: 100,
            service_ns: service,
            shared_commit_ns,
            client_ns,
            gap_ns: 100 - service - shared_commit_ns - client_ns,
            ..TransactionIo::default()
        };
        let each = [one(40, 0, 20), one(0, 20, 20)];
        for (stream, service, transaction) in [(1, 30, 1), (0, 10, 1), (1, 500, 0)] {
            let request =
                Request { due: Nanos(0), offset: Bytes(0), len: 1, op: Op::Write, stream };
            logical.push_captured(request, Nanos(service), 0, transaction);
        }
        let found = limits(&logical, &each);
        let found: Vec<(&str, f64)> =
            found.iter().map(|limit| (limit.what.as_str(), limit.share)).collect();
        assert_eq!(
            found,
            [
                ("processors and locks", 0.5),
                ("log flush", 0.25),
                ("client", 0.2),
                ("data files", 0.05)
            ]
        );
    }
}
