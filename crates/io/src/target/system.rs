//! System calls on files and block devices that the standard library has no name for.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The ioctl that gives the bytes of a block device.
pub(super) const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// Opens with flags that `OpenOptions` has no name for.
pub(super) fn open_with(path: &Path, flags: libc::c_int) -> io::Result<File> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid C string; the descriptor returned is owned by nobody else.
    let fd = unsafe { libc::open(text.as_ptr(), flags | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened.
    Ok(unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(fd) })
}

/// An ioctl that fills a number.
pub(super) fn ioctl_u64(file: &File, request: libc::c_ulong) -> io::Result<u64> {
    let mut value = 0u64;
    // SAFETY: every request used here writes at most eight bytes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, &raw mut value) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
