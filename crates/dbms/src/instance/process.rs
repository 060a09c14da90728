//! Starting, watching and ending a server's processes.
//!
//! **No server outlives wearmark.** Each program is started by a thread of its own, which then does
//! nothing but wait for it. The program asks the kernel for a signal when the thread that started
//! it ends (`PR_SET_PDEATHSIG`, prctl(2)): the thread ends before the program only when wearmark
//! itself ends, by whatever cause, `kill -9` included. The request is made after the change to the
//! server's user, which would clear it, and lasts over `execve` because the program is not
//! set-user-ID; that a process of another user sends the signal is no hindrance, for the kernel
//! checks the dying process's rights, and that was root. PostgreSQL gets `SIGQUIT`, on which the
//! postmaster ends its children and itself; its children also ask the kernel about the postmaster.
//! MariaDB has one process and gets `SIGKILL`.
//!
//! The program leads a process group of its own, so that Ctrl-C in a terminal does not reach it.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::account::Account;
use super::log::Log;
use super::proc;
use crate::Error;

/// Longest that killed processes may take to vanish: they may wait in the kernel for a slow disk.
const GONE_BOUND: Duration = Duration::from_secs(30);

/// Done on the thread that starts the program, before it does: enter a namespace, for example.
pub(crate) type Before = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// What to start.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Where it runs; a directory that its user can enter.
    pub(crate) directory: PathBuf,
    pub(crate) account: Option<Account>,
    /// Takes what it prints.
    pub(crate) output: PathBuf,
    /// Sent to it when wearmark dies.
    pub(crate) death_signal: Signal,
    /// What it reads.
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) before: Option<Before>,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// In words.
    pub(crate) status: String,
    pub(crate) success: bool,
    /// Processor time of it and of the children that it waited for.
    pub(crate) cpu: super::ServerCpu,
}

/// A process that a thread of ours waits for.
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// What it has printed.
    pub(crate) log: Log,
    ended: Arc<(Mutex<Option<Ended>>, Condvar)>,
}

impl Process {
    /// Starts a program.
    pub(crate) fn start(launch: Launch) -> Result<Self, Error> {
        let (sender, receiver) = channel();
        let ended = Arc::new((Mutex::new(None), Condvar::new()));
        let program = launch.program.clone();
        let log = Log::from_now(&launch.output);
        let fail = |source| Error::io(&program, "starting", source);
        let shared = Arc::clone(&ended);
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || tend(launch, &sender, &shared))
            .map_err(fail)?;
        // A thread that panics drops its end of the channel.
        let pid = receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        Ok(Self { pid: pid.map_err(fail)?, log, ended })
    }

    /// How it ended, if it did; waits for that up to `timeout`.
    pub(crate) fn ended(&self, timeout: Duration) -> Option<Ended> {
        let (lock, changed) = &*self.ended;
        let state = lock.lock().expect("no panic while holding the lock");
        let waited = changed.wait_timeout_while(state, timeout, |state| state.is_none());
        waited.expect("no panic while holding the lock").0.clone()
    }

    /// Sends a signal; that the process is gone already is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended(Duration::ZERO).is_none()
            && let Some(pid) = Pid::from_raw(self.pid as i32)
        {
            _ = kill_process(pid, signal);
        }
    }

    /// Kills the program and what it started, all at once: it is stopped first, so that it neither
    /// starts another child nor notices that one is missing. Returns when all are gone.
    pub(crate) fn kill(&self) -> Option<Ended> {
        self.signal(Signal::STOP);
        let all = proc::descendants(self.pid);
        self.signal(Signal::KILL);
        if let Some(group) = Pid::from_raw(self.pid as i32) {
            _ = kill_process_group(group, Signal::KILL);
        }
        for pid in all.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
            _ = kill_process(pid, Signal::KILL);
        }
        let start = Instant::now();
        let ended = self.ended(GONE_BOUND);
        while all.iter().any(|&pid| proc::runs(pid)) && start.elapsed() < GONE_BOUND {
            std::thread::sleep(Duration::from_millis(1));
        }
        ended
    }
}

/// The thread of a program: starts it, tells its number, waits for its end.
fn tend(launch: Launch, sender: &Sender<io::Result<u32>>, ended: &(Mutex<Option<Ended>>, Condvar)) {
    let pid = match spawn(launch) {
        Ok(pid) => pid,
        Err(error) => {
            _ = sender.send(Err(error));
            return;
        }
    };
    _ = sender.send(Ok(pid));
    let end = wait(pid);
    *ended.0.lock().expect("no panic while holding the lock") = Some(end);
    ended.1.notify_all();
}

fn spawn(launch: Launch) -> io::Result<u32> {
    if let Some(before) = launch.before {
        before()?;
    }
    let output = File::options().append(true).create(true).open(&launch.output)?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .current_dir(&launch.directory)
        // Messages are read by us: in English whatever the user's language.
        .env("LC_ALL", "C")
        .env_remove("MYSQL_HOME")
        .env_remove("PGDATA")
        .env_remove("PGOPTIONS")
        .stdin(if launch.input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    if let Some(account) = &launch.account {
        command.uid(account.uid).gid(account.gid).env("HOME", &launch.directory);
    }
    let signal = launch.death_signal.as_raw() as libc::c_ulong;
    let parent = std::process::id() as libc::pid_t;
    let request = move || {
        // SAFETY: prctl and getppid are system calls without side effects on memory, allowed
        // between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the request.
            if libc::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        }
    };
    // SAFETY: the closure does nothing but system calls.
    unsafe { command.pre_exec(request) };
    let mut child = command.spawn()?;
    if let (Some(bytes), Some(mut pipe)) = (launch.input, child.stdin.take()) {
        // A program that ends without reading says why in its log.
        _ = io::Write::write_all(&mut pipe, &bytes);
    }
    Ok(child.id())
}

/// Waits for the end of a child, and takes its processor time, which std's wait does not tell.
fn wait(pid: u32) -> Ended {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live variables of the right type.
        let got = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if got == pid as libc::pid_t {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            let status = "unknown status".to_owned();
            return Ended { status, success: false, cpu: super::ServerCpu::default() };
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu =
        super::ServerCpu { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) };
    let status: std::process::ExitStatus = std::os::unix::process::ExitStatusExt::from_raw(status);
    Ended { status: status.to_string(), success: status.success(), cpu }
}

/// Runs a program to its end; kills it when the user stops or the bound is reached.
pub(crate) fn run(
    launch: Launch,
    doing: &str,
    bound: Duration,
    sink: &dyn events::Sink,
) -> Result<(), Error> {
    let directory = launch.directory.clone();
    let process = Process::start(launch)?;
    let start = Instant::now();
    loop {
        if let Some(ended) = process.ended(Duration::from_millis(50)) {
            if ended.success {
                return Ok(());
            }
            return Err(failed(&process.log, doing, directory, ended.status));
        }
        if sink.cancelled() {
            process.kill();
            return Err(Error::Cancelled { doing: doing.to_owned() });
        }
        let full = process.log.tells_of_full_disk();
        if full || start.elapsed() > bound {
            process.kill();
            let doing = doing.to_owned();
            return Err(if full {
                Error::DiskFull { path: directory, doing }
            } else {
                Error::Timeout { doing, bound_s: bound.as_secs(), log: process.log.end() }
            });
        }
    }
}

fn failed(log: &Log, doing: &str, path: PathBuf, status: String) -> Error {
    let doing = doing.to_owned();
    if log.tells_of_full_disk() {
        return Error::DiskFull { path, doing };
    }
    Error::Program { doing, status, output: log.end() }
}
