//! A place that forgets, at a power cut, what was written and never synced; no device is charged.
//!
//! A directory is served to one process and its children, in a mount namespace that only they see
//! ([`mount_all`]). It passes everything through to the directory below and keeps, in memory, the
//! old content of what has been written since the last sync of each file. When the power is cut,
//! the processes are killed and the old content is written back ([`Lossy::end`]).
//!
//! The model of storage, where the standard (POSIX `fsync`) leaves room:
//!
//! - data and size of a file are durable when that file is synced (`fsync`, `fdatasync`, a write
//!   with `O_DSYNC`), and only then: nothing is written back in the background;
//! - names change in order and become durable in order, as in a journal: syncing a file or a
//!   directory makes durable every change up to the last that concerned it (`names.rs`);
//! - owners and permissions are durable at once;
//! - a write is lost whole ([`Fate::All`]), or by sectors of 4 KiB ([`Fate::Some`]), then torn
//!   pages and reordered writes occur.
//!
//! Needs `/dev/fuse` and the right to mount (root); [`Lossy::missing`] says what is missing. When
//! wearmark dies, the namespace dies with the last process in it, and the mount with it. Why this
//! and not another way: `docs/journal/2026-11-21-torture.md`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::mount;
use super::place::{Behaviour, Counts, OLD_BYTES_MAX, Place};
use super::port::FusePort;
use super::power_cut::{Fate, Lost};
use crate::port::{Port, Taken};

/// Pace of looking whether to stop.
const STOP_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A directory that forgets, while it is served.
#[derive(Debug)]
pub struct Lossy {
    directory: PathBuf,
    device: File,
    waiting: PathBuf,
    stop: Arc<Stop>,
    daemon: Option<JoinHandle<io::Result<(Lost, Counts)>>>,
}

/// How the thread that serves is told to end.
#[derive(Debug, Default)]
struct Stop {
    now: AtomicBool,
    /// What to do with what was not synced; nothing is taken back without.
    fate: Mutex<Option<Fate>>,
}

impl Lossy {
    /// What is missing on this machine, in words; `None` where nothing is.
    pub fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("mounting needs root".to_owned());
        }
        mount::open_device().err().map(|error| format!("/dev/fuse: {error}"))
    }

    /// Begins to serve a directory; nobody sees it until [`mount_all`].
    pub fn serve(directory: &Path, lies: bool) -> io::Result<Self> {
        let device = mount::open_device()?;
        let waiting = directory.with_extension("unsynced");
        _ = std::fs::remove_dir_all(&waiting);
        std::fs::create_dir(&waiting)?;
        let root = File::open(directory)?;
        let aside = File::open(&waiting)?;
        let stop = Arc::new(Stop::default());
        let (fuse, told) = (device.try_clone()?, Arc::clone(&stop));
        let tend = move || {
            let behaviour = Behaviour {
                waiting: Some(aside),
                lies,
                write_back: false,
                layout: None,
                old_bytes_max: OLD_BYTES_MAX,
            };
            tend(FusePort::new(fuse, Place::new(root, behaviour)?), &told)
        };
        let daemon = std::thread::Builder::new().name("lossy".to_owned()).spawn(tend)?;
        Ok(Self { directory: directory.to_owned(), device, waiting, stop, daemon: Some(daemon) })
    }

    /// What [`mount_all`] needs.
    pub fn mount_point(&self) -> (PathBuf, RawFd) {
        (self.directory.clone(), self.device.as_raw_fd())
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Ends the serving, after the processes that used it have ended; with a fate, takes back what
    /// was not synced.
    pub fn end(mut self, fate: Option<Fate>) -> io::Result<(Lost, Counts)> {
        *self.stop.fate.lock().expect("no panic while holding the lock") = fate;
        self.stop()
    }

    fn stop(&mut self) -> io::Result<(Lost, Counts)> {
        self.stop.now.store(true, Ordering::Relaxed);
        let daemon = self.daemon.take().expect("it is stopped once");
        daemon.thread().unpark();
        daemon.join().map_err(|_| io::Error::other("the thread that serves it died"))?
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            _ = self.stop();
        }
        _ = std::fs::remove_dir_all(&self.waiting);
    }
}

/// The thread of a place: serves it, then takes back what it is told to.
fn tend(mut port: FusePort, stop: &Stop) -> io::Result<(Lost, Counts)> {
    serve(&mut port, &stop.now)?;
    // Where the last process went first, and the mount with it, we are not told yet.
    while !stop.now.load(Ordering::Relaxed) {
        std::thread::park();
    }
    let fate = *stop.fate.lock().expect("no panic while holding the lock");
    let counts = port.place.counts();
    let lost = fate.map(|fate| port.place.cut_power(fate)).transpose()?;
    Ok((lost.unwrap_or_default(), counts))
}

/// Answers requests until told to stop or the file system is unmounted.
fn serve(port: &mut FusePort, stop: &AtomicBool) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        match port.take()? {
            Taken::Nothing => {}
            Taken::Ended => return Ok(()),
            _ => continue,
        }
        let mut ready = [PollFd::from_borrowed_fd(port.fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&STOP_EVERY)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Puts the calling thread, and all processes that it starts from now on, into a mount namespace of
/// its own, and mounts there what is served.
pub fn mount_all(points: &[(PathBuf, RawFd)]) -> io::Result<()> {
    // SAFETY: unshare has no effect on memory; the thread gets its own view of the file system.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags =
        rustix::mount::MountPropagationFlags::REC | rustix::mount::MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", flags)?;
    points.iter().try_for_each(|(directory, device)| mount::attach(directory, *device))
}
