//! What the tasks of a server do, in the server's own words, and the processor time of each role.
//!
//! PostgreSQL's processes carry their role in their title (ps_status.c: `postgres: checkpointer`,
//! with the name of the cluster between where it has one, as Debian's clusters do). MySQL and newer
//! versions of MariaDB name their threads; older ones do not, and a thread's role is then told by
//! what it was seen to do. Whoever received a client's message is a `connection`.
//!
//! Processor time and time in the run queue are those of `/proc/PID/task/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst), read at both ends. A task that was born and ended in
//! between is in no row; [`ServerClock`](super::ServerClock) has its time in the total.
//!
//! Tested on titles, on hand-made tasks and on our own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trace::Op;

use super::class::{Class, Server, System};
use super::logical::{Actor, Logical};
use super::tasks;

/// Whoever serves a client.
pub const CONNECTION: &str = "connection";

/// Titles of PostgreSQL's processes that serve no client (backend types of versions 13 to 18).
const BACKGROUND: [&str; 17] = [
    "checkpointer",
    "background writer",
    "walwriter",
    "autovacuum launcher",
    "autovacuum worker",
    "logical replication",
    "walsender",
    "walreceiver",
    "walsummarizer",
    "slotsync worker",
    "io worker",
    "startup",
    "archiver",
    "parallel worker",
    "stats collector",
    "logger",
    "bgworker",
];

/// The role of a task by its title or name; `None` where it is gone.
pub(super) fn role(server: &Server, process: u32, task: u32) -> Option<String> {
    match server.system {
        System::Postgresql => {
            let title = std::fs::read_to_string(format!("/proc/{process}/cmdline")).ok()?;
            Some(postgresql_role(&title).to_owned())
        }
        System::Mariadb | System::Program => {
            let name = std::fs::read_to_string(format!("/proc/{process}/task/{task}/comm")).ok()?;
            Some(name.trim().to_owned())
        }
    }
}

fn postgresql_role(title: &str) -> &str {
    let Some(rest) = title.strip_prefix("postgres: ") else { return "postmaster" };
    let background = |rest: &str| BACKGROUND.into_iter().find(|name| rest.starts_with(name));
    // "postgres: 15/main: checkpointer": a cluster with a name.
    let named = || rest.split_once(": ").and_then(|(_, rest)| background(rest));
    background(rest).or_else(named).unwrap_or(CONNECTION)
}

/// Names the actors by what they were seen to do, where their names do not tell.
pub(super) fn by_behaviour(logical: &mut Logical, server: &Server) {
    let mut received: Vec<u32> =
        logical.turns.iter().filter(|turn| turn.received).map(|turn| turn.task).collect();
    received.sort_unstable();
    received.dedup();
    // Calls on the log and on other files by threads without a name.
    let mut calls = vec![[0u64; 2]; logical.actors.len()];
    if let Some(chains) = &logical.trace.chains {
        for (at, actor) in chains.actor.iter().enumerate() {
            let log = logical.trace.stream[at] == Class::Log as u16;
            let writes = logical.trace.op[at] != Op::Read;
            calls[usize::from(*actor)][usize::from(log)] += u64::from(writes);
        }
    }
    for (actor, [other, log]) in logical.actors.iter_mut().zip(calls) {
        let background = BACKGROUND.contains(&actor.role.as_str());
        if received.binary_search(&actor.task).is_ok() && !background {
            CONNECTION.clone_into(&mut actor.role);
        } else if server.system == System::Mariadb
            && ["mariadbd", "mysqld"].contains(&actor.role.as_str())
        {
            let seen = match (log, other) {
                (0, 0) => "reader",
                _ if log > other => "log writer",
                _ => "page writer",
            };
            seen.clone_into(&mut actor.role);
        }
    }
}

/// Processor time of the tasks of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleCpu {
    /// What they do.
    pub role: String,
    /// How many there were at the end.
    pub tasks: u32,
    /// On a processor, seconds.
    pub cpu_s: f64,
    /// Ready to run, waiting for a processor, seconds.
    pub ready_s: f64,
}

/// A running measurement of the tasks' processor time.
pub struct RoleClock {
    server: Server,
    start: BTreeMap<u32, Reading>,
}

/// Time of one task so far, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    process: u32,
    cpu_ns: u64,
    ready_ns: u64,
}

impl RoleClock {
    /// Starts on all tasks of a server.
    pub fn start(server: &Server) -> Self {
        Self { server: server.clone(), start: readings(server) }
    }

    /// Ends, while the server still runs. Empty where the kernel keeps no such figures.
    pub fn finish(self) -> TaskTimes {
        let spent = |(task, end): (u32, Reading)| {
            let start = self.start.get(&task).copied().unwrap_or_default();
            let spent = Reading {
                cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
                ready_ns: end.ready_ns.saturating_sub(start.ready_ns),
                ..end
            };
            (task, role(&self.server, end.process, task).unwrap_or_default(), spent)
        };
        TaskTimes(readings(&self.server).into_iter().map(spent).collect())
    }
}

/// Times of a server's tasks: number, role by name, time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes(Vec<(u32, String, Reading)>);

impl TaskTimes {
    /// Sums by role, the busiest first; `actors` are the tasks whose roles are known better than by
    /// their names.
    pub fn by_role(&self, actors: &[Actor]) -> Vec<RoleCpu> {
        let known: BTreeMap<u32, &str> =
            actors.iter().map(|actor| (actor.task, actor.role.as_str())).collect();
        let mut rows: BTreeMap<&str, RoleCpu> = BTreeMap::new();
        for (task, name, time) in &self.0 {
            let row = rows.entry(known.get(task).unwrap_or(&name.as_str())).or_default();
            row.tasks += 1;
            row.cpu_s += time.cpu_ns as f64 / 1e9;
            row.ready_s += time.ready_ns as f64 / 1e9;
        }
        let mut found: Vec<RoleCpu> =
            rows.into_iter().map(|(role, row)| RoleCpu { role: role.to_owned(), ..row }).collect();
        found.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        found
    }
}

fn readings(server: &Server) -> BTreeMap<u32, Reading> {
    let reading = |(task, process): (u32, u32)| {
        let text =
            std::fs::read_to_string(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let (cpu_ns, ready_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some((task, Reading { process, cpu_ns, ready_ns }))
    };
    tasks::tasks(&server.pids()).into_iter().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use trace::Request;
    use units::{Bytes, Nanos};

    use super::*;
    use crate::server::tracker::Turn;

    #[test]
    fn titles_of_postgresql_processes() {
        for (title, role) in [
            ("postgres: walwriter \0\0", "walwriter"),
            ("postgres: 15/main: checkpointer ", "checkpointer"),
            ("postgres: 15/main: bench bench [local] UPDATE", "connection"),
            ("postgres: bench bench [local] UPDATE", "connection"),
            ("postgres: bench bench ::1(5432) idle", "connection"),
            ("postgres: walsender repl 10.0.0.1(5432) streaming 0/3000060", "walsender"),
            ("postgres: parallel worker for PID 5", "parallel worker"),
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/x\0", "postmaster"),
        ] {
            assert_eq!(postgresql_role(title), role, "{title}");
        }
    }

    #[test]
    fn threads_without_a_name_are_told_by_what_they_do() {
        let mut logical = Logical::default();
        for (actor, op, class) in [
            (0, Op::Read, Class::Data),
            (1, Op::Write, Class::Data),
            (2, Op::Flush, Class::Log),
            (3, Op::Read, Class::Data),
            (4, Op::Flush, Class::Log),
        ] {
            let (offset, len) = (Bytes(0), 1);
            let request = Request { due: Nanos(1), offset, len, op, stream: class as u16 };
            logical.trace.push_captured(request, Nanos(1), actor, 0);
        }
        let actor = |(task, role): (u32, &str)| Actor { task, process: 7, role: role.into() };
        let names = ["mariadbd", "mariadbd", "mariadbd", "mariadbd", "ib_log_writer"];
        logical.actors = (10..).zip(names).map(actor).collect();
        logical.turns = vec![Turn { time_ns: 1, task: 10, received: true }];
        by_behaviour(&mut logical, &Server::new(System::Mariadb, 7, "/d"));
        let roles: Vec<&str> = logical.actors.iter().map(|actor| actor.role.as_str()).collect();
        assert_eq!(roles, ["connection", "page writer", "log writer", "reader", "ib_log_writer"]);
    }

    #[test]
    fn our_own_time_is_a_role() {
        let us = Server::new(System::Program, std::process::id(), "/d");
        let clock = RoleClock::start(&us);
        let mut spun = 0u64;
        let mut total_s = 0.0;
        // As long as it takes: the clock of a busy machine must move in the end.
        while total_s == 0.0 && spun < 1 << 32 {
            spun += std::hint::black_box((0..1_000_000u64).sum::<u64>()).min(1 << 20);
            let again = RoleClock { server: us.clone(), start: clock.start.clone() };
            let rows = again.finish().by_role(&[]);
            if rows.is_empty() {
                return println!("skipped: no schedstat here");
            }
            total_s = rows.iter().map(|row| row.cpu_s).sum();
        }
        assert!(total_s > 0.0);
    }
}
