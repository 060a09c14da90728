//! `DELTA_BINARY_PACKED` of the Parquet specification: for columns that grow (`due_ns`,
//! `transaction`).
//!
//! A page opens with block size (128), miniblocks per block (4), count and first value; then for
//! each 128 deltas their least one, four widths and the deltas less the least, packed. We give all
//! four miniblocks of a block the same width, so that a reader decides once per 128 values, and
//! read no other blocks. All arithmetic wraps, so any `u64` comes back.
//!
//! Tests: round trips of any values, the parquet crate's own decoder on what we write, damage.

use super::word::Word;

/// Deltas per block.
const BLOCK: usize = 128;
const MINIBLOCKS: usize = 4;
/// Deltas per miniblock.
const MINI: usize = BLOCK / MINIBLOCKS;
/// Most bytes that a varint of 64 bits takes.
const VARINT: usize = 10;

/// Most bytes that a page of `count` values takes.
pub(super) fn bound(count: usize) -> usize {
    4 * VARINT + count.div_ceil(BLOCK) * (VARINT + MINIBLOCKS + BLOCK * 8)
}

/// Appends `values` as one page.
pub(super) fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint(MINIBLOCKS as u64, out);
    varint(values.len() as u64, out);
    let Some(first) = values.first() else {
        varint(0, out);
        return;
    };
    zigzag(W::signed(first.to_u64()), out);
    let mut last = *first;
    for block in values[1..].chunks(BLOCK) {
        // Narrow words wrap within their own width, as the specification asks.
        let mut deltas = [0i64; BLOCK];
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = W::signed(value.to_u64().wrapping_sub(last.to_u64()));
            last = *value;
        }
        let deltas = &mut deltas[..block.len()];
        let least = deltas.iter().copied().min().unwrap_or(0);
        let above = |delta: i64| W::from_u64(delta.wrapping_sub(least) as u64).to_u64();
        let most = deltas.iter().map(|delta| above(*delta)).fold(0, |all, delta| all | delta);
        let width = 64 - most.leading_zeros();
        zigzag(least, out);
        let used = block.len().div_ceil(MINI);
        out.extend((0..MINIBLOCKS).map(|mini| if mini < used { width as u8 } else { 0 }));
        let mut bits = 0u128;
        let mut filled = 0;
        for index in 0..used * MINI {
            bits |= u128::from(deltas.get(index).map_or(0, |delta| above(*delta))) << filled;
            filled += width;
            while filled >= 8 {
                out.push(bits as u8);
                bits >>= 8;
                filled -= 8;
            }
        }
    }
}

/// Reads a page into `out`, which it must fill exactly. `None` where it is damaged.
pub(super) fn decode<W: Word>(page: &[u8], out: &mut [W]) -> Option<()> {
    let mut rest = page;
    let header = [take_varint(&mut rest)?, take_varint(&mut rest)?, take_varint(&mut rest)?];
    if header != [BLOCK as u64, MINIBLOCKS as u64, out.len() as u64] {
        return None;
    }
    let mut last = take_zigzag(&mut rest)?;
    let Some((first, others)) = out.split_first_mut() else {
        return rest.is_empty().then_some(());
    };
    *first = W::from_u64(last);
    // Room for the widest block and the eight bytes that its last delta may be read from; what is
    // left of the block before is masked out.
    let mut bytes = [0; MOST_PACKED + 8];
    for block in others.chunks_mut(BLOCK) {
        let least = take_zigzag(&mut rest)?;
        let (widths, behind) = rest.split_first_chunk::<MINIBLOCKS>()?;
        let used = block.len().div_ceil(MINI);
        let width = usize::from(widths[0]);
        if width > W::BITS || widths[..used].iter().any(|other| usize::from(*other) != width) {
            return None;
        }
        let (packed, behind) = behind.split_at_checked(used * MINI / 8 * width)?;
        rest = behind;
        bytes[..packed.len()].copy_from_slice(packed);
        last = unpack_any(&bytes, width, least, last, block);
    }
    rest.is_empty().then_some(())
}

/// Bytes of a block of the widest deltas.
const MOST_PACKED: usize = BLOCK / 8 * 64;

type Packed = [u8; MOST_PACKED + 8];

/// Adds up a block. Common widths have code of their own, in which every shift is a constant.
#[inline]
fn unpack_any<W: Word>(
    bytes: &Packed,
    width: usize,
    least: u64,
    last: u64,
    block: &mut [W],
) -> u64 {
    macro_rules! widths {
        ($($width:literal)*) => {
            match width {
                $($width if block.len() == BLOCK => {
                    unpack::<W, $width>(bytes, least, last, block)
                })*
                0..=56 => unpack_one_by_one(bytes, width, least, last, block),
                _ => unpack_wide(bytes, width, least, last, block),
            }
        };
    }
    widths!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    )
}

/// A whole block. Eight deltas of `WIDTH` bits take `WIDTH` bytes, each within eight bytes of its
/// start.
#[inline(never)]
fn unpack<W: Word, const WIDTH: usize>(
    bytes: &Packed,
    least: u64,
    mut last: u64,
    block: &mut [W],
) -> u64 {
    let mask = (1u64 << WIDTH) - 1;
    let mut rest = bytes.as_slice();
    for values in block.as_chunks_mut::<8>().0 {
        let packed = &rest[..WIDTH + 8];
        for (place, value) in values.iter_mut().enumerate() {
            let at = place * WIDTH / 8;
            let word: [u8; 8] = packed[at..at + 8].try_into().expect("eight bytes");
            let delta = u64::from_le_bytes(word) >> (place * WIDTH % 8) & mask;
            last = last.wrapping_add(least.wrapping_add(delta));
            *value = W::from_u64(last);
        }
        rest = &rest[WIDTH..];
    }
    last
}

/// Up to a block of deltas of at most 56 bits, each within eight bytes of its start.
fn unpack_one_by_one<W: Word>(
    bytes: &Packed,
    width: usize,
    least: u64,
    mut last: u64,
    block: &mut [W],
) -> u64 {
    let mask = (1u64 << width) - 1;
    for (index, value) in block.iter_mut().enumerate() {
        let bit = index * width;
        let word: [u8; 8] = bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
        let delta = u64::from_le_bytes(word) >> (bit % 8) & mask;
        last = last.wrapping_add(least.wrapping_add(delta));
        *value = W::from_u64(last);
    }
    last
}

/// The same for any width; only times that jump by years need it.
fn unpack_wide<W: Word>(
    bytes: &Packed,
    width: usize,
    least: u64,
    mut last: u64,
    block: &mut [W],
) -> u64 {
    for (index, value) in block.iter_mut().enumerate() {
        let bit = index * width;
        let mut word = [0; 16];
        let held = &bytes[bit / 8..bytes.len().min(bit / 8 + 16)];
        word[..held.len()].copy_from_slice(held);
        let delta = (u128::from_le_bytes(word) >> (bit % 8)) as u64 & (u64::MAX >> (64 - width));
        last = last.wrapping_add(least.wrapping_add(delta));
        *value = W::from_u64(last);
    }
    last
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..VARINT {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63) as u64, out);
}

fn take_zigzag(rest: &mut &[u8]) -> Option<u64> {
    let value = take_varint(rest)?;
    Some(value >> 1 ^ (value & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check<W: Word + std::fmt::Debug + PartialEq>(values: &[W]) -> usize {
        let mut page = Vec::new();
        encode(values, &mut page);
        assert!(page.len() <= bound(values.len()));
        let mut out = vec![W::from_u64(0); values.len()];
        decode(&page, &mut out).expect("decodes");
        assert_eq!(out, values);
        page.len()
    }

    #[test]
    fn sizes_by_hand() {
        assert_eq!(check::<u64>(&[]), 5);
        assert_eq!(check(&[9u64]), 5);
        // Header 5; one block of least delta, widths and nothing else.
        assert_eq!(check(&[10u64, 20, 30, 40]), 5 + 1 + 4);
        // 1000 steps of 0 to 15: seven whole blocks of four bits, and 103 deltas in four
        // miniblocks.
        let mut last = 0;
        let steps = (0..1000).map(|i| {
            last += i % 16;
            last
        });
        assert_eq!(check(&steps.collect::<Vec<u64>>()), 6 + 8 * (5 + 64));
    }

    #[test]
    fn every_width_comes_back() {
        for width in 0..64 {
            let mut last = 0u64;
            let values: Vec<u64> = (0..300u64)
                .map(|i| {
                    last = last.wrapping_add(stats::rng::mix(i) >> width);
                    last
                })
                .collect();
            check(&values);
            check(&values.iter().map(|value| *value as u32).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn any_longs_come_back(values: Vec<u64>) {
            check(&values);
        }

        #[test]
        fn any_words_come_back(values in prop::collection::vec(any::<u32>(), 0..400)) {
            check(&values);
        }

        #[test]
        fn damage_never_panics(
            values in prop::collection::vec(0u64..1 << 40, 0..300),
            at: prop::sample::Index, byte: u8, cut: prop::sample::Index,
        ) {
            let mut page = Vec::new();
            encode(&values, &mut page);
            let mut out = vec![0u64; values.len()];
            // Before the damage: a header that became shorter is whole after fewer bytes.
            prop_assert_eq!(decode(&page[..cut.index(page.len())], &mut out), None);
            let at = at.index(page.len());
            page[at] = byte;
            _ = decode(&page, &mut out);
        }
    }
}
