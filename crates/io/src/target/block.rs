//! Block devices: their size, and who else uses them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::system::{BLKGETSIZE64, ioctl_u64, open_with};
use crate::error::Error;

/// Bytes of a block device.
pub(super) fn size_bytes(path: &Path) -> Result<u64, Error> {
    open_with(path, libc::O_RDONLY)
        .and_then(|file| ioctl_u64(&file, BLKGETSIZE64))
        .map_err(|source| Error::target("open", path, source))
}

/// Refuses a device that is mounted, has partitions, is held by another device (RAID, LVM, crypt)
/// or is swapped to.
pub(super) fn refuse_used(path: &Path, sysfs: &Path, mountinfo: &Path) -> Result<(), Error> {
    let found = fs::metadata(path).map_err(|source| Error::target("look at", path, source))?;
    let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
    let mounts =
        fs::read_to_string(mountinfo).map_err(|source| Error::target("read", mountinfo, source))?;
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let used = use_of(number, sysfs, &mounts).or_else(|| {
        let name = path.display().to_string();
        let swapped = swaps.lines().any(|line| line.split_whitespace().next() == Some(&name));
        swapped.then(|| "it is swapped to".to_owned())
    });
    match used {
        Some(how) => Err(Error::InUse { path: path.to_owned(), how }),
        None => Ok(()),
    }
}

/// Refuses a file that a loop device stands on: what is written to it reaches whatever is mounted.
pub(super) fn refuse_backing(path: &Path, sysfs: &Path) -> Result<(), Error> {
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    let backs = |entry: &fs::DirEntry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == real)
    };
    let entries = fs::read_dir(sysfs.join("block")).into_iter().flatten().flatten();
    match entries.into_iter().find(backs) {
        Some(entry) => Err(Error::InUse {
            path: path.to_owned(),
            how: format!("the loop device {} stands on it", entry.file_name().to_string_lossy()),
        }),
        None => Ok(()),
    }
}

/// How a device is in use, if it is.
fn use_of(number: (u32, u32), sysfs: &Path, mounts: &str) -> Option<String> {
    let text = format!("{}:{}", number.0, number.1);
    // mountinfo: id, parent, major:minor, root, mount point, ... (proc(5)).
    let mounted = |line: &&str| line.split_ascii_whitespace().nth(2) == Some(&text);
    if let Some(line) = mounts.lines().find(mounted) {
        let place = line.split_ascii_whitespace().nth(4).unwrap_or("?");
        return Some(format!("it is mounted at {place}"));
    }
    let home = sysfs.join("dev/block").join(&text);
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let partitions: Vec<String> = names(&home)
        .into_iter()
        .filter(|name| home.join(name).join("partition").exists())
        .collect();
    if !partitions.is_empty() {
        return Some(format!("it has partitions ({})", partitions.join(", ")));
    }
    let holders = names(&home.join("holders"));
    (!holders.is_empty()).then(|| format!("it is held by {}", holders.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
                          37 35 7:3 / /data rw - ext4 /dev/loop3 rw\n";

    fn check(number: (u32, u32), expected: Option<&str>) {
        let sysfs = tempfile::tempdir().unwrap();
        let make =
            |path: &str| fs::create_dir_all(sysfs.path().join("dev/block").join(path)).unwrap();
        make("8:0/sda1");
        fs::write(sysfs.path().join("dev/block/8:0/sda1/partition"), "1").unwrap();
        make("8:0/queue");
        make("8:16/holders/dm-0");
        make("8:32/holders");
        let found = use_of(number, sysfs.path(), MOUNTS);
        assert_eq!(found.as_deref(), expected, "{number:?}");
    }

    #[test]
    fn devices_in_use_are_refused() {
        check((7, 3), Some("it is mounted at /data"));
        check((98, 0), Some("it is mounted at /mnt2"));
        check((8, 0), Some("it has partitions (sda1)"));
        check((8, 16), Some("it is held by dm-0"));
        check((8, 32), None);
        check((9, 9), None);
    }

    #[test]
    fn a_file_under_a_loop_device_is_refused() {
        let sysfs = tempfile::tempdir().unwrap();
        let (under, other) = (sysfs.path().join("under"), sysfs.path().join("other"));
        fs::write(&under, "x").unwrap();
        fs::write(&other, "x").unwrap();
        fs::create_dir_all(sysfs.path().join("block/loop7/loop")).unwrap();
        fs::create_dir_all(sysfs.path().join("block/sda")).unwrap();
        let backing = format!("{}\n", under.canonicalize().unwrap().display());
        fs::write(sysfs.path().join("block/loop7/loop/backing_file"), backing).unwrap();
        let refused = refuse_backing(&under, sysfs.path()).unwrap_err();
        assert!(refused.to_string().contains("the loop device loop7 stands on it"), "{refused}");
        assert!(refuse_backing(&other, sysfs.path()).is_ok());
    }
}
