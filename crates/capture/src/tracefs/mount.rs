//! Where tracefs is, and what killed processes left in it.
//!
//! Where it is not mounted, it is mounted in a mount namespace of the calling thread alone: nothing
//! of that outlives the thread. Kernel documentation: trace/ftrace.rst. Tested on a mount table;
//! the rest with the collector.

use std::io;
use std::path::{Path, PathBuf};

use super::{REMEDY_KERNEL, REMEDY_ROOT};
use crate::Unavailable;

/// Where the kernel offers a place for tracefs.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Where tracefs is, mounting it for this thread alone where it is not mounted.
pub(super) fn mounted_tracefs() -> Result<PathBuf, Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable::new("kernel tracing needs root", REMEDY_ROOT));
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
pub(super) fn remove_stale(root: &Path) {
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
    fn tracefs_by_the_mount_table() {
        let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      9 8 0:12 / /sys/kernel/tracing rw,nosuid - tracefs tracefs rw\n";
        assert_eq!(tracefs_in(mounts), Some(PathBuf::from(TRACEFS)));
        assert_eq!(tracefs_in("27 1 254:0 / /tracefs rw - ext4 tracefs rw\n"), None);
    }
}
