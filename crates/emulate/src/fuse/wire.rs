//! The part of the kernel's FUSE protocol that a pass-through needs (`linux/fuse.h`, version 7.31).
//!
//! Requests are a header of 40 bytes and a body; replies a header of 16 and a body; all fields are
//! in the machine's byte order. Offsets in this file are those of the header's structs.

use rustix::fs::Stat;

/// Version that we speak; the kernel adapts to an older minor one.
const MAJOR: u32 = 7;
const MINOR: u32 = 31;

/// Largest write that the kernel may send, bytes.
pub(crate) const WRITE_MAX: usize = 1 << 20;

/// Header and fixed part of a write in front of its data.
pub(crate) const BUFFER: usize = WRITE_MAX + 4096;

/// `FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES |
/// FUSE_NO_OPENDIR_SUPPORT`: requests may overlap and be large, and directories need no handles.
const FEATURES: u32 = 1 | 1 << 5 | 1 << 15 | 1 << 18 | 1 << 22 | 1 << 24;

/// `FUSE_WRITEBACK_CACHE`: the kernel keeps what was written and sends it later.
const WRITE_BACK: u32 = 1 << 16;

/// Requests that the kernel may send without waiting for an answer, such as pages written back.
const BACKGROUND_MAX: u16 = 1024;

/// Granularity of a file's times where the kernel keeps what was written, ns. It keeps the time of
/// the last write too, and sends it in a request of its own before every sync in whose time it
/// changed: at its own granularity that is nearly every one of a log, which waits for the answer.
const TIMES_NS: u32 = 100_000_000;

/// `FOPEN_DIRECT_IO`, `FOPEN_KEEP_CACHE`, `FOPEN_PARALLEL_DIRECT_WRITES`: how a file is opened.
pub(crate) const OPEN_DIRECT: u32 = 1;
pub(crate) const OPEN_CACHED: u32 = 1 << 1;
pub(crate) const OPEN_PARALLEL: u32 = 1 << 6;

/// What the kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Lookup,
    Forget,
    GetAttr,
    SetAttr,
    ReadLink,
    Symlink,
    MkNod,
    MkDir,
    Unlink,
    RmDir,
    Rename,
    Link,
    Open,
    Read,
    Write,
    StatFs,
    Release,
    FSync,
    Flush,
    Init,
    ReadDir,
    FSyncDir,
    Interrupt,
    Destroy,
    BatchForget,
    Fallocate,
    Rename2,
    /// One that we leave to the kernel's fallback.
    Other,
}

impl Op {
    fn of(code: u32) -> Self {
        match code {
            1 => Self::Lookup,
            2 => Self::Forget,
            3 => Self::GetAttr,
            4 => Self::SetAttr,
            5 => Self::ReadLink,
            6 => Self::Symlink,
            8 => Self::MkNod,
            9 => Self::MkDir,
            10 => Self::Unlink,
            11 => Self::RmDir,
            12 => Self::Rename,
            13 => Self::Link,
            14 => Self::Open,
            15 => Self::Read,
            16 => Self::Write,
            17 => Self::StatFs,
            18 => Self::Release,
            20 => Self::FSync,
            25 => Self::Flush,
            26 => Self::Init,
            28 => Self::ReadDir,
            30 => Self::FSyncDir,
            36 => Self::Interrupt,
            38 => Self::Destroy,
            42 => Self::BatchForget,
            43 => Self::Fallocate,
            45 => Self::Rename2,
            _ => Self::Other,
        }
    }
}

/// A request within the buffer that it was read into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) op: Op,
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the header; `None` where there is none.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = Self { op: Op::Other, unique: 0, node: 0, uid: 0, gid: 0, body: bytes };
        Some(Self {
            op: Op::of(header.u32(4)?),
            unique: header.u64(8)?,
            node: header.u64(16)?,
            uid: header.u32(24)?,
            gid: header.u32(28)?,
            body: bytes.get(40..)?,
        })
    }

    pub(crate) fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.body.get(at..at + 4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.body.get(at..at + 8)?.try_into().ok()?))
    }

    /// The n-th text that ends in a zero, after the fixed part, as a name within a directory. The
    /// kernel sends no other; one that leads elsewhere would leave the directory that is served.
    pub(crate) fn name(&self, fixed: usize, index: usize) -> Option<&'a std::ffi::CStr> {
        let name = self.text(fixed, index)?;
        let bytes = name.to_bytes();
        (!matches!(bytes, b"" | b"." | b"..") && !bytes.contains(&b'/')).then_some(name)
    }

    /// The n-th text that ends in a zero, after the fixed part.
    pub(crate) fn text(&self, fixed: usize, index: usize) -> Option<&'a std::ffi::CStr> {
        let mut rest = self.body.get(fixed..)?;
        for _ in 0..index {
            rest = &rest[rest.iter().position(|&byte| byte == 0)? + 1..];
        }
        std::ffi::CStr::from_bytes_until_nul(rest).ok()
    }
}

/// A reply's body under construction.
#[derive(Debug, Default)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl Body {
    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_ne_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_ne_bytes());
    }

    /// `fuse_attr`.
    fn attributes(&mut self, node: u64, stat: &Stat) {
        let wide = [node, stat.st_size as u64, stat.st_blocks as u64];
        let times = [stat.st_atime as u64, stat.st_mtime as u64, stat.st_ctime as u64];
        for value in wide.into_iter().chain(times) {
            self.u64(value);
        }
        for nanos in [stat.st_atime_nsec, stat.st_mtime_nsec, stat.st_ctime_nsec] {
            self.u32(nanos as u32);
        }
        let narrow = [stat.st_mode, stat.st_nlink as u32, stat.st_uid, stat.st_gid, 0, 4096, 0];
        for value in narrow {
            self.u32(value);
        }
    }

    /// `fuse_entry_out`: a name's node. The kernel may keep it for a second.
    pub(crate) fn entry(node: u64, stat: &Stat) -> Self {
        let mut body = Self::default();
        for value in [node, 0, 1, 1, 0] {
            body.u64(value);
        }
        body.attributes(node, stat);
        body
    }

    /// `fuse_attr_out`.
    pub(crate) fn attr(node: u64, stat: &Stat) -> Self {
        let mut body = Self::default();
        body.u64(1);
        body.u64(0);
        body.attributes(node, stat);
        body
    }

    /// `fuse_open_out`, without a handle.
    pub(crate) fn open(flags: u32) -> Self {
        let mut body = Self::default();
        body.u64(0);
        body.u32(flags);
        body.u32(0);
        body
    }

    /// `fuse_init_out`.
    pub(crate) fn init(request: &Request<'_>, write_back: bool) -> Option<Self> {
        let (minor, readahead, offered) = (request.u32(4)?, request.u32(8)?, request.u32(12)?);
        let features = if write_back { FEATURES | WRITE_BACK } else { FEATURES };
        let mut body = Self::default();
        for value in [MAJOR, MINOR.min(minor), readahead, features & offered] {
            body.u32(value);
        }
        // Requests in the background, and how many of them are a congestion.
        body.u16(BACKGROUND_MAX);
        body.u16(BACKGROUND_MAX / 4 * 3);
        body.u32(WRITE_MAX as u32);
        body.u32(if write_back { TIMES_NS } else { 1 });
        body.u16((WRITE_MAX / 4096) as u16);
        body.u16(0);
        (0..8).for_each(|_| body.u32(0));
        Some(body)
    }

    /// `fuse_dirent`; false where it does not fit into `limit`.
    pub(crate) fn dirent(
        &mut self,
        ino: u64,
        next: u64,
        kind: u8,
        name: &[u8],
        limit: usize,
    ) -> bool {
        let padded = (24 + name.len()).next_multiple_of(8);
        if self.0.len() + padded > limit {
            return false;
        }
        let end = self.0.len() + padded;
        self.u64(ino);
        self.u64(next);
        self.u32(name.len() as u32);
        self.u32(kind.into());
        self.0.extend(name);
        self.0.resize(end, 0);
        true
    }
}

/// A whole reply: `error` is 0 or a negative errno.
pub(crate) fn reply(unique: u64, error: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + body.len());
    bytes.extend((16 + body.len() as u32).to_ne_bytes());
    bytes.extend(error.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the structs in `linux/fuse.h`.
    #[test]
    fn replies_have_the_sizes_of_the_kernels_structs() {
        let stat = rustix::fs::stat("/").unwrap();
        assert_eq!(Body::entry(1, &stat).0.len(), 128);
        assert_eq!(Body::attr(1, &stat).0.len(), 104);
        let body = [7u32, 40, 131072, u32::MAX].map(u32::to_ne_bytes).concat();
        let mut bytes = vec![0; 40];
        bytes.extend(body);
        let request = Request::parse(&bytes).unwrap();
        let init = |write_back| Body::init(&request, write_back).unwrap().0;
        assert_eq!(init(true).len(), 64);
        let granularity = |init: Vec<u8>| u32::from_ne_bytes(init[24..28].try_into().unwrap());
        assert_eq!([granularity(init(false)), granularity(init(true))], [1, 100_000_000]);
        assert_eq!(reply(1, 0, &[1, 2]).len(), 18);
    }

    #[test]
    fn names_end_in_zeros_and_short_requests_are_none() {
        let mut bytes = vec![0; 40];
        bytes.extend(b"12345678old\0new\0");
        let request = Request::parse(&bytes).unwrap();
        assert_eq!(request.name(8, 0).unwrap().to_bytes(), b"old");
        assert_eq!(request.name(8, 1).unwrap().to_bytes(), b"new");
        assert!(request.name(8, 2).is_none() && request.u64(12).is_none());
        assert!(Request::parse(&bytes[..39]).is_none());
        for bad in ["", ".", "..", "../x", "/x", "x/y"] {
            let bytes = [&[0; 40], bad.as_bytes(), &[0]].concat();
            let request = Request::parse(&bytes).unwrap();
            assert!(request.name(0, 0).is_none() && request.text(0, 0).is_some(), "{bad}");
        }
    }

    #[test]
    fn directory_entries_are_padded_and_bounded() {
        let mut body = Body::default();
        assert!(body.dirent(1, 2, 4, b"abc", 64) && body.0.len() == 32);
        assert!(body.dirent(1, 2, 4, b"abcdefgh", 64) && body.0.len() == 64);
        assert!(!body.dirent(1, 2, 4, b"a", 64));
    }
}
