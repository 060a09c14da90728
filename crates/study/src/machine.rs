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
    add("date", utc(std::time::SystemTime::now()));
    add("host", Some(system.nodename().to_string_lossy().into_owned()));
    let arguments = std::env::args_os().map(|text| without_password(&text.to_string_lossy()));
    add("command", Some(arguments.collect::<Vec<_>>().join(" ")));
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
            let of_disk = || line(&format!("{block}/../device/{name}"));
            add(
                &format!("device_{name}"),
                line(&format!("{block}/device/{name}")).or_else(of_disk),
            );
        }
    }
    facts
}

/// `2026-11-22T14:03:07Z`; none before 1970.
fn utc(at: std::time::SystemTime) -> Option<String> {
    let seconds = at.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years of 365 days from a 1 March on, so that the leap day comes last (Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// An argument as it may be kept: the password of a URL is not.
fn without_password(argument: &str) -> String {
    let parts = argument.split_once("://").and_then(|(scheme, rest)| {
        let (account, place) = rest.rsplit_once('@')?;
        let (user, _) = account.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{place}"))
    });
    parts.unwrap_or_else(|| argument.to_owned())
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
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: u64| {
            utc(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap()
        };
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_356_187), "2026-11-22T14:03:07Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn commands_are_kept_without_passwords() {
        assert_eq!(without_password("postgresql://u:p@ss@h:5/d"), "postgresql://u:***@h:5/d");
        assert_eq!(without_password("--url=mysql://u@h"), "--url=mysql://u@h");
        assert_eq!(without_password("quickstart"), "quickstart");
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_processor_count() {
        let facts = fingerprint(Path::new("."));
        assert!(facts["kernel"].contains('.') && facts["cpus"].parse::<u32>().unwrap() > 0);
    }
}
