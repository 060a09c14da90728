//! What is PostgreSQL's own about an instance: programs, configuration, readiness.
//!
//! Settings go into `wearmark.conf` in the data directory, included last by `postgresql.conf`.
//! `wal_level = minimal`, because nobody replicates a private instance and a bulk load into a new
//! table then needs no log. Readiness is the protocol's own: a server that still recovers answers
//! 57P03 (protocol 3.0, "Message Flow: Start-up").

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use units::Bytes;

use super::process::Launch;
use super::{Durability, Plan};
use crate::{Error, System};

/// The port is only part of the socket's name.
pub(super) const SOCKET: &str = ".s.PGSQL.5432";
pub(super) const USER: &str = "wearmark";
pub(super) const DATABASE: &str = "postgres";

/// Of fast shutdown: ends sessions, writes a checkpoint.
pub(super) const STOP: Signal = Signal::INT;
/// Of immediate shutdown: the postmaster takes its children with it.
pub(super) const DEATH: Signal = Signal::QUIT;

const TABLESPACE: &str = "wearmark_temp";

/// Refuses what PostgreSQL cannot do.
pub(super) fn validate(plan: &Plan) -> Result<(), Error> {
    let refuse = |setting, value: String, why| {
        Err(Error::Unsupported { system: System::Postgresql, setting, value, why })
    };
    if let Some(undo) = &plan.places.undo {
        let why = "it keeps old row versions in the tables themselves";
        return refuse("undo directory", undo.display().to_string(), why);
    }
    match plan.settings.page {
        Some(page) if page != Bytes(8192) => refuse(
            "page size",
            page.to_string(),
            "its page size of 8 KiB is fixed when it is built",
        ),
        _ => Ok(()),
    }
}

/// Size of a log file, MiB: at least four must fit into what the log may grow to.
fn segment_mib(log_size: Bytes) -> u64 {
    let fits = (log_size.0 >> 20) / 4;
    [16, 8, 4, 2].into_iter().find(|&mib| mib <= fits).unwrap_or(1)
}

/// `initdb`.
pub(super) fn install(plan: &Plan) -> Launch {
    let mut arguments = vec![
        format!("--pgdata={}", plan.files.data.display()),
        format!("--username={USER}"),
        "--auth-local=trust".to_owned(),
        "--auth-host=reject".to_owned(),
        "--encoding=UTF8".to_owned(),
        "--locale=C".to_owned(),
        format!("--wal-segsize={}", segment_mib(plan.settings.log_size)),
    ];
    if plan.places.log.is_some() {
        arguments.push(format!("--waldir={}", plan.files.log.display()));
    }
    if plan.settings.durability == Durability::Off {
        arguments.push("--no-sync".to_owned());
    }
    // The bootstrap server is a child that ends with its input.
    plan.launch(&plan.programs.install, arguments, Signal::KILL)
}

/// Writes the configuration; then what can only be said in SQL, for the server's single-user mode.
pub(super) fn configure(plan: &Plan) -> Result<Option<Launch>, Error> {
    let main = plan.files.data.join("postgresql.conf");
    let mut text = fs::read_to_string(&main).map_err(|e| Error::io(&main, "reading", e))?;
    text.push_str("\ninclude = 'wearmark.conf'\n");
    plan.write(&main, &text)?;
    write_settings(plan)?;
    if plan.places.temp.is_none() {
        return Ok(None);
    }
    let location = plan.files.temp.display().to_string().replace('\'', "''");
    let sql = format!("CREATE TABLESPACE {TABLESPACE} LOCATION '{location}'\n");
    let arguments =
        ["--single", "-D", &plan.files.data.display().to_string(), DATABASE].map(str::to_owned);
    let mut launch = plan.launch(&plan.programs.server, arguments.to_vec(), Signal::KILL);
    launch.input = Some(sql.into_bytes());
    Ok(Some(launch))
}

/// Writes `wearmark.conf`, which is done before each start: the socket's directory may change.
pub(super) fn write_settings(plan: &Plan) -> Result<(), Error> {
    plan.write(&plan.files.data.join("wearmark.conf"), &configuration(plan))
}

fn configuration(plan: &Plan) -> String {
    let settings = &plan.settings;
    let on = |yes: bool| if yes { "on" } else { "off" }.to_owned();
    let log_mib = (settings.log_size.0 >> 20).max(2 * segment_mib(settings.log_size));
    let mut pairs: Vec<(&str, String)> = vec![
        ("listen_addresses", String::new()),
        ("unix_socket_directories", plan.socket_directory.display().to_string()),
        ("port", "5432".to_owned()),
        ("max_connections", (settings.connections + 3).to_string()),
        ("superuser_reserved_connections", "0".to_owned()),
        ("shared_buffers", format!("{}kB", settings.buffer.0.max(128 << 10) >> 10)),
        ("work_mem", format!("{}kB", (settings.work_memory.0 >> 10).max(64))),
        ("hash_mem_multiplier", "1".to_owned()),
        ("wal_level", "minimal".to_owned()),
        ("max_wal_senders", "0".to_owned()),
        ("max_wal_size", format!("{log_mib}MB")),
        ("min_wal_size", format!("{}MB", 2 * segment_mib(settings.log_size))),
        ("checkpoint_timeout", format!("{}s", (settings.checkpoint.0 / 1_000_000_000).max(30))),
        ("fsync", on(settings.durability != Durability::Off)),
        ("synchronous_commit", on(settings.durability != Durability::Relaxed)),
        ("track_io_timing", "on".to_owned()),
        ("logging_collector", "off".to_owned()),
    ];
    if plan.places.temp.is_some() {
        pairs.push(("temp_tablespaces", TABLESPACE.to_owned()));
    }
    let extra = settings.extra.iter().map(|(name, value)| (name.as_str(), value.clone()));
    pairs.extend(extra);
    let quoted = pairs.iter().map(|(name, value)| {
        format!("{name} = '{}'", value.replace('\\', "\\\\").replace('\'', "''"))
    });
    quoted.collect::<Vec<_>>().join("\n") + "\n"
}

/// The server itself.
pub(super) fn serve(plan: &Plan) -> Launch {
    let arguments = vec!["-D".to_owned(), plan.files.data.display().to_string()];
    plan.launch(&plan.programs.server, arguments, DEATH)
}

/// Whether a server at the socket takes sessions.
pub(super) fn ready(socket: &Path) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let parameters = format!("user\0{USER}\0database\0{DATABASE}\0\0");
        let mut message = Vec::from((8 + parameters.len() as u32).to_be_bytes());
        message.extend(196_608u32.to_be_bytes());
        message.extend(parameters.as_bytes());
        stream.write_all(&message)?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        // 'R' asks for authentication, or says that none is needed: it is up. 'E' says why not.
        let up = kind[0] == b'R';
        if up {
            // Terminate, so that the log stays free of broken connections.
            stream.write_all(&[b'X', 0, 0, 0, 4])?;
        }
        Ok(up)
    };
    ask().unwrap_or(false)
}

/// What cannot be controlled, in sentences.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.settings.direct && plan.programs.number.0 < 16 {
        let version = &plan.programs.version;
        notes.push(format!(
            "PostgreSQL {version} reads and writes through the kernel's page cache; it cannot \
             bypass it"
        ));
    }
    if plan.settings.checkpoint.0 < 30_000_000_000 {
        notes.push("PostgreSQL makes a checkpoint by time at most every 30 s".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_four_log_files_fit() {
        for (mib, expected) in [(1024, 16), (64, 16), (63, 8), (16, 4), (8, 2), (4, 1), (1, 1)] {
            assert_eq!(segment_mib(Bytes(mib << 20)), expected, "{mib} MiB");
        }
    }
}
