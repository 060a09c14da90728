//! Walks the blocks that reads and writes touch, a batch at a time, so that whoever looks them up
//! can fetch many at once.

use super::BLOCK_BYTES;
use crate::{Op, Trace};

/// Touches handed over at once: as many as a processor has in flight, times a few.
pub(crate) const BATCH: usize = 64;

/// Hands over the blocks of these requests that `keep` wants, in order, with the index of the
/// request of each; returns how many touches there were, wanted or not.
#[inline]
pub(crate) fn for_batches(
    trace: &Trace,
    requests: impl Iterator<Item = usize>,
    keep: impl Fn(u64) -> bool,
    mut take: impl FnMut(&[u64], &[usize]),
) -> u64 {
    let mut blocks = [0; BATCH];
    let mut indices = [0; BATCH];
    let mut filled = 0;
    let mut touches = 0;
    for index in requests {
        let (offset, len) = (trace.offset[index], u64::from(trace.len[index]));
        if len == 0 || !matches!(trace.op[index], Op::Read | Op::Write) {
            continue;
        }
        let first = offset / BLOCK_BYTES;
        let last = (offset + (len - 1)) / BLOCK_BYTES;
        touches += last - first + 1;
        for block in first..=last {
            if keep(block) {
                blocks[filled] = block;
                indices[filled] = index;
                filled += 1;
                if filled == BATCH {
                    take(&blocks, &indices);
                    filled = 0;
                }
            }
        }
    }
    take(&blocks[..filled], &indices[..filled]);
    touches
}

/// Touches of all requests, without looking at any.
pub(crate) fn count(trace: &Trace) -> u64 {
    for_batches(trace, 0..trace.count(), |_| false, |_, _| ())
}
