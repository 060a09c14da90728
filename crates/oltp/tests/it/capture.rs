//! A run through the capturing VFS: the same work, and I/O that knows whose it is.

use std::collections::BTreeSet;

use capture::sqlite::{Session, SessionOptions, VFS_NAME, register};
use oltp::{Options, Phase, Scale, SqliteSettings, run_observed};
use units::Nanos;

#[test]
fn captured_io_names_its_worker_and_transaction() {
    let _turn = crate::SESSION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Not in memory: the VFS bypasses the page cache where the file system lets it.
    let directory = tempfile::tempdir().unwrap();
    register().unwrap();
    let mut options = SessionOptions::new(directory.path());
    options.capture = false;
    let mut session = match Session::start(options) {
        Ok(session) => session,
        Err(error) => {
            println!("skipped: no capture session here: {error}");
            return;
        }
    };
    let settings = SqliteSettings {
        directory: directory.path().to_owned(),
        vfs: Some(VFS_NAME.to_owned()),
        ..SqliteSettings::default()
    };
    let scale = Scale::miniature(2);
    oltp::load(&crate::load_options(&settings, scale), &events::Quiet).unwrap();
    let options = Options {
        database: oltp::Database::Sqlite(settings.clone()),
        users: 4,
        warmup: Nanos(50_000_000),
        measure: Nanos(500_000_000),
        ..Options::default()
    };
    let result = run_observed(&options, &events::Quiet, &mut |phase| match phase {
        Phase::WarmUp => {}
        Phase::Measurement => session.set_capture(true),
        Phase::End => session.set_capture(false),
    })
    .unwrap();
    let captured = session.finish();
    let chains = captured.logical.chains.as_ref().unwrap();
    let transactions: BTreeSet<u32> = chains.transaction.iter().copied().collect();
    let measured: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    assert!(measured > 0);
    // Readers may be served from their cache, so not every transaction does I/O; each commit does.
    let commits = result.transactions.iter().filter(|kind| kind.kind.writes());
    let commits: u64 = commits.map(|kind| kind.count - kind.rollbacks).sum();
    assert!(transactions.len() as u64 >= commits, "{} {commits}", transactions.len());
    assert!(chains.actor.iter().all(|&actor| actor < 2));
    let vfs = Some(VFS_NAME);
    let conditions = oltp::sqlite::check(&settings.database(), vfs).unwrap();
    assert!(conditions.iter().all(|condition| condition.holds));
}
