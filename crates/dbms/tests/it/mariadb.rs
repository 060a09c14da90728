//! The client of the MariaDB protocol against a real server.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use dbms::mariadb::{Connection, Type};
use dbms::{Address, Error, Instance, Login, Places, Programs, Settings, System, TlsMode};
use tempfile::TempDir;

use crate::authority::Authority;
use crate::support::{allocations, place, small};

/// A server of the tests' own; stopped and removed when the last test that uses it ends.
struct Server {
    instance: Instance,
    port: u16,
    authority: Authority,
    _place: TempDir,
}

/// The server, shared by the tests that run at the same time; none where its programs are missing.
fn server() -> Option<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    if let Err(error) = Programs::find(System::Mariadb) {
        println!("skipped: {error}");
        return None;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl Server {
    fn start() -> Self {
        let place = place();
        // A free port: bound, and let go at once.
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let tcp =
            [("skip-networking", "0"), ("bind-address", "127.0.0.1"), ("port", &port.to_string())]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let authority = Authority::write(place.path(), &["localhost"]);
        // The server runs as another user and reads its key.
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&authority.key, readable).unwrap();
        let tls = [("ssl-cert", &authority.certificate), ("ssl-key", &authority.key)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let settings = Settings { extra: [&tcp[..], &tls].concat(), ..small() };
        let places = Places::at(place.path().join("instance"));
        let instance = Instance::create(System::Mariadb, &places, &settings, &events::Quiet);
        let mut instance = instance.unwrap().temporary();
        instance.start(&events::Quiet).unwrap();
        Self { instance, port, authority, _place: place }
    }

    fn login(&self, database: &str) -> Login {
        Login { database: database.to_owned(), ..self.instance.login() }
    }

    fn connect(&self) -> Connection {
        Connection::connect(&self.instance.login()).unwrap()
    }
}

/// Every kind of value, there and back, NULLs included.
#[test]
fn values_come_back() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    assert!(connection.version().contains("MariaDB"), "{}", connection.version());
    assert_eq!(connection.get("SELECT connection_id()").unwrap(), Some(connection.id().into()));
    connection
        .execute(
            "CREATE TABLE kinds (k INT PRIMARY KEY, t TINYINT, b BIGINT, d DECIMAL(12,2), \
             v VARCHAR(600), at DATETIME(3), u TINYINT UNSIGNED, s SMALLINT) ENGINE = InnoDB",
        )
        .unwrap();
    let types = [
        Type::Int,
        Type::Tiny,
        Type::BigInt,
        Type::Decimal,
        Type::Text,
        Type::DateTime,
        Type::Int,
        Type::Int,
    ];
    let mut insert =
        connection.prepare("INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", &types).unwrap();
    let long = "x".repeat(600);
    connection
        .queue(&mut insert)
        .integer(1)
        .integer(-128)
        .integer(i64::MIN)
        .scaled(-123_456, 2)
        .text(&long)
        .date_time(1_767_225_600_123)
        .integer(255)
        .integer(-3)
        .finish();
    let done = connection.receive(&mut insert, &mut |_| Ok(())).unwrap();
    assert_eq!(done.affected, 1);
    let nulls = connection.queue(&mut insert).integer(2).null().null().null().null().null();
    nulls.null().null().finish();
    connection.receive(&mut insert, &mut |_| Ok(())).unwrap();

    let sql = "SELECT k, t, b, d, v, u, s, sum(k), at FROM kinds WHERE k = ? GROUP BY k";
    let mut select = connection.prepare(sql, &[Type::Int]).unwrap();
    // Twice: the second time the server does not send the columns again.
    for _ in 0..2 {
        let mut seen = 0;
        connection.queue(&mut select).integer(1).finish();
        let done = connection
            .receive(&mut select, &mut |row| {
                seen += 1;
                assert_eq!((row.number()?, row.integer()?, row.integer()?), (1, -128, i64::MIN));
                assert_eq!((row.scaled(2)?, row.bytes()?), (-123_456, long.as_bytes()));
                assert_eq!((row.integer()?, row.integer()?, row.integer()?), (255, -3, 1));
                // 2026-01-01 00:00:00.123 in the protocol's form.
                assert_eq!(row.bytes()?, &[0xea, 7, 1, 1, 0, 0, 0, 0x78, 0xe0, 1, 0]);
                assert!(row.skip().is_err());
                Ok(())
            })
            .unwrap();
        assert_eq!((seen, done.results), (1, 1));
        connection.queue(&mut select).integer(2).finish();
        connection
            .receive(&mut select, &mut |row| {
                assert_eq!((row.number()?, row.integer_or_null()?), (2, None));
                assert_eq!((row.integer_or_null()?, row.scaled_or_null(2)?), (None, None));
                assert_eq!((row.bytes_or_null()?, row.integer_or_null()?), (None, None));
                Ok(())
            })
            .unwrap();
    }
    texts_come_back(&mut connection);
}

fn texts_come_back(connection: &mut Connection) {
    let mut text = Vec::new();
    connection
        .query("SELECT k, d, v, at FROM kinds ORDER BY k", &mut |row| {
            row.skip()?;
            let money = row.scaled_or_null(2)?;
            row.skip()?;
            text.push((money, row.string()?));
            Ok(())
        })
        .unwrap();
    let expected = (Some(-123_456), "2026-01-01 00:00:00.123".to_owned());
    assert_eq!(text, [expected, (None, "NULL".to_owned())]);
}

/// Commands queued together are answered in order, a refusal among them included.
#[test]
fn queued_commands_are_answered_in_order() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection
        .execute("CREATE TABLE queued (k INT PRIMARY KEY, v INT); SET autocommit = 0")
        .unwrap();
    let mut insert =
        connection.prepare("INSERT INTO queued VALUES (?, ?)", &[Type::Int, Type::Int]).unwrap();
    let mut select = connection.prepare("SELECT v FROM queued WHERE k = ?", &[Type::Int]).unwrap();
    for k in 0..40 {
        connection.queue(&mut insert).integer(k).integer(k * k).finish();
        connection.queue(&mut select).integer(k).finish();
    }
    connection.queue(&mut insert).integer(7).integer(7).finish();
    connection.queue_text("SELECT count(*) FROM queued");
    connection.exchange().unwrap();
    for k in 0..40 {
        assert_eq!(connection.receive(&mut insert, &mut |_| Ok(())).unwrap().affected, 1);
        let mut value = None;
        connection
            .receive(&mut select, &mut |row| {
                value = Some(row.integer()?);
                Ok(())
            })
            .unwrap();
        assert_eq!(value, Some(k * k));
    }
    let error = connection.receive(&mut insert, &mut |_| Ok(())).unwrap_err();
    let Error::Server { sqlstate, code, .. } = &error else { panic!("{error}") };
    assert_eq!((sqlstate.as_str(), *code), ("23000", 1062));
    let mut count = 0;
    connection
        .receive_text(&mut |row| {
            count = row.integer()?;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 40);
    // What is due can be dropped: before a rollback.
    connection.queue(&mut insert).integer(7).integer(7).finish();
    connection.queue(&mut select).integer(7).finish();
    connection.drain().unwrap();
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(connection.get("SELECT count(*) FROM queued").unwrap(), Some(0));
}

#[test]
fn a_bulk_writes_many_rows_in_one_command() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection
        .execute("CREATE TABLE bulk (k INT PRIMARY KEY, v VARCHAR(9), d DECIMAL(8,2))")
        .unwrap();
    assert!(connection.has_bulk());
    let types = [Type::Int, Type::Text, Type::Decimal];
    let insert = &mut connection.prepare("INSERT INTO bulk VALUES (?, ?, ?)", &types).unwrap();
    let mut rows = connection.queue_bulk(insert);
    for k in 0..100i64 {
        rows = rows.integer(k);
        rows = if k % 3 == 0 { rows.null() } else { rows.text(format!("v{k}")) };
        rows = rows.scaled(k, 2);
    }
    rows.finish();
    assert_eq!(connection.receive(insert, &mut |_| Ok(())).unwrap().affected, 100);
    let sums = "SELECT count(v) * 1000000 + sum(k) * 10 + sum(d) = 66049549.5 FROM bulk";
    assert_eq!(connection.get(sums).unwrap(), Some(1));
    let types = [Type::Decimal, Type::Int];
    let update = &mut connection.prepare("UPDATE bulk SET d = d + ? WHERE k = ?", &types).unwrap();
    connection.queue_bulk(update).scaled(5, 2).integer(1).scaled(7, 2).integer(1).finish();
    assert_eq!(connection.receive(update, &mut |_| Ok(())).unwrap().affected, 2);
    assert_eq!(connection.get("SELECT d = 0.13 FROM bulk WHERE k = 1").unwrap(), Some(1));
    // Single executions of the same statement still work, and so does the bulk after them.
    connection.queue(update).scaled(5, 2).integer(2).finish();
    assert_eq!(connection.receive(update, &mut |_| Ok(())).unwrap().affected, 1);
    connection.queue_bulk(update).scaled(0, 2).integer(2).finish();
    // Found, though not different.
    assert_eq!(connection.receive(update, &mut |_| Ok(())).unwrap().affected, 1);
}

#[test]
fn procedures_answer_with_several_results() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection
        .execute(
            "CREATE PROCEDURE results(IN a INT) BEGIN SELECT a; SELECT a + 1, 'x' UNION ALL \
             SELECT a + 2, 'y'; IF a > 5 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'big'; \
             END IF; END",
        )
        .unwrap();
    let mut call = connection.prepare("CALL results(?)", &[Type::Int]).unwrap();
    for k in [1, 2, 1] {
        let mut rows = Vec::new();
        connection.queue(&mut call).integer(k).finish();
        let done = connection
            .receive(&mut call, &mut |row| {
                rows.push((row.result(), row.columns(), row.integer()?));
                Ok(())
            })
            .unwrap();
        assert_eq!(
            rows,
            [(0, 1, i64::from(k)), (1, 2, i64::from(k) + 1), (1, 2, i64::from(k) + 2)]
        );
        assert_eq!(done.results, 2);
    }
    connection.queue(&mut call).integer(6).finish();
    let error = connection.receive(&mut call, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.sqlstate(), Some("45000"));
    let done = connection.execute("SELECT 1; SET @a = 1; SELECT 2, 3").unwrap();
    assert_eq!(done.results, 2);
}

#[test]
fn rows_stream_into_a_table() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection.execute("CREATE TABLE streamed (k INT PRIMARY KEY, v VARCHAR(40))").unwrap();
    let sql = "LOAD DATA LOCAL INFILE '' INTO TABLE streamed CHARACTER SET latin1";
    let mut next = 0;
    let done = connection
        .load_data(sql, &mut |piece| {
            while piece.len() < 3_000_000 && next < 200_000 {
                piece.extend_from_slice(format!("{next}\tvalue {next}\n").as_bytes());
                next += 1;
            }
            Ok(next < 200_000)
        })
        .unwrap();
    assert_eq!((done.affected, done.warnings), (200_000, 0));
    let error = connection.load_data(sql, &mut |piece| {
        piece.extend_from_slice(b"200000\tx\n");
        Err(Error::Protocol { what: "no more".to_owned() })
    });
    assert!(matches!(error, Err(Error::Protocol { what }) if what == "no more"));
    // Nobody else than `load_data` hands out files.
    let error = connection.execute("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE streamed");
    assert!(matches!(error, Err(Error::Protocol { .. })));
    let error = connection.load_data(sql, &mut |piece| {
        piece.extend_from_slice(b"7\tagain\n");
        Ok(false)
    });
    // LOCAL takes a duplicate key for a warning.
    assert_eq!(error.unwrap().warnings, 1);
    assert_eq!(connection.get("SELECT count(*) FROM streamed").unwrap(), Some(200_000));
}

#[test]
fn logins_prove_a_password_over_tcp_or_name_what_is_wrong() {
    let Some(server) = server() else { return };
    server
        .connect()
        .execute(
            "CREATE USER p@'127.0.0.1' IDENTIFIED BY 'geheim 1'; GRANT ALL ON wearmark.* TO \
             p@'127.0.0.1'; CREATE USER q@localhost IDENTIFIED VIA ed25519 USING PASSWORD('x')",
        )
        .or_else(|_| {
            // The plugin of q is not there: without it.
            server.connect().execute(
                "CREATE OR REPLACE USER p@'127.0.0.1' IDENTIFIED BY 'geheim 1'; \
                 GRANT ALL ON wearmark.* TO p@'127.0.0.1'",
            )
        })
        .unwrap();
    let mut login = server.instance.login();
    login.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: server.port };
    login.user = "p".to_owned();
    login.password = Some("geheim 1".to_owned());
    let mut connection = Connection::connect(&login).unwrap();
    assert_eq!(connection.get("SELECT 7").unwrap(), Some(7));
    for password in [Some("geheim 2".to_owned()), None] {
        login.password = password;
        let error = Connection::connect(&login).unwrap_err();
        assert_eq!(error.sqlstate(), Some("28000"), "{error}");
    }
    let mut login = server.login("nowhere");
    let error = Connection::connect(&login).unwrap_err();
    assert_eq!(error.sqlstate(), Some("42000"), "{error}");
    login.address = Address::Unix("/nowhere/at/all".into());
    assert!(matches!(Connection::connect(&login), Err(Error::Connect { .. })));
}

/// TLS as the modes promise it, with each plugin that the server has.
#[test]
fn tls_is_what_its_mode_promises() {
    let Some(server) = server() else { return };
    let mut admin = server.connect();
    admin
        .execute(
            "CREATE USER t@'127.0.0.1' IDENTIFIED BY 'geheim 3' REQUIRE SSL; \
             GRANT ALL ON wearmark.* TO t@'127.0.0.1'",
        )
        .unwrap();
    let mut login = server.login("");
    (login.user, login.password) = ("t".to_owned(), Some("geheim 3".to_owned()));
    let mut attempt = |host: &str, mode: TlsMode, root: Option<&std::path::Path>| {
        login.address = Address::Tcp { host: host.to_owned(), port: server.port };
        login.tls.mode = mode;
        login.tls.root_certificates = root.map(Into::into);
        Connection::connect(&login).map(|mut connection| {
            let rows = "SELECT CONCAT(VARIABLE_VALUE) <> '' FROM \
                        information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'SSL_CIPHER'";
            let encrypted = connection.get(rows).unwrap() == Some(1);
            assert_eq!(encrypted, connection.is_encrypted());
            encrypted
        })
    };
    let (root, stranger) = (server.authority.root.clone(), server.authority.stranger.clone());
    let ip = "127.0.0.1";
    assert!(attempt(ip, TlsMode::Prefer, None).unwrap());
    assert!(attempt(ip, TlsMode::Require, None).unwrap());
    assert!(attempt(ip, TlsMode::VerifyCa, Some(&root)).unwrap());
    // The certificate is for localhost alone.
    assert!(attempt("localhost", TlsMode::VerifyFull, Some(&root)).unwrap());
    for (host, mode, root) in [
        (ip, TlsMode::VerifyFull, &root),
        (ip, TlsMode::VerifyCa, &stranger),
        (ip, TlsMode::Require, &stranger),
        ("localhost", TlsMode::VerifyFull, &stranger),
    ] {
        let refused = attempt(host, mode, Some(root)).unwrap_err();
        assert!(matches!(refused, Error::Tls { .. }), "{mode:?}: {refused:?}");
    }
    let refused = attempt(ip, TlsMode::Disable, None).unwrap_err();
    assert_eq!(refused.sqlstate(), Some("28000"), "{refused}");
}

/// MariaDB's plugin of its own, where the server has it.
#[test]
fn ed25519_logs_in() {
    let Some(server) = server() else { return };
    let mut admin = server.connect();
    let installed = admin.execute("INSTALL SONAME 'auth_ed25519'");
    if let Err(error) = installed {
        println!("skipped: the server has no plugin ed25519: {error}");
        return;
    }
    admin
        .execute("CREATE USER e@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('g 4')")
        .unwrap();
    let mut login = server.login("");
    login.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: server.port };
    for (password, expected) in [("g 4", true), ("g 5", false)] {
        (login.user, login.password) = ("e".to_owned(), Some(password.to_owned()));
        assert_eq!(Connection::connect(&login).is_ok(), expected, "{password}");
    }
}

/// unix_socket: the server asks the kernel for the peer's credentials.
#[test]
fn the_socket_itself_proves_who_we_are() {
    let Some(server) = server() else { return };
    if !rustix::process::getuid().is_root() {
        println!("skipped: the test's user name is not known to be root");
        return;
    }
    server
        .connect()
        .execute(
            "CREATE USER root@'local%' IDENTIFIED VIA unix_socket; \
             CREATE USER other@localhost IDENTIFIED VIA unix_socket; \
             ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('') \
             OR unix_socket",
        )
        .unwrap();
    assert!(Connection::connect(&server.instance.login()).is_ok());
    let mut login = server.instance.login();
    login.user = "other".to_owned();
    let error = Connection::connect(&login).unwrap_err();
    assert_eq!(error.sqlstate(), Some("28000"), "{error}");
}

#[test]
fn refusals_leave_the_connection_usable_and_a_death_does_not() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    let error = connection.execute("SELEKT 1").unwrap_err();
    assert_eq!(error.sqlstate(), Some("42000"));
    let error = connection.prepare("SELECT * FROM nothing_of_that_name", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("42S02"));
    let error = connection.prepare("SELECT ?", &[]).unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
    connection.ping().unwrap();
    let killed = server.connect().execute(&format!("KILL {}", connection.id()));
    killed.unwrap();
    let mut error = connection.ping();
    for _ in 0..100 {
        if error.is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            error = connection.ping();
        }
    }
    assert!(error.is_err());
    assert!(connection.ping().is_err());
}

#[test]
fn nothing_is_allocated_once_warm() {
    let Some(server) = server() else { return };
    let mut connection = server.connect();
    connection
        .execute(
            "CREATE TABLE warm (k INT PRIMARY KEY, v VARCHAR(80), d DECIMAL(8,2), at DATETIME(3)); \
             CREATE PROCEDURE warm_rows(IN a INT) SELECT * FROM warm WHERE k >= a; \
             SET autocommit = 0",
        )
        .unwrap();
    let types = [Type::Int, Type::Text, Type::Decimal, Type::DateTime];
    let insert = &mut connection.prepare("INSERT INTO warm VALUES (?, ?, ?, ?)", &types).unwrap();
    let select = &mut connection.prepare("SELECT * FROM warm WHERE k >= ?", &[Type::Int]).unwrap();
    let call = &mut connection.prepare("CALL warm_rows(?)", &[Type::Int]).unwrap();
    let mut before = 0;
    for round in 0..20 {
        if round == 5 {
            before = allocations();
        }
        let mut rows = connection.queue_bulk(insert);
        for k in 0..30i32 {
            rows = rows.integer(k).text("some text of a row").scaled(1234, 2).date_time(1 << 40);
        }
        rows.finish();
        connection.queue(select).integer(0).finish();
        connection.queue(call).integer(7).finish();
        connection.queue_text("ROLLBACK");
        connection.exchange().unwrap();
        assert_eq!(connection.receive(insert, &mut |_| Ok(())).unwrap().affected, 30);
        for (statement, expected) in [(&mut *select, 30), (&mut *call, 23)] {
            let mut seen = 0;
            connection
                .receive(statement, &mut |row| {
                    let (_, text) = (row.integer()?, row.bytes()?);
                    assert_eq!((text.len(), row.scaled(2)?), (18, 1234));
                    seen += 1;
                    row.skip()
                })
                .unwrap();
            assert_eq!(seen, expected);
        }
        connection.receive_text(&mut |_| Ok(())).unwrap();
    }
    assert_eq!(allocations() - before, 0);
}
