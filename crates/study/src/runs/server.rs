//! A run on a server, with what its own counters, the kernel and the clock saw of it.
//!
//! Everything is watched from the start of the measurement to its end. What cannot be watched (no
//! root, a server on another machine) is a sentence in the run, never a failure.

use capture::Unavailable;
use capture::server::{
    Logical, PhysicalCapture, Server, ServerAccounts, ServerCapture, ServerClock, ServerPhysical,
    Sources, Span, System, TransactionIo, attribute,
};
use dbms::statistics::{Activity, Statistics};
use dbms::{Instance, Login, ServerCpu};
use events::{Event, Sink};
use oltp::{Options, Phase};

use super::make::Made;
use super::{Run, ServerRun};
use crate::Error;
use crate::stages::oltp::Capture;

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
    let transactions: Vec<Span> = spans
        .iter()
        .map(|span| Span {
            kind: span.kind as u16,
            task: span.task,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
        })
        .collect();
    let seen = watch.finish(result.cpu.transactions, &transactions);
    for warning in seen.server.accounts.iter().flat_map(ServerAccounts::warnings) {
        sink.emit(Event::Warning(warning.clone()));
        result.warnings.push(warning);
    }
    let run = Run { at: String::new(), result, accounts: None, server: Some(seen.server) };
    Ok(Made { run, traces: seen.traces, transactions: seen.transactions })
}

/// What is kept of a watch.
struct Seen {
    server: ServerRun,
    traces: Vec<(String, trace::Trace)>,
    transactions: Vec<TransactionIo>,
}

/// The observers of one run.
struct Watch<'a> {
    instance: Option<&'a Instance>,
    system: dbms::System,
    login: Login,
    capture: Capture,
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
        Self { instance, system, login, capture, begun: None, ended: None }
    }

    fn at(&mut self, phase: Phase) {
        match phase {
            Phase::WarmUp => {}
            Phase::Measurement => self.begun = Some(self.begin()),
            Phase::End => self.ended = self.begun.take().map(|begun| self.end(begun)),
        }
    }

    fn begin(&self) -> Begun {
        let server = self.instance.and_then(observed);
        let logical = server.as_ref().filter(|_| self.capture >= Capture::Database);
        let physical = server.as_ref().filter(|_| self.capture >= Capture::BlockLayer);
        let turns = capture::server::Options { client_turns: true };
        Begun {
            statistics: Statistics::read(self.system, &self.login).ok(),
            physical: physical.map(PhysicalCapture::start),
            logical: logical.map(|server| ServerCapture::start(server, turns)),
            clock: server.map(|server| ServerClock::start(server.pid)),
            cpu: self.instance.map(Instance::cpu),
        }
    }

    fn end(&self, begun: Begun) -> Ended {
        let now = self.instance.map(Instance::cpu);
        let cpu = now.zip(begun.cpu).map(|(now, begin)| ServerCpu {
            user_s: now.user_s - begin.user_s,
            system_s: now.system_s - begin.system_s,
        });
        let clock = begun.clock.map(ServerClock::finish);
        let logical = begun.logical.map(|capture| capture.map(ServerCapture::finish));
        let physical = begun.physical.map(|capture| capture.map(PhysicalCapture::finish));
        let later = Statistics::read(self.system, &self.login).ok();
        let activity = later.zip(begun.statistics).map(|(later, earlier)| later.since(&earlier));
        Ended { cpu, activity, clock, logical, physical }
    }

    fn finish(self, transactions: u64, spans: &[Span]) -> Seen {
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
        };
        let (mut traces, mut each) = (Vec::new(), Vec::new());
        let Some(mut ended) = self.ended else {
            return Seen { server, traces, transactions: each };
        };
        server.cpu = ended.cpu;
        server.activity = ended.activity;
        if let Some(Ok(logical)) = &mut ended.logical {
            each = attribute(logical, spans);
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
        system: watched(instance.system()),
        pid: instance.pid()?,
        data: files.data.clone(),
        log: places.log.as_ref().map(|_| files.log.clone()),
        temp: places.temp.as_ref().map(|_| files.temp.clone()),
        undo: places.undo.as_ref().map(|_| files.undo.clone()),
    })
}
