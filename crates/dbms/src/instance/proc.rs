//! What `/proc` tells of a server's processes (proc(5)).

use std::fs;

use super::ServerCpu;

/// One line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    /// Processor time of the process, user and system, ticks.
    own: (u64, u64),
    /// Of its children that ended and that it waited for.
    waited_for: (u64, u64),
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may itself hold blanks and parentheses.
fn parse(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: number(1)? as u32,
        own: (number(11)?, number(12)?),
        waited_for: (number(13)?, number(14)?),
    })
}

/// Whether a process exists and is more than an entry that nobody has read yet.
pub(crate) fn runs(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, b'Z' | b'X'))
}

/// A process and everything below it, itself first.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some(stat) = stat(pid)
        {
            parents.push((pid, stat.parent));
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        next += 1;
    }
    found
}

/// Processor time of a process and of everything below it, ended children included.
///
/// A child that ends while this looks would be missed or counted twice; then it looks again, a few
/// times at most.
pub(crate) fn cpu(root: u32) -> ServerCpu {
    let mut total = (0, 0);
    for _ in 0..5 {
        let Some(before) = stat(root) else { return ServerCpu::default() };
        total = before.waited_for;
        for pid in descendants(root) {
            if let Some(stat) = stat(pid) {
                total = (total.0 + stat.own.0, total.1 + stat.own.1);
            }
        }
        if stat(root).is_some_and(|after| after.waited_for == before.waited_for) {
            break;
        }
    }
    let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
    ServerCpu { user_s: total.0 as f64 / ticks_per_s, system_s: total.1 as f64 / ticks_per_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) (b c) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 1 0 99 0 0";
        let found = parse(line).unwrap();
        let expected = Stat { state: b'S', parent: 1, own: (11, 12), waited_for: (13, 14) };
        assert_eq!(found, expected);
        assert_eq!(parse("7 (a"), None);
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn a_child_is_below_us_and_its_time_counts() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let us = std::process::id();
        let found = descendants(us);
        let running = runs(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()) && found[0] == us && running, "{found:?}");
        assert!(!runs(child.id()));
        assert!(cpu(us).total_s() >= 0.0);
    }
}
