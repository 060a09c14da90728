//! Servers that lie, and servers that never speak: what is sent to them, and how soon we give up.
//!
//! No server is needed: a thread plays one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbms::{Address, Error, Limits, Login, Stop, System, Tls, TlsMode};

const PASSWORD: &str = "geheim-2718";

/// A server that a closure plays, for one connection; it gives back what it was sent.
fn played(play: impl FnOnce(&mut Peer) + Send + 'static) -> (Login, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        // No test waits for ever for a client that says nothing.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut peer = Peer { stream, heard: Vec::new() };
        play(&mut peer);
        peer.hear_out();
        peer.heard
    });
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let login =
        Login { password: Some(PASSWORD.to_owned()), ..Login::new(address, "somebody", "shop") };
    (login, server)
}

struct Peer {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Peer {
    fn says(&mut self, bytes: &[u8]) {
        // The client may have gone already.
        let _ = self.stream.write_all(bytes);
    }

    /// Something of any length.
    fn hears(&mut self) {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.heard.extend_from_slice(&bytes[..count]);
    }

    fn hear_out(&mut self) {
        let _ = self.stream.read_to_end(&mut self.heard);
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn connect(system: System, login: &Login) -> Result<(), Error> {
    match system {
        System::Postgresql => dbms::postgresql::Connection::connect(login).map(drop),
        System::Mariadb => dbms::mariadb::Connection::connect(login).map(drop),
    }
}

/// What a login ends in, and what the server has heard.
fn outcome(
    system: System,
    change: impl FnOnce(&mut Login),
    play: impl FnOnce(&mut Peer) + Send + 'static,
) -> (String, Vec<u8>) {
    let (mut login, server) = played(play);
    login.tls.mode = TlsMode::Disable;
    change(&mut login);
    let ended = connect(system, &login).map_or_else(|error| format!("{error:?}"), |()| "in".into());
    (ended, server.join().unwrap())
}

fn contains(heard: &[u8], text: &str) -> bool {
    heard.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Lets a client of PostgreSQL in.
fn welcome() -> Vec<u8> {
    [message(b'R', &[0, 0, 0, 0]), message(b'Z', b"I")].concat()
}

#[test]
fn a_server_that_skips_its_own_proof_is_refused() {
    let (ended, _) = outcome(
        System::Postgresql,
        |_| {},
        |peer| {
            peer.hears();
            peer.says(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"));
            peer.hears();
            peer.says(&welcome());
        },
    );
    assert!(ended.contains("without proving"), "{ended}");
    // The same welcome without a claim of SCRAM is a server that trusts us.
    let trusts = |peer: &mut Peer| {
        peer.hears();
        peer.says(&welcome());
    };
    assert_eq!(outcome(System::Postgresql, |_| {}, trusts).0, "in");
}

#[test]
fn a_password_is_not_told_to_whoever_asks() {
    let asks = |peer: &mut Peer| {
        peer.hears();
        peer.says(&message(b'R', &[0, 0, 0, 3]));
        peer.hears();
        peer.says(&welcome());
    };
    let (ended, heard) = outcome(System::Postgresql, |_| {}, asks);
    assert!(ended.contains("unencrypted") && !contains(&heard, PASSWORD), "{ended}");
    let (ended, heard) =
        outcome(System::Postgresql, |login| login.tls.cleartext_password = true, asks);
    assert!(ended == "in" && contains(&heard, PASSWORD), "{ended}");

    let switches = |peer: &mut Peer| {
        peer.says(&greeting(0));
        peer.hears();
        peer.says(&packet(2, b"\xfemysql_clear_password\0"));
        peer.hears();
        peer.says(&packet(4, &[0, 0, 0, 2, 0, 0, 0]));
    };
    let (ended, heard) = outcome(System::Mariadb, |_| {}, switches);
    assert!(ended.contains("unencrypted") && !contains(&heard, PASSWORD), "{ended}");
    let (ended, heard) =
        outcome(System::Mariadb, |login| login.tls.cleartext_password = true, switches);
    assert!(ended == "in" && contains(&heard, PASSWORD), "{ended}");
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[sequence], payload].concat()
}

/// The greeting of a MariaDB, with or without TLS (0x0800).
fn greeting(tls: u16) -> Vec<u8> {
    let mut hello = b"\x0a5.5.5-10.11.19-MariaDB\0\x07\0\0\x0012345678\0".to_vec();
    hello.extend_from_slice(&(0xf7fe | tls).to_le_bytes());
    hello.extend_from_slice(&[45, 2, 0, 0xff, 0xff, 21]);
    hello.extend_from_slice(&[0; 6]);
    hello.extend_from_slice(&0x1f_u32.to_le_bytes());
    hello.extend_from_slice(b"abcdefghijkl\0mysql_native_password\0");
    packet(0, &hello)
}

/// Who insists on TLS says nothing about himself to a server that has none.
#[test]
fn encryption_that_is_required_is_not_given_up() {
    let require = |login: &mut Login| login.tls.mode = TlsMode::Require;
    let refuses = |peer: &mut Peer| {
        peer.hears();
        peer.says(b"N");
    };
    let (ended, heard) = outcome(System::Postgresql, require, refuses);
    assert!(ended.starts_with("Tls") && heard.len() == 8, "{ended} {heard:?}");
    let (ended, heard) = outcome(System::Mariadb, require, |peer| peer.says(&greeting(0)));
    assert!(ended.starts_with("Tls") && !contains(&heard, "somebody"), "{ended}");
    let prefer = |login: &mut Login| login.tls.mode = TlsMode::Prefer;
    let goes_on = |peer: &mut Peer| {
        peer.hears();
        peer.says(b"N");
        peer.hears();
        peer.says(&welcome());
    };
    assert_eq!(outcome(System::Postgresql, prefer, goes_on).0, "in");
}

/// What comes unencrypted behind the agreement must not be taken for the server's (CVE-2021-23222).
#[test]
fn nothing_is_believed_that_came_before_the_encryption() {
    let require = |login: &mut Login| login.tls.mode = TlsMode::Require;
    let slips = |peer: &mut Peer| {
        peer.hears();
        peer.says(&[b"S", &welcome()[..]].concat());
    };
    let (ended, _) = outcome(System::Postgresql, require, slips);
    assert!(ended.contains("unencrypted data") || ended.starts_with("Tls"), "{ended}");
    let (ended, _) = outcome(System::Mariadb, require, |peer| {
        peer.says(&[greeting(0x0800), packet(2, &[0, 0, 0, 2, 0, 0, 0])].concat());
    });
    assert!(ended.contains("unencrypted data") || ended.starts_with("Tls"), "{ended}");
}

/// A listener that never speaks, at every point where we wait for it.
#[test]
fn a_server_that_never_speaks_is_given_up() {
    let bound = Duration::from_millis(300);
    for system in System::ALL {
        for mode in [TlsMode::Disable, TlsMode::Require] {
            // With TLS, PostgreSQL's is silent in the handshake.
            let (mut login, server) = played(move |peer| {
                if mode == TlsMode::Require && system == System::Postgresql {
                    peer.hears();
                    peer.says(b"S");
                }
            });
            login.tls = Tls { mode, ..Tls::default() };
            login.limits = Limits { login: bound, ..Limits::default() };
            let begun = Instant::now();
            let error = connect(system, &login).unwrap_err();
            assert!(matches!(error, Error::Silent { .. }), "{system} {mode:?}: {error:?}");
            assert!(begun.elapsed() >= bound, "{system} {mode:?}: given up early");
            server.join().unwrap();
        }
    }
}

/// The user's request to stop ends a login that has an hour to go.
#[test]
fn a_login_ends_when_the_user_stops_it() {
    static STOP: AtomicBool = AtomicBool::new(false);
    for system in System::ALL {
        STOP.store(false, Ordering::Relaxed);
        let (mut login, server) = played(|_| {});
        login.tls.mode = TlsMode::Disable;
        login.limits = Limits {
            login: Duration::from_hours(1),
            answer: Duration::from_hours(1),
            stop: Stop::by(&STOP),
        };
        let waits = std::thread::spawn(move || connect(system, &login));
        std::thread::sleep(Duration::from_millis(50));
        STOP.store(true, Ordering::Relaxed);
        let error = waits.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{system}: {error:?}");
        server.join().unwrap();
    }
}

/// A server that falls silent in the middle of a statement.
#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let (mut login, server) = played(|peer| {
        peer.hears();
        peer.says(&welcome());
    });
    login.tls.mode = TlsMode::Disable;
    login.limits = Limits { answer: Duration::from_millis(300), ..Limits::default() };
    let mut connection = dbms::postgresql::Connection::connect(&login).unwrap();
    let error = connection.query("SELECT 1").unwrap_err();
    let Error::Broken { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::TimedOut, "{error:?}");
    drop(connection);
    assert!(contains(&server.join().unwrap(), "SELECT 1"));
}
