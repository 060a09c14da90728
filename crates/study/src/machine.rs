//! The fingerprint of a machine: what a reader must know to judge or repeat a figure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Facts about the machine and the disk below `place`, by name. What cannot be read is absent.
pub fn fingerprint(place: &Path) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    let system = rustix::system::uname();
    add("kernel", Some(system.release().to_string_lossy().into_owned()));
    add("architecture", Some(system.machine().to_string_lossy().into_owned()));
    add("cpu", field("/proc/cpuinfo", "model name"));
    add("cpus", std::thread::available_parallelism().ok().map(|count| count.to_string()));
    add("memory", field("/proc/meminfo", "MemTotal"));
    add("clock", line("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    add("governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add("wearmark", Some(env!("CARGO_PKG_VERSION").to_owned()));
    add("build", Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()));
    if let Some(mount) = mount_of(place) {
        add("file_system", Some(mount.kind));
        add("mount_options", Some(mount.options));
        add("device", Some(mount.source));
        let block = format!("/sys/dev/block/{}", mount.device);
        // A partition's queue is its disk's, one directory up.
        let queue = [format!("{block}/queue"), format!("{block}/../queue")];
        if let Some(queue) = queue.iter().find(|queue| Path::new(queue).exists()) {
            for name in ["scheduler", "rotational", "write_cache", "nr_requests", "wbt_lat_usec"] {
                add(&format!("queue_{name}"), line(&format!("{queue}/{name}")));
            }
        }
        for name in ["model", "firmware_rev"] {
            add(&format!("device_{name}"), line(&format!("{block}/device/{name}")));
        }
    }
    facts
}

/// The mount that a path lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` of its device.
    pub device: String,
    /// File system type.
    pub kind: String,
    /// Device or source name.
    pub source: String,
    /// Mount options.
    pub options: String,
}

/// Finds the mount below `place` in `/proc/self/mountinfo` (proc(5)).
pub fn mount_of(place: &Path) -> Option<Mount> {
    let place = fs::canonicalize(place).ok()?;
    parse_mountinfo(&fs::read_to_string("/proc/self/mountinfo").ok()?, &place)
}

fn parse_mountinfo(text: &str, place: &Path) -> Option<Mount> {
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let mut back = back.split(' ');
        // Spaces in mount points are written as \040.
        let point = front.get(4)?.replace("\\040", " ");
        place.starts_with(&point).then_some(())?;
        let mount = Mount {
            device: (*front.get(2)?).to_owned(),
            kind: back.next()?.to_owned(),
            source: back.next()?.to_owned(),
            options: (*front.get(5)?).to_owned(),
        };
        Some((point.len(), mount))
    };
    // The longest mount point wins; of equals the last one, which hides those below it.
    text.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, mount)| mount)
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value behind `name :` in a proc file of that shape.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /mnt/with\\040space rw,nosuid - tmpfs none rw
31 22 7:0 / /data rw - xfs /dev/loop0 rw
32 22 7:1 / /data rw - ext4 /dev/loop1 rw
garbage";

    fn check(place: &str, device: &str, kind: &str) {
        let mount = parse_mountinfo(MOUNTS, Path::new(place)).unwrap();
        assert_eq!((mount.device.as_str(), mount.kind.as_str()), (device, kind), "{place}");
    }

    #[test]
    fn the_longest_and_last_mount_point_wins() {
        check("/home/me", "254:0", "ext4");
        check("/mnt/with space/x", "0:25", "tmpfs");
        check("/data/db", "7:1", "ext4");
        check("/database", "254:0", "ext4");
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_processor_count() {
        let facts = fingerprint(Path::new("."));
        assert!(facts["kernel"].contains('.') && facts["cpus"].parse::<u32>().unwrap() > 0);
    }
}
