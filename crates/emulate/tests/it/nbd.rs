//! A block device at a socket, with a client of our own and with fio.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use emulate::{Emulation, Export, Fate, Options, Outcome, Served};
use units::{Bytes, Nanos};

use crate::support::{device, requests};

const SIZE: u64 = 16 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const ZEROES: u16 = 6;
const FUA: u16 = 1;

fn serve(device: Box<dyn model::Device>, socket: &Path, file: Option<PathBuf>) -> Emulation {
    let export = Export { socket: socket.to_owned(), file, size: Some(Bytes(SIZE)) };
    let name = "test".to_owned();
    let served =
        Served { name, device, directories: Vec::new(), exports: vec![export], blocks: Vec::new() };
    let options = Options { path: Some(Nanos(0)), forgetful: true, ..Options::default() };
    Emulation::start(vec![served], &options).unwrap()
}

fn end(emulation: Emulation) -> Outcome {
    emulation.stop().unwrap().remove(0)
}

/// A client: the handshake of `NBD_OPT_GO`, then one request after the other.
struct Client {
    stream: UnixStream,
    cookie: u64,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let mut client = Self { stream: UnixStream::connect(socket).unwrap(), cookie: 7 };
        client.stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        assert_eq!(client.take(18)[..16], *b"NBDMAGICIHAVEOPT");
        client.stream.write_all(&3u32.to_be_bytes()).unwrap();
        // An option that no server knows is refused, and the talk goes on.
        client.option(999, b"what");
        assert_eq!(client.option_reply().0, 1 << 31 | 1);
        client.option(7, &[0; 6]);
        let (kind, information) = client.option_reply();
        assert_eq!((kind, &information[..2]), (3, &[0, 0][..]));
        assert_eq!(information[2..10], SIZE.to_be_bytes());
        assert_eq!(client.option_reply().0, 1);
        client
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn number(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn option(&mut self, option: u32, data: &[u8]) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes).unwrap();
    }

    fn option_reply(&mut self) -> (u32, Vec<u8>) {
        self.take(12);
        let (kind, len) = (self.number(), self.number());
        (kind, self.take(len as usize))
    }

    /// Sends a request in pieces, as a slow network would; gives the error and the data.
    fn ask(&mut self, kind: u16, flags: u16, at: u64, len: u32, data: &[u8]) -> (u32, Vec<u8>) {
        self.cookie += 1;
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(at.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        for piece in [&bytes[..5], &bytes[5..]] {
            self.stream.write_all(piece).unwrap();
        }
        assert_eq!(self.number(), 0x6744_6698);
        let error = self.number();
        assert_eq!(self.take(8), self.cookie.to_be_bytes());
        let len = if kind == READ && error == 0 { len as usize } else { 0 };
        (error, self.take(len))
    }

    fn write(&mut self, flags: u16, at: u64, byte: u8) {
        let data = [byte; 4096];
        assert_eq!(self.ask(WRITE, flags, at, 4096, &data), (0, Vec::new()));
    }

    fn read(&mut self, at: u64) -> u8 {
        let (error, data) = self.ask(READ, 0, at, 4096, &[]);
        assert!(error == 0 && data.iter().all(|byte| *byte == data[0]));
        data[0]
    }
}

#[test]
fn requests_are_served_and_take_their_time() {
    let root = tempfile::tempdir().unwrap();
    let socket = root.path().join("socket");
    let emulation = serve(device(2000, 1000, 3000, 8), &socket, None);
    let mut client = Client::connect(&socket);
    let timed = |action: &mut dyn FnMut()| {
        let start = Instant::now();
        action();
        start.elapsed()
    };
    assert!(timed(&mut || client.write(0, 8192, 5)) >= Duration::from_millis(1));
    assert!(timed(&mut || assert_eq!(client.read(8192), 5)) >= Duration::from_millis(2));
    assert!(timed(&mut || client.write(FUA, 4096, 6)) >= Duration::from_millis(4));
    let flush = timed(&mut || assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]).0, 0));
    assert!(flush >= Duration::from_millis(3));
    assert_eq!(client.ask(TRIM, 0, 8192, 4096, &[]).0, 0);
    assert_eq!(client.ask(ZEROES, 0, 4096, 4096, &[]).0, 0);
    assert_eq!((client.read(8192), client.read(4096)), (0, 0));
    // Beyond the end, of no length, of no known kind.
    let wrong = [(READ, SIZE, 4096), (READ, 0, 0), (5, 0, 4096), (TRIM, SIZE - 1, 2)];
    for (kind, at, len) in wrong {
        assert_eq!(client.ask(kind, 0, at, len, &[]), (libc::EINVAL as u32, Vec::new()));
    }
    // A second client sees the same bytes.
    client.write(0, 0, 9);
    assert_eq!(Client::connect(&socket).read(0), 9);
    let outcome = end(emulation);
    let counts = ["read", "write", "trim", "flush"].map(|op| requests(&outcome, op));
    assert_eq!(counts, [4, 3, 2, 1], "{outcome:?}");
    assert!(!socket.exists(), "the socket was left");
}

#[test]
fn a_power_cut_leaves_what_was_flushed_or_forced() {
    let root = tempfile::tempdir().unwrap();
    let (socket, file) = (root.path().join("socket"), root.path().join("disk"));
    let emulation = serve(device(1, 1, 1, 8), &socket, Some(file.clone()));
    let mut client = Client::connect(&socket);
    client.write(0, 0, 1);
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]).0, 0);
    client.write(0, 0, 2);
    client.write(0, 4096, 3);
    client.write(FUA, 8192, 4);
    client.write(0, 12288, 5);
    let outcome = emulation.cut_power(Fate::All).unwrap().remove(0);
    assert_eq!(outcome.lost.unwrap().bytes, 3 * 4096);
    let emulation = serve(device(1, 1, 1, 8), &socket, Some(file));
    let mut client = Client::connect(&socket);
    let found = [0, 4096, 8192, 12288].map(|at| client.read(at));
    assert_eq!(found, [1, 0, 4, 0]);
    end(emulation);
}

#[test]
fn fio_verifies_what_it_wrote() {
    let engines = Command::new("fio").arg("--enghelp").output();
    let known = engines.map(|output| String::from_utf8_lossy(&output.stdout).contains("nbd"));
    if !known.unwrap_or(false) {
        println!("skipped: no fio with the engine nbd");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let socket = root.path().join("socket");
    let emulation = serve(device(50, 20, 100, 16), &socket, None);
    let uri = format!("--uri=nbd+unix:///?socket={}", socket.display());
    let jobs = ["--name=verify", "--rw=randwrite", "--bs=4k", "--size=8m"];
    let checks = ["--iodepth=16", "--fsync=64", "--verify=crc32c", "--verify_fatal=1"];
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "100", "fio", "--ioengine=nbd", &uri]).args(jobs).args(checks);
    let output = command.current_dir(root.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let outcome = end(emulation);
    assert_eq!(requests(&outcome, "write"), 2048, "{outcome:?}");
    assert!(requests(&outcome, "read") >= 2048 && outcome.depth_max > 4, "{outcome:?}");
}
