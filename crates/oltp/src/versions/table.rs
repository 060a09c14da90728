//! The table and the statements on it.
//!
//! `n` counts the updates of a row, so the sum over the table tells which versions a scan saw. `r`
//! is in no order along the table, and has the index that random scans take.

use super::VersionsOptions;
use crate::Error;
use crate::statements::Session;

const MODULUS: u64 = 2_147_483_647;

/// Makes and fills the table.
pub(super) fn make(session: &mut Session, options: &VersionsOptions) -> Result<(), Error> {
    let (rows, width) = (options.rows, options.width);
    let order = format!("((i + {}) * 48271) % {MODULUS}", options.seed % 1_000_000);
    match session {
        Session::Postgresql(_) => {
            // The heap keeps what it is: no vacuum while the readers stand there.
            session.run(
                "CREATE TABLE v (id int PRIMARY KEY, n int NOT NULL, r int NOT NULL, \
                 pad varchar NOT NULL) WITH (autovacuum_enabled = off)",
            )?;
            session.run(&format!(
                "INSERT INTO v SELECT i, 0, {order}, repeat('x', {width}) \
                 FROM generate_series(1::bigint, {rows}) AS series (i)"
            ))?;
            session.run("CREATE INDEX v_r ON v (r)")?;
            session.run("VACUUM (FREEZE, ANALYZE) v")?;
            session.run("CHECKPOINT")
        }
        Session::Mariadb(_) => {
            session.run(&format!(
                "CREATE TABLE v (id INT PRIMARY KEY, n INT NOT NULL, r INT NOT NULL, \
                 pad VARCHAR({width}) NOT NULL) ENGINE = InnoDB CHARACTER SET latin1"
            ))?;
            session.run(&format!(
                "INSERT INTO v SELECT i, 0, {order}, REPEAT('x', {width}) \
                 FROM (SELECT seq AS i FROM seq_1_to_{rows}) AS series"
            ))?;
            session.run("CREATE INDEX v_r ON v (r)")?;
            session.rows("ANALYZE TABLE v").map(|_| ())
        }
        Session::Sqlite(..) => {
            let mode = options.journal.pragma();
            session.run(&format!("PRAGMA journal_mode = {mode}; PRAGMA synchronous = NORMAL"))?;
            session.run(
                "CREATE TABLE v (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, r INTEGER NOT NULL, \
                 pad TEXT NOT NULL)",
            )?;
            session.run(&format!(
                "WITH RECURSIVE series (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series \
                 WHERE i < {rows}) INSERT INTO v \
                 SELECT i, 0, {order}, printf('%.*c', {width}, 'x') FROM series"
            ))?;
            session.run("CREATE INDEX v_r ON v (r); PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}

/// Begins a transaction whose snapshot is of now.
pub(super) fn open_snapshot(session: &mut Session) -> Result<(), Error> {
    match session {
        Session::Postgresql(_) => session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?,
        Session::Mariadb(_) => {
            session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        }
        Session::Sqlite(..) => session.run("BEGIN")?,
    }
    // PostgreSQL and SQLite take the snapshot with the first statement.
    session.number("SELECT n FROM v WHERE id = 1").map(|_| ())
}

/// The statement that updates some rows in a round.
pub(super) fn update(options: &VersionsOptions, round: u32, from: u64, to: u64) -> String {
    let letter = char::from(b'a' + (round % 26) as u8);
    let text = letter.to_string().repeat(options.width as usize);
    let wide = if options.wide { format!(", pad = '{text}'") } else { String::new() };
    format!("UPDATE v SET n = n + 1{wide} WHERE id BETWEEN {from} AND {to}")
}
