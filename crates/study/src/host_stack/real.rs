//! The same calls made for real: on a file system of the kernel above a loop device, with what that
//! device got beside what the model says.
//!
//! Each stream is a file, each actor a thread that makes its calls when they are due, or later
//! where an earlier one of its own still runs. Root only.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use capture::block::{self, Physical};
use capture::sqlite::{FileClass, FileInfo};
use emulate::file_system::{Mounted, Recipe, with_file_system};
use events::{Event, Sink, Warning};
use host::file_system::{Journal, Kind, Settings, Sync};
use host::{FileLayer, Files};
use trace::{Op, Trace};

use crate::Error;

/// Bytes of one write that fills a file before the run.
const FILL: usize = 1 << 20;
/// Alignment that direct I/O may ask for.
const ALIGNMENT: usize = 4096;
/// Where 1 of 100 calls is later than this, timers see another load than the trace.
const LATE_NS: u64 = 100_000_000;
/// Room on the device beside the files, for what a file system keeps for itself.
const ROOM: u64 = 1 << 30;

/// What the device really got.
#[derive(Clone, Debug)]
pub struct Real {
    /// Its requests; streams are those of the capture: `data` is content of files, `other` is not.
    /// Where files move as they are written there is one stream for all.
    pub trace: Trace,
    /// Whether content of files is told from the rest.
    pub is_attributed: bool,
    /// Requests that the capture lost.
    pub lost: u64,
    /// How late calls were made, 99 of 100 less, ns.
    pub late_p99_ns: u64,
}

/// Makes the calls of `logical` on such a file system in `directory`; `None` where the user stopped
/// it.
///
/// # Errors
/// Without root, loop devices or the tools of the file system, or where a call fails.
pub fn really(
    spec: &FileLayer,
    logical: &Trace,
    directory: &Path,
    sink: &dyn Sink,
) -> Result<Option<Real>, Error> {
    logical.validate().map_err(sim::Error::Malformed)?;
    if let Some(cache) = &spec.page_cache {
        warn_of_memory(cache.memory_bytes, sink);
    }
    let regions = host::regions(logical);
    let recipe = recipe(spec, regions.iter().map(|file| file.bytes).sum());
    let made = with_file_system(directory, &recipe, |mounted| {
        let run = Run { spec, logical, starts: regions.iter().map(|file| file.start).collect() };
        let lengths: Vec<u64> = regions.iter().map(|file| file.bytes).collect();
        run.make(mounted, &lengths, sink)
    });
    made?
}

/// A run has the memory of this machine, whatever the stack says.
fn warn_of_memory(modelled: u64, sink: &dyn Sink) {
    let system = rustix::system::sysinfo();
    let memory = system.totalram * u64::from(system.mem_unit);
    if modelled.abs_diff(memory) > memory / 4 {
        let message = format!(
            "the real page cache has the memory of this machine ({}), the stack says {}",
            units::Bytes(memory),
            units::Bytes(modelled)
        );
        sink.emit(Event::Warning(Warning::new("host", "other_memory", message)));
    }
}

fn recipe(spec: &FileLayer, bytes: u64) -> Recipe {
    let Settings { kind, journal, journal_bytes, .. } = &spec.file_system;
    let (name, words) = match kind {
        Kind::Ext2 => ("ext2", vec!["-q", "-F", "-b", "4096", "-E", "nodiscard"]),
        Kind::Ext3 => ("ext3", vec!["-q", "-F", "-b", "4096", "-E", "nodiscard"]),
        // What is left for later is written while the calls run.
        Kind::Ext4 => (
            "ext4",
            vec![
                "-q",
                "-F",
                "-b",
                "4096",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
            ],
        ),
        Kind::Xfs => ("xfs", vec!["-q", "-f", "-K"]),
        Kind::Btrfs => ("btrfs", vec!["-q", "-f", "-K"]),
        Kind::F2fs => ("f2fs", vec!["-q", "-f", "-t", "0"]),
        Kind::Nilfs2 => ("nilfs2", vec!["-q", "-f", "-K"]),
    };
    let mut make: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let size = journal_bytes >> 20;
    let mut options = "";
    match (kind, journal) {
        (Kind::Xfs, _) => make.push(format!("-lsize={size}m")),
        (Kind::Btrfs, _) if !spec.file_system.data_cow => options = "nodatacow",
        (Kind::Ext4, Journal::None) => make.push("-O^has_journal".to_owned()),
        (_, Journal::None) => {}
        (_, journal) => {
            make.push(format!("-Jsize={size}"));
            match journal {
                Journal::Data => options = "data=journal",
                Journal::FastCommit => make.push("-Ofast_commit".to_owned()),
                _ => options = "data=ordered",
            }
        }
    }
    Recipe {
        kind: name.to_owned(),
        make,
        options: options.to_owned(),
        bytes: spec.file_system.capacity_bytes.max(2 * bytes + ROOM),
        scheduler: Some("none".to_owned()),
        read_ahead_kib: spec.page_cache.as_ref().map(|cache| cache.read_ahead_pages * 4),
    }
}

struct Run<'a> {
    spec: &'a FileLayer,
    logical: &'a Trace,
    starts: Vec<u64>,
}

/// What the threads of a run share.
struct Shared {
    begin: Instant,
    stopped: AtomicBool,
    done: AtomicUsize,
}

impl Run<'_> {
    fn make(
        &self,
        mounted: &Mounted,
        lengths: &[u64],
        sink: &dyn Sink,
    ) -> Result<Option<Real>, Error> {
        let paths: Vec<PathBuf> = (0..lengths.len())
            .map(|file| mounted.root.join(format!("{file}-{}", self.logical.streams[file].name)))
            .collect();
        let mut files = Vec::new();
        for (path, bytes) in paths.iter().zip(lengths) {
            files.push(self.file(path, *bytes).map_err(Error::io(path, "make"))?);
            if sink.cancelled() {
                return Ok(None);
            }
        }
        let root = File::open(&mounted.root).map_err(Error::io(&mounted.root, "open"))?;
        rustix::fs::syncfs(&root)
            .map_err(|error| Error::io(&mounted.root, "sync")(error.into()))?;
        for file in &files {
            // What was written to fill it is no page cache of the load.
            _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        }
        let watch = block::start_device(&mounted.device)?;
        let before = Instant::now();
        let offset_ns = monotonic_ns().saturating_sub(watch.origin_ns());
        let late = self.calls(&files, before, sink);
        let infos: Vec<_> = paths
            .iter()
            .zip(lengths)
            .map(|(path, bytes)| FileInfo {
                class: FileClass::Data,
                path: path.clone(),
                base_offset: 0,
                size: *bytes,
            })
            .collect();
        // Places of files are asked for at the end, and btrfs has addresses of its own.
        let is_attributed =
            !matches!(self.spec.file_system.kind, Kind::Nilfs2 | Kind::F2fs | Kind::Btrfs);
        let found = if is_attributed { watch.finish(&infos) } else { watch.finish_whole() };
        let Physical { mut trace, losses, .. } = found;
        let Some(mut late) = late.map_err(Error::io(&mounted.root, "make the calls"))? else {
            return Ok(None);
        };
        for due in &mut trace.due {
            *due = due.saturating_sub(offset_ns);
        }
        late.sort_unstable();
        let place = (late.len() * 99).div_ceil(100).saturating_sub(1);
        let late_p99_ns = late.get(place).copied().unwrap_or(0);
        if late_p99_ns > LATE_NS {
            let message = format!(
                "1 of 100 calls was made more than {:.1} s late: write-back by age and by time \
                 is another one than the model's",
                late_p99_ns as f64 / 1e9
            );
            let warning = Warning::new("host", "calls_late", message);
            sink.emit(Event::Warning(
                warning.with_hint("use a quieter machine, or slow the trace with 'trace scale'"),
            ));
        }
        Ok(Some(Real { trace, is_attributed, lost: losses, late_p99_ns }))
    }

    /// A file of the trace, as it is before the first call.
    fn file(&self, path: &Path, bytes: u64) -> std::io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        match self.spec.files {
            Files::Absent => {}
            Files::Allocated => {
                rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes.max(1))?;
            }
            Files::Written => {
                let content = vec![0x5A; FILL];
                for at in (0..bytes).step_by(FILL) {
                    let len = (bytes - at).min(FILL as u64) as usize;
                    file.write_all_at(&content[..len], at)?;
                }
            }
        }
        file.sync_all()?;
        if self.spec.page_cache.is_some() {
            return Ok(file);
        }
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
    }

    /// Makes all calls; how late each was, or `None` where the user stopped it.
    fn calls(
        &self,
        files: &[File],
        begin: Instant,
        sink: &dyn Sink,
    ) -> std::io::Result<Option<Vec<u64>>> {
        let shared = Shared { begin, stopped: AtomicBool::new(false), done: AtomicUsize::new(0) };
        let mut actors: Vec<Vec<usize>> = Vec::new();
        for index in 0..self.logical.count() {
            let actor = self.logical.chains.as_ref().map_or(0, |chains| chains.actor[index]);
            let place = usize::from(actor);
            if actors.len() <= place {
                actors.resize(place + 1, Vec::new());
            }
            actors[place].push(index);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                actors.iter().map(|own| scope.spawn(|| self.actor(own, files, &shared))).collect();
            let mut told = Instant::now();
            while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                std::thread::sleep(Duration::from_millis(20));
                if sink.cancelled() {
                    shared.stopped.store(true, Ordering::Relaxed);
                }
                if told.elapsed() > Duration::from_secs(2) {
                    told = Instant::now();
                    let made = shared.done.load(Ordering::Relaxed);
                    sink.emit(Event::Progress {
                        stage: "host".to_owned(),
                        done: made as f64 / self.logical.count().max(1) as f64,
                        doing: format!("{made} calls made on a real file system"),
                        eta_s: None,
                    });
                }
            }
            let mut late = Vec::with_capacity(self.logical.count());
            for thread in threads {
                let own = thread.join();
                late.extend(own.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok((!shared.stopped.load(Ordering::Relaxed)).then_some(late))
        })
    }

    fn actor(&self, own: &[usize], files: &[File], shared: &Shared) -> std::io::Result<Vec<u64>> {
        let longest = own.iter().map(|&index| self.logical.len[index]).max().unwrap_or(0);
        let mut buffer = vec![0xA5_u8; longest as usize + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        let mut late = Vec::with_capacity(own.len());
        for &index in own {
            let request = self.logical.request(index);
            let due = shared.begin + Duration::from_nanos(request.due.0);
            // An order to stop is heard in the middle of a long pause.
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                if shared.stopped.load(Ordering::Relaxed) {
                    return Ok(late);
                }
                std::thread::sleep(left.min(Duration::from_millis(100)));
            }
            late.push(due.elapsed().as_nanos() as u64);
            let stream = usize::from(request.stream);
            let file = &files[stream];
            let bytes = &mut buffer[start..start + request.len as usize];
            let at = request.offset.0.saturating_sub(self.starts[stream]);
            match request.op {
                Op::Read => _ = file.read_at(bytes, at)?,
                Op::Write => file.write_all_at(bytes, at)?,
                Op::Flush if self.spec.sync == Sync::Fsync => file.sync_all()?,
                Op::Flush => file.sync_data()?,
                Op::Trim => {}
            }
            shared.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(late)
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
