//! `BYTE_STREAM_SPLIT` of the Parquet specification: all first bytes of a page, then all second
//! ones, and so on. The low bits of an aligned offset and the high bytes of anything are zero in
//! every request: as planes of their own they cost a few bytes a page, and the rest is read as it
//! lies.
//!
//! Tests: round trips of any values through every number of varying planes.

use super::frame::Plane;
use super::word::Word;

/// Most bytes of a value.
pub(super) const MOST_PLANES: usize = 8;

/// Puts plane `plane` of the values into `out`.
pub(super) fn split<W: Word>(values: &[W], plane: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend(values.iter().map(|value| (value.to_u64() >> (8 * plane)) as u8));
}

/// Joins the planes of a page, least significant first. `None` where one has another length than
/// `out`, or where the values exceed the word.
pub(super) fn join<W: Word>(planes: &[Plane<'_>], out: &mut [W]) -> Option<()> {
    let mut base = 0;
    let mut varying = [([].as_slice(), 0u32); MOST_PLANES];
    let mut count = 0;
    for (plane, shift) in planes.iter().zip((0..).step_by(8)) {
        let beyond = shift >= W::BITS as u32;
        match plane {
            Plane::Constant(0) => {}
            _ if beyond => return None,
            Plane::Constant(byte) => base |= u64::from(*byte) << shift,
            Plane::Bytes(bytes) if bytes.len() == out.len() => {
                varying[count] = (bytes, shift);
                count += 1;
            }
            Plane::Bytes(_) => return None,
        }
    }
    let varying = &varying[..count];
    // Most offsets vary in a few neighbouring planes: those are joined eight values at a time.
    let neighbours = varying.windows(2).take_while(|pair| pair[1].1 == pair[0].1 + 8).count() + 1;
    let [first, second, third, fourth] =
        [0, 1, 2, 3].map(|index| varying.get(index).map_or([].as_slice(), |plane| plane.0));
    let done = match neighbours.min(count) {
        0 | 1 => 0,
        2 => join_neighbours(base, [first, second], varying[0].1, out),
        3 => join_neighbours(base, [first, second, third], varying[0].1, out),
        _ => join_neighbours(base, [first, second, third, fourth], varying[0].1, out),
    };
    if done == 0 {
        out.fill(W::from_u64(base));
    }
    for (bytes, shift) in &varying[done..] {
        for (value, byte) in out.iter_mut().zip(*bytes) {
            *value = W::from_u64(value.to_u64() | u64::from(*byte) << shift);
        }
    }
    Some(())
}
/// Joins up to four planes that lie next to each other, the first at `shift`. In steps of 16, 32
/// and 64 bits, which the compiler turns into vector code for any processor. Says how many it
/// joined.
#[inline]
fn join_neighbours<const N: usize, W: Word>(
    base: u64,
    planes: [&[u8]; N],
    shift: u32,
    out: &mut [W],
) -> usize {
    const STEP: usize = 8;
    let count = out.len();
    let planes = planes.map(|bytes| &bytes[..count]);
    let (steps, rest) = out.as_chunks_mut::<STEP>();
    for (index, values) in steps.iter_mut().enumerate() {
        let at = index * STEP;
        let mut bytes = [[0u8; STEP]; 4];
        for (bytes, plane) in bytes.iter_mut().zip(&planes) {
            bytes.copy_from_slice(&plane[at..at + STEP]);
        }
        let pair = |low: [u8; STEP], high: [u8; STEP]| -> [u16; STEP] {
            std::array::from_fn(|place| u16::from(low[place]) | u16::from(high[place]) << 8)
        };
        let low = pair(bytes[0], bytes[1]);
        let high = if N > 2 { pair(bytes[2], bytes[3]) } else { [0; STEP] };
        for (place, value) in values.iter_mut().enumerate() {
            let bits = u32::from(low[place]) | u32::from(high[place]) << 16;
            *value = W::from_u64(base | u64::from(bits) << shift);
        }
    }
    let start = count - rest.len();
    for (index, value) in rest.iter_mut().enumerate() {
        let mut bits = 0;
        for (plane, byte) in planes.iter().enumerate() {
            bits |= u64::from(byte[start + index]) << (8 * plane);
        }
        *value = W::from_u64(base | bits << shift);
    }
    N
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check<W: Word + PartialEq + std::fmt::Debug>(values: &[W]) {
        let mut planes = vec![Vec::new(); W::BITS / 8];
        for (plane, bytes) in planes.iter_mut().enumerate() {
            split(values, plane, bytes);
        }
        let constant = |bytes: &Vec<u8>| bytes.iter().all(|byte| *byte == bytes[0]);
        let planes: Vec<Plane> = planes
            .iter()
            .map(|bytes| match bytes.first() {
                Some(first) if constant(bytes) => Plane::Constant(*first),
                _ => Plane::Bytes(bytes),
            })
            .collect();
        let mut out = vec![W::default(); values.len()];
        join(&planes, &mut out).expect("joins");
        assert_eq!(out, values);
    }

    #[test]
    fn a_plane_of_another_length_is_refused() {
        let planes = [Plane::Bytes(&[1, 2, 3]), Plane::Constant(0)];
        assert_eq!(join::<u16>(&planes, &mut [0; 3]), Some(()));
        assert_eq!(join::<u16>(&planes, &mut [0; 2]), None);
        assert_eq!(join::<u16>(&planes, &mut [0; 4]), None);
        // A third plane of a 16-bit value.
        let planes = [Plane::Constant(1), Plane::Constant(0), Plane::Constant(1)];
        assert_eq!(join::<u16>(&planes, &mut [0; 1]), None);
        assert_eq!(join::<u32>(&planes, &mut [0; 1]), Some(()));
    }

    proptest! {
        #[test]
        fn any_values_come_back(values in prop::collection::vec(any::<u64>(), 0..200), mask: u64) {
            check(&values.iter().map(|value| value & mask).collect::<Vec<u64>>());
            check(&values.iter().map(|value| *value as u32 | 1).collect::<Vec<u32>>());
            check(&values.iter().map(|value| *value as u16 & 0xf0f).collect::<Vec<u16>>());
        }
    }
}
