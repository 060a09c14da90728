//! Devices being served: started, asked what they do, given orders, ended.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use events::Completed;
use model::Device;
use trace::Op;
use units::{Bytes, Nanos};

use crate::awake::Awake;
use crate::block::Loop;
use crate::faults::Faults;
use crate::fuse::layout::Layout;
use crate::fuse::mount::{self, Mounted};
use crate::fuse::place::{Behaviour, OLD_BYTES_MAX, Place};
use crate::fuse::port::FusePort;
use crate::nbd::{Listener, Socket, Store};
use crate::outcome::{OpOutcome, Outcome};
use crate::path as way;
use crate::port::Port;
use crate::serve::{Manner, Order, Server, Shared, constant_device};
use crate::{Error, Fate, Lost};

/// Capacity of a device whose profile names none.
const UNBOUNDED: u64 = 1 << 50;
/// Size of an export that nothing else gives one.
const EXPORT_BYTES: u64 = 1 << 30;
/// Devices of the calibration: the time of a flush, and how often one is asked for. Half a second
/// in all.
const CALIBRATION: [(Duration, usize); 5] = [
    (Duration::ZERO, 400),
    (Duration::from_micros(75), 300),
    (Duration::from_micros(300), 200),
    (Duration::from_millis(1), 100),
    (Duration::from_millis(5), 40),
];
/// Longest that the end waits for programs to let go of a directory.
const LET_GO: Duration = Duration::from_secs(2);

/// One device and the directories on it.
pub struct Served {
    /// What the device is called in results.
    pub name: String,
    /// The model.
    pub device: Box<dyn Device>,
    /// Directories whose files lie on it.
    pub directories: Vec<PathBuf>,
    /// Block devices that it is offered as, each with bytes of its own.
    pub exports: Vec<Export>,
    /// Files in those directories that the kernel makes loop devices of.
    pub blocks: Vec<PathBuf>,
}

/// A block device at a socket, for clients of the NBD protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Where clients connect.
    pub socket: PathBuf,
    /// The file of its bytes, made sparse if it is not there; memory without.
    pub file: Option<PathBuf>,
    /// Its size; the capacity of the device where absent, 1 GiB where that is unknown.
    pub size: Option<Bytes>,
}

/// How devices are served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The clock is watched, not slept on, for the last part of a wait.
    pub spin: Nanos,
    /// What the way between program and emulator takes; measured where it is not given.
    pub path: Option<Nanos>,
    /// Idle processors may sleep; without, they are kept awake where that is allowed.
    pub sleeps: bool,
    /// Remember what was not synced, so that the power can be cut.
    pub forgetful: bool,
    /// What goes wrong.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            spin: Nanos(30_000),
            path: None,
            sleeps: false,
            forgetful: false,
            faults: Faults::default(),
        }
    }
}

/// Devices that are being served; dropped, everything is unmounted.
pub struct Emulation {
    units: Vec<Unit>,
    started: Instant,
    awake: Option<Awake>,
}

struct Unit {
    name: String,
    mounts: Vec<Mounted>,
    /// Where removed files wait until their removal is durable.
    waiting: Vec<PathBuf>,
    shared: Arc<Shared>,
    /// What the way to programs takes without a pause.
    path: Nanos,
    thread: Option<JoinHandle<std::io::Result<Lost>>>,
    left_over: Vec<PathBuf>,
    has_exports: bool,
    loops: Vec<Loop>,
}

/// What one device is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The device.
    pub name: String,
    /// Requests answered so far.
    pub requests: u64,
    /// Requests under way.
    pub depth: usize,
    /// 99 % of the answers left no later than this after they should have.
    pub lateness_p99: Nanos,
    /// The model's own counters: cache hits, credits left, erases.
    pub model: Vec<model::Counter>,
}

impl Emulation {
    /// Mounts the directories and serves the devices, each in a thread of its own.
    ///
    /// # Errors
    /// The machine lacks something, a directory cannot be mounted, or its files do not fit.
    pub fn start(devices: Vec<Served>, options: &Options) -> Result<Self, Error> {
        let awake = if options.sleeps { None } else { Awake::keep() };
        let mut emulation = Self { units: Vec::new(), started: Instant::now(), awake };
        // Before anything of the user's is mounted: what looks served is served in time.
        let serves_directories = devices.iter().any(|served| !served.directories.is_empty());
        let path = options.path.map(way::Path::fixed);
        let path = path.or_else(|| serves_directories.then(calibrated).flatten());
        let path = path.unwrap_or_else(|| way::Path::fixed(Nanos(0)));
        for served in devices {
            emulation.units.push(start(served, options, path.clone())?);
        }
        emulation.started = Instant::now();
        Ok(emulation)
    }

    /// Directories on which a killed emulator had left a mount, which was taken away.
    pub fn left_over(&self) -> impl Iterator<Item = &Path> {
        self.units.iter().flat_map(|unit| unit.left_over.iter().map(PathBuf::as_path))
    }

    /// The loop devices.
    pub fn blocks(&self) -> impl Iterator<Item = &Path> {
        self.units.iter().flat_map(|unit| unit.loops.iter().map(Loop::device))
    }

    /// What the devices are doing.
    pub fn status(&self) -> Vec<Status> {
        self.units.iter().map(Unit::status).collect()
    }

    /// What each device answered since the last call, by operation: the times of the model.
    pub fn completed(&self) -> Vec<Vec<Completed>> {
        let of = |unit: &Unit| {
            let taken = Op::ALL.iter().zip(unit.shared.live.iter());
            let taken = taken.map(|(op, tally)| tally.take(op.name()));
            taken.filter(|completed| completed.requests > 0).collect()
        };
        self.units.iter().map(of).collect()
    }

    /// Whether a device is served no more, since its directories were unmounted by somebody else or
    /// its thread failed.
    pub fn is_over(&self) -> bool {
        self.units
            .iter()
            .any(|unit| unit.shared.status.lock().expect("no panic under the lock").is_over)
    }

    /// Another model takes over for the device of that name; tells whether there is one.
    pub fn replace(&self, name: &str, device: Box<dyn Device>) -> bool {
        let Some(unit) = self.units.iter().find(|unit| unit.name == name) else { return false };
        unit.order(vec![Order::Device(device)]);
        true
    }

    /// From now on the device of that name fails so, and no otherwise; times count from the start.
    pub fn set_faults(&self, name: &str, faults: Faults) -> bool {
        let Some(unit) = self.units.iter().find(|unit| unit.name == name) else { return false };
        unit.order(vec![Order::Faults(faults)]);
        true
    }

    /// How long devices have been served.
    pub fn elapsed(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Ends the serving; what programs have written is in the directories below.
    ///
    /// # Errors
    /// The directory below could not be written or the thread of a device died.
    pub fn stop(self) -> Result<Vec<Outcome>, Error> {
        self.end(None)
    }

    /// Cuts the power: ends at once, and takes back what was not synced.
    ///
    /// # Errors
    /// As [`Emulation::stop`].
    pub fn cut_power(self, fate: Fate) -> Result<Vec<Outcome>, Error> {
        self.end(Some(fate))
    }

    fn end(mut self, fate: Option<Fate>) -> Result<Vec<Outcome>, Error> {
        let elapsed = self.started.elapsed().as_secs_f64();
        let awake = self.awake.is_some();
        let ended = |unit: &mut Unit| Ok(Outcome { awake, ..unit.end(elapsed, fate)? });
        self.units.iter_mut().map(ended).collect()
    }
}

/// Mounts everything and serves it.
fn start(served: Served, options: &Options, path: way::Path) -> Result<Unit, Error> {
    let Served { name, device, directories, exports, blocks } = served;
    let capacity = device.capacity();
    let mut layout = Layout::new(capacity.map_or(UNBOUNDED, |capacity| capacity.0));
    let mut left_over = Vec::new();
    for directory in &directories {
        if mount::clear_left_over(directory)? {
            left_over.push(directory.clone());
        }
        lay_out(directory, &name, &mut layout)?;
    }
    let (roots, waiting) = open_roots(&directories, options.forgetful)?;
    let has_exports = !exports.is_empty();
    let sockets = open_exports(exports, capacity, options.forgetful)?;
    let mut mounts = Vec::new();
    let (mut ends, mut below) = (Vec::new(), Vec::new());
    for (directory, (root, aside)) in directories.iter().zip(roots) {
        let (mounted, device) = Mounted::new(directory)?;
        mounts.push(mounted);
        below.push(rustix::fs::fstat(&root).map_or(0, |stat| stat.st_dev));
        ends.push((device, root, aside));
    }
    let shared = Arc::new(Shared::default());
    let told = Arc::clone(&shared);
    let shortest = Nanos(path.shortest_ns());
    let manner = Manner { spin: options.spin, path, faults: options.faults.clone() };
    let serve = move || {
        let layout = Rc::new(RefCell::new(layout));
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        for (fuse, root, aside) in ends {
            let behaviour = Behaviour {
                waiting: aside,
                lies: false,
                write_back: true,
                layout: Some(Rc::clone(&layout)),
                old_bytes_max: OLD_BYTES_MAX,
            };
            ports.push(Box::new(FusePort::new(fuse, Place::new(root, behaviour)?)));
        }
        for (socket, store) in sockets {
            ports.push(Box::new(Listener::new(socket, store)));
        }
        Server::new(device, ports, manner, &told).run()
    };
    let thread = std::thread::Builder::new().name("device".to_owned()).spawn(serve);
    let thread = thread.map_err(|source| Error::io(Path::new("/"), "starting a thread", source))?;
    let thread = Some(thread);
    let loops = Vec::new();
    let path = shortest;
    let mut unit =
        Unit { name, mounts, waiting, shared, path, thread, left_over, has_exports, loops };
    for (mounted, below) in unit.mounts.iter().zip(below) {
        mount::treat_as(mounted.directory(), below);
    }
    for file in blocks {
        unit.loops.push(Loop::attach(&file)?);
    }
    Ok(unit)
}

/// What a request and its answer need between a program and the thread of a device, measured on an
/// empty directory: by how much a sync exceeds the time of a device that takes one time
/// for a flush. The caller, the thread and the clock that it watches then wait as they will under
/// load.
fn calibrated() -> Option<way::Path> {
    let (home, unit) = scratch()?;
    let directory = File::open(home.path()).ok()?;
    let excess = |(service, count): (Duration, usize)| {
        unit.order(vec![Order::Device(constant_device(service))]);
        let trip = |_| {
            let before = crate::clock::now_ns();
            rustix::fs::fsync(&directory).ok()?;
            Some(crate::clock::now_ns() - before)
        };
        let mut trips = (0..count).map(trip).collect::<Option<Vec<_>>>()?;
        trips.sort_unstable();
        let service = service.as_nanos() as u64;
        // The lower quartile: programs that run beside it now are no part of the way.
        Some((service, trips[count / 4].saturating_sub(service)))
    };
    CALIBRATION.into_iter().map(excess).collect::<Option<_>>().map(way::Path::measured)
}

/// An empty directory, served by a device that takes no time.
fn scratch() -> Option<(tempfile::TempDir, Unit)> {
    let home = tempfile::tempdir().ok()?;
    let served = Served {
        name: "path".to_owned(),
        device: constant_device(Duration::ZERO),
        directories: vec![home.path().to_owned()],
        exports: Vec::new(),
        blocks: Vec::new(),
    };
    let unit = start(served, &Options::default(), way::Path::fixed(Nanos(0))).ok()?;
    Some((home, unit))
}

/// Asks something of an empty directory, served by a device that takes no time; `None` where none
/// can be served.
pub(crate) fn served_at_no_cost<T>(ask: impl FnOnce(&Path) -> T) -> Option<T> {
    let (home, _unit) = scratch()?;
    Some(ask(home.path()))
}

/// Opens the directories, and where the power may be cut one beside each for removed files; gives
/// the paths of the latter.
#[expect(clippy::type_complexity)]
fn open_roots(
    directories: &[PathBuf],
    forgetful: bool,
) -> Result<(Vec<(File, Option<File>)>, Vec<PathBuf>), Error> {
    let open = |path: &Path| File::open(path).map_err(|error| Error::io(path, "opening", error));
    let (mut roots, mut waiting) = (Vec::new(), Vec::new());
    for directory in directories {
        let root = open(directory)?;
        let mut aside = None;
        if forgetful {
            let path = directory.with_extension("unsynced");
            _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).map_err(|error| Error::io(&path, "creating", error))?;
            aside = Some(open(&path)?);
            waiting.push(path);
        }
        roots.push((root, aside));
    }
    Ok((roots, waiting))
}

/// Makes the sockets and the bytes behind them.
fn open_exports(
    exports: Vec<Export>,
    capacity: Option<Bytes>,
    forgetful: bool,
) -> Result<Vec<(Socket, Store)>, Error> {
    let open = |export: Export| {
        let most = capacity.map_or(u64::MAX, |capacity| capacity.0);
        let size = export.size.or(capacity).map_or(EXPORT_BYTES, |size| size.0).min(most);
        let store = match &export.file {
            Some(file) => Store::in_file(file, size, forgetful)?,
            None => Store::in_memory(size, forgetful)?,
        };
        Ok((Socket::bind(&export.socket)?, store))
    };
    exports.into_iter().map(open).collect()
}

/// Gives every file of the directory its place on the device, in the order of their names.
fn lay_out(directory: &Path, device: &str, layout: &mut Layout) -> Result<(), Error> {
    let mut left = vec![directory.to_owned()];
    let mut needed = 0;
    let mut is_full = false;
    while let Some(path) = left.pop() {
        let fail = |source| Error::io(&path, "reading", source);
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(fail)? {
            entries.push(entry.map_err(fail)?.path());
        }
        entries.sort();
        for path in entries {
            let fail = |source| Error::io(&path, "reading", source);
            let meta = std::fs::symlink_metadata(&path).map_err(fail)?;
            if meta.is_dir() {
                left.push(path);
            } else if meta.is_file() {
                needed += meta.size();
                is_full |= layout.place((meta.dev(), meta.ino()), meta.size()).is_err();
            }
        }
    }
    if !is_full {
        return Ok(());
    }
    Err(Error::DoesNotFit {
        path: directory.to_owned(),
        device: device.to_owned(),
        needed: Bytes(needed),
        capacity: Bytes(layout.capacity()),
    })
}

impl Unit {
    fn status(&self) -> Status {
        let status = self.shared.status.lock().expect("no panic under the lock");
        Status {
            name: self.name.clone(),
            requests: status.counters.requests(),
            depth: status.depth,
            model: status.model.clone(),
            lateness_p99: Nanos(status.counters.late_ns_p99()),
        }
    }

    fn is_over(&self) -> bool {
        self.shared.status.lock().expect("no panic under the lock").is_over
    }

    /// Has orders carried out; waits until they are.
    fn order(&self, orders: Vec<Order>) {
        let waiting = || self.shared.orders.lock().expect("no panic under the lock");
        waiting().extend(orders);
        let ordered = Instant::now();
        while !waiting().is_empty() && !self.is_over() && ordered.elapsed() < LET_GO {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Unmounts, and waits for the kernel's last writes where the power is not cut.
    fn close(&mut self, fate: Option<Fate>) -> std::io::Result<Lost> {
        let Some(thread) = self.thread.take() else { return Ok(Lost::default()) };
        *self.shared.fate.lock().expect("no panic under the lock") = fate;
        if fate.is_none() {
            self.loops.clear();
        }
        if fate.is_none() && !self.is_over() && !self.mounts.is_empty() {
            // What the kernel has kept need not take the time of the device.
            self.order(vec![Order::End, Order::Device(constant_device(Duration::ZERO))]);
            for mounted in &self.mounts {
                if let Ok(directory) = File::open(mounted.directory()) {
                    _ = rustix::fs::syncfs(&directory);
                }
            }
        } else {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        self.mounts.clear();
        self.loops.clear();
        let waiting_since = Instant::now();
        while !self.has_exports && !self.is_over() && waiting_since.elapsed() < LET_GO {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = thread.join().map_err(|_| std::io::Error::other("its thread died"))?;
        for path in self.waiting.drain(..) {
            _ = std::fs::remove_dir_all(path);
        }
        ended
    }

    fn end(&mut self, elapsed_s: f64, fate: Option<Fate>) -> Result<Outcome, Error> {
        let directories: Vec<PathBuf> =
            self.mounts.iter().map(|mounted| mounted.directory().to_owned()).collect();
        let place = directories.first().cloned().unwrap_or_default();
        let lost = self.close(fate).map_err(|source| Error::io(&place, "serving", source))?;
        let status = self.shared.status.lock().expect("no panic under the lock").clone();
        let counters = status.counters;
        let ops = Op::ALL.map(|op| OpOutcome::of(op, counters.of(op)));
        Ok(Outcome {
            device: std::mem::take(&mut self.name),
            directories,
            elapsed_s,
            ops: ops.into_iter().filter(|op| op.requests > 0).collect(),
            depth_max: counters.depth_max,
            path_us: self.path.0 as f64 / 1e3,
            awake: false,
            service_us_p50: counters.service_ns_p50() as f64 / 1e3,
            lateness_us_mean: counters.lateness.mean() / 1e3,
            lateness_us_p99: counters.late_ns_p99() as f64 / 1e3,
            lateness: counters.lateness,
            model: status.model.iter().map(|one| (one.name.to_owned(), one.value)).collect(),
            lost: fate.map(|_| lost),
        })
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        _ = self.close(None);
    }
}
