//! A kernel that may send any requests through FUSE.
//!
//! The bytes are requests one after the other, each with its length in front, as the kernel writes
//! them. They are served in a small directory of their own.

use std::path::{Path, PathBuf};

use emulate::offline::Directory;

use super::fate;

/// Bytes of the device: no request can take more of the directory below.
const CAPACITY: u64 = 1 << 20;

/// Inputs beyond this find nothing that shorter ones do not.
const LONGEST_BYTES: usize = 64 << 10;

/// Length of the header.
const HEADER: usize = 40;

/// A directory that is removed with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let path = folder.join(format!("wearmark-fuzz-fuse-{}-{number}", std::process::id()));
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("live/d"))?;
        std::fs::create_dir(path.join("waiting"))?;
        std::fs::write(path.join("live/f"), [7; 5000])?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Directories may have lost their permissions: whoever is not root takes them back.
        for path in ["live", "live/d"] {
            use std::os::unix::fs::PermissionsExt;
            let all = std::fs::Permissions::from_mode(0o700);
            _ = std::fs::set_permissions(self.0.join(path), all);
        }
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves the requests, then cuts the power; how many were refused.
pub fn check(data: &[u8]) -> usize {
    let Some((&choice, mut rest)) = data.split_first() else { return 0 };
    let mut refused = 0;
    rest = &rest[..rest.len().min(LONGEST_BYTES)];
    let scratch = Scratch::new().expect("a directory in memory");
    let (live, waiting) = (scratch.0.join("live"), scratch.0.join("waiting"));
    let mut directory = Directory::open(&live, &waiting, CAPACITY).expect("it was just made");
    while let Some(len) = rest.first_chunk::<4>() {
        let len = (u32::from_ne_bytes(*len) as usize).max(HEADER).min(rest.len());
        let (request, after) = rest.split_at(len);
        if let Some(reply) = directory.answer(request) {
            assert!(reply[..4] == (reply.len() as u32).to_ne_bytes(), "a reply has its length");
            assert!(reply[8..16] == request[8..16], "a reply names its request");
            refused += usize::from(reply[4..8] != [0; 4]);
        }
        rest = after;
    }
    // Names that are in the way below may keep it from taking all back.
    _ = directory.cut_power(fate(choice));
    refused
}

/// A request for a node.
fn request(code: u32, node: u64, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(code.to_ne_bytes());
    bytes.extend(9u64.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    // User, group, process, padding.
    bytes.extend([0; 16]);
    bytes.extend(body);
    bytes
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.map(u32::to_ne_bytes).concat()
}

/// The directory itself; other nodes are numbered in the order in which they are looked up.
const ROOT: u64 = 1;

/// Handle, offset and length, as several requests begin.
fn range(offset: u64, len: u32) -> Vec<u8> {
    [&[0; 8][..], &offset.to_ne_bytes(), &words([len])].concat()
}

fn look_up(name: &[u8]) -> Vec<u8> {
    request(1, ROOT, &[name, b"\0"])
}

fn write(node: u64, offset: u64, flags: u32, data: &[u8]) -> Vec<u8> {
    let how = [&range(offset, data.len() as u32)[..], &words([0, 0, 0, flags, 0])].concat();
    request(16, node, &[&how, data])
}

/// A change of attributes.
fn set(node: u64, what: u32, size: u64, mode: u32) -> Vec<u8> {
    let size = [&words([what, 0, 0, 0])[..], &size.to_ne_bytes()].concat();
    let times = [&[0; 44][..], &words([mode, 0, 0, 0, 0])].concat();
    request(4, node, &[&size, &times])
}

fn allocate(node: u64, mode: u32) -> Vec<u8> {
    let body = [&[0; 8][..], &4096u64.to_ne_bytes(), &8192u64.to_ne_bytes()].concat();
    request(43, node, &[&body, &words([mode, 0])])
}

/// What the kernel sends for a program that works on one file.
fn one_file() -> Vec<Vec<u8>> {
    let file = 2;
    vec![
        request(26, 0, &[&words([7, 31, 131_072, u32::MAX])]),
        look_up(b"f"),
        request(3, file, &[&[0; 16]]),
        request(14, file, &[&words([2, 0])]),
        request(15, file, &[&range(0, 8192), &[0; 20]]),
        write(file, 4096, 0, b"some bytes"),
        write(file, 0, 0o10000, b"synced at once"),
        request(20, file, &[&[0; 16]]),
        set(file, 8, 100, 0),
        set(file, 1, 0, 0o640),
        set(file, 1 << 7 | 1 << 8, 0, 0),
        allocate(file, 0),
        allocate(file, 3),
        request(18, file, &[&[0; 24]]),
        request(2, file, &[&1u64.to_ne_bytes()]),
        request(17, ROOT, &[]),
    ]
}

/// What the kernel sends for a program that makes, moves and removes names.
fn names() -> Vec<Vec<u8>> {
    let (first, link, last) = (2u64, 4, 5u64);
    let rename =
        |old: &[u8], new: &[u8]| request(12, ROOT, &[&ROOT.to_ne_bytes(), old, b"\0", new, b"\0"]);
    vec![
        request(8, ROOT, &[&words([0o100_644, 0, 0o22, 0]), b"new\0"]),
        request(9, ROOT, &[&words([0o755, 0o22]), b"directory\0"]),
        request(6, ROOT, &[b"link\0target\0"]),
        look_up(b"f"),
        request(13, ROOT, &[&last.to_ne_bytes(), b"hard\0"]),
        look_up(b"link"),
        request(5, link, &[]),
        rename(b"f", b"g"),
        rename(b"new", b"g"),
        request(45, ROOT, &[&ROOT.to_ne_bytes(), &words([1, 0]), b"g\0h\0"]),
        request(10, ROOT, &[b"h\0"]),
        request(11, ROOT, &[b"directory\0"]),
        request(28, ROOT, &[&range(0, 4096), &[0; 20]]),
        request(30, ROOT, &[&[0; 16]]),
        request(42, 0, &[&words([1, 0]), &first.to_ne_bytes(), &1u64.to_ne_bytes()]),
        request(36, 0, &[&9u64.to_ne_bytes()]),
        request(38, 0, &[]),
    ]
}

/// Inputs to begin with.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (file, names) = (one_file(), names());
    let unsynced =
        [look_up(b"f"), write(2, 0, 0, &[1; 6000]), set(2, 8, 10, 0), write(2, 9, 0, b"x")];
    let with =
        |choice: u8, requests: &[Vec<u8>]| [&[choice], requests.concat().as_slice()].concat();
    vec![
        ("one-file", with(0, &file)),
        ("names", with(1, &names)),
        ("unsynced", with(0, &unsynced)),
        ("by-chance", with(5, &[&file[..6], &names, &unsynced].concat())),
    ]
}
