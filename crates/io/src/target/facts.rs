//! What sysfs and the mount table tell about the disk under a target.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const QUEUE: [&str; 10] = [
    "scheduler",
    "rotational",
    "write_cache",
    "fua",
    "nr_requests",
    "max_sectors_kb",
    "physical_block_size",
    "logical_block_size",
    "discard_granularity",
    "wbt_lat_usec",
];
const DEVICE: [&str; 5] = ["model", "vendor", "rev", "firmware_rev", "queue_depth"];

/// Facts by sysfs name, and the logical block as far as sysfs knows it (512 otherwise).
pub(super) fn gather(path: &Path, is_device: bool) -> (BTreeMap<String, String>, u32) {
    let mut facts = BTreeMap::new();
    let Ok(found) = fs::metadata(path) else { return (facts, 512) };
    let number = if is_device { found.rdev() } else { found.dev() };
    let number = format!("{}:{}", libc::major(number), libc::minor(number));
    let mut name = fs::canonicalize(Path::new("/sys/dev/block").join(&number)).ok();
    if !is_device
        && let Ok(table) = fs::read_to_string("/proc/self/mountinfo")
        && let Some(mount) = mount_of(&table, &number)
    {
        // btrfs and others give their files a device number of their own: the source names the
        // disk.
        if name.is_none() {
            let disk =
                Path::new(&mount.source).file_name().map(|n| Path::new("/sys/class/block").join(n));
            name = disk.and_then(|disk| fs::canonicalize(disk).ok());
        }
        facts.insert("file_system".to_owned(), mount.kind);
        facts.insert("mount_options".to_owned(), mount.options);
        facts.insert("mount_source".to_owned(), mount.source);
    }
    let Some(mut home) = name else { return (facts, 512) };
    // A partition has no queue of its own: its disk is the folder above.
    if home.join("partition").exists() {
        home.pop();
    }
    let mut add = |key: &str, file: PathBuf| {
        if let Ok(text) = fs::read_to_string(file) {
            facts.insert(key.to_owned(), text.trim().to_owned());
        }
    };
    for key in QUEUE {
        add(key, home.join("queue").join(key));
    }
    for key in DEVICE {
        add(key, home.join("device").join(key));
    }
    add("size_sectors", home.join("size"));
    if let Some(disk) = home.file_name() {
        facts.insert("device".to_owned(), disk.to_string_lossy().into_owned());
    }
    let block = facts.get("logical_block_size").and_then(|text| text.parse().ok()).unwrap_or(512);
    (facts, block)
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    kind: String,
    options: String,
    source: String,
}

/// The mount that holds files of a device number (proc(5): fields up to a lone dash vary).
fn mount_of(table: &str, number: &str) -> Option<Mount> {
    let line = table.lines().rfind(|line| line.split_ascii_whitespace().nth(2) == Some(number))?;
    let (front, back) = line.split_once(" - ")?;
    let mut back = back.split_ascii_whitespace();
    Some(Mount {
        options: front.split_ascii_whitespace().nth(5)?.to_owned(),
        kind: back.next()?.to_owned(),
        source: back.next()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_table_is_read() {
        let table =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n";
        let expected = Mount {
            kind: "ext3".to_owned(),
            options: "rw,noatime".to_owned(),
            source: "/dev/root".to_owned(),
        };
        assert_eq!(mount_of(table, "98:0"), Some(expected));
        assert_eq!(mount_of(table, "98:1"), None);
        assert_eq!(mount_of("garbage", "98:1"), None);
    }

    #[test]
    fn this_machine_has_facts() {
        let (facts, block) = gather(Path::new("."), false);
        assert!(block.is_power_of_two() && block >= 512);
        if facts.is_empty() {
            println!("skipped: no mount table or sysfs");
            return;
        }
        assert!(facts.contains_key("file_system"), "{facts:?}");
    }
}
