//! Data that the kernel has sent and the device has not been given.
//!
//! A served directory differs from a file system on a disk in one thing that a database feels:
//! when a program closes a file, the kernel sends all of it that was not written, however young,
//! and the program waits (`fuse_flush`, fs/fuse/file.c of Linux 6.18). PostgreSQL closes the files
//! of tables now and then, with a thousand such pages; its log waited behind them for tenths of a
//! second. On a disk they would stay in memory until somebody syncs the file or half a minute has
//! passed.
//!
//! Why data come is not told, but what follows is: a sync or a close. So of many that come in
//! quick succession all but the first few are answered at once and held back. A sync gives them to
//! the device, and waits for that; after a close they stay; where neither follows soon, the kernel
//! wrote by itself, and the device gets them. The few writes before each sync of a log are never
//! held back. How much may be held is bounded; beyond that the device is waited for.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::layout::FileId;

/// Writes of a file in quick succession that are not held back.
const FIRST: u32 = 8;
/// Those that follow one another within this time do so quickly, ns.
const QUICK_NS: u64 = 5_000_000;
/// A sync or a close follows within this time, ns: the first few writes are waited for, and then a
/// processor is.
const FOLLOWS_NS: u64 = 100_000_000;
/// What a close left is written after this time, ns (`dirty_expire_centisecs` of Linux).
const OLD_NS: u64 = 30_000_000_000;
/// Most bytes that the device has not, or not yet written.
const MOST_BYTES: u64 = 256 << 20;

/// Ranges of a file and when they came, ns.
pub(super) type Writes = Vec<(Range<u64>, u64)>;

/// What is held back of all files.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    files: HashMap<FileId, Held>,
    /// Held, or given to the device and not written.
    bytes: u64,
    /// Nothing is due before this time, ns.
    next_due_ns: u64,
}

/// What is held back of one file.
#[derive(Debug, Default)]
struct Held {
    /// Writes in quick succession so far, and when the last one came, ns.
    quick: u32,
    last_ns: u64,
    /// Came since the last sync or close.
    fresh: Writes,
    /// Left by closes: end by begin, apart from one another.
    kept: BTreeMap<u64, u64>,
    /// When the oldest of these came, ns.
    kept_since_ns: u64,
}

impl Unwritten {
    /// The kernel sends a range of a file; tells whether it is held back.
    pub(super) fn holds(&mut self, file: FileId, range: &Range<u64>, now_ns: u64) -> bool {
        let held = self.files.entry(file).or_default();
        let is_quick = now_ns.saturating_sub(held.last_ns) < QUICK_NS;
        held.quick = if is_quick { held.quick + 1 } else { 1 };
        held.last_ns = now_ns;
        let len = range.end - range.start;
        if held.quick <= FIRST || self.bytes + len > MOST_BYTES {
            return false;
        }
        held.fresh.push((range.clone(), now_ns));
        self.bytes += len;
        self.next_due_ns = self.next_due_ns.min(now_ns + FOLLOWS_NS);
        true
    }

    /// A program has closed the file: what came because of that stays.
    pub(super) fn closed(&mut self, file: FileId) {
        let Some(held) = self.files.get_mut(&file) else { return };
        held.quick = 0;
        if held.kept.is_empty() {
            held.kept_since_ns = held.fresh.first().map_or(u64::MAX, |(_, at_ns)| *at_ns);
        }
        for (range, _) in std::mem::take(&mut held.fresh) {
            let covered = insert(&mut held.kept, range);
            // Parts are whole blocks: the device may have written more than was counted.
            self.bytes = self.bytes.saturating_sub(covered);
        }
    }

    /// The file is synced: what the device is to be given of it.
    pub(super) fn synced(&mut self, file: FileId, now_ns: u64) -> Writes {
        let Some(held) = self.files.remove(&file) else { return Writes::new() };
        let kept = held.kept.into_iter().map(|(begin, end)| (begin..end, now_ns));
        held.fresh.into_iter().chain(kept).collect()
    }

    /// The file is gone, and nothing of it needs to be written.
    pub(super) fn removed(&mut self, file: FileId) {
        let writes = self.synced(file, 0);
        self.written(writes.iter().map(|(range, _)| range.end - range.start).sum());
    }

    /// What of one file the device is to be given because its time has come.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<(FileId, Writes)> {
        if now_ns < self.next_due_ns || self.files.is_empty() {
            return None;
        }
        let found = self.files.iter_mut().find(|(_, held)| held.due_ns() <= now_ns);
        if let Some((file, held)) = found {
            let fresh = std::mem::take(&mut held.fresh);
            let ranges: Vec<Range<u64>> = if fresh.is_empty() {
                let kept = std::mem::take(&mut held.kept);
                kept.into_iter().map(|(begin, end)| begin..end).collect()
            } else {
                fresh.into_iter().map(|(range, _)| range).collect()
            };
            return Some((*file, ranges.into_iter().map(|range| (range, now_ns)).collect()));
        }
        // Of files of which nothing is held only the pace is known, which is soon nothing, too.
        self.files.retain(|_, held| {
            held.due_ns() < u64::MAX || now_ns.saturating_sub(held.last_ns) < QUICK_NS
        });
        self.next_due_ns = self.files.values().map(Held::due_ns).min().unwrap_or(u64::MAX);
        None
    }

    /// The device has written so many of them.
    pub(super) fn written(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Held {
    fn due_ns(&self) -> u64 {
        let fresh = self.fresh.first().map_or(u64::MAX, |(_, at_ns)| at_ns + FOLLOWS_NS);
        let kept = if self.kept.is_empty() { u64::MAX } else { self.kept_since_ns + OLD_NS };
        fresh.min(kept)
    }
}

/// Adds a range to others; returns how many of its bytes they had.
fn insert(ranges: &mut BTreeMap<u64, u64>, added: Range<u64>) -> u64 {
    let Range { mut start, mut end } = added;
    let mut covered = 0;
    let touching: Vec<(u64, u64)> = ranges
        .range(..=end)
        .rev()
        .map(|(&from, &to)| (from, to))
        .take_while(|&(_, to)| to >= start)
        .collect();
    for (from, to) in touching {
        covered += to.min(added.end).saturating_sub(from.max(added.start));
        (start, end) = (start.min(from), end.max(to));
        ranges.remove(&from);
    }
    ranges.insert(start, end);
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = (1, 7);
    const PAGE: u64 = 8192;

    fn page(number: u64) -> Range<u64> {
        number * PAGE..(number + 1) * PAGE
    }

    /// A close sends a thousand pages: the device gets eight of them, and the rest with the next
    /// sync, or after half a minute.
    #[test]
    fn what_a_close_sends_stays_in_memory() {
        let mut all = Unwritten::default();
        let held = (0..1000).filter(|at| all.holds(FILE, &page(2 * at), at * 10_000)).count();
        assert_eq!(held, 992);
        all.closed(FILE);
        assert_eq!(all.due(29_000_000_000), None);
        // The same pages again: they are counted once.
        (0..1000).for_each(|at| _ = all.holds(FILE, &page(2 * at), 1_000_000_000 + at * 10_000));
        all.closed(FILE);
        assert_eq!(all.bytes, 992 * PAGE);
        let (file, writes) = all.due(30_000_080_000).unwrap();
        assert_eq!((file, writes.len()), (FILE, 992));
        assert_eq!(all.due(30_000_080_000), None);
        all.written(992 * PAGE);
        assert_eq!(all.bytes, 0);
    }

    /// Another file may get its number.
    #[test]
    fn nothing_is_left_of_a_file_that_is_removed() {
        let mut all = Unwritten::default();
        (0..20).for_each(|at| _ = all.holds(FILE, &page(2 * at), at));
        all.closed(FILE);
        (0..20).for_each(|at| _ = all.holds(FILE, &page(50 + 2 * at), at));
        all.removed(FILE);
        assert_eq!((all.bytes, all.due(u64::MAX)), (0, None));
    }

    /// More is written than was counted, since parts are whole blocks; the same range once more.
    #[test]
    fn what_is_counted_never_falls_below_nothing() {
        let mut all = Unwritten::default();
        for _ in 0..2 {
            (0..9).for_each(|at| _ = all.holds(FILE, &(0..100), at));
            all.written(4096);
            all.closed(FILE);
            assert!(all.bytes <= 100, "{}", all.bytes);
        }
    }

    /// A log: one or two writes, a sync. A checkpoint: many writes, a sync.
    #[test]
    fn a_sync_takes_what_came_before_it() {
        let mut all = Unwritten::default();
        for commit in 0..100 {
            let at_ns = commit * 50_000;
            assert!(!all.holds(FILE, &page(commit), at_ns));
            assert!(!all.holds(FILE, &page(commit + 1), at_ns + 1_000));
            assert_eq!(all.synced(FILE, at_ns + 2_000), []);
        }
        (0..20).for_each(|at| _ = all.holds(FILE, &page(3 * at), at));
        all.closed(FILE);
        (20..40).for_each(|at| _ = all.holds(FILE, &page(3 * at), at));
        let writes = all.synced(FILE, 50);
        assert_eq!(writes.len(), 12 + 12);
        assert_eq!(writes[0], (page(3 * 28), 28), "those that just came, and when they came");
        assert_eq!(writes[12], (page(3 * 8), 50));
    }

    /// What a close left stays where the kernel writes others of the file by itself.
    #[test]
    fn young_data_of_closes_stay_beside_what_is_due() {
        let mut all = Unwritten::default();
        (0..20).for_each(|at| _ = all.holds(FILE, &page(2 * at), at));
        all.closed(FILE);
        (50..70).for_each(|at| _ = all.holds(FILE, &page(2 * at), at));
        let (_, writes) = all.due(200_000_000).unwrap();
        assert_eq!((writes.len(), writes[0].clone()), (12, (page(2 * 58), 200_000_000)));
        assert_eq!(all.due(200_000_000), None);
        assert_eq!(all.due(30_000_000_100).unwrap().1.len(), 12);
    }

    /// The kernel writes by itself: neither a sync nor a close follows.
    #[test]
    fn what_nobody_asked_for_is_given_to_the_device_soon() {
        let mut all = Unwritten::default();
        (0..64).for_each(|at| _ = all.holds(FILE, &page(at), at * 1_000));
        assert_eq!(all.due(99_000_000), None);
        let (_, writes) = all.due(100_008_000).unwrap();
        assert_eq!((writes.len(), writes[0].1), (56, 100_008_000));
    }

    #[test]
    fn more_than_the_bound_is_waited_for() {
        let mut all = Unwritten::default();
        let large = |at: u64| at << 20..(at + 1) << 20;
        let held = (0..1000).filter(|at| all.holds(FILE, &large(*at), 0)).count();
        assert_eq!(held as u64, MOST_BYTES >> 20);
        all.written(1 << 20);
        assert!(all.holds(FILE, &large(1000), 0) && !all.holds(FILE, &large(1001), 0));
    }

    #[test]
    fn ranges_are_joined() {
        let mut ranges = BTreeMap::new();
        assert_eq!(insert(&mut ranges, 10..20), 0);
        assert_eq!(insert(&mut ranges, 30..40), 0);
        assert_eq!(insert(&mut ranges, 15..35), 10);
        assert_eq!(insert(&mut ranges, 40..50), 0);
        assert_eq!(ranges.into_iter().collect::<Vec<_>>(), [(10, 50)]);
    }
}
