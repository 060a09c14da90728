//! What the tests share: one session at a time, connections, and children to kill.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use capture::sqlite::{IoMode, Session, SessionOptions, VFS_NAME, register};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// One session per process: tests that use one take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder on the disk that the build folder is on.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A session over a folder.
pub fn session(folder: &Path, io: IoMode) -> Session {
    register().unwrap();
    Session::start(SessionOptions { io, ..SessionOptions::new(folder) }).unwrap()
}

/// A connection through the VFS under test.
pub fn open(path: &Path) -> Connection {
    let flags = OpenFlags::default();
    let connection = Connection::open_with_flags_and_vfs(path, flags, VFS_NAME).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    connection
}

/// A connection through SQLite's own VFS.
pub fn open_stock(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    connection
}

/// Asserts that SQLite finds nothing wrong.
pub fn assert_whole(connection: &Connection) {
    let verdict: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

/// Runs one test of this binary in a process of its own, told what to do by the environment.
pub fn child(test: &str, task: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("CAPTURE_TASK", task)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child is told to do; `None` in the test run itself.
pub fn task() -> Option<Vec<String>> {
    let task = std::env::var("CAPTURE_TASK").ok()?;
    Some(task.split('|').map(str::to_owned).collect())
}

/// The child's lines that begin with `word`, as it prints them.
pub fn lines(child: &mut Child, word: &str) -> impl Iterator<Item = String> + use<> {
    let word = format!("{word} ");
    let output = BufReader::new(child.stdout.take().unwrap());
    output.lines().map_while(Result::ok).filter_map(move |line| {
        // The test harness prints its own text in front of the first line.
        line.find(&word).map(|at| line[at + word.len()..].to_owned())
    })
}
