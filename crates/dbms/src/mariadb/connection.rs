//! A blocking connection: commands out, answers in.

use std::io::{self, Write};
use std::ops::Range;

use super::answer::{self, Column, Done, First, capability};
use super::fields::malformed;
use super::frame::{self, Input};
use super::load::Source;
use super::login::{Authentication, Greeting};
use super::row::Row;
use super::statement::{Parameters, Statement, Type};
use crate::net::{Stream, Wire, of_login};
use crate::{Address, Error, Login, TlsMode};

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PING: u8 = 0x0e;
const PREPARE: u8 = 0x16;
const CLOSE_STATEMENT: u8 = 0x19;

/// Most result sets of one command.
const RESULTS_MAX: u32 = 1000;

/// Most rounds of a login.
const LOGIN_ROUNDS_MAX: u32 = 8;

/// How an answer is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// Rows are binary: of a prepared statement.
    binary: bool,
    /// Nobody looks at the rows.
    drops: bool,
}

pub(super) const TEXT: Reader = Reader { binary: false, drops: false };
const BINARY: Reader = Reader { binary: true, drops: false };

/// What is done with each row.
type Each<'a> = dyn FnMut(&mut Row<'_>) -> Result<(), Error> + 'a;

/// A connection to a MariaDB server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    pub(super) input: Input,
    pub(super) output: Vec<u8>,
    capabilities: u64,
    version: String,
    id: u32,
    /// Columns of text queries, reused.
    pub(super) columns: Vec<Column>,
    /// Commands sent or queued whose answers were not read yet.
    pub(super) pending: u32,
    /// The connection broke, or what it says cannot be followed any more.
    broken: bool,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// No server is listening, or the login is refused or wants what is not supported.
    pub fn connect(login: &Login) -> Result<Self, Error> {
        login.check()?;
        Self::opened(Stream::connect(login)?, login)
    }

    /// Logs in over a stream that is connected already.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn over(stream: impl Wire + 'static, login: &Login) -> Result<Self, Error> {
        login.check()?;
        Self::opened(Stream::Other(Box::new(stream)), login)
    }

    fn opened(stream: Stream, login: &Login) -> Result<Self, Error> {
        let mut connection = Self {
            stream,
            input: Input::default(),
            output: Vec::with_capacity(4 << 10),
            capabilities: 0,
            version: String::new(),
            id: 0,
            columns: Vec::new(),
            pending: 0,
            broken: false,
        };
        let logged_in = connection.log_in(login).inspect_err(|_| connection.broken = true);
        logged_in.map_err(|error| of_login(error, login))?;
        connection.stream.logged_in();
        Ok(connection)
    }

    fn log_in(&mut self, login: &Login) -> Result<(), Error> {
        let packet = self.packet()?;
        let greeting = Greeting::parse(self.input.bytes(packet))?;
        let sequence = self.input.sequence().wrapping_add(1);
        let tls = self.encrypt(&greeting, login, sequence)?;
        let private = self.stream.may_carry_password(login);
        let mut authentication = Authentication::new(login, private);
        let proof = authentication.first(&greeting);
        let sequence = sequence.wrapping_add(u8::from(tls));
        self.send_login(sequence, |output| greeting.answer(login, tls, &proof, output))?;
        self.capabilities = if login.database.is_empty() {
            greeting.capabilities & !capability::CONNECT_WITH_DB
        } else {
            greeting.capabilities
        };
        (self.version, self.id) = (greeting.version, greeting.connection);
        for _ in 0..LOGIN_ROUNDS_MAX {
            let packet = self.packet()?;
            let packet = self.input.bytes(packet);
            let reply = match packet.first() {
                Some(0x00) => return Ok(()),
                Some(0xff) => return Err(answer::refusal(packet)),
                Some(0xfe) => Some(authentication.switched(packet)?),
                Some(0x01) => authentication.more(packet)?,
                _ => return Err(malformed("an answer to a login that is none")),
            };
            if let Some(reply) = reply {
                let sequence = self.input.sequence().wrapping_add(1);
                self.send_login(sequence, |output| output.extend_from_slice(&reply))?;
            }
        }
        Err(malformed("a login without end"))
    }

    /// Goes on in TLS where login and server want it; whether it does.
    fn encrypt(&mut self, greeting: &Greeting, login: &Login, sequence: u8) -> Result<bool, Error> {
        let mode = login.tls.mode;
        if matches!(login.address, Address::Unix(_)) || mode == TlsMode::Disable {
            return Ok(false);
        }
        if !greeting.tls {
            let why = "the server offers none".to_owned();
            let refused = Error::Tls { address: login.address.clone(), why };
            return if mode == TlsMode::Prefer { Ok(false) } else { Err(refused) };
        }
        // Whoever is in the middle may have put something behind the greeting.
        if !self.input.is_empty() {
            return Err(malformed("unencrypted data behind the greeting"));
        }
        self.send_login(sequence, |output| greeting.head(login, true, output))?;
        self.stream.encrypt(login)?;
        Ok(true)
    }

    /// Whether what travels is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    fn send_login(&mut self, sequence: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        let start = frame::begin(&mut self.output, sequence);
        write(&mut self.output);
        frame::end(&mut self.output, start);
        self.flush()
    }

    /// The server's version as it says it, such as `10.11.19-MariaDB-0+deb12u1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server's number of this connection (`CONNECTION_ID()`).
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether the server executes one statement for many rows in one command.
    pub fn has_bulk(&self) -> bool {
        self.capabilities & capability::BULK != 0
    }

    // Commands.

    /// Queues a text query of one or several statements; answered to [`Connection::receive_text`].
    #[inline]
    pub fn queue_text(&mut self, sql: &str) {
        self.command(QUERY, sql.as_bytes());
        self.pending += 1;
    }

    /// Queues one execution of a prepared statement; answered to [`Connection::receive`].
    #[inline]
    pub fn queue<'c>(&'c mut self, statement: &'c mut Statement) -> Parameters<'c> {
        self.pending += 1;
        Parameters::one(statement, &mut self.output)
    }

    /// Queues executions of a prepared statement that returns no rows, for one row of values after
    /// the other, as one command; answered to [`Connection::receive`] with the sum of affected
    /// rows. There must be at least one row, and the server must have [`Connection::has_bulk`].
    #[inline]
    pub fn queue_bulk<'c>(&'c mut self, statement: &'c Statement) -> Parameters<'c> {
        assert!(self.has_bulk(), "a server without bulk execution");
        self.pending += 1;
        Parameters::many(statement, &mut self.output)
    }

    /// Whether something can be begun whose answer is the next one.
    pub(super) fn fresh(&mut self) -> Result<(), Error> {
        if self.broken {
            // Answers that are due will not come.
            self.pending = 0;
            let source = io::ErrorKind::NotConnected.into();
            return Err(Error::Broken { doing: "beginning a statement", source });
        }
        assert_eq!(self.pending, 0, "answers are due");
        Ok(())
    }

    fn command(&mut self, command: u8, argument: &[u8]) {
        let start = frame::begin(&mut self.output, 0);
        self.output.push(command);
        self.output.extend_from_slice(argument);
        frame::end(&mut self.output, start);
    }

    /// Sends what is queued.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(|source| self.broke("sending a command", source))
    }

    /// Sends what is queued and waits for the first bytes of the answer: the time that is the
    /// server's. What follows is reading the answer.
    #[inline]
    pub fn exchange(&mut self) -> Result<(), Error> {
        self.flush()?;
        if self.input.is_empty() { self.fill() } else { Ok(()) }
    }

    // Answers.

    /// Reads the answer to the oldest command, an execution of this statement.
    ///
    /// # Errors
    /// The server's refusal, a broken connection, or what `each` returns: the rest of the answer is
    /// read over then.
    #[inline]
    pub fn receive(
        &mut self,
        statement: &mut Statement,
        each: &mut Each<'_>,
    ) -> Result<Done, Error> {
        self.flush()?;
        let mut columns = std::mem::take(&mut statement.columns);
        let done = self.answer(&mut columns, BINARY, each, None);
        statement.columns = columns;
        done
    }

    /// Reads the answer to the oldest command, a text query.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn receive_text(&mut self, each: &mut Each<'_>) -> Result<Done, Error> {
        self.flush()?;
        let mut columns = std::mem::take(&mut self.columns);
        let done = self.answer(&mut columns, TEXT, each, None);
        self.columns = columns;
        done
    }

    /// Sends what is queued, reads all answers that are due and drops them: after a failure, before
    /// a rollback.
    ///
    /// # Errors
    /// A broken connection only; refusals are dropped too.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.flush()?;
        while self.pending > 0 {
            // Nobody reads the rows: any columns do where the server does not repeat them.
            let mut columns = Vec::new();
            let reader = Reader { binary: false, drops: true };
            let done = self.answer(&mut columns, reader, &mut |_| Ok(()), None);
            match done {
                Err(error) if self.broken => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    // Whole exchanges.

    /// Executes a text query and calls `each` for every row.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn query(&mut self, sql: &str, each: &mut Each<'_>) -> Result<Done, Error> {
        self.queue_text(sql);
        self.receive_text(each)
    }

    /// Executes statements and drops their rows.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn execute(&mut self, sql: &str) -> Result<Done, Error> {
        self.query(sql, &mut |_| Ok(()))
    }

    /// One integer: the first column of the first row; none for no row or NULL.
    ///
    /// # Errors
    /// As [`Connection::receive`]; not an integer.
    pub fn get(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        let mut value = None;
        self.query(sql, &mut |row| {
            value = value.or(row.integer_or_null()?);
            Ok(())
        })?;
        Ok(value)
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// It does not.
    pub fn ping(&mut self) -> Result<(), Error> {
        self.command(PING, &[]);
        self.pending += 1;
        self.receive_text(&mut |_| Ok(())).map(drop)
    }

    /// Prepares a statement with parameters of these types, in the order of its question marks.
    ///
    /// # Errors
    /// The server's refusal; another number of parameters.
    pub fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, Error> {
        self.fresh()?;
        self.command(PREPARE, sql.as_bytes());
        self.flush()?;
        let (statement, parameters) = self.prepared(types).inspect_err(|error| {
            self.broken = !matches!(error, Error::Server { .. });
        })?;
        if parameters != types.len() {
            self.close(&statement)?;
            let what = format!("{parameters} parameters where {} are expected", types.len());
            return Err(Error::Protocol { what });
        }
        Ok(statement)
    }

    /// The answer to a prepare, and how many parameters it tells of.
    fn prepared(&mut self, types: &[Type]) -> Result<(Statement, usize), Error> {
        let packet = self.packet()?;
        let (id, columns, parameters) = answer::prepared(self.input.bytes(packet))?;
        let eof = self.capabilities & capability::DEPRECATE_EOF == 0;
        for _ in 0..parameters + usize::from(eof && parameters > 0) {
            self.packet()?;
        }
        let mut statement =
            Statement { id, types: types.into(), columns: Vec::new(), typed: false };
        for _ in 0..columns {
            let packet = self.packet()?;
            statement.columns.push(answer::column(self.input.bytes(packet))?);
        }
        if eof && columns > 0 {
            self.packet()?;
        }
        Ok((statement, parameters))
    }

    /// Forgets a statement in the server.
    ///
    /// # Errors
    /// A broken connection.
    pub fn close(&mut self, statement: &Statement) -> Result<(), Error> {
        self.command(CLOSE_STATEMENT, &statement.id.to_le_bytes());
        self.flush()
    }

    // Reading.

    #[cold]
    fn broke(&mut self, doing: &'static str, source: io::Error) -> Error {
        self.broken = true;
        Error::Broken { doing, source }
    }

    fn fill(&mut self) -> Result<(), Error> {
        let filled = self.input.fill(&mut self.stream);
        filled.map_err(|source| self.broke("waiting for an answer", source))
    }

    /// The next packet, waited for.
    #[inline]
    fn packet(&mut self) -> Result<Range<usize>, Error> {
        loop {
            match self.input.packet() {
                Ok(Some(packet)) => return Ok(packet),
                Ok(None) => self.fill()?,
                Err(error) => {
                    self.broken = true;
                    return Err(error);
                }
            }
        }
    }

    /// Reads one command's answer to its end.
    pub(super) fn answer(
        &mut self,
        columns: &mut Vec<Column>,
        reader: Reader,
        each: &mut Each<'_>,
        source: Option<&mut Source<'_>>,
    ) -> Result<Done, Error> {
        assert!(self.pending > 0, "no answer is due");
        if self.broken {
            self.pending = 0;
            let source = io::ErrorKind::NotConnected.into();
            return Err(Error::Broken { doing: "reading an answer", source });
        }
        self.pending -= 1;
        let done = self.results(columns, reader, each, source);
        // After anything but a refusal the place in the stream is lost. `each` fails by way of its
        // own place, with the answer read to its end.
        if let Err(Failed::Stream(error)) = done {
            if !matches!(error, Error::Server { .. }) {
                self.broken = true;
            }
            return Err(error);
        }
        done.map_err(Failed::into_error)
    }

    fn results(
        &mut self,
        columns: &mut Vec<Column>,
        reader: Reader,
        each: &mut Each<'_>,
        mut source: Option<&mut Source<'_>>,
    ) -> Result<Done, Failed> {
        let mut done = Done::default();
        let mut failed = None;
        for _ in 0..RESULTS_MAX {
            let packet = self.packet()?;
            let first = First::parse(self.input.bytes(packet), self.capabilities)?;
            let end = match first {
                First::Ok(end) => end,
                First::LocalFile => {
                    let sent = self.send_file(source.take());
                    failed = failed.or(sent?);
                    continue;
                }
                First::Columns(count, follow) => {
                    if reader.drops && !follow {
                        columns.resize(count, Column::UNKNOWN);
                    }
                    self.definitions(columns, count, follow)?;
                    done.results += 1;
                    let place = (reader.binary, done.results - 1);
                    self.rows(columns, place, each, &mut failed)?
                }
            };
            // Counts of a server that lies may be any number.
            done.affected = done.affected.saturating_add(end.affected);
            done.last_id = if end.last_id == 0 { done.last_id } else { end.last_id };
            done.warnings = end.warnings;
            if !end.more {
                return failed.map_or(Ok(done), |error| Err(Failed::Caller(error)));
            }
        }
        Err(Failed::Stream(malformed("an answer without end")))
    }

    /// The columns of a result set; those of the last time where the server does not repeat them.
    #[inline]
    fn definitions(
        &mut self,
        columns: &mut Vec<Column>,
        count: usize,
        follow: bool,
    ) -> Result<(), Error> {
        if follow {
            columns.clear();
            for _ in 0..count {
                let packet = self.packet()?;
                columns.push(answer::column(self.input.bytes(packet))?);
            }
        } else if columns.len() != count {
            return Err(malformed("columns that were never defined"));
        }
        if self.capabilities & capability::DEPRECATE_EOF == 0 {
            self.packet()?;
        }
        Ok(())
    }

    #[inline]
    fn rows(
        &mut self,
        columns: &[Column],
        (binary, result): (bool, u32),
        each: &mut Each<'_>,
        failed: &mut Option<Error>,
    ) -> Result<answer::End, Error> {
        loop {
            let packet = self.packet()?;
            let packet = self.input.bytes(packet);
            if let Some(end) = answer::end_of_rows(packet, self.capabilities)? {
                return Ok(end);
            }
            if failed.is_some() {
                continue;
            }
            let row = if binary {
                Row::binary(packet, columns, result)
            } else {
                Ok(Row::text(packet, columns, result))
            };
            *failed = row.and_then(|mut row| each(&mut row)).err();
        }
    }
}

/// What ended the reading of an answer.
enum Failed {
    /// What the server said, or did not.
    Stream(Error),
    /// What the caller's own code returned; the answer was read to its end.
    Caller(Error),
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::Stream(error) | Self::Caller(error) => error,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Stream(error)
    }
}

/// Says goodbye, so that the server does not count an aborted connection.
impl Drop for Connection {
    fn drop(&mut self) {
        if !self.broken && self.pending == 0 {
            self.output.clear();
            self.command(QUIT, &[]);
            // Nobody is left to hear of a failure.
            let _ = self.flush();
        }
    }
}
