//! The VFS as SQLite sees it.

use capture::sqlite::{Session, SessionOptions, VFS_NAME, register};
use rusqlite::{Connection, OpenFlags};

#[test]
fn smoke() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    register().unwrap();
    let session = Session::start(SessionOptions::new(directory.path())).unwrap();
    println!("{:?} {:?}", session.io_mode(), session.fallback());
    let path = directory.path().join("db");
    let c = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), VFS_NAME).unwrap();
    c.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a, b)")
        .unwrap();
    for i in 0..2000 {
        c.execute("INSERT INTO t VALUES(?1, randomblob(500))", [i]).unwrap();
    }
    let ok: String = c.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(ok, "ok");
    drop(c);
    let captured = session.finish();
    captured.logical.validate().unwrap();
    captured.device.validate().unwrap();
    println!("{:#?}", captured.files);
    for t in [&captured.logical, &captured.device] {
        let a = capture::sqlite::account(t, units::Nanos(0));
        for c in &a.classes {
            println!(
                "{} {} r{:?} w{:?} f{:?} t{:?}",
                a.layer, c.class, c.read, c.write, c.flush, c.trim
            );
        }
    }
    let c = Connection::open(&path).unwrap();
    let n: i64 = c.query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
    assert_eq!(n, 2000);
}
