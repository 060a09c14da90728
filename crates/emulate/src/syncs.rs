//! What making a write durable computes for the program that asks: on a disk's file system, whose
//! block layer and driver it goes through itself, and in a served directory, where the emulator's
//! thread does the rest. A load that is run on an emulated device computes less by the difference.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use units::Nanos;

use crate::emulation::served_at_no_cost;

/// A page of a log.
const WRITE_BYTES: usize = 8192;
/// Pages that are written in turn.
const PAGES: u64 = 16;
/// Most and fewest syncs of a measurement, and how long it goes on beyond these.
const MOST: usize = 300;
const FEWEST: usize = 20;
const LONGEST: Duration = Duration::from_millis(200);
/// How often it is measured, of which the least counts: where caller and emulator happen to share a
/// processor both look slow.
const ROUNDS: usize = 3;

/// Processor time of one write and its sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncComputing {
    /// In the directory itself.
    pub here: Nanos,
    /// In a served one.
    pub served: Nanos,
}

impl SyncComputing {
    /// Measures both, the first in this directory; `None` where either cannot be done here.
    pub fn measure(directory: &Path) -> Option<Self> {
        let least = |directory: &Path| (0..ROUNDS).map(|_| computed(directory).ok()).min()?;
        let here = least(directory)?;
        Some(Self { here, served: served_at_no_cost(least)?? })
    }

    /// By how much less is computed where the directory is served, ns.
    pub fn less_ns(self) -> f64 {
        self.here.0.saturating_sub(self.served.0) as f64
    }
}

/// The median over some syncs of a file of its own in a directory.
fn computed(directory: &Path) -> std::io::Result<Nanos> {
    let file = tempfile::tempfile_in(directory)?;
    let page = [1; WRITE_BYTES];
    let put = |file: &File, at: u64| file.write_all_at(&page, at % PAGES * WRITE_BYTES as u64);
    for at in 0..PAGES {
        put(&file, at)?;
    }
    file.sync_all()?;
    let began = Instant::now();
    let mut all = Vec::with_capacity(MOST);
    while all.len() < FEWEST || (all.len() < MOST && began.elapsed() < LONGEST) {
        let before = thread_ns();
        put(&file, all.len() as u64)?;
        file.sync_data()?;
        all.push(thread_ns() - before);
    }
    all.sort_unstable();
    Ok(Nanos(all[all.len() / 2]))
}

/// Processor time of this thread, ns.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_compute_something_and_less_is_never_negative() {
        let home = tempfile::tempdir().unwrap();
        assert!(computed(home.path()).unwrap().0 > 500);
        let less =
            |here, served| SyncComputing { here: Nanos(here), served: Nanos(served) }.less_ns();
        assert_eq!([less(50_000, 17_000), less(10, 20)], [33_000.0, 0.0]);
    }
}
