//! What servers count, with a load of known size.

use dbms::statistics::{self, Activity, LogPosition, Statistics};
use dbms::{Durability, Error, Instance, Login, Places, Settings, System};
use events::Quiet;

use crate::support::{installed, place, small};

/// One connection's work: statements one by one.
fn run(system: System, login: &Login, statements: &[String]) -> Result<(), Error> {
    match system {
        System::Postgresql => {
            let mut connection = dbms::postgresql::Connection::connect(login)?;
            statements.iter().try_for_each(|sql| connection.execute(sql))
        }
        System::Mariadb => {
            let mut connection = dbms::mariadb::Connection::connect(login)?;
            statements.iter().try_for_each(|sql| connection.execute(sql).map(drop))
        }
    }
}

/// What the server did while these statements ran.
fn activity(instance: &Instance, statements: &[String]) -> Activity {
    let (system, login) = (instance.system(), instance.login());
    let before = Statistics::read(system, &login).unwrap();
    run(system, &login, statements).unwrap();
    // Sessions hand in their numbers as they end.
    std::thread::sleep(std::time::Duration::from_millis(300));
    Statistics::read(system, &login).unwrap().since(&before)
}

fn log_is_ready_to_the_end_of_its_last_file(instance: &Instance, at: &Places) {
    let log = LogPosition::ask(instance.system(), &instance.login()).unwrap();
    assert_eq!(log.is_some(), instance.system() == System::Postgresql);
    let Some(mut log) = log else { return };
    let directory = at.data.join("data/pg_wal");
    let files = std::fs::read_dir(&directory).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let last = names.filter(|name| name.len() == 24).max().unwrap();
    let segment = std::fs::metadata(directory.join(&last)).unwrap().len();
    let [high, low] = [8..16, 16..24].map(|part| u64::from_str_radix(&last[part], 16).unwrap());
    let end = (high << 32) + (low + 1) * segment;
    assert_eq!(log.bytes().unwrap() + log.ready_bytes().unwrap(), end, "{last} of {segment}");
}

#[test]
fn commits_log_reads_and_syncs_are_those_of_the_load() {
    for system in installed() {
        let place = place();
        let settings = Settings { durability: Durability::Full, ..small() };
        let at = Places::at(place.path().join("db"));
        let instance = Instance::create(system, &at, &settings, &Quiet).unwrap();
        let mut instance = instance.temporary();
        instance.start(&Quiet).unwrap();
        run(system, &instance.login(), &["CREATE TABLE t (n INT PRIMARY KEY, x CHAR(200))".into()])
            .unwrap();
        let inserts: Vec<String> =
            (0..100).map(|n| format!("INSERT INTO t VALUES ({n}, 'x')")).collect();
        let wrote = activity(&instance, &inserts);
        let within = |value: Option<u64>, low, high| {
            assert!(value.is_some_and(|value| (low..=high).contains(&value)), "{wrote:#?}");
        };
        within(wrote.commits, 100, 130);
        // A row of 200 characters each; InnoDB may pad its blocks, PostgreSQL log whole pages.
        within(wrote.log_bytes, 100 * 60, 100 * 4096);
        within(wrote.log_writes, 100, 200);
        let syncs = if system == System::Postgresql { wrote.log_syncs } else { wrote.syncs };
        within(syncs, 100, 200);
        log_is_ready_to_the_end_of_its_last_file(&instance, &at);
        let reads = vec!["SELECT count(x) FROM t".to_owned(); 50];
        let read = activity(&instance, &reads);
        // Five pages and their roots, fifty times, from the buffer.
        assert!(read.page_requests.is_some_and(|pages| pages >= 50), "{read:#?}");
        assert!(read.hit_share().is_some_and(|share| share > 0.9), "{read:#?}");
        assert!(read.log_bytes.is_some_and(|bytes| bytes < 20_000), "{read:#?}");
        assert_eq!(wrote.history_length.is_some(), system == System::Mariadb);
    }
}

/// A server that somebody else runs: by URL only.
#[test]
fn a_server_by_url_tells_its_settings_and_what_cannot_be_had() {
    for system in installed() {
        let place = place();
        let mut instance =
            crate::support::create(system, &place.path().join("db")).unwrap().temporary();
        instance.start(&Quiet).unwrap();
        let dbms::Address::Unix(socket) = instance.address() else { panic!("not a socket") };
        let (scheme, user, database) = match system {
            System::Postgresql => ("postgresql", "wearmark", "postgres"),
            System::Mariadb => ("mysql", "root", "wearmark"),
        };
        let url = format!("{scheme}://{user}@/{database}?socket={}", socket.display());
        let (found, login) = Login::parse(&url).unwrap();
        assert_eq!((found, &login), (system, &instance.login()));
        let settings = statistics::settings(system, &login).unwrap();
        let (name, value) = match system {
            System::Postgresql => ("fsync", "off"),
            System::Mariadb => ("innodb_flush_method", "nosync"),
        };
        assert_eq!(settings.get(name).map(String::as_str), Some(value), "{settings:?}");
        let snapshot = Statistics::read(system, &login).unwrap();
        assert_eq!(snapshot.page_bytes, if system == System::Postgresql { 8192 } else { 16384 });
        assert!(statistics::limits(&login).len() >= 4);
        instance.stop().unwrap();
        let gone = Statistics::read(system, &login).unwrap_err();
        assert!(matches!(gone, Error::Connect { .. }), "{gone}");
    }
}
