//! From a file descriptor to its file: `/proc/PID/fd/N` (proc(5)).
//!
//! The link tells the path, even of a file that was deleted since, and `stat` through it the
//! inode. A file is its inode within its class: the file system gives a freed inode to the next
//! file, and a temporary file that takes the place of another one takes its place in the trace too.
//!
//! Tested on a file of our own, deleted while open.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::class::{Class, Server};

/// One file of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    pub path: PathBuf,
    pub class: Class,
    pub device: u64,
    pub inode: u64,
    /// One past the last byte that was seen of it.
    pub reach: u64,
}

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Not known.
    Unknown,
    /// A socket, a pipe, a device.
    NoFile,
    /// Index of a file.
    File(u32),
}

/// All files that were met.
#[derive(Default)]
pub(super) struct Files {
    pub entries: Vec<FileEntry>,
    by_inode: HashMap<(u64, u64, Class), u32>,
}

impl Files {
    /// Looks a descriptor up, now.
    pub(super) fn resolve(&mut self, server: &Server, process: u32, descriptor: u32) -> Target {
        let link = PathBuf::from(format!("/proc/{process}/fd/{descriptor}"));
        let Ok(path) = std::fs::read_link(&link) else { return Target::Unknown };
        if !path.is_absolute() {
            return Target::NoFile;
        }
        match std::fs::metadata(&link) {
            Ok(metadata) if metadata.is_file() => {
                let path = without_mark(&path);
                let class = server.class_of(&path);
                let index = self.index_of(path, class, metadata.dev(), metadata.ino());
                let entry = &mut self.entries[index as usize];
                entry.reach = entry.reach.max(metadata.len());
                Target::File(index)
            }
            Ok(_) => Target::NoFile,
            Err(_) => Target::Unknown,
        }
    }

    fn index_of(&mut self, path: PathBuf, class: Class, device: u64, inode: u64) -> u32 {
        let next = self.entries.len() as u32;
        let entries = &mut self.entries;
        *self.by_inode.entry((device, inode, class)).or_insert_with(|| {
            entries.push(FileEntry { path, class, device, inode, reach: 0 });
            next
        })
    }

    /// A file takes bytes up to `end`.
    pub(super) fn reaches(&mut self, index: u32, end: u64) {
        let entry = &mut self.entries[index as usize];
        entry.reach = entry.reach.max(end);
    }
}

/// The position of a descriptor, where `/proc/PID/fdinfo/N` tells it.
pub(super) fn position(process: u32, descriptor: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()
}

/// The kernel marks the path of a deleted file.
fn without_mark(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    text.strip_suffix(" (deleted)").map_or_else(|| path.to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::server::class::System;

    #[test]
    fn an_open_file_is_found_even_when_deleted() {
        let directory = tempfile::tempdir_in(crate::test_home()).unwrap();
        let home = directory.path().canonicalize().unwrap();
        let server = Server {
            temp: Some(home.join("temp")),
            ..Server::new(System::Postgresql, 0, home.clone())
        };
        std::fs::create_dir(home.join("temp")).unwrap();
        let path = home.join("temp/x");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"12345").unwrap();
        let (us, descriptor) = (std::process::id(), file.as_raw_fd() as u32);
        let mut files = Files::default();
        assert_eq!(files.resolve(&server, us, descriptor), Target::File(0));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(files.resolve(&server, us, descriptor), Target::File(0), "the same inode");
        let entry = &files.entries[0];
        assert_eq!((&entry.path, entry.class, entry.reach), (&path, Class::Temp, 5));
        assert_eq!(position(us, descriptor), Some(5));
        drop(file);
        assert_eq!(files.resolve(&server, 0, descriptor), Target::Unknown);
        assert_eq!(position(0, descriptor), None);
    }

    #[test]
    fn a_socket_is_no_file() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let server = Server::new(System::Mariadb, 0, "/d");
        let descriptor = socket.as_raw_fd() as u32;
        let found = Files::default().resolve(&server, std::process::id(), descriptor);
        assert_eq!(found, Target::NoFile);
    }
}
