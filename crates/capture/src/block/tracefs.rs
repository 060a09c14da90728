//! Our tracefs instance: set up, polled, removed.
//!
//! All of it happens in one thread, so that a private mount of tracefs can belong to that thread
//! alone. Buffers do not overwrite: when the reader falls behind, the newest events are dropped
//! and counted by the kernel.
//!
//! Invariants: the instance is gone when the thread ends, however it ends; memory is bounded by
//! [`EVENT_LIMIT`], beyond which events count as lost. Tested as root on a file of our own.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Unavailable;
use super::join::{RawEvent, operation};
use super::ring::{self, Field, PageLayout};
use crate::now_ns;

/// Time between two looks at the buffers: a reader that waits for pages would be woken for each.
const POLL: Duration = Duration::from_millis(20);
/// Events kept at most, 32 bytes each.
const EVENT_LIMIT: usize = 8_000_000;
/// Kernel memory for all processors' buffers together, KiB.
const BUFFERS_KIB: usize = 256 << 10;
/// Kernel memory for one processor's buffer at most, KiB.
const BUFFER_KIB: usize = 8 << 10;
/// Where the kernel offers a place for tracefs.
const TRACEFS: &str = "/sys/kernel/tracing";
const REMEDY_ROOT: &str = "Run as root to see the block layer, or go on without it.";
const REMEDY_KERNEL: &str =
    "Use a kernel with CONFIG_BLK_DEV_IO_TRACE and CONFIG_TRACING, or go on without it.";

/// The tracepoints, and whether they tell of an issue.
const POINTS: [(&str, bool); 2] = [("block_rq_issue", true), ("block_rq_complete", false)];

/// A capture thread.
pub(super) struct Collector {
    stop: Sender<()>,
    /// `None` once it has been waited for.
    thread: Option<JoinHandle<Collected>>,
    origin_ns: u64,
}

/// What it brought home.
#[derive(Default)]
pub(super) struct Collected {
    pub events: Vec<RawEvent>,
    pub losses: u64,
}

impl Collector {
    /// Starts capturing the requests of the disk with this number (`major << 20 | minor`).
    pub(super) fn start(device: u32) -> Result<Self, Unavailable> {
        let (stop, stopped) = channel();
        let (tell, ready) = channel();
        let thread = std::thread::Builder::new()
            .name("block-capture".to_owned())
            .spawn(move || match Instance::create(device) {
                Ok(instance) => {
                    let _ = tell.send(Ok(now_ns()));
                    instance.collect(&stopped)
                }
                Err(unavailable) => {
                    let _ = tell.send(Err(unavailable));
                    Collected::default()
                }
            })
            .map_err(|error| Unavailable::new(error.to_string(), "Allow more threads."))?;
        let died = || Unavailable::new("the capture thread ended early", REMEDY_KERNEL);
        let origin_ns = ready.recv().map_err(|_| died())??;
        Ok(Self { stop, thread: Some(thread), origin_ns })
    }

    /// When everything was set up, ns of CLOCK_MONOTONIC.
    pub(super) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Ends the capture.
    pub(super) fn finish(mut self) -> Collected {
        self.end()
    }

    /// Waits until the instance is gone.
    fn end(&mut self) -> Collected {
        let _ = self.stop.send(());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end();
    }
}

/// How events of one tracepoint are read.
struct Point {
    id: u16,
    issue: bool,
    kind: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
}

/// The instance's folder; removed when dropped.
struct Instance {
    path: PathBuf,
    layout: PageLayout,
    points: Vec<Point>,
    pipes: Vec<File>,
    collected: Collected,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        let _ = std::fs::write(self.path.join("events/enable"), "0");
        let _ = std::fs::remove_dir(&self.path);
    }
}

impl Instance {
    fn create(device: u32) -> Result<Self, Unavailable> {
        let root = mounted_tracefs()?;
        remove_stale(&root);
        let path =
            root.join(format!("instances/wearmark-{}-{device}-{}", std::process::id(), now_ns()));
        std::fs::create_dir(&path).map_err(|error| {
            Unavailable::new(format!("no tracefs instance can be made: {error}"), REMEDY_ROOT)
        })?;
        // From here on the folder is removed whatever happens.
        let layout =
            PageLayout { commit_offset: 8, commit_size: 8, data_offset: 16, page_size: 4096 };
        let (points, pipes, collected) = (Vec::new(), Vec::new(), Collected::default());
        let mut instance = Self { path, layout, points, pipes, collected };
        instance.set_up(&root, device).map_err(|error| {
            Unavailable::new(format!("tracefs refuses the capture: {error}"), REMEDY_KERNEL)
        })?;
        Ok(instance)
    }

    fn set_up(&mut self, root: &Path, device: u32) -> io::Result<()> {
        let header = read(&root.join("events/header_page"))?;
        self.layout = ring::page_layout(&header).ok_or_else(|| strange("events/header_page"))?;
        let per_cpu: Vec<PathBuf> = std::fs::read_dir(self.path.join("per_cpu"))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        let buffer = BUFFER_KIB.min(BUFFERS_KIB / per_cpu.len().max(1)).max(64);
        self.write("trace_clock", "mono")?;
        self.write("buffer_size_kb", &buffer.to_string())?;
        self.write("options/overwrite", "0")?;
        for (name, issue) in POINTS {
            let format = read(&self.path.join(format!("events/block/{name}/format")))?;
            self.points.push(point(&format, issue).ok_or_else(|| strange(name))?);
            self.write(&format!("events/block/{name}/filter"), &format!("dev == {device}"))?;
        }
        for folder in &per_cpu {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
            self.pipes.push(options.open(folder.join("trace_pipe_raw"))?);
        }
        self.enable("1")
    }

    fn enable(&self, on: &str) -> io::Result<()> {
        POINTS
            .iter()
            .try_for_each(|(name, _)| self.write(&format!("events/block/{name}/enable"), on))
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        std::fs::write(self.path.join(name), value)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }

    /// Polls until told to stop, or until the other end is gone.
    fn collect(mut self, stopped: &Receiver<()>) -> Collected {
        let mut page = vec![0; self.layout.page_size];
        while stopped.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            self.drain(&mut page);
        }
        let _ = self.enable("0");
        self.drain(&mut page);
        self.collected.losses += self.dropped();
        std::mem::take(&mut self.collected)
    }

    fn drain(&mut self, page: &mut [u8]) {
        for pipe in &mut self.pipes {
            while let Ok(size) = pipe.read(page) {
                if size == 0 {
                    break;
                }
                let (points, collected) = (&self.points, &mut self.collected);
                ring::events(&page[..size], self.layout, |time, event| {
                    let Some(event) = decode(points, time, event) else { return };
                    if collected.events.len() < EVENT_LIMIT {
                        collected.events.push(event);
                    } else {
                        collected.losses += 1;
                    }
                });
            }
        }
    }

    /// Events that the kernel dropped, over all processors.
    fn dropped(&self) -> u64 {
        let folders = std::fs::read_dir(self.path.join("per_cpu")).into_iter().flatten().flatten();
        folders.map(|folder| read(&folder.path().join("stats")).map_or(0, |t| losses(&t))).sum()
    }
}

/// Sum of the loss counters of one processor's `stats`.
fn losses(stats: &str) -> u64 {
    let counter = |line: &str| {
        let (name, count) = line.split_once(": ")?;
        let counts = ["overrun", "commit overrun", "dropped events"].contains(&name);
        counts.then_some(())?;
        count.trim().parse::<u64>().ok()
    };
    stats.lines().filter_map(counter).sum()
}

fn point(format: &str, issue: bool) -> Option<Point> {
    let field = |name| ring::field(format, name);
    Some(Point {
        id: ring::event_id(format)?,
        issue,
        kind: field("common_type")?,
        sector: field("sector")?,
        sectors: field("nr_sector")?,
        rwbs: field("rwbs")?,
    })
}

fn decode(points: &[Point], time_ns: u64, event: &[u8]) -> Option<RawEvent> {
    let is = |point: &&Point| point.kind.number(event) == Some(u64::from(point.id));
    let point = points.iter().find(is)?;
    Some(RawEvent {
        time_ns,
        sector: point.sector.number(event)?,
        sectors: point.sectors.number(event)? as u32,
        op: operation(point.rwbs.text(event)?)?,
        issue: point.issue,
    })
}

fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not as documented"))
}

/// A file of tracefs as text. Read in large pieces: some of its files (`events/header_page`) end
/// at the end of the first read, however short, and `std::fs::read_to_string` begins with 32 bytes.
fn read(path: &Path) -> io::Result<String> {
    let name =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = File::open(path).map_err(name)?;
    let (mut text, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece).map_err(name)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}

/// Where tracefs is, mounting it for this thread alone where it is not mounted.
fn mounted_tracefs() -> Result<PathBuf, Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable::new("block tracing needs root", REMEDY_ROOT));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(place) = tracefs_in(&mounts) {
        return Ok(place);
    }
    if !Path::new(TRACEFS).is_dir() {
        return Err(Unavailable::new("this kernel has no tracefs", REMEDY_KERNEL));
    }
    mount_privately().map_err(|error| {
        Unavailable::new(
            format!("tracefs is not mounted and cannot be mounted: {error}"),
            format!("Run 'mount -t tracefs nodev {TRACEFS}' as root."),
        )
    })?;
    Ok(PathBuf::from(TRACEFS))
}

/// Where a mount table has tracefs.
fn tracefs_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        (back.split(' ').next()? == "tracefs")
            .then(|| front.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// Mounts tracefs in a mount namespace that only this thread is in.
fn mount_privately() -> io::Result<()> {
    let check = |result: libc::c_int| match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    let (none, root) = (std::ptr::null(), c"/".as_ptr());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: plain system calls with C strings that outlive them; the new namespace and working
    // directory state belong to this thread alone.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(none, root, none, private, none.cast()))?;
        let place = c"/sys/kernel/tracing".as_ptr();
        check(libc::mount(c"nodev".as_ptr(), place, c"tracefs".as_ptr(), 0, none.cast()))
    }
}

/// Removes instances of ours whose process is gone.
fn remove_stale(root: &Path) {
    for entry in std::fs::read_dir(root.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix("wearmark-").and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::write(entry.path().join("events/enable"), "0");
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_processor() {
        let stats = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 99\n\
                     oldest event ts:  10.5\nnow ts: 11.0\ndropped events: 40\nread events: 7\n";
        assert_eq!(losses(stats), 43);
        assert_eq!(losses(""), 0);
    }

    /// Instances of this process, seen from a thread with tracefs mounted.
    fn instances() -> Vec<PathBuf> {
        let look = || {
            let root = mounted_tracefs().expect("the collector could mount it");
            let ours = format!("wearmark-{}-", std::process::id());
            let entries = root.join("instances").read_dir().unwrap().flatten();
            let is_ours =
                |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&ours);
            entries.map(|entry| entry.path()).filter(is_ours).collect()
        };
        std::thread::spawn(look).join().unwrap()
    }

    #[test]
    fn nothing_is_left_behind_by_a_drop_or_a_panic() {
        let device = 250 << 20; // No disk: the tracepoints never fire.
        let collector = match Collector::start(device) {
            Ok(collector) => collector,
            Err(unavailable) => return println!("skipped: {unavailable}"),
        };
        assert_eq!(instances().len(), 1, "while it runs");
        drop(collector);
        assert_eq!(instances(), Vec::<PathBuf>::new(), "after a drop");
        let panics = std::thread::spawn(move || {
            let _collector = Collector::start(device).expect("as above");
            std::panic::resume_unwind(Box::new("planned"));
        });
        assert!(panics.join().is_err());
        assert_eq!(instances(), Vec::<PathBuf>::new(), "after a panic");
        let stale = std::thread::spawn(|| {
            let root = mounted_tracefs().expect("as above");
            // Process numbers end at 2^22, so this process is gone.
            let left = root.join("instances/wearmark-4194999-0-0");
            std::fs::create_dir(&left).unwrap();
            remove_stale(&root);
            left.exists()
        });
        assert!(!stale.join().unwrap(), "one left by a killed process");
    }

    #[test]
    fn tracefs_by_the_mount_table() {
        let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      9 8 0:12 / /sys/kernel/tracing rw,nosuid - tracefs tracefs rw\n";
        assert_eq!(tracefs_in(mounts), Some(PathBuf::from(TRACEFS)));
        assert_eq!(tracefs_in("27 1 254:0 / /tracefs rw - ext4 tracefs rw\n"), None);
    }
}
