//! A place that forgets, at a power cut, what was written and never synced.
//!
//! After `kill -9` the kernel still holds everything that a server wrote, so a server that never
//! syncs loses nothing by it. To catch it, the loss must be made: while the server runs, its
//! directories are served to it by a FUSE file system of ours, in a mount namespace that only the
//! server's processes see. It passes everything through to the directory below and keeps, in
//! memory, the old content of what has been written since the last sync of each file. When the
//! power is cut, the server's processes are killed and the old content is written back.
//!
//! The model of storage, where the standard (POSIX `fsync`) leaves room:
//!
//! - data and size of a file are durable when that file is synced (`fsync`, `fdatasync`, a write
//!   with `O_DSYNC`), and only then: nothing is written back in the background;
//! - names change in order and become durable in order, as in a journal: syncing a file or a
//!   directory makes durable every change up to the last that concerned it (`names.rs`);
//! - owners and permissions are durable at once;
//! - a write is lost whole ([`Fate::All`]), or by sectors of 4 KiB ([`Fate::Some`]), then torn pages
//!   and reordered writes occur.
//!
//! Needs `/dev/fuse` and the right to mount (root); [`Lossy::available`] says what is missing. When
//! wearmark dies, the namespace dies with the server's last process, and the mount with it. Tested
//! with a program that writes and syncs, and with real servers in `tests/it/lossy.rs`; the parts
//! against oracles beside them. Why this and not another way: `docs/journal/2026-11-21-torture.md`.

mod images;
mod names;
mod place;
mod tree;
mod wire;

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::Error;
use place::Place;
use wire::{Request, reply};

/// What a power cut leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nothing.
    All,
    /// Each sector, and each size, by chance.
    Some {
        /// Where the chance comes from.
        seed: u64,
    },
}

/// What was lost in a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Bytes written and not synced.
    pub bytes: u64,
    /// Files that held some.
    pub files: u64,
    /// Names made, removed or changed and not synced.
    pub names: u64,
}

/// What a place has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Times that memory ran out and everything so far was taken as durable.
    pub written_back: u64,
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.files += other.files;
        self.names += other.names;
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.syncs += other.syncs;
        self.written_back += other.written_back;
    }
}

/// Pace of looking whether to stop.
const STOP_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A directory that forgets, while it is served.
pub(crate) struct Lossy {
    directory: PathBuf,
    device: File,
    waiting: PathBuf,
    stop: Arc<Stop>,
    daemon: Option<JoinHandle<io::Result<(Lost, Counts)>>>,
}

/// How the thread that serves is told to end.
#[derive(Default)]
struct Stop {
    now: AtomicBool,
    /// What to do with what was not synced; nothing is taken back without.
    fate: Mutex<Option<Fate>>,
}

impl Lossy {
    /// What is missing on this machine, in words; `None` where nothing is.
    pub(crate) fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("mounting needs root".to_owned());
        }
        let device = File::options().read(true).write(true).open("/dev/fuse");
        device.err().map(|error| format!("/dev/fuse: {error}"))
    }

    /// Begins to serve a directory; nobody sees it until [`mount_all`].
    pub(crate) fn serve(directory: &Path, lies: bool) -> Result<Self, Error> {
        let fail = |source| Error::io(directory, "serving", source);
        let device = File::options().read(true).write(true).open("/dev/fuse").map_err(fail)?;
        let waiting = directory.with_extension("unsynced");
        _ = std::fs::remove_dir_all(&waiting);
        std::fs::create_dir(&waiting).map_err(fail)?;
        let root = File::open(directory).map_err(fail)?;
        let aside = File::open(&waiting).map_err(fail)?;
        let stop = Arc::new(Stop::default());
        let (fuse, told) = (device.try_clone().map_err(fail)?, Arc::clone(&stop));
        let daemon = std::thread::Builder::new()
            .name("lossy".to_owned())
            .spawn(move || tend(Place::new(root, aside, lies)?, fuse, &told))
            .map_err(fail)?;
        Ok(Self { directory: directory.to_owned(), device, waiting, stop, daemon: Some(daemon) })
    }

    /// What [`mount_all`] needs.
    pub(crate) fn mount_point(&self) -> (PathBuf, RawFd) {
        (self.directory.clone(), self.device.as_raw_fd())
    }

    /// Ends the serving, after the server's processes have ended; with a fate, takes back what was
    /// not synced.
    pub(crate) fn end(mut self, fate: Option<Fate>) -> Result<(Lost, Counts), Error> {
        *self.stop.fate.lock().expect("no panic while holding the lock") = fate;
        self.stop().map_err(|source| Error::io(&self.directory, "serving", source))
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
fn tend(mut place: Place, mut device: File, stop: &Stop) -> io::Result<(Lost, Counts)> {
    serve(&mut place, &mut device, &stop.now)?;
    // Where the server's last process went first, and the mount with it, we are not told yet.
    while !stop.now.load(Ordering::Relaxed) {
        std::thread::park();
    }
    let fate = *stop.fate.lock().expect("no panic while holding the lock");
    let counts = place.counts();
    let lost = fate.map(|fate| place.cut_power(fate)).transpose()?;
    Ok((lost.unwrap_or_default(), counts))
}

/// Answers requests until told to stop or the file system is unmounted.
fn serve(place: &mut Place, device: &mut File, stop: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; wire::BUFFER];
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(device, PollFlags::IN)];
        match poll(&mut ready, Some(&STOP_EVERY)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            // Not mounted yet.
            Err(error) => return Err(error.into()),
        }
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            Err(error) => match error.raw_os_error() {
                // Interrupted, or the request was withdrawn.
                Some(libc::EINTR | libc::ENOENT | libc::EAGAIN) => continue,
                // Not mounted yet.
                Some(libc::EPERM) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                }
                // Unmounted.
                Some(libc::ENODEV) => return Ok(()),
                _ => return Err(error),
            },
        };
        let Some(request) = Request::parse(&buffer[..length]) else { continue };
        let bytes = match place.answer(&request) {
            None => continue,
            Some(Ok(body)) => reply(request.unique, 0, &body),
            Some(Err(error)) => reply(request.unique, -error.raw_os_error(), &[]),
        };
        // A request whose caller was killed takes no answer.
        _ = device.write(&bytes);
    }
    Ok(())
}

/// Puts the calling thread, and all processes that it starts from now on, into a mount namespace of
/// its own, and mounts there what is served.
pub(crate) fn mount_all(points: &[(PathBuf, RawFd)]) -> io::Result<()> {
    let check = |result: libc::c_int| match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: unshare has no effect on memory; the thread gets its own view of the file system.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    let none = std::ptr::null();
    // SAFETY: the path is a live, zero-terminated text; null is allowed for the rest.
    check(unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) })?;
    for (directory, device) in points {
        let target = CString::new(directory.as_os_str().as_bytes())?;
        let options = format!(
            "fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
        );
        let options = CString::new(options)?;
        let (source, kind) = (c"wearmark", c"fuse");
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: all four are live, zero-terminated texts.
        check(unsafe {
            libc::mount(
                source.as_ptr(),
                target.as_ptr(),
                kind.as_ptr(),
                flags,
                options.as_ptr().cast(),
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::instance::process::{Launch, Process};

    /// Runs a shell script in a forgetful directory that holds `old` and `other`, cuts the power and
    /// tells what is there.
    fn after(script: &str, lies: bool, fate: Option<Fate>) -> Option<(Vec<String>, Lost)> {
        if let Some(why) = Lossy::missing() {
            println!("skipped: {why}");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("place");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("old"), "old").unwrap();
        std::fs::write(directory.join("other"), "other").unwrap();
        let lossy = Lossy::serve(&directory, lies).unwrap();
        let points = vec![lossy.mount_point()];
        let output = root.path().join("output");
        let process = Process::start(Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-euc".to_owned(), script.to_owned()],
            directory: directory.clone(),
            account: None,
            output: output.clone(),
            death_signal: rustix::process::Signal::KILL,
            input: None,
            before: Some(Box::new(move || mount_all(&points))),
        });
        let ended = process.unwrap().ended(Duration::from_mins(1)).unwrap();
        assert!(ended.success, "{}", std::fs::read_to_string(&output).unwrap());
        let (lost, _) = lossy.end(fate).unwrap();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "directory".to_owned());
            names.push(format!("{}={text}", path.file_name().unwrap().display()));
        }
        names.sort();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2, "something waits still");
        Some((names, lost))
    }

    fn check(script: &str, expected: &[&str]) {
        if let Some((names, _)) = after(script, false, Some(Fate::All)) {
            assert_eq!(names, expected, "{script}");
        }
    }

    #[test]
    fn what_was_not_synced_is_gone() {
        check("echo -n x >> old; echo -n y > new; mkdir d", &["old=old", "other=other"]);
        check("echo -n x >> old; sync old; echo -n y >> old", &["old=oldx", "other=other"]);
        check("echo -n x > new; sync new", &["new=x", "old=old", "other=other"]);
        check("truncate -s 1 old; sync old; truncate -s 9 old", &["old=o", "other=other"]);
        check("echo -n 123 > old; rm other", &["old=old", "other=other"]);
    }

    #[test]
    fn names_become_durable_in_order() {
        let kept = ["new=x", "other=other"];
        check("echo -n x > new; rm old; sync new other .; rm other", &kept);
        // Syncing the file does not say that its new name is durable; syncing its directory does.
        check("echo -n x > t; sync t; mv t old; sync .", &["old=x", "other=other"]);
        check("echo -n x > t; sync t; mv t old; rm other", &["old=old", "other=other", "t=x"]);
        check("mkdir d; mv old d/o; rm d/o; rmdir d", &["old=old", "other=other"]);
        check("ln old l; rm old; sync .", &["l=old", "other=other"]);
        check(
            "ln -s old s; sync .; readlink s; ls -la; stat -f .",
            &["old=old", "other=other", "s=old"],
        );
    }

    #[test]
    fn a_write_with_o_dsync_is_durable() {
        let script = "dd if=/dev/zero of=other bs=2 count=1 conv=notrunc oflag=dsync";
        check(script, &["old=old", "other=\0\0her"]);
        let script = "dd if=/dev/zero of=other bs=2 count=1 conv=notrunc";
        check(script, &["old=old", "other=other"]);
        let script = "dd if=/dev/zero of=new bs=4096 count=2 oflag=direct; sync -d new; stat new";
        let zeros = format!("new={}", "\0".repeat(8192));
        check(script, &[&zeros, "old=old", "other=other"]);
    }

    #[test]
    fn a_place_that_lies_keeps_nothing_and_one_that_stops_in_order_keeps_all() {
        let script = "echo -n x >> old; sync old; rm other; sync .";
        let Some((lied, lost)) = after(script, true, Some(Fate::All)) else { return };
        assert_eq!(lied, ["old=old", "other=other"]);
        assert_eq!(lost, Lost { bytes: 1, files: 1, names: 1 });
        let (kept, lost) = after("echo -n x >> old", false, None).unwrap();
        assert_eq!(
            (kept, lost),
            (vec!["old=oldx".to_owned(), "other=other".to_owned()], Lost::default())
        );
    }

    /// By chance some sectors survive and some do not, the same ones for the same seed.
    #[test]
    fn by_chance_a_write_is_torn() {
        let script = "head -c 65536 /dev/zero > old; sync old; \
                      yes | dd of=other bs=65536 count=1 iflag=fullblock; \
                      yes | dd of=old bs=65536 count=1 conv=notrunc iflag=fullblock";
        let fate = |seed| Some(Fate::Some { seed });
        let Some((first, lost)) = after(script, false, fate(1)) else { return };
        assert!(first[0].contains('\0') && first[0].contains('y'), "{lost:?}");
        assert!(lost.bytes > 0 && lost.bytes < 2 * 65536, "{lost:?}");
        // Not assert_eq: it would print both files.
        assert!(after(script, false, fate(1)).unwrap() == (first.clone(), lost), "the same seed");
        assert!(after(script, false, fate(2)).unwrap().0 != first, "another seed");
    }
}
