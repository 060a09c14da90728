//! Zstandard frames (RFC 8878) around the byte planes of a page.
//!
//! Every plane is a frame of its own, and a page is their concatenation, which Parquet readers
//! decompress as one. So each plane is stored in the way that suits it: one that repeats a byte as
//! an RLE block, one that hardly compresses as raw blocks, anything else as libzstd has it. The
//! first two are made and read here: a raw block is read where it lies, without a copy.
//!
//! A plane counts as hardly compressible where compression saves less than three eighths: entropy
//! decoding yields about 1 GB/s, so a saved byte must buy the nanosecond that it costs.
//!
//! Tests: round trips of any bytes, the handmade frames through libzstd, damage of any kind.

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frame header: a single segment whose content size follows in four bytes.
const DESCRIPTOR: u8 = 0xa0;
const HEADER_BYTES: usize = 9;
const BLOCK_HEADER_BYTES: usize = 3;
/// Most bytes of a block.
const BLOCK: usize = 128 << 10;
/// Level 3 finds what repeats; matches of fewer than seven bytes cost more time than they save.
const LEVEL: i32 = 3;
const LEAST_MATCH: u32 = 7;

/// The bytes of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plane<'a> {
    /// All the same.
    Constant(u8),
    /// As they are.
    Bytes(&'a [u8]),
}

/// Makes frames; keeps libzstd's working memory.
pub(super) struct Packer {
    compressor: Compressor<'static>,
    scratch: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::MinMatch(LEAST_MATCH))?;
        Ok(Self { compressor, scratch: Vec::new() })
    }

    /// Appends the frame of `bytes` (fewer than 4 GiB) and says how long it is.
    pub(super) fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<u32> {
        let before = out.len();
        match bytes.first() {
            Some(first) if bytes.iter().all(|byte| byte == first) => {
                header(bytes.len(), out);
                blocks(bytes.len(), 1, out, |_, out| out.push(*first));
            }
            _ => {
                self.scratch.clear();
                self.scratch.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
                self.compressor.compress_to_buffer(bytes, &mut self.scratch)?;
                if self.scratch.len() <= bytes.len() / 8 * 5 {
                    out.extend_from_slice(&self.scratch);
                } else {
                    header(bytes.len(), out);
                    blocks(bytes.len(), 0, out, |range, out| out.extend_from_slice(&bytes[range]));
                }
            }
        }
        Ok((out.len() - before) as u32)
    }
}

fn header(size: usize, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.push(DESCRIPTOR);
    out.extend((size as u32).to_le_bytes());
}

/// Block headers of one type, each followed by what `fill` puts there.
fn blocks(
    size: usize,
    block_type: u32,
    out: &mut Vec<u8>,
    fill: impl Fn(std::ops::Range<usize>, &mut Vec<u8>),
) {
    let mut start = 0;
    loop {
        let end = size.min(start + BLOCK);
        let header = u32::from(end == size) | block_type << 1 | ((end - start) as u32) << 3;
        out.extend(&header.to_le_bytes()[..BLOCK_HEADER_BYTES]);
        fill(start..end, out);
        start = end;
        if start == size {
            return;
        }
    }
}

/// Reads frames.
pub(super) struct Opener {
    decompressor: Decompressor<'static>,
}

impl Opener {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { decompressor: Decompressor::new()? })
    }

    /// The content of a frame: where it lies if that is possible, else decompressed into `room`.
    /// `None` where the frame is damaged or its content is longer than `most` bytes.
    pub(super) fn open<'a>(
        &mut self,
        frame: &'a [u8],
        most: usize,
        room: &'a mut Vec<u8>,
    ) -> Option<Plane<'a>> {
        if let Some((plane, size)) = simple(frame) {
            return (size <= most).then_some(plane);
        }
        if room.len() < most {
            room.resize(most, 0);
        }
        let room = &mut room[..most];
        let size = self.decompressor.decompress_to_buffer(frame, room).ok()?;
        Some(Plane::Bytes(&room[..size]))
    }
}

/// A frame of one raw or RLE block and its content size.
fn simple(frame: &[u8]) -> Option<(Plane<'_>, usize)> {
    let (header, block) = frame.split_first_chunk::<HEADER_BYTES>()?;
    if header[..4] != MAGIC || header[4] != DESCRIPTOR {
        return None;
    }
    let size = u32::from_le_bytes([header[5], header[6], header[7], header[8]]) as usize;
    let (header, content) = block.split_first_chunk::<BLOCK_HEADER_BYTES>()?;
    let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    if header & 1 == 0 || (header >> 3) as usize != size {
        return None;
    }
    match (header >> 1 & 3, content) {
        (0, content) if content.len() == size => Some((Plane::Bytes(content), size)),
        (1, [byte]) => Some((Plane::Constant(*byte), size)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bytes: &[u8]) -> usize {
        let mut frame = Vec::new();
        let length = Packer::new().expect("zstd").pack(bytes, &mut frame).expect("packed");
        assert_eq!(length as usize, frame.len());
        let mut room = Vec::new();
        let by_zstd = zstd::bulk::decompress(&frame, bytes.len()).expect("a zstd frame");
        assert_eq!(by_zstd, bytes);
        match Opener::new().expect("zstd").open(&frame, bytes.len(), &mut room).expect("opens") {
            Plane::Constant(byte) => assert!(bytes.iter().all(|b| *b == byte)),
            Plane::Bytes(content) => assert_eq!(content, bytes),
        }
        frame.len()
    }

    fn noise(count: usize) -> Vec<u8> {
        let mut rng = stats::rng::Rng::new(7);
        (0..count).map(|_| rng.below(256) as u8).collect()
    }

    #[test]
    fn each_plane_is_stored_as_suits_it() {
        assert_eq!(check(&vec![7; 65_536]), HEADER_BYTES + BLOCK_HEADER_BYTES + 1);
        assert_eq!(check(&noise(65_536)), 65_536 + HEADER_BYTES + BLOCK_HEADER_BYTES);
        let text: Vec<u8> = noise(65_536).iter().map(|byte| byte & 1).collect();
        assert!(check(&text) < 65_536 / 4);
        check(&[]);
        check(&[1]);
        check(&[1, 2]);
    }

    #[test]
    fn more_than_a_block_takes_several() {
        check(&vec![7; BLOCK + 1]);
        check(&vec![7; 2 * BLOCK]);
        check(&noise(3 * BLOCK + 5));
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>, times in 1usize..50) {
            check(&bytes.repeat(times));
        }

        #[test]
        fn damage_is_refused_or_decodes_within_the_room(
            bytes: Vec<u8>, at in any::<prop::sample::Index>(), byte: u8, room in 0usize..300,
        ) {
            let mut frame = Vec::new();
            Packer::new().expect("zstd").pack(&bytes, &mut frame).expect("packed");
            let at = at.index(frame.len());
            frame[at] = byte;
            let mut opener = Opener::new().expect("zstd");
            let mut held = Vec::new();
            if let Some(Plane::Bytes(content)) = opener.open(&frame, room, &mut held) {
                prop_assert!(content.len() <= room);
            }
        }
    }
}
