//! What the disk reads from the moment a load begins: on caches that are empty, more than later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capture::diskstats::DiskCounter;
use serde::{Deserialize, Serialize};

/// Time between two looks: the intervals in which a run counts its transactions.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reads of the disk below the data files since the load began, whoever asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartReads {
    /// Reads since the start, at the end of each tenth of a second.
    pub reads: Vec<u64>,
    /// Their bytes.
    pub read_bytes: Vec<u64>,
}

/// Looks at the disk beside a load.
pub(super) struct StartWatch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<StartReads>,
}

impl StartWatch {
    /// Begins; `None` where the file system lies on no disk that can be seen.
    pub(super) fn begin(data: &Path) -> Option<Self> {
        let counter = DiskCounter::start(data).ok()?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let started = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut found = StartReads::default();
            for number in 1u32.. {
                let until = started + INTERVAL * number;
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                let Ok(so_far) = counter.so_far() else { break };
                found.reads.push(so_far.reads);
                found.read_bytes.push(so_far.read_sectors * 512);
                if seen.load(Ordering::Relaxed) {
                    break;
                }
            }
            found
        });
        Some(Self { ended, thread })
    }

    /// Ends it.
    pub(super) fn finish(self) -> Option<StartReads> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().ok().filter(|found| !found.reads.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file of 8 MiB that is not in the page cache is read while the disk is watched.
    #[test]
    fn reads_are_counted_from_the_start() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![7; 8 << 20]).unwrap();
        let file = fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let Some(watch) = StartWatch::begin(dir.path()) else {
            return println!("skipped: the file system lies on no disk that can be seen");
        };
        fs::read(&path).unwrap();
        let found = watch.finish().unwrap();
        assert_eq!(found.reads.len(), found.read_bytes.len());
        assert!(found.read_bytes.is_sorted() && found.reads.is_sorted());
        assert!(*found.read_bytes.last().unwrap() >= 8 << 20, "{found:?}");
    }
}
