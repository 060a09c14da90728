//! One connection of a worker, and how groups of statements travel over it.
//!
//! A transaction is written as groups of statements that do not depend on each other's answers.
//! With statement access each is sent when the one before it has been answered; pipelined, a group
//! is sent as a whole and its answers are read in order. The access `pipelined` also does with one
//! statement what is done to several rows alike. Sessions work without autocommit, and a
//! COMMIT is a group of its own: after a refusal inside a group the statements behind it run in a
//! transaction that is rolled back.

use dbms::mariadb::{Connection, Row, Statement, Type};
use dbms::{Error as ServerError, Login};

use crate::driver::Meter;
use crate::options::Access;

/// Why a transaction stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The server refused, or the connection broke.
    Server(ServerError),
    /// A row that the workload's rules promise is not there.
    Missing(&'static str),
    /// What an own workload expects is not so.
    Own(String),
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

/// What the transactions of a session have in common.
pub(super) struct Link<'m> {
    pub connection: Connection,
    meter: &'m Meter,
    pub pipelined: bool,
    /// Whether one statement reads many rows where it can.
    pub set_based: bool,
}

/// Reads a row of an answer.
pub(super) type Each<'a> = dyn FnMut(&mut Row<'_>) -> Result<(), ServerError> + 'a;

impl<'m> Link<'m> {
    /// Connects, and sets the session up for transactions.
    ///
    /// READ COMMITTED takes no gap locks. All that a read-write transaction reads and another may
    /// change it reads with a lock or changes itself, so its execution is serializable all the
    /// same; Order-Status, which reads without locks, asks for a snapshot. Texts travel in latin1,
    /// the character set of the tables: nothing is converted.
    pub fn open(login: &Login, meter: &'m Meter, access: Access) -> Result<Self, ServerError> {
        let mut connection = Connection::connect(login)?;
        connection.execute(
            "SET NAMES latin1 COLLATE latin1_bin; SET SESSION autocommit = 0; \
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )?;
        let (pipelined, set_based) = (access.pipelines(), access == Access::Pipelined);
        Ok(Self { connection, meter, pipelined, set_based })
    }

    /// Whether one command changes many rows: by MariaDB's bulk execution.
    pub fn in_bulk(&self) -> bool {
        self.set_based && self.connection.has_bulk()
    }

    pub fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, ServerError> {
        self.connection.prepare(sql, types)
    }

    /// Executes the steps `0..count` of a group: `queue` queues one, `receive` reads its answer.
    #[inline]
    pub fn group<S: ?Sized>(
        &mut self,
        state: &mut S,
        count: usize,
        queue: impl Fn(&mut S, &mut Connection, usize),
        receive: impl Fn(&mut S, &mut Connection, usize) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let connection = &mut self.connection;
        if self.pipelined {
            (0..count).for_each(|step| queue(state, connection, step));
            self.meter.dbms(|| connection.exchange())?;
            return (0..count).try_for_each(|step| receive(state, connection, step));
        }
        for step in 0..count {
            queue(state, connection, step);
            self.meter.dbms(|| connection.exchange())?;
            receive(state, connection, step)?;
        }
        Ok(())
    }

    /// Sends what is queued and waits for the answer.
    #[inline]
    pub fn exchange(&mut self) -> Result<(), Stop> {
        let connection = &mut self.connection;
        Ok(self.meter.dbms(|| connection.exchange())?)
    }

    /// A statement of the session's frame: COMMIT and similar statements.
    #[inline]
    pub fn text(&mut self, sql: &str) -> Result<(), Stop> {
        self.connection.queue_text(sql);
        self.exchange()?;
        self.connection.receive_text(&mut |_| Ok(()))?;
        Ok(())
    }

    /// Leaves no transaction open, whatever was sent or queued.
    pub fn roll_back(&mut self) -> Result<(), ServerError> {
        self.connection.drain()?;
        self.connection.execute("ROLLBACK").map(drop)
    }
}

/// Reads the answer of a statement that changes rows; it must have found one.
#[inline]
pub(super) fn changed(
    connection: &mut Connection,
    statement: &mut Statement,
    what: &'static str,
) -> Result<(), Stop> {
    changed_all(connection, statement, 1, what)
}

/// Reads the answer of a statement, or of a bulk, that changes rows; it must have found so many.
#[inline]
pub(super) fn changed_all(
    connection: &mut Connection,
    statement: &mut Statement,
    count: usize,
    what: &'static str,
) -> Result<(), Stop> {
    let affected = connection.receive(statement, &mut |_| Ok(()))?.affected;
    if affected < count as u64 { Err(Stop::Missing(what)) } else { Ok(()) }
}

/// Reads the answer of a query that must have a row.
#[inline]
pub(super) fn one(
    connection: &mut Connection,
    statement: &mut Statement,
    what: &'static str,
    each: &mut Each<'_>,
) -> Result<(), Stop> {
    let mut found = false;
    connection.receive(statement, &mut |row| {
        found = true;
        each(row)
    })?;
    if found { Ok(()) } else { Err(Stop::Missing(what)) }
}

/// Bytes of the next text column: what a terminal would show.
#[inline]
pub(super) fn text_bytes(row: &mut Row<'_>) -> Result<usize, ServerError> {
    Ok(std::hint::black_box(row.bytes()?).len())
}

/// Bytes of the next `count` text columns.
#[inline]
pub(super) fn texts_bytes(row: &mut Row<'_>, count: usize) -> Result<usize, ServerError> {
    (0..count).try_fold(0, |sum, _| Ok(sum + text_bytes(row)?))
}

/// Whether a data column says ORIGINAL (brand-generic "B").
#[inline]
pub(super) fn original(data: &[u8]) -> bool {
    data.windows(8).any(|window| window == b"ORIGINAL")
}
