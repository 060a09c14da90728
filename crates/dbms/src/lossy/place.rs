//! A pass-through to a directory that remembers what was not synced, one request at a time.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Gid, Mode, Uid, chownat, fallocate, fchmod, fchown,
    fstatvfs, ftruncate, linkat, mkdirat, mknodat, readlinkat, symlinkat,
};
use rustix::io::{Errno, Result};

use super::names::{Names, Place as Name};
use super::tree::{Node, Tree, read_at};
use super::wire::{Body, Op, Request};
use super::{Counts, Fate, Lost};

/// Unsynced old bytes that are kept in memory; beyond it the oldest writes count as durable, as
/// they would where a kernel writes back under pressure.
const IMAGES_BYTES_MAX: u64 = 2 << 30;

/// Size of what survives or does not, where chance decides: what storage writes as a whole.
const SECTOR: u64 = 4096;

/// `FATTR_MODE`, `_UID`, `_GID`, `_SIZE` of a change of attributes.
const SET_MODE: u32 = 1;
const SET_UID: u32 = 2;
const SET_GID: u32 = 4;
const SET_SIZE: u32 = 8;

/// A directory behind the kernel's back.
pub(super) struct Place {
    tree: Tree,
    names: Names,
    /// Syncs are acknowledged and forgotten.
    lies: bool,
    counts: Counts,
    images_bytes: u64,
}

impl Place {
    pub(super) fn new(root: File, waiting: File, lies: bool) -> Result<Self> {
        let (tree, names) = (Tree::new(root)?, Names::new(waiting));
        Ok(Self { tree, names, lies, counts: Counts::default(), images_bytes: 0 })
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Answers a request; `None` where it wants no answer.
    pub(super) fn answer(&mut self, request: &Request<'_>) -> Option<Result<Vec<u8>>> {
        match request.op {
            Op::Forget => {
                self.tree.forget(request.node, request.u64(0).unwrap_or(0));
                None
            }
            Op::BatchForget => {
                for index in 0..request.u32(0).unwrap_or(0) as usize {
                    let at = 8 + index * 16;
                    if let (Some(node), Some(times)) = (request.u64(at), request.u64(at + 8)) {
                        self.tree.forget(node, times);
                    }
                }
                None
            }
            Op::Interrupt => None,
            _ => Some(self.change_or_look(request)),
        }
    }

    fn change_or_look(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        match request.op {
            Op::Init => Body::init(request).map(|body| body.0).ok_or(Errno::PROTO),
            Op::Destroy => Ok(Vec::new()),
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
            Op::Read => self.read(request),
            Op::Write => self.write(request),
            Op::ReadDir => self.read_directory(request),
            Op::StatFs => self.space(request),
            Op::Fallocate => self.allocate(request),
            Op::FSync | Op::FSyncDir => {
                self.counts.syncs += 1;
                self.sync(request.node)?;
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
    fn keep(&mut self, number: u64, range: std::ops::Range<u64>) -> Result<()> {
        let node = self.tree.get(number)?;
        let before = node.images.borrow().bytes();
        node.about_to_change(range)?;
        self.images_bytes += node.images.borrow().bytes() - before;
        if self.images_bytes > IMAGES_BYTES_MAX {
            self.counts.written_back += 1;
            for node in self.tree.all() {
                node.images.borrow_mut().clear();
            }
            self.images_bytes = 0;
            node.about_to_change(0..0)?;
        }
        Ok(())
    }

    fn set_attributes(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u32(0)?, request.u64(16)?, request.u32(68)?));
        let (what, size, mode) = fields().ok_or(Errno::INVAL)?;
        let node = self.tree.get(request.node)?;
        if what & SET_MODE != 0 {
            fchmod(&*node.file, Mode::from_raw_mode(mode & 0o7777))?;
        }
        if what & (SET_UID | SET_GID) != 0 {
            let owner = |bit, at| request.u32(at).filter(|_| what & bit != 0);
            let uid = owner(SET_UID, 76).map(Uid::from_raw);
            fchown(&*node.file, uid, owner(SET_GID, 80).map(Gid::from_raw))?;
        }
        if what & SET_SIZE != 0 {
            self.keep(request.node, size..u64::MAX)?;
            ftruncate(&*node.file, size)?;
        }
        Ok(Body::attr(request.node, &node.stat()?).0)
    }

    fn read(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u32(16)? as usize));
        let (offset, size) = fields().ok_or(Errno::INVAL)?;
        let node = self.tree.get(request.node)?;
        let mut bytes = vec![0; size.min(super::wire::WRITE_MAX)];
        let got = read_at(&node.file, &mut bytes, offset)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    fn write(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u32(16)?, request.u32(32)?));
        let (offset, size, flags) = fields().ok_or(Errno::INVAL)?;
        let bytes = request.body.get(40..40 + size as usize).ok_or(Errno::INVAL)?;
        self.keep(request.node, offset..offset + u64::from(size))?;
        let node = self.tree.get(request.node)?;
        node.file
            .write_all_at(bytes, offset)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.counts.writes += 1;
        if flags & libc::O_DSYNC as u32 != 0 {
            self.sync(request.node)?;
        }
        let mut body = Body::default();
        body.u32(size);
        body.u32(0);
        Ok(body.0)
    }

    fn allocate(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u64(16)?, request.u32(24)?));
        let (offset, length, mode) = fields().ok_or(Errno::INVAL)?;
        let flags = FallocateFlags::from_bits(mode).ok_or(Errno::OPNOTSUPP)?;
        let known =
            FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !known.contains(flags) {
            return Err(Errno::OPNOTSUPP);
        }
        let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
        self.keep(request.node, offset..end)?;
        fallocate(&*self.tree.get(request.node)?.file, flags, offset, length)?;
        Ok(Vec::new())
    }

    fn space(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let found = fstatvfs(&*self.tree.get(request.node)?.file)?;
        let mut body = Body::default();
        for value in [found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree] {
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
            Op::Symlink => symlinkat(request.name(0, 1).ok_or(Errno::INVAL)?, at, name)?,
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
        if request.op == Op::RmDir {
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
        let there = rustix::fs::statat(&*to.file, new, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        match flags {
            0 => {}
            libc::RENAME_NOREPLACE if there => return Err(Errno::EXIST),
            libc::RENAME_NOREPLACE => {}
            _ => return Err(Errno::INVAL),
        }
        let places = (Name::new(&from.file, old), Name::new(&to.file, new));
        let change = self.names.rename(places.0, places.1, there)?;
        from.change.set(change);
        to.change.set(change);
        let (number, _) = self.tree.look_up(&to.file, new)?;
        self.tree.get(number)?.change.set(change);
        self.tree.forget(number, 1);
        Ok(Vec::new())
    }

    /// What a file holds now, and its names, are durable; unless the place lies.
    fn sync(&mut self, number: u64) -> Result<()> {
        if self.lies {
            return Ok(());
        }
        let node = self.tree.get(number)?;
        let mut images = node.images.borrow_mut();
        self.images_bytes -= images.bytes().min(self.images_bytes);
        images.clear();
        drop(images);
        self.names.sync(node.change.get());
        self.tree.drop_if_unneeded(number);
        Ok(())
    }

    /// Takes back what was not synced, all of it or what chance says.
    pub(super) fn cut_power(mut self, fate: Fate) -> Result<Lost> {
        let mut chance = Chance(fate);
        let mut lost = Lost::default();
        for node in self.tree.all() {
            let Some((durable, old)) = node.images.borrow_mut().take() else { continue };
            let size = node.stat()?.st_size as u64;
            let kept = if size > durable { chance.size(durable, size) } else { durable };
            lost.bytes += size.saturating_sub(kept);
            lost.files += 1;
            ftruncate(&*node.file, kept)?;
            for (offset, bytes) in old {
                lost.bytes += put_back(&node.file, offset, &bytes, &mut chance)?;
            }
        }
        let keep = chance.below(self.names.pending());
        lost.names = self.names.take_back(keep)? as u64;
        Ok(lost)
    }
}

fn must_be_empty(directory: &File, name: &CStr) -> Result<()> {
    use rustix::fs::{Dir, OFlags, openat};
    let inside = openat(directory, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let names = Dir::new(inside)?.filter(|entry| {
        !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    });
    if names.count() == 0 { Ok(()) } else { Err(Errno::NOTEMPTY) }
}

/// Writes old bytes back, sector by sector where chance spares some; tells how many.
fn put_back(file: &File, offset: u64, bytes: &[u8], chance: &mut Chance) -> Result<u64> {
    let mut lost = 0;
    let mut at = 0;
    while at < bytes.len() {
        let sector_end = (offset + at as u64 + 1).next_multiple_of(SECTOR) - offset;
        let end = (sector_end as usize).min(bytes.len());
        if !chance.survives() {
            file.write_all_at(&bytes[at..end], offset + at as u64)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            lost += (end - at) as u64;
        }
        at = end;
    }
    Ok(lost)
}

/// Decides what survives.
struct Chance(Fate);

impl Chance {
    /// A number below 2^64, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014); `None` where all is
    /// lost.
    fn draw(&mut self) -> Option<u64> {
        let Fate::Some { seed } = &mut self.0 else { return None };
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }

    fn survives(&mut self) -> bool {
        self.draw().is_some_and(|drawn| drawn & 1 == 1)
    }

    /// Of so many changes in order, how many survive.
    fn below(&mut self, count: usize) -> usize {
        self.draw().map_or(0, |drawn| (drawn % (count as u64 + 1)) as usize)
    }

    /// How far a file that has grown is left, in whole sectors.
    fn size(&mut self, durable: u64, size: u64) -> u64 {
        let sectors = (size - durable).div_ceil(SECTOR);
        let kept = self.below(sectors as usize) as u64 * SECTOR;
        (durable + kept).min(size)
    }
}
