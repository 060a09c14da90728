//! The parts of the address space that a trace touches, in chunks of a power of two.

use crate::{Op, Trace};

/// Numbers of the chunks of `1 << shift` bytes that any request touches, ascending. Flushes touch
/// none; a request without bytes touches the chunk that it starts in.
pub(super) fn touched(trace: &Trace, shift: u32) -> Vec<u64> {
    /// Sorted out once this many more have come: bounds memory by the chunks, not the requests.
    const PENDING: usize = 1 << 20;
    let mut chunks: Vec<u64> = Vec::new();
    let mut sorted = 0;
    for index in (0..trace.count()).filter(|index| trace.op[*index] != Op::Flush) {
        let (first, last) = span(trace.offset[index], trace.len[index], shift);
        chunks.extend(first..=last);
        if chunks.len() > sorted + PENDING {
            chunks.sort_unstable();
            chunks.dedup();
            sorted = chunks.len();
        }
    }
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// First and last chunk of a request.
pub(super) fn span(offset: u64, len: u32, shift: u32) -> (u64, u64) {
    (offset >> shift, (offset + u64::from(len.saturating_sub(1))) >> shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::any_trace;
    use super::*;

    proptest! {
        #[test]
        fn every_byte_lies_in_a_touched_chunk(trace in any_trace(), shift in 9u32..22) {
            let chunks = touched(&trace, shift);
            let mut expected = std::collections::BTreeSet::new();
            for request in trace.requests().filter(|request| request.op != Op::Flush) {
                expected.insert(request.offset.0 >> shift);
                let sectors = u64::from(request.len) / 512;
                expected.extend((0..sectors).map(|i| (request.offset.0 + i * 512) >> shift));
            }
            prop_assert_eq!(chunks, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
