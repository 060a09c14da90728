//! A small server for these tests: made anew, one for all of them, gone at the end.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dbms::postgresql::Connection;
use dbms::{Address, Login};
use tempfile::TempDir;

use crate::authority::Authority;

/// Who may log in how; the tests make the users.
const HBA: &str = "local all clear password\nlocal all md5 md5\n\
                   local all scram scram-sha-256\nlocal all all trust\n\
                   host all scram 127.0.0.1/32 scram-sha-256\n\
                   hostssl all tls 127.0.0.1/32 scram-sha-256\nhostnossl all tls all reject\n\
                   hostssl all tls ::1/128 scram-sha-256\n\
                   host all tlsclear 127.0.0.1/32 password\nhost all all 127.0.0.1/32 trust\n";

pub struct Server {
    directory: TempDir,
    process: Child,
    pub port: u16,
    pub authority: Authority,
}

/// The server, or nothing (said on the terminal) where PostgreSQL is not installed.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::start).as_ref()
}

/// Statics are not dropped: the last act of the process is to end the server.
extern "C" fn stop() {
    if let Some(server) = server() {
        // SAFETY: the process is a child that was never waited for, so the number is still its own.
        unsafe { libc::kill(server.process.id() as i32, libc::SIGQUIT) };
        let ended = || !server.directory.path().join("data/postmaster.pid").exists();
        let until = Instant::now() + Duration::from_secs(5);
        while !ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_dir_all(server.directory.path());
    }
}

fn binaries() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    installed.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).max()
}

/// The user that the server runs as: it refuses root.
fn ordinary_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2).filter_map(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    // SAFETY: prctl is async-signal-safe and touches nothing of the parent.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT);
            Ok(())
        });
    }
    command
}

/// The death of the thread that made a process counts as the parent's: one that never ends does it.
fn spawn(mut command: Command) -> Child {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sender.send(command.spawn().unwrap()).unwrap();
        loop {
            std::thread::park();
        }
    });
    receiver.recv().unwrap()
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

impl Server {
    fn start() -> Option<Self> {
        let Some(binaries) = binaries() else {
            println!("skipped: no PostgreSQL below /usr/lib/postgresql");
            return None;
        };
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let user = ordinary_user();
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(directory.path(), Some(user), Some(group)).unwrap();
        }
        let data = directory.path().join("data");
        let made = command(&binaries.join("initdb"), user)
            .args(["-A", "trust", "-U", "tester", "--locale=C", "-E", "UTF8", "-N", "-D"])
            .arg(&data)
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed");
        std::fs::write(data.join("pg_hba.conf"), HBA).unwrap();
        let mut postgres = command(&binaries.join("postgres"), user);
        postgres.arg("-D").arg(&data).arg("-k").arg(directory.path());
        let port = free_port();
        postgres.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        postgres.args(["-c", "shared_buffers=16MB", "-c", "fsync=off", "-c", "ssl=on"]);
        let authority = Authority::write(directory.path(), &["localhost"]);
        for (name, path) in [("cert", &authority.certificate), ("key", &authority.key)] {
            if let Some((user, group)) = user {
                std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
            }
            postgres.args(["-c", &format!("ssl_{name}_file={}", path.display())]);
        }
        let process = spawn(postgres);
        // SAFETY: a plain function of the C library with a function that lives for ever.
        unsafe { libc::atexit(stop) };
        let server = Self { directory, process, port, authority };
        let until = Instant::now() + Duration::from_secs(30);
        while Connection::connect(&server.login()).is_err() {
            assert!(Instant::now() < until, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    pub fn login(&self) -> Login {
        let socket = self.directory.path().join(format!(".s.PGSQL.{}", self.port));
        Login::new(Address::Unix(socket), "tester", "postgres")
    }

    /// The same by TCP.
    pub fn tcp_login(&self) -> Login {
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: self.port };
        Login { address, ..self.login() }
    }

    pub fn connect(&self) -> Connection {
        Connection::connect(&self.login()).unwrap()
    }
}
