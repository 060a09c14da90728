//! Random strings (TPC-C 5.11 clauses 4.3.2.2 and 4.3.2.3) in buffers that live on the stack.
//!
//! Letters and digits are drawn from all 62 with every character independent, so that neither a
//! file system nor an SSD can compress what is stored better than text of that alphabet.
//!
//! Loading is bound by how fast they are made: a random word is read as a fraction of 1, and each
//! multiplication by 62^2 takes the next pair of letters from its front.

use stats::rng::Rng;

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Number of pairs of letters.
const PAIR_COUNT: usize = 62 * 62;

/// All pairs of letters: 7.5 KiB, which stay in the first cache.
static PAIRS: [[u8; 2]; PAIR_COUNT] = {
    let mut pairs = [[0; 2]; PAIR_COUNT];
    let mut k = 0;
    while k < PAIR_COUNT {
        pairs[k] = [ALPHANUMERIC[k / 62], ALPHANUMERIC[k % 62]];
        k += 1;
    }
    pairs
};

/// The next pair of letters of a random word, which keeps the rest of its randomness.
#[inline]
fn pair(word: &mut u64) -> [u8; 2] {
    let wide = u128::from(*word) * PAIR_COUNT as u128;
    *word = wide as u64;
    PAIRS[(wide >> 64) as usize]
}

/// Fills `into` with letters: eight of each random word. The fourth pair still has 28 bits to be
/// drawn from: a bias of 3844 / 2^28, one in 70,000.
#[inline]
pub fn fill_letters(rng: &mut Rng, into: &mut [u8]) {
    let mut chunks = into.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let mut word = rng.next_u64();
        for two in chunk.chunks_exact_mut(2) {
            two.copy_from_slice(&pair(&mut word));
        }
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let mut word = rng.next_u64();
        for two in rest.chunks_mut(2) {
            two.copy_from_slice(&pair(&mut word)[..two.len()]);
        }
    }
}

/// Clause 4.3.2.3: a last name is three of these, one per decimal digit.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// ASCII text of at most `N` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { bytes: [0; N], len: 0 }
    }
}

impl<const N: usize> Text<N> {
    /// The text.
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever written into the buffer.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Appends bytes, as many as fit.
    pub fn push(&mut self, ascii: &[u8]) {
        let fits = ascii.len().min(N - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&ascii[..fits]);
        self.len += fits;
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// An alphanumeric string of `low..=high` characters ("a-string").
    pub fn letters(&mut self, rng: &mut Rng, low: usize, high: usize) {
        self.len = length(rng, low, high);
        fill_letters(rng, &mut self.bytes[..self.len]);
    }

    /// A string of `len` digits ("n-string").
    pub fn digits(&mut self, rng: &mut Rng, len: usize) {
        self.len = len;
        for chunk in self.bytes[..len].chunks_mut(4) {
            let word = rng.next_u64();
            for (k, byte) in chunk.iter_mut().enumerate() {
                *byte = b'0' + ((((word >> (16 * k)) & 0xffff) * 10) >> 16) as u8;
            }
        }
    }

    /// A zip code: four digits and `11111` (clause 4.3.2.7).
    pub fn zip(&mut self, rng: &mut Rng) {
        self.digits(rng, 4);
        self.push(b"11111");
    }

    /// 26 to 50 letters, with ORIGINAL somewhere in one string of ten (I_DATA and S_DATA).
    pub fn data(&mut self, rng: &mut Rng) {
        self.letters(rng, 26, 50);
        if rng.below(10) == 0 {
            let at = rng.below(self.len as u64 - 7) as usize;
            self.bytes[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
    }
}

fn length(rng: &mut Rng, low: usize, high: usize) -> usize {
    if low == high { low } else { rng.between(low as u64, high as u64) as usize }
}

/// The last name of a number from 0 to 999 (clause 4.3.2.3).
pub fn last_name(number: u32) -> Text<16> {
    let mut name = Text::default();
    for divisor in [100, 10, 1] {
        name.push(SYLLABLES[(number / divisor % 10) as usize].as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_specifications() {
        assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
        assert_eq!(last_name(40).as_str(), "BARPRESBAR");
        assert_eq!(last_name(777).as_str(), "CALLYCALLYCALLY");
        assert_eq!(last_name(0).as_str(), "BARBARBAR");
    }

    #[test]
    fn strings_have_their_lengths_and_alphabets() {
        let mut rng = Rng::new(1);
        let (mut lengths, mut originals) = ([0u32; 51], 0);
        for _ in 0..10_000 {
            let mut text = Text::<50>::default();
            text.data(&mut rng);
            lengths[text.as_str().len()] += 1;
            assert!(text.as_str().bytes().all(|b| b.is_ascii_alphanumeric()));
            originals += u32::from(text.as_str().contains("ORIGINAL"));
            let mut zip = Text::<9>::default();
            zip.zip(&mut rng);
            assert!(zip.as_str().len() == 9 && zip.as_str().ends_with("11111"));
            assert!(zip.as_str().bytes().all(|b| b.is_ascii_digit()));
        }
        // One in ten of 10,000: 1000 with a standard deviation of 30.
        assert!((850..1150).contains(&originals), "{originals}");
        assert!(lengths[26..=50].iter().all(|&n| n > 250) && lengths[..26].iter().all(|&n| n == 0));
    }

    #[test]
    fn every_character_is_about_equally_frequent() {
        let mut rng = Rng::new(2);
        let mut counts = [0u64; 256];
        for _ in 0..20_000 {
            let mut text = Text::<24>::default();
            text.letters(&mut rng, 24, 24);
            text.as_str().bytes().for_each(|b| counts[b as usize] += 1);
        }
        let counts: Vec<u64> = ALPHANUMERIC.iter().map(|&b| counts[b as usize]).collect();
        let test = stats::chi_square::test(&counts, &[1.0; 62]);
        assert!(test.p_value > 1e-4, "{test:?}");
    }
}
