//! Every way in which an instance is not available: one clear error, and a clean tree.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use dbms::{Error, Instance, Places, Programs, Settings, System};
use events::{Event, Hint, Quiet, Sink};
use units::Bytes;

use crate::support::{create, installed, listing, place, small};

/// The error's kind and its words.
fn check(error: Option<Error>, kind: &str, words: &str) {
    let error = error.unwrap_or_else(|| panic!("no error, {kind} expected"));
    let shown = format!("{error:?}");
    assert!(shown.starts_with(kind), "{shown}");
    let text = error.to_string();
    assert!(text.contains(words), "{text}");
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text}: no hint");
}

/// A program that prints a version and nothing else.
fn fake(directory: &Path, name: &str, says: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn programs_that_are_missing_or_of_another_version() {
    let place = place();
    let within = |system| Programs::within(system, &[place.path().to_owned()]).err();
    for (system, program, package) in [
        (System::Postgresql, "'postgres'", "apt-get install postgresql"),
        (System::Mariadb, "'mariadbd'", "apt-get install mariadb-server"),
    ] {
        let hint = within(system).unwrap().hint().unwrap();
        assert!(hint.contains(package), "{hint}");
        check(within(system), "NoProgram", program);
    }
    fake(place.path(), "postgres", "postgres (PostgreSQL) 9.6.1");
    check(within(System::Postgresql), "NoProgram", "'initdb'");
    fake(place.path(), "initdb", "");
    check(within(System::Postgresql), "WrongVersion", "9.6.1, PostgreSQL 13 or later");
    fake(place.path(), "mysqld", "mysqld  Ver 8.0.36 for Linux (MySQL Community)");
    fake(place.path(), "mysql_install_db", "");
    check(within(System::Mariadb), "WrongVersion", "MariaDB 10.6 or later is needed");
}

#[test]
fn directories_that_are_not_ours_to_take() {
    for system in installed() {
        let place = place();
        let used = place.path().join("used");
        fs::create_dir(&used).unwrap();
        fs::write(used.join("letter"), "dear").unwrap();
        check(create(system, &used).err(), "NotEmpty", "used' is not empty");
        let places = Places { log: Some(used.clone()), ..Places::at(place.path().join("db")) };
        let refused = Instance::create(system, &places, &small(), &Quiet);
        check(refused.err(), "NotEmpty", "used' is not empty");
        check(Instance::open(&used).err(), "NotOurs", "used'");
        check(Instance::remove_at(&used).err(), "NotOurs", "used'");
        check(create(system, &used.join("letter/below")).err(), "Io", "below'");
        assert_eq!(listing(place.path()), std::slice::from_ref(&used));
        assert_eq!(listing(&used), [used.join("letter")]);
    }
}

#[test]
fn a_directory_that_the_servers_user_cannot_reach() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root runs a server as somebody else");
        return;
    }
    for system in installed() {
        let place = place();
        let closed = place.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        check(create(system, &closed.join("db")).err(), "NotReachable", "/closed'");
        assert!(listing(&closed).is_empty());
    }
}

#[test]
fn settings_that_a_server_cannot_have() {
    for system in installed() {
        let place = place();
        let attempt = |places: Places, settings: Settings| {
            Instance::create(system, &places, &settings, &Quiet).err()
        };
        let at = || Places::at(place.path().join("db"));
        let paged = Settings { page: Some(Bytes(5000)), ..small() };
        check(attempt(at(), paged), "Unsupported", "page size = 5kB is not possible");
        let extra = vec![("a b".to_owned(), "1".to_owned())];
        check(attempt(at(), Settings { extra, ..small() }), "Unsupported", "extra setting");
        if system == System::Postgresql {
            let places = Places { undo: Some(place.path().join("undo")), ..at() };
            check(attempt(places, small()), "Unsupported", "undo directory");
        }
        assert!(listing(place.path()).is_empty());
    }
}

/// The server's own refusal: its words are in the error, and the instance can be set right.
#[test]
fn a_setting_that_the_server_refuses_shows_its_words() {
    for system in installed() {
        let place = place();
        let mut instance = create(system, &place.path().join("db")).unwrap().temporary();
        let extra = vec![("no_such_setting_1".to_owned(), "1".to_owned())];
        instance.set(&Settings { extra, ..small() }).unwrap();
        check(instance.start(&Quiet).err(), "Crashed", "no_such_setting_1");
        instance.set(&small()).unwrap();
        instance.start(&Quiet).unwrap();
    }
}

#[test]
fn a_server_that_runs_is_not_started_twice() {
    for system in installed() {
        let place = place();
        let mut instance = create(system, &place.path().join("db")).unwrap().temporary();
        instance.start(&Quiet).unwrap();
        check(instance.start(&Quiet).err(), "InUse", "runs already");
        instance.check().unwrap();
        instance.stop().unwrap();
        let socket = instance.places().data.join("run").join(match system {
            System::Postgresql => ".s.PGSQL.5432",
            System::Mariadb => "mariadb.sock",
        });
        let _other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        check(instance.start(&Quiet).err(), "InUse", "a server listens on");
    }
}

#[test]
fn a_server_that_somebody_kills_is_noticed() {
    for system in installed() {
        let place = place();
        let mut instance = create(system, &place.path().join("db")).unwrap().temporary();
        instance.start(&Quiet).unwrap();
        let pid = rustix::process::Pid::from_raw(instance.pid().unwrap() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let gone = (0..200).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            instance.check().err()
        });
        check(gone, "Crashed", "signal: 9");
    }
}

/// A small file system in memory, unmounted at the end.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(at: &'a Path, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=755");
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        if done.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        println!("skipped: cannot mount a tmpfs (needs root): {done:?}");
        None
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_too_small() {
    for system in installed() {
        let place = place();
        let Some(disk) = Small::mount(place.path(), "12m") else { return };
        check(create(system, &disk.0.join("db")).err(), "DiskFull", "no space left in");
        assert!(listing(disk.0).is_empty(), "{system}: {:?}", listing(disk.0));
    }
}

/// Stops at the n-th look.
struct StopAfter(AtomicU32);

impl Sink for StopAfter {
    fn emit(&self, _event: Event) {}
    fn cancelled(&self) -> bool {
        let left = |left: u32| Some(left.saturating_sub(1));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) == Ok(0)
    }
}

#[test]
fn a_stop_by_the_user_leaves_nothing() {
    for system in installed() {
        let place = place();
        let data = place.path().join("db");
        let stop = StopAfter(AtomicU32::new(1));
        let stopped = Instance::create(system, &Places::at(&data), &small(), &stop);
        check(stopped.err(), "Cancelled", "nothing is left");
        assert!(listing(place.path()).is_empty(), "{system}: {:?}", listing(place.path()));
        let mut instance = create(system, &data).unwrap().temporary();
        check(instance.start(&StopAfter(AtomicU32::new(0))).err(), "Cancelled", "nothing is left");
        assert!(instance.pids().is_empty());
        instance.start(&Quiet).unwrap();
    }
}
