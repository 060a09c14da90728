//! The system calls that are watched, and their tracepoints' events.
//!
//! Tracepoints `syscalls:sys_enter_*` and `sys_exit_*` (CONFIG_FTRACE_SYSCALLS),
//! `task:task_newtask` for new processes and threads, and `sched:sched_switch`. Only calls that
//! move bytes of files or change what a descriptor means are on the list. Fields are found by name
//! in each tracepoint's `format`.
//!
//! Invariant: an event is decoded without looking at any memory but its own. Tested on fixture
//! formats; the whole on real servers.

use crate::server::class::System;
use crate::server::logical::Options;
use crate::tracefs::Wanted;
use crate::tracefs::ring::{self, Field};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads at the descriptor's position.
    Read,
    /// Writes at the descriptor's position.
    Write,
    /// Reads at a given offset.
    ReadAt,
    /// Writes at a given offset.
    WriteAt,
    /// Makes a file durable.
    Flush,
    /// Asks for write-back without waiting for durability.
    Hint,
    /// Moves the position.
    Seek,
    /// Opens a file.
    Open,
    /// Closes descriptors from the first to the second value.
    Close,
    /// Submits I/O whose addresses no tracepoint shows.
    Hidden,
    /// Bytes came in from a client.
    Received,
    /// Bytes go out to a client.
    Sent,
    /// Sleeps until another task wakes it: a lock, the end of another's flush.
    Wait,
    /// A task is born.
    Born,
    /// A processor goes from one task to another.
    Switch,
}

/// Which side of a call a tracepoint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Enter,
    Exit,
}

/// One tracepoint on the list.
pub(super) struct Point {
    /// Number of the call in the table: an exit belongs to the enter with the same one.
    pub call: u8,
    pub kind: Kind,
    pub side: Side,
    /// Names of the fields that are kept.
    names: &'static [&'static str],
    task: Field,
    fields: Vec<Field>,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    pub task: u32,
    /// Number of the call in the table.
    pub call: u8,
    pub kind: Kind,
    pub side: Side,
    /// The kept fields of an enter; the result of an exit first.
    pub values: [u64; 3],
}

/// A call: name, kind, kept fields on entry, filter on entry, whether the exit is watched too.
type Row = (&'static str, Kind, &'static [&'static str], &'static str, bool);

/// Calls that are watched on entry, most also on exit.
const CALLS: [Row; 23] = [
    ("pread64", Kind::ReadAt, &["fd", "pos"], "", true),
    ("pwrite64", Kind::WriteAt, &["fd", "pos"], "", true),
    ("preadv", Kind::ReadAt, &["fd", "pos_l"], "", true),
    ("pwritev", Kind::WriteAt, &["fd", "pos_l"], "", true),
    ("preadv2", Kind::ReadAt, &["fd", "pos_l"], "", true),
    ("pwritev2", Kind::WriteAt, &["fd", "pos_l"], "", true),
    ("read", Kind::Read, &["fd"], "", true),
    ("write", Kind::Write, &["fd"], "", true),
    ("readv", Kind::Read, &["fd"], "", true),
    ("writev", Kind::Write, &["fd"], "", true),
    ("fsync", Kind::Flush, &["fd"], "", true),
    ("fdatasync", Kind::Flush, &["fd"], "", true),
    ("sync_file_range", Kind::Hint, &["fd", "offset", "nbytes"], "", false),
    ("openat", Kind::Open, &["dfd", "flags"], "", true),
    ("lseek", Kind::Seek, &["fd", "offset", "whence"], "", false),
    ("close", Kind::Close, &["fd"], "", false),
    ("close_range", Kind::Close, &["fd", "max_fd"], "", false),
    ("dup2", Kind::Close, &["newfd"], "", false),
    ("dup3", Kind::Close, &["newfd"], "", false),
    ("io_submit", Kind::Hidden, &["nr"], "nr > 0", false),
    ("io_uring_enter", Kind::Hidden, &["to_submit"], "to_submit > 0", false),
    ("sendto", Kind::Sent, &["fd"], "", false),
    ("futex", Kind::Wait, &["op"], FUTEX_WAITS, true),
];

/// FUTEX_WAIT and FUTEX_WAIT_BITSET (futex(2): 0 and 9), private or shared (128), by either clock
/// (256): the calls that sleep.
const FUTEX_WAITS: &str = "op == 0 || op == 128 || op == 9 || op == 137 || op == 265 || op == 393";

/// The list of tracepoints for a server, in step: what the kernel is asked for, what we make of it.
pub(super) fn list(system: System, options: Options) -> (Vec<Wanted>, Vec<Point>) {
    let (mut wanted, mut points) = (Vec::new(), Vec::new());
    let mut add = |name: String, call: u8, kind, side, names, filter: &str| {
        // Common calls must be there; the rarer ones only where the kernel has them.
        let optional = !matches!(kind, Kind::ReadAt | Kind::WriteAt | Kind::Flush | Kind::Open)
            || name.ends_with('2')
            || name.contains("adv");
        let system = match kind {
            Kind::Born => "task",
            Kind::Switch => "sched",
            _ => "syscalls",
        };
        // Those of some hundred transactions in each second say what each kind computes; all of
        // them would cost more than all else together.
        let sampled = kind == Kind::Switch;
        wanted.push(Wanted { system, name, filter: filter.to_owned(), optional, sampled });
        let task = Field { offset: 4, size: 4 };
        points.push(Point { call, kind, side, names, task, fields: Vec::new() });
    };
    for (call, (name, kind, names, filter, exit)) in (0u8..).zip(CALLS) {
        if kind == Kind::Sent && !options.client_turns || kind == Kind::Wait && !options.waits {
            continue;
        }
        // PostgreSQL asks for a file's size by lseek(SEEK_END) all the time and reads and writes
        // tables at explicit offsets only: leaving that out saves a fifth of the events.
        let sizes = kind == Kind::Seek && system == System::Postgresql;
        let filter = if sizes { "whence != 2" } else { filter };
        add(format!("sys_enter_{name}"), call, kind, Side::Enter, names, filter);
        if exit {
            // Only a sleep that ended by being woken counts.
            let filter = if kind == Kind::Wait { "ret == 0" } else { "" };
            add(format!("sys_exit_{name}"), call, kind, Side::Exit, &["ret"], filter);
        }
    }
    if options.client_turns {
        let name = "sys_exit_recvfrom".to_owned();
        add(name, u8::MAX, Kind::Received, Side::Exit, &["ret"], "ret > 0");
    }
    if options.processors {
        let names = &["prev_pid", "next_pid"];
        add("sched_switch".to_owned(), u8::MAX, Kind::Switch, Side::Enter, names, "");
    }
    let names = &["pid", "clone_flags"];
    add("task_newtask".to_owned(), u8::MAX, Kind::Born, Side::Enter, names, "");
    (wanted, points)
}

impl Point {
    /// Finds the fields in the tracepoint's `format`.
    pub(super) fn learn(&mut self, format: &str) -> Option<()> {
        self.task = ring::field(format, "common_pid")?;
        self.fields =
            self.names.iter().map(|name| ring::field(format, name)).collect::<Option<_>>()?;
        Some(())
    }

    /// Reads an event; `None` where it is too short.
    pub(super) fn decode(&self, time_ns: u64, event: &[u8]) -> Option<Event> {
        let mut values = [0; 3];
        for (value, field) in values.iter_mut().zip(&self.fields) {
            *value = field.number(event)?;
        }
        let task = self.task.number(event)? as u32;
        let Self { call, kind, side, .. } = *self;
        Some(Event { time_ns, task, call, kind, side, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "\
ID: 700
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;
\tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;
\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;
\tfield:loff_t pos;\toffset:40;\tsize:8;\tsigned:0;
";

    #[test]
    fn a_positional_write_is_decoded() {
        let (wanted, mut points) = list(System::Postgresql, Options::default());
        let at = wanted.iter().position(|point| point.name == "sys_enter_pwrite64").unwrap();
        points[at].learn(FORMAT).unwrap();
        let mut event = vec![0; 48];
        event[4..8].copy_from_slice(&77i32.to_ne_bytes());
        event[16..24].copy_from_slice(&9u64.to_ne_bytes());
        event[40..48].copy_from_slice(&8192u64.to_ne_bytes());
        let decoded = points[at].decode(5, &event).unwrap();
        assert_eq!((decoded.task, decoded.kind, decoded.side), (77, Kind::WriteAt, Side::Enter));
        assert_eq!(decoded.values, [9, 8192, 0]);
        assert_eq!(points[at].decode(5, &event[..47]), None);
        assert_eq!(points[at].learn("ID: 3\n"), None);
    }

    #[test]
    fn both_sides_share_their_number() {
        let all = Options { client_turns: true, waits: true, processors: true };
        let (wanted, points) = list(System::Mariadb, all);
        assert_eq!(wanted.len(), points.len());
        for (call, (name, ..)) in (0u8..).zip(CALLS) {
            let sides = wanted.iter().zip(&points).filter(|(_, point)| point.call == call);
            assert!(sides.clone().count() >= 1, "{name}");
            assert!(sides.clone().all(|(wanted, _)| wanted.name.ends_with(&format!("_{name}"))));
        }
        let (without, _) = list(System::Mariadb, Options::default());
        assert_eq!(
            wanted.len() - without.len(),
            5,
            "clients, waits and processors are not watched for nothing"
        );
    }
}
