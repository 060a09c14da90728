//! `wearmark oltp temp` and `wearmark oltp versions`, on what is installed.

use std::path::Path;

use serde_json::Value;

use crate::program::{fine, listing, place, refused, run};

/// What a command on a private server prints; `None` where the server is not installed.
fn on_server(dir: &Path, arguments: &[&str]) -> Option<Value> {
    use std::os::unix::fs::PermissionsExt;
    // The server's user must be able to enter.
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run(dir, arguments);
    if ran.code == Some(2) && ran.err.contains("not installed") {
        println!("skipped: {}", ran.err);
        return None;
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(listing(dir), [""; 0], "the private server left something");
    Some(serde_json::from_str(&ran.out).expect("--json prints JSON"))
}

#[test]
fn old_snapshots_on_sqlite_are_a_table() {
    let dir = place();
    let text = fine(dir.path(), &["oltp", "versions", "-n", "2000", "-k", "2", "--readers", "2"]);
    assert!(text.contains("of WAL") && text.contains("checkpoint when the readers"), "{text}");
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn a_private_server_sorts_and_is_gone() {
    let dir = place();
    let arguments =
        ["oltp", "temp", "--dbms", "postgresql", "-n", "20000", "-m", "256KiB,8MiB", "--json"];
    let Some(found) = on_server(dir.path(), &arguments) else { return };
    let rows = found["rows"].as_array().unwrap();
    assert!(rows[0]["temp_written_blocks"].as_u64().unwrap() > 200, "{found}");
    assert_eq!(rows[1]["temp_written_blocks"], 0);
    assert!(rows[0]["predicted"]["written_blocks"].as_u64().unwrap() > 200);
}

#[test]
fn what_a_dbms_cannot_do_is_refused() {
    let dir = place();
    let hash = ["oltp", "temp", "--operation", "hash-join", "-n", "10"];
    refused(dir.path(), &hash, "SQLite has none");
    let mariadb = [&hash[..], &["--dbms", "mariadb"]].concat();
    refused(dir.path(), &mariadb, "never spills");
    refused(dir.path(), &["oltp", "versions", "-n", "0"], "rows");
    refused(dir.path(), &["oltp", "versions", "absent"], "absent");
}
