//! Real servers on directories that forget what was not synced: a durable one keeps what it has
//! acknowledged, one that does not sync is caught.

use std::path::Path;
use std::process::Command;

use dbms::lossy::Fate;
use dbms::{Address, Durability, Error, Instance, Places, Settings, System};
use events::Quiet;

use crate::support::{installed, place, small};

/// Runs SQL with the server's own client; the rows, or nothing where there was an error.
fn sql(instance: &Instance, text: &str) -> Option<String> {
    let Address::Unix(socket) = instance.address() else { panic!("not a socket") };
    let socket = socket.to_str().unwrap();
    let mut command = match instance.system() {
        System::Postgresql => {
            let directory = Path::new(socket).parent().unwrap().to_str().unwrap();
            let mut command = Command::new("psql");
            command.args(["-h", directory, "-U", "wearmark", "-d", "postgres", "-Atqc", text]);
            command
        }
        System::Mariadb => {
            let mut command = Command::new("mariadb");
            command.args([
                "--no-defaults",
                "-S",
                socket,
                "-u",
                "root",
                "-BN",
                "wearmark",
                "-e",
                text,
            ]);
            command
        }
    };
    let output = command.output().unwrap();
    if !output.status.success() {
        println!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Creates an instance with a table of one row, all of it durable.
fn prepared(system: System, data: &Path, durability: Durability) -> Instance {
    let settings = Settings { durability: Durability::Full, ..small() };
    let mut instance = Instance::create(system, &Places::at(data), &settings, &Quiet).unwrap();
    instance.start(&Quiet).unwrap();
    let engine = if system == System::Mariadb { "ENGINE = InnoDB" } else { "" };
    sql(&instance, &format!("CREATE TABLE t (n INT PRIMARY KEY) {engine}")).unwrap();
    sql(&instance, "INSERT INTO t VALUES (0)").unwrap();
    instance.stop().unwrap();
    instance.set(&Settings { durability, ..settings }).unwrap();
    instance.temporary()
}

/// Cycles of: start, acknowledged inserts, power cut. Tells whether everything acknowledged was
/// there after each.
fn survives(system: System, durability: Durability, lies: bool, fate: Fate, cycles: i64) -> bool {
    let place = place();
    let mut instance = prepared(system, &place.path().join("db"), durability);
    for cycle in 1..=cycles {
        match instance.start_forgetful(lies, &Quiet) {
            Ok(()) => {}
            Err(Error::Crashed { .. }) if cycle > 1 => return false,
            Err(error) => panic!("{error}"),
        }
        if sql(&instance, "SELECT count(*) FROM t") != Some(cycle.to_string()) {
            return false;
        }
        sql(&instance, &format!("INSERT INTO t VALUES ({cycle})")).unwrap();
        let (lost, counts) = instance.cut_power(fate).unwrap();
        println!("{system} {durability:?} {cycle}: {lost:?} {counts:?}");
        assert!(counts.writes > 0);
    }
    true
}

#[test]
fn a_durable_server_loses_nothing_in_a_power_cut() {
    if let Some(why) = Instance::forgetful_missing() {
        println!("skipped: {why}");
        return;
    }
    for system in installed() {
        assert!(survives(system, Durability::Full, false, Fate::All, 3), "{system}");
        assert!(survives(system, Durability::Full, false, Fate::Some { seed: 7 }, 3), "{system}");
    }
}

#[test]
fn a_server_that_does_not_sync_and_a_disk_that_lies_are_caught() {
    if let Some(why) = Instance::forgetful_missing() {
        println!("skipped: {why}");
        return;
    }
    for system in installed() {
        assert!(!survives(system, Durability::Off, false, Fate::All, 3), "{system}: off");
        assert!(!survives(system, Durability::Relaxed, false, Fate::All, 3), "{system}: relaxed");
        assert!(!survives(system, Durability::Full, true, Fate::All, 3), "{system}: lying disk");
    }
}
