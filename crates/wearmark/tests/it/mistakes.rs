//! Bad input ends in one clear error, and leaves nothing behind.

use std::fs;

use crate::program::{fine, listing, place, refused, run};

#[test]
fn a_malformed_study_file_is_named_with_its_line() {
    let dir = place();
    fs::write(dir.path().join("s.toml"), "[study]\nname = 'a'\n[oltp]\nwarehouse = 1\n").unwrap();
    refused(dir.path(), &["study", "run", "s.toml"], "s.toml:4: unknown field `warehouse`");
    fs::write(dir.path().join("s.toml"), "[study\n").unwrap();
    refused(dir.path(), &["study", "run", "s.toml"], "s.toml:1: ");
    refused(dir.path(), &["study", "run", "absent.toml"], "absent.toml: cannot read");
    assert_eq!(listing(dir.path()), ["s.toml"], "a refused study left something behind");
}

#[test]
fn an_unknown_profile_is_found_before_anything_is_measured() {
    let dir = place();
    let study = "[study]\nname = 'a'\n[[scenario]]\nprofile = 'mtron'\n";
    fs::write(dir.path().join("s.toml"), study).unwrap();
    refused(dir.path(), &["study", "run", "s.toml"], "no profile 'mtron'");
    assert_eq!(listing(dir.path()), ["s.toml"]);
}

#[test]
fn a_configuration_that_is_none_becomes_no_profile() {
    let dir = place();
    let import = ["profile", "import-mqsim", "ssd.xml", "-o", "p.toml"];
    refused(dir.path(), &import, "ssd.xml");
    fs::write(dir.path().join("ssd.xml"), "<Execution_Parameter_Set>\n</Other>").unwrap();
    refused(dir.path(), &import, "ssd.xml: ");
    fs::write(dir.path().join("ssd.xml"), "<Execution_Parameter_Set/>").unwrap();
    refused(dir.path(), &import, "ssd.xml:1: 'Device_Parameter_Set': it is missing");
    assert_eq!(listing(dir.path()), ["ssd.xml"]);
}

#[test]
fn an_impossible_profile_says_which_field_and_line() {
    let dir = place();
    let shown = fine(dir.path(), &["profile", "show", "mtron-pro-7500"]);
    let position = shown.find("parallelism").expect("the profile has a parallelism");
    let (front, back) = shown.split_at(position);
    let end = back.find('\n').unwrap();
    let line = front.matches('\n').count() + 1;
    let broken = format!("{front}parallelism = {{ value = 0, source = \"test\" }}{}", &back[end..]);
    fs::write(dir.path().join("p.toml"), broken).unwrap();
    refused(dir.path(), &["profile", "check", "p.toml"], &format!("p.toml:{line}"));
    fs::write(dir.path().join("p.toml"), shown.replace("[device]", "[device")).unwrap();
    let line = shown[..shown.find("[device]").unwrap()].matches('\n').count() + 1;
    refused(dir.path(), &["profile", "check", "p.toml"], &format!("p.toml:{line}"));
}

#[test]
fn a_recording_without_times_or_a_replay_without_target_is_refused() {
    let dir = place();
    fs::write(dir.path().join("t.spc"), "0,0,4096,W,0.000001\n0,8,4096,W,0.000002\n").unwrap();
    let validate = ["validate", "t.spc", "-p", "intel-x25-e"];
    refused(dir.path(), &[&validate[..], &["--recorded"]].concat(), "holds no response times");
    let both = [&validate[..], &["--recorded", "--target", "x"]].concat();
    assert_eq!(run(dir.path(), &both).code, Some(2));
    assert_eq!(run(dir.path(), &validate).code, Some(2));
    assert_eq!(listing(dir.path()), ["t.spc"]);
}

#[test]
fn a_directory_where_a_file_belongs_is_refused() {
    let dir = place();
    fs::create_dir(dir.path().join("d")).unwrap();
    refused(dir.path(), &["trace", "info", "d"], "d: ");
    refused(dir.path(), &["study", "run", "d"], "d: cannot read");
    refused(dir.path(), &["oltp", "check", "d"], "d");
    refused(dir.path(), &["sim", "d", "--profile", "intel-x25-e"], "d: ");
    refused(dir.path(), &["fit", "d"], "measurements.json: cannot read");
}

#[test]
fn what_wearmark_did_not_create_is_never_written() {
    let dir = place();
    let precious = dir.path().join("precious");
    fs::write(&precious, vec![7u8; 64 << 20]).unwrap();
    fs::write(dir.path().join("t.spc"), "0,0,4096,W,0.000001\n0,8,4096,W,0.000002\n").unwrap();
    refused(dir.path(), &["replay", "t.spc", "--target", "precious"], "precious");
    assert!(fs::read(&precious).unwrap().iter().all(|byte| *byte == 7));
    // What the hint advises is possible, and then it is written.
    let twice = "--i-will-lose-data precious";
    let replay = ["replay", "t.spc", "--target", "precious"];
    assert!(run(dir.path(), &replay).err.contains(twice));
    // A busy machine may find that it kept no schedule (exit code 1); it has written all the same.
    let ran = run(dir.path(), &[&replay[..], &twice.split(' ').collect::<Vec<_>>()].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    assert!(fs::read(&precious).unwrap()[..4096].iter().any(|byte| *byte != 7));
    fs::write(&precious, vec![7u8; 64 << 20]).unwrap();
    // Nor is a database of another program, or a mistaken file, taken for ours.
    fs::create_dir(dir.path().join("db")).unwrap();
    fs::write(dir.path().join("db/order_entry.db"), "not a database").unwrap();
    refused(dir.path(), &["oltp", "run", "db", "--duration", "1s"], "order_entry.db");
    assert_eq!(fs::read(dir.path().join("db/order_entry.db")).unwrap(), b"not a database");
}

#[test]
fn a_malformed_trace_is_named_with_its_line() {
    let dir = place();
    fs::write(dir.path().join("t.spc"), "0,0,4096,W,0.1\n0,8,4096,X,0.2\n").unwrap();
    refused(dir.path(), &["trace", "info", "t.spc"], "t.spc:2");
    fs::write(dir.path().join("t.parquet"), "PAR1 and then nothing").unwrap();
    refused(dir.path(), &["trace", "info", "t.parquet"], "t.parquet");
    fs::write(dir.path().join("t.spc"), "0,0,4096,W,0.1\n").unwrap();
    refused(dir.path(), &["trace", "convert", "t.spc", "t.csv"], "which format");
}

#[test]
fn values_that_cannot_be_are_refused_by_name() {
    let dir = place();
    refused(dir.path(), &["oltp", "run", "absent", "--users", "0"], "users");
    refused(dir.path(), &["oltp", "run", ".", "--journal", "quick"], "--journal");
    refused(dir.path(), &["oltp", "run", ".", "--mix", "1:2"], "mix");
}
