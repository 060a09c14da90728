//! Bad options, missing and foreign files, full disks: a typed error with a hint, nothing left.

use std::process::Command;

use events::Hint;
use oltp::{Error, Options, Scale, SqliteSettings, load, run};
use units::{Bytes, Nanos};

use crate::{Database, load_options};

fn settings(directory: &std::path::Path) -> SqliteSettings {
    SqliteSettings { directory: directory.to_owned(), ..SqliteSettings::default() }
}

fn run_on(settings: &SqliteSettings) -> Error {
    let options = Options {
        database: oltp::Database::Sqlite(settings.clone()),
        warmup: Nanos::ZERO,
        measure: Nanos(100_000_000),
        ..Options::default()
    };
    run(&options, &events::Quiet).unwrap_err()
}

#[test]
fn a_missing_directory_is_named() {
    let error =
        load(&load_options(&settings("/nowhere/at/all".as_ref()), Scale::new(1)), &events::Quiet)
            .unwrap_err();
    assert!(matches!(error, Error::NoDirectory { .. }));
    insta::assert_snapshot!(error, @"directory '/nowhere/at/all' does not exist");
    insta::assert_snapshot!(error.hint().unwrap(), @"create it: mkdir -p '/nowhere/at/all'");
}

#[test]
fn a_missing_database_is_named() {
    let directory = crate::temporary_directory();
    let error = run_on(&settings(directory.path()));
    assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
    assert!(error.hint().is_some());
    let error = oltp::sqlite::check(&directory.path().join("x"), None).unwrap_err();
    assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
}

#[test]
fn foreign_half_loaded_and_other_versions_are_told_apart() {
    let database = Database::new(Scale::miniature(1));
    database.sql().execute_batch("PRAGMA user_version = 0").unwrap();
    assert!(matches!(run_on(&database.settings), Error::HalfLoaded { .. }));
    database.sql().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(run_on(&database.settings), Error::OtherVersion { found: 99, .. }));
    database.sql().execute_batch("PRAGMA application_id = 7").unwrap();
    assert!(matches!(run_on(&database.settings), Error::NotOurs { .. }));
    drop(database.sql());
    let path = database.settings.database();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    std::fs::write(&path, "not a database at all, but long enough to look at".repeat(99)).unwrap();
    assert!(matches!(run_on(&database.settings), Error::NotOurs { .. }));
}

#[test]
fn another_scale_is_refused() {
    let database = Database::new(Scale::miniature(1));
    let options = Options {
        database: oltp::Database::Sqlite(database.settings.clone()),
        dataset: Some(oltp::Dataset::OrderEntry(Scale::new(10))),
        ..Options::default()
    };
    let error = run(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::OtherScale { .. }), "{error}");
    assert!(error.hint().is_some());
}

/// A file system that is full and a size limit both end in SQLITE_FULL; the limit needs no root.
#[test]
fn a_full_disk_while_loading_leaves_nothing() {
    let directory = crate::temporary_directory();
    let mut settings = settings(directory.path());
    settings.size_limit = Some(Bytes(300 << 10));
    let options = load_options(&settings, Scale::miniature(2));
    let error = load(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert!(error.hint().unwrap().contains("free space"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_while_running_ends_the_run_and_keeps_the_database_whole() {
    let database = Database::new(Scale::miniature(1));
    let size = std::fs::metadata(database.settings.database()).unwrap().len();
    let mut settings = database.settings.clone();
    settings.size_limit = Some(Bytes(size + (64 << 10)));
    settings.synchronous = oltp::Synchronous::Off;
    let options = Options {
        database: oltp::Database::Sqlite(settings),
        warmup: Nanos::ZERO,
        measure: Nanos(60_000_000_000),
        ..Options::default()
    };
    let error = run(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_eq!(crate::violated(&database.settings.database()), [] as [u32; 0]);
}

/// A tmpfs of 2 MiB, unmounted when dropped.
struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    fn mount() -> Option<Self> {
        let directory = crate::temporary_directory();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_file_system_while_loading_leaves_nothing() {
    let Some(small) = SmallFileSystem::mount() else {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    };
    let options = load_options(&settings(small.0.path()), Scale::new(1));
    let error = load(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_eq!(std::fs::read_dir(small.0.path()).unwrap().count(), 0);
}

#[test]
fn a_full_file_system_while_running_ends_the_run() {
    let Some(small) = SmallFileSystem::mount() else {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    };
    let settings = settings(small.0.path());
    load(&load_options(&settings, Scale::miniature(1)), &events::Quiet).unwrap();
    let options = Options {
        database: oltp::Database::Sqlite(settings.clone()),
        warmup: Nanos::ZERO,
        measure: Nanos(60_000_000_000),
        ..Options::default()
    };
    let error = run(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
}

#[test]
fn a_missing_row_is_an_inconsistent_database() {
    let database = Database::new(Scale::miniature(1));
    database.sql().execute("DELETE FROM stock", []).unwrap();
    let error = run_on(&database.settings);
    assert!(matches!(error, Error::Inconsistent { .. }), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn options_without_meaning_are_refused() {
    let check = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        let error = options.validate().unwrap_err();
        assert!(matches!(error, Error::Option { .. }), "{error}");
    };
    check(&|options| options.users = 0);
    check(&|options| options.measure = Nanos::ZERO);
    check(&|options| options.load = oltp::Load::Closed { think: f64::NAN });
    check(&|options| options.load = oltp::Load::Open { rate: units::Rate(0.0) });
    check(&|options| options.database.sqlite_mut().unwrap().page_size = Bytes(3000));
    check(&|options| options.database.sqlite_mut().unwrap().buffer = Bytes(1000));
    check(&|options| options.database.sqlite_mut().unwrap().readers = 1000);
    check(&|options| options.database.sqlite_mut().unwrap().reader_buffer_share = -1.0);
    for scale in [
        Scale { warehouses: 0, ..Scale::new(1) },
        Scale { districts: 11, ..Scale::new(1) },
        Scale { items: 0, ..Scale::new(1) },
        Scale { customers_per_district: 3001, ..Scale::new(1) },
    ] {
        assert!(matches!(scale.validate(), Err(Error::Option { .. })), "{scale:?}");
    }
}

#[test]
fn an_unknown_vfs_is_an_error_not_a_panic() {
    let directory = crate::temporary_directory();
    let mut settings = settings(directory.path());
    settings.vfs = Some("no-such-vfs".to_owned());
    let error = load(&load_options(&settings, Scale::miniature(1)), &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::Sqlite { .. }), "{error}");
}
