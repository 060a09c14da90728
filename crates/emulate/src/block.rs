//! A loop device over a file of a served directory, so that file systems and schedulers of the
//! kernel stand above the modelled device.
//!
//! `losetup` of util-linux attaches and detaches it. Flushes reach the model as flushes, forced
//! writes as a write and a flush, discards as trims. The loop driver serves flushes and discards of
//! a cgroup one after the other in one worker: a program in a blkio cgroup of its own does not wait
//! for them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Error;
use crate::fuse::mount::when_gone;

/// An attached loop device; detached when dropped.
#[derive(Debug)]
pub(crate) struct Loop {
    device: PathBuf,
    watcher: Child,
}

/// What keeps this machine from offering loop devices, and what to do about it.
pub(crate) fn missing() -> Option<(String, &'static str)> {
    if !rustix::process::geteuid().is_root() {
        return Some((
            "attaching a loop device needs root".to_owned(),
            "run it as root, or use --nbd",
        ));
    }
    let control = File::options().read(true).write(true).open("/dev/loop-control");
    if let Err(error) = control {
        let hint = "load the kernel's module ('modprobe loop'), or use --nbd";
        return Some((format!("/dev/loop-control: {error}"), hint));
    }
    let found = Command::new("losetup").arg("--version").stdout(Stdio::null()).status();
    found.is_err().then(|| ("there is no program losetup".to_owned(), "install util-linux"))
}

impl Loop {
    /// Attaches the file, past the kernel's cache.
    pub(crate) fn attach(file: &Path) -> Result<Self, Error> {
        let fail = |source| Error::io(file, "attaching a loop device to", source);
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--direct-io=on", "--"]).arg(file);
        let output = command.stdin(Stdio::null()).output().map_err(fail)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if !output.status.success() {
            return Err(fail(std::io::Error::other(text(&output.stderr))));
        }
        let device = PathBuf::from(text(&output.stdout));
        let watcher = when_gone("losetup -d \"$0\"", &device).map_err(fail)?;
        Ok(Self { device, watcher })
    }

    /// Such as `/dev/loop0`.
    pub(crate) fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        _ = Command::new("losetup").arg("-d").arg(&self.device).stderr(Stdio::null()).status();
        _ = self.watcher.kill();
        _ = self.watcher.wait();
    }
}
