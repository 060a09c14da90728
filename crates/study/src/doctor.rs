//! What this machine can and cannot do for wearmark, with the reason and the remedy.
//!
//! Every check tries the thing itself (sets up a ring, opens a file past the cache) rather than
//! reading a version number. A "no" is a normal answer: the stage that wants the thing falls back
//! or says what is missing in its result.

use std::fs;
use std::path::Path;

use dbms::{Programs, System};
use events::Hint;
use serde::Serialize;
use units::Bytes;

use crate::machine;
use crate::profiles::free_memory;

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// What was found.
    pub finding: String,
    /// What wearmark does without it, and how to get it; empty where all is well.
    pub remedy: String,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Works.
    Works,
    /// wearmark runs, with less.
    Limited,
    /// The main job cannot run.
    Missing,
}

/// Runs every check for work in `place`.
pub fn examine(place: &Path) -> Vec<Check> {
    vec![
        direct_io(place),
        free_space(place),
        io_uring(),
        block_trace(place),
        emulation(),
        real_time(),
        pressure(),
        clock(),
        processors(),
        governor(Path::new("/sys")),
        temperature(Path::new("/sys")),
        other_load(),
        memory(),
        server(System::Postgresql),
        server(System::Mariadb),
        build(),
    ]
}

fn works(name: &'static str, finding: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Works, finding: finding.into(), remedy: String::new() }
}

fn limited(name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Limited, finding: finding.into(), remedy: remedy.into() }
}

fn missing(name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Missing, finding: finding.into(), remedy: remedy.into() }
}

fn direct_io(place: &Path) -> Check {
    const NAME: &str = "direct I/O";
    let path = place.join(format!(".wearmark-doctor-{}", std::process::id()));
    let write = |flags: i32| -> std::io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let open = fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .custom_flags(flags)
            .open(&path);
        let _ = fs::remove_file(&path);
        open.map(drop)
    };
    let kind = machine::mount_of(place).map_or("unknown".into(), |mount| mount.kind);
    let shown = place.display();
    match (write(libc::O_DIRECT), write(0)) {
        (Ok(()), _) => works(NAME, format!("{shown} ({kind}) opens files past the page cache")),
        (Err(error), Ok(())) => limited(
            NAME,
            format!("{shown} ({kind}) refuses O_DIRECT: {error}"),
            "probe and replay would measure memory, not the disk: choose a directory on ext4, xfs \
             or btrfs",
        ),
        (_, Err(error)) => missing(
            NAME,
            format!("{shown} cannot be written: {error}"),
            "choose a directory that you may write to",
        ),
    }
}

fn free_space(place: &Path) -> Check {
    const NAME: &str = "free space";
    match free_bytes(place) {
        Some(free) if free.0 >= 4 * Bytes::GIB.0 => {
            works(NAME, format!("{} GiB free", free.0 / Bytes::GIB.0))
        }
        Some(free) => limited(
            NAME,
            format!("{} MiB free; the main job takes up to 4 GiB", free.0 / Bytes::MIB.0),
            "free some space, or lower warehouses and range in a study file of your own",
        ),
        None => limited(NAME, "cannot be read here", "check the path"),
    }
}

/// Bytes that an unprivileged process may still write below `place`.
pub fn free_bytes(place: &Path) -> Option<Bytes> {
    let stat = rustix::fs::statvfs(place).ok()?;
    Some(Bytes(stat.f_bavail.checked_mul(stat.f_frsize)?))
}

fn io_uring() -> Check {
    const NAME: &str = "io_uring";
    let mut parameters = [0u8; 120];
    // SAFETY: io_uring_setup reads and writes one `struct io_uring_params` of 120 bytes, all zero
    // being valid; the descriptor it may return is closed at once and nothing was mapped.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 2, parameters.as_mut_ptr()) };
    if fd >= 0 {
        // SAFETY: `fd` was just returned to us and is used nowhere else.
        unsafe { libc::close(fd as i32) };
        return works(NAME, "rings can be set up");
    }
    limited(
        NAME,
        format!("refused: {}", std::io::Error::last_os_error()),
        "wearmark falls back to pread/pwrite, one request at a time per thread; allow it with \
         'sysctl kernel.io_uring_disabled=0' or in the container's seccomp profile",
    )
}

fn block_trace(place: &Path) -> Check {
    const NAME: &str = "block-layer capture";
    match capture::block::availability(place) {
        Ok(()) => works(NAME, "tracefs delivers block events of this device"),
        Err(unavailable) => limited(NAME, unavailable.reason, unavailable.remedy),
    }
}

fn real_time() -> Check {
    const NAME: &str = "real-time priority";
    let limit = rustix::process::getrlimit(rustix::process::Resource::Rtprio).current;
    let allowed = rustix::process::geteuid().is_root() || limit.is_none_or(|limit| limit > 0);
    if allowed {
        return works(NAME, "replay may run with SCHED_FIFO");
    }
    limited(
        NAME,
        "not allowed for this user",
        "replay times requests less exactly while other programs run; allow it with \
         'ulimit -r 50' or in /etc/security/limits.conf",
    )
}

fn pressure() -> Check {
    const NAME: &str = "pressure information";
    if fs::read_to_string("/proc/pressure/io").is_ok() {
        return works(NAME, "/proc/pressure shows what tasks wait for");
    }
    limited(
        NAME,
        "/proc/pressure is absent",
        "the report's I/O wait comes from /proc/stat alone; boot with psi=1 for more",
    )
}

fn clock() -> Check {
    const NAME: &str = "clock";
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    match source.as_str() {
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => {
            works(NAME, format!("{source}, read without a system call"))
        }
        "" => limited(NAME, "clock source unknown", "none; times may cost a system call each"),
        other => limited(
            NAME,
            format!("{other} costs a system call per reading"),
            "every request's CPU cost includes it; boot with clocksource=tsc where that is stable",
        ),
    }
}

fn emulation() -> Check {
    const NAME: &str = "emulation";
    match emulate::directories_missing() {
        None => works(NAME, "directories can be served at the speed of a modelled device"),
        Some((cause, remedy)) => {
            limited(NAME, cause, format!("no 'wearmark emulate' without it: {remedy}"))
        }
    }
}

fn processors() -> Check {
    const NAME: &str = "processors";
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if count >= 2 {
        return works(NAME, format!("{count} usable"));
    }
    limited(
        NAME,
        "one usable",
        "the load generator and the database share it; results are marked when it is saturated",
    )
}

/// Processors whose clock follows the load make short waits look slow.
fn governor(sysfs: &Path) -> Check {
    const NAME: &str = "processor clock";
    let path = sysfs.join("devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let Ok(governor) = fs::read_to_string(path) else {
        return works(NAME, "not scaled here, or by the host");
    };
    match governor.trim() {
        "performance" => works(NAME, "governor 'performance'"),
        other => limited(
            NAME,
            format!("governor '{other}'"),
            "response times at low depth vary with the clock: 'cpupower frequency-set -g \
             performance'",
        ),
    }
}

/// Degrees below a sensor's own limit at which a drive or a processor may slow itself down.
const MARGIN_C: f64 = 5.0;

/// A device that is hot slows itself down: later figures are worse than earlier ones.
fn temperature(sysfs: &Path) -> Check {
    const NAME: &str = "temperature";
    let sensors = fs::read_dir(sysfs.join("class/hwmon")).into_iter().flatten().flatten();
    let mut read: Vec<Sensor> = sensors.filter_map(|entry| Sensor::read(&entry.path())).collect();
    read.sort_by(|a, b| a.margin_c().total_cmp(&b.margin_c()));
    let Some(hottest) = read.first() else { return works(NAME, "no sensor here") };
    let Sensor { name, at_c, limit_c } = hottest;
    if hottest.margin_c() >= MARGIN_C {
        return works(NAME, format!("{name} at {at_c:.0} C, its limit is {limit_c:.0} C"));
    }
    limited(
        NAME,
        format!("{name} at {at_c:.0} C, its limit is {limit_c:.0} C"),
        "it may slow down while it is measured: let it cool, or give it more air",
    )
}

/// The first temperature of a sensor chip (hwmon of the kernel: `tempN_*` in thousandths of a
/// degree).
struct Sensor {
    name: String,
    at_c: f64,
    limit_c: f64,
}

impl Sensor {
    /// `None` where the chip has no temperature, or no limit to compare it with.
    fn read(chip: &Path) -> Option<Self> {
        let degrees = |file: &str| -> Option<f64> {
            let text = fs::read_to_string(chip.join(file)).ok()?;
            Some(text.trim().parse::<f64>().ok()? / 1000.0)
        };
        let limit_c = degrees("temp1_max").or_else(|| degrees("temp1_crit"))?;
        let name = fs::read_to_string(chip.join("name")).ok()?.trim().to_owned();
        Some(Self { name, at_c: degrees("temp1_input")?, limit_c })
    }

    fn margin_c(&self) -> f64 {
        self.limit_c - self.at_c
    }
}

/// Other programs make every figure worse, and nobody can tell by how much.
fn other_load() -> Check {
    const NAME: &str = "other programs";
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match text.split(' ').next().and_then(|load| load.parse::<f64>().ok()) {
        Some(load) if load > 0.3 * count as f64 => limited(
            NAME,
            format!("load average {load:.1} on {count} processors"),
            "end them before measuring; results of a busy machine are marked",
        ),
        Some(load) => works(NAME, format!("load average {load:.1}")),
        None => limited(NAME, "the load is not told", "look at 'top' before measuring"),
    }
}

/// Databases and their page cache share it.
fn memory() -> Check {
    const NAME: &str = "free memory";
    match free_memory() {
        Some(free) if free >= Bytes::GIB => works(NAME, format!("{} GiB available", free.0 >> 30)),
        Some(free) => limited(
            NAME,
            format!("{} MiB available", free.0 >> 20),
            "lower --buffer, or end other programs: a database that swaps measures the swap",
        ),
        None => limited(NAME, "not told", "look at 'free' before measuring"),
    }
}

/// A private server can be started, or why not.
fn server(system: System) -> Check {
    let name = match system {
        System::Postgresql => "PostgreSQL",
        System::Mariadb => "MariaDB",
    };
    match Programs::find(system) {
        Ok(found) => works(name, format!("{} at {}", found.version(), found.server().display())),
        Err(error) => limited(
            name,
            "no server that can be started here",
            error.hint().unwrap_or_else(|| error.to_string()),
        ),
    }
}

fn build() -> Check {
    const NAME: &str = "build";
    if cfg!(debug_assertions) {
        return limited(
            NAME,
            "debug build",
            "CPU figures are several times too high: build with 'cargo build --release'",
        );
    }
    works(NAME, "optimised")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shortfall_comes_with_a_remedy() {
        let place = tempfile::tempdir().unwrap();
        for check in examine(place.path()) {
            assert!(!check.finding.is_empty(), "{check:?}");
            assert_eq!(check.verdict == Verdict::Works, check.remedy.is_empty(), "{check:?}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "the doctor left a file");
    }

    #[test]
    fn a_clock_that_follows_the_load_is_told() {
        let sysfs = tempfile::tempdir().unwrap();
        let at = sysfs.path().join("devices/system/cpu/cpu0/cpufreq");
        assert_eq!(governor(sysfs.path()).verdict, Verdict::Works);
        fs::create_dir_all(&at).unwrap();
        for (written, expected) in
            [("powersave\n", Verdict::Limited), ("performance\n", Verdict::Works)]
        {
            fs::write(at.join("scaling_governor"), written).unwrap();
            assert_eq!(governor(sysfs.path()).verdict, expected, "{written}");
        }
    }

    #[test]
    fn the_sensor_nearest_to_its_limit_is_told() {
        let sysfs = tempfile::tempdir().unwrap();
        assert_eq!(temperature(sysfs.path()).finding, "no sensor here");
        let chip = |number: u32, name: &str, at: &str, limit: &str| {
            let chip = sysfs.path().join(format!("class/hwmon/hwmon{number}"));
            fs::create_dir_all(&chip).unwrap();
            fs::write(chip.join("name"), format!("{name}\n")).unwrap();
            fs::write(chip.join("temp1_input"), at).unwrap();
            fs::write(chip.join("temp1_max"), limit).unwrap();
        };
        chip(0, "coretemp", "55000\n", "100000\n");
        chip(1, "nvme", "60850\n", "81850\n");
        let cool = temperature(sysfs.path());
        assert_eq!(
            (cool.verdict, &*cool.finding),
            (Verdict::Works, "nvme at 61 C, its limit is 82 C")
        );
        chip(1, "nvme", "79000\n", "81850\n");
        let hot = temperature(sysfs.path());
        assert_eq!(
            (hot.verdict, &*hot.finding),
            (Verdict::Limited, "nvme at 79 C, its limit is 82 C")
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_missing_not_limited() {
        assert_eq!(direct_io(Path::new("/nonexistent")).verdict, Verdict::Missing);
        assert_eq!(direct_io(Path::new("/proc")).verdict, Verdict::Missing);
    }
}
