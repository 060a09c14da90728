//! The processes of a proof: loads, emulators, copies; each is ended whatever happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use events::{Sink, Warning};
use oltp::OltpResult;
use serde::Deserialize;
use stats::Histogram;

use super::{Figures, Plan, remove};
use crate::Error;

/// Longest that an emulator may take to mount and to unmount.
const MOUNT_BOUND: Duration = Duration::from_mins(2);
/// Pace of looking whether a process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What an emulator printed of its device, as far as it is used here.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Served {
    pub(super) ops: Vec<ServedOp>,
    lateness: Histogram,
    #[serde(default)]
    pub(super) warnings: Vec<Warning>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServedOp {
    pub(super) op: String,
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

/// What an emulator printed.
#[derive(Deserialize)]
struct Printed {
    devices: Vec<Served>,
    warnings: Vec<Warning>,
}

impl Served {
    pub(super) fn lateness_us_p99(&self) -> f64 {
        if self.lateness.is_empty() { 0.0 } else { self.lateness.quantile(0.99) as f64 / 1e3 }
    }
}

/// The directory that a proof works in.
pub(super) struct Workshop<'a> {
    plan: &'a Plan,
    /// Whether the directory was made by us.
    is_made: bool,
}

/// A process that is ended when it is dropped.
struct Running(Child);

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
    pub(super) fn new(plan: &'a Plan) -> Result<Self, Error> {
        let path = &plan.directory;
        let is_made = !path.exists();
        if is_made {
            fs::create_dir(path).map_err(Error::io(path, "create"))?;
            open_to_all(path)?;
        } else if fs::read_dir(path).map_err(Error::io(path, "read"))?.next().is_some() {
            return Err(Error::NotEmpty { path: path.clone() });
        }
        Ok(Self { plan, is_made })
    }

    fn database(&self) -> PathBuf {
        self.plan.directory.join("database")
    }

    fn loaded(&self) -> PathBuf {
        self.plan.directory.join("loaded")
    }

    fn captured(&self) -> PathBuf {
        self.plan.directory.join("captured")
    }

    /// Takes away what was made.
    pub(super) fn remove(&self) {
        for path in [self.database(), self.loaded()] {
            remove(&path);
        }
        if let Ok(entries) = fs::read_dir(&self.plan.directory) {
            for entry in entries.flatten() {
                let is_ours = |prefix| entry.file_name().to_string_lossy().starts_with(prefix);
                if ["captured", "load.", "emulator."].into_iter().any(is_ours) {
                    _ = fs::remove_file(entry.path());
                }
            }
        }
        if self.is_made {
            _ = fs::remove_dir(&self.plan.directory);
        }
    }

    /// Starts this program; what it prints goes into `NAME.out` and `NAME.err`.
    fn start(&self, name: &str, arguments: &[&str]) -> Result<Running, Error> {
        let file = |kind: &str| {
            let path = self.plan.directory.join(format!("{name}.{kind}"));
            File::create(&path).map_err(Error::io(&path, "create"))
        };
        let mut command = Command::new(&self.plan.program);
        command.args(arguments).args(["--json", "--quiet"]).stdin(Stdio::null());
        command.stdout(file("out")?).stderr(file("err")?);
        let child = command.spawn().map_err(Error::io(&self.plan.program, "start"))?;
        Ok(Running(child))
    }

    fn printed(&self, name: &str) -> String {
        let read = |kind| fs::read_to_string(self.plan.directory.join(format!("{name}.{kind}")));
        read("out").unwrap_or_default()
    }

    /// The step's own error, as it printed it.
    fn failure(&self, name: &str, what: &str) -> Error {
        let path = self.plan.directory.join(format!("{name}.err"));
        let said = fs::read_to_string(path).unwrap_or_default();
        let said = said.lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
        Error::Step { step: what.to_owned(), cause: said.unwrap_or("it ended early").to_owned() }
    }

    /// Waits for a load; none where the user stopped it.
    fn finish(
        &self,
        mut load: Running,
        what: &str,
        sink: &dyn Sink,
    ) -> Result<Option<OltpResult>, Error> {
        loop {
            let ended = load.0.try_wait().map_err(Error::io(&self.plan.program, "wait for"))?;
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
            if sink.cancelled() {
                _ = load.end();
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn run_load(
        &self,
        times: [&str; 2],
        more: &[&str],
        what: &str,
        sink: &dyn Sink,
    ) -> Result<Option<OltpResult>, Error> {
        let database = self.database();
        let database = database.to_string_lossy();
        let mut arguments = vec!["oltp", "run", &database];
        arguments.extend(self.plan.load.iter().map(String::as_str));
        arguments.extend(["--warmup", times[0], "--duration", times[1]]);
        arguments.extend(more);
        self.finish(self.start("load", &arguments)?, what, sink)
    }

    /// Loads the database and keeps a copy; tells whether the user stopped it.
    pub(super) fn load(&self, sink: &dyn Sink) -> Result<bool, Error> {
        let what = "loading the database";
        let found = self.run_load(["0s", "1s"], &["--no-capture"], what, sink)?;
        if found.is_some() {
            fs::rename(self.database(), self.loaded())
                .map_err(Error::io(self.database(), "move"))?;
        }
        Ok(found.is_none())
    }

    /// The database as it was loaded.
    fn restore(&self) -> Result<(), Error> {
        remove(&self.database());
        let mut copy = Command::new("cp");
        copy.args(["-a", "--reflink=auto"]).arg(self.loaded()).arg(self.database());
        let status = copy.status().map_err(Error::io(self.loaded(), "copy"))?;
        if status.success() {
            // The copy's own writes must not meet the load's, nor may it lie in the page cache: a
            // served directory starts without one, and the same load would read there and not here.
            rustix::fs::sync();
            return leave_the_page_cache(&self.database())
                .map_err(Error::io(self.database(), "read"));
        }
        let cause = "cp failed: is the disk full?".to_owned();
        Err(Error::Step { step: "copying the database".to_owned(), cause })
    }

    /// Runs the load here once more, captured, for the predictor.
    pub(super) fn capture(&self, sink: &dyn Sink) -> Result<bool, Error> {
        self.restore()?;
        let prefix = self.captured();
        let prefix = prefix.to_string_lossy();
        let times = self.plan.times.each_ref().map(String::as_str);
        let found = self.run_load(times, &["--trace", &prefix], "capturing the load", sink)?;
        Ok(found.is_none())
    }

    /// What the capture says of a device.
    pub(super) fn predict(&self, device: &str) -> Result<Figures, String> {
        super::predict::on(&self.captured(), device)
    }

    /// One run on the device, or here; none where the user stopped it.
    pub(super) fn run(
        &self,
        device: Option<&str>,
        sink: &dyn Sink,
    ) -> Result<Option<(OltpResult, Option<Served>)>, Error> {
        self.restore()?;
        let emulator = device.map(|device| self.emulate(device)).transpose()?;
        let times = self.plan.times.each_ref().map(String::as_str);
        let what = format!("running the load on {}", device.unwrap_or("this disk"));
        let result = self.run_load(times, &["--no-capture"], &what, sink);
        let served = emulator.map(|mut emulator| self.served(&mut emulator)).transpose();
        let Some(result) = result? else { return Ok(None) };
        Ok(Some((result, served?)))
    }

    /// Starts an emulator over the database and waits until it is mounted.
    fn emulate(&self, device: &str) -> Result<Running, Error> {
        let database = self.database();
        let below = device_of(&database)?;
        let arguments = ["emulate", device, "--dir", &database.to_string_lossy()];
        let mut emulator = self.start("emulator", &arguments)?;
        let started = Instant::now();
        while device_of(&database)? == below {
            let ended = emulator.0.try_wait().map_err(Error::io(&self.plan.program, "wait for"))?;
            if ended.is_some() || started.elapsed() > MOUNT_BOUND {
                return Err(self.failure("emulator", &format!("emulating {device}")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(emulator)
    }

    /// Ends an emulator and reads what it printed.
    fn served(&self, emulator: &mut Running) -> Result<Served, Error> {
        emulator.end().map_err(Error::io(&self.plan.program, "end"))?;
        let printed: Printed = serde_json::from_str(&self.printed("emulator"))
            .map_err(|_| self.failure("emulator", "ending the emulator"))?;
        let mut devices = printed.devices;
        let mut served = devices.pop().ok_or_else(|| self.failure("emulator", "emulating"))?;
        served.warnings = printed.warnings;
        Ok(served)
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
