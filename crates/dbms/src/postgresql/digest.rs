//! The hash functions that PostgreSQL's logins need: MD5 (RFC 1321), SHA-256 (FIPS 180-4),
//! HMAC (RFC 2104), PBKDF2 (RFC 8018) and Base64 (RFC 4648).
//!
//! Own code: a login is the only use, it is 150 lines, and it is tested against the RFCs' vectors.
//! Nothing here is meant for secrets that an attacker on the same machine could time.

const MD5_SHIFTS: [[u32; 4]; 4] =
    [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The message with padding to 64-byte blocks; the length in bits ends it.
fn padded(message: &[u8], big_endian: bool) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let bits = message.len() as u64 * 8;
    padded.extend(if big_endian { bits.to_be_bytes() } else { bits.to_le_bytes() });
    padded
}

/// MD5 of a message.
pub(super) fn md5(message: &[u8]) -> [u8; 16] {
    // RFC 1321: the table is the integer part of 2^32 |sin(k + 1)|.
    let table: [u32; 64] =
        std::array::from_fn(|k| ((k as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32);
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(message, false).chunks_exact(64) {
        let word = |k: usize| {
            u32::from_le_bytes([block[4 * k], block[4 * k + 1], block[4 * k + 2], block[4 * k + 3]])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for k in 0..64 {
            let (mixed, from) = match k / 16 {
                0 => ((b & c) | (!b & d), k),
                1 => ((d & b) | (!d & c), (5 * k + 1) % 16),
                2 => (b ^ c ^ d, (3 * k + 5) % 16),
                _ => (c ^ (b | !d), 7 * k % 16),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(table[k]).wrapping_add(word(from));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(MD5_SHIFTS[k / 16][k % 4]));
        }
        for (sum, add) in state.iter_mut().zip([a, b, c, d]) {
            *sum = sum.wrapping_add(add);
        }
    }
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// The first 32 bits of the fractional part of a root of each of the first primes (FIPS 180-4
/// sections 4.2.2 and 5.3.3): found in integers, so that no table can be mistyped.
fn fraction_of_root(prime: u128, cube: bool) -> u32 {
    // The largest r with r^2 <= p 2^64, or r^3 <= p 2^96: the root scaled by 2^32.
    let (mut low, mut high) = (0u128, 1u128 << 37);
    while low + 1 < high {
        let middle = u128::midpoint(low, high);
        let fits = if cube {
            middle * middle * middle <= prime << 96
        } else {
            middle * middle <= prime << 64
        };
        if fits { low = middle } else { high = middle }
    }
    low as u32
}

fn primes() -> impl Iterator<Item = u128> {
    (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// SHA-256 with its constants, which take a moment to find.
pub(super) struct Sha256 {
    rounds: [u32; 64],
    start: [u32; 8],
}

impl Sha256 {
    pub fn new() -> Self {
        let (mut rounds, mut start) = ([0; 64], [0; 8]);
        for (k, prime) in primes().take(64).enumerate() {
            rounds[k] = fraction_of_root(prime, true);
            if k < 8 {
                start[k] = fraction_of_root(prime, false);
            }
        }
        Self { rounds, start }
    }

    /// The digest of a message.
    pub fn digest(&self, message: &[u8]) -> [u8; 32] {
        let mut state = self.start;
        for block in padded(message, true).chunks_exact(64) {
            self.block(&mut state, block);
        }
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    fn block(&self, state: &mut [u32; 8], block: &[u8]) {
        let mut schedule = [0u32; 64];
        for (word, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for t in 16..64 {
            let (x, y) = (schedule[t - 15], schedule[t - 2]);
            let small_0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let small_1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            schedule[t] = schedule[t - 16]
                .wrapping_add(small_0)
                .wrapping_add(schedule[t - 7])
                .wrapping_add(small_1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        for (word, round) in schedule.iter().zip(self.rounds) {
            let big_1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let one =
                h.wrapping_add(big_1).wrapping_add(choice).wrapping_add(round).wrapping_add(*word);
            let big_0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            let two = big_0.wrapping_add(majority);
            (h, g, f, e) = (g, f, e, d.wrapping_add(one));
            (d, c, b, a) = (c, b, a, one.wrapping_add(two));
        }
        for (sum, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(add);
        }
    }

    /// HMAC with this hash.
    pub fn hmac(&self, key: &[u8], message: &[u8]) -> [u8; 32] {
        let mut block = [0u8; 64];
        if key.len() > 64 {
            block[..32].copy_from_slice(&self.digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let inner: Vec<u8> =
            block.iter().map(|b| b ^ 0x36).chain(message.iter().copied()).collect();
        let inner = self.digest(&inner);
        let outer: Vec<u8> = block.iter().map(|b| b ^ 0x5c).chain(inner).collect();
        self.digest(&outer)
    }

    /// The first block of PBKDF2: as long as the hash, all that SCRAM needs.
    pub fn pbkdf2(&self, password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
        let first: Vec<u8> = salt.iter().copied().chain([0, 0, 0, 1]).collect();
        let mut round = self.hmac(password, &first);
        let mut sum = round;
        for _ in 1..iterations {
            round = self.hmac(password, &round);
            sum.iter_mut().zip(round).for_each(|(sum, byte)| *sum ^= byte);
        }
        sum
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for k in 0..4 {
            let part = (word >> (18 - 6 * k)) as usize & 63;
            text.push(if k <= chunk.len() { char::from(BASE64[part]) } else { '=' });
        }
    }
    text
}

/// The bytes of a Base64 text with padding; nothing where it is none.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let kept = bytes.len() - bytes.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    let (mut word, mut bits, mut out) = (0u32, 0, Vec::new());
    for byte in &bytes[..kept] {
        let part = BASE64.iter().position(|b| b == byte)? as u32;
        word = (word << 6) | part;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(out)
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1321 appendix A.5.
    #[test]
    fn md5_has_the_rfcs_digests() {
        assert_eq!(hex(&md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(&md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        let digits = "1234567890".repeat(8);
        assert_eq!(hex(&md5(digits.as_bytes())), "57edf4a22be3c955ac49da2e2107b67a");
    }

    /// FIPS 180-4's examples; RFC 4231 cases 1 and 6; RFC 7914 section 11.
    #[test]
    fn sha_256_has_the_standards_digests() {
        let sha = Sha256::new();
        assert_eq!(
            hex(&sha.digest(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(
            hex(&sha.digest(two_blocks)),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(&sha.hmac(&[0x0b; 20], b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(
            hex(&sha.hmac(&[0xaa; 131], long)),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
        assert!(
            hex(&sha.pbkdf2(b"passwd", b"salt", 1)).starts_with("55ac046e56e3089fec1691c22544b605")
        );
    }

    /// RFC 4648 section 10.
    #[test]
    fn base64_goes_both_ways() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(from_base64(coded).as_deref(), Some(plain.as_bytes()));
        }
        for bad in ["Z", "Zg=", "Z===", "Z!==", "=Zg="] {
            assert_eq!(from_base64(bad), None, "{bad}");
        }
    }
}
