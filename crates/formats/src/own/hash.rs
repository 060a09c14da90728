//! The hash of every seal in our format: quick, and sure to notice a change in a single word.
//!
//! Four lanes take a 64-bit word each in turn; every step is a bijection of the lane and of the
//! word, so a change in one word always changes the result; larger damage goes unseen once in 2^64.
//! It is not a cryptographic hash: it finds accidents. Tests: a golden value, every flipped bit of
//! a buffer, and pieces against the whole.

use stats::rng::mix;

/// Bytes that all lanes take together.
const STRIPE: usize = 32;

/// Takes bytes in pieces; all but the last must be a multiple of [`Hasher::PIECE_BYTES`] long.
#[derive(Clone, Debug)]
pub(super) struct Hasher {
    lanes: [u64; 4],
}

impl Hasher {
    /// Pieces are multiples of it.
    pub(super) const PIECE_BYTES: usize = STRIPE;

    pub(super) fn new() -> Self {
        Self { lanes: [1u64, 2, 3, 4].map(mix) }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        let mut lanes = self.lanes;
        let (stripes, rest) = bytes.as_chunks::<STRIPE>();
        for stripe in stripes {
            take(&mut lanes, stripe);
        }
        if !rest.is_empty() {
            // Zeros fill the last stripe; the length is hashed too.
            let mut last = [0; STRIPE];
            last[..rest.len()].copy_from_slice(rest);
            take(&mut lanes, &last);
        }
        self.lanes = lanes;
    }

    pub(super) fn finish(&self, length: u64) -> u64 {
        self.lanes.iter().fold(mix(length), |hash, lane| mix(hash ^ lane))
    }
}

#[inline]
fn take(lanes: &mut [u64; 4], stripe: &[u8; STRIPE]) {
    for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
        *lane =
            (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// Hash of some bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finish(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_never_changes() {
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!((hash(&[]), hash(&bytes)), (GOLDEN_EMPTY, GOLDEN_HUNDRED));
    }
    const GOLDEN_EMPTY: u64 = 12_304_921_596_322_291;
    const GOLDEN_HUNDRED: u64 = 6_268_037_507_034_010_973;

    #[test]
    fn every_flipped_bit_changes_it() {
        let bytes: Vec<u8> = (0..77).map(|i: u8| i.wrapping_mul(7)).collect();
        let whole = hash(&bytes);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(&flipped), whole, "bit {bit}");
        }
        assert_ne!(hash(&bytes[..76]), whole);
        assert_ne!(hash(&[bytes.as_slice(), &[0]].concat()), whole, "zeros at the end count");
    }

    #[test]
    fn pieces_hash_as_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut hasher = Hasher::new();
        bytes[..250].chunks(2 * Hasher::PIECE_BYTES).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.finish(250), hash(&bytes[..250]));
    }
}
