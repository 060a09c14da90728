//! Properties of the whole client over what a server may say: cut, changed and made up.
//!
//! The transcripts are built here from the protocol's description, not recorded.

use proptest::prelude::*;

use super::connection::Connection;
use super::fields::push_string;
use super::frame;
use super::{Statement, Type};
use crate::net::script::Script;
use crate::{Address, Error, Login, Tls, TlsMode};

fn login() -> Login {
    let address = Address::Tcp { host: "nowhere".to_owned(), port: 1 };
    let tls = Tls { mode: TlsMode::Disable, ..Tls::default() };
    Login { password: Some("secret".to_owned()), tls, ..Login::new(address, "root", "test") }
}

/// One packet.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let start = frame::begin(&mut output, sequence);
    output.extend_from_slice(payload);
    frame::end(&mut output, start);
    output
}

/// The greeting of a MariaDB with every capability that we ask for, and OK to our answer.
fn greeting() -> Vec<u8> {
    let mut hello = vec![10];
    hello.extend_from_slice(b"5.5.5-10.11.19-MariaDB\0");
    hello.extend_from_slice(&7u32.to_le_bytes());
    hello.extend_from_slice(b"12345678\0");
    hello.extend_from_slice(&0xfffe_u16.to_le_bytes());
    hello.push(45);
    hello.extend_from_slice(&2u16.to_le_bytes());
    hello.extend_from_slice(&0xffff_u16.to_le_bytes());
    hello.push(21);
    hello.extend_from_slice(&[0; 6]);
    hello.extend_from_slice(&0x1f_u32.to_le_bytes());
    hello.extend_from_slice(b"abcdefghijkl\0mysql_native_password\0");
    [packet(0, &hello), packet(2, &OK)].concat()
}

const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const MORE: [u8; 7] = [0, 3, 9, 10, 0, 0, 0];
const END: [u8; 7] = [0xfe, 0, 0, 2, 0, 0, 0];

fn definition(code: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["def", "db", "t", "t", "c", "c"] {
        push_string(&mut bytes, name.as_bytes());
    }
    bytes.extend_from_slice(&[12, 45, 0, 20, 0, 0, 0, code, 0, 0, 0, 0, 0]);
    bytes
}

/// Two results: an OK with three rows affected, then two rows of an INT and a VARCHAR.
fn answers() -> Vec<u8> {
    let row = |value: i32, text: Option<&str>| {
        let mut bytes = vec![0, if text.is_none() { 8 } else { 0 }];
        bytes.extend_from_slice(&value.to_le_bytes());
        if let Some(text) = text {
            push_string(&mut bytes, text.as_bytes());
        }
        bytes
    };
    [
        packet(1, &MORE),
        packet(2, &[2, 1]),
        packet(3, &definition(3)),
        packet(4, &definition(253)),
        packet(5, &row(-7, Some("seven"))),
        packet(6, &row(8, None)),
        packet(7, &END),
    ]
    .concat()
}

fn statement() -> Statement {
    Statement { id: 1, types: [Type::Int].into(), columns: Vec::new(), typed: false }
}

/// A number and a text that may be NULL.
type Rows = Vec<(i64, Option<Vec<u8>>)>;

/// Everything that a client asks for, over what a server says; what it read.
fn talk(said: Vec<u8>) -> Result<Rows, Error> {
    let mut connection = Connection::over(Script::new(said), &login())?;
    let (mut statement, mut rows) = (statement(), Vec::new());
    connection.queue(&mut statement).integer(5).finish();
    let done = connection.receive(&mut statement, &mut |row| {
        rows.push((row.integer()?, row.bytes_or_null()?.map(<[u8]>::to_vec)));
        Ok(())
    })?;
    assert!(done.results > 0 || rows.is_empty());
    Ok(rows)
}

#[test]
fn a_whole_answer_is_read() {
    let rows = talk([greeting(), answers()].concat()).unwrap();
    assert_eq!(rows, [(-7, Some(b"seven".to_vec())), (8, None)]);
}

#[test]
fn columns_that_the_server_does_not_repeat_are_remembered() {
    let again = [packet(1, &[2, 0]), packet(2, &[0, 8, 9, 0, 0, 0]), packet(3, &END)].concat();
    let said = [greeting(), answers(), again.clone()].concat();
    let mut connection = Connection::over(Script::new(said), &login()).unwrap();
    let mut statement = statement();
    let mut values = Vec::new();
    for _ in 0..2 {
        connection.queue(&mut statement).integer(5).finish();
        connection
            .receive(&mut statement, &mut |row| {
                values.push(row.integer()?);
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(values, [-7, 8, 9]);
    // Where they never came, nothing can be read.
    assert!(matches!(talk([greeting(), again].concat()), Err(Error::Protocol { .. })));
}

#[test]
fn an_error_of_the_reader_leaves_the_connection_in_step() {
    let said = [greeting(), answers(), packet(1, &OK)].concat();
    let mut connection = Connection::over(Script::new(said), &login()).unwrap();
    let mut statement = statement();
    connection.queue(&mut statement).integer(5).finish();
    let mut seen = 0;
    let error = connection.receive(&mut statement, &mut |row| {
        seen += 1;
        row.integer().and(row.integer()).map(drop)
    });
    assert!(matches!(error, Err(Error::Protocol { .. })));
    assert_eq!(seen, 1);
    connection.execute("COMMIT").unwrap();
}

/// Found by fuzzing: answers of a connection that broke stayed due, and what was begun next
/// panicked.
#[test]
fn a_connection_that_broke_refuses_what_is_begun_next() {
    let said = [greeting(), packet(1, &[0xff])].concat();
    let mut connection = Connection::over(Script::new(said), &login()).unwrap();
    connection.queue_text("UPDATE t SET a = 1");
    connection.queue_text("UPDATE t SET a = 2");
    assert!(matches!(connection.drain(), Err(Error::Protocol { .. })));
    let begun = connection.load_data("LOAD DATA LOCAL INFILE 'x'", &mut |_| Ok(false));
    assert!(matches!(begun, Err(Error::Broken { .. })), "{begun:?}");
    assert!(matches!(connection.prepare("SELECT 1", &[]), Err(Error::Broken { .. })));
}

/// A server that lies may count up to 2^64 and more.
#[test]
fn counts_that_overflow_are_the_largest() {
    let most = [&[0, 0xfe][..], &[0xff; 8], &[0, 10, 0, 0, 0]].concat();
    let said = [greeting(), packet(1, &most), packet(2, &MORE), packet(3, &OK)].concat();
    let mut connection = Connection::over(Script::new(said), &login()).unwrap();
    assert_eq!(connection.execute("UPDATE t").unwrap().affected, u64::MAX);
}

#[test]
fn a_refusal_has_its_number_state_and_text() {
    let refusal = packet(1, b"\xff\xbd\x04#40001Deadlock found");
    let error = talk([greeting(), refusal].concat()).unwrap_err();
    let Error::Server { sqlstate, code, message, .. } = &error else { panic!("{error}") };
    assert_eq!((sqlstate.as_str(), *code, message.as_str()), ("40001", 1213, "Deadlock found"));
    // Before the login there is no state.
    let error = talk(packet(0, b"\xff\x10\x04Too many connections")).unwrap_err();
    let Error::Server { sqlstate, code, .. } = &error else { panic!("{error}") };
    assert_eq!((sqlstate.as_str(), *code), ("HY000", 1040));
    // Nothing of it steers a terminal.
    let error = talk(packet(0, b"\xff\x10\x04\x1b[2JToo many\nconnections")).unwrap_err();
    assert_eq!(error.to_string(), "the server answers HY000:  [2JToo many connections");
}

#[test]
fn answers_that_never_end_do() {
    let endless = packet(1, &MORE).repeat(2000);
    assert!(matches!(talk([greeting(), endless].concat()), Err(Error::Protocol { .. })));
    let switch = packet(2, b"\xfemysql_native_password\0aaaaaaaaaaaaaaaaaaaa\0").repeat(100);
    let hello = greeting();
    let login = [&hello[..hello.len() - OK.len() - 4], &switch].concat();
    assert!(matches!(talk(login), Err(Error::Protocol { .. })));
}

#[test]
fn a_plugin_that_is_not_spoken_is_named() {
    let hello = greeting();
    let switch = packet(2, b"\xfesha256_password\0aaaa\0");
    let said = [&hello[..hello.len() - OK.len() - 4], &switch].concat();
    let error = talk(said).unwrap_err();
    assert!(
        matches!(&error, Error::Login { why, .. } if why.contains("sha256_password")),
        "{error}"
    );
}

proptest! {
    #[test]
    fn a_cut_answer_is_an_error(share in 0.0f64..1.0) {
        let said = [greeting(), answers()].concat();
        let len = (said.len() as f64 * share) as usize;
        prop_assert!(talk(said[..len].to_vec()).is_err());
    }

    #[test]
    fn a_changed_answer_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        extra in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut said = [greeting(), answers()].concat();
        for (at, byte) in changes {
            let at = at.index(said.len());
            said[at] = byte;
        }
        let at = cut.index(said.len());
        let _ = talk(said.clone());
        said.splice(at..at, extra);
        let _ = talk(said);
    }

    #[test]
    fn made_up_answers_are_read_or_refused(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
    ) {
        let packets: Vec<u8> =
            (1..).zip(&packets).flat_map(|(k, bytes)| packet(k, bytes)).collect();
        let _ = talk([greeting(), packets.clone()].concat());
        let _ = talk(packets);
    }
}
