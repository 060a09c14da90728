//! What recording an event takes the task in which it happens.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Calls per batch, and batches of each kind; a batch that was interrupted is slower than others.
const CALLS: u32 = 1_000;
const BATCHES: usize = 7;
const CALL: &str = "pread64";

/// Measured on reads of nothing by this thread, in `instance`, which records nothing else yet: half
/// of what a call whose both sides are recorded takes more than one that is not. The instance is
/// left as it was found, its buffers apart.
pub(super) fn event_ns(instance: &Path) -> io::Result<f64> {
    let zero = File::open("/dev/zero")?;
    let task = rustix::thread::gettid().as_raw_nonzero();
    let write = |name: &str, value: &str| std::fs::write(instance.join(name), value);
    let record = |on: &str| {
        let sides = ["enter", "exit"].map(|side| format!("events/syscalls/sys_{side}_{CALL}"));
        sides.iter().try_for_each(|side| write(&format!("{side}/enable"), on))
    };
    write("set_event_pid", &task.to_string())?;
    let mut batches = [f64::INFINITY; 2];
    for _ in 0..BATCHES {
        for (fastest, on) in batches.iter_mut().zip(["0", "1"]) {
            record(on)?;
            *fastest = fastest.min(call_ns(&zero));
        }
    }
    record("0")?;
    write("set_event_pid", "")?;
    // Opened for writing and emptied, it forgets what the buffers hold.
    write("trace", "")?;
    let [plain, recorded] = batches;
    Ok(((recorded - plain) / 2.0).max(0.0))
}

/// Processor time of a call, ns.
fn call_ns(zero: &File) -> f64 {
    let clock = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let mut byte = [0];
    let before = clock();
    for _ in 0..CALLS {
        _ = rustix::io::pread(zero.as_fd(), &mut byte, 0);
    }
    (clock() - before) / f64::from(CALLS)
}

#[cfg(test)]
mod tests {
    use super::super::mount::mounted_tracefs;
    use super::*;

    /// Recording takes more than nothing and less than a system call that sleeps; what was recorded
    /// for it is gone, and nobody is followed.
    #[test]
    fn the_cost_of_an_event_and_nothing_else_is_left() {
        let look = || -> Option<(f64, [String; 2])> {
            let root = mounted_tracefs().ok()?;
            let path = root.join(format!("instances/wearmark-{}-cost-0", std::process::id()));
            std::fs::create_dir(&path).ok()?;
            let found = event_ns(&path);
            let texts = ["set_event_pid", "trace"]
                .map(|name| std::fs::read_to_string(path.join(name)).unwrap_or_default());
            std::fs::remove_dir(&path).unwrap();
            Some((found.unwrap(), texts))
        };
        let Some((ns, [followed, left])) = std::thread::spawn(look).join().unwrap() else {
            return println!("skipped: no tracefs instance can be made");
        };
        assert!((20.0..20_000.0).contains(&ns), "{ns}");
        assert_eq!(followed, "");
        let events = left.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(events, 0, "{left}");
    }
}
