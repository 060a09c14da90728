//! Authentication of the client, and of the server: SCRAM-SHA-256 and MD5 passwords
//! (PostgreSQL 17 manual, chapter 54.3; RFC 5802 and RFC 7677), by `postgres-protocol`.
//!
//! A conversation has one method. Once SCRAM has begun, the server must end it with its own proof
//! before it may say "ok": one that does not know the password cannot skip that. Pure: messages of
//! the server come in, ours go out. Tested with servers that lie and on real ones.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::inbox::protocol;
use crate::{Error, Login};

/// Most iterations that a server may ask for: 4096 is its default; more than this is no login but
/// a way to keep a client busy.
const ITERATIONS_MAX: u32 = 1 << 20;

/// What the server wants next.
pub(super) enum Reply {
    /// Nothing: we are in.
    Done,
    /// Nothing as yet.
    Listen,
    /// This, as the body of a password message.
    Send(Vec<u8>),
}

/// A login under way.
pub(super) struct Authentication<'a> {
    login: &'a Login,
    /// Whether the password may be sent as it is.
    private: bool,
    method: Method,
}

/// The method that the server chose.
enum Method {
    /// None as yet.
    Open,
    /// A password in one message; the server proves nothing.
    Password,
    /// SCRAM, without its end.
    Scram(Box<ScramSha256>),
    /// SCRAM, and the server has proved that it knows the password too.
    Proved,
}

impl<'a> Authentication<'a> {
    /// A login over a stream that is private, or is not.
    pub fn new(login: &'a Login, private: bool) -> Self {
        Self { login, private, method: Method::Open }
    }

    fn refused(&self, why: impl Into<String>) -> Error {
        Error::Login { user: self.login.user.clone(), why: why.into() }
    }

    fn password(&self) -> Result<&'a str, Error> {
        let password = self.login.password.as_deref();
        password.ok_or_else(|| self.refused("the server asks for a password"))
    }

    /// Answers the body of an authentication message.
    pub fn answer(&mut self, body: &[u8]) -> Result<Reply, Error> {
        let (code, rest) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| protocol("an empty authentication request"))?;
        match u32::from_be_bytes(*code) {
            0 => self.end(),
            3 => {
                self.begin()?;
                let password = self.password()?;
                if !self.private {
                    return Err(self.login.cleartext());
                }
                Ok(Reply::Send(zero_ended(password.as_bytes())))
            }
            5 => {
                self.begin()?;
                let salt = rest.try_into().map_err(|_| protocol("no salt of four bytes"))?;
                let user = self.login.user.as_bytes();
                let hash = md5_hash(user, self.password()?.as_bytes(), salt);
                Ok(Reply::Send(zero_ended(hash.as_bytes())))
            }
            10 => self.begin_scram(rest),
            11 => self.go_on(rest),
            12 => {
                let Method::Scram(scram) = &mut self.method else {
                    return Err(protocol("the end of a SCRAM exchange that did not begin"));
                };
                if scram.finish(rest).is_err() {
                    return Err(self.refused("the server does not know the password"));
                }
                self.method = Method::Proved;
                Ok(Reply::Listen)
            }
            other => Err(self.refused(format!(
                "the server asks for authentication method {other}, which is not supported"
            ))),
        }
    }

    /// The server says that we are in.
    fn end(&self) -> Result<Reply, Error> {
        match self.method {
            Method::Scram(_) => {
                let why = "the server ended SCRAM without proving that it knows the password";
                Err(self.refused(why))
            }
            Method::Open | Method::Password | Method::Proved => Ok(Reply::Done),
        }
    }

    /// Takes a method, the first and only one.
    fn begin(&mut self) -> Result<(), Error> {
        if !matches!(self.method, Method::Open) {
            return Err(protocol("a second authentication method in one login"));
        }
        self.method = Method::Password;
        Ok(())
    }

    fn begin_scram(&mut self, methods: &[u8]) -> Result<Reply, Error> {
        self.begin()?;
        if !methods.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
            return Err(self.refused("the server knows no SASL method but unsupported ones"));
        }
        let password = self.password()?.as_bytes();
        let scram = ScramSha256::new(password, ChannelBinding::unsupported());
        let mut answer = zero_ended(SCRAM_SHA_256.as_bytes());
        answer.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
        answer.extend_from_slice(scram.message());
        self.method = Method::Scram(Box::new(scram));
        Ok(Reply::Send(answer))
    }

    fn go_on(&mut self, server_first: &[u8]) -> Result<Reply, Error> {
        let user = || self.login.user.clone();
        let Method::Scram(scram) = &mut self.method else {
            return Err(protocol("a SCRAM message that is not its turn"));
        };
        let text = String::from_utf8_lossy(server_first);
        let iterations = text.split(',').find_map(|part| part.strip_prefix("i="));
        let count = iterations.and_then(|count| count.parse::<u32>().ok());
        if count.is_some_and(|count| count > ITERATIONS_MAX) {
            let why = "the server asks for too many SCRAM iterations".to_owned();
            return Err(Error::Login { user: user(), why });
        }
        scram.update(server_first).map_err(|error| Error::Login {
            user: user(),
            why: format!(
                "the server's SCRAM message is not valid: {}",
                events::one_line(&error.to_string())
            ),
        })?;
        Ok(Reply::Send(scram.message().to_vec()))
    }
}

fn zero_ended(text: &[u8]) -> Vec<u8> {
    [text, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    fn login() -> Login {
        let address = Address::Unix("/nowhere".into());
        Login { password: Some("pencil".to_owned()), ..Login::new(address, "u", "d") }
    }

    fn request(code: u8, rest: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, code], rest].concat()
    }

    /// Begins SCRAM; our nonce.
    fn begun(authentication: &mut Authentication<'_>) -> String {
        let methods = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let Ok(Reply::Send(first)) = authentication.answer(&request(10, methods)) else {
            panic!("no first message")
        };
        let first = String::from_utf8_lossy(&first).into_owned();
        first.split_once("r=").unwrap().1.to_owned()
    }

    fn error(outcome: Result<Reply, Error>) -> String {
        outcome.err().expect("an error").to_string()
    }

    #[test]
    fn scram_ends_only_with_the_servers_proof() {
        let login = login();
        for after_the_second_message in [false, true] {
            let mut authentication = Authentication::new(&login, true);
            let nonce = begun(&mut authentication);
            if after_the_second_message {
                let first = format!("r={nonce}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
                authentication.answer(&request(11, first.as_bytes())).ok().unwrap();
                let lie = error(authentication.answer(&request(12, b"v=AAAA")));
                assert!(lie.contains("does not know the password"), "{lie}");
            }
            let skipped = error(authentication.answer(&request(0, b"")));
            assert!(skipped.contains("without proving"), "{skipped}");
            // Nor may it ask for something weaker then.
            for code in [3, 5, 10] {
                let weaker = error(authentication.answer(&request(code, b"abcd")));
                assert!(weaker.contains("second authentication method"), "{weaker}");
            }
        }
    }

    #[test]
    fn a_password_is_not_sent_where_others_can_read_it() {
        let login = login();
        let asked = |private| Authentication::new(&login, private).answer(&request(3, b""));
        assert!(matches!(asked(true), Ok(Reply::Send(sent)) if sent == b"pencil\0"));
        let refused = error(asked(false));
        assert!(refused.contains("unencrypted"), "{refused}");
    }

    #[test]
    fn messages_that_continue_nothing_are_refused() {
        let login = login();
        let too_many = "i=99999999";
        for bad in ["", "r=abc,s=AAAA,i=1", "NONCE,s=AAAA", "NONCEx,s=!,i=1", too_many] {
            let mut authentication = Authentication::new(&login, true);
            let nonce = begun(&mut authentication);
            let message = bad.replace("NONCE", &format!("r={nonce}"));
            let message = message.replace(too_many, &format!("r={nonce}x,s=AAAA,i=99999999"));
            error(authentication.answer(&request(11, message.as_bytes())));
        }
        for (code, rest) in [(11, &b"r=x"[..]), (12, b"v=AAAA"), (7, b""), (10, b"OTHER\0\0")] {
            error(Authentication::new(&login, true).answer(&request(code, rest)));
        }
        error(Authentication::new(&login, true).answer(b"abc"));
    }
}
