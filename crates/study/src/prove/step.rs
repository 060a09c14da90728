//! The processes of a place's run: loads, emulators, copies; each is ended whatever happens, and
//! ends by itself where this process is killed.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use capture::sqlite::IoMode;
use emulate::{Awake, SyncComputing};
use events::Warning;
use oltp::OltpResult;
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use super::{AsRun, By, Figures, Place, Predicted};
use crate::Error;
use crate::file::{StudyFile, System};
use crate::run_dir::{RunDir, write_atomically};

/// The environment variable by which a step in a process of its own knows whom it must not outlive.
pub const PARENT: &str = "WEARMARK_PARENT";

/// Names the program that steps are started with, where it is not the one that runs.
const PROGRAM: &str = "WEARMARK_PROGRAM";

/// Longest that an emulator may take to mount and to unmount.
const MOUNT_BOUND: Duration = Duration::from_mins(2);
/// Pace of looking whether a process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Pace of telling how far a load is.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// The database as it was loaded, the one that runs, and where a log of its own lies: each is a
/// directory of the run.
const LOADED: [&str; 2] = ["loaded", "loaded-log"];
const RUNNING: [&str; 2] = ["database", "database-log"];
/// What the capture is called.
const CAPTURED: &str = "captured";

/// What an emulator printed of its device, as far as it is used here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Served {
    pub(super) ops: Vec<ServedOp>,
    pub(super) lateness_us_p99: f64,
    pub(super) lateness_us_mean: f64,
    #[serde(default)]
    pub(super) warnings: Vec<Warning>,
    /// Share of the machine's processors that its emulator used.
    #[serde(default)]
    pub(super) cpu_share: f64,
    /// The same for each request, ns.
    #[serde(default)]
    pub(super) cpu_ns_per_request: f64,
}

/// Requests of one kind.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServedOp {
    pub(super) op: String,
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

/// What an emulator printed.
#[derive(Deserialize)]
struct Printed {
    devices: Vec<Served>,
    warnings: Vec<Warning>,
    cpu_share: f64,
    cpu_ns_per_request: f64,
}

/// How a step tells how far it is and hears that it should stop.
pub(crate) struct Watch<'a> {
    /// Told the seconds since the step began.
    pub(crate) tell: &'a dyn Fn(f64),
    /// Whether the user asked to stop.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

/// The directory that a study's loads run in.
pub(crate) struct Workshop<'a> {
    run: &'a RunDir,
    study: &'a StudyFile,
    /// This program.
    program: PathBuf,
    /// Whether the log has a directory of its own.
    log_apart: bool,
    /// An emulator keeps processors from sleeping; the load here and its capture must not differ
    /// from its runs in that.
    _awake: Option<Awake>,
    /// What syncs compute, once it was asked for.
    syncs: OnceCell<Option<SyncComputing>>,
}

/// This program, for steps in processes of their own. The command of the Python package runs in an
/// interpreter, and says where it is itself.
pub(crate) fn program() -> Result<PathBuf, Error> {
    match std::env::var_os(PROGRAM) {
        Some(named) => Ok(PathBuf::from(named)),
        None => std::env::current_exe().map_err(Error::io("wearmark", "find")),
    }
}

/// A process that is ended when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Asks it to end, and waits; after a bound it is killed.
    fn end(&mut self) -> std::io::Result<std::process::ExitStatus> {
        if let Some(id) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let asked = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if asked.elapsed() > MOUNT_BOUND {
                self.0.kill()?;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            _ = self.end();
        }
    }
}

impl<'a> Workshop<'a> {
    pub(crate) fn new(run: &'a RunDir, study: &'a StudyFile) -> Result<Self, Error> {
        let program = program()?;
        open_to_all(run.path())?;
        let log_apart = study.scenario.iter().any(|scenario| scenario.log.is_some());
        Ok(Self { run, study, program, log_apart, _awake: Awake::keep(), syncs: OnceCell::new() })
    }

    /// Names of the directories in use.
    fn names(&self, of: [&'static str; 2]) -> &'static [&'static str] {
        let of: &'static [&'static str; 2] = if of == LOADED { &LOADED } else { &RUNNING };
        if self.log_apart { of } else { &of[..1] }
    }

    /// What the capture's files begin with.
    pub(crate) fn captured(&self) -> PathBuf {
        self.run.join(CAPTURED)
    }

    /// Whether the loaded database is there: it is renamed when it is whole, its log first.
    pub(crate) fn is_loaded(&self) -> bool {
        self.run.has(LOADED[0])
    }

    /// Takes away the databases and what the steps printed; the capture stays.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        for name in RUNNING.iter().chain(&LOADED) {
            self.run.remove(name)?;
        }
        for name in ["load", "emulator"] {
            for kind in ["out", "err"] {
                self.run.remove(&format!("{name}.{kind}"))?;
            }
        }
        Ok(())
    }

    /// Starts this program; what it prints goes into `NAME.out` and `NAME.err`. The latter is
    /// locked as long as the step lives, whatever becomes of this process.
    fn start(&self, name: &str, arguments: &[&str]) -> Result<Running, Error> {
        let file = |kind: &str| -> Result<File, Error> {
            let path = self.run.join(&format!("{name}.{kind}"));
            let file = File::create(&path).map_err(Error::io(&path, "create"))?;
            lock(&file).map_err(Error::io(&path, "lock"))?;
            Ok(file)
        };
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--json", "--quiet"]).stdin(Stdio::null());
        command.env(PARENT, std::process::id().to_string());
        command.stdout(file("out")?).stderr(file("err")?);
        let child = command.spawn().map_err(Error::io(&self.program, "start"))?;
        Ok(Running(child))
    }

    fn printed(&self, name: &str) -> String {
        fs::read_to_string(self.run.join(&format!("{name}.out"))).unwrap_or_default()
    }

    /// The step's own error, as it printed it.
    fn failure(&self, name: &str, what: &str) -> Error {
        let said = fs::read_to_string(self.run.join(&format!("{name}.err"))).unwrap_or_default();
        let said = said.lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
        Error::Step { step: what.to_owned(), cause: said.unwrap_or("it ended early").to_owned() }
    }

    /// Waits for a load; none where the user stopped it.
    fn finish(
        &self,
        mut load: Running,
        what: &str,
        watch: &Watch<'_>,
    ) -> Result<Option<OltpResult>, Error> {
        let started = Instant::now();
        let mut told = started;
        loop {
            let ended = load.0.try_wait().map_err(Error::io(&self.program, "wait for"))?;
            if let Some(status) = ended {
                // 1: it ran, and its audit found something; 130: stopped.
                return match status.code() {
                    Some(0 | 1) => {
                        let found = serde_json::from_str(&self.printed("load"));
                        found.map(Some).map_err(|_| self.failure("load", what))
                    }
                    Some(130) => Ok(None),
                    _ => Err(self.failure("load", what)),
                };
            }
            if (watch.cancelled)() {
                _ = load.end();
                return Ok(None);
            }
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                (watch.tell)(started.elapsed().as_secs_f64());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn run_load(
        &self,
        times: [&str; 2],
        more: &[&str],
        what: &str,
        watch: &Watch<'_>,
    ) -> Result<Option<OltpResult>, Error> {
        let places: Vec<PathBuf> =
            self.names(RUNNING).iter().map(|name| self.run.join(name)).collect();
        let places: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
        let mut arguments = vec!["oltp", "run", &*places[0]];
        for log in &places[1..] {
            arguments.extend(["--log-dir", &**log]);
        }
        let words = load_words(self.study);
        arguments.extend(words.iter().map(String::as_str));
        arguments.extend(["--warmup", times[0], "--duration", times[1]]);
        arguments.extend(more);
        self.finish(self.start("load", &arguments)?, what, watch)
    }

    /// Loads the database; none where the user stopped it.
    pub(crate) fn load(&self, watch: &Watch<'_>) -> Result<Option<()>, Error> {
        self.clear()?;
        let what = "loading the database";
        let found = self.run_load(["0s", "1s"], &["--no-capture"], what, watch)?;
        if found.is_none() {
            self.clear()?;
            return Ok(None);
        }
        for (from, to) in RUNNING.iter().zip(LOADED).take(self.names(LOADED).len()).rev() {
            let from = self.run.join(from);
            self.run.remove(to)?;
            fs::rename(&from, self.run.join(to)).map_err(Error::io(&from, "move"))?;
        }
        Ok(Some(()))
    }

    /// Takes away the database that ran last, once the steps of a killed study have ended: a server
    /// that is still ending would write into what is being removed.
    fn clear(&self) -> Result<(), Error> {
        for name in ["load", "emulator"] {
            let path = self.run.join(&format!("{name}.err"));
            match File::open(&path) {
                Ok(file) => lock(&file).map_err(Error::io(&path, "lock"))?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(&path, "open")(error)),
            }
        }
        for name in RUNNING {
            self.unmounted(name)?;
            self.run.remove(name)?;
        }
        Ok(())
    }

    /// Waits until nothing is mounted there: the emulator of a killed study ends a moment after it.
    /// One that was killed too left a mount without a server behind, which the next emulator takes
    /// away.
    fn unmounted(&self, name: &str) -> Result<(), Error> {
        let path = self.run.join(name);
        let started = Instant::now();
        loop {
            match rustix::fs::stat(&path) {
                Err(rustix::io::Errno::NOTCONN) => {
                    let device = &self.study.scenario[0].profile;
                    let path = path.to_string_lossy();
                    let mut emulator = self
                        .start("emulator", &["emulate", device, "--dir", &path, "--for", "1ms"])?;
                    _ = emulator.0.wait();
                }
                Ok(found) if found.st_dev != device_of(self.run.path())? => {}
                _ => return Ok(()),
            }
            if started.elapsed() > MOUNT_BOUND {
                let source = std::io::Error::from(ErrorKind::ResourceBusy);
                return Err(Error::Io { path, action: "unmount", source });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The database as it was loaded.
    fn restore(&self) -> Result<(), Error> {
        self.clear()?;
        for (from, to) in self.names(LOADED).iter().zip(RUNNING) {
            let (from, to) = (self.run.join(from), self.run.join(to));
            let mut copy = Command::new("cp");
            copy.args(["-a", "--reflink=auto"]).arg(&from).arg(&to);
            let status = copy.status().map_err(Error::io(&from, "copy"))?;
            if !status.success() {
                let cause = "cp failed: is the disk full?".to_owned();
                return Err(Error::Step { step: "copying the database".to_owned(), cause });
            }
            // The copy's own writes must not meet the load's, nor may it lie in the page cache: a
            // served directory starts without one, and the same load would read there and not here.
            rustix::fs::sync();
            leave_the_page_cache(&to).map_err(Error::io(&to, "read"))?;
        }
        Ok(())
    }

    /// Warm-up and duration as arguments.
    fn times(&self) -> [String; 2] {
        [self.study.oltp.warmup, self.study.oltp.duration].map(|time| time.to_string())
    }

    /// Runs the load here once, captured, for the predictor; none where the user stopped it.
    pub(crate) fn capture(&self, watch: &Watch<'_>) -> Result<Option<OltpResult>, Error> {
        self.restore()?;
        let prefix = self.captured();
        let prefix = prefix.to_string_lossy();
        let times = self.times();
        let times = times.each_ref().map(String::as_str);
        self.run_load(times, &["--trace", &prefix], "capturing the load", watch)
    }

    /// What the capture, or the engine itself, says of a place; none where the user stopped it.
    pub(crate) fn predict(
        &self,
        place: &Place,
        watch: &Watch<'_>,
    ) -> Result<Option<Predicted>, Error> {
        let Some(found) = super::predict::at(&self.captured(), place)? else { return Ok(None) };
        if !self.can_be_run_in_virtual_time(place) {
            return Ok(Some(found));
        }
        // The engine does on the device what the templates of a capture can only say again; what
        // its time goes to they alone know.
        let Some(figures) = self.run_in_virtual_time(place, 1.0, watch)? else { return Ok(None) };
        Ok(Some(Predicted {
            figures,
            transactions_per_min_interval: None,
            io: Vec::new(),
            by: By::Engine,
            ..found
        }))
    }

    /// The same as its runs were: at the speed that the processors had in those `here`, and beside
    /// emulators, which compute for each request. In virtual time an engine runs at the speed that
    /// processors have now; its system calls compute nothing, so they are slower by the emulators'
    /// share.
    pub(crate) fn as_run(
        &self,
        place: &Place,
        here: &Place,
        watch: &Watch<'_>,
    ) -> Result<Option<AsRun>, Error> {
        if self.can_be_run_in_virtual_time(place) {
            let share = place.emulator_share().unwrap_or(0.0);
            let found = self.run_in_virtual_time(place, 1.0 - share.clamp(0.0, 0.9), watch)?;
            return Ok(found.map(|figures| AsRun {
                figures,
                speed: 1.0,
                emulator_ns: place.emulator_ns().unwrap_or(0.0),
                late_ns: 0.0,
                sync_less_ns: 0.0,
            }));
        }
        let sync_less_ns = if place.profile.is_empty() { 0.0 } else { self.sync_less_ns() };
        super::predict::as_run(&self.captured(), place, here, sync_less_ns)
    }

    /// What a sync computes less in a served directory than on this disk, ns; 0 where that cannot
    /// be measured.
    fn sync_less_ns(&self) -> f64 {
        let measured = self.syncs.get_or_init(|| SyncComputing::measure(self.run.path()));
        measured.map_or(0.0, SyncComputing::less_ns)
    }

    /// SQLite is a library; past the page cache its VFS is all that it needs of a machine.
    fn can_be_run_in_virtual_time(&self, place: &Place) -> bool {
        let oltp = &self.study.oltp;
        oltp.dbms == System::Sqlite
            && oltp.io.unwrap_or_default() == IoMode::Direct
            && !place.profile.is_empty()
            && place.log.is_none()
    }

    fn run_in_virtual_time(
        &self,
        place: &Place,
        speed: f64,
        watch: &Watch<'_>,
    ) -> Result<Option<Figures>, Error> {
        self.restore()?;
        let times = self.times();
        let times = times.each_ref().map(String::as_str);
        let speed = speed.to_string();
        let mut more = vec!["--no-capture", "--on", &place.profile, "--speed", &speed];
        let host = place.host.as_ref().map(|text| self.host_file("host", text)).transpose()?;
        if let Some(host) = &host {
            more.extend(["--host", host]);
        }
        let what = format!("predicting the load on {}", place.name);
        Ok(self.run_load(times, &more, &what, watch)?.map(|result| Figures::of(&result)))
    }

    /// A host stack as the file that commands take.
    fn host_file(&self, name: &str, text: &str) -> Result<String, Error> {
        let file = self.run.join(&format!("{name}.toml"));
        write_atomically(&file, text.as_bytes())?;
        Ok(file.display().to_string())
    }

    /// One run at a place; none where the user stopped it.
    pub(crate) fn run(
        &self,
        place: &Place,
        watch: &Watch<'_>,
    ) -> Result<Option<(OltpResult, Vec<Served>)>, Error> {
        self.restore()?;
        let emulator = (!place.profile.is_empty()).then(|| self.emulate(place)).transpose()?;
        let times = self.times();
        let times = times.each_ref().map(String::as_str);
        let what = format!("running the load on {}", place.name);
        let result = self.run_load(times, &["--no-capture"], &what, watch);
        let served = emulator.map(|mut emulator| self.served(&mut emulator)).transpose();
        let Some(result) = result? else { return Ok(None) };
        Ok(Some((result, served?.unwrap_or_default())))
    }

    /// Starts an emulator over the database and waits until it is mounted.
    fn emulate(&self, place: &Place) -> Result<Running, Error> {
        let directories: Vec<PathBuf> =
            self.names(RUNNING).iter().map(|name| self.run.join(name)).collect();
        let mut arguments = vec!["emulate".to_owned(), place.profile.clone()];
        arguments.extend(place.log.clone());
        for (name, host) in [("host", &place.host), ("log-host", &place.log_host)] {
            match host {
                Some(text) => {
                    arguments.extend(["--host".to_owned(), self.host_file(name, text)?]);
                }
                // One for each device, or none for all.
                None if place.log.is_some()
                    && (place.host.is_some() || place.log_host.is_some()) =>
                {
                    arguments.extend(["--host".to_owned(), "none".to_owned()]);
                }
                None => {}
            }
        }
        for path in &directories {
            arguments.extend(["--dir".to_owned(), path.display().to_string()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let last = directories.last().expect("there is a database");
        let below = device_of(last)?;
        let mut emulator = self.start("emulator", &arguments)?;
        let started = Instant::now();
        while device_of(last)? == below {
            let ended = emulator.0.try_wait().map_err(Error::io(&self.program, "wait for"))?;
            if ended.is_some() || started.elapsed() > MOUNT_BOUND {
                return Err(self.failure("emulator", &format!("emulating {}", place.name)));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(emulator)
    }

    /// Ends an emulator and reads what it printed of each device.
    fn served(&self, emulator: &mut Running) -> Result<Vec<Served>, Error> {
        emulator.end().map_err(Error::io(&self.program, "end"))?;
        let printed: Printed = serde_json::from_str(&self.printed("emulator"))
            .map_err(|_| self.failure("emulator", "ending the emulator"))?;
        let mut devices = printed.devices;
        if let Some(first) = devices.first_mut() {
            first.warnings = printed.warnings;
            first.cpu_share = printed.cpu_share;
            first.cpu_ns_per_request = printed.cpu_ns_per_request;
        }
        Ok(devices)
    }
}

/// The load of a study as arguments of `wearmark oltp run`, without places and times.
pub(crate) fn load_words(study: &StudyFile) -> Vec<String> {
    let oltp = &study.oltp;
    let mut words = Vec::new();
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    add("dbms", oltp.dbms.name().to_owned());
    add("workload", oltp.workload.clone());
    add("warehouses", oltp.warehouses.to_string());
    add("branches", oltp.branches.to_string());
    add("rows", oltp.rows.to_string());
    add("users", oltp.users.to_string());
    add("mix", oltp.mix.clone());
    add("think-scale", oltp.think_scale.to_string());
    add("seed", study.study.seed.to_string());
    let mut maybe = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            add(name, value);
        }
    };
    maybe("buffer", oltp.buffer.map(|buffer| buffer.to_string()));
    maybe("page", oltp.page.map(|page| page.to_string()));
    maybe("journal", oltp.journal.as_ref().map(plain));
    maybe("synchronous", oltp.synchronous.as_ref().map(plain));
    maybe("io", oltp.io.as_ref().map(plain));
    maybe("access", oltp.access.clone());
    maybe("connections", oltp.connections.map(|most| most.to_string()));
    maybe("durability", oltp.durability.as_ref().map(plain));
    for (name, value) in &oltp.set {
        add("set", format!("{name}={value}"));
    }
    words
}

/// A value of an enum as files and the command line write it.
fn plain<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("{other:?} is no name"),
    }
}

/// Waits for the lock on a file, for as long as a step may take to end.
fn lock(file: &File) -> std::io::Result<()> {
    let started = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < MOUNT_BOUND => {
                std::thread::sleep(LOOK_EVERY);
            }
            locked => return locked.map_err(std::io::Error::from),
        }
    }
}

/// The device that a directory is on, as the kernel numbers it.
fn device_of(path: &Path) -> Result<u64, Error> {
    let stat = rustix::fs::stat(path).map_err(std::io::Error::from);
    stat.map(|stat| stat.st_dev).map_err(Error::io(path, "look at"))
}

/// A server runs as a user of its own.
fn open_to_all(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(Error::io(path, "open"))
}

/// Takes the files below `path` out of the page cache; they are in sync.
fn leave_the_page_cache(path: &Path) -> std::io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            leave_the_page_cache(&entry?.path())?;
        }
    } else if found.is_file() {
        rustix::fs::fadvise(File::open(path)?, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of a file's pages that are in the page cache, by mincore(2).
    fn cached_share(path: &Path) -> f64 {
        let mut command = Command::new("fincore");
        command.args(["--bytes", "--noheadings", "-o", "RES,SIZE"]).arg(path);
        let output = command.output().expect("it was asked for its version");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let cells: Vec<f64> = text.split_whitespace().filter_map(|c| c.parse().ok()).collect();
        cells[0] / cells[1]
    }

    #[test]
    fn a_restored_database_starts_on_the_disk() {
        if Command::new("fincore").arg("--version").output().is_err() {
            return println!("skipped: there is no fincore");
        }
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("base/file");
        fs::create_dir(dir.path().join("base")).unwrap();
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        if cached_share(&path) < 1.0 {
            return println!("skipped: this file system keeps no page cache");
        }
        leave_the_page_cache(dir.path()).unwrap();
        assert!(cached_share(&path) < 0.1, "{}", cached_share(&path));
    }
}
