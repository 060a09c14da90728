//! SHA-1 (FIPS 180-4 section 6.1), for mysql_native_password alone.
//!
//! Sixty lines of ours instead of a dependency: it hashes a password and twenty bytes once per
//! connection. Tested with the standard's examples.

/// The digest of a message.
pub(super) fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut message: Vec<u8> = parts.concat();
    let bits = message.len() as u64 * 8;
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&bits.to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0u32];
    message.chunks_exact(64).for_each(|block| compress(&mut state, block));
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    for t in 16..80 {
        words[t] = (words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (t, &word) in words.iter().enumerate() {
        let (f, k) = match t / 20 {
            0 => (b & c | !b & d, 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k);
        (a, b, c, d, e) = (next.wrapping_add(word), a, b.rotate_left(30), c, d);
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_examples() {
        let check = |parts: &[&[u8]], expected: &str| {
            let byte = |k: usize| u8::from_str_radix(&expected[2 * k..2 * k + 2], 16).unwrap();
            assert_eq!(sha1(parts), std::array::from_fn(byte));
        };
        check(&[b"abc"], "a9993e364706816aba3e25717850c26c9cd0d89d");
        check(&[], "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        check(
            &[b"abcdbcdecdefdefgefghfghighij", b"hijkijkljklmklmnlmnomnopnopq"],
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        );
    }
}
