//! A small private PostgreSQL for tests, run as an ordinary user, gone when dropped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A file system of its own on a loop device, so that nobody else's I/O is on the disk.
pub struct OwnDisk {
    directory: tempfile::TempDir,
}

impl OwnDisk {
    /// Makes one; the reason where that is not possible here.
    pub fn make(home: &Path, megabytes: u64) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("a loop device needs root".to_owned());
        }
        let directory = tempfile::tempdir_in(home).map_err(|error| error.to_string())?;
        let image = directory.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(megabytes << 20).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
            .arg(&image))?;
        let made = Self { directory };
        std::fs::create_dir(made.home()).map_err(|error| error.to_string())?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(made.home()))?;
        // PostgreSQL's user must be able to pass through.
        run(Command::new("chmod").arg("755").args([made.directory.path(), &made.home()]))?;
        Ok(made)
    }

    pub fn home(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }
}

impl Drop for OwnDisk {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(self.home()));
    }
}

/// A running server with pgbench's tables.
pub struct Postgresql {
    directory: tempfile::TempDir,
}

impl Postgresql {
    /// Starts one; the reason where that is not possible here.
    pub fn start(home: &Path, scale: u32) -> Result<Self, String> {
        if !Path::new(PROGRAMS).join("initdb").exists() {
            return Err("PostgreSQL 15 is not installed".to_owned());
        }
        let directory = tempfile::tempdir_in(home).map_err(|error| error.to_string())?;
        let made = Self { directory };
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(made.home()))?;
        }
        let data = made.data();
        let locale = "--locale=C.UTF-8";
        made.run("initdb", &["-A", "trust", locale, "-N", "-D", text(&data)])?;
        // A new segment of the log is made, filled with zeros and closed within one poll on a fast
        // machine, before it can be found out; without the zeros both layers write the same log.
        let settings = format!(
            "shared_buffers = 16MB\nlisten_addresses = ''\nmax_wal_size = 256MB\n\
             wal_init_zero = off\n\
             unix_socket_directories = '{}'\n",
            made.home().display()
        );
        let file = data.join("postgresql.auto.conf");
        std::fs::write(&file, settings).map_err(|error| error.to_string())?;
        let log = made.home().join("log");
        made.run("pg_ctl", &["-D", text(&data), "-l", text(&log), "-w", "start"])?;
        made.run("createdb", &["-h", text(made.home()), "bench"])?;
        made.run(
            "pgbench",
            &["-h", text(made.home()), "-i", "-q", "-s", &scale.to_string(), "bench"],
        )?;
        made.query("CHECKPOINT")?;
        Ok(made)
    }

    fn home(&self) -> &Path {
        self.directory.path()
    }

    pub fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// The main process.
    pub fn pid(&self) -> u32 {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        text.lines().next().and_then(|line| line.parse().ok()).expect("a number")
    }

    /// Runs pgbench's transactions and returns what it prints.
    pub fn bench(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-h", text(self.home()), "-n"];
        all.extend(arguments);
        all.push("bench");
        self.run("pgbench", &all).expect("pgbench runs")
    }

    /// Runs one statement; rows by lines, columns by `|`.
    pub fn query(&self, sql: &str) -> Result<String, String> {
        self.run("psql", &["-h", text(self.home()), "-XAtqc", sql, "bench"])
    }

    /// Runs a program of PostgreSQL as the user who owns the server.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let program = Path::new(PROGRAMS).join(program);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        run(command.args(arguments).current_dir(self.home()))
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        let _ = self.run("pg_ctl", &["-D", text(&self.data()), "-m", "immediate", "-w", "stop"]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// Runs a command and returns its output; a server that it leaves running must not hold our pipe.
fn run(command: &mut Command) -> Result<String, String> {
    let output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let clone = || output.try_clone().expect("a file can be shared");
    command.stdin(Stdio::null()).stdout(clone()).stderr(clone());
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    let mut text = String::new();
    let mut output = output;
    std::io::Seek::rewind(&mut output).map_err(|error| error.to_string())?;
    std::io::Read::read_to_string(&mut output, &mut text).map_err(|error| error.to_string())?;
    if status.success() { Ok(text) } else { Err(format!("{command:?}: {text}")) }
}
