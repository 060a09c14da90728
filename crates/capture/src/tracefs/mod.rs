//! A tracefs instance of our own: set up, polled, removed. The ground of every kernel capture.
//!
//! A [`Reader`] says which tracepoints it wants and makes of their events what it likes; the rest
//! is the same for all: a thread of its own (so that a private mount of tracefs can belong to it
//! alone), binary pages read every 20 ms (a reader that waits for pages would be woken for each),
//! exact loss counters. Buffers do not overwrite: when the reader falls behind, the newest events
//! are dropped and counted by the kernel. Kernel documentation: trace/ftrace.rst, trace/events.rst,
//! trace/ring-buffer-design.rst.
//!
//! Where processes are followed, their children are too (`event-fork`).
//!
//! Invariant: the instance is gone when the thread ends, however it ends. Tested as root on an
//! instance whose tracepoints never fire.

mod cost;
mod mount;
pub(crate) mod ring;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Unavailable;
use crate::now_ns;
use mount::{mounted_tracefs, remove_stale};
use ring::{Field, PageLayout};

/// Time between two looks at the buffers.
const POLL: Duration = Duration::from_millis(20);
/// Sampled tracepoints are off for the rest of a second after about this many of their events: they
/// cost some hundredths of the time.
const SAMPLED_PER_S: u64 = 20_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Kernel memory for all processors' buffers together, KiB.
const BUFFERS_KIB: usize = 256 << 10;
/// Kernel memory for one processor's buffer at most, KiB.
const BUFFER_KIB: usize = 8 << 10;
const REMEDY_ROOT: &str = "Run as root to see the kernel's events, or go on without them.";
const REMEDY_KERNEL: &str = "Use a kernel with CONFIG_BLK_DEV_IO_TRACE, CONFIG_FTRACE_SYSCALLS and \
                             CONFIG_TRACING, or go on without its events.";

/// One tracepoint that is wanted.
pub(crate) struct Wanted {
    /// Its folder in `events/`, such as `block`.
    pub system: &'static str,
    pub name: String,
    /// Which of its events are kept, in the kernel's filter language; empty for all.
    pub filter: String,
    /// Whether the capture can do without it on a kernel that lacks it.
    pub optional: bool,
    /// Whether it is on for a part of each second only, together with all others of the kind.
    pub sampled: bool,
}

/// Tells the tasks (thread numbers) to follow.
pub(crate) type Tasks = Box<dyn Fn() -> BTreeSet<u32> + Send>;

/// Makes something of the events.
pub(crate) trait Reader: Send + 'static {
    /// What is left in the end.
    type Output: Default + Send + 'static;

    /// Learns the `format` text of a tracepoint, by its index in the list; `None` where it is not
    /// as documented.
    fn learn(&mut self, index: usize, format: &str) -> Option<()>;

    /// The tracepoints fire from now on.
    fn started(&mut self) {}

    /// Takes an event of the tracepoint `index`. Events of one processor come in order.
    fn event(&mut self, index: usize, time_ns: u64, event: &[u8]);

    /// The sampled tracepoints were switched off at this time, or are on again since.
    fn sampling(&mut self, on: bool, time_ns: u64) {
        let _ = (on, time_ns);
    }

    /// All events up to `complete_ns` have been handed over.
    fn polled(&mut self, complete_ns: u64);

    /// The end.
    fn finish(self, recorded: Recorded) -> Self::Output;
}

/// What a capture recorded and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Recorded {
    /// Events.
    pub events: u64,
    /// Events that were lost in the kernel.
    pub dropped: u64,
    /// What recording an event takes the task in which it happens, ns; 0 where no processes are
    /// followed.
    pub event_ns: f64,
}

/// A capture thread.
pub(crate) struct Collector<R: Reader> {
    stop: Sender<()>,
    /// `None` once it has been waited for.
    thread: Option<JoinHandle<R::Output>>,
    origin_ns: u64,
}

impl<R: Reader> Collector<R> {
    /// Starts capturing. `label` goes into the instance's name.
    pub(crate) fn start(
        label: &str,
        wanted: Vec<Wanted>,
        tasks: Option<Tasks>,
        reader: R,
    ) -> Result<Self, Unavailable> {
        let (stop, stopped) = channel();
        let (tell, ready) = channel();
        let label = label.to_owned();
        let thread = std::thread::Builder::new()
            .name(format!("capture-{label}"))
            .spawn(move || match Instance::create(&label, &wanted, tasks.as_ref(), reader) {
                Ok((instance, reader)) => {
                    let _ = tell.send(Ok(now_ns()));
                    instance.collect(reader, &stopped)
                }
                Err(unavailable) => {
                    let _ = tell.send(Err(unavailable));
                    R::Output::default()
                }
            })
            .map_err(|error| Unavailable::new(error.to_string(), "Allow more threads."))?;
        let died = || Unavailable::new("the capture thread ended early", REMEDY_KERNEL);
        let origin_ns = ready.recv().map_err(|_| died())??;
        Ok(Self { stop, thread: Some(thread), origin_ns })
    }

    /// When everything was set up, ns of CLOCK_MONOTONIC.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Ends the capture.
    pub(crate) fn finish(mut self) -> R::Output {
        self.end()
    }

    /// Waits until the instance is gone.
    fn end(&mut self) -> R::Output {
        let _ = self.stop.send(());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl<R: Reader> Drop for Collector<R> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The instance's folder; removed when dropped.
struct Instance {
    path: PathBuf,
    layout: PageLayout,
    /// Index in the list of wanted tracepoints by event number.
    indices: Vec<Option<usize>>,
    kind: Field,
    enables: Vec<String>,
    sampled: Sampled,
    pipes: Vec<File>,
    events: u64,
    event_ns: f64,
}

/// The tracepoints that are on for a part of each second.
#[derive(Default)]
struct Sampled {
    indices: Vec<usize>,
    enables: Vec<String>,
    /// When the second began, and how many of their events came in it.
    since_ns: u64,
    events: u64,
    off: bool,
}

impl Sampled {
    /// Whether they have to be switched now, and to what.
    fn turn(&mut self, now_ns: u64) -> Option<bool> {
        if now_ns.saturating_sub(self.since_ns) >= SECOND_NS {
            (self.since_ns, self.events) = (now_ns, 0);
        }
        let off = self.events >= SAMPLED_PER_S;
        (off != std::mem::replace(&mut self.off, off)).then_some(!off)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        let _ = std::fs::write(self.path.join("events/enable"), "0");
        let _ = std::fs::remove_dir(&self.path);
    }
}

impl Instance {
    fn create<R: Reader>(
        label: &str,
        wanted: &[Wanted],
        tasks: Option<&Tasks>,
        mut reader: R,
    ) -> Result<(Self, R), Unavailable> {
        let root = mounted_tracefs()?;
        remove_stale(&root);
        let name = format!("instances/wearmark-{}-{label}-{}", std::process::id(), now_ns());
        let path = root.join(name);
        std::fs::create_dir(&path).map_err(|error| {
            Unavailable::new(format!("no tracefs instance can be made: {error}"), REMEDY_ROOT)
        })?;
        // From here on the folder is removed whatever happens.
        let layout =
            PageLayout { commit_offset: 8, commit_size: 8, data_offset: 16, page_size: 4096 };
        let kind = Field { offset: 0, size: 2 };
        let (indices, enables, sampled, pipes) = Default::default();
        let (events, event_ns) = (0, 0.0);
        let mut instance =
            Self { path, layout, indices, kind, enables, sampled, pipes, events, event_ns };
        instance.set_up(&root, wanted, tasks, &mut reader).map_err(|error| {
            Unavailable::new(format!("tracefs refuses the capture: {error}"), REMEDY_KERNEL)
        })?;
        Ok((instance, reader))
    }

    fn set_up<R: Reader>(
        &mut self,
        root: &Path,
        wanted: &[Wanted],
        tasks: Option<&Tasks>,
        reader: &mut R,
    ) -> io::Result<()> {
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
        if tasks.is_some() {
            self.event_ns = cost::event_ns(&self.path).unwrap_or(0.0);
        }
        for (index, point) in wanted.iter().enumerate() {
            self.add(index, point, reader)?;
        }
        if let Some(tasks) = tasks {
            self.follow(tasks)?;
        }
        for folder in &per_cpu {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
            self.pipes.push(options.open(folder.join("trace_pipe_raw"))?);
        }
        self.enable("1")?;
        reader.started();
        Ok(())
    }

    fn add<R: Reader>(&mut self, index: usize, point: &Wanted, reader: &mut R) -> io::Result<()> {
        let folder = format!("events/{}/{}", point.system, point.name);
        if point.optional && !self.path.join(&folder).is_dir() {
            return Ok(());
        }
        let format = read(&self.path.join(&folder).join("format"))?;
        let strange = || strange(&point.name);
        let id = usize::from(ring::event_id(&format).ok_or_else(strange)?);
        self.kind = ring::field(&format, "common_type").ok_or_else(strange)?;
        reader.learn(index, &format).ok_or_else(strange)?;
        if !point.filter.is_empty() {
            self.write(&format!("{folder}/filter"), &point.filter)?;
        }
        if self.indices.len() <= id {
            self.indices.resize(id + 1, None);
        }
        self.indices[id] = Some(index);
        let enable = format!("{folder}/enable");
        if point.sampled {
            self.sampled.indices.push(index);
            self.sampled.enables.push(enable.clone());
        }
        self.enables.push(enable);
        Ok(())
    }

    /// Restricts the instance to some tasks and their children. Children born between the look and
    /// the switch are found by a second look.
    fn follow(&self, tasks: &Tasks) -> io::Result<()> {
        let words = |tasks: &BTreeSet<u32>| {
            tasks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ") + "\n"
        };
        let first = tasks();
        if first.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the process is gone"));
        }
        self.write("set_event_pid", &words(&first))?;
        self.write("options/event-fork", "1")?;
        let late = &tasks() - &first;
        if late.is_empty() {
            return Ok(());
        }
        let list = self.path.join("set_event_pid");
        OpenOptions::new().append(true).open(list)?.write_all(words(&late).as_bytes())
    }

    fn enable(&self, on: &str) -> io::Result<()> {
        self.enables.iter().try_for_each(|name| self.write(name, on))
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        std::fs::write(self.path.join(name), value)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }

    /// Polls until told to stop, or until the other end is gone.
    fn collect<R: Reader>(mut self, mut reader: R, stopped: &Receiver<()>) -> R::Output {
        let mut page = vec![0; self.layout.page_size];
        while stopped.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            self.drain(&mut page, &mut reader);
        }
        let _ = self.enable("0");
        self.drain(&mut page, &mut reader);
        reader.polled(u64::MAX);
        let recorded =
            Recorded { events: self.events, dropped: self.dropped(), event_ns: self.event_ns };
        // The instance goes first: what follows may take long.
        drop(self);
        reader.finish(recorded)
    }

    fn drain<R: Reader>(&mut self, page: &mut [u8], reader: &mut R) {
        let begin_ns = now_ns();
        for pipe in &mut self.pipes {
            while let Ok(size) = pipe.read(page) {
                if size == 0 {
                    break;
                }
                ring::events(&page[..size], self.layout, |time, event| {
                    let id = self.kind.number(event).map(|id| id as usize);
                    let index = id.and_then(|id| *self.indices.get(id)?);
                    if let Some(index) = index {
                        self.events += 1;
                        reader.event(index, time, event);
                        self.sampled.events += u64::from(self.sampled.indices.contains(&index));
                    }
                });
            }
        }
        self.turn(reader);
        // An event stamped before we began may still have been in the making: a safe distance.
        reader.polled(begin_ns.saturating_sub(1_000_000));
    }

    /// Switches the sampled tracepoints. What they see between the switch and the time that is
    /// told counts for nothing: they are off for a little longer than they had to be.
    fn turn<R: Reader>(&mut self, reader: &mut R) {
        let before_ns = now_ns();
        let Some(on) = self.sampled.turn(before_ns) else { return };
        for enable in &self.sampled.enables {
            let _ = self.write(enable, if on { "1" } else { "0" });
        }
        reader.sampling(on, if on { now_ns() } else { before_ns });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_tracepoints_are_on_at_the_beginning_of_each_second() {
        let mut own = Sampled { since_ns: 100, ..Sampled::default() };
        assert_eq!(own.turn(200), None);
        own.events = SAMPLED_PER_S;
        assert_eq!(own.turn(300), Some(false));
        assert_eq!(own.turn(SECOND_NS), None);
        assert_eq!(own.turn(SECOND_NS + 100), Some(true));
        assert_eq!((own.events, own.turn(SECOND_NS + 200)), (0, None));
        own.events = SAMPLED_PER_S - 1;
        assert_eq!(own.turn(2 * SECOND_NS + 100), None, "what is seldom stays on");
        assert_eq!(own.events, 0);
    }

    #[test]
    fn losses_of_a_processor() {
        let stats = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 99\n\
                     oldest event ts:  10.5\nnow ts: 11.0\ndropped events: 40\nread events: 7\n";
        assert_eq!(losses(stats), 43);
        assert_eq!(losses(""), 0);
    }

    /// Takes no notice of anything.
    struct Deaf;

    impl Reader for Deaf {
        type Output = ();

        fn learn(&mut self, _: usize, format: &str) -> Option<()> {
            ring::field(format, "sector").map(|_| ())
        }

        fn event(&mut self, _: usize, _: u64, _: &[u8]) {}

        fn polled(&mut self, _: u64) {}

        fn finish(self, _: Recorded) {}
    }

    /// A capture of a disk that does not exist: its tracepoint never fires.
    fn start() -> Result<Collector<Deaf>, Unavailable> {
        let filter = format!("dev == {}", 250 << 20);
        let (system, name) = ("block", "block_rq_issue".to_owned());
        let point = Wanted { system, name, filter, optional: false, sampled: false };
        Collector::start("deaf", vec![point], None, Deaf)
    }

    /// Instances of this process, seen from a thread with tracefs mounted.
    fn instances() -> Vec<PathBuf> {
        let look = || {
            let root = mounted_tracefs().expect("the collector could mount it");
            let ours = format!("wearmark-{}-deaf-", std::process::id());
            let entries = root.join("instances").read_dir().unwrap().flatten();
            let is_ours =
                |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&ours);
            entries.map(|entry| entry.path()).filter(is_ours).collect()
        };
        std::thread::spawn(look).join().unwrap()
    }

    #[test]
    fn nothing_is_left_behind_by_a_drop_or_a_panic() {
        let collector = match start() {
            Ok(collector) => collector,
            Err(unavailable) => return println!("skipped: {unavailable}"),
        };
        assert_eq!(instances().len(), 1, "while it runs");
        drop(collector);
        assert_eq!(instances(), Vec::<PathBuf>::new(), "after a drop");
        let panics = std::thread::spawn(move || {
            let _collector = start().expect("as above");
            std::panic::resume_unwind(Box::new("planned"));
        });
        assert!(panics.join().is_err());
        assert_eq!(instances(), Vec::<PathBuf>::new(), "after a panic");
        let stale = std::thread::spawn(|| {
            let root = mounted_tracefs().expect("as above");
            // Process numbers end at 2^22, so this process is gone.
            let left = root.join("instances/wearmark-4194999-deaf-0");
            std::fs::create_dir(&left).unwrap();
            remove_stale(&root);
            left.exists()
        });
        assert!(!stale.join().unwrap(), "one left by a killed process");
    }
}
