//! A connection: login, simple queries, prepared statements, pipelines.

use std::io::{Read, Write};

use super::copy::CopyIn;
use super::inbox::{Inbox, Message, Row, protocol, server_error, zero_ended};
use super::login::{Authentication, Reply};
use super::statement::{Bind, Statement};
use crate::net::{Stream, Wire, of_login};
use crate::{Address, Error, Login, TlsMode};

/// Notices kept until they are asked for.
const NOTICES_MAX: usize = 100;

/// Protocol 3.0.
const PROTOCOL: u32 = 3 << 16;

/// The protocol number that asks for TLS (chapter 54.7, SSLRequest).
const SSL_REQUEST: u32 = 80_877_103;

/// Where the connection stands between transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// No transaction is open.
    #[default]
    Idle,
    /// A transaction is open.
    Open,
    /// A transaction is open and has failed: only ROLLBACK ends it.
    Failed,
}

/// One thing that a pipeline answers.
#[derive(Debug)]
pub enum Step<'a> {
    /// A row of the statement whose turn it is.
    Row(Row<'a>),
    /// That statement is done; the rows that it changed or returned.
    Done(u64),
}

/// A blocking connection to a server.
pub struct Connection {
    stream: Stream,
    inbox: Inbox,
    out: Vec<u8>,
    /// Statements bound and not yet answered.
    pending: u32,
    /// Syncs and simple queries sent and not yet answered.
    syncs: u32,
    status: Status,
    /// Nothing more can be said on it.
    broken: bool,
    statements: u32,
    parameters: Vec<(String, String)>,
    notices: Vec<String>,
    /// With what it was opened; the password is not kept.
    login: Login,
    process: u32,
    key: u32,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.login.address)
            .field("process", &self.process)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// No server is listening; the login is refused; the server speaks another protocol.
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
        let mut connection = Self::on(encrypted(stream, login)?, login);
        connection.start(login).map_err(|error| of_login(error, login))?;
        connection.stream.logged_in();
        Ok(connection)
    }

    fn on(stream: Stream, login: &Login) -> Self {
        Self {
            stream,
            inbox: Inbox::new(),
            out: Vec::with_capacity(16 << 10),
            pending: 0,
            syncs: 0,
            status: Status::Idle,
            broken: false,
            statements: 0,
            parameters: Vec::new(),
            notices: Vec::new(),
            login: Login { password: None, ..login.clone() },
            process: 0,
            key: 0,
        }
    }

    fn start(&mut self, login: &Login) -> Result<(), Error> {
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in [
            "user",
            &login.user,
            "database",
            &login.database,
            "application_name",
            "wearmark",
            "client_encoding",
            "UTF8",
            "DateStyle",
            "ISO",
        ] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        self.out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.out.extend_from_slice(&body);
        self.flush()?;
        self.authenticate(login)?;
        self.syncs = 1;
        self.settle().map(|_| ())
    }

    /// Answers the server's requests for proof until it lets us in.
    fn authenticate(&mut self, login: &Login) -> Result<(), Error> {
        let private = self.stream.may_carry_password(login);
        let mut authentication = Authentication::new(login, private);
        loop {
            let message = self.message()?;
            if message.kind != b'R' {
                return Err(protocol("the server sent no authentication request"));
            }
            match authentication.answer(self.inbox.body(&message))? {
                Reply::Done => return Ok(()),
                Reply::Listen => {}
                Reply::Send(answer) => self.send_message(b'p', &answer)?,
            }
        }
    }

    /// Whether what travels is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    /// The server's version, as it says it: `15.18 (Debian ...)`.
    pub fn server_version(&self) -> &str {
        self.parameter("server_version").unwrap_or("unknown")
    }

    /// A setting that the server reports by itself.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Process of the server that serves this connection.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Whether a transaction is open.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Takes the notices and warnings that the server sent, at most a hundred.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// What another thread needs to stop a statement of this connection.
    pub fn canceller(&self) -> Canceller {
        Canceller { login: self.login.clone(), process: self.process, key: self.key }
    }

    /// Executes statements by the simple protocol; the rows of all of them, as text.
    ///
    /// # Errors
    /// The server's own; the connection can be used again after it.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.start_query(sql)?;
        self.texts().inspect_err(|error| self.lose_place(error))
    }

    /// The rows of a simple query, as text.
    fn texts(&mut self) -> Result<Vec<Vec<Option<String>>>, Error> {
        let mut rows = Vec::new();
        loop {
            let message = self.message()?;
            match message.kind {
                b'D' => {
                    let mut row = Row::new(self.inbox.body(&message))?;
                    let mut texts = Vec::with_capacity(row.len());
                    while !row.is_empty() {
                        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                        texts.push(row.nullable()?.map(text));
                    }
                    rows.push(texts);
                }
                b'Z' => {
                    self.ready(&message)?;
                    return Ok(rows);
                }
                b'T' | b'C' | b'I' => {}
                b'G' | b'W' | b'H' => {
                    return Err(protocol("COPY needs copy_in; the connection is of no use now"));
                }
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Executes statements by the simple protocol, for their effect.
    pub fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.query(sql).map(|_| ())
    }

    /// Whether something new can be begun.
    fn fresh(&self) -> Result<(), Error> {
        if self.broken {
            let source = std::io::ErrorKind::NotConnected.into();
            return Err(Error::Broken { doing: "beginning a statement", source });
        }
        assert_eq!((self.syncs, self.pending), (0, 0), "a pipeline is not read to its end");
        Ok(())
    }

    pub(super) fn start_query(&mut self, sql: &str) -> Result<(), Error> {
        self.fresh()?;
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.syncs += 1;
        self.send_message(b'Q', &body)
    }

    /// Begins a COPY from us; `sql` must say `FROM STDIN WITH (FORMAT binary)`.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Error> {
        CopyIn::begin(self, sql, true)
    }

    /// Begins a COPY of lines of text from us; `sql` says `FROM STDIN`.
    pub fn copy_lines_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Error> {
        CopyIn::begin(self, sql, false)
    }

    /// Prepares a statement; `types` are the parameters' (see [`super::binary::oid`]), 0 leaves one
    /// to the server.
    pub fn prepare(&mut self, sql: &str, types: &[u32]) -> Result<Statement, Error> {
        self.fresh()?;
        self.statements += 1;
        let name = format!("s{}", self.statements);
        let mut body = format!("{name}\0{sql}\0").into_bytes();
        body.extend_from_slice(&(types.len() as u16).to_be_bytes());
        for oid in types {
            body.extend_from_slice(&oid.to_be_bytes());
        }
        self.push_message(b'P', &body);
        self.push_message(b'D', format!("S{name}\0").as_bytes());
        self.sync()?;
        self.description(&name).inspect_err(|error| self.lose_place(error))
    }

    /// The answer to a prepare.
    fn description(&mut self, name: &str) -> Result<Statement, Error> {
        let (mut parameters, mut columns) = (0, 0);
        loop {
            let message = self.message()?;
            let body = self.inbox.body(&message);
            let count = || {
                body.first_chunk::<2>()
                    .map(|count| u16::from_be_bytes(*count))
                    .ok_or_else(|| protocol("a description without a count"))
            };
            match message.kind {
                b't' => parameters = count()?,
                b'T' => columns = count()?,
                b'1' | b'n' => {}
                b'Z' => {
                    self.ready(&message)?;
                    return Ok(Statement::new(name, parameters, columns));
                }
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Adds a run of a prepared statement to the pipeline.
    #[inline]
    pub fn bind(&mut self, statement: &Statement) -> Bind<'_> {
        debug_assert!(self.broken || self.syncs == 0, "a pipeline is not read to its end");
        Bind::new(&mut self.out, &mut self.pending, statement)
    }

    /// Ends the pipeline and sends it. Statements in it are one transaction where none is open.
    #[inline]
    pub fn sync(&mut self) -> Result<(), Error> {
        self.out.extend_from_slice(&[b'S', 0, 0, 0, 4]);
        self.syncs += 1;
        self.flush()
    }

    /// As [`Connection::sync`], and waits until the first answer is there. What follows then mostly
    /// reads from memory, so a caller can tell the server's time from its own.
    #[inline]
    pub fn round_trip(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.inbox.wait(&mut self.stream).inspect_err(|_| self.broken = true)
    }

    /// The next row or end of a statement, in the order of the pipeline.
    ///
    /// # Errors
    /// The server's own: then the whole pipeline has been read, and what followed in it was not
    /// executed.
    #[inline]
    pub fn step(&mut self) -> Result<Step<'_>, Error> {
        loop {
            let message = self.message()?;
            match message.kind {
                b'D' => return Ok(Step::Row(Row::new(self.inbox.body(&message))?)),
                b'C' => {
                    self.pending = self.pending.saturating_sub(1);
                    return Ok(Step::Done(rows_of_tag(self.inbox.body(&message))));
                }
                b'I' => {
                    self.pending = self.pending.saturating_sub(1);
                    return Ok(Step::Done(0));
                }
                b'1' | b'2' | b'3' | b'n' | b'T' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Reads the next statement's end, dropping its rows; returns how many it changed or returned.
    #[inline]
    pub fn done(&mut self) -> Result<u64, Error> {
        loop {
            if let Step::Done(rows) = self.step()? {
                return Ok(rows);
            }
        }
    }

    /// Calls `read` with every row of the next statement; returns their number.
    #[inline]
    pub fn each<E: From<Error>>(
        &mut self,
        mut read: impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        loop {
            match self.step()? {
                Step::Row(row) => read(row)?,
                Step::Done(rows) => return Ok(rows),
            }
        }
    }

    /// What `read` makes of the first row of the next statement, where there is one.
    #[inline]
    pub fn first<T, E: From<Error>>(
        &mut self,
        read: impl FnOnce(Row<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let value = match self.step()? {
            Step::Row(row) => Some(read(row)?),
            Step::Done(_) => return Ok(None),
        };
        self.done()?;
        Ok(value)
    }

    /// Reads the pipeline to its end. Answers that nobody took are dropped, but for an error.
    ///
    /// After an error in the middle of reading (a row that was not as expected) it makes the
    /// connection ready for the next pipeline. What was bound and not sent is dropped.
    pub fn settle(&mut self) -> Result<Status, Error> {
        if self.syncs == 0 {
            self.out.clear();
            self.pending = 0;
        }
        while self.syncs > 0 {
            let message = self.message()?;
            if message.kind == b'Z' {
                self.ready(&message)?;
            }
        }
        Ok(self.status)
    }

    fn ready(&mut self, message: &Message) -> Result<(), Error> {
        self.status = match self.inbox.body(message) {
            b"I" => Status::Idle,
            b"T" => Status::Open,
            b"E" => Status::Failed,
            _ => return Err(protocol("a state of the transaction that does not exist")),
        };
        self.syncs = self.syncs.saturating_sub(1);
        self.pending = 0;
        Ok(())
    }

    /// The next message that is not about the session itself. After an error of the server what it
    /// still sends of the pipeline has been read too.
    #[inline]
    pub(super) fn message(&mut self) -> Result<Message, Error> {
        loop {
            let next = self.inbox.next(&mut self.stream);
            let message = next.inspect_err(|_| self.broken = true)?;
            match message.kind {
                b'E' => return Err(self.refused(&message)),
                b'N' | b'S' | b'K' | b'A' => {
                    self.aside(&message).inspect_err(|_| self.broken = true)?;
                }
                _ => return Ok(message),
            }
        }
    }

    /// After anything but the server's own error, nobody knows what its next message answers.
    #[cold]
    fn lose_place(&mut self, error: &Error) {
        self.broken |= !matches!(error, Error::Server { .. });
    }

    #[cold]
    fn refused(&mut self, message: &Message) -> Error {
        let error = server_error(self.inbox.body(message));
        // Before the first ReadyForQuery the server just ends the connection.
        while self.syncs > 0 {
            // FATAL: the reason is the answer, not the broken connection after it.
            let Ok(next) = self.inbox.next(&mut self.stream) else {
                self.broken = true;
                break;
            };
            let read = match next.kind {
                b'Z' => self.ready(&next),
                b'N' | b'S' | b'K' | b'A' => self.aside(&next),
                _ => Ok(()),
            };
            if let Err(error) = read {
                self.broken = true;
                return error;
            }
        }
        error
    }

    /// Messages about the session: settings, key, notices.
    #[cold]
    fn aside(&mut self, message: &Message) -> Result<(), Error> {
        let mut body = self.inbox.body(message);
        match message.kind {
            b'S' => {
                let mut text =
                    || Ok(events::one_line(&String::from_utf8_lossy(zero_ended(&mut body)?)));
                let (name, value): (String, String) = (text()?, text()?);
                self.parameters.retain(|(key, _)| *key != name);
                self.parameters.push((name, value));
            }
            b'K' => {
                let (process, key) = body.split_at_checked(4).ok_or_else(|| protocol("no key"))?;
                let word = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).ok();
                self.process = word(process).ok_or_else(|| protocol("no process"))?;
                self.key = word(key).ok_or_else(|| protocol("no key of four bytes"))?;
            }
            b'N' if self.notices.len() < NOTICES_MAX => {
                if let Error::Server { message, .. } = server_error(body) {
                    self.notices.push(message);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push_message(&mut self, kind: u8, body: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.out.extend_from_slice(body);
    }

    pub(super) fn send_message(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        self.push_message(kind, body);
        self.flush()
    }

    /// Sends a piece of a COPY without a copy of ours.
    pub(super) fn send_copy_data(&mut self, data: &[u8]) -> Result<(), Error> {
        self.out.push(b'd');
        self.out.extend_from_slice(&(data.len() as u32 + 4).to_be_bytes());
        self.flush()?;
        self.stream.write_all(data).map_err(sending)
    }

    pub(super) fn stream_readable(&mut self) -> bool {
        self.inbox.unread() > 0 || self.stream.readable()
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(|source| {
            self.broken = true;
            sending(source)
        })
    }
}

impl Drop for Connection {
    /// Says goodbye, so that the server does not log a lost client.
    fn drop(&mut self) {
        let _ = self.stream.write_all(&[b'X', 0, 0, 0, 4]);
    }
}

/// Stops what a connection is doing, from another thread.
#[derive(Clone, Debug)]
pub struct Canceller {
    login: Login,
    process: u32,
    key: u32,
}

impl Canceller {
    /// Asks the server to stop the statement in work, where there is one. Its connection then gets
    /// the error 57014.
    pub fn cancel(&self) -> Result<(), Error> {
        let mut stream = encrypted(Stream::connect(&self.login)?, &self.login)?;
        let mut message = Vec::with_capacity(16);
        for word in [16, 80_877_102, self.process, self.key] {
            message.extend_from_slice(&u32::to_be_bytes(word));
        }
        stream.write_all(&message).map_err(sending)?;
        stream.flush().map_err(sending)
    }
}

/// Encrypts a stream where the login asks for it (chapter 54.2.10): one byte answers whether the
/// server will.
fn encrypted(mut stream: Stream, login: &Login) -> Result<Stream, Error> {
    if matches!(login.address, Address::Unix(_)) || login.tls.mode == TlsMode::Disable {
        return Ok(stream);
    }
    let of_login = |error| of_login(error, login);
    let request = [8, SSL_REQUEST].map(u32::to_be_bytes).concat();
    stream.write_all(&request).map_err(|source| of_login(sending(source)))?;
    let mut answer = [0];
    let doing = "waiting for an answer to the request for TLS";
    let read = stream.read_exact(&mut answer);
    read.map_err(|source| of_login(Error::Broken { doing, source }))?;
    let refused = |why: &str| Error::Tls { address: login.address.clone(), why: why.to_owned() };
    match answer[0] {
        // Whoever is in the middle may have put something behind the S for us to believe later.
        b'S' if stream.readable() => Err(protocol("unencrypted data behind the agreement to TLS")),
        b'S' => stream.encrypt(login).map(|()| stream),
        b'N' if login.tls.mode == TlsMode::Prefer => Ok(stream),
        b'N' => Err(refused("the server offers none")),
        _ => Err(protocol("an answer to the request for TLS that is neither S nor N")),
    }
}

fn sending(source: std::io::Error) -> Error {
    Error::Broken { doing: "sending statements", source }
}

fn unexpected(kind: u8) -> Error {
    protocol(format!("message '{}' out of turn", kind.escape_ascii()))
}

/// The number at the end of a command tag: `INSERT 0 5`, `UPDATE 1`, `SELECT 3`.
#[inline]
fn rows_of_tag(tag: &[u8]) -> u64 {
    let digits = tag.strip_suffix(b"\0").unwrap_or(tag);
    let start = digits.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    digits[start..]
        .iter()
        .fold(0u64, |sum, &digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
