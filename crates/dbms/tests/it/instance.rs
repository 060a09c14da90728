//! The life of an instance.

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

use dbms::{Address, Error, Instance, Places, Settings, System};
use events::Quiet;
use units::Bytes;

use crate::support::{create, installed, listing, place, runs, small};

fn answers(instance: &Instance) -> bool {
    let Address::Unix(socket) = instance.address() else { panic!("not a socket") };
    UnixStream::connect(socket).is_ok()
}

#[test]
fn an_instance_is_created_run_crashed_recovered_stopped_and_removed() {
    for system in installed() {
        let place = place();
        let data = place.path().join("new/deep");
        let mut instance = create(system, &data).unwrap();
        assert!(!answers(&instance) && instance.pids().is_empty());
        instance.start(&Quiet).unwrap();
        assert!(answers(&instance), "{system}");
        let pids = instance.pids();
        assert_eq!(instance.pid(), Some(pids[0]));
        assert_eq!(pids.len() > 1, system == System::Postgresql, "{pids:?}");
        let owner = std::fs::metadata(format!("/proc/{}", pids[0])).unwrap().uid();
        assert_ne!(owner, 0, "{system} runs as root");
        instance.kill();
        assert!(pids.iter().all(|&pid| !runs(pid)), "{system}: something survived");
        assert!(matches!(instance.check(), Err(Error::Crashed { .. })));
        let spent = instance.cpu().total_s();
        instance.start(&Quiet).unwrap();
        let log = std::fs::read_to_string(&instance.files().messages).unwrap();
        let words = ["automatic recovery in progress", "Removed temporary tablespace"];
        assert!(words.iter().any(|words| log.contains(words)), "no recovery:\n{log}");
        assert!(instance.cpu().total_s() >= spent);
        instance.stop().unwrap();
        assert!(!answers(&instance));
        instance.check().unwrap_err();
        instance.remove().unwrap();
        assert!(listing(place.path()).is_empty(), "{system}: {:?}", listing(place.path()));
    }
}

#[test]
fn it_is_opened_again_with_its_settings_but_not_twice() {
    for system in installed() {
        let place = place();
        let data = place.path().join("db");
        let instance = create(system, &data).unwrap();
        let version = instance.version().to_owned();
        assert!(matches!(Instance::open(&data), Err(Error::InUse { .. })));
        drop(instance);
        let mut instance = Instance::open(&data).unwrap().temporary();
        assert_eq!((instance.settings(), instance.version()), (&small(), version.as_str()));
        let settings = Settings { buffer: Bytes(24 << 20), ..small() };
        instance.set(&settings).unwrap();
        instance.start(&Quiet).unwrap();
        drop(instance);
        assert!(listing(place.path()).is_empty(), "{system}");
    }
}

/// Log, temporary files and undo go where they were sent.
#[test]
fn files_go_to_their_places() {
    for system in installed() {
        let place = place();
        let at = |name: &str| Some(place.path().join(name));
        let mut places =
            Places { log: at("log"), temp: at("temp"), ..Places::at(place.path().join("db")) };
        let mut settings = small();
        if system == System::Mariadb {
            places.undo = at("undo");
            settings.page = Some(Bytes(8 << 10));
        }
        let mut instance = Instance::create(system, &places, &settings, &Quiet).unwrap();
        instance.start(&Quiet).unwrap();
        let names = |path: &std::path::Path| -> String {
            listing(path).iter().map(|path| path.display().to_string() + " ").collect()
        };
        let files = instance.files().clone();
        assert!(files.log.starts_with(place.path().join("log")));
        let (log, expected) = match system {
            System::Postgresql => (names(&files.log), "000000010000000000000001"),
            System::Mariadb => (names(&files.log), "ib_logfile0"),
        };
        assert!(log.contains(expected), "{log}");
        match system {
            System::Postgresql => assert!(names(&files.temp).contains("PG_15"), "{files:?}"),
            System::Mariadb => assert!(names(&files.undo).contains("undo001"), "{files:?}"),
        }
        instance.remove().unwrap();
        assert!(listing(place.path()).is_empty(), "{system}");
    }
}

/// The threads of a killed server hold its socket for a while after the process is gone.
#[test]
fn a_server_that_is_ending_is_waited_for() {
    for system in installed() {
        let place = place();
        let mut instance = create(system, &place.path().join("db")).unwrap().temporary();
        instance.start(&Quiet).unwrap();
        let Address::Unix(socket) = instance.address() else { panic!("not a socket") };
        instance.stop().unwrap();
        let held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(500));
            // MariaDB refuses a socket of somebody else.
            std::fs::remove_file(socket).unwrap();
            drop(held);
        });
        instance.start(&Quiet).unwrap();
        assert!(answers(&instance) && thread.is_finished(), "{system}");
        thread.join().unwrap();
    }
}

/// A path that no socket can have.
#[test]
fn a_deep_directory_gets_its_socket_elsewhere() {
    for system in installed() {
        let place = place();
        let mut instance = create(system, &place.path().join("x".repeat(100))).unwrap().temporary();
        instance.start(&Quiet).unwrap();
        let Address::Unix(socket) = instance.address() else { panic!("not a socket") };
        assert!(socket.starts_with(std::env::temp_dir()) && answers(&instance));
        drop(instance);
        assert!(!socket.parent().unwrap().exists());
    }
}

/// The part of the next test that is killed: starts a server, says so, and waits.
#[test]
fn only_for_the_next_test_to_kill() {
    let (Ok(system), Ok(data)) = (std::env::var("DIE_WITH"), std::env::var("DIE_AT")) else {
        return;
    };
    let system = System::ALL.into_iter().find(|known| known.name() == system).unwrap();
    let mut instance = create(system, data.as_ref()).unwrap();
    instance.start(&Quiet).unwrap();
    let pids: Vec<String> = instance.pids().iter().map(u32::to_string).collect();
    std::fs::write(format!("{data}.pids"), pids.join(" ")).unwrap();
    std::thread::sleep(std::time::Duration::from_mins(1));
}

/// `kill -9` of the program leaves no server behind, and the next one recovers it.
#[test]
fn no_server_outlives_us() {
    for system in installed() {
        let place = place();
        let data = place.path().join("db");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "instance::only_for_the_next_test_to_kill"])
            .env("DIE_WITH", system.name())
            .env("DIE_AT", &data)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let told = place.path().join("db.pids");
        for _ in 0..600 {
            if std::fs::read_to_string(&told).is_ok_and(|text| !text.is_empty()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let pids = std::fs::read_to_string(&told).unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        assert!(runs(pids[0]));
        child.kill().unwrap();
        child.wait().unwrap();
        for _ in 0..100 {
            if pids.iter().all(|&pid| !runs(pid)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let left: Vec<_> = pids.iter().filter(|&&pid| runs(pid)).collect();
        assert!(left.is_empty(), "{system}: {left:?} outlived us");
        let mut instance = Instance::open(&data).unwrap().temporary();
        instance.start(&Quiet).unwrap();
    }
}
