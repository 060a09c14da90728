//! From a directory to the disk under it.
//!
//! The file system's device number (`stat`) names a block device in `/sys/dev/block`; a partition
//! leads on to its disk and tells where it starts. File systems without a device number of their
//! own (btrfs, overlay) are looked up in `/proc/self/mountinfo` (proc(5)), where the mount source
//! names the device.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// The disk under a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name of the whole disk, such as `vda`.
    pub name: String,
    /// Its device number as the tracer writes it: `major << 20 | minor`.
    pub number: u32,
    /// Its folder in sysfs.
    pub sysfs: PathBuf,
    /// Where the file system's partition starts on the disk, bytes; 0 for the whole disk.
    pub partition_start: u64,
}

/// The disk that holds `directory`.
pub(crate) fn of(directory: &Path) -> Result<Device, Error> {
    let stat = std::fs::metadata(directory)
        .map_err(|source| Error::path(directory, "cannot be used", source))?;
    let (major, minor) = (libc::major(stat.dev()), libc::minor(stat.dev()));
    if let Some(device) = in_sysfs(Path::new("/sys"), major, minor) {
        return Ok(device);
    }
    let missing = |cause: String| Error::Kernel { path: directory.to_owned(), cause };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(|source| Error::path("/proc/self/mountinfo", "cannot be read", source))?;
    let (kind, source) = mount_of(&mounts, &format!("{major}:{minor}"))
        .ok_or_else(|| missing(format!("no mount has its device number {major}:{minor}")))?;
    let no_device = || missing(format!("its file system ({kind}) lies on no visible block device"));
    let node = std::fs::metadata(&source).map_err(|_| no_device())?;
    in_sysfs(Path::new("/sys"), libc::major(node.rdev()), libc::minor(node.rdev()))
        .ok_or_else(no_device)
}

/// The disk that a device node names, such as `/dev/sda` or a partition of it.
pub(crate) fn named(node: &Path) -> Result<Device, Error> {
    use std::os::unix::fs::FileTypeExt;
    let found =
        std::fs::metadata(node).map_err(|source| Error::path(node, "cannot be used", source))?;
    let not = |cause: &str| Error::Target {
        what: node.display().to_string(),
        cause: cause.to_owned(),
        hint: "'lsblk -p' lists the block devices".to_owned(),
    };
    if !found.file_type().is_block_device() {
        return Err(not("it is no block device"));
    }
    let number = found.rdev();
    in_sysfs(Path::new("/sys"), libc::major(number), libc::minor(number))
        .ok_or_else(|| not("it is not in /sys/dev/block"))
}

/// The disk behind a block device number, by the sysfs at `root`.
fn in_sysfs(root: &Path, major: u32, minor: u32) -> Option<Device> {
    let own = root.join(format!("dev/block/{major}:{minor}")).canonicalize().ok()?;
    let (disk, partition_start) = if own.join("partition").exists() {
        let start: u64 = std::fs::read_to_string(own.join("start")).ok()?.trim().parse().ok()?;
        (own.parent()?.to_owned(), start.checked_mul(512)?)
    } else {
        (own, 0)
    };
    let numbers = std::fs::read_to_string(disk.join("dev")).ok()?;
    let (major, minor) = numbers.trim().split_once(':')?;
    let number = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let name = disk.file_name()?.to_string_lossy().into_owned();
    Some(Device { name, number, sysfs: disk, partition_start })
}

/// File system type and source of the mount with a device number, by the text of mountinfo.
fn mount_of(mounts: &str, number: &str) -> Option<(String, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        (front.split(' ').nth(2)? == number).then_some(())?;
        let mut back = back.split(' ');
        Some((back.next()?.to_owned(), PathBuf::from(back.next()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
41 27 0:55 /@home /home rw,relatime shared:9 master:2 - btrfs /dev/nvme0n1p2 rw,subvol=/@home
";

    #[test]
    fn mounts_by_device_number() {
        let found = |number| mount_of(MOUNTS, number);
        assert_eq!(found("0:55"), Some(("btrfs".into(), "/dev/nvme0n1p2".into())));
        assert_eq!(found("254:0"), Some(("ext4".into(), "/dev/vda".into())));
        assert_eq!(found("9:9"), None);
    }

    #[test]
    fn a_partition_leads_to_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("devices/x/sdb");
        let partition = disk.join("sdb2");
        std::fs::create_dir_all(&partition).unwrap();
        std::fs::create_dir_all(root.path().join("dev/block")).unwrap();
        std::fs::write(disk.join("dev"), "8:16\n").unwrap();
        std::fs::write(partition.join("dev"), "8:18\n").unwrap();
        std::fs::write(partition.join("partition"), "2\n").unwrap();
        std::fs::write(partition.join("start"), "2048\n").unwrap();
        for (number, target) in [("8:16", &disk), ("8:18", &partition)] {
            let link = root.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(target, link).unwrap();
        }
        let whole = in_sysfs(root.path(), 8, 16).unwrap();
        assert_eq!((whole.name.as_str(), whole.number), ("sdb", 8 << 20 | 16));
        assert_eq!(whole.partition_start, 0);
        let part = in_sysfs(root.path(), 8, 18).unwrap();
        assert_eq!((part.name.as_str(), part.number), ("sdb", 8 << 20 | 16));
        assert_eq!(part.partition_start, 2048 * 512);
        assert_eq!(in_sysfs(root.path(), 8, 17), None);
    }

    #[test]
    fn a_file_system_in_memory_has_no_disk() {
        let path = Path::new("/dev/shm");
        if !path.exists() {
            return println!("skipped: no /dev/shm here");
        }
        match of(path) {
            Err(error) => assert!(error.to_string().contains("no visible block device"), "{error}"),
            Ok(device) => println!("skipped: /dev/shm lies on {}", device.name),
        }
    }
}
