//! A capture from its start to its traces.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use units::Bytes;
use virtual_time::World;

use super::layout::{self, Captured, IoMode};
use super::recorder::{Event, Recorder};
use super::simulated::Place;
use super::{direct, files};
use crate::{Error, now_ns};

/// How to capture.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Who does the I/O. Where the file system refuses O_DIRECT, `Direct` becomes `Buffered`, and
    /// [`Session::fallback`] says why.
    pub io: IoMode,
    /// Whether events are kept from the start; see [`Session::set_capture`].
    pub capture: bool,
    /// Whether what was captured before [`Session::rebase`] is kept as well.
    pub keep_start: bool,
    /// Where the database lives; temporary files go there too in `Direct` mode.
    pub directory: PathBuf,
    /// Reserve space for growing data and log files in pieces of this size, without changing the
    /// size of the file; zero leaves it to each write. Direct mode only.
    pub preallocate: Bytes,
    /// Events kept at most, 48 bytes each; more are counted as lost.
    pub event_limit: usize,
    /// Simulates the files of `Direct` mode on a device in virtual time: the database is read from
    /// its files, which are left as they are.
    pub world: Option<Arc<World>>,
}

impl SessionOptions {
    /// The defaults for a database in `directory`: direct, capturing, 1 MiB of space reserved at
    /// a time, at most 8 million events (384 MiB).
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            io: IoMode::Direct,
            capture: true,
            keep_start: false,
            directory: directory.into(),
            preallocate: Bytes::MIB,
            event_limit: 8_000_000,
            world: None,
        }
    }
}

/// What files are opened with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub io: IoMode,
    pub directory: PathBuf,
    /// Bytes; 0 is off.
    pub preallocate: u64,
    pub world: Option<Place>,
}

static SETTINGS: Mutex<Settings> = Mutex::new(Settings {
    io: IoMode::Buffered,
    directory: PathBuf::new(),
    preallocate: 0,
    world: None,
});
static FALLBACK: Mutex<Option<String>> = Mutex::new(None);
static RUNNING: AtomicBool = AtomicBool::new(false);
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

/// What a file opened now is opened with.
pub(super) fn settings() -> Settings {
    SETTINGS.lock().expect("settings lock").clone()
}

/// Takes note that a file could not be opened past the page cache.
pub(super) fn fell_back(path: &Path, error: &std::io::Error) {
    let mut fallback = FALLBACK.lock().expect("fallback lock");
    fallback.get_or_insert_with(|| format!("{}: {error}", path.display()));
}

/// A running capture; the only one of the process.
pub struct Session {
    recorder: Arc<Recorder>,
    options: SessionOptions,
    number: u64,
    origin_ns: u64,
    /// What was captured before the last rebase, and since when.
    start: Option<(Vec<Event>, u64)>,
    capturing: bool,
    /// Losses of intervals that `rebase` has thrown away do not count.
    ended: bool,
}

impl Session {
    /// Starts a session: files opened through the VFS from now on belong to it. Files that are
    /// open already keep the way they do I/O, but are captured too.
    pub fn start(options: SessionOptions) -> Result<Self, Error> {
        if RUNNING.swap(true, Ordering::AcqRel) {
            return Err(Error::SessionActive);
        }
        let started = Self::prepare(options);
        if started.is_err() {
            RUNNING.store(false, Ordering::Release);
        }
        started
    }

    fn prepare(options: SessionOptions) -> Result<Self, Error> {
        let directory = std::fs::canonicalize(&options.directory)
            .map_err(|source| Error::path(&options.directory, "cannot be used", source))?;
        *FALLBACK.lock().expect("fallback lock") = None;
        let mut io = options.io;
        if io == IoMode::Direct
            && options.world.is_none()
            && let Err(error) = direct::probe(&directory)
        {
            fell_back(&directory, &error);
            io = IoMode::Buffered;
        }
        let preallocate = options.preallocate.0;
        let world = options.world.clone().map(Place::new);
        *SETTINGS.lock().expect("settings lock") = Settings { io, directory, preallocate, world };
        let number = NEXT_SESSION.fetch_add(1, Ordering::Relaxed);
        files::table().session = number;
        let recorder = Recorder::install(options.event_limit);
        recorder.set_active(options.capture);
        let capturing = options.capture;
        let start = None;
        Ok(Self { recorder, options, number, origin_ns: now_ns(), start, capturing, ended: false })
    }

    /// Turns the keeping of events on or off, for a phase that is not to be captured.
    pub fn set_capture(&mut self, on: bool) {
        self.capturing = on;
        self.recorder.set_active(on);
    }

    /// Makes now the zero of time: the start of the measurement interval. What was captured so far
    /// is thrown away, or kept for [`Captured::from_start`] alone.
    pub fn rebase(&mut self) {
        let (events, _) = self.recorder.finish();
        if self.options.keep_start {
            self.start = Some((events, self.origin_ns));
        }
        self.recorder = Recorder::install(self.options.event_limit);
        self.origin_ns = now_ns();
        self.recorder.set_active(self.capturing);
    }

    /// Zero of the traces' time, ns of CLOCK_MONOTONIC.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Why `Direct` became `Buffered`, where it did.
    pub fn fallback(&self) -> Option<String> {
        FALLBACK.lock().expect("fallback lock").clone()
    }

    /// Who does the I/O, as far as is known by now.
    pub fn io_mode(&self) -> IoMode {
        match self.fallback() {
            Some(_) => IoMode::Buffered,
            None => self.options.io,
        }
    }

    /// Ends the session. Connections may stay open; their I/O is no longer captured.
    pub fn finish(mut self) -> Captured {
        let (events, losses) = self.recorder.finish();
        let start = self.start.take().map(|(mut earlier, origin_ns)| {
            earlier.extend_from_slice(&events);
            (earlier, origin_ns)
        });
        let interval = layout::Interval {
            events,
            start,
            losses,
            origin_ns: self.origin_ns,
            io: self.io_mode(),
            fallback: self.fallback(),
            preallocate: self.options.preallocate,
            session: self.number,
        };
        self.end();
        layout::build(interval)
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.recorder.set_active(false);
        let mut settings = SETTINGS.lock().expect("settings lock");
        (settings.io, settings.world) = (IoMode::Buffered, None);
        drop(settings);
        files::table().session = 0;
        RUNNING.store(false, Ordering::Release);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.recorder.finish();
        self.end();
    }
}
