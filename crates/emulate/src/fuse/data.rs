//! Reads, writes and space of a place's files, and what each costs on the device.

use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, Result};
use trace::Op;

use super::layout::FileId;
use super::place::Place;
use super::tree::{Node, read_at};
use super::unwritten::Writes;
use super::wire::{Body, Request, WRITE_MAX};
use crate::clock::now_ns;
use crate::line::{Charge, Part, WrittenBack};

/// `FUSE_WRITE_CACHE`: the kernel writes back what it kept.
const FROM_CACHE: u32 = 1;

/// A range of a file; none reaches beyond the largest offset of one.
fn range_of(offset: u64, len: u64) -> Result<Range<u64>> {
    let end = offset.checked_add(len).filter(|end| i64::try_from(*end).is_ok());
    end.map(|end| offset..end).ok_or(Errno::FBIG)
}

impl Place {
    /// The places of a file's range become the cost of the request.
    fn charge_range(&mut self, op: Op, node: &Node, range: &Range<u64>) {
        if let Some(layout) = &self.layout {
            let pieces = layout.borrow().pieces(node.id, range);
            let parts = pieces.into_iter().map(|(offset, len)| Part { op, offset, len });
            self.charge.parts.extend(parts);
        }
    }

    pub(super) fn charge_flush(&mut self) {
        self.charge.then_flush = self.layout.is_some();
    }

    /// What the device has not of a file becomes a part of the cost of its sync.
    pub(super) fn charge_unwritten(&mut self, number: u64) -> Result<()> {
        if self.layout.is_some() {
            let file = self.tree.get(number)?.id;
            let writes = self.unwritten.synced(file, now_ns());
            self.charge.written_back = self.write_back(file, &writes);
        }
        Ok(())
    }

    /// What the device is given because nobody has asked for it in time.
    pub(super) fn due(&mut self) -> Option<Charge> {
        let (file, writes) = self.unwritten.due(now_ns())?;
        Some(Charge { written_back: self.write_back(file, &writes), ..Charge::FREE })
    }

    /// The device has written so many bytes of these.
    pub(super) fn written(&mut self, bytes: u64) {
        self.unwritten.written(bytes);
    }

    /// Ranges of a file as parts on the device. What is no longer a part of the file has none, nor
    /// is it to be written.
    fn write_back(&mut self, file: FileId, writes: &Writes) -> Option<WrittenBack> {
        let layout = self.layout.as_ref()?.borrow();
        let mut back = WrittenBack { file, writes: Vec::new() };
        for (range, at_ns) in writes {
            let pieces = layout.pieces(file, range);
            let parts: Vec<Part> = pieces
                .into_iter()
                .map(|(offset, len)| Part { op: Op::Write, offset, len })
                .collect();
            let placed: u64 = parts.iter().map(|part| part.len).sum();
            self.unwritten.written((range.end - range.start).saturating_sub(placed));
            if !parts.is_empty() {
                back.writes.push((parts, *at_ns));
            }
        }
        Some(back)
    }

    pub(super) fn read(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u32(16)? as usize));
        let (offset, size) = fields().ok_or(Errno::INVAL)?;
        let node = self.tree.get(request.node)?;
        let mut bytes = vec![0; size.min(WRITE_MAX)];
        let got = read_at(&node.file, &mut bytes, offset)?;
        bytes.truncate(got);
        self.charge_range(Op::Read, &node, &(offset..offset + got as u64));
        Ok(bytes)
    }

    pub(super) fn write(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields =
            || Some((request.u64(8)?, request.u32(16)?, request.u32(20)?, request.u32(32)?));
        let (offset, size, how, flags) = fields().ok_or(Errno::INVAL)?;
        let bytes = request.body.get(40..40 + size as usize).ok_or(Errno::INVAL)?;
        let range = range_of(offset, size.into())?;
        let node = self.tree.get(request.node)?;
        if let Some(layout) = &self.layout {
            layout.borrow_mut().write(node.id, range.clone()).map_err(|_| Errno::NOSPC)?;
        }
        self.keep(request.node, range.clone())?;
        node.file
            .write_all_at(bytes, offset)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.counts.writes += 1;
        let is_held = how & FROM_CACHE != 0
            && self.layout.is_some()
            && self.unwritten.holds(node.id, &range, now_ns());
        if !is_held {
            self.charge_range(Op::Write, &node, &range);
        }
        // What the kernel kept is synced by a request of its own.
        if flags & libc::O_DSYNC as u32 != 0 && how & FROM_CACHE == 0 {
            self.charge_flush();
            self.sync_range(&node, &range);
        }
        let mut body = Body::default();
        body.u32(size);
        body.u32(0);
        Ok(body.0)
    }

    pub(super) fn allocate(&mut self, request: &Request<'_>) -> Result<Vec<u8>> {
        let fields = || Some((request.u64(8)?, request.u64(16)?, request.u32(24)?));
        let (offset, length, mode) = fields().ok_or(Errno::INVAL)?;
        let flags = FallocateFlags::from_bits(mode).ok_or(Errno::OPNOTSUPP)?;
        let known =
            FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !known.contains(flags) {
            return Err(Errno::OPNOTSUPP);
        }
        let range = range_of(offset, length)?;
        let node = self.tree.get(request.node)?;
        let is_trim = flags.contains(FallocateFlags::PUNCH_HOLE);
        if let Some(layout) = &self.layout
            && !is_trim
        {
            layout.borrow_mut().write(node.id, range.clone()).map_err(|_| Errno::NOSPC)?;
        }
        self.keep(request.node, range.clone())?;
        fallocate(&*node.file, flags, offset, length)?;
        if is_trim || flags.contains(FallocateFlags::ZERO_RANGE) {
            self.charge_range(Op::Trim, &node, &range);
        }
        Ok(Vec::new())
    }
}
