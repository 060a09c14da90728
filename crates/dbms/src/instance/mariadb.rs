//! What is MariaDB's own about an instance: programs, configuration, readiness.
//!
//! All settings stand in one file, `wearmark.cnf`, which `mariadb-install-db` and the server both
//! read and which is the only one that they read. A server opens its socket when recovery is over
//! and greets each client at once (protocol, "Initial Handshake Packet"): that greeting is the sign
//! of readiness.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::process::Launch;
use super::{Durability, Plan};
use crate::{Error, System};

pub(super) const SOCKET: &str = "mariadb.sock";
pub(super) const USER: &str = "root";
pub(super) const DATABASE: &str = "wearmark";

/// Ends sessions, flushes what a normal shutdown flushes.
pub(super) const STOP: Signal = Signal::TERM;
/// One process: nothing is left when it is gone.
pub(super) const DEATH: Signal = Signal::KILL;

/// Undo tablespaces of an instance whose undo has a place of its own.
const UNDO_TABLESPACES: u32 = 3;

/// Refuses what MariaDB cannot do.
pub(super) fn validate(plan: &Plan) -> Result<(), Error> {
    let Some(page) = plan.settings.page else { return Ok(()) };
    if [4, 8, 16, 32, 64].iter().any(|kib| kib << 10 == page.0) {
        return Ok(());
    }
    Err(Error::Unsupported {
        system: System::Mariadb,
        setting: "page size",
        value: page.to_string(),
        why: "InnoDB's pages have 4, 8, 16, 32 or 64 KiB",
    })
}

/// `mariadb-install-db`, after the configuration that it reads.
pub(super) fn install(plan: &Plan) -> Result<Launch, Error> {
    write_settings(plan)?;
    let arguments = vec![
        format!("--defaults-file={}", settings_file(plan)),
        format!("--datadir={}", plan.files.data.display()),
        "--skip-test-db".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--auth-root-authentication-method=normal".to_owned(),
    ];
    // A shell script whose bootstrap server ends with its input.
    Ok(plan.launch(&plan.programs.install, arguments, Signal::KILL))
}

fn settings_file(plan: &Plan) -> String {
    plan.places.data.join("wearmark.cnf").display().to_string()
}

/// Writes `wearmark.cnf` and the statement that each start begins with.
pub(super) fn write_settings(plan: &Plan) -> Result<(), Error> {
    let sql = format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n");
    plan.write(&plan.places.data.join("start.sql"), &sql)?;
    plan.write(&plan.places.data.join("wearmark.cnf"), &configuration(plan))
}

fn configuration(plan: &Plan) -> String {
    let settings = &plan.settings;
    let work = settings.work_memory.0.max(16 << 10);
    let method = match (settings.durability, settings.direct) {
        (Durability::Off, _) => "nosync",
        (_, true) => "O_DIRECT",
        (_, false) => "fsync",
    };
    let commit = if settings.durability == Durability::Relaxed { 2 } else { 1 };
    let path = |path: &Path| path.display().to_string();
    let mut pairs: Vec<(&str, String)> = vec![
        ("datadir", path(&plan.files.data)),
        ("socket", path(&plan.socket())),
        ("pid-file", path(&plan.files.data.join("wearmark.pid"))),
        ("skip-networking", "1".to_owned()),
        ("skip-name-resolve", "1".to_owned()),
        ("skip-log-bin", "1".to_owned()),
        ("max_connections", (settings.connections + 3).to_string()),
        ("tmpdir", path(&plan.files.temp)),
        ("sort_buffer_size", work.to_string()),
        ("join_buffer_size", work.to_string()),
        ("innodb_buffer_pool_size", settings.buffer.0.to_string()),
        ("innodb_log_file_size", (settings.log_size.0.max(4 << 20)).to_string()),
        ("innodb_log_group_home_dir", path(&plan.files.log)),
        ("innodb_flush_method", method.to_owned()),
        ("innodb_flush_log_at_trx_commit", commit.to_string()),
        // A run starts with a cold buffer, not with the last run's.
        ("innodb_buffer_pool_dump_at_shutdown", "0".to_owned()),
        ("innodb_buffer_pool_load_at_startup", "0".to_owned()),
    ];
    if let Some(page) = settings.page {
        pairs.push(("innodb_page_size", page.0.to_string()));
    }
    if plan.places.undo.is_some() {
        pairs.push(("innodb_undo_directory", path(&plan.files.undo)));
        pairs.push(("innodb_undo_tablespaces", UNDO_TABLESPACES.to_string()));
    }
    let extra = settings.extra.iter().map(|(name, value)| (name.as_str(), value.clone()));
    pairs.extend(extra);
    let lines = pairs.iter().map(|(name, value)| format!("{name} = {value}"));
    format!("[mysqld]\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// The server itself.
pub(super) fn serve(plan: &Plan) -> Launch {
    let arguments = vec![
        format!("--defaults-file={}", settings_file(plan)),
        format!("--init-file={}", plan.places.data.join("start.sql").display()),
    ];
    plan.launch(&plan.programs.server, arguments, DEATH)
}

/// Whether a server at the socket greets.
pub(super) fn ready(socket: &Path) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut start = [0; 5];
        stream.read_exact(&mut start)?;
        // Length, sequence number 0, then the version of the protocol; 255 would be an error.
        let length = usize::from(start[0]) | usize::from(start[1]) << 8;
        let mut rest = vec![0; length.saturating_sub(1)];
        stream.read_exact(&mut rest)?;
        // Half a handshake would be counted as an aborted connection; an empty answer is too, but
        // leaves the server nothing to wait for.
        _ = stream.flush();
        Ok(start[4] == 10)
    };
    ask().unwrap_or(false)
}

/// What cannot be controlled, in sentences.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let mut notes =
        vec!["MariaDB makes checkpoints by log space and dirty pages, not by time".to_owned()];
    if plan.places.temp.is_some() {
        notes.push(
            "InnoDB's own temporary tablespace (ibtmp1) stays in the data directory".to_owned(),
        );
    }
    notes
}
