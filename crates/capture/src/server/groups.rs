//! Which tasks share what one of them gets of the processors.
//!
//! Linux divides processors between groups, then within each (`CONFIG_FAIR_GROUP_SCHED`): control
//! groups whose `cpu` controller is on, or, for tasks in none, sessions where
//! `sched_autogroup_enabled` is set (sched(7)). A server whose processes are sessions of their own,
//! as PostgreSQL's are, is many groups; one with threads is a single one, and so are all threads of
//! a client, unless the two are in one session, where each task stands for itself.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Who is one group of the scheduler, beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGroups {
    /// The server's tasks, all together.
    pub server: bool,
    /// The client's tasks.
    pub clients: bool,
}

/// Looks at the processes of a server and at this one.
pub(super) fn read(server: &BTreeSet<u32>) -> TaskGroups {
    let of = |pid: u32| group(pid, Path::new("/"));
    compare(&server.iter().map(|pid| of(*pid)).collect(), of(std::process::id()).as_deref())
}

/// Groups of the server's processes and that of the client; `None` is no group. A server that the
/// client started is in its session; only those of its processes count then that left it.
fn compare(server: &BTreeSet<Option<String>>, client: Option<&str>) -> TaskGroups {
    let client = client.map(str::to_owned);
    let apart: Vec<_> = server.iter().filter(|group| **group != client).collect();
    TaskGroups {
        server: server.len() == 1 && apart.first().is_some_and(|group| group.is_some()),
        clients: !apart.is_empty() && client.is_some(),
    }
}

/// The group of a process; `None` where it is in none or is gone.
fn group(pid: u32, root: &Path) -> Option<String> {
    let read = |path: String| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let unified = |path: &str| root.join(format!("sys/fs/cgroup{path}/cpu.weight")).exists();
    if let Some(group) = control_group(&read(format!("proc/{pid}/cgroup")), &unified) {
        return Some(group);
    }
    if read("proc/sys/kernel/sched_autogroup_enabled".to_owned()).trim() != "1" {
        return None;
    }
    // Nothing is written for what is still in the session of the first process: the root group.
    read(format!("proc/{pid}/autogroup")).split_whitespace().next().map(str::to_owned)
}

/// The control group of `/proc/PID/cgroup` (cgroups(7)): the path in the hierarchy that has the
/// `cpu` controller, or the nearest of the unified one where that is on.
fn control_group(text: &str, has_weight: &dyn Fn(&str) -> bool) -> Option<String> {
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.split(',').any(|name| name == "cpu") && path != "/" {
            return Some(path.to_owned());
        }
        if controllers.is_empty() {
            let mut paths = Path::new(path).ancestors().filter_map(Path::to_str);
            if let Some(path) = paths.find(|path| *path != "/" && has_weight(path)) {
                return Some(path.to_owned());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(server: &[&str], client: &str) -> TaskGroups {
        let of = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
        compare(&server.iter().map(of).collect(), of(&client).as_deref())
    }

    #[test]
    fn sessions_stand_for_themselves_and_threads_together() {
        let both = TaskGroups { server: true, clients: true };
        assert_eq!(groups(&["/a1", "/a2"], "/a3"), TaskGroups { server: false, ..both });
        assert_eq!(groups(&["/a1"], "/a3"), both);
        assert_eq!(groups(&["/a1"], "/a1"), TaskGroups::default());
        // The postmaster is in the session of the client that started it, its children are not.
        assert_eq!(groups(&["/a1", "/a2", "/a3"], "/a1"), TaskGroups { server: false, ..both });
        assert_eq!(groups(&[""], ""), TaskGroups::default());
        assert_eq!(groups(&["/a1"], ""), TaskGroups { clients: false, ..both });
    }

    #[test]
    fn control_groups_of_both_versions_are_read() {
        let old = "9:name=systemd:/\n2:cpuacct,cpu:/jobs/7\n0::/\n";
        assert_eq!(control_group(old, &|_| true).as_deref(), Some("/jobs/7"));
        assert_eq!(control_group("1:cpu:/\n0::/\n", &|_| true), None);
        let new = "0::/system.slice/postgresql.service\n";
        assert_eq!(
            control_group(new, &|path| path == "/system.slice").as_deref(),
            Some("/system.slice")
        );
        assert_eq!(control_group(new, &|_| false), None);
    }

    /// A session of our own is a group of its own, where the kernel makes them.
    #[test]
    fn a_session_is_seen_as_a_group() {
        let root = Path::new("/");
        let mut child =
            std::process::Command::new("setsid").args(["sleep", "60"]).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(200));
        let seen = (group(child.id(), root), group(std::process::id(), root));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let is_on = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
        let is_session = |group: &Option<String>| {
            group.as_deref().is_none_or(|group| group.starts_with("/autogroup-"))
        };
        if is_on.is_ok_and(|text| text.trim() == "1") && is_session(&seen.1) {
            assert!(seen.0.is_some() && is_session(&seen.0) && seen.0 != seen.1, "{seen:?}");
        } else {
            assert_eq!(seen.0, seen.1);
        }
    }

    #[test]
    fn the_first_session_is_no_group() {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
            ("proc/7/autogroup", ""),
            ("proc/8/autogroup", "/autogroup-12 nice 0\n"),
        ] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("it is written");
        }
        assert_eq!(group(7, root.path()), None);
        assert_eq!(group(8, root.path()).as_deref(), Some("/autogroup-12"));
    }
}
