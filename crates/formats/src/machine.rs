//! The two places where safe code measurably cannot reach memory speed: the only `unsafe` of the
//! crate.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]
#![allow(unsafe_code)]

use super::batch::Batch;
use super::cause::Cause;
use super::scan::{self, FastLine, Machine, Window, Words};

/// Reads whole lines with the best that this processor can do; see [`LineFormat::lines`].
///
/// [`LineFormat::lines`]: super::decode::LineFormat::lines
pub(super) fn lines<F: FastLine>(
    format: &F,
    text: &[u8],
    out: &mut Batch,
) -> Result<(), (usize, Cause)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = Avx2::here() {
        // SAFETY: the features that the function is compiled for are here.
        return unsafe { lines_avx2(format, text, out, machine) };
    }
    scan::lines_with(format, text, out, Words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn lines_avx2<F: FastLine>(
    format: &F,
    text: &[u8],
    out: &mut Batch,
    machine: Avx2,
) -> Result<(), (usize, Cause)> {
    scan::lines_with(format, text, out, machine)
}

#[cfg(test)]
thread_local! {
    static WITHOUT_EXTENSIONS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs as on a processor that can do nothing special.
#[cfg(test)]
pub(super) fn without_extensions<T>(run: impl FnOnce() -> T) -> T {
    WITHOUT_EXTENSIONS.with(|without| without.set(true));
    let result = run();
    WITHOUT_EXTENSIONS.with(|without| without.set(false));
    result
}

/// A processor with AVX2, BMI1 and BMI2: there is a value of this type only on one of those.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// One, if this processor is one.
    pub fn here() -> Option<Self> {
        #[cfg(test)]
        if WITHOUT_EXTENSIONS.with(std::cell::Cell::get) {
            return None;
        }
        let here = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        here.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Machine for Avx2 {
    #[inline(always)]
    fn separators(self, window: &Window) -> u64 {
        // SAFETY: `self` says that AVX2 is here.
        unsafe { separators_avx2(window) }
    }

    #[inline(always)]
    fn values(self, digits: [u64; 4]) -> ([u32; 4], bool) {
        // SAFETY: `self` says that AVX2 is here.
        unsafe { values_avx2(digits) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn separators_avx2(window: &Window) -> u64 {
    use std::arch::x86_64::{
        _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };
    let half = |bytes: &[u8; 32]| {
        // SAFETY: reads the 32 bytes that the reference covers, of any alignment.
        let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        let below = _mm256_cmpgt_epi8(_mm256_set1_epi8(b'0' as i8), bytes);
        u64::from(_mm256_movemask_epi8(below) as u32)
    };
    let (halves, _) = window.as_chunks::<32>();
    half(&halves[0]) | half(&halves[1]) << 32
}

/// Pairs of digits, then of pairs, then of those, added up in all lanes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn values_avx2(digits: [u64; 4]) -> ([u32; 4], bool) {
    use std::arch::x86_64::{
        _mm_extract_epi32, _mm256_castsi256_si128, _mm256_cmpgt_epi8, _mm256_extracti128_si256,
        _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_packus_epi32, _mm256_set_epi64x,
        _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_testz_si256,
    };
    let [a, b, c, d] = digits.map(|digits| digits as i64);
    let bytes = _mm256_set_epi64x(d, c, b, a);
    // Digits are 0 to 9. Fields hold no byte below '0' or above 127, so that none is negative here.
    let wrong = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(9));
    let valid = _mm256_testz_si256(wrong, wrong) == 1;
    let pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x010a));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
    let packed = _mm256_packus_epi32(fours, fours);
    let eights = _mm256_madd_epi16(packed, _mm256_set1_epi32(0x0001_2710));
    let (low, high) = (_mm256_castsi256_si128(eights), _mm256_extracti128_si256(eights, 1));
    let values = [
        _mm_extract_epi32(low, 0),
        _mm_extract_epi32(low, 1),
        _mm_extract_epi32(high, 0),
        _mm_extract_epi32(high, 1),
    ];
    (values.map(|value| value as u32), valid)
}
