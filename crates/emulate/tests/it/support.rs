//! A mounted device for a test: skipped where the machine has none, unmounted whatever happens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emulate::{Emulation, Faults, Options, Outcome, Served};
use model::Device;
use profile::Profile;
use units::Nanos;

/// Longest that a test may hold a mount; then it is taken away and what waits on it fails.
const WATCHDOG: Duration = Duration::from_mins(2);

/// A served directory.
pub struct Mounted {
    root: tempfile::TempDir,
    emulation: Option<Emulation>,
    over: Arc<AtomicBool>,
}

/// A profile of a device that takes this many us for a read, a write and a flush.
pub fn device(read_us: u64, write_us: u64, flush_us: u64, parallel: u32) -> Box<dyn Device> {
    let text = profile(read_us, write_us, flush_us, parallel);
    model::device(&Profile::from_toml(&text, "test").unwrap(), 1)
}

/// Its text.
pub fn profile(read_us: u64, write_us: u64, flush_us: u64, parallel: u32) -> String {
    let line = |us: u64| {
        format!(
            "base_us = {{ value = {us}, source = \"test\" }}\n\
             us_per_kib = {{ value = 0, source = \"test\" }}\n"
        )
    };
    format!(
        "[profile]\nname = \"test\"\ndescription = \"test\"\nclass = \"ssd\"\n\
         sources = [\"test\"]\n[state]\ncondition = \"steady\"\nmeasured = \"2026\"\n\
         [device]\nkind = \"linear\"\nsequential_detection = \"per_stream\"\n\
         capacity = \"256MiB\"\nparallelism = {{ value = {parallel}, source = \"test\" }}\n\
         [device.read.sequential]\n{read}[device.read.random]\n{read}\
         [device.write.sequential]\n{write}[device.write.random]\n{write}\
         [device.flush]\nbase_us = {{ value = {flush_us}, source = \"test\" }}\n",
        read = line(read_us),
        write = line(write_us),
    )
}

impl Mounted {
    /// Serves a fresh directory on the device; `None` where the machine cannot.
    pub fn new(device: Box<dyn Device>, forgetful: bool) -> Option<Self> {
        Self::with(device, forgetful, |_| {})
    }

    /// The same, with what `before` puts there first.
    pub fn with(
        device: Box<dyn Device>,
        forgetful: bool,
        before: impl FnOnce(&Path),
    ) -> Option<Self> {
        if let Some((why, _)) = emulate::directories_missing() {
            println!("skipped: {why}");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("served");
        std::fs::create_dir(&directory).unwrap();
        before(&directory);
        let mut mounted = Self { root, emulation: None, over: Arc::default() };
        mounted.watch(directory);
        mounted.start(device, forgetful);
        Some(mounted)
    }

    fn watch(&self, directory: PathBuf) {
        let over = Arc::clone(&self.over);
        std::thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < WATCHDOG {
                std::thread::sleep(Duration::from_millis(100));
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
            _ = std::process::Command::new("umount").arg("-fl").arg(&directory).status();
            eprintln!("{}: a test held its mount too long", directory.display());
        });
    }

    /// Serves the directory again.
    pub fn start(&mut self, device: Box<dyn Device>, forgetful: bool) {
        self.start_with(device, forgetful, Faults::default());
    }

    /// Serves the directory again, with faults.
    pub fn start_with(&mut self, device: Box<dyn Device>, forgetful: bool, faults: Faults) {
        let (name, directories) = ("test".to_owned(), vec![self.path()]);
        let served = Served { name, device, directories, exports: Vec::new(), blocks: Vec::new() };
        // No calibration: a modelled time is then the least that a request takes.
        let options = Options { path: Some(Nanos(0)), forgetful, faults, ..Options::default() };
        self.emulation = Some(Emulation::start(vec![served], &options).unwrap());
    }

    /// The directory.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("served")
    }

    pub fn emulation(&self) -> &Emulation {
        self.emulation.as_ref().unwrap()
    }

    /// Ends the serving.
    pub fn stop(&mut self) -> Outcome {
        self.emulation.take().unwrap().stop().unwrap().remove(0)
    }

    /// Cuts the power.
    pub fn cut_power(&mut self, fate: emulate::Fate) -> Outcome {
        self.emulation.take().unwrap().cut_power(fate).unwrap().remove(0)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.emulation.take();
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Requests of a kind.
pub fn requests(outcome: &Outcome, op: &str) -> u64 {
    outcome.ops.iter().find(|found| found.op == op).map_or(0, |found| found.requests)
}

/// Whether something is mounted on the directory.
pub fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == path.to_str())
}
