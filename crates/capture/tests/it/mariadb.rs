//! The I/O of a real MariaDB, compared with what InnoDB counts itself.

use capture::clock_ns;
use capture::server::{Class, Options, Server, ServerCapture, Span, System, attribute};
use dbms::instance::{Instance, Places, Settings};
use dbms::mariadb::Connection;
use trace::Op;
use units::Bytes;

use crate::server::{home, sum};

/// A small instance whose asynchronous I/O is made by calls that can be seen, or is not.
fn settings(native: &str) -> Settings {
    Settings {
        buffer: Bytes(16 << 20),
        log_size: Bytes(32 << 20),
        connections: 10,
        extra: vec![("innodb_use_native_aio".to_owned(), native.to_owned())],
        ..Settings::default()
    }
}

fn observed(instance: &Instance) -> Server {
    let places = instance.places().clone();
    Server {
        log: places.log,
        temp: places.temp,
        undo: places.undo,
        ..Server::new(System::Mariadb, instance.pid().expect("it runs"), places.data)
    }
}

fn status(connection: &mut Connection, name: &str) -> u64 {
    let sql = format!(
        "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
         WHERE variable_name = '{name}'"
    );
    connection.get(&sql).unwrap().unwrap() as u64
}

const FILL: &str = "INSERT INTO x.t SELECT seq, REPEAT(MD5(seq), 6) FROM x.numbers";

fn load(connection: &mut Connection) {
    for sql in [
        "CREATE DATABASE x",
        "CREATE TABLE x.t (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB",
        "CREATE TABLE x.numbers (seq INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO x.numbers WITH RECURSIVE n AS (SELECT 1 s UNION ALL SELECT s + 1 FROM n \
         WHERE s < 60000) SELECT s FROM n",
    ] {
        connection.execute(sql).unwrap();
    }
}

#[test]
fn what_innodb_counts_is_what_was_captured_unless_it_is_hidden() {
    let directory = tempfile::tempdir_in(home()).unwrap();
    let places = Places::at(directory.path().join("db"));
    let created =
        Instance::create(dbms::System::Mariadb, &places, &settings("OFF"), &events::Quiet);
    let mut instance = match created {
        Ok(instance) => instance.temporary(),
        Err(error) => return println!("skipped: {error}"),
    };
    instance.start(&events::Quiet).unwrap();
    let mut connection = Connection::connect(&instance.login()).unwrap();
    connection.execute("SET SESSION max_recursive_iterations = 100000").unwrap();
    load(&mut connection);
    let task = connection
        .get("SELECT TID FROM information_schema.PROCESSLIST WHERE id = CONNECTION_ID()")
        .unwrap()
        .unwrap() as u32;
    let server = observed(&instance);
    let capture =
        match ServerCapture::start(&server, Options { client_turns: true, ..Options::default() }) {
            Ok(capture) => capture,
            Err(unavailable) => return println!("skipped: {unavailable}"),
        };
    let names = ["INNODB_DATA_READ", "INNODB_DATA_WRITTEN", "INNODB_OS_LOG_WRITTEN"];
    let before = names.map(|name| status(&mut connection, name));
    let start_ns = clock_ns();
    connection.execute(FILL).unwrap();
    let end_ns = clock_ns();
    connection.execute("SET GLOBAL innodb_max_dirty_pages_pct = 0").unwrap();
    connection.get("SELECT COUNT(*) FROM x.t WHERE v LIKE '%zz%'").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let after = names.map(|name| status(&mut connection, name));
    let mut logical = capture.finish();
    logical.trace.validate().unwrap();
    assert_eq!((logical.losses, logical.hidden), (0, 0));
    let [read, written, log] = [0, 1, 2].map(|index| after[index] - before[index]);
    let bytes = |op| {
        let innodb = [Class::Data, Class::Undo, Class::Temp];
        innodb.map(|class| sum(&logical, class, op).1).into_iter().sum::<u64>()
    };
    let log_bytes = sum(&logical, Class::Log, Op::Write).1;
    println!(
        "read {} of {read}, written {} of {written}, log {log_bytes} of {log}",
        bytes(Op::Read),
        bytes(Op::Write)
    );
    let near = |found: u64, counted: u64| found.abs_diff(counted) as f64 <= 0.02 * counted as f64;
    assert!(written > 10 << 20, "pages of the table reach the files: {written}");
    assert!(near(bytes(Op::Read), read) && near(bytes(Op::Write), written));

    let found = attribute(&mut logical, &[Span { kind: 0, task, start_ns, end_ns }])[0];
    println!("{found:?}");
    assert!(found.commit_ns.is_some() || found.shared_commit_ns > 0, "{found:?}");
    let parts = found.service_ns + found.client_ns + found.shared_commit_ns + found.gap_ns;
    assert_eq!(parts, found.duration_ns);

    hidden(&mut instance);
}

/// With asynchronous I/O of the kernel's own, the capture says that it does not see all.
fn hidden(instance: &mut Instance) {
    instance.stop().unwrap();
    instance.set(&settings("ON")).unwrap();
    instance.start(&events::Quiet).unwrap();
    let capture = ServerCapture::start(&observed(instance), Options::default()).unwrap();
    let mut connection = Connection::connect(&instance.login()).unwrap();
    connection.execute("UPDATE x.t SET v = REPEAT('a', 190)").unwrap();
    connection.execute("SET GLOBAL innodb_max_dirty_pages_pct = 0").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let logical = capture.finish();
    println!("hidden {}", logical.hidden);
    assert!(logical.hidden > 100, "{}", logical.hidden);
}
