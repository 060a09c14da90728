//! The wire protocol against a server.

#[path = "../it/authority.rs"]
mod authority;
mod server;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use dbms::postgresql::binary::{self, oid};
use dbms::postgresql::{Connection, Status, Step};
use dbms::{Address, Error, Login, Tls, TlsMode};
use server::server;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what this thread allocates.
struct Counting;

// SAFETY: everything is passed on to the system's allocator; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn values_of_every_type_go_there_and_back() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    assert!(connection.server_version().split('.').next().unwrap().parse::<u32>().unwrap() >= 13);
    let sql = "SELECT $1 + 1, $2 + 1, $3 || '!', $4 * 2, $5 + interval '1 s', $6, \
               array_append($7, 9), $8 || 'end'::text, $1::smallint, true, null::integer";
    let types = [
        oid::INT4,
        oid::INT8,
        oid::TEXT,
        oid::NUMERIC,
        oid::TIMESTAMP,
        oid::NUMERIC,
        oid::INT4_ARRAY,
        oid::TEXT_ARRAY,
    ];
    let statement = connection.prepare(sql, &types).unwrap();
    assert_eq!((statement.parameters(), statement.columns()), (8, 11));
    for decimal in [0, 1, -1, 99, 100, 12_345, -1_000_000, 999_999_999_999, 10_000, 50_000_000] {
        connection
            .bind(&statement)
            .i32(41)
            .i64(1 << 40)
            .text("grüß")
            .decimal(decimal, 2)
            .timestamp_ms(1_800_000_000_123)
            .null()
            .i32s([7, 8].into_iter())
            .array(oid::TEXT, ["a", ""].iter(), |out, text| {
                binary::push_bytes(out, text.as_bytes());
            })
            .run();
        connection.sync().unwrap();
        let rows = connection
            .each(|mut row| -> Result<(), Error> {
                assert_eq!((row.i32()?, row.i64()?), (42, (1 << 40) + 1));
                assert_eq!((row.text()?, row.decimal(2)?), ("grüß!", decimal * 2));
                assert_eq!(row.timestamp_ms()?, 1_800_000_001_123);
                assert_eq!(row.nullable()?, None);
                let array: Vec<_> = row.array()?.map(|value| value.unwrap().unwrap()[3]).collect();
                assert_eq!(array, [7, 8, 9]);
                assert_eq!(row.array()?.len(), 3);
                assert_eq!((row.i16()?, row.bool()?, row.nullable()?), (41, true, None));
                Ok(())
            })
            .unwrap();
        assert_eq!((rows, connection.settle().unwrap()), (1, Status::Idle));
    }
}

#[test]
fn every_password_method_logs_in_and_a_wrong_password_does_not() {
    let Some(server) = server() else { return };
    let mut admin = server.connect();
    admin
        .execute(
            "SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'geheim'; \
             SET password_encryption = 'scram-sha-256'; \
             CREATE ROLE scram LOGIN PASSWORD 'ge=heim,'; CREATE ROLE clear LOGIN PASSWORD 'p w'",
        )
        .unwrap();
    for (user, password) in [("md5", "geheim"), ("scram", "ge=heim,"), ("clear", "p w")] {
        let login = |password: Option<&str>| Login {
            user: user.to_owned(),
            password: password.map(str::to_owned),
            ..server.login()
        };
        let mut connection = Connection::connect(&login(Some(password))).unwrap();
        let rows = connection.query("SELECT current_user").unwrap();
        assert_eq!(rows, [[Some(user.to_owned())]]);
        let error = Connection::connect(&login(Some("wrong"))).unwrap_err();
        assert_eq!(error.sqlstate(), Some("28P01"), "{error}");
        let error = Connection::connect(&login(None)).unwrap_err();
        assert!(matches!(error, Error::Login { .. }), "{error}");
    }
    let nowhere = Login { database: "nowhere".to_owned(), ..server.login() };
    assert_eq!(Connection::connect(&nowhere).unwrap_err().sqlstate(), Some("3D000"));
}

#[test]
fn simple_queries_answer_in_text() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    let rows = connection.query("SELECT 1, NULL, 'x' WHERE true; SELECT 2.50").unwrap();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows, [vec![text("1"), None, text("x")], vec![text("2.50")]]);
    let error = connection.query("SELECT 1; SELEC").unwrap_err();
    assert_eq!(error.sqlstate(), Some("42601"));
    let copy = connection.query("COPY (SELECT 1) TO STDOUT").unwrap_err();
    assert!(matches!(copy, Error::Protocol { .. }), "{copy}");
    let mut connection = server.connect();
    connection.execute("DO $$ BEGIN RAISE NOTICE 'mind the gap'; END $$").unwrap();
    assert_eq!(connection.take_notices(), ["mind the gap"]);
    assert!(connection.query("").unwrap().is_empty());
}

/// A pipeline is one transaction; its error undoes it, and the connection goes on.
#[test]
fn a_pipeline_fails_as_a_whole() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection.execute("CREATE TEMP TABLE t (a integer PRIMARY KEY)").unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES ($1)", &[]).unwrap();
    let count = connection.prepare("SELECT count(*) FROM t", &[]).unwrap();
    for value in [1, 2, 1, 3] {
        connection.bind(&insert).i32(value).run();
    }
    connection.sync().unwrap();
    assert_eq!(connection.done().unwrap(), 1);
    assert_eq!(connection.done().unwrap(), 1);
    assert_eq!(connection.done().unwrap_err().sqlstate(), Some("23505"));
    assert_eq!(connection.status(), Status::Idle);
    connection.bind(&count).run();
    connection.sync().unwrap();
    assert_eq!(connection.first(|mut row| row.i64()).unwrap(), Some(0));
    assert_eq!(connection.settle().unwrap(), Status::Idle);
    // In a transaction that is open the failure stays until ROLLBACK.
    connection.execute("BEGIN").unwrap();
    connection.bind(&insert).i32(1).run();
    connection.bind(&insert).i32(1).run();
    connection.sync().unwrap();
    assert!(connection.settle().is_err());
    assert_eq!(connection.status(), Status::Failed);
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(connection.status(), Status::Idle);
}

#[test]
fn nothing_is_allocated_once_warm() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    let sql = "SELECT g, 'text ' || g, g::numeric FROM generate_series(1, $1) g";
    let statement = connection.prepare(sql, &[oid::INT4]).unwrap();
    let run = |connection: &mut Connection| {
        for _ in 0..10 {
            connection.bind(&statement).i32(200).run();
        }
        connection.sync().unwrap();
        let mut sum = 0;
        for _ in 0..10 {
            loop {
                match connection.step().unwrap() {
                    Step::Row(mut row) => {
                        sum += i64::from(row.i32().unwrap());
                        sum += row.text().unwrap().len() as i64;
                        sum += row.decimal(2).unwrap();
                    }
                    Step::Done(rows) => {
                        assert_eq!(rows, 200);
                        break;
                    }
                }
            }
        }
        connection.settle().unwrap();
        sum
    };
    let warm = run(&mut connection);
    let before = ALLOCATIONS.get();
    for _ in 0..20 {
        assert_eq!(run(&mut connection), warm);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn copy_stores_rows_and_errors_undo_it() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection.execute("CREATE TEMP TABLE t (a integer CHECK (a < 1000000), b text)").unwrap();
    let sql = "COPY t FROM STDIN WITH (FORMAT binary)";
    let rows = |from: i32, count: i32| {
        let mut rows = Vec::new();
        for key in from..from + count {
            rows.extend_from_slice(&2i16.to_be_bytes());
            binary::push_i32(&mut rows, key);
            binary::push_bytes(&mut rows, b"some text");
        }
        rows
    };
    let stored = |connection: &mut Connection| {
        connection.query("SELECT count(*) FROM t").unwrap()[0][0].clone().unwrap()
    };
    let mut copy = connection.copy_in(sql).unwrap();
    for piece in rows(0, 100_000).chunks(70_001) {
        copy.send(piece).unwrap();
    }
    assert_eq!(copy.finish().unwrap(), 100_000);
    assert_eq!(stored(&mut connection), "100000");

    let mut copy = connection.copy_in(sql).unwrap();
    copy.send(&rows(0, 10)).unwrap();
    drop(copy);
    assert_eq!(stored(&mut connection), "100000");

    // The server refuses a row early; the client learns it while it still sends.
    let mut copy = connection.copy_in(sql).unwrap();
    let bad = rows(1_000_000, 5000);
    let until = Instant::now() + Duration::from_secs(20);
    let error = loop {
        if let Err(error) = copy.send(&bad) {
            break error;
        }
        assert!(Instant::now() < until, "the error never came");
    };
    drop(copy);
    assert_eq!(error.sqlstate(), Some("23514"), "{error}");
    assert_eq!(stored(&mut connection), "100000");
    let refused = |connection: &mut Connection, sql: &str| connection.copy_in(sql).err().unwrap();
    assert!(refused(&mut connection, "SELECT 1").to_string().contains("no COPY"));
    let error = refused(&mut connection, "COPY nowhere FROM STDIN");
    assert_eq!(error.sqlstate(), Some("42P01"));
    assert_eq!(stored(&mut connection), "100000");
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    let canceller = connection.canceller();
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        // The request counts only once the statement runs, so it is repeated.
        while waiting.recv_timeout(Duration::from_millis(50)).is_err() {
            canceller.cancel().unwrap();
        }
    });
    let error = connection.query("SELECT pg_sleep(60)").unwrap_err();
    drop(done);
    assert_eq!(error.sqlstate(), Some("57014"));
    let _ = other;
}

#[test]
fn a_killed_backend_is_a_broken_connection() {
    let Some(server) = server() else { return };
    let (mut admin, mut victim) = (server.connect(), server.connect());
    let kill = format!("SELECT pg_terminate_backend({}, 5000)", victim.process());
    assert_eq!(admin.query(&kill).unwrap(), [[Some("t".to_owned())]]);
    let error = victim.query("SELECT 1").unwrap_err();
    let told = error.sqlstate() == Some("57P01") || matches!(error, Error::Broken { .. });
    assert!(told, "{error}");
    assert!(matches!(victim.query("SELECT 1").unwrap_err(), Error::Broken { .. }));
}

/// By TCP as by the socket file: the same answers, SCRAM, COPY, cancelling.
#[test]
fn tcp_does_what_a_unix_socket_does() {
    let Some(server) = server() else { return };
    for mode in [TlsMode::Disable, TlsMode::Require] {
        let tls = Tls { mode, ..Tls::default() };
        let login = Login { tls, ..server.tcp_login() };
        let connection = Connection::connect(&login).unwrap();
        assert_eq!(connection.is_encrypted(), mode == TlsMode::Require);
        talk_by_tcp(connection);
    }
    // A port without a server is an error with its address.
    let mut nobody = server.tcp_login();
    nobody.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
    let error = Connection::connect(&nobody).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

fn talk_by_tcp(mut connection: Connection) {
    let statement = connection.prepare("SELECT $1::integer * 2, inet_client_addr() IS NULL", &[]);
    let statement = statement.unwrap();
    for value in 0..50 {
        connection.bind(&statement).i32(value).run();
    }
    connection.round_trip().unwrap();
    for value in 0..50 {
        let row = connection.first(|mut row| -> Result<_, Error> { Ok((row.i32()?, row.bool()?)) });
        assert_eq!(row.unwrap(), Some((2 * value, false)));
    }
    assert_eq!(connection.settle().unwrap(), Status::Idle);
    connection.execute("CREATE TEMP TABLE t (a text)").unwrap();
    let mut copy = connection.copy_in("COPY t FROM STDIN WITH (FORMAT binary)").unwrap();
    let mut rows = Vec::new();
    for _ in 0..200_000 {
        rows.extend_from_slice(&1i16.to_be_bytes());
        binary::push_bytes(&mut rows, b"a text");
    }
    copy.send(&rows).unwrap();
    assert_eq!(copy.finish().unwrap(), 200_000);
    // An error in the middle of a COPY is told by the server's own words.
    let mut copy = connection.copy_in("COPY t FROM STDIN WITH (FORMAT binary)").unwrap();
    let mut told = copy.send(&[0, 9, 0, 0]).err();
    for _ in 0..500 {
        if told.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        told = copy.send(&[0, 0]).err();
    }
    drop(copy);
    assert_eq!(
        told.and_then(|error| error.sqlstate().map(str::to_owned)).as_deref(),
        Some("22P04")
    );
    connection.query("SELECT 1").unwrap();
}

/// TLS as the modes promise it, and passwords of every method over it.
#[test]
fn tls_is_what_its_mode_promises() {
    let Some(server) = server() else { return };
    let mut admin = server.connect();
    admin
        .execute(
            "SET password_encryption = 'scram-sha-256'; \
             CREATE ROLE tls LOGIN PASSWORD 'geheim'; CREATE ROLE tlsclear LOGIN PASSWORD 'p w'",
        )
        .unwrap();
    let attempt = |host: &str, mode: TlsMode, root: Option<&std::path::Path>| {
        let tls = Tls { mode, root_certificates: root.map(Into::into), ..Tls::default() };
        let address = Address::Tcp { host: host.to_owned(), port: server.port };
        let (user, password) = ("tls".to_owned(), Some("geheim".to_owned()));
        let login = Login { address, user, password, tls, ..server.login() };
        Connection::connect(&login).map(|mut connection| {
            let sql = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            assert_eq!(connection.query(sql).unwrap()[0][0].as_deref(), Some("true"));
        })
    };
    let (root, stranger) = (server.authority.root.as_path(), server.authority.stranger.as_path());
    let ip = "127.0.0.1";
    attempt(ip, TlsMode::Prefer, None).unwrap();
    attempt(ip, TlsMode::Require, None).unwrap();
    attempt(ip, TlsMode::VerifyCa, Some(root)).unwrap();
    attempt("localhost", TlsMode::VerifyFull, Some(root)).unwrap();
    for (host, mode, root) in [
        (ip, TlsMode::VerifyFull, root),
        (ip, TlsMode::VerifyCa, stranger),
        (ip, TlsMode::Require, stranger),
        ("localhost", TlsMode::VerifyFull, stranger),
        ("localhost", TlsMode::VerifyFull, std::path::Path::new("/nowhere/root.pem")),
    ] {
        let refused = attempt(host, mode, Some(root)).unwrap_err();
        assert!(matches!(refused, Error::Tls { .. }), "{mode:?}: {refused:?}");
    }
    let refused = attempt(ip, TlsMode::Disable, None).unwrap_err();
    assert_eq!(refused.sqlstate(), Some("28000"), "{refused}");
    // A password as it is: over TLS that was asked for.
    for (mode, expected) in [(TlsMode::Require, true), (TlsMode::Prefer, false)] {
        let tls = Tls { mode, ..Tls::default() };
        let (user, password) = ("tlsclear".to_owned(), Some("p w".to_owned()));
        let login = Login { user, password, tls, ..server.tcp_login() };
        assert_eq!(Connection::connect(&login).is_ok(), expected, "{mode:?}");
    }
}
