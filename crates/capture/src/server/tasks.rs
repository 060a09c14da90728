//! The tree of processes below a server's main process, and their tasks (threads), from `/proc`.
//!
//! Format: proc(5), `/proc/PID/stat`. A process that ends while we look is left out. Tested on
//! fixture text and on a child of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub parent: u32,
    pub flags: u64,
    /// Clock ticks in user mode, in the kernel; then those of children that ended and were waited
    /// for.
    pub user: u64,
    pub system: u64,
    pub children_user: u64,
    pub children_system: u64,
}

/// `PF_KTHREAD` of include/linux/sched.h, stable since 2.6.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    pub(super) fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

/// Reads a `stat` line. Field 2, the name, may hold spaces and parentheses.
pub(super) fn parse_stat(text: &str) -> Option<Stat> {
    let rest = &text[text.rfind(')')? + 1..];
    // The first word behind the name is field 3.
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(4)?).ok()?,
        flags: number(9)?,
        user: number(14)?,
        system: number(15)?,
        children_user: number(16)?,
        children_system: number(17)?,
    })
}

/// Every process of the machine that can be seen.
pub(super) fn processes() -> BTreeMap<u32, Stat> {
    let mut found = BTreeMap::new();
    for pid in numbers_in(Path::new("/proc")) {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if let Some(stat) = text.ok().as_deref().and_then(parse_stat) {
            found.insert(pid, stat);
        }
    }
    found
}

/// The processes `mains` and everything below them.
pub(super) fn tree(processes: &BTreeMap<u32, Stat>, mains: &[u32]) -> BTreeSet<u32> {
    let there = mains.iter().copied().filter(|main| processes.contains_key(main));
    let mut found: BTreeSet<u32> = there.collect();
    // A child may have a smaller number than its parent: look until nothing is added.
    loop {
        let before = found.len();
        let children = processes.iter().filter(|(_, stat)| found.contains(&stat.parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        if found.len() == before {
            return found;
        }
    }
}

/// Every task of the trees below `mains`, with its process.
pub(super) fn tasks(mains: &[u32]) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    for pid in tree(&processes(), mains) {
        for task in numbers_in(Path::new(&format!("/proc/{pid}/task"))) {
            found.insert(task, pid);
        }
    }
    found
}

/// The process that a task belongs to, where it still is.
pub(super) fn process_of(task: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Entries of a folder that are numbers.
pub(super) fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_an_odd_name() {
        let text = "77 (a) (b c) S 5 77 77 0 -1 2097216 1 2 3 4 11 12 13 14 20 0 1 0 99 0\n";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.parent, stat.user, stat.system), (5, 11, 12));
        assert_eq!((stat.children_user, stat.children_system), (13, 14));
        assert!(stat.is_kernel_thread());
        assert_eq!(parse_stat("77 (x) S 5"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_tree_goes_down_all_levels() {
        let stat = |parent| Stat { parent, ..Stat::default() };
        let all = BTreeMap::from([(2, stat(9)), (7, stat(1)), (9, stat(7)), (10, stat(1))]);
        assert_eq!(tree(&all, &[7]), BTreeSet::from([2, 7, 9]));
        assert_eq!(tree(&all, &[3]), BTreeSet::new());
    }

    #[test]
    fn our_own_tasks() {
        let child = std::process::Command::new("sleep").arg("5").spawn();
        let Ok(mut child) = child else { return println!("skipped: no sleep here") };
        let tasks = tasks(&[std::process::id()]);
        assert_eq!(tasks.get(&child.id()), Some(&child.id()));
        assert_eq!(tasks.get(&std::process::id()), Some(&std::process::id()));
        assert_eq!(process_of(child.id()), Some(child.id()));
        let _ = child.kill();
        let _ = child.wait();
    }
}
