//! Finds a server that somebody else started: by one of its processes, by its data directory, or by
//! the control group that it runs in.
//!
//! Both kinds of servers change into their data directory when they start, so `/proc/PID/cwd`
//! (proc(5)) names it; PostgreSQL's main process is the topmost one of its name, and writes its
//! number into `postmaster.pid`. Where else its files lie is told by symbolic links (`pg_wal`,
//! tablespaces) or by the files that it has open (InnoDB's log and undo). A program of any other
//! kind is taken as a tree of processes.
//!
//! Errors name what was looked for and what is in the way. Tested on processes of our own, on
//! hand-made directories, and on real servers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::class::{Server, System};
use super::tasks;
use crate::Error;

/// Names of the servers' programs.
const NAMES: [(&str, System); 4] = [
    ("postgres", System::Postgresql),
    ("postmaster", System::Postgresql),
    ("mariadbd", System::Mariadb),
    ("mysqld", System::Mariadb),
];

/// Where control groups are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// The server that a process belongs to: itself, a session, or a background task of it.
///
/// # Errors
/// A process that does not exist, or that we may not look at.
pub fn by_pid(pid: u32) -> Result<Server, Error> {
    let what = format!("process {pid}");
    let gone = || Error::Target {
        what: what.clone(),
        cause: "it does not exist".to_owned(),
        hint: "'ps -C postgres,mariadbd,mysqld' lists servers; a number that has changed means \
               that it was restarted"
            .to_owned(),
    };
    // A number may be that of a thread.
    let process = tasks::process_of(pid).ok_or_else(gone)?;
    let system = system_of(process).ok_or_else(gone)?;
    if tasks::processes().get(&process).is_none_or(tasks::Stat::is_kernel_thread) {
        let cause = "it is a thread of the kernel".to_owned();
        let hint = "name the program whose I/O it does, or a device with --device".to_owned();
        return Err(Error::Target { what, cause, hint });
    }
    if system == System::Program {
        let home = std::fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
        return Ok(Server::new(system, process, home));
    }
    server(system, topmost(process, system))
}

/// The server whose data are in a directory.
///
/// # Errors
/// No such directory; nobody who has files open in it.
pub fn by_data(directory: &Path) -> Result<Server, Error> {
    let what = format!("{}", directory.display());
    let target = |cause: &str, hint: &str| Error::Target {
        what: what.clone(),
        cause: cause.to_owned(),
        hint: hint.to_owned(),
    };
    let data = directory.canonicalize().map_err(|error| {
        target(&error.to_string(), "name the server's data directory ('SHOW data_directory')")
    })?;
    let owners: Vec<u32> = tasks::processes()
        .into_iter()
        .filter(|(pid, stat)| !stat.is_kernel_thread() && works_in(*pid, &data))
        .map(|(pid, _)| pid)
        .collect();
    // Sessions lead to their servers; several run below a directory that holds several.
    let known = |pid: &u32| {
        let system = known_system(*pid)?;
        Some((topmost(*pid, system), system))
    };
    let mut servers: Vec<(u32, System)> = owners.iter().filter_map(known).collect();
    servers.sort_by_key(|(pid, _)| *pid);
    servers.dedup_by_key(|(pid, _)| *pid);
    match (servers.as_slice(), owners.first()) {
        ([(pid, system)], _) => server(*system, *pid),
        ([_, _, ..], _) => {
            let pids: Vec<String> = servers.iter().map(|(pid, _)| pid.to_string()).collect();
            let cause = format!("several servers run below it: processes {}", pids.join(", "));
            Err(target(&cause, "name the data directory of one, or its process with --pid"))
        }
        ([], Some(pid)) => Ok(Server::new(System::Program, *pid, data)),
        ([], None) if !rustix::process::geteuid().is_root() => {
            let hint = "run it as root: the files of other users' processes cannot be seen";
            Err(target("no process whose files this user may see runs on it", hint))
        }
        ([], None) if data.join("PG_VERSION").exists() || data.join("ibdata1").exists() => {
            let hint = "start it, or check by 'sudo ls /proc/*/cwd' that it is not in a container \
                        of its own; as root its files can be seen too";
            Err(target("no process that can be seen runs on it", hint))
        }
        ([], None) => {
            let hint = "name the directory with PG_VERSION (PostgreSQL) or ibdata1 (MariaDB, \
                        MySQL), or the process with --pid";
            Err(target(
                "it is no server's data directory, and no process has files open in it",
                hint,
            ))
        }
    }
}

/// The server in a control group; any programs, where it holds no known server.
///
/// # Errors
/// No such group; a group without processes.
pub fn by_control_group(path: &Path) -> Result<Server, Error> {
    let folder = if path.starts_with(CONTROL_GROUPS) {
        path.to_owned()
    } else {
        Path::new(CONTROL_GROUPS).join(path.strip_prefix("/").unwrap_or(path))
    };
    let what = format!("control group {}", path.display());
    let target = |cause: String, hint: &str| Error::Target {
        what: what.clone(),
        cause,
        hint: hint.to_owned(),
    };
    if !folder.join("cgroup.procs").exists() {
        let hint = "name it as /proc/PID/cgroup does, such as system.slice/postgresql.service";
        return Err(target(format!("{} is no control group", folder.display()), hint));
    }
    let members = members(&folder);
    let known = members.iter().find_map(|pid| Some((*pid, known_system(*pid)?)));
    if let Some((pid, system)) = known {
        return server(system, topmost(pid, system));
    }
    let processes = tasks::processes();
    let mut roots = members
        .iter()
        .copied()
        .filter(|pid| processes.get(pid).is_some_and(|stat| !members.contains(&stat.parent)));
    let Some(first) = roots.next() else {
        return Err(target("no process is in it".to_owned(), "start the program first"));
    };
    let home = std::fs::read_link(format!("/proc/{first}/cwd")).unwrap_or_default();
    Ok(Server { more_pids: roots.collect(), ..Server::new(System::Program, first, home) })
}

/// Whether the server's main process is still the one that was found.
pub fn is_alive(server: &Server) -> bool {
    let alive = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie has ended; its number stays until its parent looks.
        let state = text.rfind(')').and_then(|at| text[at + 1..].split_whitespace().next());
        !matches!(state, None | Some("Z" | "X"))
    };
    server.pids().into_iter().any(alive)
}

/// Processes of a control group and of those below it.
fn members(folder: &Path) -> BTreeSet<u32> {
    let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let mut found: BTreeSet<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(members(&entry.path()));
        }
    }
    found
}

/// What a process is by its name; `None` where it is gone.
fn system_of(pid: u32) -> Option<System> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let known = NAMES.iter().find(|(own, _)| *own == name.trim());
    Some(known.map_or(System::Program, |(_, system)| *system))
}

fn known_system(pid: u32) -> Option<System> {
    system_of(pid).filter(|system| *system != System::Program)
}

/// The first process of a server: sessions of PostgreSQL are its children.
fn topmost(mut pid: u32, system: System) -> u32 {
    let processes = tasks::processes();
    while let Some(stat) = processes.get(&pid) {
        if system_of(stat.parent) != Some(system) {
            break;
        }
        pid = stat.parent;
    }
    pid
}

/// Whether a process has its working directory, or a file open, in a directory.
fn works_in(pid: u32, data: &Path) -> bool {
    let link = |path: PathBuf| std::fs::read_link(path).ok();
    if link(format!("/proc/{pid}/cwd").into()).is_some_and(|cwd| cwd == data) {
        // A shell that stands in the directory does not own it.
        return system_of(pid) != Some(System::Program);
    }
    open_files(pid).iter().any(|path| path.starts_with(data) && path.is_file())
}

/// Files that a process has open.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|path| path.is_absolute()).collect()
}

/// A server by its main process.
fn server(system: System, pid: u32) -> Result<Server, Error> {
    let cwd = format!("/proc/{pid}/cwd");
    let data = std::fs::read_link(&cwd).map_err(|error| Error::Target {
        what: format!("{} {pid}", system.name()),
        cause: format!("{cwd}: {error}"),
        hint: "run this as root, or as the server's own user".to_owned(),
    })?;
    let mut found = Server::new(system, pid, data);
    match system {
        System::Postgresql => places_of_postgresql(&mut found),
        System::Mariadb => places_of_innodb(&mut found),
        System::Program => {}
    }
    Ok(found)
}

/// `pg_wal` and the tablespaces may be links to other disks.
fn places_of_postgresql(server: &mut Server) {
    let is_link = |path: &Path| path.is_symlink().then(|| path.canonicalize().ok()).flatten();
    server.log = is_link(&server.data.join("pg_wal"));
    let spaces = std::fs::read_dir(server.data.join("pg_tblspc")).into_iter().flatten().flatten();
    server.tablespaces = spaces.filter_map(|entry| is_link(&entry.path())).collect();
}

/// Log and undo lie where the server has their files open.
fn places_of_innodb(server: &mut Server) {
    let mut elsewhere = BTreeSet::new();
    for path in open_files(server.pid) {
        let Some(folder) = path.parent().filter(|folder| !folder.starts_with(&server.data)) else {
            continue;
        };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if name.starts_with("ib_logfile") || name.starts_with("#ib_redo") {
            server.log = Some(folder.to_owned());
        } else if name.starts_with("undo") {
            server.undo = Some(folder.to_owned());
        } else if path.extension().is_some_and(|end| end == "ibd") {
            elsewhere.insert(folder.to_owned());
        }
    }
    server.tablespaces = elsewhere.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[track_caller]
    fn refused(found: Result<Server, Error>, cause: &str) {
        let error = found.expect_err("it cannot be found").to_string();
        assert!(error.contains(cause), "{error}");
    }

    #[test]
    fn what_is_not_there_is_said() {
        refused(by_pid(u32::MAX - 3), "it does not exist");
        refused(by_data(Path::new("/nowhere/at/all")), "No such file");
        refused(by_control_group(Path::new("no/such.slice")), "is no control group");
        let empty = tempfile::tempdir_in(crate::test_home()).unwrap();
        if !rustix::process::geteuid().is_root() {
            return refused(by_data(empty.path()), "this user may see");
        }
        refused(by_data(empty.path()), "no server's data directory");
        std::fs::write(empty.path().join("PG_VERSION"), "15\n").unwrap();
        refused(by_data(empty.path()), "no process that can be seen");
    }

    #[test]
    fn any_program_is_found_by_its_number_and_by_its_files() {
        let folder = tempfile::tempdir_in(crate::test_home()).unwrap();
        let home = folder.path().canonicalize().unwrap();
        let file = std::fs::File::create(home.join("x")).unwrap();
        let mut child = match Command::new("sleep").arg("30").stdin(Stdio::from(file)).spawn() {
            Ok(child) => child,
            Err(error) => return println!("skipped: no sleep here: {error}"),
        };
        let by_number = by_pid(child.id()).unwrap();
        assert_eq!((by_number.system, by_number.pid), (System::Program, child.id()));
        assert!(is_alive(&by_number));
        let by_files = by_data(&home).unwrap();
        assert_eq!((by_files.pid, &by_files.data), (child.id(), &home));
        child.kill().unwrap();
        // Not waited for yet: a zombie.
        while is_alive(&by_number) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        refused(by_data(&home), "no process has files open");
    }
}
