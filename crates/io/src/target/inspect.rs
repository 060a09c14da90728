//! What a target is and whether it may be used, decided before anything is opened or changed.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use units::Bytes;

use super::own::{PRIVATE_NAME, has_mark};
use super::{Need, TargetInfo, TargetKind, TargetSpec, block, facts};
use crate::error::Error;

/// Kind of thing at a path, decided before anything is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    Missing,
    Regular,
    Block,
}

/// Says what a target is and checks that it may be used, without creating or changing anything.
pub fn inspect(spec: &TargetSpec, need: &Need) -> Result<TargetInfo, Error> {
    let path = &spec.path;
    if let Some(named) = &spec.i_will_lose_data
        && named != path
    {
        return Err(Error::NamedDifferently { path: path.clone(), named: named.clone() });
    }
    let given_up = spec.i_will_lose_data.is_some();
    let kind = kind_of(path)?;
    let (file, writable, fresh) = match kind {
        Kind::Directory => (path.join(format!("{PRIVATE_NAME}.tmp")), true, true),
        Kind::Missing => (path.clone(), true, true),
        Kind::Regular => (path.clone(), given_up || has_mark(path), false),
        Kind::Block => (path.clone(), given_up, false),
    };
    if need.must_write && !writable {
        return Err(Error::WouldDestroy { path: path.clone() });
    }
    let range_bytes = match kind {
        Kind::Directory | Kind::Missing => {
            check_free(&file, need.range_bytes)?;
            need.range_bytes
        }
        Kind::Regular if writable => {
            block::refuse_backing(path, Path::new("/sys"))?;
            existing_range(path, fs::metadata(path), need, writable)?
        }
        Kind::Regular => existing_range(path, fs::metadata(path), need, writable)?,
        Kind::Block => {
            block::refuse_used(path, Path::new("/sys"), Path::new("/proc/self/mountinfo"))?;
            fit(path, block::size_bytes(path)?, need, false)?
        }
    };
    let facts_of = if kind == Kind::Missing { parent_of(path) } else { path.as_path() };
    let (facts, logical_block_bytes) = facts::gather(facts_of, kind == Kind::Block);
    Ok(TargetInfo {
        named: path.clone(),
        path: file,
        kind: if kind == Kind::Block { TargetKind::BlockDevice } else { TargetKind::File },
        range_bytes,
        logical_block_bytes,
        facts,
        writable,
        fresh,
    })
}

fn kind_of(path: &Path) -> Result<Kind, Error> {
    let found = match fs::metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if parent_of(path).is_dir() {
                return Ok(Kind::Missing);
            }
            return Err(Error::NoParent { path: path.to_owned() });
        }
        Err(error) => return Err(Error::target("look at", path, error)),
    };
    let wrong = |kind| Err(Error::WrongKind { path: path.to_owned(), kind });
    match found {
        kind if kind.is_dir() => Ok(Kind::Directory),
        kind if kind.is_file() => Ok(Kind::Regular),
        kind if kind.is_block_device() => Ok(Kind::Block),
        kind if kind.is_char_device() => wrong("character device"),
        kind if kind.is_fifo() => wrong("pipe"),
        _ => wrong("socket or something else"),
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// The part of an existing target that is measured: all that was asked for, or all there is.
fn fit(path: &Path, size: u64, need: &Need, grows: bool) -> Result<u64, Error> {
    if grows {
        return Ok(need.range_bytes);
    }
    let range = need.range_bytes.min(size) / 4096 * 4096;
    if range < (1 << 20).min(need.range_bytes) {
        let (size, needed) = (Bytes(size), Bytes((1 << 20).min(need.range_bytes)));
        return Err(Error::TooSmall { path: path.to_owned(), size, needed });
    }
    Ok(range)
}

fn existing_range(
    path: &Path,
    found: io::Result<fs::Metadata>,
    need: &Need,
    writable: bool,
) -> Result<u64, Error> {
    let size = found.map_err(|source| Error::target("look at", path, source))?.len();
    // Only a file of our own grows; one that may be overwritten keeps its size.
    let grows = writable && has_mark(path);
    if grows && size < need.range_bytes {
        check_free(path, need.range_bytes - size)?;
    }
    fit(path, size, need, grows)
}

fn check_free(file: &Path, needed: u64) -> Result<(), Error> {
    let directory = parent_of(file);
    let found = rustix::fs::statvfs(directory)
        .map_err(|source| Error::target("look at", directory, source.into()))?;
    let free = found.f_bavail * found.f_frsize;
    // Leave some room for everybody else: a full file system breaks more than this run.
    let wanted = needed + needed / 64;
    if wanted > free {
        let (needed, free) = (Bytes(wanted), Bytes(free));
        return Err(Error::TooFewFree { path: file.to_owned(), needed, free });
    }
    Ok(())
}
