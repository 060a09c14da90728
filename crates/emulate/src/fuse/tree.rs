//! The files of a place, as the kernel knows them: by node number.
//!
//! A node keeps its file open, so that it can be read, written and taken back whatever happens to
//! its names. It lives as long as the kernel remembers it or it holds unsynced changes.
//!
//! Invariant: one node per file (inode number of the directory below), whatever its names.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Timestamps, chmodat, fstat, openat, statat,
    utimensat,
};
use rustix::io::{Errno, Result};

use super::images::Images;
use super::layout::FileId;

/// Number of the place's own directory.
pub(crate) const ROOT: u64 = 1;

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) file: Rc<File>,
    /// The device below and the inode number there.
    pub(crate) id: FileId,
    /// How often the kernel has been told of it and not forgotten it.
    known: Cell<u64>,
    pub(crate) images: RefCell<Images>,
    /// The newest change of names that concerns it.
    pub(crate) change: Cell<u64>,
}

impl Node {
    pub(crate) fn stat(&self) -> Result<Stat> {
        fstat(&*self.file)
    }

    /// A way to the file that works for sockets and links too, which are open by name only.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    pub(crate) fn set_mode(&self, mode: Mode) -> Result<()> {
        chmodat(CWD, self.path(), mode, AtFlags::empty())
    }

    pub(crate) fn set_times(&self, times: &Timestamps) -> Result<()> {
        utimensat(CWD, self.path(), times, AtFlags::empty())
    }

    /// Keeps what `range` holds, before it changes; false where that is more than `most` bytes. A
    /// sparse file has room for more than any memory.
    pub(crate) fn about_to_change(&self, range: Range<u64>, most: u64) -> Result<bool> {
        let mut images = self.images.borrow_mut();
        images.begin(self.stat()?.st_size as u64);
        let missing = images.missing(range);
        if missing.iter().map(|part| part.end - part.start).sum::<u64>() > most {
            return Ok(false);
        }
        for part in missing {
            let mut old = vec![0; (part.end - part.start) as usize];
            let got = read_at(&self.file, &mut old, part.start)?;
            old.truncate(got);
            images.keep(part.start, old);
        }
        Ok(true)
    }
}

/// What the layout calls a file.
pub(crate) fn id_of(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// Reads as far as the file goes.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
    Ok(done)
}

/// All nodes of a place.
pub(crate) struct Tree {
    nodes: BTreeMap<u64, Rc<Node>>,
    /// Node number by file.
    numbers: HashMap<FileId, u64>,
    next: u64,
}

impl Tree {
    pub(crate) fn new(root: File) -> Result<Self> {
        let mut tree = Self { nodes: BTreeMap::new(), numbers: HashMap::new(), next: ROOT };
        let stat = fstat(&root)?;
        tree.insert(root, id_of(&stat));
        Ok(tree)
    }

    fn insert(&mut self, file: File, id: FileId) -> (u64, Rc<Node>) {
        let number = self.next;
        self.next += 1;
        let node = Rc::new(Node {
            file: Rc::new(file),
            id,
            known: Cell::new(1),
            images: RefCell::default(),
            change: Cell::new(0),
        });
        self.nodes.insert(number, Rc::clone(&node));
        self.numbers.insert(id, number);
        (number, node)
    }

    pub(crate) fn get(&self, number: u64) -> Result<Rc<Node>> {
        self.nodes.get(&number).cloned().ok_or(Errno::STALE)
    }

    /// The node of a name, and one more time that the kernel knows it.
    pub(crate) fn look_up(&mut self, directory: &File, name: &CStr) -> Result<(u64, Stat)> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(&number) = self.numbers.get(&id_of(&stat)) {
            let node = self.get(number)?;
            node.known.set(node.known.get() + 1);
            return Ok((number, stat));
        }
        let how = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => OFlags::RDWR,
            FileType::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
            _ => OFlags::PATH,
        };
        let how = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(directory, name, how, Mode::empty()) {
            // Without root, a file that only may be read.
            Err(Errno::ACCESS) => {
                openat(directory, name, how.difference(OFlags::RDWR), Mode::empty())
            }
            found => found,
        };
        let file = File::from(file?);
        let (number, _) = self.insert(file, id_of(&stat));
        Ok((number, stat))
    }

    /// The kernel forgets a node `times` times; gives the node that was closed for it.
    pub(crate) fn forget(&mut self, number: u64, times: u64) -> Option<Rc<Node>> {
        if number == ROOT {
            return None;
        }
        let node = self.nodes.get(&number)?;
        node.known.set(node.known.get().saturating_sub(times));
        self.drop_if_unneeded(number)
    }

    /// Closes a node that nobody knows and that has nothing to take back.
    pub(crate) fn drop_if_unneeded(&mut self, number: u64) -> Option<Rc<Node>> {
        let unneeded = |node: &Rc<Node>| node.known.get() == 0 && node.images.borrow().is_clean();
        if number == ROOT || !self.nodes.get(&number).is_some_and(unneeded) {
            return None;
        }
        let node = self.nodes.remove(&number).expect("it was there a line above");
        self.numbers.remove(&node.id);
        Some(node)
    }

    /// Every node that is open, in the order in which they were met: chance must not depend on
    /// more.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Rc<Node>> {
        self.nodes.values()
    }
}
