//! Private instances: created in directories of their own, run, watched and removed.
//!
//! [`Instance::create`] makes one, [`Instance::start`] runs its server and returns when sessions
//! are taken, [`Instance::kill`] is a crash on purpose, and the next start recovers. The server
//! runs as an ordinary user, listens on a unix socket only, and does not outlive wearmark
//! (`process.rs`). [`Instance::remove`] takes away what was made, and nothing else (`place.rs`).
//!
//! Invariants: an instance that is dropped leaves no process behind, and a temporary one no file;
//! a creation that fails or is stopped leaves nothing. Tested on real servers in `tests/it`.

mod account;
mod log;
mod mariadb;
mod place;
mod postgresql;
mod proc;
pub(crate) mod process;
mod programs;
mod settings;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use events::Sink;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

pub use place::Files;
pub use programs::Programs;
pub use settings::{Durability, Places, Settings};

use crate::lossy::{self, Counts, Fate, Lossy, Lost};
use crate::{Address, Error, Login, System};
use account::Account;
use place::Marker;
use process::{Launch, Process};

/// Longest that creating may take.
const CREATE_BOUND: Duration = Duration::from_mins(5);
/// Longest that a start may take, recovery included.
const START_BOUND: Duration = Duration::from_mins(10);
/// Longest that an orderly stop may take before the server is killed.
const STOP_BOUND: Duration = Duration::from_mins(2);
/// How long a server whose owner was killed may take to be gone.
const ENDING: Duration = Duration::from_secs(5);
/// Pace of asking whether a server is up.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// `sun_path` has 108 bytes, the last of them zero (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

/// Processor time of a server, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel on its behalf.
    pub system_s: f64,
}

impl ServerCpu {
    /// Both.
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Everything that is settled about an instance before anything is done.
pub(crate) struct Plan {
    places: Places,
    settings: Settings,
    files: Files,
    programs: Programs,
    account: Option<Account>,
    socket_directory: PathBuf,
}

impl Plan {
    fn new(programs: Programs, places: &Places, settings: &Settings) -> Result<Self, Error> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|source| Error::io(path, "resolving", source))
        };
        let other = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let places = Places {
            data: absolute(&places.data)?,
            log: other(&places.log)?,
            temp: other(&places.temp)?,
            undo: other(&places.undo)?,
        };
        let system = programs.system;
        let plan = Self {
            files: Files::of(system, &places),
            account: Account::for_server(system)?,
            socket_directory: socket_directory(system, &places),
            settings: settings.clone(),
            places,
            programs,
        };
        plan.validate()?;
        Ok(plan)
    }

    fn validate(&self) -> Result<(), Error> {
        let system = self.programs.system;
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        for (name, value) in &self.settings.extra {
            if name.is_empty() || !name.chars().all(named) || value.contains('\n') {
                let value = format!("{name:?} = {value:?}");
                let why = "a name has letters, digits and _ only, a value is one line";
                return Err(Error::Unsupported { system, setting: "extra setting", value, why });
            }
        }
        match system {
            System::Postgresql => postgresql::validate(self),
            System::Mariadb => mariadb::validate(self),
        }
    }

    fn socket(&self) -> PathBuf {
        self.socket_directory.join(socket_name(self.programs.system))
    }

    /// A program of the server with what all have in common.
    fn launch(&self, program: &Path, arguments: Vec<String>, death_signal: Signal) -> Launch {
        Launch {
            program: program.to_owned(),
            arguments,
            directory: self.files.data.clone(),
            account: self.account.clone(),
            output: self.files.messages.clone(),
            death_signal,
            input: None,
            before: None,
        }
    }

    /// Writes a file that the server reads.
    fn write(&self, path: &Path, text: &str) -> Result<(), Error> {
        std::fs::write(path, text).map_err(|source| Error::io(path, "writing", source))?;
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }
}

fn socket_name(system: System) -> &'static str {
    match system {
        System::Postgresql => postgresql::SOCKET,
        System::Mariadb => mariadb::SOCKET,
    }
}

/// Inside the data directory, or, where that path is too long for a socket, a directory of our own
/// among the system's temporary files.
fn socket_directory(system: System, places: &Places) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let inside = places.data.join("run");
    if inside.join(socket_name(system)).as_os_str().len() <= SOCKET_PATH_MAX {
        return inside;
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("wearmark-{}-{count}", std::process::id()))
}

/// A private instance of a server.
pub struct Instance {
    marker: Marker,
    plan: Plan,
    server: Option<Process>,
    /// Directories that forget what is not synced, while the server runs on such.
    lossy: Vec<Lossy>,
    /// Processor time of servers that have ended.
    ended_cpu: ServerCpu,
    temporary: bool,
    /// Held as long as the instance is.
    _lock: File,
}

impl Instance {
    /// Creates an instance; its server does not run yet.
    ///
    /// The places are made where they do not exist; where they do they must be empty. Reports
    /// progress as stage `instance`.
    ///
    /// # Errors
    /// Missing or unknown programs; a place that is not empty or that the server's user cannot
    /// reach; a setting that the server does not have; a full disk; [`Error::Cancelled`]. Nothing
    /// is left in any of these cases.
    pub fn create(
        system: System,
        places: &Places,
        settings: &Settings,
        sink: &dyn Sink,
    ) -> Result<Self, Error> {
        Self::create_with(Programs::find(system)?, places, settings, sink)
    }

    /// As [`Instance::create`], with programs that the caller has chosen.
    pub fn create_with(
        programs: Programs,
        places: &Places,
        settings: &Settings,
        sink: &dyn Sink,
    ) -> Result<Self, Error> {
        let plan = Plan::new(programs, places, settings)?;
        let mut marker = Marker {
            schema: 1,
            system: plan.programs.system,
            version: plan.programs.version.clone(),
            places: plan.places.clone(),
            settings: settings.clone(),
            made: Vec::new(),
            complete: false,
        };
        let lock = place::make(&mut marker, plan.account.as_ref())?;
        let mut instance = Self {
            marker,
            plan,
            server: None,
            lossy: Vec::new(),
            ended_cpu: ServerCpu::default(),
            // Until it is complete: whatever happens, nothing is left.
            temporary: true,
            _lock: lock,
        };
        instance.install(sink)?;
        instance.marker.complete = true;
        place::write(&instance.marker)?;
        instance.temporary = false;
        Ok(instance)
    }

    /// Opens an instance that was created earlier, with its own settings.
    ///
    /// # Errors
    /// [`Error::NotOurs`] where there is none, or one that was never finished; [`Error::InUse`];
    /// [`Error::WrongVersion`] where the installed server cannot read its files.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let marker = place::read(data)?;
        if !marker.complete {
            return Err(Error::NotOurs { path: data.to_owned() });
        }
        let lock = place::lock(data)?;
        let programs = Programs::find(marker.system)?;
        fits(&marker, &programs)?;
        let plan = Plan::new(programs, &marker.places, &marker.settings)?;
        let ended_cpu = ServerCpu::default();
        Ok(Self {
            marker,
            plan,
            server: None,
            lossy: Vec::new(),
            ended_cpu,
            temporary: false,
            _lock: lock,
        })
    }

    /// Removes an instance that is not open, finished or not.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::InUse`], and the first file that could not be removed.
    pub fn remove_at(data: &Path) -> Result<(), Error> {
        let marker = place::read(data)?;
        let _lock = place::lock(data)?;
        first_left(place::remove(&marker))
    }

    /// The same instance, which is removed when it is dropped.
    #[must_use]
    pub fn temporary(mut self) -> Self {
        self.temporary = true;
        self
    }

    fn install(&mut self, sink: &dyn Sink) -> Result<(), Error> {
        let plan = &self.plan;
        let doing = format!("creating an instance of {}", plan.programs.system);
        let run = |launch| process::run(launch, &doing, CREATE_BOUND, sink);
        match plan.programs.system {
            System::Postgresql => {
                run(postgresql::install(plan))?;
                postgresql::configure(plan)?.map_or(Ok(()), run)
            }
            System::Mariadb => run(mariadb::install(plan)?),
        }
    }

    /// Starts the server and waits until it takes sessions; after a crash that includes recovery.
    ///
    /// # Errors
    /// [`Error::InUse`] where a server runs on the instance already; [`Error::Crashed`] with the
    /// end of its log; [`Error::DiskFull`]; [`Error::Timeout`]; [`Error::Cancelled`].
    pub fn start(&mut self, sink: &dyn Sink) -> Result<(), Error> {
        self.start_after(None, sink)
    }

    /// As [`Instance::start`], with directories that forget at [`Instance::cut_power`] what was not
    /// synced; with `lies` they acknowledge every sync and forget even so. Temporary files keep
    /// their own directory.
    ///
    /// # Errors
    /// As [`Instance::start`]; [`Error::Unavailable`] where file systems cannot be mounted.
    pub fn start_forgetful(&mut self, lies: bool, sink: &dyn Sink) -> Result<(), Error> {
        if let Some(why) = Lossy::missing() {
            return Err(Error::Unavailable {
                what: "a place that forgets what is not synced",
                why,
            });
        }
        self.not_running()?;
        let files = &self.plan.files;
        let mut directories = vec![&files.data];
        for other in [&files.log, &files.undo] {
            if !other.starts_with(&files.data) {
                directories.push(other);
            }
        }
        let served = directories.into_iter().map(|directory| lossy::serve(directory, lies));
        self.lossy = served.collect::<Result<_, _>>()?;
        let points: Vec<_> = self.lossy.iter().map(Lossy::mount_point).collect();
        let started = self.start_after(Some(Box::new(move || lossy::mount_all(&points))), sink);
        if started.is_err() {
            self.lossy.clear();
        }
        started
    }

    /// Kills the server, and takes from its directories what was not synced; says how much.
    ///
    /// # Errors
    /// The directory below could not be written. Without [`Instance::start_forgetful`] it is
    /// [`Instance::kill`] and loses nothing.
    pub fn cut_power(&mut self, fate: Fate) -> Result<(Lost, Counts), Error> {
        if let Some(server) = &self.server {
            let ended = server.kill();
            self.server = None;
            self.count(ended.as_ref());
        }
        let mut sum = (Lost::default(), Counts::default());
        for place in self.lossy.drain(..) {
            let (lost, counts) = lossy::end(place, Some(fate))?;
            sum.0 += lost;
            sum.1 += counts;
        }
        Ok(sum)
    }

    /// Whether this machine allows [`Instance::start_forgetful`]; if not, why.
    pub fn forgetful_missing() -> Option<String> {
        Lossy::missing()
    }

    /// As [`Instance::start`]; `before` is called on the thread that starts the server.
    fn start_after(
        &mut self,
        before: Option<process::Before>,
        sink: &dyn Sink,
    ) -> Result<(), Error> {
        self.not_running()?;
        let plan = &self.plan;
        if !plan.socket_directory.exists() {
            place::directory_for(&plan.socket_directory, plan.account.as_ref())?;
        }
        let mut launch = match plan.programs.system {
            System::Postgresql => {
                postgresql::write_settings(plan)?;
                postgresql::serve(plan)
            }
            System::Mariadb => {
                mariadb::write_settings(plan)?;
                mariadb::serve(plan)
            }
        };
        launch.before = before;
        self.server = Some(Process::start(launch)?);
        let up = self.wait_until_up(sink);
        if up.is_err() {
            self.kill();
        }
        up
    }

    /// The instance is locked by us, so that a server of an earlier owner is one that is ending:
    /// its socket answers until the last of its threads is gone.
    fn not_running(&self) -> Result<(), Error> {
        let in_use = |by| Err(Error::InUse { path: self.plan.places.data.clone(), by });
        if self.server.as_ref().is_some_and(|server| server.ended(Duration::ZERO).is_none()) {
            return in_use("its server runs already".to_owned());
        }
        let socket = self.plan.socket();
        let start = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_ok() {
            if start.elapsed() > ENDING {
                return in_use(format!("a server listens on '{}'", socket.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn wait_until_up(&self, sink: &dyn Sink) -> Result<(), Error> {
        let doing = "starting";
        let socket = self.plan.socket();
        let start = Instant::now();
        loop {
            let up = match self.plan.programs.system {
                System::Postgresql => postgresql::ready(&socket),
                System::Mariadb => mariadb::ready(&socket),
            };
            self.check_while(doing)?;
            if up {
                return Ok(());
            }
            if sink.cancelled() {
                let doing = format!("the start of {}", self.plan.programs.system);
                return Err(Error::Cancelled { doing });
            }
            if start.elapsed() > START_BOUND {
                let doing = format!("starting {}", self.plan.programs.system);
                return Err(Error::Timeout {
                    doing,
                    bound_s: START_BOUND.as_secs(),
                    log: self.log_end(),
                });
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Whether the server is still there.
    ///
    /// # Errors
    /// [`Error::Crashed`], or [`Error::DiskFull`] where its log says so.
    pub fn check(&self) -> Result<(), Error> {
        self.check_while("running")
    }

    fn check_while(&self, doing: &str) -> Result<(), Error> {
        let ended = match &self.server {
            Some(server) => server.ended(Duration::ZERO),
            None => return Err(self.crashed(doing, "it was not started")),
        };
        let Some(ended) = ended else { return Ok(()) };
        if self.server.as_ref().is_some_and(|server| server.log.tells_of_full_disk()) {
            let doing = format!("{doing} {}", self.plan.programs.system);
            return Err(Error::DiskFull { path: self.plan.places.data.clone(), doing });
        }
        Err(self.crashed(doing, &ended.status))
    }

    fn log_end(&self) -> String {
        self.server.as_ref().map_or_else(String::new, |server| server.log.end())
    }

    fn crashed(&self, doing: &str, status: &str) -> Error {
        Error::Crashed {
            system: self.plan.programs.system,
            path: self.plan.places.data.clone(),
            doing: doing.to_owned(),
            status: status.to_owned(),
            log: self.log_end(),
        }
    }

    /// Stops the server in an orderly way, which ends all sessions. Nothing happens where none
    /// runs.
    ///
    /// # Errors
    /// [`Error::Timeout`] after two minutes; the server has been killed then.
    pub fn stop(&mut self) -> Result<(), Error> {
        let Some(server) = &self.server else { return Ok(()) };
        server.signal(match self.plan.programs.system {
            System::Postgresql => postgresql::STOP,
            System::Mariadb => mariadb::STOP,
        });
        if let Some(ended) = server.ended(STOP_BOUND) {
            self.over(Some(&ended));
            return Ok(());
        }
        let doing = format!("stopping {}", self.plan.programs.system);
        let log = self.log_end();
        self.kill();
        Err(Error::Timeout { doing, bound_s: STOP_BOUND.as_secs(), log })
    }

    /// Kills all processes of the server at once, as a crash would; returns when they are gone.
    pub fn kill(&mut self) {
        if let Some(server) = &self.server {
            let ended = server.kill();
            self.over(ended.as_ref());
        }
    }

    fn over(&mut self, ended: Option<&process::Ended>) {
        self.server = None;
        // What was written stays: only a power cut takes it.
        self.lossy.clear();
        self.count(ended);
    }

    fn count(&mut self, ended: Option<&process::Ended>) {
        if let Some(ended) = ended {
            self.ended_cpu.user_s += ended.cpu.user_s;
            self.ended_cpu.system_s += ended.cpu.system_s;
        }
    }

    /// Stops the server and removes the instance.
    ///
    /// # Errors
    /// The first file that could not be removed.
    pub fn remove(mut self) -> Result<(), Error> {
        self.kill();
        self.temporary = false;
        first_left(place::remove(&self.marker))
    }

    /// Which server it is.
    pub fn system(&self) -> System {
        self.plan.programs.system
    }

    /// Version of the server's programs, such as `15.18`.
    pub fn version(&self) -> &str {
        &self.plan.programs.version
    }

    /// Its directories, absolute.
    pub fn places(&self) -> &Places {
        &self.plan.places
    }

    /// Where the server's files are.
    pub fn files(&self) -> &Files {
        &self.plan.files
    }

    /// How it is set.
    pub fn settings(&self) -> &Settings {
        &self.plan.settings
    }

    /// Changes the settings for the next start; the page size stays that of the creation.
    ///
    /// # Errors
    /// As for [`Instance::create`].
    pub fn set(&mut self, settings: &Settings) -> Result<(), Error> {
        let mut settings = settings.clone();
        settings.page = self.plan.settings.page;
        let old = std::mem::replace(&mut self.plan.settings, settings.clone());
        if let Err(error) = self.plan.validate() {
            self.plan.settings = old;
            return Err(error);
        }
        self.marker.settings = settings;
        place::write(&self.marker)
    }

    /// What this server does not let us control, in sentences for a report.
    pub fn notes(&self) -> Vec<String> {
        match self.plan.programs.system {
            System::Postgresql => postgresql::notes(&self.plan),
            System::Mariadb => mariadb::notes(&self.plan),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> Address {
        Address::Unix(self.plan.socket())
    }

    /// An administrator's login, without a password: who can enter the socket's directory is in.
    pub fn login(&self) -> Login {
        let (user, database) = match self.plan.programs.system {
            System::Postgresql => (postgresql::USER, postgresql::DATABASE),
            System::Mariadb => (mariadb::USER, mariadb::DATABASE),
        };
        Login::new(self.address(), user, database)
    }

    /// Number of the main process, while the server runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(|server| server.pid)
    }

    /// All processes of the server now, the main one first.
    pub fn pids(&self) -> Vec<u32> {
        self.pid().map(proc::descendants).unwrap_or_default()
    }

    /// Processor time of the server so far, ended processes and earlier starts included.
    pub fn cpu(&self) -> ServerCpu {
        let now = self.pid().map(proc::cpu).unwrap_or_default();
        ServerCpu {
            user_s: self.ended_cpu.user_s + now.user_s,
            system_s: self.ended_cpu.system_s + now.system_s,
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
        if !self.plan.socket_directory.starts_with(&self.plan.places.data) {
            // Only ever ours: its name has our process number.
            let _ = std::fs::remove_dir_all(&self.plan.socket_directory);
        }
        if self.temporary {
            place::remove(&self.marker);
        }
    }
}

fn first_left(left: Vec<(PathBuf, std::io::Error)>) -> Result<(), Error> {
    match left.into_iter().next() {
        Some((path, source)) => Err(Error::io(path, "removing", source)),
        None => Ok(()),
    }
}

/// Fails where the installed server cannot read the instance's files.
fn fits(marker: &Marker, programs: &Programs) -> Result<(), Error> {
    let mut numbers = marker.version.split('.').map(|part| part.parse().unwrap_or(0));
    let created: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let fits = match marker.system {
        System::Postgresql => programs.number.0 == created.0,
        System::Mariadb => programs.number >= created,
    };
    if fits {
        return Ok(());
    }
    Err(Error::WrongVersion {
        program: programs.server.clone(),
        found: format!("{} {}", marker.system, programs.version),
        needed: format!("the {} that created the instance", marker.version),
    })
}
