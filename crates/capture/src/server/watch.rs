//! Where a server's files lie on their disks, over time.
//!
//! Files grow, are deleted and their blocks given to others while the load runs, and ext4 gives a
//! block its place only when it is written back. So the directories are walked at the start, every
//! second and at the end; a file whose blocks or time of change differ from the last look, or that
//! had parts without a place, is asked again (FIEMAP). Nothing is written for it, unlike with
//! FIEMAP_FLAG_SYNC: what was issued has its place.
//!
//! A request belongs to the last owner known of its first byte; where none was known yet, to the
//! first one that became known later. Missed: a file that was written to the disk and deleted
//! between two looks.
//!
//! Invariant: looks are in the order of time. Tested on files of our own and on hand-made
//! histories.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::class::Server;
use crate::block::fiemap;
use crate::device;
use crate::now_ns;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Levels of folders that are followed: `pg_tblspc/1/PG_15_x/5/file` and some more.
const LEVELS: u32 = 8;

/// A piece of a disk has an owner from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub time_ns: u64,
    /// Number of the disk.
    pub disk: u32,
    pub start: u64,
    pub end: u64,
    /// Index of the owner's class.
    pub class: u16,
}

/// A thread that looks.
pub(super) struct Watch {
    stop: Sender<()>,
    thread: Option<JoinHandle<Vec<Owned>>>,
}

impl Watch {
    /// Starts with a first look.
    pub(super) fn start(server: &Server) -> Self {
        let (stop, stopped) = channel();
        let mut looker = Looker::new(server.clone());
        looker.look();
        let watch = move || loop {
            let end = stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
            looker.look();
            if end {
                return looker.owned;
            }
        };
        let thread = std::thread::Builder::new().name("capture-files".to_owned());
        Self { stop, thread: thread.spawn(watch).ok() }
    }

    /// Takes a last look and returns the history.
    pub(super) fn finish(mut self) -> Vec<Owned> {
        let _ = self.stop.send(());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Blocks of a file and its time of change, s and ns.
type State = (u64, i64, i64);

struct Looker {
    server: Server,
    /// Blocks and time of change of each file at its last look; `None` to look again.
    known: HashMap<(u64, u64), Option<State>>,
    /// Disk and start of the partition by the number of the file system.
    disks: HashMap<u64, Option<(u32, u64)>>,
    owned: Vec<Owned>,
}

impl Looker {
    fn new(server: Server) -> Self {
        Self { server, known: HashMap::new(), disks: HashMap::new(), owned: Vec::new() }
    }

    fn look(&mut self) {
        let directories: Vec<PathBuf> =
            self.server.directories().into_iter().map(Path::to_owned).collect();
        for directory in directories {
            self.walk(&directory, LEVELS);
        }
    }

    fn walk(&mut self, directory: &Path, levels: u32) {
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            // Symbolic links are followed: tablespaces and the log may be behind them.
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.is_dir() && levels > 0 {
                self.walk(&path, levels - 1);
            } else if metadata.is_file() {
                self.file(&path, &metadata);
            }
        }
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) {
        let state = (metadata.blocks(), metadata.mtime(), metadata.mtime_nsec());
        let key = (metadata.dev(), metadata.ino());
        if metadata.blocks() == 0 || self.known.get(&key) == Some(&Some(state)) {
            return;
        }
        let disk = self.disks.entry(metadata.dev()).or_insert_with(|| {
            let device = device::of(path).ok()?;
            Some((device.number, device.partition_start))
        });
        let Some((disk, partition_start)) = *disk else { return };
        let Ok(found) = File::open(path).and_then(|file| fiemap::where_now(&file)) else { return };
        let class = self.server.class_of(path) as u16;
        let time_ns = now_ns();
        self.owned.extend(found.placed.iter().map(|(start, length)| {
            let start = partition_start + start;
            Owned { time_ns, disk, start, end: start + length, class }
        }));
        self.known.insert(key, (!found.delayed).then_some(state));
    }
}

/// Owners of the bytes of one disk at one moment, by their start.
#[derive(Default)]
struct Owners(BTreeMap<u64, (u64, u16)>);

impl Owners {
    fn set(&mut self, start: u64, end: u64, class: u16) {
        let reaches_in = self.0.range(..start).next_back().filter(|(_, owner)| owner.0 > start);
        let first = reaches_in.map_or(start, |(at, _)| *at);
        let overlapped: Vec<_> =
            self.0.range(first..end).map(|(at, owner)| (*at, *owner)).collect();
        for (at, (until, owner)) in overlapped {
            self.0.remove(&at);
            if at < start {
                self.0.insert(at, (start, owner));
            }
            if until > end {
                self.0.insert(end, (until, owner));
            }
        }
        self.0.insert(start, (end, class));
    }

    fn at(&self, offset: u64) -> Option<u16> {
        let (_, (end, class)) = self.0.range(..=offset).next_back()?;
        (offset < *end).then_some(*class)
    }
}

/// The owner of each request (time and offset on the disk, in the order of time).
pub(super) fn owners(requests: &[(u64, u64)], history: &[Owned]) -> Vec<Option<u16>> {
    let mut found = vec![None; requests.len()];
    let (mut owners, mut next) = (Owners::default(), 0);
    for (owner, (time, offset)) in found.iter_mut().zip(requests) {
        while let Some(piece) = history.get(next).filter(|piece| piece.time_ns <= *time) {
            owners.set(piece.start, piece.end, piece.class);
            next += 1;
        }
        *owner = owners.at(*offset);
    }
    let (mut owners, mut left) = (Owners::default(), history.len());
    for (owner, (time, offset)) in found.iter_mut().zip(requests).rev() {
        while left > 0 && history[left - 1].time_ns > *time {
            left -= 1;
            owners.set(history[left].start, history[left].end, history[left].class);
        }
        *owner = owner.or_else(|| owners.at(*offset));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::class::{Class, System};

    fn owned(time_ns: u64, start: u64, end: u64, class: u16) -> Owned {
        Owned { time_ns, disk: 0, start, end, class }
    }

    #[test]
    fn later_owners_take_pieces_out_of_earlier_ones() {
        let mut owners = Owners::default();
        owners.set(0, 100, 1);
        owners.set(40, 60, 2);
        owners.set(90, 120, 3);
        let at = [0, 39, 40, 59, 60, 89, 90, 119].map(|offset| owners.at(offset));
        assert_eq!(at, [1, 1, 2, 2, 1, 1, 3, 3].map(Some));
        assert_eq!(owners.at(120), None);
        owners.set(0, 200, 4);
        assert_eq!(owners.0.len(), 1);
    }

    #[test]
    fn the_last_owner_known_or_else_the_first_to_come() {
        let history = [owned(10, 0, 100, 1), owned(20, 0, 50, 2), owned(30, 200, 300, 3)];
        let requests = [(5, 10), (15, 10), (25, 10), (25, 60), (26, 250), (27, 400)];
        let expected = [Some(1), Some(1), Some(2), Some(1), Some(3), None];
        assert_eq!(owners(&requests, &history), expected);
    }

    #[test]
    fn files_are_found_and_asked_again_when_they_change() {
        let directory = tempfile::tempdir_in(crate::test_home()).unwrap();
        let data = directory.path().to_owned();
        std::fs::create_dir_all(data.join("base/5")).unwrap();
        let path = data.join("base/5/1");
        let write = |bytes: usize| {
            std::fs::write(&path, vec![1; bytes]).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
        };
        write(100_000);
        let (system, pid) = (System::Postgresql, 1);
        let mut looker = Looker::new(Server::new(system, pid, data));
        looker.look();
        if looker.owned.is_empty() {
            return println!("skipped: no FIEMAP or no disk under the build folder");
        }
        assert!(looker.owned.iter().all(|piece| piece.class == Class::Data as u16));
        let covered: u64 = looker.owned.iter().map(|piece| piece.end - piece.start).sum();
        assert!(covered >= 100_000, "{:?}", looker.owned);
        let count = looker.owned.len();
        looker.look();
        assert_eq!(looker.owned.len(), count, "nothing changed");
        write(300_000);
        looker.look();
        assert!(looker.owned.len() > count);
    }
}
