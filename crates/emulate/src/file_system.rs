//! A file system of the kernel on a loop device over a sparse file: made, used, and gone.
//!
//! It is mounted in a mount namespace of the thread that uses it, over the directory that the file
//! lies in. Nobody else sees it, and nothing of it outlives the process however that ends: the file
//! has lost its name by then, the loop device frees itself with its last user, and the mount goes
//! with its namespace.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::{Error, block, mount_all};

/// Which file system, and what the block device below it is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Its name in `mkfs.NAME` and for the kernel.
    pub kind: String,
    /// Further words for `mkfs`.
    pub make: Vec<String>,
    /// Options of the mount, with commas between them; access times are never kept.
    pub options: String,
    /// Size of the device, bytes.
    pub bytes: u64,
    /// The kernel's scheduler, where not its own choice.
    pub scheduler: Option<String>,
    /// Read-ahead, KiB, where not the kernel's choice.
    pub read_ahead_kib: Option<u64>,
}

/// A file system that is mounted for the calling thread and those that it starts.
#[derive(Debug)]
pub struct Mounted {
    /// Its root.
    pub root: PathBuf,
    /// The loop device below it, such as `/dev/loop0`.
    pub device: PathBuf,
}

/// Makes a file system in `directory`, hands it to `action` on a thread of its own, and takes it
/// away.
///
/// # Errors
/// Without root or loop devices, or where a step fails: with the words of the tool that failed.
pub fn with_file_system<R: Send>(
    directory: &Path,
    recipe: &Recipe,
    action: impl FnOnce(&Mounted) -> R + Send,
) -> Result<R, Error> {
    if let Some((cause, _)) = block::missing() {
        let hint = "a file system of the kernel is mounted as root".to_owned();
        return Err(Error::Unavailable { cause, hint });
    }
    std::thread::scope(|scope| {
        let user = scope.spawn(|| use_it(directory, recipe, action));
        user.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn use_it<R>(
    directory: &Path,
    recipe: &Recipe,
    action: impl FnOnce(&Mounted) -> R,
) -> Result<R, Error> {
    let root = directory.canonicalize().map_err(|error| Error::io(directory, "reading", error))?;
    mount_all(&[]).map_err(|error| Error::io(&root, "entering a mount namespace", error))?;
    let (device, held) = attach(&root, recipe.bytes)?;
    let queue =
        Path::new("/sys/class/block").join(device.file_name().unwrap_or_default()).join("queue");
    let ahead = recipe.read_ahead_kib.map(|kib| kib.to_string());
    for (name, value) in [("scheduler", &recipe.scheduler), ("read_ahead_kb", &ahead)] {
        if let Some(value) = value {
            let setting = queue.join(name);
            std::fs::write(&setting, value)
                .map_err(|error| Error::io(&setting, "setting it", error))?;
        }
    }
    let make = format!("mkfs.{}", recipe.kind);
    let mut command = Command::new(&make);
    command.args(&recipe.make).arg(&device);
    run(command, &format!("install {}", package(&recipe.kind)))?;
    let options = std::ffi::CString::new(recipe.options.as_str())
        .map_err(|error| Error::io(&root, "mounting", error.into()))?;
    mount(&device, &root, recipe.kind.as_str(), MountFlags::NOATIME, options.as_c_str())
        .map_err(|error| Error::io(&device, "mounting it", error.into()))?;
    drop(held);
    let mounted = Mounted { root, device };
    let result = action(&mounted);
    unmount(&mounted.root, UnmountFlags::DETACH)
        .map_err(|error| Error::io(&mounted.root, "unmounting it", error.into()))?;
    Ok(result)
}

/// A loop device over a file without a name, and what holds it until it is mounted.
fn attach(directory: &Path, bytes: u64) -> Result<(PathBuf, File), Error> {
    let name = format!(".wearmark-{}", std::process::id());
    let path = (0..).map(|number| directory.join(format!("{name}-{number}")));
    let created = path.into_iter().find_map(|path| {
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
            opened => Some((opened, path)),
        }
    });
    let (file, path) = created.expect("numbers do not end");
    let file = file.map_err(|error| Error::io(directory, "creating a file", error))?;
    let attached = rustix::fs::ftruncate(file.as_fd(), bytes)
        .map_err(|error| Error::io(&path, "making it larger", error.into()))
        .and_then(|()| {
            let mut command = Command::new("losetup");
            command.args(["--find", "--show", "--direct-io=on", "--"]).arg(&path);
            run(command, "see 'losetup --list' for free loop devices")
        });
    _ = std::fs::remove_file(&path);
    let device = PathBuf::from(attached?);
    let held = File::open(&device).map_err(|error| Error::io(&device, "opening it", error));
    // While it is open the kernel only notes this, and frees the device with its last user.
    let mut command = Command::new("losetup");
    command.arg("--detach").arg(&device);
    run(command, "see 'losetup --list'")?;
    Ok((device, held?))
}

/// What a program prints, or an error with what it complains of.
fn run(mut command: Command, hint: &str) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |cause: String| Error::Unavailable { cause, hint: hint.to_owned() };
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| fail(format!("cannot run {program}: {error}")))?;
    let text = |bytes: &[u8]| events::one_line(String::from_utf8_lossy(bytes).trim());
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(fail(format!("{program}: {}", text(&output.stderr))))
}

/// Debian's package with `mkfs` of a kind.
fn package(kind: &str) -> &'static str {
    match kind {
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        "f2fs" => "f2fs-tools",
        "nilfs2" => "nilfs-tools",
        _ => "e2fsprogs",
    }
}
