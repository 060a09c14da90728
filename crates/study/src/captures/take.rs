//! Attaches, waits, lets go, writes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use capture::Unavailable;
use capture::block::BlockCapture;
use capture::server::{
    Logical, Options, PhysicalCapture, REQUEST_KINDS, RoleClock, Server, ServerAccounts,
    ServerCapture, ServerClock, ServerPhysical, Sources, TaskTimes, TransactionIo,
    by_control_group, by_data, by_pid, is_alive, requests, rows,
};
use dbms::Login;
use dbms::statistics::{Activity, Statistics};
use events::{Event, Sink, Warning};
use trace::Trace;

use super::{Capture, Ending, SCHEMA, STAGE, Written, table, with};
use crate::Error;

/// Time between two looks at the server and the user.
const LOOK: Duration = Duration::from_millis(50);

/// What to capture, and how.
pub struct Plan {
    /// What.
    pub target: Target,
    /// For how long, seconds.
    pub seconds: f64,
    /// What the files' names begin with.
    pub prefix: PathBuf,
    /// Whether the disks below are captured too.
    pub disks: bool,
    /// How the server can be asked for its counters.
    pub login: Option<(dbms::System, Login)>,
}

/// What is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The server or program that a process belongs to.
    Pid(u32),
    /// The server that owns a data directory.
    DataDirectory(PathBuf),
    /// Whatever runs in a control group.
    ControlGroup(PathBuf),
    /// A block device, whoever uses it.
    Device(PathBuf),
}

/// Takes a capture and writes its files.
///
/// # Errors
/// A target that cannot be found or seen; a place that cannot be written.
pub fn take(plan: &Plan, sink: &dyn Sink) -> Result<Capture, Error> {
    let server = match &plan.target {
        Target::Pid(pid) => by_pid(*pid)?,
        Target::DataDirectory(path) => by_data(path)?,
        Target::ControlGroup(path) => by_control_group(path)?,
        Target::Device(node) => return device(plan, node, sink),
    };
    let begun = Begun::start(plan, server)?;
    let captured = describe(&begun.server);
    let mut record = unfinished(plan, captured);
    record.server = Some(begun.server.clone());
    // Before the wait: a place that cannot be written must not cost a capture.
    record.write(&plan.prefix)?;
    let started = Instant::now();
    record.ending = wait(plan, sink, &|| {
        let doing = format!("{} calls kept", begun.logical.calls());
        let ending = if !is_alive(&begun.server) {
            Some(Ending::ServerEnded)
        } else if begun.logical.is_full() {
            Some(Ending::Full)
        } else {
            None
        };
        (doing, ending)
    });
    record.seconds = started.elapsed().as_secs_f64();
    begun.end().fill(&mut record, plan);
    finish(record, plan, sink)
}

/// The requests of one block device.
fn device(plan: &Plan, node: &std::path::Path, sink: &dyn Sink) -> Result<Capture, Error> {
    let capture: BlockCapture = capture::block::start_device(node)?;
    let name = capture.device().to_owned();
    let mut record = unfinished(plan, format!("block device {name}"));
    record.write(&plan.prefix)?;
    let started = Instant::now();
    record.ending = wait(plan, sink, &|| (format!("requests of {name}"), None));
    record.seconds = started.elapsed().as_secs_f64();
    let physical = capture.finish_whole();
    if physical.losses > 0 {
        let message = format!("{} requests of {name} were not kept", physical.losses);
        record.warnings.push(lost(message));
    }
    record.disks.push((name.clone(), rows(&physical.trace, &[], record.seconds)));
    let holds = format!("{} requests of {name}", physical.trace.count());
    write_trace(&mut record, plan, &format!("-device-{name}.parquet"), holds, &physical.trace);
    finish(record, plan, sink)
}

fn unfinished(plan: &Plan, captured: String) -> Capture {
    let place = plan.prefix.parent().filter(|parent| !parent.as_os_str().is_empty());
    Capture {
        schema: SCHEMA,
        wearmark: env!("CARGO_PKG_VERSION").to_owned(),
        captured,
        ending: Ending::Unfinished,
        asked_s: plan.seconds,
        seconds: 0.0,
        machine: crate::machine::fingerprint(place.unwrap_or(std::path::Path::new("."))),
        server: None,
        files: Vec::new(),
        calls: Vec::new(),
        disks: Vec::new(),
        roles: Vec::new(),
        own_cpu_s: 0.0,
        requests: None,
        accounts: None,
        activity: None,
        warnings: Vec::new(),
    }
}

fn describe(server: &Server) -> String {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", server.pid)).unwrap_or_default();
    match server.system {
        capture::server::System::Program => format!("{}, process {}", name.trim(), server.pid),
        system => {
            let data = server.data.display();
            format!("{}, process {}, data in {data}", system.name(), server.pid)
        }
    }
}

/// Waits for the end, tells how far it is; `look` tells what is done and whether it has to end.
fn wait(plan: &Plan, sink: &dyn Sink, look: &dyn Fn() -> (String, Option<Ending>)) -> Ending {
    let started = Instant::now();
    loop {
        let at_s = started.elapsed().as_secs_f64();
        let (doing, ending) = look();
        if let Some(ending) = ending {
            return ending;
        }
        if sink.cancelled() {
            return Ending::Interrupted;
        }
        if at_s >= plan.seconds {
            return Ending::Complete;
        }
        let (done, eta_s) = (at_s / plan.seconds, Some(plan.seconds - at_s));
        sink.emit(Event::Progress { stage: STAGE.to_owned(), done, doing, eta_s });
        let left = Duration::from_secs_f64((plan.seconds - at_s).max(0.0));
        std::thread::sleep(LOOK.min(left));
    }
}

/// Running observers.
struct Begun {
    server: Server,
    statistics: Option<(dbms::System, Login, Statistics)>,
    logical: ServerCapture,
    physical: Option<Result<PhysicalCapture, Unavailable>>,
    roles: RoleClock,
    clock: ServerClock,
}

impl Begun {
    fn start(plan: &Plan, server: Server) -> Result<Self, Error> {
        let statistics = match &plan.login {
            Some((system, login)) => {
                Some((*system, login.clone(), Statistics::read(*system, login)?))
            }
            None => None,
        };
        let physical = plan.disks.then(|| PhysicalCapture::start(&server));
        let sessions = server.system.has_sessions();
        let options = Options { client_turns: sessions, waits: sessions, processors: sessions };
        let logical =
            ServerCapture::start(&server, options).map_err(|no| no_calls(&server, &no))?;
        let roles = RoleClock::start(&server);
        let clock = ServerClock::start(&server.pids());
        Ok(Self { server, statistics, logical, physical, roles, clock })
    }

    fn end(self) -> Ended {
        // The clocks first: the captures work on for a while, and not for the server.
        let end_ns = capture::clock_ns();
        let cpu = self.clock.finish();
        let roles = self.roles.finish();
        let logical = self.logical.finish();
        let physical = self.physical.map(|physical| physical.map(PhysicalCapture::finish));
        let activity = self.statistics.map(|(system, login, before)| {
            Statistics::read(system, &login).map(|after| after.since(&before))
        });
        Ended { server: self.server, end_ns, cpu, roles, logical, physical, activity }
    }
}

/// Which ways are left where the system calls of a server cannot be seen.
fn no_calls(server: &Server, no: &Unavailable) -> Error {
    Error::Capture(capture::Error::Target {
        what: format!("{} {}", server.system.name(), server.pid),
        cause: format!("its system calls cannot be seen: {}", no.reason),
        hint: "run it as root (sudo). Without root there is left: 'wearmark capture \
               --print-commands', lines for somebody who may run them; and for a server of your \
               own, 'wearmark oltp run DIR --dbms postgresql', which measures transactions and \
               processor time without a trace"
            .to_owned(),
    })
}

/// What the observers saw.
struct Ended {
    server: Server,
    end_ns: u64,
    cpu: capture::server::ServerCpu,
    roles: TaskTimes,
    logical: Logical,
    physical: Option<Result<ServerPhysical, Unavailable>>,
    activity: Option<Result<Activity, dbms::Error>>,
}

impl Ended {
    /// Puts everything into the record and writes the files beside it.
    fn fill(mut self, record: &mut Capture, plan: &Plan) {
        let found = requests(&self.logical, self.end_ns);
        let each = found.attribute(&mut self.logical);
        let actors = self.logical.actors.iter().map(|actor| actor.role.as_str());
        let actors: Vec<&str> = actors.collect();
        record.calls = rows(&self.logical.trace, &actors, record.seconds);
        record.roles = self.roles.by_role(&self.logical.actors);
        // What `client` is elsewhere is here this program, and no client of anybody.
        record.own_cpu_s = self.cpu.client_user_s + self.cpu.client_system_s;
        (self.cpu.client_user_s, self.cpu.client_system_s) = (0.0, 0.0);
        let off = Unavailable {
            reason: "it was not captured".to_owned(),
            remedy: "leave --no-physical out".to_owned(),
        };
        let physical = self.physical.as_ref().map_or(Err(&off), Result::as_ref);
        let accounts = ServerAccounts::new(Sources {
            system: self.server.system,
            transactions: each.len() as u64,
            logical: Ok(&self.logical),
            physical,
            cpu: self.cpu.clone(),
        });
        let own = |warning| Warning { stage: STAGE.to_owned(), ..warning };
        record.warnings.extend(accounts.warnings().into_iter().map(own));
        record.warnings.extend(self.warnings(record, physical));
        record.accounts = Some(accounts);
        if self.server.system.has_sessions() {
            record.requests = Some(found.summary);
        }
        match self.activity.take() {
            Some(Ok(activity)) => record.activity = Some(activity),
            Some(Err(error)) => {
                let message = format!("the server's counters could not be read: {error}");
                record.warnings.push(Warning::new(STAGE, "no_counters", message));
            }
            None => {}
        }
        self.write(record, plan, &each);
    }

    fn warnings(
        &self,
        record: &Capture,
        physical: Result<&ServerPhysical, &Unavailable>,
    ) -> Vec<Warning> {
        let mut found = Vec::new();
        let disks = physical.map_or(&[][..], |physical| physical.disks.as_slice());
        let losses: u64 = disks.iter().map(|(_, disk)| disk.losses).sum();
        if losses > 0 {
            found.push(lost(format!("{losses} requests of the disks were not kept")));
        }
        if let (Err(no), true) = (physical, self.physical.is_some()) {
            let message = format!("the disks could not be captured: {}", no.reason);
            let warning = Warning::new(STAGE, "no_disk_capture", message);
            found.push(warning.with_hint(no.remedy.clone()));
        }
        let at = record.seconds;
        match record.ending {
            Ending::ServerEnded => {
                let message = format!("the server ended {at:.1} s into the capture");
                let hint = "what it did until then is kept; after a restart, capture it again";
                found.push(Warning::new(STAGE, "server_ended", message).with_hint(hint));
            }
            Ending::Full => {
                let message = format!("its memory was full after {at:.1} s; it ended there");
                let hint = "capture for a shorter time";
                found.push(Warning::new(STAGE, "capture_full", message).with_hint(hint));
            }
            _ => {}
        }
        found
    }

    fn write(self, record: &mut Capture, plan: &Plan, each: &[TransactionIo]) {
        let trace = &self.logical.trace;
        let holds = format!("{} calls of the server on its files", trace.count());
        write_trace(record, plan, "-logical.parquet", holds, trace);
        if let Some(Ok(physical)) = &self.physical {
            for (name, disk) in &physical.disks {
                let holds = format!("{} requests of {name}", disk.trace.count());
                let suffix = format!("-device-{name}.parquet");
                write_trace(record, plan, &suffix, holds, &disk.trace);
            }
        }
        if self.server.system.has_sessions() {
            let path = with(&plan.prefix, "-requests.csv");
            let text = table(each, |kind| REQUEST_KINDS[usize::from(kind)]);
            let result = crate::run_dir::write_atomically(&path, text.as_bytes());
            note(record, &path, format!("{} requests of clients", each.len()), result.err());
        }
    }
}

fn lost(message: String) -> Warning {
    let hint = "capture on a less busy machine, or without the disks";
    Warning::new(STAGE, "capture_loss", message).with_hint(hint)
}

fn write_trace(record: &mut Capture, plan: &Plan, suffix: &str, holds: String, trace: &Trace) {
    let path = with(&plan.prefix, suffix);
    let result = formats::own::write(trace, &path).map_err(Error::Trace);
    note(record, &path, holds, result.err());
}

/// Enters a file into the list of what is there.
fn note(record: &mut Capture, path: &std::path::Path, holds: String, failed: Option<Error>) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let missing = failed.map(|error| error.to_string());
    record.files.push(Written { name: name.unwrap_or_default(), holds, missing });
}

/// Warns, and writes the account: the last file, which says what the others hold.
fn finish(mut record: Capture, plan: &Plan, sink: &dyn Sink) -> Result<Capture, Error> {
    let missing: Vec<Warning> = record
        .files
        .iter()
        .filter_map(|file| {
            let message = format!("{}: not written: {}", file.name, file.missing.as_ref()?);
            let hint = "free some space, or choose another place with --output";
            Some(Warning::new(STAGE, "file_missing", message).with_hint(hint))
        })
        .collect();
    record.warnings.extend(missing);
    record.warnings.iter().for_each(|warning| sink.emit(Event::Warning(warning.clone())));
    record.write(&plan.prefix)?;
    Ok(record)
}
