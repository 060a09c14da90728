//! Nothing that the user has is replaced without a word.

use std::fs;

use crate::program::{fine, place, refused};

#[test]
fn an_output_never_replaces_its_input_or_a_foreign_file() {
    let dir = place();
    fine(dir.path(), &["trace", "generate", "zipf", "-n", "200", "-o", "t.parquet"]);
    let trace = fs::read(dir.path().join("t.parquet")).unwrap();
    let own_input = "t.parquet: the page would replace its own input";
    for force in [&[][..], &["--force"]] {
        let info = ["trace", "info", "t.parquet", "--html", "t.parquet"];
        refused(dir.path(), &[&info[..], force].concat(), own_input);
    }
    fs::write(dir.path().join("thesis.html"), "<p>mine").unwrap();
    let page = ["trace", "info", "t.parquet", "--html", "thesis.html"];
    refused(dir.path(), &page, "thesis.html: is there, and is no page that wearmark made");
    let to_page = ["trace", "convert", "t.parquet", "thesis.html", "--to", "spc"];
    refused(dir.path(), &to_page, "thesis.html: is there");
    assert_eq!(fs::read(dir.path().join("t.parquet")).unwrap(), trace);
    assert_eq!(fs::read(dir.path().join("thesis.html")).unwrap(), b"<p>mine");

    // The same command again replaces its own page; a word replaces anything.
    fine(dir.path(), &[&page[..], &["--force"]].concat());
    fine(dir.path(), &page);
    // A device is written to, never replaced.
    fine(dir.path(), &["trace", "info", "t.parquet", "--html", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_foreign_file_is_never_advised_to_be_removed() {
    let dir = place();
    fs::write(dir.path().join("fio.json"), "{}").unwrap();
    let ran = crate::program::run(dir.path(), &["fit", "fio.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(!ran.err.contains("remove"), "{}", ran.err);
    let near = ["sim", "absent.spc", "--profile", "intl-p3700"];
    let ran = crate::program::run(dir.path(), &near);
    assert!(ran.err.contains("did you mean 'intel-p3700'?"), "{}", ran.err);
}

/// A run takes minutes: where its files cannot be written it does not begin.
#[test]
fn a_run_whose_files_have_no_directory_does_not_begin() {
    let dir = place();
    let run = ["oltp", "run", "db", "--dbms", "sqlite", "--workload", "commit"];
    for [option, path] in [["--trace", "absent/mine"], ["--save", "absent/mine.json"]] {
        let asked = [&run[..], &[option, path]].concat();
        refused(dir.path(), &asked, "absent: no such directory");
        assert!(!dir.path().join("db").exists(), "{option}");
    }
}
