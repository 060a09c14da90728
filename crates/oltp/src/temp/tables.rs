//! The tables, and the settings that a statement runs under.
//!
//! A row is a key of 8 bytes, a number of 4 and a text that fills it up to the width. Keys are
//! `number * 48271 mod (2^31 - 1)`, shifted by the seed: each occurs once, in no order.

use units::Bytes;

use super::TempOptions;
use crate::Error;
use crate::statements::{Session, Target};

/// Bytes of key, number and the length of the text.
const FIXED: u32 = 13;
const MODULUS: u64 = 2_147_483_647;

/// The expression of the key of row `n`.
fn key(seed: u64) -> String {
    format!("((n + {}) * 48271) % {MODULUS}", seed % 1_000_000)
}

/// Makes `a` and `b` with the same keys.
pub(super) fn make(session: &mut Session, options: &TempOptions) -> Result<(), Error> {
    let (rows, text) = (options.rows, options.width - FIXED);
    let key = key(options.seed);
    for table in ["a", "b"] {
        match session {
            Session::Postgresql(_) => {
                session.run(&format!(
                    "CREATE UNLOGGED TABLE {table} (k bigint NOT NULL, id int NOT NULL, \
                     pad varchar NOT NULL)"
                ))?;
                session.run(&format!(
                    "INSERT INTO {table} SELECT {key}, n::int, \
                     substr(repeat(md5(n::text), 5), 1, {text}) \
                     FROM generate_series(1::bigint, {rows}) AS series (n)"
                ))?;
                session.run(&format!("VACUUM (FREEZE, ANALYZE) {table}"))?;
            }
            Session::Mariadb(_) => {
                session.run(&format!(
                    "CREATE TABLE {table} (k BIGINT NOT NULL, id INT NOT NULL PRIMARY KEY, \
                     pad VARCHAR({text}) NOT NULL) ENGINE = InnoDB CHARACTER SET latin1"
                ))?;
                session.run(&format!(
                    "INSERT INTO {table} SELECT {key}, n, LEFT(REPEAT(MD5(n), 5), {text}) \
                     FROM (SELECT seq AS n FROM seq_1_to_{rows}) AS series"
                ))?;
                session.run(&format!("ANALYZE TABLE {table}"))?;
            }
            Session::Sqlite(..) => {
                session.run(&format!(
                    "CREATE TABLE {table} (k INTEGER NOT NULL, id INTEGER NOT NULL, \
                     pad TEXT NOT NULL)"
                ))?;
                session.run(&format!(
                    "WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series \
                     WHERE n < {rows}) INSERT INTO {table} \
                     SELECT {key}, n, substr(hex(randomblob(64)), 1, {text}) FROM series"
                ))?;
            }
        }
    }
    prepare(session)
}

/// Settings for the whole run.
fn prepare(session: &mut Session) -> Result<(), Error> {
    match session {
        Session::Postgresql(_) => session.run(
            "CHECKPOINT; SET max_parallel_workers_per_gather = 0; SET hash_mem_multiplier = 1; \
             SET jit = off; SET enable_nestloop = off",
        ),
        Session::Mariadb(_) | Session::Sqlite(..) => Ok(()),
    }
}

/// The memory of the next statements.
pub(super) fn set_memory(session: &mut Session, memory: Bytes) -> Result<(), Error> {
    let kib = memory.0 >> 10;
    match session {
        Session::Postgresql(_) => session.run(&format!("SET work_mem = '{kib}kB'")),
        Session::Mariadb(_) => session.run(&format!("SET SESSION sort_buffer_size = {}", memory.0)),
        Session::Sqlite(..) => session.run(&format!("PRAGMA cache_size = -{kib}")),
    }
}

/// What the figures do not say.
pub(super) fn notes(options: &TempOptions) -> Vec<String> {
    match &options.target {
        Target::Sqlite { .. } => vec![
            "SQLite does not count its temporary files; bytes are those of this process's system \
             calls, tables included; SQLITE_TMPDIR says where the files are"
                .to_owned(),
        ],
        Target::Server { system: dbms::System::Mariadb, .. } => vec![
            "MariaDB does not count bytes of its temporary files; bytes are those of the server's \
             system calls"
                .to_owned(),
        ],
        Target::Server { .. } => vec![
            "PostgreSQL's temporary files go through the page cache: cap the memory of the machine \
             to measure a device"
                .to_owned(),
        ],
    }
}
