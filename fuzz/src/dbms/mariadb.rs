//! A MariaDB or MySQL server that may say anything: the greeting, switches of the login's plugin,
//! OK and ERR, result sets, requests for a local file.

use dbms::Error;
use dbms::mariadb::{Connection, Done, Row, Type};

use super::script::Script;
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

/// The length of the packet that these bytes begin.
fn length(bytes: &[u8]) -> Option<usize> {
    let [a, b, c] = *bytes.first_chunk::<3>()?;
    Some(4 + u32::from_le_bytes([a, b, c, 0]) as usize)
}

fn talk(mut connection: Connection) -> usize {
    assert!(!connection.version().contains(char::is_control), "{:?}", connection.version());
    let mut seen = 0;
    let mut outcomes = vec![connection.query("SELECT 1", &mut |row| {
        seen += 1;
        read(row, seen)
    })];
    outcomes.push(prepared(&mut connection));
    let mut pieces = 0;
    outcomes.push(connection.load_data("LOAD DATA LOCAL INFILE 'x'", &mut |piece| {
        piece.extend_from_slice(b"1\tone\n");
        pieces += 1;
        Ok(pieces < 3)
    }));
    outcomes.push(connection.get("SELECT COUNT(*)").map(|_| Done::default()));
    outcomes.push(connection.ping().map(|()| Done::default()));
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        check_error(error);
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

/// Runs of a statement, alone, in a pipeline and in bulk.
fn prepared(connection: &mut Connection) -> Result<Done, Error> {
    let mut statement = connection.prepare("SELECT ?", &[Type::Int])?;
    let mut seen = 0;
    for _ in 0..2 {
        connection.queue(&mut statement).integer(5).finish();
    }
    if connection.has_bulk() {
        connection.queue_bulk(&statement).integer(5).integer(6).finish();
    }
    connection.exchange()?;
    let done = connection.receive(&mut statement, &mut |row| {
        seen += 1;
        read(row, seen)
    });
    if let Err(error) = &done {
        check_error(error);
    }
    connection.drain()?;
    connection.close(&statement)?;
    done
}

/// Reads the columns of a row, each as something else than in the row before; gives up at the
/// fifth.
fn read(row: &mut Row<'_>, seen: usize) -> Result<(), Error> {
    for column in 0..row.columns() {
        let read = match (seen + column) % 6 {
            0 => row.bytes_or_null().map(drop),
            1 => row.integer_or_null().map(drop),
            2 => row.scaled_or_null(2).map(drop),
            3 => row.number().map(drop),
            4 => row.string().map(drop),
            _ => row.skip(),
        };
        match read {
            Err(error) if seen == 5 => return Err(error),
            Err(error) => check_error(&error),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// A greeting with these capabilities, in the words of both halves and of MariaDB.
fn greeting(version: &[u8], low: u16, high: u16, extended: u32, plugin: &[u8]) -> Vec<u8> {
    let mut hello = vec![10];
    hello.extend_from_slice(version);
    hello.extend_from_slice(b"\0\x07\0\0\0abcdefgh\0");
    hello.extend_from_slice(&low.to_le_bytes());
    hello.extend_from_slice(&[45, 2, 0]);
    hello.extend_from_slice(&high.to_le_bytes());
    hello.extend_from_slice(&[21, 0, 0, 0, 0, 0, 0]);
    hello.extend_from_slice(&extended.to_le_bytes());
    hello.extend_from_slice(b"abcdefghijkl\0");
    hello.extend_from_slice(plugin);
    hello.push(0);
    packet(0, &hello)
}

fn definition(code: u8) -> Vec<u8> {
    let names = b"\x03def\x02db\x01t\x01t\x01c\x01c";
    [&names[..], &[12, 45, 0, 20, 0, 0, 0, code, 0, 0, 0, 0, 0]].concat()
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];

/// Rows of an integer and a text.
fn rows(binary: bool) -> Vec<u8> {
    let (first, second) = if binary {
        (&b"\0\0\xf9\xff\xff\xff\x05seven"[..], &b"\0\x08\x08\0\0\0"[..])
    } else {
        (&b"\x02-7\x05seven"[..], &b"\x018\xfb"[..])
    };
    let parts: [&[u8]; 6] = [&[2, 1], &definition(3), &definition(253), first, second, END];
    (1..).zip(parts).flat_map(|(sequence, part)| packet(sequence, part)).collect()
}

/// Inputs to begin with: what real servers say, by kind of login.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let native = b"mysql_native_password";
    let mariadb = greeting(b"5.5.5-10.11.19-MariaDB", 0xfffe, 0xffff, 0x1f, native);
    // Without MariaDB's own capabilities, and with the old end of rows.
    let mysql = greeting(b"8.4.3", 0xffff, 0x00ff, 0, b"caching_sha2_password");
    let welcome = packet(2, OK);
    let refusal = b"\xff\xbd\x04#40001Deadlock found;\ntry again";
    let described = [&[0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0][..]].concat();
    let prepared = [
        packet(1, &described),
        packet(2, &definition(3)),
        packet(3, &definition(3)),
        packet(4, &definition(253)),
    ];
    let run = [rows(true), packet(1, refusal), packet(1, &[0, 2, 9, 2, 0, 0, 0])];
    let loaded = [packet(1, b"\xfbx"), packet(5, OK)];
    let count =
        [packet(1, &[1, 1]), packet(2, &definition(8)), packet(3, b"\x0242"), packet(4, END)];
    let rest = [prepared.concat(), run.concat(), loaded.concat(), count.concat(), packet(1, OK)];
    let whole = [rows(false), rest.concat()].concat();
    let more = [packet(1, &[0, 3, 9, 10, 0, 0, 0]), rows(false), packet(1, refusal)].concat();
    let unasked_file = [packet(1, b"\xfb/etc/passwd"), packet(3, OK)].concat();
    let switch = packet(2, b"\xfemysql_native_password\0abcdefghabcdefghijkl\0");
    let ed25519 = packet(2, b"\xfeclient_ed25519\0abcdefghijklmnopqrstuvwxyz012345");
    let clear = packet(2, b"\xfemysql_clear_password\0");
    let cached = [packet(2, &[1, 3]), packet(3, OK)].concat();
    let full = [packet(2, &[1, 4]), packet(4, OK)].concat();
    let with = |choice: u8, said: &[&[u8]]| [&[choice], said.concat().as_slice()].concat();
    vec![
        ("plain", with(BY_MESSAGE, &[&mariadb, &welcome, &whole])),
        ("at-once", with(1, &[&mariadb, &welcome, &whole])),
        ("several-results", with(8, &[&mariadb, &welcome, &more])),
        ("file-not-offered", with(0, &[&mariadb, &welcome, &unasked_file])),
        ("switch", with(0, &[&mariadb, &switch, &welcome, &whole])),
        ("ed25519", with(1, &[&mariadb, &ed25519, &welcome, &whole])),
        ("cleartext", with(0, &[&mariadb, &clear, &welcome, &whole])),
        ("cached", with(0, &[&mysql, &cached, &whole])),
        ("not-cached", with(0, &[&mysql, &full, &whole])),
        ("refused", with(1, &[&packet(0, b"\xff\x10\x04Too many connections")])),
        ("tls-alert", with(3, &[&mysql, b"\x15\x03\x03\0\x02\x02\x28"])),
    ]
}
