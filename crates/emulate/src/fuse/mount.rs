//! Mounting and unmounting, such that nothing stays mounted whatever happens to us.
//!
//! Root mounts by itself; anybody else needs `fusermount3`, which hands over the open device
//! through a socket. A directory is served in its own place: what was under it stays there and is
//! seen again when it is unmounted. A small watcher (a shell that waits for our end of a pipe to
//! close) takes the mount away when we are killed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, unmount};

use crate::Error;

/// What the kernel shows as the source of the mount.
const SOURCE: &str = "wearmark";

/// Opens `/dev/fuse`; reads do not block.
pub(crate) fn open_device() -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/fuse")
}

/// Mounts `device` on `directory`, as root.
pub(crate) fn attach(directory: &Path, device: RawFd) -> io::Result<()> {
    let options =
        format!("fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(SOURCE, directory, c"fuse", flags, Some(options.as_c_str()))?)
}

/// What keeps us from mounting on this machine, and what to do about it.
pub(crate) fn missing() -> Option<(String, &'static str)> {
    if let Err(error) = open_device() {
        let hint =
            "load the kernel's module ('modprobe fuse'), or give this user access to the file";
        return Some((format!("/dev/fuse: {error}"), hint));
    }
    let can = rustix::process::geteuid().is_root() || fusermount().is_some();
    (!can).then(|| {
        let hint = "install fuse3, or run it as root";
        ("mounting needs root or the program fusermount3".to_owned(), hint)
    })
}

fn fusermount() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|path| path.join("fusermount3")).find(|path| path.exists())
}

/// A mounted directory; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Mounted {
    directory: PathBuf,
    watcher: Option<Child>,
}

impl Mounted {
    /// Mounts a new device on `directory` and gives our end of it.
    pub(crate) fn new(directory: &Path) -> Result<(Self, File), Error> {
        if let Some((cause, hint)) = missing() {
            return Err(Error::Unavailable { cause, hint: hint.to_owned() });
        }
        let fail = |source| Error::io(directory, "mounting on", source);
        let device = if rustix::process::geteuid().is_root() {
            let device = open_device().map_err(fail)?;
            attach(directory, device.as_raw_fd()).map_err(fail)?;
            device
        } else {
            attach_by_helper(directory).map_err(fail)?
        };
        let watcher = watch(directory).map_err(fail)?;
        Ok((Self { directory: directory.to_owned(), watcher: Some(watcher) }, device))
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        _ = detach(&self.directory);
        if let Some(mut watcher) = self.watcher.take() {
            _ = watcher.kill();
            _ = watcher.wait();
        }
    }
}

/// Takes a mount away, in use or not.
pub(crate) fn detach(directory: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(unmount(directory, UnmountFlags::DETACH)?);
    }
    let mut command = Command::new("fusermount3");
    let status = command.args(["-u", "-z", "-q", "--"]).arg(directory).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("fusermount3 failed")) }
}

/// Takes away what a killed emulator has left on `directory`; tells whether there was something.
pub(crate) fn clear_left_over(directory: &Path) -> Result<bool, Error> {
    match std::fs::metadata(directory) {
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
            detach(directory).map_err(|source| Error::io(directory, "unmounting", source))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A process of its own group that waits until we are gone and then takes the mount away.
fn watch(directory: &Path) -> io::Result<Child> {
    let unmount = if rustix::process::geteuid().is_root() {
        "umount -l -- \"$0\""
    } else {
        "fusermount3 -u -z -q -- \"$0\""
    };
    when_gone(unmount, directory)
}

/// Starts a process of its own group that waits until we are gone and then runs `action` on `path`,
/// its `$0`.
pub(crate) fn when_gone(action: &str, path: &Path) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("read -r _; {action} 2>/dev/null")).arg(path);
    command.current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Mounts through `fusermount3`, which sends the open device over the socket that
/// `_FUSE_COMMFD` names.
fn attach_by_helper(directory: &Path) -> io::Result<File> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let number = theirs.as_raw_fd();
    let options = format!("fsname={SOURCE},default_permissions");
    let mut command = Command::new("fusermount3");
    command.args(["-o", &options, "--"]).arg(directory);
    command.env("_FUSE_COMMFD", number.to_string());
    // SAFETY: fcntl on an open descriptor; it is async-signal-safe.
    unsafe {
        command.pre_exec(move || match libc::fcntl(number, libc::F_SETFD, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    drop(theirs);
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(message));
    }
    let device = receive_descriptor(&ours)?;
    rustix::io::ioctl_fionbio(&device, true)?;
    Ok(File::from(device))
}

fn receive_descriptor(socket: &std::os::unix::net::UnixStream) -> io::Result<OwnedFd> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let mut buffers = [io::IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(found) = descriptors.next()
        {
            return Ok(found);
        }
    }
    Err(io::Error::other("fusermount3 sent no device"))
}

/// Has the kernel treat the file system that `directory` is on as it treats the disk `below`: as
/// much unwritten data (FUSE file systems start with one per cent of memory) and as much
/// read-ahead (they start with 128 KiB). Needs root; done without.
pub(crate) fn treat_as(directory: &Path, below: u64) {
    let Ok(stat) = rustix::fs::stat(directory) else { return };
    let number = |device| format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let limits = PathBuf::from(format!("/sys/class/bdi/{}", number(stat.st_dev)));
    _ = std::fs::write(limits.join("max_ratio"), "100");
    _ = std::fs::write(limits.join("strict_limit"), "0");
    // Of a partition its disk has it.
    let disk = PathBuf::from(format!("/sys/dev/block/{}", number(below)));
    let own = ["queue/read_ahead_kb", "../queue/read_ahead_kb"];
    if let Some(ahead) = own.iter().find_map(|name| std::fs::read_to_string(disk.join(name)).ok()) {
        _ = std::fs::write(limits.join("read_ahead_kb"), ahead.trim());
    }
}
