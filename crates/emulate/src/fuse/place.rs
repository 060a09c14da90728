//! A pass-through to a directory, one request at a time. It may remember what was not synced, so
//! that a power cut can take it back, and it may say what each request costs on a device.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, RenameFlags, Timespec, Timestamps, Uid, chownat, fstatvfs,
    ftruncate, linkat, mkdirat, mknodat, readlinkat, renameat_with, symlinkat,
};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::names::{Names, Place as Name};
use super::tree::{Node, Tree};
use super::unwritten::Unwritten;
use super::wire::{Body, OPEN_CACHED, OPEN_DIRECT, OPEN_PARALLEL, Op, Request};
use crate::line::Charge;

/// Usual [`Behaviour::old_bytes_max`].
pub(crate) const OLD_BYTES_MAX: u64 = 2 << 30;

/// `FATTR_MODE`, `_UID`, `_GID`, `_SIZE`, `_ATIME`, `_MTIME`, `_ATIME_NOW`, `_MTIME_NOW` of a
/// change of attributes.
const SET_MODE: u32 = 1;
const SET_UID: u32 = 2;
const SET_GID: u32 = 4;
const SET_SIZE: u32 = 8;
const SET_ATIME: u32 = 1 << 4;
const SET_MTIME: u32 = 1 << 5;
const SET_ATIME_NOW: u32 = 1 << 7;
const SET_MTIME_NOW: u32 = 1 << 8;

/// What a place has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Times that memory ran out and everything so far was taken as durable.
    pub written_back: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.syncs += other.syncs;
        self.written_back += other.written_back;
    }
}

/// How a place behaves.
#[derive(Debug)]
pub(crate) struct Behaviour {
    /// Where removed files wait until their removal is durable; without it nothing is remembered,
    /// and a power cut takes nothing.
    pub(crate) waiting: Option<File>,
    /// Syncs are acknowledged and forgotten.
    pub(crate) lies: bool,
    /// The kernel may keep what was written and send it later, as over a real file system.
    pub(crate) write_back: bool,
    /// The device that is charged.
    pub(crate) layout: Option<Rc<RefCell<Layout>>>,
    /// Unsynced old bytes that are kept in memory; beyond it everything so far counts as durable,
    /// as it would where a kernel writes back under pressure.
    pub(crate) old_bytes_max: u64,
}

/// The answer to a request: at once where it costs nothing.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Result<Vec<u8>>,
    pub(crate) charge: Charge,
}

/// A directory behind the kernel's back.
pub(crate) struct Place {
    pub(super) tree: Tree,
    pub(super) names: Names,
    keeps: bool,
    lies: bool,
    write_back: bool,
    pub(super) layout: Option<Rc<RefCell<Layout>>>,
    pub(super) unwritten: Unwritten,
    pub(super) counts: Counts,
    old_bytes_max: u64,
    images_bytes: u64,
    /// What the request that is being answered costs.
    pub(super) charge: Charge,
}

impl Place {
    pub(crate) fn new(root: File, behaviour: Behaviour) -> Result<Self> {
        Ok(Self {
            tree: Tree::new(root)?,
            keeps: behaviour.waiting.is_some(),
            names: Names::new(behaviour.waiting),
            lies: behaviour.lies,
            write_back: behaviour.write_back,
            layout: behaviour.layout,
            unwritten: Unwritten::default(),
            counts: Counts::default(),
            old_bytes_max: behaviour.old_bytes_max,
            images_bytes: 0,
            charge: Charge::FREE,
        })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Answers a request; `None` where it wants no answer.
    pub(crate) fn answer(&mut self, request: &Request<'_>) -> Option<Answer> {
        match request.op {
            Op::Forget => {
                self.forget(request.node, request.u64(0).unwrap_or(0));
                None
            }
            Op::BatchForget => {
                let count = request.u32(0).unwrap_or(0) as usize;
                let there = request.body.len().saturating_sub(8) / 16;
                for at in (0..count.min(there)).map(|index| 8 + index * 16) {
                    if let (Some(node), Some(times)) = (request.u64(at), request.u64(at + 8)) {
                        self.forget(node, times);
                    }
                }
                None
            }
            Op::Interrupt => None,
            _ => {
                let body = self.change_or_look(request);
                let charge = std::mem::take(&mut self.charge);
                Some(Answer { body, charge })
            }
        }
    }

    /// The kernel forgets a node; the space of a file that has no name is free with it.
    fn forget(&mut self, number: u64, times: u64) {
        if let Some(closed) = self.tree.forget(number, times) {
            self.release(&closed);
        }
    }

    fn release(&mut self, closed: &Node) {
        if let Some(layout) = &self.layout
            && closed.stat().is_ok_and(|stat| stat.st_nlink == 0)
        {
            layout.borrow_mut().remove(closed.id);
            self.unwritten.removed(closed.id);
        }
    }

    fn change_or_look(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        match request.op {
            Op::Init => Body::init(request, self.write_back).map(|body| body.0).ok_or(Errno::PROTO),
            Op::Destroy | Op::Release => Ok(Vec::new()),
            Op::Lookup => {
                let directory = self.tree.get(request.node)?;
                self.entry(&directory, request.name(0, 0).ok_or(Errno::INVAL)?)
            }
            Op::GetAttr => {
                let node = self.tree.get(request.node)?;
                Ok(Body::attr(request.node, &node.stat()?).0)
            }
            Op::SetAttr => self.set_attributes(request),
            Op::ReadLink => {
                let node = self.tree.get(request.node)?;
                Ok(readlinkat(&*node.file, "", Vec::new())?.into_bytes())
            }
            Op::Open => {
                let flags = request.u32(0).ok_or(Errno::INVAL)?;
                let is_direct = flags & libc::O_DIRECT as u32 != 0;
                let how = if is_direct { OPEN_DIRECT | OPEN_PARALLEL } else { OPEN_CACHED };
                Ok(Body::open(how).0)
            }
            Op::Read => self.read(request),
            Op::Write => self.write(request),
            Op::ReadDir => self.read_directory(request),
            Op::StatFs => self.space(request),
            Op::Fallocate => self.allocate(request),
            Op::FSync | Op::FSyncDir => {
                self.counts.syncs += 1;
                self.charge_flush();
                self.charge_unwritten(request.node)?;
                self.sync(request.node)?;
                Ok(Vec::new())
            }
            Op::Flush if self.layout.is_some() => {
                let file = self.tree.get(request.node)?.id;
                self.unwritten.closed(file);
                Ok(Vec::new())
            }
            Op::MkNod | Op::MkDir | Op::Symlink | Op::Link => self.make(request),
            Op::Unlink | Op::RmDir => self.remove(request),
            Op::Rename | Op::Rename2 => self.rename(request),
            _ => Err(Errno::NOSYS),
        }
    }

    fn entry(&mut self, directory: &Node, name: &CStr) -> Result<Vec<u8>> {
        let (number, stat) = self.tree.look_up(&directory.file, name)?;
        Ok(Body::entry(number, &stat).0)
    }

    /// Keeps the old content of a range before it changes, within bounds.
    pub(super) fn keep(&mut self, number: u64, range: std::ops::Range<u64>) -> Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let node = self.tree.get(number)?;
        let before = node.images.borrow().bytes();
        let is_kept = node.about_to_change(range, self.old_bytes_max)?;
        self.images_bytes += node.images.borrow().bytes() - before;
        if !is_kept || self.images_bytes > self.old_bytes_max {
            // This change too is durable: without its old bytes nothing could be taken back.
            self.counts.written_back += 1;
            for node in self.tree.all() {
                node.images.borrow_mut().clear();
            }
            self.images_bytes = 0;
        }
        Ok(())
    }

    fn set_attributes(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u32(0)?, request.u64(16)?, request.u32(68)?));
        let (what, size, mode) = fields().ok_or(Errno::INVAL)?;
        let node = self.tree.get(request.node)?;
        if what & SET_MODE != 0 {
            node.set_mode(Mode::from_raw_mode(mode & 0o7777))?;
        }
        if what & (SET_UID | SET_GID) != 0 {
            let owner = |bit, at| request.u32(at).filter(|_| what & bit != 0);
            let uid = owner(SET_UID, 76).map(Uid::from_raw);
            let gid = owner(SET_GID, 80).map(Gid::from_raw);
            chownat(&*node.file, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if what & SET_SIZE != 0 {
            self.keep(request.node, size..u64::MAX)?;
            ftruncate(&*node.file, size)?;
            if let Some(layout) = &self.layout {
                layout.borrow_mut().truncate(node.id, size);
            }
        }
        if what & (SET_ATIME | SET_MTIME | SET_ATIME_NOW | SET_MTIME_NOW) != 0 {
            node.set_times(&times(request, what).ok_or(Errno::INVAL)?)?;
        }
        Ok(Body::attr(request.node, &node.stat()?).0)
    }

    fn space(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let found = fstatvfs(&*self.tree.get(request.node)?.file)?;
        let (mut blocks, mut free) = (found.f_blocks, found.f_bavail);
        if let Some(layout) = &self.layout {
            let layout = layout.borrow();
            blocks = blocks.min(layout.capacity() / found.f_frsize);
            free = free.min(layout.free_bytes() / found.f_frsize);
        }
        let mut body = Body::default();
        for value in [blocks, free, free, found.f_files, found.f_ffree] {
            body.u64(value);
        }
        let narrow = [found.f_bsize, found.f_namemax, found.f_frsize, 0, 0, 0, 0, 0, 0, 0];
        for value in narrow {
            body.u32(value as u32);
        }
        Ok(body.0)
    }

    /// The directory below is read with its own positions, which stay good while names come and go.
    fn read_directory(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u32(16)? as usize));
        let (offset, limit) = fields().ok_or(Errno::INVAL)?;
        let node = self.tree.get(request.node)?;
        rustix::fs::seek(&*node.file, rustix::fs::SeekFrom::Start(offset))?;
        let mut body = Body::default();
        let mut buffer = vec![0u8; limit.clamp(1024, 1 << 16)];
        loop {
            // SAFETY: the buffer is ours and as long as stated.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    node.file.as_raw_fd(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                )
            };
            if got < 0 {
                return Err(
                    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
                );
            }
            let mut rest = &buffer[..got as usize];
            if rest.is_empty() {
                return Ok(body.0);
            }
            // linux_dirent64: inode, position after it, length, type, name.
            while rest.len() > 19 {
                let word = |at: usize| u64::from_ne_bytes(rest[at..at + 8].try_into().expect("8"));
                let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
                let name = CStr::from_bytes_until_nul(&rest[19..length]).map_err(|_| Errno::IO)?;
                if !body.dirent(word(0), word(8), rest[18], name.to_bytes(), limit) {
                    return Ok(body.0);
                }
                rest = &rest[length..];
            }
        }
    }

    fn make(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let directory = self.tree.get(request.node)?;
        let at = &*directory.file;
        let fixed = match request.op {
            Op::MkNod => 16,
            Op::MkDir | Op::Link => 8,
            _ => 0,
        };
        let name = request.name(fixed, 0).ok_or(Errno::INVAL)?;
        let mode = request.u32(0).unwrap_or(0);
        let permissions = Mode::from_raw_mode(mode & 0o7777);
        match request.op {
            Op::MkNod => {
                let kind = FileType::from_raw_mode(mode);
                mknodat(at, name, kind, permissions, 0)?;
            }
            Op::MkDir => mkdirat(at, name, permissions)?,
            Op::Symlink => symlinkat(request.text(0, 1).ok_or(Errno::INVAL)?, at, name)?,
            _ => {
                let old = self.tree.get(request.u64(0).ok_or(Errno::INVAL)?)?;
                let path = format!("/proc/self/fd/{}", old.file.as_raw_fd());
                linkat(rustix::fs::CWD, path, at, name, AtFlags::SYMLINK_FOLLOW)?;
            }
        }
        if request.op != Op::Link {
            let (uid, gid) = (Uid::from_raw(request.uid), Gid::from_raw(request.gid));
            chownat(at, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if matches!(request.op, Op::MkNod | Op::MkDir) {
            // Whatever our own umask is.
            rustix::fs::chmodat(at, name, permissions, AtFlags::empty())?;
        }
        let change = self.names.made(Name::new(&directory.file, name));
        directory.change.set(change);
        let (number, stat) = self.tree.look_up(at, name)?;
        self.tree.get(number)?.change.set(change);
        Ok(Body::entry(number, &stat).0)
    }

    fn remove(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let directory = self.tree.get(request.node)?;
        let name = request.name(0, 0).ok_or(Errno::INVAL)?;
        if request.op == Op::RmDir && self.keeps {
            must_be_empty(&directory.file, name)?;
        }
        let change = self.names.remove(Name::new(&directory.file, name))?;
        directory.change.set(change);
        Ok(Vec::new())
    }

    fn rename(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let (fixed, flags) = match request.op {
            Op::Rename2 => (16, request.u32(8).unwrap_or(0)),
            _ => (8, 0),
        };
        let to = self.tree.get(request.u64(0).ok_or(Errno::INVAL)?)?;
        let from = self.tree.get(request.node)?;
        let name = |index| request.name(fixed, index).ok_or(Errno::INVAL);
        let (old, new) = (name(0)?, name(1)?);
        let target = rustix::fs::statat(&*to.file, new, AtFlags::SYMLINK_NOFOLLOW);
        let is_directory = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
        let replaces_directory = target.as_ref().is_ok_and(|stat| is_directory(stat.st_mode));
        let there = target.is_ok();
        match flags {
            0 => {}
            _ if !self.keeps => {
                let flags = RenameFlags::from_bits_retain(flags);
                return renameat_with(&*from.file, old, &*to.file, new, flags).map(|()| Vec::new());
            }
            libc::RENAME_NOREPLACE if there => return Err(Errno::EXIST),
            libc::RENAME_NOREPLACE => {}
            _ => return Err(Errno::INVAL),
        }
        if replaces_directory && self.keeps {
            must_be_empty(&to.file, new)?;
        }
        let places = (Name::new(&from.file, old), Name::new(&to.file, new));
        let change = self.names.rename(places.0, places.1, there)?;
        from.change.set(change);
        to.change.set(change);
        let (number, _) = self.tree.look_up(&to.file, new)?;
        self.tree.get(number)?.change.set(change);
        self.forget(number, 1);
        Ok(Vec::new())
    }

    /// What a file holds in a range, and its names, are durable; unless the place lies.
    pub(super) fn sync_range(&mut self, node: &Node, range: &std::ops::Range<u64>) {
        if self.lies {
            return;
        }
        let mut images = node.images.borrow_mut();
        let before = images.bytes();
        images.make_durable(range);
        self.images_bytes = (self.images_bytes + images.bytes()).saturating_sub(before);
        self.names.sync(node.change.get());
    }

    /// What a file holds now, and its names, are durable; unless the place lies.
    pub(super) fn sync(&mut self, number: u64) -> Result<()> {
        if self.lies {
            return Ok(());
        }
        let node = self.tree.get(number)?;
        let mut images = node.images.borrow_mut();
        self.images_bytes -= images.bytes().min(self.images_bytes);
        images.clear();
        drop(images);
        self.names.sync(node.change.get());
        if let Some(closed) = self.tree.drop_if_unneeded(number) {
            self.release(&closed);
        }
        Ok(())
    }
}

/// The times of a change of attributes; what is not set stays.
fn times(request: &Request<'_>, what: u32) -> Option<Timestamps> {
    let time = |set: u32, now: u32, seconds: usize, nanos: usize| {
        if what & now != 0 {
            return Some(Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW });
        }
        if what & set == 0 {
            return Some(Timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT });
        }
        let (tv_sec, tv_nsec) = (request.u64(seconds)? as i64, request.u32(nanos)?.into());
        Some(Timespec { tv_sec, tv_nsec })
    };
    Some(Timestamps {
        last_access: time(SET_ATIME, SET_ATIME_NOW, 32, 56)?,
        last_modification: time(SET_MTIME, SET_MTIME_NOW, 40, 60)?,
    })
}

fn must_be_empty(directory: &File, name: &CStr) -> Result<()> {
    use rustix::fs::{Dir, OFlags, openat};
    let inside = openat(directory, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let names = Dir::new(inside)?.filter(|entry| {
        !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    });
    if names.count() == 0 { Ok(()) } else { Err(Errno::NOTEMPTY) }
}
