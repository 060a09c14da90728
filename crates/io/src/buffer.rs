//! Page-aligned memory for O_DIRECT, and the data that goes into it.
//!
//! Writes carry random, incompressible bytes. Filling a buffer anew for each write would cost more
//! CPU than the write, so a buffer is filled once and [`Payload::refresh`] changes eight bytes in
//! every 4 KiB of it before each write: no two written blocks are ever equal, which defeats
//! deduplication, and their entropy stays full, which defeats compression.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use stats::rng::{self, Rng};

/// Every this many bytes of a buffer one word is changed per write.
const REFRESH_STRIDE_BYTES: usize = 4096;

/// Heap memory with a chosen alignment.
#[derive(Debug)]
pub struct AlignedBuf {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is owned by this value alone, like a Box<[u8]>.
unsafe impl Send for AlignedBuf {}

impl AlignedBuf {
    /// Zeroed memory of `size_bytes` (at least one byte) aligned to `align_bytes`.
    ///
    /// # Panics
    ///
    /// Where `align_bytes` is not a power of two; out of memory ends the process as for `Vec`.
    pub fn new(size_bytes: usize, align_bytes: usize) -> Self {
        let layout = Layout::from_size_align(size_bytes.max(1), align_bytes)
            .expect("alignment is a power of two and the size fits in memory");
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { alloc::handle_alloc_error(layout) };
        Self { start, layout }
    }

    /// Size, bytes.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Never: it holds at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Start address, for the kernel.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: start points to len initialised bytes that this value owns and &mut self is
        // unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with exactly this layout.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Keeps written data unique.
#[derive(Clone, Debug)]
pub struct Payload {
    seed: u64,
    counter: u64,
}

impl Payload {
    /// Data of a seed; different seeds never write equal blocks (but for one chance in 2^64).
    pub fn new(seed: u64) -> Self {
        Self { seed: rng::mix(seed ^ 0x7061_796c_6f61_6421), counter: 0 }
    }

    /// Fills a buffer with random bytes, once, before its first use.
    pub fn fill(&self, bytes: &mut [u8]) {
        Rng::new(self.seed).fill(bytes);
    }

    /// Makes `bytes` differ from everything written before, at eight bytes per 4 KiB.
    #[inline]
    pub fn refresh(&mut self, bytes: &mut [u8]) {
        for block in bytes.chunks_mut(REFRESH_STRIDE_BYTES) {
            self.counter += 1;
            if let Some(word) = block.first_chunk_mut::<8>() {
                *word = rng::mix(self.seed.wrapping_add(self.counter)).to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn buffers_are_aligned_and_zeroed() {
        for align in [512, 4096, 2 << 20] {
            let mut buffer = AlignedBuf::new(12_345, align);
            assert_eq!(buffer.as_ptr() as usize % align, 0);
            assert!(buffer.as_mut_slice().iter().all(|byte| *byte == 0));
            assert_eq!(buffer.len(), 12_345);
        }
    }

    #[test]
    fn no_two_blocks_written_are_equal() {
        let mut payload = Payload::new(1);
        let mut buffer = vec![0u8; 16 << 10];
        payload.fill(&mut buffer);
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            payload.refresh(&mut buffer);
            for block in buffer.chunks(4096) {
                assert!(seen.insert(block.to_vec()), "a block was written twice");
            }
        }
    }

    #[test]
    fn payload_looks_random() {
        let mut payload = Payload::new(3);
        let mut buffer = vec![0u8; 1 << 20];
        payload.fill(&mut buffer);
        payload.refresh(&mut buffer);
        let mut counts = [0f64; 256];
        for byte in &buffer {
            counts[usize::from(*byte)] += 1.0;
        }
        let total = buffer.len() as f64;
        let bits: f64 = counts.iter().map(|c| -(c / total) * (c / total).log2()).sum();
        assert!(bits > 7.999, "{bits} bits per byte");
    }
}
