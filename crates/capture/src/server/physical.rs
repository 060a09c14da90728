//! What the disks under a server really did, by file class.
//!
//! One block-layer capture per disk ([`crate::block`]), attributed by where the server's files lay
//! while the load ran (`watch.rs`). Blocks of no file of the server are the file system's own where
//! the request says so (`M` in the tracer's letters) or where the journal of ext4 lies; everything
//! else is foreign: other programs, and what was missed. Flushes belong to the disk as a whole and
//! stand in the class `filesystem`: it is the file system that issues them.
//!
//! Invariant: the classes add up to the disk's trace, by construction; [`super::Closure`] holds
//! that against the kernel's own counters. Tested on a real server.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::class::{Class, Server};
use super::journal;
use super::watch::{self, Owned, Watch};
use crate::Unavailable;
use crate::block::{self, BlockCapture, Physical, Raw};

/// Streams of a physical trace behind those of [`Class::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhysicalClass {
    /// Journal and metadata of the file system, and flushes.
    Filesystem,
    /// No file of the server: other programs, or a file that was gone too soon.
    Foreign,
}

impl PhysicalClass {
    /// Both, in the order of their stream indices.
    pub const ALL: [Self; 2] = [Self::Filesystem, Self::Foreign];

    /// The stream name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::Foreign => "foreign",
        }
    }

    /// The stream index.
    pub fn stream(self) -> u16 {
        Class::ALL.len() as u16 + self as u16
    }
}

/// A running capture of every disk under a server.
pub struct PhysicalCapture {
    disks: Vec<Disk>,
    watch: Watch,
}

struct Disk {
    capture: BlockCapture,
    number: u32,
    /// Where the journals of its file systems lie.
    journals: Vec<(u64, u64)>,
}

/// What the disks did.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPhysical {
    /// Name and requests of each disk.
    pub disks: Vec<(String, Physical)>,
}

impl PhysicalCapture {
    /// Starts on the disks under all directories of the server.
    pub fn start(server: &Server) -> Result<Self, Unavailable> {
        let mut disks: Vec<Disk> = Vec::new();
        for directory in server.directories() {
            let device = crate::device::of(directory).map_err(|error| {
                Unavailable::new(error.to_string(), "Put the server's files on local disks.")
            })?;
            let known = disks.iter().position(|disk| disk.number == device.number);
            let at = known.unwrap_or(disks.len());
            if known.is_none() {
                let capture = block::start(directory)?;
                disks.push(Disk { capture, number: device.number, journals: Vec::new() });
            }
            let start = device.partition_start;
            let journal = node_of(directory).map(|node| journal::extents(&node));
            let moved = journal.unwrap_or_default().into_iter().map(|(at, len)| (start + at, len));
            disks[at].journals.extend(moved);
        }
        Ok(Self { disks, watch: Watch::start(server) })
    }

    /// Ends the capture; call this while the server's files still exist.
    pub fn finish(self) -> ServerPhysical {
        let ended = |disk: Disk| (disk.capture.into_raw(), disk.number, disk.journals);
        // All captures end before any of the slow work begins.
        let raws: Vec<_> = self.disks.into_iter().map(ended).collect();
        let history = self.watch.finish();
        let mut disks = Vec::new();
        for (raw, number, journals) in raws {
            let name = raw.device.name.clone();
            let streams = streams(&raw, number, &journals, &history);
            let own = Class::ALL.iter().map(|class| class.name());
            let rest = PhysicalClass::ALL.iter().map(|class| class.name());
            disks.push((name, raw.attributed(&streams, own.chain(rest))));
        }
        ServerPhysical { disks }
    }
}

/// The stream of each request of a disk.
fn streams(raw: &Raw, disk: u32, journals: &[(u64, u64)], history: &[Owned]) -> Vec<u16> {
    let of_disk: Vec<Owned> = history.iter().copied().filter(|piece| piece.disk == disk).collect();
    let places: Vec<(u64, u64)> =
        raw.requests.iter().map(|request| (request.end_ns, request.offset)).collect();
    // Owners are asked for in the order of time, and requests are sorted by their start.
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|index| places[*index].0);
    let sorted: Vec<(u64, u64)> = order.iter().map(|index| places[*index]).collect();
    let mut owners = vec![None; places.len()];
    for (index, owner) in order.into_iter().zip(watch::owners(&sorted, &of_disk)) {
        owners[index] = owner;
    }
    let in_journal =
        |offset: u64| journals.iter().any(|(start, len)| (*start..start + len).contains(&offset));
    let stream = |(request, owner): (&block::join::Joined, Option<u16>)| {
        if request.len == 0 || request.meta || in_journal(request.offset) {
            return PhysicalClass::Filesystem.stream();
        }
        owner.unwrap_or(PhysicalClass::Foreign.stream())
    };
    raw.requests.iter().zip(owners).map(stream).collect()
}

/// The device node of the file system that holds a directory.
fn node_of(directory: &Path) -> Option<PathBuf> {
    let number = std::fs::metadata(directory).ok()?.dev();
    let (major, minor) = (libc::major(number), libc::minor(number));
    let sysfs = PathBuf::from(format!("/sys/dev/block/{major}:{minor}")).canonicalize().ok()?;
    Some(Path::new("/dev").join(sysfs.file_name()?))
}
