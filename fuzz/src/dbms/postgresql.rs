//! A PostgreSQL server that may say anything: TLS, the login, rows, errors, COPY, pipelines.

use dbms::Error;
use dbms::postgresql::{Connection, Row, Statement, Step, binary};

use super::script::{NONCE, Script};
use super::{BY_MESSAGE, LONGEST_BYTES, check_error, login};

/// Logs in and does everything that a client does, over what the server says; how much of it went
/// well.
pub fn check(data: &[u8]) -> usize {
    let Some((&choice, said)) = data.split_first() else { return 0 };
    let said = &said[..said.len().min(LONGEST_BYTES)];
    let script = Script::new(said, (choice & BY_MESSAGE != 0).then_some(length));
    match Connection::over(script, &login(choice)) {
        Ok(connection) => talk(connection),
        Err(error) => {
            check_error(&error);
            0
        }
    }
}

/// The length of the message that these bytes begin.
fn length(bytes: &[u8]) -> Option<usize> {
    let len = bytes.get(1..5)?;
    Some(1 + u32::from_be_bytes(len.try_into().ok()?) as usize)
}

fn talk(mut connection: Connection) -> usize {
    for text in [connection.server_version(), connection.parameter("TimeZone").unwrap_or("")] {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    let mut outcomes = vec![connection.query("SELECT 1").map(drop)];
    match connection.prepare("SELECT $1", &[binary::oid::INT4]) {
        Ok(statement) => outcomes.push(pipeline(&mut connection, &statement)),
        Err(error) => outcomes.push(Err(error)),
    }
    outcomes.push(connection.settle().map(drop));
    outcomes.push(copy(&mut connection));
    outcomes.push(connection.execute("COMMIT"));
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        check_error(error);
    }
    for notice in connection.take_notices() {
        assert!(!notice.contains(char::is_control), "{notice:?}");
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

/// Two runs of a statement in one pipeline.
fn pipeline(connection: &mut Connection, statement: &Statement) -> Result<(), Error> {
    for _ in 0..2 {
        let mut bind = connection.bind(statement);
        for _ in 0..statement.parameters() {
            bind = bind.i32(5);
        }
        bind.run();
    }
    connection.round_trip()?;
    let mut done = 0;
    while done < 2 {
        match connection.step()? {
            Step::Row(row) => read_all_ways(row),
            Step::Done(_) => done += 1,
        }
    }
    connection.settle().map(drop)
}

fn read_all_ways(row: Row<'_>) {
    let _ = { row }.i16();
    let _ = { row }.u32();
    let _ = { row }.i64();
    let _ = { row }.bool();
    let _ = { row }.text();
    let _ = { row }.decimal(2);
    let _ = { row }.timestamp_ms();
    if let Ok(elements) = { row }.array() {
        for element in elements {
            if element.is_err() {
                break;
            }
        }
    }
    let mut row = row;
    while !row.is_empty() && row.nullable().is_ok() {}
}

fn copy(connection: &mut Connection) -> Result<(), Error> {
    let mut copy = connection.copy_in("COPY t FROM STDIN WITH (FORMAT binary)")?;
    copy.send(&[0, 1, 0, 0, 0, 1, b'x'])?;
    copy.finish().map(drop)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn ask(code: u8, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[&[0, 0, 0, code], rest].concat())
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// The end of a login.
fn welcome() -> Vec<u8> {
    [
        ask(0, b""),
        message(b'S', b"server_version\x0015.18 (Debian 15.18-0+deb12u1)\0"),
        message(b'S', b"TimeZone\0Etc/UTC\0"),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        ready(b'I'),
    ]
    .concat()
}

/// The answer to a text query.
fn rows() -> Vec<u8> {
    [
        message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0"),
        message(b'D', &[0, 1, 0, 0, 0, 1, b'1']),
        message(b'C', b"SELECT 1\0"),
        ready(b'I'),
    ]
    .concat()
}

/// The answers to everything behind a login.
fn answers() -> Vec<u8> {
    let prepare = [
        message(b'1', b""),
        message(b't', &[0, 1, 0, 0, 0, 23]),
        message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01"),
        ready(b'T'),
    ];
    let row = [0, 2, 0, 0, 0, 4, 0, 0, 0, 42, 255, 255, 255, 255];
    // 12345.67, then 1 and NULL in an array of integers.
    let decimal = [0, 1, 0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 2, 0, 1, 9, 41, 26, 44];
    let array = b"\0\x01\0\0\0\x20\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x02\0\0\0\x01\
                  \0\0\0\x04\0\0\0\x01\xff\xff\xff\xff";
    let run = [
        message(b'2', b""),
        message(b'D', &row),
        message(b'D', &decimal),
        message(b'D', array),
        message(b'C', b"SELECT 3\0"),
        message(b'N', b"SNOTICE\0C00000\0Mmind the gap\0\0"),
        message(b'2', b""),
        message(b'C', b"UPDATE 3\0"),
        ready(b'T'),
    ];
    let copied = [
        message(b'G', &[1, 0, 1, 0, 1]),
        message(b'C', b"COPY 1\0"),
        ready(b'T'),
        message(b'C', b"COMMIT\0"),
        ready(b'I'),
    ];
    [rows(), prepare.concat(), run.concat(), copied.concat()].concat()
}

/// Inputs to begin with: what a real server says, by kind of login.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (welcome, whole) = (welcome(), answers());
    let failed = message(
        b'E',
        b"SERROR\0C23505\0Mduplicate key\nvalue\0DKey (a)=(1) exists.\0Hdo not\0WSQL\0\0",
    );
    let after_error = [
        rows(),
        [failed.clone(), ready(b'E')].concat(),
        [failed.clone(), ready(b'E')].concat(),
        [message(b'C', b"ROLLBACK\0"), ready(b'I')].concat(),
    ];
    let scram = [
        ask(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
        ask(11, &[b"r=", &NONCE[..], b"x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2"].concat()),
        ask(12, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
        ask(0, b""),
    ];
    let with = |choice: u8, said: &[&[u8]]| [&[choice], said.concat().as_slice()].concat();
    vec![
        ("plain", with(BY_MESSAGE, &[&welcome, &whole])),
        ("at-once", with(1, &[&welcome, &whole])),
        ("after-error", with(BY_MESSAGE | 4, &[&welcome, &after_error.concat()])),
        ("cleartext", with(0, &[&ask(3, b""), &welcome, &whole])),
        ("md5", with(1, &[&ask(5, b"salt"), &welcome, &whole])),
        ("scram", with(1, &[&scram.concat()])),
        ("refused", with(4, &[&message(b'E', b"SFATAL\0C28P01\0Mno such user\0\0")])),
        ("no-tls", with(2, &[b"N", &welcome, &whole])),
        ("tls-alert", with(3, &[b"S\x15\x03\x03\0\x02\x02\x28"])),
    ]
}
