//! Whether a server keeps what it has acknowledged, tried by killing it under load.
//!
//! [`torture`] makes a private instance, loads it, and then in cycles: terminals work, at a random
//! moment all processes of the server are killed and (unless [`Loss::Process`]) everything that it
//! had not synced is taken away, the server recovers, and the database is compared with what was
//! acknowledged (`ledger.rs`). In the spirit of TPC-C 5.11 clause 3.5, durability, with the
//! loss of unsynced writes that a power cut brings. `dbms::lossy` says how the loss is made.
//!
//! Invariants: what was acknowledged is kept in our memory, which no kill reaches; a failure before
//! the kill is an error of the run, never a finding; the first finding ends it; the moments and
//! losses are functions of the seed (what the server does in that time is not). Tested on real
//! servers, durable ones and ones that must be caught (`tests/it/torture.rs`).

mod ask;
mod finding;
mod herd;
mod ledger;
mod options;
mod result;

use std::time::{Duration, Instant};

use dbms::lossy::Fate;
use dbms::{Instance, Login, System};
use events::{Ending, Event, Sink, Step};

pub use finding::Finding;
pub use options::{Loss, TortureOptions};
pub use result::{CycleResult, TortureResult};

use crate::Error;
use crate::driver::Dbms;
use crate::options::{Database, ServerSettings};
use crate::workload::nurand::Constants;
use crate::workload::{Dataset, Mix, Own, Source};
use ask::Asked;
use herd::{Done, Herd};
use ledger::{Ledger, Look};

const STAGE: &str = "torture";

/// Sequence numbers that one cycle may use.
const SEQUENCES: u64 = 1 << 32;

/// Conditions that are cheap enough for every cycle, as counts of violations; the clause of each
/// stands in front.
const CHEAP: &[(&str, &str)] = &[
    (
        "3.3.2.1",
        "SELECT count(*) FROM warehouse WHERE w_ytd <> \
         (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        "3.3.2.2",
        "SELECT count(*) FROM district WHERE d_next_o_id - 1 <> \
         (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)",
    ),
    (
        "3.3.2.4",
        "SELECT abs((SELECT sum(o_ol_cnt) FROM orders) - (SELECT count(*) FROM order_line))",
    ),
];

/// Makes an instance, tortures it and removes it.
///
/// A finding is not an error: see [`TortureResult::passed`]. A stop by the user keeps what was
/// done.
///
/// # Errors
/// Options without meaning; an instance that cannot be made; a machine on which unsynced writes
/// cannot be taken away; whatever goes wrong before a kill.
pub fn torture(options: &TortureOptions, sink: &dyn Sink) -> Result<TortureResult, Error> {
    options.validate()?;
    let expected_s = f64::from(options.cycles) * (options.longest.as_secs_f64() * 0.55 + 1.0);
    let step = Step { name: STAGE.to_owned(), expected_s, writes_bytes: 0 };
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: vec![step] });
    let start = Instant::now();
    let result = run(options, sink);
    let ending = match &result {
        Ok(result) if result.interrupted => Ending::Interrupted,
        Ok(_) => Ending::Complete,
        Err(_) => Ending::Failed,
    };
    let elapsed_s = start.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    result
}

fn run(options: &TortureOptions, sink: &dyn Sink) -> Result<TortureResult, Error> {
    let server = |doing: &str| {
        let doing = doing.to_owned();
        move |source: dbms::Error| Error::Server { doing, source: source.into() }
    };
    if options.loss != Loss::Process
        && let Some(why) = Instance::forgetful_missing()
    {
        let what = "a place that forgets what is not synced";
        return Err(server("looking at the machine")(dbms::Error::Unavailable { what, why }));
    }
    let settings = dbms::Settings {
        connections: options.settings.connections.max(options.users + 5),
        ..options.settings.clone()
    };
    progress(sink, 0.0, "creating the instance");
    let instance = Instance::create(options.system, &options.places, &settings, sink);
    let mut instance = instance.map_err(server("creating the instance"))?.temporary();
    instance.start(sink).map_err(server("starting the server"))?;
    let mut torture = Torture { options, instance, ledger: Ledger::default(), source: None };
    let result = torture.all(sink)?;
    torture.instance.remove().map_err(server("removing the instance"))?;
    Ok(result)
}

fn progress(sink: &dyn Sink, done: f64, doing: impl Into<String>) {
    let (stage, doing) = (STAGE.to_owned(), doing.into());
    sink.emit(Event::Progress { stage, done, doing, eta_s: None });
}

/// One torture under way.
struct Torture<'a> {
    options: &'a TortureOptions,
    instance: Instance,
    ledger: Ledger,
    source: Option<Source>,
}

impl Torture<'_> {
    fn error(doing: &str, source: dbms::Error) -> Error {
        Error::Server { doing: doing.to_owned(), source: source.into() }
    }

    /// The workload's view of the server; a fresh one after each start.
    fn dbms(&self) -> Result<Box<dyn Dbms>, Error> {
        let login = self.instance.login();
        let mut settings = ServerSettings::new(login.address, login.user);
        settings.access = self.options.access;
        settings.connections = self.options.users;
        let database = match self.options.system {
            System::Postgresql => Database::Postgresql(settings),
            System::Mariadb => Database::Mariadb(settings),
        };
        database.dbms(self.options.dataset.workload())
    }

    /// The login for the workload's own database.
    fn login(&self) -> Login {
        let database = self.options.dataset.workload().identifier().to_owned();
        Login { database, ..self.instance.login() }
    }

    fn all(&mut self, sink: &dyn Sink) -> Result<TortureResult, Error> {
        let dbms = self.prepare(sink)?;
        let mut result = TortureResult {
            schema: 1,
            dbms,
            options: self.options.clone(),
            cycles: Vec::new(),
            acknowledged: 0,
            lost: 0,
            unasked: 0,
            damage: None,
            finding: None,
            conditions: Vec::new(),
            interrupted: false,
            notes: notes(self.options),
        };
        for number in 1..=self.options.cycles {
            let done = f64::from(number - 1) / f64::from(self.options.cycles);
            let doing = format!(
                "cycle {number}: {} acknowledged, {} lost",
                result.acknowledged, result.lost
            );
            progress(sink, done, doing);
            let (cycle, interrupted, damage) = self.cycle(number, sink)?;
            result.add(cycle);
            result.interrupted = interrupted;
            result.finding = damage.as_ref().and_then(|damage| Finding::of(self.options, damage));
            result.damage = damage;
            // What comes after a loss proves nothing more.
            if result.interrupted || !result.passed() {
                break;
            }
        }
        if result.damage.is_none() {
            self.finish(&mut result);
        }
        Ok(result)
    }

    /// Loads, and starts the server where it can be hurt. Everything so far is durable.
    fn prepare(&mut self, sink: &dyn Sink) -> Result<String, Error> {
        let dbms = self.dbms()?;
        progress(sink, 0.0, "loading");
        dbms.load(self.options.dataset, self.options.seed, sink)?;
        dbms.count_run()?;
        let (version, meta) = (dbms.version()?, dbms.meta()?);
        drop(dbms);
        let constants = Constants::for_run(self.options.seed, meta.c_last_load);
        let source = self.options.dataset.source(Mix::NORMAL, self.options.seed, constants);
        self.source = Some(source);
        self.instance.stop().map_err(|source| Self::error("stopping the server", source))?;
        self.start(sink).map_err(|source| Self::error("starting the server", source))?;
        let mut asked = Asked::new(self.options.system, self.login());
        self.ledger = Ledger::open(&self.options.dataset, &mut |sql| asked.rows(sql))
            .map_err(|source| Self::error("counting what is loaded", source))?;
        Ok(version)
    }

    fn start(&mut self, sink: &dyn Sink) -> Result<(), dbms::Error> {
        match self.options.loss {
            Loss::Process => self.instance.start(sink),
            Loss::Unsynced | Loss::Torn => self.instance.start_forgetful(self.options.lies, sink),
        }
    }

    /// One cycle; whether the user stopped it, and what damage makes it the last.
    fn cycle(
        &mut self,
        number: u32,
        sink: &dyn Sink,
    ) -> Result<(CycleResult, bool, Option<String>), Error> {
        let chance = stats::rng::at(self.options.seed, u64::from(number));
        let fate = match self.options.loss {
            Loss::Torn => Fate::Some { seed: chance },
            Loss::Process | Loss::Unsynced => Fate::All,
        };
        let share = 0.1 + 0.9 * (chance >> 11) as f64 / (1u64 << 53) as f64;
        let how_long = Duration::from_nanos((self.options.longest.0 as f64 * share) as u64);
        let dbms = self.dbms()?;
        let driver = dbms.driver(self.options.dataset)?;
        let source = self.source.clone().expect("it was prepared");
        let herd = Herd {
            driver: &*driver,
            source: &source,
            users: self.options.users,
            sequence: u64::from(number) * SEQUENCES,
        };
        let instance = &mut self.instance;
        let (done, cut) = herd.run(how_long, sink, || instance.cut_power(fate))?;
        drop(driver);
        drop(dbms);
        let (lost, counts) = cut.map_err(|source| Self::error("cutting the power", source))?;
        let mut cycle = CycleResult {
            number,
            worked_ms: done.worked.as_secs_f64() * 1e3,
            acknowledged: done.acknowledged,
            in_flight: done.in_flight.len() as u64,
            retries: done.retries,
            syncs: counts.syncs,
            unsynced_bytes: lost.bytes,
            unsynced_names: lost.names,
            ..CycleResult::default()
        };
        let start = Instant::now();
        // A stop by the user waits for this recovery: it is part of the cycle.
        let damage = match self.start(&events::Quiet) {
            Ok(()) => {
                cycle.recovery_ms = start.elapsed().as_secs_f64() * 1e3;
                self.compare(&done, &mut cycle)
                    .err()
                    .map(|error| format!("after recovery: {error}"))
            }
            Err(error @ (dbms::Error::Crashed { .. } | dbms::Error::Timeout { .. })) => {
                Some(error.to_string())
            }
            Err(source) => return Err(Self::error("recovering", source)),
        };
        let damage = damage.or_else(|| self.invariants(&mut cycle));
        Ok((cycle, done.interrupted, damage))
    }

    /// Compares the recovered database with what was acknowledged.
    fn compare(&mut self, done: &Done, cycle: &mut CycleResult) -> Result<(), dbms::Error> {
        let mut asked = Asked::new(self.options.system, self.login());
        let dataset = &self.options.dataset;
        let look =
            self.ledger.look(dataset, &done.facts, &done.in_flight, &mut |sql| asked.rows(sql))?;
        let Look { lost, unasked, survived, examples } = look;
        (cycle.lost, cycle.unasked, cycle.survived) = (lost, unasked, survived);
        cycle.examples = examples;
        if matches!(dataset, Dataset::OrderEntry(_)) {
            for (clause, sql) in CHEAP {
                let rows = asked.rows(sql)?;
                let found = rows.first().and_then(|row| row.first().copied()).unwrap_or(0);
                if found != 0 {
                    cycle.inconsistent += found as u64;
                    cycle.examples.push(format!("condition {clause} is violated {found} times"));
                }
            }
        }
        Ok(())
    }

    /// The invariants of an own workload, after each recovery; why they cannot be asked for.
    fn invariants(&self, cycle: &mut CycleResult) -> Option<String> {
        if !matches!(self.options.dataset, Dataset::Own(_)) {
            return None;
        }
        match self.dbms().and_then(|dbms| dbms.check()) {
            Ok(conditions) => {
                for condition in conditions.iter().filter(|condition| !condition.holds) {
                    cycle.inconsistent += condition.violations;
                    let first = condition.detail.first().map_or("", String::as_str);
                    let states = &condition.states;
                    cycle.examples.push(format!("'{states}' is violated, first by {first}"));
                }
                None
            }
            Err(error) => Some(format!("the invariants cannot be checked: {error}")),
        }
    }

    /// All conditions, and every order of every cycle once more.
    fn finish(&mut self, result: &mut TortureResult) {
        let checked = self.dbms().and_then(|dbms| dbms.check());
        match checked {
            Ok(conditions) => result.conditions = conditions,
            Err(error) => {
                result.damage = Some(format!("the conditions cannot be checked: {error}"));
            }
        }
        let mut asked = Asked::new(self.options.system, self.login());
        // What was missing after its own recovery is counted already.
        let known: u64 = result.cycles.iter().map(|cycle| cycle.lost).sum();
        match self.ledger.look_again(&mut |sql| asked.rows(sql)) {
            Ok(look) if look.lost > known => {
                result.lost += look.lost - known;
                if let Some(cycle) = result.cycles.last_mut() {
                    cycle.examples.extend(look.examples);
                }
            }
            Ok(_) => {}
            Err(error) => result.damage = Some(format!("the orders cannot be read: {error}")),
        }
    }
}

/// Which transactions of an own workload nobody can ask for.
fn own_note(own: Own) -> Option<String> {
    let body = own.body().ok()?;
    let unasked = own.kinds().iter().zip(&body.programs);
    let unasked = unasked.filter(|(kind, program)| kind.writes() && program.kept.is_none());
    let names: Vec<&str> = unasked.map(|(kind, _)| kind.name()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "of {} a loss shows only where it breaks an invariant: workload.toml names no query \
             'kept' for it",
            names.join(", ")
        )
    })
}

fn notes(options: &TortureOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if options.loss == Loss::Process {
        notes.push(
            "only the server's processes were killed: what it wrote and did not sync was not lost, \
             so a server that never syncs passes"
                .to_owned(),
        );
    }
    if let Dataset::Own(own) = options.dataset {
        notes.extend(own_note(own));
    }
    if options.lies {
        notes.push(
            "the disk was made to lie about syncs: a loss is no fault of the server".to_owned(),
        );
    }
    notes
}
