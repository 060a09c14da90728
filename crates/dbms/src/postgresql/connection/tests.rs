//! Conversations with a server that is a list of bytes.

use proptest::prelude::*;

use super::*;
use crate::net::script::Script;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as i32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn connection(answers: Vec<u8>) -> Connection {
    Connection::on(Stream::Other(Box::new(Script::new(answers))), &login(None))
}

fn login(password: Option<&str>) -> Login {
    let address = Address::Unix("/nowhere".into());
    Login { password: password.map(str::to_owned), ..Login::new(address, "u", "d") }
}

fn start(answers: Vec<u8>, password: Option<&str>) -> Result<Connection, Error> {
    let mut connection = connection(answers);
    connection.start(&login(password)).map(|()| connection)
}

fn good_start() -> Vec<u8> {
    [
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        ready(b'I'),
    ]
    .concat()
}

/// A pipeline of two statements: a row and its end, an update of three rows.
fn good_pipeline() -> Vec<u8> {
    [
        message(b'2', &[]),
        message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 42]),
        message(b'C', b"SELECT 1\0"),
        message(b'N', b"SNOTICE\0Mmind\0\0"),
        message(b'2', &[]),
        message(b'C', b"UPDATE 3\0"),
        ready(b'T'),
    ]
    .concat()
}

/// Sends a pipeline of two and reads it as a driver does.
fn converse(connection: &mut Connection) -> Result<(i32, u64), Error> {
    let statement = Statement::new("s1", 1, 1);
    connection.bind(&statement).i32(5).run();
    connection.bind(&statement).null().run();
    connection.sync()?;
    let value = connection.first(|mut row| row.i32())?.ok_or_else(|| protocol("no row"))?;
    let rows = connection.done()?;
    connection.settle()?;
    Ok((value, rows))
}

#[test]
fn a_login_keeps_what_the_server_says() {
    let script = Script::new(good_start());
    let sent = script.sent();
    let connection = Connection::over(script, &login(None)).unwrap();
    assert_eq!((connection.server_version(), connection.process()), ("15.1", 7));
    let sent = sent.lock().unwrap();
    assert!(sent.starts_with(&[0, 0, 0, sent.len() as u8, 0, 3, 0, 0]));
    assert!(sent.windows(7).any(|part| part == b"user\0u\0"));
}

#[test]
fn logins_that_cannot_be_say_why() {
    let asked = |code: u8, rest: &[u8]| message(b'R', &[&[0, 0, 0, code], rest].concat());
    for (answers, expected) in [
        (asked(3, b""), "asks for a password"),
        (asked(7, b""), "method 7"),
        (asked(10, b"OTHER\0\0"), "no SASL method"),
        (asked(11, b"r=x"), "not its turn"),
        (message(b'E', b"C28P01\0Mno such user\0\0"), "no such user"),
        (message(b'Q', b""), "no authentication request"),
    ] {
        let error = start(answers, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let wrong = [asked(10, b"SCRAM-SHA-256\0\0"), asked(11, b"r=evil,s=AAAA,i=1")].concat();
    let error = start(wrong, Some("x")).unwrap_err().to_string();
    assert!(error.contains("nonce"), "{error}");
}

#[test]
fn a_pipeline_is_one_write_and_is_read_in_order() {
    let script = Script::new(good_pipeline());
    let sent = script.sent();
    let mut connection = Connection::on(Stream::Other(Box::new(script)), &login(None));
    assert_eq!(converse(&mut connection).unwrap(), (42, 3));
    assert_eq!(connection.status(), Status::Open);
    assert_eq!(connection.take_notices(), ["mind"]);
    let bind = |value: &[u8]| {
        message(b'B', &[&b"\0s1\0\0\x01\0\x01\0\x01"[..], value, &[0, 1, 0, 1]].concat())
    };
    let execute = message(b'E', &[0, 0, 0, 0, 0]);
    let expected = [
        bind(&[0, 0, 0, 4, 0, 0, 0, 5]),
        execute.clone(),
        bind(&[255, 255, 255, 255]),
        execute,
        message(b'S', &[]),
    ];
    assert_eq!(*sent.lock().unwrap(), expected.concat());
}

/// An error in the middle: what follows up to ReadyForQuery is read, and the connection goes on.
#[test]
fn after_an_error_the_connection_goes_on() {
    let failed = [
        message(b'2', &[]),
        message(b'E', b"SERROR\0C40P01\0Mdeadlock\0\0"),
        ready(b'E'),
        good_pipeline(),
    ];
    let mut connection = connection(failed.concat());
    let error = converse(&mut connection).unwrap_err();
    assert_eq!(error.sqlstate(), Some("40P01"));
    assert_eq!(connection.status(), Status::Failed);
    assert_eq!(converse(&mut connection).unwrap(), (42, 3));
}

/// A row that is not as expected ends the reading; `settle` then reads the rest.
#[test]
fn settling_makes_the_connection_ready_again() {
    let mut connection = connection([good_pipeline(), good_pipeline()].concat());
    let statement = Statement::new("s1", 0, 1);
    connection.bind(&statement).run();
    connection.sync().unwrap();
    connection.first(|mut row| row.i64()).unwrap_err();
    assert_eq!(connection.settle().unwrap(), Status::Open);
    assert_eq!(converse(&mut connection).unwrap(), (42, 3));
}

/// What a server says out of turn must not make the next statement a broken invariant of ours.
#[test]
fn after_an_answer_out_of_turn_nothing_more_is_begun() {
    for bad in [message(b'G', &[0]), message(b'K', &[1]), message(b'D', &[9]), message(b'?', &[])] {
        let mut connection = connection([bad, ready(b'I')].concat());
        assert!(matches!(connection.query("SELECT 1"), Err(Error::Protocol { .. })));
        assert!(matches!(connection.query("SELECT 1"), Err(Error::Broken { .. })));
        assert!(matches!(connection.prepare("SELECT 1", &[]), Err(Error::Broken { .. })));
        assert!(connection.copy_in("COPY t FROM STDIN").is_err());
    }
}

#[test]
fn what_a_server_says_is_one_line() {
    let refusal = b"C28P01\0M\x1b[2Jno such\nuser\0Dline\nline\0\0";
    let error = start(message(b'E', refusal), None).unwrap_err();
    assert_eq!(error.to_string(), "the server answers 28P01:  [2Jno such user");
    assert_eq!(events::Hint::hint(&error).as_deref(), Some("line line"));
}

#[test]
fn tags_count_rows() {
    for (tag, rows) in
        [("INSERT 0 5\0", 5), ("UPDATE 12\0", 12), ("COPY 7", 7), ("BEGIN\0", 0), ("", 0)]
    {
        assert_eq!(rows_of_tag(tag.as_bytes()), rows, "{tag:?}");
    }
}

#[test]
#[should_panic(expected = "fewer parameters")]
fn a_missing_parameter_is_a_broken_invariant() {
    connection(Vec::new()).bind(&Statement::new("s", 2, 0)).i32(1).run();
}

proptest! {
    #[test]
    fn a_cut_conversation_ends_in_an_error(cut in 0usize..200) {
        let whole = good_pipeline();
        let cut = cut % whole.len();
        prop_assert!(converse(&mut connection(whole[..cut].to_vec())).is_err());
        let whole = good_start();
        let cut = cut % whole.len();
        prop_assert!(start(whole[..cut].to_vec(), None).is_err());
    }

    #[test]
    fn a_changed_conversation_never_panics(
        at in 0usize..200, byte in any::<u8>(),
        random in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for whole in [good_pipeline(), random] {
            let mut changed = whole;
            if !changed.is_empty() {
                let at = at % changed.len();
                changed[at] = byte;
            }
            let mut one = connection(changed.clone());
            if converse(&mut one).is_err() {
                let _ = one.settle();
            }
            let _ = connection(changed.clone()).query("SELECT 1");
            let _ = connection(changed.clone()).prepare("SELECT 1", &[]);
            if let Ok(mut copy) = connection(changed.clone()).copy_in("COPY t FROM STDIN") {
                let _ = copy.send(b"x");
                let _ = copy.finish();
            }
            let _ = start(changed, Some("p"));
        }
    }
}
